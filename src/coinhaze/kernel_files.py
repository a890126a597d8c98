"""Compiled kernels on disk, so that a later process need not compile them again.

Each is one file, named by a digest of all that its machine code follows from: the source of its
module and of every module whose kernels it may call, their constants, its types and the CPU. numba
numbers its files instead, and lists them in an index that only the source of the kernel's own
module makes stale. Two processes that compile at once, one that is killed between index and file,
or a change in another module can then leave the index pointing at other code, which runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


class CompiledFiles:
    """The files of one kernel, a file for each combination of types; for numba's cache."""

    def __init__(self, folder: Path, name: str, source: str) -> None:
        self._folder, self._name = folder, name
        self._current = f"{name}.{source[:16]}."  # what files of these sources begin with

    def load(self, key: object) -> Any:
        """Give what was saved for these types, None if nothing was or the file is damaged."""
        try:
            data = self._path(key).read_bytes()
        except OSError:
            return None
        digest, content = data[:32], data[32:]
        return pickle.loads(content) if hashlib.sha256(content).digest() == digest else None

    def save(self, key: object, data: object) -> None:
        """Save what was compiled; a disk that is full only means to compile again next time."""
        from numba.core.serialize import dumps

        content = dumps(data)
        path = self._path(key)
        with contextlib.suppress(OSError):
            handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=".kernel-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(content).digest() + content)
                os.replace(temporary, path)
            except OSError:
                os.unlink(temporary)
                raise
            self._remove(lambda name: not name.startswith(self._current))

    def flush(self) -> None:
        """Remove the files."""
        self._remove(lambda name: True)

    def _path(self, key: object) -> Path:
        types = hashlib.sha256(repr(key).encode()).hexdigest()[:32]
        return self._folder / f"{self._current}{types}.nbc"

    def _remove(self, which: Callable[[str], bool]) -> None:
        for path in self._folder.glob(f"{self._name}.*.nbc"):
            if which(path.name):
                path.unlink(missing_ok=True)


def use_files(compiled: Any, source: str) -> None:
    """Let a compiled function load and save its code; `source` is a digest of its sources."""
    from numba.core.caching import FunctionCache

    if not hasattr(compiled, "py_func"):
        return  # the function itself, where NUMBA_DISABLE_JIT is set
    cache = FunctionCache(compiled.py_func)
    # Without the line, so that files of a kernel that has moved are replaced.
    name = f"{compiled.py_func.__module__}.{compiled.py_func.__qualname__}".replace(
        "<", ""
    ).replace(">", "")
    cache._cache_file = CompiledFiles(Path(cache.cache_path), name, source)
    compiled._cache = cache


class Sources:
    """What the code of each module's kernels follows from; `kernel` is the class of kernels."""

    def __init__(self, kernel: type[Any]) -> None:
        self._kernel = kernel
        # By the module's own names, which are held so that their address stays theirs.
        self._modules: dict[int, tuple[dict[str, Any], str]] = {}

    def of(self, module: dict[str, Any]) -> str:
        """Give a digest of a module, by its names, and of all whose kernels it can call."""
        if id(module) not in self._modules:
            found: dict[str, dict[str, Any]] = {}
            waiting = [module]
            while waiting:
                names = waiting.pop()
                if names["__name__"] not in found:
                    found[names["__name__"]] = names
                    called = [value for value in names.values() if isinstance(value, self._kernel)]
                    waiting += [value.py_func.__globals__ for value in called]
            digest = hashlib.sha256()
            for name in sorted(found):
                digest.update(_digest(found[name]))
            self._modules[id(module)] = module, digest.hexdigest()
        return self._modules[id(module)][1]


def _digest(names: dict[str, Any]) -> bytes:
    """Digest a module's source and the constants that it sees, its own and imported ones."""
    digest = hashlib.sha256(names["__name__"].encode())
    with contextlib.suppress(OSError):
        digest.update(Path(names.get("__file__", "")).read_bytes())
    for name in sorted(names):
        value = names[name]
        if not name.startswith("__") and isinstance(value, bool | int | float | str | tuple):
            digest.update(f"{name}={value!r};".encode())
    return digest.digest()
