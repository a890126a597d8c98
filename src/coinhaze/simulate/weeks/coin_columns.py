"""Filled columns -> a coin ledger: allocation before, names and tables after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Floats, Ints
from coinhaze.ledger import Amounts, CoinLedger
from coinhaze.simulate.weeks import coin_kernels as kernels
from coinhaze.simulate.weeks.coin_kernels import NONE, Cast, CoinColumns

START = 1_612_137_600  # 1 February 2021, 00:00 UTC, when the paper's week begins
GOLDEN = (5**0.5 - 1) / 2  # its multiples are spread evenly over [0, 1], however many are taken
_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
MAX_AMOUNTS = 10_000  # more outputs than any transaction has


@dataclass(frozen=True)
class CoinChain:
    """What a week's ledger is like: its size, its first block, and how its addresses begin."""

    transactions: int
    blocks: int
    first_height: int
    interval: float  # seconds between blocks
    kinds: int  # of transactions, the first settings of a week
    prefix: str
    coins: int  # room for each transaction's
    flows: int = 0


def simulate_coins(
    chain: CoinChain,
    week: Any,
    run_week: Callable[..., bool],
    mining: Callable[[Any, CoinColumns, int], Any],
    *,
    size: float,
    seed: int,
) -> CoinLedger:
    """Run a share of a week: `mining` sets up who finds blocks, before the first of them."""
    rng = np.random.default_rng(seed)
    transactions = max(1, round(chain.transactions * size))
    blocks = max(1, round(chain.blocks * size))
    book = empty_book(
        transactions=transactions + 10,
        coins=chain.coins * transactions + 20_000,
        flows=chain.flows and chain.flows * transactions + 10,
        dice=int(rng.integers(1 << 63)),
    )
    cast = exchanges_and_others(
        book, week.exchanges, to_cold=week.to_cold, reused=transactions / week.uses
    )
    miners = mining(week, book, blocks)
    times = block_times(blocks, interval=chain.interval, rng=rng)
    kinds = share_table(astuple(week)[: chain.kinds])
    enough = run_week(
        book, cast, miners, settings_record(week), kinds, chain.first_height, blocks, transactions
    )
    assert enough, "the book is too small for these settings"
    return finished_ledger(book, block_times=times, seed=seed, prefix=chain.prefix)


def empty_book(*, transactions: int, coins: int, dice: int, flows: int = 0) -> CoinColumns:
    """Return columns with room for that many transactions, coins and flows.

    Room that is never written to costs no memory, so it may be generous.
    """
    return CoinColumns(
        count=np.zeros(9, dtype=np.int64),
        dice=np.array([dice], dtype=np.uint64),
        tx_height=np.empty(transactions, dtype=np.int64),
        tx_coinbase=np.empty(transactions, dtype=np.bool_),
        output_tx=np.empty(coins, dtype=np.int64),
        output_vout=np.empty(coins, dtype=np.int64),
        output_value=np.empty(coins, dtype=np.int64),
        output_owner=np.empty(coins, dtype=np.int64),
        after=np.empty(coins, dtype=np.int64),
        input_tx=np.empty(coins, dtype=np.int64),
        input_output=np.empty(coins, dtype=np.int64),
        flow_tx=np.empty(flows, dtype=np.int64),
        flow_pool=np.empty(flows, dtype=np.int64),
        flow_into=np.empty(flows, dtype=np.int64),
    )


def finished_ledger(book: CoinColumns, *, block_times: Ints, seed: int, prefix: str) -> CoinLedger:
    """Name everything in the columns and return the ledger: earlier transactions first."""
    before, n_tx, n_out, n_in, n_flow = (
        int(book.count[k])
        for k in (kernels.EARLIER, kernels.TX, kernels.OUTPUT, kernels.INPUT, kernels.FLOW)
    )
    n_address = kernels.settle(book, np.full(book.count[kernels.OWNER], NONE, dtype=np.int64))
    owner = book.output_owner[:n_out].copy()
    spendable = owner != NONE
    data = np.flatnonzero(~spendable)
    owner[data] = n_address + np.arange(len(data))
    txids = hex_names(before + n_tx, seed=seed, digits=64)
    addresses = hex_names(n_address, seed=seed + 1, prefix=prefix, digits=40 - len(prefix))
    height = book.tx_height[:n_tx]
    nothing = np.zeros(0, dtype=np.int64)
    # The columns have room for more than was written: copies release it.
    return CoinLedger(
        txids=txids,
        inside=np.repeat([False, True], [before, n_tx]),
        coinbase=np.concatenate([np.zeros(before, dtype=np.bool_), book.tx_coinbase[:n_tx]]),
        heights=_after_nulls(before, height),
        times=_after_nulls(before, block_times[height - height[0]]),
        owners=pa.concat_arrays([addresses, _data_names(txids, book, data).cast(addresses.type)]),
        owner_is_coin=np.repeat([False, True], [n_address, len(data)]),
        output_tx=book.output_tx[:n_out].copy(),
        output_vout=book.output_vout[:n_out].copy(),
        output_value=Amounts.of(book.output_value[:n_out]),
        output_owner=owner,
        output_spendable=spendable,
        input_tx=book.input_tx[:n_in].copy(),
        input_output=book.input_output[:n_in].copy(),
        flow_tx=book.flow_tx[:n_flow],
        flow_pool=book.flow_pool[:n_flow],
        flow_into=Amounts.of(book.flow_into[:n_flow]),
        ring_tx=nothing,
        ring_vin=nothing,
        ring_output=nothing,
    )


