"""coinhaze wallet: a wallet's coins, which go together, and which to spend."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coinhaze.cli.options import (
    Command,
    form_of,
    labels_of,
    settings_of,
    takes,
    tell_notes,
    warn,
    write_text,
)
from coinhaze.cli.waiting import wait_for
from coinhaze.options import WalletOptions, known

if TYPE_CHECKING:
    from coinhaze.formats.lists.coins import ListedCoin
    from coinhaze.ledger.coins import Transaction
    from coinhaze.wallet.report import WalletReport
    from coinhaze.wallet.walk_back import WalkedChain
    from coinhaze.wallet.wallet import Wallet
    from coinhaze.wallet.what_if import Proposal

SUFFIXES = {".html": "html", ".htm": "html", ".json": "json", ".txt": "text"}
NODE_OPTIONS = ("accuracy", "max_transactions", "cache")
SERVER_OPTIONS = ("proxy", "certificate", "rate")
_POLICY = known("policy", registry="coinhaze.observer.policies:weighing_policies")
WIDTH = 120  # letters a line, in a file of text
PAYMENTS = (
    "payments received, as listtransactions lists them: coins spent since are left out, and change "
    "is not among them; bitcoin-cli listunspent lists all coins"
)


@click.command("wallet", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="LEDGER...")
@takes(
    known("nodes", choices=(), default=None, required=True),
    "listed",
    "labels",
    "labels_out",
    WalletOptions,
)
@takes(_POLICY, "links", "history", "pools", "format", "first", "last", "unknown", "complete")
@takes("strict", known("accuracy", choices=(), default_words="0.1"), known("top", default=3))
@takes("unit", "form", "as_json", known("output", metavar="FILE.html|.json|.txt"))
def command(
    sources: tuple[str, ...],
    form: str | None,
    as_json: bool,
    output: Path | None,
    spend: str | None,
    psbt: str | None,
    labels_out: Path | None,
    **options: Any,
) -> None:
    """Tell of a wallet's coins: bits, origins, exposure, what goes together, which to spend.

    LEDGER is a file or several; or a node, bitcoin+http://127.0.0.1:8332; or a server that knows
    coins by address, electrum+ssl://host:50002 or esplora+https://mempool.space/api. The chain of
    a node or server is walked back from the coins only as far as --accuracy needs. --nodes takes
    coins, addresses, extended public keys and descriptors (the last two not from a node).

    Example: coinhaze wallet electrum+ssl://host:50002 --nodes zpub.txt --amount 0.05
    """
    from coinhaze.errors import UsageError

    if spend is not None and psbt is not None:
        raise UsageError("--spend and --psbt are two proposals: ask one at a time")
    files = [name for name in options["nodes"] if _is_path(name)]
    files += [options["listed"]] if options["listed"] else []
    files += [
        *options["labels"],
        *options["known"],
        *(options[n] for n in ("links", "history") if options[n]),
    ]
    inputs = [*(s for s in sources if not _is_node(s)), *files, *([psbt] if psbt else [])]
    form = _form(form_of(form, as_json), output, inputs)
    if labels_out is not None:
        from coinhaze.report.files import check_place

        check_place(labels_out, inputs)
    report = wait_for("weighing", lambda _: _report(sources, inputs, spend, psbt, options))
    if labels_out is not None:
        from coinhaze.wallet.document import wallet_labels

        write_text(labels_out, wallet_labels(report))
    if output is None:
        _print(report, form)
        return
    write_text(output, _text(report, form))


def _form(form: str | None, output: Path | None, inputs: Sequence[str]) -> str:
    """Tell what to write, and refuse early what should not be written."""
    from coinhaze.errors import UsageError
    from coinhaze.report.files import check_place

    if output is None:
        return form or "text"
    if form is None and output.suffix not in SUFFIXES:
        raise UsageError(f"{output}: end it in {', '.join(SUFFIXES)}, or take --json")
    check_place(output, inputs)
    return form or SUFFIXES[output.suffix]


def _report(
    sources: Sequence[str],
    inputs: Sequence[str],
    spend: str | None,
    psbt: str | None,
    options: dict[str, Any],
) -> WalletReport:
    import numpy as np

    from coinhaze import __version__
    from coinhaze.formats.money import unit_of
    from coinhaze.graph.holes import incomplete_notes
    from coinhaze.report.files import input_digests
    from coinhaze.solve.score import refuse_incomplete
    from coinhaze.wallet.report import WalletReport
    from coinhaze.wallet.suggestion import suggest_coins

    wallet = _wallet(sources, options)
    graph = wallet.chain.graph
    if options["strict"]:
        refuse_incomplete(graph)
    notes = wallet.chain.notes if wallet.coin_set.exposed is None else wallet.coin_set.exposed.notes
    coins = [holding.coin.node for holding in wallet.holdings]
    nodes = np.array([node for node in coins if node is not None], dtype=np.int64)
    notes += incomplete_notes(graph, nodes, wallet.chain.walk.q)
    tell_notes(notes)
    unit = unit_of(graph.ledger, unit=options["unit"])
    amount = None if options["amount"] is None else unit.read(options["amount"])
    return WalletReport(
        wallet,
        proposal=_proposal(wallet, spend, psbt),
        suggestion=None
        if amount is None
        else suggest_coins(wallet, amount, payee=options["payee"], unit=unit),
        made_by={
            "software": f"coinhaze {__version__}",
            "command": _command(),
            "inputs": input_digests(inputs),
            "settings": wallet.chain.settings,
            "unit": unit.spelling,
            "completeness": graph.ledger.completeness.record(),
            "notes": list(notes),
        },
        unit=unit,
    )


def _command() -> str:
    """Give the command, without what may be secret: in a node's address, and keys of the wallet."""
    from coinhaze.errors import without_secrets
    from coinhaze.nodes.http import shown_url

    words = (shown_url(a) if _is_node(a) else a for a in sys.argv[1:])
    return without_secrets(" ".join(["coinhaze", *words]))


