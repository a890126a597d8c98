"""cryo's tables: rows, amounts in every encoding, scores by hand, and what mends mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import coinhaze
from coinhaze.errors import CoinhazeError, InputError
from coinhaze.formats.registry import format_of
from coinhaze.ledger import AccountLedger
from coinhaze.store.ingest import ingest
from coinhaze.store.read import read_store
from coinhaze.store.store import Store

ANN, BEN, CID, DAN, USD = (bytes([n]) * 20 for n in (0xA1, 0xB2, 0xC3, 0xD4, 0x5D))
WIDE = 2**200 + 1
# Ann pays three parts of Cid's money and Ben one; Cid gives all to Dan.
PAID = [(ANN, CID, 3 * WIDE), (BEN, CID, WIDE), (CID, DAN, 4 * WIDE)]
BITS = 0.8112781244591328  # -(3/4) log2(3/4) - (1/4) log2(1/4)


def text(name: bytes) -> str:
    return "0x" + name.hex()


def erc20(rows: list[tuple[bytes, bytes, int]] = PAID) -> dict[str, pa.Array]:
    """What cryo writes without options, all amounts three times."""
    n = len(rows)
    numbers = list(range(n))
    amounts = [amount for _, _, amount in rows]
    return {
        "block_number": pa.array([100 + k for k in numbers], pa.uint32()),
        "transaction_index": pa.array([7] * n, pa.uint32()),
        "log_index": pa.array([30 + k for k in numbers], pa.uint32()),
        "transaction_hash": pa.array([bytes([k + 1]) * 32 for k in numbers], pa.binary()),
        "erc20": pa.array([USD] * n, pa.binary()),
        "from_address": pa.array([row[0] for row in rows], pa.binary()),
        "to_address": pa.array([row[1] for row in rows], pa.binary()),
        "value_binary": pa.array([amount.to_bytes(32, "big") for amount in amounts], pa.binary()),
        "value_string": pa.array([str(amount) for amount in amounts]),
        "value_f64": pa.array([float(amount) for amount in amounts]),
        "chain_id": pa.array([1] * n, pa.uint64()),
    }


def native(rows: list[tuple[bytes, bytes, int]] = PAID) -> dict[str, pa.Array]:
    table = erc20(rows)
    del table["erc20"]
    return table | {"transfer_index": table.pop("log_index")}


def hexadecimal(table: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """What cryo writes with --hex."""

    def written(column: pa.Array) -> pa.Array:
        if not pa.types.is_binary(column.type):
            return column
        return pa.array([v and "0x" + v.hex() for v in column.to_pylist()])

    return {name: written(column) for name, column in table.items()}


Call = dict[str, Any]


def call(kind: str, frm: bytes, to: bytes | None, value: int, place: str = "", **more: Any) -> Call:
    row: Call = {
        "action_type": kind,
        "action_from": frm,
        "action_to": to,
        "action_value": str(value),
    }
    row |= {"trace_address": place, "action_call_type": "call" if kind == "call" else None}
    row |= {"block_number": 100, "transaction_index": 0, "transaction_hash": b"\1" * 32}
    return row | {"result_address": None, "error": None, "action_reward_type": None} | more


def traces(rows: list[Call]) -> dict[str, pa.Array]:
    return {name: pa.array([row[name] for row in rows]) for name in rows[0]} | {
        "chain_id": pa.array([1] * len(rows), pa.uint64()),
        "block_hash": pa.array([b"\x0b" * 32] * len(rows)),
        "subtraces": pa.array([0] * len(rows), pa.uint32()),
    }


def write(path: Path, columns: dict[str, pa.Array]) -> Path:
    file = path / "ethereum__erc20_transfers__00000100_to_00000102.parquet"
    pq.write_table(pa.table(columns), file)
    return file


def moved(path: Path, **settings: Any) -> list[tuple[str, str, int]]:
    ledger = coinhaze.read(path, **settings)
    assert isinstance(ledger, AccountLedger)
    names = ledger.accounts.to_pylist()
    rows = zip(ledger.sender.tolist(), ledger.receiver.tolist(), ledger.amounts.ints(), strict=True)
    return [(names[a], names[b], amount) for a, b, amount in rows]


def named(rows: list[tuple[bytes, bytes, int]]) -> list[tuple[str, str, int]]:
    return [(text(a), text(b), amount) for a, b, amount in rows]


@pytest.mark.parametrize("make", [erc20, native])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("only", ["value_binary", "value_string", None])
def test_transfers_are_read_and_scored_as_by_hand(
    tmp_path: Path, make: Any, packed: bool, only: str | None
) -> None:
    table = make()
    if only:
        table = {n: c for n, c in table.items() if n == only or not n.startswith("value_")}
    path = write(tmp_path, table if packed else hexadecimal(table))
    assert format_of(path) == "cryo"
    assert moved(path) == named(PAID)
    assert coinhaze.score(path)[text(DAN)].bits == pytest.approx(BITS, abs=1e-12)


def test_csv_is_read_the_same(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pyarrow.csv.write_csv(pa.table(hexadecimal(erc20())), path)
    assert format_of(path) == "cryo"
    assert moved(path) == named(PAID)


def test_what_a_file_cannot_show_is_said(tmp_path: Path) -> None:
    assert any("approvals" in n for n in coinhaze.read(write(tmp_path, erc20())).notes)
    notes = coinhaze.read(write(tmp_path, native())).notes
    assert any("delegatecalls" in n and "--exclude-failed" in n for n in notes)
    assert not any("not known" in n for n in notes)


def test_senders_and_recipients_are_swapped_only_when_that_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, native([(b, a, amount) for a, b, amount in PAID]))
    assert moved(path) != named(PAID)
    said = {"format": "cryo", "columns": "from=to_address,to=from_address"}
    assert moved(path, **said) == named(PAID)
    notes = coinhaze.read(path, **said).notes  # type: ignore[arg-type]
    assert notes[-1].endswith("read as given: columns from=to_address,to=from_address")
    with Store(None) as store:
        ingest([path], store, format="cryo", columns=said["columns"])
        assert store.sources()[0].format == "cryo, columns from=to_address,to=from_address"
        assert len(read_store(store)) == 3


def test_native_transfers_have_rewards_and_creations_that_failed(tmp_path: Path) -> None:
    rows = [(bytes(20), ANN, 5), (ANN, bytes(32), 3), (ANN, BEN, 0), (ANN, BEN, 2)]
    table = native(rows)
    table["transaction_hash"] = pa.array([None, *(bytes([k]) * 32 for k in (2, 3, 4))])
    table["transaction_index"] = pa.array([None, 0, 0, 0], pa.uint32())
    assert moved(write(tmp_path, table)) == named([rows[0], rows[3]])


def test_traces_are_read_and_scored_as_by_hand(tmp_path: Path) -> None:
    rows = [
        call("reward", ANN, None, 3 * WIDE, action_reward_type="reward", transaction_index=None),
        call("call", BEN, CID, WIDE, transaction_hash=b"\2" * 32),
        call("call", CID, USD, WIDE, "0", action_call_type="delegate_call",
             transaction_hash=b"\2" * 32),
        call("call", ANN, DAN, 9, transaction_hash=b"\3" * 32, transaction_index=1,
             error="Reverted"),
        call("call", DAN, BEN, 9, "0", transaction_hash=b"\3" * 32, transaction_index=1),
        call("call", ANN, CID, 3 * WIDE, transaction_hash=b"\4" * 32, block_number=101),
        call("create", CID, None, 3 * WIDE, "10", transaction_hash=b"\4" * 32, block_number=101,
             result_address=DAN),
        call("suicide", CID, DAN, WIDE, "2", transaction_hash=b"\4" * 32, block_number=101),
    ]  # fmt: skip
    rows[0]["transaction_hash"] = None
    table = traces(rows)
    table["block_hash"] = pa.array([b"\x0b" * 32] * 5 + [b"\x0c" * 32] * 3)
    wanted = [
        (BEN, CID, WIDE), (bytes(20), ANN, 3 * WIDE), (ANN, CID, 3 * WIDE), (CID, DAN, WIDE),
        (CID, DAN, 3 * WIDE),
    ]  # fmt: skip
    for here in (table, hexadecimal(table)):
        path = write(tmp_path, here)
        assert moved(path) == named(wanted)
        # Of the four parts that Dan holds, Ben brought one and the reward three.
        assert coinhaze.score(path)[text(DAN)].bits == pytest.approx(BITS, abs=1e-12)
    older = dict(table)
    older["transaction_position"] = older.pop("transaction_index")
    assert moved(write(tmp_path, older)) == named(wanted)


def lossy(*kept: str) -> dict[str, pa.Array]:
    return {n: c for n, c in erc20().items() if not n.startswith("value") or n in kept}


def wrong(**columns: Any) -> dict[str, pa.Array]:
    return erc20() | {name: pa.array(values) for name, values in columns.items()}


def without(*names: str) -> dict[str, pa.Array]:
    return {name: column for name, column in erc20().items() if name not in names}


APPROVALS = without("from_address", "to_address") | {
    "spender_address": erc20()["to_address"], "from_address": erc20()["from_address"],
}  # fmt: skip
NFT = without("erc20", "value_binary") | {"erc721": erc20()["erc20"]}
SENT = without("erc20", "log_index") | {"gas_price": pa.array([1, 1, 1])}
CHOSEN = {"format": "cryo", "columns": "amount=value_f64"}
MISTAKES: dict[str, tuple[dict[str, pa.Array], dict[str, Any], str]] = {
    "a double alone": (lossy("value_f64"), {}, r"value_f64 .*loses digits.*--u256-types binary"),
    "numbers that wrap": (
        lossy() | {"value_u64": pa.array([1, 2, 3])}, {}, r"value_u64 .*loses digits"),
    "no amount": (lossy(), {}, r"without an amount .*--u256-types binary"),
    "a double chosen": (erc20(), CHOSEN, r"value_f64 .*--u256-types binary"),
    "decimals given": (erc20(), {"decimals": 18}, r"smallest unit.*leave out --decimals"),
    "a column left out": (without("log_index"), {}, r"without log_index.*with all its columns"),
    "approvals": (APPROVALS, {},
        r"erc20_approvals do not say.*cryo erc20_transfers --blocks as before"),
    "transactions": (SENT, {}, r"transactions do not say what moved.*cryo traces --blocks as"),
    "tokens that are one of a kind": (NFT, {}, r"erc721_transfers do not say.*erc20_transfers"),
    "addresses padded to 32 bytes": (
        wrong(from_address=[bytes(12) + ANN] * 3), {}, r"row 1: from_address is not 40 hex"),
    "addresses cut short": (
        wrong(to_address=[ANN, ANN[:19], ANN]), {}, r"row 2: to_address is neither an address"),
    "amounts cut short": (wrong(value_binary=[b"\1"] * 3), {},
        r"not 32 bytes.*collect .*unchanged"),
    "an amount that is missing": (wrong(value_binary=[None] * 3), {}, r"value_binary is missing"),
    "several tokens": (wrong(erc20=[USD, USD, ANN]), {}, r"hold 2 tokens.*--token"),
    "columns of traces chosen": (
        traces([call("call", ANN, BEN, 1)]), {"format": "cryo", "columns": "from=action_to"},
        r"traces are known.*leave out --columns"),
    "callers left out": (
        traces([call("call", ANN, BEN, 1, "0")]), {}, r"caller is not in the file.*keep all rows"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_likely_mistake_is_named_with_its_fix(tmp_path: Path, mistake: str) -> None:
    columns, settings, message = MISTAKES[mistake]
    with pytest.raises(CoinhazeError, match=message):
        coinhaze.read(write(tmp_path, columns), **settings)


def test_damage_is_an_error_of_input(tmp_path: Path) -> None:
    path = write(tmp_path, erc20())
    whole = path.read_bytes()
    for cut in range(1, len(whole), 97):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError):
            coinhaze.read(path)


@pytest.mark.parametrize("kind", ["erc20", "native", "traces"])
def test_columns_in_any_case_are_the_same(tmp_path: Path, kind: str) -> None:
    calls = [call("call", ANN, CID, 5), call("call", CID, DAN, 4, "0")]
    table = {"erc20": erc20, "native": native}.get(kind, lambda: traces(calls))()
    for folder in ("plain", "shouted"):
        (tmp_path / folder).mkdir()
    plain = write(tmp_path / "plain", table)
    shouted = {name.upper(): column for name, column in table.items()}
    other = write(tmp_path / "shouted", shouted)
    assert format_of(other) == "cryo"
    assert moved(other) == moved(plain) != []
    if kind != "traces":
        text = tmp_path / "shouted.csv"
        written = hexadecimal(table)
        rows = zip(*(column.to_pylist() for column in written.values()), strict=True)
        lines = [";".join(map(str.upper, written))]
        lines += [";".join("" if v is None else str(v) for v in row) for row in rows]
        text.write_text("\n".join(lines) + "\n")
        assert format_of(text) == "cryo"
        assert moved(text) == moved(plain)
