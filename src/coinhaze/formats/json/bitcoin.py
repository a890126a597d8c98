"""Blocks as bitcoind's `getblock` gives them with verbosity 2 or 3: one per line, or one per file.

Values are decimal bitcoin, read digit by digit, never as floats. Verbosity 3 tells the value and
address of the coins spent, verbosity 2 does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_etl.rows import owner_of
from coinhaze.formats.bitcoin_raw.networks import Network
from coinhaze.formats.bitcoin_raw.scripts import KeyNames, Script, network_in
from coinhaze.formats.json.records import FAULTS, RecordFormat
from coinhaze.formats.tabular.coin_rows import (
    MAXIMUM,
    ROWS,
    InputRows,
    OutputRows,
    Place,
    StatedBlock,
    at_parents,
    coin_batch,
    numbered,
    rows_of,
    rows_of_blocks,
    texts,
    whole_numbers,
)
from coinhaze.ledger.batches import FLAG, NUMBER, Batch

SATOSHI = 100_000_000
MAX_BITCOIN = Decimal(MAXIMUM) / SATOSHI
# More digits than any value has; beyond them it refuses instead of rounding.
_exact = Context(prec=60, traps=[Inexact, InvalidOperation])


class CoreScript(msgspec.Struct, gc=False):
    """The script of an output, as Bitcoin Core writes it in JSON; so are all below."""

    hex: str | None = None
    type: str | None = None
    address: str | None = None
    addresses: list[str] | None = None  # before version 22


class CoreCoin(msgspec.Struct, gc=False):
    """A value in bitcoin, and the script it is paid to."""

    value: Any  # int or Decimal: declared so, msgspec would let floats of a dict pass
    script: CoreScript = msgspec.field(name="scriptPubKey")


class CoreOutput(CoreCoin, gc=False, kw_only=True):
    """A coin that a transaction makes."""

    n: int


class CoreInput(msgspec.Struct, gc=False):
    """A coin that a transaction spends; `prevout` tells what it was worth, where the node does."""

    txid: str | None = None
    vout: int | None = None
    coinbase: str | None = None
    prevout: CoreCoin | None = None


class CoreTransaction(msgspec.Struct, gc=False):
    """A transaction."""

    txid: str
    vin: list[CoreInput]
    vout: list[CoreOutput]
    vjoinsplit: Any = None


_NAMES = {"previous": "previousblockhash", "count": "nTx", "root": "merkleroot"}


class _Block(msgspec.Struct, gc=False, rename=_NAMES):
    hash: str
    height: int
    tx: list[CoreTransaction]
    time: int
    previous: str | None = None
    count: int | None = None
    root: str | None = None
    confirmations: int | None = None
    # What only Zcash has, whose pools this reader would lose.
    finalsaplingroot: Any = None
    valuePools: Any = None


_format: RecordFormat[_Block] = RecordFormat(
    "block of getblock",
    msgspec.json.Decoder(_Block | list[_Block], float_hook=Decimal),
    hint="ask getblock for verbosity 2 or 3",
)


def recognises(head: bytes) -> bool:
    """Tell whether the first bytes look like a block of `getblock`, but none of Zcash."""
    return (
        head.lstrip().startswith((b"{", b"["))
        and b'"merkleroot"' in head
        and b'"height"' in head
        and not any(key in head for key in (b'"finalsaplingroot"', b'"valuePools"'))
    )


def batches(path: Path) -> Iterator[Batch]:
    """Read a file of blocks, or the JSON files of a folder."""
    names = KeyNames(lambda: _network_in(path))
    for found in _format.records(path, _size, ROWS):
        yield _batch(found.records, found.place, found.read, names)


def block_tables(
    blocks: Sequence[bytes | Mapping[str, Any]],
    where: Callable[[int], str] = "block {} of those given".format,
    *,
    network: Network | None = None,
) -> dict[str, pa.Table]:
    """Make the tables of a batch from blocks as text or, with Decimals for floats, as dicts.

    `where` says for the number of a block where it came from; without a `network` coins that pay
    to bare keys have no owner.
    """
    records = [_decode(b, where(n)) for n, b in enumerate(blocks)]
    return dict(_batch(records, where, 0, KeyNames(lambda: network)).tables)


def satoshi(value: object, where: str) -> int:
    """Turn decimal bitcoin into whole satoshi, exactly.

    >>> satoshi(Decimal("1.5e-7"), "here")
    15
    """
    what = "a value that is no amount of bitcoin"
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise LedgerError(where, what, value=value, fix="numbers, parsed without floats")
    number = Decimal(value)
    if not number.is_finite() or not 0 <= number <= MAX_BITCOIN:
        raise LedgerError(where, what, value=value)
    try:
        whole = _exact.multiply(number, Decimal(SATOSHI))
    except Inexact:
        raise LedgerError(where, "a fraction of a satoshi", value=value) from None
    if whole != int(whole):
        raise LedgerError(where, "a fraction of a satoshi", value=value)
    return int(whole)


def _decode(block: bytes | Mapping[str, Any], where: str) -> _Block:
    try:
        if isinstance(block, bytes):
            records = _format.decoder.decode(block)
            if isinstance(records, _Block):
                return records
            raise LedgerError(where, "an array where a block should be")
        return msgspec.convert(block, _Block)
    except FAULTS as error:
        text = block if isinstance(block, bytes) else repr(block).encode("utf-8", "replace")
        raise _format.explain(text, error, where) from None


def _size(block: _Block) -> int:
    return sum(len(t.vin) + len(t.vout) for t in block.tx)


def _batch(blocks: Sequence[_Block], where: Place, read: int, names: KeyNames) -> Batch:
    for number, block in enumerate(blocks):
        _check_block(block, where(number))
    stated = [StatedBlock(b.height, b.hash, b.previous, b.time, b.count, b.root) for b in blocks]
    transactions, block_rows = rows_of_blocks(
        stated, [[t.txid for t in b.tx] for b in blocks], where
    )
    records, place = [t for b in blocks for t in b.tx], transactions.place
    outputs, inputs = _outputs(records, place, names), _inputs(records, place, names)
    return coin_batch(transactions, outputs, inputs, digits=64, blocks=block_rows, read=read)


def _check_block(block: _Block, where: str) -> None:
    if block.finalsaplingroot is not None or block.valuePools is not None:
        raise LedgerError(where, "a block of Zcash; this reader knows no shielded pools")
    if block.confirmations is not None and block.confirmations < 0:
        raise LedgerError(where, "a block outside the best chain", value=block.hash)
    if not block.tx or block.count not in (None, len(block.tx)):
        what = f"{len(block.tx)} transactions in a block of"
        raise LedgerError(where, what, value=block.count)
    for number, transaction in enumerate(block.tx):
        fault = _coinbase_fault(transaction, number)
        if fault:
            raise LedgerError(f"{where} transaction {number}", fault, value=transaction.txid)


def _coinbase_fault(transaction: CoreTransaction, number: int) -> str:
    if transaction.vjoinsplit is not None:
        return "a transaction of Zcash; this reader knows no shielded pools"
    coinbase = [i.coinbase is not None for i in transaction.vin]
    if number == 0:
        return "" if coinbase == [True] else "the first transaction of a block is no coinbase"
    if not coinbase:
        return "no inputs"
    return "a coinbase that is not the first of its block" if any(coinbase) else ""


def _outputs(records: Sequence[CoreTransaction], place: Place, names: KeyNames) -> OutputRows:
    parent = rows_of([len(t.vout) for t in records])
    coins = [o for t in records for o in t.vout]
    of_row = at_parents(parent, place)
    return OutputRows(
        parent,
        vout=whole_numbers([o.n for o in coins], of_row, field="n"),
        value=pa.array(_satoshis(coins, of_row), NUMBER),
        owner=texts(names.owners(_scripts(coins), of_row), of_row, field="address"),
        is_data=pa.array([_is_data(o.script) for o in coins], FLAG),
    )


def _inputs(records: Sequence[CoreTransaction], place: Place, names: KeyNames) -> InputRows:
    spent = [[i for i in t.vin if i.coinbase is None] for t in records]
    parent = rows_of([len(inputs) for inputs in spent])
    spends = [i for inputs in spent for i in inputs]
    of_row = at_parents(parent, place)
    coins = [i.prevout for i in spends]
    return InputRows(
        parent,
        vin=pa.array(numbered(parent)),
        spent_txid=texts([i.txid for i in spends], of_row, field="txid of an input"),
        spent_vout=whole_numbers([i.vout for i in spends], of_row, field="vout of an input"),
        value=pa.array(_satoshis(coins, of_row), NUMBER),
        owner=texts(names.owners(_scripts(coins), of_row), of_row, field="address"),
    )


def _satoshis(coins: Sequence[CoreCoin | None], place: Place) -> list[int | None]:
    try:
        return [None if c is None else satoshi(c.value, "") for c in coins]
    except LedgerError:  # again, to say where: places cost more than values
        return [None if c is None else satoshi(c.value, place(n)) for n, c in enumerate(coins)]


def _scripts(coins: Sequence[CoreCoin | None]) -> list[Script | None]:
    return [None if c is None else Script(c.script.hex or "", _owner(c.script)) for c in coins]


def _network_in(path: Path) -> Network | None:
    """Find the network by all blocks of a file, so that none of its keys has two names."""
    return network_in(
        (
            _scripts([o for b in found.records for t in b.tx for o in t.vout]),
            [(b.hash, b.time) for b in found.records],
        )
        for found in _format.records(path, _size, ROWS)
    )


def _owner(script: CoreScript) -> str | None:
    return script.address if script.address is not None else owner_of(script.addresses)


def _is_data(script: CoreScript) -> bool:
    return script.type == "nulldata" or (script.hex or "")[:2] == "6a"
