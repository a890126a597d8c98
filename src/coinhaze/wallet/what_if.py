"""What if these coins were spent together: bits and exposure of the outputs, before sending.

Nothing else changes: in the coin view a new transaction comes after all existing ones, so no other
coin's past is affected, and all its outputs share one row, the mixture of its coins' rows. A
proposal is such a payment seen from a wallet, with warnings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from coinhaze.errors import InputError, LedgerError, UsageError, first_few
from coinhaze.formats.lists.coins import parse_entry
from coinhaze.graph.clusters.change import ChangeEvidence, evident_change
from coinhaze.ledger.coins import Input, Output, Transaction
from coinhaze.measures.mixture import Mixture
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.policies import PROPORTIONAL
from coinhaze.solve.local.mixing import listed_names, mix
from coinhaze.solve.structure.structure import Structure
from coinhaze.wallet.holdings import UnknownCoin, WalletCoin, coin_ledger, find_coin
from coinhaze.wallet.parties import payee_names
from coinhaze.wallet.wallet import Wallet
from coinhaze.wallet.who_learns import Disclosure

# An output is two steps from the coins spent for it: to its transaction, and to them.
TO_COINS = 2.0
LOSS = 1e-9  # bits; well above rounding errors


@dataclass(frozen=True, eq=False)
class SpentCoin:
    """A coin before it is spent; NaN where there is no answer."""

    name: str
    value: int | None
    bits: float
    bits_low: float
    bits_high: float
    exposure: float | None  # None where nothing is listed


@dataclass(frozen=True, eq=False)
class WhatIf:
    """A proposed transaction: its coins as they are, and the mixture its outputs would be."""

    coins: tuple[SpentCoin, ...]
    outputs: tuple[Output, ...]
    after: Mixture
    exposure: float | None
    fee: int | None
    listed: frozenset[str]

    @property
    def steps(self) -> float:
        """The expected steps of a walk back from an output."""
        return self.after.steps + TO_COINS

    def exposure_of(self, output: Output) -> float | None:
        """Return the exposure of one output: 1 if it is paid to a listed address itself."""
        return 1.0 if output.address in self.listed else self.exposure


def what_if(
    chain: AbsorbingChain,
    proposed: Transaction | Sequence[str],
    *,
    exposed: AbsorbingChain | None = None,
    unknown: Literal["refuse", "source"] = "refuse",
) -> WhatIf:
    """Score a transaction that is not in the ledger, without building a new ledger.

    `proposed` is a transaction, as returned by `read_psbt`, or the names of coins to combine.
    `exposed` is a chain of the same graph with a list, for exposure. A coin missing from the ledger
    raises an error, or with `unknown="source"` is a source of its own, as in any window.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "a", "outputs": [{"value": 5}]}, {"txid": "b", "outputs": [{"value": 5}]},
    ... ])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> what_if(chain, ["a:0", "b:0"]).after.bits
    1.0
    """
    if exposed is not None and (exposed.graph is not chain.graph or not exposed.listed):
        raise UsageError("`exposed` is a chain of the same graph, made with `listed`")
    inputs = proposed.inputs if isinstance(proposed, Transaction) else _inputs(proposed)
    outputs = proposed.outputs if isinstance(proposed, Transaction) else ()
    coins = [_find(chain, given, unknown) for given in inputs]
    fee = _fee(coins, outputs)
    own, listing = Structure(chain), None if exposed is None else Structure(exposed)
    return WhatIf(
        coins=tuple(_before(own, listing, coin) for coin in coins),
        outputs=outputs,
        after=_together(own, coins),
        exposure=None if listing is None else _together(listing, coins).exposure,
        fee=fee,
        listed=frozenset() if exposed is None else exposed.names_listed,
    )


def _inputs(names: Sequence[str]) -> tuple[Input, ...]:
    if isinstance(names, str) or not names:
        raise UsageError("name the coins to spend together: a list of txid:vout")
    parts = [name.rpartition(":") for name in names]
    for name, (txid, _, vout) in zip(names, parts, strict=True):
        if not txid or not (vout.isascii() and vout.isdigit()) or len(vout) > 10:
            raise InputError(f"not a coin: {name!r}; name it txid:vout")
    return tuple(Input(txid, int(vout)) for txid, _, vout in parts)


def _find(chain: AbsorbingChain, given: Input, unknown: str) -> WalletCoin:
    name = f"{given.txid}:{given.vout}"
    try:
        coin = find_coin(chain.graph, name)
    except UnknownCoin:
        if unknown != "source":
            raise
        if given.value is None or coin_ledger(chain.graph).complete:
            raise InputError(
                f"coin {name} is not in the ledger: as a source it needs a value, and a ledger "
                "that does not claim to be complete"
            ) from None
        return WalletCoin(name, None, given.value, given.address)
    if given.value is not None and coin.value is not None and given.value != coin.value:
        raise LedgerError(
            f"coin {name}",
            f"worth {coin.value} in the ledger, but in the proposal",
            value=given.value,
        )
    return coin


def _fee(coins: Sequence[WalletCoin], outputs: Sequence[Output]) -> int | None:
    values = [coin.value for coin in coins]
    paid = [output.value for output in outputs]
    if not outputs or None in values or None in paid:
        return None
    fee = sum(v or 0 for v in values) - sum(v or 0 for v in paid)
    if fee < 0:
        raise InputError(f"the outputs are worth {-fee} more than the coins that pay for them")
    return fee


def _before(chain: Structure, exposed: Structure | None, coin: WalletCoin) -> SpentCoin:
    now = _together(chain, [coin])
    exposure = None if exposed is None else _together(exposed, [coin]).exposure
    return SpentCoin(coin.name, coin.value, now.bits, now.bits_low, now.bits_high, exposure)


def _together(structure: Structure, coins: Sequence[WalletCoin]) -> Mixture:
    """Mix coins, unknown ones under the name a list may have for them."""
    chain = structure.chain
    known = [coin.node for coin in coins if coin.node is not None]
    values = [coin.value or 0 for coin in coins if coin.node is not None]
    listed = listed_names(chain)
    others: dict[str, float] = {}
    for coin in coins:
        if coin.node is None:
            name = coin.address if coin.address in listed else coin.name
            if name not in listed and {coin.name, coin.address} & chain.names_listed:
                raise InputError(
                    f"coin {coin.name} is listed, but the ledger knows neither it nor, under a "
                    "name of its own, its address: no share can be given for it"
                )
            others[str(name)] = others.get(str(name), 0.0) + (coin.value or 0)
    if others and chain.settings.get("policy") == PROPORTIONAL.name:
        return mix(structure, known, values, others=others)
    if others:
        raise UsageError(
            f"coins the ledger does not know are weighed by value: {PROPORTIONAL.name} only"
        )
    return mix(structure, known)


@dataclass(frozen=True, eq=False)
class Proposal:
    """A payment seen from a wallet: who learns what, what tells its change, and warnings."""

    answer: WhatIf
    what: str  # a file, or how the coins were named
    warnings: tuple[str, ...]
    disclosure: Disclosure  # of the coins that are the wallet's
    without_change: Disclosure  # what the same coins would tell if there were no change
    evidence: ChangeEvidence
    change: int | None  # the number of the output that is change: yours, or evident
    unneeded: tuple[str, ...]  # coins it spends that could be left out
    one_coin: str | None  # a coin of the wallet that would do alone

    @property
    def change_known(self) -> bool:
        """Whether an observer can tell the change."""
        return self.change is not None and self.evidence.output == self.change


def named_coins(text: str) -> list[str]:
    """Read a list of coin names.

    >>> named_coins("a:0, b:1")
    ['a:0', 'b:1']
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError("the list of coins to spend is empty: name them txid:vout,txid:vout")
    entries = [parse_entry(name, "--spend") for name in names]
    for entry in entries:
        if entry.coin is None:
            raise InputError(
                f"--spend: {entry.address or 'a key'} is no coin; name coins txid:vout"
            )
    return [entry.coin for entry in entries if entry.coin is not None]


