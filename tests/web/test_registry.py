"""The registry: every state a ledger can be in, with real files, and what the page then says."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import coinhaze
from coinhaze.cache.layers import CachedLedger, LedgerCache
from coinhaze.cli.serve import _app
from coinhaze.errors import InputError, UnknownName, UsageError
from coinhaze.explore.models import LedgerCard
from coinhaze.explore.query import Settings
from coinhaze.ledger import write_folder
from coinhaze.simulate import simulate_town
from coinhaze.store.ingest import ingest
from coinhaze.store.store import Store
from coinhaze.web import ledger_state, scoring
from coinhaze.web.ledger_state import Entry
from coinhaze.web.registry import LedgerRegistry, check_named, id_of
from web.asking import TOKEN, ask, made_app

TRANSFERS = "from,to,amount\nalice,bob,5\ncarol,bob,5\nbob,dave,3\n"
MORE = TRANSFERS + "dave,erin,2\n"


class Explorer:
    """An explorer that only knows what it was made of."""

    def __init__(self, registry: LedgerRegistry, ledger: str, kept: CachedLedger) -> None:
        self.kept = kept
        self.requested: list[Settings] = []

    def ledger(self, requested: Settings) -> None:
        self.requested.append(requested)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(ledger_state, "FRESH", 0.0)


@pytest.fixture
def heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let even a small ledger count as one that is scored apart."""
    monkeypatch.setattr(ledger_state, "LIGHT", -1)


def registry_of(*paths: Path, **settings: Any) -> LedgerRegistry:
    return LedgerRegistry(paths, make_explorer=Explorer, **settings)  # type: ignore[arg-type]


def explorer(registry: LedgerRegistry, id: str) -> Explorer:
    found: Any = registry.explorer(id)
    assert isinstance(found, Explorer)
    return found


def transfers(tmp_path: Path, text: str = TRANSFERS) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(text)
    return path


def store(tmp_path: Path, text: str = TRANSFERS) -> Path:
    """Make a store; accounts have heights there."""
    rows = text.splitlines()[1:]
    lines = ["height,txid,from,to,amount", *(f"{k},x{k},{row}" for k, row in enumerate(rows))]
    source, path = tmp_path / "s.csv", tmp_path / "s.duckdb"
    source.write_text("\n".join(lines) + "\n")
    with Store(path) as opened:
        ingest([source], opened)
    return path


def assert_says(card: LedgerCard, state: str, message: str, fix: str) -> None:
    assert card.state == state, card
    assert message in str(card.message)
    assert fix in str(card.fix)


# ---------------------------------------------------------------- states


def test_a_light_ledger_is_ready_and_scored_when_requested(tmp_path: Path) -> None:
    registry = registry_of(transfers(tmp_path))
    (card,) = registry.cards()
    assert (card.id, card.name, card.state) == ("t", "t.csv", "ready")
    found = explorer(registry, "t").kept
    expected = coinhaze.score(tmp_path / "t.csv")
    assert found.scores.bits.tobytes() == expected.bits.tobytes()
    card = registry.card("t")
    assert card.kind == "accounts"
    assert card.coins == len(expected)
    assert card.bits_median == expected.summary().bits_median
    assert card.views == ("account",)
    assert card.policies[0] == "haircut"
    assert not (tmp_path / "t.csv.kept").exists()  # what takes a moment to make is not kept


def test_cards_of_coins_say_what_can_be_requested(tmp_path: Path) -> None:
    path = write_folder(simulate_town(transactions=40), tmp_path / "Town (2021)")
    registry = registry_of(path)
    assert registry.explorer("town-2021") is not None
    card = registry.card("town-2021")
    assert card.kind == "coins"
    assert card.views == ("coin", "address")
    assert card.times == ("stationary", "temporal")
    heights = coinhaze.read(path).facts()
    assert card.window.first_height == heights["first_height"]
    assert card.window.last_height == heights["last_height"]


def test_a_ledger_that_is_not_there(tmp_path: Path) -> None:
    registry = registry_of(tmp_path / "gone.duckdb")
    assert_says(registry.card("gone"), "missing", "gone.duckdb is not there", "put it back")
    assert registry.explorer("gone") is None
    with pytest.raises(InputError, match="gone"):
        registry.prepare("gone", Settings(), lambda _: None)


def test_a_ledger_that_comes_back_is_ready(tmp_path: Path) -> None:
    registry = registry_of(tmp_path / "t.csv")
    assert registry.card("t").state == "missing"
    transfers(tmp_path)
    assert registry.card("t").state == "ready"
    assert registry.explorer("t") is not None


