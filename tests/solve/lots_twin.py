"""Ordered policies on plain lists: every lot of every node, moved by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import Any, Literal

import twin

Order = Literal["fifo", "lifo"]
Queue = list[tuple[str, int]]
POOLS = ("pool:sprout", "pool:sapling", "pool:orchard", "pool:ironwood", "pool:shielded")


@dataclass
class Told:
    """Queues at the end, by node; queues of nodes when they came to be; fees."""

    end: dict[str, Queue] = field(default_factory=dict)
    born: dict[str, Queue] = field(default_factory=dict)
    fees: Queue = field(default_factory=list)

    def of(self, node: str) -> Queue:
        """Give what is told of a node: what it holds, or else what it held at first."""
        return merged(self.end.get(node) or self.born[node])

    def everything(self) -> dict[str, int]:
        """Add all money up by source."""
        return by_source([*self.fees, *(lot for queue in self.end.values() for lot in queue)])


def merged(queue: Queue) -> Queue:
    """Melt neighbours of one source together."""
    result: Queue = []
    for source, amount in queue:
        if result and result[-1][0] == source:
            result[-1] = (source, result[-1][1] + amount)
        else:
            result.append((source, amount))
    return result


def by_source(queue: Queue) -> dict[str, int]:
    total: dict[str, int] = {}
    for source, amount in queue:
        total[source] = total.get(source, 0) + amount
    return total


def take(queue: Queue, amount: int, order: Order) -> Queue:
    """Take an amount from the front or the back of a queue; what is taken, in the order taken."""
    at = 0 if order == "fifo" else -1
    taken: Queue = []
    while amount > 0:
        source, size = queue[at]
        part = min(size, amount)
        taken.append((source, part))
        amount -= part
        if part == size:
            queue.pop(at)
        else:
            queue[at] = (source, size - part)
    return taken


def renamed(queue: Queue, label: str | None) -> Queue:
    return queue if label is None else [(label, amount) for _, amount in queue]


def labelled(opening: Mapping[str, int], listed: Mapping[str, str] | None) -> dict[str, Queue]:
    """Give what was there at the start, as its own source, or as listed or not."""
    if listed is None:
        return {name: [(name, amount)] for name, amount in opening.items()}
    return {name: [(listed.get(name, twin.ELSEWHERE), amount)] for name, amount in opening.items()}


def coin_queues(
    transactions: Sequence[Mapping[str, Any]],
    order: Order,
    *,
    pools: twin.Pools = "each",
    listed: Mapping[str, str] | None = None,
) -> Told:
    """Follow the coins of a ledger; `listed` gives nodes the label their money gets."""
    graph = twin.coin_graph(transactions, pools)
    steps, _ = twin._steps(transactions, pools)
    told = Told(end=labelled(graph.opening, listed))
    told.born = {name: list(queue) for name, queue in told.end.items()}
    label = listed or {}
    count = dict.fromkeys(POOLS, 0)
    for pool in POOLS:
        told.end[pool] = told.end.pop(f"{pool}:0", [])
    for step in steps:
        line = told.end.pop(step.node, [])
        for coin in step.spends:
            line += renamed(told.end.pop(coin.name), label.get(step.node))
        for pool in POOLS:
            out = max(-step.pools.get(pool, 0), 0)
            line += renamed(take(told.end[pool], out, order), label.get(step.node))
        told.born[step.node] = list(line)
        for coin in step.makes:
            queue = renamed(take(line, coin.value, order), label.get(coin.name))
            told.end[coin.name] = queue
            told.born[coin.name] = list(queue)
        for pool in POOLS:
            into = max(step.pools.get(pool, 0), 0)
            if into:
                count[pool] += 1
                node = f"{pool}:{count[pool]}"
                told.end[pool] += renamed(take(line, into, order), label.get(node))
                told.born[node] = list(told.end[pool])
        told.fees += line
    for pool in POOLS:
        told.end[f"{pool}:{count[pool]}"] = told.end.pop(pool)
    return told


def account_queues(
    transfers: Iterable[twin.Transfer],
    order: Order,
    *,
    opening: Mapping[str, int] | None = None,
    listed: Mapping[str, str] | None = None,
    mint: Literal["each", "one"] = "each",
) -> Told:
    """Follow the accounts of a ledger: queues, or stacks, that open with what they need."""
    rows = list(transfers)
    graph = twin.account_graph(
        rows, "temporal", opening="surplus" if opening is None else opening, mint=mint
    )
    told = Told()
    queues: dict[str, Queue] = {}
    for name, queue in labelled(graph.opening, listed).items():
        queues[graph.owner.get(name, name)] = queue
        told.born[name] = list(queue)
    label = listed or {}
    count: dict[str, int] = {}
    for row, (sender, receiver, amount) in enumerate(rows):
        if amount == 0 or sender == receiver:
            continue
        minted, burnt = (mint == "each" and name == twin.ZERO for name in (sender, receiver))
        tail = f"mint:{row}" if minted else sender
        head = f"burn:{row}" if burnt else receiver
        count[head] = count.get(head, 0) + 1
        node = head if burnt else f"{head}:{count[head]}"
        taken = renamed(take(queues[tail], amount, order), label.get(node))
        queues.setdefault(head, []).extend(taken)
        told.born[node] = list(queues[head])
    for name, queue in queues.items():
        lone = name.startswith(("mint:", "burn:"))
        told.end[name if lone else f"{name}:{count.get(name, 0)}"] = queue
    return told


def tiho(
    transactions: Sequence[Mapping[str, Any]], listed: Mapping[str, str], entries: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Give the listed money of every coin left, and what each transaction keeps of it."""
    graph = twin.coin_graph(transactions)
    steps, _ = twin._steps(transactions, "each")
    held = {name: {listed[name]: worth} for name, worth in graph.opening.items() if name in listed}
    for step in steps:
        line = held.pop(step.node, {})
        for coin in step.spends:
            for source, amount in held.pop(coin.name, {}).items():
                line[source] = line.get(source, 0) + amount
        if step.node in listed and step.spends:
            line = {listed[step.node]: sum(coin.value for coin in step.spends)}
        ranked = sorted(range(len(step.makes)), key=lambda k: (-step.makes[k].value, k))
        for coin in (step.makes[k] for k in ranked):
            part = in_proportion(line, min(coin.value, sum(line.values())), entries)
            line = {source: amount - part.get(source, 0) for source, amount in line.items()}
            held[coin.name] = {listed[coin.name]: coin.value} if coin.name in listed else part
        held[step.node] = line
    return {
        name: {source: amount for source, amount in taints.items() if amount}
        for name, taints in held.items()
        if any(taints.values())
    }


def in_proportion(line: Mapping[str, int], amount: int, entries: Sequence[str]) -> dict[str, int]:
    """Split an amount by exact shares, rounded down, the rest to the largest parts lost."""
    total = sum(line.values())
    if total == 0:
        return {}
    exact = {source: Fraction(amount * has, total) for source, has in line.items()}
    part = {source: floor(share) for source, share in exact.items()}
    for _ in range(amount - sum(part.values())):
        maximum = max(exact[source] - part[source] for source in line)
        first = min(entries.index(s) for s in line if exact[s] - part[s] == maximum)
        part[entries[first]] += 1
        exact[entries[first]] = Fraction(part[entries[first]])
    return part
