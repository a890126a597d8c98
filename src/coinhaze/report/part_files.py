"""Files of parts: what `coinhaze score --part` solved, and a merge of them.

A file is an uncompressed ZIP archive of NumPy arrays and JSON, which holds no code: `about.json`
says which part of which question it is, and each piece has its sums. Parts are merged if they are
of one question and each is there once.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coinhaze import __version__
from coinhaze.errors import CoinhazeError, InputError, UsageError
from coinhaze.measures import Scores
from coinhaze.measures.scores import reached
from coinhaze.options import LIMITS
from coinhaze.report.files import input_digests, write_whole
from coinhaze.session import Session
from coinhaze.solve.exact.stream import BlockSums
from coinhaze.solve.pool.parts import GiveParts, KeepPart, Part, PieceRefused, Solved, WorkDigest
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.score import score
from coinhaze.solve.source import CHAIN_SETTINGS, GRAPH_SETTINGS, READ_SETTINGS, only
from coinhaze.solve.sums import Sums
from coinhaze.solve.truncated.lists import SweptBlock

FORMAT = 1
ABOUT = "about.json"
_TYPES = {kind.__name__: kind for kind in (BlockSums, PieceRefused, Sums, SweptBlock)}
_MODEL = READ_SETTINGS | GRAPH_SETTINGS | CHAIN_SETTINGS
# What parts of one question have in common, and how it is said where they do not.
_SHARED = {
    "software": "version",
    "inputs": "ledger",
    "options": "options",
    "of": "number of parts",
    "pieces": "pieces",
    "digest": "chain",
}


def write_part(
    sources: Sequence[str],
    part: Part,
    path: Path,
    *,
    settings: Mapping[str, Any],
    options: Mapping[str, Any],
    inputs: Sequence[str | Path],
    progress: Progress = silent,
) -> int:
    """Solve one part of a question and write what its pieces gave; return how many there are.

    `settings` are those of `score`; `options` are what they were made from, plain JSON, with which
    a merge can repeat the same query.
    """
    check_settings(settings)
    query = {name: value for name, value in settings.items() if name not in LIMITS}
    limits = only(settings, LIMITS)
    # No name leads to it until it is whole, so that nothing stays if the command is ended.
    with tempfile.TemporaryFile(dir=path.absolute().parent) as file:
        with zipfile.ZipFile(file, "w") as archive:
            backend = KeepPart(part, lambda k, found: _put(archive, k, found), progress=progress)
            session = Session(list(sources), backend=backend.open, **only(query, _MODEL))
            scoring = {name: value for name, value in query.items() if name not in _MODEL}
            with suppress(Solved):
                score(session, **scoring, **limits)
            question = backend.question
            if question is None:
                raise UsageError("this question is not solved in pieces: leave --part out")
            about = {
                "format": FORMAT,
                "software": f"coinhaze {__version__}",
                "part": part.number,
                "of": part.of,
                "sources": [os.path.abspath(source) for source in sources],
                "inputs": input_digests(inputs),
                "options": dict(options),
                **question._asdict(),
            }
            archive.writestr(ABOUT, json.dumps(about, indent=1))
        file.seek(0)

        def copy(place: Path) -> None:
            with open(place, "wb") as written:
                shutil.copyfileobj(file, written, 1 << 20)

        write_whole(path, copy)
    return len(part.share(question.pieces))


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings with which a question is not solved in pieces that are known beforehand."""
    accuracy = settings.get("accuracy", "exact")
    if accuracy not in ("exact", "preview") and settings.get("miss") is not None:
        raise UsageError(
            f"--accuracy {accuracy} with --miss is proven or drawn, whichever is less work, which "
            "is tried first: parts are of one of them: leave --miss out, or ask for a preview"
        )
    if accuracy == "preview" and settings.get("seed") is None:
        raise UsageError("the parts of a preview have one seed: give --seed")
    for name in ("preset", "seconds", "workers", "device"):
        if settings.get(name) not in (None, "cpu"):
            raise UsageError(f"--{name} does not go with --part: leave it out")


@dataclass(frozen=True)
class PartFile:
    """What one file says it is."""

    path: Path
    about: Mapping[str, Any]

    @property
    def part(self) -> Part:
        """Which part it is."""
        return Part(self.about["part"], self.about["of"])

    @property
    def question(self) -> WorkDigest:
        """What its sums are of."""
        return WorkDigest(self.about["pieces"], self.about["digest"])


def read_part(path: Path) -> PartFile:
    """Read what a file says it is."""
    with _opened(path) as archive:
        about = json.loads(archive.read(ABOUT))
        if about["format"] != FORMAT:
            raise InputError(
                f"{path}: a part in format {about['format']}, by {about['software']}; this "
                f"version reads format {FORMAT}: solve it again"
            )
        file = PartFile(path, about)
        _ = (file.part, file.question, *(about[name] for name in (*_SHARED, "sources")))
    return file


