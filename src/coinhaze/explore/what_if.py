"""Coins of a ledger spent together: a what-if, or a pasted wallet with what to spend.

Answers are exact, or in a large ledger by the largest flows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from coinhaze.errors import InputError, UsageError
from coinhaze.explore.cache import progress
from coinhaze.explore.coin.exposure import Met, met, met_together
from coinhaze.explore.coin.observers import observed_bits
from coinhaze.explore.describe import OWNERSHIP
from coinhaze.explore.models import (
    Amount,
    Before,
    Group,
    PartyKnows,
    PartyLearns,
    Proposed,
    Suggested,
    Together,
    WalletAnswer,
    WhatIfAnswer,
)
from coinhaze.explore.nodes import Nodes
from coinhaze.explore.query import Settings, WalletQuery, WhatIfQuery, thing_link
from coinhaze.explore.views import LARGE, ViewOptions, Views
from coinhaze.formats.lists.coins import parse_coin_list, parse_entry
from coinhaze.formats.lists.parties import parse_parties
from coinhaze.formats.psbt import parse_psbt
from coinhaze.measures.mixture import Mixture, bits_beyond
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.policies import score_policies, weighing_policies
from coinhaze.solve.local.mixing import NearlyMixed, mix_nearly
from coinhaze.solve.local.past import past_of
from coinhaze.units import Unit
from coinhaze.wallet.holdings import WalletCoin, exposed_chain, find_coin, find_listed, network_of
from coinhaze.wallet.parties import NO_TABLE
from coinhaze.wallet.suggestion import SpendChoice, Suggestion, suggest_coins
from coinhaze.wallet.wallet import CoinSet, Combination, Wallet, weigh_wallet
from coinhaze.wallet.what_if import TO_COINS, Proposal, propose
from coinhaze.wallet.who_learns import Learnt
from coinhaze.wallet.words import (
    IS_NOT,
    how_sure,
    in_short,
    informed_words,
    learns_words,
    observed_words,
    verdict_words,
    would_change,
)

# Bits the intervals of a coin, and of coins together, may have. The exact way takes seconds in a
# large ledger: while somebody tries coins out, a wider interval at once says more.
WIDTH, TOGETHER = 0.1, 0.5
MAX_COINS = 500  # of a wallet that is weighed while somebody waits


class Bounded(Protocol):
    """Anything that tells bits and where they lie."""

    @property
    def bits(self) -> float:
        """The bits."""

    @property
    def bits_low(self) -> float:
        """Their lower bound."""

    @property
    def bits_high(self) -> float:
        """Their upper bound."""


class _Range(NamedTuple):
    bits: float
    bits_low: float
    bits_high: float


class CoinSets:
    """Coins of one view of a ledger that are to be spent."""

    def __init__(self, views: Views, nodes: Nodes, options: ViewOptions) -> None:
        self.views = views
        self.nodes = nodes
        self.options = options
        if options.ordered:
            others = [policy.column for policy in score_policies() if policy.weigh is not None]
            raise UsageError(
                f"{options.policy} depends on the order of a transaction's inputs, which is not "
                f"known before it is made: ask by {', '.join(others[:-1])} or {others[-1]}"
            )

    def listed_chain(self) -> AbsorbingChain | None:
        """Give the chain that tells exposure; None where nothing is listed, and under poison."""
        found = self.views.listed(self.options)
        if found is None or not found.names or self.options.rule.needs_list:
            return None
        return self.views.session(self.options, listed=True).chain

    def bounded(self, row: Mixture) -> Bounded:
        """Give bits with their interval: over the whole chain where only a part is at hand."""
        maximum = self.views.max_origins
        if maximum is None:
            return row
        beyond = bits_beyond(row, maximum)
        bits = min(max(row.bits, beyond.bits_low), beyond.bits_high)
        return _Range(bits, beyond.bits_low, beyond.bits_high)

    def before(
        self, coin: WalletCoin, row: Bounded, exposure: float | None, maximum: float | None
    ) -> Before:
        """Tell a coin as it is; `maximum` is the most its exposure can be."""
        return Before(
            name=coin.name,
            amount=self.amount([coin]),
            label=coin.label,
            bits=row.bits,
            bits_low=row.bits_low,
            bits_high=row.bits_high,
            lower_bound=self.lower_bound([coin]),
            exposure=exposure,
            exposure_high=maximum,
            href=thing_link(self.nodes.ledger, "coin", coin.name),
        )

    def together(self, some: Combination, coins: Sequence[WalletCoin], *, limit: float) -> Together:
        """Tell coins put together."""
        exposure = some.exposure
        row = self.bounded(some.after)
        chosen = [coin for coin in coins if coin.name in set(some.coins)]
        return Together(
            coins=some.coins,
            amount=self.amount(chosen),
            bits=row.bits,
            bits_low=row.bits_low,
            bits_high=row.bits_high,
            lower_bound=self.lower_bound(chosen),
            equal_origins=None if math.isnan(row.bits) else 2.0**row.bits,
            exposure=exposure,
            exposure_high=None if exposure is None else min(exposure + some.open, 1.0),
            ties=None if exposure is None else bool(some.taints(limit)),
        )

    def lower_bound(self, coins: Sequence[WalletCoin]) -> bool:
        """Tell whether bits of these coins, alone or together, are a lower bound."""
        bounds = self.views.session(self.options).chain.lower_bounds
        return bounds is not None and any(
            coin.node is not None and bool(bounds[coin.node]) for coin in coins
        )

    def amount(self, coins: Sequence[WalletCoin]) -> Amount | None:
        """Add up what coins are worth; None where that is hidden."""
        values = [coin.value for coin in coins]
        if None in values:
            return None
        return self.nodes.index.amount(sum(value or 0 for value in values))

    def what_if(self, ask: WhatIfQuery, settings: Settings, *, large: int = LARGE) -> WhatIfAnswer:
        """Say what spending coins together would do."""
        graph = self.nodes.graph
        coins = [find_coin(graph, name) for name in dict.fromkeys(ask.coins)]
        if len(coins) < len(ask.coins):
            raise InputError("a coin is named twice, and can be spent but once")
        if len(graph) > large and not self.options.rule.needs_list:
            nodes = [int(coin.node or 0) for coin in coins]
            found = mix_nearly(self.views.session(self.options).structure, nodes)
            if found.width <= TOGETHER:
                return self._nearly(coins, nodes, found, settings)
        return self._exactly(coins, settings)

    def _exactly(self, coins: Sequence[WalletCoin], settings: Settings) -> WhatIfAnswer:
        chain, listed = self.views.session(self.options).chain, self.listed_chain()
        coin_set = CoinSet(chain, coins, exposed=listed, max_origins=self.views.max_origins)
        alone = [coin_set.together([coin.name]) for coin in coins]
        after = coin_set.together([coin.name for coin in coins])
        steps = math.nan if after.open else after.after.steps + TO_COINS
        return WhatIfAnswer(
            ledger=self.nodes.ledger,
            settings=settings,
            before=tuple(
                self.before(
                    coin,
                    self.bounded(one.after),
                    one.exposure,
                    None if one.exposure is None else min(one.exposure + one.open, 1.0),
                )
                for coin, one in zip(coins, alone, strict=True)
            ),
            after=self.together(after, coins, limit=0.0),
            steps=None if math.isnan(steps) else steps,
            ownership=OWNERSHIP,
            notes=chain.notes if listed is None else listed.notes,
        )

    def _nearly(
        self,
        coins: Sequence[WalletCoin],
        nodes: Sequence[int],
        found: NearlyMixed,
        settings: Settings,
    ) -> WhatIfAnswer:
        structure, listed = (
            self.views.session(self.options).structure,
            self.views.listed(self.options),
        )
        solver = structure.local
        parts: list[Met | None] = [
            None
            if listed is None
            else met(self.views, self.options, listed, node, past_of(structure, node))
            for node in nodes
        ]
        before = (
            self.before(
                coin,
                solver.row(node, width=WIDTH),
                None if part is None else part.share,
                None if part is None else part.high,
            )
            for coin, node, part in zip(coins, nodes, parts, strict=True)
        )
        expected = (float(solver.bounded.steps[node]) for node in nodes)
        steps = TO_COINS + math.fsum(s * t for s, t in zip(found.shares, expected, strict=True))
        return WhatIfAnswer(
            ledger=self.nodes.ledger,
            settings=settings,
            before=tuple(before),
            after=self._after(coins, found, [p for p in parts if p is not None]),
            steps=None if math.isnan(steps) else steps,
            ownership=OWNERSHIP,
            notes=self.nodes.graph.notes,
        )

    def _after(
        self, coins: Sequence[WalletCoin], found: NearlyMixed, parts: Sequence[Met]
    ) -> Together:
        exposed = met_together(list(zip(parts, found.shares, strict=True))) if parts else None
        # A coin that is not exposed, for all that is known, is put with one that may be.
        ties = any(p.high <= 0 for p in parts) and any(p.high > 0 for p in parts)
        return Together(
            coins=tuple(coin.name for coin in coins),
            amount=self.amount(coins),
            bits=found.bits,
            bits_low=found.bits_low,
            bits_high=found.bits_high,
            lower_bound=self.lower_bound(coins),
            equal_origins=2.0**found.bits,
            exposure=None if exposed is None else exposed.share,
            exposure_high=None if exposed is None else exposed.high,
            ties=ties if parts else None,
        )

    def wallet(self, ask: WalletQuery, settings: Settings) -> WalletAnswer:
        """Weigh a wallet."""
        if not self.options.rule.shares:
            others = " or ".join(policy.column for policy in weighing_policies())
            raise UsageError(
                f"{self.options.policy} has no shares to weigh a wallet by: ask by {others}"
            )
        graph = self.nodes.graph
        coins, notes = find_listed(graph, parse_coin_list(ask.coins.encode(), where="coins"))
        if len(coins) > MAX_COINS:
            raise UsageError(
                f"{len(coins):,} coins are too many to weigh here, {MAX_COINS} at most: "
                "use coinhaze wallet"
            )
        chain = self.views.session(self.options).chain
        names = _exposed_names(ask.exposed)
        listed = self.listed_chain()
        if names:
            if self.options.list is not None:
                raise UsageError("name exposed addresses or a list, not both")
            part = self.views.max_origins is not None
            policy = str(chain.settings["policy"])
            listed = exposed_chain(graph, names, is_part=part, policy=policy)
        progress()(0.3)
        wallet = weigh_wallet(
            chain,
            coins,
            exposed=listed,
            limit=ask.limit,
            max_origins=self.views.max_origins,
            labels=self.nodes.labels,
            observers=self.views.observers(self.nodes.labels),
            known=parse_parties(ask.known, where="known") if ask.known.strip() else NO_TABLE,
        )
        suggestion = None
        if ask.amount is not None:
            amount = self.unit.read(ask.amount)
            payee = ask.payee.strip() or None
            suggestion = suggest_coins(wallet, amount, payee=payee, unit=self.unit)
        proposal = None
        if ask.psbt.strip():
            network = network_of(graph)
            sent = parse_psbt(ask.psbt.strip().encode(), network=network)
            proposal = propose(wallet, sent, what="the PSBT")
        answer = self._weighed(wallet, proposal, suggestion, settings)
        return answer.model_copy(update={"notes": (*answer.notes, *notes)})

    @property
    def unit(self) -> Unit:
        """What amounts are written in."""
        return self.nodes.index.unit

    def _weighed(
        self,
        wallet: Wallet,
        proposal: Proposal | None,
        suggestion: Suggestion | None,
        settings: Settings,
    ) -> WalletAnswer:
        pairs, exposed = wallet.pairs, wallet.coin_set.exposed
        groups = (
            Group(kind=kind, **self._merged(wallet, some).model_dump())  # type: ignore[arg-type]
            for kind, some in wallet.groups
        )
        names = tuple(holding.coin.name for holding in wallet.holdings)
        return WalletAnswer(
            ledger=self.nodes.ledger,
            settings=settings,
            total=None if wallet.total is None else self.nodes.index.amount(wallet.total),
            limit=wallet.limit,
            in_short=tuple(in_short(wallet, proposal, suggestion, self.unit)),
            informed=informed_words(wallet),
            coins=self._coins(wallet),
            parties=tuple(
                PartyKnows(
                    party=party,
                    knows=knows,
                    unknown=tuple(name for name in names if name not in knows),
                )
                for party, knows in wallet.parties.knowledge.known.items()
            ),
            proposal=None if proposal is None else self._proposed(proposal),
            groups=tuple(groups),
            pairs=None if pairs is None else tuple(self._merged(wallet, pair) for pair in pairs),
            suggestion=None if suggestion is None else self._suggested(wallet, suggestion),
            how_sure=" ".join(how_sure(wallet)),
            would_change=tuple(would_change(wallet)),
            is_not=IS_NOT,
            notes=(
                *(wallet.chain.notes if exposed is None else exposed.notes),
                *wallet.parties.notes,
            ),
        )

    def _merged(self, wallet: Wallet, some: Combination) -> Together:
        """Tell coins of a wallet that are merged: who learns what."""
        coins = [holding.coin for holding in wallet.holdings]
        update = {
            "safe": wallet.is_safe(some),
            "verdict": verdict_words(wallet, some, self.unit),
            "learns": self._learns(wallet.merging(some).learns),
        }
        return self.together(some, coins, limit=wallet.limit).model_copy(update=update)

    def _learns(self, learns: Sequence[Learnt]) -> tuple[PartyLearns, ...]:
        return tuple(
            PartyLearns(
                party=one.party,
                coins=one.coins,
                then_amount=self._shown(one.then_value),
                now_amount=self._shown(one.now_value),
                unknown=one.unknown,
                unknown_amount=self._shown(one.unknown_value),
                is_payee=one.is_payee,
            )
            for one in learns
        )

    def _shown(self, value: int | None) -> Amount | None:
        return None if value is None else self.nodes.index.amount(value)

    def _proposed(self, proposal: Proposal) -> Proposed:
        return Proposed(
            coins=tuple(coin.name for coin in proposal.answer.coins),
            learns=self._learns(proposal.disclosure.learns),
            nobody_but_payee=proposal.disclosure.nobody_but_payee,
            change=proposal.change,
            change_evident=proposal.change_known,
            change_signs=proposal.evidence.reasons,
            unneeded=proposal.unneeded,
            one_coin=proposal.one_coin,
            warnings=proposal.warnings,
        )

    def _coins(self, wallet: Wallet) -> tuple[Before, ...]:
        return tuple(
            self.before(
                holding.coin, self.bounded(holding.row), holding.exposure, holding.exposure_high
            ).model_copy(
                update={
                    "observers": tuple(map(observed_bits, holding.informed)),
                    "observed": observed_words(holding),
                }
            )
            for holding in wallet.holdings
        )

    def _suggested(self, wallet: Wallet, suggestion: Suggestion) -> Suggested:
        chosen = suggestion.chosen
        return Suggested(
            amount=self.nodes.index.amount(suggestion.amount),
            spend=None if chosen is None else self._choice(wallet, chosen),
            instead=tuple(self._choice(wallet, choice) for _, choice in suggestion.others),
            why=suggestion.why,
        )

    def _choice(self, wallet: Wallet, choice: SpendChoice) -> Together:
        assert choice.after is not None  # choices that are shown are weighed
        others = choice.disclosure.others
        update = {
            "verdict": learns_words(wallet, others, self.unit, limit=3) if others else "nobody",
            "learns": self._learns(choice.disclosure.learns),
            "change": self.nodes.index.amount(choice.change),
            "change_evident": choice.change_known,
        }
        coins = [holding.coin for holding in wallet.holdings]
        return self.together(choice.after, coins, limit=wallet.limit).model_copy(update=update)


def _exposed_names(text: str) -> list[str]:
    """Read addresses or coins that were pasted, one per line, each once."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    entries = [parse_entry(line, f"exposed:{k + 1}") for k, line in enumerate(lines) if line]
    return list(dict.fromkeys(entry.coin or entry.address or "" for entry in entries))
