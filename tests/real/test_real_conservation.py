"""Real money is conserved: fees, coinbases, pools and tokens add up to the unit."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from coinhaze.errors import LedgerError
from coinhaze.store.ingest import ingest
from coinhaze.store.store import Store
from coinhaze.store.verify import verify
from store.made_stores import transfers

ZEC = 10**8
ZERO = "0x" + "0" * 40
Transfers = list[tuple[str, str, int]]


def ingested(files: Path | str, format: str | None = None) -> Store:
    store = Store(None)
    ingest([files], store, format=format)
    return store


def per_block(store: Store) -> list[tuple[int, int, int, int]]:
    """Give, of each block, height, what its coinbase pays, known fees, and unknown transactions."""
    values: dict[tuple[str, int], int] = {}
    for txid, vout, value in store.ask("SELECT txid, vout, value FROM outputs"):
        values[txid, vout] = value
    paid: dict[str, int] = defaultdict(int)
    for txid, value in store.ask(
        "SELECT txid, value FROM outputs UNION ALL SELECT txid, into_pool FROM pool_flows"
    ):
        paid[txid] += value
    taken: dict[str, list[int | None]] = defaultdict(list)
    for txid, *coin, value in store.ask("SELECT txid, spent_txid, spent_vout, value FROM inputs"):
        taken[txid].append(values.get((coin[0], coin[1]), value))
    blocks: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    for height, txid, coinbase in store.ask("SELECT height, txid, coinbase FROM transactions"):
        coins = taken[txid]
        if coinbase:
            blocks[height][0] += paid[txid]
        elif None in coins:
            blocks[height][2] += 1
        else:
            blocks[height][1] += sum(c for c in coins if c is not None) - paid[txid]
    return [(height, *figures) for height, figures in sorted(blocks.items())]  # type: ignore[misc]


def said_fees(store: Store) -> int:
    (line,) = (line for line in verify(store) if "; fees " in line)
    found = re.search(r"; fees ([\d,.]+) (?:BTC|ZEC)$", line)
    assert found, line
    return smallest(found[1])


def smallest(amount: str) -> int:
    """Give whole coins, as printed, in the smallest unit."""
    return int(Decimal(amount.replace(",", "")) * 10**8)


def test_every_coinbase_of_4001_blocks_takes_the_subsidy_and_all_fees(data: Path) -> None:
    with ingested(str(data / "btc_utxo_100000_104000" / "[ve]*.csv.gz")) as store:
        blocks = per_block(store)
        assert len(blocks) == 4001
        for height, made, fees, unknown in blocks:
            assert unknown == 0
            assert made == 50 * 10**8 + fees, height
        assert said_fees(store) == sum(fees for _, _, fees, _ in blocks)


def test_fees_of_a_mempool_are_what_its_inputs_are_worth_above_its_outputs(data: Path) -> None:
    path = data / "btc_mempool_esplora" / "mempool_8131.jsonl.xz"
    fees = 0
    with lzma.open(path, "rt") as lines:
        for line in lines:
            told = json.loads(line)
            fees += sum(i["prevout"]["value"] for i in told["vin"])
            fees -= sum(o["value"] for o in told["vout"])
    with ingested(path) as store:
        assert said_fees(store) == fees


def test_coinbases_of_raw_blocks_take_at_least_the_fees_that_are_known(data: Path) -> None:
    with ingested(data / "btc_raw_560062_560069") as store:
        blocks = per_block(store)
        assert len(blocks) == 8
        for height, made, fees, unknown in blocks:
            assert unknown > 0
            assert made >= 1_250_000_000 + fees > 1_250_000_000, height
        assert said_fees(store) == sum(fees for _, _, fees, _ in blocks)


def dai(data: Path) -> Transfers:
    with gzip.open(data / "erc20_dai_2019_12_12" / "dai_transfers.csv.gz", "rt") as file:
        rows = [r for r in csv.DictReader(file) if r["txvalue"] != "0"]
    rows.sort(key=lambda r: (int(r["blocknumber"]), int(r["txindex"]), int(r["logindex"])))
    return [(r["txfrom"], r["txto"], int(r["txvalue"])) for r in rows]


def dgd(data: Path) -> Transfers:
    with gzip.open(data / "erc20_token_dgd" / "networkdgd.txt.gz", "rt") as file:
        rows = sorted((line.split() for line in file if line.strip()), key=lambda r: int(r[2]))
    return [(sender, receiver, int(value)) for sender, receiver, _, value in rows]


def overdrawn(rows: Iterable[tuple[str, str, int]]) -> int:
    """Replay transfers one by one; count accounts that ever pay more than they have."""
    held: dict[str, int] = defaultdict(int)
    below = set()
    for sender, receiver, amount in rows:
        held[sender] -= amount
        held[receiver] += amount
        if held[sender] < 0 and sender != ZERO:
            below.add(sender)
    return len(below)


def test_dai_minted_less_burnt_is_what_accounts_hold(data: Path) -> None:
    rows = dai(data)
    minted = sum(amount for sender, _, amount in rows if sender == ZERO)
    burnt = sum(amount for _, receiver, amount in rows if receiver == ZERO)
    with ingested(data / "erc20_dai_2019_12_12" / "dai_transfers.csv.gz") as store:
        said = "\n".join(verify(store))
        assert f"mints {minted:,} - burns {burnt:,} = balances {minted - burnt:,}" in said
        count = overdrawn(rows)
        assert f": {count:,} accounts pay more than they took in here" in said
        with pytest.raises(LedgerError, match=f"{count} accounts pay more than they have"):
            verify(store, complete=True)


def test_dgd_nobody_mints_and_who_opened_with_it_is_counted(data: Path) -> None:
    rows = dgd(data)
    with transfers(rows) as store:
        said = "\n".join(verify(store))
        assert "mints 0 - burns 0 = balances 0" in said
        assert f": {overdrawn(rows):,} accounts pay more than they took in here" in said


def supply_samples(data: Path, pool: str) -> dict[str, list[int]]:
    """Give the chain's own series: whole ZEC by day, several a day."""
    samples: dict[str, list[int]] = defaultdict(list)
    with gzip.open(data / "zcash_pool_series" / f"{pool}_supply.json.gz") as file:
        for row in json.load(file):
            samples[row["close"]].append(row["supply"])
    return samples


