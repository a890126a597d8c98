"""Labels of wallets (BIP-329): read, written back, and what mends likely mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.lists.bip329 import Haze, label_lines, read_wallet_labels
from coinhaze.formats.lists.coins import read_coin_list
from coinhaze.formats.lists.knowledge import read_listed
from coinhaze.formats.lists.labels import read_labels

TX = "Ab" * 32
HOME, SHOP = "bc1qhome", "1Shop"
XPUB = "xpub" + "6CatWdiZiodmUeTDp8" * 6


def line(kind: object, ref: object, label: object = "rent", **more: object) -> str:
    return json.dumps({"type": kind, "ref": ref, "label": label} | more)


ALL = [
    line("tx", TX, "paid"),
    line("addr", HOME, "home", origin="wpkh([d34db33f/84'/0'/0'])"),
    line("pubkey", "02" * 33, "key"),
    line("input", f"{TX}:0", "spent"),
    line("output", f"{TX}:1", "savings [haze: 1.00 bits]", spendable=False),
    line("xpub", XPUB, "account"),
    line("addr", SHOP, None),
    line("something", "else"),
]


def write(path: Path, *lines: str, name: str = "labels.jsonl") -> Path:
    file = path / name
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize("name", ["labels.jsonl", "labels.json", "labels"])
def test_labels_name_addresses_coins_and_transactions(tmp_path: Path, name: str) -> None:
    labels = read_labels(write(tmp_path, *ALL, "", name=name))
    coin = f"{TX.lower()}:1"
    assert labels.names == {TX.lower(): "paid", HOME: "home", coin: "savings"}
    assert labels.addresses == (HOME, SHOP)


def test_a_file_of_one_line_is_no_object_of_names(tmp_path: Path) -> None:
    labels = read_labels(write(tmp_path, line("addr", HOME, "home")))
    assert (labels.names, labels.addresses) == ({HOME: "home"}, (HOME,))


def test_an_object_of_names_is_still_one(tmp_path: Path) -> None:
    path = write(tmp_path, '{"type": "a shop", "1Shop": "ref"}', name="a.json")
    assert read_labels(path).names == {"type": "a shop", SHOP: "ref"}


def test_coins_and_addresses_of_labels_are_a_wallet(tmp_path: Path) -> None:
    found = read_coin_list(write(tmp_path, *ALL))
    assert [(entry.coin, entry.address, entry.label) for entry in found] == [
        (None, HOME, "home"), (f"{TX.lower()}:1", None, "savings"), (None, SHOP, None),
    ]  # fmt: skip


def test_labels_are_a_list_of_addresses(tmp_path: Path) -> None:
    assert read_listed(write(tmp_path, *ALL)) == [HOME, SHOP]


def test_what_is_written_is_read_again_and_replaced(tmp_path: Path) -> None:
    coin = f"{TX.lower()}:1"
    first = label_lines([Haze(coin, "rent", (2.0, 2.5), (0.0, 0.1))], "output")
    (read,) = read_wallet_labels(first, "labels")
    assert json.loads(first)["label"] == "rent [haze: 2.00-2.50 bits, exposure 0.0-10.0 %]"
    assert (read.ref, read.label) == (coin, "rent")
    again = label_lines([Haze(coin, json.loads(first)["label"], (3.0, 3.0))], "output")
    assert json.loads(again)["label"] == "rent [haze: 3.00 bits]"


def test_what_has_no_answer_is_not_written() -> None:
    assert label_lines([Haze("t:0", "rent", (float("nan"), float("nan")))], "output") == ""


GOOD = line("addr", HOME)
MISTAKES = {
    "an array": (f"[{GOOD}]", r"an array where BIP-329 has lines \(one object a line"),
    "objects over several lines": (
        json.dumps(json.loads(GOOD), indent=1),
            r"labels.jsonl:1: .*goes on over several lines .one object a line"),
    "a line cut": (f"{GOOD}\n{GOOD[:20]}",
        r":2: not a BIP-329 label: .*truncated.*one object a line"),
    "no ref": (f'{GOOD}\n{{"type":"addr","label":"x"}}', r":2: .*missing.*`ref`"),
    "no type": (f'{GOOD}\n{{"ref":"{SHOP}","label":"x"}}', r":2: .*missing.*`type`"),
    "a type in other letters": (line("Output", f"{TX}:0"),
        r"must be lower case: 'Output' \(write out"),
    "a coin without a number": (line("output", TX), r"not a coin.*TXID:0"),
    "a coin as an address": (line("addr", f"{TX}:0"), r"not an address.*the type is output"),
    "a coin as a transaction": (line("tx", f"{TX}:0"), r"not a transaction's id.*type is output"),
    "a short id": (line("output", "abc:0"), r"not a coin: 'abc:0' .*64 digits"),
    "a label that is a number": (line("addr", HOME, 5), r"Expected `str"),
    "two objects on a line": (GOOD + GOOD, r":1: not a BIP-329 label: .*one object a line"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_likely_mistake_is_named_with_its_fix(tmp_path: Path, mistake: str) -> None:
    text, message = MISTAKES[mistake]
    for read in (read_labels, read_coin_list):
        with pytest.raises(LedgerError, match=message):
            read(write(tmp_path, text))


def test_a_damaged_line_of_a_key_does_not_show_it(tmp_path: Path) -> None:
    for damaged in (line("xpub", XPUB)[:-2], line("xpub", XPUB, 5), line("XPUB", XPUB)):
        with pytest.raises(LedgerError) as caught:
            read_labels(write(tmp_path, GOOD, damaged))
        assert XPUB[:12] not in str(caught.value)


def test_keys_alone_are_no_wallet(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="lists no coin") as caught:
        read_coin_list(write(tmp_path, line("xpub", XPUB)))
    assert XPUB[:12] not in str(caught.value)
