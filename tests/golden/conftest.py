"""The folder with every ledger, and the comparison with what is stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.json_differences import differences, normalised

from golden.ledgers import write_all
from golden.lines import MADE
from golden.running import answer

FILES = Path(__file__).with_name("files")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every ledger."""
    folder = tmp_path_factory.mktemp("golden")
    write_all(folder)
    with pytest.MonkeyPatch.context() as patch:
        _settle(patch, folder)
        for line in MADE.strip().splitlines():
            assert answer(line, patch)["exit"] == 0, line
    return folder


@pytest.fixture
def folder(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    _settle(monkeypatch, made)
    return made


def _settle(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.chdir(folder)
    patch.setenv("COLUMNS", "100")
    patch.setenv("SOURCE_DATE_EPOCH", "1767225600")  # statements are dated
    patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))


@pytest.fixture
def agree(request: pytest.FixtureRequest) -> Callable[[str, Any], None]:
    """Compare an answer with the stored one, or store it."""
    rewrite = request.config.getoption("rewrite_golden")

    def check(name: str, new: Any) -> None:
        path = FILES / f"{name}.json"
        text = written(normalised(new)) + "\n"
        old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        found = list(differences(old, json.loads(text)))
        if rewrite == "all":
            found = []
        elif rewrite == "words":
            found = [difference for difference in found if not difference.words]
        if rewrite and not found:
            path.write_text(text, encoding="utf-8")
        assert not found, "\n".join(map(str, found[:40]))

    return check


def written(value: Any) -> str:
    """Write JSON with a line for each value that holds no list and no object with more in it."""
    parts = [*(value.values() if isinstance(value, dict) else value)] if _holds(value) else []
    if not any(map(_holds, parts)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    texts = [written(part) for part in parts]
    if isinstance(value, dict):
        names = [json.dumps(name, ensure_ascii=False) for name in value]
        return "{\n" + ",\n".join(map(":".join, zip(names, texts, strict=True))) + "}"
    return "[\n" + ",\n".join(texts) + "]"


def _holds(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)
