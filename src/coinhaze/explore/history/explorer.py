"""A whole history, explored: what pages show of a window, from a tape and its scores.

It answers the questions of an `Explorer` that a history can answer, with the same models, and
refuses the others by name. Figures are those of the last commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze import __version__
from coinhaze.amounts import Floats, Ints
from coinhaze.errors import UnknownName, UsageError
from coinhaze.explore.cache import Cache
from coinhaze.explore.describe import (
    amount_words,
)
from coinhaze.explore.distribution import (
    curve_among,
    density_among,
    histogram_of_bits,
)
from coinhaze.explore.history.coin import answer_coin, origin_rows, rest_of
from coinhaze.explore.history.search import search_history
from coinhaze.explore.models import (
    Amount,
    CoinAnswer,
    CoinsOfType,
    CompletenessCheck,
    CompletenessRecord,
    Curve,
    Density,
    GroupAnswer,
    GroupKind,
    Histogram,
    LedgerCard,
    LedgerPage,
    LedgerSummary,
    MonthOfCoins,
    NodeKind,
    OriginsPage,
    SearchAnswer,
    TablePage,
    TableRow,
)
from coinhaze.explore.query import CoinQuery, Settings, TableQuery, thing_link
from coinhaze.explore.table import (
    batches_of,
    cursor_at,
    page_of_rows,
    place_of_cursor,
    ranks_of_names,
    rows_in_ranges,
)
from coinhaze.history import History
from coinhaze.history.scores.live_coins import coin_names
from coinhaze.history.scores.origins import CoinOrigins
from coinhaze.history.scores.table import history_table
from coinhaze.ledger.script_types import SCRIPT_TYPES
from coinhaze.measures.scores import ZERO, rising
from coinhaze.observer.policies import PROPORTIONAL

ENDS = 10
MAX_SORTED = 2_000_000  # coins that are sorted by name
WALKED = 64  # coins whose origins are cached
OWN, A_COIN, ALL_ROWS = Settings(), CoinQuery(), TableQuery()


class HistoryExplorer:
    """Answers about one history that has been scored; any number of threads may ask."""

    def __init__(
        self, history: History, *, id: str, digest: str, card: Callable[[], LedgerCard]
    ) -> None:
        self.history, self.id, self.digest = history, id, digest
        self._card = card
        self.scores = history.scores()
        self.accounts = history.manifest.accounts
        self._walked: Cache[CoinOrigins] = Cache(WALKED)
        self._orders: dict[str, Ints] = {}

    def card(self) -> LedgerCard:
        """Describe the history in brief."""
        return self._card()

    @property
    def kind(self) -> NodeKind:
        """What is scored."""
        return "account" if self.accounts else "coin"

    def kind_of(self, name: str) -> NodeKind:
        """Say what something that is scored is by its name: a pool, or what all else is."""
        return "pool" if name.startswith("pool:") else self.kind

    def settings(self, query: Any) -> Any:
        """Put what a history is read by in the place of what was left open; refuse all else."""
        changes = {
            "policy": PROPORTIONAL.column,
            "view": "account" if self.accounts else "coin",
            "time": "temporal" if self.accounts else None,
            "list": None,
        }
        for name, value in changes.items():
            given = getattr(query, name)
            if given not in (None, value) and not (name == "time" and given == "temporal"):
                what = f"a whole history is read by {PROPORTIONAL.column}, in the order of time"
                raise UsageError(f"{what}, without lists: not with {name} {given!r}")
        return query.model_copy(update=changes)

    @cached_property
    def sorted_bits(self) -> Floats:
        """The bits of all scored coins, rising."""
        return rising(self.scores.bits)

    def amount(self, smallest: int) -> Amount:
        """Say an amount in the history's unit."""
        unit = self.history.unit
        shown = amount_words(str(smallest), unit.decimals, unit.symbol)
        return Amount(smallest=str(smallest), shown=shown, unit=unit.symbol or None)

    def names(self, rows: Ints) -> list[str]:
        """Name some of the scored coins."""
        order = np.argsort(rows, kind="stable")
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        coins = self.scores.coins
        txids, _, _ = self.history.tape.transactions(coins.transaction[rows[order]])
        if self.accounts:
            from coinhaze.history.index.accounts import accounts_of

            return list(accounts_of(txids).take(pa.array(back)).to_pylist())
        return list(coin_names(txids.take(pa.array(back)), coins.vout[rows]).to_pylist())

    def rows(self, rows: Ints) -> tuple[TableRow, ...]:
        """Tell some of the scored coins."""
        scores = self.scores
        return tuple(
            TableRow(
                name=name,
                kind=self.kind_of(name),
                amount=self.amount(int(scores.coins.value[k])),
                bits=float(scores.bits[k]),
                bits_low=float(scores.bits_low[k]),
                bits_high=float(scores.bits_high[k]),
                certified=scores.miss[k] == 0,
                miss=float(scores.miss[k]),
                steps=float(scores.steps[k]),
                sources=1 if scores.bits_high[k] == 0 else None,
                top=None,
                top_share=None,
                href=thing_link(self.id, "coin", name),
            )
            for k, name in zip(rows.tolist(), self.names(rows), strict=True)
        )

    def order(self, sort: str) -> Ints:
        """Give all scored coins in an order; equals as they were made."""
        found = self._orders.get(sort)
        if found is None:
            column, falls = sort.removeprefix("-"), sort.startswith("-")
            key = self._key(column)
            found = np.argsort(-key if falls else key, kind="stable")
            self._orders[sort] = found
        return found

    def _key(self, column: str) -> Any:
        scores = self.scores
        if column in ("bits", "informed"):
            return np.round(scores.bits, 9)
        if column == "steps":
            return scores.steps
        if column == "amount":
            return scores.coins.value
        if column != "name":
            raise UsageError(f"a whole history is not sorted by {column}: by bits, amount or steps")
        if len(scores) > MAX_SORTED:
            raise UsageError(f"more than {MAX_SORTED:,} coins are not sorted by name: by bits")
        return ranks_of_names(pa.array(self.names(np.arange(len(scores)))))

    def table(self, query: TableQuery = ALL_ROWS) -> TablePage:
        """Give a page of the unspent coins."""
        used = self.settings(query)
        rows, total, after = page_of_rows(self.order(query.sort), self.scores, query, self.digest)
        return TablePage(ledger=self.id, query=used, total=total, rows=self.rows(rows), after=after)

    def table_batches(self, query: TableQuery = ALL_ROWS) -> Iterator[pa.RecordBatch]:
        """Give all rows the filter leaves as columns; the first batch is empty and tells names."""
        self.settings(query)
        left = rows_in_ranges(self.order(query.sort), self.scores, query)
        for first, last in [(0, 0), *batches_of(len(left))]:
            rows, scores = left[first:last], self.scores
            columns: dict[str, Any] = {"name": pa.array(self.names(rows), pa.string())}
            kinds = [self.kind_of(name) for name in columns["name"].to_pylist()]
            columns["kind"] = pa.array(kinds, pa.string())
            columns["amount"] = pc.cast(pa.array(scores.coins.value[rows]), pa.string())
            for name in ("bits", "bits_low", "bits_high", "miss", "steps"):
                columns[name] = pa.array(getattr(scores, name)[rows], pa.float64())
            yield pa.record_batch(columns)

    def histogram(self, query: Settings = OWN) -> Histogram:
        """Give all unspent coins by bits."""
        self.settings(query)
        return histogram_of_bits(self.sorted_bits)

    def density(self, query: Settings = OWN) -> Density:
        """Give all unspent coins by bits and steps."""
        used = self.settings(query).settings
        figures = self.scores.bits, self.scores.steps
        return density_among(*figures, self.names, ledger=self.id, settings=used)

    def summary(self) -> LedgerSummary:
        """Sum the scores up."""
        scores, about = self.scores, self.history.manifest
        bits, value = scores.bits, scores.coins.value
        known = len(bits) > 0
        last = about.months[-1] if about.months else {}
        used = self.settings(OWN)
        return LedgerSummary(
            nodes=about.rows,
            edges=about.terms,
            scored=len(bits),
            without_answer=0,
            burns=0,
            at_zero_bits=float(np.mean(bits <= ZERO)) if known else None,
            bits_mean=float(bits.mean()) if known else None,
            bits_median=float(np.median(bits)) if known else None,
            bits_max=float(bits.max()) if known else None,
            bits_weighted_mean=float((bits * value).sum() / value.sum()) if known else None,
            steps_mean=float(scores.steps.mean()) if known else None,
            steps_median=float(np.median(scores.steps)) if known else None,
            bits_mean_low=last.get("bits_mean_low"),
            bits_mean_high=last.get("bits_mean_high"),
            widest_interval=float((scores.bits_high - scores.bits_low).max()) if known else None,
            certified=bool(np.all(scores.miss == 0)),
            miss=float(scores.miss.max(initial=0.0)),
            method=str(scores.about["method"]),
            view=used.view,
            time=used.time,
            policy=used.policy,
            line=scores.line(),
        )

    def curve(self, query: Settings = OWN) -> Curve:
        """Give the history's line of a comparison."""
        self.settings(query)
        bits, share = curve_among(self.sorted_bits)
        return Curve(card=self.card(), summary=self.summary(), bits=bits, share=share)

    def ledger(self, query: Settings = OWN) -> LedgerPage:
        """Give the history's page."""
        used, about, card = self.settings(query).settings, self.history.manifest, self.card()
        months = tuple(
            MonthOfCoins(
                **{name: value for name, value in month.items() if name != "value"},
                amount=self.amount(int(month["value"])),
            )
            for month in about.months
        )
        record = self.history.completeness
        return LedgerPage(
            card=card,
            settings=used,
            summary=self.summary(),
            histogram=self.histogram(),
            most=self.rows(self.order("-bits")[:ENDS]),
            fewest=self.rows(self.order("bits")[:ENDS]),
            completeness=CompletenessRecord(
                line=record.line(),
                checks=tuple(CompletenessCheck(**vars(check)) for check in record.checks),
                missing_heights=record.holes,
            ),
            notes=about.notes,
            provenance=self.provenance(),
            months=months,
            script_types=self._script_types(),
        )

    def _script_types(self) -> tuple[CoinsOfType, ...]:
        """Give the unspent coins by type of script; nothing where no type is known."""
        rows = history_table(self.scores, "script-type").to_pylist()
        if all(row["group"] == SCRIPT_TYPES[0] for row in rows):
            return ()
        return tuple(
            CoinsOfType(
                script_type=row["group"],
                coins=row["coins"],
                amount=self.amount(row["value"]),
                bits_mean=row["bits_mean"],
                bits_median=row["bits_median"],
                bits_by_value=row["bits_by_value"],
                one_origin=row["certain"],
            )
            for row in rows
        )

    def provenance(self) -> dict[str, Any]:
        """Say what the figures were made from."""
        about = self.history.manifest
        return {
            "software": f"coinhaze {__version__}",
            "blocks": f"{about.first_height} to {about.last_height}",
            "last transaction": about.tip,
            "transactions": about.transactions,
            "scored": dict(about.scored),
        }

    def search(self, query: str) -> SearchAnswer:
        """Find a transaction, coin, account or block, or transactions whose id begins so."""
        return search_history(self, query)

    def coin(self, name: str, query: CoinQuery = A_COIN) -> CoinAnswer:
        """Give a coin's page: its bits, and the origins that a walk back over the tape finds."""
        return answer_coin(self, name, query)

    def walk(self, name: str) -> CoinOrigins:
        """Walk a coin back over the tape; the last ones are cached."""
        return self._walked.make(name, lambda: self.history.origins(name))

    def origins(
        self, name: str, query: Settings = OWN, *, after: str | None = None, limit: int = 100
    ) -> OriginsPage:
        """Give some of a coin's origins, largest first."""
        used, found = self.settings(query).settings, self.walk(name)
        total = len(found.origins)
        first = 0
        if after is not None:
            first = place_of_cursor(after, self.digest, name, maximum=total) + 1
        last = min(first + limit, total)
        return OriginsPage(
            ledger=self.id,
            name=name,
            settings=used,
            total=total,
            rows=origin_rows(self, found, first, last),
            other=rest_of(found, first, last),
            after=cursor_at(last - 1, self.digest, name) if 0 < last < total else None,
        )

    def origin_batches(self, name: str, query: Settings = OWN) -> Iterator[pa.RecordBatch]:
        """Give all of a coin's origins, as columns; the first batch is empty."""
        self.settings(query)
        found = self.walk(name).origins
        for first, last in [(0, 0), *batches_of(len(found))]:
            some = found[first:last]
            yield pa.record_batch(
                {
                    "rank": pa.array(np.arange(first, last)),
                    "origin": pa.array([o.source for o in some], pa.string()),
                    "share": pa.array([o.probability for o in some], pa.float64()),
                }
            )

    def group(
        self,
        kind: GroupKind,
        name: str,
        query: Settings = OWN,
        *,
        after: str | None = None,
        limit: int = 100,
    ) -> GroupAnswer:
        """Give a transaction or a block: its coins that are unspent."""
        used = self.settings(query).settings
        low, high = self._transactions_of(kind, name)
        made = self.scores.coins.transaction
        rows = np.arange(*np.searchsorted(made, [low, high]))
        rows = rows[self.scores.coins.vout[rows] >= 0]  # a pool belongs to no transaction
        bits, value = self.scores.bits[rows], self.scores.coins.value[rows]
        first = (
            0 if after is None else place_of_cursor(after, self.digest, name, maximum=len(rows)) + 1
        )
        last = min(first + limit, len(rows))
        _, heights, times = self.history.tape.transactions(np.array([low]))
        txids: tuple[str, ...] = ()
        if kind == "block":
            shown = np.arange(low, min(high, low + 100))
            txids = tuple(self.history.tape.transactions(shown)[0].to_pylist())
        known = len(rows) > 0
        return GroupAnswer(
            ledger=self.id,
            digest=self.digest,
            settings=used,
            kind=kind,
            name=name,
            time=int(times[0]) if times[0] >= 0 else None,
            height=int(heights[0]) if heights[0] >= 0 else None,
            total=self.amount(int(value.sum())),
            coins=len(rows),
            unspent=len(rows),
            bits_low=float(bits.min()) if known else None,
            bits_median=float(np.median(bits)) if known else None,
            bits_high=float(bits.max()) if known else None,
            bits_weighted_mean=float((bits * value).sum() / value.sum()) if known else None,
            exposure=None,
            histogram=histogram_of_bits(rising(bits)),
            transactions=txids,
            rows=self.rows(rows[first:last]),
            after=cursor_at(last - 1, self.digest, name) if 0 < last < len(rows) else None,
            notes=("Coins that are spent are not counted here.",),
        )

    def _transactions_of(self, kind: GroupKind, name: str) -> tuple[int, int]:
        """Give the numbers of the transactions of a group: the first, and one past the last."""
        tape = self.history.tape
        if kind == "transaction":
            found = tape.find(name)
            if found is not None:
                return found[0], found[0] + 1
        elif kind == "block" and name.isdecimal() and len(name) < 18:
            place = tape.block(int(name))
            if place is not None:
                return place
        else:
            raise UnknownName("a whole history holds no addresses: look for a coin or transaction")
        raise UnknownName(f"no {kind} {name[:80]!r} in {self.history.path.name}")

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Refuse what a whole history cannot answer."""
        what = "a whole history answers by one rule; load a window of it as a ledger for this"
        raise UsageError(what)

    comparators = shared = destinations = what_if = wallet = _refuse
    screen = statement = statement_file = _refuse