def propose(wallet: Wallet, proposed: Transaction | Sequence[str], *, what: str) -> Proposal:
    """Evaluate a proposed payment against a wallet; raise an error for unknown coins."""
    answer = what_if(wallet.chain, proposed, exposed=wallet.coin_set.exposed)
    parties = wallet.parties
    held = [h for coin in answer.coins if (h := wallet.named(coin.name)) is not None]
    inputs = [Input("", 0, h.coin.value, h.coin.address) for h in held]
    evidence = evident_change(inputs, answer.outputs, parties.is_seen)
    change = _change(answer, wallet, evidence)
    addresses = [o.address for k, o in enumerate(answer.outputs) if k != change and o.spendable]
    payees = payee_names(parties, addresses)
    value = None if change is None else answer.outputs[change].value
    known = change is not None and evidence.output == change
    names = [h.coin.name for h in held]
    knowledge = parties.knowledge
    nothing = Disclosure((), payees, ())
    warnings = [
        *_ties(wallet, answer),
        *_losses(answer),
        *_strangers(wallet, answer),
        *_payments(answer),
    ]
    return Proposal(
        answer=answer,
        what=what,
        warnings=tuple(warnings),
        disclosure=knowledge.spend(names, payees=payees, change_value=value, change_known=known)
        if names
        else nothing,
        without_change=knowledge.spend(names, payees=payees) if names else nothing,
        evidence=evidence,
        change=change,
        unneeded=_unneeded(answer, change),
        one_coin=_one_coin(wallet, answer, change),
    )


