"""A wallet's coins asked of a real node: walked back, cached, and equal to the whole chain."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import coinhaze
from coinhaze import cli
from coinhaze.errors import InputError, LedgerError, SourceUnreachable
from coinhaze.formats.bitcoin_raw.networks import BITCOIN
from coinhaze.ledger.coins import Input, Output, Transaction
from coinhaze.nodes.bitcoin import BitcoinNode
from coinhaze.nodes.transactions import TransactionCache, default_cache, read_transaction
from coinhaze.store.store import Store
from coinhaze.store.sync import catch_up
from nodes.daemons import Daemon, bitcoin_daemon

A, B = "a" * 64, "b" * 64
# A payment to a public key and to its hash, of a coin of a witness address.
TOLD: dict[str, Any] = {
    "txid": A,
    "vin": [
        {
            "txid": B,
            "vout": 1,
            "prevout": {
                "value": 0.3,
                "scriptPubKey": {"hex": "0014751e76e8199196d454941c45d1b3a323f1433bd6"},
            },
        }
    ],
    "vout": [
        {"n": 0, "value": 0.1, "scriptPubKey": {"hex": "76a914" + "00" * 20 + "88ac"}},
        {"n": 1, "value": 0, "scriptPubKey": {"hex": "6a0100"}},
    ],
}


class Done(NamedTuple):
    code: int
    stdout: str
    stderr: str


def command(*asked: str, cookie: Path, caches: Path) -> Done:
    """Run the command here: a process of its own takes seconds to start."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["coinhaze", *asked])
        patch.setenv("COINHAZE_RPC_COOKIE", str(cookie))
        patch.setenv("XDG_CACHE_HOME", str(caches))
        with pytest.raises(SystemExit) as stop:
            cli.main()
    code = stop.value.code
    return Done(code if isinstance(code, int) else 0, out.getvalue(), err.getvalue())


class Wallet:
    """A regtest node whose purse has one coin mixed of many, and what it takes to ask for it."""

    def __init__(self, node: Daemon, folder: Path) -> None:
        self.node = node
        self.folder = folder
        node.mine(106)
        # Six coinbases of 50 into one payment, that on in part, and that on together with another.
        self.spent = node.text("sendtoaddress", node.text("getnewaddress"), "299.9")
        node.mine(1)
        second = node.text("sendtoaddress", node.text("getnewaddress"), "120")
        node.mine(1)
        self.coin = node.text("sendtoaddress", node.text("getnewaddress"), "299")
        node.mine(1)
        assert second != self.spent
        self.coins = folder / "coins.json"

    def unspent(self, txid: str) -> list[str]:
        found = self.node.ask("listunspent")
        assert isinstance(found, list)
        return [f"{c['txid']}:{c['vout']}" for c in found if c["txid"] == txid]

    def ask(self, coins: list[str], *options: str) -> Done:
        self.coins.write_text(json.dumps(coins))
        asked = ("wallet", f"bitcoin+{self.node.url}", "--nodes", str(self.coins), *options)
        return command(*asked, cookie=self.node.cookie, caches=self.folder / "caches")

    def tell(self, *options: str) -> tuple[dict[str, Any], str]:
        done = self.ask(self.unspent(self.coin), "--json", *options)
        assert done.code == 0, done.stderr
        return json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def wallet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wallet]:
    with bitcoin_daemon("bitcoind", "-txindex=1", "-rest") as node:
        yield Wallet(node, tmp_path_factory.mktemp("wallet"))


def test_all_of_a_past_gives_what_the_whole_chain_gives(wallet: Wallet, tmp_path: Path) -> None:
    told, said = wallet.tell("--accuracy", "0")
    assert "0 found in the cache" in said
    store = tmp_path / "store"
    with Store(store) as opened:
        catch_up(opened, BitcoinNode(wallet.node.rpc), name="node")
    names = [coin["coin"] for coin in told["coins"]]
    scores = coinhaze.score(store, nodes=names)
    assert [c["bits"] for c in told["coins"]] == pytest.approx(scores.bits.tolist(), abs=1e-11)
    assert [c["steps"] for c in told["coins"]] == pytest.approx(scores.steps.tolist(), rel=1e-11)
    assert min(scores.bits) > 2
    assert all(c["not_followed"] == 0 for c in told["coins"])
    again, said = wallet.tell("--accuracy", "0")
    assert "0 transactions requested from the node" in said
    assert again["coins"] == told["coins"]
    assert (wallet.folder / "caches" / "coinhaze" / "transactions.sqlite").exists()


def test_a_part_gives_an_interval_that_holds_the_whole(wallet: Wallet) -> None:
    whole = wallet.tell("--accuracy", "0")[0]["coins"][0]["bits"]
    for maximum in ("1", "2", "4"):
        told, said = wallet.tell(
            "--accuracy", "0", "--max-transactions", maximum, "--cache", ":memory:"
        )
        coin = told["coins"][0]
        assert coin["bits_low"] <= whole <= coin["bits_high"]
        assert coin["not_followed"] > 0
        assert f"{maximum} transactions requested from the node" in said
        assert "not all intervals are within 0.0 bits" in said
        assert "Not all of the past was fetched" in told["how_sure"][0]
    assert whole == pytest.approx(
        wallet.tell("--accuracy", "0")[0]["coins"][0]["bits_high"], abs=1e-9
    )
    wide = wallet.tell("--accuracy", "9", "--cache", ":memory:")[1]
    assert "1 transactions requested" in wide


