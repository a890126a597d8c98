"""Every option, once: its type, default, choices, help text and spelling on the command line.

One frozen dataclass for each subject. Keyword arguments of the public functions, options of the
commands, the settings in a cache key, the settings of the web page and the page of options in the
documentation are made from these fields, or compared with them by a test.

>>> [option.spelling for option in options_of(ReadOptions)][:3]
['--format', '--complete', '--from']
>>> known("view").choices
('coin', 'address', 'account')
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeAlias,
    TypedDict,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    from coinhaze.graph.graph import TransactionGraph
    from coinhaze.ledger.links import Links
    from coinhaze.solve.pool.cluster import WorkerCluster
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


@dataclass(frozen=True)
class Option:
    """One option as a command shows it."""

    help: str
    spelling: str = ""  # on the command line; from the field's name unless given
    choices: tuple[str, ...] = ()  # the only values, or words beside numbers, names and files
    only_choices: bool = False
    metavar: str = ""  # what a value is called in help
    kind: type = str  # of one value: bool, int, float, Path or str
    several: bool = False  # whether it can be repeated
    minimum: float | None = None
    maximum: float | None = None
    above_minimum: bool = False  # whether the minimum itself is refused
    below_maximum: bool = False
    short: str = ""
    registry: str = ""  # "module:function" that lists the choices as they are at that moment
    command_line: bool = True  # whether commands offer it, not the API alone
    required: bool = False
    hidden: bool = False  # a former spelling that is still understood
    default: object = None
    default_words: str = ""  # how help says a default that is no plain value
    passed_on: bool = False  # left out unless given, so that the library's own default holds
    name: str = ""
    subject: type = object

    @property
    def is_file(self) -> bool:
        """Whether a value names a file."""
        return "FILE" in self.metavar

    def all_choices(self) -> tuple[str, ...]:
        """Give the choices, those of a registry if it has one."""
        if not self.registry:
            return self.choices
        return tuple(getattr(entry, "name", entry) for entry in self.registered()())

    def registered(self) -> Callable[[], Iterable[Any]]:
        """Give the function of its registry that lists the choices."""
        module, _, path = self.registry.partition(":")
        function: Callable[[], Iterable[Any]] = attrgetter(path)(import_module(module))
        return function

    def shown_metavar(self) -> str:
        """Give what help calls a value: the words it can be, and what else."""
        if self.only_choices or not self.metavar:
            return self.metavar
        return "|".join((*self.choices, self.metavar))

    def help_text(self) -> str:
        """Give the help with choices of a registry and the default, always in the same words."""
        listed = self.registry and not self.only_choices  # else they are shown before the help
        names = f" One of {', '.join(self.all_choices())}." if listed else ""
        said = self.default_words or self._plain_default()
        return self.help + names + (f" [default: {said}]" if said else "")

    def _plain_default(self) -> str:
        if self.default is None or isinstance(self.default, bool | tuple):
            return ""
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)


class AboutField(TypedDict, total=False):
    """What can be said of an option beside its default and its help."""

    spelling: str
    choices: tuple[str, ...]
    only_choices: bool
    metavar: str
    several: bool
    minimum: float
    maximum: float
    above_minimum: bool
    below_maximum: bool
    short: str
    registry: str
    command_line: bool
    required: bool
    hidden: bool
    default_words: str
    passed_on: bool


class About(AboutField, total=False):
    """What can be different in one command."""

    help: str
    default: object


def option(default: Any, help: str, **about: Unpack[AboutField]) -> Any:
    """Define a field of a subject: its default, its help, and what else `Option` can tell."""
    return field(default=default, metadata={"option": Option(help, **about)})


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


@dataclass(frozen=True, kw_only=True)
class OriginsOptions:
    """One coin's origins."""

    hops: int = option(6, "How many steps back to show.", minimum=1)


