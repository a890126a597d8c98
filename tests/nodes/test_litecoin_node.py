from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from coinhaze.errors import CoinhazeError, LedgerError
from coinhaze.nodes import best_chain
from coinhaze.nodes.best_chain import WrongNetwork
from coinhaze.nodes.bitcoin import PLAIN, BitcoinNode
from coinhaze.nodes.http import Credentials
from coinhaze.nodes.mweb import Holder, holder_after, read_pegs
from coinhaze.nodes.rpc import JsonRpc
from nodes.chains import Told
from nodes.daemons import Daemon
from nodes.fakes import mutated

COIN = 100_000_000
MWEB_BEGINS = 432  # on regtest


def exact(rpc: JsonRpc, method: str, *params: object) -> Any:
    return json.loads(rpc.call(method, *params), parse_float=Decimal)


def read(daemon: Daemon, first: int = 0, last: int | None = None) -> Told:
    node = BitcoinNode(daemon.rpc)
    return Told.by(node.batches(first, node.tip()[0] if last is None else last))


@dataclass
class Payments:
    """A chain with payments in the open, before MWEB began, and into and out of MWEB after."""

    daemon: Daemon
    open_to: dict[str, int]
    open_txid: str
    in_txid: str
    in_height: int
    out_to: str
    out_height: int


@pytest.fixture(scope="module")
def shielded_purse(litecoin: Daemon) -> Iterator[JsonRpc]:
    """A second wallet of the node, which owns only what is shielded."""
    litecoin.ask("createwallet", "shielded")
    credentials = Credentials.from_cookie(litecoin.cookie)
    with JsonRpc(f"{litecoin.url}/wallet/shielded", credentials=credentials) as rpc:
        yield rpc


@pytest.fixture(scope="module")
def payments(litecoin: Daemon, shielded_purse: JsonRpc) -> Iterator[Payments]:
    credentials = Credentials.from_cookie(litecoin.cookie)
    with JsonRpc(f"{litecoin.url}/wallet/purse", credentials=credentials, timeout=120) as rpc:
        purse = Daemon(rpc, litecoin.url, litecoin.folder)
        purse.mine(101)
        kinds = {"legacy": 250_000_000, "p2sh-segwit": 10_000_019, "bech32": 1_234_567}
        open_to = {purse.text("getnewaddress", "", kind): sat for kind, sat in kinds.items()}
        amounts = {a: f"{Decimal(sat) / COIN:f}" for a, sat in open_to.items()}
        open_txid = purse.text("sendmany", "", amounts)
        purse.mine(MWEB_BEGINS - 1 - 101)
        hidden = exact(shielded_purse, "getnewaddress", "", "mweb")
        in_txid = purse.text("sendtoaddress", hidden, "12.5")
        purse.mine(1)
        in_height = MWEB_BEGINS
        purse.mine(2)
        out_to = purse.text("getnewaddress")
        exact(shielded_purse, "sendtoaddress", out_to, "4.25")
        # Someone goes in while another comes out: with more than the change that was left inside.
        purse.text("sendtoaddress", hidden, "60")
        purse.mine(1)
        out_height = MWEB_BEGINS + 3
        purse.mine(1)
        yield Payments(purse, open_to, open_txid, in_txid, in_height, out_to, out_height)


def test_coins_are_worth_what_was_sent_to_whom_it_was_sent(payments: Payments) -> None:
    found = read(payments.daemon).coins_of(payments.open_txid)
    assert payments.open_to.items() <= found.items()
    assert len(found) == len(payments.open_to) + 1


def test_the_network_is_known_by_its_first_block(payments: Payments) -> None:
    node = BitcoinNode(payments.daemon.rpc, network="litecoin regtest")
    assert node.network == "litecoin regtest"
    assert node.way == PLAIN  # it takes verbosity 3 for 2
    with pytest.raises(WrongNetwork, match="litecoin regtest, not bitcoin"):
        BitcoinNode(payments.daemon.rpc, network="bitcoin")


def test_values_of_coins_spent_are_not_reported(payments: Payments) -> None:
    told = read(payments.daemon)
    assert told["inputs"]
    assert {i["value"] for i in told["inputs"]} == {None}


def test_coins_and_the_pool_together_are_the_nodes_coins(payments: Payments) -> None:
    told = read(payments.daemon)
    pool = sum(f["into_pool"] for f in told["pool_flows"])
    known = exact(payments.daemon.rpc, "gettxoutsetinfo")
    unspent = told.unspent()
    assert pool > 0
    assert sum(unspent.values()) + pool == known["total_amount"] * COIN
    assert len(unspent) + 1 == known["txouts"]  # the one that holds the pool


def test_a_peg_in_goes_into_the_pool_from_the_transaction_that_pays_it(payments: Payments) -> None:
    told = read(payments.daemon)
    (flow,) = [f for f in told["pool_flows"] if f["txid"] == payments.in_txid]
    block = exact(payments.daemon.rpc, "getblock", told.headers()[payments.in_height], 2)
    (paid,) = [t for t in block["tx"] if t["txid"] == payments.in_txid]
    peg_in = next(o for o in paid["vout"] if o["scriptPubKey"]["type"] == "witness_mweb_pegin")
    assert flow["into_pool"] == peg_in["value"] * COIN >= 1_250_000_000
    assert flow["pool"] == "shielded"
    outputs = [o for o in told["outputs"] if o["txid"] == payments.in_txid]
    assert peg_in["n"] not in {o["vout"] for o in outputs}


