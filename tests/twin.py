"""The slow twin: the whole model in exact fractions and plain dictionaries, to test against."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, Literal

ZERO = "0x" + "0" * 40
ELSEWHERE = "elsewhere"

Transfer = tuple[str, str, int]
Transaction = Mapping[str, Any]
Source = tuple[Literal["source"], str]
Target = str | Source
Row = dict[Target, Fraction]
Rows = dict[str, Row]
Opening = Literal["surplus", "observed"] | Mapping[str, int]
Time = Literal["stationary", "temporal"]
Pools = Literal["each", "merged"]

# A unit is what happens at one moment: moves (tail, head, amount), all spending before receipts.
Unit = list[Transfer]


@dataclass
class Graph:
    """A transaction graph: merged edges, opening balances and sinks."""

    nodes: set[str] = field(default_factory=set)
    edges: dict[tuple[str, str], int] = field(default_factory=dict)
    opening: dict[str, int] = field(default_factory=dict)
    sinks: set[str] = field(default_factory=set)
    newest: dict[str, str] = field(default_factory=dict)  # account -> its newest snapshot
    owner: dict[str, str] = field(default_factory=dict)  # snapshot or coin -> account or address

    def add(self, tail: str, head: str, amount: int) -> None:
        """Add an amount to an edge."""
        self.nodes |= {tail, head}
        self.edges[tail, head] = self.edges.get((tail, head), 0) + amount

    def node(self, name: str) -> str:
        """Give the node that a name means: an account's newest snapshot, or the node itself."""
        return self.newest.get(name, name)

    def predecessors(self, node: str) -> dict[str, int]:
        """Give the amounts that came into a node, by predecessor."""
        return {tail: amount for (tail, head), amount in self.edges.items() if head == node}


@dataclass(frozen=True)
class Answer:
    """What is known of one node's money: where from, after how many steps, how uncertain."""

    distribution: dict[str, Fraction]
    steps: Fraction
    bits: float


# ---------------------------------------------------------------- openings and assembly


def _min_openings(units: Sequence[Unit], accounts: set[str], temporal: bool) -> dict[str, int]:
    """Give each account the least opening balance that covers its spending."""
    balance = dict.fromkeys(accounts, 0)
    lowest = dict.fromkeys(accounts, 0)
    for unit in units:
        for tail, _, amount in unit:
            if tail in accounts:
                balance[tail] -= amount
                lowest[tail] = min(lowest[tail], balance[tail])
        for _, head, amount in unit:
            if head in accounts:
                balance[head] += amount
    if temporal:
        return {account: -lowest[account] for account in accounts}
    return {account: max(0, -balance[account]) for account in accounts}


def _openings(
    minimum: Mapping[str, int],
    opening: Opening,
    top_up: bool,
    clusters: Mapping[str, str],
) -> dict[str, int]:
    """Apply the surplus or the user's table to the accounts of a ledger."""
    if isinstance(opening, str):
        return dict(minimum)
    table: dict[str, int] = {}
    for name, amount in opening.items():
        entity = clusters.get(name, name)
        table[entity] = table.get(entity, 0) + amount
    result = {}
    for account, needed in minimum.items():
        given = table.get(account, 0)
        if given < needed and not top_up:
            raise ValueError(f"opening balance of {account} is {needed - given} too low")
        result[account] = max(given, needed)
    return result


def _assemble(
    units: Sequence[Unit],
    opening: Mapping[str, int],
    snapshots: set[str],
    never_sinks: Collection[str] = (),
) -> Graph:
    """Build the graph, giving each account in `snapshots` a new node at every receipt."""
    graph = Graph()
    number = dict.fromkeys(snapshots, 0)
    balance = {account: opening.get(account, 0) for account in snapshots}

    def now(name: str) -> str:
        return f"{name}:{number[name]}" if name in snapshots else name

    for name, amount in opening.items():
        if amount > 0:
            graph.nodes.add(now(name))
            graph.opening[now(name)] = amount
            if name in snapshots:
                graph.owner[now(name)] = name
    for unit in units:
        tails = {tail: now(tail) for tail, _, _ in unit}
        for tail, _, amount in unit:
            if tail in snapshots:
                balance[tail] -= amount
        for name in dict.fromkeys(head for _, head, _ in unit):
            if name in snapshots:
                before = now(name)
                number[name] += 1
                graph.owner[now(name)] = name
                if balance[name] > 0:
                    graph.add(before, now(name), balance[name])
        for tail, head, amount in unit:
            graph.add(tails[tail], now(head), amount)
            if head in snapshots:
                balance[head] += amount
    graph.newest = {name: now(name) for name in snapshots}
    received = {head for _, head in graph.edges}
    left = closing(graph)
    graph.sinks = {node for node in received - set(never_sinks) if left[node] > 0}
    return graph


