"""Traces of a block, of either kind -> the movements of ether inside its transactions.

`trace_block` gives flat lists (Erigon, Nethermind, Reth, Besu), `debug_traceBlockByNumber` with
its callTracer gives trees (Geth). Both become the same frames in the order of execution. A frame
that failed moved nothing, nor did anything it called, though that may carry no error itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from coinhaze.errors import LedgerError
from coinhaze.formats.ethereum.mev_inspect import TraceAction, TraceResult
from coinhaze.nodes.best_chain import ChainChanged
from coinhaze.nodes.ethereum.fields import (
    ZERO_ADDRESS,
    address,
    decode,
    deep_nesting,
    quantity,
    word,
)

# These run another contract's code on the caller's own money: their value does not move.
STILL = {"delegatecall", "callcode", "staticcall"}
REWARDS = {"block": "reward", "uncle": "uncle", "external": "reward", "emptystep": "reward"}


class Movement(NamedTuple):
    """Ether that went from one account to another, and why."""

    sender: str
    recipient: str
    amount: int
    kind: str


class Frame(NamedTuple):
    """One call, creation or destruction in a transaction; without a kind it moves nothing."""

    depth: int
    failed: bool
    sender: str = ""
    recipient: str = ""
    amount: int = 0
    kind: str = ""


class _Trace(msgspec.Struct, rename="camel"):
    type: str
    action: TraceAction
    trace_address: list[int]
    block_hash: str | None = None
    transaction_hash: str | None = None
    transaction_position: int | None = None
    result: TraceResult | None = None
    error: str | None = None


class _Call(msgspec.Struct, rename="camel"):
    type: str
    from_: str | None = msgspec.field(default=None, name="from")
    to: str | None = None
    value: str | None = None
    error: str | None = None
    calls: list[_Call] | None = None


class _Traced(msgspec.Struct, rename="camel"):
    result: _Call | None = None
    tx_hash: str | None = None
    error: str | None = None


_traces = msgspec.json.Decoder(list[_Trace])
_calls = msgspec.json.Decoder(list[_Traced])


def read_flat(
    raw: bytes, block_hash: str, txids: Sequence[str], where: str
) -> tuple[list[list[Frame]], list[Movement]]:
    """Read a response to `trace_block`: frames of each transaction, and the block's rewards."""
    by_transaction: list[dict[tuple[int, ...], Frame]] = [{} for _ in txids]
    rewards = []
    for trace in decode(_traces, raw, where):
        if trace.block_hash is not None and trace.block_hash.lower() != block_hash:
            raise ChainChanged(where, "traces of another block", value=trace.block_hash)
        if trace.type == "reward":
            rewards.append(_reward(trace, where))
            continue
        frames = by_transaction[_position(trace, txids, where)]
        path = tuple(trace.trace_address)
        if path in frames:
            raise LedgerError(where, "two traces at one place of a transaction", value=path)
        frames[path] = _flat_frame(trace, where)
    return [_in_order(frames, where) for frames in by_transaction], rewards


def _position(trace: _Trace, txids: Sequence[str], where: str) -> int:
    position = trace.transaction_position
    if position is None or not 0 <= position < len(txids):
        raise LedgerError(where, "a trace of no transaction of the block", value=position)
    if word(trace.transaction_hash, where, field="transactionHash") != txids[position]:
        raise ChainChanged(where, "traces of other transactions", value=trace.transaction_hash)
    return position


def _in_order(frames: dict[tuple[int, ...], Frame], where: str) -> list[Frame]:
    # Paths sort in execution order: a frame before those it calls, those one after the other.
    paths = sorted(frames)
    for path in paths:
        if path and path[:-1] not in frames:
            raise LedgerError(where, "a trace without the one that called it", value=path)
    return [frames[path] for path in paths]


def _flat_frame(trace: _Trace, where: str) -> Frame:
    depth, action = len(trace.trace_address), trace.action
    if trace.error is not None:
        return Frame(depth, True)
    if trace.type == "call":
        call_type = (action.call_type or "").lower()
        if call_type in STILL:
            return Frame(depth, False)
        if call_type != "call":
            raise LedgerError(where, "an unknown kind of call", value=action.call_type)
        return _moving(depth, action.sender, action.to, action.value, "call", where)
    if trace.type == "create":
        made = trace.result.address if trace.result else None
        return _moving(depth, action.sender, made, action.value, "create", where)
    if trace.type == "suicide":
        refund = action.refund_address
        return _moving(depth, action.address, refund, action.balance, "selfdestruct", where)
    raise LedgerError(where, "an unknown kind of trace", value=trace.type)


