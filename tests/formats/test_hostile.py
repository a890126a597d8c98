"""Files made to exhaust whoever reads them, under hard limits of memory and time.

Each is read by a process that may take 512 MiB of address space above what the program takes when
its libraries are loaded (an absolute limit of 512 MiB is below that already), so that a reader that
allocates what a file merely claims, or unpacks a bomb whole, dies there. Reading must end in one
line and exit code 3 (bad input) or 6 (a limit was met).
"""

from __future__ import annotations

import io
import lzma
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coinhaze
from coinhaze.formats.registry import formats
from formats import block_samples as samples
from formats.block_samples import (
    chain,
    coinbase,
    frame,
    pay,
    pay_to_key_hash,
    spend,
    transaction,
)
from formats.snapshot_samples import snapshot

ROOM = 512 << 20
SECONDS = 60
WALLET, SIGNED = "a wallet", "a transaction to be signed"
PROGRAM = Path(__file__).with_name("within_limits.py")


def bomb(letters: bytes, head: bytes = b"") -> bytes:
    """Pack a beginning and a gigabyte of the same letters into a small gzip file."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    first = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush what follows depends on nothing before: the same bytes do for every part.
    part = letters * ((16 << 20) // len(letters))
    packed = packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = zlib.crc32(head)
    for _ in range(64):
        checksum = zlib.crc32(part, checksum)
    size = (len(head) + 64 * len(part)) % 2**32
    ends = packer.flush() + struct.pack("<II", checksum, size)
    return b"\x1f\x8b\x08" + bytes(6) + b"\xff" + first + packed * 64 + ends


def zip_bomb(head: bytes, letters: bytes) -> bytes:
    """Pack a beginning and a gigabyte of the same letters into a small zip archive."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("t.csv", "w", force_zip64=True) as file,
    ):
        file.write(head)
        for _ in range(64):
            file.write(letters * ((16 << 20) // len(letters)))
    return out.getvalue()


def xz_bomb(head: bytes) -> bytes:
    """Pack a beginning and some hundred megabytes of zeros, above the room there is, by xz."""
    return lzma.compress(head, preset=0) + lzma.compress(bytes(16 << 20), preset=0) * 40


def deep(opening: bytes, inner: bytes = b"[") -> bytes:
    return opening + inner * 5_000_000


def raw_block(count: bytes) -> bytes:
    """A block of Bitcoin whose number of transactions, inputs or bytes is a lie."""
    (block,) = chain(600_000, 1)
    return frame(block[:80] + count + block[81:])


def spends_unknown_coins() -> bytes:
    (block,) = chain(600_000, 1)
    spent = transaction([spend((b"\1" * 32, 0))], [pay(1, pay_to_key_hash(1))])
    made = [coinbase(600_001), spent]
    return frame(block) + frame(samples.block(samples.name(block), made))


def unspent(coins: bytes, count: int = 1) -> bytes:
    """A UTXO snapshot with coins as they are given."""
    return snapshot({}, b"\7" * 32, count=count) + coins


def parquet(columns: dict[str, object], damage: Callable[[bytearray], None]) -> bytes:
    """A Parquet file, damaged in its footer."""
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, compression="none")
    whole = bytearray(out.getvalue())
    damage(whole)
    return bytes(whole)


def long_footer(whole: bytearray) -> None:
    whole[-8:-4] = struct.pack("<I", 2**31 - 1)


def many_rows(whole: bytearray) -> None:
    """Say in the footer that there are far more rows: 77 zigzag is 154 and one byte more."""
    size = struct.unpack("<I", whole[-8:-4])[0]
    start = len(whole) - 8 - size
    at = whole.index(b"\x16\x9a\x01", start)
    while at >= 0:
        whole[at + 1 : at + 3] = b"\xfe\x7f"
        at = whole.find(b"\x16\x9a\x01", at)


TRANSFERS = {
    "token_address": ["0x" + "ab" * 20] * 77,
    "from_address": ["0x" + "01" * 20] * 77,
    "to_address": ["0x" + "02" * 20] * 77,
    "value": ["5"] * 77,
    "transaction_hash": ["0x" + "ef" * 32] * 77,
    "log_index": list(range(77)),
    "block_number": [7] * 77,
}
CRYO = {
    "block_number": [7] * 77,
    "transaction_index": [0] * 77,
    "log_index": list(range(77)),
    "transaction_hash": [b"\xef" * 32] * 77,
    "erc20": [b"\xab" * 20] * 77,
    "from_address": [b"\1" * 20] * 77,
    "to_address": [b"\2" * 20] * 77,
    "value_binary": [bytes(31) + b"\5"] * 77,
}
INPUTS_HEAD = b"\t".join(
    b"block_id transaction_hash index time value value_usd recipient type script_hex "
    b"is_from_coinbase is_spendable".split()
)
ERC20_HEAD = b"\t".join(
    b"block_id transaction_hash time token_address token_name token_symbol token_decimals sender "
    b"recipient value".split()
)
PLAIN = {"from": ["ann"] * 77, "to": ["bob"] * 77, "amount": [5] * 77}
BITCOIN_ETL = b'{"hash":"' + b"ab" * 32 + b'","block_number":1,"is_coinbase":false,"inputs":'

HOSTILE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "blockchair: a gzip bomb of one endless line": (
        "blockchair",
        lambda: bomb(b"a" * 4096, INPUTS_HEAD + b"\n"),
    ),
    "blockchair: a gzip bomb of tabs": (
        "blockchair",
        lambda: bomb(b"\t" * 4096, INPUTS_HEAD + b"\n"),
    ),
    "blockchair-ethereum: a gzip bomb of one endless line": (
        "blockchair-ethereum",
        lambda: bomb(b"0" * 4096, ERC20_HEAD + b"\n"),
    ),
    "plain: a footer of 2 GB": ("plain", lambda: parquet(PLAIN, long_footer)),
    "plain: rows that are not there": ("plain", lambda: parquet(PLAIN, many_rows)),
    "transfers: a gzip bomb of one endless line": (
        "transfers",
        lambda: bomb(b"a" * 4096, b"from,to,amount\n"),
    ),
    "transfers: a zip bomb of one endless line": (
        "transfers",
        lambda: zip_bomb(b"from,to,amount\n", b"a" * 4096),
    ),
    "etherscan: a gzip bomb of one endless field": (
        "etherscan",
        lambda: bomb(
            b"0" * 4096,
            b'"Transaction Hash","Blockno","UnixTimestamp","From","To","TokenValue",'
            b'"ContractAddress"\n"',
        ),
    ),
    "dune: a gzip bomb of one endless line": (
        "dune",
        lambda: bomb(b"0" * 4096, b"evt_tx_hash,evt_index,evt_block_number,from,to,value\n"),
    ),
    "transfers: separators and nothing else": ("transfers", lambda: b";" * (64 << 20)),
    "dumplings: a gzip bomb of one endless line": (
        "dumplings",
        lambda: bomb(b"0" * 4096, b"ab" * 32 + b":::"),
    ),
    "tornado: lists in lists": ("tornado", lambda: deep(b'[{"blockNumber":1,"a":')),
    "tornado: an endless string": (
        "tornado",
        lambda: bomb(b"a" * 4096, b'[{"blockNumber":1,"transactionHash":"'),
    ),
    "bitcoin-etl: lists in lists": ("bitcoin-etl", lambda: deep(BITCOIN_ETL)),
    "bitcoin-etl: a gzip bomb of one endless line": (
        "bitcoin-etl",
        lambda: bomb(b" " * 4096, BITCOIN_ETL),
    ),
    "bitcoin-json: objects in objects": (
        "bitcoin-json",
        lambda: deep(b'{"hash":"' + b"00" * 32 + b'","height":1,"tx":[', b'{"a":'),
    ),
    "bitcoin-json: an endless block": (
        "bitcoin-json",
        lambda: bomb(b" " * 4096, b'{"hash":"' + b"00" * 32 + b'","height":1,"tx":['),
    ),
    "esplora: lists in lists": (
        "esplora",
        lambda: deep(b'{"txid":"' + b"ab" * 32 + b'","vin":[', b"["),
    ),
    "esplora: an endless string": (
        "esplora",
        lambda: bomb(b"a" * 4096, b'{"txid":"'),
    ),
    "mev-inspect: lists in lists": ("mev-inspect", lambda: deep(b'{"block_number":1,"traces":[')),
    "mev-inspect: an endless string": (
        "mev-inspect",
        lambda: bomb(b"a" * 4096, b'{"block_number":1,"miner":"'),
    ),
    "ethereum-etl: a gzip bomb of one endless line": (
        "ethereum-etl",
        lambda: bomb(b"0" * 4096, ",".join(TRANSFERS).encode() + b"\n"),
    ),
    "ethereum-etl: a footer of 2 GB": ("ethereum-etl", lambda: parquet(TRANSFERS, long_footer)),
    "ethereum-etl: rows that are not there": (
        "ethereum-etl",
        lambda: parquet(TRANSFERS, many_rows),
    ),
    "cryo: a gzip bomb of one endless line": (
        "cryo",
        lambda: bomb(b"0" * 4096, ",".join(CRYO).encode() + b"\n"),
    ),
    "cryo: a footer of 2 GB": ("cryo", lambda: parquet(CRYO, long_footer)),
    "cryo: rows that are not there": ("cryo", lambda: parquet(CRYO, many_rows)),
    "cryo: an amount of many bytes": (
        "cryo",
        lambda: parquet(CRYO | {"value_binary": [b"\1" * (1 << 20)] * 77}, lambda whole: None),
    ),
    "utxo-edges: a gzip bomb of one endless line": (
        "utxo-edges",
        lambda: bomb(b"1" * 4096, b"src_id,dst_id,src_position,dst_position,address,value\n"),
    ),
    "rusty-blockparser: an endless line": (
        "rusty-blockparser",
        lambda: bomb(b"0" * 4096, b"ab" * 32 + b";0;5;"),
    ),
    "bitcoin-blocks: 10^9 transactions": (
        "bitcoin-blocks",
        lambda: raw_block(b"\xfe" + struct.pack("<I", 10**9)),
    ),
    "bitcoin-blocks: 2^60 transactions": (
        "bitcoin-blocks",
        lambda: raw_block(b"\xff" + struct.pack("<Q", 2**60)),
    ),
    "bitcoin-blocks: a block of 4 GB": (
        "bitcoin-blocks",
        lambda: b"\xf9\xbe\xb4\xd9" + b"\xff" * 4 + bytes(4096),
    ),
    "bitcoin-blocks: a block of 2 GB in an xz bomb": (
        "bitcoin-blocks",
        lambda: xz_bomb(b"\xf9\xbe\xb4\xd9\xff\xff\xff\x7f"),
    ),
    "utxo-snapshot: 2^60 coins": ("utxo-snapshot", lambda: unspent(b"", count=2**60)),
    "utxo-snapshot: 2^60 coins of one transaction": (
        "utxo-snapshot",
        lambda: unspent(b"\1" * 32 + b"\xff" + struct.pack("<Q", 2**60) + bytes(4096)),
    ),
    "utxo-snapshot: 10^8 coins of one transaction in a bomb": (
        "utxo-snapshot",
        lambda: bomb(b"\0\2\0\6" * 1024, unspent(b"\1" * 32 + b"\xfe" + struct.pack("<I", 10**8))),
    ),
    "utxo-snapshot: a script of 2^60 bytes": (
        "utxo-snapshot",
        lambda: unspent(b"\1" * 32 + b"\1\0\2\0" + b"\xff" * 8 + b"\0" + bytes(4096)),
    ),
    "utxo-snapshot: an amount without an end": (
        "utxo-snapshot",
        lambda: unspent(b"\1" * 32 + b"\1\0\2" + b"\xff" * 4096),
    ),
    "utxo-snapshot: an xz bomb": ("utxo-snapshot", lambda: xz_bomb(unspent(b""))),
    "zcash-blocks: 10^9 transactions": (
        "zcash-blocks",
        lambda: (struct.pack("<I", 4) + bytes(136) + b"\xfd\x40\x05" + bytes(1344)
                 + b"\xfe" + struct.pack("<I", 10**9)).hex().encode(),
    ),
    "zcash-blocks: an endless line of hex": ("zcash-blocks", lambda: bomb(b"04" * 2048)),
}  # fmt: skip