def closing(graph: Graph) -> dict[str, int]:
    """Give every node's closing balance: opening + in - out."""
    balance = {node: graph.opening.get(node, 0) for node in graph.nodes}
    for (tail, head), amount in graph.edges.items():
        balance[tail] -= amount
        balance[head] += amount
    return balance


# ---------------------------------------------------------------- edges and accounts


def graph_from_edges(edges: Iterable[Transfer]) -> Graph:
    """Build the stationary graph of bare edges, opening balances by surplus."""
    return account_graph(edges, mint="one")


def account_graph(
    transfers: Iterable[Transfer],
    time: Time = "stationary",
    opening: Opening = "surplus",
    top_up: bool = False,
    mint: Literal["each", "one"] = "each",
    clusters: Mapping[str, str] | None = None,
) -> Graph:
    """Build the graph of an account ledger from its transfers in order."""
    if opening == "observed":
        raise ValueError("observed openings are for coins only")
    entity = clusters or {}
    units: list[Unit] = []
    accounts: set[str] = set()
    minted: dict[str, int] = {}
    for row, (sender, receiver, amount) in enumerate(transfers):
        mints = mint == "each" and sender == ZERO
        burns = mint == "each" and receiver == ZERO
        tail = f"mint:{row}" if mints else entity.get(sender, sender)
        head = f"burn:{row}" if burns else entity.get(receiver, receiver)
        if amount == 0 or sender == receiver or tail == head:
            continue
        if mints:
            minted[tail] = amount
        else:
            accounts.add(tail)
        if not burns:
            accounts.add(head)
        units.append([(tail, head, amount)])
    minimum = _min_openings(units, accounts, time == "temporal")
    openings = minted | _openings(minimum, opening, top_up, entity)
    return _assemble(units, openings, accounts if time == "temporal" else set())


# ---------------------------------------------------------------- coins and addresses


@dataclass(frozen=True)
class _Coin:
    """One output of a transaction: its name, value and owner."""

    name: str
    value: int
    owner: str


@dataclass
class _Step:
    """One transaction with its coins resolved and its pool flows netted."""

    node: str
    spends: list[_Coin]
    makes: list[_Coin]
    pools: dict[str, int]  # net flow into each pool
    minted: int  # what it is worth as a coinbase, 0 if it is none


def _owner(address: str | Sequence[str] | None, coin: str) -> str:
    """Name the owner of a coin: its address, its sorted addresses, or the coin itself."""
    if not address:
        return coin
    return address if isinstance(address, str) else ",".join(sorted(set(address)))


def _steps(transactions: Iterable[Transaction], pools: Pools) -> tuple[list[_Step], list[_Coin]]:
    """Resolve the coins of a ledger; give its steps and the old coins spent in it."""
    known: dict[str, _Coin] = {}
    old: list[_Coin] = []
    steps = []
    for transaction in transactions:
        txid = transaction["txid"]
        spends = []
        for entry in transaction["inputs"]:
            name = f"{entry['txid']}:{entry['vout']}"
            if name not in known:
                if entry.get("value") is None:
                    raise ValueError(f"{txid} spends {name}, whose value is unknown")
                known[name] = _Coin(name, entry["value"], _owner(entry.get("address"), name))
                old.append(known[name])
            spends.append(known[name])
        makes = []
        for vout, output in enumerate(transaction["outputs"]):
            name = f"{txid}:{vout}"
            known[name] = _Coin(name, output["value"], _owner(output.get("address"), name))
            makes.append(known[name])
        flows = dict(transaction.get("pools") or {})
        shielded = sum(flow for flow in flows.values() if flow > 0)
        unshielded = sum(-flow for flow in flows.values() if flow < 0)
        money_in = sum(coin.value for coin in spends) + unshielded
        money_out = sum(coin.value for coin in makes) + shielded
        coinbase = not spends and unshielded == 0
        if not coinbase and money_out > money_in:
            raise ValueError(f"{txid} pays out {money_out - money_in} more than it takes in")
        if pools == "merged":
            flows = {"shielded": sum(flows.values())}
        steps.append(
            _Step(
                node=f"tx:{txid}",
                spends=[coin for coin in spends if coin.value > 0],
                makes=[coin for coin in makes if coin.value > 0],
                pools={f"pool:{name}": flow for name, flow in flows.items() if flow != 0},
                minted=money_out if coinbase else 0,
            )
        )
    return steps, [coin for coin in old if coin.value > 0]


