"""The likeliest mistakes with files of every format: each message says what mends it.

Each message was read alone: `words` are those that name the fix. Formats whose own modules hold
their mistakes are counted at the end.
"""

from __future__ import annotations

import gzip
import importlib
import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.blockchair_files import INPUTS, OUTPUTS, TRANSACTIONS

import coinhaze
from coinhaze.errors import CoinhazeError
from coinhaze.formats.lists.coins import parse_entry
from formats import ethereum_files as ethereum
from formats import json_samples as samples
from formats.block_samples import file_of
from formats.test_blockchair import COIN, MADE, SPENDING, text
from formats.test_dumplings import GOOD
from formats.test_snapshots import blocks_of_window
from formats.test_tornado import DEPOSITS, WITHDRAWALS
from formats.test_utxo_edges import EDGES, VERTICES

Files = dict[str, bytes]
Mistake = tuple[Files, dict[str, Any], str]
TEN = 10


def one(content: bytes | str, name: str = "t.csv") -> Files:
    return {name: content.encode() if isinstance(content, str) else content}


def changed(content: str, old: str, new: str, name: str = "t.csv") -> Files:
    assert old in content, (old, content)
    return one(content.replace(old, new, 1), name)


def workbook() -> bytes:
    from io import BytesIO

    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return made.getvalue()


PAID = "from,to,amount,height\nann,ben,5,1\nben,cid,3,2\n"
TRANSFERS: dict[str, Mistake] = {
    "whole coins": (changed(PAID, ",5,", ",0.5,"), {}, "--decimals N"),
    "thousands parted": (changed(PAID, ",5,", ',"1,000",'), {}, "without commas"),
    "an exponent": (changed(PAID, ",5,", ",5E+18,"), {}, "export it again.*round long numbers"),
    "a negative amount": (changed(PAID, ",5,", ",-5,"), {}, "amounts are >= 0"),
    "no amount": (changed(PAID, ",5,", ",,"), {}, "write all digits"),
    "no recipient": (changed(PAID, "ann,ben", "ann,"), {}, ":2: to is missing .*fill it in"),
    "a field too many": (changed(PAID, "ann,ben", "ann,ben,x"), {}, ":2: .*separator too many"),
    "two files joined": (one(PAID + PAID), {}, ":4: header repeated .remove this line, if"),
    "a block that is none": (changed(PAID, "3,2", "3,latest"), {}, "write plain digits"),
    "two columns of one thing": (
        changed(PAID, "height", "value"), {}, "both mean amount .leave one of them out"),
    "a workbook": (one(workbook(), "t.xlsx"), {}, "save it as CSV"),
    "another name for whom": (changed(PAID, ",to,", ",payee,"), {},
        "transfers: --columns to=payee$"),
    "a time in another form": (
        one("from,to,amount,time\nann,ben,5,01/02/2024 10:00\n"), {}, "or ISO 8601"),
}  # fmt: skip

DUMP = text(OUTPUTS, COIN, COIN | {"index": "1"}).decode()
BLOCKCHAIR: dict[str, Mistake] = {
    "inputs alone": (one(text(INPUTS, COIN | SPENDING)), {}, "give the table of outputs"),
    "transactions alone": (one(text(TRANSACTIONS, MADE)), {}, "give the table of outputs"),
    "a download cut short": (
        one(gzip.compress(DUMP.encode() * 50)[:-20], "t.tsv.gz"), {}, "download or copy it again"),
    "an error page": (one("<html>402</html>", "t.tsv.gz"), {}, "download or copy it again"),
    "a row cut short": (one(DUMP[:-9]), {}, ":3: .*the line is cut.*download the file again"),
    "saved by a spreadsheet": (changed(DUMP, "\t50\t", "\t5.0E+09\t"), {}, "write plain digits"),
    "two days joined": (one(DUMP + "\n" + DUMP), {}, ":4: header repeated"),
    "a column left out": (
        changed(DUMP, "recipient", "to_whom"), {}, "Nearest is blockchair.*needs recipient"),
    "no header": (one(DUMP.partition("\n")[2]), {}, "without a header: put the line"),
    "dollars for satoshi": (changed(DUMP, "\t50\t", "\t$50\t"), {}, "write plain digits"),
    "dates of a spreadsheet": (
        changed(DUMP, COIN["time"], "01.04.2021 12:00"), {}, "or like 2021-04-01 12:00:00"),
    "text of another code": (
        one(DUMP.encode().replace(b"alice", b"al\xffce")), {}, "save it as UTF-8"),
}  # fmt: skip

TOKENS = ethereum.csv_text([ethereum.token_transfer()]).decode()


def row_of(make: Callable[..., Any], **changes: Any) -> Files:
    return one(ethereum.csv_text([make(**changes)]))


