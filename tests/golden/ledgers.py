"""Small ledgers of every kind and format, and the lists and tables that commands read."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coinhaze import AccountLedger, CoinLedger
from coinhaze.ledger import write_folder
from formats import block_samples, json_samples, test_mev_inspect, zcash_samples
from formats import ethereum_files as ethereum
from formats.psbt_samples import record, transaction
from formats.test_dumplings import GOOD as DUMPLINGS
from formats.test_plain import COINS as PLAIN_COINS
from formats.test_plain import NAMED as PLAIN_TRANSFERS
from formats.test_tornado import both as write_tornado
from formats.test_utxo_edges import EDGES, VERTICES
from ledger.etl_chain import five_blocks, write_blockchair, write_etl

ZERO = "0x" + "0" * 40

# Payments in a circle, so that there is a cycle to solve; mints, a burn, a service with pay-outs.
TRANSFERS = f"""\
from,to,amount,time
{ZERO},alice,1000,100
{ZERO},bob,500,110
alice,shop,400,120
bob,shop,300,130
carol,shop,250,140
shop,dave,350,150
shop,erin,100,160
dave,alice,50,170
erin,pool,100,180
frank,pool,100,190
pool,gina,100,200
pool,henry,100,210
gina,shop,70,220
shop,carol,420,230
carol,bob,33,240
bob,{ZERO},200,250
henry,ivan,99,260
"""

# A table of the numbers 1 to 8 as transaction ids.
T = [f"{number:064x}" for number in range(9)]
EARLIER = "e" * 64


def coins() -> CoinLedger:
    """Coinbases, a CoinJoin of equal outputs, change, a coin of before, data, fees, a merge."""
    return CoinLedger.from_transactions(
        [
            _mint(1, 50_000, "miner1"),
            _mint(2, 50_000, "miner2"),
            _mint(3, 50_000, "miner1"),
            {
                "txid": T[4],
                "height": 4,
                "time": 1_600_002_400,
                "inputs": [
                    {"txid": T[1], "vout": 0},
                    {"txid": T[2], "vout": 0},
                    {"txid": EARLIER, "vout": 1, "value": 30_000, "address": "ann"},
                ],
                "outputs": [
                    *({"value": 30_000, "address": f"mixed{k}"} for k in range(3)),
                    {"value": 19_900, "address": "change1"},
                    {"value": 19_900, "address": "change2"},
                    {"value": 0, "spendable": False},
                ],
            },
            _pay(5, [(4, 0), (4, 3)], [(40_000, "bob"), (9_500, "mixed0")]),
            _pay(6, [(3, 0)], [(20_000, "bob"), (30_000, "miner1")]),
            _pay(7, [(5, 0), (6, 0)], [(59_000, "carol"), (1_000, "bob")]),
            _pay(8, [(7, 0), (4, 1)], [(44_500, "dave"), (44_500, "erin")]),
        ]
    )


def shielded() -> CoinLedger:
    """Value in and out of two pools, one of which held something before."""
    return CoinLedger.from_transactions(
        [
            _mint(1, 500, "miner1"),
            _mint(2, 700, "miner2"),
            _pay(3, [(1, 0)], [(90, "ann")], sapling=400),
            _pay(4, [(2, 0)], [(300, "bob")], sapling=390),
            _pay(5, [], [(250, "carol"), (100, "dave")], sapling=-360),
            _pay(6, [(5, 0)], [(40, "erin")], orchard=200),
            _pay(7, [], [(120, "frank")], orchard=-130),
            _pay(8, [(7, 0), (4, 0)], [(415, "gina")]),
        ],
        pool_values={"orchard": 1000, "sapling": 0},
    )


def rings() -> CoinLedger:
    """Hidden amounts: rings with and without a posterior."""
    return CoinLedger.from_transactions(
        [
            {"txid": "a", "outputs": 2},
            {"txid": "b", "outputs": 2},
            {"txid": "c", "rings": [["a:0", "a:1", "b:0"]], "outputs": 2},
            {"txid": "d", "rings": [["a:1", "b:1"], ["c:0", "b:0"]], "outputs": 1},
            {
                "txid": "f",
                "rings": [["c:1", "d:0", "a:0"]],
                "posteriors": [[0.5, 0.375, 0.125]],
                "outputs": 2,
            },
        ]
    )


def accounts() -> AccountLedger:
    """Transfers with ids, times and fees; amounts of more than 64 bits."""
    unit = 10**20
    return AccountLedger.from_columns(
        ["ann", "bob", "cat", "bob", "dan", "eve"],
        ["bob", "cat", "ann", "dan", "eve", "ann"],
        [9 * unit, 5 * unit + 1, 2 * unit, 3 * unit, unit, unit // 3],
        ids=[f"t{number}" for number in range(6)],
        times=pa.array(range(1000, 1060, 10), pa.timestamp("s", "UTC")),
        fees=[7, 0, 1, 2, 3, 4],
    )


def write_all(folder: Path) -> None:
    """Write every ledger and every table beside them into a folder."""
    for name, ledger in (("coins", coins), ("shielded", shielded), ("rings", rings)):
        write_folder(ledger(), folder / name)
    write_folder(accounts(), folder / "accounts")
    for name, text in _TEXTS.items():
        (folder / name).write_text(text)
    for name, octets in _formats().items():
        (folder / name).write_bytes(octets)
    write_etl(folder / "five.json", five_blocks())
    write_blockchair(folder / "blockchair", five_blocks())
    write_tornado(folder)
    for table, columns in PLAIN_COINS.items():
        pq.write_table(pa.table(columns), folder / f"plain_{table}.parquet")
    pq.write_table(pa.table(PLAIN_TRANSFERS), folder / "plain_transfers.parquet")
    spent = [(bytes.fromhex(T[8])[::-1], 0), (bytes.fromhex(T[5])[::-1], 1)]
    unsigned = transaction(spent, [(50_000, block_samples.pay_to_key_hash(3))])
    psbt = b"psbt\xff" + record(0, unsigned) + b"\0" * 4
    (folder / "spend.psbt").write_bytes(base64.b64encode(psbt))


def _mint(number: int, value: int, owner: str) -> dict[str, Any]:
    made = {"txid": T[number], "outputs": [{"value": value, "address": owner}]}
    return made | _when(number)


def _pay(
    number: int, spent: list[tuple[int, int]], made: list[tuple[int, str]], **pools: int
) -> dict[str, Any]:
    return {
        "txid": T[number],
        "inputs": [{"txid": T[maker], "vout": vout} for maker, vout in spent],
        "outputs": [{"value": value, "address": owner} for value, owner in made],
        "pools": pools,
    } | _when(number)


def _when(number: int) -> dict[str, int]:
    return {"height": number, "time": 1_600_000_000 + 600 * number}


_TEXTS = {
    "pay.csv": TRANSFERS,
    "pay_listed.txt": "alice\nfrank\nnobody\n",
    "pay_opening.csv": "account,amount\ncarol,250\nfrank,100\nalice,30\n",
    "pay_links.csv": (
        "payment,node,probability,confidence\n10,erin,0.75,0.9\n10,frank,0.25,0.9\n11,frank,1,1\n"
    ),
    "pay_clusters.csv": "address,cluster\nalice,family\ndave,family\n",
    "pay_labels.csv": "address,label\nshop,The Shop\nalice,Alice A.\n",
    "pay_services.txt": "pool\nshop\n",
    "pay_gas.csv": "payment,gas_price\n8,31337\n9,7\n10,31337\n11,7\n",
    "coins_listed.txt": "miner2\nann\n",
    "coins_mine.csv": f"txid,vout,label\n{T[8]},0,rent\n{T[5]},1,gift\n{T[4]},2,savings\n",
    "coins_known.txt": "miner2\nmixed2\n",
    "coins_labels.csv": "address,label\nminer1,Pool One\nann,Ann\n",
    "coins_owners.csv": (
        "address,cluster\nmixed0,A\nchange1,A\nminer1,A\nmixed1,B\nchange2,B\nminer2,B\nmixed2,C\n"
        "ann,C\nbob,D\ncarol,E\ndave,F\nerin,G\n"
    ),
    "shielded_before.csv": "pool,value\norchard,600\norchard,400\nsapling,50\n",
    "dumplings.txt": DUMPLINGS,
    "vertices-1.csv": VERTICES,
    "edges-1.csv": EDGES,
}


HOPS = [("ann", "bob", 50), ("bob", "cat", 30), ("dan", "bob", 20), ("bob", "eve", 25)]


def _formats() -> dict[str, bytes]:
    """Files in the formats of nodes and exporters."""
    blocks, _ = block_samples.varied_blocks()
    call, reward = test_mev_inspect.call, test_mev_inspect.reward
    onwards = {"from": ethereum.address("bob"), "to": ethereum.address("cat"), "value": "0x3"}
    etl = [
        {"from_address": ethereum.address(payer), "to_address": ethereum.address(paid)}
        | {"value": value, "transaction_index": place}
        for place, (payer, paid, value) in enumerate(HOPS)
    ]
    named = [row | {"transaction_hash": ethereum.txid(n)} for n, row in enumerate(etl)]
    blockchair = [
        {"block_id": 100 + height, "transaction_hash": f"{height:064x}", "value": value}
        | {"sender": _bare(payer), "recipient": _bare(paid)}
        for height, (payer, paid, value) in enumerate(HOPS)
    ]
    return {
        "transactions.csv": ethereum.csv_text(
            [ethereum.transaction(hash=ethereum.txid(n), **row) for n, row in enumerate(etl)]
        ),
        "token_transfers.json": ethereum.json_text(
            [ethereum.token_transfer(**row, log_index=n) for n, row in enumerate(named)]
        ),
        "traces.csv": ethereum.csv_text([ethereum.trace(**row) for row in named]),
        "erc20.tsv": ethereum.tsv_text([ethereum.erc20(**row) for row in blockchair]),
        "calls.tsv": ethereum.tsv_text([ethereum.call(**row) for row in blockchair]),
        "mev.json": test_mev_inspect.text(call(), call(0, action=onwards), reward()),
        "esplora.json": json_samples.lines(json_samples.ESPLORA),
        "getblock.json": json_samples.lines(json_samples.BLOCKS),
        "blk00000.dat": block_samples.file_of(blocks),
        "zcash.hex": "\n".join(block.hex() for block in _zcash()).encode(),
    }


def _zcash() -> list[bytes]:
    """A coinbase goes into Sapling, which then pays two people and Sprout."""
    z, pay, to = zcash_samples, block_samples.pay, block_samples.pay_to_key_hash
    mint = block_samples.twice(z.made_by_miner(1000).octets())
    spent, change = [block_samples.spend((mint, 0))], [pay(10**8, to(2))]
    into = z.Made(4, spent, change, sapling=-(8 * 10**8), sapling_outputs=1)
    out = z.Made(4, outputs=[pay(10**8, to(3)), pay(2 * 10**8, to(4))], sapling=5 * 10**8, spends=1)
    across = z.Made(4, sprout=[(10**8, 0)], sapling=10**8, spends=1)
    return z.chain([[], [into], [out, across]])


def _bare(name: str) -> str:
    return ethereum.bare(ethereum.address(name))
