"""One test a rule: a folder that breaks it is refused by an error that names file and row."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coinhaze.errors import InputError, LedgerError
from coinhaze.ledger import CoinLedger, read_folder, write_folder
from ledger import folders
from ledger.folders import put, repeat_rows, spoil

Change = Callable[[Path], object]

# coins(): transactions x m1 m2 p1 p2; outputs m1:0 m2:0 x:3 p1:0 p1:1 p1:2 p2:0;
# inputs p1 <- m1:0, p1 <- x:3, p2 <- p1:1; owners miner ann bob p1:1 p1:2.
COINS: dict[str, tuple[Change, str, str]] = {
    "row of another table out of range": (
        lambda f: spoil(f, "inputs", "output", put(1, 99)),
        "inputs.parquet: row 1",
        "output is not one of the 7 outputs: 99",
    ),
    "negative row": (
        lambda f: spoil(f, "outputs", "owner", put(2, -1)),
        "outputs.parquet: row 2",
        "owner is not one of the 5 owners: -1",
    ),
    "output number out of range": (
        lambda f: spoil(f, "outputs", "vout", put(6, 2**32)),
        "outputs.parquet: row 6",
        "vout is not a whole number from 0 to 4294967295: 4294967296",
    ),
    "two outputs with one number": (
        lambda f: spoil(f, "outputs", "vout", put(4, 0)),
        "outputs.parquet: row 4",
        "two outputs with one number: 'p1:0'",
    ),
    "earlier transaction last": (
        lambda f: repeat_rows(f, "transactions", [1, 0, 2, 3, 4]),
        "transactions.parquet: row 1",
        "an earlier transaction after one of the window: 'x'",
    ),
    "outputs out of order": (
        lambda f: repeat_rows(f, "outputs", [1, 0, 2, 3, 4, 5, 6]),
        "outputs.parquet: row 1",
        "out of order",
    ),
    "inputs out of order": (
        lambda f: repeat_rows(f, "inputs", [2, 0, 1]),
        "inputs.parquet: row 1",
        "out of order",
    ),
    "input of an earlier transaction": (
        lambda f: spoil(f, "inputs", "tx", put(0, 0)),
        "inputs.parquet: row 0",
        "belongs to a transaction before the window: 'x'",
    ),
    "coin spent twice": (
        lambda f: spoil(f, "inputs", "output", put(2, 0)),
        "inputs.parquet: row 2",
        "a coin spent twice: 'm1:0' (also in row 0 by p1)",
    ),
    "coin spent before it is made": (
        lambda f: spoil(f, "inputs", "output", put(0, 6)),
        "inputs.parquet: row 0",
        "a coin spent before it is made: 'p2:0'",
    ),
    "own output spent": (
        lambda f: spoil(f, "inputs", "output", put(0, 3)),
        "inputs.parquet: row 0",
        "a transaction that spends its own output: 'p1:0'",
    ),
    "unspendable spent": (
        lambda f: spoil(f, "inputs", "output", put(2, 5)),
        "inputs.parquet: row 2",
        "spends a coin that can never be spent: 'p1:2'",
    ),
    "outputs above inputs": (
        lambda f: spoil(f, "outputs", "value", put(3, 38)),
        "transactions.parquet: row 3",
        "outputs above inputs: 'p1: 58 out, 57 in'",
    ),
    "negative value": (
        lambda f: spoil(f, "outputs", "value", put(3, -1)),
        "outputs.parquet: row 3",
        "value is negative: -1",
    ),
    "value missing": (
        lambda f: spoil(f, "outputs", "value", put(3, None)),
        "outputs.parquet: row 3",
        "value is missing",
    ),
    "value a fraction": (
        lambda f: spoil(f, "outputs", "value", put(3, 0.5)),
        "outputs.parquet",
        "column value holds double, not amounts",
    ),
    "coinbase that spends": (
        lambda f: spoil(f, "transactions", "coinbase", put(3, True)),
        "transactions.parquet: row 3",
        "a coinbase that spends: 'p1'",
    ),
    "coinbase before the window": (
        lambda f: spoil(f, "transactions", "coinbase", put(0, True)),
        "transactions.parquet: row 0",
        "a coinbase before the window: 'x'",
    ),
    "coinbase not marked": (
        lambda f: spoil(f, "transactions", "coinbase", put(1, False)),
        "transactions.parquet: row 1",
        "no inputs, but not marked as a coinbase: 'm1'",
    ),
    "earlier coin never spent": (
        lambda f: repeat_rows(f, "inputs", [0, 2]),
        "outputs.parquet: row 2",
        "an earlier coin that the window never spends: 'x:3'",
    ),
    "txid twice": (
        lambda f: spoil(f, "transactions", "txid", put(2, "m1")),
        "transactions.parquet: row 2",
        "txid is there twice: 'm1' (see row 1)",
    ),
    "txid missing": (
        lambda f: spoil(f, "transactions", "txid", put(2, None)),
        "transactions.parquet: row 2",
        "txid is missing",
    ),
    "txid empty": (
        lambda f: spoil(f, "transactions", "txid", put(2, "")),
        "transactions.parquet: row 2",
        "txid is missing",
    ),
    "control character in a name": (
        lambda f: spoil(f, "owners", "name", put(1, "an\nn")),
        "owners.parquet: row 1",
        "name holds a control character: 'an\\nn'",
    ),
    "owner twice": (
        lambda f: spoil(f, "owners", "name", put(1, "miner")),
        "owners.parquet: row 1",
        "name is there twice: 'miner' (see row 0)",
    ),
    "owner that is no coin marked as one": (
        lambda f: spoil(f, "owners", "is_coin", put(0, True)),
        "owners.parquet: row 0",
        "marked as a coin, but owns no output of its name: 'miner'",
    ),
    "height negative": (
        lambda f: spoil(f, "transactions", "height", put(1, -7)),
        "transactions.parquet: row 1",
        "height is not a whole number from 0 to 9223372036854775807: -7",
    ),
    "flag missing": (
        lambda f: spoil(f, "outputs", "spendable", put(1, None)),
        "outputs.parquet: row 1",
        "spendable is missing",
    ),
    "text for numbers": (
        lambda f: spoil(f, "inputs", "tx", lambda v: v.__setitem__(slice(None), ["a"] * 3)),
        "inputs.parquet: row 0",
        "tx is not one of the 5 transactions: 'a'",
    ),
    "lost duplicate coinbase not renamed": (
        lambda f: rename_lost(f),
        "transactions.parquet: row 1",
        "the lost one of a duplicate id",
    ),
    "lost duplicate coinbase spendable": (
        lambda f: spoil(f, "transactions", "txid", put(2, DUPLICATE + "@91722")),
        "outputs.parquet: row 1",
        "its transaction's id was used again",
    ),
}


def rename_lost(folder: Path) -> None:
    spoil(folder, "transactions", "txid", put(1, DUPLICATE))
    spoil(folder, "transactions", "height", put(1, 91722))


DUPLICATE = "e3bf3d07d4b0375638d5f1db5255fe07ba2c4cb067cd81b84ee974b6585fb468"

SHIELDED: dict[str, tuple[Change, str, str]] = {
    "unknown pool": (
        lambda f: spoil(f, "pool_flows", "pool", put(1, "cave")),
        "pool_flows.parquet: row 1",
        "unknown pool: 'cave'",
    ),
    "pool missing": (
        lambda f: spoil(f, "pool_flows", "pool", put(1, None)),
        "pool_flows.parquet: row 1",
        "unknown pool",
    ),
    "more shielded than came in": (
        lambda f: spoil(f, "pool_flows", "into_pool", put(0, 51)),
        "transactions.parquet: row 1",
        "outputs above inputs: 'in: 51 out, 50 in'",
    ),
    "more out than the pool paid": (
        lambda f: spoil(f, "pool_flows", "into_pool", put(1, -7)),
        "transactions.parquet: row 2",
        "outputs above inputs: 'out: 8 out, 7 in'",
    ),
    "flow missing": (
        lambda f: spoil(f, "pool_flows", "into_pool", put(0, None)),
        "pool_flows.parquet: row 0",
        "into_pool is missing",
    ),
    "flow above 2^256 - 1": (
        lambda f: spoil(
            f,
            "pool_flows",
            "into_pool",
            lambda v: v.__setitem__(slice(None), ["1", str(-(2**256))]),
        ),
        "pool_flows.parquet: row 1",
        "into_pool is above 2^256 - 1",
    ),
    "flows out of order": (
        lambda f: repeat_rows(f, "pool_flows", [1, 0]),
        "pool_flows.parquet: row 1",
        "out of order",
    ),
}

RINGS: dict[str, tuple[Change, str, str]] = {
    "chances that do not add up": (
        lambda f: spoil(f, "rings", "probability", put(0, 0.5)),
        "rings.parquet: row 0",
        "a posterior that is no distribution: 1.25",
    ),
    "negative chance": (
        lambda f: spoil(f, "rings", "probability", put(0, -0.25)),
        "rings.parquet: row 0",
        "probability is no probability: -0.25",
    ),
    "chance that is no number": (
        lambda f: spoil(f, "rings", "probability", put(2, float("nan"))),
        "rings.parquet: row 2",
        "probability is no probability: nan",
    ),
    "rings out of order": (
        lambda f: spoil(f, "rings", "vin", put(0, 1)),
        "rings.parquet: row 1",
        "out of order: sort by vin",
    ),
    "values beside rings": (
        lambda f: spoil(f, "outputs", "value", put(0, 5)),
        "outputs.parquet",
        "values beside rings",
    ),
}

ACCOUNTS: dict[str, tuple[Change, str, str]] = {
    "account out of range": (
        lambda f: spoil(f, "transfers", "to", put(2, 3)),
        "transfers.parquet: row 2",
        "to is not one of the 3 accounts: 3",
    ),
    "account twice": (
        lambda f: spoil(f, "accounts", "name", put(2, "a")),
        "accounts.parquet: row 2",
        "name is there twice: 'a' (see row 0)",
    ),
    "id twice": (
        lambda f: spoil(f, "transfers", "id", put(1, "t:0")),
        "transfers.parquet: row 1",
        "id is there twice",
    ),
    "amount missing": (
        lambda f: spoil(f, "transfers", "amount", put(1, None)),
        "transfers.parquet: row 1",
        "amount is missing",
    ),
    "amount in words": (
        lambda f: spoil(
            f, "transfers", "amount", lambda v: v.__setitem__(slice(None), ["1", "two", "3"])
        ),
        "transfers.parquet: row 1",
        "amount is not a number: 'two'",
    ),
    "fee negative": (
        lambda f: spoil(f, "transfers", "fee", put(0, -1)),
        "transfers.parquet: row 0",
        "fee is negative: -1",
    ),
    "times in words": (
        lambda f: spoil(f, "transfers", "time", lambda v: v.__setitem__(slice(None), ["noon"] * 3)),
        "transfers.parquet: row 0",
        "time is not a whole number from 0 to 9223372036854775807: 'noon'",
    ),
}


def refused(folder: Path, where: str, says: str) -> None:
    with pytest.raises(LedgerError) as caught:
        read_folder(folder)
    assert where in caught.value.where
    assert says in str(caught.value)


@pytest.mark.parametrize("rule", COINS)
def test_rules_of_coins(tmp_path: Path, rule: str) -> None:
    change, where, says = COINS[rule]
    change(write_folder(folders.coins(), tmp_path / "ledger"))
    refused(tmp_path / "ledger", where, says)


@pytest.mark.parametrize("rule", SHIELDED)
def test_rules_of_pools(tmp_path: Path, rule: str) -> None:
    change, where, says = SHIELDED[rule]
    change(write_folder(folders.shielded(), tmp_path / "ledger"))
    refused(tmp_path / "ledger", where, says)


@pytest.mark.parametrize("rule", RINGS)
def test_rules_of_rings(tmp_path: Path, rule: str) -> None:
    change, where, says = RINGS[rule]
    change(write_folder(folders.rings(), tmp_path / "ledger"))
    refused(tmp_path / "ledger", where, says)


# transactions z a b c; ring rows of b: a:0, of c: z:0, a:0; outputs a:0 z:0 b:0
TWO_RINGS: dict[str, tuple[Change, str, str]] = {
    "rings out of the order of transactions": (
        lambda f: repeat_rows(f, "rings", [1, 2, 0]),
        "rings.parquet: row 2",
        "out of order: its transaction comes before that of the row above: 'b'",
    ),
    "ring of an earlier transaction": (
        lambda f: spoil(f, "rings", "tx", put(0, 0)),
        "rings.parquet: row 0",
        "belongs to a transaction before the window: 'z'",
    ),
    "chances that add up to less": (
        lambda f: spoil(f, "rings", "probability", put(1, 0.25)),
        "rings.parquet: row 1",
        "a posterior that is no distribution: 0.75",
    ),
    "member made later": (
        lambda f: spoil(f, "rings", "output", put(1, 3)),
        "rings.parquet: row 1",
        "a transaction that spends its own output: 'c:0'",
    ),
}


@pytest.mark.parametrize("rule", TWO_RINGS)
def test_rules_of_rings_of_two_transactions(tmp_path: Path, rule: str) -> None:
    ledger = CoinLedger.from_transactions(
        [
            {"txid": "a", "outputs": 1},
            {"txid": "b", "outputs": 1, "rings": [["a:0"]], "posteriors": [[1]]},
            {"txid": "c", "outputs": 1, "rings": [["z:0", "a:0"]], "posteriors": [[0.5, 0.5]]},
        ]
    )
    change, where, says = TWO_RINGS[rule]
    change(write_folder(ledger, tmp_path / "ledger"))
    refused(tmp_path / "ledger", where, says)


def test_a_pool_flow_of_an_earlier_transaction_is_refused(tmp_path: Path) -> None:
    spent = [{"txid": "x", "vout": 0, "value": 9}]
    ledger = CoinLedger.from_transactions(
        [{"txid": "in", "inputs": spent, "pools": {"sapling": 9}}]
    )
    folder = write_folder(ledger, tmp_path / "ledger")
    spoil(folder, "pool_flows", "tx", put(0, 0))
    refused(folder, "pool_flows.parquet: row 0", "belongs to a transaction before the window: 'x'")


@pytest.mark.parametrize("rule", ACCOUNTS)
def test_rules_of_accounts(tmp_path: Path, rule: str) -> None:
    change, where, says = ACCOUNTS[rule]
    change(write_folder(folders.accounts(), tmp_path / "ledger"))
    refused(tmp_path / "ledger", where, says)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    folder = write_folder(folders.coins(), tmp_path / "ledger")
    for file in sorted(folder.glob("*.parquet")):
        whole = pq.read_table(file)
        for column in whole.column_names:
            pq.write_table(whole.drop_columns([column]), file)
            refused(folder, file.name, f"no column {column!r}")
        pq.write_table(whole, file)
    read_folder(folder)


def test_a_missing_or_damaged_file_is_named(tmp_path: Path) -> None:
    folder = write_folder(folders.accounts(), tmp_path / "ledger")
    file = folder / "transfers.parquet"
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(InputError, match=r"transfers\.parquet: cannot be read as Parquet"):
        read_folder(folder)
    file.unlink()
    with pytest.raises(InputError, match=r"transfers\.parquet: no such file"):
        read_folder(folder)


def test_text_that_is_no_text_is_refused(tmp_path: Path) -> None:
    folder = write_folder(folders.accounts(), tmp_path / "ledger")
    names = pa.array([b"a", b"\xff", b"c"]).view(pa.string())
    pq.write_table(pa.table({"name": names}), folder / "accounts.parquet")
    refused(folder, "accounts.parquet", "name is damaged")


def test_tables_of_ones_own_are_checked_too() -> None:
    tables = folders.coins().tables()
    assert folders.same(CoinLedger.from_columns(tables), folders.coins())
    spent = tables["inputs"].set_column(1, "output", pa.array([0, 2, 0]))
    with pytest.raises(LedgerError, match="inputs row 2: a coin spent twice"):
        CoinLedger.from_columns(tables | {"inputs": spent})
    with pytest.raises(LedgerError, match="rings: this table is missing"):
        CoinLedger.from_columns({k: v for k, v in tables.items() if k != "rings"})
