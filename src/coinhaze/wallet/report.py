"""A wallet's report: the same sections for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coinhaze.measures.by_owner import OwnerOrigins
from coinhaze.observer.chain import reading_words
from coinhaze.report.grids import LEFT, RIGHT, Section
from coinhaze.units import NOT_KNOWN, SMALLEST, Unit
from coinhaze.wallet.suggestion import SPEND, SpendChoice, Suggestion
from coinhaze.wallet.wallet import MAX_PAIRED, Combination, HeldCoin, Wallet
from coinhaze.wallet.what_if import Proposal
from coinhaze.wallet.who_learns import ONE_OWNER
from coinhaze.wallet.words import (
    EXACT,
    IS_NOT,
    MAX_NAMED,
    MAX_ROWS,
    PAYEE_KNOWS,
    exposure_words,
    how_sure,
    in_short,
    informed_words,
    learns_words,
    number_of,
    numbers_of,
    observed_words,
    parties_by_what,
    party_words,
    percent,
    value_words,
    verdict_words,
    what_bits_are,
    worth_learnt,
    would_change,
)

RULE = (
    "The rule: never exposed coins with others, and no coin that is not needed; then the fewest "
    "parties that are not paid and learn something, the least value they learn, the least that "
    "the payee learns, the fewest coins (fees), the least change. Add the fee to the amount. "
    "Bits decide nothing."
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
                f"{numbers_of(wallet, [h.coin.name for h in exposed])}."
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


def _coins(wallet: Wallet, unit: Unit) -> Section:
    exposed = wallet.coin_set.exposed is not None
    columns = [
        ("", RIGHT), ("coin", LEFT), ("value", RIGHT), ("bits", RIGHT), ("proven", RIGHT),
    ]  # fmt: skip
    columns += [("informed bits", RIGHT)] if wallet.observers else []
    columns += [("equal origins", RIGHT), ("steps", RIGHT)]
    columns += [("exposure", RIGHT)] if exposed else []
    rows = []
    for place, holding in enumerate(wallet.holdings, 1):
        coin, row = holding.coin, holding.row
        name = coin.name if coin.label is None else f"{coin.name} ({coin.label})"
        cells = [
            str(place),
            name,
            value_words(coin.value, unit),
            f"{row.bits:.4f}",
            _proven(holding),
        ]
        cells += [_informed_bits(each) for each in holding.informed[-1:]]
        cells += [f"{holding.equal_origins:,.1f}", f"{row.steps:.2f}"]
        cells += [_exposure(holding)] if exposed else []
        rows.append(tuple(cells))
    lines = (
        "Proven: how far the bits can be off, or between which bounds they lie. Equal origins: so "
        "many equally likely origins would leave the same doubt. Steps: moves back to an origin on "
        "average, the last one into the origin itself.",
        informed_words(wallet),
        *_informed_sentences(wallet),
        _reading(wallet),
        *_exposed_through(wallet, unit),
    )
    return Section("Your coins", lines, columns=tuple(columns), rows=tuple(rows))


def _reading(wallet: Wallet) -> str:
    """Describe how to read all figures; coin values are the ledger's own, nothing is assumed."""
    what = "Bits" if wallet.coin_set.exposed is None else "Bits and exposure"
    return (
        f"{what}: {reading_words(wallet.chain.settings)}, payments in the order of time. Values "
        "come from the ledger; none is assumed."
    )


def _informed_sentences(wallet: Wallet) -> list[str]:
    said = ((place, observed_words(h)) for place, h in enumerate(wallet.holdings, 1))
    return [f"Coin {place}: {words}" for place, words in said if words][:MAX_ROWS]


def _informed_bits(found: OwnerOrigins) -> str:
    low, high = found.bits_low, found.bits_high
    return f"{found.bits:.4f}" if high - low <= EXACT else f"{low:.4f} to {high:.4f}"


