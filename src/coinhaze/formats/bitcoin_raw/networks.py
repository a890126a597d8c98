"""Networks whose blocks share Bitcoin's framing, and which of them an address can be of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa

from coinhaze.errors import UsageError
from coinhaze.formats.bitcoin_raw.wire import double_sha256

# What transactions and headers may hold beyond Bitcoin's first form; a sum of these.
WITNESS, MWEB, SPECIAL, MERGED = 1, 2, 4, 8


@dataclass(frozen=True)
class Network:
    """One network.

    `bip34` is the first height at which a block must tell its height (BIP34); what blocks before it
    tell may be anything. `rules` is a sum of WITNESS, MWEB, SPECIAL (Dash) and MERGED (AuxPoW).
    """

    name: str
    magic: bytes
    key_version: bytes
    script_version: bytes
    bip34: int
    hrp: str = ""
    rules: int = 0
    # Dash names its blocks by X11 of the header, which is not computed here.
    hash_known: bool = True


def _network(name: str, magic: str, key: str, script: str, bip34: int, **more: object) -> Network:
    a, b, c = (bytes.fromhex(s) for s in (magic, key, script))
    return Network(name, a, b, c, bip34, **more)  # type: ignore[arg-type]


BITCOIN = _network("bitcoin", "f9beb4d9", "00", "05", 227_931, hrp="bc", rules=WITNESS)
# Files of Bitcoin Cash nodes carry Bitcoin's magic (only their messages differ), so both chains get
# the older, common form of addresses: one owner never has two names.
_BITCOINS = (
    BITCOIN,
    _network("bitcoin testnet3", "0b110907", "6f", "c4", 21_111, hrp="tb", rules=WITNESS),
    _network("bitcoin testnet4", "1c163f28", "6f", "c4", 1, hrp="tb", rules=WITNESS),
    _network("bitcoin signet", "0a03cf40", "6f", "c4", 1, hrp="tb", rules=WITNESS),
    _network("bitcoin regtest", "fabfb5da", "6f", "c4", 1, hrp="bcrt", rules=WITNESS),
    _network("bitcoin cash", "e3e1f3e8", "00", "05", 227_931),
    _network("bitcoin cash testnet", "f4e5f3f4", "6f", "c4", 21_111),
    _network("litecoin", "fbc0b6db", "30", "32", 710_000, hrp="ltc", rules=WITNESS + MWEB),
    _network("litecoin testnet", "fdd2c8f1", "6f", "3a", 76, hrp="tltc", rules=WITNESS + MWEB),
    _network("dogecoin", "c0c0c0c0", "1e", "16", 1_034_383, rules=MERGED),
    _network("dogecoin testnet", "fcc1b7dc", "71", "c4", 708_658, rules=MERGED),
    _network("dash", "bf0c6bbd", "4c", "10", 951, rules=SPECIAL, hash_known=False),
    _network("dash testnet", "cee2caff", "8c", "13", 76, rules=SPECIAL, hash_known=False),
)
ZCASH = _network("zcash", "24e92764", "1cb8", "1cbd", 1)
ZCASH_TESTNET = _network("zcash testnet", "fa1af9bf", "1d25", "1cba", 1)
_ZCASH_REGTEST = _network("zcash regtest", "aae83f5f", "1d25", "1cba", 1)

BITCOIN_MAGICS = {network.magic: network for network in _BITCOINS}
ZCASH_MAGICS = {network.magic: network for network in (ZCASH, ZCASH_TESTNET, _ZCASH_REGTEST)}


NETWORKS = (*BITCOIN_MAGICS.values(), *ZCASH_MAGICS.values())
LOOKED_AT = 1_000  # owners of a ledger, to tell what network it is of

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_STEPS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32, _BECH32M = 1, 0x2BC830A3
_LONGEST = 90  # letters of an address, by BIP173
_LONGEST_BASE58 = 120  # letters; an extended key has 111
_HASH = 20  # bytes
_ETHEREUM = re.compile("0[xX][0-9a-fA-F]{40}")


def network_named(name: str) -> Network:
    """Find a network by name, such as `bitcoin` or `bitcoin testnet3`."""
    for network in NETWORKS:
        if network.name == name:
            return network
    raise UsageError(f"unknown network {name!r}: one of {', '.join(n.name for n in NETWORKS)}")


def networks_of(address: str) -> frozenset[str]:
    """Name the networks an address can be of; none if it is no address of any known here.

    >>> sorted(networks_of("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"))
    ['bitcoin', 'bitcoin cash']
    >>> networks_of("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb")
    frozenset()
    """
    if _ETHEREUM.fullmatch(address):
        return frozenset({"ethereum"})
    if len(address) > _LONGEST:
        return frozenset()
    hrp = _prefix(address)
    if hrp is not None:
        return frozenset(n.name for n in NETWORKS if n.hrp and n.hrp == hrp)
    version = _version(address)
    return frozenset(n.name for n in NETWORKS if version in (n.key_version, n.script_version))


def networks_of_owners(owners: pa.StringArray) -> frozenset[str]:
    """Name the networks that some owners' addresses can be of."""
    found = [networks_of(str(name)) for name in owners.slice(0, LOOKED_AT).to_pylist()]
    return frozenset().union(*found)


