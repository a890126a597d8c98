"""Sentences about a wallet: how sure, who learns what, what can be merged, what a payment shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coinhaze.measures.by_owner import observers_sentence
from coinhaze.observer.policies import POLICIES, UNIFORM
from coinhaze.units import Unit
from coinhaze.wallet.holdings import coin_ledger
from coinhaze.wallet.suggestion import Suggestion
from coinhaze.wallet.wallet import Combination, HeldCoin, Wallet
from coinhaze.wallet.what_if import Proposal
from coinhaze.wallet.who_learns import CHANGE, ONE_OWNER, Learnt

EXACT = 1e-6  # bits; narrower intervals are due to rounding alone

APART = 0.5  # bits between the naive and the most informed observer that are worth a sentence

IS_NOT = (
    "No proof of where money came from or whose it was: it is a measure of doubt, by a rule.",
    "No shelter from those who know more than the ledger: who sees your connection, your orders, "
    "or an exchange's books.",
    "Nothing about money before or outside this ledger, and nothing about what you do next.",
    "No legal finding, and no verdict on anyone: exposure is a share of money by a rule.",
)

NO_PARTY = "no known party learns of another coin"
PAYEE_KNOWS = "The payee knows its own output, so it can take the rest for yours."

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
        "The window. Money from before it is one origin per coin; an earlier start can raise the "
        "bits or lower them.",
    ]
    if wallet.coin_set.exposed is None:
        lines.append("Exposure is not given: no exposed addresses are named.")
    else:
        lines.append(
            f"The list of exposed addresses ({wallet.coin_set.exposed.settings['listed']} found in "
            "the ledger): with another list, exposure differs. Bits do not depend on it."
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
        "Bits: how uncertain an observer of this ledger is of where the money came from. 0 is one "
        "certain origin, 1 is two equally likely ones, 10 is 1,024; more is better hidden."
    )


def exposure_words(limit: float) -> str:
    """Explain exposure."""
    above = "any" if limit == 0 else f"more than {limit:.2%}"
    return (
        "Exposure: the share of the money that came from names on the list. A coin with "
        f"{above} counts as exposed."
    )


def number_of(wallet: Wallet, name: str) -> str:
    """Return a coin's number in the wallet; somebody else's coin has its name."""
    for place, holding in enumerate(wallet.holdings, 1):
        if holding.coin.name == name:
            return str(place)
    return name


def numbers_of(wallet: Wallet, names: Sequence[str]) -> str:
    """List the numbers of coins."""
    numbers = [number_of(wallet, name) for name in names]
    shown = ", ".join(numbers[:MAX_ROWS]) + (", ..." if len(numbers) > MAX_ROWS else "")
    return f"coin {shown}" if len(numbers) == 1 else f"coins {shown}"


def informed_words(wallet: Wallet) -> str:
    """Say who the informed observer of a wallet's coins is; or why there is none."""
    if not wallet.observers:
        return (
            "Informed bits are not given: nothing is inferred about the owners of this ledger's "
            "coins, since it does not tell their amounts or their origins."
        )
    steps = "; ".join(f"{each.assumes} ({each.sure()})" for each in wallet.observers)
    part = (
        " Owners are inferred from the transactions that were fetched; an observer who knows "
        "more of the chain may infer others."
        if wallet.coin_set.max_origins is not None
        else ""
    )
    return f"Informed bits: to an observer who groups origins by owner and assumes: {steps}.{part}"


def observed_words(holding: HeldCoin) -> str:
    """Say what each observer lacks of a coin, where that is known and is not much the same."""
    if not holding.informed or holding.row.bits - holding.informed[-1].bits < APART:
        return ""
    low, high = holding.interval
    if high - low > EXACT:
        return ""
    stated = [(each.observer.name, each.bits) for each in holding.informed]
    return observers_sentence(holding.row.bits, stated)


def percent(share: float) -> str:
    """Format a share so that a little is not shown as nothing, nor nearly all as all."""
    if 0 < share < 5e-5:
        return "<0.01%"
    return ">99.99%" if 1 - 5e-5 < share < 1 else f"{share:.2%}"


def value_words(value: int | None, unit: Unit) -> str:
    """Write a value in its unit; "hidden" where amounts are hidden."""
    return "hidden" if value is None else unit.words(value)


def in_short(
    wallet: Wallet, proposal: Proposal | None, suggestion: Suggestion | None, unit: Unit
) -> Iterator[str]:
    """Answer first: the payment proposed, the coins suggested, or whether coins can be merged."""
    if proposal is not None:
        yield from proposal_words(wallet, proposal, unit)
    if suggestion is not None:
        yield advice_words(wallet, suggestion, unit)
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
    return f"Merging all coins is safe, as far as is known: {NO_PARTY}. {ONE_OWNER}"


