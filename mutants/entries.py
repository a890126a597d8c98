"""The list of mutants: plain data, in the TOML files beside this one."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
# Equivalent mutants that may be listed, each with its reason.
MAX_EQUIVALENT = 10


@dataclass(frozen=True)
class Mutant:
    """One wrong change: an expression or statement of a function, and what to put in its place."""

    module: str
    function: str  # qualified name; empty for the statements of the module itself
    find: str
    replace: str
    why: str  # what goes wrong, for a reader
    tests: tuple[str, ...]  # files or ids, relative to the root of the project
    argument: str = ""  # if given, `find` is the default of this argument
    text: bool = False  # if so, `find` is a part of a text, such as a query
    times: int = 1
    interpreted: bool = False  # run kernels as plain Python: quicker where a test is tiny
    equivalent: str = ""  # the reason why no test can notice

    def __str__(self) -> str:
        where = ".".join(filter(None, (self.module.removeprefix("coinhaze."), self.function)))
        find = f"{self.argument}={self.find}" if self.argument else self.find
        return f"{where}: {' '.join(find.split())} -> {' '.join(self.replace.split())}"


def load(folder: Path = HERE) -> list[Mutant]:
    """Read all files of the list, in the order of their names."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        table = tomllib.loads(path.read_text())
        tests = table.get("tests", {})
        for entry in table["mutant"]:
            # A file may name groups of tests once; an entry then names the group.
            named = [t for name in entry.pop("tests") for t in tests.get(name, [name])]
            found.append(Mutant(tests=tuple(named), **entry))
    return found
