"""Everything the pages show and the API gives, as frozen models: the contract of both.

Numbers that are not known are null, never NaN. Amounts are digits of the smallest unit, since JSON
readers round large integers. Shares are of the coin's money and sum to 1 with `other`.
"""

from __future__ import annotations

from coinhaze.web.asks import Model
from coinhaze.web.models_coin import (
    CoinAnswer,
    Comparators,
    Exposure,
    Flow,
    FlowBand,
    FlowColumn,
    FlowNode,
    GroupAnswer,
    ListedEntry,
    Measure,
    Origin,
    OriginsPage,
    Other,
    Rule,
    Sentence,
    Spent,
)
from coinhaze.web.models_ledger import (
    Comparison,
    Curve,
    Density,
    Histogram,
    Hit,
    LedgerCard,
    LedgerPage,
    Ledgers,
    LedgerSummary,
    ListCard,
    Lists,
    Outlier,
    Place,
    SearchAnswer,
    TablePage,
    TableRow,
)
from coinhaze.web.models_parts import (
    Amount,
    Bits,
    Count,
    JobState,
    MaybeShare,
    NodeKind,
    Number,
    OriginKind,
    Share,
    State,
    ThingKind,
    Window,
)
from coinhaze.web.models_spending import (
    Before,
    Group,
    Suggested,
    Together,
    WalletAnswer,
    WhatIfAnswer,
)

__all__ = [
    "Amount",
    "Before",
    "Bits",
    "CoinAnswer",
    "Comparators",
    "Comparison",
    "Count",
    "Curve",
    "Density",
    "ErrorAnswer",
    "Exposure",
    "Flow",
    "FlowBand",
    "FlowColumn",
    "FlowNode",
    "Group",
    "GroupAnswer",
    "Histogram",
    "Hit",
    "Job",
    "JobState",
    "Jobs",
    "LedgerCard",
    "LedgerPage",
    "LedgerSummary",
    "Ledgers",
    "ListCard",
    "ListedEntry",
    "Lists",
    "MaybeShare",
    "Measure",
    "NodeKind",
    "Number",
    "Origin",
    "OriginKind",
    "OriginsPage",
    "Other",
    "Outlier",
    "Place",
    "Problem",
    "Rule",
    "SearchAnswer",
    "Sentence",
    "Share",
    "Spent",
    "State",
    "Suggested",
    "TablePage",
    "TableRow",
    "ThingKind",
    "Together",
    "WalletAnswer",
    "WhatIfAnswer",
    "Window",
]


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
