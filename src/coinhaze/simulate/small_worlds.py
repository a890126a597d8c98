"""Small synthetic ledgers, each designed to test one property of a measure of traceability.

Every world is a list of transactions; origins are coinbases `origin0`, `origin1`, ... whose owners
are `miner0`, `miner1`, ... Worlds of rings pose the same tests to measures that are about rings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coinhaze.ledger import CoinLedger

Record = dict[str, Any]
UNIT = 1_000_000


@dataclass(frozen=True)
class World:
    """Transactions, and the coins that are to be scored."""

    records: tuple[Record, ...]
    scored: tuple[str, ...]
    listed: str = "miner0"  # the owner whose money taint follows
    links: dict[str, dict[str, float]] = field(default_factory=dict)  # what an observer knows
    owners: dict[str, str] = field(default_factory=dict)  # what a wallet knows: address to wallet

    def ledger(self) -> CoinLedger:
        """Return the validated ledger."""
        return CoinLedger.from_transactions(self.records)


class Coins:
    """Consecutive transactions, and the unspent coins."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.unspent: dict[str, tuple[int, str]] = {}

    def mine(self, value: int) -> str:
        """Mine a coin and return its name."""
        number = sum(not r["inputs"] for r in self.records)
        return self._add(f"origin{number}", [], [(value, f"miner{number}")])[0]

    def spend(self, coins: Sequence[str], outputs: Sequence[tuple[int, str]]) -> list[str]:
        """Spend coins and create others, without a fee; return their names."""
        inputs = [
            {"txid": name.rpartition(":")[0], "vout": int(name.rpartition(":")[2])}
            for name in coins
        ]
        for name in coins:
            del self.unspent[name]
        return self._add(f"t{len(self.records)}", inputs, outputs)

    def worth(self, coins: Sequence[str]) -> int:
        """Return the total value of coins."""
        return sum(self.unspent[name][0] for name in coins)

    def world(self, scored: Sequence[str]) -> World:
        """Return a world with coins to score. The k-th new coin of a mix is the k-th miner's."""
        owners = {
            output["address"]: output["address"].replace("new", "miner")
            for record in self.records
            for output in record["outputs"]
        }
        return World(tuple(self.records), tuple(scored), owners=owners)

    def _add(
        self, txid: str, inputs: list[Record], outputs: Sequence[tuple[int, str]]
    ) -> list[str]:
        paid = [{"value": value, "address": who} for value, who in outputs]
        self.records.append({"txid": txid, "inputs": inputs, "outputs": paid})
        names = [f"{txid}:{k}" for k in range(len(paid))]
        self.unspent.update(zip(names, outputs, strict=True))
        return names


def mixed(values: Sequence[int]) -> World:
    """Return a world in which coins of different origins are mixed into as many equal coins."""
    coins = Coins()
    origins = [coins.mine(value) for value in values]
    share, rest = divmod(sum(values), len(values))
    paid = [(share + (k < rest), f"new{k}") for k in range(len(values))]
    return coins.world(coins.spend(origins, paid))


def passed_on() -> World:
    """Return a world in which one coin is sent on once: its origin is certain."""
    coins = Coins()
    return coins.world(coins.spend([coins.mine(UNIT)], [(UNIT, "new0")]))


def merged() -> World:
    """Return a world in which two coins of different origins and values are merged."""
    coins = Coins()
    origins = [coins.mine(UNIT), coins.mine(3 * UNIT)]
    return coins.world(coins.spend(origins, [(4 * UNIT, "new0")]))


def random_coins(seed: int, *, steps: int = 12) -> tuple[Coins, np.random.Generator]:
    """Let a few people mine, pay, merge and mix for a while."""
    rng = np.random.default_rng(seed)
    coins = Coins()
    for _ in range(4):
        coins.mine(int(rng.integers(1, 50)) * UNIT)
    for _ in range(steps):
        if rng.random() < 0.15:
            coins.mine(int(rng.integers(1, 50)) * UNIT)
        names = list(coins.unspent)
        count = min(len(names), int(rng.integers(1, 4)))
        chosen = [names[k] for k in rng.choice(len(names), size=count, replace=False)]
        coins.spend(chosen, _paid(coins.worth(chosen), len(chosen), rng))
    return coins, rng


def before_and_after(seed: int) -> tuple[World, World]:
    """Return one to four coins of a random ledger, and the result of spending them together."""
    coins, rng = random_coins(seed)
    names = list(coins.unspent)
    count = min(len(names), int(rng.integers(1, 5)))
    chosen = [names[k] for k in rng.choice(len(names), size=count, replace=False)]
    before = coins.world(chosen)
    return before, coins.world(coins.spend(chosen, _paid(coins.worth(chosen), count, rng)))


