"""Coins that pay to keys themselves, of which JSON of nodes and explorers shows no address.

They get the name that readers of raw blocks give them, the address of the key's hash: the same
block must read the same whichever way it came. What network's address that is, JSON does not tell
either; the addresses it does show tell it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import islice
from string import hexdigits
from typing import NamedTuple

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.networks import BITCOIN, BITCOIN_MAGICS, Network
from coinhaze.formats.bitcoin_raw.scripts import owners_of

# Scripts whose addresses no two networks share, by how they begin and their digits of hex. Scripts'
# hashes are not among them: old ones of Litecoin begin as Bitcoin's do.
_TELLING = (("76a914", 50), ("0014", 44), ("0020", 68), ("5120", 68))
# Before the oldest test network in use began (testnet3, block 0), work of this hash was Bitcoin's.
_ONLY_BITCOIN = 1_296_688_602
_EASIEST = "00000000"
_ENOUGH = 8
_DATA = "6a"

Place = Callable[[int], str]


class Script(NamedTuple):
    """A script of a coin in hex, and the owner its source shows."""

    hex: str
    owner: str | None


class KeyNames:
    """Names owners of such coins; what network they are of is asked when the first is met."""

    def __init__(self, find_network: Callable[[], Network | None]) -> None:
        self.find_network = find_network

    @cached_property
    def network(self) -> Network | None:
        """The network, if anything tells it."""
        return self.find_network()

    def owners(self, scripts: Sequence[Script | None], place: Place) -> list[str | None]:
        """Give the owners of scripts; none where the network is not known."""
        owners = [None if script is None else script.owner for script in scripts]
        # What sources call these scripts is of no help: to Esplora a bare multisig is unknown.
        rare = {
            row: script.hex
            for row, script in enumerate(scripts)
            if script and script.owner is None and script.hex and not script.hex.startswith(_DATA)
        }
        if rare and self.network is not None:
            octets = [_octets(text, row, place) for row, text in rare.items()]
            named, _ = owners_of(octets, self.network)
            for row, owner in zip(rare, named.to_pylist(), strict=True):
                owners[row] = owner
        return owners


def network_of(scripts: Iterable[Script | None]) -> Network | None:
    """Find the network by the first address that only one can have; nothing if none has one."""
    telling = (s for s in scripts if s is not None and s.owner is not None and _is_telling(s.hex))
    # Addresses of a chain we do not know would all be tried in vain.
    for script in islice(telling, _ENOUGH):
        octets = bytes.fromhex(script.hex)
        for network in BITCOIN_MAGICS.values():
            if owners_of([octets], network)[0][0].as_py() == script.owner:
                return network
    return None


def is_early_bitcoin(block: str, time: int | None) -> bool:
    """Tell whether a block can be none but Bitcoin's, by its hash and time.

    >>> is_early_bitcoin("00000000" + 56 * "f", 1231469665)
    True
    """
    return block.startswith(_EASIEST) and time is not None and time < _ONLY_BITCOIN


def network_in(
    groups: Iterable[tuple[Iterable[Script | None], Iterable[tuple[str, int | None]]]],
) -> Network | None:
    """Find the network of groups of scripts, and hashes and times of their blocks."""
    early = False
    for scripts, blocks in groups:
        network = network_of(scripts)
        if network is not None:
            return network
        early = early or any(is_early_bitcoin(*block) for block in blocks)
    return BITCOIN if early else None


def _is_telling(hexadecimal: str) -> bool:
    size = len(hexadecimal)
    if not any(size == digits and hexadecimal.startswith(start) for start, digits in _TELLING):
        return False
    return all(digit in hexdigits for digit in hexadecimal)


def _octets(hexadecimal: str, row: int, place: Place) -> bytes:
    try:
        return bytes.fromhex(hexadecimal)
    except ValueError:
        raise LedgerError(place(row), "a script that is no hex", value=hexadecimal) from None
