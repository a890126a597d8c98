"""A history is whole at every moment: kills, damage, other versions, writers and chains."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from coinhaze import CoinLedger, History
from coinhaze.errors import InputError, LedgerError, ResourceError, UsageError
from coinhaze.history import files
from coinhaze.history.index.sources import joined
from coinhaze.ledger.completeness import Check, Completeness, Status
from coinhaze.report import files as report_files
from history.test_tape import pool

Transactions = list[dict[str, Any]]


class Killed(BaseException):
    """What stops a process in the middle of a write."""


def chain(blocks: int = 12) -> Transactions:
    """Make a chain: a coinbase a block, and a payment that mixes it with what is held."""
    ledger: Transactions = []
    held, worth = {"txid": "c0", "vout": 0}, 50
    for h in range(blocks):
        ledger.append(
            {"txid": f"c{h}", "inputs": [], "outputs": [{"value": 50}, {"value": 7}], "height": h}
        )
        if h:
            spent = [held, {"txid": f"c{h}", "vout": 0}]
            worth += 40
            outputs = [{"value": worth}, {"value": 10}]
            ledger.append({"txid": f"p{h}", "inputs": spent, "outputs": outputs, "height": h})
            held = {"txid": f"p{h}", "vout": 0}
    return ledger


def ledger_of(transactions: Transactions, *, complete: bool = True) -> CoinLedger:
    return CoinLedger.from_transactions(transactions, complete=complete)


def files_of(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir() if file.name != files.LOCK}


def content(path: Path) -> dict[str, bytes]:
    """Give all that a history holds, in whatever pieces it was written."""
    manifest = files.read_manifest(path)
    tables = {
        table: pa.concat_tables(
            [files.read_table(path / piece.file(table)) for piece in manifest.pieces]
        ).combine_chunks()
        for table in files.TABLES
    }
    # A commit in the middle of a month writes down what has changed so far.
    changes = (
        tables["changes"].group_by(["row", "month"]).aggregate([("coins", "sum"), ("value", "sum")])
    )
    changes = changes.filter((pc.field("coins_sum") != 0) | (pc.field("value_sum") != 0))
    tables["changes"] = changes.sort_by([("month", "ascending"), ("row", "ascending")])
    tables |= {t: files.read_table(path / manifest.live_file(t)) for t in files.LIVE}
    return {name: repr(table.to_pydict()).encode() for name, table in tables.items()}


def killing(monkeypatch: pytest.MonkeyPatch, stop: int) -> list[str]:
    """Make the write with number `stop` end half-way, as a kill does; give those begun."""
    begun: list[str] = []
    table, whole = files.write_table, report_files.write_whole

    def write_table(file: Path, content: pa.Table) -> tuple[int, str]:
        begun.append(file.name)
        if len(begun) == stop:
            file.write_bytes(b"half")
            raise Killed
        return table(file, content)

    def write_whole(file: Path, write: Any) -> None:
        begun.append(file.name)
        if len(begun) == stop:
            file.with_name(f".{file.name}.half").write_bytes(b"half")
            raise Killed
        whole(file, write)

    monkeypatch.setattr(files, "write_table", write_table)
    monkeypatch.setattr(files, "write_whole", write_whole)
    return begun


def test_a_kill_at_any_write_leaves_the_last_commit_and_is_made_good(tmp_path: Path) -> None:
    ledger = ledger_of(chain())
    History.index(tmp_path / "fresh", ledger, piece_rows=4)
    expected = content(tmp_path / "fresh")
    stop = 0
    while True:
        stop += 1
        path = tmp_path / str(stop)
        with pytest.MonkeyPatch.context() as patch:
            killing(patch, stop)
            try:
                History.index(path, ledger, piece_rows=4)
            except Killed:
                pass
            else:
                break
        if files.is_history(path):
            before = History.open(path)
            before.verify()
            assert before.manifest.transactions < len(ledger)
        again = History.index(path, ledger, piece_rows=4)
        again.verify()
        assert content(path) == expected
        # Nothing of what was cut short is left.
        named = {name for name, _ in files.all_files(again.manifest)}
        assert {f.name for f in path.iterdir()} == {*named, files.MANIFEST, files.LOCK}
    assert stop > 40


def test_a_kill_while_scores_are_written_leaves_the_scores_before(tmp_path: Path) -> None:
    path = tmp_path / "x.history"
    History.index(path, ledger_of(chain())).score(seed=1)
    before = History.open(path).scores().to_arrow()
    for stop in (1, 2):
        with pytest.MonkeyPatch.context() as patch:
            killing(patch, stop)
            with pytest.raises(Killed):
                History.open(path).score(seed=2)
        opened = History.open(path)
        opened.verify()
        assert opened.scores().to_arrow().equals(before)


def test_a_full_disk_is_named_and_the_last_commit_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.history"
    History.index(path, ledger_of(chain(4)))
    before = files_of(path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ResourceError, match="No space left on device; the history is as it was"):
        History.index(path, ledger_of(chain(8)))
    monkeypatch.undo()
    History.open(path).verify()
    assert before.items() <= files_of(path).items()


def test_what_follows_is_appended_and_the_rest_refused(tmp_path: Path) -> None:
    whole = chain(12)
    first = [t for t in whole if t["height"] < 6]
    values = {(t["txid"], k): o["value"] for t in whole for k, o in enumerate(t["outputs"])}
    later = [
        t | {"inputs": [i | {"value": values[i["txid"], i["vout"]]} for i in t["inputs"]]}
        for t in whole
        if t["height"] >= 6
    ]
    History.index(tmp_path / "fresh", ledger_of(whole))
    path = tmp_path / "x"
    History.index(path, ledger_of(first)).score(seed=1)
    grown = History.index(path, ledger_of(later, complete=False))
    assert content(path) == content(tmp_path / "fresh")
    assert grown.manifest.complete
    with pytest.raises(InputError, match="is not scored, or has grown since"):
        grown.scores()
    # The same blocks again: nothing to do.
    assert History.index(path, ledger_of(whole)).manifest == grown.manifest
    with pytest.raises(LedgerError, match="block 6 is there already"):
        History.index(path, ledger_of(later, complete=False))
    gap = [{"txid": "z", "inputs": [], "outputs": [{"value": 1}], "height": 13}]
    with pytest.raises(LedgerError, match="block 12 is missing"):
        History.index(path, ledger_of(gap))
    with pytest.raises(LedgerError, match="another chain than that of the history"):
        History.index(path, ledger_of([*first, *gap]))
    with pytest.raises(LedgerError, match="no heights"):
        History.index(path, ledger_of([{k: v for k, v in gap[0].items() if k != "height"}]))
    assert History.open(path).manifest == grown.manifest


def test_values_and_coins_that_do_not_fit_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.history"
    History.index(path, ledger_of(chain(3)))

    def after(inputs: list[dict[str, Any]], value: int, txid: str = "q") -> CoinLedger:
        made = {"txid": txid, "inputs": inputs, "outputs": [{"value": value}], "height": 3}
        return ledger_of([made], complete=False)

    known = {"txid": "p2", "vout": 0}
    with pytest.raises(LedgerError, match=r"block 3: transaction q: spends a coin whose value"):
        History.index(path, after([known | {"value": 101}], 1))
    with pytest.raises(LedgerError, match=r"block 3: .*spends a coin that is not there.*'p9:0'"):
        History.index(path, after([{"txid": "p9", "vout": 0, "value": 1}], 1))
    with pytest.raises(LedgerError, match=r"coin of a name that a coin has .*'p2:0'"):
        History.index(path, after([], 5, "p2"))
    assert History.open(path).manifest.last_height == 2
    History.index(path, after([known | {"value": 130}], 1))


def test_damage_is_refused_by_the_name_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "x.history"
    history = History.index(path, ledger_of(chain()), piece_rows=4)
    history.score(seed=1)
    names = [name for name, _ in files.all_files(history.manifest)]
    assert len(names) > 10
    for name in names:
        good = (path / name).read_bytes()
        damaged = bytearray(good)
        damaged[len(good) // 2] ^= 1
        (path / name).write_bytes(damaged)
        with pytest.raises(LedgerError, match=f"{name}: is damaged"):
            History.open(path).score(seed=1)
        if not name.startswith("scores"):
            with pytest.raises(LedgerError, match=f"{name}: is damaged"):
                History.index(path, ledger_of(chain()))
        (path / name).write_bytes(good[:-1])
        with pytest.raises(LedgerError, match=f"{name}: is damaged: .* bytes, not"):
            History.open(path)
        (path / name).unlink()
        with pytest.raises(InputError, match=f"{name}: cannot be read"):
            History.open(path)
        (path / name).write_bytes(good)
    History.open(path).verify()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[]", "does not describe a history"),
        ('{"coinhaze_history": 99}', "a history of version 99; this version reads 5"),
        ('{"coinhaze_history": 5}', "not the manifest of a history"),
        ('{"coinhaze_history": 5, "pieces": 3, "live": {}}', "not the manifest of a history"),
    ],
)
def test_another_manifest_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "x.history"
    History.index(path, ledger_of(chain(3)))
    (path / files.MANIFEST).write_text(text)
    for use in (History.open, lambda p: History.index(p, ledger_of(chain(3)))):
        with pytest.raises(LedgerError, match=words):
            use(path)


def test_two_writers_are_one_too_many(tmp_path: Path) -> None:
    path = tmp_path / "x.history"
    history = History.index(path, ledger_of(chain(3)))
    with files.only_writer(path):
        with pytest.raises(UsageError, match="another process is writing to this history"):
            History.index(path, ledger_of(chain(3)))
        with pytest.raises(UsageError, match="another process is writing to this history"):
            history.score()
    History.index(path, ledger_of(chain(5)))
    with pytest.raises(InputError, match="has grown since it was opened"):
        history.score()


def test_a_missing_block_is_refused_by_its_height(tmp_path: Path) -> None:
    check = Check("heights contiguous", "failed", 1, "height 7", "no transactions of 7")
    ledger = replace(ledger_of(chain(3)), completeness=Completeness((check,), ((7, 7),), 7))
    with pytest.raises(LedgerError, match="first at height 7: no block 7"):
        History.index(tmp_path / "x.history", ledger)


@pytest.mark.parametrize(
    ("before", "added", "both"),
    [
        ("passed", "passed", "passed"),
        ("passed", "failed", "failed"),
        ("failed", "passed", "failed"),
        ("failed", "not checkable", "failed"),
        ("not checkable", "passed", "not checkable"),
        ("passed", None, "not checkable"),
        ("failed", None, "failed"),
    ],
)
def test_a_check_holds_where_it_held_of_every_part(
    before: Status, added: Status | None, both: Status
) -> None:
    earlier = Completeness((Check("heights contiguous", before, detail="before"),))
    checks = () if added is None else (Check("heights contiguous", added, detail="added"),)
    (check,) = joined(earlier.record(), Completeness(checks), "there", first=False).checks
    assert check.status == both
    if before == both:
        assert check.detail == "before"


def test_what_no_history_holds_is_refused(tmp_path: Path) -> None:
    rings = [
        {"txid": "a", "outputs": 2},
        {"txid": "b", "rings": [["a:0", "a:1"]], "outputs": 1},
    ]
    with pytest.raises(LedgerError, match="amounts are hidden, or inputs are rings"):
        History.index(tmp_path / "x.history", ledger_of(rings, complete=False))
    transfers = tmp_path / "transfers.csv"
    transfers.write_text("from,to,amount,fee\nalice,bob,5,1\n")
    with pytest.raises(LedgerError, match="transfers with fees"):
        History.index(tmp_path / "x.history", transfers)
    with pytest.raises(InputError, match="is the history itself"):
        History.index(tmp_path / "x.history", tmp_path / "x.history")


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"holds 'notes\.txt' and is no history"):
        History.index(tmp_path / "mine", ledger_of(chain(3)))
    with pytest.raises(UsageError, match="is there already and is no history"):
        History.index(tmp_path / "mine/notes.txt", ledger_of(chain(3)))
    with pytest.raises(InputError, match="there is no folder"):
        History.index(tmp_path / "none/x.history", ledger_of(chain(3)))
    with pytest.raises(InputError, match="is no history: make one"):
        History.open(tmp_path / "mine")
    assert {p.name for p in (tmp_path / "mine").iterdir()} == {"notes.txt"}


def test_live_coins_are_written_less_often_than_pieces_where_they_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    commit = files.commit

    def counted(path: Path, manifest: files.Manifest) -> None:
        written.append(manifest)
        commit(path, manifest)

    monkeypatch.setattr(files, "commit", counted)
    transactions = [
        {"txid": f"c{h}", "inputs": [], "outputs": [{"value": 1}] * 20, "height": h}
        for h in range(64)
    ]
    history = History.index(tmp_path / "x.history", ledger_of(transactions), piece_rows=1)
    assert len(history.manifest.pieces) == 64
    assert 1 < len(written) < 32
    assert json.loads((tmp_path / "x.history/history.json").read_text())["coins"] == 64 * 20


def test_a_history_of_no_coins_says_so(tmp_path: Path) -> None:
    spent = [*pool(1), {"txid": "x", "inputs": [{"txid": "c0", "vout": 0}], "outputs": []}]
    history = History.index(tmp_path / "x.history", ledger_of(spent))
    for accuracy in ("exact", "preview"):
        scores = history.score(accuracy=accuracy)
        assert scores.line() == "no unspent coins"
        assert len(scores.to_arrow()) == 0
