"""What is kept and then damaged, moved, forged, or written by several: never a wrong number."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coinhaze
from cache.layers_twin import differences
from coinhaze.cache import files as kept_files
from coinhaze.cache.files import ABOUT, DATA, SEAL, Unusable, read_layer
from coinhaze.cache.layers import CachedLedger, LedgerCache
from coinhaze.cache.tree import Unpacker
from coinhaze.errors import CoinhazeError, InputError
from coinhaze.ledger import write_folder
from coinhaze.simulate import simulate_town
from ledger.mutants import mutants


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_folder(simulate_town(transactions=60), tmp_path / "town")


@pytest.fixture
def bits(path: Path) -> bytes:
    """Keep the town, and give the bits that every later opening must have."""
    return LedgerCache(path).build().scores.bits.tobytes()


def home(path: Path) -> Path:
    return path.with_name("town.kept")


def layers(path: Path) -> list[Path]:
    return sorted(p for p in home(path).iterdir() if p.is_dir())


def fresh(path: Path) -> LedgerCache:
    """Look at what is kept as another process would."""
    return LedgerCache(path)


def assert_never_wrong(path: Path, bits: bytes) -> CachedLedger | None:
    opened = fresh(path).open()
    assert opened is None or opened.scores.bits.tobytes() == bits
    return opened


def flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("name", [ABOUT, DATA, SEAL])
@pytest.mark.parametrize("hidden", [False, True], ids=["plain", "times-set-back"])
def test_a_flipped_bit_anywhere_is_seen_and_built_again(
    path: Path, bits: bytes, name: str, hidden: bool
) -> None:
    chance = np.random.default_rng(5)
    for layer in layers(path):
        file = layer / name
        good = file.read_bytes()
        for at in chance.integers(0, len(good), 6).tolist():
            seen = file.stat()
            flip(file, at)
            if hidden:  # as somebody would who wants not to be seen
                os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
            assert assert_never_wrong(path, bits) is None
            file.write_bytes(good)
    assert assert_never_wrong(path, bits) is not None  # whole again, though written anew


def test_damage_is_mended_with_a_note(path: Path, bits: bytes) -> None:
    for layer in layers(path):
        flip(layer / DATA, 100)
    built = fresh(path).build()
    assert built.scores.bits.tobytes() == bits
    assert built.is_cached
    assert any("damaged" in note for note in built.notes)
    assert assert_never_wrong(path, bits) is not None


@pytest.mark.parametrize("number", range(5))
def test_one_damaged_layer_is_built_again_under_the_others(
    path: Path, bits: bytes, number: int
) -> None:
    opened = fresh(path).open()
    assert opened is not None
    expected = coinhaze.score(path)
    flip(home(path) / opened.layers[number].key / DATA, 80)
    built = fresh(path).build()
    assert built.notes == ("part of the cache is damaged: it is built again",)
    assert differences(expected, built.scores) == []
    again = assert_never_wrong(path, bits)
    assert again is not None
    assert differences(expected, again.scores) == []


@pytest.mark.parametrize("name", [ABOUT, DATA, SEAL])
def test_missing_empty_and_cut_files_are_as_good_as_absent(
    path: Path, bits: bytes, name: str
) -> None:
    for layer in layers(path):
        file = layer / name
        good = file.read_bytes()
        for left in (b"", good[: len(good) // 2], good[:-1], good + b"x"):
            file.write_bytes(left)
            assert assert_never_wrong(path, bits) is None
        file.unlink()
        assert assert_never_wrong(path, bits) is None
        file.mkdir()
        assert assert_never_wrong(path, bits) is None
        file.rmdir()
        file.write_bytes(good)


def test_what_somebody_else_wrote_is_not_opened(
    path: Path, bits: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another user"))
    assert fresh(path).open() is None
    assert fresh(path).build().is_cached


def test_a_layer_under_another_name_is_not_opened(path: Path, bits: bytes) -> None:
    keeper = LedgerCache(path, policy="uniform")
    for old, new in zip(LedgerCache(path).keys, keeper.keys, strict=True):
        if old != new:
            shutil.copytree(home(path) / old, home(path) / new)
            with pytest.raises(Unusable, match="another format or place"):
                read_layer(home(path), new, below=[])


def test_another_format_is_built_again(
    path: Path, bits: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coinhaze.cache.place.FORMAT", 3)
    assert fresh(path).open() is None
    assert fresh(path).build().scores.bits.tobytes() == bits


def _sealed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what a layer says of itself and seal it, as only this user could."""
    for layer in layers(path):
        about = json.loads((layer / ABOUT).read_text())
        change(about)
        text = json.dumps(about).encode()
        (layer / ABOUT).write_bytes(text)
        (layer / SEAL).write_bytes(kept_files._seal(kept_files._secret(), text))


