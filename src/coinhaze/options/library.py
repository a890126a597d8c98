"""Options of the library: reading a ledger, its graph, its observer, solving, and measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from coinhaze.options.option import option

if TYPE_CHECKING:
    from coinhaze.graph.graph import TransactionGraph
    from coinhaze.ledger.links import Links as Links
    from coinhaze.solve.pool.cluster import WorkerCluster as WorkerCluster
else:  # the types of the API need these modules; starting a command does not
    WorkerCluster = object
    Links = Mapping
    TransactionGraph = object

View: TypeAlias = Literal["coin", "address", "account"]
Time: TypeAlias = Literal["stationary", "temporal"]
Opening: TypeAlias = Literal["surplus", "observed"] | Mapping[str, int]
Clustering: TypeAlias = Literal["common-input", "common-input-no-coinjoins", "change"]
Unknown: TypeAlias = Literal["error", "leave-out"]
PolicyLike: TypeAlias = str | Callable[[TransactionGraph], object] | object  # or a matrix
Nodes: TypeAlias = Literal["sinks", "all"] | Iterable[str]
Accuracy: TypeAlias = Literal["exact", "preview"] | float
Method: TypeAlias = Literal["auto", "sweep", "eliminate", "series", "published"]
Over: TypeAlias = Literal["worst", "mean"]
Preset: TypeAlias = Literal["paper"]
Grouping: TypeAlias = Literal["year", "month", "height", "value", "age", "script-type"]
Device: TypeAlias = Literal["cpu", "gpu", "auto"]


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Reading a ledger."""

    format: str | None = option(
        None,
        "Format of the files; recognised by their content unless given.",
        metavar="NAME",
        registry="coinhaze.formats.registry:format_names",
    )
    complete: bool = option(
        False, "The ledger begins with its chain: spending an unknown coin is an error."
    )
    first: str | int | None = option(
        None, "Where to begin: a block height or a time.", spelling="--from"
    )
    last: str | int | None = option(
        None, "Where to end, inclusive: a block height or a time.", spelling="--to"
    )
    token: str | None = option(None, "Which token to read, by its address.", metavar="ADDRESS")
    columns: str | None = option(
        None,
        "Which columns of a table of transfers tell what, where their names do not say it: "
        "from=sender,to=receiver,amount=value.",
        metavar="WHAT=NAME,...",
    )
    decimals: int | None = option(
        None,
        "Places that the amounts of a table have after the point, 18 for ether; without it they "
        "are whole numbers of the smallest unit.",
        minimum=0,
        maximum=77,
    )
    unit: str | None = option(
        None,
        "What amounts are shown in: a known unit such as BTC or DAI, NAME:DECIMALS for another, or "
        "smallest.",
        metavar="NAME[:DECIMALS]",
        default_words="by the ledger's source, token or addresses; else the smallest unit",
    )
    unknown: Unknown = option(
        "error",
        "What to do where the value of a spent coin is not known: stop with an error, or leave "
        "out what depends on it.",
    )


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """Building the transaction graph."""

    view: View | None = option(
        None, "What a node stands for.", default_words="coin, or account for transfers"
    )
    time: Time | None = option(
        None,
        "Whether the order of payments counts.",
        default_words="stationary; temporal with --listed",
    )
    opening: Opening = option(
        "surplus",
        "What accounts held before: the least that explains what they spent, what their earlier "
        "coins were worth, or a FILE account,amount.",
        metavar="FILE",
    )
    top_up: bool = option(False, "Raise an incomplete table of openings to what was spent.")
    mint: Literal["each", "one"] = option(
        "each", "Count each mint as a source, or the zero address as one."
    )
    pools: Literal["each", "merged"] = option(
        "each", "Keep shielded pools apart, or merge them into one."
    )
    clusters: Mapping[str, str] | Clustering | None = option(
        None,
        "Addresses to merge: a heuristic of `coinhaze knowledge`, or a FILE address,cluster.",
        metavar="FILE",
    )
    sinks: Literal["balance", "paper"] = option(
        "balance",
        "Which nodes are sinks: those with a balance, or all that received more than they spent.",
        command_line=False,
    )


@dataclass(frozen=True, kw_only=True)
class ObserverOptions:
    """What the observer believes."""

    policy: PolicyLike | None = option(
        None,
        "How money is split over its origins.",
        registry="coinhaze.observer.policies:score_policies",
        only_choices=True,
        default_words="proportional, or uniform where amounts are hidden",
    )
    listed: Iterable[str] | None = option(
        None,
        "Names to measure exposure to: a FILE with one per line. Bits of scores and origins are "
        "then over these and all else.",
        metavar="FILE",
    )
    links: Links | None = option(
        None,
        "Known origins of payments: a FILE payment,node,probability[,confidence].",
        metavar="FILE",
    )
    history: Mapping[str, Sequence[int]] | None = option(
        None,
        "What entered shielded pools before the window: a FILE pool,value.",
        spelling="--pool-history",
        metavar="FILE",
    )


