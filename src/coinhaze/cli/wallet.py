"""coinhaze wallet: a wallet's coins, which go together, and which to spend."""

from __future__ import annotations

import sys
from collections.abc import Sequence
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
    write_text,
)
from coinhaze.cli.waiting import wait_for
from coinhaze.options import WalletOptions, known

if TYPE_CHECKING:
    from coinhaze.formats.lists.coins import ListedCoin
    from coinhaze.ledger.coins import Transaction
    from coinhaze.wallet.report import WalletReport
    from coinhaze.wallet.wallet import Wallet
    from coinhaze.wallet.what_if import Proposal

SUFFIXES = {".html": "html", ".htm": "html", ".json": "json", ".txt": "text"}
NODE_OPTIONS = ("accuracy", "max_transactions", "cache")
_POLICY = known("policy", registry="coinhaze.observer.policies:weighing_policies")
WIDTH = 120  # letters a line, in a file of text


@click.command("wallet", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="LEDGER...")
@takes(known("nodes", choices=(), default=None, required=True), "listed", "labels", WalletOptions)
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
    **options: Any,
) -> None:
    """Tell of a wallet's coins: bits, origins, exposure, what goes together, which to spend.

    LEDGER is a file or several, or a node: bitcoin+http://127.0.0.1:8332, whose chain is then
    walked back from the coins only as far as --accuracy needs.

    Example: coinhaze wallet ledger --nodes mine.txt --listed known.txt --amount 0.05
    """
    from coinhaze.errors import UsageError

    if spend is not None and psbt is not None:
        raise UsageError("--spend and --psbt are two proposals: ask one at a time")
    files = [name for name in options["nodes"] if _is_path(name)]
    files += [options["listed"]] if options["listed"] else []
    files += [*options["labels"], *(options[n] for n in ("links", "history") if options[n])]
    inputs = [*(s for s in sources if not _is_node(s)), *files, *([psbt] if psbt else [])]
    form = _form(form_of(form, as_json), output, inputs)
    report = wait_for("weighing", lambda _: _report(sources, inputs, spend, psbt, options))
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
        suggestion=None if amount is None else suggest_coins(wallet, amount, unit=unit),
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
    """Give the command, without what may be secret in a node's address."""
    from coinhaze.nodes.http import shown_url

    return " ".join(["coinhaze", *(shown_url(a) if _is_node(a) else a for a in sys.argv[1:])])


def _is_node(source: str) -> bool:
    from coinhaze.store.sync import is_node

    return is_node(source)


def _is_path(name: str) -> bool:
    """Tell a file of coins from a coin or an address: those have no suffix."""
    return bool(Path(name).suffix) or Path(name).exists()


def _coins(given: Sequence[str]) -> list[ListedCoin]:
    """Read --nodes: coins and addresses, and files of them."""
    from coinhaze.formats.lists.coins import parse_entry, read_coin_list

    found: list[ListedCoin] = []
    for name in given:
        found += read_coin_list(name) if _is_path(name) else [parse_entry(name, "--nodes")]
    return found


def _wallet(sources: Sequence[str], options: dict[str, Any]) -> Wallet:
    from coinhaze.formats.lists.knowledge import read_listed
    from coinhaze.solve.source import chain_of
    from coinhaze.wallet.holdings import exposed_chain, find_coins
    from coinhaze.wallet.wallet import weigh_wallet

    listed = _coins(options["nodes"])
    names = None if options["listed"] is None else read_listed(options["listed"])
    labels = labels_of(options["labels"])
    ours = ("nodes", "listed", "labels", "limit", "amount", "unit", "top", "strict", *NODE_OPTIONS)
    settings = settings_of({n: v for n, v in options.items() if n not in ours})
    thing, most_origins = _opened(sources, listed, settings, options)
    chain = chain_of(thing, **settings)
    coins = find_coins(chain.graph, listed)
    beliefs = {name: settings[name] for name in ("policy", "links") if name in settings}
    exposed = None if names is None else exposed_chain(chain.graph, names, **beliefs)
    return weigh_wallet(
        chain, coins, exposed=exposed, limit=options["limit"], labels=labels, top=options["top"],
        most_origins=most_origins,
    )  # fmt: skip


def _opened(
    sources: Sequence[str],
    listed: list[ListedCoin],
    settings: dict[str, Any],
    options: dict[str, Any],
) -> tuple[Any, int | None]:
    """Give what the files are, or the part of a node's chain that was walked back."""
    from coinhaze.errors import UsageError

    requested = {n: options[n] for n in NODE_OPTIONS if options[n] is not None}
    if not any(map(_is_node, sources)):
        if requested:
            raise UsageError(
                f"{known(next(iter(requested))).spelling} is for nodes: bitcoin+http://host:port"
            )
        return list(sources), None
    if len(sources) > 1 or settings.keys() - {"policy"}:
        more = sorted(settings.keys() - {"policy"})
        raise UsageError(f"from a node take one source and no other settings than --policy: {more}")
    if not sources[0].startswith("bitcoin+"):
        raise UsageError(
            "coins are walked back over a node of Bitcoin alone, bitcoin+http://host:port: read "
            "the blocks of others into a store with coinhaze ingest"
        )
    from contextlib import closing

    from coinhaze.nodes.transactions import NodeTransactions, TransactionCache, default_cache
    from coinhaze.store.sync import open_node
    from coinhaze.wallet.walk_back import walk_back

    _, node = open_node(sources[0])
    file = requested.pop("cache", default_cache())
    with closing(node.rpc), TransactionCache(file, node.network) as cache:
        past = NodeTransactions(node, cache)
        walked = walk_back(past, listed, **requested, **settings)
    counts = past.requested, past.found
    note = "{:,} transactions requested from the node, {:,} found in the cache".format(*counts)
    tell_notes((note,))
    if not walked.reached:
        tell_notes((f"not all intervals are within {walked.width} bits: they are as stated",))
    return walked.ledger, walked.blocks


def _proposal(wallet: Wallet, spend: str | None, psbt: str | None) -> Proposal | None:
    from coinhaze.wallet.what_if import named_coins, propose

    if spend is not None:
        return propose(wallet, named_coins(spend), what="the coins of --spend")
    return None if psbt is None else propose(wallet, _psbt(wallet, psbt), what=Path(psbt).name)


def _psbt(wallet: Wallet, path: str) -> Transaction:
    """Read a PSBT with addresses as the ledger's network writes them."""
    from coinhaze.formats.bitcoin_raw.networks import BITCOIN, NETWORKS, networks_of_owners
    from coinhaze.formats.psbt import read_psbt
    from coinhaze.wallet.holdings import coin_ledger

    ours = networks_of_owners(coin_ledger(wallet.chain.graph).owners)
    network = next((n for n in NETWORKS if n.name in ours), BITCOIN)
    return read_psbt(path, network=network)


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