def read_parts(paths: Sequence[Path]) -> list[PartFile]:
    """Read all parts of one question, in order; refuse others, missing and double ones by name."""
    files = [read_part(path) for path in paths]
    first = files[0]
    if first.about["software"] != f"coinhaze {__version__}":
        raise UsageError(
            f"{first.path}: solved by {first.about['software']}; this is {__version__}: merge "
            "with the version that solved it"
        )
    for file in files[1:]:
        for name, words in _SHARED.items():
            if file.about[name] != first.about[name]:
                seen = _difference(file.about[name], first.about[name])
                raise InputError(
                    f"{file.path} and {first.path} are parts of different questions: {words}{seen}"
                )
    by_number: dict[int, PartFile] = {}
    for file in files:
        other = by_number.setdefault(file.part.number, file)
        if other is not file:
            raise InputError(f"{other.path} and {file.path} are both part {file.part}: keep one")
    missing = [k for k in range(1, first.part.of + 1) if k not in by_number]
    if missing:
        some = ", ".join(f"{k}/{first.part.of}" for k in missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise InputError(f"part {some}{more} is missing: solve it with --part, and merge again")
    return [by_number[k] for k in sorted(by_number)]


def _difference(one: Any, other: Any) -> str:
    if isinstance(one, dict):
        names = [n for n in one.keys() | other.keys() if one.get(n) != other.get(n)]
        name = min(names)
        return f" {name}, {one.get(name)!r} and {other.get(name)!r}"
    return "" if isinstance(one, list) or len(str(one)) > 40 else f", {one!r} and {other!r}"


def merged(
    files: Sequence[PartFile],
    *,
    settings: Mapping[str, Any],
    inputs: Sequence[str | Path],
    strict: bool = False,
    progress: Progress = silent,
) -> Scores:
    """Ask the question of all parts again, and answer its pieces from them.

    Where the accuracy is not reached this gives what was, with its note.
    """
    about = files[0].about
    if input_digests(inputs) != about["inputs"]:
        raise InputError(
            f"{files[0].path}: its ledger {', '.join(about['sources'])} has changed since, or is "
            "another one: solve the parts again"
        )
    pieces = files[0].question.pieces
    of_piece = {k: file for file in files for k in file.part.share(pieces)}
    backend = GiveParts(files[0].question, lambda k: _get(of_piece[k].path, k))
    session = Session(list(about["sources"]), backend=backend.open, **only(settings, _MODEL))
    scoring = {name: value for name, value in settings.items() if name not in _MODEL}

    def solve() -> Scores:
        return score(session, progress=progress, strict=strict, **scoring)

    return solve() if strict else reached(solve)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a file of a part; what is none, or is damaged, is one error."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except CoinhazeError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, EOFError) as error:
        raise InputError(
            f"{path}: no part that coinhaze score --part wrote, or a damaged one ({error}): solve "
            "it again"
        ) from None


def _put(archive: zipfile.ZipFile, k: int, found: Any) -> None:
    """Write what a piece gave."""
    arrays: list[Any] = []
    archive.writestr(f"{k}.json", json.dumps(_described(found, arrays)))
    for number, array in enumerate(arrays):
        with archive.open(f"{k}.{number}.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array(file, array, allow_pickle=False)


def _get(path: Path, k: int) -> Any:
    """Read what a piece gave."""

    def array(number: int) -> Any:
        with archive.open(f"{k}.{number}.npy") as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    with _opened(path) as archive:
        return _made(json.loads(archive.read(f"{k}.json")), array)


def _described(value: Any, arrays: list[Any]) -> Any:
    """Describe a value in JSON; its arrays are collected, but for those that are all zero."""
    if isinstance(value, np.ndarray):
        if not np.ascontiguousarray(value).view(np.uint8).any():  # -0.0 is not nothing
            return {"zeros": list(value.shape), "dtype": value.dtype.str}
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, range):
        return {"range": [value.start, value.stop]}
    if isinstance(value, tuple) and type(value).__name__ in _TYPES:
        return {"type": type(value).__name__, "fields": [_described(v, arrays) for v in value]}
    if is_dataclass(value):
        every = [_described(getattr(value, f.name), arrays) for f in fields(value)]
        return {"type": type(value).__name__, "fields": every}
    return value


def _made(described: Any, array: Any) -> Any:
    if not isinstance(described, dict):
        return described
    if "zeros" in described:
        return np.zeros(described["zeros"], dtype=described["dtype"])
    if "array" in described:
        return array(described["array"])
    if "range" in described:
        return range(*described["range"])
    return _TYPES[described["type"]](*(_made(one, array) for one in described["fields"]))
