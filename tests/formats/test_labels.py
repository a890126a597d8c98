"""Lists of addresses and their names."""

from __future__ import annotations

import gzip
import sys
import tarfile
from pathlib import Path

import pytest

from coinhaze.errors import InputError, LedgerError, UsageError
from coinhaze.formats.lists import labels
from coinhaze.formats.lists.labels import Labels, read_labels

DEPOSIT = "0x00000000219ab540356cBB839Cbe05303d7705Fa"
TAGPACK = """\
title: Archives
creator: somebody
label: Internet Archive
currency: BTC
lastmod: 2019-03-01
tags:
- address: 1Archive1n2C579dMsAu3iC6tWzuQJz8dN
- address: 0x00000000219ab540356cBB839Cbe05303d7705Fa
  label: no
- address: "007"
  label: "12:30"
- {tx_hash: 4a5e1e4baab89f, label: genesis}
- address: 1Archive1n2C579dMsAu3iC6tWzuQJz8dN
  label: a second name
"""


def read(folder: Path, name: str, text: str | bytes) -> Labels:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_labels(path)


def test_csv_gives_names_by_the_header_whatever_the_order(tmp_path: Path) -> None:
    text = '\ufefftype,name,address\nx,"Alice, jr.",a1\r\ny,,b2\nz,Other,a1\n'
    found = read(tmp_path, "l.csv", text)
    assert found == Labels({"a1": "Alice, jr."}, ("a1", "b2"))


def test_csv_is_known_by_its_header_and_may_say_label(tmp_path: Path) -> None:
    assert read(tmp_path, "list", "address,label\na1,Alice\n").names == {"a1": "Alice"}
    assert read(tmp_path, "list", "address\na1\n") == Labels({}, ("a1",))


def test_text_has_one_address_a_line_and_comments(tmp_path: Path) -> None:
    text = "# sanctioned\n\n a1 \nb2 # since 2020\r\na1"
    assert read(tmp_path, "l.txt", text) == Labels({}, ("a1", "b2"))


def test_json_is_an_array_of_addresses_or_an_object_of_names(tmp_path: Path) -> None:
    assert read(tmp_path, "l.json", '["a1", "b2"]') == Labels({}, ("a1", "b2"))
    found = read(tmp_path, "l", '{"a1": "Alice", "b2": null}')
    assert found == Labels({"a1": "Alice"}, ("a1", "b2"))


def test_packed_lists_are_unpacked(tmp_path: Path) -> None:
    assert read(tmp_path, "l.csv.gz", gzip.compress(b"address\na1\n")).addresses == ("a1",)


def test_addresses_of_ethereum_become_lower_case_and_others_do_not(tmp_path: Path) -> None:
    found = read(tmp_path, "l.txt", f"{DEPOSIT}\n1AbC\n{DEPOSIT.upper().replace('X', 'x')}\n")
    assert found.addresses == (DEPOSIT.lower(), "1AbC")


def test_a_tagpack_takes_from_its_header_what_a_tag_leaves_out(tmp_path: Path) -> None:
    found = read(tmp_path, "pack.yaml", TAGPACK)
    archive = "1Archive1n2C579dMsAu3iC6tWzuQJz8dN"
    assert found.addresses == (archive, DEPOSIT.lower(), "007")
    # YAML's own reader would make 0x00..., no and 12:30 numbers and a truth value.
    assert found.names == {
        archive: "Internet Archive",
        DEPOSIT.lower(): "no",
        "007": "12:30",
    }