HOSTILE: dict[str, Any] = {
    "a path": {"made": "../../etc/passwd", "of": {}},
    "a class that is not on the list": {"made": "Popen", "of": {"args": "ls"}},
    "parts left out": {"made": "CoinLedger", "of": {"txids": None}},
    "bytes beyond the end": {"array": ["<i8", [2**40], "C", False, [0, 2**43]]},
    "bytes before the beginning": {"array": ["<i8", [1], "C", False, [-8, 8]]},
    "objects as numbers": {"array": ["|O", [1], "C", False, [0, 8]]},
    "a shape that is not its size": {"array": ["<i8", [7], "C", False, [0, 8]]},
    "a negative shape": {"array": ["<i8", [-1, -1], "C", False, [0, 8]]},
    "an unknown column": {"arrow": ["extension<x>", 1, 0, 0, [None]]},
    "a column longer than its bytes": {"arrow": ["string", 2**40, 0, 0, [None, [0, 8], [0, 8]]]},
    "a reference to nothing": {"ref": [7, 7]},
    "a reference to itself": {"tuple": [{"ref": [0, 0]}]},
    "a negative reference": {"ref": [-1, -1]},
    "an unknown word": {"eval": "1 + 1"},
    "nothing": {},
    "a list": [1, 2],
    "a matrix of words": {"csr": ["a", "b", "c", [1, 1], [True, True]]},
}


@pytest.mark.parametrize("what", sorted(HOSTILE))
def test_a_hostile_tree_is_refused_even_under_our_own_seal(
    path: Path, bits: bytes, what: str
) -> None:
    _sealed(path, lambda about: about.update(tree=HOSTILE[what]))
    opened = fresh(path)
    with pytest.raises(Unusable):
        read_layer(home(path), opened.keys[0], below=[])
    assert opened.open() is None


def test_a_tree_too_deep_to_follow_is_refused(path: Path, bits: bytes) -> None:
    layer = home(path) / LedgerCache(path).keys[0]
    for depth in (2_000, 200_000):
        text = b'{"coinhaze_cache": 2, "tree": ' + b"[" * depth + b"]" * depth + b"}"
        (layer / ABOUT).write_bytes(text)
        (layer / SEAL).write_bytes(kept_files._seal(kept_files._secret(), text))
        assert assert_never_wrong(path, bits) is None


@pytest.mark.parametrize("size", [-1, 0, 2**62, "many", None])
def test_sizes_that_cannot_be_are_refused(path: Path, bits: bytes, size: Any) -> None:
    _sealed(path, lambda about: about["stamp"].__setitem__(0, size))
    assert assert_never_wrong(path, bits) is None


def test_mutants_of_a_description_never_escape(path: Path, bits: bytes) -> None:
    """Whatever a tree says, only errors that opening expects come out of it."""
    layer = home(path) / LedgerCache(path).keys[0]
    good = (layer / ABOUT).read_bytes()
    data = memoryview((layer / DATA).read_bytes())
    refused = 0
    cases = mutants(
        good, 300, 3, pieces=[b"-1", b"[", b"{}", b"1e99", b'"ref"'], cuts=[1, 3, 20], repeats=[9]
    )
    for case in cases:
        try:
            Unpacker(data, []).unpack(json.loads(case)["tree"])
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            refused += 1
    assert refused > 100


# ---------------------------------------------------------------- interrupted, full, at once