def without(make: Callable[..., Any], *names: str) -> Files:
    return one(ethereum.csv_text([{k: v for k, v in make().items() if k not in names}]))


ETHEREUM_ETL: dict[str, Mistake] = {
    "no log_index": (
        without(ethereum.token_transfer, "log_index"), {}, "Nearest is ethereum-etl.*log_index"),
    "transactions and traces": (
        {"a.csv": ethereum.csv_text([ethereum.transaction()]),
         "b.csv": ethereum.csv_text([ethereum.trace()])}, {}, "one source is wrong"),
    "several tokens": (
        one(ethereum.csv_text([ethereum.token_transfer(), ethereum.token_transfer(
            token_address=ethereum.address("other"), log_index=5)])), {}, "--token"),
    "a rounded value": (
        row_of(ethereum.token_transfer, value="1E+20"), {}, "round long numbers"),
    "ether for wei": (row_of(ethereum.transaction, value="0.5"), {}, "write all digits.*wei"),
    "an address cut": (
        row_of(ethereum.token_transfer, to_address="0x12ab"), {}, "export the table again"),
    "no value": (row_of(ethereum.token_transfer, value=None), {}, "export the table again"),
    "receipts": (
        one("transaction_hash,transaction_index,gas_used,status\n0x1,1,21000,1\n"), {},
        "receipts.*take traces"),
    "logs": (
        one("log_index,transaction_hash,address,data,topics\n1,0x1,0x2,0x3,0x4\n"), {},
        "logs of contracts.*export_token_transfers"),
    "contracts": (one("address,bytecode,is_erc20\n0x1,0x2,true\n"), {}, "take token_transfers"),
    "two exports joined": (one(TOKENS + TOKENS), {}, "remove this line"),
    "a row cut short": (one(TOKENS.rstrip()[:-8]), {}, "the line is cut"),
    "decimals given": (one(TOKENS), {"decimals": 18}, "leave it out; or.*--columns from"),
    "traces without status": (
        without(ethereum.trace, "status", "error"), {}, "neither `status` nor `error`"),
}  # fmt: skip

PAYMENTS = samples.lines(samples.ETL).decode()


def etl(old: str, new: str) -> Files:
    return changed(PAYMENTS, old, new, "t.json")


BITCOIN_ETL: dict[str, Mistake] = {
    "blocks": (
        one('{"hash":"ab","number":1,"merkle_root":"x","coinbase_param":""}', "b.json"), {},
        "bitcoin-etl's blocks.*transactions.json"),
    "a line cut": (one(PAYMENTS[:-30], "t.json"), {}, "cut short or damaged.*again"),
    "an array not closed": (one("[" + PAYMENTS, "t.json"), {}, "one record a line"),
    "in CSV": (
        one("hash,size,block_number,inputs,outputs\nab,1,1,[],[]\n"), {}, "as JSON lines"),
    "coins for satoshi": (etl('"value":50', '"value":0.5'), {}, "whole satoshi|int"),
    "a value below 0": (etl('"value":50', '"value":-50'), {}, "value .*-50"),
    "no hash": (etl('"hash"', '"txid"'), {}, "`hash`"),
    "a value left out": (etl('"value":50', '"value":null'), {}, "value"),
    "a time in words": (etl("1231006505", '"yesterday"'), {}, "block_timestamp"),
    "not a number": (etl('"value":50', '"value":NaN'), {}, "NaN is not a number .export it again"),
}  # fmt: skip

BLOCKS = samples.lines(samples.BLOCKS).decode()


def block(old: str, new: str) -> Files:
    return changed(BLOCKS, old, new, "b.json")


BITCOIN_JSON: dict[str, Mistake] = {
    "ids alone (verbosity 1)": (
        one(json.dumps({"hash": "ab" * 32, "height": 1, "nTx": 1, "tx": ["cd" * 32]})), {},
        "verbosity 3: bitcoin-cli getblock HASH 3"),
    "hexadecimal (verbosity 0)": (one("00" * 100), {}, "bitcoin-cli getblock HASH 3"),
    "a header": (
        one(json.dumps({"hash": "ab" * 32, "height": 1, "nTx": 1, "merkleroot": "x"})), {},
        "ask getblock for verbosity"),
    "an error of the node": (
        one('{"result":null,"error":{"code":-5,"message":"Block not found"},"id":1}'), {},
        "repeat the request"),
    "a block cut": (one(BLOCKS[:-40], "b.json"), {}, "cut short or damaged.*again"),
    "a block in its answer": (
        one('{"jsonrpc":"2.0","result":{"hash":"ab"},"id":1}'), {}, "in `result` alone"),
    "a login page": (one("<html>401</html>", "b.json"), {}, "download the data again"),
    "a fraction of a satoshi": (block('"value":25.0', '"value":0.000000001'), {}, "fraction of a"),
    "nothing": (one("", "b.json"), {}, "empty: export or download it again"),
    "an empty array": (one("[]", "b.json"), {}, "nothing in it: export or download it again"),
}  # fmt: skip

