"""Answers to people and programs: worked out in threads, once, and cached as the bytes sent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import pyarrow as pa

from coinhaze import __version__
from coinhaze.errors import CoinhazeError, UnknownName
from coinhaze.explore.cache import Cache, progress
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.models import (
    Comparison,
    Curve,
    LedgerCard,
    LedgerPage,
    Ledgers,
    Lists,
    WalkAnswer,
)
from coinhaze.explore.query import OF_JOB, CompareQuery, JobQuery, Model, Settings, page_of
from coinhaze.formats.lists.coins import ListedCoin
from coinhaze.wallet.walk_back import ACCURACY
from coinhaze.web.jobs import JobQueue
from coinhaze.web.registry import LedgerRegistry
from coinhaze.web.schema import Job, Refused, not_ready, refusal_of

M = TypeVar("M", bound=Model)
P = ParamSpec("P")
ROOM = 32 << 20  # bytes of answers and pages, as sent
FLEETING = {  # what nobody may remember
    method.__name__
    for method in (
        Explorer.what_if, Explorer.wallet, Explorer.screen, Explorer.statement,
        Explorer.statement_file,
    )
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Answer(Generic[M]):
    """A model, the bytes sent for it, and their tag, which is empty where nobody may cache them.

    A cached answer has no model: bytes take a tenth of its memory, and it is read from them.
    """

    kind: type[M]
    body: bytes
    tag: str
    made: M | None

    @classmethod
    def of(cls, model: M, tag: str = "") -> Answer[M]:
        """Write a model out."""
        return cls(type(model), model.model_dump_json().encode(), tag, model)

    @property
    def model(self) -> M:
        """The model."""
        return self.kind.model_validate_json(self.body) if self.made is None else self.made


class Answers:
    """Queries about every ledger served.

    Methods return an `Answer`, or raise `Refused` (what is wrong) or `StillWorking` (a job).
    """

    def __init__(self, registry: LedgerRegistry, *, jobs: JobQueue | None = None) -> None:
        self.registry = registry
        self.jobs = JobQueue() if jobs is None else jobs
        self.cache: Cache[Answer[Any] | bytes] = Cache(ROOM, _size)
        known = [__version__, *(card.id for card in registry.lists())]
        known += [f"{name}={text}" for name, text in sorted(registry.labels().items())]
        self._stamp = _digest(known)

    def ledgers(self) -> Ledgers:
        """Return the state of all ledgers."""
        return Ledgers(ledgers=tuple(self._with_job(card) for card in self.registry.cards()))

    def card(self, ledger: str) -> LedgerCard:
        """Return the state of one ledger."""
        try:
            return self._with_job(self.registry.card(ledger))
        except UnknownName as error:
            fix = "GET /api/v1/ledgers names all that are served"
            raise Refused("unknown-ledger", str(error), fix=fix) from None

    def lists(self) -> Lists:
        """Return the loaded lists."""
        return Lists(lists=tuple(self.registry.lists()))

    async def ask(
        self,
        ledger: str,
        method: Callable[Concatenate[Explorer, P], M],
        *args: P.args,
        **more: P.kwargs,
    ) -> Answer[M]:
        """Return what a method of the ledger's explorer returns."""
        name, digest = method.__name__, self.card(ledger).digest
        fleeting = name in FLEETING
        key = (ledger, digest, name, args, tuple(sorted(more.items())))
        found = None if fleeting or digest is None else self.cache.get(key)
        if isinstance(found, Answer):
            return found

        def work() -> Answer[M]:
            # In a thread, and cached also where nobody waits for it any more.
            explorer, digest = self._open(ledger), self.card(ledger).digest
            key = (ledger, digest, name, args, tuple(sorted(more.items())))
            if fleeting or digest is None:
                return Answer.of(getattr(explorer, name)(*args, **more))
            known = self.cache.get(key)  # worked out since it was looked for
            if isinstance(known, Answer):
                return known
            model: M = getattr(explorer, name)(*args, **more)
            answer = Answer.of(model, _digest([self._stamp, repr(key)]))
            self.cache.put(key, replace(answer, made=None))
            return answer

        answer: Answer[M] = await self._work(key, work, ledger, page_of(ledger, name, args, more))
        return answer

    async def ledger(self, ledger: str, query: Settings) -> Answer[LedgerPage]:
        """Return a ledger's page; of one that is not ready, its card alone."""
        try:
            return await self.ask(ledger, Explorer.ledger, query)
        except Refused as refused:
            if refused.status != 409:
                raise
            return Answer.of(LedgerPage(card=self.card(ledger), settings=query))

    async def compare(self, query: CompareQuery) -> Answer[Comparison]:
        """Return up to five ledgers side by side; one that is not ready by its card alone."""
        curves = []
        for ledger in dict.fromkeys(query.l.split(",")):
            try:
                curves.append((await self.ask(ledger, Explorer.curve, query.settings)).model)
            except Refused as refused:
                if refused.status != 409:
                    raise
                curves.append(Curve(card=self.card(ledger), summary=None))
        return Answer.of(Comparison(curves=tuple(curves)))

    async def walk(
        self,
        ledger: str,
        listed: Sequence[ListedCoin],
        *,
        page: str,
        accuracy: float = ACCURACY,
        unspent: bool = False,
    ) -> Answer[WalkAnswer]:
        """Walk coins of a node or server back: nothing of the request is stored."""
        card = self.card(ledger)
        key = ("walk", ledger, *((coin.coin, coin.address, coin.keys) for coin in listed), accuracy)

        def work() -> Answer[WalkAnswer]:
            return Answer.of(self.registry.walk(ledger, listed, accuracy=accuracy, unspent=unspent))

        try:
            answer: Answer[WalkAnswer] = await self.jobs.answer(
                key, work, ledger=ledger, words=f"walking back over {card.name}", page=page
            )
        except CoinhazeError as error:
            raise refusal_of(error) from None
        return answer

    async def batches(
        self,
        ledger: str,
        method: Callable[Concatenate[Explorer, P], Iterator[pa.RecordBatch]],
        *args: P.args,
        **more: P.kwargs,
    ) -> Iterator[pa.RecordBatch]:
        """Return the columns that a method of the ledger's explorer yields."""
        self.card(ledger)
        explorer = await self._work(
            ("open", ledger), lambda: self._open(ledger), ledger, f"/l/{ledger}"
        )
        found: Iterator[pa.RecordBatch] = getattr(explorer, method.__name__)(*args, **more)
        return found

    def prepare(self, query: JobQuery) -> Job:
        """Begin to open, build and score a ledger."""
        card = self.card(query.ledger)
        return self.jobs.start(
            ("prepare", query.ledger),
            lambda: self.registry.prepare(query.ledger, query.settings, progress()),
            ledger=query.ledger,
            words=f"scoring {card.name}",
            page=f"/l/{query.ledger}",
        )

    def _with_job(self, card: LedgerCard) -> LedgerCard:
        job = self.jobs.current(("prepare", card.id))
        if job is None or card.state == "ready":
            return card
        return card.model_copy(update={"state": "loading", "job": job.id, "message": job.words})

    def _open(self, ledger: str) -> Explorer:
        explorer = self.registry.explorer(ledger)
        if explorer is None:
            raise not_ready(self.card(ledger))
        return explorer

    async def _work(self, key: Hashable, work: Callable[[], Any], ledger: str, page: str) -> Any:
        try:
            words = page.removesuffix(OF_JOB)
            return await self.jobs.answer(key, work, ledger=ledger, words=words, page=page)
        except CoinhazeError as error:
            raise refusal_of(error) from None


def _size(value: Answer[Any] | bytes) -> int:
    return len(value.body if isinstance(value, Answer) else value)


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