def network_of_owners(owners: pa.StringArray) -> str | None:
    """Name the one network that all addresses looked at can be of; None where several, or none."""
    common = common_networks(owners)
    return next(iter(common)) if len(common) == 1 else None


def common_networks(owners: pa.StringArray) -> frozenset[str]:
    """Name the networks that all addresses looked at can be of."""
    names = (networks_of(str(name)) for name in owners.slice(0, LOOKED_AT).to_pylist())
    known = [networks for networks in names if networks]
    return reduce(frozenset.__and__, known) if known else frozenset()


def script_of(address: str, network: Network) -> bytes | None:
    """Give the output script that an address of a network stands for; None if it is none of it.

    >>> script_of("1111111111111111111114oLvT2", BITCOIN).hex()
    '76a914000000000000000000000000000000000000000088ac'
    """
    if len(address) > _LONGEST:
        return None
    hrp = _prefix(address)
    if hrp is not None:
        return _witness_script(address) if network.hrp and hrp == network.hrp else None
    version, hash_ = _version(address), (base58_octets(address) or b"")[-_HASH:]
    if version == network.key_version:
        return b"\x76\xa9\x14" + hash_ + b"\x88\xac"
    return b"\xa9\x14" + hash_ + b"\x87" if version == network.script_version else None


def _witness_script(address: str) -> bytes | None:
    """Give the script of an address whose checksum is right (BIP-173, BIP-350)."""
    version, *values = [_BASE32.index(c) for c in address.lower().rpartition("1")[2][:-6]]
    number = 0
    for value in values:
        number = number << 5 | value
    size, rest = divmod(5 * len(values), 8)
    sizes = (20, 32) if version == 0 else range(2, 41)
    if version > 16 or size not in sizes or rest > 4 or number & (1 << rest) - 1:
        return None
    program = (number >> rest).to_bytes(size)
    return bytes([version and 0x50 + version, size]) + program


def base58_octets(text: str) -> bytes | None:
    """Decode base58 with a checksum; None if the checksum is wrong, or a letter is none of it."""
    if len(text) > _LONGEST_BASE58:
        return None
    number = 0
    for letter in text:
        if letter not in _BASE58:
            return None
        number = number * 58 + _BASE58.index(letter)
    zeros = len(text) - len(text.lstrip("1"))
    octets = bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8)
    payload, check = octets[:-4], octets[-4:]
    return payload if payload and double_sha256(payload)[:4] == check else None


def _version(address: str) -> bytes | None:
    """Give the bytes before the hash of a base58 address, None if its checksum is wrong."""
    payload = base58_octets(address)
    return payload[:-_HASH] if payload is not None and len(payload) > _HASH else None


def _prefix(address: str) -> str | None:
    """Give what stands before the 1 of a witness address, None if its checksum is wrong."""
    if address.lower() != address and address.upper() != address:
        return None
    hrp, one, data = address.lower().rpartition("1")
    if not hrp or not one or len(data) < 8 or any(letter not in _BASE32 for letter in data):
        return None
    if not hrp.isascii():
        return None
    values = [ord(c) >> 5 for c in hrp] + [0] + [ord(c) & 31 for c in hrp]
    values += [_BASE32.index(letter) for letter in data]
    sum_ = 1
    for value in values:
        top = sum_ >> 25
        sum_ = (sum_ & 0x1FFFFFF) << 5 ^ value
        for k, step in enumerate(_STEPS):
            if top >> k & 1:
                sum_ ^= step
    wanted = _BECH32 if data[0] == _BASE32[0] else _BECH32M
    return hrp if sum_ == wanted else None


def foreign_words(address: str, ours: frozenset[str]) -> str | None:
    """Say that an address is of another network than the ledger's; None if it is not."""
    theirs = networks_of(address)
    if not theirs or not ours or theirs & ours:
        return None
    return (
        f"{address} is an address of {' or '.join(sorted(theirs))}, "
        f"the ledger's are of {' or '.join(sorted(ours))}"
    )
