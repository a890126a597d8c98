"""Options of single commands: wallets, screening, comparison, histories, the server and others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from coinhaze.options.library import Grouping, Links
from coinhaze.options.option import option


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
