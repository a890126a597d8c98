"""A drawn coin: the figures of the example in the design, three rules, and flows of every shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

from coinhaze.explore.describe import (
    band_words,
    bits_words,
    equal_words,
    range_words,
    sentence,
    though_words,
)
from coinhaze.explore.models import (
    Amount,
    CoinAnswer,
    Comparators,
    Exposure,
    Flow,
    FlowBand,
    FlowColumn,
    FlowNode,
    Histogram,
    NodeKind,
    Origin,
    OriginKind,
    Other,
    Place,
    Rule,
    Sentence,
)
from coinhaze.explore.query import By, CoinQuery, Settings
from web.made import DIGEST, HOSTILE, MadeExplorer

COIN = "4f1e07c29b5d3a7788aa01be44c6d90e5f3327108b6ad2e4c19077f35e62a93c:1"
MANY = 100_000
TITLES = ("Coin", "1 hop", "2 hops", "3 hops", "4+ hops back", "Origins")
# id, column, kind, words, share; o: origins, in the order of their shares.
_NODES: tuple[tuple[str, int, NodeKind, str, float], ...] = (
    ("c", 0, "coin", "This coin", 1.0),
    ("a1", 1, "transaction", "Payment 9c41…7d", 1.0),
    ("b1", 2, "coinjoin", "CoinJoin 0f3b…a4", 0.614),
    ("b2", 2, "transaction", "Payout batch 5be0…11", 0.273),
    ("b3", 2, "transaction", "Payment 71d2…c8", 0.113),
    ("c1", 3, "coinjoin", "CoinJoin 88ac…9e", 0.38),
    ("c2", 3, "other", "118 transactions", 0.234),
    ("c3", 3, "transaction", "Payment e2a9…40", 0.052),
    ("c4", 3, "transaction", "Payment 71aa…0f", 0.082),
    ("d", 4, "other", "1,204 transactions", 0.574),
    ("o1", 5, "service", "Exchange North", 0.221),
    ("o2", 5, "mined", "Mined, block 668,977", 0.094),
    ("o3", 5, "earlier", "bc1q9x…k2fe", 0.078),
    ("o4", 5, "service", "Exchange Delta", 0.061),
    ("o5", 5, "earlier", "3KzQ…m7vT", 0.052),
    ("o6", 5, "mined", "Mined, block 669,015", 0.044),
    ("o7", 5, "listed", "1HxF…9dQe", 0.031),
    ("ox7", 5, "other", "Other, 4,320 origins", 0.419),
)
_BANDS = (
    ("a1", "c", 1.0, 0.031), ("b1", "a1", 0.614, 0), ("b2", "a1", 0.273, 0),
    ("b3", "a1", 0.113, 0.031), ("c1", "b1", 0.38, 0), ("c2", "b1", 0.234, 0),
    ("o1", "b2", 0.221, 0), ("c3", "b2", 0.052, 0), ("c4", "b3", 0.082, 0),
    ("o7", "b3", 0.031, 0.031), ("d", "c1", 0.302, 0), ("o3", "c1", 0.078, 0), ("d", "c2", 0.19, 0),
    ("o4", "c2", 0.044, 0), ("o5", "c3", 0.052, 0), ("d", "c4", 0.082, 0), ("o2", "d", 0.094, 0),
    ("o4", "d", 0.017, 0), ("o6", "d", 0.044, 0), ("ox7", "d", 0.419, 0),
)  # fmt: skip


def example_flow(*, by: By = "hop", cycles: bool = False) -> Flow:
    """Give the example's flow; with cycles one party is at two hops."""
    nodes = []
    for id_, column, kind, words, share in _NODES:
        folded = kind == "other"
        twin = cycles and id_ in ("b3", "c4")
        nodes.append(
            FlowNode(
                id=id_, column=column, kind=kind, name=None if folded else f"name-{id_}",
                words=words, share=share, ended=share if column == 5 else 0.0,
                listed=share if kind == "listed" else 0.0, count=4320 if id_ == "ox7" else 1,
                folded=folded, opens=folded, also=((5 - column,) if twin else ()),
                twin="p1" if twin else None, time=1_612_600_000 - 86_400 * column,
                href=None if folded or column in (0, 5) else f"/l/town/tx/{id_}",
            )
        )  # fmt: skip
    bands = [FlowBand(before=a, after=b, share=s, listed=t) for a, b, s, t in _BANDS]
    return flow_of(_columns(TITLES), nodes, bands, by=by)


