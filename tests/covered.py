"""How many lines and branches the tests ran, by package, as a table of Markdown.

`make coverage` prints it. `--missing PACKAGE` lists the lines of a package that did not run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from pathlib import Path

from coverage import Coverage

FIGURES = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def package_of(path: str) -> str:
    """Name the package of a file, or the file where it is in none."""
    parts = Path(path).parts
    parts = parts[parts.index("coinhaze") + 1 :]
    return parts[0] if len(parts) > 1 else "coinhaze"


def measured() -> dict[str, dict[str, list[int]]]:
    """Give the figures of every file by package."""
    data = Coverage()
    data.load()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "coverage.json")
        data.json_report(outfile=str(path))
        files = json.loads(path.read_text())["files"]
    found: dict[str, dict[str, list[int]]] = defaultdict(dict)
    for file, told in files.items():
        found[package_of(file)][file] = [told["summary"][name] for name in FIGURES]
    return found


def row(name: str, files: list[list[int]]) -> str:
    lines, ran, branches, taken = map(sum, zip(*files, strict=True))
    share = [100 * part / max(whole, 1) for part, whole in ((ran, lines), (taken, branches))]
    return f"| {name} | {lines:,} | {share[0]:.1f} % | {branches:,} | {share[1]:.1f} % |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missing", metavar="PACKAGE", help="lines that did not run")
    missing = parser.parse_args().missing
    if missing:
        data = Coverage()
        data.load()
        data.report(show_missing=True, include=f"*/coinhaze/{missing}/*")
        return
    found = measured()
    print("| package | lines | run | branches | taken |\n|---|---|---|---|---|")
    for name in sorted(found):
        print(row(name, list(found[name].values())))
    print(row("all", [figures for files in found.values() for figures in files.values()]))


if __name__ == "__main__":
    main()
