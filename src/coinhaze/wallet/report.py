"""A wallet's report: the same sections for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from coinhaze.observer.chain import reading_words
from coinhaze.observer.policies import POLICIES, UNIFORM
from coinhaze.report.grids import LEFT, RIGHT, Section
from coinhaze.units import NOT_KNOWN, SMALLEST, Unit
from coinhaze.wallet.holdings import coin_ledger
from coinhaze.wallet.suggestion import Suggestion
from coinhaze.wallet.wallet import MAX_PAIRED, Combination, HeldCoin, Wallet
from coinhaze.wallet.what_if import Proposal

EXACT = 1e-6  # bits; narrower intervals are due to rounding alone

IS_NOT = (
    "No proof of where money came from or whose it was: it is a measure of doubt, by a rule.",
    "No shelter from those who know more than the ledger: who sees your connection, your orders, "
    "or an exchange's books.",
    "Nothing about money before or outside this ledger, and nothing about what you do next.",
    "No legal finding, and no verdict on anyone: exposure is a share of money by a rule.",
)

MAX_ROWS = 30  # of pairs; all of them are in the JSON
MAX_NAMED = 3


def window_words(wallet: Wallet) -> str:
    """Describe the part of the chain that was examined."""
    ledger = coin_ledger(wallet.chain.graph)
    facts = ledger.facts()
    first, last = facts["first_height"], facts["last_height"]
    blocks = "" if first is None else f", blocks {first} to {last}"
    earlier = facts["earlier_coins_spent"]
    before = (
        "all from its beginning on" if ledger.complete else f"{earlier:,} coins come from before it"
    )
    return f"The ledger has {facts['transactions']:,} transactions{blocks}; {before}."


def how_sure(wallet: Wallet) -> list[str]:
    """Describe how certain the figures are, and of what."""
    widest = max(high - low for low, high in (h.interval for h in wallet.holdings))
    return [
        *(_beyond_words(wallet, widest) if wallet.open > 0 else [_exact_words(widest)]),
        "That is how sure the sum is, not how sure the story: it holds for this ledger, this rule "
        "and what the observer is taken to know.",
        window_words(wallet),
    ]


def _exact_words(widest: float) -> str:
    return (
        "Bits are exact but for roundings: every coin's whole past in this ledger was followed, "
        f"and each is proven to {widest / 2:.0e} bits or better."
    )


def _beyond_words(wallet: Wallet, widest: float) -> list[str]:
    return [
        f"Not all of the past was fetched: up to {wallet.open:.2%} of a coin's money comes from "
        "further back. Its bits over the whole chain are proven to lie in the stated interval, "
        f"which is up to {widest:.4f} bits wide; --accuracy asks for a narrower one, and "
        "--max-transactions lets it fetch more.",
        "Bits in the tables, and what is suggested by them, take each coin further back for one "
        "origin: where intervals overlap, the order of two coins is not proven.",
    ]


def would_change(wallet: Wallet) -> list[str]:
    """Describe what would lead to other figures."""
    settings = wallet.chain.settings
    policy = POLICIES.get(settings.get("policy")) or UNIFORM
    rule = policy.premise
    known = "none are given" if not settings.get("links") else f"{settings['links']} payments"
    lines = [
        f"The rule. {rule} Another rule, another number.",
        f"What the observer knows of where payments came from ({known}). Every payment somebody "
        "learns to link can lower the bits, also later.",
        "The window. Money from before it is one origin a coin; an earlier start can raise the "
        "bits or lower them.",
    ]
    if wallet.coin_set.exposed is None:
        lines.append("Exposure is not given: no exposed addresses are named.")
    else:
        lines.append(
            f"The list of exposed addresses ({wallet.coin_set.exposed.settings['listed']} found in "
            "the ledger): another list, other exposure. Bits do not depend on it."
        )
        lines += [f"{note}." for note in wallet.coin_set.exposed.notes if note.startswith("list: ")]
    lines.append(f"What the ledger lacks ({wallet.chain.graph.ledger.completeness.line()}).")
    lines.append(
        "What is suggested depends on the amount, and where exposure is given on its limit."
    )
    return lines


def what_bits_are() -> str:
    """Explain the number."""
    return (
        "Bits: what an observer of this ledger lacks to say where the money came from. 0 is one "
        "certain origin, 1 as between two equal ones, 10 as among 1,024; more is better hidden."
    )


def exposure_words(limit: float) -> str:
    """Explain exposure."""
    above = "any" if limit == 0 else f"more than {limit:.2%}"
    return (
        "Exposure: the share of the money that was at an exposed address. A coin with "
        f"{above} counts as exposed."
    )


@dataclass(frozen=True, eq=False)
class WalletReport:
    """The report on a wallet, a proposed payment and an amount to pay."""

    wallet: Wallet
    proposal: Proposal | None = None
    suggestion: Suggestion | None = None
    made_by: Mapping[str, object] | None = None
    unit: Unit = SMALLEST  # what amounts are shown in

    @property
    def title(self) -> str:
        """The number of coins, and their value."""
        return f"Wallet of {self._worth(self.wallet.holdings)}"

    def sections(self, *, with_inputs: bool = True) -> list[Section]:
        """Return the sections in order; with `with_inputs`, the inputs at the end."""
        wallet = self.wallet
        parts = [
            self._short(),
            _coins(wallet, self.unit),
            _origins(wallet),
            *(_groups(wallet) if len(wallet.holdings) > 1 else []),
            *([] if self.proposal is None else [_proposal(wallet, self.proposal, self.unit)]),
            *([] if self.suggestion is None else [_suggestion(wallet, self.suggestion, self.unit)]),
            Section("How sure this is", tuple(how_sure(wallet))),
            Section("What would change it", tuple(would_change(wallet))),
            Section("What the numbers are not", IS_NOT),
        ]
        return [*parts, _made_by(self.made_by)] if self.made_by and with_inputs else parts

    def _short(self) -> Section:
        wallet = self.wallet
        lines = [what_bits_are()]
        if wallet.coin_set.exposed is not None:
            exposed = [h for h in wallet.holdings if wallet.is_exposed(h)]
            lines.append(exposure_words(wallet.limit))
            lines.append(
                f"Exposed: {self._worth(exposed)}. Keep apart from the rest: "
                f"{_numbers(wallet, [h.coin.name for h in exposed])}."
                if 0 < len(exposed) < len(wallet.holdings)
                else f"Exposed: {'all coins' if exposed else 'none of the coins'}."
            )
        if self.suggestion is not None:
            lines.append(_advice(wallet, self.suggestion, self.unit))
        if not self.unit.is_known and wallet.total is not None:
            lines.append(NOT_KNOWN)
        return Section("In short", tuple(lines))

    def _worth(self, holdings: Sequence[HeldCoin]) -> str:
        count = f"{len(holdings):,} coin{'' if len(holdings) == 1 else 's'}"
        if self.wallet.total is None:
            return f"{count} of hidden value"
        return f"{count} worth {self.unit.words(sum(h.coin.value or 0 for h in holdings))}"


def _number(wallet: Wallet, name: str) -> str:
    """Return a coin's number in the wallet; somebody else's coin has its name."""
    for place, holding in enumerate(wallet.holdings, 1):
        if holding.coin.name == name:
            return str(place)
    return name


def _numbers(wallet: Wallet, names: Sequence[str]) -> str:
    numbers = [_number(wallet, name) for name in names]
    shown = ", ".join(numbers[:MAX_ROWS]) + (", ..." if len(numbers) > MAX_ROWS else "")
    return f"coin {shown}" if len(numbers) == 1 else f"coins {shown}"


def _coins(wallet: Wallet, unit: Unit) -> Section:
    exposed = wallet.coin_set.exposed is not None
    columns = [
        ("", RIGHT), ("coin", LEFT), ("value", RIGHT), ("bits", RIGHT), ("proven", RIGHT),
        ("as among", RIGHT), ("steps", RIGHT),
    ]  # fmt: skip
    columns += [("exposure", RIGHT)] if exposed else []
    rows = []
    for place, holding in enumerate(wallet.holdings, 1):
        coin, row = holding.coin, holding.row
        name = coin.name if coin.label is None else f"{coin.name} ({coin.label})"
        cells = [str(place), name, _value(coin.value, unit), f"{row.bits:.4f}", _proven(holding)]
        cells += [f"{holding.equal_origins:,.1f}", f"{row.steps:.2f}"]
        cells += [_exposure(holding)] if exposed else []
        rows.append(tuple(cells))
    lines = (
        "Proven: how far the bits can be off, or between which bounds they lie. As among: so many "
        "equally likely origins would leave the same doubt. Steps: moves back to an origin on "
        "average, the last one into the origin itself.",
        _reading(wallet),
        *_exposed_through(wallet),
    )
    return Section("Your coins", lines, columns=tuple(columns), rows=tuple(rows))


def _reading(wallet: Wallet) -> str:
    """Describe how to read all figures; coin values are the ledger's own, nothing is assumed."""
    what = "Bits" if wallet.coin_set.exposed is None else "Bits and exposure"
    return (
        f"{what}: {reading_words(wallet.chain.settings)}, payments in the order of time. Values "
        "are those of the coins; none of them is assumed."
    )