# What a wallet is given by: keys, lists of coins, labels.
HOSTILE_WALLETS: dict[str, Callable[[], bytes]] = {
    "descriptor: nested without an end": lambda: b"sh(" * 2_000_000,
    "descriptor: of 10^6 keys": lambda: (
        b"wsh(multi(1," + b",".join([b"02" + b"79" * 32] * 100_000) + b"))"
    ),
    "descriptor: a path of 10^6 steps": lambda: b"wpkh(" + b"xpub6" + b"C" * 106 + b"/0" * 10**6,
    "descriptor: 10^5 branches": lambda: (
        b"wpkh(xpub6" + b"C" * 106 + b"/<" + b";".join(b"%d" % k for k in range(10**5)) + b">/*)"
    ),
    "descriptor: an extended key of a million letters": lambda: b"xpub" + b"1" * 10**6,
    "descriptor: a million of them, wrong": lambda: b"wpkh(xpub1)\n" * 10**6,
    "descriptor: a gigabyte in a bomb": lambda: bomb(b"wpkh(" * 1024),
    "listdescriptors: nested without an end": lambda: deep(b'{"descriptors":'),
    "listunspent: nested without an end": lambda: deep(b""),
    "listunspent: an amount of 10^9 digits": lambda: (
        b'[{"txid":"' + b"ab" * 32 + b'","vout":0,"amount":1e999999999}]'
    ),
    "listtransactions: payments in payments": lambda: deep(b'[{"category":"receive","details":'),
    "sparrow: an endless field in a bomb": lambda: bomb(
        b"0" * 4096, b"Date (UTC),Output,Address,Label,Value\n"
    ),
    "labels: objects in objects": lambda: deep(b'{"type":"output","ref":', b'{"a":'),
    "labels: a gigabyte in a bomb": lambda: bomb(
        b'{"type":"output","ref":"' + b"ab" * 32 + b':0","label":"x"}\n'
    ),
}

