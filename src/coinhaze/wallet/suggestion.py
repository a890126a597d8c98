"""Which coins to spend for an amount, by a stated rule.

Exposed coins are never combined with others; those not exposed come first. No coin is spent that is
not needed. Of such sets the best is the one with, in this order,

1. the fewest parties, other than the payee, that learn something;
2. the least value they learn;
3. the least value the payee learns;
4. the fewest coins, which cost the lowest fee;
5. the least change.

Sets that are equal in all of these are tied; the first in the wallet's order is taken. Bits are
shown beside, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from coinhaze.errors import UsageError
from coinhaze.graph.clusters.change import ChangeEvidence, evident_change
from coinhaze.ledger.coins import Input, Output
from coinhaze.units import SMALLEST, Unit
from coinhaze.wallet.parties import Parties
from coinhaze.wallet.wallet import ALL, EXPOSED, NOT_EXPOSED, Combination, HeldCoin, Wallet
from coinhaze.wallet.who_learns import Disclosure

MAX_SETS = 20_000  # sets compared: beyond these, the best is reported as the best of them
PAYEE = "the payee"
# What is compared, in order, and how a choice that is worse in it is described.
COMPARED = (
    "the parties not paid that learn something",
    "the value they learn",
    "the value that the payee learns",
    "the number of coins",
    "change",
)
WORSE = (
    "lets more parties that are not paid learn something",
    "lets those who are not paid learn more",
    "lets the payee learn more",
    "takes more coins, so costs a higher fee",
    "leaves more change",
)
SPEND, FEWEST, MIN_CHANGE, INSTEAD = "spend", "fewest coins", "least change", "instead"


@dataclass(frozen=True, eq=False)
class SpendChoice:
    """Coins that suffice for an amount: who learns what, and the change they leave."""

    coins: tuple[str, ...]
    disclosure: Disclosure
    evidence: ChangeEvidence  # what tells the change from the payment
    change: int
    after: Combination | None = None  # bits and exposure, where they were computed

    @property
    def change_known(self) -> bool:
        """Whether an observer can tell the change."""
        return self.change > 0 and self.evidence.output is not None

    @property
    def cost(self) -> tuple[int, int, int, int, int]:
        """What the rule compares, in its order."""
        others = self.disclosure.others
        paid = [learnt for learnt in self.disclosure.learns if learnt.is_payee]
        return (
            len(others),
            sum(learnt.value for learnt in others),
            sum(learnt.value for learnt in paid),
            len(self.coins),
            self.change,
        )


@dataclass(frozen=True, eq=False)
class Suggestion:
    """Coins for an amount, or None and the reason why there are none."""

    amount: int
    payee: str
    chosen: SpendChoice | None
    others: tuple[tuple[str, SpendChoice], ...]  # what else there is, and what speaks for it
    tied: tuple[SpendChoice, ...]  # sets that are as good as the chosen one
    group: str  # exposed, not exposed or all coins
    compared: int  # sets compared
    whole: bool  # whether these are all sets without a needless coin
    why: tuple[str, ...]


def suggest_coins(
    wallet: Wallet,
    amount: int,
    *,
    payee: str | None = None,
    show: int = 2,
    unit: Unit = SMALLEST,
) -> Suggestion:
    """Suggest coins worth the amount, in the smallest unit, by the rule above; say why in `unit`.

    `payee` is an address or the name of a party; unless given, nothing is known of who is paid.

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
            return _best(wallet, kind, group, amount, payee, show, unit)
    return _none(wallet, amount, payee, unit)


def choice_of(
    wallet: Wallet, holdings: Sequence[HeldCoin], amount: int, payee: str | None = None
) -> SpendChoice:
    """Say who learns what if coins were spent for an amount, and the rest came back as change."""
    parties = wallet.parties
    change = _worth(holdings) - amount
    inputs = [Input("", 0, h.coin.value, h.coin.address) for h in holdings]
    fresh = _fresh_address(holdings)
    name, address = _payee(parties, payee)
    outputs = [Output(amount, address)] + ([Output(change, fresh)] if change else [])
    evidence = evident_change(
        inputs, outputs, lambda given: given != fresh and parties.is_seen(given)
    )
    names = tuple(h.coin.name for h in holdings)
    found = parties.knowledge.spend(
        names, payees=[name], change_value=change, change_known=evidence.output == 1
    )
    return SpendChoice(names, found, evidence, change)


def _payee(parties: Parties, payee: str | None) -> tuple[str, str | None]:
    """Return the name of who is paid and the address, if it is one."""
    if payee is None:
        return PAYEE, None
    if payee in parties.knowledge.known:
        return payee, None
    return parties.name(payee), payee


def _fresh_address(holdings: Sequence[HeldCoin]) -> str | None:
    """Return a stand-in for a new address of the type that the coins have."""
    address = holdings[0].coin.address
    if address is None:
        return None
    return address[:-1] + ("q" if address[-1] != "q" else "p")


def _groups(wallet: Wallet) -> list[tuple[str, list[HeldCoin]]]:
    if wallet.coin_set.exposed is None:
        return [(ALL, list(wallet.holdings))]
    exposed = [h for h in wallet.holdings if wallet.is_exposed(h)]
    others = [h for h in wallet.holdings if not wallet.is_exposed(h)]
    return [(NOT_EXPOSED, others), (EXPOSED, exposed)]


def _worth(holdings: Sequence[HeldCoin]) -> int:
    return sum(h.coin.value or 0 for h in holdings)


