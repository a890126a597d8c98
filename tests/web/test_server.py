"""A real server over a real ledger: what a socket sees."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx2
import pytest
from benchmarks.served import Served, serving

from coinhaze.errors import InputError, UsageError
from coinhaze.explore.query import Policy
from coinhaze.web import server
from coinhaze.web.client import Client
from coinhaze.web.security.guard import Limits
from web.asking import answered
from web.browsing import login_of

HOSTILE = "<script>alert(1)</script>"
PATIENCE = 120.0  # seconds: more than any answer takes on the busiest machine


def get(url: str, headers: dict[str, str]) -> httpx2.Response:
    return answered(lambda: httpx2.get(url, headers=headers, timeout=PATIENCE))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("served")
    rows = [
        "from,to,value", "alice,carol,3", "bob,carol,5", "carol,shop,2", f"alice,{HOSTILE},4",
        "=1+1,shop,1",
    ]  # fmt: skip
    (place / "town.csv").write_text("\n".join(rows) + "\n")
    (place / "list.txt").write_text("alice\n")
    return place


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    with serving(folder / "town.csv", "--list", f"bad={folder / 'list.txt'}") as found:
        with found.client() as client:
            client.ledger("town")
        yield found


def test_the_client_s_first_answer_is_right(served: Served) -> None:
    with served.client() as client:
        assert [card.id for card in client.ledgers()] == ["town"]
        coin = client.coin("town", "carol")
        assert coin.bits == pytest.approx(0.9544340029249649)
        listed = client.lists()[0]
        exposed = client.coin("town", "carol", list=listed.id).exposure
        assert exposed is not None
        assert exposed.share == pytest.approx(3 / 8)


def test_a_hostile_name_is_text_on_the_page_and_in_json(served: Served) -> None:
    headers = served.bearer
    name = "%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    page = get(f"{served.address}/l/town/coin/{name}", headers)
    assert page.status_code == 200
    assert HOSTILE not in page.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
    found = get(f"{served.address}/api/v1/ledgers/town/coins/{name}", headers)
    assert found.json()["name"] == HOSTILE
    assert found.headers["content-type"] == "application/json"


def test_csv_of_a_real_table_holds_no_formula(served: Served) -> None:
    url = f"{served.address}/api/v1/ledgers/town/coins/shop/origins.csv"
    text = get(url, served.bearer).text
    assert "'=1+1" in text


def test_it_listens_on_this_machine_alone(served: Served) -> None:
    with socket.socket() as other:
        # Any other address of this machine: the port is free there.
        other.bind(("127.0.0.2", served.port))


def raw(served: Served, data: bytes) -> bytes:
    """Send bytes, and give what is answered: a head, and a body as long as that says."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE) as sock:
        sock.sendall(data)
        found = b""
        while not _is_whole(found) and (piece := sock.recv(65536)):
            found += piece
        return found


def _is_whole(answer: bytes) -> bool:
    head, ended, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\ncontent-length: *(\d+)", head)
    return ended != b"" and length is not None and len(body) >= int(length[1])


def test_headers_without_end_are_cut_off(served: Served) -> None:
    head = b"GET /api/v1/ledgers HTTP/1.1\r\nHost: localhost\r\n"
    found = raw(served, head + b"X-Long: " + b"x" * 9000)
    assert found.startswith(b"HTTP/1.1 431 ")
    assert b"headers-too-large" in found
    assert b"content-security-policy" in found.lower()


