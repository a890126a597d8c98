"""The worked cases in tests/vectors, and ledgers made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from coinhaze import AccountLedger, CoinLedger

FOLDER = Path(__file__).parent / "vectors"


def load(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return document


def accounts(name: str) -> AccountLedger:
    document = load(name)
    return AccountLedger.from_transfers(document.get("transfers") or document["edges"])


def coins(name: str) -> CoinLedger:
    return CoinLedger.from_transactions(load(name)["transactions"])
