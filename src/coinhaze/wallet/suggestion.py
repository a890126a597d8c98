"""Which coins to spend for an amount, by a stated rule.

1. Exposed coins are never combined with others. Those not exposed come first.
2. The fewest coins that are worth the amount.
3. Of such sets the one whose payment would have most bits; if equal, the one that leaves least
change; if equal, the first in the wallet's order.

The rule does not consider fees, the payee, the time, or what else the coins would reveal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

from coinhaze.errors import UsageError
from coinhaze.units import SMALLEST, Unit
from coinhaze.wallet.wallet import ALL, EXPOSED, NOT_EXPOSED, Combination, HeldCoin, Wallet

# Sets examined, and those of them evaluated: beyond these, the best is reported as the best of
# them.
MAX_SETS, MAX_WEIGHED = 200_000, 2_000
TIE = 1e-9  # bits; well above rounding errors


@dataclass(frozen=True, eq=False)
class Suggestion:
    """Coins for an amount, or None and the reason why there are none."""

    amount: int
    chosen: Combination | None
    others: tuple[Combination, ...]  # the next best with as many coins
    group: str  # exposed, not exposed or all coins
    sets: int  # sets of that many coins in the group
    weighed: int | None  # sets whose bits were compared; None: all that are worth the amount
    why: tuple[str, ...]


def suggest_coins(
    wallet: Wallet, amount: int, *, show: int = 2, unit: Unit = SMALLEST
) -> Suggestion:
    """Suggest coins worth the amount, in the smallest unit, by the rule above; say why in `unit`.

    >>> import coinhaze
    >>> from coinhaze.wallet.holdings import find_coin
    >>> from coinhaze.wallet.wallet import weigh_wallet
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "a", "outputs": [{"value": 5}]}, {"txid": "b", "outputs": [{"value": 9}]},
    ... ])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> wallet = weigh_wallet(chain, [find_coin(chain.graph, name) for name in ("a:0", "b:0")])
    >>> suggest_coins(wallet, 6).chosen.coins
    ('b:0',)
    """
    if amount <= 0:
        raise UsageError(f"an amount is above 0, not {amount}")
    if wallet.total is None:
        raise UsageError("this ledger hides amounts: no coins can be suggested for one")
    for kind, group in _groups(wallet):
        if _worth(group) >= amount:
            return _best(wallet, kind, group, amount, show)
    return _none(wallet, amount, unit)


def _groups(wallet: Wallet) -> list[tuple[str, list[HeldCoin]]]:
    if wallet.coin_set.exposed is None:
        return [(ALL, list(wallet.holdings))]
    exposed = [h for h in wallet.holdings if wallet.is_exposed(h)]
    others = [h for h in wallet.holdings if not wallet.is_exposed(h)]
    return [(NOT_EXPOSED, others), (EXPOSED, exposed)]


def _worth(holdings: Sequence[HeldCoin]) -> int:
    return sum(h.coin.value or 0 for h in holdings)


def _best(
    wallet: Wallet, kind: str, group: Sequence[HeldCoin], amount: int, show: int
) -> Suggestion:
    by_value = sorted(group, key=lambda h: -(h.coin.value or 0))
    size = next(k for k in range(1, len(group) + 1) if _worth(by_value[:k]) >= amount)
    weighed = {
        names: wallet.coin_set.together(names)
        for names in islice(_candidates(wallet, group, by_value, size, amount), MAX_WEIGHED)
    }
    sets = comb(len(group), size)
    ranked = _ranked(wallet, weighed)
    whole = sets <= MAX_SETS and len(weighed) < MAX_WEIGHED
    among = (
        f"Of {len(weighed):,} choices of {_coins(size)} that suffice"
        if whole
        else f"Of {len(weighed):,} choices compared (there are up to {sets:,})"
    )
    best = f"{among}, its payment has most bits: {ranked[0].after.bits:.4f}."
    only = "No other choice of so few coins suffices."
    return Suggestion(
        amount=amount,
        chosen=ranked[0],
        others=tuple(ranked[1 : show + 1]),
        group=kind,
        sets=sets,
        weighed=None if whole else len(weighed),
        why=(*_reasons(kind, size), best if len(weighed) > 1 else only),
    )


def _candidates(
    wallet: Wallet, group: Sequence[HeldCoin], by_value: Sequence[HeldCoin], size: int, amount: int
) -> Iterator[tuple[str, ...]]:
    """Yield sets worth the amount, each in the wallet's order; those with most bits come early."""
    place = {h.coin.name: k for k, h in enumerate(wallet.holdings)}
    by_bits = sorted(group, key=lambda h: -h.row.bits)

    def names(some: Sequence[HeldCoin]) -> tuple[str, ...]:
        return tuple(sorted((h.coin.name for h in some), key=place.__getitem__))

    richest = names(by_value[:size])
    yield richest  # the one set that is certain to be worth enough
    for some in islice(combinations(by_bits, size), MAX_SETS):
        if _worth(some) >= amount and names(some) != richest:
            yield names(some)


def _ranked(wallet: Wallet, weighed: dict[tuple[str, ...], Combination]) -> list[Combination]:
    """Order sets by the rule; bits that differ by less than rounding errors are equal."""
    place = {h.coin.name: k for k, h in enumerate(wallet.holdings)}
    value = {h.coin.name: h.coin.value or 0 for h in wallet.holdings}

    def key(names: tuple[str, ...]) -> tuple[float, int, list[int]]:
        steps = -round(weighed[names].after.bits / TIE)
        return steps, sum(value[n] for n in names), [place[n] for n in names]

    return [weighed[names] for names in sorted(weighed, key=key)]


def _reasons(kind: str, size: int) -> tuple[str, ...]:
    fewest = "One coin suffices." if size == 1 else f"No fewer than {size} coins suffice."
    if kind == NOT_EXPOSED:
        return "No exposed coin is in it, so it ties nothing to one.", fewest
    if kind == EXPOSED:
        why = "Coins that are not exposed do not suffice; these are exposed already, all of them."
        return why, fewest
    return (fewest,)


def _none(wallet: Wallet, amount: int, unit: Unit) -> Suggestion:
    total = wallet.total or 0
    why = (
        f"All coins are worth {unit.words(total)}, less than {unit.words(amount)}."
        if total < amount
        else "Only exposed coins together with others are worth so much; that is not suggested."
    )
    return Suggestion(amount, None, (), ALL, 0, None, (why,))


def _coins(count: int) -> str:
    return "one coin" if count == 1 else f"{count} coins"
