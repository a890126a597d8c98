"""An Ethereum node's responses about one block -> every movement of ether in it.

Failed transactions move their fee and nothing else. The tip of a fee goes to the miner; the base
fee and the blob fee are burnt, as on mainnet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from coinhaze.errors import LedgerError, UsageError
from coinhaze.ledger.batches import Rows
from coinhaze.nodes.best_chain import HIGHEST, ChainChanged
from coinhaze.nodes.ethereum.fields import (
    ZERO_ADDRESS,
    EthereumHeader,
    address,
    decode,
    decode_block,
    header_row,
    quantity,
    word,
)
from coinhaze.nodes.ethereum.traces import Frame, Movement, movements, read_flat, read_nested

GWEI = 10**9
MAINNET = 1
# The miner's reward on mainnet by first block, until the merge.
REWARDS = ((7_280_000, 2 * 10**18), (4_370_000, 3 * 10**18), (0, 5 * 10**18))


class NotOffered(UsageError):
    """The node cannot provide what was requested; the message says how to do without it."""


class _Withdrawal(msgspec.Struct):
    address: str
    amount: str


class _Transaction(msgspec.Struct, rename="camel"):
    hash: str
    value: str
    from_: str = msgspec.field(name="from")
    to: str | None = None
    gas_price: str | None = None


class EthereumBlock(EthereumHeader, rename="camel"):
    """A block with its transactions."""

    miner: str
    transactions: list[_Transaction]
    difficulty: str | None = None  # none or 0 since the merge
    base_fee_per_gas: str | None = None
    excess_blob_gas: str | None = None  # present since Cancun
    withdrawals: list[_Withdrawal] | None = None
    uncles: list[str] | None = None


class _Receipt(msgspec.Struct, rename="camel"):
    transaction_hash: str
    block_hash: str
    gas_used: str
    status: str | None = None  # absent before Byzantium
    effective_gas_price: str | None = None
    blob_gas_used: str | None = None
    blob_gas_price: str | None = None
    contract_address: str | None = None
    l1_fee: str | None = msgspec.field(default=None, name="l1Fee")


class _Uncle(msgspec.Struct):
    miner: str
    number: str


block_decoder = msgspec.json.Decoder(EthereumBlock)
_receipts = msgspec.json.Decoder(list[_Receipt])
_uncle = msgspec.json.Decoder(_Uncle)


class BlockResponses(NamedTuple):
    """A node's responses about one block, in raw JSON.

    `flat` is the response to trace_block, `nested` to debug_traceBlockByNumber; with neither, what
    contracts send is unknown. `uncles` are needed where mainnet's rewards are not in the trace.
    """

    block: bytes
    receipts: bytes
    flat: bytes = b""
    nested: bytes = b""
    uncles: Sequence[bytes] = ()


def add_block(
    answers: BlockResponses,
    height: int,
    blocks: Rows,
    transfers: Rows,
    *,
    chain: int,
    rewards: bool,
) -> None:
    """Append a block and its movements to the rows of the two tables."""
    where = f"block {height}"
    block = decode_block(block_decoder, answers.block, height)
    row = header_row(block, height)
    txids = [word(t.hash, where, field="hash of a transaction") for t in block.transactions]
    receipts = _paired(decode(_receipts, answers.receipts, where), str(row["hash"]), txids, where)
    traced, paid = _traces(answers, str(row["hash"]), txids, where)
    if rewards and not paid:
        paid = _mined(block, height, answers, chain)
    blocks.add(**row)
    for position, (txid, t, receipt) in enumerate(
        zip(txids, block.transactions, receipts, strict=True)
    ):
        here = f"{where}, transaction {txid}"
        moved = _moved(t, receipt, traced[position] if traced else None, block, here)
        _add(transfers, row, position, txid, [*moved, *_fees(t, receipt, block, here)])
    _add(transfers, row, len(txids), str(row["hash"]), [*_withdrawn(block, where), *paid])


def _add(
    transfers: Rows, block: dict[str, object], position: int, txid: str, moved: list[Movement]
) -> None:
    # Steps count movements, not frames: the two kinds of trace leave out different empty calls.
    for step, movement in enumerate(m for m in moved if m.amount):
        transfers.add(
            height=block["height"],
            position=position,
            step=step,
            txid=txid,
            token="",
            sender=movement.sender,
            recipient=movement.recipient,
            amount=str(movement.amount),
            kind=movement.kind,
            time=block["time"],
        )


def _paired(
    receipts: list[_Receipt], block_hash: str, txids: list[str], where: str
) -> list[_Receipt]:
    """Check that the receipts belong to the block's transactions, in order."""
    for receipt in receipts:
        if receipt.block_hash.lower() != block_hash:
            raise ChainChanged(where, "receipts of another block", value=receipt.block_hash)
    if [r.transaction_hash.lower() for r in receipts] != txids:
        raise LedgerError(
            where, f"{len(receipts)} receipts are not those of its {len(txids)} transactions"
        )
    return receipts


