"""JSON files as typed records: one value a line, an array, or one value over many lines.

A file of lines is streamed. A value that spans lines is read in one piece, up to `LONGEST` bytes,
and so is what follows it in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

import msgspec

from coinhaze.errors import InputError, LedgerError, first_few
from coinhaze.formats.compression import BOM, SUFFIXES, errors_of_reading, open_plain

T = TypeVar("T")

PIECE = 1 << 20
_CUT = "cut short or damaged: one record a line, or whole values; export or download it again"
_OTHER = "give what the program wrote, unchanged; --format names another format"
LONGEST = 1 << 28
NAMES = (".json", ".jsonl", ".ndjson")
# What decoding any bytes can raise; ArithmeticError comes from numbers no Decimal can hold.
FAULTS = (msgspec.DecodeError, UnicodeError, RecursionError, MemoryError, ArithmeticError)


@dataclass(frozen=True)
class Records(Generic[T]):
    """Records and where each of them, or the array it is in, begins: file and line."""

    records: list[T]
    places: list[tuple[Path, int]]
    read: int = 0

    def place(self, record: int) -> str:
        """Say where a record stands."""
        path, line = self.places[record]
        return f"{path}:{line}"


@dataclass(frozen=True)
class RecordFormat(Generic[T]):
    """How to decode a record, or an array of them, and what to call it in errors."""

    name: str
    decoder: msgspec.json.Decoder[T | list[T]]
    hint: str = ""

    def records(self, path: Path, size: Callable[[T], int], maximum: int) -> Iterator[Records[T]]:
        """Read a file, or the JSON files of a folder by name, about `maximum` rows at a time.

        `size` tells how many rows a record makes.
        """
        group: Records[T] = Records([], [])
        rows = read = 0
        for file in files_of(path):
            for piece, records, places in self._of_file(file):
                read += len(piece)
                for record, place in zip(records, places, strict=True):
                    group.records.append(record)
                    group.places.append(place)
                    rows += size(record)
                    if rows >= maximum:
                        yield replace(group, read=read)
                        group, rows = Records([], []), 0
        if group.records:
            yield replace(group, read=read)

    def _of_file(self, path: Path) -> Iterator[tuple[bytes, list[T], list[tuple[Path, int]]]]:
        line, seen = 1, False
        with errors_of_reading(path), open_plain(path) as file:
            for piece, records in self._pieces(file, path):
                flat, numbers = _flatten(records, _lines(piece, records, line))
                line += piece.count(b"\n")
                seen = seen or bool(records)
                yield piece, flat, [(path, number) for number in numbers]
        if not seen:
            raise InputError(f"{path}: is empty; expected a {self.name} in JSON")

    def _pieces(self, file: BinaryIO, path: Path) -> Iterator[tuple[bytes, list[T | list[T]]]]:
        line, rest, want = 1, b"", PIECE
        first = True
        while True:
            more = bytes(file.read(want))
            rest += more.removeprefix(BOM) if first else more
            first = False
            end = rest.rfind(b"\n") + 1 if more else len(rest)
            if more and end == 0 and len(rest) <= LONGEST:
                want = max(len(rest), PIECE)
                continue
            try:
                records = self.decoder.decode_lines(rest[:end])
            except FAULTS as error:
                if more and _is_cut(error) and len(rest) <= LONGEST:
                    want = len(rest)  # as much again: all tries together read twice the file
                    continue
                raise self._fault(rest[:end], error, path, line) from None
            if len(rest) - end > LONGEST:
                what = f"a line of more than {LONGEST} bytes"
                raise LedgerError(f"{path}:{line}", what, fix="write one record a line")
            yield rest[:end], records
            line += rest.count(b"\n", 0, end)
            rest, want = rest[end:], PIECE
            if not more:
                return

    def _fault(self, text: bytes, error: Exception, path: Path, line: int) -> LedgerError:
        """Say on which line a text that does not decode is wrong."""
        if len(text) > LONGEST:
            what = f"a {self.name} of more than {LONGEST} bytes over many lines"
            return LedgerError(f"{path}:{line}", what, fix="write one record a line")
        parts = [part for part in enumerate(text.split(b"\n"), line) if part[1].strip()]
        for (number, one), (_, following) in zip(parts, [*parts[1:], (0, b"")], strict=True):
            fault = self._fault_of(one)
            if fault and (not _is_cut(fault) or _is_cut(error) or not self._fault_of(following)):
                return self.explain(one, fault, f"{path}:{number}")
            if fault:
                break  # not cut short: the value goes on on the next line
        offset = re.search(r"\(byte (\d+)\)", str(error))
        number = line + text.count(b"\n", 0, int(offset[1])) if offset else line
        return self.explain(text, error, f"{path}:{number}")

    def _fault_of(self, text: bytes) -> Exception | None:
        try:
            self.decoder.decode_lines(text)
        except FAULTS as fault:
            return fault
        return None

    def explain(self, text: bytes, error: Exception, where: str) -> LedgerError:
        """Say why a text is no record."""
        odd = re.search(rb"[-+]?\b(NaN|Infinity)\b", text)
        if isinstance(error, msgspec.ValidationError):
            fault, _, path = str(error).partition(" - at ")
            at = re.sub(r"^\$(\[[0-9]+\])*\.?", "", path.strip("`"))
            what = f"not a {self.name}: {fault}" + (f" at {at}" if at else "")
            seen = _value_at(text, path.strip("`"))
            if isinstance(seen, dict) and "missing required" in fault:
                what, seen = f"{what}; its fields are {first_few(list(seen), 20)}", None
            return LedgerError(where, what, value=seen, fix=self.hint or _OTHER)
        if odd:
            return LedgerError(where, f"{odd[0].decode()} is not a number", fix="export it again")
        what = f"not a {self.name}, not even JSON: {error or type(error).__name__}"
        return LedgerError(where, what, value=text[:60], fix=_CUT)


def files_of(path: Path) -> list[Path]:
    """Give the path itself or, for a folder, its JSON files by name, packed ones too."""
    if not path.is_dir():
        return [path]
    try:
        plain = {p: Path(p.stem) if p.suffix in SUFFIXES else p for p in path.iterdir()}
        files = sorted(p for p, name in plain.items() if name.suffix in NAMES and p.is_file())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not files:
        raise InputError(f"{path}: no JSON files in this folder (expected {', '.join(NAMES)})")
    return files


def _is_cut(error: Exception) -> bool:
    """Tell whether more text could mend it."""
    return isinstance(error, msgspec.DecodeError) and "truncated" in str(error)


def _lines(piece: bytes, records: list[T | list[T]], first: int) -> list[int]:
    ends = piece.count(b"\n") + (not piece.endswith(b"\n"))
    if ends == len(records):
        return list(range(first, first + ends))
    filled = [n for n, line in enumerate(piece.split(b"\n"), first) if line.strip()]
    # Values over many lines: msgspec does not tell where each began.
    return filled if len(filled) == len(records) else [first] * len(records)


def _flatten(records: list[T | list[T]], lines: list[int]) -> tuple[list[T], list[int]]:
    if not any(isinstance(r, list) for r in records):
        return records, lines  # type: ignore[return-value]
    arrays = [r if isinstance(r, list) else [r] for r in records]
    numbers = [n for n, array in zip(lines, arrays, strict=True) for _ in array]
    return [r for array in arrays for r in array], numbers


def _value_at(text: bytes, path: str) -> object:
    """Find what stands at a path such as $[0].vout[0].value; the text itself if it cannot be."""
    decoder = msgspec.json.Decoder()
    try:
        # Of lines the path begins with the number of the record.
        value: object = (decoder.decode_lines if path.startswith("$[") else decoder.decode)(text)
        for name, number in re.findall(r"\.(\w+)|\[(\d+)\]", path):
            value = value[name or int(number)]  # type: ignore[index]
    except (*FAULTS, LookupError, TypeError):
        return text[:60]
    return value
