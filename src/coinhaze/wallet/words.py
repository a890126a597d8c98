"""The sentences of a wallet's report: how certain, what would change it, what it is not."""

from __future__ import annotations

from coinhaze.observer.policies import POLICIES, UNIFORM
from coinhaze.wallet.holdings import coin_ledger
from coinhaze.wallet.wallet import Wallet

EXACT = 1e-6  # bits; narrower intervals are due to rounding alone

IS_NOT = (
    "No proof of where money came from or whose it was: it is a measure of doubt, by a rule.",
    "No shelter from those who know more than the ledger: who sees your connection, your orders, "
    "or an exchange's books.",
    "Nothing about money before or outside this ledger, and nothing about what you do next.",
    "No legal finding, and no verdict on anyone: exposure is a share of money by a rule.",
)


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
        "further back. Its bits over the whole chain are proven to lie in the interval told, which "
        f"is up to {widest:.4f} bits wide; --accuracy asks for a narrower one, and "
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
        lines.append("Exposure is not told: no exposed addresses are named.")
    else:
        lines.append(
            f"The list of exposed addresses ({wallet.coin_set.exposed.settings['listed']} found in "
            "the ledger): another list, other exposure. Bits do not depend on it."
        )
        lines += [f"{note}." for note in wallet.coin_set.exposed.notes if note.startswith("list: ")]
    lines.append(f"What the ledger lacks ({wallet.chain.graph.ledger.completeness.line()}).")
    lines.append(
        "What is suggested depends on the amount, and where exposure is told on its limit."
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
