"""Check the folder of real ledgers that tests read: which sets are complete, by SHA-256.

    python .ci/real_ledgers.py FOLDER [PINS]

Prints a line for each set, and ends with 0 if all are complete, else with 1. docs/real-ledgers.md
says what they are and where they come from.
"""

from __future__ import annotations

import hashlib
import sys
from collections import defaultdict
from pathlib import Path

PINS = Path(__file__).with_name("real-ledgers.sha256")


def check(folder: Path, pins: Path = PINS) -> dict[str, str]:
    """Give for each set what is wrong with it, nothing if it is complete."""
    wrong: dict[str, list[str]] = defaultdict(list)
    for line in pins.read_text(encoding="utf-8").splitlines():
        digest, name = line.split(maxsplit=1)
        path = folder / name
        wrong[name.split("/")[0]] += (
            [f"{name} is missing"]
            if not path.is_file()
            else [f"{name} is not the file that is pinned"]
            if hashlib.sha256(path.read_bytes()).hexdigest() != digest
            else []
        )
    return {name: "; ".join(found) for name, found in sorted(wrong.items())}


def main() -> int:
    """Print what `check` finds."""
    if len(sys.argv) not in (2, 3):
        print("usage: python .ci/real_ledgers.py FOLDER [PINS]", file=sys.stderr)
        return 2
    found = check(Path(sys.argv[1]), *map(Path, sys.argv[2:]))
    for name, words in found.items():
        print(f"{name}: {words or 'complete'}")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
