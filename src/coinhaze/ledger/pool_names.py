"""How accounts of a mixing pool are called where a source tells no addresses for them."""

from __future__ import annotations

POOL, DEPOSIT, RELAYERS = "pool:", "deposit:", "relayers:"
