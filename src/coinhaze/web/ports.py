"""What the API needs: the ledgers served, and the answers about each open one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from coinhaze.explore.models import (
    CoinAnswer,
    Comparators,
    Curve,
    Density,
    GroupAnswer,
    GroupKind,
    Histogram,
    LedgerCard,
    LedgerPage,
    ListCard,
    OriginsPage,
    SearchAnswer,
    TablePage,
    WalletAnswer,
    WhatIfAnswer,
)
from coinhaze.solve.progress import Progress
from coinhaze.web.asks import CoinAsk, Settings, TableAsk, WalletAsk, WhatIfAsk


class Explorer(Protocol):
    """One open ledger's answers. Called from several threads at once.

    What a ledger does not have raises `UnknownName`, what cannot be asked `UsageError` or
    `InputError`, what is too dear `ResourceError`. Work that may take more than a second tells
    `working.progress()` how far it is; that raises when nobody wants the answer any more.
    """

    def settings(self, asked: Settings) -> Settings:
        """Put the ledger's defaults in the place of what was left open; give the same class."""

    def ledger(self, asked: Settings) -> LedgerPage:
        """Give the ledger's page."""

    def histogram(self, asked: Settings) -> Histogram:
        """Give all coins by bits."""

    def density(self, asked: Settings) -> Density:
        """Give all coins by bits and steps."""

    def curve(self, asked: Settings) -> Curve:
        """Give the ledger's line of a comparison."""

    def search(self, query: str) -> SearchAnswer:
        """Find what a person pasted."""

    def coin(self, name: str, asked: CoinAsk) -> CoinAnswer:
        """Give a coin's page: a coin, account or address that is a node of the view."""

    def comparators(self, name: str, asked: Settings) -> Comparators:
        """Give a coin's other rules and measures."""

    def origins(self, name: str, asked: Settings, *, after: str | None, limit: int) -> OriginsPage:
        """Give some of a coin's origins."""

    def origin_batches(self, name: str, asked: Settings) -> Iterator[pa.RecordBatch]:
        """Give all of a coin's origins, as columns; the first batch may be empty."""

    def group(
        self, kind: GroupKind, name: str, asked: Settings, *, after: str | None, limit: int
    ) -> GroupAnswer:
        """Give an address, a transaction or a block."""

    def table(self, asked: TableAsk) -> TablePage:
        """Give a page of the table."""

    def table_batches(self, asked: TableAsk) -> Iterator[pa.RecordBatch]:
        """Give all rows the filter leaves, sorted, as columns; `limit`, `after` do not count."""

    def what_if(self, asked: WhatIfAsk) -> WhatIfAnswer:
        """Say what spending coins together would do."""

    def wallet(self, asked: WalletAsk) -> WalletAnswer:
        """Weigh a wallet."""


class LedgerRegistry(Protocol):
    """The ledgers being served. Never raises for a ledger in a bad state: its card says so."""

    def cards(self) -> Sequence[LedgerCard]:
        """Give all ledgers, in the order they were given; quick, opens nothing."""

    def card(self, ledger: str) -> LedgerCard:
        """Give one ledger; `UnknownName` where it is not served."""

    def lists(self) -> Sequence[ListCard]:
        """Give the loaded lists."""

    def names_of(self, listed: str) -> Sequence[str]:
        """Give the names of a list, by `name` or `name@digest`; `UnknownName` if there is none."""

    def labels(self) -> Mapping[str, str]:
        """Give the loaded labels, by address."""

    def explorer(self, ledger: str) -> Explorer | None:
        """Give a ledger that is ready; None where it is not: then its card says why."""

    def prepare(self, ledger: str, settings: Settings, progress: Progress) -> None:
        """Open, build and score a ledger and keep that; long. Stops where `progress` raises."""
