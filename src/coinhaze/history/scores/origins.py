"""One coin of a history: its bits, its place among all unspent coins, and where it came from.

Origins are exact: the tape is read backwards, and the mass of the coin's row is handed to the rows
it was mixed from. Mass is kept by slot, so that no row has to be looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow.compute as pc

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import UnknownName
from coinhaze.history import files
from coinhaze.history.index.accounts import accounts_of
from coinhaze.history.scores.live_coins import POOL_VOUT
from coinhaze.history.scores.pass_kernels import pass_back
from coinhaze.ledger.coins import POOLS
from coinhaze.measures.elementary import expm1_at_most
from coinhaze.measures.intervals import ROUNDING, slack_from_each, surprise

if TYPE_CHECKING:
    from coinhaze.history.history import History
    from coinhaze.history.tape import Tape


class CoinSource(NamedTuple):
    """A source of a coin's money."""

    source: str
    probability: float


@dataclass(frozen=True)
class CoinOrigins:
    """What a history says of one coin; its bits are exact but for rounding.

    `rank` is its place among the unspent coins, most bits first, by the scores that the history
    keeps; None where it has none, or the coin is spent.
    """

    node: str
    height: int | None
    balance: int | None  # None: it is spent, or can never be
    steps: float
    bits: float
    bits_low: float
    bits_high: float
    rank: int | None
    unspent: int
    origins: tuple[CoinSource, ...]  # largest first
    rows: int  # how many lie between the coin and its sources, with both

    def as_dict(self, limit: int | None = None) -> dict[str, object]:
        """Give it as plain values, with so many of the origins."""
        shown = self.origins if limit is None else self.origins[:limit]
        return {
            "node": self.node,
            "height": self.height,
            "balance": self.balance,
            "bits": self.bits,
            "bits_low": self.bits_low,
            "bits_high": self.bits_high,
            "steps": self.steps,
            "rank": self.rank,
            "unspent_coins": self.unspent,
            "rows": self.rows,
            "sources": len(self.origins),
            "origins": [{"source": o.source, "probability": o.probability} for o in shown],
        }


def coin_origins(history: History, name: str) -> CoinOrigins:
    """Find a coin by `txid:vout`, and go back from it."""
    tape = history.tape
    find = _account if history.manifest.accounts else _coin
    if name.startswith("pool:"):
        find = _pool
    transaction, row, steps, vout = find(history, name)
    if row < 0:
        raise UnknownName(f"{name!r}: its transaction moves no money, so it has no origins")
    rows, mass, met, terms = sources_of(tape, row)
    order = np.lexsort((rows, -mass))
    bits = float(surprise(mass).sum())
    # A way back is rounded once for every row on it, and once for every term added on it.
    behind = float(tape.fact("rounded", np.array([row]))[0]) + met + terms
    slack = float(slack_from_each(expm1_at_most(ROUNDING * behind), np.array([bits]))[0])
    slack = slack + (len(rows) + 8) * ROUNDING * (bits + 1.0) if len(rows) > 1 else 0.0
    balance, rank, unspent = _place(history, transaction, vout)
    _, heights, _ = tape.transactions(np.array([transaction]))
    names = tape.source_names(rows)
    return CoinOrigins(
        node=name,
        height=int(heights[0]) if heights[0] >= 0 else None,
        balance=balance,
        steps=steps if vout < 0 else steps + tape.to_coin,
        bits=bits,
        bits_low=max(0.0, bits - slack),
        bits_high=bits + slack,
        rank=rank,
        unspent=unspent,
        origins=tuple(CoinSource(names[k], float(mass[k])) for k in order.tolist()),
        rows=met,
    )


def _coin(history: History, name: str) -> tuple[int, int, float, int]:
    """Find a coin by `txid:vout`: its transaction, row, steps and number."""
    txid, _, vout = name.rpartition(":")
    found = history.tape.find(txid) if txid and vout.isdecimal() else None
    if found is None:
        raise UnknownName(f"no coin {name!r} in {history.path}: name it txid:vout")
    return *found, int(vout)


