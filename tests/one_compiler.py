"""One process at a time compiles a kernel; the others wait for its file.

Two workers that begin at once would compile the same kernels, each for as long as both tests take.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from coinhaze.kernel_files import CompiledFiles

PATIENCE = 120.0  # seconds; a process that died or failed while it compiled holds up nobody


@contextlib.contextmanager
def compiled_in_turn(folder: Path) -> Iterator[None]:
    """Compile in turn with all processes that do so in this folder."""
    import fcntl

    from numba.core.caching import FunctionCache

    folder.mkdir(exist_ok=True)
    held: dict[Path, IO[bytes]] = {}
    load, save_overload = CompiledFiles.load, FunctionCache.save_overload

    def waiting_load(files: CompiledFiles, key: object) -> Any:
        found = load(files, key)
        path = files._path(key)
        if found is not None or path in held:
            return found
        lock = (folder / hashlib.sha256(str(path).encode()).hexdigest()).open("wb")
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held[path] = lock
                break
            time.sleep(0.05)
        found = load(files, key)
        if found is not None or path not in held:
            held.pop(path, lock).close()
        return found

    def releasing_save(cache: Any, sig: Any, data: Any) -> None:
        try:
            save_overload(cache, sig, data)
        finally:
            files = cache._cache_file
            if isinstance(files, CompiledFiles):
                path = files._path(cache._index_key(sig, data.codegen))
                if path in held:
                    held.pop(path).close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompiledFiles, "load", waiting_load)
        patch.setattr(FunctionCache, "save_overload", releasing_save)
        yield
    for lock in held.values():
        lock.close()
