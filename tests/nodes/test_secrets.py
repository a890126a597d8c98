"""A node that echoes what it was sent, and every place where that could come out again."""

from __future__ import annotations

import json
import logging
import shlex
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from coinhaze.cli import cli
from coinhaze.cli import ingest as ingest_command
from coinhaze.cli import wallet as wallet_command
from coinhaze.errors import (
    CoinhazeError,
    LedgerError,
    UsageError,
    keep_secret,
    shorten,
    without_secrets,
)
from coinhaze.nodes.ethereum.node import EthereumNode
from coinhaze.nodes.http import Credentials, shown_url
from coinhaze.nodes.monero import MoneroNode
from coinhaze.nodes.rpc import JsonRpc, RpcError
from coinhaze.store.store import Store
from coinhaze.store.sync import open_node
from nodes.fakes import Fake, Reply, Request
from nodes.test_bitcoin_node import fake_chain

PASSWORD, KEY, TOKEN = 'pass"word-of-mine', "0123456789abcdefKEY", "t0k3n-value"
PAIR = f"me:{PASSWORD}"
BASIC = b64encode(PAIR.encode()).decode()
PLACE = f"/v3/{KEY}?token={TOKEN}&x=1"


@pytest.fixture
def client(fake: Fake) -> Iterator[JsonRpc]:
    with JsonRpc(fake.url + PLACE, credentials=Credentials("me", PASSWORD), retries=0) as rpc:
        yield rpc


def all_of(request: Request) -> str:
    """Give all that a request had of ours, after enough text to be cut in the middle of it."""
    return f"{request.path} {request.headers['authorization']} {PASSWORD} {PAIR}"


def check_hidden(text: str) -> None:
    for secret in (PASSWORD, KEY, TOKEN, BASIC, repr(PASSWORD)[1:-1], json.dumps(PASSWORD)[1:-1]):
        # No part of eight letters of any of them, in whatever case.
        parts = {secret[i : i + 8] for i in range(len(secret) - 7)}
        assert not [part for part in parts if part.lower() in text.lower()], text


def fault(request: Request, message: str) -> bytes:
    return json.dumps({"id": request.id, "error": {"code": -5, "message": message}}).encode()


