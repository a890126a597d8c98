"""Who learns what: parties, the coins each of them knows, and what a spend adds to that.

A spend shows that its coins have one owner. Every party that knew one of them learns the others,
the coins publicly linked to them, and the change where an observer can tell it; so does the payee.
A party that knew none of them learns nothing. Bits and exposure say nothing about this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from coinhaze.errors import UsageError

CHANGE = "change"  # the name of a coin that a spend would make
ONE_OWNER = "Anybody who sees it sees that one owner held these coins."


@dataclass(frozen=True)
class Learnt:
    """What a spend tells one party: coins it did not know to be yours, and what they are worth."""

    party: str
    coins: tuple[str, ...]  # newly linked, in the wallet's order, the change last
    then_value: int | None  # of spent coins; None where amounts are hidden
    now_value: int | None  # of coins that are still there: change, and coins linked publicly
    unknown: tuple[str, ...]  # your coins that the party does not know afterwards
    unknown_value: int | None
    is_payee: bool = False

    @property
    def value(self) -> int:
        """The value of everything newly linked, spent or not."""
        return (self.then_value or 0) + (self.now_value or 0)


@dataclass(frozen=True)
class Disclosure:
    """A spend, and who learns what from it; parties that learn nothing are left out."""

    coins: tuple[str, ...]
    payees: tuple[str, ...]
    learns: tuple[Learnt, ...]

    @property
    def others(self) -> tuple[Learnt, ...]:
        """What parties learn that are not paid."""
        return tuple(learnt for learnt in self.learns if not learnt.is_payee)

    @property
    def nobody_but_payee(self) -> bool:
        """Whether nobody learns anything except those who are paid."""
        return not self.others


class CoinKnowledge:
    """Which party knows which coins; coins that are linked publicly are known together.

    >>> known = CoinKnowledge({"a": 5, "b": 7}, {"alice": ["a"]})
    >>> [(learnt.party, learnt.coins) for learnt in known.spend(["a", "b"]).learns]
    [('alice', ('b',))]
    """

    def __init__(
        self,
        values: Mapping[str, int | None],
        known: Mapping[str, Iterable[str]],
        links: Iterable[Iterable[str]] = (),
    ) -> None:
        """Take coins with their values, the coins parties know, and sets of linked coins."""
        self.values = dict(values)
        self._bit = {name: 1 << k for k, name in enumerate(self.values)}
        self._group = _groups(self._bit, [self._mask(link) for link in links])
        found = {party: self._linked(self._mask(coins)) for party, coins in known.items()}
        self._known = {party: mask for party, mask in found.items() if mask}

    @cached_property
    def known(self) -> dict[str, tuple[str, ...]]:
        """The coins each party knows, with those linked to them."""
        return {party: self._names(mask) for party, mask in self._known.items()}

    def knows(self, coin: str) -> tuple[str, ...]:
        """Return the parties that know a coin."""
        return tuple(party for party, mask in self._known.items() if mask & self._bit[coin])

    def linked(self, coin: str) -> tuple[str, ...]:
        """Return the coins publicly linked to a coin, and itself."""
        return self._names(self._group[self._bit[coin]])

    def spend(
        self,
        coins: Sequence[str],
        *,
        payees: Sequence[str] = (),
        change: str = CHANGE,
        change_value: int | None = 0,
        change_known: bool = False,
    ) -> Disclosure:
        """Say who learns what if these coins were spent together.

        `payees` are the names of those who are paid, who may be parties that know coins already.
        `change_known` says that an observer can tell which output is the change.
        """
        spent = self._mask(coins)
        if not spent:
            raise UsageError("a spend needs a coin")
        shown = self._linked(spent)
        parties = list(self._known) + [payee for payee in payees if payee not in self._known]
        learns = []
        for party in parties:
            before = self._known.get(party, 0)
            if not before & spent and party not in payees:
                continue
            new, unknown = shown & ~before, self._all & ~shown & ~before
            if new or change_known:
                names = (*self._names(new), *([change] if change_known else []))
                now = self._worth(new & ~spent)
                learns.append(
                    Learnt(
                        party=party,
                        coins=names,
                        then_value=self._worth(new & spent),
                        now_value=_plus(now, change_value) if change_known else now,
                        unknown=self._names(unknown),
                        unknown_value=self._worth(unknown),
                        is_payee=party in payees,
                    )
                )
        return Disclosure(tuple(coins), tuple(payees), tuple(learns))

    @property
    def _all(self) -> int:
        return (1 << len(self._bit)) - 1

    def _mask(self, coins: Iterable[str]) -> int:
        mask = 0
        for name in coins:
            if name not in self._bit:
                raise UsageError(f"{name} is no coin of this wallet")
            mask |= self._bit[name]
        return mask

    def _bits(self, mask: int) -> Iterable[int]:
        while mask:
            yield mask & -mask
            mask &= mask - 1

    def _names(self, mask: int) -> tuple[str, ...]:
        return tuple(name for name, bit in self._bit.items() if bit & mask)

    def _linked(self, mask: int) -> int:
        linked = 0
        for bit in self._bits(mask):
            linked |= self._group[bit]
        return linked

    def _worth(self, mask: int) -> int | None:
        values = [self._value[bit] for bit in self._bits(mask)]
        return None if None in values else sum(value or 0 for value in values)

    @cached_property
    def _value(self) -> dict[int, int | None]:
        return {bit: self.values[name] for name, bit in self._bit.items()}


def _plus(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _groups(bits: Mapping[str, int], links: Sequence[int]) -> dict[int, int]:
    """Return for each coin all that is linked to it directly or indirectly."""
    groups: list[int] = []
    for link in [*bits.values(), *links]:
        apart = [group for group in groups if not group & link]
        for group in groups:
            link |= group if group & link else 0
        groups = [*apart, link]
    return {bit: group for bit in bits.values() for group in groups if group & bit}
