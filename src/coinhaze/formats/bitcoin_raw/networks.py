"""Networks whose blocks share Bitcoin's framing: how their files and addresses begin."""

from __future__ import annotations

from dataclasses import dataclass

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