@dataclass(frozen=True, kw_only=True)
class SimulateOptions:
    """Simulated ledgers and random numbers."""

    seeds: int = option(20, "How many seeds to repeat it with.", minimum=1)
    size: float = option(1.0, "Size of a simulated week, as a part of the whole.")


@dataclass(frozen=True, kw_only=True)
class GrowthOptions:
    """Bits as money is paid on."""

    length: int = option(30, "How many payments to follow.", minimum=1)
    walks: int | None = option(
        None, "How many walks to draw forward from sources.", minimum=0, default_words="weigh all"
    )


@dataclass(frozen=True, kw_only=True)
class SinceOptions:
    """Bits as blocks go by."""

    points: int = option(
        12, "How many moments to look at, evenly spread over transactions.", minimum=1
    )


@dataclass(frozen=True, kw_only=True)
class RobustnessOptions:
    """How bits fall as an observer learns more."""

    learn: int = option(10, "How many links the observer learns.", minimum=1)
    world: Links | None = option(
        None,
        "The true origins: a FILE payment,node,probability.",
        metavar="FILE",
        default_words="drawn",
    )
    tries: int = option(200, "How many links to choose from at most.", minimum=1)
    coins: int = option(
        2000, "How many sinks to choose links by at most.", minimum=1, command_line=False
    )


@dataclass(frozen=True, kw_only=True)
class ScreenOptions:
    """Screening against a list."""

    paths: int = option(3, "How many paths to show for each of the largest.", minimum=0)
    dust: str | None = option(
        None,
        "Set findings of less listed money than this apart, such as 0.0001 or 10_000 sat.",
        metavar="AMOUNT",
    )
    case: str | None = option(None, "The number of the case, for the statement.", metavar="TEXT")
    analyst: str | None = option(None, "Who made the statement.", metavar="TEXT")


@dataclass(frozen=True, kw_only=True)
class WalletOptions:
    """A wallet's coins."""

    limit: float = option(
        0.0,
        "Exposure up to which a coin counts as not exposed; above it, screen has exit code 10.",
        minimum=0,
        maximum=1,
        below_maximum=True,
    )
    spend: str | None = option(None, "What if these coins were spent together?", metavar="COIN,...")
    psbt: str | None = option(None, "What if this transaction were sent?", metavar="FILE")
    amount: str | None = option(
        None,
        "Suggest coins worth this much, such as 0.05, 0.05 BTC or 5_000_000 sat.",
        metavar="AMOUNT",
    )
    payee: str | None = option(
        None, "Whom the amount is paid to: an address, or a party of --known.", metavar="NAME"
    )
    known: tuple[str, ...] = option(
        (),
        "Who knows which coins: a FILE party,coin or the labels of a wallet (BIP 329).",
        metavar="FILE",
        several=True,
    )
    max_transactions: int = option(
        2_000,
        "From a node or server: how many transactions to fetch at most.",
        minimum=1,
        passed_on=True,
    )
    cache: str | None = option(
        None, "From a node or server: a FILE to keep transactions in.", metavar="FILE"
    )
    gap_limit: int = option(
        20, "Of a key: stop after so many unused addresses in a row.", minimum=1, maximum=1_000
    )
    proxy: str | None = option(
        None, "To a server: a SOCKS5 proxy, socks5://127.0.0.1:9050 for Tor.", metavar="URL"
    )
    certificate: str | None = option(
        None,
        "Of an Electrum server that signs its own: the SHA-256 fingerprint of its certificate.",
        metavar="FINGERPRINT",
    )
    rate: float | None = option(
        None,
        "To a server: how many requests a second at most.",
        minimum=0,
        above_minimum=True,
        default_words="10, unlimited on this machine",
    )


