"""Figures and kinds that several models share."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from coinhaze.explore.query import Digits, Model

State = Literal[
    "ready", "loading", "not scored", "nothing followed", "missing", "locked", "damaged"
]
# What an origin is; the colour of the flow. `other` are origins folded into one.
OriginKind = Literal["earlier", "service", "mined", "listed", "other"]
NodeKind = Literal[
    "coin", "transaction", "coinjoin", "address", "account", "pool", "ring", "mint", "burn",
    "earlier", "service", "mined", "listed", "other",
    "unspent", "balance", "fee", "burned", "unspendable",
]  # fmt: skip
# Where money is at the end of the ledger.
DestinationKind = Literal["unspent", "balance", "fee", "burned", "unspendable", "other"]
Direction = Literal["backward", "forward"]
ThingKind = Literal["coin", "transaction", "address", "account", "block"]
GroupKind = Literal["address", "transaction", "block"]


def _known(value: Any) -> Any:
    """Turn what is not a number into None."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_known)]
Share = Annotated[float, Field(ge=0, le=1 + 1e-9)]
MaybeShare = Annotated[Share | None, BeforeValidator(_known)]
Count = Annotated[int, Field(ge=0)]


class Bits(Model):
    """Bits and where they lie: certified, it is proven; else that misses with probability `miss`.

    Where bits are a lower bound, the ends are those of the bound.

    >>> Bits(bits=float("nan"), bits_low=None, bits_high=None).bits is None
    True
    """

    bits: Number
    bits_low: Number
    bits_high: Number
    certified: bool = True
    miss: MaybeShare = 0.0  # at most; 0 where it is proven
    lower_bound: bool = False


class Amount(Model):
    """An amount: exact digits of the smallest unit, and as people write it."""

    smallest: Digits
    shown: str  # "0.0026 BTC"
    unit: str | None = None  # "BTC"; None where the ledger does not say: the smallest unit
