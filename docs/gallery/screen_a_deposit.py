"""Screen a deposit: how much of it came from a list, by each rule, and along which way."""

from __future__ import annotations

import argparse

import coinhaze
from coinhaze.screening.screen import screen

# Somebody's money passes a shop and a friend before it is deposited.
PAID = [
    ("thief", "shop", 100),
    ("bob", "shop", 300),
    ("shop", "friend", 200),
    ("carol", "friend", 50),
    ("friend", "deposit", 240),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listed", nargs="+", default=["thief"])
    parser.add_argument("--deposit", default="deposit")
    options = parser.parse_args()
    ledger = coinhaze.AccountLedger.from_transfers(PAID)
    found = screen(ledger, options.listed, nodes=[options.deposit], time="temporal")
    for policy, shares in found.shares.items():
        print(f"{policy}: {shares[0]:.1%} of the deposit")
    for rule, why in found.undefined.items():
        print(f"{rule}: {why}")
    for route in found.routes:
        print("way:", " -> ".join(route.names))


if __name__ == "__main__":
    main()