def _exposed_through(wallet: Wallet, unit: Unit) -> list[str]:
    """Describe which addresses exposed coins passed, the largest first."""
    lines: list[str] = []
    for place, holding in enumerate(wallet.holdings, 1):
        if wallet.is_exposed(holding) and len(lines) < MAX_ROWS:
            found = wallet.coin_set.exposed_through(holding.coin.name)
            if not found:
                lines.append(f"Coin {place} may be exposed: not all of its past was followed.")
                continue
            value = holding.coin.value
            named = ", ".join(
                f"{name}: {percent(share)}"
                + ("" if value is None else f", {unit.words(round(share * value))}")
                for name, share in found[:MAX_NAMED]
            )
            more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
            lines.append(f"Coin {place} is exposed through {named}{more}.")
    return lines


def _proven(holding: HeldCoin) -> str:
    low, high = holding.interval
    half = (high - low) / 2
    return f"±{half:.0e}" if half <= EXACT else f"{low:.4f} to {high:.4f}"


def _exposure(holding: HeldCoin) -> str:
    low, high = holding.exposure or 0.0, holding.exposure_high or 0.0
    return percent(low) if low == high else f"{percent(low)} to {percent(high)}"


def _origins(wallet: Wallet) -> Section:
    rows = []
    for place, holding in enumerate(wallet.holdings, 1):
        named = 0.0
        for origin in holding.origins:
            rows.append((str(place), percent(origin.share), origin.words))
            named += origin.share
        more = len(holding.row.outcomes) + len(holding.row.others) - len(holding.origins)
        if more > 0:
            last = holding.last_origin
            rest = f"{more:,} other origins" if last is None else last.words
            rows.append((str(place), percent(max(1 - named, 0.0)), rest))
    columns = (("coin", RIGHT), ("share", RIGHT), ("from", LEFT))
    lines: tuple[str, ...] = ()
    if any(wallet.is_exposed(holding) for holding in wallet.holdings):
        lines = ("An origin is where money began; a listed name can be anywhere on the way.",)
    return Section("Where they came from", lines, columns=columns, rows=tuple(rows))


def _knows(wallet: Wallet, unit: Unit) -> Section:
    knowledge = wallet.parties.knowledge
    knowing: dict[tuple[str, ...], list[str]] = {}
    for party, coins in knowledge.known.items():
        knowing.setdefault(coins, []).append(party)
    rows = []
    for coins, parties in list(knowing.items())[:MAX_ROWS]:
        unknown = [h.coin for h in wallet.holdings if h.coin.name not in coins]
        values = [coin.value for coin in unknown]
        worth = None if None in values else sum(value or 0 for value in values)
        known = numbers_of(wallet, coins)
        rows.append((_parties(parties), known, f"{len(unknown)}", value_words(worth, unit)))
    nobody = [h.coin.name for h in wallet.holdings if not knowledge.knows(h.coin.name)]
    lines = [
        "A payer knows the coin it paid, and those you paid know the coins you paid with. Name "
        "others with --known: a table party,coin or the labels of a wallet (BIP 329)."
    ]
    if nobody:
        lines.append(
            f"Nobody is known to know {numbers_of(wallet, nobody)}: newly mined, of a CoinJoin, or "
            "change that was not evident."
        )
    linked = dict.fromkeys(knowledge.linked(h.coin.name) for h in wallet.holdings)
    lines += [
        f"Linked already, for everybody to see: {numbers_of(wallet, group)} (one address, spent "
        "together before, or evident change)."
        for group in linked
        if len(group) > 1
    ]
    left = sum(len(parties) for parties in list(knowing.values())[MAX_ROWS:])
    if left:
        lines.append(f"{left:,} more parties know other coins: the JSON (--json) has them.")
    lines += [f"{note}." for note in wallet.parties.notes]
    columns = (
        ("party", LEFT),
        ("knows", LEFT),
        ("coins unknown to it", RIGHT),
        ("their worth", RIGHT),
    )
    return Section(
        "Who knows which coins", tuple(lines), columns=columns if rows else (), rows=tuple(rows)
    )