FOUND = samples.lines(samples.ESPLORA).decode()
ESPLORA: dict[str, Mistake] = {
    "a block": (
        one('{"id":"ab","height":1,"timestamp":5,"tx_count":1,"merkle_root":"x"}'), {},
        "/block/HASH/txs"),
    "coins of an address": (
        one(json.dumps([{"txid": "ab" * 32, "vout": 0, "value": 5}]), "t.json"), {},
        "coinhaze wallet LEDGER --nodes"),
    "a login page": (one("<html>", "t.json"), {}, "download the data again"),
    "who spends outputs": (one('[{"spent":true,"txid":"ab","vin":0}]'), {}, "/tx/TXID"),
    "a line cut": (one(FOUND[:-40], "t.json"), {}, "cut short or damaged.*again"),
    "no transactions": (one("[]", "t.json"), {}, "export or download it again"),
    "hexadecimal": (one("01" * 90, "t.json"), {}, "in hexadecimal: take it"),
    "nothing": (one("", "t.json"), {}, "download it again"),
    "a workbook": (one(workbook(), "t.json"), {}, "save it as CSV"),
    "coins for satoshi": (
        one(FOUND.replace('"value":', '"value":0.', 1), "t.json"), {}, "whole satoshi"),
}  # fmt: skip


def events(kind: str, found: Any, pool: str = "1_eth_0.1") -> Files:
    return one(zlib.compress(json.dumps(found).encode()), f"{kind}_{pool}.json")


def deposit(**changes: Any) -> Files:
    return events("deposits", [DEPOSITS[0] | changes])


def withdrawal(**changes: Any) -> Files:
    return events("withdrawals", [WITHDRAWALS[0] | changes])


UNNAMED = {k: v for k, v in DEPOSITS[0].items() if k != "commitment"}
TORNADO: dict[str, Mistake] = {
    "renamed": (events("deposits", DEPOSITS, "copy"), {}, "such as deposits_1_eth_0.1.json"),
    "a browser's copy": (
        one(json.dumps(DEPOSITS), "deposits_1_eth_0.1 (1).json"), {}, "such as deposits_1_eth"),
    "an unknown money": (events("deposits", DEPOSITS, "1_doge_5"), {},
        "known are eth, dai.*name that it was published.*cannot be"),
    "another pool's name": (withdrawal(fee=str(10**18)), {},
        "a fee of 1 ETH in a pool of 0.1 ETH.*published"),
    "a field left out": (events("deposits", [UNNAMED]), {},
        "`commitment`; its fields are .*leafIndex.*unchanged"),
    "a leaf that is none": (deposit(leafIndex=-1), {}, "0 to 1048575.*download the events again"),
    "no events": (events("deposits", []), {}, "nothing in it: export or download it again"),
    "a download cut short": (
        one(events("deposits", DEPOSITS * 40)["deposits_1_eth_0.1.json"][:-9],
            "deposits_1_eth_0.1.json"), {}, "download or copy it again"),
    "deposits called withdrawals": (
        events("withdrawals", DEPOSITS), {}, "not a withdrawal.*if these are deposits, name it"),
    "an address cut": (withdrawal(to="0x12"), {}, "download the events again"),
    "a hash cut": (deposit(commitment="0x1"), {}, "download the events again"),
}  # fmt: skip

WHOLE = file_of(blocks_of_window()[0])
RAW: dict[str, Mistake] = {
    "cut short": (one(WHOLE[:-7], "blk00000.dat"), {}, "cut short, or its node is still writing"),
    "undo data alone": (
        one(b"\xf9\xbe\xb4\xd9" + bytes(90), "rev00000.dat"), {}, "give blk.*.dat"),
    "undo data hidden by a key": (
        one(bytes(range(1, 91)), "rev00000.dat"), {}, "give blk00000.dat"),
    "values not known": (
        one(WHOLE, "blk00000.dat"), {},
        r"\(1\) rev\*.dat in .*\(3\) .*dumptxoutset.*--unknown leave-out"),
    "the key is missing": (
        one(bytes(b ^ 0x5A for b in WHOLE), "blk00000.dat"), {}, "copy xor.dat.*beside it"),
    "a byte changed": (
        one(WHOLE[:400] + b"\x77" + WHOLE[401:], "blk00000.dat"), {}, "copy it again"),
    "the node's index": (one(b"\0\1" * 90, "000005.ldb"), {}, "give the node's blk"),
    "a wallet": (
        one(b"\0\1" * 90, "wallet.dat"), {}, "listunspent > coins.json, then coinhaze wallet"),
    "in hexadecimal": (one(WHOLE.hex(), "block.hex"), {}, "getblock HASH 3; or give blk"),
    "nothing": (one(b"", "blk00000.dat"), {}, "empty: export or download it again"),
}  # fmt: skip