def _exposed_through(wallet: Wallet) -> list[str]:
    """Describe which addresses exposed coins passed, the largest first."""
    lines: list[str] = []
    for place, holding in enumerate(wallet.holdings, 1):
        if wallet.is_exposed(holding) and len(lines) < MAX_ROWS:
            found = wallet.coin_set.exposed_through(holding.coin.name)
            if not found:
                lines.append(f"Coin {place} may be exposed: not all of its past was followed.")
                continue
            named = ", ".join(f"{name} {_percent(share)}" for name, share in found[:MAX_NAMED])
            more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
            lines.append(f"Coin {place} is exposed through {named}{more}.")
    return lines


def _proven(holding: HeldCoin) -> str:
    low, high = holding.interval
    half = (high - low) / 2
    return f"±{half:.0e}" if half <= EXACT else f"{low:.4f} to {high:.4f}"


def _exposure(holding: HeldCoin) -> str:
    low, high = holding.exposure or 0.0, holding.exposure_high or 0.0
    return _percent(low) if low == high else f"{_percent(low)} to {_percent(high)}"


def _percent(share: float) -> str:
    """Format a share so that a little is not shown as nothing, nor nearly all as all."""
    if 0 < share < 5e-5:
        return "<0.01%"
    return ">99.99%" if 1 - 5e-5 < share < 1 else f"{share:.2%}"


