"""Whatever a failed check shows to be missing, the coins it can touch are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

import coinhaze
from coinhaze.errors import InputError
from coinhaze.ledger.completeness import COINBASES, LINKS
from coinhaze.readers import read
from coinhaze.store.read import read_store
from store.made_stores import Chain, transfers

from .etl_chain import Record, five_blocks, name, transaction, write_blockchair


def spent_later() -> list[Record]:
    """Five blocks, and the coinbase of the third spent in the fifth."""
    records = [*five_blocks(), transaction(5, 1, [(name(3, 0), 0, 50)], [50])]
    return sorted(records, key=lambda r: (r["block_number"], r["index"]))


def test_a_coinbase_that_is_not_there_touches_what_it_may_have_paid_for(tmp_path: Path) -> None:
    """Blockchair gives no index in the block: that the coinbase is missing is all there is."""
    records = [r for r in spent_later() if r["hash"] != name(3, 0)]
    tables = write_blockchair(tmp_path / "tables", records)
    (tables / "blocks.tsv").unlink()
    scores = coinhaze.score(sorted(tables.iterdir()))
    assert [check.name for check in scores.completeness.failed] == [COINBASES]
    assert scores.completeness.missing_from == 3
    (note,) = scores.notes
    assert "first at height 3; 1 of 5 nodes has a share of money" in note


def chain_of_four() -> Chain:
    chain = Chain()
    for n in range(4):
        chain.block()
        chain.pay(f"c{n}", made=[("ann", 50)])
    chain.pay("s", [("x", 0, 9)], [("bob", 9)])
    return chain


def test_a_block_of_another_branch_is_in_the_place_of_one_that_is_missing() -> None:
    with chain_of_four().store() as store:
        assert read_store(store).completeness.missing_from is None
        store.ask("UPDATE blocks SET previous = 'elsewhere' WHERE height = 2")
        scores = coinhaze.score(read_store(store))
    assert [check.name for check in scores.completeness.failed] == [LINKS]
    assert scores.completeness.missing_from == 1
    (note,) = scores.notes
    assert "first at height 2; 1 of 5 nodes has a share of money" in note


def test_links_of_accounts_are_holes_too() -> None:
    with transfers([("a", "b", 5), ("b", "c", 3), ("c", "d", 1)]) as store:
        rows = "(0, 'b0', NULL, NULL), (1, 'b1', 'b0', NULL), (2, 'b2', 'elsewhere', NULL)"
        store.ask(f"INSERT INTO blocks VALUES {rows}")
        record = read_store(store).completeness
    assert [check.name for check in record.failed] == [LINKS]
    assert record.missing_from == 1


def test_files_that_lack_a_coin_are_called_by_a_name(tmp_path: Path) -> None:
    tables = write_blockchair(tmp_path / "tables", spent_later())
    lines = (tables / "outputs.tsv").read_text().splitlines()
    kept = [line for line in lines if line.split("\t")[1:3] != [name(3, 1), "0"]]
    assert len(kept) == len(lines) - 1
    (tables / "outputs.tsv").write_text("\n".join(kept))
    with pytest.raises(InputError, match=r"^/.*/tables/blocks\.tsv, .*: 1 inputs spend coins"):
        read(sorted(tables.iterdir()))
