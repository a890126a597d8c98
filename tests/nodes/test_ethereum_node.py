"""What is read from Anvil is what was sent, and adds up to the balances it reports."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from coinhaze.errors import SourceUnreachable, UsageError
from coinhaze.ledger.batches import KEYS, Batch
from coinhaze.nodes.ethereum.fields import ZERO_ADDRESS
from coinhaze.nodes.ethereum.node import ChainChanged, EthereumNode, NotOffered
from coinhaze.nodes.rpc import RpcError
from nodes.ethereum_fixtures import (
    MINER,
    Anvil,
    assemble,
    creation,
    running_anvil,
    send,
    token_creation,
    token_payment,
)

ETHER = 10**18
LARGEST = 2**256 - 1


@pytest.fixture(scope="module")
def anvil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Anvil]:
    with running_anvil(tmp_path_factory.mktemp("anvil")) as node:
        yield node


def rows_of(batches: Iterator[Batch], table: str = "transfers") -> list[dict[str, Any]]:
    tables = [b.tables[table] for b in batches if table in b.tables]
    rows: list[dict[str, Any]] = pa.concat_tables(tables).to_pylist() if tables else []
    return rows


def paid(rows: list[dict[str, Any]]) -> list[tuple[str, str, int, str]]:
    """Give who paid whom how much and why, without fees."""
    return [
        (r["sender"], r["recipient"], int(r["amount"]), r["kind"])
        for r in rows
        if r["kind"] != "fee"
    ]


def assert_balances(anvil: Anvil, rows: list[dict[str, Any]], first: int, last: int) -> None:
    """Opening balances and movements give the closing balance of everyone but the zero address."""
    change: Counter[str] = Counter()
    for row in rows:
        change[row["sender"]] -= int(row["amount"])
        change[row["recipient"]] += int(row["amount"])
    del change[ZERO_ADDRESS]
    assert change
    for account, moved in change.items():
        assert anvil.balance(account, first - 1) + moved == anvil.balance(account, last), account


class Untraced(EthereumNode):
    """A node that lacks some methods."""

    def __init__(self, anvil: Anvil, *missing: str) -> None:
        super().__init__(anvil.rpc)
        rpc = anvil.rpc

        class Without(type(rpc)):  # type: ignore[misc]
            def __init__(self) -> None:
                self.node = rpc.node

            def call(self, method: str, /, *params: object, **named: object) -> bytes:
                if method in missing:
                    raise RpcError(self.node, method, -32601, "Method not found")
                return rpc.call(method, *params, **named)

            def batch(self, calls: Any) -> list[bytes]:
                return [self.call(method, *params) for method, params in calls]

        self.rpc = Without()


def read_both_ways(anvil: Anvil, first: int, last: int) -> list[dict[str, Any]]:
    flat = rows_of(EthereumNode(anvil.rpc).batches(first, last))
    nested = rows_of(Untraced(anvil, "trace_block").batches(first, last))
    assert flat == nested
    keys = [tuple(r[c] for c in KEYS["transfers"]) for r in flat]
    assert len(set(keys)) == len(keys)
    order = [(r["height"], r["position"], r["step"]) for r in flat]
    assert order == sorted(order)
    assert_balances(anvil, flat, first, last)
    return flat


def test_plain_transfers_and_their_fees_are_what_was_sent(anvil: Anvil) -> None:
    a, b, c, *_ = anvil.accounts
    anvil.transact(a, to=b, value=3 * ETHER)
    anvil.transact(b, to=c, value=1, gasPrice=5 * 10**9)
    first = anvil.mine()
    anvil.transact(c, to=a, value=0)
    last = anvil.mine()
    rows = read_both_ways(anvil, first, last)
    assert sorted(paid(rows)) == sorted(
        [(a, b, 3 * ETHER, "transaction"), (b, c, 1, "transaction")]
    )
    fees = [r for r in rows if r["kind"] == "fee"]
    assert [r["recipient"] for r in fees] == [MINER, ZERO_ADDRESS] * 3
    assert {r["token"] for r in rows} == {""}
    assert anvil.balance(MINER, last) - anvil.balance(MINER, first - 1) == sum(
        int(r["amount"]) for r in fees if r["recipient"] == MINER
    )


def test_blocks_carry_hash_parent_and_time(anvil: Anvil) -> None:
    first = anvil.mine()
    anvil.mine()
    rows = rows_of(EthereumNode(anvil.rpc).batches(first, first + 1), "blocks")
    for row in rows:
        told = anvil("eth_getBlockByNumber", hex(row["height"]), False)
        assert (row["hash"], row["previous"]) == (told["hash"], told["parentHash"])
        assert row["time"] == int(told["timestamp"], 16)
    assert [r["height"] for r in rows] == [first, first + 1]
    assert rows[1]["previous"] == rows[0]["hash"]


def test_a_failed_transaction_moves_its_fee_alone(anvil: Anvil) -> None:
    a = anvil.accounts[0]
    refuser = anvil.create(a, creation(assemble("0x00 0x00 REVERT")))
    anvil.transact(a, to=refuser, value=ETHER)
    block = anvil.mine()
    rows = read_both_ways(anvil, block, block)
    assert {r["kind"] for r in rows} == {"fee"}
    assert anvil.balance(refuser, block) == 0


def test_a_contract_made_with_money_gets_it_by_create(anvil: Anvil) -> None:
    a = anvil.accounts[0]
    made = anvil.create(a, creation(assemble("STOP")), value=7)
    height = anvil.height()
    assert paid(read_both_ways(anvil, height, height)) == [(a, made, 7, "create")]
    without = rows_of(EthereumNode(anvil.rpc).batches(height, height, internal=False))
    assert paid(without) == [(a, made, 7, "create")]


def split_code(b: str, c: str) -> bytes:
    return assemble(send(b, "0x02 CALLVALUE DIV") + " " + send(c, "0x02 CALLVALUE DIV"))


def test_a_splitter_sends_on_what_it_gets(anvil: Anvil) -> None:
    a, b, c, *_ = anvil.accounts
    splitter = anvil.create(a, creation(split_code(b, c)))
    anvil.transact(a, to=splitter, value=1001)
    block = anvil.mine()
    assert paid(read_both_ways(anvil, block, block)) == [
        (a, splitter, 1001, "transaction"),
        (splitter, b, 500, "call"),
        (splitter, c, 500, "call"),
    ]


def test_what_a_reverted_call_sent_did_not_move(anvil: Anvil) -> None:
    a, b, *_ = anvil.accounts
    # It pays b, and the payment carries no error of its own, but then all is taken back.
    fickle = anvil.create(a, creation(assemble(send(b, "CALLVALUE") + " 0x00 0x00 REVERT")))
    patron = anvil.create(a, creation(assemble(send(fickle, "CALLVALUE"))))
    anvil.transact(a, to=patron, value=600)
    block = anvil.mine()
    assert paid(read_both_ways(anvil, block, block)) == [(a, patron, 600, "transaction")]
    assert anvil.balance(patron, block) == 600


def test_a_call_with_more_than_there_is_moves_nothing(anvil: Anvil) -> None:
    a, b, *_ = anvil.accounts
    boaster = anvil.create(a, creation(assemble(send(b, "CALLVALUE CALLVALUE ADD"))))
    anvil.transact(a, to=boaster, value=8)
    block = anvil.mine()
    assert paid(read_both_ways(anvil, block, block)) == [(a, boaster, 8, "transaction")]


@pytest.mark.parametrize("how", ["DELEGATECALL", "CALLCODE"])
def test_borrowed_code_moves_nothing_itself_but_sends_the_borrowers_money(
    anvil: Anvil, how: str
) -> None:
    a, b, c, *_ = anvil.accounts
    splitter = anvil.create(a, creation(split_code(b, c)))
    borrower = anvil.create(a, creation(assemble(send(splitter, "CALLVALUE", how=how))))
    anvil.transact(a, to=borrower, value=10)
    block = anvil.mine()
    assert paid(read_both_ways(anvil, block, block)) == [
        (a, borrower, 10, "transaction"),
        (borrower, b, 5, "call"),
        (borrower, c, 5, "call"),
    ]
    assert anvil.balance(splitter, block) == 0


def test_selfdestruct_leaves_the_balance_to_the_heir(anvil: Anvil) -> None:
    a, heir, *_ = anvil.accounts
    doomed = anvil.create(a, creation(assemble(f"{heir} SELFDESTRUCT")), value=90)
    anvil.transact(a, to=doomed, value=9)
    block = anvil.mine()
    assert paid(read_both_ways(anvil, block, block)) == [
        (a, doomed, 9, "transaction"),
        (doomed, heir, 99, "selfdestruct"),
    ]


def burner_of(code: bytes) -> bytes:
    """Make a contract that creates one by `code` with half of what it gets, then sends it half."""
    text = code.hex().ljust(64, "0")
    make = f"0x{text} 0x00 MSTORE 0x{len(code):02x} 0x00 0x02 CALLVALUE DIV CREATE"
    return assemble(f"{make} 0x00 SWAP1 0x00 SWAP1 0x00 SWAP1 0x00 SWAP1") + assemble(
        "0x02 CALLVALUE DIV SWAP1 GAS CALL POP"
    )


def test_money_sent_to_what_the_same_transaction_made_and_destroyed_is_burnt(anvil: Anvil) -> None:
    a, heir, *_ = anvil.accounts
    factory = anvil.create(a, creation(burner_of(assemble(f"{heir} SELFDESTRUCT"))))
    anvil.transact(a, to=factory, value=20)
    block = anvil.mine()
    moved = paid(read_both_ways(anvil, block, block))
    child = moved[1][1]
    assert moved == [
        (a, factory, 20, "transaction"),
        (factory, child, 10, "create"),
        (child, heir, 10, "selfdestruct"),
        (factory, child, 10, "call"),
        (child, ZERO_ADDRESS, 10, "selfdestruct"),
    ]
    assert anvil.balance(child, block) == 0


def test_a_new_contract_that_is_its_own_heir_burns_its_money(anvil: Anvil) -> None:
    a = anvil.accounts[0]
    child = anvil.create(a, "0x" + assemble("ADDRESS SELFDESTRUCT").hex(), value=31)
    block = anvil.height()
    moved = paid(read_both_ways(anvil, block, block))
    assert moved == [(a, child, 31, "create"), (child, ZERO_ADDRESS, 31, "selfdestruct")]


@pytest.mark.parametrize(("fork", "burnt"), [("shanghai", True), ("cancun", False)])
def test_an_old_contract_that_is_its_own_heir_burns_its_money_until_cancun(
    tmp_path: Path, fork: str, burnt: bool
) -> None:
    with running_anvil(tmp_path, "--hardfork", fork) as anvil:
        a = anvil.accounts[0]
        selfish = anvil.create(a, creation(assemble("ADDRESS SELFDESTRUCT")), value=5)
        anvil.transact(a, to=selfish, value=6)
        block = anvil.mine()
        rows = read_both_ways(anvil, block, block)
        assert anvil.balance(selfish, block) == (0 if burnt else 11)
        assert ((selfish, ZERO_ADDRESS, 11, "selfdestruct") in paid(rows)) == burnt


def test_before_london_the_miner_gets_the_whole_fee(tmp_path: Path) -> None:
    with running_anvil(tmp_path, "--hardfork", "berlin") as anvil:
        a, b, *_ = anvil.accounts
        anvil.transact(a, to=b, value=ETHER, gasPrice=10**10)
        block = anvil.mine()
        rows = read_both_ways(anvil, block, block)
        fees = [(r["recipient"], int(r["amount"])) for r in rows if r["kind"] == "fee"]
        assert fees == [(MINER, 21_000 * 10**10)]


def test_calls_as_deep_as_the_machine_allows_are_read(tmp_path: Path) -> None:
    # A call passes on 63/64 of the gas at most, so 1,024 calls in each other take a lot of it.
    options = ("--hardfork", "cancun", "--gas-limit", str(10**13), "--balance", "1000000")
    with running_anvil(tmp_path, *options) as anvil:
        a = anvil.accounts[0]
        code = assemble("CALLVALUE @on JUMPI STOP :on " + send("ADDRESS", "0x01 CALLVALUE SUB"))
        diver = anvil.create(a, creation(code))
        anvil.transact(a, to=diver, value=2000, gas=10**13)
        block = anvil.mine()
        limit = sys.getrecursionlimit()
        moved = paid(read_both_ways(anvil, block, block))
        assert moved[1:] == [(diver, diver, 2000 - k, "call") for k in range(1, 1025)]
        assert sys.getrecursionlimit() == limit


def test_without_traces_the_node_is_refused_unless_internal_is_off(anvil: Anvil) -> None:
    a, b, c, *_ = anvil.accounts
    splitter = anvil.create(a, creation(split_code(b, c)))
    anvil.transact(a, to=splitter, value=4)
    block = anvil.mine()
    node = Untraced(anvil, "trace_block", "debug_traceBlockByNumber")
    with pytest.raises(NotOffered, match=r"internal=False.*trace_block.*debug_traceBlockByNumber"):
        list(node.batches(block, block))
    rows = rows_of(node.batches(block, block, internal=False))
    assert paid(rows) == [(a, splitter, 4, "transaction")]


def test_receipts_are_requested_one_by_one_where_the_node_gives_them_so(anvil: Anvil) -> None:
    a, b, *_ = anvil.accounts
    anvil.transact(a, to=b, value=5)
    anvil.transact(a, to=b, value=6)
    block = anvil.mine()
    anvil.mine()
    node = Untraced(anvil, "eth_getBlockReceipts")
    whole = EthereumNode(anvil.rpc)
    assert rows_of(node.batches(block, block + 1)) == rows_of(whole.batches(block, block + 1))


def make_token(anvil: Anvil, supply: int = LARGEST) -> tuple[str, int]:
    token = anvil.create(anvil.accounts[0], token_creation(supply))
    return token, anvil.height()


def test_transfers_of_a_token_are_what_was_sent_up_to_2_256_minus_1(anvil: Anvil) -> None:
    a, b, c, *_ = anvil.accounts
    token, first = make_token(anvil)
    anvil.transact(a, to=token, data=token_payment(b, 2**255))
    anvil.transact(a, to=token, data=token_payment(a, 3))
    anvil.mine()
    anvil.transact(b, to=token, data=token_payment(c, 2**254 + 1))
    anvil.transact(c, to=token, data=token_payment(b, LARGEST))  # more than there is: fails
    anvil.transact(b, to=token, data=token_payment(c, 0))
    last = anvil.mine()
    shouted = "0x" + token[2:].upper()
    rows = rows_of(EthereumNode(anvil.rpc).batches(first, last, token=shouted))
    moved = paid(rows)
    assert moved[0] == (ZERO_ADDRESS, a, LARGEST, "token")
    assert Counter(moved) == Counter(
        [
            (ZERO_ADDRESS, a, LARGEST, "token"),
            (a, b, 2**255, "token"),
            (a, a, 3, "token"),
            (b, c, 2**254 + 1, "token"),
            (b, c, 0, "token"),
        ]
    )
    assert {r["token"] for r in rows} == {token}
    change: Counter[str] = Counter()
    for row in rows:
        change[row["sender"]] -= int(row["amount"])
        change[row["recipient"]] += int(row["amount"])
    for account in (a, b, c):
        data = f"0x70a08231{account[2:]:0>64}"
        assert int(anvil("eth_call", {"to": token, "data": data}, "latest"), 16) == change[account]
    receipts = {
        log["logIndex"]: r["transactionHash"]
        for r in anvil("eth_getBlockReceipts", hex(last))
        for log in r["logs"]
    }
    read = {hex(r["step"]): r["txid"] for r in rows if r["height"] == last}
    assert read == receipts


def test_a_tokens_blocks_are_those_with_transfers_and_the_last(anvil: Anvil) -> None:
    token, first = make_token(anvil)
    for _ in range(5):
        anvil.mine()
    last = anvil.height()
    rows = rows_of(EthereumNode(anvil.rpc).batches(first, last, token=token), "blocks")
    assert [r["height"] for r in rows] == [first, last]
    assert rows[0]["hash"] == anvil("eth_getBlockByNumber", hex(first), False)["hash"]


@pytest.mark.parametrize("token", ["USDC", "0x12", "0x" + "f" * 39 + "e"])
def test_what_is_no_tokens_address_is_refused(anvil: Anvil, token: str) -> None:
    with pytest.raises(UsageError):
        list(EthereumNode(anvil.rpc).batches(0, 1, token=token))


class WithoutTags(Untraced):
    def __init__(self, anvil: Anvil) -> None:
        super().__init__(anvil)
        plain = self.rpc.call

        def call(method: str, *params: object) -> bytes:
            if "finalized" in params:
                raise RpcError("", method, -32602, "unknown tag")
            return plain(method, *params)

        self.rpc.call = call  # type: ignore[method-assign, assignment]


def test_the_tip_is_the_finalized_block_or_the_latest_less_a_lag(anvil: Anvil) -> None:
    anvil("anvil_mine", hex(100))
    finalized = anvil("eth_getBlockByNumber", "finalized", False)
    assert int(finalized["number"], 16) < anvil.height()
    assert EthereumNode(anvil.rpc).tip() == (int(finalized["number"], 16), finalized["hash"])
    lagging = anvil("eth_getBlockByNumber", hex(anvil.height() - 64), False)
    assert WithoutTags(anvil).tip() == (anvil.height() - 64, lagging["hash"])


def test_the_common_ancestor_is_the_last_block_still_on_the_chain(anvil: Anvil) -> None:
    node = EthereumNode(anvil.rpc)
    first = anvil.mine()
    snapshot = anvil("evm_snapshot")
    for _ in range(4):
        anvil.mine()
    known = {r["height"]: r["hash"] for r in rows_of(node.batches(first, first + 4), "blocks")}
    assert node.common_ancestor(known) == first + 4
    anvil("evm_revert", snapshot)
    assert node.common_ancestor(known) == first  # higher ones are not there at all
    anvil.transact(anvil.accounts[0], to=anvil.accounts[1], value=1)
    for _ in range(6):
        anvil.mine()
    assert node.common_ancestor(known) == first  # higher ones are others
    del known[first]
    assert node.common_ancestor(known) is None


def test_a_chain_that_changes_while_it_is_read_is_noticed(anvil: Anvil) -> None:
    first = anvil.mine()
    snapshot = anvil("evm_snapshot")
    for _ in range(9):
        anvil.mine()
    node = Untraced(anvil)
    node.at_once = 1
    plain = node.rpc.batch

    def batch(calls: Any) -> list[bytes]:
        if calls[0][1][0] == hex(first + 3):
            anvil("evm_revert", snapshot)
            anvil.transact(anvil.accounts[0], to=anvil.accounts[1], value=1)
            for _ in range(9):
                anvil.mine()
        return plain(calls)

    node.rpc.batch = batch  # type: ignore[method-assign]
    with pytest.raises(ChainChanged, match=r"does not follow"):
        list(node.batches(first, first + 8))


def test_a_block_that_is_not_there_is_named(anvil: Anvil) -> None:
    height = anvil.height()
    with pytest.raises(SourceUnreachable, match=f"block {height + 5} is not there yet"):
        list(EthereumNode(anvil.rpc).batches(height + 5, height + 6))
    with pytest.raises(SourceUnreachable, match=f"block {height + 1} is not there yet"):
        list(EthereumNode(anvil.rpc).batches(height, height + 6))
    with pytest.raises(UsageError):
        list(EthereumNode(anvil.rpc).batches(-1, 5))
