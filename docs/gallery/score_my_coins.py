"""Score my coins: how many bits each has, where its money came from, and which to spend.

With a ledger of your own: `score_my_coins.py LEDGER COIN COIN ... --amount N`.
"""

from __future__ import annotations

import argparse

import coinhaze
from coinhaze.simulate import simulate_town
from coinhaze.wallet.holdings import find_coin
from coinhaze.wallet.suggestion import suggest_coins
from coinhaze.wallet.wallet import weigh_wallet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ledger", nargs="?")
    parser.add_argument("coins", nargs="*")
    parser.add_argument("--amount", type=int, default=100_000)
    options = parser.parse_args()
    ledger = coinhaze.read(options.ledger) if options.ledger else simulate_town()
    graph = coinhaze.transaction_graph(ledger)
    # In the made-up town, the three last unspent coins are mine.
    names = options.coins or coinhaze.score(graph).to_arrow()["node"].to_pylist()[-3:]
    wallet = weigh_wallet(
        coinhaze.absorbing_chain(graph), [find_coin(graph, name) for name in names]
    )
    for holding in wallet.holdings:
        first = holding.origins[0]
        print(
            f"{holding.coin.name}: {holding.row.bits:.2f} bits, like "
            f"{holding.equal_origins:.1f} equal origins; likeliest {first.words} "
            f"({first.share:.1%})"
        )
    found = suggest_coins(wallet, options.amount)
    if found.chosen is not None:
        print(f"for {options.amount}: {', '.join(found.chosen.coins)}")
    for reason in found.why:
        print(f"  {reason}")


if __name__ == "__main__":
    main()
