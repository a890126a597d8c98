"""Lists of coins as people and nodes write them; damaged ones are our errors."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from coinhaze.errors import InputError
from coinhaze.formats.lists.coins import ListedCoin, parse_coin_list, read_coin_list
from ledger.mutants import mutants

MUTANTS = 20_000
A, B = "aa" * 32, "bb" * 32
UNSPENT = [
    {
        "txid": A,
        "vout": 1,
        "address": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        "label": "pay",
        "scriptPubKey": "51",
        "amount": 0.05000000,
        "confirmations": 6,
        "spendable": True,
    },
    {"txid": B, "vout": 0, "amount": 12.00000001, "safe": True},
]


def listed(tmp_path: Path, content: str | bytes, name: str = "coins") -> list[ListedCoin]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_coin_list(path)


def plain(entries: list[ListedCoin]) -> list[tuple[object, ...]]:
    return [(e.coin, e.address, e.label, e.value) for e in entries]


def test_lines_name_coins_and_addresses(tmp_path: Path) -> None:
    text = f"# mine\n{A.upper()}:1\n\n  shop  # the till\n0x{'AB' * 20}\nt0:3\n"
    entries = listed(tmp_path, text)
    assert plain(entries) == [
        (f"{A}:1", None, None, None),
        (None, "shop", None, None),
        (None, "0x" + "ab" * 20, None, None),
        ("t0:3", None, None, None),
    ]
    assert [e.where.rpartition(":")[2] for e in entries] == ["2", "4", "5", "6"]


@pytest.mark.parametrize(
    ("text", "coins"),
    [
        (f"txid,vout,label\n{A},1,rent\n{B},0,\n", [(f"{A}:1", "rent"), (f"{B}:0", None)]),
        (f"Label,Output\nrent,{A}:1\n", [(f"{A}:1", "rent")]),
        (f"coin\n{A}:1\n", [(f"{A}:1", None)]),
        (f'txid,vout,label\n{A},1,"rent, May"\n', [(f"{A}:1", "rent, May")]),
    ],
    ids=["txid and vout", "output", "coin alone", "quotes"],
)
def test_csv_is_read_by_column(tmp_path: Path, text: str, coins: list[tuple[str, str]]) -> None:
    assert [(e.coin, e.label) for e in listed(tmp_path, text)] == coins


def test_addresses_in_csv_have_labels(tmp_path: Path) -> None:
    assert plain(listed(tmp_path, "address,label\nshop,till\n")) == [(None, "shop", "till", None)]


def test_what_a_node_lists_is_read_with_its_values(tmp_path: Path) -> None:
    text = json.dumps(UNSPENT)
    assert plain(listed(tmp_path, text)) == [
        (f"{A}:1", None, "pay", 5_000_000),
        (f"{B}:0", None, None, 1_200_000_001),
    ]
    assert plain(listed(tmp_path, gzip.compress(text.encode()))) == plain(listed(tmp_path, text))


def test_electrums_names_and_bare_texts_are_read(tmp_path: Path) -> None:
    text = json.dumps([{"prevout_hash": A, "prevout_n": 2}, f"{B}:0", "shop"])
    assert plain(listed(tmp_path, text)) == [
        (f"{A}:2", None, None, None),
        (f"{B}:0", None, None, None),
        (None, "shop", None, None),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "lists no coin"),
        ("# nothing\n\n", "lists no coin"),
        ("[]", "lists no coin"),
        ("txid,vout\n", "lists no coin"),
        (f"{A}:1\n{A}:x\n", "coins:2: not a coin txid:vout"),
        (f"{A}:-1\n", "not a coin"),
        (f"{A}:1\n{A}:1\n", r"coins:2: listed twice: .*\(see .*coins:1\)"),
        (f"txid,vout\n{A}\n", "coins:2: 1 field where the header has 2"),
        ("txid,value\na,1\n", "no column that names coins"),
        ("txid,txid,vout\na,a,1\n", "a column twice"),
        (f'txid,vout\n"{A},1\n', "not CSV"),
        ('{"txid": "a"}', "an object where a list of coins is expected"),
        (json.dumps([{"vout": 1}]), "coin 1: not a coin"),
        (json.dumps([{"txid": A, "vout": 1, "amount": 1e-9}]), "8 places"),
        (f'[{{"txid": "{A}", "vout": 1, "amount": 1e999999999}}]', "8 places"),
        (f'[{{"txid": "{A}", "vout": 1, "amount": -1}}]', "8 places"),
        (
            json.dumps([{"label": "x"}]),
            r"coin 1: names no coin: \['x'\] \(write txid:vout or an address; delete the line",
        ),
        ("two words\n", "a blank in it"),
        (b"\xff\xfe", "not UTF-8"),
        (f"{A}:99999999999\n", "not a coin"),
    ],
    ids=range(20),
)
def test_what_breaks_a_rule_is_refused_and_named(
    tmp_path: Path, text: str | bytes, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        listed(tmp_path, text)


def test_coins_with_a_decimal_comma_are_read_as_with_a_point(tmp_path: Path) -> None:
    for name, value in (("Value (BTC)", "1,00000005"), ("Value", "1,00000005")):
        text = f"Date (UTC);Output;Address;Label;{name}\n;{A}:1;1A;;{value}\n"
        assert plain(listed(tmp_path, text)) == [(f"{A}:1", None, None, 100_000_005)]
    with pytest.raises(InputError, match=r"'1,5' \(with a point, such as 5.50"):
        listed(tmp_path, f"Output;Value (BTC)\n{A}:1;1,5\n")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none: no such file"):
        read_coin_list(tmp_path / "none")


@pytest.mark.parametrize("count", [MUTANTS // 8, pytest.param(MUTANTS, marks=pytest.mark.long)])
def test_mutants_are_read_or_refused_by_an_error_of_ours(count: int) -> None:
    files = (
        f"# mine\n{A}:1\nshop\n{B}:0\n".encode(),
        f'txid,vout,label,value\n{A},1,"rent, May",5\n{B},0,,7\n'.encode(),
        json.dumps(UNSPENT).encode(),
        f"Date (UTC),Output,Address,Label,Value\n,{A}:1,1A,,0.05\n".encode(),
        json.dumps([{"prevout_hash": A, "prevout_n": 1, "value": "0.05"}]).encode(),
        f'{{"type":"output","ref":"{A}:1","label":"rent"}}\n'.encode(),
    )
    pieces = [b",", b'"', b"\n", b":", b"{", b"]", b"1e99", b"\xff", b"\\u0000", b"null", b"-"]
    read = 0
    for seed, good in enumerate(files):
        each = count // len(files) + 1
        for mutant in mutants(good, each, seed, pieces=pieces, cuts=(0, 1, 4, 40), repeats=(40,)):
            try:
                entries = parse_coin_list(mutant)
            except InputError:
                continue
            read += 1
            assert entries
            for entry in entries:
                assert (entry.coin is None) != (entry.address is None)
                assert entry.value is None or entry.value >= 0
    assert read > count // 20