def _pool(history: History, name: str) -> tuple[int, int, float, int]:
    """Find what a shielded pool holds by its name, `pool:sapling`."""
    pools = history.tape.live_table("pools").to_pylist()
    for pool in pools:
        if name == f"pool:{POOLS[pool['pool']]}" and pool["value"] > 0:
            return pool["transaction"], pool["row"], pool["steps"], POOL_VOUT - pool["pool"]
    raise UnknownName(f"no pool {name!r} that holds something in {history.path}")


def _account(history: History, name: str) -> tuple[int, int, float, int]:
    """Find what an account holds by its name, or by that of a snapshot, `name:i`."""
    tape = history.tape
    coins = files.column(tape.live_table("coins"), "transaction").astype(np.int64)
    names, _, _ = tape.transactions(coins)
    at = max(pc.index(names, name).as_py(), pc.index(accounts_of(names), name).as_py())
    if at >= 0:
        _, row, steps = tape.makers(coins[at : at + 1])
        return int(coins[at]), int(row[0]), float(steps[0]), 0
    found = tape.find(name)
    if found is None:
        what = f"no account {name!r} that holds something in {history.path}"
        raise UnknownName(f"{what}: name it, or one of its snapshots as name:1")
    return *found, 0


def sources_of(tape: Tape, row: int) -> tuple[Ints, Floats, int, int]:
    """Give the rows of the sources behind a row, rising, their chances, rows met and terms."""
    mass = np.zeros(tape.manifest.slots)
    found: list[tuple[Ints, Floats]] = []
    met = terms = held = 0
    for piece in reversed(tape.pieces):
        rows = min(len(piece), row + 1 - piece.first_row)
        if rows <= 0:
            continue
        if not met:
            mass[piece.row_slot[row - piece.first_row]] = 1.0
            held = 1
        before = int(piece.row_terms[:rows].sum(dtype=np.int64))
        source = np.empty(len(piece.hashes), dtype=np.int64)
        share = np.empty(len(piece.hashes))
        tables = (piece.row_slot, piece.row_terms, piece.slot, piece.weight)
        count, some, brought, held = pass_back(*tables, rows, before, held, mass, source, share)
        met += some
        terms += brought
        found.append((piece.first_row + source[:count][::-1], share[:count][::-1]))
        if not held:
            break  # all of it has come to its sources
    found.reverse()
    rows_of, shares = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return rows_of, shares, met, terms


def _place(history: History, transaction: int, vout: int) -> tuple[int | None, int | None, int]:
    """Give the value of a coin and its rank, if it is unspent, and how many are."""
    coins = history.tape.live_table("coins")
    pools = [p for p in history.tape.live_table("pools").to_pylist() if p["value"] > 0]
    values = files.column(coins, "value")
    held = values > 0
    unspent = int(np.count_nonzero(held)) + len(pools)
    makers = files.column(coins, "transaction")
    low, high = np.searchsorted(makers, np.array([transaction, transaction + 1], makers.dtype))
    at = low + np.flatnonzero((files.column(coins, "vout")[low:high] == vout) & held[low:high])
    pool = [p["value"] for p in pools if POOL_VOUT - p["pool"] == vout]
    if not len(at) and not pool:
        return None, None, unspent
    value = pool[0] if pool else int(values[at[0]])
    if history.manifest.scores is None:
        return value, None, unspent
    # Among those that are scored pools stand behind the coins of their last transaction.
    before = held[: high if pool else at[0]]
    order = sorted((p["transaction"], p["pool"]) for p in pools)
    ahead = sum(place < (transaction, POOL_VOUT - vout if pool else -1) for place in order)
    scores = files.read_table(history.path / files.scores_file(history.manifest.scores))
    bits = files.column(scores, "bits")
    own = bits[np.count_nonzero(before) + ahead]
    return value, int(np.count_nonzero(bits > own)) + 1, unspent
