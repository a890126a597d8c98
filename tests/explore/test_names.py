"""Names as ledgers hold them: long ones, dots, quotes, and those that look like snapshots."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pytest

import coinhaze
from coinhaze.errors import InputError, UsageError
from coinhaze.explore.query import (
    SLASH,
    CoinQuery,
    PageQuery,
    Settings,
    TableQuery,
    name_in_path,
    thing_link,
)
from coinhaze.explore.table import cursor_at
from coinhaze.web.registry import LedgerRegistry
from web.explorers import explorer_of

LONG = "n" * 5_000
ODD = [
    ".", "..", "/.", "//..", "a/b", "<b>", '"quoted"', "'one'", " blank ", "a b", "{x}", "]]>",
    "%41", "[x]", "<script>alert(1)</script>", "x,", "(y)", "`z`", ";", "https://a.b/tx/c",
]  # fmt: skip


def accounts(*transfers: tuple[str, str, int]) -> coinhaze.AccountLedger:
    return coinhaze.AccountLedger.from_transfers(list(transfers))


def test_a_long_name_is_answered_everywhere() -> None:
    explorer = explorer_of(accounts(("a", LONG, 3), ("b", LONG, 1), (LONG, "c", 1)))
    assert explorer.coin(LONG, CoinQuery()).name == LONG
    assert LONG in {row.name for row in explorer.table(TableQuery()).rows}
    assert LONG in {dot.name for dot in explorer.density(Settings()).outliers}
    assert LONG in {row.name for row in explorer.ledger(Settings()).most}
    assert explorer.comparators(LONG, Settings()).name == LONG
    assert explorer.search(LONG).hits[0].name == LONG


def test_cursors_of_long_names_are_short_enough_to_come_back() -> None:
    explorer = explorer_of(accounts(("a", LONG, 3), ("b", LONG, 1), ("d", LONG, 1)))
    seen, after = [], None
    for _ in range(3):
        page = explorer.origins(LONG, Settings(), after=after, limit=1)
        seen += [row.name for row in page.rows]
        if page.after is not None:
            after = PageQuery(after=page.after).after  # what a request may hold
    assert sorted(seen) == ["a", "b", "d"]
    assert len(cursor_at(10**12, LONG)) < 100


def test_a_cursor_of_other_settings_or_another_ledger_is_refused() -> None:
    transfers = [("a", "c", 3), ("b", "c", 1), ("c", "d", 1), ("c", "e", 1)]
    explorer = explorer_of(accounts(*transfers))
    after = explorer.table(TableQuery(limit=1)).after
    assert after is not None
    assert explorer.table(TableQuery(limit=1, after=after)).rows
    for other in (
        TableQuery(policy="uniform", after=after),
        TableQuery(time="temporal", after=after),
    ):
        with pytest.raises(InputError, match="cursor of something else"):
            explorer.table(other)
    changed = explorer_of(accounts(*transfers))
    changed.digest = "d2"
    with pytest.raises(InputError, match="cursor of something else"):
        changed.table(TableQuery(after=after))
    origins = explorer.origins("d", Settings(), after=None, limit=1).after
    assert origins is not None
    with pytest.raises(InputError, match="cursor of something else"):
        explorer.origins("d", Settings(policy="uniform"), after=origins, limit=1)


@pytest.mark.parametrize("name", ODD, ids=[str(k) for k in range(len(ODD))])
def test_odd_names_are_found_exactly_and_have_a_page(name: str) -> None:
    explorer = explorer_of(accounts(*(("a", odd, 1) for odd in ODD)))
    hit = explorer.search(name).hits[0]
    assert (hit.kind, hit.name) == ("account", name)
    assert explorer.coin(name, CoinQuery()).name == name
    part = hit.href.split("?")[0].removeprefix("/l/made/coin/")
    # A browser takes out parts of dots alone, escaped or not.
    assert unquote(part) not in (".", "..")
    assert "/" not in part
    assert name_in_path(unquote(part.replace("%2F", SLASH))) == name
    assert hit.href == thing_link("made", "coin", name)


def test_what_looks_like_a_snapshot_takes_the_order_of_payments_away() -> None:
    explorer = explorer_of(accounts(("a", "name", 2), ("b", "name:1", 1), ("name", "c", 1)))
    facts = explorer.facts()
    assert facts["times"] == ("stationary",)
    assert not {"fifo", "lifo"} & set(facts["policies"])
    assert any("'name:1'" in note for note in explorer.ledger(Settings()).notes)
    for asked in (CoinQuery(policy="fifo"), CoinQuery(policy="lifo"), CoinQuery(time="temporal")):
        with pytest.raises(UsageError, match="taken for a snapshot of 'name'"):
            explorer.coin("c", asked)
    rules = {rule.policy: rule.refused for rule in explorer.comparators("c", Settings()).rules}
    assert "snapshot" in (rules["fifo"] or "")
    # Names that end in a number are no trouble by themselves.
    other = explorer_of(accounts(("a", "name:1", 2), ("b", "x", 1)))
    assert other.facts()["times"] == ("stationary", "temporal")
    assert "fifo" in other.facts()["policies"]


def test_a_card_offers_no_order_where_names_leave_no_room_for_it(tmp_path: Path) -> None:
    path = tmp_path / "clash.csv"
    path.write_text("from,to,value\na,name,2\nb,name:1,1\nname,c,1\n")
    registry = LedgerRegistry([path])
    explorer = registry.explorer("clash")
    assert explorer is not None
    card = registry.card("clash")
    assert card.state == "ready"
    assert card.times == ("stationary",)
    assert card.policies == ("haircut", "uniform", "poison")
    assert "snapshot of 'name'" in (card.message or "")