def block_times(blocks: int, *, interval: float, rng: np.random.Generator) -> Ints:
    """Draw when each block was found: independent exponential waits, in whole seconds."""
    return np.asarray(START + np.cumsum(rng.exponential(interval, blocks)), dtype=np.int64)


def settings_record(week: Any) -> np.record:
    """Return a week's settings as one record, whose fields kernels read by name."""
    # A record is one pointer: a tuple of fifty numbers doubles the time to compile.
    kinds = [(f.name, np.int64 if f.type == "int" else np.float64) for f in fields(week)]
    record: np.record = np.array([astuple(week)], dtype=np.dtype((np.record, kinds)))[0]
    return record


def share_table(shares: Sequence[float] | Floats, *, places: int = 1 << 16) -> Ints:
    """Return a table for drawing 0, 1, ..., in which each fills its share of the places."""
    ends = np.cumsum(np.asarray(shares, dtype=np.float64))
    return np.searchsorted(ends / ends[-1], (np.arange(places) + 0.5) / places)


def zipf_table(n: int) -> Ints:
    """Return a table for drawing, in which the k-th of n has a share of 1/k of the first's."""
    return share_table(1 / np.arange(1, n + 1))


def new_owners(book: CoinColumns, n: int) -> int:
    """Reserve n addresses and return the first."""
    first = int(book.count[kernels.OWNER])
    book.count[kernels.OWNER] = first + n
    return first


def exchanges_and_others(
    book: CoinColumns, exchanges: int, *, to_cold: float, reused: float
) -> Cast:
    """Set up the participants in open payments; half of the reused addresses are at exchanges.

    The shares exchanges move to cold storage differ: powers of numbers spread evenly over [0, 1],
    with that mean.
    """
    weights = np.append(1 / np.arange(1, exchanges + 1), 0.0)
    weights[exchanges] = weights.sum()
    parts = np.maximum(1, np.rint(weights / weights.sum() * reused)).astype(np.int64)
    start = np.concatenate([[0], np.cumsum(parts)])
    return Cast(
        pick_exchange=zipf_table(exchanges),
        slots=np.full(start[-1], NONE, dtype=np.int64),
        slot_start=start,
        hot_owner=new_owners(book, exchanges) + np.arange(exchanges),
        cold_owner=new_owners(book, exchanges) + np.arange(exchanges),
        cold_share=((0.5 + GOLDEN * np.arange(exchanges)) % 1) ** (1 / to_cold - 1),
        hot=np.full(exchanges, NONE, dtype=np.int64),
        deposits=np.full(exchanges, NONE, dtype=np.int64),
        loose=np.empty(len(book.output_tx), dtype=np.int64),
        n_loose=np.zeros(1, dtype=np.int64),
        amounts=np.empty(MAX_AMOUNTS, dtype=np.int64),
    )


def _after_nulls(before: int, values: Ints) -> pa.Int64Array:
    return pa.concat_arrays([pa.nulls(before, pa.int64()), pa.array(values)])


def _data_names(txids: pa.StringArray, book: CoinColumns, data: Ints) -> pa.StringArray:
    """Name outputs without an address, which are their own owners, `txid:vout`."""
    makers = txids.take(pa.array(book.output_tx[data]))
    numbers = pc.cast(pa.array(book.output_vout[data]), pa.string())
    return pc.binary_join_element_wise(makers, numbers.cast(makers.type), ":")


def hex_names(n: int, *, seed: int, prefix: str = "", digits: int = 40) -> pa.StringArray:
    """Return n different names of `digits` hexadecimal digits after a prefix.

    The first 16 digits are a scrambled counter, so no two names of one call are equal.

    >>> hex_names(2, seed=1, prefix="0x", digits=16).to_pylist()
    ['0xa5535d75dd6e7a02', '0x5695f1cad247f5f5']
    """
    assert digits >= 16
    text = np.empty((n, len(prefix) + digits), dtype=np.uint8)
    text[:, : len(prefix)] = np.frombuffer(prefix.encode(), dtype=np.uint8)
    kernels.write_names(text, len(prefix), digits, np.uint64(seed * 0x10001), _DIGITS)
    return _text_column(text)


def _text_column(text: np.typing.NDArray[np.uint8]) -> pa.StringArray:
    """Convert rows of letters of one width to an Arrow column without creating Python strings."""
    n, width = text.shape
    small = (n + 1) * width < 2**31
    kind, offset = (pa.string(), np.int32) if small else (pa.large_string(), np.int64)
    offsets = np.arange(0, (n + 1) * width, width, dtype=offset)[: n + 1]
    return pa.Array.from_buffers(kind, n, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
