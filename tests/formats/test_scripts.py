from __future__ import annotations

import hashlib
import json
import lzma
import random
from pathlib import Path

import numpy as np
import pytest

from coinhaze.formats.bitcoin_raw.networks import BITCOIN, BITCOIN_MAGICS, ZCASH_MAGICS, Network
from coinhaze.formats.bitcoin_raw.script_kernels import ripemd160
from coinhaze.formats.bitcoin_raw.scripts import owners_of, whole_key
from coinhaze.formats.bitcoin_raw.wire import Malformed
from formats import block_twin as twin
from formats.block_samples import ODD_SCRIPTS, ONE_X, ONE_Y

NETWORKS = [*BITCOIN_MAGICS.values(), *ZCASH_MAGICS.values()]
PROGRAM = "751e76e8199196d454941c45d1b3a323f1433bd6"


def owner(script: bytes, network: Network = BITCOIN) -> str | None:
    owners, _ = owners_of([script], network)
    name: str | None = owners[0].as_py()
    return name


def by_twin(script: bytes, network: Network) -> str | None:
    return twin.owner(script, network.key_version, network.script_version, network.hrp)


def test_addresses_are_those_of_the_standards() -> None:
    """Examples of BIP173 and BIP350, and the address of the first block's key."""
    assert owner(bytes.fromhex("0014" + PROGRAM)) == "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
    assert owner(bytes.fromhex("5120") + ONE_X) == (
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"
    )
    first = bytes.fromhex(
        "4104678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504"
        "e51ec112de5c384df7ba0b8d578a4c702b6bf11d5fac"
    )
    assert owner(first) == "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.name)
def test_every_kind_of_script_has_the_owner_of_the_slow_twin(network: Network) -> None:
    scripts = list(ODD_SCRIPTS.values())
    owners, spendable = owners_of(scripts, network)
    assert owners.to_pylist() == [by_twin(s, network) for s in scripts]
    assert spendable.to_pylist() == [twin.spendable(s) for s in scripts]


def test_random_and_almost_right_scripts_agree_with_the_slow_twin() -> None:
    chance = random.Random(5)
    right = [s for s in ODD_SCRIPTS.values() if s]
    scripts = []
    for _ in range(4000):
        script = bytearray(chance.choice(right))
        for _ in range(chance.randrange(3)):
            script[chance.randrange(len(script))] = chance.randrange(256)
        if chance.random() < 0.2:
            script = script[: chance.randrange(len(script))]
        if chance.random() < 0.1:
            script += chance.randbytes(chance.randrange(40))
        scripts.append(bytes(script))
    owners, spendable = owners_of(scripts, BITCOIN)
    assert owners.to_pylist() == [twin.owner(s) for s in scripts]
    assert spendable.to_pylist() == [twin.spendable(s) for s in scripts]


def test_hashes_with_zeros_in_front_keep_them_as_ones() -> None:
    for zeros in (0, 1, 2, 19, 20):
        for fill in (1, 255):
            payload = bytes(zeros) + bytes([fill]) * (20 - zeros)
            script = b"\x76\xa9\x14" + payload + b"\x88\xac"
            assert owner(script) == twin.base58(b"\0", payload)


def test_a_coin_of_a_key_and_one_of_its_hash_have_one_owner() -> None:
    hashed = twin.hash160(b"\2" + ONE_X)
    by_hash = b"\x76\xa9\x14" + hashed + b"\x88\xac"
    assert owner(ODD_SCRIPTS["p2pk"]) == owner(by_hash) == "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH"


def test_a_bare_multisig_belongs_to_its_sorted_addresses() -> None:
    one, other = "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH", "1EHNa6Q4Jz2uvNExL497mE43ikXhwF6kZm"
    assert owner(ODD_SCRIPTS["multisig"]) == f"{one},{other}"
    short, long = b"\x21\2" + ONE_X, b"\x41\4" + ONE_X + ONE_Y
    assert owner(b"\x51" + long + short + b"\x52\xae") == f"{one},{other}"
    assert owner(b"\x52" + short + short + b"\x52\xae") == one


@pytest.mark.parametrize(
    "script",
    [
        b"\x52\x21\2" + ONE_X + b"\x51\xae",  # two of one
        b"\x50\x21\2" + ONE_X + b"\x51\xae",  # none of one
        b"\x51\x21\2" + ONE_X + b"\x52\xae",  # says two, holds one
        b"\x51\x21\5" + ONE_X + b"\x51\xae",  # a key cannot begin with 5
        b"\x51\x21\2" + ONE_X + b"\x51\xaf",
    ],
)
def test_what_is_almost_a_multisig_has_no_owner(script: bytes) -> None:
    assert owner(script) is None


def test_data_and_scripts_above_10000_bytes_cannot_be_spent() -> None:
    scripts = [b"\x6a", b"\x6a" + bytes(500), b"\x51" * 10_000, b"\x51" * 10_001, b""]
    owners, spendable = owners_of(scripts, BITCOIN)
    assert spendable.to_pylist() == [False, False, True, False, True]
    assert owners.null_count == 5


def test_networks_without_witnesses_know_no_witness_addresses() -> None:
    dogecoin = BITCOIN_MAGICS[bytes.fromhex("c0c0c0c0")]
    assert owner(ODD_SCRIPTS["p2wpkh"], dogecoin) is None
    assert str(owner(ODD_SCRIPTS["p2pkh"], dogecoin)).startswith("D")


def test_no_scripts_have_no_owners() -> None:
    owners, spendable = owners_of([], BITCOIN)
    assert len(owners) == len(spendable) == 0


def test_ripemd160_agrees_with_the_standard_library() -> None:
    rows = np.random.default_rng(3).integers(0, 256, (200, 32)).astype(np.uint8)
    slow = [hashlib.new("ripemd160", r.tobytes()).digest() for r in rows]
    assert [h.tobytes() for h in ripemd160(rows)] == slow


def test_the_left_out_half_of_a_key_is_found() -> None:
    assert whole_key(b"\4" + ONE_X) == b"\4" + ONE_X + ONE_Y
    other = (2**256 - 2**32 - 977 - int.from_bytes(ONE_Y)).to_bytes(32)
    assert whole_key(b"\5" + ONE_X) == b"\4" + ONE_X + other


@pytest.mark.parametrize("x", [bytes(31) + b"\5", b"\xff" * 32])
def test_half_a_key_that_is_no_point_is_refused(x: bytes) -> None:
    with pytest.raises(Malformed, match="no point of the curve"):
        whole_key(b"\4" + x)


def test_addresses_of_real_scripts_are_those_that_esplora_shows(data: Path) -> None:
    shown: dict[str, str | None] = {}
    with lzma.open(data / "btc_mempool_esplora" / "mempool_8131.jsonl.xz") as file:
        for line in file:
            t = json.loads(line)
            for coin in t["vout"] + [i["prevout"] for i in t["vin"]]:
                if coin["scriptpubkey_type"] != "unknown":
                    shown[coin["scriptpubkey"]] = coin.get("scriptpubkey_address")
    owners, _ = owners_of([bytes.fromhex(s) for s in shown], BITCOIN)
    assert len(shown) == 34_920
    assert owners.to_pylist() == list(shown.values())
