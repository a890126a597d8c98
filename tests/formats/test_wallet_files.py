"""Lists of coins as Sparrow, Electrum and Bitcoin Core write them, and what mends mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import coinhaze
from coinhaze import CoinLedger
from coinhaze.errors import CoinhazeError, InputError
from coinhaze.formats.lists.coins import parse_coin_list
from coinhaze.wallet.holdings import find_coins
from coinhaze.wallet.wallet import weigh_wallet

A, B, C = (letter * 64 for letter in "abc")
MINE = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
BTC = 100_000_000
# A quarter of a coin and three quarters of one, of two origins, become one of nearly a whole.
LEDGER = CoinLedger.from_transactions(
    [
        {"txid": A, "outputs": [{"value": BTC // 4, "address": "x"}]},
        {"txid": B, "outputs": [{"value": 3 * BTC // 4, "address": "y"}]},
        {
            "txid": C,
            "inputs": [{"txid": A, "vout": 0}, {"txid": B, "vout": 0}],
            "outputs": [
                {"value": BTC // 2, "address": "z"},
                {"value": 49_990_000, "address": MINE},
            ],
        },
    ]
)
BITS = 0.8112781244591328  # -(1/4) log2(1/4) - (3/4) log2(3/4)


def sparrow(value: str, separator: str = ",") -> str:
    """The UTXOs tab; the value as the settings of the unit and its format have it."""
    header = ["Date (UTC)", "Output", "Address", "Label", "Value"]
    value = f'"{value}"' if "," in value else value
    row = ["2024-01-01 12:00:00", f"{C}:1", MINE, "rent", value]
    return "\n".join(separator.join(cells) for cells in (header, row)) + "\n"


def electrum(**more: Any) -> str:
    row = {
        "prevout_hash": C, "prevout_n": 1, "coinbase": False, "nsequence": 4294967293,
        "address": MINE, "height": 800000, "value": "0.4999", "part_sigs": {},
    }  # fmt: skip
    return json.dumps([row | more], indent=4)


CORE = [
    {
        "txid": C, "vout": 1, "address": MINE, "label": "rent", "scriptPubKey": "76a9",
        "amount": 0.49990000, "confirmations": 3, "spendable": True, "solvable": True,
        "desc": "pkh(...)", "parent_descs": [], "safe": True,
    }
]  # fmt: skip
FILES = {
    "Sparrow, in sats": sparrow("49990000"),
    "Sparrow, in BTC": sparrow("0.49990000"),
    "Sparrow, in BTC with a comma": sparrow("0,49990000"),
    "Sparrow, saved again by a spreadsheet": sparrow("0.4999", ";"),
    "Sparrow, header in capitals": sparrow("49990000").replace("Output", "OUTPUT"),
    "Electrum's listunspent": electrum(),
    "Electrum's listunspent, with satoshi": electrum(value_sats=49_990_000, value=None),
    "Electrum's server": json.dumps(
        [{"tx_hash": C, "tx_pos": 1, "height": 800000, "value": 49_990_000}]
    ),
    "Core's listunspent": json.dumps(CORE),
    "Core's listunspent, as it is answered": json.dumps({"result": CORE, "error": None, "id": 1}),
    "Core's listunspent, of an address without a label": json.dumps([CORE[0] | {"label": ""}]),
    "Core's listreceivedbyaddress": json.dumps(
        [{"address": MINE, "amount": 1.5, "confirmations": 3, "label": "rent", "txids": [C]}]
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_list_is_read_and_its_coin_weighed_as_by_hand(name: str) -> None:
    listed = parse_coin_list(FILES[name].encode())
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(LEDGER))
    (holding,) = weigh_wallet(chain, find_coins(chain.graph, listed)).holdings
    assert (holding.coin.name, holding.coin.value) == (f"{C}:1", 49_990_000)
    assert holding.row.bits == pytest.approx(BITS, abs=1e-12)
    if "received" not in name:
        assert listed[0].value == 49_990_000


def test_a_value_that_is_not_the_coins_is_refused() -> None:
    for text in (sparrow("0.49990001"), electrum(value="0.5")):
        chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(LEDGER))
        with pytest.raises(InputError, match=r"worth 49,990,000 in the ledger"):
            find_coins(chain.graph, parse_coin_list(text.encode()))


def test_public_descriptors_of_core_are_keys_of_the_wallet() -> None:
    key = (
        "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265"
        "TMg7usUDFdp6W1EGMcet8"
    )
    described = [
        {"desc": f"wpkh({key}/{branch}/*)", "timestamp": 1, "active": True, "range": [0, 999]}
        for branch in (0, 1)
    ]
    answer = {"wallet_name": "w", "descriptors": described}
    for text in (answer, {"result": answer, "error": None, "id": 1}):
        found = parse_coin_list(json.dumps(text).encode())
        assert [len(entry.keys) for entry in found] == [1, 1]
        assert all(entry.coin is None for entry in found)


def test_payments_received_are_coins_unless_they_are_spent() -> None:
    """As listtransactions lists them, with what was sent, is spent, or never confirmed."""
    payments = [
        PAID | {"txid": A, "vout": 0, "amount": 0.25, "confirmations": 9},  # spent by C
        PAID | {"txid": C, "vout": 0, "amount": -0.5, "category": "send", "fee": -0.0001},
        PAID | {"txid": "d" * 64, "vout": 0, "amount": 1.5, "confirmations": -1},
        PAID | {"label": "rent"},
    ]
    listed = parse_coin_list(json.dumps(payments).encode())
    assert [(entry.coin, entry.received) for entry in listed] == [
        (f"{A}:0", True),
        (f"{C}:1", True),
    ]
    graph = coinhaze.transaction_graph(LEDGER)
    (coin,) = find_coins(graph, listed)
    assert (coin.name, coin.value, coin.label) == (f"{C}:1", 49_990_000, "rent")
    with pytest.raises(InputError, match=r"coin 1: coin a{64}:0 is spent already, by c{64}"):
        find_coins(graph, listed[:1])
    with pytest.raises(InputError, match="is spent already"):
        find_coins(graph, parse_coin_list(f"{A}:0\n".encode()))


TPRV = "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtH"
PAID = {
    "address": MINE, "parent_descs": [], "category": "receive", "amount": 0.4999, "label": "",
    "vout": 1, "confirmations": 3, "blockhash": A, "blockheight": 5, "txid": C, "wtxid": C,
    "time": 1, "timereceived": 1, "bip125-replaceable": "no", "abandoned": False,
}  # fmt: skip
DESCRIPTORS = {"wallet_name": "w", "descriptors": [{"desc": f"wpkh({TPRV}/84h)#x"}]}
HISTORY = {"summary": {}, "transactions": [{"txid": C, "bc_value": "0.5"}]}
MISTAKES = {
    "payments of Core that were all sent": (
        json.dumps([PAID | {"category": "send", "amount": -0.5}]), r"lists no coin"),
    "a transaction alone": (f"{C}\n", rf":1: a transaction without.*write {C}:N, N being"),
    "a key mistyped": (
        "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265"
        "TMg7usUDFdp6W1EGMcet9", r":1: .*mistyped.*copy it again, whole"),
    "private descriptors of Core": (json.dumps(DESCRIPTORS),
        r"private key.*listdescriptors` says without `true`"),
    "private descriptors as answered": (
        json.dumps({"result": DESCRIPTORS}), r"private key.*listdescriptors` says without `true`"),
    "balances of Core": (json.dumps({"mine": {"trusted": 1}}), r"an object.*cli listunspent"),
    "a history of Electrum": (json.dumps(HISTORY), r"history of Electrum.*electrum listunspent"),
    "its history in CSV": (
        f"oc_transaction_hash,label,amount_chain_bc\n{C},,0.5\n", r"history of Electrum.*console"),
    "Sparrow's transactions": (
        f"Date (UTC),Label,Value,Balance,Fee,Txid\n,,1,1,,{C}\n", r"transactions.*UTXOs tab"),
    "Sparrow's addresses": (
        f"Index,Payment Address,Derivation,Label\n0,{MINE},m/0,\n", r"addresses.*UTXOs tab"),
    "thousands parted": (
        sparrow("49,990,000"), r":2: value is not an amount.*nothing between thousands"),
    "a number of a spreadsheet": (sparrow("4.999E-01"), r":2: value is not an amount: '4.999E-01'"),
    "nine places": (sparrow("0.499900001"), r":2: value is not an amount.*at most 8 places"),
    "below nothing": (sparrow("-5"), r":2: value is not an amount"),
    "an output cut short": (sparrow("5").replace(f"{C}:1", f"{C}:"), r":2: not a coin txid:vout"),
    "no id": (electrum(prevout_hash=None), r"1: not a coin.*id is missing: .*prevout_hash"),
    "no number of the output": (electrum(prevout_n=None), r"coin 1: not a coin.*number of its"),
    "two wallets in one file": (sparrow("5") + sparrow("5"), r":3: header repeated.*remove"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_likely_mistake_is_named_with_its_fix(mistake: str) -> None:
    text, message = MISTAKES[mistake]
    with pytest.raises(CoinhazeError, match=message) as caught:
        parse_coin_list(text.encode())
    assert "tprv" not in str(caught.value)


def test_lists_in_lists_and_endless_fields_are_refused(tmp_path: Path) -> None:
    for text in (b"[" * 5_000_000, b'{"result":' * 100_000, b'[{"txid":"' + b"a" * (1 << 24)):
        with pytest.raises(InputError):
            parse_coin_list(text)