def _change(answer: WhatIf, wallet: Wallet, evidence: ChangeEvidence) -> int | None:
    """Return the output that comes back: the one to an address of yours, else the evident one."""
    mine = [
        k
        for k, output in enumerate(answer.outputs)
        if output.address is not None and wallet.parties.is_mine(output.address)
    ]
    return mine[0] if len(mine) == 1 else evidence.output


def _payment(answer: WhatIf, change: int | None) -> int | None:
    """Return what the coins must be worth: all payments and the fee, but not the change."""
    if change is None or answer.fee is None:
        return None
    paid = (output.value or 0 for k, output in enumerate(answer.outputs) if k != change)
    return sum(paid) + answer.fee


def _unneeded(answer: WhatIf, change: int | None) -> tuple[str, ...]:
    """Return coins that can be left out, all of them at once: the smallest first."""
    needed = _payment(answer, change)
    if needed is None:
        return ()
    spare = sum(coin.value or 0 for coin in answer.coins) - needed
    found = []
    for coin in sorted(answer.coins, key=lambda coin: coin.value or 0):
        if (coin.value or 0) <= spare:
            found.append(coin.name)
            spare -= coin.value or 0
    return tuple(found)


def _one_coin(wallet: Wallet, answer: WhatIf, change: int | None) -> str | None:
    """Return the smallest coin that would pay alone, one that is spent anyway if there is one."""
    needed = _payment(answer, change)
    if needed is None or len(answer.coins) < 2:
        return None
    spent = {coin.name for coin in answer.coins}
    exposed = [h for h in wallet.holdings if h.coin.name in spent and wallet.is_exposed(h)]
    enough = [
        (h.coin.name not in spent, h.coin.value or 0, h.coin.name)
        for h in wallet.holdings
        if (h.coin.value or 0) >= needed and (exposed or not wallet.is_exposed(h))
    ]
    return min(enough)[2] if enough else None


def _ties(wallet: Wallet, answer: WhatIf) -> list[str]:
    exposed = [c.name for c in answer.coins if (c.exposure or 0.0) > wallet.limit]
    others = [c.name for c in answer.coins if c.name not in exposed]
    if not exposed:
        return []
    if not others:
        return [f"It spends exposed money: {answer.exposure or 0.0:.2%} of it is."]
    return [
        f"It ties {_names(exposed)}, exposed, to {_names(others)}, not exposed: "
        f"{answer.exposure:.2%} of every payment would be exposed."
    ]


def _losses(answer: WhatIf) -> list[str]:
    after = answer.after.bits
    worse = [coin for coin in answer.coins if coin.bits > after + LOSS]
    return [
        f"{coin.name} has {coin.bits:.4f} bits, the payment would have {after:.4f}: "
        f"{coin.bits - after:.4f} less."
        for coin in worse
    ]


def _strangers(wallet: Wallet, answer: WhatIf) -> list[str]:
    strange = [coin.name for coin in answer.coins if wallet.named(coin.name) is None]
    return [f"Not in your list of coins: {_names(strange)}."] if strange else []


def _payments(answer: WhatIf) -> list[str]:
    return [
        f"It pays {output.address}, which is listed: that payment is exposed."
        for output in answer.outputs
        if output.address in answer.listed
    ]


def _names(names: Sequence[str]) -> str:
    return first_few(list(names), 5)