def _parties(names: Sequence[str]) -> str:
    """Name parties that know the same in full, and count those that do not fit."""
    more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def _groups(wallet: Wallet, unit: Unit) -> list[Section]:
    exposed = wallet.coin_set.exposed is not None
    lines = [
        "Safe: no party learns of a coin it did not know"
        + (", and no coin becomes exposed." if exposed else ".")
        + f" {ONE_OWNER}",
        "Bits are those of a payment made of the coins together. That they rise does not make a "
        "merge safe: they say nothing of who learns what.",
    ]
    rows = [
        (f"{kind}: {numbers_of(wallet, some.coins)}", *_figures(wallet, some, unit))
        for kind, some in wallet.groups
        if len(some.coins) > 1
    ]
    pairs = wallet.pairs or ()
    if len(wallet.holdings) > 2:
        shown = {some.coins for _, some in wallet.groups}
        rows += [
            (numbers_of(wallet, p.coins), *_figures(wallet, p, unit))
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
    return cells if some.exposure is None else [*cells, percent(some.exposure)]


def _bits(bits: float) -> str:
    return f"{bits:.4f}"


def _proposal(wallet: Wallet, proposal: Proposal, unit: Unit) -> Section:
    answer = proposal.answer
    exposed = answer.exposure is not None
    rows = [
        ("spends", _spent(wallet, c.name), value_words(c.value, unit), f"{c.bits:.4f}")
        + ((percent(c.exposure or 0.0),) if exposed else ())
        for c in answer.coins
    ]
    after = f"{answer.after.bits:.4f}"
    for output in answer.outputs:
        share = answer.exposure_of(output)
        cells = ("pays", output.address or "no address", value_words(output.value, unit), after)
        rows.append(cells + ((percent(share or 0.0),) if exposed else ()))
    if answer.fee is not None:
        rows.append(("fee", "", value_words(answer.fee, unit), "") + (("",) if exposed else ()))
    if not answer.outputs:
        values = [c.value for c in answer.coins]
        value = None if None in values else sum(v or 0 for v in values)
        cells = ("pays", "the payee", value_words(value, unit), after)
        rows.append(cells + ((percent(answer.exposure or 0.0),) if exposed else ()))
    columns = [("", LEFT), ("coin or address", LEFT), ("value", RIGHT), ("bits", RIGHT)]
    columns += [("exposure", RIGHT)] if exposed else []
    among = f"{2.0**answer.after.bits:,.1f}"
    lines = [
        f"{party_words(names)}: {numbers_of(wallet, one.unknown)} worth "
        f"{value_words(one.unknown_value, unit)} "
        f"{'stays' if len(one.unknown) == 1 else 'stay'} unknown to "
        f"{'it' if len(names) == 1 else 'each of them'}."
        for names, one in parties_by_what(proposal.disclosure.learns)
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
    number = number_of(wallet, name)
    return name if number == name else f"coin {number}: {name}"


def _suggestion(wallet: Wallet, suggestion: Suggestion, unit: Unit) -> Section:
    lines = [f"Why: {' '.join(suggestion.why)}", RULE]
    some = [] if suggestion.chosen is None else [(SPEND, suggestion.chosen), *suggestion.others]
    if any(choice.change and not choice.change_known for _, choice in some):
        lines.append(f"Not evident: others cannot tell which output is change. {PAYEE_KNOWS}")
    exposed = wallet.coin_set.exposed is not None
    rows = [(role, *_choice(wallet, choice, unit, exposed=exposed)) for role, choice in some]
    columns = [
        ("", LEFT), ("coins", LEFT), ("who else learns", LEFT), ("payee sees", LEFT),
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
        numbers_of(wallet, choice.coins),
        learns_words(wallet, others, unit, limit=MAX_NAMED) if others else "nobody",
        ", ".join(worth_learnt(one, unit) for one in choice.disclosure.learns if one.is_payee),
        change,
    ]
    assert choice.after is not None  # choices that are shown are weighed
    cells.append(_bits(choice.after.after.bits))
    return [*cells, percent(choice.after.exposure or 0.0)] if exposed else cells


def _made_by(made_by: Mapping[str, object]) -> Section:
    lines = [f"{made_by['software']}: {made_by['command']}"]
    inputs = made_by["inputs"]
    assert isinstance(inputs, list)
    lines += [f"{row['file']}: SHA-256 {row['sha256']}" for row in inputs]
    lines += [str(note) for note in made_by["notes"]]  # type: ignore[attr-defined]
    return Section("Made by", tuple(lines))
