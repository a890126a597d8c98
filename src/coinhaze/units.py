"""What money is counted in: amounts as people write them, from and to whole smallest units.

Everything is integer arithmetic on decimal digits; no amount passes through a float.

>>> bitcoin = UNITS["bitcoin"]
>>> bitcoin.words(8421907), bitcoin.words(123456789000000000)
('0.08421907 BTC', '1,234,567,890 BTC')
>>> bitcoin.read("0.05"), bitcoin.read("0.05 BTC"), bitcoin.read("5_000_000 sat")
(5000000, 5000000, 5000000)
>>> unit_named("GEM:3").words(12345), SMALLEST.words(12345)
('12.345 GEM', '12,345')
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from coinhaze.errors import UsageError

MAX_DECIMALS = 77  # digits of 2^256
_NUMBER = re.compile(r"([0-9](?:[0-9_]*[0-9])?)?(?:\.([0-9](?:[0-9_]*[0-9])?))?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9.$-]{0,15}")


@dataclass(frozen=True)
class Unit:
    """A unit: its symbol, its digits after the point, and what the smallest unit is called."""

    symbol: str
    decimals: int
    smallest: str = ""

    def words(self, amount: int, *, significant: int | None = None) -> str:
        """Say an amount given in the smallest unit; all digits, or the first ones that count.

        >>> ETHER.words(-1234567890123456789, significant=6)
        '-1.23457 ETH'
        >>> UNITS["bitcoin"].words(0), UNITS["bitcoin"].words(1)
        ('0 BTC', '0.00000001 BTC')
        """
        digits = abs(amount)
        if significant is not None:
            step = 10 ** max(len(str(digits)) - significant, 0)
            digits = (digits + step // 2) // step * step
        whole, part = divmod(digits, 10**self.decimals)
        text = f"{'-' if amount < 0 else ''}{whole:,}"
        if part:
            text += "." + str(part).rjust(self.decimals, "0").rstrip("0")
        return f"{text} {self.symbol}".rstrip()

    def number(self, amount: int) -> str:
        """Give an amount as a plain number, with all digits, neither grouped nor named.

        >>> UNITS["bitcoin"].number(123456789012), ETHER.number(-5 * 10**17)
        ('1234.56789012', '-0.5')
        """
        return self.words(amount).removesuffix(f" {self.symbol}").replace(",", "")

    @property
    def is_known(self) -> bool:
        """Whether it is said what the money is; if not, amounts are in its smallest unit."""
        return bool(self.symbol)

    @property
    def spelling(self) -> str:
        """The unit as --unit takes it, such as BTC:8, or smallest where it is not known.

        >>> ETHER.spelling, SMALLEST.spelling, unit_named(ETHER.spelling) == ETHER
        ('ETH:18', 'smallest', True)
        """
        return f"{self.symbol}:{self.decimals}" if self.symbol else "smallest"

    def in_smallest(self) -> Unit:
        """Give the unit for the same money in whole smallest units, such as sat for BTC.

        >>> UNITS["bitcoin"].in_smallest().words(5_000_000), unit_named("GEM:3").in_smallest()
        ('5,000,000 sat', Unit(symbol='', decimals=0, smallest=''))
        """
        return Unit(self.smallest, 0, self.smallest) if self.smallest else SMALLEST

    def read(self, text: str) -> int:
        """Read an amount, in this unit or with a unit's name after it, as smallest units.

        A whole number without a name could be either unit: it is refused, unless the two are one.
        """
        number, name = _split(text)
        found = _NUMBER.fullmatch(number)
        if not number or found is None:
            raise UsageError(f"an amount is a number such as {self._example()}, not {text!r}")
        whole, part = ((group or "").replace("_", "") for group in found.groups())
        decimals = self._decimals_of(name, text, has_point=found[2] is not None)
        part = part.rstrip("0")
        if len(part) > decimals:
            maximum = f"{decimals} digits after the point" if decimals else "no fraction"
            raise UsageError(f"{text!r} has more digits than there are: take {maximum} at most")
        return int((whole or "0") + part.ljust(decimals, "0"))

    def _decimals_of(self, name: str, text: str, *, has_point: bool) -> int:
        if name and name.lower() == self.symbol.lower():
            return self.decimals
        if name and name.lower() in {self.smallest, _PLURALS.get(self.smallest, self.smallest)}:
            return 0
        if name:
            known = " or ".join(filter(None, (self.symbol, self.smallest)))
            fix = f"this ledger counts in {known}" if known else "give it without, or take --unit"
            raise UsageError(f"{text!r}: unknown unit {name}: {fix}")
        if has_point or not self.decimals:
            return self.decimals
        small = self.smallest or "with a point"
        raise UsageError(f"{text!r}: write {text} {self.symbol}, or {text} {small}, to tell which")

    def _example(self) -> str:
        return f"0.05 {self.symbol}" if self.decimals else "50000"


SMALLEST = Unit("", 0)  # where the ledger does not say what its money is
_PLURALS = {"sat": "sats", "wei": "wei", "zat": "zats"}
NOT_KNOWN = (
    "Amounts are in the ledger's smallest unit, since it does not say what its money is: "
    "--unit NAME:DECIMALS does."
)
# The money of networks whose addresses tell it. Those of Ethereum hold tokens as well.
UNITS = {
    "bitcoin": Unit("BTC", 8, "sat"),
    "bitcoin cash": Unit("BCH", 8, "sat"),
    "litecoin": Unit("LTC", 8, "sat"),
    "dogecoin": Unit("DOGE", 8, "sat"),
    "dash": Unit("DASH", 8, "sat"),
    "zcash": Unit("ZEC", 8, "zat"),
    "monero": Unit("XMR", 12),
    # Coins of test networks are worth nothing, and must not look as if they were.
    "bitcoin testnet3": Unit("tBTC", 8, "sat"),
    "bitcoin testnet4": Unit("tBTC", 8, "sat"),
    "bitcoin signet": Unit("tBTC", 8, "sat"),
    "bitcoin regtest": Unit("tBTC", 8, "sat"),
    "zcash testnet": Unit("TAZ", 8, "zat"),
    "zcash regtest": Unit("TAZ", 8, "zat"),
}
ETHER = Unit("ETH", 18, "wei")
# Tokens by their contract on Ethereum.
TOKENS = {
    "0x6b175474e89094c44da98b954eedeac495271d0f": Unit("DAI", 18),
    "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48": Unit("USDC", 6),
    "0xdac17f958d2ee523a2206206994597c13d831ec7": Unit("USDT", 6),
    "0x2260fac5e5542a773aa44fbcfedf7c193bc2c599": Unit("WBTC", 8),
    "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2": Unit("WETH", 18),
    "0x5d3a536e4d6dbd6114cc1ead35777bab948e3643": Unit("cDAI", 8),
    "0x514910771af9ca656af840dff83e8264ecf986ca": Unit("LINK", 18),
    "0x1f9840a85d5af5bf1d1762f925bdaddc4201f984": Unit("UNI", 18),
    "0x9f8f72aa9304c8b593d555f12ef6589cc3a579a2": Unit("MKR", 18),
    "0x4fabb145d64652a948d72533023f6e7a623c7c53": Unit("BUSD", 18),
    "0x95ad61b0a150d79219dcf64e1e6cc01f0b64c4ce": Unit("SHIB", 18),
    "0x89d24a6b4ccb1b6faa2625fe562bdd9a23260359": Unit("SAI", 18),
    "0xe0b7927c4af23765cb51314a0e0521a9645f0e2a": Unit("DGD", 9),
}


def unit_named(text: str) -> Unit:
    """Find a unit by its symbol, or make one of NAME:DECIMALS; `smallest` is the smallest unit.

    >>> unit_named("dai"), unit_named("smallest") is SMALLEST
    (Unit(symbol='DAI', decimals=18, smallest=''), True)
    """
    if text.lower() == "smallest":
        return SMALLEST
    known = _by_symbol()
    name, colon, decimals = text.partition(":")
    found = known.get(name.lower())
    if found is not None and (not colon or decimals == str(found.decimals)):
        return found
    fits = _NAME.fullmatch(name) and decimals.isascii() and decimals.isdigit()
    if not fits or len(decimals) > 2 or int(decimals) > MAX_DECIMALS:
        names = ", ".join(unit.symbol for unit in known.values())
        raise UsageError(
            f"--unit is NAME:DECIMALS such as GEM:18, smallest, or one of {names}; not {text!r}"
        )
    return Unit(name, int(decimals))


def unit_of_token(token: str) -> Unit | None:
    """Give the unit of a token by its contract or, where a source names it so, by its symbol.

    >>> unit_of_token("0x6B175474E89094C44Da98b954EedeAC495271d0F").symbol, unit_of_token("eth")
    ('DAI', Unit(symbol='ETH', decimals=18, smallest='wei'))
    """
    return TOKENS.get(token.lower()) or _by_symbol().get(token.lower())


def token_words(token: str) -> str:
    """Name a token, and the symbol of a known contract.

    >>> token_words("0xdac17f958d2ee523a2206206994597c13d831ec7"), token_words("0xaa")
    ('0xdac17f958d2ee523a2206206994597c13d831ec7 (USDT)', '0xaa')
    """
    known = TOKENS.get(token.lower())
    return token if known is None else f"{token} ({known.symbol})"


def find_token(name: str, tokens: Iterable[str]) -> str | None:
    """Find which of these tokens is meant: by its name or, of a known contract, by its symbol.

    Letter case does not count. A symbol never finds a contract that is not known: anybody can
    give a token any symbol.

    >>> find_token("usdt", ["0xdac17f958d2ee523a2206206994597c13d831ec7", "0xaa"])
    '0xdac17f958d2ee523a2206206994597c13d831ec7'
    >>> find_token("DAI", ["0xaa"]) is None
    True
    """
    tokens = list(tokens)
    same = [each for each in tokens if each.lower() == name.lower()]
    known = {each.lower(): TOKENS[each.lower()] for each in tokens if each.lower() in TOKENS}
    same += [each for each, unit in known.items() if unit.symbol.lower() == name.lower()]
    return same[0] if same else None


def _by_symbol() -> dict[str, Unit]:
    return {unit.symbol.lower(): unit for unit in (*UNITS.values(), ETHER, *TOKENS.values())}


def _split(text: str) -> tuple[str, str]:
    """Split a number from the name after it."""
    number = re.match(r"[0-9_,.]*", text.strip())
    assert number is not None
    return number[0], text.strip()[number.end() :].strip()
