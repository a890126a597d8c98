"""Answers to people and programs: worked out in threads, once, and remembered as the bytes sent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

import pyarrow as pa

from coinhaze import __version__
from coinhaze.errors import CoinhazeError, UnknownName
from coinhaze.explore.links import page_of
from coinhaze.explore.models import (
    CoinAnswer,
    Comparators,
    Comparison,
    Curve,
    Density,
    GroupAnswer,
    GroupKind,
    Histogram,
    LedgerCard,
    LedgerPage,
    Ledgers,
    Lists,
    OriginsPage,
    SearchAnswer,
    TablePage,
    WalletAnswer,
    WhatIfAnswer,
)
from coinhaze.explore.progress import progress
from coinhaze.web.answer import Answer, Store
from coinhaze.web.asks import (
    CoinAsk,
    CompareAsk,
    JobAsk,
    Model,
    PageAsk,
    Settings,
    TableAsk,
    WalletAsk,
    WhatIfAsk,
)
from coinhaze.web.jobs import Jobs
from coinhaze.web.ports import Explorer, LedgerRegistry
from coinhaze.web.problems import Refused, not_ready, refusal_of
from coinhaze.web.schema import Job

M = TypeVar("M", bound=Model)


class Answers:
    """All that can be asked, of every ledger served.

    Methods give an `Answer`, or raise `Refused` (what is wrong) or `StillWorking` (a job).
    """

    def __init__(self, registry: LedgerRegistry, *, jobs: Jobs | None = None) -> None:
        self.registry = registry
        self.jobs = Jobs() if jobs is None else jobs
        self._store = Store()
        known = [__version__, *(card.id for card in registry.lists())]
        known += [f"{name}={text}" for name, text in sorted(registry.labels().items())]
        self._stamp = _digest(known)

    def ledgers(self) -> Ledgers:
        """Give all ledgers, as they stand."""
        return Ledgers(ledgers=tuple(self._with_job(card) for card in self.registry.cards()))

    def card(self, ledger: str) -> LedgerCard:
        """Give one ledger as it stands."""
        try:
            return self._with_job(self.registry.card(ledger))
        except UnknownName as error:
            fix = "GET /api/v1/ledgers names all that are served"
            raise Refused("unknown-ledger", str(error), fix=fix) from None

    def lists(self) -> Lists:
        """Give the loaded lists."""
        return Lists(lists=tuple(self.registry.lists()))

    async def ledger(self, ledger: str, asked: Settings) -> Answer[LedgerPage]:
        """Give a ledger's page; of one that is not ready, its card alone."""
        try:
            return await self._ask(ledger, "ledger", asked, lambda d: d.ledger(asked))
        except Refused as refused:
            if refused.status != 409:
                raise
            page = LedgerPage(card=self.card(ledger), settings=asked)
            return Answer.once_only(page, self._store)

    async def histogram(self, ledger: str, asked: Settings) -> Answer[Histogram]:
        """Give all coins by bits."""
        return await self._ask(ledger, "histogram", asked, lambda d: d.histogram(asked))

    async def density(self, ledger: str, asked: Settings) -> Answer[Density]:
        """Give all coins by bits and steps."""
        return await self._ask(ledger, "density", asked, lambda d: d.density(asked))

    async def search(self, ledger: str, query: str) -> Answer[SearchAnswer]:
        """Find what a person pasted."""
        return await self._ask(ledger, "search", query, lambda d: d.search(query))

    async def coin(self, ledger: str, name: str, asked: CoinAsk) -> Answer[CoinAnswer]:
        """Give a coin's page."""
        key = ("coins", name)
        return await self._ask(ledger, key, asked, lambda d: d.coin(name, asked))

    async def comparators(self, ledger: str, name: str, asked: Settings) -> Answer[Comparators]:
        """Give a coin's other rules and measures."""
        key = ("comparators", name)
        return await self._ask(ledger, key, asked, lambda d: d.comparators(name, asked))

    async def origins(self, ledger: str, name: str, asked: PageAsk) -> Answer[OriginsPage]:
        """Give some of a coin's origins."""

        def work(explorer: Explorer) -> OriginsPage:
            return explorer.origins(name, asked.settings, after=asked.after, limit=asked.limit)

        return await self._ask(ledger, ("origins", name), asked, work)

    async def group(
        self, ledger: str, kind: GroupKind, name: str, asked: PageAsk
    ) -> Answer[GroupAnswer]:
        """Give an address, a transaction or a block."""

        def work(explorer: Explorer) -> GroupAnswer:
            return explorer.group(kind, name, asked.settings, after=asked.after, limit=asked.limit)

        return await self._ask(ledger, (kind, name), asked, work)

    async def table(self, ledger: str, asked: TableAsk) -> Answer[TablePage]:
        """Give a page of a ledger's table."""
        return await self._ask(ledger, "table", asked, lambda d: d.table(asked))

    async def compare(self, asked: CompareAsk) -> Answer[Comparison]:
        """Give up to five ledgers side by side; one that is not ready by its card alone."""
        settings = asked.settings
        curves = []
        for ledger in dict.fromkeys(asked.l.split(",")):
            try:
                found = await self._ask(ledger, "curve", settings, lambda d: d.curve(settings))
                curves.append(found.model)
            except Refused as refused:
                if refused.status != 409:
                    raise
                curves.append(Curve(card=self.card(ledger), summary=None))
        return Answer.once_only(Comparison(curves=tuple(curves)), self._store)

    async def what_if(self, ledger: str, asked: WhatIfAsk) -> Answer[WhatIfAnswer]:
        """Say what spending coins together would do."""
        return await self._ask(ledger, "what-if", asked, lambda d: d.what_if(asked), keep=False)

    async def wallet(self, ledger: str, asked: WalletAsk) -> Answer[WalletAnswer]:
        """Weigh a wallet; nothing of it is remembered."""
        return await self._ask(ledger, "wallet", asked, lambda d: d.wallet(asked), keep=False)

    async def table_batches(self, ledger: str, asked: TableAsk) -> Iterator[pa.RecordBatch]:
        """Give all rows of a table, as columns."""
        explorer = await self._explorer(ledger)
        return explorer.table_batches(asked)

    async def origin_batches(
        self, ledger: str, name: str, asked: Settings
    ) -> Iterator[pa.RecordBatch]:
        """Give all of a coin's origins, as columns."""
        explorer = await self._explorer(ledger)
        return explorer.origin_batches(name, asked)

    def prepare(self, asked: JobAsk) -> Job:
        """Begin to open, build and score a ledger."""
        card = self.card(asked.ledger)
        return self.jobs.start(
            ("prepare", asked.ledger), lambda: self._prepare(asked),
            ledger=asked.ledger, words=f"scoring {card.name}", page=f"/l/{asked.ledger}",
        )  # fmt: skip

    def _prepare(self, asked: JobAsk) -> None:
        self.registry.prepare(asked.ledger, asked.settings, progress())

    def _with_job(self, card: LedgerCard) -> LedgerCard:
        job = self.jobs.current(("prepare", card.id))
        if job is None or card.state == "ready":
            return card
        return card.model_copy(update={"state": "loading", "job": job.id, "message": job.words})

    async def _explorer(self, ledger: str) -> Explorer:
        self.card(ledger)
        key = ("open", ledger)
        explorer: Explorer = await self._work(
            key, lambda: self._open(ledger), ledger, f"/l/{ledger}"
        )
        return explorer

    def _open(self, ledger: str) -> Explorer:
        explorer = self.registry.explorer(ledger)
        if explorer is None:
            raise not_ready(self.card(ledger))
        return explorer

    async def _ask(
        self,
        ledger: str,
        what: Hashable,
        asked: Model | str,
        work: Callable[[Explorer], M],
        *,
        keep: bool = True,
    ) -> Answer[M]:
        digest = self.card(ledger).digest
        key = (ledger, digest, what, asked)
        found: Answer[M] | None = self._store.bodies.get(key) if keep and digest else None
        if found is not None:
            return found
        page = page_of(ledger, what, asked)
        answer: Answer[M] = await self._work(
            key, lambda: self._worked_out(ledger, what, asked, work, keep), ledger, page
        )
        return answer

    def _worked_out(
        self,
        ledger: str,
        what: Hashable,
        asked: Model | str,
        work: Callable[[Explorer], M],
        keep: bool,
    ) -> Answer[M]:
        """Work an answer out, in a thread, and remember it also where nobody waits any more."""
        explorer = self._open(ledger)
        digest = self.card(ledger).digest
        model = work(explorer)
        if not keep or digest is None:
            return Answer.once_only(model, self._store)
        tag = _digest([self._stamp, ledger, digest, repr(what), repr(asked)])
        return self._store.made(model, tag, (ledger, digest, what, asked))

    async def _work(self, key: Hashable, work: Callable[[], Any], ledger: str, page: str) -> Any:
        try:
            return await self.jobs.answer(key, work, ledger=ledger, words=page, page=page)
        except CoinhazeError as error:
            raise refusal_of(error) from None


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