def _units(steps: Iterable[_Step], node_of: Mapping[str, str]) -> list[Unit]:
    """Write steps as moves, each coin standing at the node that `node_of` gives it."""
    units = []
    for step in steps:
        unit = [(node_of[coin.name], step.node, coin.value) for coin in step.spends]
        unit += [(pool, step.node, -flow) for pool, flow in step.pools.items() if flow < 0]
        unit += [(step.node, node_of[coin.name], coin.value) for coin in step.makes]
        unit += [(step.node, pool, flow) for pool, flow in step.pools.items() if flow > 0]
        units.append(unit)
    return units


def coin_graph(
    transactions: Iterable[Transaction],
    pools: Pools = "each",
    opening: Opening = "surplus",
    top_up: bool = False,
) -> Graph:
    """Build the coin view of a UTXO ledger; `opening` is for its pools only."""
    steps, old = _steps(transactions, pools)
    coins = {coin.name: coin for step in steps for coin in step.spends + step.makes}
    units = _units(steps, {name: name for name in coins})
    pool_nodes = {pool for step in steps for pool in step.pools}
    minimum = _min_openings(units, pool_nodes, temporal=True)
    openings = {step.node: step.minted for step in steps}
    openings |= {coin.name: coin.value for coin in old}
    openings |= _openings(minimum, opening, top_up, {})
    graph = _assemble(units, openings, pool_nodes, {step.node for step in steps})
    graph.nodes |= {step.node for step in steps}
    graph.owner |= {name: coin.owner for name, coin in coins.items() if coin.owner != name}
    return graph


def address_graph(
    transactions: Iterable[Transaction],
    time: Time = "stationary",
    opening: Opening = "surplus",
    top_up: bool = False,
    pools: Pools = "each",
    clusters: Mapping[str, str] | None = None,
) -> Graph:
    """Build the address view of a UTXO ledger."""
    entity = clusters or {}
    steps, old = _steps(transactions, pools)
    coins = {coin.name: coin for step in steps for coin in step.spends + step.makes}
    node_of = {name: entity.get(coin.owner, coin.owner) for name, coin in coins.items()}
    units = _units(steps, node_of)
    accounts = set(node_of.values()) | {pool for step in steps for pool in step.pools}
    openings = _openings(
        _min_openings(units, accounts, time == "temporal"), opening, top_up, entity
    )
    if opening == "observed":
        openings |= dict.fromkeys(node_of.values(), 0)
        for coin in old:
            openings[node_of[coin.name]] += coin.value
    openings |= {step.node: step.minted for step in steps}
    # A coin without an address is its own owner, and coins have no snapshots.
    snapshots = accounts - set(coins) if time == "temporal" else set()
    graph = _assemble(units, openings, snapshots, {step.node for step in steps})
    graph.nodes |= {step.node for step in steps}
    return graph


# ---------------------------------------------------------------- rings


def ring_graph(transactions: Iterable[Transaction]) -> Graph:
    """Build the coin view of a ring ledger, where every edge out of a choice weighs the same."""
    graph = Graph()
    made: set[str] = set()
    for transaction in transactions:
        txid = transaction["txid"]
        graph.nodes.add(f"tx:{txid}")
        if not transaction["rings"]:
            graph.opening[f"tx:{txid}"] = 1
        for vin, ring in enumerate(transaction["rings"]):
            graph.add(f"ring:{txid}:{vin}", f"tx:{txid}", 1)
            for member in ring:
                graph.add(member, f"ring:{txid}:{vin}", 1)
                if member not in made:
                    graph.opening[member] = 1
        for vout in range(transaction["outputs"]):
            graph.add(f"tx:{txid}", f"{txid}:{vout}", 1)
            made.add(f"{txid}:{vout}")
    graph.sinks = made
    return graph