def _traces(
    answers: BlockResponses, block_hash: str, txids: list[str], where: str
) -> tuple[list[list[Frame]] | None, list[Movement]]:
    if answers.flat:
        return read_flat(answers.flat, block_hash, txids, where)
    return (read_nested(answers.nested, txids, where) if answers.nested else None), []


def _moved(
    t: _Transaction, receipt: _Receipt, frames: list[Frame] | None, block: EthereumBlock, where: str
) -> list[Movement]:
    """Return the movements of a transaction, without its fee."""
    sender = address(t.from_, where, field="from")
    made = t.to is None
    value = quantity(t.value, where, field="value")
    failed = _failed(receipt, frames, where)
    if failed:
        return []
    to = receipt.contract_address if made else t.to
    whole = Movement(
        sender, address(to, where, field="to"), value, "create" if made else "transaction"
    )
    if frames is None:
        return [whole] if value else []
    root = frames[0]
    if (root.sender, root.recipient, root.amount) != whole[:3]:
        raise LedgerError(where, "its trace begins with another payment", value=root)
    frames = [root._replace(kind=whole.kind), *frames[1:]]
    return movements(frames, where, destroys=block.excess_blob_gas is None)


def _failed(receipt: _Receipt, frames: list[Frame] | None, where: str) -> bool:
    if frames is not None and not frames:
        raise LedgerError(where, "it has no trace", fix="is the node's history pruned?")
    if receipt.status is None:
        if frames is None:
            raise NotOffered(
                f"{where}: its receipt does not say whether it failed: blocks before Byzantium need"
                " a node with traces"
            )
        return frames[0].failed
    if quantity(receipt.status, where, field="status", maximum=1) == 0:
        return True
    if frames is not None and frames[0].failed:
        raise LedgerError(where, "failed by its trace, but not by its receipt")
    return False


def _fees(
    t: _Transaction, receipt: _Receipt, block: EthereumBlock, where: str
) -> Iterator[Movement]:
    if receipt.l1_fee is not None:
        fix = "only chains with mainnet's fees can be read; tokens of this one can"
        raise LedgerError(where, "a fee for another chain", value=receipt.l1_fee, fix=fix)
    payer = address(t.from_, where, field="from")
    gas = quantity(receipt.gas_used, where, field="gasUsed")
    price = quantity(receipt.effective_gas_price or t.gas_price, where, field="gas price")
    base = quantity(block.base_fee_per_gas or "0x0", where, field="baseFeePerGas")
    if gas and price < base:
        raise LedgerError(where, f"a gas price below the base fee of {base}", value=price)
    blobs = quantity(receipt.blob_gas_used or "0x0", where, field="blobGasUsed")
    blob_price = quantity(receipt.blob_gas_price or "0x0", where, field="blobGasPrice")
    miner = address(block.miner, where, field="miner")
    for recipient, fee in (
        (miner, gas * (price - base)),
        (ZERO_ADDRESS, gas * base),
        (ZERO_ADDRESS, blobs * blob_price),
    ):
        if fee >= 2**256:
            raise LedgerError(where, "a fee above 2^256 - 1", value=fee)
        yield Movement(payer, recipient, fee, "fee")


def _withdrawn(block: EthereumBlock, where: str) -> Iterator[Movement]:
    for withdrawal in block.withdrawals or ():
        to = address(withdrawal.address, where, field="address of a withdrawal")
        gwei = quantity(withdrawal.amount, where, field="a withdrawal in GWEI", maximum=2**64 - 1)
        yield Movement(ZERO_ADDRESS, to, gwei * GWEI, "withdrawal")


def _mined(
    block: EthereumBlock, height: int, answers: BlockResponses, chain: int
) -> list[Movement]:
    """Return proof-of-work rewards: from trace_block where present, else by mainnet's rule."""
    where = f"block {height}"
    if height == 0 or not quantity(block.difficulty or "0x0", where, field="difficulty"):
        return []
    if chain != MAINNET:
        if answers.flat:
            return []
        raise NotOffered(
            f"{where}: without trace_block rewards of chain {chain} are unknown: use a node with it"
            " or leave them out (rewards=False)"
        )
    whole = next(reward for start, reward in REWARDS if height >= start)
    uncles = [decode(_uncle, raw, f"{where}, uncle") for raw in answers.uncles]
    if len(uncles) != len(block.uncles or ()):
        raise LedgerError(where, f"{len(uncles)} uncles, not {len(block.uncles or ())}")
    miner = address(block.miner, where, field="miner")
    paid = [Movement(ZERO_ADDRESS, miner, whole + len(uncles) * (whole // 32), "reward")]
    for uncle in uncles:
        number = quantity(uncle.number, where, field="number of an uncle", maximum=HIGHEST)
        if not 1 <= height - number <= 7:
            raise LedgerError(where, "an uncle not of the last seven blocks", value=number)
        author = address(uncle.miner, where, field="miner of an uncle")
        paid.append(Movement(ZERO_ADDRESS, author, whole * (8 + number - height) // 8, "uncle"))
    return paid
