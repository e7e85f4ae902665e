"""What PyTorch lets everybody call, and has a row here, has a C++ function: public_names_test.py GENERATED_HEADERS.

PyTorch says which names are public (TENON_PEER_PYTHON; without it the test is skipped). Those that have no function
here stand in public_names.txt with the reason.
"""
import glob
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROW = re.compile(r'\bop\(\s*"([A-Za-z0-9_]+)')
ASK = """
import json, sys, torch
places = {"": [torch.Tensor, torch, torch.nn.functional], "linalg_": [torch.linalg], "special_": [torch.special]}
def is_public(name):
    return any(name.startswith(prefix) and hasattr(place, name[len(prefix):])
               for prefix, there in places.items() for place in there)
print(json.dumps([name for name in json.load(sys.stdin) if is_public(name)]))
"""


def read(pattern):
    texts = []
    for path in glob.glob(pattern, recursive=True):
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    return "\n".join(texts)


def main():
    python = os.environ.get("TENON_PEER_PYTHON")
    if not python:
        print("skipped: TENON_PEER_PYTHON names no Python that has PyTorch")
        return 77
    rows = set(ROW.findall(read(f"{ROOT}/src/ops/**/*.cpp")))
    # In place, too: `x.normal_()`.
    names = sorted(name for row in rows for name in (row, row + "_") if not name.startswith("_"))
    done = subprocess.run([python, "-c", ASK], input=json.dumps(names), capture_output=True, text=True, check=True)
    headers = read(f"{ROOT}/include/tenon/**/*.h") + read(f"{sys.argv[1]}/**/*.h")
    missing = {name for name in json.loads(done.stdout) if not re.search(rf"[\w>&] {name}\(", headers)}
    with open(f"{ROOT}/tests/tools/public_names.txt", encoding="utf-8") as file:
        listed = {line.split(":")[0] for line in file if line.strip() and not line.startswith("#")}
    for name in sorted(missing - listed):
        print(f"{name}: PyTorch has it, there is a row, and no C++ function (or list it in public_names.txt)")
    for name in sorted(listed - missing):
        print(f"{name}: it has a C++ function, or PyTorch does not have it: it need not be in public_names.txt")
    return 1 if missing != listed else 0


if __name__ == "__main__":
    sys.exit(main())