@dataclass(frozen=True, kw_only=True)
class SolveOptions:
    """Solving: which nodes, how accurately, and within which limits."""

    nodes: Nodes = option(
        "sinks",
        "Which nodes, by name or in a FILE with one name a line; can be repeated.",
        metavar="NAME|FILE",
        several=True,
    )
    accuracy: Accuracy = option("exact", "The widest interval to accept, in bits.", metavar="BITS")
    over: Over = option("worst", "Which interval has to be that narrow: the widest, or their mean.")
    method: Method = option("auto", "Which solver to use.", command_line=False)
    preset: Preset | None = option(None, "Follow the conventions of the paper.")
    renyi: Sequence[float] | float = option(
        (), "Orders of further Renyi entropies.", command_line=False
    )
    count_sources: bool = option(
        False, "Count the possible sources of every row, not only where that is quick."
    )
    draws: int = option(256, "How many draws a preview makes.", minimum=64)
    miss: float | None = option(
        None,
        "The probability that an interval of drawn bits misses; a width in bits may then be drawn.",
        minimum=0,
        maximum=1,
        above_minimum=True,
        below_maximum=True,
        default_words="1e-9 for a preview",
    )
    simultaneous: bool = option(
        False, "Of drawn bits: let the probability be that any row's interval misses."
    )
    seed: int | None = option(
        None, "Seed of the random numbers.", minimum=0, default_words="random"
    )
    threads: int | None = option(
        None, "How many threads to use.", minimum=1, default_words="all cores"
    )
    device: Device = option(
        "cpu", "What solves tiles of columns and draws; auto takes a GPU where there is one."
    )
    workers: int | str | WorkerCluster | None = option(
        None,
        "Processes that solve in place of threads: how many of this machine, or the address of a "
        "dask scheduler.",
        metavar="COUNT|ADDRESS",
    )
    tls_ca: str | Path | None = option(
        None, "Who signed the certificates of scheduler and workers: a FILE.", metavar="FILE"
    )
    tls_cert: str | Path | None = option(
        None, "The certificate to show to scheduler and workers: a FILE.", metavar="FILE"
    )
    tls_key: str | Path | None = option(
        None, "The private key of that certificate: a FILE.", metavar="FILE"
    )
    memory: int | str | None = option(
        None, "How much memory the process may use, such as 4GB.", metavar="SIZE"
    )
    seconds: float | None = option(None, "How many seconds one solve may take.", minimum=0)
    strict: bool = option(
        False,
        "Treat a failed completeness check or a missed accuracy as an error, and write nothing.",
    )


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What is shown and written."""

    as_json: bool = option(False, "Print JSON to stdout.", spelling="--json")
    output: Path | None = option(None, "Where to write the result.", short="-o", metavar="PATH")
    figure: Path | None = option(None, "Draw a figure: a .png, .svg or .pdf file.", metavar="FILE")
    figures: bool = option(True, "Draw figures and a page beside the tables.")
    top: int = option(10, "How many of the largest to show.", minimum=1)
    labels: tuple[str, ...] = option(
        (),
        "Names for addresses: a FILE address,label, JSON, a TagPack or labels of a wallet "
        "(BIP-329); can be repeated.",
        metavar="FILE",
    )
    labels_out: Path | None = option(
        None,
        "Write bits and exposure back as labels that wallets read (BIP-329).",
        metavar="FILE.jsonl",
    )
    form: Literal["text", "json", "dot", "html"] | None = option(
        None, "What to print or write.", spelling="--as", hidden=True
    )
    dry_run: bool = option(False, "Say what it would take, and stop.")
    part: str | None = option(
        None, "Solve only part K of N, for coinhaze merge to put together.", metavar="K/N"
    )
    keep: bool = option(False, "Cache graph and scores, so that serve opens at once.")


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """Other measures beside the bits."""

    with_: str | None = option(
        None,
        "Measures to put beside the bits, with commas between.",
        spelling="--with",
        metavar="NAME,...",
        registry="coinhaze.measures.comparators.registry:COMPARATORS.names",
    )
    owners: str | None = option(
        None,
        "Whose addresses are whose, for informed observers and for wasabi: a FILE address,cluster.",
        metavar="FILE",
    )
    observers: bool = option(
        False, "Also give the bits of observers who take origins of one owner for one origin."
    )