def flow_of(
    columns: Sequence[FlowColumn],
    nodes: Sequence[FlowNode],
    bands: Sequence[FlowBand],
    *,
    by: By = "hop",
) -> Flow:
    """Put a flow together."""
    return Flow(
        by=by, columns=tuple(columns), nodes=tuple(nodes), bands=tuple(bands), text="Drawn."
    )


def _columns(titles: tuple[str, ...]) -> tuple[FlowColumn, ...]:
    last = len(titles) - 1
    return tuple(
        FlowColumn(title=t, hop=k if k < min(4, last) else None, reached=1.0)
        for k, t in enumerate(titles)
    )


def one_origin_flow() -> Flow:
    """Give a coin that came from one place."""
    return straight_flow([("mined", "Mined, block 7", 1.0)])


def straight_flow(origins: list[tuple[Any, str, float]]) -> Flow:
    """Give origins that lead straight to the coin."""
    nodes = [FlowNode(id="c", column=0, kind="coin", name=COIN, words="This coin", share=1.0)]
    for k, (kind, words, share) in enumerate(origins, 1):
        folded = kind == "other"
        nodes.append(
            FlowNode(
                id=f"o{k}", column=1, kind=kind, name=None if folded else f"name-o{k}",
                words=words, share=share, ended=share, folded=folded, opens=folded,
                listed=share if kind == "listed" else 0.0,
            )
        )  # fmt: skip
    bands = [FlowBand(before=n.id, after="c", share=n.share, listed=n.listed) for n in nodes[1:]]
    titles = ("Coin", "Origins")
    return flow_of(_columns(titles), nodes, bands)


def crowded_flow(origins: int = 8, per_hop: int = 6, hops: int = 4) -> Flow:
    """Give as many boxes as the folds allow, all of them small, each linked to each."""
    nodes = [FlowNode(id="c", column=0, kind="coin", name=COIN, words="This coin", share=1.0)]
    bands, newer = [], [("c", 1.0)]
    for hop in range(1, hops + 1):
        here = [(f"h{hop}n{k}", 1 / (per_hop + 1)) for k in range(per_hop + 1)]
        for k, (id_, share) in enumerate(here):
            folded = k == per_hop
            nodes.append(
                FlowNode(
                    id=id_, column=hop, kind="other" if folded else "transaction",
                    name=None if folded else id_, words=f"Payment {id_} with a long name",
                    share=share, folded=folded, opens=folded, count=99 if folded else 1,
                )
            )  # fmt: skip
            bands += [FlowBand(before=id_, after=to, share=share * s) for to, s in newer]
        newer = here
    for k in range(origins + 1):
        folded = k == origins
        share = 0.93 if folded else 0.07 / origins
        nodes.append(
            FlowNode(
                id=f"o{k}", column=hops + 1, kind="other" if folded else "earlier",
                name=None if folded else f"bc1q{k}" + "x" * 38, share=share, ended=share,
                words=f"Other, {MANY - origins:,} origins" if folded else f"bc1q{k}…xxxx",
                folded=folded, opens=folded, count=MANY - origins if folded else 1,
            )
        )  # fmt: skip
        bands += [FlowBand(before=f"o{k}", after=to, share=share * s) for to, s in newer]
    titles = ("Coin", *(f"{h} hops" for h in range(1, hops)), f"{hops}+ hops back", "Origins")
    return flow_of(_columns(titles), nodes, bands)


