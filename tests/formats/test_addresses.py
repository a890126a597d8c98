from __future__ import annotations

import random

import pyarrow as pa
import pytest

from coinhaze.errors import UsageError
from coinhaze.formats.bitcoin_raw.networks import (
    NETWORKS,
    Network,
    network_named,
    networks_of,
    networks_of_owners,
)
from coinhaze.formats.bitcoin_raw.scripts import owners_of

KINDS = {
    "key": bytes.fromhex("76a914") + bytes(range(20)) + b"\x88\xac",
    "script": bytes.fromhex("a914") + bytes(range(20)) + b"\x87",
    "witness key": b"\0\x14" + bytes(range(20)),
    "witness script": b"\0\x20" + bytes(range(32)),
    "taproot": b"\x51\x20" + bytes(range(32)),
}


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.name)
def test_an_address_tells_the_network_that_wrote_it(network: Network) -> None:
    owners, _ = owners_of(list(KINDS.values()), network)
    for name in owners.drop_null().to_pylist():
        assert network.name in networks_of(name)
        assert len(networks_of(name)) <= 7


def test_a_letter_changed_is_found_by_the_checksum() -> None:
    chance = random.Random(1)
    for network in NETWORKS:
        owners, _ = owners_of(list(KINDS.values()), network)
        for name in owners.drop_null().to_pylist():
            at = chance.randrange(len(name))
            letter = "p" if name[at] != "p" else "q"
            assert networks_of(name[:at] + letter + name[at + 1 :]) == frozenset()


def test_capital_letters_are_allowed_in_witness_addresses_mixed_ones_are_not() -> None:
    name = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
    assert networks_of(name.upper()) == {"bitcoin"}
    assert networks_of(name[:-1] + "T4") == frozenset()


@pytest.mark.parametrize(
    "name", ["", "1", "bc1", "shop", "l" * 40, "ü1qqqqqqqq", "1" * 30, "1" * 200]
)
def test_what_is_no_address_is_of_no_network(name: str) -> None:
    assert networks_of(name) == frozenset()


def test_owners_of_a_ledger_tell_its_networks() -> None:
    owners = pa.array(["shop", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "t:0"])
    assert networks_of_owners(owners) == {"bitcoin", "bitcoin cash"}
    assert networks_of_owners(pa.array(["a"])) == frozenset()
    assert networks_of("0x" + "aB" * 20) == {"ethereum"}


def test_networks_have_names() -> None:
    assert network_named("litecoin").hrp == "ltc"
    with pytest.raises(UsageError, match="unknown network 'bitcoins': one of bitcoin, "):
        network_named("bitcoins")