@pytest.mark.usefixtures("heavy")
def test_a_ledger_not_scored_yet(tmp_path: Path) -> None:
    registry = registry_of(transfers(tmp_path))
    assert_says(
        registry.card("t"), "not scored", "has not been scored", "coinhaze score t.csv --keep"
    )
    assert registry.explorer("t") is None


_HOLDS = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Any]:
    """Another process that has a store open for writing."""
    begun: list[subprocess.Popen[str]] = []

    def begin(path: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", _HOLDS, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        begun.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        return process

    yield begin
    for process in begun:
        process.communicate()


def test_a_store_that_another_process_writes_to(tmp_path: Path, writer: Any) -> None:
    path = store(tmp_path)
    process = writer(path)
    registry = registry_of(path)
    assert_says(registry.card("s"), "locked", "open in another program", "wait until")
    assert registry.explorer("s") is None
    assert registry.card("s").state == "locked"
    process.communicate()
    assert registry.explorer("s") is not None
    assert registry.card("s").state == "ready"


def test_a_store_that_was_retained_opens_while_another_process_holds_it(
    tmp_path: Path, writer: Any
) -> None:
    path = store(tmp_path)
    kept = LedgerCache(path).build()
    writer(path)
    registry = registry_of(path)
    assert registry.card("s").state == "ready"
    assert explorer(registry, "s").kept.scores.bits.tobytes() == kept.scores.bits.tobytes()


def test_an_empty_store(tmp_path: Path) -> None:
    with Store(tmp_path / "s.duckdb"):
        pass
    registry = registry_of(tmp_path / "s.duckdb")
    assert_says(registry.card("s"), "damaged", "holds no transactions", "coinhaze ingest")
    assert registry.explorer("s") is None


def test_a_database_of_something_else(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "s.duckdb")).execute("CREATE TABLE t (x INT)").close()
    registry = registry_of(tmp_path / "s.duckdb")
    assert_says(registry.card("s"), "damaged", "not a store", "make it again")


def test_damaged_files(tmp_path: Path) -> None:
    path = store(tmp_path)
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)
    folder = write_folder(simulate_town(transactions=20), tmp_path / "f")
    (folder / "ledger.json").write_text("{")
    (tmp_path / "n.bin").write_bytes(b"\0\1\2")
    cut = write_folder(simulate_town(transactions=20), tmp_path / "cut")
    (cut / "outputs.parquet").write_bytes(b"PAR1")
    (tmp_path / "wrong.csv").write_text("from,to,amount\na,b,-1\n")
    registry = registry_of(path, folder, tmp_path / "n.bin", cut, tmp_path / "wrong.csv")
    for id in ("s", "f", "n", "cut", "wrong"):
        assert registry.explorer(id) is None
        card = registry.card(id)
        assert card.state == "damaged", card
        assert card.message
        assert "make it again" in str(card.fix)
    assert len(registry.cards()) == 5


def test_an_export_that_needs_decimals_says_what_to_run(tmp_path: Path) -> None:
    columns = {
        "Transaction Hash": "0x" + 64 * "a", "Blockno": 19000001, "UnixTimestamp": 1705000000,
        "DateTime (UTC)": "2024-01-11 19:06:40", "From": "0x" + 40 * "1", "To": "0x" + 40 * "2",
        "TokenValue": "1.5", "USDValueDayOfTx": "1.5", "ContractAddress": "0x" + 40 * "3",
        "TokenName": "A Token", "TokenSymbol": "TKN",
    }  # fmt: skip
    rows = [columns, columns.values()]
    path = tmp_path / "token's.csv"
    path.write_text("".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows))
    registry = registry_of(path)
    assert registry.explorer("token-s") is None
    card = registry.card("token-s")
    command, _, then = str(card.fix).partition(", then serve ")
    assert_says(card, "damaged", "how many decimals", "--decimals N")
    words = ["6" if word == "N" else word for word in shlex.split(command)]
    subprocess.run([sys.executable, "-m", *words], check=True, cwd=tmp_path)
    assert registry_of(tmp_path / shlex.split(then)[0]).card("token-s").state == "ready"


def test_a_file_nobody_may_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> str:
        raise InputError(f"{path}: cannot be read: Permission denied")

    # Root may read everything, so the refusal is made up.
    monkeypatch.setattr("coinhaze.cache.place.digest_of", refuse)
    registry = registry_of(transfers(tmp_path))
    assert_says(registry.card("t"), "damaged", "Permission denied", "the right to read")


def test_a_window_that_does_not_fit_says_so(tmp_path: Path) -> None:
    registry = registry_of(transfers(tmp_path), settings={"first": "1", "last": "2"})
    assert registry.explorer("t") is None
    assert_says(registry.card("t"), "damaged", "3 rows have none: add the column", "other settings")


