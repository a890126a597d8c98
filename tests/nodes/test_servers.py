"""Servers that lie, break, flood or hang: one line each, in bounded time and memory."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import pytest

from coinhaze.errors import (
    CoinhazeError,
    InputError,
    NotAnswering,
    ResourceError,
    SourceUnreachable,
    UnknownName,
    UsageError,
)
from coinhaze.formats.bitcoin_raw.wire import double_sha256, id_text
from coinhaze.formats.descriptors import Descriptor
from coinhaze.formats.lists.coins import ListedCoin
from coinhaze.nodes.electrum import ElectrumServer
from coinhaze.nodes.esplora import EsploraServer
from coinhaze.nodes.http import RequestRate
from coinhaze.nodes.servers import (
    MAX_COINS,
    Claim,
    ServerTransactions,
    is_server,
    open_server,
    privacy_notes,
)
from coinhaze.nodes.sockets import read_fingerprint, read_proxy
from coinhaze.nodes.transactions import TransactionCache
from coinhaze.wallet.keys import MAX_SCRIPTS, listed_coins, scripts_in_use
from nodes.fakes import Fake, Reply, mutated

# The first block of regtest.
FIRST = (
    "0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e"
    "67768f617fc81bc3888a51323a9fb8aa4b1e5e4adae5494dffff7f2002000000"
)
GENESIS = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206"
SCRIPT = bytes.fromhex("0014751e76e8199196d454941c45d1b3a323f1433bd6")
ADDRESS = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"


def transaction(spends: Sequence[tuple[str, int]], *pays: tuple[int, bytes]) -> tuple[str, bytes]:
    """Make a transaction without signatures; no spends make a coinbase."""
    body = (2).to_bytes(4, "little") + bytes([max(len(spends), 1)])
    for txid, vout in spends or [("00" * 32, 0xFFFFFFFF)]:
        body += bytes.fromhex(txid)[::-1] + vout.to_bytes(4, "little") + b"\0" + b"\xff" * 4
    body += bytes([len(pays)])
    for value, script in pays:
        body += value.to_bytes(8, "little") + bytes([len(script)]) + script
    body += bytes(4)
    return id_text(double_sha256(body)), body


MINED, MINED_BODY = transaction([], (50, SCRIPT))
PAID, PAID_BODY = transaction([(MINED, 0)], (20, SCRIPT), (30, b"\x51\x20" + b"\1" * 32))


@dataclass
class Told:
    """A server in memory, that says what it is told to."""

    bodies: dict[str, bytes] = field(default_factory=lambda: {MINED: MINED_BODY, PAID: PAID_BODY})
    claims: list[Claim] = field(default_factory=lambda: [Claim(PAID, 0, 20)])
    node: str = "told"
    network: str = "bitcoin regtest"
    tip: int = 7
    requests: int = 0

    def raw(self, txids: Sequence[str]) -> list[bytes]:
        self.requests += len(txids)
        return [self.bodies[txid] for txid in txids]

    def used(self, scripts: Sequence[bytes]) -> list[bool]:
        return [True for _ in scripts]

    def unspent(self, scripts: Sequence[bytes]) -> list[list[Claim]]:
        return [self.claims for _ in scripts]

    def height(self) -> int:
        return self.tip

    def close(self) -> None:
        pass


@pytest.fixture
def cache() -> Iterator[TransactionCache]:
    with TransactionCache(":memory:", "bitcoin regtest") as opened:
        yield opened


def test_transactions_are_built_of_what_their_ids_prove(cache: TransactionCache) -> None:
    server = Told()
    past = ServerTransactions(server, cache)
    (paid,) = past.transactions([PAID])
    assert [(i.txid, i.vout, i.value, i.address) for i in paid.inputs] == [(MINED, 0, 50, ADDRESS)]
    assert [(o.value, o.vout) for o in paid.outputs] == [(20, 0), (30, 1)]
    (mined,) = past.transactions([MINED])
    assert mined.coinbase
    assert (past.requested, past.found) == (2, 0)
    assert past.coins([SCRIPT])[0] == [(f"{PAID}:0", 20)]
    assert past.is_unspent(PAID, 0)
    assert not past.is_unspent(MINED, 0)
    again = ServerTransactions(Told(bodies={}), cache)
    assert again.transactions([PAID]) != []
    assert (again.requested, again.found) == (0, 2)


def test_a_damaged_cache_is_requested_again(cache: TransactionCache) -> None:
    cache.keep_raw({PAID: MINED_BODY, MINED: b"\0"})
    past = ServerTransactions(Told(), cache)
    assert past.transactions([PAID])[0].txid == PAID
    assert (past.requested, past.found) == (2, 0)


def test_the_limit_counts_what_only_tells_values(cache: TransactionCache) -> None:
    for limit, count in ((1, 0), (2, 1)):
        past = ServerTransactions(Told(), cache, max_transactions=limit)
        assert len(past.transactions([PAID])) == count
        assert past.transactions([PAID, MINED][:limit]) is not None


BIG, BIG_BODY = transaction([], (22_000_000 * 100_000_000, SCRIPT))
NOWHERE, NOWHERE_BODY = transaction([(MINED, 3)], (20, SCRIPT))


@pytest.mark.parametrize(
    ("bodies", "wanted", "words"),
    [
        ({PAID: MINED_BODY}, PAID, "gave .* where .* was requested"),
        ({PAID: PAID_BODY[:-1]}, PAID, "not a transaction"),
        ({PAID: PAID_BODY + b"\0"}, PAID, "left over"),
        ({PAID: b""}, PAID, "not a transaction"),
        ({PAID: b"\0" * 4 + b"\xff" * 9}, PAID, "not a transaction"),
        ({PAID: PAID_BODY, MINED: PAID_BODY}, PAID, "was requested"),
        ({BIG: BIG_BODY}, BIG, "no transaction that a block could have"),
        ({NOWHERE: NOWHERE_BODY, MINED: MINED_BODY}, NOWHERE, "does not exist"),
    ],
)
def test_forged_transactions_are_refused(
    cache: TransactionCache, bodies: dict[str, bytes], wanted: str, words: str
) -> None:
    with pytest.raises(SourceUnreachable, match=words):
        ServerTransactions(Told(bodies=bodies), cache).transactions([wanted])


@pytest.mark.parametrize(
    "claim",
    [Claim(PAID, 1, 30), Claim(PAID, 0, 21), Claim(PAID, 2, 20), Claim(PAID, -1, 30),
     Claim(PAID[:-1], 0, 20), Claim("../" + PAID[3:], 0, 20)],
)  # fmt: skip
def test_forged_coins_are_refused(cache: TransactionCache, claim: Claim) -> None:
    with pytest.raises(SourceUnreachable, match="names a coin"):
        ServerTransactions(Told(claims=[claim]), cache).coins([SCRIPT])


def test_too_much_is_refused(cache: TransactionCache) -> None:
    many = [Claim(PAID, 0, 20)] * (MAX_COINS + 1)
    with pytest.raises(ResourceError, match="coins and more"):
        ServerTransactions(Told(claims=many), cache).coins([SCRIPT])
    branch = Descriptor("wpkh receive", False, True, lambda index: SCRIPT)
    past = ServerTransactions(Told(), cache)
    with pytest.raises(ResourceError, match="addresses of one branch"):
        listed_coins(past, [ListedCoin("here", keys=(branch,))], gap_limit=1_000)
    for tip in (-1, 2**31):
        with pytest.raises(SourceUnreachable, match="last block"):
            ServerTransactions(Told(tip=tip), cache).blocks()
    with pytest.raises(UsageError, match="Bitcoin's networks alone"):
        ServerTransactions(Told(network="litecoin"), cache)
    assert MAX_SCRIPTS >= 1_000


def test_a_script_without_an_address_is_found_by_its_hash_alone(
    cache: TransactionCache, fake: Fake
) -> None:
    key = bytes.fromhex(
        "21" + "02" + "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
    )
    for script in (b"\x51", key + b"\xac"):
        txid, body = transaction([], (50, script))
        server = Told(bodies={txid: body}, claims=[Claim(txid, 0, 50)])
        assert ServerTransactions(server, cache).is_unspent(txid, 0)
        esplora(fake)
        with (
            EsploraServer(fake.url + "/api", retries=0) as other,
            pytest.raises(InputError, match="an Electrum server finds those too"),
        ):
            other.unspent([script])


def test_a_gap_ends_a_branch() -> None:
    """The twin looks at every index."""
    chance = Random(5)
    for _ in range(200):
        used = {chance.randrange(60) for _ in range(chance.randrange(12))}
        gap = chance.randrange(1, 25)
        asked: list[int] = []

        def look(scripts: Sequence[bytes]) -> list[bool]:
            asked.extend(script[0] for script in scripts)  # noqa: B023
            return [script[0] in used for script in scripts]  # noqa: B023

        branch = Descriptor("wpkh receive", True, True, lambda index: bytes([index]))
        found = [each.index for each in scripts_in_use([branch], look, gap_limit=gap)]
        wanted, index, empty = [], 0, 0
        while empty < gap:
            empty = 0 if index in used else empty + 1
            wanted += [index] if index in used else []
            index += 1
        assert found == wanted
        assert asked == list(range(index))  # and not one more is told to the server
    with pytest.raises(UsageError, match="gap limit"):
        list(scripts_in_use([branch], look, gap_limit=0))


# Electrum


class Lines:
    """A server of lines on loopback: `answer` turns a request into bytes; None hangs up."""

    def __init__(self) -> None:
        self.requests: list[dict[str, object]] = []
        self.connections = 0
        self.answer: Callable[[dict[str, object]], bytes | None] = self.good
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"tcp://127.0.0.1:{self.port}"
        threading.Thread(target=self._serve, daemon=True).start()

    def good(self, request: dict[str, object]) -> bytes | None:
        results: dict[str, object] = {
            "server.version": ["fake", "1.4"],
            "blockchain.block.header": FIRST,
            "blockchain.headers.subscribe": {"height": 7, "hex": "00"},
            "blockchain.scripthash.get_history": [{"tx_hash": PAID, "height": 1}],
            "blockchain.scripthash.listunspent": [
                {"tx_hash": PAID, "tx_pos": 0, "value": 20, "height": 1}
            ],
            "blockchain.transaction.get": PAID_BODY.hex(),
        }
        return self.result(request, results[str(request["method"])])

    def result(self, request: dict[str, object], result: object) -> bytes:
        return (
            json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode() + b"\n"
        )

    def _serve(self) -> None:
        while True:
            try:
                opened, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._talk, args=(opened,), daemon=True).start()

    def _talk(self, opened: socket.socket) -> None:
        with suppress(OSError, ValueError), opened, opened.makefile("rb") as lines:
            for line in lines:
                request = json.loads(line)
                self.requests.append(request)
                answer = self.answer(request)
                if answer is None:
                    return
                opened.sendall(answer)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def lines() -> Iterator[Lines]:
    server = Lines()
    yield server
    server.close()


def electrum(lines: Lines, **more: object) -> ElectrumServer:
    return ElectrumServer(lines.url, **({"retries": 0, "timeout": 20.0} | more))  # type: ignore[arg-type]


def ask_all(open_one: Callable[[], ElectrumServer | EsploraServer]) -> None:
    with open_one() as server:
        server.height()
        server.used([SCRIPT])
        server.unspent([SCRIPT])
        server.raw([PAID])


def test_an_electrum_server_is_requested_and_understood(lines: Lines) -> None:
    with electrum(lines) as server:
        assert server.network == "bitcoin regtest"
        assert server.height() == 7
        assert server.used([SCRIPT]) == [True]
        assert server.unspent([SCRIPT]) == [[Claim(PAID, 0, 20)]]
        assert server.raw([PAID]) == [PAID_BODY]
    assert lines.connections == 1
    assert lines.requests[0]["method"] == "server.version"
    # The hash of the script, backwards: Electrum's own documentation has this pair.
    asked = next(r for r in lines.requests if str(r["method"]).endswith("listunspent"))
    assert asked["params"] == ["9623df75239b5daa7f5f03042d325b51498c4bb7059c7748b17049bf96f73888"]


def test_answers_come_in_any_order_and_among_notifications(lines: Lines) -> None:
    held: list[bytes] = []

    def answer(request: dict[str, object]) -> bytes | None:
        good = lines.good(request)
        assert good is not None
        if request["method"] != "blockchain.transaction.get":
            return b'{"jsonrpc":"2.0","method":"blockchain.headers.subscribe","params":[]}\n' + good
        held.append(good)
        return b"".join(reversed(held)) if len(held) == 3 else b""

    lines.answer = answer
    with electrum(lines) as server:
        assert server.raw([PAID] * 3) == [PAID_BODY] * 3


def test_a_connection_that_ends_is_opened_again(lines: Lines) -> None:
    count = 0

    def answer(request: dict[str, object]) -> bytes | None:
        nonlocal count
        count += 1
        if count in (4, 6):
            return None
        if count == 8:
            fault = {"code": -102, "message": "server busy - request timed out"}
            return json.dumps({"id": request["id"], "error": fault}).encode() + b"\n"
        return lines.good(request)

    lines.answer = answer
    with electrum(lines, retries=3) as server:
        assert server.raw([PAID] * 5) == [PAID_BODY] * 5
    assert lines.connections > 2


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\n", "not as an Electrum server"),
        (b"[" * 100_000 + b"\n", "not as an Electrum server"),
        (b'{"id": 1}\n', "neither result nor error"),
        (b"\xff\n", "not as an Electrum server"),
        (b"{}\n" * 2_000, "answers that were not requested"),
        (b"x" * 3_000_000, "above the limit"),
        (None, "the server hung up"),
        (b"", "no answer in 1 tries"),
    ],
    ids=["http", "deep", "empty", "bytes", "flood", "large", "hang up", "silence"],
)
def test_a_server_that_is_none_is_one_line(lines: Lines, result: bytes | None, words: str) -> None:
    lines.answer = lambda request: result
    silent = result == b""
    with pytest.raises(SourceUnreachable, match=words):
        electrum(lines, timeout=0.2 if silent else 20.0, largest=1 << 20)


@pytest.mark.parametrize(
    ("method", "result", "words"),
    [
        ("blockchain.block.header", "00" * 79, "a first block of 79 bytes"),
        ("blockchain.block.header", 5, "an unknown answer"),
        ("blockchain.headers.subscribe", {"height": "7"}, "an unknown answer"),
        ("blockchain.headers.subscribe", None, "an unknown answer"),
        ("blockchain.scripthash.get_history", {}, "an unknown answer"),
        ("blockchain.scripthash.listunspent", [{"tx_hash": PAID}], "an unknown answer"),
        (
            "blockchain.scripthash.listunspent",
            [{"tx_hash": 1, "tx_pos": 0, "value": 1.5}],
            "unknown",
        ),
        ("blockchain.transaction.get", "xyz", "no hex"),
        ("blockchain.transaction.get", {"hex": "00"}, "an unknown answer"),
    ],
)
def test_answers_of_another_shape_are_refused(
    lines: Lines, method: str, result: object, words: str
) -> None:
    lines.answer = lambda request: (
        lines.result(request, result) if request["method"] == method else lines.good(request)
    )
    with pytest.raises(SourceUnreachable, match=words):
        ask_all(lambda: electrum(lines))


def test_a_refusal_is_reported(lines: Lines) -> None:
    def answer(request: dict[str, object]) -> bytes | None:
        words = {"blockchain.transaction.get": "daemon error: no such mempool transaction",
                 "blockchain.scripthash.get_history": "history too large"}  # fmt: skip
        said = words.get(str(request["method"]))
        if said is None:
            return lines.good(request)
        return (
            json.dumps({"id": request["id"], "error": {"code": 1, "message": said}}).encode()
            + b"\n"
        )

    lines.answer = answer
    with electrum(lines) as server:
        with pytest.raises(UnknownName, match=f"does not know {PAID}"):
            server.raw([PAID])
        with pytest.raises(SourceUnreachable, match="history too large"):
            server.used([SCRIPT])
        assert server.height() == 7


def test_damaged_answers_raise_our_own_errors_alone(lines: Lines) -> None:
    chance = Random(11)

    def answer(request: dict[str, object]) -> bytes | None:
        good = lines.good(request)
        assert good is not None
        damaged = mutated(good[:-1], chance) if chance.random() < 0.3 else good[:-1]
        return damaged.replace(b"\n", b"") + b"\n"

    lines.answer = answer
    failed = 0
    for _ in range(60):
        try:
            with electrum(lines, timeout=0.05) as server:
                past = ServerTransactions(server, TransactionCache(":memory:", server.network))
                past.coins([SCRIPT])
                past.blocks()
        except CoinhazeError:
            failed += 1
    assert 0 < failed < 60


@pytest.mark.parametrize(
    "url",
    ["tcp://", "http://h:1", "ssl://h:99999", "ssl://me:pw@h:1", "ssl://h:1/path", "ssl://h:1?x=1"],
)
def test_addresses_of_electrum_servers_are_checked(url: str) -> None:
    with pytest.raises(UsageError, match="electrum\\+ssl://host:50002") as caught:
        ElectrumServer(url)
    assert "pw" not in str(caught.value)


# Esplora


def esplora(fake: Fake, **answers: Reply) -> None:
    """Answer in the shapes that Esplora documents, with content made here, but for some.

    Recorded answers are in tests/real/test_real_esplora.py.
    """
    counts = '{"funded_txo_count":1,"funded_txo_sum":20,"spent_txo_count":0,"tx_count":%d}'
    status = f'{{"confirmed":true,"block_height":7,"block_hash":"{GENESIS}","block_time":1}}'
    bodies = {
        "/api/block-height/0": GENESIS.encode(),
        "/api/blocks/tip/height": b"7",
        f"/api/address/{ADDRESS}": (
            f'{{"address":"{ADDRESS}","chain_stats":{counts % 1},"mempool_stats":{counts % 0}}}'
        ).encode(),
        f"/api/address/{ADDRESS}/utxo": (
            f'[{{"txid":"{PAID}","vout":0,"status":{status},"value":20}}]'
        ).encode(),
        f"/api/tx/{PAID}/raw": PAID_BODY,
    }
    names = ["first", "tip", "address", "utxo", "raw"]
    replies = {p: Reply(body=body) for p, body in bodies.items()}
    replies |= {p: answers[n] for p, n in zip(bodies, names, strict=True) if n in answers}
    fake.answer = lambda request: replies.get(request.path, Reply(404, b"not found"))


def test_an_esplora_server_is_requested_and_understood(fake: Fake) -> None:
    esplora(fake)
    for end in ("/api", "/api/"):
        with EsploraServer(fake.url + end, retries=0) as server:
            assert server.network == "bitcoin regtest"
            assert server.height() == 7
            assert server.used([SCRIPT]) == [True]
            assert server.unspent([SCRIPT]) == [[Claim(PAID, 0, 20)]]
            assert server.raw([PAID]) == [PAID_BODY]
            with pytest.raises(UnknownName, match=MINED):
                server.raw([MINED])
    with pytest.raises(SourceUnreachable, match="have theirs at /api"):
        EsploraServer(fake.url, retries=0)


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("tip", Reply(body=b"high")),
        ("tip", Reply(body=b"")),
        ("tip", Reply(500, b"broken")),
        ("address", Reply(body=b"{}")),
        ("address", Reply(body=b"[" * 100_000)),
        ("address", Reply(body=b'{"address":"x","chain_stats":{"tx_count":1},'
                               b'"mempool_stats":{"tx_count":0}}')),
        ("utxo", Reply(body=b'[{"txid":5}]')),
        ("utxo", Reply(400, b"Too many unspent transaction outputs (>500)")),
        ("raw", Reply(500, b"")),
        ("raw", Reply(body=bytes(1 << 21))),
        ("raw", Reply(302, b"", {"location": "http://127.0.0.1:1/"})),
    ],
)  # fmt: skip
def test_answers_of_esplora_that_are_wrong_are_refused(fake: Fake, name: str, reply: Reply) -> None:
    esplora(fake, **{name: reply})
    with pytest.raises(SourceUnreachable):
        ask_all(lambda: EsploraServer(fake.url + "/api", retries=0, largest=1 << 20))


def test_a_busy_server_is_given_time(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("coinhaze.nodes.http.time.sleep", pauses.append)
    esplora(fake)
    fake.then(Reply(429, b"Too Many Requests", {"retry-after": "3"}))
    with EsploraServer(fake.url + "/api", retries=1) as server:
        assert server.height() == 7
    assert 3 in pauses


def test_requests_keep_their_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    pace, began = RequestRate(50), time.monotonic()
    for _ in range(11):
        pace.wait()
    assert time.monotonic() - began >= 0.2
    with monkeypatch.context() as patch:
        patch.setattr("coinhaze.nodes.http.time.sleep", lambda seconds: pytest.fail("it waits"))
        RequestRate(None).wait()
        with pytest.raises(pytest.fail.Exception, match="it waits"):
            pace.wait()
    with pytest.raises(UsageError, match="above 0"):
        RequestRate(0)


# Proxies


class Socks:
    """A SOCKS5 proxy on loopback that notes where to it was asked to connect."""

    def __init__(self, reply: int = 0, target: int = 0) -> None:
        self.hosts: list[tuple[int, str]] = []  # kind of address, and the host
        self.reply, self.target = reply, target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"socks5://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                opened, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(opened,), daemon=True).start()

    def _talk(self, opened: socket.socket) -> None:
        with opened:
            version, count = opened.recv(2)
            assert version == 5
            opened.recv(count)
            opened.sendall(b"\5\0")
            _, _, _, kind = opened.recv(4)
            size = {1: 4, 4: 16}.get(kind) or opened.recv(1)[0]
            host = opened.recv(size)
            opened.recv(2)
            self.hosts.append((kind, host.decode("latin1")))
            opened.sendall(bytes([5, self.reply, 0, 1, 0, 0, 0, 0, 0, 0]))
            if self.reply == 0:
                with socket.create_connection(("127.0.0.1", self.target)) as there:
                    back = threading.Thread(target=_copy, args=(there, opened), daemon=True)
                    back.start()
                    _copy(opened, there)
                    back.join(5)

    def close(self) -> None:
        self._listener.close()


def _copy(start: socket.socket, end: socket.socket) -> None:
    with suppress(OSError):
        while some := start.recv(1 << 16):
            end.sendall(some)
        end.shutdown(socket.SHUT_WR)


def test_a_proxy_resolves_the_host_itself(
    lines: Lines, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No name is looked up here: that would tell the network which server is used."""
    looked_up: list[object] = []
    real = socket.getaddrinfo

    def noting(host: object, *rest: object, **more: object) -> object:
        looked_up.append(host)
        return real(host, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", noting)
    proxy = Socks(target=lines.port)
    with ElectrumServer("tcp://abc.onion:50001", proxy=proxy.url, retries=0) as server:
        assert server.height() == 7
    assert proxy.hosts == [(3, "abc.onion")]
    proxy.close()
    esplora(fake)
    proxy = Socks(target=fake.server.server_port)
    with EsploraServer("http://abc.onion/api", proxy=proxy.url, retries=0) as other:
        assert other.height() == 7
    assert set(proxy.hosts) == {(3, "abc.onion")}
    proxy.close()
    assert {str(host) for host in looked_up} <= {"127.0.0.1", "b'127.0.0.1'"}


def test_a_proxy_that_fails_is_one_line(lines: Lines) -> None:
    refusing = Socks(reply=4)
    with pytest.raises(NotAnswering, match="the proxy does not get there: host unreachable"):
        ElectrumServer("tcp://abc.onion:1", proxy=refusing.url, retries=0)
    refusing.close()
    with pytest.raises(NotAnswering, match=r"refused|proxy"):
        ElectrumServer("tcp://abc.onion:1", proxy="socks5://127.0.0.1:1", retries=0)
    # What is there speaks lines of JSON, not SOCKS.
    lines.answer = lambda request: b"nonsense\n"
    with pytest.raises(NotAnswering):
        ElectrumServer(
            "tcp://abc.onion:1", proxy=lines.url.replace("tcp", "socks5"), retries=0, timeout=0.5
        )


def test_onion_addresses_need_a_proxy() -> None:
    for source in ("electrum+tcp://abc.onion:50001", "esplora+http://abc.onion/api"):
        with pytest.raises(UsageError, match=r"--proxy socks5://127\.0\.0\.1:9050"):
            open_server(source)


@pytest.mark.parametrize(
    "url", ["127.0.0.1:9050", "http://h:1", "socks5://h", "socks5://u:pw@h:1", "socks5://h:x", ""]
)
def test_proxies_are_checked(url: str) -> None:
    with pytest.raises(UsageError, match="socks5://host:port") as caught:
        read_proxy(url)
    assert "pw" not in str(caught.value)


def test_sources_are_distinguished_and_said_to_learn() -> None:
    assert is_server("esplora+https://mempool.space/api")
    assert not is_server("ethereum+http://127.0.0.1:8545")
    with pytest.raises(UsageError, match="which kind of server"):
        open_server("bitcoin+http://127.0.0.1:8332")
    with pytest.raises(UsageError, match="alone"):
        open_server("esplora+https://h/api", certificate="00" * 32)
    with pytest.raises(UsageError, match="tcp has no certificate"):
        open_server("electrum+tcp://127.0.0.1:1", certificate="00" * 32)
    with pytest.raises(UsageError, match="64 digits of hex"):
        read_fingerprint("AB:CD")
    assert len(privacy_notes("electrum+ssl://example.org:1")) == 1
    assert "not encrypted" in privacy_notes("electrum+tcp://example.org:1")[1]
    assert "not encrypted" in privacy_notes("esplora+http://example.org/api")[1]
    for own in ("electrum+tcp://127.0.0.1:1", "esplora+http://abc.onion/api"):
        assert len(privacy_notes(own)) == 1
    assert "hides where you are" in privacy_notes("electrum+ssl://h:1", proxy="socks5://h:1")[0]
