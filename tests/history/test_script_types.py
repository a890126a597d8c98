"""Types of scripts: by script or by address, beside every live coin, and in tables."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import coinhaze
from coinhaze import CoinLedger, History
from coinhaze.formats.bitcoin_raw.networks import NETWORKS
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.history.index.live_kernels import VOUT, VOUT_BITS, VOUT_MASK
from coinhaze.history.scores.live_coins import LiveCoins
from coinhaze.ledger.script_types import SCRIPT_TYPES, types_of_owners
from coinhaze.simulate.history import bitcoin_history
from formats.block_samples import ONE_X, ONE_Y, block, coinbase, file_of, name, pay
from history.test_files import content

KEY = b"\x02" + ONE_X
LONG_KEY = b"\x04" + ONE_X + ONE_Y
# A script of every type, and of two forms where there are two.
SCRIPTS = {
    b"\x21" + KEY + b"\xac": "p2pk",
    b"\x41" + LONG_KEY + b"\xac": "p2pk",
    b"\x76\xa9\x14" + bytes(range(20)) + b"\x88\xac": "p2pkh",
    b"\xa9\x14" + bytes(range(20)) + b"\x87": "p2sh",
    b"\x00\x14" + bytes(range(20)): "p2wpkh",
    b"\x00\x20" + bytes(range(32)): "p2wsh",
    b"\x51\x20" + bytes(range(32)): "p2tr",
    b"\x51\x21" + KEY + b"\x41" + LONG_KEY + b"\x52\xae": "multisig",
    b"\x51\x21" + KEY + b"\x51\xae": "multisig",
    b"\x51": "other",
    b"": "other",
}
# What addresses do not tell: a key from its hash, one key from another script with that key.
BY_ADDRESS = {"p2pk": "p2pkh", "other": "unknown"}


def types_in(history: History) -> list[str]:
    return [SCRIPT_TYPES[code] for code in LiveCoins.of(history.tape).script.tolist()]


def test_raw_scripts_have_their_types(tmp_path: Path) -> None:
    outputs = [pay(10 + k, script) for k, script in enumerate(SCRIPTS)]
    blocks = [block(bytes(32), [coinbase(0)])]
    blocks.append(block(name(blocks[0]), [coinbase(1, *outputs, pay(3, b"\x6a\x01\xff"))]))
    (tmp_path / "blk00000.dat").write_bytes(file_of(blocks))
    path = tmp_path / "x.history"
    history = History.index(path, tmp_path / "blk00000.dat")
    assert types_in(history) == list(SCRIPTS.values())
    history.score(accuracy="exact")
    groups = {row["group"]: row["coins"] for row in history.table("script-type").to_pylist()}
    assert groups == Counter(SCRIPTS.values())
    # What comes later leaves the types of earlier coins as they are.
    blocks.append(block(name(blocks[1]), [coinbase(2, pay(5, next(iter(SCRIPTS))))]))
    (tmp_path / "blk00000.dat").write_bytes(file_of(blocks))
    grown = History.index(path, tmp_path / "blk00000.dat")
    assert types_in(grown) == [*SCRIPTS.values(), "p2pk"]
    History.index(tmp_path / "fresh", tmp_path / "blk00000.dat")
    assert content(tmp_path / "fresh") == content(path)
    # Read as a ledger, whose owners are addresses.
    ledger = coinhaze.read(tmp_path / "blk00000.dat", complete=True)
    assert isinstance(ledger, CoinLedger)
    told = types_in(History.index(tmp_path / "ledger", ledger))
    one_key = list(SCRIPTS).index(b"\x51\x21" + KEY + b"\x51\xae")
    expected = [BY_ADDRESS.get(kind, kind) for kind in SCRIPTS.values()]
    expected[one_key] = "p2pkh"
    assert told == [*expected, "p2pkh"]


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_addresses_of_every_network_have_the_types_of_their_scripts(network: Any) -> None:
    random = np.random.default_rng(1)
    scripts, expected = [], []
    for _ in range(40):
        twenty, more = random.bytes(20), random.bytes(32)
        for script, kind in (
            (b"\x76\xa9\x14" + twenty + b"\x88\xac", "p2pkh"),
            (b"\xa9\x14" + twenty + b"\x87", "p2sh"),
            (b"\x00\x14" + twenty, "p2wpkh"),
            (b"\x00\x20" + more, "p2wsh"),
            (b"\x51\x20" + more, "p2tr"),
        ):
            scripts.append(script)
            expected.append(kind if network.hrp or kind in ("p2pkh", "p2sh") else "unknown")
    owners, _ = owners_of(scripts, network)
    found = [SCRIPT_TYPES[code] for code in types_of_owners(owners)]
    assert found == expected


def test_names_that_are_no_addresses_are_unknown() -> None:
    names = ["alice", "1", "3short", "bc1qshort", "bc1x" + "q" * 38, "a,b c", "0x" + "1" * 40, ""]
    assert not types_of_owners(pa.array([*names, None], pa.string())).any()


def test_a_type_does_not_change_the_number_of_an_output(tmp_path: Path) -> None:
    """Both stand in one word of a live coin."""
    history = History.index_blocks(tmp_path / "x", bitcoin_history(30))
    tape = history.tape
    coins = tape.live_table("coins").to_pydict()
    parts = list(bitcoin_history(30))
    first = 0
    seen = dict(zip(zip(coins["transaction"], coins["vout"], strict=True), coins["script"],
                    strict=True))  # fmt: skip
    counted: Counter[int] = Counter()
    for part in parts:
        made = np.repeat(np.arange(first, first + len(part)), part.outputs)
        assert part.made_scripts is not None
        for key in zip(made.tolist(), part.made_vouts.tolist(), part.made_scripts.tolist(),
                       strict=True):  # fmt: skip
            if key[:2] in seen:
                assert seen[key[:2]] == key[2]
                counted[key[2]] += 1
        first += len(part)
    assert sum(counted.values()) == len(seen)
    assert VOUT_MASK == 2**VOUT_BITS - 1
    assert VOUT == 1


def test_shares_of_simulated_types_are_those_stated() -> None:
    """Those of 2019, which the last third of a history has."""
    codes: Counter[str] = Counter()
    for part in bitcoin_history(600):
        assert part.made_scripts is not None
        late = part.heights >= 600 * 560_065 / 900_000
        inside = np.repeat(np.repeat(late, part.sizes), part.outputs)
        codes.update(SCRIPT_TYPES[c] for c in part.made_scripts[inside].tolist())
    n = codes.total()
    stated = {"p2pk": 0.0028, "p2pkh": 0.4615, "p2sh": 0.4795, "p2wpkh": 0.0547, "p2wsh": 0.0015}
    assert codes.keys() == stated.keys()
    for kind, share in stated.items():
        assert codes[kind] / n == pytest.approx(share, abs=5 * (share * (1 - share) / n) ** 0.5)


def test_early_coinbases_pay_to_keys() -> None:
    part = next(bitcoin_history(20))
    assert part.made_scripts is not None
    first = np.cumsum(part.outputs) - part.outputs
    early = part.heights == 0
    block_of = np.repeat(early, part.sizes)
    codes = part.made_scripts[first[block_of & part.coinbase]]
    assert [SCRIPT_TYPES[code] for code in codes] == ["p2pk"] * int(early.sum())