def test_a_full_disk_leaves_nothing_and_the_scores_are_given(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("coinhaze.ledger.atomic.os.fsync", full)
    built = LedgerCache(path).build()
    assert not built.is_cached
    assert "No space left" in built.notes[0]
    assert len(built.scores) > 0
    assert list(home(path).iterdir()) == []


class Stop(Exception):
    pass


@pytest.mark.parametrize("after", [0.0, 0.2, 0.5, 0.6, 1.0])
def test_raising_from_progress_stops_the_work_and_leaves_whole_layers(
    path: Path, after: float
) -> None:
    def progress(share: float, /) -> None:
        if share >= after:
            raise Stop

    with pytest.raises(Stop):
        LedgerCache(path).build(progress=progress)
    assert not [p for p in home(path).iterdir() if p.name.startswith(".")]
    for layer in layers(path):
        assert (layer / SEAL).exists()
    assert fresh(path).build().is_cached


_KILLED = """
import os, sys, time
from coinhaze.cache import files as kept_files
from coinhaze.cache.layers import LedgerCache
put = kept_files._Run.put
begun = []
def slowly(self, data):
    begun.append(data)
    print("writing", flush=True)
    if len(begun) == 3:
        time.sleep(600)
    return put(self, data)
kept_files._Run.put = slowly
LedgerCache(sys.argv[1]).build()
"""


def test_a_killed_process_leaves_nothing_that_opens_and_others_clear_up(path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for _ in range(3):
        assert process.stdout.readline() == "writing\n"
    half = [p for p in home(path).iterdir() if p.name.startswith(".")]
    assert half
    assert not kept_files.is_abandoned(half[0])
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert kept_files.is_abandoned(half[0])
    assert fresh(path).open() is None
    assert fresh(path).build().is_cached
    assert not [p for p in home(path).iterdir() if p.name.startswith(".")]


def _build(path: Path, results: Any) -> None:
    for _ in range(3):
        results.put(LedgerCache(path).build().scores.bits.tobytes())
        shutil.rmtree(home(path), ignore_errors=True)


def test_processes_that_keep_and_remove_at_once_do_not_harm_each_other(
    path: Path, bits: bytes
) -> None:
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    workers = [context.Process(target=_build, args=(path, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    found = [results.get() for _ in range(6)]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert set(found) == {bits}


def _change_at(path: Path, moment: float) -> Callable[[float], None]:
    """Replace the ledger when the work tells of this share."""

    def progress(share: float, /) -> None:
        if share == moment:
            write_folder(simulate_town(transactions=90), path)

    return progress


def test_a_ledger_that_changes_while_it_is_read_is_refused(path: Path) -> None:
    with pytest.raises(InputError, match="changed while it was read: try again"):
        LedgerCache(path).build(progress=_change_at(path, 0.0))
    assert layers(path) == []


def test_a_ledger_that_changes_later_is_scored_as_it_was_and_not_retained(path: Path) -> None:
    expected = coinhaze.score(path).bits.tobytes()
    built = LedgerCache(path).build(progress=_change_at(path, 0.4))
    assert built.scores.bits.tobytes() == expected
    assert not built.is_cached
    assert "has changed since it was read" in built.notes[-1]
    assert fresh(path).open() is None


def test_what_was_removed_under_an_open_ledger_still_answers(path: Path, bits: bytes) -> None:
    opened = fresh(path).open()
    assert opened is not None
    shutil.rmtree(home(path))
    assert opened.scores.bits.tobytes() == bits


def test_a_key_that_is_no_key_is_named(tmp_path: Path, path: Path) -> None:
    key = tmp_path / "cache" / "coinhaze" / "kept.key"
    key.parent.mkdir(parents=True)
    key.write_bytes(b"short")
    built = LedgerCache(path).build()
    assert not built.is_cached
    assert "not a key" in built.notes[0]
    with pytest.raises(CoinhazeError):
        kept_files._secret()
    key.unlink()
    assert LedgerCache(path).build().is_cached
    assert key.stat().st_mode & 0o077 == 0
    for layer in layers(path):
        assert layer.stat().st_mode & 0o077 == 0


def test_comparing_everything_finds_what_times_do_not_show(
    path: Path, bits: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that forgets changes no time: only comparing shows it."""
    good = {layer: kept_files._stamp(layer / DATA) for layer in layers(path)}
    for layer in layers(path):
        flip(layer / DATA, 70)
    monkeypatch.setattr(kept_files, "_stamp", lambda file: good[file.parent])
    assert fresh(path).open(compare=True) is None