# ---------------------------------------------------------------- change


def test_a_light_ledger_that_changes_is_read_again(tmp_path: Path) -> None:
    registry = registry_of(transfers(tmp_path))
    before, digest = explorer(registry, "t"), registry.card("t").digest
    transfers(tmp_path, MORE)
    card = registry.card("t")
    assert card.state == "ready"
    assert not card.changed
    assert card.digest != digest
    after = explorer(registry, "t")
    assert after is not before
    assert len(after.kept.ledger) == 4
    assert explorer(registry, "t") is after


@pytest.mark.usefixtures("heavy")
def test_a_heavy_ledger_that_changes_stays_open_and_says_so(tmp_path: Path) -> None:
    path = transfers(tmp_path)
    LedgerCache(path).build()
    registry = registry_of(path)
    before, digest = explorer(registry, "t"), registry.card("t").digest
    transfers(tmp_path, MORE)
    card = registry.card("t")
    assert (card.state, card.changed, card.digest) == ("ready", True, digest)
    assert "figures may differ" in str(card.message)
    assert explorer(registry, "t") is before
    LedgerCache(path).build()  # somebody scores it again
    card = registry.card("t")
    assert (card.state, card.changed) == ("ready", False)
    assert card.digest != digest
    assert len(explorer(registry, "t").kept.ledger) == 4
    path.unlink()
    card = registry.card("t")
    assert (card.state, card.changed) == ("ready", True)
    assert "gone" in str(card.message)
    assert len(explorer(registry, "t").kept.ledger) == 4


def test_files_are_looked_at_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_state, "FRESH", 60.0)
    registry = registry_of(transfers(tmp_path))
    assert registry.card("t").state == "ready"
    (tmp_path / "t.csv").unlink()
    begin = time.process_time()
    for _ in range(100):
        assert registry.card("t").state == "ready"
    assert (time.process_time() - begin) / 100 < 0.005


def test_few_ledgers_stay_open(tmp_path: Path) -> None:
    paths = []
    for k in range(4):
        paths.append(tmp_path / f"t{k}.csv")
        paths[-1].write_text(TRANSFERS)
    registry = registry_of(*paths, max_open=2)
    for k in range(4):
        assert registry.explorer(f"t{k}") is not None
    assert [entry._cached is not None for entry in registry._entries.values()] == [
        False,
        False,
        True,
        True,
    ]
    assert all(card.state == "ready" for card in registry.cards())
    assert registry.explorer("t0") is not None


