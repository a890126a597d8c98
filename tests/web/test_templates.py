"""Templates escape everything; what is markup already is made by the functions that draw."""

from __future__ import annotations

import re

import pytest
from jinja2 import UndefinedError, nodes

from coinhaze.report.page import Html
from coinhaze.web.pages.render import TEMPLATES, environment, render_part
from web.made import HOSTILE

FILES = sorted(path.name for path in TEMPLATES.iterdir())
# Where a template may call a value safe: nowhere. Drawings come as markup from Python.
SAFE: dict[str, int] = {}


def test_there_are_only_templates() -> None:
    assert FILES
    assert all(name.endswith(".html") for name in FILES)


@pytest.mark.parametrize("name", FILES)
def test_no_template_turns_escaping_off(name: str) -> None:
    tree = environment().parse((TEMPLATES / name).read_text(encoding="utf-8"))
    filters = [each.name for each in tree.find_all(nodes.Filter)]
    assert filters.count("safe") == SAFE.get(name, 0)
    assert not list(tree.find_all((nodes.ScopedEvalContextModifier, nodes.EvalContextModifier)))
    assert not list(tree.find_all((nodes.MarkSafe, nodes.MarkSafeIfAutoescape)))


@pytest.mark.parametrize("name", FILES)
def test_attributes_are_quoted(name: str) -> None:
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    assert not re.findall(r"\s[\w-]+=\{\{", text)


def test_escaping_is_on_whatever_a_template_is_called() -> None:
    assert environment().autoescape is True
    assert environment().from_string("{{ text }}").render(text=HOSTILE).startswith("&lt;img")


def test_text_is_escaped_and_drawings_are_not() -> None:
    part = render_part("legend.html", kinds=[(HOSTILE, HOSTILE)])
    assert isinstance(part, Html)
    assert "<img" not in part
    shown = environment().from_string("{{ part }}").render(part=part)
    assert shown == part


def test_what_a_template_lacks_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render_part("legend.html")


def test_pages_write_no_markup_in_python() -> None:
    pages = TEMPLATES.with_name("pages")
    marked = re.compile(r"</?(p|div|td|a|span|section|svg)[ >]")
    found = [path.name for path in pages.glob("*.py") if marked.search(path.read_text("utf-8"))]
    assert found == []