def test_coins_a_node_does_not_have_are_one_line(wallet: Wallet) -> None:
    address = wallet.node.text("getnewaddress")
    for coin, code, words in (
        (f"{wallet.spent}:0", 3, "is spent already"),
        (f"{A}:0", 3, f"no coin '{A}:0'"),
        (f"{wallet.coin}:9", 3, "has no such output"),
        (address, 2, "does not tell the coins of"),
    ):
        coins = [coin]
        if "spent" in words:
            mine = wallet.unspent(wallet.spent)
            coins = [n for n in (f"{wallet.spent}:0", f"{wallet.spent}:1") if n not in mine][:1]
        done = wallet.ask(coins)
        assert (done.code, done.stdout) == (code, "")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
    other = command("wallet", "zcash+http://127.0.0.1:1", "--nodes", str(wallet.coins),
                    cookie=wallet.node.cookie, caches=wallet.folder)  # fmt: skip
    assert other.code == 2
    assert "bitcoin+http://HOST:PORT: take one of these" in other.stderr
    done = wallet.ask([f"{A}:0"], "--complete")
    assert done.code == 2
    assert "no other settings" in done.stderr


def test_a_node_without_an_index_says_what_to_do(tmp_path: Path) -> None:
    with bitcoin_daemon("bitcoind") as node:
        node.mine(1)
        (tmp_path / "coins.txt").write_text(f"{A}:0\n")
        asked = ("--nodes", str(tmp_path / "coins.txt"), "--cache", ":memory:")
        url = f"bitcoin+{node.url}"
        done = command("wallet", url, *asked, cookie=node.cookie, caches=tmp_path)
        assert done.code == 4
        assert "start it with -txindex=1" in done.stderr


def body(**other: Any) -> bytes:
    return json.dumps(TOLD | other).encode()


def test_an_answer_is_read_exactly() -> None:
    read = read_transaction(body(), A, BITCOIN, where="here")
    assert read.inputs == (Input(B, 1, 30_000_000, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"),)
    assert read.outputs[0] == Output(10_000_000, "1111111111111111111114oLvT2", 0, True)
    assert read.outputs[1].spendable is False
    assert read.coinbase is False
    mined = read_transaction(body(vin=[{"coinbase": "00"}]), A, BITCOIN, where="here")
    assert mined.coinbase is True
    assert mined.inputs == ()


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (body(txid=B), SourceUnreachable, "gave another transaction"),
        (body(vin=[{"txid": B, "vout": 1}]), SourceUnreachable, "Bitcoin Core 25 or newer"),
        (body(vin=[]), LedgerError, "neither a coinbase nor a payment"),
        (body(vin=[*TOLD["vin"], {"coinbase": "00"}]), LedgerError, "neither a coinbase nor"),
        (body(vin=[TOLD["vin"][0] | {"vout": -1}]), LedgerError, "number of an output"),
        (body(vin=[TOLD["vin"][0] | {"txid": "b"}]), LedgerError, "the id of a transaction"),
        (body(vout=[TOLD["vout"][0] | {"value": 1e-9}]), LedgerError, "fraction of a satoshi"),
        (body(vout=[TOLD["vout"][0] | {"value": -1}]), LedgerError, "no amount of bitcoin"),
        (body(vout=[{"n": 0, "value": 1, "scriptPubKey": {"hex": "zz"}}]), SourceUnreachable,
         "an unknown answer"),
        (b"[]", SourceUnreachable, "an unknown answer"),
        (b"\xff", SourceUnreachable, "an unknown answer"),
    ],
    ids=["other", "old", "nothing", "both", "vout", "txid", "fraction", "negative", "hex", "list",
         "bytes"],
)  # fmt: skip
def test_an_answer_that_is_wrong_is_refused(
    answer: bytes, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        read_transaction(answer, A, BITCOIN, where="here")


def test_a_cache_keeps_networks_apart_and_survives(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "kept.sqlite"
    made = read_transaction(body(), A, BITCOIN, where="here")
    with TransactionCache(file, "bitcoin") as cache:
        cache.keep([made])
    with TransactionCache(file, "bitcoin") as cache:
        assert cache.find([A, B]) == {A: made}
    with TransactionCache(file, "bitcoin regtest") as cache:
        assert cache.find([A]) == {}


def test_a_cache_that_is_damaged_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kept.sqlite"
    file.write_bytes(b"no database, " * 100)
    with pytest.raises(InputError, match="delete it, or name another"):
        TransactionCache(file, "bitcoin")
    file.unlink()
    with TransactionCache(file, "bitcoin") as cache:
        cache.keep([Transaction(A, outputs=(Output(1, None, 0),), coinbase=True)])
        cache._file.execute("UPDATE transactions_1 SET body = x'00'")
        with pytest.raises(InputError, match="cannot be used as a cache"):
            cache.find([A])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "coinhaze" / "transactions.sqlite"
