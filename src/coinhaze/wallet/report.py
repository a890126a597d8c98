"""A wallet's report: the same sections for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coinhaze.observer.chain import reading_words
from coinhaze.observer.policies import POLICIES, UNIFORM
from coinhaze.report.grids import LEFT, RIGHT, Section
from coinhaze.units import NOT_KNOWN, SMALLEST, Unit
from coinhaze.wallet.holdings import coin_ledger
from coinhaze.wallet.suggestion import SPEND, SpendChoice, Suggestion
from coinhaze.wallet.wallet import MAX_PAIRED, Combination, HeldCoin, Wallet
from coinhaze.wallet.what_if import Proposal
from coinhaze.wallet.who_learns import CHANGE, ONE_OWNER, Learnt

EXACT = 1e-6  # bits; narrower intervals are due to rounding alone

IS_NOT = (
    "No proof of where money came from or whose it was: it is a measure of doubt, by a rule.",
    "No shelter from those who know more than the ledger: who sees your connection, your orders, "
    "or an exchange's books.",
    "Nothing about money before or outside this ledger, and nothing about what you do next.",
    "No legal finding, and no verdict on anyone: exposure is a share of money by a rule.",
)

RULE = (
    "The rule: never exposed coins with others, and no coin that is not needed; then the fewest "
    "parties that are not paid and learn something, the least value they learn, the least that "
    "whoever is paid learns, the fewest coins (fees), the least change. Add the fee to the amount. "
    "Bits decide nothing."
)

MAX_ROWS = 30  # of pairs; all of them are in the JSON
MAX_NAMED = 3
MAX_LETTERS = 24  # of an address or id in a sentence


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
            *([] if self.proposal is None else [_proposal(wallet, self.proposal, self.unit)]),
            *([] if self.suggestion is None else [_suggestion(wallet, self.suggestion, self.unit)]),
            _coins(wallet, self.unit),
            _knows(wallet, self.unit),
            *(_groups(wallet, self.unit) if len(wallet.holdings) > 1 else []),
            _origins(wallet),
            Section("How sure this is", tuple(how_sure(wallet))),
            Section("What would change it", tuple(would_change(wallet))),
            Section("What the numbers are not", IS_NOT),
        ]
        return [*parts, _made_by(self.made_by)] if self.made_by and with_inputs else parts

    def _short(self) -> Section:
        wallet = self.wallet
        lines = list(in_short(wallet, self.proposal, self.suggestion, self.unit))
        if wallet.coin_set.exposed is not None:
            exposed = [h for h in wallet.holdings if wallet.is_exposed(h)]
            lines.append(exposure_words(wallet.limit))
            lines.append(
                f"Exposed: {self._worth(exposed)}. Keep apart from the rest: "
                f"{_numbers(wallet, [h.coin.name for h in exposed])}."
                if 0 < len(exposed) < len(wallet.holdings)
                else f"Exposed: {'all coins' if exposed else 'none of the coins'}."
            )
        lines.append(what_bits_are())
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


def in_short(
    wallet: Wallet, proposal: Proposal | None, suggestion: Suggestion | None, unit: Unit
) -> Iterator[str]:
    """Answer first: the payment proposed, the coins suggested, or whether coins can be merged."""
    if proposal is not None:
        yield from proposal_words(wallet, proposal, unit)
    if suggestion is not None:
        yield _advice(wallet, suggestion, unit)
    if proposal is None and len(wallet.holdings) > 1:
        yield merge_words(wallet, unit)


def merge_words(wallet: Wallet, unit: Unit) -> str:
    """Say whether all coins can be merged, and what that would show."""
    everything = wallet.groups[-1][1]
    learns = wallet.merging(everything).learns
    if learns:
        some = wallet.safe_pairs()
        apart = (
            "No two of them can be merged without that."
            if some == 0
            else f"{some:,} of {len(wallet.pairs or ()):,} pairs can be merged without that."
        )
        who = learns_words(wallet, learns, unit, limit=MAX_NAMED)
        return f"Do not merge all coins: {who}." + (f" {apart}" if wallet.pairs else "")
    if everything.taints(wallet.limit):
        return "Do not merge all coins: exposed coins would be tied to others."
    return (
        "Merging all coins is safe, as far as is known: nobody learns of a coin it did not know. "
        f"{ONE_OWNER}"
    )


def proposal_words(wallet: Wallet, proposal: Proposal, unit: Unit) -> Iterator[str]:
    """Give the verdict on a payment: who learns what, whether change is evident, what would do."""
    found = proposal.disclosure
    if proposal.answer.outputs and found.nobody_but_payee:
        yield "Nobody but whoever is paid learns anything from it."
    elif not found.learns:
        yield "Nobody learns of a coin it did not know."
    if found.learns:
        yield f"Who learns what: {learns_words(wallet, found.learns, unit)}."
    if proposal.one_coin is not None:
        yield (
            f"One coin would do: {_numbers(wallet, [proposal.one_coin])} pays this alone, and "
            "shows no others."
        )
    elif proposal.unneeded:
        yield f"It does not need {_numbers(wallet, proposal.unneeded)}: leave out what shows more."
    yield from change_words(proposal, unit)
    if len(proposal.answer.coins) > 1:
        yield ONE_OWNER


def change_words(proposal: Proposal, unit: Unit) -> Iterator[str]:
    """Say whether an observer can tell the change, and what there being none would save."""
    evidence, outputs = proposal.evidence, proposal.answer.outputs
    if not outputs:
        return
    if len([output for output in outputs if output.spendable]) < 2:
        yield "It has no change: nothing of yours can be followed from here."
        return
    if evidence.output is not None:
        output = outputs[evidence.output]
        yield (
            f"Change is evident: the {_value(output.value, unit)} to "
            f"{output.address or 'no address'}, because {'; and '.join(evidence.reasons)}."
        )
        less = sum(one.value for one in proposal.disclosure.learns)
        less -= sum(one.value for one in proposal.without_change.learns)
        if proposal.change_known and less:
            count = len(proposal.disclosure.learns) - len(proposal.without_change.learns)
            fewer = f" and {count} fewer would learn anything" if count else ""
            yield (
                "Without change (a payment of all of it, or coins that match) "
                f"{unit.words(less)} less would be learnt, counted for each party{fewer}."
            )
    elif evidence.signs:
        reasons = (
            f"{outputs[k].address or 'output ' + str(k)}: {why}" for k, why in evidence.signs
        )
        yield f"What tells the change disagrees, so it is not evident: {'; '.join(reasons)}."
    else:
        yield (
            "Change is not evident: amounts, address types and reuse do not tell the outputs apart."
        )


def learns_words(
    wallet: Wallet, learns: Sequence[Learnt], unit: Unit, *, limit: int | None = None
) -> str:
    """Describe who learns what, those who are not paid first."""
    ordered = sorted(learns, key=lambda one: one.is_payee)
    parts = [_learnt(wallet, one, unit) for one in ordered[:limit]]
    left = len(ordered) - len(parts)
    return "; ".join(parts) + (f"; and {left:,} more" if left else "")


def _learnt(wallet: Wallet, one: Learnt, unit: Unit) -> str:
    coins = [name for name in one.coins if name != CHANGE]
    parts = [_numbers(wallet, coins)] if coins else []
    parts += ["the change"] if len(coins) < len(one.coins) else []
    worth = [
        f"{_value(value, unit)} {word}"
        for value, word in ((one.then_value, "spent"), (one.now_value, "still yours"))
        if value != 0
    ]
    paid = " (paid)" if one.is_payee else ""
    return f"{short_name(one.party)}{paid} learns {' and '.join(parts)} ({', '.join(worth)})"


def short_name(name: str) -> str:
    """Shorten a long address; names stay whole.

    >>> short_name("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"), short_name("my employer")
    ('1A1zP1…DivfNa', 'my employer')
    """
    return name if len(name) <= MAX_LETTERS or " " in name else f"{name[:6]}…{name[-6:]}"


def _knows(wallet: Wallet, unit: Unit) -> Section:
    knowledge = wallet.parties.knowledge
    rows = []
    for party, coins in list(knowledge.known.items())[:MAX_ROWS]:
        unknown = [h.coin for h in wallet.holdings if h.coin.name not in coins]
        values = [coin.value for coin in unknown]
        worth = None if None in values else sum(value or 0 for value in values)
        rows.append((party, _numbers(wallet, coins), f"{len(unknown)}", _value(worth, unit)))
    nobody = [h.coin.name for h in wallet.holdings if not knowledge.knows(h.coin.name)]
    lines = [
        "A payer knows the coin it paid, and whoever you paid knows the coins you paid with. Name "
        "others with --known: a table party,coin or the labels of a wallet (BIP 329)."
    ]
    if nobody:
        lines.append(
            f"Nobody is known to know {_numbers(wallet, nobody)}: newly mined, of a CoinJoin, or "
            "change that was not evident."
        )
    linked = dict.fromkeys(knowledge.linked(h.coin.name) for h in wallet.holdings)
    lines += [
        f"Linked already, for everybody to see: {_numbers(wallet, group)} (one address, spent "
        "together before, or evident change)."
        for group in linked
        if len(group) > 1
    ]
    lines += [f"{note}." for note in wallet.parties.notes]
    columns = (("party", LEFT), ("knows", LEFT), ("unknown to it", RIGHT), ("worth", RIGHT))
    return Section(
        "Who knows which coins", tuple(lines), columns=columns if rows else (), rows=tuple(rows)
    )


def _groups(wallet: Wallet, unit: Unit) -> list[Section]:
    exposed = wallet.coin_set.exposed is not None
    lines = [
        "Safe: no party learns of a coin it did not know"
        + (", and no coin becomes exposed." if exposed else ".")
        + f" {ONE_OWNER}",
        "Bits are those of a payment made of the coins together. That they rise does not make a "
        "merge safe: they say nothing of who learns what.",
        _reading(wallet),
    ]
    rows = [
        (f"{kind}: {_numbers(wallet, some.coins)}", *_figures(wallet, some, unit))
        for kind, some in wallet.groups
        if len(some.coins) > 1
    ]
    pairs = wallet.pairs or ()
    if len(wallet.holdings) > 2:
        shown = {some.coins for _, some in wallet.groups}
        rows += [
            (_numbers(wallet, p.coins), *_figures(wallet, p, unit))
            for p in pairs[:MAX_ROWS]
            if p.coins not in shown
        ]
    if len(pairs) > MAX_ROWS:
        lines.append(f"{len(pairs) - MAX_ROWS:,} more pairs are in the JSON (--json).")
    if wallet.pairs is None:
        lines.append(f"Pairs are shown up to {MAX_PAIRED} coins: ask with --spend for others.")
    columns = [("together", LEFT), ("verdict", LEFT), ("bits", RIGHT)]
    columns += [("exposure", RIGHT)] if exposed else []
    return [Section("Spending together", tuple(lines), columns=tuple(columns), rows=tuple(rows))]


def _figures(wallet: Wallet, some: Combination, unit: Unit) -> list[str]:
    cells = [verdict_words(wallet, some, unit), _bits(some.after.bits)]
    return cells if some.exposure is None else [*cells, _percent(some.exposure)]


def verdict_words(wallet: Wallet, some: Combination, unit: Unit) -> str:
    """Say whether coins can be merged: who would learn what, and what would become exposed."""
    learns, exposes = wallet.merging(some).learns, some.taints(wallet.limit)
    if not learns and not exposes:
        return "safe: nobody learns anything"
    parts = [learns_words(wallet, learns, unit, limit=MAX_NAMED)] if learns else []
    if exposes:
        verb = "may expose" if some.open > 0 else "exposes"
        parts.append(f"{verb} {_numbers(wallet, exposes)}")
    return f"keep apart: {'; '.join(parts)}"


def _bits(bits: float) -> str:
    return f"{bits:.4f}"


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
    lines = [
        f"{short_name(one.party)}: {_numbers(wallet, one.unknown)} worth "
        f"{_value(one.unknown_value, unit)} stay unknown to it."
        for one in proposal.disclosure.learns
        if one.unknown
    ]
    lines.append(f"Every payment of it would be as uncertain as among {among} equal origins.")
    return Section(
        f"If it were spent: {proposal.what}",
        tuple(lines),
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
    chosen = suggestion.chosen
    tie = f" It is a tie with {len(suggestion.tied):,} other choices." if suggestion.tied else ""
    others = chosen.disclosure.others
    who = (
        learns_words(wallet, others, unit, limit=MAX_NAMED)
        if others
        else "Nobody but whoever is paid learns anything"
    )
    return (
        f"To pay {amount}: spend {_numbers(wallet, chosen.coins)} ({' and '.join(chosen.coins)})."
        f" {who}.{tie}"
    )


def _suggestion(wallet: Wallet, suggestion: Suggestion, unit: Unit) -> Section:
    lines = [f"Why: {' '.join(suggestion.why)}", RULE]
    some = [] if suggestion.chosen is None else [(SPEND, suggestion.chosen), *suggestion.others]
    exposed = wallet.coin_set.exposed is not None
    rows = [(role, *_choice(wallet, choice, unit, exposed=exposed)) for role, choice in some]
    columns = [
        ("", LEFT), ("coins", LEFT), ("who else learns", LEFT), ("payee sees", RIGHT),
        ("change", LEFT), ("bits", RIGHT),
    ]  # fmt: skip
    columns += [("exposure", RIGHT)] if exposed else []
    title = f"To pay {unit.words(suggestion.amount)}"
    return Section(title, tuple(lines), (), tuple(columns) if rows else (), tuple(rows))


def _choice(wallet: Wallet, choice: SpendChoice, unit: Unit, *, exposed: bool) -> list[str]:
    others = choice.disclosure.others
    change = "none"
    if choice.change:
        change = f"{unit.words(choice.change)}, {'' if choice.change_known else 'not '}evident"
    cells = [
        _numbers(wallet, choice.coins),
        learns_words(wallet, others, unit, limit=MAX_NAMED) if others else "nobody",
        unit.words(choice.cost[2]),
        change,
    ]
    assert choice.after is not None  # choices that are shown are weighed
    cells.append(_bits(choice.after.after.bits))
    return [*cells, _percent(choice.after.exposure or 0.0)] if exposed else cells


def _made_by(made_by: Mapping[str, object]) -> Section:
    lines = [f"{made_by['software']}: {made_by['command']}"]
    inputs = made_by["inputs"]
    assert isinstance(inputs, list)
    lines += [f"{row['file']}: SHA-256 {row['sha256']}" for row in inputs]
    lines += [str(note) for note in made_by["notes"]]  # type: ignore[attr-defined]
    return Section("Made by", tuple(lines))
