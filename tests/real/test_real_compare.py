"""Real ledgers of two kinds, side by side in one table."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import coinhaze
from coinhaze.compare.ledgers import ComparedLedger, ScoringSettings, compared_of
from coinhaze.compare.report import write_manifest, write_report
from coinhaze.compare.rows import ComparisonRow, row_of
from coinhaze.compare.run import score_ledgers
from coinhaze.report.score_files import read_score_file


def compared(data: Path, folder: Path) -> dict[tuple[str, str], ComparisonRow]:
    """Compare a day of the DAI token with four thousand blocks of Bitcoin."""
    token = folder / "dai.csv"
    with gzip.open(data / "erc20_dai_2019_12_12" / "dai_transfers.csv.gz", "rt") as file:
        rows = [(r["txfrom"], r["txto"], r["txvalue"]) for r in csv.DictReader(file)]
    token.write_text("from,to,amount\n" + "".join(",".join(row) + "\n" for row in rows))
    parts = sorted((data / "btc_utxo_100000_104000").glob("[ev]*.csv.gz"))
    ledgers = compared_of([str(token), *(f"bitcoin={part}" for part in parts)])
    paths = score_ledgers(ledgers, folder / "report", ScoringSettings(walks=0))
    return {(f.name, f.time): row_of(f) for f in map(read_score_file, paths)}


def test_a_token_and_a_chain_of_coins_stand_in_one_table(data: Path, tmp_path: Path) -> None:
    rows = compared(data, tmp_path)
    assert list(rows) == [
        ("dai", "stationary"),
        ("dai", "temporal"),
        ("bitcoin", "stationary"),
        ("bitcoin", "temporal"),
    ]
    assert {row.known for row in rows.values()} == {"exact"}
    assert [row.view for row in rows.values()] == ["account", "account", "address", "coin"]
    for name in ("dai", "bitcoin"):
        one, two = rows[name, "stationary"], rows[name, "temporal"]
        # Time makes snapshots or keeps coins apart: more nodes, and here it lowers bits.
        assert one.nodes < two.nodes
        assert one.bits_mean > two.bits_mean > 0
        assert (one.nulls, two.nulls) == (0, 0)


def test_raw_blocks_of_zcash_and_a_token_share_one_report(data: Path, tmp_path: Path) -> None:
    token = tmp_path / "dai.csv"
    with gzip.open(data / "erc20_dai_2019_12_12" / "dai_transfers.csv.gz", "rt") as file:
        rows = [(r["txfrom"], r["txto"], r["txvalue"]) for r in csv.DictReader(file)]
    token.write_text("from,to,amount\n" + "".join(",".join(row) + "\n" for row in rows[:500]))
    blocks = data / "zcash_main_663150_663250" / "blocks.hex.txt.xz"
    ledgers = [
        ComparedLedger("zcash", (blocks,), settings={"unknown": "leave-out"}),
        ComparedLedger("dai", (token,), settings={"time": "temporal"}),
    ]
    paths = score_ledgers(ledgers, tmp_path / "report", ScoringSettings(walks=0))
    write_manifest(tmp_path / "report", paths, published=False)
    zcash, dai = (row_of(read_score_file(path)) for path in paths)
    assert (zcash.sinks, zcash.lower_bounds, zcash.known) == (982, 780, "lower bound")
    assert (dai.lower_bounds, dai.known) == (0, "exact")
    (note,) = coinhaze.score(blocks, unknown="leave-out").notes
    assert zcash.notes == (note,)
    assert "87 of 303 transactions" in note
    assert "21 are left out" in note
    (grid, _) = write_report(tmp_path / "report", figures=False).grids
    assert grid.rows[0][3:7] == ("≥1.13", "≥0.72", "1.60", "≥3.31")
    # A day of DAI without log indexes cannot tell a transfer repeated from one listed twice.
    (same,) = dai.notes
    assert same.startswith("65 rows are each identical to another")
    assert grid.remarks == [f"zcash: {note}", f"dai: {same}"]
