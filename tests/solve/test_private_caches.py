"""Caches are for their user alone, whatever the umask says."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from coinhaze.cache import place as kept_place
from coinhaze.cache.layers import LedgerCache
from coinhaze.ledger.coins import Output, Transaction
from coinhaze.nodes.transactions import TransactionCache, default_cache


@pytest.fixture(params=[0o000, 0o022, 0o277])
def mask(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Set an umask, and give the cache folder; it is not there yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "ledger.csv").write_text("from,to,amount\nalice,shop,5\nshop,carol,5\n")
    before = os.umask(request.param)
    yield tmp_path / "cache"
    os.umask(before)


def _modes(folder: Path) -> dict[str, str]:
    """Give the modes of a folder and all that is in it, which must be something."""
    found = [folder, *folder.rglob("*")]
    assert len(found) > 1
    return {str(p): oct(p.stat().st_mode & 0o777) for p in found}


def _wanted(modes: dict[str, str]) -> dict[str, str]:
    return {path: oct(0o700 if Path(path).is_dir() else 0o600) for path in modes}


def test_layers_and_their_key_are_private(mask: Path, tmp_path: Path) -> None:
    assert LedgerCache(tmp_path / "ledger.csv").build().is_cached
    for folder in (tmp_path / "ledger.csv.kept", mask):
        modes = _modes(folder)
        assert modes == _wanted(modes)


def test_layers_in_the_cache_folder_are_private(
    mask: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = kept_place.homes_of
    monkeypatch.setattr(kept_place, "homes_of", lambda paths: both(paths)[1:])
    assert LedgerCache(tmp_path / "ledger.csv").build().is_cached
    assert not (tmp_path / "ledger.csv.kept").exists()
    modes = _modes(mask)
    assert any("/kept/" in path for path in modes)
    assert modes == _wanted(modes)


def test_transactions_of_a_node_are_private(mask: Path) -> None:
    made = Transaction("t", outputs=(Output(5, "a", 0),), coinbase=True)
    with TransactionCache(default_cache(), "bitcoin") as cache:
        cache.keep([made])
    modes = _modes(mask)
    assert modes == _wanted(modes)
    default_cache().chmod(0o644)  # as earlier versions made it
    with TransactionCache(default_cache(), "bitcoin") as cache:
        assert list(cache.find(["t"])) == ["t"]
    assert default_cache().stat().st_mode & 0o777 == 0o600


@pytest.fixture
def open_path() -> Iterator[Path]:
    """Give a folder that others may look into; those of `tmp_path` are private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser can become somebody else")
def test_somebody_elses_cache_beside_a_ledger_is_passed_over(
    open_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path = open_path
    ledger = tmp_path / "ledger.csv"
    ledger.write_text("from,to,amount\nalice,shop,5\nshop,carol,5\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert LedgerCache(ledger).build().is_cached
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs").chmod(0o777)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(60)
            os.setuid(65534)
            os.environ["XDG_CACHE_HOME"] = str(tmp_path / "theirs")
            built = LedgerCache(ledger).build()
            code = 0 if built.is_cached and LedgerCache(ledger).open() is not None else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
