"""Writes the value tables tests/data/*.txt with NumPy, an oracle that shares no code with Tenon.

    /usr/bin/python3 tools/reference            (Debian's python3-numpy belongs to Debian's own python3)
    /usr/bin/python3 tools/reference --check    writes nothing; fails if a table would change

Fails if a row of src/ops has no case, unless it is random.
"""

import pathlib
import re
import sys

import alignments
import below
import compositions
import factories
import formats
import families
import images
import indexing
import linear_algebra
import moments
import networks
import pointwise
import products
import rearrange
import reductions
import resampling
import special
import special_functions
import views
import volumes
import windows
from table import Table

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAMILIES = {"pointwise": pointwise, "reductions": reductions, "views": views, "factories": factories,
            "products": products,
            "indexing": indexing, "rearrange": rearrange, "moments": moments, "images": images, "below": below,
            "special": special, "networks": networks, "windows": windows,
            "resampling": resampling, "special_functions": special_functions,
            "formats": formats, "compositions": compositions, "linear_algebra": linear_algebra,
            "families": families, "volumes": volumes, "alignments": alignments}
# tests/ops/value_table_test.cpp looks at the properties of these instead.
RANDOM = {"rand", "randn", "rand_like", "randn_like", "randint", "randint.low"}


def rows():
    """The operators of the table: the name at the start of each schema."""
    for file in sorted((ROOT / "src" / "ops").rglob("*.cpp")):
        for match in re.finditer(r'\bop\(\s*"([\w.]+)\(', file.read_text()):
            yield match.group(1)


def main():
    check = "--check" in sys.argv[1:]
    covered, stale = set(), []
    for name, family in FAMILIES.items():
        table = Table()
        family.write(table)
        covered.update(operator for operator, _ in table.cases)
        path = ROOT / "tests" / "data" / f"{name}.txt"
        if check:
            if not path.exists() or path.read_text() != table.text():
                stale.append(path.name)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(table.text())
            print(f"{path.relative_to(ROOT)}: {len(table.cases)} cases")
    missing = sorted(set(rows()) - covered - RANDOM)
    unknown = sorted(covered - set(rows()))
    for problem, names in (("rows without a case", missing), ("cases of no row", unknown),
                           ("tables that would change", stale)):
        if names:
            print(f"tools/reference: {problem}: {', '.join(names)}", file=sys.stderr)
    return 1 if missing or unknown or stale else 0


if __name__ == "__main__":
    sys.exit(main())
