"""A format written outside the package, in this one file, is read, recognised and named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import coinhaze
from coinhaze.cli import cli
from coinhaze.errors import InputError, LedgerError, UsageError
from coinhaze.formats.registry import Format, format_of, register, unregister
from coinhaze.ledger import AccountLedger
from coinhaze.ledger.batches import Batch, Rows

MAGIC = b"#arrows"
TEXT = "#arrows\nalice -> shop: 5\nbob -> shop: 3\nshop -> carol: 6\n"


def recognises(head: bytes) -> bool:
    return head.startswith(MAGIC)


def batches(path: Path) -> Iterator[Batch]:
    rows = Rows("transfers")
    for number, line in enumerate(path.read_text().splitlines()[1:]):
        ends, colon, amount = line.rpartition(": ")
        sender, _, recipient = ends.partition(" -> ")
        if not colon or not amount.isdecimal():
            raise LedgerError(f"{path}:{number + 2}", "is no payment", value=line)
        rows.add(
            height=0, position=number, step=0, txid=f"t{number}", token="", sender=sender,
            recipient=recipient, amount=amount, kind="transaction",
        )  # fmt: skip
    yield Batch({"transfers": rows.table()})


ARROWS = Format("arrows", "Arrows", "payments drawn as arrows, one per line", recognises, batches)


@pytest.fixture
def arrows(tmp_path: Path) -> Iterator[Path]:
    register(ARROWS)
    path = tmp_path / "payments.txt"
    path.write_text(TEXT)
    yield path
    unregister("arrows")


def run(*words: object) -> str:
    answer = CliRunner().invoke(cli, [str(word) for word in words])
    assert answer.exit_code == 0, answer.output
    return answer.output


def paid(ledger: object) -> list[tuple[str, str, int]]:
    assert isinstance(ledger, AccountLedger)
    rows = ledger.tables()["transfers"].to_pylist()
    return [(row["from"], row["to"], row["amount"]) for row in rows]


PAID = [("alice", "shop", 5), ("bob", "shop", 3), ("shop", "carol", 6)]


def test_it_is_recognised_and_read(arrows: Path) -> None:
    assert format_of(arrows) == "arrows"
    assert paid(coinhaze.read(arrows)) == PAID
    assert paid(coinhaze.read(arrows, format="arrows")) == PAID
    assert coinhaze.score(arrows).to_arrow()["node"].to_pylist() == ["shop", "carol"]


def test_the_command_line_ingests_it_and_names_it(arrows: Path) -> None:
    store = arrows.with_suffix(".duckdb")
    run("ingest", arrows, "-o", store)
    assert paid(coinhaze.read(store)) == PAID
    for command in ("ingest", "score", "info", "origins", "knowledge"):
        assert "arrows" in run(command, "--help")


def test_its_errors_reach_the_user(arrows: Path) -> None:
    arrows.write_text(TEXT + "nobody\n")
    with pytest.raises(LedgerError, match=r"payments\.txt:5: is no payment"):
        coinhaze.read(arrows)


def test_it_is_gone_when_it_is_taken_out(arrows: Path) -> None:
    unregister("arrows")
    with pytest.raises(InputError, match="no known format"):
        coinhaze.read(arrows)
    with pytest.raises(UsageError, match="unknown format 'arrows'"):
        coinhaze.read(arrows, format="arrows")
    assert "arrows" not in run("score", "--help")
    register(ARROWS)


def test_a_name_is_taken_once(arrows: Path) -> None:
    for name in ("arrows", "blockchair", "folder"):
        with pytest.raises(UsageError, match=f"{name}' is registered already"):
            register(Format(name, "", "", recognises, batches))