def test_threads_that_ask_at_once_get_one_explorer(tmp_path: Path) -> None:
    path = write_folder(simulate_town(transactions=200), tmp_path / "town")
    registry = registry_of(path)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(registry.explorer("town"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    states = {registry.card("town").state for _ in range(20)}
    for thread in threads:
        thread.join()
    assert len({id(each) for each in found}) == 1
    assert found[0] is not None
    assert states <= {"ready", "loading"}


# ---------------------------------------------------------------- long work


@pytest.mark.usefixtures("heavy")
def test_preparing_scores_apart_keeps_and_opens(tmp_path: Path) -> None:
    path = write_folder(simulate_town(transactions=60), tmp_path / "town")
    registry = registry_of(path)
    shares: list[float] = []
    registry.prepare("town", Settings(), shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert registry.card("town").state == "ready"
    expected = coinhaze.score(path)
    assert explorer(registry, "town").kept.scores.bits.tobytes() == expected.bits.tobytes()
    assert explorer(registry, "town").requested == []
    registry.prepare("town", Settings(policy="uniform"), shares.append)
    assert explorer(registry, "town").requested == [Settings(policy="uniform")]


class Stop(Exception):
    pass


@pytest.mark.usefixtures("heavy")
def test_cancelling_ends_the_work_at_once_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    path = write_folder(simulate_town(transactions=60), tmp_path / "town")
    registry = registry_of(path)
    processes = _children()
    wanted = False

    def progress(share: float, /) -> None:
        if not wanted and _children() != processes:  # the work has begun
            raise Stop

    with pytest.raises(Stop):
        registry.prepare("town", Settings(), progress)
    assert _children() == processes  # the process is gone with it
    home = tmp_path / "town.kept"
    for layer in home.iterdir() if home.exists() else ():
        assert layer.name.startswith(".") or (layer / "seal").exists()
    assert registry.card("town").state == "not scored"
    wanted = True
    registry.prepare("town", Settings(), progress)
    assert registry.explorer("town") is not None
    assert not [p for p in home.iterdir() if p.name.startswith(".")]


def _children() -> set[str]:
    found: set[str] = set()
    for thread in Path(f"/proc/{os.getpid()}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has just ended
            found |= {*(thread / "children").read_text().split()}
    return found


@pytest.mark.usefixtures("heavy")
def test_what_is_wrong_with_a_ledger_comes_back_from_the_process(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("from,to,amount\na,b,-1\n")
    registry = registry_of(tmp_path / "w.csv")
    with pytest.raises(InputError, match=r"w\.csv:2.*-1"):
        registry.prepare("w", Settings(), lambda _: None)
    with pytest.raises(UsageError, match="view"):
        scoring.score_apart(
            [transfers(tmp_path)], settings={"view": "address"}, scoring={}, progress=lambda _: None
        )


def test_warming_opens_what_is_ready(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("from,to,amount\na,b,-1\n")
    registry = registry_of(transfers(tmp_path), tmp_path / "w.csv")
    assert [card.coins for card in registry.cards()] == [None, None]
    registry.warm()
    assert [card.state for card in registry.cards()] == ["ready", "damaged"]
    assert registry.cards()[0].coins == 2


# ---------------------------------------------------------------- names and lists


def test_ids_are_safe_and_unique(tmp_path: Path) -> None:
    for k, name in enumerate(("a b.csv", "a-b.csv", "ä.csv", "..csv", "x" * 200 + ".csv")):
        (tmp_path / str(k)).mkdir()
        (tmp_path / str(k) / name).write_text(TRANSFERS)
    paths = [next((tmp_path / str(k)).iterdir()) for k in range(5)]
    ids = [card.id for card in registry_of(*paths).cards()]
    assert ids[:3] == ["a-b", "a-b-2", "ledger"]
    assert len(set(ids)) == 5
    assert all(len(id) <= 64 for id in ids)
    assert id_of("../../etc/passwd") == "etc-passwd"
    shutil.rmtree(tmp_path / "0")
    with pytest.raises(UnknownName, match="no ledger"):
        registry_of(paths[1]).card("nothing")


def test_lists_go_by_name_and_digest(tmp_path: Path) -> None:
    (tmp_path / "l.txt").write_text("alice\nbob\n")
    (tmp_path / "names.csv").write_text("address,name\nalice,a shop\n")
    registry = registry_of(
        transfers(tmp_path),
        lists={"Sanctions": tmp_path / "l.txt"},
        labels=[tmp_path / "names.csv"],
    )
    (card,) = registry.lists()
    assert (card.name, card.entries) == ("sanctions", 2)
    assert card.id == f"sanctions@{card.digest[:12]}"
    assert registry.names_of("sanctions") == registry.names_of(card.id) == ("alice", "bob")
    assert registry.labels() == {"alice": "a shop"}
    for wrong in ("other", "sanctions@0000", "sanctions@" + "f" * 64):
        with pytest.raises(UnknownName, match="no list"):
            registry.names_of(wrong)
    assert check_named("a=b=c") == ("a", "b=c")
    with pytest.raises(UsageError, match="NAME=FILE"):
        check_named("file.txt")


def test_entries_of_several_files_are_one_ledger(tmp_path: Path) -> None:
    transfers(tmp_path)
    (tmp_path / "u.csv").write_text(MORE)
    entry = Entry("t", [tmp_path / "t.csv", tmp_path / "u.csv"], {})
    assert entry.name == "t.csv and 1 more"
    opened = entry.open()
    assert opened is not None
    assert len(opened.ledger) == 7


def test_ledgers_that_were_never_read_are_compared_in_order_of_time(tmp_path: Path) -> None:
    made = {"txid": "t", "outputs": [{"value": 5, "address": "a"}]}
    write_folder(coinhaze.CoinLedger.from_transactions([made]), tmp_path / "coins")
    (tmp_path / "pay.csv").write_text("from,to,amount,time\na,b,5,1\n", encoding="utf-8")
    app = made_app(LedgerRegistry([tmp_path / "coins", tmp_path / "pay.csv"]), patience=600)
    said = ask(app, "/compare?l=coins,pay").text
    assert "accounts, in order of time" in said
    assert "all at once" not in said


def test_what_is_to_be_scored_is_found_before_ledgers_are_opened(tmp_path: Path) -> None:
    # A ledger that is being opened says "loading", so it would never have been scored.
    opened = threading.Event()

    class Slow(LedgerRegistry):
        def warm(self) -> None:
            opened.set()

        def cards(self) -> list[LedgerCard]:
            assert not opened.wait(0.2)
            return super().cards()

    source = tmp_path / "a.csv"
    source.write_text("from,to,amount\na,b,5\n")
    app = _app(Slow([source]), TOKEN, "127.0.0.1", score=True)
    assert app is not None
    assert opened.wait(5)
