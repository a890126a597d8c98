"""Ledgers with made-up answers: what HTTP does with them is tested apart from what they say."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from coinhaze.errors import ResourceError, UnknownName, UsageError
from coinhaze.explore.cache import progress
from coinhaze.explore.models import (
    Amount,
    Before,
    CoinAnswer,
    Comparators,
    Curve,
    Density,
    Flow,
    FlowBand,
    FlowColumn,
    FlowNode,
    GroupAnswer,
    GroupKind,
    Histogram,
    Hit,
    LedgerCard,
    LedgerPage,
    LedgerSummary,
    ListCard,
    Origin,
    OriginsPage,
    Other,
    Outlier,
    Place,
    ScreenAnswer,
    SearchAnswer,
    Sentence,
    StatementAnswer,
    StatementFile,
    StatementSection,
    TablePage,
    TableRow,
    Together,
    WalletAnswer,
    WhatIfAnswer,
)
from coinhaze.explore.query import (
    CoinQuery,
    ScreenQuery,
    Settings,
    StatementQuery,
    TableQuery,
    WalletQuery,
    WhatIfQuery,
)
from coinhaze.solve.progress import Progress
from coinhaze.web.registry import LedgerRegistry

HOSTILE = "<img src=x onerror=alert(1)>"
FORMULA = "=cmd|' /C calc'!A0"
NAMES = ("a:0", "b:1", "x/y?z", HOSTILE, FORMULA)
DIGEST = "d1"
FIVE = Amount(smallest="5", shown="5")


class MadeExplorer:
    """Answers that are quick, but for the coin `slow`, which goes on until it is cancelled."""

    def __init__(self, coins: int = 2_500) -> None:
        self.coins = coins
        self.calls = 0
        self.slow_ended = 0

    def settings(self, query: Any) -> Any:
        return query.model_copy(update={"view": "coin", "time": "temporal"})

    def ledger(self, query: Settings) -> LedgerPage:
        self.calls += 1
        return LedgerPage(
            card=CARDS["town"], settings=query, summary=_summary(), histogram=self.histogram(query)
        )

    def histogram(self, query: Settings) -> Histogram:
        return Histogram(zeros=1, counts=(0, 2, 1))

    def density(self, query: Settings) -> Density:
        lone = Outlier(name="a:0", bits=1.0, steps=2.0)
        return Density(
            ledger="town", settings=query, columns=2, rows=1, bits_low=0, bits_high=1,
            steps_low=0, steps_high=2, counts=(3, 1), outliers=(lone,),
        )  # fmt: skip

    def curve(self, query: Settings) -> Curve:
        return Curve(card=CARDS["town"], summary=_summary(), bits=(0, 1), share=(0.5, 1))

    def search(self, query: str) -> SearchAnswer:
        hits = [
            Hit(kind="coin", ledger="town", name=n, words=n, href=f"/l/town/coin/{n}")
            for n in NAMES
            if n.startswith(query.strip())
        ]
        return SearchAnswer(query=query, understood="the beginning of a name", hits=tuple(hits))

    def coin(self, name: str, query: CoinQuery) -> CoinAnswer:
        self.calls += 1
        if name == "slow":
            return self._slow()
        if name == "dear":
            raise ResourceError("that would take 40 GB")
        if name == "bug":
            raise ZeroDivisionError("secret inside")
        if name not in NAMES:
            raise UnknownName(f"no coin {name!r} in the ledger")
        if query.policy == "lifo":
            raise UsageError("lifo needs amounts")
        return made_coin(name, self.settings(query))

    def _slow(self) -> CoinAnswer:
        try:
            tell = progress()
            for k in range(6_000):
                tell(k / 6_000)
                time.sleep(0.01)
            return made_coin("a:0", CoinQuery())
        finally:
            self.slow_ended += 1

    def comparators(self, name: str, query: Settings) -> Comparators:
        return Comparators(ledger="town", name=name, rules=(), measures=())

    def origins(self, name: str, query: Settings, *, after: str | None, limit: int) -> OriginsPage:
        other = Other(count=0, share=0.0)
        rows = made_coin(name, CoinQuery()).origins
        return OriginsPage(
            ledger="town", name=name, settings=query, total=1, rows=rows, other=other, after=None
        )

    def origin_batches(self, name: str, query: Settings) -> Iterator[pa.RecordBatch]:
        if name not in NAMES:
            raise UnknownName(f"no coin {name!r} in the ledger")
        yield pa.RecordBatch.from_pydict({"source": [FORMULA, HOSTILE], "share": [0.5, 0.5]})

    def group(
        self, kind: GroupKind, name: str, query: Settings, *, after: str | None, limit: int
    ) -> GroupAnswer:
        if name not in NAMES:
            raise UnknownName(f"no {kind} {name!r} in the ledger")
        return GroupAnswer(
            ledger="town", digest=DIGEST, settings=query, kind=kind, name=name, total=FIVE,
            coins=1, unspent=1, bits_low=1, bits_median=1, bits_high=1, bits_weighted_mean=1,
            exposure=None, histogram=Histogram(zeros=1, counts=()), rows=(_row(0),),
        )  # fmt: skip

    def table(self, query: TableQuery) -> TablePage:
        first = int(query.after or 0)
        rows = tuple(_row(k) for k in range(first, min(first + query.limit, self.coins)))
        after = str(first + len(rows)) if first + len(rows) < self.coins else None
        return TablePage(ledger="town", query=query, total=self.coins, rows=rows, after=after)

    def table_batches(self, query: TableQuery) -> Iterator[pa.RecordBatch]:
        for first in range(0, self.coins, 1_000):
            last = min(first + 1_000, self.coins)
            names = [_row(k).name for k in range(first, last)]
            yield pa.RecordBatch.from_pydict({"name": names, "bits": [1.0] * len(names)})

    def what_if(self, query: WhatIfQuery) -> WhatIfAnswer:
        unknown = [name for name in query.coins if name not in NAMES]
        if unknown:
            raise UnknownName(f"no coin {unknown[0]!r} in the ledger")
        before = tuple(
            Before(name=n, amount=FIVE, exposure=None, bits=1, bits_low=1, bits_high=1)
            for n in query.coins
        )
        return WhatIfAnswer(
            ledger="town", settings=query.settings, before=before, after=_together(query.coins),
            steps=3.0, ownership="one person holds these coins",
        )  # fmt: skip

    def wallet(self, query: WalletQuery) -> WalletAnswer:
        names = tuple(query.coins.split())
        return WalletAnswer(
            ledger="town", settings=query.settings, total=FIVE, limit=query.limit,
            coins=self.what_if(WhatIfQuery(coins=names)).before, groups=(), pairs=None,
            suggestion=None, how_sure="exact", would_change=(), is_not=(),
        )  # fmt: skip

    def screen(self, query: ScreenQuery) -> ScreenAnswer:
        return ScreenAnswer(
            provenance={"software": "made"}, match=False, verdict=("No match",), limit=query.limit,
            above_limit=None, dust=0, listed=(), view="coin", time=None, policy=("haircut",),
            completeness="complete", totals=(), nodes=({"node": "a:0", "balance": "5"},), paths=(),
        )  # fmt: skip

    def statement(self, query: ScreenQuery) -> StatementAnswer:
        parts = [
            StatementSection(
                title=title, lines=("No match",), warnings=("a warning",), annex=title == "Ways",
                columns=(("node", "left"), ("holds", "right"), ("haircut", "right")),
                rows=(("a:0", "5", "50.00%\n2.5"),),
            )
            for title in ("In short", "Found", "Ways")
        ]  # fmt: skip
        return StatementAnswer(
            ledger="town", query=query, title="Money from a list", match=False, above=False,
            sections=tuple(parts),
        )  # fmt: skip

    def statement_file(self, query: StatementQuery) -> StatementFile:
        return StatementFile(name=f"town.{query.kind}", media="text/plain", text="No match")


CARDS = {
    "town": LedgerCard(
        id="town", name="town.csv", state="ready", digest=DIGEST, kind="coins", coins=5,
        bits_median=1.0, policies=("haircut", "fifo"), views=("coin",), times=("temporal",),
    ),
    "raw": LedgerCard(
        id="raw", name="raw.duckdb", state="not scored", message="raw.duckdb is not scored",
        fix="score it now",
    ),
    "lost": LedgerCard(
        id="lost", name="lost.csv", state="missing", message="lost.csv is not there",
        fix="put it back",
    ),
    "held": LedgerCard(
        id="held", name="held.duckdb", state="locked", message="another process writes it",
        fix="wait for it",
    ),
}  # fmt: skip


class MadeRegistry(LedgerRegistry):
    """Ledgers in every state."""

    def __init__(self, explorer: MadeExplorer | None = None) -> None:
        self.made = explorer or MadeExplorer()
        self.prepared = 0

    def cards(self) -> list[LedgerCard]:
        return list(CARDS.values())

    def card(self, ledger: str) -> LedgerCard:
        if ledger not in CARDS:
            raise UnknownName(f"no ledger {ledger!r}")
        return CARDS[ledger]

    def lists(self) -> list[ListCard]:
        return [ListCard(id="bad@71be", name="bad", entries=2, digest="71be")]

    def names_of(self, listed: str) -> tuple[str, ...]:
        return ("m",)

    def labels(self) -> Mapping[str, str]:
        return {"m": HOSTILE}

    def explorer(self, ledger: str) -> Any:
        return self.made if CARDS[ledger].state == "ready" else None

    def prepare(self, ledger: str, settings: Settings, progress: Progress) -> None:
        for k in range(20):
            progress(k / 20)
            time.sleep(0.01)
        self.prepared += 1


def made_coin(name: str, query: CoinQuery) -> CoinAnswer:
    """Give a coin of 6.98 bits that came from one mined transaction."""
    sentence = Sentence(
        text="As hard to trace as a coin with 126 equally likely origins.", equal_origins=126.2,
        equal="126", band="Hundreds", though=None, shown="6.98", range="exact",
    )  # fmt: skip
    origin = Origin(rank=1, name="tx:m", words=HOSTILE, kind="mined", share=1.0, label=HOSTILE)
    flow = Flow(
        by=query.by,
        columns=(
            FlowColumn(title="coin", hop=0, reached=1.0),
            FlowColumn(title="origins", hop=None, reached=1.0),
        ),
        nodes=(
            FlowNode(id="n0", column=0, kind="coin", name=name, words=name, share=1.0),
            FlowNode(id="n1", column=1, kind="mined", name="m", words="m", share=1, ended=1),
        ),
        bands=(FlowBand(before="n1", after="n0", share=1.0),),
        text="all of it comes from m",
    )
    return CoinAnswer(
        bits=6.98, bits_low=6.98, bits_high=6.98, ledger="town", digest=DIGEST, settings=query,
        name=name, kind="coin", amount=Amount(smallest=str(2**70), shown="large"),
        method="exact", sentence=sentence, place=Place(bin=2, fewer=0.68, coins=4), steps=9.8,
        steps_nearest=3, sources=1, top_share=1.0, origins=(origin,),
        other=Other(count=0, share=0.0), exposure=None, flow=flow,
    )  # fmt: skip


def _summary() -> LedgerSummary:
    return LedgerSummary(
        nodes=9, edges=9, scored=4, without_answer=0, burns=0, at_zero_bits=0.25, bits_mean=1,
        bits_median=1, bits_max=2, bits_weighted_mean=None, steps_mean=2, steps_median=2,
        widest_interval=0, certified=True, method="exact", line="4 of 9 nodes scored",
    )  # fmt: skip


def _row(k: int) -> TableRow:
    name = FORMULA if k == 0 else f"c{k}:0"
    return TableRow(
        name=name, kind="coin", amount=FIVE, bits=1, bits_low=1, bits_high=1, steps=2, sources=3,
        top=HOSTILE, top_share=0.5, href=f"/l/town/coin/c{k}:0",
    )  # fmt: skip


def _together(coins: tuple[str, ...]) -> Together:
    return Together(
        coins=coins, amount=FIVE, equal_origins=2, exposure=None, bits=1, bits_low=1, bits_high=1
    )
