"""coinhaze serve: the page and its API, on this machine."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import Command, takes, warn
from coinhaze.errors import UsageError
from coinhaze.options import ServeOptions, known

# Each ledger may be of another money.
_UNIT = known("unit", several=True, metavar="LEDGER=NAME[:DECIMALS]")


@click.command("serve", cls=Command)
@click.argument("ledgers", nargs=-1, required=True, metavar="LEDGER...")
@takes(ServeOptions, known("listed", several=True, metavar="NAME=FILE"), "labels", _UNIT)
@takes("proxy", "certificate", "rate", "cache", "max_transactions")
def command(
    ledgers: tuple[str, ...],
    open_: bool,
    port: int | None,
    listed: tuple[str, ...],
    labels: tuple[str, ...],
    unit: tuple[str, ...],
    score: bool,
    host: str,
    allow_remote: bool,
    token_file: Path | None,
    **reach: Any,
) -> None:
    """Show ledgers as pages in the browser, and to programs as an API. Nothing leaves the machine.

    LEDGER may also be a node, bitcoin+http://127.0.0.1:8332, or a server of coins by address,
    electrum+ssl://host:50002 or esplora+https://mempool.space/api: any coin of today is then
    walked back over it when you say so on its page, and that source learns what you look at.

    Example: coinhaze serve week.duckdb --listed sanctions=list.txt --open
    """
    _need_extra()
    from coinhaze.web import server

    server.share_memory()
    server.check_place(host, allow_remote=allow_remote, token_file=token_file)
    token = server.new_token() if token_file is None else server.read_token(token_file)
    registry = _registry(ledgers, listed, labels, unit, reach)
    for note in registry.privacy_notes():
        warn(note)
    app = _app(registry, token, host, score)
    with server.listen(host, port) as sock:
        address = server.address_of(sock, host)
        click.echo(address if token_file is not None else f"{address}?code={app.codes.new()}")
        token_place = "" if token_file is None else f"; its token is in {token_file}"
        click.echo(f"serving {len(ledgers)} ledger(s){token_place}; Ctrl-C stops it", err=True)
        if token_file is None:
            minutes = f"{app.limits.code_within / 60:g} minutes"
            click.echo(
                f"this address opens once, within {minutes}; the token, for other browsers and "
                f"programs: {token}",
                err=True,
            )
        sys.stdout.flush()
        if open_:
            with way_in(f"{address}?code={app.codes.new()}") as page:
                click.launch(page)
                server.server_of(app).run(sockets=[sock])
        else:
            server.server_of(app).run(sockets=[sock])


def _need_extra() -> None:
    try:
        import fastapi  # noqa: F401
        import jinja2  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UsageError(f"the page needs {error.name}: pip install 'coinhaze[page]'") from None


def _registry(
    ledgers: tuple[str, ...],
    lists: tuple[str, ...],
    labels: tuple[str, ...],
    units: tuple[str, ...],
    reach: dict[str, Any],
) -> Any:
    from coinhaze.store.sync import is_node
    from coinhaze.web.registry import LedgerRegistry, check_named

    for ledger in ledgers:
        if not is_node(ledger):
            _check_there(Path(ledger))
    return LedgerRegistry(
        ledgers,
        lists=dict(check_named(given) for given in lists),
        labels=labels,
        units=dict(_unit(given) for given in units),
        reach=reach,
    )


def _check_there(path: Path) -> None:
    """Refuse a file that is not there or empty, as other commands do; cards tell of the others."""
    from coinhaze.formats.registry import format_of

    if not os.path.exists(path) or (path.is_file() and not path.stat().st_size):
        format_of(path)


def _unit(given: str) -> tuple[str, str]:
    name, equals, unit = given.partition("=")
    if not equals:
        raise UsageError(f"--unit is LEDGER=NAME:DECIMALS, not {given!r}")
    return name, unit


def _app(registry: Any, token: str, host: str, score: bool) -> Any:
    from coinhaze.explore.query import JobQuery
    from coinhaze.web.answers import Answers
    from coinhaze.web.app import make_app
    from coinhaze.web.security.headers import Hosts
    from coinhaze.web.server import is_loopback

    answers = Answers(registry)
    for card in registry.cards() if score else ():  # before warming, which makes cards "loading"
        if card.state == "not scored":
            answers.prepare(JobQuery(ledger=card.id))
    threading.Thread(target=registry.warm, daemon=True).start()  # the first page need not wait
    return make_app(answers, token=token, hosts=Hosts(names=[host], remote=not is_loopback(host)))


@contextmanager
def way_in(address: str) -> Iterator[str]:
    """Give a file only this user can read that leads to an address.

    A code that opens must not stand in the browser's command line, which everybody on the machine
    can read.
    """
    import html
    import tempfile

    to = html.escape(address)
    with tempfile.TemporaryDirectory(prefix="coinhaze-") as folder:
        page = Path(folder) / "open.html"
        page.touch(mode=0o600)
        page.write_text(
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>coinhaze</title>'
            f'<meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={to}"></head>'
            f'<body><a href="{to}">coinhaze</a></body></html>',
            encoding="utf-8",
        )
        yield page.as_uri()
