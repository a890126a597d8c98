from __future__ import annotations

import gzip
import itertools
import json
import logging
import socket
import sys
import threading
import time
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from coinhaze.errors import CoinhazeError, InputError, SourceUnreachable, UsageError
from coinhaze.nodes.http import AccessRefused, Credentials, StatusError
from coinhaze.nodes.rpc import JsonRpc, RpcError
from nodes.daemons import free_port
from nodes.fakes import Fake, Reply, Request, mutated

SECRET = "correct-horse"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were asked for, none of which is made."""
    made: list[float] = []
    monkeypatch.setattr("coinhaze.nodes.rpc.time.sleep", made.append)
    return made


def asked(fake: Fake, *params: object, retries: int = 0, **options: object) -> bytes:
    with JsonRpc(fake.url, retries=retries, **options) as rpc:  # type: ignore[arg-type]
        return rpc.call("getit", *params)


def test_a_result_comes_back_in_the_very_bytes_the_node_wrote(fake: Fake) -> None:
    fake.answer = lambda request: request.result("20999999.97690000")
    assert asked(fake, "a", 1, True) == b"20999999.97690000"
    sent = json.loads(fake.requests[0].body)
    assert (sent["method"], sent["params"]) == ("getit", ["a", 1, True])
    assert fake.requests[0].headers["content-type"] == "application/json"


def test_parameters_may_go_by_name(fake: Fake) -> None:
    with JsonRpc(fake.url) as rpc:
        rpc.call("get_block", height=7)
    assert json.loads(fake.requests[0].body)["params"] == {"height": 7}


def test_a_null_result_is_a_result(fake: Fake) -> None:
    fake.answer = lambda request: request.result("null")
    assert asked(fake) == b"null"


def test_a_batch_is_one_request_and_its_results_come_in_the_order_requested(fake: Fake) -> None:
    def answer(request: Request) -> Reply:
        calls = json.loads(request.body)
        answers = [{"id": c["id"], "result": c["params"][0] * 2} for c in reversed(calls)]
        return Reply(body=json.dumps(answers).encode())

    fake.answer = answer
    with JsonRpc(fake.url) as rpc:
        assert rpc.batch([("double", [n]) for n in range(5)]) == [b"0", b"2", b"4", b"6", b"8"]
        assert rpc.batch([]) == []
    assert len(fake.requests) == 1


def test_one_refused_call_of_a_batch_is_raised_with_its_method(fake: Fake) -> None:
    def answer(request: Request) -> Reply:
        good, bad = json.loads(request.body)
        fault = {"code": -8, "message": "Block height out of range"}
        return Reply(
            body=json.dumps(
                [{"id": good["id"], "result": 1}, {"id": bad["id"], "error": fault}]
            ).encode()
        )

    fake.answer = answer
    with JsonRpc(fake.url) as rpc, pytest.raises(RpcError, match="getblockhash refused") as caught:
        rpc.batch([("getblockcount", []), ("getblockhash", [9])])
    assert (caught.value.code, caught.value.message) == (-8, "Block height out of range")
    assert caught.value.exit_code == 4


def test_a_batch_that_leaves_a_call_out_is_refused(fake: Fake) -> None:
    fake.always(Reply(body=b"[]"))
    with JsonRpc(fake.url) as rpc, pytest.raises(SourceUnreachable, match="no answer to getit"):
        rpc.batch([("getit", [])])


@pytest.mark.parametrize("status", [200, 404, 500])
def test_a_refusal_is_reported_by_code_and_message_whatever_the_status(
    fake: Fake, status: int
) -> None:
    fake.answer = lambda request: Reply(
        status,
        b'{"result":null,"error":{"code":-5,"message":"Block not found"},"id":%d}' % request.id,
    )
    with pytest.raises(RpcError, match="Block not found") as caught:
        asked(fake)
    assert caught.value.code == -5
    assert caught.value.method == "getit"


def test_a_refusal_in_bare_text_is_reported(fake: Fake) -> None:
    fake.answer = lambda request: Reply(body=b'{"error":"no such key","id":%d}' % request.id)
    with pytest.raises(RpcError, match="no such key"):
        asked(fake)


def test_a_refusal_of_the_whole_batch_is_reported(fake: Fake) -> None:
    fake.always(Reply(body=b'{"error":{"code":-32600,"message":"batch too large"},"id":null}'))
    with JsonRpc(fake.url) as rpc, pytest.raises(RpcError, match="batch too large"):
        rpc.batch([("a", []), ("b", [])])


def test_an_answer_to_another_request_is_refused(fake: Fake) -> None:
    fake.always(Reply(body=b'{"result":1,"id":999}'))
    with pytest.raises(SourceUnreachable, match="no answer to getit"):
        asked(fake)


@pytest.mark.parametrize(
    "body", [b"", b"<html>hello", b"{}", b"17", b'{"id":1', b"\xff\xfe", b"[1]", b"[" * 100_000]
)
def test_what_is_not_json_rpc_is_refused(fake: Fake, body: bytes) -> None:
    fake.always(Reply(body=body))
    with pytest.raises(SourceUnreachable):
        asked(fake)


def test_neither_result_nor_error_is_refused(fake: Fake) -> None:
    fake.answer = lambda request: Reply(body=b'{"id":%d}' % request.id)
    with pytest.raises(SourceUnreachable, match="neither result nor error"):
        asked(fake)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_node_is_requested_again_after_longer_and_longer_pauses(
    fake: Fake, pauses: list[float], status: int
) -> None:
    fake.then(*[Reply(status, b"busy")] * 4)
    assert asked(fake, retries=5) == b"1"
    assert len(fake.requests) == 5
    assert all(0.125 * 2**n <= pause <= 0.375 * 2**n for n, pause in enumerate(pauses))
    assert len(pauses) == 4


def test_a_full_work_queue_is_waited_out_even_with_status_500(
    fake: Fake, pauses: list[float]
) -> None:
    fake.then(Reply(500, b"Work queue depth exceeded"))
    assert asked(fake, retries=1) == b"1"
    assert len(pauses) == 1


def test_a_node_that_still_loads_its_index_is_waited_for(fake: Fake, pauses: list[float]) -> None:
    usual, left = fake.answer, [1, 1]

    def answer(request: Request) -> Reply:
        if not left:
            return usual(request)
        left.pop()
        text = b'{"error":{"code":-28,"message":"Loading block index..."},"id":%d}'
        return Reply(500, text % request.id)

    fake.answer = answer
    assert asked(fake, retries=2) == b"1"
    left.extend([1] * 9)
    with pytest.raises(RpcError, match="Loading block index"):
        asked(fake, retries=2)


def test_a_pause_the_node_requests_stays_within_reason(fake: Fake, pauses: list[float]) -> None:
    fake.then(
        Reply(429, headers={"retry-after": "7"}), Reply(429, headers={"retry-after": "86400"})
    )
    assert asked(fake, retries=5) == b"1"
    assert pauses == [7.0, 60.0]


def test_a_node_busy_for_ever_is_given_up(fake: Fake, pauses: list[float]) -> None:
    fake.always(Reply(503, b"Work queue depth exceeded"))
    with pytest.raises(SourceUnreachable, match="too busy in 4 tries: status 503") as caught:
        asked(fake, retries=3)
    assert caught.value.exit_code == 4
    assert len(fake.requests) == 4


def test_a_closed_port_is_named_and_tried_again(pauses: list[float]) -> None:
    port = free_port()
    with (
        JsonRpc(f"http://127.0.0.1:{port}", retries=2) as rpc,
        pytest.raises(SourceUnreachable, match=rf"127.0.0.1:{port}: no answer in 3 tries"),
    ):
        rpc.call("getblockcount")
    assert len(pauses) == 2


def test_a_connection_cut_in_the_answer_is_tried_again(pauses: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for text in (b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{", None):
                peer, _ = listener.accept()
                with peer:
                    sent = b""
                    while not sent.endswith(b"}"):  # headers and body may come apart
                        sent += peer.recv(65536)
                    number = json.loads(sent[sent.index(b"{") :])["id"]
                    body = b'{"result":5,"id":%d}' % number
                    whole = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body
                    peer.sendall(text or whole)

        thread = threading.Thread(target=serve)
        thread.start()
        with JsonRpc(f"http://127.0.0.1:{listener.getsockname()[1]}", retries=1) as rpc:
            assert rpc.call("getit") == b"5"
        thread.join()
    assert len(pauses) == 1


def test_a_silent_node_is_given_up_after_the_time_out(fake: Fake) -> None:
    over = threading.Event()

    def answer(request: Request) -> Reply:
        over.wait(60)
        return request.result("1")

    fake.answer = answer
    with pytest.raises(SourceUnreachable, match=r"silent for 0.2 s"):
        asked(fake, timeout=0.2)
    over.set()  # given up while the node was silent still


def test_an_answer_that_drips_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0.0, 10.0)  # with each look at it
    passing = SimpleNamespace(monotonic=lambda: next(clock), sleep=time.sleep)
    monkeypatch.setattr("coinhaze.nodes.http.time", passing)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n")
                try:
                    while True:
                        peer.sendall(b" ")
                        time.sleep(0.02)
                except OSError:
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with (
            JsonRpc(url, retries=0, timeout=60) as rpc,
            pytest.raises(SourceUnreachable, match=r"an answer took 600 s"),
        ):
            rpc.call("getit")
        thread.join()


def test_an_answer_above_the_limit_is_refused(fake: Fake) -> None:
    fake.answer = lambda request: request.result('"%s"' % ("x" * 1000))
    with pytest.raises(SourceUnreachable, match="above the limit of 1000 bytes"):
        asked(fake, largest=1000)
    assert len(asked(fake, largest=2000)) == 1002


def test_a_packed_answer_is_unpacked_up_to_the_limit(fake: Fake) -> None:
    def answer(request: Request) -> Reply:
        plain = request.result('"%s"' % ("x" * 100_000)).body
        return Reply(body=gzip.compress(plain), headers={"content-encoding": "gzip"})

    fake.answer = answer
    assert len(asked(fake, largest=200_000)) == 100_002
    with pytest.raises(SourceUnreachable, match="above the limit of 5000 bytes"):
        asked(fake, largest=5000)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(b"plain", "gzip"), (gzip.compress(b"{}" * 999, mtime=0)[:-9], "gzip"), (b"{}", "br")],
)
def test_a_damaged_or_unknown_packing_is_refused(fake: Fake, body: bytes, encoding: str) -> None:
    fake.always(Reply(body=body, headers={"content-encoding": encoding}))
    with pytest.raises(SourceUnreachable, match=r"gzip|packing"):
        asked(fake)


def test_a_redirect_is_not_followed(fake: Fake) -> None:
    fake.always(Reply(307, headers={"location": f"http://evil.example/?{SECRET}"}))
    with pytest.raises(StatusError, match=r"status 307 \(sent on to evil.example") as caught:
        asked(fake)
    assert SECRET not in str(caught.value)
    assert len(fake.requests) == 1


def test_paths_of_the_host_are_read_and_posted_to(fake: Fake) -> None:
    fake.always(Reply(body=b"\x00raw"))
    with JsonRpc(fake.url + "/json_rpc") as rpc:
        assert rpc.get("/rest/block/00.bin") == b"\x00raw"
        assert rpc.post("/get_transactions", {"txs_hashes": ["aa"]}) == b"\x00raw"
    read, sent = fake.requests
    assert (read.verb, read.path, read.body) == ("GET", "/rest/block/00.bin", b"")
    assert (sent.verb, sent.path) == ("POST", "/get_transactions")
    assert json.loads(sent.body) == {"txs_hashes": ["aa"]}


def test_calls_go_to_the_whole_url(fake: Fake) -> None:
    with JsonRpc(fake.url + "/v3/key?x=1") as rpc:
        rpc.call("getit")
    assert fake.requests[0].path == "/v3/key?x=1"


def test_a_path_that_is_not_there_is_reported_by_status(fake: Fake) -> None:
    fake.always(Reply(404, b"Block undo data not found"))
    with JsonRpc(fake.url) as rpc, pytest.raises(StatusError, match="undo data") as caught:
        rpc.get("/rest/spenttxouts/00.bin")
    assert (caught.value.status, caught.value.text) == (404, "Block undo data not found")


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_an_error_of_their_own(fake: Fake, status: int) -> None:
    fake.always(Reply(status))
    with pytest.raises(AccessRefused, match="COINHAZE_RPC_COOKIE") as caught:
        asked(fake, credentials=Credentials("me", SECRET))
    assert SECRET not in str(caught.value)


def test_credentials_are_sent_and_never_shown(fake: Fake, caplog: pytest.LogCaptureFixture) -> None:
    credentials = Credentials("me", SECRET)
    assert SECRET not in repr(credentials)
    with (
        caplog.at_level(logging.INFO),
        JsonRpc(f"{fake.url}/v3/{SECRET}", credentials=credentials, retries=0) as rpc,
    ):
        assert rpc.call("getit") == b"1"
        fake.always(Reply(500, b"broken"))
        with pytest.raises(StatusError) as caught:
            rpc.call("getit")
    assert fake.requests[0].headers["authorization"].startswith("Basic ")
    assert SECRET not in str(caught.value)
    assert SECRET not in caplog.text


def test_digest_credentials_answer_a_challenge(fake: Fake) -> None:
    def answer(request: Request) -> Reply:
        if "authorization" in request.headers:
            return request.result("1")
        challenge = 'Digest qop="auth",algorithm=MD5,realm="monero-rpc",nonce="abc"'
        return Reply(401, headers={"www-authenticate": challenge})

    fake.answer = answer
    assert asked(fake, credentials=Credentials("me", SECRET, digest=True)) == b"1"
    assert fake.requests[1].headers["authorization"].startswith("Digest ")


@pytest.mark.parametrize("userinfo", [f"me:{SECRET}", SECRET, f":{SECRET}"])
def test_a_url_that_carries_a_secret_is_refused_without_showing_it(userinfo: str) -> None:
    with pytest.raises(UsageError, match="COINHAZE_RPC_PASSWORD") as caught:
        JsonRpc(f"http://{userinfo}@127.0.0.1:8332")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://h", "gopher://h:70", "127.0.0.1:8332", "", "http://", "http:///x",
     "http://h:99999", "http://[::1", "http://h/a b", "http://h\r\nx: y", "unix:/var/run/x"],
)  # fmt: skip
def test_a_url_that_is_none_of_a_node_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="URL"):
        JsonRpc(url)


def test_a_proxy_of_the_environment_is_not_used_on_loopback(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{free_port()}")
    assert asked(fake) == b"1"


def test_without_the_library_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(UsageError, match=r"pip install 'coinhaze\[nodes\]'"):
        JsonRpc("http://127.0.0.1:8332")


def test_credentials_come_from_a_cookie_file(tmp_path: Path) -> None:
    cookie = tmp_path / ".cookie"
    cookie.write_text(f"__cookie__:{SECRET}:1\n")
    found = Credentials.from_environment({"COINHAZE_RPC_COOKIE": str(cookie)})
    assert found == Credentials("__cookie__", f"{SECRET}:1")


def test_credentials_come_from_the_environment() -> None:
    given = {"COINHAZE_RPC_USER": "me", "COINHAZE_RPC_PASSWORD": SECRET}
    assert Credentials.from_environment(given) == Credentials("me", SECRET)
    assert Credentials.from_environment({}) is None


@pytest.mark.parametrize(
    "given",
    [
        {"COINHAZE_RPC_USER": "me"},
        {"COINHAZE_RPC_PASSWORD": SECRET},
        {"COINHAZE_RPC_COOKIE": "x", "COINHAZE_RPC_USER": "me", "COINHAZE_RPC_PASSWORD": SECRET},
    ],
)
def test_credentials_that_do_not_go_together_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="COINHAZE_RPC_PASSWORD") as caught:
        Credentials.from_environment(given)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"nocolon", b":x", b"x:", b"\xff\xfe\x00"])
def test_a_cookie_file_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cookie"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cookie"):
        Credentials.from_cookie(path)


def test_a_cookie_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(InputError, match="cookie cannot be read"):
            Credentials.from_cookie(path)


def check_mutants(fake: Fake, times: int) -> None:
    random = Random(8)
    good = [
        b'{"result":{"a":[1.5,"x"]},"error":null,"id":1}',
        b'{"jsonrpc":"2.0","error":{"code":-8,"message":"no"},"id":1}',
        b'[{"result":1,"id":1},{"result":null,"id":2}]',
    ]
    answers: list[bytes] = []
    fake.answer = lambda request: Reply(body=answers[-1])
    with JsonRpc(fake.url, retries=0) as rpc, pytest.MonkeyPatch.context() as patch:
        for _ in range(times):
            answers.append(mutated(random.choice(good), random))
            patch.setattr("coinhaze.nodes.rpc._numbers", iter((1, 2)))
            try:
                results = rpc.batch([("a", []), ("b", [])])
            except CoinhazeError:
                continue
            assert all(isinstance(result, bytes) and result for result in results)


def test_no_mutant_of_an_answer_brings_out_another_kind_of_error(fake: Fake) -> None:
    check_mutants(fake, 2000)


@pytest.mark.long
def test_no_mutant_of_many_brings_out_another_kind_of_error(fake: Fake) -> None:
    check_mutants(fake, 20_000)