def drawn_coin(query: CoinQuery, *, flow: Flow | None = None, bits: float = 6.981) -> CoinAnswer:
    """Give the example's coin as its rule sees it."""
    if query.policy == "poison":
        flow, bits = straight_flow([("listed", "1HxF…9dQe", 1.0)]), 0.0
    elif query.policy == "fifo":
        parts = [("mined", "Mined, block 668,977", 0.541), ("service", "Exchange North", 0.3)]
        flow, bits = straight_flow([*parts, ("earlier", "bc1q9x…k2fe", 0.159)]), 1.415
    flow = flow or example_flow(by=query.by)
    last = max(n.column for n in flow.nodes)
    shown = [n for n in flow.nodes if n.column == last and not n.folded]
    kinds: dict[str, OriginKind] = {k: k for k in get_args(OriginKind)}
    origins = tuple(
        Origin(
            rank=k, name=n.name or "", words=n.words, kind=kinds[n.kind], share=n.share,
            amount=Amount(smallest="1", shown=f"{n.share * 0.0842:.4f} BTC"),
            label="Exchange North" if n.words == "Exchange North" else None,
        )
        for k, n in enumerate(shown, 1)
    )  # fmt: skip
    rest = 1 - sum(o.share for o in origins)
    count = sum(n.count for n in flow.nodes if n.column == last and n.folded)
    top = max(o.share for o in origins)
    certain = query.policy != "haircut"
    low, high = (bits, bits) if certain else (bits - 0.018, bits + 0.022)
    return CoinAnswer(
        bits=bits, bits_low=low, bits_high=high, ledger="town", digest=DIGEST, settings=query,
        name=COIN, kind="coin", amount=Amount(smallest="8421907", shown="0.084 219 07 BTC"),
        time=1_612_620_120, height=669_412, made_by=COIN[:-2], owner="bc1qowner" + "0" * 30,
        method="exact", steps=9.8, steps_nearest=3, sources=len(origins) + count,
        sentence=_sentence(bits, low, high, top), place=Place(bin=27, fewer=0.68, coins=3_200_000),
        top_share=top, origins=origins, other=Other(count=count, share=max(rest, 0.0)),
        exposure=_exposure(query), flow=flow,
    )  # fmt: skip


def _sentence(bits: float, low: float, high: float, top: float) -> Sentence:
    return Sentence(
        text=sentence(bits, top_share=top), equal_origins=2**bits, equal=equal_words(bits),
        band=band_words(bits), though=though_words(top, bits), shown=bits_words(bits, low, high),
        range=range_words(low, high),
    )  # fmt: skip


def _exposure(query: CoinQuery) -> Exposure | None:
    if query.list is None:
        return None
    poison = query.policy == "poison"
    share = None if poison else 0.031 if query.policy == "haircut" else 0.0
    return Exposure(
        list=query.list, policy=query.policy, listed=148, entries=0 if share == 0 else 1,
        share=share, share_low=share, share_high=share,
        amount=Amount(smallest="260000", shown="0.0026 BTC"), touched=True if poison else None,
        hops=3, text="Some of this coin's money touched a listed address 3 hops back.",
    )  # fmt: skip


class DrawnExplorer(MadeExplorer):
    """Made-up answers whose coin is the example's."""

    def histogram(self, query: Settings) -> Histogram:
        bell = [(3, 9, 1.6), (24, 7, 4.0), (40, 5, 3.5)]
        counts = [
            int(sum(h * 20_000 * math.exp(-(((k - m) / (2 * s)) ** 2)) for m, h, s in bell))
            for k in range(56)
        ]
        return Histogram(zeros=260_000, counts=tuple(counts))

    def coin(self, name: str, query: CoinQuery) -> CoinAnswer:
        used = self.settings(query)
        if name == "one":
            return drawn_coin(used, flow=one_origin_flow(), bits=0.0)
        if name == "crowd":
            return drawn_coin(used, flow=crowded_flow(), bits=15.4)
        if name == "cycle":
            return drawn_coin(used, flow=example_flow(cycles=True))
        if name == "hostile":
            return drawn_coin(used, flow=straight_flow([("service", HOSTILE, 1.0)]), bits=0.0)
        return drawn_coin(used) if name == COIN else super().coin(name, query)

    def comparators(self, name: str, query: Settings) -> Comparators:
        rules = (
            Rule(policy="haircut", bits=6.98, bits_low=6.96, bits_high=7.01, equal_origins=126,
                 exposure=0.031),
            Rule(policy="poison", bits=None, bits_low=None, bits_high=None, equal_origins=None,
                 exposure=None, touched=True),
        )  # fmt: skip
        return Comparators(ledger="town", name=name, rules=rules, measures=())
