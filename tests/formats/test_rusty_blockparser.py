"""Dumps of rusty-blockparser: four files read side by side, a score by hand, mistakes, damage."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import coinhaze
from coinhaze.errors import CoinhazeError, InputError
from coinhaze.formats.registry import format_of
from coinhaze.formats.tabular import rusty_blockparser
from coinhaze.ledger import CoinLedger
from coinhaze.store.ingest import ingest
from coinhaze.store.read import read_store
from coinhaze.store.store import Store
from ledger.mutants import mutants

HASHES = [f"{n:064x}" for n in range(1, 4)]
TX = [letter * 64 for letter in "abcde"]
ZERO, LAST = "0" * 64, "4294967295"
ANN = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
SCRIPT = "76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac"
KEY = "21" + "02" + "11" * 32 + "ac"
MUTANTS = 600
BITS = 0.8112781244591328  # -(3/4) log2(3/4) - (1/4) log2(1/4)

# Two coinbases of 30 and 10 coins are spent together in the third block.
BLOCKS = [
    f"{name};{100 + n};1;285;{before};{name};{1231006505 + n};486604799;9"
    for n, (name, before) in enumerate(zip(HASHES, [ZERO, *HASHES], strict=False))
]
TRANSACTIONS = [
    f"{TX[0]};{HASHES[0]};1;0",
    f"{TX[1]};{HASHES[1]};1;0",
    f"{TX[2]};{HASHES[2]};1;0",
    f"{TX[3]};{HASHES[2]};2;0",
]
INS = [
    f"{TX[0]};{ZERO};{LAST};04ff;{LAST}",
    f"{TX[1]};{ZERO};{LAST};04ff;{LAST}",
    f"{TX[2]};{ZERO};{LAST};;{LAST}",
    f"{TX[3]};{TX[0]};0;48;{LAST}",
    f"{TX[3]};{TX[1]};0;48;{LAST}",
]
OUTS = [
    f"{TX[0]};0;3000000000;{SCRIPT};{ANN}",
    f"{TX[1]};0;1000000000;{KEY};",
    f"{TX[2]};0;5000000000;{SCRIPT};{ANN}",
    f"{TX[3]};0;3999990000;{SCRIPT};{ANN}",
    f"{TX[3]};1;0;6a0568656c6c6f;",
]
Dump = dict[str, list[str]]
DUMP: Dump = {"blocks": BLOCKS, "transactions": TRANSACTIONS, "tx_in": INS, "tx_out": OUTS}


def write(folder: Path, dump: Dump = DUMP, names: str = "-0-2.csv") -> list[str | Path]:
    files: list[str | Path] = []
    for kind, lines in dump.items():
        path = folder / f"{kind}{names}"
        text = "".join(f"{line}\n" for line in lines).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
        files.append(path)
    return files


@pytest.mark.parametrize("names", ["-0-2.csv", ".csv", "-0-2.csv.gz"])
def test_a_dump_is_read_and_scored_as_by_hand(tmp_path: Path, names: str) -> None:
    files = write(tmp_path, names=names)
    assert {format_of(Path(file)) for file in files} == {"rusty-blockparser"}
    for order in (files, files[::-1]):
        ledger = coinhaze.read(order)
        assert isinstance(ledger, CoinLedger)
        assert ledger.heights.to_pylist() == [100, 101, 102, 102]
        assert ledger.coinbase.tolist() == [True, True, True, False]
        # A bare key belongs to the address of its hash, as in raw blocks.
        assert ledger.owners.to_pylist()[0] == ANN
        assert ledger.owners.to_pylist()[1].startswith("1")
        assert coinhaze.score(order)[f"{TX[3]}:0"].bits == pytest.approx(BITS, abs=1e-12)


def test_a_store_knows_blocks_and_what_is_complete(tmp_path: Path) -> None:
    with Store(None) as store:
        ingest(write(tmp_path), store)
        ledger = read_store(store)
    assert len(ledger) == 4
    assert "missing" not in ledger.completeness.line()


def test_heights_of_coins_that_some_versions_write_are_read_over(tmp_path: Path) -> None:
    rows = [line.split(";") for line in OUTS]
    newer = [";".join([*row[:2], "7", *row[2:]]) for row in rows]
    for name in ("older", "newer"):
        (tmp_path / name).mkdir()
    plain = coinhaze.read(write(tmp_path / "older"))
    with_heights = coinhaze.read(write(tmp_path / "newer", DUMP | {"tx_out": newer}))
    assert isinstance(plain, CoinLedger)
    assert isinstance(with_heights, CoinLedger)
    ours, theirs = with_heights.tables(), plain.tables()
    assert all(ours[name].equals(theirs[name]) for name in theirs)


def changed(kind: str, row: int, line: str | None) -> Dump:
    lines = list(DUMP[kind])
    lines[row : row + 1] = [] if line is None else [line]
    return DUMP | {kind: lines}


OTHER = f"{TX[4]};{ZERO};{LAST};;{LAST}"
MISTAKES: dict[str, tuple[Dump, str, str]] = {
    "no file of blocks": (
        {k: v for k, v in DUMP.items() if k != "blocks"}, "-0-2.csv",
        r"blocks-0-2.csv is not beside it.*four files"),
    "no file of transactions": (
        {k: v for k, v in DUMP.items() if k != "transactions"}, "-0-2.csv",
        r"transactions-0-2.csv is not beside it.*four files"),
    "a dump that did not finish": (DUMP, ".csv.tmp", r"did not finish.*run it again"),
    "another name": (DUMP, "_old.csv", r"its name must tell the table.*tx_out-0-1000.csv"),
    "inputs of another run": (
        changed("tx_in", 1, OTHER), "-0-2.csv", r"tx_in-0-2.csv:2: stands where transaction b{64}"),
    "outputs cut short": (
        changed("tx_out", 4, None) | {"tx_out": OUTS[:3]}, "-0-2.csv",
        r"tx_out-0-2.csv: ends before transaction d{64}.*cut short: give the four files"),
    "inputs of more transactions": (
        DUMP | {"tx_in": [*INS, OTHER]}, "-0-2.csv", r"csv:6: a transaction missing from"),
    "a block without transactions": (
        DUMP | {"transactions": TRANSACTIONS[:2], "tx_in": INS[:2], "tx_out": OUTS[:2]},
        "-0-2.csv", r"block 102 has no transaction"),
    "a block that is not there": (changed("blocks", 1, None), "-0-2.csv",
        r"missing from blocks-0-2.csv"),
    "a block twice": (DUMP | {"blocks": [*BLOCKS, BLOCKS[0]]}, "-0-2.csv", r"csv:4: a block twice"),
    "a line cut": (changed("tx_out", 1, TX[1]), "-0-2.csv",
        r":2: 1 field where tx_out has 5: 'b{64}'"),
    "a value with a point": (
        changed("tx_out", 0, OUTS[0].replace("3000000000", "30.0")), "-0-2.csv",
        r"tx_out-0-2.csv:1: value in satoshi is not a whole .*export it again"),
    "a coinbase in the middle": (
        changed("tx_in", 3, f"{TX[3]};{ZERO};{LAST};;{LAST}"), "-0-2.csv", r"a coinbase is the"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_likely_mistake_is_named_with_its_fix(tmp_path: Path, mistake: str) -> None:
    dump, names, message = MISTAKES[mistake]
    with pytest.raises(CoinhazeError, match=message):
        coinhaze.read(write(tmp_path, dump, names), format="rusty-blockparser")


def test_one_file_alone_is_no_ledger(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(InputError):
        coinhaze.read(tmp_path / "tx_out-0-2.csv")


def test_damaged_files_are_read_or_refused_by_an_error_of_ours(tmp_path: Path) -> None:
    write(tmp_path)
    pieces = [b";", b"\n", b"-", b"0", b"f" * 64, b"\xff", b"\0", b"9" * 30, b""]
    read = refused = 0
    for kind in DUMP:
        path = tmp_path / f"{kind}-0-2.csv"
        good = path.read_bytes()
        for mutant in mutants(good, MUTANTS // 4, 7, pieces=pieces, cuts=(0, 1, 9), repeats=(30,)):
            path.write_bytes(mutant)
            try:
                rusty_blockparser.recognises(mutant)
                list(rusty_blockparser.batches(path))
                read += 1
            except InputError:
                refused += 1
        path.write_bytes(good)
    assert read > 20
    assert refused > 100
