"""The search box: what people paste, taken out of what is around it, and found."""

from __future__ import annotations

import time
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import InputError
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.ledger_index import Prefixes, first_letters
from coinhaze.explore.search import taken_out
from coinhaze.ledger.text import text_buffers
from properties.comparison import profile
from web.explorers import explorer_of

TXID = "4f1e07" + "ab" * 27 + "a93c"
OTHER = "00" * 32
MINER = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
SEGWIT = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    rows = [
        {"txid": OTHER, "height": 668_977, "outputs": [{"value": 50, "address": MINER}]},
        {"txid": TXID, "height": 669_412, "inputs": [{"txid": OTHER, "vout": 0}],
         "outputs": [{"value": 20, "address": SEGWIT}, {"value": 30, "address": MINER}]},
    ]  # fmt: skip
    return explorer_of(coinhaze.CoinLedger.from_transactions(rows), labels={MINER: "The old mine"})


@pytest.mark.parametrize(
    ("pasted", "kind", "name"),
    [
        (TXID, "transaction", TXID),
        (TXID.upper(), "transaction", TXID),
        (f"  {TXID}\n", "transaction", TXID),
        (f'"{TXID}",', "transaction", TXID),
        (f"https://mempool.space/tx/{TXID}", "transaction", TXID),
        (f"https://blockstream.info/tx/{TXID}?expand#x", "transaction", TXID),
        (f"mempool.space/tx/{TXID}", "transaction", TXID),
        (f"tx:{TXID}", "transaction", TXID),
        (f"{TXID}:1", "coin", f"{TXID}:1"),
        (f"{TXID} : 1", "coin", f"{TXID}:1"),
        (f"'{TXID.upper()}:01'", "coin", f"{TXID}:1"),
        (f"{TXID}#0", "coin", f"{TXID}:0"),
        (f"https://mempool.space/tx/{TXID}:0", "coin", f"{TXID}:0"),
        (MINER, "address", MINER),
        (f"<{MINER}>", "address", MINER),
        (f"bitcoin:{MINER}?amount=0.1", "address", MINER),
        (f"https://blockchair.com/bitcoin/address/{SEGWIT}", "address", SEGWIT),
        (SEGWIT.upper(), "address", SEGWIT),
        ("669412", "block", "669412"),
        ("669,412", "block", "669412"),
        ("#669412", "block", "669412"),
        ("https://mempool.space/block/669412", "block", "669412"),
        (TXID[:6], "transaction", TXID),
        (TXID[:20], "transaction", TXID),
        (MINER[:7], "address", MINER),
        (SEGWIT[:12], "address", SEGWIT),
    ],
    ids=range(26),
)
def test_what_is_pasted_is_found(explorer: Explorer, pasted: str, kind: str, name: str) -> None:
    found = explorer.search(pasted)
    assert (found.hits[0].kind, found.hits[0].name) == (kind, name)
    assert found.query == pasted


def test_hits_have_pages_and_labels(explorer: Explorer) -> None:
    assert explorer.search(f"{TXID}:1").hits[0].href == f"/l/made/coin/{TXID}:1"
    assert explorer.search("669412").hits[0].href == "/l/made/block/669412"
    assert "The old mine" in explorer.search(MINER).hits[0].words


def test_an_address_of_another_network_is_named(explorer: Explorer) -> None:
    found = explorer.search("LdP8Qox1VAhCzLJNqrr74YovaWYyNBUWvL")
    assert found.hits == ()
    assert found.note is not None
    assert "litecoin" in found.note


@pytest.mark.parametrize(
    "garbage", ["zzz", "no such thing", "<img onerror=x>", "9" * 400, "%00%ff"]
)
def test_garbage_is_answered_with_what_to_paste(explorer: Explorer, garbage: str) -> None:
    found = explorer.search(garbage)
    assert found.hits == ()
    assert found.note is not None
    assert "txid:vout" in found.note
    assert found.query == garbage


@pytest.mark.parametrize("nothing", [" ", '""', "https://"])
def test_nothing_is_refused_with_what_to_paste(explorer: Explorer, nothing: str) -> None:
    with pytest.raises(InputError, match="paste"):
        explorer.search(nothing)


def test_accounts_are_found_whatever_the_case_of_an_address() -> None:
    account = "0x" + "ab" * 20
    rows = [(account, "shop:3", 5), ("alice smith", "0x" + "cd" * 20, 1)]
    explorer = explorer_of(coinhaze.AccountLedger.from_transfers(rows))
    for pasted in (
        account,
        account.upper().replace("0X", "0x"),
        f"https://etherscan.io/address/{account}",
    ):
        assert explorer.search(pasted).hits[0].name == account
    assert explorer.search("alice smith").hits[0].href == "/l/made/coin/alice%20smith"
    assert explorer.search("shop:3").hits[0].kind == "account"
    assert explorer.search("0xabab").hits[0].name == account


@cache
def explorer_of_two() -> Explorer:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 5), ("b", "c", 1)])
    return explorer_of(ledger)


@given(st.text(max_size=80))
@profile(300)
def test_no_text_breaks_the_search(text: str) -> None:
    try:
        found = explorer_of_two().search(text)
    except InputError:
        return
    assert found.hits or found.note


def test_more_hits_than_are_shown_are_said_to_be_there() -> None:
    rows = [(f"person{k:03}", "shop", 5) for k in range(40)]
    found = explorer_of(coinhaze.AccountLedger.from_transfers(rows)).search("person0")
    assert len(found.hits) == 20
    assert found.more
    assert [hit.name for hit in found.hits] == [f"person{k:03}" for k in range(20)]


@given(st.lists(st.text(max_size=12), max_size=30), st.text(min_size=1, max_size=12))
@profile(200)
def test_beginnings_are_found_as_a_plain_look_finds_them(names: list[str], prefix: str) -> None:
    names = [n for n in names if n.isprintable()]
    found = Prefixes(pa.array(names, pa.string())).rows(prefix, limit=100)
    assert sorted(found.tolist()) == [k for k, n in enumerate(names) if n.startswith(prefix)]


@given(st.lists(st.binary(max_size=12), max_size=30))
@profile(100)
def test_first_letters_sort_as_the_letters_do(texts: list[bytes]) -> None:
    column = pa.array(texts, pa.binary())
    offsets = np.cumsum([0, *map(len, texts)])
    data = np.frombuffer(b"".join(texts) or b"\0", dtype=np.uint8)
    keys = first_letters(offsets, data)
    assert len(column) == len(keys)
    assert keys.tolist() == [int.from_bytes(t[:8].ljust(8, b"\0"), "big") for t in texts]
    assert text_buffers(pa.array(["ab"]))[1][:2].tobytes() == b"ab"


def test_a_beginning_among_a_million_names_is_found_at_once() -> None:
    column = pa.array([f"{k * 2654435761 % 2**32:08x}{k:08x}" for k in range(1_000_000)])
    prefixes = Prefixes(column)
    prefixes.rows("00", limit=1)
    begin = time.process_time()
    some = column[123_456].as_py()[:6]
    found = [prefixes.rows(begins, limit=21) for begins in (some, "0000000000")]
    assert time.process_time() - begin < 0.05
    assert [len(rows) > 0 for rows in found] == [True, True]
    assert all(name.startswith(some) for name in column.take(found[0]).to_pylist())


def test_an_explorer_s_address_without_an_id_gives_its_end() -> None:
    assert taken_out("https://example.org/tx/") == "tx"
