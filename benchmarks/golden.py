"""Two checkouts' answers on real ledgers, compared whole: `python -m benchmarks.golden PATH`.

PATH is another checkout, such as a `git worktree` of an earlier commit. Each command line runs in a
process of its own, once with the code of PATH and once with the code here, on the ledgers in
COINHAZE_DATA. Fields, words and integers must be equal, floats to their last digits. Nothing is
stored. A line for each command line says how many numbers it compared, or the first difference; the
exit code is 1 if there is any.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.json_differences import differences, normalised, parsed

# By ledger: its files, and the queries to them, `{}` being the files. Where the first line is a
# score, NODE is the node with most bits in its answer, and coins.txt and listed.txt come from it.
LEDGERS = {
    "bitcoin utxo": (
        "data/btc_utxo_100000_104000/[ve]*.csv.gz",
        """
score {} --json
info {} --json
score {} --view address --time stationary --json
score {} --policy fifo --json
score {} --with degree,k-anonymity,mint-centrality,possible-sources --json
origins {} NODE --json
screen {} --listed listed.txt --top 20 --json
wallet {} --coins coins.txt --as json
knowledge {} --by change
""",
    ),
    "bitcoin raw": (
        "data/btc_raw_560062_560069/blk00000.dat.xz",
        """
score {} --unknown leave-out --json
ingest {} -o raw.duckdb
verify raw.duckdb
""",
    ),
    "bitcoin mempool": (
        "data/btc_mempool_esplora/mempool_8131.jsonl.xz",
        """
score {} --policy uniform --json
growth {} --length 5 --json
""",
    ),
    "whirlpool": (
        "whirlpool/Scanner/*.txt",
        """
score {} --json
origins {} NODE --policy lifo --json
knowledge {}
""",
    ),
    "wasabi 1": (
        "wasabi1/Scanner/*.txt",
        """
score {} --view address --time temporal --json
score {} --policy lifo --json
info {} --json
""",
    ),
    "wasabi 2": (
        "wasabi2/*/data/btc-node/block_*.json",
        """
score {} --json
score {} --with k-anonymity,system-anonymity,effective-sources --json
wallet {} --coins coins.txt --amount 100000 --as json
robustness {} --learn 1 --seeds 1 --tries 3 --json
""",
    ),
    "ether": (
        "data/eth_480000_499999/transactions.parquet",
        """
score {} --time temporal --json
score {} --time stationary --accuracy 0.1 --json
origins {} NODE --time temporal --labels data/labels/etherscan_tags.csv.xz --json
screen {} --listed listed.txt --policy poison,fifo --top 20 --json
""",
    ),
    "ether traces": (
        "data/eth_blocks_traces/*.json.xz",
        """
score {} --time temporal --json
info {} --json
""",
    ),
    "dai": (
        "data/erc20_dai_2019_12_12/dai_transfers.csv.gz",
        """
score {} --time stationary --json
score {} --time temporal --mint one --json
score {} --policy poison --listed listed.txt --json
growth {} --time temporal --length 5 --json
robustness {} --time temporal --learn 1 --seeds 1 --tries 3 --coin NODE --json
sensitivity {} --json
compare dai={} -o compared --no-figures --walks 50
show compared/tables/temporal.csv
""",
    ),
    "dgd": (
        "dgd.csv",
        """
score {} --time temporal --json
score {} --time stationary --accuracy preview --seed 0 --json
""",
    ),
    "tornado": (
        "data/tornado_events/*_1_dai_1000.json.gz",
        """
score {} --time temporal --json
origins {} NODE --time temporal --json
""",
    ),
    "zcash main": (
        "data/zcash_main_663150_663250/blocks.hex.txt.xz",
        """
score {} --unknown leave-out --json
score {} --unknown leave-out --pools merged --policy uniform --json
sensitivity {} --unknown leave-out --json
""",
    ),
    "zcash test": (
        "data/zcash_test_1028400_1028600/blocks.hex.txt.xz",
        """
