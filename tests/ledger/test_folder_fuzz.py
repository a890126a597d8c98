"""Spoilt folders give a ledger or an error of ours, and never a ledger that breaks a rule."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coinhaze.errors import CoinhazeError
from coinhaze.graph import transaction_graph
from coinhaze.ledger import AccountLedger, CoinLedger, read_folder, write_folder
from ledger import folders

MUTANTS = 60
MANY = 3_000

LEDGERS: dict[str, Callable[[], CoinLedger | AccountLedger]] = {
    "coins": folders.coins,
    "shielded": folders.shielded,
    "rings": folders.rings,
    "accounts": folders.accounts,
}
VALUES: list[Any] = [
    None, -1, 0, 1, 2, 3, 6, 2**31, 2**32, 2**63 - 1, -(2**63), 0.5, float("nan"), float("inf"),
    True, "", "a", "a:0", "x:3", "p1:1", "\0", "\ud7ff", "sapling", "9" * 80, "-5", b"\xff" * 32,
]  # fmt: skip
KINDS = [
    pa.int8(), pa.uint64(), pa.int32(), pa.float32(), pa.string(), pa.large_string(), pa.bool_(),
    pa.binary(), pa.binary(32), pa.null(), pa.timestamp("us"),
    pa.dictionary(pa.int8(), pa.string()), pa.decimal128(20, 2), pa.list_(pa.int64()),
]  # fmt: skip


def spoil_table(table: pa.Table, chance: random.Random) -> pa.Table:
    if not table.num_columns:
        return table
    at = chance.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    rows = list(range(table.num_rows))
    match chance.randrange(8):
        case 0 | 1 | 2 | 3 if rows:
            values = column.to_pylist()
            for _ in range(chance.choice((1, 1, 2))):
                others = chance.choice(values)
                values[chance.choice(rows)] = chance.choice([*VALUES, others, others])
            try:
                return table.set_column(at, name, pa.array(values, column.type))
            except (pa.ArrowException, ValueError, TypeError, OverflowError):
                words = pa.array([None if v is None else str(v) for v in values])
                return table.set_column(at, name, words)
        case 4:
            try:
                return table.set_column(at, name, column.cast(chance.choice(KINDS), safe=False))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                return table.drop_columns([name])
        case 5:
            chance.shuffle(rows)
        case 6 if rows:
            rows.append(chance.choice(rows))
        case _ if rows:
            rows.remove(chance.choice(rows))
    return table.take(pa.array(rows, pa.int64()))


def spoil_folder(folder: Path, chance: random.Random) -> None:
    for _ in range(chance.choice((0, 1, 1, 1, 2))):
        file = chance.choice(sorted(folder.glob("*.parquet")))
        pq.write_table(spoil_table(pq.read_table(file), chance), file)
    if chance.random() < 0.3:
        file = chance.choice(sorted(folder.iterdir()))
        data = bytearray(file.read_bytes())
        for _ in range(chance.choice((1, 1, 4))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        file.write_bytes(data)


def build_graphs(ledger: CoinLedger | AccountLedger) -> None:
    transaction_graph(ledger)
    if isinstance(ledger, AccountLedger):
        transaction_graph(ledger, time="temporal")
    elif ledger.output_value is not None:
        transaction_graph(ledger, view="address", time="temporal")


def is_ledger_or_refused(folder: Path) -> bool:
    try:
        ledger = read_folder(folder)
    except CoinhazeError:
        return False
    assert ledger.tables()
    assert ledger.facts()
    try:
        build_graphs(ledger)
    except CoinhazeError as error:
        if "would be taken for a snapshot" not in str(error):
            raise
    return True


@pytest.mark.parametrize("count", [MUTANTS, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", LEDGERS)
def test_spoilt_folders_give_a_ledger_or_an_error_of_ours(
    tmp_path: Path, name: str, count: int
) -> None:
    whole = write_folder(LEDGERS[name](), tmp_path / "whole")
    read_well = 0
    for number in range(count):
        folder = tmp_path / "spoilt"
        shutil.copytree(whole, folder)
        try:
            chance = random.Random(f"{name} {number}")
            spoil_folder(folder, chance)
            read_well += is_ledger_or_refused(folder)
        except BaseException as stray:
            stray.add_note(f"mutant {number} of {name}")
            raise
        shutil.rmtree(folder)
    assert 0 < read_well < count