def _is_node(source: str) -> bool:
    from coinhaze.store.sync import is_node

    return is_node(source)


def _is_path(name: str) -> bool:
    """Tell a file of coins from a coin, an address or a key: those have no suffix."""
    from coinhaze.formats.descriptors import is_key

    return not is_key(name) and (bool(Path(name).suffix) or _exists(name))


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # too long for a name
        return False


def _coins(given: Sequence[str]) -> list[ListedCoin]:
    """Read --nodes: coins and addresses, and files of them."""
    from coinhaze.formats.lists.coins import parse_entry, read_coin_list

    found: list[ListedCoin] = []
    for name in given:
        found += read_coin_list(name) if _is_path(name) else [parse_entry(name, "--nodes")]
    return found


def _known(files: Sequence[str]) -> dict[str, list[str]]:
    """Read --known: every party's coins and addresses, over all files."""
    from coinhaze.formats.lists.parties import read_parties

    found: dict[str, list[str]] = {}
    for file in files:
        for party, refs in read_parties(file).items():
            found.setdefault(party, []).extend(refs)
    return found


def _wallet(sources: Sequence[str], options: dict[str, Any]) -> Wallet:
    from coinhaze.formats.lists.knowledge import read_listed
    from coinhaze.solve.source import chain_of
    from coinhaze.wallet.holdings import exposed_chain, find_listed
    from coinhaze.wallet.wallet import weigh_wallet

    listed = _coins(options["nodes"])
    if any(entry.received for entry in listed):
        tell_notes((PAYMENTS,))
    names = None if options["listed"] is None else read_listed(options["listed"])
    labels = labels_of(options["labels"])
    ours = {
        "nodes", "listed", "labels", "limit", "amount", "payee", "known", "unit", "top", "strict",
        "gap_limit", *NODE_OPTIONS, *SERVER_OPTIONS,
    }  # fmt: skip
    settings = settings_of({n: v for n, v in options.items() if n not in ours})
    thing, listed, max_origins = _opened(sources, listed, settings, options)
    chain = chain_of(thing, **settings)
    found, notes = find_listed(chain.graph, listed, gap_limit=options["gap_limit"])
    tell_notes(tuple(notes))
    coins = [
        coin if coin.label is not None else replace(coin, label=labels.get(coin.name))
        for coin in found
    ]
    beliefs = {name: settings[name] for name in ("policy", "links") if name in settings}
    is_part = max_origins is not None
    exposed = (
        None if names is None else exposed_chain(chain.graph, names, is_part=is_part, **beliefs)
    )
    return weigh_wallet(
        chain, coins, exposed=exposed, limit=options["limit"], labels=labels, top=options["top"],
        max_origins=max_origins, known=_known(options["known"]),
    )  # fmt: skip


