"""What if these coins were spent together: bits and exposure of the outputs, before sending.

Nothing else changes: in the coin view a new transaction comes after all existing ones, so no other
coin's past is affected, and all its outputs share one row, the mixture of its coins' rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from coinhaze.errors import InputError, LedgerError, UsageError
from coinhaze.ledger.coins import Input, Output, Transaction
from coinhaze.measures.mixture import Mixture
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.policies import PROPORTIONAL
from coinhaze.solve.local.mixing import listed_names, mix
from coinhaze.solve.structure.structure import Structure
from coinhaze.wallet.holdings import UnknownCoin, WalletCoin, coin_ledger, find_coin

# An output is two steps from the coins spent for it: to its transaction, and to them.
TO_COINS = 2.0


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
                    "name of its own, its address: no share can be told for it"
                )
            others[str(name)] = others.get(str(name), 0.0) + (coin.value or 0)
    if others and chain.settings.get("policy") == PROPORTIONAL.name:
        return mix(structure, known, values, others=others)
    if others:
        raise UsageError(
            f"coins the ledger does not know are weighed by value: {PROPORTIONAL.name} only"
        )
    return mix(structure, known)