score {} --unknown leave-out --json
""",
    ),
    "zcash upgrades": (
        "zebra/block-main-?-???-???.txt",
        """
ingest {} -o zebra.duckdb
verify zebra.duckdb
score zebra.duckdb --unknown leave-out --json
""",
    ),
    "dash": (
        "data/blockchair_dash_blocks/*.tsv.gz",
        """
ingest {} -o dash.duckdb
verify dash.duckdb
""",
    ),
    "bitcoin-etl": (
        "bitcoin-etl/**/bitcoin/block_with_transactions/expected_transactions.json",
        """
ingest {} -o etl.duckdb
score etl.duckdb --unknown leave-out --json
""",
    ),
    "ethereum-etl": (
        "ethereum-etl/**/blocks_2112234_2112234/expected_traces.json",
        """
score {} --json
""",
    ),
    "none": (
        "",
        """
lab wasabi --values 0.25 --seeds 2 --people 40 --payments 300 --json
lab rings --values 8 --seeds 2 --people 40 --payments 300 --json
desiderata --seeds 2 --json
""",
    ),
}
ARCHIVES = {
    "whirlpool": "btc_coinjoin_dumplings/*sw*.zip",
    "wasabi1": "btc_coinjoin_dumplings/*ww1*.zip",
    "wasabi2": "btc_wasabi2_emulation_truth/*.tar.xz",
    "zebra": "zcash_blocks_zebra/*.tar.xz",
    "bitcoin-etl": "etl_fixtures/bitcoin-etl*.tar.xz",
    "ethereum-etl": "etl_fixtures/ethereum-etl*.tar.xz",
}
_SNAPSHOT = re.compile(r"(?<=^0x\w{40}):\d+$")  # an account at one time is listed as the account
START = "from coinhaze.cli import main; main()"


def prepare(data: Path, folder: Path) -> None:
    """Unpack what is read unpacked, and make a table of the one set that has no known columns."""
    (folder / "data").symlink_to(data.resolve())
    for name, pattern in ARCHIVES.items():
        (archive,) = data.glob(pattern)
        if archive.suffix == ".zip":
            zipfile.ZipFile(archive).extractall(folder / name)
        else:
            with tarfile.open(archive) as packed:
                packed.extractall(folder / name, filter="data")
    with gzip.open(data / "erc20_token_dgd" / "networkdgd.txt.gz", "rt") as file:
        rows = sorted((line.split() for line in file if line.strip()), key=lambda r: int(r[2]))
    with open(folder / "dgd.csv", "w", newline="") as table:
        writer = csv.writer(table)
        writer.writerow(["from", "to", "amount", "time"])
        writer.writerows((sender, to, value, time) for sender, to, time, value in rows)


class Side:
    """A checkout, and a folder of its own to run it in."""

    def __init__(self, checkout: Path, folder: Path, files: Path) -> None:
        self.folder = folder
        source = checkout.resolve() / "src"
        if not (source / "coinhaze").is_dir():
            raise SystemExit(f"{checkout}: no checkout of coinhaze: it has no src/coinhaze")
        self.environment = os.environ | {
            "PYTHONPATH": str(source),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "COLUMNS": "100",
        }
        folder.mkdir()
        for path in files.iterdir():
            (folder / path.name).symlink_to(path)

    def start(self, words: list[str]) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [sys.executable, "-P", "-c", START, *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def answer(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """Wait for a command, and give its answer."""
        out, err = process.communicate()
        stated = {"exit": process.returncode, "shown": parsed(out)}
        return stated | ({"refusal": err.splitlines()[-1:]} if process.returncode else {})

    def written(self, name: str) -> dict[str, Any]:
        """Give what a command wrote to a file."""
        path = self.folder / name
        if not path.exists():
            return {"exit": 1, "shown": [], "refusal": [f"{name} was not written"]}
        return {"exit": 0, "shown": parsed(path.read_text(encoding="utf-8"), name)}


def words_of(line: str, files: str, side: Side, node: str) -> list[str]:
    """Give the words of a command line, the names of files put in."""
    words: list[str] = []
    for word in shlex.split(line):
        if word == "{}":
            words += sorted(str(p.relative_to(side.folder)) for p in side.folder.glob(files))
        else:
            words.append(word.replace("{}", files).replace("NODE", node))
    return words


def both(line: str, files: str, sides: tuple[Side, Side], node: str) -> list[dict[str, Any]]:
    """Run a command line with both checkouts at once."""
    if line.startswith("show "):
        return [side.written(line.partition(" ")[2]) for side in sides]
    running = [side.start(words_of(line, files, side, node)) for side in sides]
    return [side.answer(process) for side, process in zip(sides, running, strict=True)]


def write_tables(scores: list[Mapping[str, Any]], sides: tuple[Side, Side]) -> str:
    """Write a wallet and a list from scores, the same for both; give the node with most bits."""
    rows = sorted(scores, key=lambda row: (-(row["bits"] or 0), row["node"]))
    sources = sorted({_SNAPSHOT.sub("", row["top_source"]) for row in rows if row["top_source"]})
    for side in sides:
        coins, listed = (side.folder / f"{name}.txt" for name in ("coins", "listed"))
        coins.write_text("".join(f"{row['node']}\n" for row in rows[:5]))
        listed.write_text("".join(f"{name}\n" for name in sources[:20]))
    return str(rows[0]["node"])


def numbers_in(value: Any) -> int:
    """Count the numbers of a document."""
    if isinstance(value, dict):
        return sum(map(numbers_in, value.values()))
    if isinstance(value, list):
        return sum(map(numbers_in, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def report(name: str, line: str, answers: list[dict[str, Any]], words: bool) -> bool:
    """Print how two answers compare; tell whether they are the same."""
    old, new = map(normalised, answers)
    found = [d for d in differences(old, new) if words or not d.words]
    refused = old["exit"] != 0 and not old["shown"]
    if refused:
        result = f"FAILS in the other checkout: {old['refusal']}"
    elif found:
        result = f"DIFFERS in {len(found):,} places, first {found[0]}"
    else:
        result = f"same, {numbers_in(new):,} numbers, {len(str(new)):,} characters"
    print(f"{name}: {line.replace('{}', '')}: {result}", flush=True)
    return not refused and not found


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="another checkout")
    parser.add_argument("--only", default="", metavar="WORD", help="lines with this word only")
    parser.add_argument("--numbers", action="store_true", help="let words differ, not numbers")
    options = parser.parse_args()
    if not os.environ.get("COINHAZE_DATA"):
        raise SystemExit("COINHAZE_DATA is not set: no real ledgers to compare on")
    here = Path(__file__).resolve().parent.parent
    count = wrong = 0
    with tempfile.TemporaryDirectory() as made:
        files = Path(made, "files")
        files.mkdir()
        prepare(Path(os.environ["COINHAZE_DATA"]), files)
        sides = (
            Side(options.other, Path(made, "old"), files),
            Side(here, Path(made, "new"), files),
        )
        for name, (pattern, text) in LEDGERS.items():
            first, *_ = lines = text.strip().splitlines()
            chosen = {line for line in lines if options.only in f"{name}: {line}"}
            # A file is shown after the command that writes it; others need what the first one made.
            needed = {first} | {
                a for a, b in pairwise(lines) if b in chosen and b.startswith("show")
            }
            node = ""
            for line in [line for line in lines if chosen and line in chosen | needed]:
                answers = both(line, pattern, sides, node)
                if line is first and line.startswith("score") and answers[0]["exit"] == 0:
                    node = write_tables(answers[0]["shown"]["scores"], sides)
                if line in chosen:
                    count += 1
                    wrong += not report(name, line, answers, not options.numbers)
    print(f"{count} command lines, {wrong} of them not the same")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
