"""Rings seen by age: how likely each member is the coin that was really spent.

A ring of n members holds one real spend, of age a with density f_real, and n - 1 decoys a wallet
drew with density f_decoy. Members are listed by number, so the order reveals nothing, and

    P(ring, member i is real) ~ f_real(a_i) prod_(j != i) f_decoy(a_j) ~ f_real(a_i) / f_decoy(a_i).

How many coins there are of an age divides both densities equally, and goes out.

*Decoys* are facts: Monero's wallet2 (gamma_picker) draws e^X seconds, X from a gamma distribution
of shape 19.28 and rate 1.61; takes off the 10 blocks of 120 s for which a coin is locked; and what
falls into the lock it spreads evenly over the first 15 blocks after it. Shape and rate are those
that Möser et al. (PoPETs 2018, 3) fitted to the ages of spends they could trace.

*Real spends* are not known. The default, that same fit without what the lock forbids, is assumed:
with it only the first half hour reveals anything. Give a measured distribution where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.special

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import InputError, LedgerError, UsageError
from coinhaze.ledger import CoinLedger

UNKNOWN_AGE = -1

# The share of coins spent, or picked, within so many seconds after they can be.
AgeShare = Callable[[Floats], Floats]


@dataclass(frozen=True)
class DecoySelection:
    """How a wallet draws decoys; the defaults are those of Monero's wallet2."""

    shape: float = 19.28
    rate: float = 1.61
    block_seconds: int = 120
    lock_blocks: int = 10
    recent_blocks: int = 15

    @property
    def lock(self) -> int:
        """For how many seconds a coin cannot be spent."""
        return self.lock_blocks * self.block_seconds

    def decoys(self, seconds: Floats) -> Floats:
        """Give the share of decoys at most so many seconds past the lock."""
        early = self._within(np.array(0.0))
        recent = np.clip(seconds / (self.recent_blocks * self.block_seconds), 0.0, 1.0)
        return self._within(seconds) - early + early * recent

    def spends(self, seconds: Floats) -> Floats:
        """Give the same of the fitted spends, given that they were not made inside the lock."""
        early = self._within(np.array(0.0))
        return (self._within(seconds) - early) / (1 - early)

    def _within(self, seconds: Floats) -> Floats:
        share: Floats = scipy.special.gammainc(
            self.shape, self.rate * np.log(np.maximum(seconds, 0.0) + self.lock)
        )
        return share


MONERO = DecoySelection()


def measured_ages(seconds: Sequence[float], counts: Sequence[float]) -> AgeShare:
    """Take a histogram of ages of real spends, in seconds past the lock, as a distribution.

    Bin k reaches from `seconds[k]` to `seconds[k + 1]` and holds `counts[k]` spends.

    >>> measured_ages([0, 60, 600], [1, 3])(np.array([30.0, 60.0, 1e9]))
    array([0.125, 0.25 , 1.   ])
    """
    edges, spends = np.asarray(seconds, np.float64), np.asarray(counts, np.float64)
    rising = len(edges) == len(spends) + 1 and bool(np.all(np.diff(edges) > 0))
    if not (rising and edges[0] >= 0 and np.all(spends >= 0) and 0 < spends.sum() < np.inf):
        raise InputError(
            f"a histogram of ages needs n counts >= 0 and n + 1 rising bounds >= 0 in seconds; "
            f"not {len(spends)} counts and bounds {list(seconds)[:4]}"
        )
    below = np.append(0.0, np.cumsum(spends) / spends.sum())

    def share(age: Floats) -> Floats:
        within: Floats = np.interp(age, edges, below)
        return within

    return share


@dataclass(frozen=True, eq=False)
class RingPosterior:
    """A ledger whose rings carry chances by age, and how they were found."""

    ledger: CoinLedger
    rings: int
    uniform: int  # rings left uniform, since the age of a member is not known
    assumed: bool  # whether the ages of real spends were assumed

    def note(self) -> str:
        """Say in a line what a reader of scores should know."""
        ages = "assumed ages of real spends" if self.assumed else "the ages of real spends given"
        left = f"; {self.uniform} of {self.rings} left uniform: no age" if self.uniform else ""
        return f"rings weighed by age, with {ages}{left}"


def with_decoy_posterior(
    ledger: CoinLedger,
    *,
    real: AgeShare | None = None,
    wallet: DecoySelection = MONERO,
    heights: Mapping[str, int] | None = None,
    unknown: Literal["refuse", "uniform"] = "refuse",
) -> CoinLedger:
    """Give the ledger with the chance of each ring member by its age, as `decoy_posterior` does.

    >>> ledger = CoinLedger.from_transactions([
    ...     {"txid": "a", "rings": [["old:0"]], "outputs": 1, "height": 100},
    ...     {"txid": "b", "rings": [["old:1"]], "outputs": 1, "height": 1000},
    ...     {"txid": "c", "rings": [["a:0", "b:0"]], "outputs": 1, "height": 1010},
    ... ])
    >>> aged = with_decoy_posterior(ledger, heights={"old": 1})
    >>> aged.ring_probability[2:].round(3)
    array([0.605, 0.395])
    """
    return decoy_posterior(
        ledger, real=real, wallet=wallet, heights=heights, unknown=unknown
    ).ledger