EDGE = {"vertices.csv": VERTICES.encode(), "edges.csv": EDGES.encode()}
LISTS: dict[str, Mistake] = {
    "edges alone": (one(EDGES, "edges.csv"), {}, "no vertices.*edges need vertices"),
    "a column missing": (
        EDGE | {"edges.csv": EDGES.replace("dst_position", "pos").encode()}, {},
        "Nearest is utxo-edges, which also needs dst_position"),
    "a line of a list cut": (one(GOOD[:-90], "c.txt"), {}, "txid:::block:::index:::time"),
}  # fmt: skip

MISTAKES = {
    "transfers": TRANSFERS, "blockchair": BLOCKCHAIR, "ethereum-etl": ETHEREUM_ETL,
    "bitcoin-etl": BITCOIN_ETL, "bitcoin-json": BITCOIN_JSON, "esplora": ESPLORA,
    "tornado": TORNADO, "bitcoin-blocks": RAW, "lists": LISTS,
}  # fmt: skip


def read(folder: Path, files: Files, settings: dict[str, Any]) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    coinhaze.score([folder / name for name in files], **settings)


@pytest.mark.parametrize(("kind", "mistake"), [(k, m) for k, of in MISTAKES.items() for m in of])
def test_the_message_names_what_mends_it(tmp_path: Path, kind: str, mistake: str) -> None:
    files, settings, words = MISTAKES[kind][mistake]
    with pytest.raises(CoinhazeError, match=words) as caught:
        read(tmp_path, files, settings)
    assert str(caught.value).isprintable()
    assert caught.value.exit_code in (2, 3)


XPUB = (
    "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265"
    "TMg7usUDFdp6W1EGMcet8"
)
KEYS = {
    "one letter wrong": (XPUB[:-1] + "9", "copy it again, whole"),
    "cut short": (XPUB[:-6], "copy it again, whole"),
    "a private key": (
        XPUB.replace("xpub", "xprv"),
        "if you typed it.*Give the extended public key",
    ),
    "seed words": ("abandon " * 11 + "about", "Give the extended public key|seed"),
    "a key of a coin (WIF)": (
        "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ",
        "Give its address",
    ),
    "a checksum of another": (f"wpkh({XPUB}/0/*)#aaaaaaaa", "checksum"),
    "no bracket": (f"wpkh({XPUB}/0/*", r"\)|bracket|descriptor"),
    "a function not known": (f"combo({XPUB})", "pkh|wpkh"),
    "a hardened step": (f"wpkh({XPUB}/0'/*)", "hardened step.*xpub that the wallet shows"),
    "no star": (f"wpkh({XPUB}/0/a)", "path|number|step"),
}


@pytest.mark.parametrize("mistake", KEYS)
def test_a_key_s_message_names_what_mends_it_and_shows_no_key(mistake: str) -> None:
    given, words = KEYS[mistake]
    with pytest.raises(CoinhazeError, match=words) as caught:
        parse_entry(given)
    assert XPUB[4:30] not in str(caught.value)


ELSEWHERE = (
    "cryo", "dune", "etherscan", "rusty_blockparser", "wallet_files", "bip329", "column_choice",
    "snapshots", "zcash_blocks",
)  # fmt: skip


def test_every_format_has_its_ten() -> None:
    counts = {kind: len(of) for kind, of in MISTAKES.items()} | {"keys": len(KEYS)}
    for name in ELSEWHERE:
        counts[name] = len(importlib.import_module(f"formats.test_{name}").MISTAKES)
    few = {kind: count for kind, count in counts.items() if count < TEN}
    assert few.keys() == {"lists"}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("ann,ben,5\n\nben,,3\n", r":4: to is missing \(.*delete the line if it is empty"),
        ("ann,ben,5\n,,\n", r":3: from is missing \(.*delete the line if it is empty"),
        ("ann,ben,5\n,,5\n", r":3: from is missing \(.* or a total\)"),
        ("ann,ben,5\nTotal,,5\n", r":3: to is missing \(.* or a total\)"),
        ('ann,ben,"5,50"\n', r":2: .*'5,50' \(a decimal comma: write 5.50, and --decimals 2"),
        ('ann,ben,"5,500"\n', r":2: .*'5,500' \(.*without commas, if they separate thousands"),
    ],
)
def test_what_spreadsheets_leave_in_a_table_is_named(tmp_path: Path, rows: str, words: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("from,to,amount\n" + rows)
    with pytest.raises(CoinhazeError, match=words):
        coinhaze.read(path)
