"""Folders written whole or not at all, and caches that nobody else can open."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from coinhaze.errors import InputError, ResourceError


def put_in_place(path: Path, write: Callable[[Path], None]) -> None:
    """Write a folder beside the target, then put it in place by renaming."""
    beside: Path | None = None
    try:
        beside = Path(tempfile.mkdtemp(dir=path.absolute().parent, prefix=f".{path.name}."))
        new, old = beside / "new", beside / "old"
        new.mkdir()
        write(new)
        for file in new.iterdir():
            with open(file, "rb") as written:
                os.fsync(written.fileno())
        try:
            if path.exists():
                path.rename(old)
            new.rename(path)
        except BaseException:  # an interrupt too must leave what was there in its place
            if old.exists() and not path.exists():
                old.rename(path)
            raise
    except OSError as error:
        kind = ResourceError if error.errno in (errno.ENOSPC, errno.EDQUOT) else InputError
        what = error.strerror or str(error)
        raise kind(f"{path}: cannot be written: {what}; it is as it was") from None
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)


def private_folder(path: Path) -> None:
    """Make a folder that nobody else can open, whatever the umask; one that is there stays.

    So are the folders above it that are not there.
    """
    if not os.path.isdir(path.parent):
        private_folder(path.parent)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
        path.chmod(0o700)


def private_file(path: str | Path, flags: int) -> int:
    """Open a file that nobody else can open, whatever the umask; fit to be an `opener`."""
    file = os.open(path, flags, 0o600)
    with suppress(OSError):  # somebody else's file, or a file system without modes
        os.fchmod(file, 0o600)
    return file