# ---------------------------------------------------------------- walks


def _row(weights: Mapping[Target, int]) -> Row:
    """Turn weights into probabilities; no weight at all gives an empty row."""
    total = sum(weights.values())
    return {target: Fraction(weight, total) for target, weight in weights.items()}


def _weights(graph: Graph, node: str) -> dict[Target, int]:
    """Give what a node's money came from: its predecessors and its own opening."""
    weights: dict[Target, int] = {}
    for tail, amount in graph.predecessors(node).items():
        weights[tail] = amount
    if graph.opening.get(node, 0) > 0:
        weights["source", node] = graph.opening[node]
    return weights


def proportional(graph: Graph) -> Rows:
    """Walk back in proportion to the amounts."""
    return {node: _row(_weights(graph, node)) for node in sorted(graph.nodes)}


def uniform(graph: Graph) -> Rows:
    """Walk back to every distinct predecessor alike, the own opening counting as one."""
    return {node: _row(dict.fromkeys(_weights(graph, node), 1)) for node in sorted(graph.nodes)}


def listed_nodes(graph: Graph, listed: Mapping[str, str] | Collection[str]) -> dict[str, str]:
    """Give the label of every listed node; an account stands for its coins and snapshots."""
    labels = listed if isinstance(listed, Mapping) else {name: name for name in listed}
    result = {}
    for node in graph.nodes:
        if node in labels:
            result[node] = labels[node]
        elif graph.owner.get(node) in labels:
            result[node] = labels[graph.owner[node]]
    return result


def poison(graph: Graph, listed: Mapping[str, str] | Collection[str]) -> Rows:
    """Walk back over tainted nodes alike until a listed one; clean nodes get an empty row."""
    if not listed:
        raise ValueError("poison needs a list")
    labels = listed_nodes(graph, listed)
    tainted = set(labels)
    while True:
        more = {head for tail, head in graph.edges if tail in tainted} - tainted
        if not more:
            break
        tainted |= more
    rows: Rows = {}
    for node in sorted(graph.nodes):
        if node in labels:
            rows[node] = {("source", labels[node]): Fraction(1)}
        elif node in tainted:
            rows[node] = _row({tail: 1 for tail in graph.predecessors(node) if tail in tainted})
        else:
            rows[node] = {}
    return rows


def with_sources(
    graph: Graph, rows: Mapping[str, Row], listed: Mapping[str, str] | Collection[str]
) -> Rows:
    """Make listed nodes absorb on arrival and lump every other source as elsewhere."""
    labels = listed_nodes(graph, listed)
    result: Rows = {}
    for node, row in rows.items():
        if node in labels:
            result[node] = {("source", labels[node]): Fraction(1)}
            continue
        result[node] = {}
        for target, share in row.items():
            lumped: Target = ("source", ELSEWHERE) if isinstance(target, tuple) else target
            result[node][lumped] = result[node].get(lumped, Fraction(0)) + share
    return result


def with_link(
    rows: Mapping[str, Row],
    receiver: str,
    predecessor: str,
    share: Fraction,
    distribution: Mapping[str, Fraction],
) -> Rows:
    """Move a share of the receiver's row from the predecessor onto the given nodes."""
    if sum(distribution.values()) != 1:
        raise ValueError(f"the link into {receiver} does not sum to 1")
    row = dict(rows[receiver])
    left = row.pop(predecessor, Fraction(0)) - share
    if left < 0:
        raise ValueError(f"the link into {receiver} moves more than {predecessor} paid")
    if left > 0:
        row[predecessor] = left
    for node, probability in distribution.items():
        if share * probability > 0:
            row[node] = row.get(node, Fraction(0)) + share * probability
    return {**rows, receiver: row}


# ---------------------------------------------------------------- solving


def certain(rows: Mapping[str, Row]) -> set[str]:
    """Give the nodes whose walk is sure to be absorbed."""
    # A node that can reach an absorber has hope; it is sure if it can reach only nodes with hope.
    hope: set[str] = set()
    while True:
        more = {
            node
            for node, row in rows.items()
            if any(isinstance(target, tuple) or target in hope for target in row)
        } - hope
        if not more:
            break
        hope |= more
    lost = set(rows) - hope
    while True:
        more = {node for node, row in rows.items() if any(target in lost for target in row)} - lost
        if not more:
            break
        lost |= more
    return set(rows) - lost