@dataclass(frozen=True, kw_only=True)
class KnowledgeOptions:
    """What heuristics find."""

    by: str | None = option(
        None, "The heuristic to use; without a SOURCE all are listed.", metavar="NAME"
    )
    services: str | None = option(
        None, "The services or pools: a FILE with one per line.", metavar="FILE"
    )
    gas_prices: str | None = option(
        None, "Gas prices of payments: a FILE payment,gas_price.", metavar="FILE"
    )
    latest: int = option(5, "How many pay-ins to look back at.", minimum=1)
    fee: float = option(
        0.02, "The largest fee of a pay-out.", minimum=0, maximum=1, below_maximum=True
    )
    confidence: float | None = option(
        None,
        "How sure links are.",
        minimum=0,
        maximum=1,
        default_words="the heuristic's own",
    )


@dataclass(frozen=True, kw_only=True)
class LabOptions:
    """Privacy technologies in simulated economies."""

    list_: bool = option(False, "List the technologies and observers, and stop.", spelling="--list")
    all_: bool = option(False, "Every technology at its usual value.", spelling="--all")
    values: str | None = option(
        None, "Values of the parameter, with commas between: 0,0.1,0.5.", metavar="NUMBER,..."
    )
    observer: str | None = option(
        None, "Against which observer.", metavar="NAME", default_words="the technology's first"
    )
    people: int = option(200, "How many people an economy has.", minimum=2)
    payments: int = option(2000, "How many payments they make at most.", minimum=0)
    level: float = option(
        0.95,
        "Level of the confidence bands.",
        minimum=0,
        maximum=1,
        above_minimum=True,
        below_maximum=True,
    )


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """Comparing ledgers."""

    settings: Path | None = option(
        None, "Ledgers with settings of their own: a FILE.toml.", metavar="FILE"
    )
    add: bool = option(False, "Add the ledgers to the report that is there.")
    replace: bool = option(False, "With --add: replace ledgers of the same name.")
    weeks: bool = option(False, "Add the paper's five weeks, simulated.")
    again: bool = option(False, "Score nothing; write the report again from the score files.")
    published: bool = option(False, "Show the paper's own figures beside its weeks.")


@dataclass(frozen=True, kw_only=True)
class IngestOptions:
    """Reading into a store, and checking one."""

    follow: bool = option(False, "Keep up with a node until interrupted.")
    pool: tuple[str, ...] = option(
        (),
        "What a shielded pool held before the store begins, such as sapling=0.5 ZEC, or in whole "
        "smallest units; can be repeated.",
        metavar="NAME=VALUE",
    )


@dataclass(frozen=True, kw_only=True)
class HistoryOptions:
    """Whole histories."""

    group: Grouping = option("year", "What to group unspent coins by.", spelling="--group-by")
    over_time: bool = option(
        False, "What was unspent at the end of each month since the first block."
    )
    blocks: int = option(1000, "How many blocks a simulated history has.", minimum=1)
    transactions: Path | None = option(
        None,
        "Also score every transaction, and write a Parquet file for each piece to a new FOLDER.",
        metavar="FOLDER",
    )
    top_sources: int | None = option(
        None,
        "Also prove an interval from the so many largest sources of every row, and give what both "
        "it and the drawn one allow.",
        minimum=1,
    )
    node: str = option(
        "", "The node that a history follows: bitcoin+http://127.0.0.1:8332.", metavar="URL"
    )
    watch: Path | None = option(
        None,
        "Coins, one txid:vout a line, whose figures are printed when they change.",
        metavar="FILE",
    )
    post: str | None = option(
        None, "Where to post the figures of watched coins, as JSON.", metavar="URL"
    )


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """The page and its API."""

    open_: bool = option(False, "Open the page in the browser.", spelling="--open")
    port: int | None = option(
        None, "The port to listen on; 0 takes any free one.", minimum=0, maximum=65535
    )
    score: bool = option(False, "Score at once what is not scored yet.")
    host: str = option("127.0.0.1", "The address to listen at.", metavar="ADDRESS")
    allow_remote: bool = option(False, "Let other machines reach it.")
    token_file: Path | None = option(None, "A FILE that holds the access token.", metavar="FILE")