def _moving(
    depth: int, sender: str | None, to: str | None, amount: str | None, kind: str, where: str
) -> Frame:
    return Frame(
        depth,
        False,
        address(sender, where, field=f"from of a {kind}"),
        address(to, where, field=f"to of a {kind}"),
        quantity(amount, where, field=f"value of a {kind}"),
        kind,
    )


def _reward(trace: _Trace, where: str) -> Movement:
    kind = REWARDS.get((trace.action.reward_type or "").lower())
    if kind is None:
        raise LedgerError(where, "an unknown kind of reward", value=trace.action.reward_type)
    author = address(trace.action.author, where, field="author")
    return Movement(ZERO_ADDRESS, author, quantity(trace.action.value, where, field="reward"), kind)


def read_nested(raw: bytes, txids: Sequence[str], where: str) -> list[list[Frame]]:
    """Read a response to `debug_traceBlockByNumber` with callTracer: frames of each transaction."""
    with deep_nesting():
        traced = decode(_calls, raw, where)
    if len(traced) != len(txids):
        raise ChainChanged(where, f"traces of {len(traced)} transactions, not {len(txids)}")
    return [_frames(t, txid, where) for t, txid in zip(traced, txids, strict=True)]


def _frames(traced: _Traced, txid: str, where: str) -> list[Frame]:
    if traced.tx_hash is not None and traced.tx_hash.lower() != txid:
        raise ChainChanged(where, "traces of other transactions", value=traced.tx_hash)
    if traced.result is None:
        raise LedgerError(where, f"transaction {txid} was not traced", value=traced.error)
    frames = []
    todo = [(0, traced.result)]
    while todo:
        depth, call = todo.pop()
        frames.append(_nested_frame(depth, call, where))
        todo.extend((depth + 1, inner) for inner in reversed(call.calls or ()))
    return frames


def _nested_frame(depth: int, call: _Call, where: str) -> Frame:
    kind = call.type.lower()
    if call.error is not None:
        return Frame(depth, True)
    if kind in STILL:
        return Frame(depth, False)
    kind = {"create2": "create"}.get(kind, kind)
    if kind not in ("call", "create", "selfdestruct"):
        raise LedgerError(where, "an unknown kind of call", value=call.type)
    return _moving(depth, call.from_, call.to, call.value, kind, where)


def succeeded(frames: Iterable[Frame]) -> list[Frame]:
    """Leave out frames that failed and everything they called."""
    retained = []
    failed_at = None
    for frame in frames:
        if failed_at is not None and frame.depth > failed_at:
            continue
        failed_at = frame.depth if frame.failed else None
        if not frame.failed:
            retained.append(frame)
    return retained


def movements(frames: Iterable[Frame], where: str, *, destroys: bool) -> list[Movement]:
    """Return what the frames of a transaction moved, in order.

    `destroys`: selfdestruct removes any contract (before Cancun, EIP-6780), not only one created by
    the same transaction. What such a contract leaves to itself, or receives later, is burnt.
    """
    moved: list[Movement] = []
    made: set[str] = set()
    late: dict[str, int] = {}  # removed contracts -> what they have received since
    for frame, running in _with_running(succeeded(frames)):
        _, _, sender, recipient, amount, kind = frame
        if kind == "selfdestruct" and sender != running:
            _check_odd_end(frame, running, where)
            continue
        if kind == "create":
            made.add(recipient)
        gone = kind == "selfdestruct" and (destroys or sender in made)
        if gone and sender == recipient:
            recipient = ZERO_ADDRESS
        moved.append(Movement(sender, recipient, amount, kind))
        if sender in late:
            late[sender] -= amount
        if recipient in late:
            late[recipient] += amount
        if gone:
            late[sender] = 0
    for account, amount in late.items():
        if amount < 0:
            raise LedgerError(where, "a contract spends after its end", value=account)
        moved.append(Movement(account, ZERO_ADDRESS, amount, "selfdestruct"))
    return [m for m in moved if m.amount]


def _with_running(frames: Iterable[Frame]) -> Iterator[tuple[Frame, str]]:
    """Yield frames that move something, with the account whose money their caller ran on."""
    running = [""]  # by depth, one ahead: what runs in frame d is at d + 1
    for frame in frames:
        del running[frame.depth + 1 :]
        running.append(frame.recipient if frame.kind else running[-1])
        if frame.kind:
            yield frame, running[frame.depth]


def _check_odd_end(frame: Frame, running: str, where: str) -> None:
    """Allow a selfdestruct by an account other than the running one only if it moved nothing.

    Since Cancun a contract that names itself as beneficiary retains its money, and nodes built on
    revm (Reth, Anvil) then report the last payment again, usually the one to that contract.
    """
    if frame.recipient != running:
        what = f"a selfdestruct by another than {running}, which runs"
        raise LedgerError(where, what, value=frame.sender)
