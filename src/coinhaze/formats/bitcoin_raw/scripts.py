"""Output scripts -> who owns the coin, as the network's own addresses."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.formats.bitcoin_raw.networks import Network
from coinhaze.formats.bitcoin_raw.wire import Ints, Malformed, Octets

_FIELD = 2**256 - 2**32 - 977  # of Bitcoin's curve, y^2 = x^3 + 7


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
    # Core shows none: whoever holds the key can spend both, so both belong to one owner.
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