# Transactions to be signed, beside a wallet that is honest.
PSBT = b"psbt\xff"
HOSTILE_PSBTS: dict[str, Callable[[], bytes]] = {
    "psbt: a transaction of 2^60 inputs": lambda: (
        PSBT + b"\1\0\x0e" + struct.pack("<IBQ", 2, 255, 2**60) + b"\0" * 64
    ),
    "psbt: a record of 2^60 bytes": lambda: (
        PSBT + b"\1\0\xff" + struct.pack("<Q", 2**60) + bytes(9)
    ),
    "psbt: version 2 of 10^9 inputs": lambda: (
        PSBT + b"\1\xfb\4\2\0\0\0" + b"\1\4\5\xfe" + struct.pack("<I", 10**9)
        + b"\1\5\1\1" + b"\0" * 64
    ),
    "psbt: records without an end in a bomb": lambda: bomb(b"\1\xfc\1\0" * 1024, PSBT),
    "psbt: a million letters of base64": lambda: b"cHNidP8" + b"A" * 10**6,
}  # fmt: skip


Outcome = tuple[int, str]  # exit code, and what was said


@pytest.fixture(scope="module")
def read_within_limits(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Outcome]:
    """Read the hostile files that tests ask for, and an honest one; all are children of one."""
    if sys.platform != "linux":
        pytest.skip("limits of memory are told in the way of Linux")
    folder = tmp_path_factory.mktemp("hostile")
    honest = b"".join(frame(block) for block in chain(600_000, 3))
    spending = folder / "spending.dat"  # a snapshot is read only where blocks spend coins of it
    spending.write_bytes(spends_unknown_coins())
    files = HOSTILE | {name: (WALLET, make) for name, make in HOSTILE_WALLETS.items()}
    files |= {name: (SIGNED, make) for name, make in HOSTILE_PSBTS.items()}
    mined = folder / "mined.dat"
    mined.write_bytes(honest)
    ledger = coinhaze.read(mined)
    assert isinstance(ledger, coinhaze.CoinLedger)
    coin = f"{ledger.txids[0]}:0"
    wanted = {
        item.callspec.params["name"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.path == request.path
        and hasattr(item, "callspec")
    }
    files = {name: file for name, file in files.items() if name in wanted}
    files |= {"honest": ("bitcoin-blocks", lambda: honest)}
    for number, (format, make) in enumerate(files.values()):
        path = folder / f"{number}.file"
        path.write_bytes(make())
        words = ["ingest", path, "--format", format, "-o", folder / f"{number}.store"]
        words += ["--decimals", "18"] if format == "etherscan" else []
        if format == "utxo-snapshot":
            words = ["ingest", spending, path, "-o", folder / f"{number}.store"]
        if format == WALLET:
            words = ["wallet", spending, "--unknown", "leave-out", "--nodes", path]
        if format == SIGNED:
            words = ["wallet", mined, "--nodes", coin, "--psbt", path]
        (folder / f"{number}.command").write_text("\n".join(map(str, words)))
    subprocess.run(
        [sys.executable, PROGRAM, str(ROOM), str(SECONDS), folder],
        check=True, timeout=10 * SECONDS * len(files), stdout=subprocess.PIPE,
    )  # fmt: skip
    return {
        name: (
            int((folder / f"{number}.code").read_text()),
            (folder / f"{number}.stderr").read_text(),
        )
        for number, name in enumerate(files)
    }


def _quick() -> set[str]:
    """Name one file of each format, and one that a wallet is given by."""
    first = {format: name for name, (format, _) in reversed(HOSTILE.items())}
    return {*first.values(), next(iter(HOSTILE_WALLETS)), next(iter(HOSTILE_PSBTS))}


@pytest.mark.xdist_group("hostile files")
@pytest.mark.parametrize(
    "name",
    [
        name if name in _quick() else pytest.param(name, marks=pytest.mark.long)
        for name in (*HOSTILE, *HOSTILE_WALLETS, *HOSTILE_PSBTS)
    ],
)
def test_a_hostile_file_is_refused_within_limits(
    read_within_limits: dict[str, Outcome], name: str
) -> None:
    code, said = read_within_limits[name]
    assert code in (3, 6), said[-2000:]
    # The first file that reaches compiled code compiles it, and says so.
    lines = [line for line in said.splitlines() if not line.startswith("note: compiling")]
    assert len(lines) == 1, said[-2000:]
    assert lines[0].startswith("coinhaze: ")
    assert name not in HOSTILE_PSBTS or ".file: " in lines[0]  # the wallet beside it is honest


def test_every_format_has_its_hostile_files() -> None:
    assert {format for format, _ in HOSTILE.values()} == formats().keys()


def test_an_honest_file_passes_under_the_same_limits(
    read_within_limits: dict[str, Outcome],
) -> None:
    code, said = read_within_limits["honest"]
    assert code == 0, said
