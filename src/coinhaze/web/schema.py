"""Models of the HTTP API alone: jobs, and problems with their codes, statuses and fixes.

Those of ledgers are in `explore.models`.
"""

from __future__ import annotations

from typing import Literal

from coinhaze.errors import (
    AccuracyError,
    CoinhazeError,
    InputError,
    ResourceError,
    SourceUnreachable,
    UnknownName,
    UsageError,
)
from coinhaze.explore.models import LedgerCard, MaybeShare, Number
from coinhaze.explore.query import Model

JobState = Literal["queued", "running", "done", "failed", "cancelled"]


class Problem(Model):
    """What is wrong, by a code that stays the same, in words, and what to do."""

    code: str
    message: str
    fix: str


class ErrorAnswer(Model):
    """The body of every answer that is an error."""

    error: Problem


class Job(Model):
    """Work done apart: how far it is, and where its result is."""

    id: str
    ledger: str
    words: str  # what it does
    state: JobState
    share: MaybeShare = None  # done
    seconds: float = 0.0  # since it began
    seconds_left: Number = None
    so_far: str | None = None  # a range that narrows: "so far 6.1-7.4"
    result: str | None = None  # address of the answer, when done ...
    page: str | None = None  # ... and of the page that shows it
    error: Problem | None = None


class Jobs(Model):
    """All jobs, newest first."""

    jobs: tuple[Job, ...]


# For each status the codes it comes with: the list in docs/serve.md, and in the API's document.
CODES = {
    400: ("bad-request", "bad-host", "bad-path"),
    401: ("no-token",),
    403: ("other-site",),
    404: ("unknown-address", "unknown-ledger", "unknown-name", "unknown-job"),
    405: ("wrong-method",),
    408: ("too-slow",),
    409: ("not-scored", "nothing-followed", "loading", "missing", "locked", "damaged", "not-done"),
    413: ("too-large",),
    422: ("unsupported", "bad-input"),
    429: ("too-many",),
    431: ("headers-too-large",),
    500: ("bug",),
    503: ("too-expensive", "not-accurate", "unreachable"),
}
_STATUS = {code: status for status, codes in CODES.items() for code in codes}
_RETRY = 1  # seconds


class Refused(Exception):
    """A request that is not answered; API and pages show the same problem."""

    def __init__(self, code: str, message: str, *, fix: str) -> None:
        super().__init__(message)
        self.status = _STATUS[code]
        self.problem = Problem(code=code, message=message, fix=fix)

    @property
    def body(self) -> bytes:
        """The problem as the API says it."""
        return ErrorAnswer(error=self.problem).model_dump_json().encode()

    @property
    def headers(self) -> dict[str, str]:
        """What goes with the status."""
        if self.status == 401:
            return {"www-authenticate": 'Bearer realm="coinhaze"'}
        return {"retry-after": str(_RETRY)} if self.status == 429 else {}


class StillWorking(Exception):
    """An answer that takes longer than people wait: a job goes on with it."""

    def __init__(self, job: Job) -> None:
        super().__init__(job.words)
        self.job = job


def refusal_of(error: CoinhazeError) -> Refused:
    """Say an error of the library as a refusal.

    >>> refusal_of(UnknownName("no coin 'a:7' in the ledger")).status
    404
    """
    code, fix = next(given for kind, given in _KINDS if isinstance(error, kind))
    return Refused(code, str(error), fix=fix)


_KINDS: tuple[tuple[type[CoinhazeError], tuple[str, str]], ...] = (
    (UnknownName, ("unknown-name", "search for it, or look in another ledger")),
    (UsageError, ("unsupported", "ask with other settings")),
    (InputError, ("bad-input", "correct what the message names")),
    (SourceUnreachable, ("unreachable", "try again when it answers")),
    (AccuracyError, ("not-accurate", "ask for a wider interval")),
    (ResourceError, ("too-expensive", "ask for less, or give the server more time and memory")),
    (CoinhazeError, ("bad-input", "correct what the message names")),
)


def not_ready(card: LedgerCard) -> Refused:
    """Say why a ledger answers no queries."""
    code = "loading" if card.state == "ready" else card.state.replace(" ", "-")
    message = card.message or f"the ledger {card.name} is {card.state}"
    return Refused(code, message, fix=card.fix or "try again in a moment")
