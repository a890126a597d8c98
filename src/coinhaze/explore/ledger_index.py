"""A ledger's own facts, found by number: who made and spent a coin, when, in what unit."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.cache.layers import seconds_of
from coinhaze.explore.describe import amount_words
from coinhaze.explore.models import Amount
from coinhaze.formats.bitcoin_raw.networks import network_of_owners
from coinhaze.formats.money import unit_of
from coinhaze.graph.order_kernels import group_rows
from coinhaze.ledger import AccountLedger, CoinLedger, Ledger
from coinhaze.ledger.text import text_buffers
from coinhaze.units import Unit

NOBODY = -1
LETTERS = 8  # of a name, that its key has


class LedgerIndex:
    """A ledger with what is looked up in it; every index is made at its first use.

    >>> from coinhaze.ledger import CoinLedger
    >>> index = LedgerIndex(CoinLedger.from_transactions([
    ...     {"txid": "a", "outputs": [{"value": 5, "address": "m"}]},
    ...     {"txid": "b", "inputs": [{"txid": "a", "vout": 0}], "outputs": [{"value": 4}]}]))
    >>> int(index.spender[0]), index.made(1).tolist(), index.amount(1234).shown
    (1, [1], '1,234')
    """

    def __init__(self, ledger: Ledger, *, unit: str | None = None) -> None:
        self.ledger = ledger
        self._named = unit

    @property
    def coins(self) -> CoinLedger:
        """The ledger, where it is one of coins."""
        assert isinstance(self.ledger, CoinLedger)
        return self.ledger

    @property
    def owners(self) -> pa.StringArray:
        """Addresses, or accounts."""
        ledger = self.ledger
        return ledger.owners if isinstance(ledger, CoinLedger) else ledger.accounts

    @property
    def hides_amounts(self) -> bool:
        """Whether nobody can see amounts."""
        return isinstance(self.ledger, CoinLedger) and self.ledger.output_value is None

    @cached_property
    def network(self) -> str | None:
        """The one network all addresses looked at can be of; None where several, or none."""
        return network_of_owners(self.owners)

    @cached_property
    def unit(self) -> Unit:
        """What amounts are counted in."""
        return unit_of(self.ledger, unit=self._named)

    def amount(self, smallest: int) -> Amount:
        """Show an amount given in the smallest unit."""
        return self._amount(max(smallest, 0))

    def part(self, smallest: int, share: float) -> Amount:
        """Show a share of an amount, to the nearest unit, without rounding the amount itself."""
        scaled = round(min(max(share, 0.0), 1.0) * 2**60)
        return self._amount((smallest * scaled + 2**59) >> 60, shortest=True)

    def _amount(self, smallest: int, *, shortest: bool = False) -> Amount:
        unit = self.unit
        shown = amount_words(str(smallest), unit.decimals, unit.symbol, shortest=shortest)
        return Amount(smallest=str(smallest), shown=shown, unit=unit.symbol or None)

    @cached_property
    def spender(self) -> Ints:
        """For each coin the transaction that spends it, -1 if none is seen to."""
        ledger = self.coins
        found = np.full(len(ledger.output_tx), NOBODY, dtype=np.int32)
        found[ledger.input_output] = ledger.input_tx
        return found

    def made(self, tx: int) -> Ints:
        """Give the coins a transaction makes, in its order."""
        start, order = self._outputs
        return order[start[tx] : start[tx + 1]]

    def spent(self, tx: int) -> Ints:
        """Give the coins it spends, in its order."""
        start, order = self._inputs
        return self.coins.input_output[order[start[tx] : start[tx + 1]]]

    def owner(self, coin: int) -> str | None:
        """Give the address a coin is paid to, None if it has none."""
        owner = int(self.coins.output_owner[coin])
        if self.coins.owner_is_coin[owner]:
            return None
        return str(self.coins.owners[owner].as_py())

    def value(self, coin: int) -> int | None:
        """Give what a coin is worth, None where that is hidden."""
        values = self.coins.output_value
        return None if values is None else values[coin]

    def height(self, tx: int) -> int | None:
        """Give the block of a transaction, None if not known."""
        found: int | None = self.coins.block_heights[tx].as_py()
        return found

    def time_of_step(self, step: int) -> int | None:
        """Give when a graph's step happened, in seconds since 1970; None if not known."""
        if isinstance(self.ledger, CoinLedger):
            return self.time(step // 3) if step >= 0 else None
        return self.time(step) if step >= 0 else None

    def time(self, row: int) -> int | None:
        """Give when a transaction or transfer was made, in seconds since 1970; None if unknown."""
        seconds = self._seconds
        if seconds is None or not 0 <= row < len(seconds):
            return None
        found: int | None = seconds[row].as_py()
        return found

    @property
    def tells_time(self) -> bool:
        """Whether any moment is known."""
        return self._seconds is not None

    @cached_property
    def _seconds(self) -> pa.Int64Array | None:
        times = self.ledger.times
        if times is None or times.null_count == len(times):
            return None
        return seconds_of(times).cast(pa.int64())

    @cached_property
    def _outputs(self) -> tuple[Ints, Ints]:
        start, order = group_rows(self.coins.output_tx, len(self.coins.txids))
        return start, order

    @cached_property
    def _inputs(self) -> tuple[Ints, Ints]:
        start, order = group_rows(self.coins.input_tx, len(self.coins.txids))
        return start, order


def is_accounts(ledger: Ledger) -> bool:
    """Tell whether money is held by accounts."""
    return isinstance(ledger, AccountLedger)


class Prefixes:
    """Rows of a column by the beginning of their text.

    >>> Prefixes(pa.array(["apple", "apricot", "pear"])).rows("ap", limit=5).tolist()
    [0, 1]
    """

    def __init__(self, column: pa.StringArray) -> None:
        self.column = column

    def rows(self, prefix: str, *, limit: int) -> Ints:
        """Give the first rows, by name, that begin so; `limit` at most."""
        octets = prefix.encode()
        low = octets[:LETTERS].ljust(LETTERS, b"\0")
        high = octets[:LETTERS].ljust(LETTERS, b"\xff")
        keys, order = self._sorted
        first = int(np.searchsorted(keys, np.uint64(int.from_bytes(low, "big"))))
        last = int(np.searchsorted(keys, np.uint64(int.from_bytes(high, "big")), side="right"))
        found = order[first:last]
        if len(octets) > LETTERS or b"\0" in octets:  # shorter names are filled up with these
            begins = pc.starts_with(self.column.take(pa.array(found)), prefix)
            found = found[begins.to_numpy(zero_copy_only=False)]
        found = found[: max(limit, 1)]
        return found[np.argsort(np.array(self.column.take(pa.array(found)).to_pylist()))]

    @cached_property
    def _sorted(self) -> tuple[npt.NDArray[np.uint64], Ints]:
        keys = first_letters(*text_buffers(self.column))
        order = np.argsort(keys, kind="stable")
        return keys[order], order.astype(np.int32 if len(order) < 2**31 else np.int64)


def first_letters(offsets: Ints, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Give the first eight bytes of each text as one number that sorts as they do.

    >>> first_letters(np.array([0, 1, 3]), np.frombuffer(b"aab", np.uint8)).argsort().tolist()
    [0, 1]
    """
    keys = np.zeros(len(offsets) - 1, np.uint64)
    for place in range(LETTERS):
        at = offsets[:-1] + place
        inside = at < offsets[1:]
        letters = np.zeros(len(keys), np.uint64)
        letters[inside] = data[at[inside]]
        keys = (keys << np.uint64(8)) | letters
    return keys
