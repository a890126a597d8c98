import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import coinhaze
from coinhaze.errors import InputError, LedgerError, UsageError
from coinhaze.ledger import AccountLedger, CoinLedger, read_folder, write_folder
from coinhaze.readers import read
from coinhaze.simulate import simulate_hubs, simulate_town
from ledger import folders

Ledger = CoinLedger | AccountLedger

LEDGERS: dict[str, Callable[[], Ledger]] = {
    "coins": folders.coins,
    "shielded": folders.shielded,
    "rings": folders.rings,
    "accounts": folders.accounts,
    "town": lambda: simulate_town(transactions=200, people=20),
    "hubs": lambda: simulate_hubs(people=200),
    "no transactions": lambda: CoinLedger.from_transactions([]),
    "no transfers": lambda: AccountLedger.from_transfers([]),
    "complete": lambda: CoinLedger.from_transactions(
        [{"txid": "m", "outputs": [{"value": 2**256 - 1}, {"value": 2**256 - 1}]}], complete=True
    ),
}


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_comes_back_as_it_was_written(tmp_path: Path, name: str) -> None:
    ledger = LEDGERS[name]()
    assert write_folder(ledger, tmp_path / "ledger") == tmp_path / "ledger"
    assert folders.same(read_folder(tmp_path / "ledger"), ledger)
    for form in (None, "folder"):
        if name.startswith("no "):
            with pytest.raises(InputError, match=f"{name}, so there is nothing to score"):
                read(tmp_path / "ledger", format=form)
        else:
            assert folders.same(read(tmp_path / "ledger", format=form), ledger)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ledger"]