SUBJECTS: tuple[type, ...] = (
    ReadOptions,
    GraphOptions,
    ObserverOptions,
    SolveOptions,
    OutputOptions,
    MeasureOptions,
    OriginsOptions,
    SimulateOptions,
    GrowthOptions,
    SinceOptions,
    RobustnessOptions,
    ScreenOptions,
    WalletOptions,
    KnowledgeOptions,
    LabOptions,
    CompareOptions,
    IngestOptions,
    HistoryOptions,
    ServeOptions,
)
# What changes no score: the same question with another of these has the same answer.
LIMITS = frozenset({"threads", "workers", "tls_ca", "tls_cert", "tls_key", "memory", "seconds"})
# Their options reach the library only where they are given.
MODEL = (ReadOptions, GraphOptions, ObserverOptions)
_PASSED_ON = (*MODEL, SolveOptions)


# Former spellings by command, and what replaced them. They are understood until version 2.
FORMER: Mapping[str, Mapping[str, str]] = {
    "score": {"--all": "--nodes all", "--history": "--pool-history"},
    "origins": {"--history": "--pool-history", "--as json": "--json"},
    "wallet": {
        "--coins": "--nodes",
        "--exposed": "--listed",
        "--width": "--accuracy",
        "--most": "--max-transactions",
        "--history": "--pool-history",
        "--as json": "--json",
    },
    "compare": {
        "--mean-error": "--accuracy",
        "--conventions ours": "",
        "--conventions": "--preset",
        "--history": "--pool-history",
    },
    "robustness": {"--coin": "--nodes", "--history": "--pool-history"},
    "sensitivity": {"--history": "--pool-history"},
    "serve": {"--list": "--listed"},
}


class ReadKeywords(TypedDict, total=False):
    """Keyword arguments of `read`."""

    format: str | None
    complete: bool
    first: str | int | None
    last: str | int | None
    token: str | None
    columns: str | None
    decimals: int | None
    unit: str | None
    unknown: Unknown


class GraphKeywords(TypedDict, total=False):
    """Keyword arguments of `transaction_graph`."""

    view: View | None
    time: Time | None
    opening: Opening
    top_up: bool
    mint: Literal["each", "one"]
    pools: Literal["each", "merged"]
    clusters: Mapping[str, str] | Clustering | None
    sinks: Literal["balance", "paper"]


class ObserverKeywords(TypedDict, total=False):
    """Keyword arguments of `absorbing_chain`."""

    policy: PolicyLike | None
    listed: Iterable[str] | None
    links: Links | None
    history: Mapping[str, Sequence[int]] | None


class LedgerKeywords(ReadKeywords, GraphKeywords, total=False):
    """All that leads from files to a graph."""


class ModelKeywords(LedgerKeywords, ObserverKeywords, total=False):
    """All that leads from files to a chain."""


class HistoryKeywords(TypedDict, total=False):
    """How the rows of a history are scored, and within which limits."""

    accuracy: Accuracy
    draws: int
    miss: float | None
    simultaneous: bool
    seed: int | None
    threads: int | None
    memory: int | str | None


class HistoryScoreKeywords(HistoryKeywords, total=False):
    """How the coins of a history are scored, and from which proofs."""

    top_sources: int | None
    workers: WorkerCluster | None


class SolveKeywords(HistoryKeywords, total=False):
    """How nodes are scored, and within which limits."""

    over: Over
    method: Method
    preset: Preset | None
    renyi: Sequence[float] | float
    count_sources: bool
    device: Device
    workers: int | str | WorkerCluster | None
    tls_ca: str | Path | None
    tls_cert: str | Path | None
    tls_key: str | Path | None
    seconds: float | None


class ScoringKeywords(SolveKeywords, total=False):
    """Which nodes are scored, and how."""

    nodes: Nodes


class NamedScoreKeywords(ModelKeywords, SolveKeywords, total=False):
    """Keyword arguments of `score` where the nodes are named already."""


class ScoreKeywords(ModelKeywords, ScoringKeywords, total=False):
    """Keyword arguments of `score`."""