def _value(value: int | None, unit: Unit) -> str:
    return "hidden" if value is None else unit.words(value)


def _origins(wallet: Wallet) -> Section:
    rows = []
    for place, holding in enumerate(wallet.holdings, 1):
        named = 0.0
        for origin in holding.origins:
            rows.append((str(place), _percent(origin.share), origin.words))
            named += origin.share
        more = len(holding.row.outcomes) + len(holding.row.others) - len(holding.origins)
        if more > 0:
            rest = f"{more:,} other origins" if more > 1 else "one other origin"
            rows.append((str(place), _percent(max(1 - named, 0.0)), rest))
    columns = (("coin", RIGHT), ("share", RIGHT), ("from", LEFT))
    return Section("Where they came from", columns=columns, rows=tuple(rows))


def _groups(wallet: Wallet) -> list[Section]:
    exposed = wallet.coin_set.exposed is not None
    lines = [
        "Bits before are each coin's, after are those of a payment made of them together."
        + (" Safe: no coin that is not exposed becomes so." if exposed else ""),
        "Any coins spent together are taken to be one person's; neither figure weighs that.",
        _reading(wallet),
    ]
    if exposed:
        lines.append("More bits do not make up for exposure: a payment can have more of both.")
    rows = [
        (f"{kind}: {_numbers(wallet, some.coins)}", *_figures(wallet, some))
        for kind, some in wallet.groups
        if len(some.coins) > 1
    ]
    pairs = wallet.pairs or ()
    if len(wallet.holdings) > 2:
        shown = {some.coins for _, some in wallet.groups}
        rows += [
            (_numbers(wallet, p.coins), *_figures(wallet, p))
            for p in pairs[:MAX_ROWS]
            if p.coins not in shown
        ]
    if len(pairs) > MAX_ROWS:
        lines.append(f"{len(pairs) - MAX_ROWS:,} more pairs are in the JSON (--json).")
    if wallet.pairs is None:
        lines.append(f"Pairs are shown up to {MAX_PAIRED} coins: ask with --spend for others.")
    columns = [("together", LEFT), ("bits before", RIGHT), ("after", RIGHT)]
    columns += [("exposure before", RIGHT), ("after", RIGHT), ("verdict", LEFT)] if exposed else []
    return [Section("Spending together", tuple(lines), columns=tuple(columns), rows=tuple(rows))]


def _figures(wallet: Wallet, some: Combination) -> list[str]:
    cells = [_range(some.bits_before, _bits), _bits(some.after.bits)]
    if some.exposure is None or some.exposure_before is None:
        return cells
    before = _range(some.exposure_before, _percent)
    return [*cells, before, _percent(some.exposure), _verdict(wallet, some)]


