"""A cache that an earlier version wrote is refused by name, built again and cleared away."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path

import pytest

from coinhaze.cache import files
from coinhaze.cache.layers import LedgerCache, verify_cache

KEY = "0123456789abcdef" * 2


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "ledger.csv"
    path.write_text("from,to,amount\nalice,shop,5\nbob,shop,5\nshop,carol,5\n")
    return path


def write_format_1(path: Path) -> Path:
    """Write one layer as version 0.1.0 did before the word "cache": JSON, bytes and a seal."""
    layer = path.with_name(f"{path.name}.kept") / KEY
    layer.mkdir(parents=True, mode=0o700)
    data = b"coinhaze kept".ljust(64, b"\0") + (5).to_bytes(8, "little").ljust(64, b"\0")
    (layer / "data").write_bytes(data)
    seen = (layer / "data").stat()
    about = {
        "coinhaze_kept": 1,
        "key": KEY,
        "ledger": LedgerCache(path).digest,
        "rests_on": [],
        "facts": {"kind": "accounts", "bits_median": 1.0, "estimate": False, "mean_interval": 0.0},
        "stamp": [seen.st_size, seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns],
        "pieces": [hashlib.sha256(data).hexdigest()],
        "tree": {"array": ["<i8", [1], "C", False, [64, 8]]},
    }
    text = json.dumps(about).encode()
    (layer / "about.json").write_bytes(text)
    seal = hmac.new(files._secret(), text, "sha256").hexdigest()
    (layer / "seal").write_text(seal)
    return layer


def test_it_is_refused_by_name(ledger: Path) -> None:
    layer = write_format_1(ledger)
    cache = LedgerCache(ledger)
    assert cache.open() is None
    assert cache.facts() is None
    with pytest.raises(files.Outdated, match="format 1, which is not read any more") as refused:
        files.read_about(layer.parent, KEY)
    assert str(layer) in str(refused.value)
    (line,) = verify_cache(ledger)
    assert str(layer) in line
    assert "cached by an earlier version, in format 1" in line


def test_it_is_built_again_and_cleared_away(ledger: Path) -> None:
    layer = write_format_1(ledger)
    built = LedgerCache(ledger).build()
    assert built.is_cached
    (note,) = built.notes
    assert str(layer) in note
    assert not layer.exists()
    again = LedgerCache(ledger).open()
    assert again is not None
    assert again.scores.bits.tobytes() == built.scores.bits.tobytes()
    assert LedgerCache(ledger).build().notes == ()