def solve(rows: Mapping[str, Row]) -> dict[str, Answer | None]:
    """Solve a walk exactly; None where absorption is not certain."""
    for node, row in rows.items():
        if any(share < 0 for share in row.values()) or (row and sum(row.values()) != 1):
            raise ValueError(f"the row of {node} is not a distribution")
        for target in row:
            if isinstance(target, str) and target not in rows:
                raise ValueError(f"{node} walks to {target}, which has no row")
    positive = {
        node: {target: share for target, share in row.items() if share > 0}
        for node, row in rows.items()
    }
    sure = certain(positive)
    # Each row says: my answer = sum of shares times the targets' answers, and one step more.
    known = {node: dict(positive[node]) for node in rows if node in sure}
    steps = {node: Fraction(1) for node in known}
    for pivot in known:
        # Solve the pivot's row for the pivot itself, then put it into every other row.
        scale = 1 / (1 - known[pivot].pop(pivot, Fraction(0)))
        known[pivot] = {target: scale * share for target, share in known[pivot].items()}
        steps[pivot] *= scale
        for node, row in known.items():
            if node != pivot and pivot in row:
                factor = row.pop(pivot)
                steps[node] += factor * steps[pivot]
                for target, share in known[pivot].items():
                    row[target] = row.get(target, Fraction(0)) + factor * share
    answers: dict[str, Answer | None] = {}
    for node in rows:
        if node not in sure:
            answers[node] = None
            continue
        distribution = {
            target[1]: share for target, share in known[node].items() if isinstance(target, tuple)
        }
        answers[node] = Answer(distribution, steps[node], entropy(distribution))
    return answers


# ---------------------------------------------------------------- measures


def _context(distribution: Mapping[str, Fraction]) -> Context:
    """Give a decimal context with 60 digits after the zeros of 1 minus the largest share."""
    rest = 1 - max(distribution.values())
    digits = 60 + (len(str(int(1 / rest))) if rest > 0 else 0)
    return Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX)


def _decimal(value: Fraction) -> Decimal:
    """Write a fraction as a decimal of the context's precision."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def entropy(distribution: Mapping[str, Fraction]) -> float:
    """Give the Shannon entropy in bits."""
    with localcontext(_context(distribution)):
        positive = [_decimal(p) for p in distribution.values() if p > 0]
        bits = -sum((p * p.ln() for p in positive), Decimal(0)) / Decimal(2).ln()
        return abs(float(bits))


def renyi(distribution: Mapping[str, Fraction], order: float | Fraction) -> float:
    """Give the Renyi entropy in bits; order 0 is Hartley, 1 Shannon, infinity min-entropy."""
    if order < 0:
        raise ValueError("the order of a Renyi entropy is not negative")
    if order == 1:
        return entropy(distribution)
    with localcontext(_context(distribution)):
        positive = [_decimal(p) for p in distribution.values() if p > 0]
        if order == float("inf"):
            bits = -max(positive).ln() / Decimal(2).ln()
        else:
            alpha = _decimal(Fraction(order))
            total = sum((p**alpha for p in positive), Decimal(0))
            bits = total.ln() / (1 - alpha) / Decimal(2).ln()
        return abs(float(bits))


def _history(values: Sequence[int]) -> dict[str, Fraction]:
    """Give the distribution of the values that entered a source."""
    return {str(i): Fraction(value, sum(values)) for i, value in enumerate(values)}


def with_history(answer: Answer, source: str, values: Sequence[int]) -> float:
    """Give the bits once a source stands for its earlier values, by the chain rule."""
    share = answer.distribution.get(source, Fraction(0))
    return float(Fraction(answer.bits) + share * Fraction(entropy(_history(values))))


def expanded(answer: Answer, source: str, values: Sequence[int]) -> dict[str, Fraction]:
    """Give the distribution with a source replaced by its earlier values, `source#i`."""
    result = {name: share for name, share in answer.distribution.items() if name != source}
    for name, part in _history(values).items():
        result[f"{source}#{name}"] = answer.distribution.get(source, Fraction(0)) * part
    return result
