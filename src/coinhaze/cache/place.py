"""Where the cache of a ledger lies, and how its layers are named."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from coinhaze import __version__
from coinhaze.cache.files import FORMAT, Unusable, cache_folder, is_abandoned, read_about
from coinhaze.cache.tree import shape_of_format
from coinhaze.errors import InputError, UsageError
from coinhaze.formats.registry import digest_of
from coinhaze.ledger.atomic import private_folder
from coinhaze.ledger.links import Link
from coinhaze.ledger.parquet import folder_files, is_folder
from coinhaze.options import (
    GraphOptions,
    ObserverOptions,
    ReadOptions,
    SolveOptions,
    options_of,
)

# Files up to this are identified by what they hold; larger ones by size, time of change and number.
DIGESTED = 16 << 20
# A clock of a file system may stand still for so long: a change within it leaves no trace.
_TICK_NS = 50_000_000
# Layers that others do not rest on, of one ledger: its newest settings.
MAX_LEFT = 8
_SUBJECTS = (ReadOptions, GraphOptions, ObserverOptions, SolveOptions)
_DEFAULTS = {option.name: option.default for s in _SUBJECTS for option in options_of(s)}
_OWN_VIEW = ("coin", "account")  # what a ledger of coins, and one of transfers, has by itself


def digest_of_sources(paths: Sequence[Path]) -> str:
    """Tell a ledger's files from any others and from what they were before they changed."""
    described = [_described(file) for path in paths for file in files_of(path)]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def files_of(path: Path) -> list[Path]:
    """List the files that a path of a ledger stands for."""
    if is_folder(path):
        return folder_files(path)
    log = path.with_name(f"{path.name}.wal")  # what a store has not yet worked into its file
    return [path, log] if log.exists() else [path]


def _described(path: Path) -> list[str | int]:
    try:
        seen = path.stat()
        if 0 <= time.time_ns() - seen.st_mtime_ns < _TICK_NS:
            time.sleep(_TICK_NS / 1e9)
            seen = path.stat()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    # A time that is yet to come says nothing.
    if seen.st_size <= DIGESTED or seen.st_mtime_ns > time.time_ns():
        return [path.name, digest_of(path)]
    return [path.name, seen.st_size, seen.st_mtime_ns, seen.st_ino]


def key_of(what: str, below: str, settings: Mapping[str, Any]) -> str:
    """Name a layer by the ledger or layer it rests on, its settings, and what wrote it."""
    about = [FORMAT, __version__, sys.byteorder, shape_of_format(), what, below]
    text = json.dumps([*about, _plain(_without_defaults(settings))], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _without_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what says no more than its absence."""
    said = {k: v for k, v in settings.items() if v is not None}
    if said.get("view") in ("address", "account") and said.get("time") == "stationary":
        del said["time"]
    if said.get("view") in _OWN_VIEW:
        del said["view"]
    return {
        name: value
        for name, value in said.items()
        if not (type(value) is type(_DEFAULTS.get(name)) and value == _DEFAULTS[name])
    }


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Link):
        return [_plain(value.origins), value.confidence]
    if isinstance(value, Mapping):
        return [[_plain(k), _plain(v)] for k, v in sorted(value.items())]
    if isinstance(value, list | tuple | set | frozenset):
        members = [_plain(v) for v in value]
        return sorted(members) if isinstance(value, set | frozenset) else members
    raise UsageError(
        f"settings with a {type(value).__name__} cannot be cached: they have no name of their own"
    )


def homes_of(paths: Sequence[Path]) -> list[Path]:
    """Say where to look for layers: beside the ledger, then in the user's cache folder."""
    every = [os.path.abspath(path) for path in paths]
    place = hashlib.sha256(os.fsencode("\n".join(every))).hexdigest()[:16]
    first = Path(every[0])
    name = first.name if len(every) == 1 else f"{first.name}-{place}"
    return [first.with_name(f"{name}.kept"), cache_folder() / "kept" / f"{first.name}-{place}"]


def home_to_write(paths: Sequence[Path]) -> Path:
    """Give the first of the homes that can be written to, made if need be."""
    refused: OSError | None = None
    for home in homes_of(paths):
        try:
            private_folder(home)
            if os.access(home, os.W_OK | os.X_OK):
                return home
        except OSError as error:
            refused = error
    why = refused.strerror if refused else "no right to write"
    raise InputError(f"{homes_of(paths)[-1]}: cannot be written, so nothing is cached: {why}")


def touch(homes: Iterable[Path], keys: Sequence[str]) -> None:
    """Note that layers were used."""
    for home in homes:
        for key in keys:
            with suppress(OSError):
                os.utime(home / key)


def clear_out(home: Path, ledger: str) -> None:
    """Remove what is no longer of use: layers of the ledger before it changed, and old settings."""
    rests_on: dict[str, Sequence[str]] = {}
    used: dict[str, int] = {}
    with suppress(OSError):
        for found in os.scandir(home):
            begun = found.name.startswith(".") and _is_key(found.name[1:33])
            if begun and is_abandoned(Path(found.path)):
                shutil.rmtree(found.path, ignore_errors=True)
            if not _is_key(found.name) or not found.is_dir(follow_symlinks=False):
                continue
            try:
                about = read_about(home, found.name)
            except Unusable:
                about = {"ledger": None}
            if about["ledger"] == ledger:
                rests_on[found.name] = about["rests_on"]
                used[found.name] = found.stat().st_mtime_ns
            else:
                shutil.rmtree(found.path, ignore_errors=True)
    below = {key for keys in rests_on.values() for key in keys}
    tops = sorted(rests_on.keys() - below, key=lambda key: -used[key])[:MAX_LEFT]
    recent = {key for top in tops for key in (top, *rests_on[top])}
    for key in rests_on.keys() - recent:
        shutil.rmtree(home / key, ignore_errors=True)


def keys_in(home: Path) -> list[str]:
    """Give the names of all layers that lie in a home, if it is there."""
    try:
        return sorted(name for name in os.listdir(home) if _is_key(name))
    except OSError:
        return []


def _is_key(name: str) -> bool:
    return len(name) == 32 and set(name) <= set("0123456789abcdef")
