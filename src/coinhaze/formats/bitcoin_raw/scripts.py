"""Output scripts -> who owns the coin, as the network's own addresses.

JSON of nodes and explorers shows no address of coins that pay to keys themselves. They get the name
that readers of raw blocks give them, the address of the key's hash: the same block must read the
same whichever way it came. What network's address that is, JSON does not tell either; the addresses
it does show tell it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from string import hexdigits
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.networks import BITCOIN, BITCOIN_MAGICS, Network
from coinhaze.formats.bitcoin_raw.wire import Ints, Malformed, Octets

_FIELD = 2**256 - 2**32 - 977  # of Bitcoin's curve, y^2 = x^3 + 7

# Scripts whose addresses no two networks share, by how they begin and their digits of hex. Scripts'
# hashes are not among them: old ones of Litecoin begin as Bitcoin's do.
_TELLING = (("76a914", 50), ("0014", 44), ("0020", 68), ("5120", 68))
# Before the oldest test network in use began (testnet3, block 0), work of this hash was Bitcoin's.
_ONLY_BITCOIN = 1_296_688_602
_EASIEST = "00000000"
_ENOUGH = 8
_DATA = "6a"
Place = Callable[[int], str]


def owners_of(scripts: Sequence[bytes], network: Network) -> tuple[pa.Array, pa.Array]:
    """Give the owner of each script, null where none is known, and whether it can be spent.

    >>> from coinhaze.formats.bitcoin_raw.networks import BITCOIN
    >>> burnt = bytes.fromhex("76a914" + 20 * "00" + "88ac")
    >>> owners_of([burnt, b"\\x6a"], BITCOIN)[0].to_pylist()
    ['1111111111111111111114oLvT2', None]
    """
    from coinhaze.formats.bitcoin_raw.script_kernels import NOBODY, kinds_of_scripts

    sizes = np.fromiter(map(len, scripts), np.int64, len(scripts))
    octets = np.frombuffer(b"".join(scripts), np.uint8)
    kinds, places = kinds_of_scripts(octets, np.cumsum(sizes) - sizes, sizes)
    return owner_column(octets, kinds, places, sizes, network), pa.array(kinds != NOBODY)


def owner_column(
    octets: Octets, kinds: Ints, places: Ints, sizes: Ints, network: Network
) -> pa.Array:
    """Write owners of scripts in a buffer whose kinds are known already.

    Kinds and places are those of `kinds_of_scripts`; `sizes` are the scripts' own.
    """
    from coinhaze.formats.bitcoin_raw.script_kernels import HALF_KEY, KEY, MULTISIG

    column = _addresses(octets, kinds, places, network)
    rare = np.isin(kinds, (KEY, MULTISIG, HALF_KEY))
    if not rare.any():
        return column
    rows = np.nonzero(rare)[0]
    named = [
        list(_keys(octets, int(kinds[r]), int(places[r]), int(sizes[r]))) for r in rows.tolist()
    ]
    # A coin that pays to a key itself is named by the address of the key's hash, though Bitcoin
    # Core shows none: the holder of the key can spend both, so both belong to one owner.
    addresses = _key_addresses([key for keys in named for key in keys], network)
    owners = [",".join(sorted({next(addresses) for _ in keys})) for keys in named]
    return pc.replace_with_mask(column, pa.array(rare), pa.array(owners, pa.string()))


def _addresses(octets: Octets, kinds: Ints, places: Ints, network: Network) -> pa.Array:
    from coinhaze.formats.bitcoin_raw.script_kernels import write_addresses

    starts = (network.key_version, network.script_version, network.hrp.encode())
    letters, ends = write_addresses(
        octets, kinds, places, *(np.frombuffer(s, np.uint8) for s in starts)
    )
    known = np.packbits(ends[1:] > ends[:-1], bitorder="little")
    buffers = [pa.py_buffer(b) for b in (ends, letters, known)]
    return pa.StringArray.from_buffers(len(kinds), *buffers)


def _keys(octets: Octets, kind: int, place: int, size: int) -> Iterator[bytes]:
    """Give the public keys of a script that holds keys."""
    from coinhaze.formats.bitcoin_raw.script_kernels import HALF_KEY, MULTISIG

    if kind == HALF_KEY:
        yield whole_key(octets[place : place + 33].tobytes())
    elif kind == MULTISIG:
        script, at = octets[place : place + size].tobytes(), 1
        while at < size - 2:
            yield script[at + 1 : at + 1 + script[at]]
            at += 1 + script[at]
    else:
        first = int(octets[place])
        yield octets[place : place + (33 if first < 4 else 65)].tobytes()


def _key_addresses(keys: Sequence[bytes], network: Network) -> Iterator[str]:
    from coinhaze.formats.bitcoin_raw.script_kernels import KEY_HASH, ripemd160

    digests = b"".join(hashlib.sha256(key).digest() for key in keys)
    hashes: npt.NDArray[np.uint8] = ripemd160(np.frombuffer(digests, np.uint8).reshape(-1, 32))
    kinds = np.full(len(keys), KEY_HASH, np.int64)
    places = np.arange(len(keys), dtype=np.int64) * 20
    return iter(_addresses(hashes.reshape(-1), kinds, places, network).to_pylist())


@lru_cache(maxsize=1 << 14)
def whole_key(half: bytes) -> bytes:
    """Give the 65 bytes of a key of which undo files keep x, after 4 if y is even, 5 if odd."""
    x = int.from_bytes(half[1:])
    square = (pow(x, 3, _FIELD) + 7) % _FIELD
    y = pow(square, (_FIELD + 1) // 4, _FIELD)
    if x >= _FIELD or y * y % _FIELD != square:
        raise Malformed(f"a public key that is no point of the curve: {half.hex()}")
    if y % 2 != half[0] - 4:
        y = _FIELD - y
    return b"\x04" + half[1:] + y.to_bytes(32)


class Script(NamedTuple):
    """A script of a coin in hex, and the owner its source shows."""

    hex: str
    owner: str | None


class KeyNames:
    """Names owners of such coins; their network is looked up when the first is met."""

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
