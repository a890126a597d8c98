"""The glossary defines every public name, in alphabetical order."""

from __future__ import annotations

import inspect
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import coinhaze

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/glossary.md").read_text()
ENTRIES = re.findall(r"^\*\*([^*]+?)\.?\*\*(?: \(((?:`\w+`(?:, )?)+)\)\.)? \w", PAGE, re.MULTILINE)
NAMES = {name for _, names in ENTRIES for name in re.findall(r"\w+", names)}


def exported() -> set[str]:
    """Return the names of the library, and the classes that its packages export.

    Models of the API are not among them: its schema describes each, with all its fields.
    """
    public = {name: getattr(coinhaze, name) for name in coinhaze.__all__}
    names = {name for name, value in public.items() if not inspect.ismodule(value)}
    for module in pkgutil.walk_packages(coinhaze.__path__, "coinhaze."):
        if module.ispkg and module.name != "coinhaze.explore.models":
            package = import_module(module.name)
            for name in getattr(package, "__all__", ()):
                if inspect.isclass(getattr(package, name)):
                    names.add(name)
    return names


def test_every_public_name_has_an_entry() -> None:
    assert len(coinhaze.__all__) > 20
    assert not exported() - NAMES, "define these in docs/glossary.md"


def test_every_error_has_an_entry() -> None:
    errors = inspect.getmembers(import_module("coinhaze.errors"), inspect.isclass)
    raised = {name for name, kind in errors if issubclass(kind, coinhaze.CoinhazeError)}
    assert raised <= NAMES


def test_every_name_in_the_glossary_is_in_the_code() -> None:
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    for name in NAMES:
        defined = re.compile(rf"^(class|def) {name}\b|^{name}\b.* = ", re.MULTILINE)
        assert any(defined.search(source) for source in sources), name


def test_terms_are_in_alphabetical_order_and_defined_once() -> None:
    terms = [term.casefold() for term, _ in ENTRIES]
    assert len(terms) == len(re.findall(r"^\*\*", PAGE, re.MULTILINE)) > 100
    assert terms == sorted(set(terms))