def _best(
    wallet: Wallet,
    kind: str,
    group: Sequence[HeldCoin],
    amount: int,
    payee: str | None,
    show: int,
    unit: Unit,
) -> Suggestion:
    place = {h.coin.name: k for k, h in enumerate(wallet.holdings)}
    sets = list(islice(needed_sets(group, amount), MAX_SETS + 1))
    whole = len(sets) <= MAX_SETS
    choices = [
        choice_of(wallet, sorted(some, key=lambda h: place[h.coin.name]), amount, payee)
        for some in sets[:MAX_SETS]
    ]
    choices.sort(key=lambda choice: (choice.cost, [place[name] for name in choice.coins]))
    chosen = choices[0]
    tied = tuple(choice for choice in choices[1:] if choice.cost == chosen.cost)
    others = {
        FEWEST: min(choices, key=lambda choice: (choice.cost[3], choice.cost)),
        MIN_CHANGE: min(choices, key=lambda choice: (choice.change, choice.cost)),
    }
    rows = [(role, choice) for role, choice in others.items() if choice is not chosen]
    if len(rows) == 2 and rows[0][1] is rows[1][1]:
        rows = [(f"{FEWEST}, {MIN_CHANGE}", rows[0][1])]
    seen = [chosen, *(choice for _, choice in rows)]
    rows += [(INSTEAD, choice) for choice in choices if choice not in seen][:show]
    return Suggestion(
        amount=amount,
        payee=chosen.disclosure.payees[0],
        chosen=_weighed(wallet, chosen),
        others=tuple((role, _weighed(wallet, choice)) for role, choice in rows),
        tied=tied,
        group=kind,
        compared=len(choices),
        whole=whole,
        why=tuple(_reasons(wallet, kind, choices, tied, whole, unit)),
    )


def _weighed(wallet: Wallet, choice: SpendChoice) -> SpendChoice:
    after = wallet.coin_set.together(choice.coins)
    return SpendChoice(choice.coins, choice.disclosure, choice.evidence, choice.change, after)


def needed_sets(group: Sequence[HeldCoin], amount: int) -> Iterator[tuple[HeldCoin, ...]]:
    """Yield the sets worth the amount of which no coin can be left out, fewest coins first."""
    by_value = sorted(group, key=lambda h: -(h.coin.value or 0))
    values = [h.coin.value or 0 for h in by_value]

    def of_size(first: int, size: int, rest: int) -> Iterator[tuple[HeldCoin, ...]]:
        # In falling order the last coin is the smallest: without it, the others must fall short.
        for k in range(first, len(values) - size + 1):
            if sum(values[k : k + size]) < rest:
                return
            if size == 1:
                yield (by_value[k],)
            elif values[k] < rest:
                for some in of_size(k + 1, size - 1, rest - values[k]):
                    yield (by_value[k], *some)

    for size in range(1, len(values) + 1):
        yield from of_size(0, size, amount)


def _reasons(
    wallet: Wallet,
    kind: str,
    choices: Sequence[SpendChoice],
    tied: Sequence[SpendChoice],
    whole: bool,
    unit: Unit,
) -> Iterator[str]:
    """Say what was decided by, against the next best choice that differs."""
    if kind == NOT_EXPOSED:
        yield "No exposed coin is in it, so it ties nothing to one."
    elif kind == EXPOSED:
        yield "Coins that are not exposed do not suffice; these are exposed already, all of them."
    chosen = choices[0]
    among = (
        f"{len(choices):,} choices in which every coin is needed"
        if whole
        else (f"the {len(choices):,} choices compared (there are more)")
    )
    if len(choices) == 1:
        of = {NOT_EXPOSED: " of coins that are not exposed", EXPOSED: " of exposed coins"}
        yield f"No other choice{of.get(kind, '')} suffices in which every coin is needed."
        return
    if tied:
        names = _numbered(wallet, tied[0].coins)
        more = f" and {len(tied) - 1:,} more" if len(tied) > 1 else ""
        yield (
            f"It is a tie with {names}{more}: they differ in nothing that is compared, and the "
            "first in your list was taken."
        )
    rest = choices[len(tied) + 1 :]
    if not rest:
        return
    pairs = zip(chosen.cost, rest[0].cost, strict=True)
    decided = next(k for k, (mine, theirs) in enumerate(pairs) if mine != theirs)
    mine, theirs = chosen.cost[decided], rest[0].cost[decided]
    counted = decided in (0, 3)
    figures = (
        f"{theirs:,} instead of {mine:,}"
        if counted
        else (f"{unit.words(theirs)} instead of {unit.words(mine)}")
    )
    equal = f"is equal in {', '.join(COMPARED[:decided])}, but " if decided else ""
    yield (
        f"It is the best of {among}. The next, {_numbered(wallet, rest[0].coins)}, {equal}"
        f"{WORSE[decided]}: {figures}."
    )


def _numbered(wallet: Wallet, names: Sequence[str]) -> str:
    """Name coins by their number in the wallet, as its report does."""
    numbers = {holding.coin.name: number for number, holding in enumerate(wallet.holdings, 1)}
    return " and ".join(f"coin {numbers[name]} ({name})" for name in names)


def _none(wallet: Wallet, amount: int, payee: str | None, unit: Unit) -> Suggestion:
    total = wallet.total or 0
    why = (
        f"All coins are worth {unit.words(total)}, less than {unit.words(amount)}."
        if total < amount
        else "Only exposed coins together with others are worth so much; that is not suggested."
    )
    name = _payee(wallet.parties, payee)[0]
    return Suggestion(amount, name, None, (), (), ALL, 0, True, (why,))