def test_a_peg_out_comes_from_the_pool_and_not_from_the_peg_ins_of_its_block(
    payments: Payments,
) -> None:
    told = read(payments.daemon)
    (coin,) = [o for o in told["outputs"] if o["owner"] == payments.out_to]
    assert (coin["value"], coin["height"]) == (425_000_000, payments.out_height)
    (flow,) = [f for f in told["pool_flows"] if f["txid"] == coin["txid"]]
    assert flow["into_pool"] <= -425_000_000  # and the fee
    assert not [i for i in told["inputs"] if i["txid"] == coin["txid"]]
    others = [f for f in told["pool_flows"] if f["height"] == payments.out_height]
    assert [f["into_pool"] > 0 for f in others if f["txid"] != coin["txid"]] == [True]


def test_a_block_in_which_nothing_is_shielded_has_no_integrating_transaction(
    payments: Payments,
) -> None:
    told = read(payments.daemon)
    last = [t for t in told["transactions"] if t["height"] == payments.out_height + 1]
    assert [t["coinbase"] for t in last] == [True]


def test_reading_from_the_middle_gives_the_same_flows(payments: Payments) -> None:
    whole = read(payments.daemon)
    for first in (MWEB_BEGINS, MWEB_BEGINS + 1, payments.out_height):
        part = read(payments.daemon, first)
        for name, rows in part.tables.items():
            assert rows == [row for row in whole[name] if row["height"] >= first]


def test_reading_in_pieces_gives_the_same_rows(
    payments: Payments, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read(payments.daemon)
    monkeypatch.setattr(best_chain, "BLOCKS_AT_ONCE", 1)
    assert read(payments.daemon).tables == whole.tables


def test_a_reorganised_chain_is_followed(payments: Payments) -> None:
    before = read(payments.daemon)
    height = max(before.headers())
    payments.daemon.ask("invalidateblock", before.headers()[height])
    payments.daemon.mine(1)
    payments.daemon.mine(1)
    node = BitcoinNode(payments.daemon.rpc)
    assert node.common_ancestor(before.headers()) == height - 1
    after = read(payments.daemon, height)
    assert after["blocks"][0]["previous"] == before.headers()[height - 1]
    # Back to where other tests expect the chain to end.
    payments.daemon.ask("invalidateblock", after.headers()[height])
    payments.daemon.ask("reconsiderblock", before.headers()[height])


class Mweb:
    """A block with a peg-in of 40 and a peg-out of 15, in which the pool goes from 100 to 120."""

    def __init__(self) -> None:
        self.before = Holder(("aa" * 32, 0), 100)
        self.block: dict[str, Any] = {
            "mweb": {},
            "tx": [
                self.transaction("01", [], [(50, "pubkeyhash")]),
                self.transaction("02", ["f1:0"], [(7, "pubkeyhash"), (40, "witness_mweb_pegin")]),
                self.transaction(
                    "03",
                    [f"{'aa' * 32}:0", f"{'02' * 32}:1"],
                    [(120, "witness_mweb_hogaddr"), (15, "pubkeyhash")],
                ),
            ],
        }

    @staticmethod
    def transaction(name: str, spent: list[str], made: list[tuple[int, str]]) -> dict[str, Any]:
        coins = [coin.split(":") for coin in spent]
        return {
            "txid": name * 32,
            "vin": [{"txid": txid, "vout": int(n)} for txid, n in coins] or [{"coinbase": "00"}],
            "vout": [
                {"n": n, "value": round(sat / COIN, 8), "scriptPubKey": {"type": kind}}
                for n, (sat, kind) in enumerate(made)
            ],
        }

    @property
    def body(self) -> bytes:
        return json.dumps(self.block).encode()


def test_flows_of_a_block_with_mweb_add_up_with_the_fee() -> None:
    case = Mweb()
    pegs, after = read_pegs(case.body, case.before, "block 1")
    assert pegs.flows == {"02" * 32: 40, "03" * 32: -20}  # 15 and a fee of 5
    assert after == Holder(("03" * 32, 0), 120) == holder_after(case.body, "block 1")
    assert pegs.made == {("02" * 32, 1), ("03" * 32, 0)}
    assert sum(pegs.flows.values()) == after.value - case.before.value


def test_a_pool_that_gives_more_than_it_has_is_refused() -> None:
    case = Mweb()
    case.block["tx"][2]["vout"][1]["value"] = 0.00000021
    with pytest.raises(LedgerError, match="more money leaves MWEB than was in it: 1"):
        read_pegs(case.body, case.before, "block 1")


@pytest.mark.parametrize(
    "spent", [[], ["02:1"], ["aa:0"], ["aa:0", "02:1", "02:1"], ["aa:0", "02:0"]]
)
def test_a_peg_in_that_is_not_taken_up_is_refused(spent: list[str]) -> None:
    case = Mweb()
    coins = [coin.split(":") for coin in spent]
    case.block["tx"][2]["vin"] = [{"txid": txid * 32, "vout": int(n)} for txid, n in coins]
    with pytest.raises(LedgerError, match="does not spend the pool and all peg-ins"):
        read_pegs(case.body, case.before, "block 1")


def test_a_block_with_mweb_but_without_an_integrating_transaction_is_refused() -> None:
    case = Mweb()
    del case.block["tx"][2]
    with pytest.raises(LedgerError, match="no integrating transaction"):
        read_pegs(case.body, case.before, "block 1")


def check_mutants(times: int) -> None:
    random, case, good = Random(2), Mweb(), 0
    body = case.body
    for _ in range(times):
        try:
            pegs, after = read_pegs(mutated(body, random), case.before, "block 1")
        except CoinhazeError:
            continue
        good += 1
        assert sum(pegs.flows.values()) == after.value - case.before.value
    assert 0 < good < times


def test_no_mutant_of_a_block_with_mweb_brings_out_another_kind_of_error() -> None:
    check_mutants(2000)


@pytest.mark.long
def test_no_mutant_of_many_with_mweb_brings_out_another_kind_of_error() -> None:
    check_mutants(20_000)