@pytest.mark.parametrize("junk", [b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\r\n\r\n", b"GET\r\n\r\n"])
def test_what_is_no_http_is_refused(served: Served, junk: bytes) -> None:
    assert raw(served, junk).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "smuggled",
    [
        b"Content-Length: 5\r\nContent-Length: 6\r\n", b"Content-Length: -1\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0", b"Content-Length: 1_0\r\n",
    ],
    ids=range(4),
)  # fmt: skip
def test_a_body_of_two_lengths_is_refused(served: Served, smuggled: bytes) -> None:
    head = b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n" + smuggled + b"\r\n"
    assert raw(served, head).split(b" ")[1] in (b"400", b"401", b"403")


def dribble(port: int) -> float:
    """Send a request a letter at a time; give the seconds until the server has had enough."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock:
        while time.monotonic() - began < PATIENCE:
            try:
                sock.sendall(b"G")
            except OSError:
                return time.monotonic() - began
            time.sleep(0.1)
    raise AssertionError("the server takes letters for ever")


def test_a_request_that_dribbles_in_is_dropped(folder: Path) -> None:
    with serving(
        folder / "town.csv", command=[str(Path(__file__).with_name("dribble.py"))]
    ) as slow:
        assert dribble(slow.port) > 0.4
        # Many that say nothing do not keep others out.
        idle = [socket.create_connection(("127.0.0.1", slow.port)) for _ in range(50)]
        found = httpx2.get(f"{slow.address}/api/v1/ledgers", headers=slow.bearer, timeout=PATIENCE)
        assert found.status_code == 200
        for one in idle:
            one.close()


STRANGERS = {
    "half-open": b"",
    "slow head": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    "slow body": b"POST /enter HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n\r\n{",
    "kept alive": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
}


@pytest.mark.parametrize("says", STRANGERS.values(), ids=STRANGERS.keys())
def test_strangers_do_not_use_up_the_owner_s_connections(served: Served, says: bytes) -> None:
    at = "127.0.0.1", served.port
    waits = []
    with ExitStack() as all_open, httpx2.Client(headers=served.bearer, timeout=PATIENCE) as owner:
        assert owner.get(f"{served.address}/").status_code == 200
        for _ in range(250):
            stranger = all_open.enter_context(socket.create_connection(at, timeout=PATIENCE))
            stranger.sendall(says)
        for fresh in (False, True, True, True):
            for _ in range(5):  # and more of them come all the time
                more = all_open.enter_context(socket.create_connection(at, timeout=PATIENCE))
                more.sendall(says)
            began = time.monotonic()
            if fresh:
                found = httpx2.get(f"{served.address}/", headers=served.bearer, timeout=PATIENCE)
            else:
                found = owner.get(f"{served.address}/", timeout=PATIENCE)
            waits.append(time.monotonic() - began)
            assert found.status_code == 200
            assert "town.csv" in found.text
    # The first came over a connection that was open already. Not one of the others was let in only
    # after strangers had been closed for their slowness.
    assert min(waits[1:]) < Limits().headers_within, waits


def test_connections_stay_within_their_limit(served: Served) -> None:
    at = "127.0.0.1", served.port
    with ExitStack() as all_open:
        some = [all_open.enter_context(socket.create_connection(at)) for _ in range(250)]
        httpx2.get(f"{served.address}/", headers=served.bearer, timeout=PATIENCE)
        # The oldest were closed for the newest, and no more of them than that.
        closed = [is_closed(one) for one in some]
        assert 50 <= sum(closed) <= 60
        assert all(closed[:50])


def is_closed(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize("body", [b"Transfer-Encoding: chunked", b"Content-Length: 100000"])
@pytest.mark.parametrize("path", [b"/x", b"/static/app.css"])
def test_a_body_that_is_not_wanted_holds_no_connection(
    served: Served, path: bytes, body: bytes
) -> None:
    head = b"POST " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n" + body + b"\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE) as sock:
        sock.sendall(head)
        found = b""
        while piece := sock.recv(65536):  # until the server closes: a timeout fails
            found += piece
    assert found.split(b" ")[1] in (b"400", b"401", b"403")


def test_the_token_is_written_once_and_nowhere_else(served: Served) -> None:
    headers = served.bearer
    httpx2.get(served.first)
    httpx2.get(f"{served.address}/nowhere?token={served.token}")
    httpx2.get(f"{served.address}/enter", headers={"authorization": login_of(served.token)})
    get(f"{served.address}/api/v1/ledgers/town/coins/none", headers)
    httpx2.post(f"{served.address}/api/v1/jobs", headers=headers, content=served.token)
    raw(served, f"BAD {served.token}\r\n\r\n".encode())
    assert served.written().count(served.token) == 1
    assert served.token not in served.first
    command = Path(f"/proc/{served.process.pid}/cmdline")
    assert not command.exists() or served.token not in command.read_text()


def test_a_token_from_a_file_is_never_written(folder: Path) -> None:
    path = folder / "token"
    path.write_text(server.new_token())
    path.chmod(0o600)
    with serving(folder / "town.csv", "--token-file", path) as found:
        bearer = {"authorization": f"Bearer {path.read_text()}"}
        answer = get(f"{found.address}/api/v1/ledgers", bearer)
        assert answer.status_code == 200
        assert path.read_text() not in found.written()
        assert "code=" not in found.written()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
@pytest.mark.parametrize("more", [[], ["--allow-remote"], ["--token-file", "token"]])
def test_it_is_not_reached_from_elsewhere_unless_both_are_given(host: str, more: list[str]) -> None:
    with pytest.raises(UsageError, match="--allow-remote and --token-file"):
        server.check_place(
            host,
            allow_remote="--allow-remote" in more,
            token_file=Path("token") if "--token-file" in more else None,
        )


def test_the_command_refuses_it_too(folder: Path) -> None:
    command = [sys.executable, "-m", "coinhaze", "serve", str(folder / "town.csv")]
    found = subprocess.run(
        [*command, "--host", "0.0.0.0"], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout) == (2, "")
    assert "--allow-remote" in found.stderr


def test_a_token_others_can_read_or_guess_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(server.new_token())
    path.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        server.read_token(path)
    path.chmod(0o600)
    assert len(server.read_token(path)) == 43
    for bad in ("short", "a b" * 20, "ä" * 40, ""):
        path.write_text(bad)
        with pytest.raises(InputError) as caught:
            server.read_token(path)
        assert not bad or bad not in str(caught.value)


def test_a_port_that_is_taken_is_named(served: Served) -> None:
    with pytest.raises(UsageError, match="--port 0"):
        server.listen("127.0.0.1", served.port)


def test_answers_are_sent_at_once() -> None:
    # asyncio turns Nagle's waiting off for sockets that say they are TCP, and for no others.
    with server.listen("127.0.0.1", 0) as sock:
        assert sock.proto == socket.IPPROTO_TCP


def settled(client: Client, ledger: str) -> str:
    """The state of a ledger once it is no longer being opened."""
    state, end = "loading", time.monotonic() + PATIENCE
    while state == "loading" and time.monotonic() < end:
        state = {card.id: card.state for card in client.ledgers()}[ledger]
        time.sleep(0.05)
    return state


def the_child_of(process: int) -> int:
    """Wait until a process has begun another one, and give that one."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(FileNotFoundError):  # a thread that has just ended
                for child in (thread / "children").read_text().split():
                    return int(child)
        time.sleep(0.05)
    raise AssertionError("no process was begun")


@pytest.mark.skipif(sys.platform != "linux", reason="a process's children are told on Linux only")
def test_two_clients_and_a_long_job_do_not_wait_for_each_other(
    folder: Path, tmp_path: Path
) -> None:
    rows = (f"alice,person{k:06},5\n" for k in range(1 << 18))
    (tmp_path / "large.csv").write_text("from,to,value\n" + "".join(rows))
    with serving(folder / "town.csv", tmp_path / "large.csv") as found, found.client() as client:
        client.coin("town", "carol")
        assert settled(client, "large") == "not scored"
        job = client.score("large")
        scoring = the_child_of(found.process.pid)
        os.kill(scoring, signal.SIGSTOP)  # the job takes longer than they do for certain
        told: list[int] = []

        def ask(policy: Policy) -> None:
            with found.client() as other:
                for top in range(1, 13):
                    other.coin("town", "carol", policy=policy, top=top)
                    told.append(top)

        askers = [threading.Thread(target=ask, args=(p,)) for p in ("haircut", "fifo")]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        assert len(told) == 24
        assert client.job(job).state == "running"
        assert client.cancel(job).state == "cancelled"
        assert settled(client, "large") == "not scored"