def proposal_words(wallet: Wallet, proposal: Proposal, unit: Unit) -> Iterator[str]:
    """Give the verdict on a payment: who learns what, whether change is evident, what would do."""
    found = proposal.disclosure
    if proposal.answer.outputs and found.nobody_but_payee:
        yield "No known party but the payee learns anything from it."
    elif not found.learns:
        yield "Nobody learns of a coin it did not know."
    if found.learns:
        yield f"Who learns what: {learns_words(wallet, found.learns, unit)}."
    if proposal.one_coin is not None:
        yield (
            f"One coin would do: {numbers_of(wallet, [proposal.one_coin])} pays this alone, and "
            "shows no others."
        )
    elif proposal.unneeded:
        spared = numbers_of(wallet, proposal.unneeded)
        yield f"It does not need {spared}: leave out what shows more."
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
            f"Change is evident: the {value_words(output.value, unit)} to "
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
            "Change is not evident: amounts, address types and reuse do not tell outputs apart. "
            f"{PAYEE_KNOWS}"
        )


def learns_words(
    wallet: Wallet, learns: Sequence[Learnt], unit: Unit, *, limit: int | None = None
) -> str:
    """Describe who learns what, those who are not paid first; the same is said once for all."""
    groups = parties_by_what(learns)
    parts = [_learnt(wallet, names, one, unit) for names, one in groups[:limit]]
    left = sum(len(names) for names, _ in groups[len(parts) :])
    more = f"; {left:,} other {'party learns' if left == 1 else 'parties learn'} something else"
    return "; ".join(parts) + (more if left else "")


def parties_by_what(learns: Sequence[Learnt]) -> list[tuple[list[str], Learnt]]:
    """Group the parties that learn the same; those that are paid come last."""
    groups: dict[tuple[object, ...], tuple[list[str], Learnt]] = {}
    for one in sorted(learns, key=lambda one: one.is_payee):
        same = (one.is_payee, one.coins, one.then_value, one.now_value, one.unknown)
        groups.setdefault(same, ([], one))[0].append(one.party)
    return list(groups.values())


def party_words(names: Sequence[str]) -> str:
    """Name a few of several parties, and count the others.

    >>> party_words(["ann"]), party_words(["ann", "ben"]), party_words(["ann", "ben", "cy"])
    ('ann', 'ann and ben', 'ann and 2 other parties')
    """
    if len(names) > 2:
        return f"{short_name(names[0])} and {len(names) - 1:,} other parties"
    return " and ".join(map(short_name, names))


def _learnt(wallet: Wallet, names: Sequence[str], one: Learnt, unit: Unit) -> str:
    coins = [name for name in one.coins if name != CHANGE]
    parts = [numbers_of(wallet, coins)] if coins else []
    parts += ["the change"] if len(coins) < len(one.coins) else []
    paid = " (paid)" if one.is_payee else ""
    verb = "learns" if len(names) == 1 else "learn"
    each = "" if len(names) == 1 else " each"
    worth = worth_learnt(one, unit)
    return f"{party_words(names)}{paid}{each} {verb} {' and '.join(parts)} ({worth})"


def worth_learnt(one: Learnt, unit: Unit) -> str:
    """Give what is learnt of coins that are spent, and of change, which was part of them."""
    return ", ".join(
        f"{value_words(value, unit)} {word}"
        for value, word in ((one.then_value, "spent"), (one.now_value, "still yours"))
        if value != 0
    )


def short_name(name: str) -> str:
    """Shorten a long address; names stay whole.

    >>> short_name("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"), short_name("my employer")
    ('1A1zP1…DivfNa', 'my employer')
    """
    return name if len(name) <= MAX_LETTERS or " " in name else f"{name[:6]}…{name[-6:]}"


def verdict_words(wallet: Wallet, some: Combination, unit: Unit) -> str:
    """Say whether coins can be merged: who would learn what, and what would become exposed."""
    learns, exposes = wallet.merging(some).learns, some.taints(wallet.limit)
    if not learns and not exposes:
        return f"safe: {NO_PARTY}; onlookers see one owner"
    parts = [learns_words(wallet, learns, unit, limit=MAX_NAMED)] if learns else []
    if exposes:
        verb = "may expose" if some.open > 0 else "exposes"
        parts.append(f"{verb} {numbers_of(wallet, exposes)}")
    return f"keep apart: {'; '.join(parts)}"


def advice_words(wallet: Wallet, suggestion: Suggestion, unit: Unit) -> str:
    """Say which coins to spend, and who learns what from that."""
    amount = unit.words(suggestion.amount)
    if suggestion.chosen is None:
        return f"To pay {amount}: no suggestion. {suggestion.why[0]}"
    chosen = suggestion.chosen
    ties = len(suggestion.tied)
    tie = f" It is a tie with {ties:,} other choice{'s' if ties > 1 else ''}." if ties else ""
    others = chosen.disclosure.others
    who = (
        learns_words(wallet, others, unit, limit=MAX_NAMED)
        if others
        else "No known party but the payee learns anything"
    )
    return (
        f"To pay {amount}: spend {numbers_of(wallet, chosen.coins)} ({' and '.join(chosen.coins)})."
        f" {who}.{tie}"
    )