def test_the_same_ledger_makes_the_same_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_folder(folders.shielded(), tmp_path / name)
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_tables_are_read_the_same_in_one_piece_and_in_many(tmp_path: Path) -> None:
    ledger = simulate_town(transactions=60)
    write_folder(ledger, tmp_path / "one")
    write_folder(ledger, tmp_path / "many")
    for path in (tmp_path / "many").glob("*.parquet"):
        table = pq.read_table(path)
        pq.write_table(table, path, row_group_size=7)
        pieces = pq.ParquetFile(path).num_row_groups
        assert pieces == -(-len(table) // 7) or not len(table)
        assert pq.ParquetFile(tmp_path / "one" / path.name).num_row_groups <= 1
    one, many = (read_folder(tmp_path / name) for name in ("one", "many"))
    assert isinstance(one, CoinLedger)
    assert isinstance(many, CoinLedger)
    assert one.tables() == many.tables()


def test_large_amounts_are_32_bytes_each(tmp_path: Path) -> None:
    write_folder(folders.accounts(), tmp_path / "ledger")
    amounts = pq.read_table(tmp_path / "ledger" / "transfers.parquet")["amount"].to_pylist()
    assert [int.from_bytes(a, "big") for a in amounts] == [2**256 - 1, 5, 0]


def test_scores_are_those_of_the_ledger_itself(tmp_path: Path) -> None:
    town = simulate_town(transactions=200, people=20)
    write_folder(town, tmp_path / "ledger")
    assert coinhaze.score(str(tmp_path / "ledger")).to_arrow() == coinhaze.score(town).to_arrow()


def test_a_ledger_folder_is_replaced_whole(tmp_path: Path) -> None:
    write_folder(folders.coins(), tmp_path / "ledger")
    write_folder(folders.accounts(), tmp_path / "ledger")
    assert folders.same(read_folder(tmp_path / "ledger"), folders.accounts())
    assert not (tmp_path / "ledger" / "outputs.parquet").exists()


def test_nothing_but_a_ledger_folder_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    for name in ("file", "empty"):
        with pytest.raises(UsageError, match="no ledger folder"):
            write_folder(folders.coins(), tmp_path / name)
    assert (tmp_path / "file").read_text() == "mine"
    write_folder(folders.coins(), tmp_path / "ledger")
    (tmp_path / "ledger" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"notes\.txt"):
        write_folder(folders.accounts(), tmp_path / "ledger")
    (tmp_path / "link").symlink_to(tmp_path / "ledger")
    with pytest.raises(UsageError, match="no ledger folder"):
        write_folder(folders.accounts(), tmp_path / "link")
    with pytest.raises(InputError, match="there is no folder"):
        write_folder(folders.accounts(), tmp_path / "no" / "ledger")


def test_a_failed_write_leaves_the_earlier_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(folders.coins(), tmp_path / "ledger")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(coinhaze.CoinhazeError, match="No space left on device; it is as it was"):
        write_folder(folders.accounts(), tmp_path / "ledger")
    assert folders.same(read_folder(tmp_path / "ledger"), folders.coins())
    assert [p.name for p in tmp_path.iterdir()] == ["ledger"]


@pytest.mark.parametrize("at", [1, 2])
def test_an_interrupt_between_renames_leaves_the_earlier_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    write_folder(folders.coins(), tmp_path / "ledger")
    rename, calls = Path.rename, iter(range(1, 10))

    def interrupted(self: Path, target: Path) -> Path:
        call = next(calls)
        if call == at == 2:
            raise KeyboardInterrupt
        moved = rename(self, target)
        if call == at == 1:
            raise KeyboardInterrupt
        return moved

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_folder(folders.accounts(), tmp_path / "ledger")
    assert folders.same(read_folder(tmp_path / "ledger"), folders.coins())
    assert [p.name for p in tmp_path.iterdir()] == ["ledger"]


@pytest.mark.parametrize(
    ("about", "says"),
    [
        ("{", "not JSON"),
        ("[]", "does not describe a ledger"),
        ({"kind": "coins"}, "does not describe a ledger"),
        ({"coinhaze_ledger": 2, "kind": "coins"}, "unknown version: 2 (this coinhaze reads"),
        ({"coinhaze_ledger": True, "kind": "coins"}, "unknown version"),
        ({"coinhaze_ledger": 1, "kind": "notes"}, "unknown kind"),
        ({"coinhaze_ledger": 1, "kind": ["coins"]}, "unknown kind"),
        ({"coinhaze_ledger": 1, "kind": "coins", "complete": 1}, "complete is not true or false"),
        ({"coinhaze_ledger": 1, "kind": "coins", "pool_values": 5}, "pool_values is no table"),
        ({"coinhaze_ledger": 1, "kind": "coins", "pool_values": {"orchard": -5}}, "is negative"),
        ({"coinhaze_ledger": 1, "kind": "coins", "pool_values": {"cave": 5}}, "unknown pool"),
        ({"coinhaze_ledger": 1, "kind": "accounts"}, "accounts.parquet: no such file"),
        ({"coinhaze_ledger": 1, "kind": "coins", "complete": True}, "in a complete ledger"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(
    tmp_path: Path, about: object, says: str
) -> None:
    write_folder(folders.coins(), tmp_path / "ledger")
    text = about if isinstance(about, str) else json.dumps(about)
    (tmp_path / "ledger" / "ledger.json").write_text(text)
    with pytest.raises(InputError) as caught:
        read(tmp_path / "ledger")
    assert says in str(caught.value)


def test_complete_may_be_requested_of_a_folder(tmp_path: Path) -> None:
    write_folder(folders.coins(), tmp_path / "ledger")
    with pytest.raises(LedgerError, match="in a complete ledger"):
        read(tmp_path / "ledger", complete=True)


def test_a_folder_stands_alone(tmp_path: Path) -> None:
    write_folder(folders.coins(), tmp_path / "ledger")
    with pytest.raises(UsageError, match="name it alone"):
        read([tmp_path / "ledger", tmp_path / "ledger"])
    with pytest.raises(InputError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(InputError, match=r"without ledger\.json"):
        read_folder(tmp_path)
