"""Events of Tornado Cash: pools as accounts, exact amounts, named shortfalls, damage."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

import coinhaze
from coinhaze.errors import CoinhazeError, InputError, LedgerError
from coinhaze.formats import registry as formats
from coinhaze.formats.compression import open_plain
from coinhaze.formats.ethereum import tornado
from formats.test_json_fuzz import FEW, MANY, fuzz, obey

UNIT = 10**17


def word(number: int) -> str:
    return f"0x{number:064x}"


def deposit(leaf: int, block: int) -> dict[str, Any]:
    return {
        "timestamp": str(1_600_000_000 + block),
        "commitment": word(leaf + 7),
        "blockNumber": block,
        "transactionHash": word(1000 + leaf),
        "leafIndex": leaf,
    }


def withdrawal(number: int, block: int, to: int, fee: int = 0) -> dict[str, Any]:
    return {
        "to": f"0x{to:040X}",
        "fee": str(fee),
        "blockNumber": block,
        "nullifierHash": word(number),
        "transactionHash": word(2000 + number),
    }


DEPOSITS = [deposit(0, 10), deposit(1, 11), deposit(2, 13)]
WITHDRAWALS = [withdrawal(0, 12, 0xAB), withdrawal(1, 13, 0xCD, fee=UNIT // 4)]


def write(folder: Path, kind: str, events: Any, pool: str = "1_eth_0.1") -> Path:
    path = folder / f"{kind}_{pool}.json.gz"
    path.write_bytes(zlib.compress(json.dumps(events).encode(), 9))
    return path


def both(folder: Path) -> list[str | Path]:
    return [write(folder, "deposits", DEPOSITS), write(folder, "withdrawals", WITHDRAWALS)]


def test_a_pool_mixes_what_is_in_it(tmp_path: Path) -> None:
    paths = both(tmp_path)
    assert {formats.format_of(Path(p)) for p in paths} == {"tornado"}
    scores = coinhaze.score(paths, time="temporal", nodes="all")
    row = {n: k for k, n in enumerate(scores.chain.graph.names.of(scores.nodes).to_pylist())}
    first, second = f"0x{0xAB:040x}", f"0x{0xCD:040x}"
    # The first is of either deposit. One of the two is left when the third joins it.
    assert scores.bits[row[first]] == pytest.approx(1, abs=1e-9)
    assert scores.bits[row[second]] == pytest.approx(1.5, abs=1e-9)
    assert coinhaze.origins(paths, second, time="temporal").sources().to_pylist()[0] == {
        "source": "deposit:eth_0.1:2:0",
        "probability": pytest.approx(0.5),
    }


def test_amounts_are_exact_and_fees_go_to_the_relayers(tmp_path: Path) -> None:
    ledger = coinhaze.read(both(tmp_path))
    assert isinstance(ledger, coinhaze.AccountLedger)
    rows = ledger.tables()["transfers"].to_pylist()
    paid = {(r["from"], r["to"]): r["amount"] for r in rows}
    assert paid["deposit:eth_0.1:0", "pool:eth_0.1"] == UNIT
    assert paid["pool:eth_0.1", f"0x{0xCD:040x}"] == UNIT - UNIT // 4
    assert paid["pool:eth_0.1", "relayers:eth_0.1"] == UNIT // 4
    # Inside a block deposits come first.
    order = [r["from"] for r in rows]
    assert order.index("deposit:eth_0.1:2") < len(order) - 1
    assert order[-1] == "pool:eth_0.1"


def test_missing_deposits_are_named(tmp_path: Path) -> None:
    paths = [write(tmp_path, "deposits", DEPOSITS[:1]), write(tmp_path, "withdrawals", WITHDRAWALS)]
    graph = coinhaze.transaction_graph(coinhaze.read(paths), time="temporal")
    assert any(
        note.startswith(f"pool:eth_0.1 paid out {UNIT} more than was paid in: deposits are missing")
        for note in graph.notes
    )
    whole = coinhaze.transaction_graph(coinhaze.read(both(tmp_path)), time="temporal")
    assert not whole.notes


def test_two_pools_of_one_money_are_two_accounts(tmp_path: Path) -> None:
    # One transaction, one leaf in each pool: told apart by the amount.
    others = [event | {"commitment": word(99 + event["leafIndex"])} for event in DEPOSITS]
    more = write(tmp_path, "deposits", others, pool="1_eth_100")
    ledger = coinhaze.read([*both(tmp_path), more])
    assert isinstance(ledger, coinhaze.AccountLedger)
    assert {"pool:eth_0.1", "pool:eth_100"} <= set(ledger.accounts.to_pylist())
    assert len(ledger) == 9


@pytest.mark.parametrize(
    ("kind", "pool", "change", "fault"),
    [
        ("deposits", "1_eth_0.1", {"leafIndex": -1}, r"leafIndex out of range.*-1"),
        ("deposits", "1_eth_0.1", {"leafIndex": 2**20}, r"leafIndex out of range"),
        ("deposits", "1_eth_0.1", {"timestamp": "x"}, r"timestamp is not a whole number"),
        ("deposits", "1_eth_0.1", {"commitment": "0x1"}, r"commitment is not 0x and 64 hex"),
        ("deposits", "1_doge_5", {}, r"a currency whose smallest unit is not known: 'doge'"),
        ("deposits", "1_usdc_0.0000001", {}, r"more than 6 digits"),
        ("deposits", "1_eth_0", {}, r"or none at all"),
        ("deposits", "eth", {}, r"the name of the file must say which pool"),
        (
            "withdrawals",
            "1_eth_0.1",
            {"fee": str(UNIT + 1)},
            r"a fee of 0.1.* in a pool of 0.1 ETH",
        ),
        ("withdrawals", "1_eth_0.1", {"fee": "1.5"}, r"fee"),
        ("withdrawals", "1_eth_0.1", {"to": "0x12"}, r"recipient is no address: '0x12'"),
        ("withdrawals", "1_eth_0.1", {"blockNumber": 2**31}, r"blockNumber out of range"),
    ],
)
def test_a_fault_is_named_with_its_file(
    tmp_path: Path, kind: str, pool: str, change: dict[str, Any], fault: str
) -> None:
    good = (DEPOSITS if kind == "deposits" else WITHDRAWALS)[0]
    path = write(tmp_path, kind, [good | change], pool)
    with pytest.raises(LedgerError, match=fault) as error:
        list(tornado.batches(path))
    assert str(path) in str(error.value)


def test_zlib_is_unpacked_whatever_its_name_and_damage_is_reported(tmp_path: Path) -> None:
    text = json.dumps(DEPOSITS * 500).encode()
    path = tmp_path / "f.gz"
    for packed in (zlib.compress(text, 1), zlib.compress(text, 9), gzip.compress(text), text):
        path.write_bytes(packed)
        with open_plain(path) if packed is not text else open(path, "rb") as file:
            assert file.read() == text
    deposits = tmp_path / "deposits_1_eth_0.1.json"
    for cut in (zlib.compress(text)[:-9], zlib.compress(text) + b"more"):
        deposits.write_bytes(cut)
        with pytest.raises(InputError, match="cannot be read"):
            list(tornado.batches(deposits))


def test_two_bytes_do_not_make_a_packed_file(tmp_path: Path) -> None:
    path = tmp_path / "blk.dat"
    path.write_bytes(b"\x78\x01\xff\xff\xff\xff not packed")
    with open_plain(path) as file:
        assert file.read().endswith(b"not packed")


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["deposits", "withdrawals"])
def test_damaged_events_give_rows_that_obey_or_an_error(
    tmp_path: Path, kind: str, count: int
) -> None:
    def read(path: Path) -> None:
        for batch in tornado.batches(path):
            obey(dict(batch.tables))
            for row in batch.tables["transfers"].to_pylist() if batch.tables else ():
                assert 0 < int(row["amount"]) <= UNIT

    good = DEPOSITS if kind == "deposits" else WITHDRAWALS
    fuzz(read, tmp_path / f"{kind}_1_eth_0.1.json", json.dumps(good).encode(), count)


def test_withdrawals_newest_first_are_turned_round_inside_their_block_too(tmp_path: Path) -> None:
    paid = [withdrawal(0, 12, 0xAB), withdrawal(1, 13, 0xCD), withdrawal(2, 13, 0xEF)]
    found = []
    for events in (paid, paid[::-1]):
        paths = [write(tmp_path, "deposits", DEPOSITS), write(tmp_path, "withdrawals", events)]
        ledger = coinhaze.read(paths)
        found.append([row["to"] for row in ledger.tables()["transfers"].to_pylist()])
    assert found[0] == found[1]


CHAINS = {
    "1_eth_0.1": ("eth", "eth_0.1"),
    "eth_0.1": ("eth", "eth_0.1"),
    "5_eth_0.1": ("eth@5", "eth_0.1@5"),
    "10_eth_100": ("eth@10", "eth_100@10"),
    "42161_eth_1": ("eth@42161", "eth_1@42161"),
    "56_bnb_0.1": ("bnb", "bnb_0.1"),
    "bnb_0.1": ("bnb", "bnb_0.1"),
    "100_xdai_100000": ("xdai", "xdai_100000"),
    "137_matic_1000": ("matic", "matic_1000"),
    "43114_avax_500": ("avax", "avax_500"),
    "5_cdai_5000": ("cdai@5", "cdai_5000@5"),
}


@pytest.mark.parametrize("pool", CHAINS)
def test_pools_of_every_chain_are_read(tmp_path: Path, pool: str) -> None:
    token, name = CHAINS[pool]
    files = [
        write(tmp_path, "deposits", DEPOSITS, pool),
        write(tmp_path, "withdrawals", [withdrawal(0, 12, 0xAB)], pool),
    ]
    (batch, *_) = tornado.batches(files[0])
    assert set(batch.tables["transfers"]["token"].to_pylist()) == {token}
    assert set(batch.tables["transfers"]["recipient"].to_pylist()) == {f"pool:{name}"}
    # Two deposits were in the pool when the one withdrawal was paid.
    assert coinhaze.score(files, time="temporal")[f"0x{0xAB:040x}"].bits == pytest.approx(1)


def test_one_money_on_two_chains_is_two_tokens(tmp_path: Path) -> None:
    others = [event | {"commitment": word(99)} for event in DEPOSITS]
    files: list[str | Path] = [
        write(tmp_path, "deposits", DEPOSITS, "1_eth_0.1"),
        write(tmp_path, "deposits", others, "10_eth_0.1"),
    ]
    with pytest.raises(CoinhazeError, match=r"2 tokens \(eth, eth@10\).*--token"):
        coinhaze.read(files)
    assert len(coinhaze.read(files, token="eth@10")) == len(DEPOSITS)


def test_one_transaction_may_pay_into_two_pools(tmp_path: Path) -> None:
    files: list[str | Path] = [
        write(tmp_path, "deposits", [DEPOSITS[0] | {"commitment": word(n)}], f"43114_avax_{n}")
        for n in (100, 500)
    ]
    ledger = coinhaze.read(files)
    assert sorted(ledger.amounts.ints()) == [100 * 10**18, 500 * 10**18]  # type: ignore[union-attr]