def decoy_posterior(
    ledger: CoinLedger,
    *,
    real: AgeShare | None = None,
    wallet: DecoySelection = MONERO,
    heights: Mapping[str, int] | None = None,
    unknown: Literal["refuse", "uniform"] = "refuse",
) -> RingPosterior:
    """Weigh the members of every ring by age: f_real / f_decoy, made to add up to 1.

    `real` gives the share of spends made within so many seconds after they could be (default:
    assumed, see `Wallet.spends`). Ages are counted in blocks where heights are known, else by
    block times; `heights` gives those of transactions from before the window. A ring with a
    member of unknown age is refused, or left uniform if `unknown` says so.
    """
    if not ledger.has_rings:
        raise UsageError("this ledger has no rings: a posterior by age is for rings")
    if unknown not in ("refuse", "uniform"):
        raise UsageError(f"unknown is refuse or uniform, not {unknown!r}")
    blocks = _blocks_past_lock(ledger, wallet, heights or {})
    start = ring_starts(ledger)
    ring = np.repeat(np.arange(len(start)), np.diff(np.append(start, len(blocks))))
    aged = np.minimum.reduceat(blocks, start) > UNKNOWN_AGE
    if unknown == "refuse" and not aged.all():
        row = int(np.flatnonzero(blocks == UNKNOWN_AGE)[0])
        raise LedgerError(
            _ring_name(ledger, row),
            "a member of unknown age",
            value=_member_name(ledger, row),
            fix="give its height, or unknown=uniform leaves such rings uniform",
        )
    weight = np.ones(len(blocks))
    known = aged[ring]
    weight[known] = _ratio(blocks[known], real or wallet.spends, wallet)
    total = np.add.reduceat(weight, start)
    if not total.min() > 0:
        row = int(start[int(np.argmin(total))])
        fix = "give every age a count above 0"
        raise InputError(f"{_ring_name(ledger, row)}: no member is of an age ever spent ({fix})")
    chances = weight / total[ring]
    found = RingPosterior(ledger, len(start), int((~aged).sum()), real is None)
    notes = (*ledger.notes, found.note())
    return replace(found, ledger=replace(ledger, ring_probability=chances, notes=notes))


def ring_starts(ledger: CoinLedger) -> Ints:
    """Give the row at which each ring begins; rings come in order."""
    tx, vin = ledger.ring_tx, ledger.ring_vin
    later = np.flatnonzero((tx[1:] != tx[:-1]) | (vin[1:] != vin[:-1])) + 1
    return np.append(0, later) if len(tx) else later


def _ratio(blocks: Ints, real: AgeShare, wallet: DecoySelection) -> Floats:
    """Give f_real / f_decoy of ages: both as what falls into the block a coin is in."""
    # Members share ages, of which a chain has few.
    ages, number = np.unique(blocks, return_inverse=True)
    first = (ages * wallet.block_seconds).astype(np.float64)
    last = first + float(wallet.block_seconds)
    spent = np.maximum(real(last) - real(first), 0.0)
    ratio: Floats = spent / (wallet.decoys(last) - wallet.decoys(first))
    return ratio[number]


def _blocks_past_lock(
    ledger: CoinLedger, wallet: DecoySelection, earlier: Mapping[str, int]
) -> Ints:
    """Give for each member how many blocks it could have been spent in before it was."""
    height, time = _numbers(_heights(ledger, earlier)), _numbers(ledger.times)
    made = ledger.output_tx[ledger.ring_output]
    spent = ledger.ring_tx
    by_height = height[spent] - height[made] - wallet.lock_blocks
    counted = (height[spent] >= 0) & (height[made] >= 0)
    if np.any(counted & (by_height < 0)):
        row = int(np.argmax(counted & (by_height < 0)))
        raise LedgerError(
            _ring_name(ledger, row),
            f"a member younger than the {wallet.lock_blocks} blocks for which coins are locked",
            value=_member_name(ledger, row),
            fix="check heights, or give the chain's own lock: Wallet(lock_blocks=...)",
        )
    # Times of blocks are set by miners and may run backwards: an age is never below the lock.
    by_time = np.maximum((time[spent] - time[made] - wallet.lock) // wallet.block_seconds, 0)
    timed = (time[spent] >= 0) & (time[made] >= 0)
    return np.where(counted, by_height, np.where(timed, by_time, UNKNOWN_AGE))


def _heights(ledger: CoinLedger, earlier: Mapping[str, int]) -> pa.Array:
    """Put the heights given into those the ledger has."""
    if not earlier:
        return ledger.heights
    rows = pc.index_in(ledger.txids, value_set=pa.array(list(earlier), ledger.txids.type))
    given = pa.array(list(earlier.values()), pa.int64()).take(rows)
    return pc.coalesce(ledger.heights, given)


def _numbers(column: pa.Array) -> Ints:
    numbers: Ints = pc.fill_null(column, -1).to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64)


def _ring_name(ledger: CoinLedger, row: int) -> str:
    return f"ring:{ledger.txids[int(ledger.ring_tx[row])].as_py()}:{ledger.ring_vin[row]}"


def _member_name(ledger: CoinLedger, row: int) -> str:
    return str(ledger.output_names(ledger.ring_output[[row]])[0].as_py())
