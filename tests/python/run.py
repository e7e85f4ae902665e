"""Runs tests of the Python package: tests/python/run.py package|backend[/FILE] --package FOLDER [-k NAME]...

`package` needs the package alone, `backend` PyTorch too: the Python of TENON_PEER_PYTHON, or this one. Exits with 77,
and says why, where what they need is not there.
"""
import argparse
import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tests", help="package, backend, or a file of theirs")
    parser.add_argument("--package", required=True)
    parser.add_argument("-k", action="append", default=[], help="names of tests, as unittest's -k takes them")
    options = parser.parse_args()
    if not glob.glob(os.path.join(options.package, "tenon", "_core*.so")):
        skip("the Python package was not built; the configuration of the build says what it needs")
    python = sys.executable
    environment = {**os.environ, "PYTHONPATH": options.package}
    suite, _, file = options.tests.partition("/")
    if suite == "backend":
        peer = os.environ.get("TENON_PEER_PYTHON")
        python = peer or python
        found = subprocess.run([python, "-c", "import torch"], capture_output=True, text=True)
        if found.returncode != 0:
            if peer:
                sys.exit(f"TENON_PEER_PYTHON ({peer}) cannot import torch:\n{found.stderr}")
            skip("there is no PyTorch here; TENON_PEER_PYTHON names a Python that has it")
    selected = [word for pattern in options.k for word in ("-k", pattern)]
    command = [python, "-m", "unittest", "discover", "-s", os.path.join(HERE, suite), "-p",
               file or "*_test.py"]
    sys.exit(subprocess.run([*command, *selected], env=environment).returncode)


if __name__ == "__main__":
    main()