@cache
def options_of(subject: type) -> tuple[Option, ...]:
    """Give the options of a subject, with all that its fields tell."""
    assert is_dataclass(subject)
    hints = get_type_hints(subject)
    made = []
    for each in fields(subject):
        about: Option = each.metadata["option"]
        kind, words, several, other = _described(hints[each.name])
        made.append(
            replace(
                about,
                name=each.name,
                subject=subject,
                spelling=about.spelling or "--" + each.name.strip("_").replace("_", "-"),
                kind=kind,
                choices=about.choices or words,
                only_choices=about.only_choices or bool(words and not other),
                several=about.several or several,
                default=each.default,
                passed_on=about.passed_on or subject in _PASSED_ON,
            )
        )
    return tuple(made)


def _described(hint: Any) -> tuple[type, tuple[str, ...], bool, bool]:
    """Tell from a type what kind a value is, its words, if there are several, and other values."""
    parts = [p for p in _parts(hint) if p is not type(None)]
    words = tuple(w for p in parts if get_origin(p) is Literal for w in get_args(p))
    others = [p for p in parts if get_origin(p) is not Literal]
    several = any(get_origin(p) is tuple for p in others)
    kinds = [p for p in others if p in (bool, int, float, Path)]
    kind = kinds[0] if len(others) == 1 and kinds else str
    return kind, words, several, bool(others)


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def names_of(*subjects: type) -> frozenset[str]:
    """Give the names of the options of subjects."""
    return frozenset(option.name for subject in subjects for option in options_of(subject))


def known(name: str, **changes: Unpack[About]) -> Option:
    """Give an option by its name; `changes` are what is different in one command.

    >>> known("seconds", default=120.0).help_text()
    'How many seconds one solve may take. [default: 120]'
    """
    found = next(o for subject in SUBJECTS for o in options_of(subject) if o.name == name)
    if "default" in changes:  # the command has its own, whatever the library's
        found = replace(found, passed_on=False)
    return replace(found, **changes)


def options_page() -> str:
    """Give the documentation's page of options, as Markdown."""
    lines = [
        "# Options",
        "",
        "<!-- Written by `python -m coinhaze.options`; a test compares. -->",
        "",
        "Every option of the commands and of the Python functions. An option is spelled the same",
        "in every command that takes it; `coinhaze COMMAND --help` lists those of a command, and",
        "where a command has another default it says so there.",
    ]
    for subject in SUBJECTS:
        lines += ["", f"## {str(subject.__doc__).rstrip('.')}", ""]
        lines += ["| command line | Python | values | meaning | default |", "|---|---|---|---|---|"]
        lines += [_page_row(option) for option in options_of(subject) if not option.hidden]
    lines += ["", "## Former spellings", ""]
    lines += ["They still work until version 2, and say what replaced them.", ""]
    lines += ["| command | before | now |", "|---|---|---|"]
    lines += [
        f"| `{command}` | `{before}` | {f'`{now}`' if now else 'the default'} |"
        for command, spellings in FORMER.items()
        for before, now in spellings.items()
    ]
    forms = "`-o FILE`, whose name says what is written"
    lines += [f"| `{command}` | `--as html` | {forms} |" for command in ("origins", "wallet")]
    return "\n".join(lines) + "\n"


def _page_row(option: Option) -> str:
    spelling = ", ".join(filter(None, (option.short, option.spelling)))
    values = option.all_choices() if option.only_choices else (option.shown_metavar(),)
    kind = {bool: "", int: "whole number", float: "number"}.get(option.kind, "text")
    said = option.help_text().removeprefix(option.help)
    default = said.strip().removeprefix("[default: ").removesuffix("]")
    cells = (
        f"`{spelling}`" if option.command_line else "",
        f"`{option.name}`" if option.subject in _PASSED_ON else "",
        " or ".join(f"`{v}`" for word in values for v in word.split("|") if v) or kind,
        option.help,
        default,
    )
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    print(options_page(), end="")