def _opened(
    sources: Sequence[str],
    listed: list[ListedCoin],
    settings: dict[str, Any],
    options: dict[str, Any],
) -> tuple[Any, list[ListedCoin], int | None]:
    """Give what the files are, or the part of a chain that was walked back, and its coins."""
    from coinhaze.errors import UsageError
    from coinhaze.nodes.servers import is_server

    walking = {n: options[n] for n in NODE_OPTIONS if options[n] is not None}
    reaching = {n: options[n] for n in SERVER_OPTIONS if options[n] is not None}
    if reaching and not any(map(is_server, sources)):
        raise UsageError(
            f"{known(next(iter(reaching))).spelling} is for servers: electrum+ssl://host:port"
        )
    if not any(map(_is_node, sources)):
        if walking:
            raise UsageError(
                f"{known(next(iter(walking))).spelling} is for nodes: bitcoin+http://host:port"
            )
        return list(sources), listed, None
    if len(sources) > 1 or settings.keys() - {"policy"}:
        more = sorted(settings.keys() - {"policy"})
        raise UsageError(f"from a node take one source and no other settings than --policy: {more}")
    if is_server(sources[0]):
        walked, listed = _from_server(sources[0], listed, walking, reaching, options, settings)
    elif sources[0].startswith("bitcoin+"):
        walked, listed = _from_node(sources[0], listed, walking, settings)
    else:
        raise UsageError(
            "coins are walked back over electrum+ssl://HOST:PORT, esplora+https://HOST/api or a "
            "node of Bitcoin, bitcoin+http://HOST:PORT: take one of these, or read the blocks of "
            "others into a store with coinhaze ingest"
        )
    if not walked.reached:
        tell_notes((f"not all intervals are within {walked.width} bits: they are as stated",))
    return walked.ledger, listed, walked.blocks


def _from_node(
    source: str, listed: list[ListedCoin], walking: dict[str, Any], settings: dict[str, Any]
) -> tuple[WalkedChain, list[ListedCoin]]:
    from contextlib import closing

    from coinhaze.nodes.transactions import NodeTransactions, TransactionCache, default_cache
    from coinhaze.store.sync import open_node
    from coinhaze.wallet.walk_back import walk_back, without_spent

    _, node = open_node(source)
    file = walking.pop("cache", default_cache())
    with closing(node.rpc), TransactionCache(file, node.network) as cache:
        past = NodeTransactions(node, cache)
        coins, notes = without_spent(past, listed)
        tell_notes(tuple(notes))
        walked = walk_back(past, coins, **walking, **settings)
    _tell_counts("node", past.requested, past.found)
    return walked, coins


def _from_server(
    source: str,
    listed: list[ListedCoin],
    walking: dict[str, Any],
    reaching: dict[str, Any],
    options: dict[str, Any],
    settings: dict[str, Any],
) -> tuple[WalkedChain, list[ListedCoin]]:
    from contextlib import closing

    from coinhaze.nodes.servers import ServerTransactions, open_server, privacy_notes
    from coinhaze.nodes.transactions import TransactionCache, default_cache
    from coinhaze.options import WalletOptions
    from coinhaze.wallet.keys import listed_coins
    from coinhaze.wallet.walk_back import walk_back, without_spent

    for note in privacy_notes(source, proxy=options["proxy"]):
        warn(note)
    file = walking.pop("cache", default_cache())
    limit = walking.get("max_transactions", WalletOptions.max_transactions)
    with (
        closing(open_server(source, **reaching)) as server,
        TransactionCache(file, server.network) as cache,
    ):
        past = ServerTransactions(server, cache, max_transactions=limit)
        coins, notes = listed_coins(past, listed, gap_limit=options["gap_limit"])
        coins, more = without_spent(past, coins)
        tell_notes((*notes, *more))
        walked = walk_back(past, coins, **walking, **settings)
    _tell_counts("server", past.requested, past.found)
    return walked, coins


def _tell_counts(whose: str, requested: int, found: int) -> None:
    note = f"{requested:,} transactions requested from the {whose}, {found:,} found in the cache"
    tell_notes((note,))


def _proposal(wallet: Wallet, spend: str | None, psbt: str | None) -> Proposal | None:
    from coinhaze.wallet.what_if import named_coins, propose

    if spend is not None:
        return propose(wallet, named_coins(spend), what="the coins of --spend")
    return None if psbt is None else propose(wallet, _psbt(wallet, psbt), what=Path(psbt).name)


def _psbt(wallet: Wallet, path: str) -> Transaction:
    """Read a PSBT with addresses as the ledger's network writes them."""
    from coinhaze.formats.psbt import read_psbt
    from coinhaze.wallet.holdings import network_of

    return read_psbt(path, network=network_of(wallet.chain.graph))


def _print(report: WalletReport, form: str) -> None:
    if form != "text":
        click.echo(_text(report, form), nl=False)
        return
    from coinhaze.report.grids import sections_text
    from coinhaze.report.terminal import show

    show(sections_text(report.title, report.sections(with_inputs=False)))


def _text(report: WalletReport, form: str) -> str:
    if form == "json":
        from coinhaze.wallet.document import wallet_json

        return wallet_json(report)
    from coinhaze.report.grids import sections_page, sections_text

    if form == "html":
        return sections_page(report.title, report.sections())
    from coinhaze.report.terminal import written

    return written(sections_text(report.title, report.sections()), width=WIDTH)