def sent_on() -> list[tuple[World, World]]:
    """Return coins of perfect mixes and what sending them on yields: one, and two mixes in one."""
    coins = Coins()
    mix = coins.spend([coins.mine(UNIT) for _ in range(4)], [(UNIT, f"new{k}") for k in range(4)])
    before = coins.world(mix[:1])
    alone = before, coins.world(coins.spend(mix[:1], [(UNIT, "later0")]))
    coins = Coins()
    values = [UNIT, UNIT, 2 * UNIT, 2 * UNIT]
    origins = [coins.mine(value) for value in values]
    mixes = [
        name
        for k in (0, 2)
        for name in coins.spend(origins[k : k + 2], [(values[k], f"new{k + j}") for j in (0, 1)])
    ]
    before = coins.world(mixes)
    made = coins.spend(mixes, [(value, f"later{k}") for k, value in enumerate(values)])
    return [alone, (before, coins.world(made))]


def split_alone() -> list[tuple[World, World]]:
    """Return a coin, and the equal coins its owner splits it into, and mixes again alone."""
    coins = Coins()
    origins = [coins.mine(4 * UNIT), coins.mine(8 * UNIT)]
    coin = coins.spend(origins, [(4 * UNIT, "own"), (8 * UNIT, "other")])[:1]
    before = coins.world(coin)
    parts = coins.spend(coin, [(UNIT, "own")] * 4)
    cut = coins.world(parts)
    return [(before, cut), (before, coins.world(coins.spend(parts, [(UNIT, "own")] * 4)))]


def tampered(seed: int, *, moves: int = 6) -> tuple[World, World]:
    """Return a coin of a random ledger, and what its owner turns it into with no other money."""
    coins, rng = random_coins(seed)
    names = list(coins.unspent)
    own = [names[int(rng.integers(len(names)))]]
    before = coins.world(own)
    for _ in range(moves):
        count = min(len(own), int(rng.integers(1, 4)))
        chosen = [own[k] for k in rng.choice(len(own), size=count, replace=False)]
        own = [name for name in own if name not in chosen]
        worth = coins.worth(chosen)
        parts = _outputs(worth, count, rng)
        share = worth // parts  # equal coins, as made by someone who wants to resemble a crowd
        paid = [(share, "own")] * (parts - 1) + [(worth - share * (parts - 1), "own")]
        own += coins.spend(chosen, paid)
    return before, coins.world(own)


def informed() -> tuple[World, list[World]]:
    """Return a coin of a perfect mix of four, and the same for observers who know more about it.

    They know where it came from; that it came from one of two; that one origin is likely; or, being
    a wallet, that all coins of the mix are their owner's.
    """
    mix = mixed([UNIT] * 4)
    first = mix.scored[0]
    shares = ([1.0], [0.5, 0.5], [0.7, 0.1, 0.1, 0.1])
    links = [{first: {f"origin{k}:0": p for k, p in enumerate(some)}} for some in shares]
    know = [World(mix.records, (first,), links=some, owners=mix.owners) for some in links]
    own = World(mix.records, (first,), owners=dict.fromkeys(mix.owners, "one"))
    return World(mix.records, (first,), owners=mix.owners), [*know, own]


def crowded(sides: int = 60, seed: int = 1) -> World:
    """Return a CoinJoin of many people with amounts of their own, each of which comes out again."""
    rng = np.random.default_rng(seed)
    coins = Coins()
    values = rng.integers(1, 100 * UNIT, sides).tolist()
    origins = [coins.mine(value) for value in values]
    paid = rng.permutation(values).tolist()
    made = coins.spend(origins, [(value, f"new{k}") for k, value in enumerate(paid)])
    return coins.world(made)


def _outputs(worth: int, inputs: int, rng: np.random.Generator) -> int:
    """Draw the number of outputs: half of the time as many as inputs, else one to four."""
    return min(worth, inputs if rng.random() < 0.5 else int(rng.integers(1, 5)))


