"""Models of the HTTP API alone: problems and jobs. Those of ledgers are in `explore.models`."""

from __future__ import annotations

from typing import Literal

from coinhaze.explore.models import MaybeShare, Number
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
