"""A wallet's report as plain values, for JSON: every figure, unrounded."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from coinhaze.formats.lists.bip329 import OUTPUT, Haze, label_lines
from coinhaze.observer.chain import reading_of
from coinhaze.observer.owners import CHANGE, COMMON_INPUTS, bits_column
from coinhaze.wallet.report import WalletReport
from coinhaze.wallet.suggestion import SpendChoice, Suggestion
from coinhaze.wallet.wallet import Combination, HeldCoin, Wallet
from coinhaze.wallet.what_if import Proposal
from coinhaze.wallet.who_learns import Disclosure
from coinhaze.wallet.words import IS_NOT, how_sure, observed_words, would_change


def wallet_json(report: WalletReport) -> str:
    """Return everything as JSON text; null where there is no answer."""
    return json.dumps(wallet_document(report), indent=1, allow_nan=False) + "\n"


def wallet_labels(report: WalletReport) -> str:
    """Return bits and exposure of the coins as labels, behind those they have (BIP-329)."""
    hazes = []
    for holding in report.wallet.holdings:
        low, high = holding.exposure, holding.exposure_high
        exposure = None if low is None or high is None else (low, high)
        hazes.append(Haze(holding.coin.name, holding.coin.label, holding.interval, exposure))
    return label_lines(hazes, OUTPUT)


def wallet_document(report: WalletReport) -> dict[str, object]:
    """Return everything as plain values."""
    wallet = report.wallet
    pairs = None if wallet.pairs is None else [_combination(wallet, p) for p in wallet.pairs]
    return {
        "provenance": None if report.made_by is None else dict(report.made_by),
        **reading_of(wallet.chain.settings),
        "total_value": wallet.total,
        "assumed_value": 0,  # coins are worth what the ledger says
        "exposure_limit": None if wallet.coin_set.exposed is None else wallet.limit,
        "observers": [observer.record() for observer in wallet.observers],
        "coins": [_holding(wallet, holding) for holding in wallet.holdings],
        "parties": _parties(wallet),
        "groups": [{"group": kind} | _combination(wallet, c) for kind, c in wallet.groups],
        "pairs": pairs,
        "proposal": None if report.proposal is None else _proposal(report.proposal),
        "suggestion": None if report.suggestion is None else _suggestion(report.suggestion),
        "how_sure": how_sure(wallet),
        "would_change": would_change(wallet),
        "is_not": list(IS_NOT),
    }


def _parties(wallet: Wallet) -> list[dict[str, object]]:
    names = [holding.coin.name for holding in wallet.holdings]
    return [
        {
            "party": party,
            "knows": list(coins),
            "unknown": [name for name in names if name not in coins],
        }
        for party, coins in wallet.parties.knowledge.known.items()
    ]


def _holding(wallet: Wallet, holding: HeldCoin) -> dict[str, object]:
    coin, row = holding.coin, holding.row
    origins = [{"source": o.source, "words": o.words, "share": o.share} for o in holding.origins]
    return {
        "coin": coin.name,
        "value": coin.value,
        "address": coin.address,
        "label": coin.label,
        "bits": row.bits,
        "bits_low": holding.interval[0],
        "bits_high": holding.interval[1],
        **_informed(holding),
        "observed": observed_words(holding) or None,
        "not_followed": 0.0 if holding.beyond is None else holding.beyond.open,
        "equal_origins": holding.equal_origins,
        "sources": len(row.outcomes) + len(row.others),
        "steps": row.steps,
        "exposure": holding.exposure,
        "exposure_high": holding.exposure_high,
        "known_to": list(wallet.parties.knowledge.knows(coin.name)),
        "exposed": wallet.is_exposed(holding) if wallet.coin_set.exposed is not None else None,
        "origins": origins,
    }


def _informed(holding: HeldCoin) -> dict[str, float | None]:
    """Give the bits of informed observers by the names that tables have; null where none is."""
    bits: dict[str, float | None] = {}
    for each in holding.informed:
        name = each.observer.column
        bits |= {name: each.bits, f"{name}_low": each.bits_low, f"{name}_high": each.bits_high}
    if not bits:
        names = [bits_column(name) for name in (COMMON_INPUTS, CHANGE)]
        bits = dict.fromkeys(f"{name}{end}" for name in names for end in ("", "_low", "_high"))
    return bits


def _combination(wallet: Wallet, some: Combination) -> dict[str, Any]:
    before = some.exposure_before
    return {
        "coins": list(some.coins),
        "bits_before": list(some.bits_before),
        "bits": some.after.bits,
        "bits_low": some.after.bits_low,
        "bits_high": some.after.bits_high,
        "exposure_before": None if before is None else list(before),
        "exposure": some.exposure,
        "exposes": list(some.taints(wallet.limit)),
        "learns": [
            {name: value for name, value in one.items() if name not in ("unknown", "is_payee")}
            for one in _learns(wallet.merging(some))
        ],
        "safe": wallet.is_safe(some),
    }


def _learns(found: Disclosure) -> list[dict[str, object]]:
    return [asdict(one) for one in found.learns]


def _proposal(proposal: Proposal) -> dict[str, object]:
    answer = proposal.answer
    coins = [
        {"coin": c.name, "value": c.value, "bits": _number(c.bits), "exposure": c.exposure}
        for c in answer.coins
    ]
    outputs = [
        {"address": o.address, "value": o.value, "exposure": answer.exposure_of(o)}
        for o in answer.outputs
    ]
    return {
        "what": proposal.what,
        "coins": coins,
        "outputs": outputs,
        "fee": answer.fee,
        "bits": _number(answer.after.bits),
        "bits_low": _number(answer.after.bits_low),
        "bits_high": _number(answer.after.bits_high),
        "steps": _number(answer.steps),
        "exposure": answer.exposure,
        "learns": _learns(proposal.disclosure),
        "nobody_but_payee": proposal.disclosure.nobody_but_payee,
        "learns_without_change": _learns(proposal.without_change),
        "change": proposal.change,
        "change_evident": proposal.change_known,
        "change_signs": [{"output": k, "because": why} for k, why in proposal.evidence.signs],
        "unneeded": list(proposal.unneeded),
        "one_coin": proposal.one_coin,
        "warnings": list(proposal.warnings),
    }


def _suggestion(suggestion: Suggestion) -> dict[str, object]:
    chosen = suggestion.chosen
    return {
        "amount": suggestion.amount,
        "payee": suggestion.payee,
        "spend": None if chosen is None else _choice(chosen),
        "instead": [{"role": role} | _choice(choice) for role, choice in suggestion.others],
        "tied": [list(choice.coins) for choice in suggestion.tied],
        "group": suggestion.group,
        "compared": suggestion.compared,
        "all_compared": suggestion.whole,
        "why": list(suggestion.why),
    }


def _choice(choice: SpendChoice) -> dict[str, Any]:
    after = choice.after
    assert after is not None  # choices that are shown are weighed
    return {
        "coins": list(choice.coins),
        "learns": _learns(choice.disclosure),
        "nobody_but_payee": choice.disclosure.nobody_but_payee,
        "change": choice.change,
        "change_evident": choice.change_known,
        "bits": after.after.bits,
        "bits_low": after.after.bits_low,
        "bits_high": after.after.bits_high,
        "exposure": after.exposure,
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
