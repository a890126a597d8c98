"""One word for each thing: those of the glossary, and none of the ones they replaced."""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# What was said before, and what is said now.
REPLACED = {
    "asked": "requested",
    "told": "stated, reported, known",
    "alike": "equal, the same",
    "whoever": "anyone who; the payee",
    "desk": "Explorer",
    "shelf": "LedgerRegistry",
    "purse": "wallet, CoinSet",
    "parcel": "lot",
    "parcels": "lots",
    "pile": "queue",
}
NAMES = REPLACED | {"most": "max_, maximum", "least": "min_, minimum"}
# Where such a word stays, and why.
STAYS = {
    (
        "docs/privacy-technologies.md",
        "told",
    ): "the name of an observer, in results that were stored",
    ("src/coinhaze/simulate/mixing.py", "told"): "the same observer",
    ("src/coinhaze/growth/growth.py", "told"): "a key of files that were written before",
    ("src/coinhaze/compare/figures.py", "told"): "the same key",
    ("src/coinhaze/__init__.py", "parcels"): "a former name that still works",
    ("src/coinhaze/explore/models/ledgers.py", "most"): "a field of the API",
    ("src/coinhaze/explore/explorer.py", "most"): "the same field",
    ("src/coinhaze/explore/history/explorer.py", "most"): "the same field",
    ("docs/decisions/0009-packages-by-subject.md", "desk"): "what packages were called before",
}
FIELDS = {"most"}  # of a ledger's page: reading it is no name of ours


def files(*patterns: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return [name for name in listed.stdout.split() if (ROOT / name).is_file()]


def replaced_words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Za-z]+", text)} & REPLACED.keys()


def names_in(source: str) -> Iterator[tuple[str, bool]]:
    """Give every name of a module, and whether it follows a dot."""
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield token.string, before == "."
        before = token.string


def replaced_names(source: str) -> set[str]:
    found = set()
    for name, is_attribute in names_in(source):
        parts = [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
        for before, part in zip(["", *parts], parts, strict=False):
            bound = part in ("most", "least") and before == "at"
            field = is_attribute and name in FIELDS
            if part in NAMES and not bound and not field and name != "most_common":
                found.add(part)
    return found


def test_words_that_were_replaced_are_found() -> None:
    assert replaced_words("`whoever` is paid; Asked by name") == {"whoever", "asked"}
    assert replaced_names("def f(most): return max_of.most_steps") == {"most"}
    assert replaced_names("LEAST_ROWS = at_most(3)\npage.most.most_common()") == {"least"}


@pytest.mark.parametrize("kind", ["docs/*.md", "README.md", "src/coinhaze"])
def test_texts_have_the_words_of_the_glossary(kind: str) -> None:
    names = files(kind)
    if not names:
        pytest.skip("no list of files outside a checkout")
    found = []
    for name in names:
        if Path(name).suffix in (".py", ".md", ".html", ".txt"):
            words = replaced_words((ROOT / name).read_text(encoding="utf-8"))
            found += [(name, word) for word in sorted(words) if (name, word) not in STAYS]
    assert not found, {word: REPLACED[word] for _, word in found}


def test_names_have_the_words_of_the_glossary() -> None:
    names = files("src/coinhaze/*.py", "src/coinhaze/**/*.py")
    if not names:
        pytest.skip("no list of files outside a checkout")
    found = []
    for name in names:
        words = replaced_names((ROOT / name).read_text(encoding="utf-8"))
        found += [(name, word) for word in sorted(words) if (name, word) not in STAYS]
    assert not found


def test_nothing_stays_that_is_not_there() -> None:
    for name, word in STAYS:
        assert re.search(
            rf"(?<![A-Za-z]){word}(?![A-Za-z])", (ROOT / name).read_text(encoding="utf-8")
        ), name
