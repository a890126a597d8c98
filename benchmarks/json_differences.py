"""Where two JSON documents differ, and whether in a number or only in words.

Integers must be equal; floats may differ in their last digits, as they do when a sum is taken in
another order. Numbers inside a sentence count as numbers. What depends on the release, or on the
library that wrote a binary file, is replaced before anything is compared.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

RELATIVE = 1e-12
ABSOLUTE = 1e-13  # for rounding errors, and for what is zero up to one of them
BINARY = (".parquet", ".duckdb")
_MACHINE = re.compile(r"(time|memory) +about ")  # of a plan: it depends on the machine
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Difference:
    """One place where two documents differ; `words` where no number and no field does."""

    where: str
    old: Any
    new: Any
    words: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {_short(self.old)} became {_short(self.new)}"


def parsed(text: str, name: str = "") -> Any:
    """Read an answer as JSON where it is that, else as lines; of a file NAME.csv each cell.

    >>> parsed("a,b\\n1,0.5\\n", "table.csv")
    [['a', 'b'], [1, 0.5]]
    """
    if name.endswith(".csv"):
        return [[_cell(cell) for cell in row] for row in csv.reader(text.splitlines())]
    return json.loads(text) if text.startswith(("{", "[")) else text.splitlines()


def normalised(value: Any) -> Any:
    """Replace what is not a result: the version, what a machine takes, some digests."""
    if isinstance(value, list):
        return [normalised(item) for item in value]
    if isinstance(value, str) and _MACHINE.match(value):
        return value.split()[0]
    if not isinstance(value, dict):
        return value
    changed = {name: normalised(item) for name, item in value.items()}
    if isinstance(changed.get("software"), str):
        changed["software"] = changed["software"].partition(" ")[0]
    if "sha256" in changed and str(changed.get("file")).endswith(BINARY):
        changed["sha256"] = "of a binary file"
    if isinstance(changed.get("digest"), str):
        changed["digest"] = "of files and settings"
    if "openapi" in changed:
        changed["info"] = {k: v for k, v in changed["info"].items() if k != "version"}
    return changed


def differences(old: Any, new: Any, where: str = "") -> Iterator[Difference]:
    """Find every place where two documents, both normalised, differ.

    >>> [str(d) for d in differences({"bits": [1.0, 2.0]}, {"bits": [1.0 + 1e-15, 2.1]})]
    ['.bits[1]: 2.0 became 2.1']
    >>> [d.words for d in differences(["2 coins", "2 coins"], ["two coins", "2 outputs"])]
    [False, True]
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            if name in old and name in new:
                yield from differences(old[name], new[name], f"{where}.{name}")
            else:
                nothing = "(nothing)"
                yield Difference(f"{where}.{name}", old.get(name, nothing), new.get(name, nothing))
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield Difference(where, f"{len(old)} items", f"{len(new)} items")
        for place, (before, after) in enumerate(zip(old, new, strict=False)):
            yield from differences(before, after, f"{where}[{place}]")
    elif type(old) is not type(new):
        yield Difference(where, old, new)
    elif isinstance(old, float):
        same = math.isnan(old) and math.isnan(new)
        if not same and not math.isclose(old, new, rel_tol=RELATIVE, abs_tol=ABSOLUTE):
            yield Difference(where, old, new)
    elif old != new:
        words = isinstance(old, str) and _NUMBER.findall(old) == _NUMBER.findall(new)
        yield Difference(where, old, new, words=words)


def _cell(text: str) -> Any:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:100]}... ({len(text)} characters)"