def _paid(worth: int, inputs: int, rng: np.random.Generator) -> list[tuple[int, str]]:
    """Split an amount into outputs, sometimes equal ones."""
    parts = _outputs(worth, inputs, rng)
    people = rng.integers(8, size=parts).tolist()
    if rng.random() < 0.4:
        sizes = [worth // parts] * (parts - 1)
    else:
        cuts = np.sort(rng.integers(1, worth, parts - 1)) if worth > parts else np.zeros(0)
        sizes = np.diff(np.concatenate([[0], cuts])).astype(int).tolist()
    sizes = [max(1, size) for size in sizes]
    last = worth - sum(sizes)
    if last < 1:
        sizes, last = [], worth
    return [(s, f"person{p}") for s, p in zip([*sizes, last], people, strict=False)]


def ring_of(size: int) -> World:
    """Return a world of one ring whose members are coins of different origins."""
    return _rings([[f"before{k}:0" for k in range(size)]])


def rings_before_and_after(seed: int) -> tuple[World, World]:
    """Return coins created by rings, and the coins created by spending one of them in a ring."""
    rng = np.random.default_rng(seed)
    first = [_members(rng, int(rng.integers(1, 6))) for _ in range(4)]
    made = [f"ring{k}:0" for k in range(int(rng.integers(1, 5)))]
    return _rings(first, scored=made), _rings([*first, made])


def ring_sent_on() -> list[tuple[World, World]]:
    """Return a coin created by a ring of four, and the same sent on without decoys."""
    first = [f"before{k}:0" for k in range(4)]
    return [(ring_of(4), _rings([first, ["ring0:0"]]))]


def ring_split_alone() -> list[tuple[World, World]]:
    """Return a coin, and what its owner makes of it with their own coins as decoys."""
    sent = [["before0:0"], ["ring0:0"], ["ring1:0"], ["ring2:0"]]
    return [(ring_of(1), _rings([*sent, [f"ring{k}:1" for k in range(4)]]))]


def rings_tampered(seed: int) -> tuple[World, World]:
    """Return a coin created by a ring, and what its owner makes of it with own decoys alone."""
    rng = np.random.default_rng(seed)
    first = [_members(rng, int(rng.integers(1, 6)))]
    own = int(rng.integers(1, 8))
    # The owner sends the coin to themselves again and again, with all coins so created as decoys.
    sent = [["ring0:0"]] + [[f"ring{k}:0"] for k in range(1, own)]
    decoys = [f"ring{k}:1" for k in range(1, own + 1)]
    return _rings(first), _rings([*first, *sent, decoys])


def ring_informed() -> tuple[World, list[World]]:
    """Return a ring of four, and the same for those who know the spent ones, or likely ones."""
    shares = ([1, 0, 0, 0], [1, 1, 0, 0], [7, 1, 1, 1])
    return ring_of(4), [ring_weighed(some) for some in shares]


def ring_weighed(shares: Sequence[int]) -> World:
    """Return a ring whose members are not equally likely to an observer."""
    world = ring_of(len(shares))
    likely = {f"before{k}:0": share / sum(shares) for k, share in enumerate(shares) if share}
    return World(world.records, world.scored, links={world.scored[0]: likely})


def many_rings(count: int = 400, size: int = 16, seed: int = 1) -> World:
    """Return many rings with members in common."""
    rng = np.random.default_rng(seed)
    rings = [_members(rng, size, of=2 * count) for _ in range(count)]
    return _rings(rings, scored=[f"ring{k}:0" for k in range(count)])


def _members(rng: np.random.Generator, size: int, *, of: int = 100) -> list[str]:
    return [f"before{k}:0" for k in sorted(rng.choice(of, size=size, replace=False).tolist())]


def _rings(rings: Sequence[Sequence[str]], *, scored: Sequence[str] = ()) -> World:
    """Return one transaction per ring, two outputs each; the last one's first coin is scored."""
    records = [
        {"txid": f"ring{k}", "rings": [list(members)], "outputs": 2}
        for k, members in enumerate(rings)
    ]
    return World(tuple(records), tuple(scored or [f"ring{len(rings) - 1}:0"]))


@dataclass(frozen=True)
class Worlds:
    """The same tests on ledgers of coins or of rings."""

    certain: Callable[[], World]
    doubtful: Callable[[], World]
    mix: Callable[[int], World]
    uneven: Callable[[int], World]  # two origins, one that many times as likely as the other
    sent_on: Callable[[], list[tuple[World, World]]]
    before_and_after: Callable[[int], tuple[World, World]]
    split_alone: Callable[[], list[tuple[World, World]]]
    tampered: Callable[[int], tuple[World, World]]
    informed: Callable[[], tuple[World, list[World]]]
    crowd: Callable[[], World]


COIN_WORLDS = Worlds(
    certain=passed_on,
    doubtful=merged,
    mix=lambda k: mixed([UNIT] * k),
    uneven=lambda times: mixed([UNIT, times * UNIT]),
    sent_on=sent_on,
    before_and_after=before_and_after,
    split_alone=split_alone,
    tampered=tampered,
    informed=informed,
    crowd=crowded,
)
RING_WORLDS = Worlds(
    certain=lambda: ring_of(1),
    doubtful=lambda: ring_of(2),
    mix=ring_of,
    uneven=lambda times: ring_weighed([1, times]),
    sent_on=ring_sent_on,
    before_and_after=rings_before_and_after,
    split_alone=ring_split_alone,
    tampered=rings_tampered,
    informed=ring_informed,
    crowd=many_rings,
)
