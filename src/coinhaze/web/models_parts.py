"""Kinds, numbers, bits and amounts: what all models are made of."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from coinhaze.web.asks import Digits, Model

State = Literal["ready", "loading", "not scored", "missing", "locked", "damaged"]
# What an origin is; the colour of the flow. `other` are origins folded into one.
OriginKind = Literal["earlier", "service", "mined", "listed", "other"]
NodeKind = Literal[
    "coin", "transaction", "coinjoin", "address", "account", "pool", "ring", "mint", "burn",
    "earlier", "service", "mined", "listed", "other",
]  # fmt: skip
ThingKind = Literal["coin", "transaction", "address", "account", "block"]
JobState = Literal["queued", "running", "done", "failed", "cancelled"]


def _known(value: Any) -> Any:
    """Turn what is not a number into None."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_known)]
Share = Annotated[float, Field(ge=0, le=1 + 1e-9)]
MaybeShare = Annotated[Share | None, BeforeValidator(_known)]
Count = Annotated[int, Field(ge=0)]


class Bits(Model):
    """Bits and where they are proven to lie; not certified: an estimate, ends are two errors off.

    Where bits are a lower bound, the ends are those of the bound.

    >>> Bits(bits=float("nan"), bits_low=None, bits_high=None).bits is None
    True
    """

    bits: Number
    bits_low: Number
    bits_high: Number
    certified: bool = True
    lower_bound: bool = False


class Amount(Model):
    """An amount: exact digits of the smallest unit, and as people write it."""

    smallest: Digits
    shown: str  # "0.0026 BTC"
    unit: str | None = None  # "BTC"; None where the ledger does not say


class Window(Model):
    """What part of a chain a ledger holds: heights, and seconds since 1970."""

    first_height: int | None = None
    last_height: int | None = None
    first_time: int | None = None
    last_time: int | None = None