def test_without_pyyaml_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(UsageError, match=r"pip install 'coinhaze\[labels\]'"):
        read(tmp_path, "pack.yaml", TAGPACK)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("l.csv", "", "no column 'address'"),
        ("l.csv", "name\nx\n", "no column 'address'"),
        ("l.csv", "address,address\na,b\n", ":1: more than one column address"),
        ("l.csv", "address,name,label\na,b,c\n", "more than one column name or label"),
        ("l.csv", "address,name\na,b\nc\n", ":3: 1 field where"),
        ("l.csv", "address,name\na,b\nc,d,e\n", ":3: 3 fields"),
        ("l.csv", 'address\na\n"b', ":3: not CSV"),
        ("l.csv", "address\n" + "a" * 200_000, "not CSV: field larger"),
        ("l.csv", "address,name\n,b\n", ":2: address is missing"),
        ("l.csv", "address,name\na,b\0\n", ":2: name holds a control character"),
        ("l.txt", "a1\na b\n", ":2: an address with a blank"),
        ("l.txt", "a1\na\0b\n", ":2: address holds a control character"),
        ("l.txt", b"a1\n\xff\n", ":2: text that is not UTF-8"),
        ("l.json", "", "no labels in JSON"),
        ("l.json", '["a", 5]', "label 2: no labels in JSON: what is not text"),
        ("l.json", '{"a": ["b"]}', "no labels in JSON: what is not text"),
        ("l.json", '["a", ""]', "label 2: address is missing"),
        ("l.json", "[" * 100_000, "no labels in JSON"),
        ("l.json", '["\\ud800"]', "no labels in JSON"),
        ("l.txt.gz", "a1\n", "cannot be read"),
        ("l.yaml", "", "no list of tags"),
        ("l.yaml", "title: x", "no list of tags"),
        ("l.yaml", "tags: x", "no list of tags"),
        ("l.yaml", "tags:\n- x", ":2: a tag that is no mapping"),
        ("l.yaml", "tags:\n- label: x", ":2: a tag without address"),
        ("l.yaml", "tags:\n- address: x", ":2: a tag without label"),
        ("l.yaml", "tags:\n- address: x\n  label: ~", ":2: a tag without label"),
        ("l.yaml", "tags:\n- address: [x]\n  label: y", "list or mapping where text"),
        ("l.yaml", "tags:\n- address: x\n  label: y\n  label: z", ":4: a key given twice"),
        ("l.yaml", "a: &a {label: x}\ntags:\n- address: x\n  <<: *a", ":4: a merge key"),
        ("l.yaml", "tags: [", "not YAML"),
        ("l.yaml", "tags: *nobody", "not YAML"),
        ("l.yaml", "tags: \0", "not YAML"),
        ("l.yaml", "a: 1\n---\nb: 2", "not YAML"),
        ("l.yaml", "tags: " + "[" * 50_000 + "]" * 50_000, "more than 16 levels"),
        ("l.yaml", "a: &a [x]\ntags: [" + "*a," * 2000 + "]", "or 1000 aliases"),
        ("l.yaml", "- " * 100_000 + "a", "more than 16 levels"),
    ],
)
def test_what_is_no_list_is_refused(
    tmp_path: Path, name: str, text: str | bytes, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        read(tmp_path, name, text)


def test_nothing_in_yaml_is_run_or_built(tmp_path: Path) -> None:
    text = "tags:\n- address: !!python/object/apply:os.system [exit]\n  label: x\n"
    with pytest.raises(LedgerError, match="list or mapping where text"):
        read(tmp_path, "l.yaml", text)
    assert not isinstance(read(tmp_path, "l.yaml", TAGPACK).names["007"], int)


@pytest.mark.parametrize("limit", ["LARGEST", "LARGEST_YAML"])
def test_lists_beyond_a_limit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(labels, limit, 20)
    with pytest.raises(InputError, match="more than 20"):
        read(tmp_path, "pack.yaml", TAGPACK)


def test_a_list_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_labels(tmp_path / "none.txt")


def test_tags_of_etherscan_are_read(data: Path) -> None:
    found = read_labels(data / "labels" / "etherscan_tags.csv.xz")
    assert len(found.addresses) == 32547
    assert len(found.names) == 23533
    assert found.names["0xdffe798c7172dd6deb32baee68af322e8f495ce0"] == "0x: Asset Proxy Owner"


def test_sanctioned_addresses_are_the_same_in_text_and_json(data: Path, tmp_path: Path) -> None:
    with tarfile.open(data / "labels" / "ofac_sanctioned_lists.tar.xz") as tar:
        tar.extractall(tmp_path, filter="data")
    lists = sorted(tmp_path.glob("**/*.txt"))
    counts = {}
    for path in lists:
        counts[path.stem[-3:]] = len(read_labels(path).addresses)
        assert read_labels(path) == read_labels(path.with_suffix(".json"))
    assert len(lists) == 17
    assert (counts["XBT"], counts["ETH"]) == (435, 152)
