"""Wallets by key: extended public keys and output descriptors, and the scripts they pay to.

| text | scripts |
|---|---|
| `xpub`, `tpub` | receive and change branches of each kind: pkh, sh(wpkh), wpkh, tr |
| `ypub`, `upub` | sh(wpkh), both branches (SLIP-132) |
| `zpub`, `vpub` | wpkh, both branches |
| descriptor | as it says: pkh, wpkh, tr of one key; multi, sortedmulti in sh, wsh, sh(wsh) |

Keys are extended public keys with a path (`/0/*`, `/<0;1>/*`) or plain public keys. A checksum, if
there is one, must be right. Whatever is private (xprv, WIF, seed words) is refused. Nothing here
shows a key: messages tell the place, `keep_secret` hides the text in all others.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from coinhaze.errors import InputError, UsageError, hide_wallet_keys, keep_secret
from coinhaze.formats.bitcoin_raw.networks import base58_octets

LONGEST = 8_192  # letters of a descriptor
MAX_KEYS = 20  # of a multisig in wsh; fewer elsewhere
HARDENED = 1 << 31
BRANCHES = ("receive", "change")

# Versions of extended keys: the kind of script they are for ("" any), and whether of mainnet.
_PUBLIC = {
    "0488b21e": ("", True),
    "049d7cb2": ("sh(wpkh)", True),
    "04b24746": ("wpkh", True),
    "0295b43f": ("multisig", True),
    "02aa7ed3": ("multisig", True),
    "043587cf": ("", False),
    "044a5262": ("sh(wpkh)", False),
    "045f1cf6": ("wpkh", False),
    "024289ef": ("multisig", False),
    "02575483": ("multisig", False),
}
_KINDS = ("pkh", "sh(wpkh)", "wpkh", "tr")
_BASE58 = "[1-9A-HJ-NP-Za-km-z]"
_PRIVATE = re.compile(rf"\b[xyzYZtuvUV]prv{_BASE58}{{20,}}")
_WIF = re.compile(rf"(?<!{_BASE58})[5KL9c]{_BASE58}{{50,51}}(?!{_BASE58})")
# A line or cell of 12 words or more of 3 to 8 letters: BIP-39 has 12 to 24 of them.
_SEED = re.compile(
    r'(?:^|(?<=[,;"\t]))\s*([a-z]{3,8}(?: +[a-z]{3,8}){11,24})\s*(?=$|[,;"\t])', re.M
)
_EXTENDED = re.compile(rf"[xyzYZtuvUV]pub{_BASE58}{{20,}}")
_FUNCTION = re.compile(r"[a-z_]{2,12}\(")
_ORIGIN = re.compile(r"\[[0-9a-fA-F]{8}(/[0-9]{1,10}['hH]?)*\]")
_STEP = re.compile(r"[0-9]{1,10}")
_ALTERNATIVES = re.compile(r"<([0-9]{1,10}(?:;[0-9]{1,10})+)>")
_HEX = re.compile("[0-9a-fA-F]+")

_CHARSET = (
    "0123456789()[],'/*abcdefgh@:$%{}"
    "IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~"
    'ijklmnopqrstuvwxyzABCDEFGH`#"\\ '
)
_CHECKSUM = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR = (0xF5DEE51989, 0xA9FDCA3312, 0x1BAB10E32D, 0x3706B1677A, 0x644D626FFD)

Derive = Callable[[int], bytes]  # the script at an index


@dataclass(frozen=True)
class Descriptor:
    """The scripts of one branch of a wallet. It never shows a key."""

    words: str  # what it is: "wpkh receive"
    mainnet: bool | None  # None where its keys do not tell
    ranged: bool  # whether it has a script for every index, or one alone
    _derive: Derive = field(repr=False, compare=False)

    def script(self, index: int) -> bytes:
        """Return the output script at an index."""
        return self._derive(index)


def is_key(text: str) -> bool:
    """Tell whether a text is meant as an extended key or a descriptor, public or private.

    >>> is_key("wpkh(xpub.../0/*)"), is_key("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa")
    (True, False)
    """
    text = text.strip()
    return bool(_FUNCTION.match(text) or _EXTENDED.match(text) or _PRIVATE.match(text))


def refuse_private(text: str, where: str) -> None:
    """Raise an error, that does not show it, where a text holds a private key or seed words.

    >>> refuse_private("zoo " * 11 + "wrong", "here")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    coinhaze.errors.InputError: here: words of a seed, with which anybody can spend the coins: ...
    """
    instead = "the extended public key (xpub, ypub, zpub) or the public descriptor of the wallet"
    if '"descriptors"' in text:
        instead = "what `bitcoin-cli listdescriptors` says without `true`"
    what = "words of a seed" if (found := _SEED.findall(text)) else ""
    if not what and (found := _PRIVATE.findall(text)):
        what = "an extended private key"
    if not what and (found := [wif for wif in _WIF.findall(text) if _is_wif(wif)]):
        what, instead = "a private key (WIF)", "its address"
    if what:
        keep_secret(*found)
        raise InputError(
            f"{where}: {what}, with which anybody can spend the coins: it was neither stored nor "
            f"shown; if you typed it, clear it from your shell's history. Give {instead} instead"
        )


def _is_wif(text: str) -> bool:
    octets = base58_octets(text)
    return octets is not None and octets[0] in (0x80, 0xEF) and len(octets) in (33, 34)


def parse_keys(text: str, where: str = "key") -> tuple[Descriptor, ...]:
    """Read an extended public key or a descriptor as its branches; an error shows no key.

    >>> key = ("xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtG"
    ...        "qsefD265TMg7usUDFdp6W1EGMcet8")
    >>> [branch.words for branch in parse_keys(f"wpkh({key}/<0;1>/*)")]
    ['wpkh receive', 'wpkh change']
    """
    text = text.strip()
    hide_wallet_keys(text)
    refuse_private(text, where)
    try:
        if len(text) > LONGEST:
            raise _Wrong(f"longer than {LONGEST} letters")
        if _FUNCTION.match(text):
            return _descriptor(_checked(text))
        return _extended(text)
    except _Wrong as error:
        raise InputError(f"{where}: not a key or descriptor that can be used: {error}") from None


class _Wrong(ValueError):
    """Why a key or descriptor cannot be used, without showing it."""


def checksum(text: str) -> str:
    """Return the checksum of a descriptor (BIP-380).

    >>> checksum("raw(deadbeef)")
    '89f8spxm'
    """
    symbols, groups = [], []
    for letter in text:
        value = _CHARSET.find(letter)
        if value < 0:
            raise _Wrong("a letter that no descriptor has")
        symbols.append(value & 31)
        groups.append(value >> 5)
        if len(groups) == 3:
            symbols.append(groups[0] * 9 + groups[1] * 3 + groups[2])
            groups = []
    if groups:
        symbols.append(groups[0] if len(groups) == 1 else groups[0] * 3 + groups[1])
    sum_ = 1
    for value in [*symbols, *[0] * 8]:
        top = sum_ >> 35
        sum_ = (sum_ & 0x7FFFFFFFF) << 5 ^ value
        for k, step in enumerate(_GENERATOR):
            if top >> k & 1:
                sum_ ^= step
    sum_ ^= 1
    return "".join(_CHECKSUM[sum_ >> 5 * (7 - k) & 31] for k in range(8))


def _checked(text: str) -> str:
    body, hash_, given = text.partition("#")
    if hash_ and (len(given) != 8 or checksum(body) != given):
        raise _Wrong(
            "its checksum after # is wrong: a letter is missing or mistyped; copy it again"
        )
    if not hash_:
        checksum(body)  # its letters
    return body


# Keys


@dataclass(frozen=True)
class _Extended:
    """An extended public key: a point and a chain code (BIP-32)."""

    key: bytes = field(repr=False)
    chain: bytes = field(repr=False)

    def child(self, number: int) -> _Extended:
        """Derive the public child with an unhardened number."""
        digest = hmac.digest(self.chain, self.key + number.to_bytes(4), "sha512")
        try:
            return _Extended(_moved(self.key, digest[:32]), digest[32:])
        except ValueError:  # one in 2^127: BIP-32 says to go on with the next
            raise _Wrong(f"it has no child of number {number}") from None


def _curve() -> Any:
    try:
        import wallycore
    except ImportError:
        raise UsageError("wallets by key need wallycore: pip install 'coinhaze[keys]'") from None
    return wallycore


def _check_point(octets: bytes) -> None:
    try:
        _curve().ec_public_key_verify(octets)
    except ValueError:
        raise _Wrong("a public key that is no point of the curve") from None


def _moved(octets: bytes, tweak: bytes) -> bytes:
    """Add a multiple of the generator to a point; raises ValueError where that is no point."""
    moved: bytes = bytes(_curve().ec_public_key_tweak(octets, tweak))
    return moved


def _decoded(text: str) -> tuple[_Extended, str, bool]:
    """Read an extended key; also tell the kind of script it is for, and whether of mainnet."""
    octets = base58_octets(text)
    if octets is None:
        raise _Wrong(
            "an extended key that is cut short or mistyped (its checksum is wrong): copy "
            "it again, whole, from the wallet"
        )
    if len(octets) != 78:
        raise _Wrong(f"an extended key of {len(octets)} bytes, where it has 78")
    version = octets[:4].hex()
    if version not in _PUBLIC:
        raise _Wrong(f"an extended key of unknown version {version}: xpub, ypub, zpub are known")
    if octets[45] not in (2, 3):
        raise _Wrong("an extended key without a public key in it")
    if octets[4] == 0 and any(octets[5:13]):
        raise _Wrong("an extended key of depth 0 with a parent")
    _check_point(octets[45:])
    kind, mainnet = _PUBLIC[version]
    return _Extended(octets[45:], octets[13:45]), kind, mainnet


def _extended(text: str) -> tuple[Descriptor, ...]:
    """Both branches of an extended key, of each kind of script it may be for."""
    key, kind, mainnet = _decoded(text)
    if kind == "multisig":
        raise _Wrong("one key of a wallet with several: give its descriptor, wsh(sortedmulti(...))")
    return tuple(
        Descriptor(f"{kind} {words}", mainnet, True, _single(kind, _path(key, (branch,), True)))
        for kind in ([kind] if kind else _KINDS)
        for branch, words in enumerate(BRANCHES)
    )


Key = Callable[[int], bytes]  # the public key at an index


def _path(key: _Extended, steps: Sequence[int], ranged: bool) -> Key:
    for step in steps:
        key = key.child(step)
    return (lambda index: key.child(index).key) if ranged else (lambda index: key.key)


# Scripts


def _descriptor(text: str) -> tuple[Descriptor, ...]:
    inner, functions = text, []
    while (found := _FUNCTION.match(inner)) and inner.endswith(")"):
        functions.append(found[0][:-1])
        inner = inner[found.end() : -1]
    kind = functions[-1] if functions else ""
    name = "(".join(functions) + ")" * (len(functions) - 1)
    if name in ("pkh", "wpkh", "sh(wpkh)", "tr"):
        if "," in inner:
            raise _Wrong(
                "tr with a tree of scripts is not known here: one key alone is"
                if name == "tr"
                else f"{name} of several keys"
            )
        keys = [_KeyText.read(inner, kind)]
    elif kind in ("multi", "sortedmulti") and functions[:-1] in (["sh"], ["wsh"], ["sh", "wsh"]):
        threshold, *rest = inner.split(",")
        keys = [_KeyText.read(text, "sh" if functions == ["sh", kind] else "wsh") for text in rest]
        maximum = 15 if functions == ["sh", kind] else MAX_KEYS
        if not 1 <= len(keys) <= maximum or not _STEP.fullmatch(threshold):
            raise _Wrong(f"{name} needs a number, and 1 to {maximum} keys after it")
        if not 1 <= int(threshold) <= len(keys):
            raise _Wrong(f"{name}: {int(threshold)} signatures of {len(keys)} keys")
    else:
        raise _Wrong(
            "pkh, wpkh, sh(wpkh), tr of one key, and multi, sortedmulti in sh, wsh or sh(wsh) are "
            "known, or a bracket is missing"
        )
    counts = {len(key.branches) for key in keys} - {1}
    nets = {key.mainnet for key in keys} - {None}
    if len(counts) > 1 or len(nets) > 1:
        raise _Wrong("its keys are of different networks, or have different numbers of branches")
    made = []
    for branch in range(max(counts, default=1)):
        public = [key.at(branch) for key in keys]
        if kind.endswith("multi"):
            derive = _multisig(functions, int(threshold), public)
        else:
            derive = _single(name, public[0])
        words = f"{name} {_branch_words(keys[0], branch)}".strip()
        made.append(Descriptor(words, next(iter(nets), None), any(k.ranged for k in keys), derive))
    return tuple(made)


def _branch_words(key: _KeyText, branch: int) -> str:
    last = key.branches[branch if len(key.branches) > 1 else 0][-1:]
    return BRANCHES[last[0]] if key.ranged and last and last[0] < 2 else ""


@dataclass(frozen=True)
class _KeyText:
    """A key expression (BIP-380, BIP-389): its steps by branch, and whether `/*` follows."""

    key: _Extended | bytes = field(repr=False)
    mainnet: bool | None = None
    branches: tuple[tuple[int, ...], ...] = ((),)
    ranged: bool = False

    @classmethod
    def read(cls, text: str, within: str) -> _KeyText:
        if text.startswith("["):
            origin = _ORIGIN.match(text)
            if origin is None:
                raise _Wrong("an origin of a key that is not [fingerprint/path]")
            text = text[origin.end() :]
        name, *steps = text.split("/")
        if not _EXTENDED.fullmatch(name):
            if steps:
                raise _Wrong("a path below something that is no extended public key")
            return cls(_plain_key(name, within))
        key, kind, mainnet = _decoded(name)
        if kind:
            raise _Wrong("a ypub or zpub in a descriptor: there it is written as xpub (or tpub)")
        ranged = bool(steps) and steps[-1] == "*"
        paths: list[tuple[int, ...]] = [()]
        for step in steps[: len(steps) - ranged]:
            choices = _choices(step)
            if len(choices) > 1 and len(paths) > 1:
                raise _Wrong("two <...;...> in one key")
            paths = [(*path, choice) for path in paths for choice in choices]
        return cls(key, mainnet, tuple(paths), ranged)

    def at(self, branch: int) -> Key:
        if isinstance(self.key, bytes):
            octets = self.key
            return lambda index: octets
        steps = self.branches[branch if len(self.branches) > 1 else 0]
        return _path(self.key, steps, self.ranged)


def _choices(step: str) -> list[int]:
    some = _ALTERNATIVES.fullmatch(step)
    numbers = some[1].split(";") if some else [step]
    if step.endswith(("'", "h", "H")):
        raise _Wrong(
            "a hardened step (' or h) after the public key needs the private key: take the xpub "
            "that the wallet shows for the path up to that step, and write only the steps after "
            "it; without the ' it would be other addresses"
        )
    if not all(_STEP.fullmatch(n) and int(n) < HARDENED for n in numbers):
        raise _Wrong("a step of a path that is no number: /0/*, /<0;1>/* are paths")
    if len(set(numbers)) < len(numbers):
        raise _Wrong("<...;...> with a branch twice")
    return [int(n) for n in numbers]


def _plain_key(text: str, within: str) -> bytes:
    """A public key in hex: 33 bytes, 65 before witnesses, 32 in tr."""
    sizes = {"tr": (64, 66), "pkh": (66, 130), "sh": (66, 130)}.get(within, (66,))
    if not _HEX.fullmatch(text) or len(text) not in sizes:
        raise _Wrong("a key that is neither an extended public key nor a public key in hex")
    octets = bytes.fromhex(text)
    octets = b"\2" + octets if len(octets) == 32 else octets
    _check_point(octets)
    return octets


def _single(kind: str, key: Key) -> Derive:
    def derive(index: int) -> bytes:
        public = key(index)
        if kind == "pkh":
            return b"\x76\xa9\x14" + hash160(public) + b"\x88\xac"
        if kind == "tr":
            return b"\x51\x20" + _tweaked(public[1:33])
        witness = b"\0\x14" + hash160(public)
        return witness if kind == "wpkh" else _script_hash(witness)

    return derive


def _multisig(functions: Sequence[str], threshold: int, keys: Sequence[Key]) -> Derive:
    def derive(index: int) -> bytes:
        public = [key(index) for key in keys]
        if functions[-1] == "sortedmulti":  # BIP-67
            public.sort()
        pushes = b"".join(bytes([len(key)]) + key for key in public)
        script = _number(threshold) + pushes + _number(len(public)) + b"\xae"
        if functions[:-1] == ["sh"]:
            return _script_hash(script)
        witness = b"\0\x20" + hashlib.sha256(script).digest()
        return witness if functions[:-1] == ["wsh"] else _script_hash(witness)

    return derive


def _number(small: int) -> bytes:
    """A number as scripts push it: one byte up to 16, two above."""
    return bytes([0x50 + small]) if small <= 16 else bytes([1, small])


def _script_hash(script: bytes) -> bytes:
    return b"\xa9\x14" + hash160(script) + b"\x87"


def _tweaked(x: bytes) -> bytes:
    """The output key of tr with one key alone (BIP-86)."""
    tag = hashlib.sha256(b"TapTweak").digest()
    return _moved(b"\2" + x, hashlib.sha256(tag + tag + x).digest())[1:]


def hash160(octets: bytes) -> bytes:
    """Hash as addresses of keys and scripts do: SHA-256, then RIPEMD-160."""
    import numpy as np

    from coinhaze.formats.bitcoin_raw.script_kernels import ripemd160

    digest = np.frombuffer(hashlib.sha256(octets).digest(), np.uint8)
    return bytes(ripemd160(digest.reshape(1, 32))[0])