def issued(height: int) -> int:
    """Give all zatoshi ever made up to a block (Zcash protocol specification, section 7.8)."""
    slow = sum(62_500 * (h if h < 10_000 else h + 1) for h in range(min(height + 1, 20_000)))
    full = max(0, min(height, 653_599) - 19_999) * 1_250_000_000
    return slow + full + max(0, height - 653_599) * 625_000_000


def test_coinbases_of_zcash_are_those_its_supply_grows_by(data: Path) -> None:
    with ingested(data / "zcash_main_663150_663250", "zcash-blocks") as store:
        blocks = per_block(store)
        assert len(blocks) == 101
        for height, made, fees, _ in blocks:
            assert made >= 625_000_000 + fees, height
            if height > blocks[0][0]:
                assert issued(height) - issued(height - 1) == 625_000_000
        assert min(made for _, made, *_ in blocks) == 625_000_000
        days = {
            datetime.fromtimestamp(time, UTC).strftime("%m/%d/%Y")
            for (time,) in store.ask("SELECT time FROM blocks")
        }
        assert days == {"12/20/2019"}
        samples = supply_samples(data, "total")
        low, high = samples["12/19/2019"][-1], samples["12/21/2019"][0]
        assert low * ZEC < issued(blocks[0][0]) < issued(blocks[-1][0]) < high * ZEC


def test_pools_of_zcash_hold_what_the_chains_own_series_lets_them_pay(data: Path) -> None:
    with ingested(data / "zcash_main_663150_663250", "zcash-blocks") as store:
        minimum = {}
        for line in verify(store):
            found = re.fullmatch(
                r"pool (\w+): ([\d,.]+) ZEC in, ([\d,.]+) ZEC out, ([+-][\d,.]+) ZEC; "
                r"it held at least ([\d,.]+) ZEC before", line
            )  # fmt: skip
            if found:
                minimum[found[1]] = smallest(found[5])
        assert minimum.keys() == {"sapling", "sprout"}
        values = {p: min(supply_samples(data, p)["12/20/2019"]) * ZEC for p in minimum}
        verify(store, pool_values=values)
        verify(store, pool_values=minimum)
        for pool, value in minimum.items():
            with pytest.raises(LedgerError, match=f"pool {pool}: holds less than nothing"):
                verify(store, pool_values=minimum | {pool: value - 1})


def zebra_blocks(data: Path, folder: Path) -> Path:
    """Unpack Zebra's blocks, without the one that is wrong on purpose."""
    with tarfile.open(data / "zcash_blocks_zebra" / "block-main.tar.xz") as packed:
        members = [m for m in packed.getmembers() if m.isfile() and "bad" not in m.name]
        packed.extractall(folder, members, filter="data")
    return folder


def test_no_pool_of_zcash_moves_before_it_was_opened(data: Path, tmp_path: Path) -> None:
    with ingested(zebra_blocks(data, tmp_path), "zcash-blocks") as store:
        first = dict(store.ask("SELECT pool, min(height) FROM pool_flows GROUP BY pool"))
        # Heights of activation: ZIP 205 (Sapling), ZIP 252 (NU5, Orchard).
        assert first["sapling"] >= 419_200
        assert first["orchard"] >= 1_687_104
        for pool in ("sapling", "orchard"):
            day = store.ask("SELECT time FROM blocks WHERE height = ?", [first[pool]])[0][0]
            moved = datetime.fromtimestamp(day, UTC).strftime("%m/%d/%Y")
            samples = supply_samples(data, pool)
            begun = next(day for day, supplies in samples.items() if max(supplies) > 0)
            assert moved == begun, pool
        for height, made, fees, unknown in per_block(store)[:11]:
            assert unknown == fees == 0
            assert made == issued(height) - (issued(height - 1) if height else 0)