ECHOES: dict[str, Callable[[Request, str], Reply]] = {
    "a page of a proxy": lambda request, said: Reply(404, f"<p>no {said}</p>".encode()),
    "a status of its own": lambda request, said: Reply(500, said.encode()),
    "too busy": lambda request, said: Reply(503, said.encode()),
    "no json-rpc": lambda request, said: Reply(200, f"hello {said}".encode()),
    "an error": lambda request, said: Reply(200, fault(request, said)),
    "an error without a code": lambda request, said: Reply(
        500, json.dumps({"id": request.id, "error": said}).encode()
    ),
    "refused": lambda request, said: Reply(401, said.encode()),
    "a packing": lambda request, said: Reply(200, b"{}", {"content-encoding": said}),
    "a redirect": lambda request, said: Reply(307, b"", {"location": f"http://x/?{said}"}),
    "a redirect to a host": lambda request, said: Reply(
        307, b"", {"location": f"http://{KEY}.example/{TOKEN}"}
    ),
    "a redirect with a password": lambda request, said: Reply(
        307, b"", {"location": f"http://me:{KEY}@elsewhere.example/"}
    ),
    "a redirect that is no url": lambda request, said: Reply(307, b"", {"location": f"//[{KEY}"}),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_what_a_node_echoes_in_an_error_is_hidden(
    echo: str, fake: Fake, client: JsonRpc, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the message is cut in the middle of a secret."""
    for padding in ("." * length for length in range(0, 300, 25)):
        fake.answer = lambda request, before=padding: ECHOES[echo](  # type: ignore[misc]
            request, before + all_of(request)
        )
        with caplog.at_level(logging.DEBUG), pytest.raises(CoinhazeError) as caught:
            client.call("getit")
        check_hidden(str(caught.value))
        assert fake.url in str(caught.value)
        if isinstance(caught.value, RpcError):
            check_hidden(caught.value.message)
        check_hidden(getattr(caught.value, "text", ""))
    check_hidden(caplog.text)


def test_what_a_node_echoes_in_an_answer_of_another_shape_is_hidden(
    fake: Fake, client: JsonRpc
) -> None:
    fake.answer = lambda request: request.result(json.dumps({"number": all_of(request)}))
    with pytest.raises(CoinhazeError) as caught:
        EthereumNode(client).tip()
    check_hidden(str(caught.value))

    def block(request: Request) -> Reply:
        said = {"number": all_of(request), "hash": "", "parentHash": "", "timestamp": ""}
        return request.result(json.dumps(said))

    fake.answer = block
    with pytest.raises(LedgerError, match="number is no hex") as other:
        EthereumNode(client).tip()
    check_hidden(str(other.value))
    said = {"status": PAIR}
    fake.answer = lambda request: Reply(200, json.dumps({"id": "0", "result": said}).encode())
    with pytest.raises(CoinhazeError, match=r"the node says '\*\*\*'") as status:
        MoneroNode(client).tip()
    check_hidden(str(status.value))


def test_short_secrets_are_hidden_where_they_stand_alone() -> None:
    keep_secret("pw", "1")
    assert without_secrets("pw of pwd: 1 of 11 (PW)") == "*** of pwd: *** of 11 (***)"
    assert shorten("pw") == "'***'"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("bitcoin+http://127.0.0.1:8332", "bitcoin+http://127.0.0.1:8332"),
        ("bitcoin+http://127.0.0.1:8332/", "bitcoin+http://127.0.0.1:8332"),
        (f"bitcoin+http://me:{KEY}@host:1", "bitcoin+http://***@host:1"),
        (f"bitcoin+http://{KEY}@host", "bitcoin+http://***@host"),
        (f"bitcoin+http://me:{KEY}@x@host", "bitcoin+http://***@host"),
        (f"ethereum+https://host/v3/{KEY}", "ethereum+https://host/***"),
        (f"ethereum+https://host?key={KEY}", "ethereum+https://host/***"),
        (f"ethereum+https://host#{KEY}", "ethereum+https://host/***"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    "source",
    [
        f"http://me:{KEY}@127.0.0.1:1/v3/{KEY}?t={TOKEN}",
        f"doge+http://127.0.0.1:1/v3/{KEY}",
        f"bitcoin+http://me:{KEY}@127.0.0.1:1",
        f"bitcoin+ftp://127.0.0.1/{KEY}",
        f"bitcoin+http://127.0.0.1:{KEY}",
        f"bitcoin+http:// /{KEY}",
    ],
)
def test_an_address_that_is_refused_is_not_shown_with_its_secrets(source: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_node(source)
    check_hidden(str(caught.value))


def stopped(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("options", "place"),
    [
        (["--from", "0"], ""),
        (["--from", "3", "--to", "8", "--token", "0x" + "ab" * 20, "--follow"], PLACE),
        ([], PLACE),
    ],
)
def test_the_resume_command_has_every_option_and_no_secret(
    options: list[str],
    place: str,
    fake: Fake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake.answer = fake_chain(10)
    monkeypatch.setattr(ingest_command, "wait_counting", stopped)
    source, store = f"bitcoin+{fake.url}{place}", str(tmp_path / "a store")
    with pytest.raises(click.Abort):
        cli.main(["ingest", source, "-o", store, *options], standalone_mode=False)
    said = capsys.readouterr().err.strip().splitlines()
    again = shlex.split(said[0].removeprefix("to go on where it stopped: "))
    shown = f"bitcoin+{fake.url}/***" if place else source
    assert again == ["coinhaze", "ingest", shown, "-o", store, *options]
    assert len(said) == (2 if place else 1)
    assert not place or "write it again" in said[1]
    check_hidden("\n".join(said))


def test_the_resume_command_of_files_keeps_their_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ingest_command, "wait_for", stopped)
    file = tmp_path / "transfers.csv"
    file.write_text("from,to,amount\na,b,1\n")
    given = ["ingest", str(file), "-o", str(tmp_path / "store"), "--format", "transfers"]
    with pytest.raises(click.Abort):
        cli.main(given, standalone_mode=False)
    said = capsys.readouterr().err.splitlines()[0]
    assert said == "to go on where it stopped: " + shlex.join(["coinhaze", *given])


def test_a_resumed_command_goes_on_from_the_same_block(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Interrupted before the first commit, the store is empty: without --from it began at 0."""
    fake.answer = fake_chain(10)
    source, store = f"bitcoin+{fake.url}", tmp_path / "store"
    with monkeypatch.context() as patched:
        patched.setattr(ingest_command, "wait_counting", stopped)
        with pytest.raises(click.Abort):
            cli.main(["ingest", source, "-o", str(store), "--from", "4"], standalone_mode=False)
    said = capsys.readouterr().err.splitlines()[0]
    again = shlex.split(said.removeprefix("to go on where it stopped: "))
    cli.main(again[1:], standalone_mode=False)
    with Store(store, read_only=True) as opened:
        assert sorted(opened.headers()) == list(range(4, 10))


def test_stored_sources_and_provenance_have_no_secret(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COINHAZE_RPC_USER", "me")
    monkeypatch.setenv("COINHAZE_RPC_PASSWORD", PASSWORD)
    fake.answer = fake_chain(10)
    source, store = f"bitcoin+{fake.url}{PLACE}", tmp_path / "store"
    cli.main(["ingest", source, "-o", str(store)], standalone_mode=False)
    with Store(store, read_only=True) as opened:
        (stored,) = opened.sources()
    assert stored.name == f"bitcoin+{fake.url}"
    check_hidden(str(stored))
    check_hidden(store.read_bytes().decode("latin-1"))
    monkeypatch.setattr(sys, "argv", ["coinhaze", "wallet", source, "--coins", "coins.csv"])
    command = wallet_command._command()
    assert command == f"coinhaze wallet bitcoin+{fake.url}/*** --coins coins.csv"


def test_a_following_that_waits_shows_no_secret(
    fake: Fake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COINHAZE_RPC_USER", "me")
    monkeypatch.setenv("COINHAZE_RPC_PASSWORD", PASSWORD)
    monkeypatch.setattr("coinhaze.nodes.http.pause_after", lambda attempt: 0.0)
    fake.answer = fake_chain(3)
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        fake.answer = lambda request: Reply(503, all_of(request).encode())
        if len(waits) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(ingest_command, "time", SimpleNamespace(sleep=sleep))
    with pytest.raises(click.Abort):
        cli.main(
            ["ingest", f"bitcoin+{fake.url}{PLACE}", "--follow", "-o", str(tmp_path / "store")],
            standalone_mode=False,
        )
    said = capsys.readouterr().err
    assert said.count("too busy in 6 tries") == 1
    check_hidden(said)
