"""The store: what goes in comes out, once, in order, whatever happens on the way."""

from __future__ import annotations

import contextlib
import gzip
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest
from benchmarks.blockchair_files import write_blockchair

import coinhaze
from coinhaze.errors import InputError, LedgerError, UsageError
from coinhaze.formats.registry import digest_of
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.batches import Batch, Rows, are_unique, gather
from coinhaze.ledger.window import LedgerWindow
from coinhaze.readers import read
from coinhaze.simulate import simulate_week
from coinhaze.store.ingest import Ingested, ingest
from coinhaze.store.read import read_store
from coinhaze.store.store import Source, Store
from coinhaze.store.verify import verify


@pytest.fixture(scope="module")
def week() -> CoinLedger:
    ledger = simulate_week("bitcoin-week", size=0.01)
    assert isinstance(ledger, CoinLedger)
    return ledger


@pytest.fixture(scope="module")
def dump(week: CoinLedger, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dump")
    assert len(write_blockchair(week, folder)) == 21
    return folder


def test_a_week_of_dumps_scores_as_the_week_itself(
    week: CoinLedger, dump: Path, tmp_path: Path
) -> None:
    path = tmp_path / "week.duckdb"
    with Store(path) as store:
        done = ingest([dump], store)
        assert done.files == 21
        assert "no coin spent twice" in "\n".join(verify(store))
    for view in ("coin", "address"):
        one = coinhaze.score(week, view=view, nodes="all").to_arrow().sort_by("node")
        other = coinhaze.score(path, view=view, nodes="all").to_arrow().sort_by("node")
        # Sources and rows may be added up in another order: the numbers agree to the last digits.
        assert one["node"] == other["node"]
        assert one["balance"] == other["balance"]
        assert one["sources"] == other["sources"]
        np.testing.assert_allclose(one["bits"], other["bits"], atol=1e-11)
        np.testing.assert_allclose(one["steps"], other["steps"], atol=1e-9)


def test_dumps_can_be_scored_without_a_store(week: CoinLedger, dump: Path) -> None:
    files = sorted(dump.iterdir())
    assert read(files).facts()["unspent_value"] == week.facts()["unspent_value"]


def test_the_same_files_change_nothing_however_named(dump: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "one") as store:
        ingest([dump], store)
        digest = store.digest()
        assert ingest([dump], store) == Ingested(0, 0, len(list(dump.iterdir())))
        renamed = tmp_path / "renamed.gz"
        renamed.write_bytes(next(iter(sorted(dump.iterdir()))).read_bytes())
        assert ingest([renamed], store).rows == 0
        assert store.digest() == digest


def test_overlapping_files_give_the_digest_of_clean_ones(dump: Path, tmp_path: Path) -> None:
    clean, twice = tmp_path / "clean", tmp_path / "twice"
    files = sorted(dump.glob("*outputs*"))
    text = [gzip.decompress(f.read_bytes()).decode() for f in files]
    header = text[0].split("\n", 1)[0]
    both = tmp_path / "both.tsv"
    body = [line for t in text[:2] for line in t.split("\n")[1:]]
    both.write_text("\n".join([header, *body, *body[:50]]))
    for path, sources in ((clean, files), (twice, [both, *files])):
        with Store(path) as store:
            ingest(sources, store)
    with Store(clean) as one, Store(twice) as other:
        assert one.digest() == other.digest()


def test_a_row_that_says_something_else_is_refused(dump: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    file = sorted(dump.glob("*outputs*"))[0]
    lines = gzip.decompress(file.read_bytes()).decode().split("\n")
    fields = lines[1].split("\t")
    fields[4] = str(int(fields[4]) + 1)
    bad = tmp_path / "bad.tsv"
    bad.write_text("\n".join([lines[0], "\t".join(fields)]))
    with Store(path) as store:
        ingest([file], store)
        before = store.digest()
        with pytest.raises(LedgerError, match="another row is in the store already") as caught:
            ingest([bad], store)
        assert fields[1] in str(caught.value)
        assert store.digest() == before
    mixed = tmp_path / "mixed.tsv"
    mixed.write_text("\n".join([lines[0], lines[1], "\t".join(fields)]))
    with Store(None) as store, pytest.raises(LedgerError, match="two rows of one key differ"):
        ingest([mixed], store)


def test_a_file_that_was_broken_off_is_read_again(dump: Path) -> None:
    file = sorted(dump.glob("*transactions*"))[0]
    with Store(None) as store:
        broken_off = Source(digest_of(file), file.name, "blockchair", 1, done=False)
        store.note_source(broken_off)
        done = ingest([file], store)
        assert (done.files, done.known) == (1, 0)
        assert [source.done for source in store.sources()] == [True]
        assert ingest([file], store).known == 1


def test_what_is_known_stays_where_other_rows_are_filled() -> None:
    first, second = Rows("transactions"), Rows("transactions")
    first.add(height=1, txid="t", coinbase=True, position=3)
    first.add(height=1, txid="v", coinbase=False)
    second.add(height=1, txid="t", coinbase=True)
    second.add(height=1, txid="v", coinbase=False, position=5)
    with Store(None) as store:
        added = []
        for rows in (first, second, first):
            with store.transaction():
                added.append(store.append(Batch(gather([rows]))))
        assert added == [2, 0, 0]
        found = store.ask("SELECT txid, position FROM transactions ORDER BY txid")
        assert found == [("t", 3), ("v", 5)]


@pytest.mark.parametrize("value", [4, 6])
def test_a_value_above_or_below_the_known_one_is_refused(value: int) -> None:
    known, other = Rows("outputs"), Rows("outputs")
    known.add(height=1, txid="t", vout=0, spendable=True, value=5)
    other.add(height=1, txid="t", vout=0, spendable=True, value=value)
    with Store(None) as store:
        with store.transaction():
            store.append(Batch(gather([known])))
        with (
            pytest.raises(LedgerError, match="another row is in the store already"),
            store.transaction(),
        ):
            store.append(Batch(gather([other])))
        assert store.ask("SELECT value FROM outputs") == [(5,)]


def test_windows_know_the_coins_made_before_them(week: CoinLedger, dump: Path) -> None:
    heights = week.heights.to_numpy(zero_copy_only=False)[week.inside]
    middle = int(np.median(heights))
    with Store(None) as store:
        ingest([dump], store)
        whole = read_store(store)
        early = read_store(store, LedgerWindow.of(None, middle))
        late = read_store(store, LedgerWindow.of(str(middle + 1), None))
    assert len(early) + len(late) == len(whole) == len(week)
    assert isinstance(late, CoinLedger)
    assert late.facts()["earlier_coins_spent"] > week.facts()["earlier_coins_spent"] / 4  # type: ignore[operator]


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        (("yesterday", None), "no height and no time"),
        (("100", "2021-04-01"), "both heights or both times"),
        (("200", "100"), "ends before it begins"),
    ],
)
def test_windows_without_meaning_are_refused(ends: tuple[str, str | None], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        LedgerWindow.of(*ends)


def test_a_window_by_time_cuts_at_the_second(week: CoinLedger, dump: Path) -> None:
    times = week.times.to_numpy(zero_copy_only=False)[week.inside]
    cut = int(np.median(times))
    moment = str(np.datetime64(cut, "s"))
    with Store(None) as store:
        ingest([dump], store)
        assert len(read_store(store, LedgerWindow.of(moment, None))) == int((times >= cut).sum())
        assert len(read_store(store, LedgerWindow.of(None, moment))) == int((times <= cut).sum())


def test_values_nobody_tells_are_named(tmp_path: Path) -> None:
    inputs, made = Rows("inputs"), Rows("transactions")
    made.add(height=5, txid="t", coinbase=False)
    inputs.add(height=5, txid="t", vin=0, spent_txid="early", spent_vout=3)
    outputs = Rows("outputs")
    outputs.add(height=5, txid="t", vout=0, spendable=True, value=7)
    with Store(tmp_path / "store") as store:
        with store.transaction():
            store.append(Batch(gather([inputs, made, outputs])))
        with pytest.raises(InputError, match=r"values of 1 coins .*\(early:3\).* rev\*\.dat"):
            read_store(store)
        older = Rows("outputs")
        older.add(height=1, txid="early", vout=3, spendable=True, value=9, owner="alice")
        with store.transaction():
            store.append(Batch(gather([older])))
        ledger = read_store(store, LedgerWindow.of(5, None))
    assert isinstance(ledger, CoinLedger)
    assert ledger.output_value is not None
    assert ledger.output_value.ints() == [9, 7]
    assert ledger.owners.to_pylist()[0] == "alice"


def test_transactions_of_one_block_stand_after_the_makers_of_their_coins() -> None:
    made, inputs, outputs = Rows("transactions"), Rows("inputs"), Rows("outputs")
    chain = ["f", "b", "e", "a"]  # each spends the one before; ids in no order
    for k, txid in enumerate(chain):
        made.add(height=1, txid=txid, coinbase=k == 0)
        outputs.add(height=1, txid=txid, vout=0, spendable=True, value=5)
        if k:
            inputs.add(height=1, txid=txid, vin=0, spent_txid=chain[k - 1], spent_vout=0)
    with Store(None) as store:
        with store.transaction():
            store.append(Batch(gather([made, inputs, outputs])))
        assert read_store(store).txids.to_pylist() == chain  # type: ignore[union-attr]


def test_the_duplicate_coinbases_are_distinguished() -> None:
    from coinhaze.ledger.coins import DUPLICATE_COINBASES

    made, outputs = Rows("transactions"), Rows("outputs")
    for txid, heights in DUPLICATE_COINBASES.items():
        for height in heights:
            made.add(height=height, txid=txid, coinbase=True)
            outputs.add(height=height, txid=txid, vout=0, spendable=True, value=5_000_000_000)
    with Store(None) as store:
        with store.transaction():
            store.append(Batch(gather([made, outputs])))
        ledger = read_store(store)
    assert isinstance(ledger, CoinLedger)
    names = {f"{t}@{h[0]}" for t, h in DUPLICATE_COINBASES.items()} | set(DUPLICATE_COINBASES)
    assert set(ledger.txids.to_pylist()) == names
    assert ledger.facts()["unspent_value"] == 10_000_000_000


def test_what_one_source_leaves_open_another_fills() -> None:
    rough, fine = Rows("transactions"), Rows("transactions")
    rough.add(height=1, txid="t", coinbase=True)
    fine.add(height=1, txid="t", coinbase=True, position=3, time=9)
    fine.add(height=1, txid="u", coinbase=False, position=4, time=9)
    digests = set()
    for order in ((rough, fine), (fine, rough)):
        with Store(None) as store:
            for rows in order:
                with store.transaction():
                    store.append(Batch(gather([rows])))
            digests.add(store.digest())
            assert store.ask("SELECT position, time FROM transactions WHERE txid = 't'") == [(3, 9)]
    assert len(digests) == 1


def test_a_branch_is_taken_back_whole(tmp_path: Path) -> None:
    with Store(tmp_path / "store") as store:
        for height in range(5):
            blocks, made = Rows("blocks"), Rows("transactions")
            blocks.add(height=height, hash=f"h{height}", previous=f"h{height - 1}")
            made.add(height=height, txid=f"t{height}", coinbase=True)
            with store.transaction():
                store.append(Batch(gather([blocks, made])))
        assert store.headers(2) == {4: "h4", 3: "h3"}
        with store.transaction():
            assert store.roll_back(3) == 4
        assert max(store.headers()) == 2
        with contextlib.suppress(RuntimeError), store.transaction():
            store.roll_back(0)
            raise RuntimeError("on the way")
        assert max(store.headers()) == 2


def test_only_stores_are_opened(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database")
    with pytest.raises(InputError, match="not a store"):
        Store(tmp_path / "text")
    with pytest.raises(InputError, match="no such store"):
        Store(tmp_path / "absent", read_only=True)
    with duckdb.connect(str(tmp_path / "other")) as other:
        other.execute("CREATE TABLE about (key VARCHAR, value VARCHAR)")
    with pytest.raises(InputError, match="not a store this coinhaze reads"):
        Store(tmp_path / "other")
    with Store(tmp_path / "empty") as store, pytest.raises(InputError, match="is empty"):
        read_store(store)


def test_unique_keys_are_distinguished_from_repeated_ones() -> None:
    rows = Rows("inputs")
    for k in range(1000):
        rows.add(height=k // 7, txid=f"t{k // 3}", vin=k % 3, spent_txid="a", spent_vout=k)
    assert are_unique(rows.table(), ("height", "txid", "vin"))
    rows.add(height=0, txid="t0", vin=2, spent_txid="b", spent_vout=1)
    assert not are_unique(rows.table(), ("height", "txid", "vin"))


# Kills itself so many seconds after it has told so often how far it is, wherever it is by then.
KILLED = """
import os, signal, sys, threading
from coinhaze.cli import ingest, main
times, seconds = int(sys.argv.pop(1)), float(sys.argv.pop(1))
shown = ingest._share
def counting(note):
    tell, told = shown(note), []
    def count(done, whole):
        told.append(done)
        if len(told) == times:
            threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
        tell(done, whole)
    return count
ingest._share = counting
sys.argv = ["coinhaze", "ingest", *sys.argv[1:]]
main()
"""


def _is_killed(times: int, seconds: float, arguments: list[str], folder: Path) -> bool:
    """Run the command until it is killed; tell whether it was, before it had no more to do."""
    command = [sys.executable, "-c", KILLED, str(times), str(seconds), *arguments]
    done = subprocess.run(command, cwd=folder, stderr=subprocess.DEVNULL, check=False, timeout=600)
    assert done.returncode in (0, -signal.SIGKILL)
    return done.returncode != 0


@pytest.fixture(scope="module")
def clean_digest(dump: Path) -> str:
    with Store(None) as store:
        ingest([dump], store)
        return store.digest()


def test_a_store_killed_before_its_tables_were_made_is_new_still(tmp_path: Path) -> None:
    path = tmp_path / "store"
    duckdb.connect(str(path)).close()
    with pytest.raises(InputError, match="version unknown"):
        Store(path, read_only=True)
    with Store(path) as store:
        assert store.kind is None
    with Store(path, read_only=True) as store:
        assert store.sources() == []


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.duckdb"
    with duckdb.connect(str(path)) as theirs:
        theirs.execute("CREATE TABLE mine (a INTEGER)")
    with pytest.raises(InputError, match="version unknown"):
        Store(path)
    with duckdb.connect(str(path), read_only=True) as theirs:
        assert theirs.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(1,)]


def test_killed_at_any_moment_nothing_is_lost_or_doubled(
    dump: Path, tmp_path: Path, clean_digest: str
) -> None:
    chance, kills = np.random.default_rng(3), 6
    arguments = [str(dump), "-o", "store"]
    killed = 0
    for _ in range(kills):
        times, seconds = int(chance.integers(1, 8)), float(chance.uniform(0, 0.05))
        if not _is_killed(times, seconds, arguments, tmp_path):
            (tmp_path / "store").unlink()
        else:
            killed += 1
    assert killed > kills / 3
    done = subprocess.run(
        [sys.executable, "-m", "coinhaze", "ingest", *arguments],
        cwd=tmp_path, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0
    with Store(tmp_path / "store", read_only=True) as store:
        assert store.digest() == clean_digest


def test_a_full_disk_leaves_the_last_commit(dump: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(small)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        files = [str(f) for f in sorted(dump.iterdir())]
        command = [sys.executable, "-m", "coinhaze", "ingest", *files, "-o", str(small / "store")]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
        assert done.returncode == 6
        assert "No space left on device" in done.stderr
        assert "as it was at its last commit" in done.stderr
        assert done.stderr.count("\n") == 1
        with Store(small / "store", read_only=True) as store:
            finished = [s for s in store.sources() if s.done]
            verify_keys = store.ask("SELECT count(*) FROM (SELECT DISTINCT * FROM transactions)")
            assert verify_keys == store.ask("SELECT count(*) FROM transactions")
            assert 0 < len(finished) < len(files)
    finally:
        subprocess.run(["umount", str(small)], check=True)


# Works until a few files are in the store, and then waits to be interrupted.
STOPPING = """
import sys, time
from coinhaze.cli import ingest, main
def stopping(note):
    told = []
    def tell(done, whole):
        told.append(done)
        if len(told) == 5:
            print("working", flush=True)
            time.sleep(600)
    return tell
ingest._share = stopping
sys.argv = ["coinhaze", "ingest", *sys.argv[1:]]
main()
"""


def test_ctrl_c_says_how_to_go_on(dump: Path, tmp_path: Path, clean_digest: str) -> None:
    command = [sys.executable, "-c", STOPPING, str(dump), "-o", "store"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    line = next(line for line in err.splitlines() if line.startswith("to go on where it stopped: "))
    again = shlex.split(line.split(": ", 1)[1])
    with Store(tmp_path / "store", read_only=True) as store:
        assert 0 < len(store.sources()) < 21
    subprocess.run([sys.executable, "-m", *again], cwd=tmp_path, check=True, timeout=600)
    with Store(tmp_path / "store", read_only=True) as store:
        assert store.digest() == clean_digest