def _range(figures: Sequence[float], write: Callable[[float], str]) -> str:
    """Format one or two figures, or the range of more of them."""
    if len(figures) <= 2:
        return ", ".join(map(write, figures))
    low, high = write(min(figures)), write(max(figures))
    return low if low == high else f"{low} to {high}"


def _bits(bits: float) -> str:
    return f"{bits:.4f}"


def _verdict(wallet: Wallet, some: Combination) -> str:
    if some.is_safe(wallet.limit):
        all_exposed = all(share > wallet.limit for share in some.worst_before)
        already = "all may be exposed already" if some.open > 0 else "all exposed already"
        return already if all_exposed else "safe"
    exposes = "may expose" if some.open > 0 else "exposes"
    return f"keep apart: {exposes} {_numbers(wallet, some.taints(wallet.limit))}"


def _proposal(wallet: Wallet, proposal: Proposal, unit: Unit) -> Section:
    answer = proposal.answer
    exposed = answer.exposure is not None
    rows = [
        ("spends", _spent(wallet, c.name), _value(c.value, unit), f"{c.bits:.4f}")
        + ((_percent(c.exposure or 0.0),) if exposed else ())
        for c in answer.coins
    ]
    after = f"{answer.after.bits:.4f}"
    for output in answer.outputs:
        share = answer.exposure_of(output)
        cells = ("pays", output.address or "no address", _value(output.value, unit), after)
        rows.append(cells + ((_percent(share or 0.0),) if exposed else ()))
    if answer.fee is not None:
        rows.append(("fee", "", _value(answer.fee, unit), "") + (("",) if exposed else ()))
    if not answer.outputs:
        values = [c.value for c in answer.coins]
        value = None if None in values else sum(v or 0 for v in values)
        cells = ("pays", "whoever is paid", _value(value, unit), after)
        rows.append(cells + ((_percent(answer.exposure or 0.0),) if exposed else ()))
    columns = [("", LEFT), ("coin or address", LEFT), ("value", RIGHT), ("bits", RIGHT)]
    columns += [("exposure", RIGHT)] if exposed else []
    among = f"{2.0**answer.after.bits:,.1f}"
    line = f"Every payment of it would be as uncertain as among {among} equal origins."
    return Section(
        f"If it were spent: {proposal.what}",
        (line,),
        proposal.warnings,
        tuple(columns),
        tuple(rows),
    )


def _spent(wallet: Wallet, name: str) -> str:
    number = _number(wallet, name)
    return name if number == name else f"coin {number}: {name}"


def _advice(wallet: Wallet, suggestion: Suggestion, unit: Unit) -> str:
    amount = unit.words(suggestion.amount)
    if suggestion.chosen is None:
        return f"To pay {amount}: no suggestion. {suggestion.why[0]}"
    coins = suggestion.chosen.coins
    return f"To pay {amount}: spend {_numbers(wallet, coins)} ({' and '.join(coins)})."


def _suggestion(wallet: Wallet, suggestion: Suggestion, unit: Unit) -> Section:
    lines = [_advice(wallet, suggestion, unit)] if suggestion.chosen is not None else []
    lines.append(f"Why: {' '.join(suggestion.why)}")
    lines.append(
        "The rule: never exposed coins with others; then fewest coins; then most bits; then least "
        "change. It knows nothing of fees (add them to the amount), of whom you pay, or of change."
    )
    some = () if suggestion.chosen is None else (suggestion.chosen, *suggestion.others)
    rows = [
        ("spend" if k == 0 else "instead", _numbers(wallet, s.coins), *_figures(wallet, s))
        for k, s in enumerate(some)
    ]
    columns = [("", LEFT), ("coins", LEFT), ("bits before", RIGHT), ("after", RIGHT)]
    if wallet.coin_set.exposed is not None:
        columns += [("exposure before", RIGHT), ("after", RIGHT), ("verdict", LEFT)]
    title = f"To pay {unit.words(suggestion.amount)}"
    return Section(title, tuple(lines), (), tuple(columns) if rows else (), tuple(rows))


def _made_by(made_by: Mapping[str, object]) -> Section:
    lines = [f"{made_by['software']}: {made_by['command']}"]
    inputs = made_by["inputs"]
    assert isinstance(inputs, list)
    lines += [f"{row['file']}: SHA-256 {row['sha256']}" for row in inputs]
    lines += [str(note) for note in made_by["notes"]]  # type: ignore[attr-defined]
    return Section("Made by", tuple(lines))
