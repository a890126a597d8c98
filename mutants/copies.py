"""A copy of the package to change, with what was compiled for all that did not change."""

from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mutants.apply import mutated
from mutants.entries import Mutant


class Copy:
    """One worker's copy of `src`; times of files are preserved, as caches are judged by them."""

    def __init__(self, original: Path, folder: Path) -> None:
        self.source = folder / "src"
        self.aside = folder / "aside"
        shutil.copytree(original, self.source)  # with copy2, which preserves times
        self.aside.mkdir()
        self._kernels = {p for p in self.source.rglob("*.py") if any(_caches(p, "nbi"))}
        self._imports = {p: _imported(p) for p in self._kernels}

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Hold the mutant instead of the original."""
        path, text = mutated(mutant, self.source)
        before, times = path.read_text(), path.stat()
        stale = self._compiled_with(path)
        moved = [self._set_aside(c, i) for i, p in enumerate(stale) for c in _caches(p)]
        path.write_text(text)
        try:
            yield
        finally:
            path.write_text(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            for p in stale:
                for made in _caches(p):
                    made.unlink()
            for old, at in moved:
                at.rename(old)

    def _set_aside(self, cache: Path, number: int) -> tuple[Path, Path]:
        at = self.aside / f"{number}-{cache.name}"
        cache.rename(at)
        return cache, at

    def _compiled_with(self, path: Path) -> list[Path]:
        """Give the module itself and all compiled ones that have it inside.

        A compiled kernel holds the code and constants of others that it uses, and its cache is
        not renewed if those change.
        """
        found = [path]
        for module in found:
            name = module.relative_to(self.source).with_suffix("").as_posix().replace("/", ".")
            found += [p for p in self._kernels - {*found} if name in self._imports[p]]
        return found


def _caches(path: Path, ending: str = "") -> list[Path]:
    return list((path.parent / "__pycache__").glob(f"{path.stem}.*{ending}"))


def _imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{a.name}" for a in node.names)}
        elif isinstance(node, ast.Import):
            names |= {a.name for a in node.names}
    return names
