"""Two backends by which several commands solve one question.

One solves a run of pieces and keeps their parts, the other gives parts that were kept. The pieces
of a question are numbered; part k of n has those from (k - 1) / n to k / n of them. Parts are kept
piece by piece and added up in the end, in the order of one process, so that the scores are the
same, byte for byte. An accuracy in bits is reached by trying: the pieces of the first try, which
often is the last, are solved in parts, and the merge solves what comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from coinhaze.errors import InputError, UsageError
from coinhaze.solve.pool.limits import Budget, TooManyEntries
from coinhaze.solve.pool.packed import bits_digest
from coinhaze.solve.pool.threads import open_threads
from coinhaze.solve.progress import Progress

# Fields of works that say what may be used, and change no sum.
_LIMITS = ("memory", "entries", "seconds", "waiting", "room_bytes")


class Part(NamedTuple):
    """Which part of how many, from 1 on."""

    number: int
    of: int

    @classmethod
    def read(cls, text: str) -> Part:
        """Read a part as people write it.

        >>> Part.read("3/220")
        Part(number=3, of=220)
        """
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise UsageError(f"a part is a number of how many, as 3/220 is, not {text!r}")
        return cls(int(number), int(of))

    def share(self, pieces: int) -> range:
        """Give the pieces of this part.

        >>> [Part(k, 3).share(5) for k in (1, 2, 3)]
        [range(0, 1), range(1, 3), range(3, 5)]
        """
        return range((self.number - 1) * pieces // self.of, self.number * pieces // self.of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class Solved(Exception):
    """The part is solved: its question has no answer yet."""


class PieceRefused(NamedTuple):
    """What a piece gives that read more entries than it was allowed: why."""

    why: str


class WorkDigest(NamedTuple):
    """How many pieces a question has, and the digest of all that its sums depend on."""

    pieces: int
    digest: str

    @classmethod
    def of(cls, work: Any, pieces: list[Any]) -> WorkDigest:
        """Take the digest of a work and its pieces."""
        return cls(len(pieces), bits_digest((work, pieces), leave_out=_LIMITS))


class KeepPart:
    """A backend that solves the pieces of one part, keeps each, and then raises `Solved`."""

    def __init__(self, part: Part, keep: Callable[[int, Any], None], *, progress: Progress) -> None:
        self.part = part
        self.question: WorkDigest | None = None
        self._keep = keep
        self._progress = progress

    @contextmanager
    def open(self, work: Any, pieces: int, budget: Budget) -> Iterator[_Keeping]:
        """Open threads for the pieces of this part."""
        mine = max(len(self.part.share(pieces)), 1)
        with open_threads(work, mine, budget) as threads:
            yield _Keeping(self, work, threads)

    def solve(self, work: Any, threads: Any, pieces: list[Any]) -> None:
        """Solve the pieces of this part and keep what they give."""
        self.question = WorkDigest.of(work, pieces)
        mine = self.part.share(len(pieces))
        solved = threads.map([pieces[k] for k in mine])
        for done, k in enumerate(mine, 1):
            try:
                found = next(solved)
            except TooManyEntries as error:
                # A merge stops there too, so it needs none of the pieces that follow.
                self._keep(k, PieceRefused(str(error)))
                break
            self._keep(k, found)
            self._progress(done / len(mine))
        raise Solved


class _Keeping:
    def __init__(self, backend: KeepPart, work: Any, threads: Any) -> None:
        self._backend, self._work, self._threads = backend, work, threads
        self.count = threads.count

    def map(self, pieces: Iterable[Any]) -> Iterator[Any]:
        self._backend.solve(self._work, self._threads, list(pieces))
        yield from ()


class GiveParts:
    """A backend that returns the stored part of each piece, and solves all later pieces."""

    count = 1

    def __init__(self, question: WorkDigest, kept: Callable[[int], Any]) -> None:
        self.question = question
        self._kept = kept
        self._work: Any = None
        self._given = False

    @contextmanager
    def open(self, work: Any, pieces: int, budget: Budget) -> Iterator[Any]:
        """Open what was kept; after it was given, threads."""
        if self._given:
            with open_threads(work, pieces, budget) as threads:
                yield threads
            return
        self._work = work
        yield self

    def map(self, pieces: Iterable[Any]) -> Iterator[Any]:
        """Give what was kept of each piece, if it was kept of this question."""
        requested = list(pieces)
        if WorkDigest.of(self._work, requested) != self.question:
            raise InputError(
                "the parts are sums of another chain than their ledger gives here: solve them "
                "again, with the same versions of coinhaze and its libraries everywhere"
            )
        self._given = True
        for k in range(len(requested)):
            found = self._kept(k)
            if isinstance(found, PieceRefused):
                raise TooManyEntries(found.why)
            yield found
