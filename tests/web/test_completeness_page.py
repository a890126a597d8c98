"""A ledger's page lists every check of its completeness, open where one failed."""

from __future__ import annotations

from pathlib import Path

import coinhaze
from coinhaze.explore.query import Settings
from coinhaze.web.pages.ledger import ledger_page
from ledger.etl_chain import five_blocks, write_etl
from web.explorers import explorer_of


def test_a_ledger_with_a_hole_says_so_on_its_page(tmp_path: Path) -> None:
    hole = write_etl(tmp_path / "hole.json", five_blocks(), without=(3,))
    page = explorer_of(coinhaze.read(hole)).ledger(Settings())
    assert page.completeness is not None
    assert page.completeness.missing_heights == ((3, 3),)
    text = ledger_page(page, None)
    assert '<section class="card sec" id="completeness"><details open>' in text
    assert "Incomplete: heights contiguous failed 1 time, first at height 3</summary>" in text
    for check in page.completeness.checks:
        assert f"<dt>{check.name}</dt><dd>{check.status}" in text
    assert any("may have been made" in note for note in page.notes)


def test_a_whole_ledger_keeps_the_list_closed(tmp_path: Path) -> None:
    whole = write_etl(tmp_path / "whole.json", five_blocks())
    text = ledger_page(explorer_of(coinhaze.read(whole)).ledger(Settings()), None)
    assert '<section class="card sec" id="completeness"><details>' in text
    assert "Completeness: 5 of 8 checks passed, the rest not checkable</summary>" in text
