"""A holder's way: from a key to bits, exposure and a choice of coins, over real servers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import coinhaze
from coinhaze.formats.bitcoin_raw.networks import base58_octets
from coinhaze.nodes.bitcoin import BitcoinNode
from coinhaze.store.store import Store
from coinhaze.store.sync import catch_up
from docs.test_docs import ROOT
from docs.test_shell_blocks import SERVER_COMMAND
from formats.base58 import base58_text
from nodes.daemons import Daemon, bitcoin_daemon
from nodes.servers import Electrum, Esplora, electrum_server, esplora_server
from nodes.test_wallet_node import Done, command

COIN = 100_000_000


class Holder:
    """A wallet on a regtest chain: paid, spent in part, with change, and paid again."""

    def __init__(self, node: Daemon, electrum: Electrum, esplora: Esplora, folder: Path) -> None:
        self.node, self.electrum, self.esplora, self.folder = node, electrum, esplora, folder

    def descriptors(self, kind: str) -> list[str]:
        """Public descriptors of the holder's wallet, receive and change, as Core writes them."""
        wallet = self.wallet("listdescriptors")
        return [d["desc"] for d in wallet["descriptors"] if d["desc"].startswith(kind)]

    def wallet(self, method: str, *params: object) -> Any:
        return call(self.node, "holder", method, *params)

    def ask(self, source: str, *options: str) -> Done:
        return command("wallet", source, *options, cookie=self.node.cookie,
                       caches=self.folder / "caches")  # fmt: skip

    def tell(self, source: str, *options: str) -> tuple[dict[str, Any], str]:
        done = self.ask(source, "--json", *options)
        assert done.code == 0, done.stderr
        return json.loads(done.stdout), done.stderr

    def write(self, name: str, *lines: str) -> str:
        (self.folder / name).write_text("\n".join(lines) + "\n")
        return str(self.folder / name)


def call(node: Daemon, wallet: str, method: str, *params: object) -> Any:
    """Call a wallet that has seen all blocks and transactions there are."""
    node.ask("syncwithvalidationinterfacequeue")
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = json.loads(node.rpc.post(f"/wallet/{wallet}", message))
    assert not answer.get("error"), answer["error"]
    return answer["result"]


def pay(node: Daemon, wallet: str, address: str, amount: str, miner: str) -> None:
    """Pay, and mine the payment."""
    txid = call(node, wallet, "sendtoaddress", address, amount)
    node.mine(1, miner)
    assert txid not in node.ask("getrawmempool")  # type: ignore[operator]


@pytest.fixture(scope="module")
def holder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Holder]:
    with ExitStack() as stack:
        node = stack.enter_context(bitcoin_daemon("bitcoind", "-txindex=1", "-changetype=bech32"))
        node.mine(110)
        # Electrum servers are asked first: afterwards the node has two wallets.
        address = node.text("getnewaddress")
        node.ask("createwallet", "holder")
        electrum = stack.enter_context(electrum_server(node))
        esplora = stack.enter_context(esplora_server(node))
        made = Holder(node, electrum, esplora, tmp_path_factory.mktemp("holder"))
        pay(node, "purse", made.wallet("getnewaddress", "", "bech32"), "120", address)
        pay(node, "holder", address, "30", address)  # leaves change
        for _ in range(3):
            made.wallet("getnewaddress", "", "bech32")  # shown to nobody: a gap
        pay(node, "purse", made.wallet("getnewaddress", "", "bech32"), "60", address)
        pay(node, "purse", made.wallet("getnewaddress", "", "bech32"), "7", address)
        electrum.catch_up()
        yield made


def names_of(told: dict[str, Any]) -> list[str]:
    return sorted(coin["coin"] for coin in told["coins"])


def test_from_a_key_to_bits_exposure_and_a_choice_in_one_command(
    holder: Holder, tmp_path: Path
) -> None:
    keys = holder.write("keys.txt", *holder.descriptors("wpkh("))
    store = tmp_path / "store"
    with Store(store) as opened:
        catch_up(opened, BitcoinNode(holder.node.rpc), name="node")
    names = sorted(f"{c['txid']}:{c['vout']}" for c in holder.wallet("listunspent"))
    scores = coinhaze.score(store, nodes=names)
    spent = holder.wallet("listtransactions")[0]["address"]
    exposed = holder.write("exposed.txt", spent)
    options = (
        "--nodes",
        keys,
        "--listed",
        exposed,
        "--amount",
        "500_000_000 sat",
        "--accuracy",
        "0",
    )
    told, said = holder.tell(holder.electrum.tcp, *options)
    assert names_of(told) == names
    assert len(names) == 3
    bits = {coin["coin"]: coin["bits"] for coin in told["coins"]}
    assert [bits[n] for n in names] == pytest.approx(scores.bits.tolist(), abs=1e-11)
    assert max(bits.values()) > 1
    shares = sorted(coin["exposure"] for coin in told["coins"])
    assert shares == pytest.approx([0, 0, 1])  # the change of what was at the listed address
    chosen = told["suggestion"]["spend"]
    assert len(chosen["coins"]) == 1
    assert chosen["exposure"] == 0
    assert "127.0.0.1 learns which addresses are looked at" in said
    assert "wpkh receive 3" in said  # the gap is crossed
    assert "wpkh change 1" in said
    assert "change is not looked for" not in said
    receive = holder.write("receive.txt", holder.descriptors("wpkh(")[0])
    assert "change is not looked for" in holder.tell(holder.electrum.tcp, "--nodes", receive)[1]
    by_esplora, _ = holder.tell(holder.esplora.source, *options)
    assert by_esplora["coins"] == told["coins"]
    assert by_esplora["suggestion"] == told["suggestion"]


def test_the_command_of_the_docs_runs(holder: Holder) -> None:
    words = shlex.split(SERVER_COMMAND)
    assert SERVER_COMMAND in (ROOT / "README.md").read_text()
    assert SERVER_COMMAND in (ROOT / "docs/servers.md").read_text()
    given = {
        "electrum+ssl://my-server:50002": holder.electrum.tcp,
        "zpub.txt": holder.write("zpub.txt", *holder.descriptors("wpkh(")),
        "known.txt": holder.write("known.txt", holder.wallet("listtransactions")[0]["address"]),
    }
    program, _, *options = [given.get(word, word) for word in words]
    assert program == "coinhaze"
    # A chain for tests has no unit of its own.
    done = holder.ask(*options, "--unit", "BTC")
    assert done.code == 0, done.stderr
    assert "0.05 BTC" in done.stdout
    assert "bits" in done.stdout


def test_a_store_takes_keys_too(holder: Holder, tmp_path: Path) -> None:
    store = tmp_path / "store"
    with Store(store) as opened:
        catch_up(opened, BitcoinNode(holder.node.rpc), name="node")
    keys = holder.write("keys.txt", *holder.descriptors("wpkh("))
    from_store, _ = holder.tell(str(store), "--nodes", keys)
    from_server, _ = holder.tell(holder.electrum.tcp, "--nodes", keys, "--accuracy", "0")
    assert names_of(from_store) == names_of(from_server)
    assert {c["coin"]: c["bits"] for c in from_store["coins"]} == pytest.approx(
        {c["coin"]: c["bits"] for c in from_server["coins"]}, abs=1e-11
    )


def test_an_extended_key_alone_finds_the_same_coins(holder: Holder) -> None:
    text = holder.descriptors("wpkh(")[0]
    tpub = text.partition("]")[2].partition("/")[0]
    octets = base58_octets(tpub)
    assert octets is not None
    vpub = base58_text(bytes.fromhex("045f1cf6") + octets[4:])
    wanted, _ = holder.tell(
        holder.electrum.tcp, "--nodes", holder.write("keys.txt", *holder.descriptors("wpkh("))
    )
    for key in (tpub, vpub):
        told, said = holder.tell(holder.electrum.tcp, "--nodes", key)
        assert names_of(told) == names_of(wanted)
        assert key not in json.dumps(told) + said
        assert "***" in told["provenance"]["command"]
        assert ("pkh receive 0, pkh change 0, sh(wpkh) receive 0" in said) == (key == tpub)
    files = [f for f in (holder.folder / "caches").rglob("*") if f.is_file()]
    assert files
    for file in files:
        assert tpub.encode() not in file.read_bytes()
        assert octets[13:] not in file.read_bytes()


def test_addresses_and_coins_are_found_and_cached(holder: Holder) -> None:
    coin = holder.wallet("listunspent")[0]
    name = f"{coin['txid']}:{coin['vout']}"
    told, _ = holder.tell(holder.electrum.tcp, "--nodes", coin["address"])
    assert names_of(told) == [name]
    again, said = holder.tell(holder.electrum.tcp, "--nodes", name)
    assert "0 transactions requested from the server" in said
    assert again["coins"][0]["bits"] == told["coins"][0]["bits"]


def test_a_part_gives_an_interval_that_holds_the_whole(holder: Holder) -> None:
    coin = max(holder.wallet("listunspent"), key=lambda c: c["amount"])
    name = f"{coin['txid']}:{coin['vout']}"
    options = ("--nodes", name, "--accuracy", "0")
    whole = holder.tell(holder.electrum.tcp, *options)[0]["coins"][0]["bits"]
    widths = []
    for maximum in ("2", "3", "5", "2000"):
        told, said = holder.tell(
            holder.electrum.tcp, *options, "--max-transactions", maximum, "--cache", ":memory:"
        )
        (found,) = told["coins"]
        assert found["bits_low"] - 1e-12 <= whole <= found["bits_high"] + 1e-12
        assert int(said.split(" transactions requested")[0].split()[-1].replace(",", "")) <= int(
            maximum
        )
        widths.append(found["bits_high"] - found["bits_low"])
    assert widths[0] > widths[-1]
    assert widths == sorted(widths, reverse=True)
    few = holder.ask(
        holder.electrum.tcp, *options, "--max-transactions", "1", "--cache", ":memory:"
    )
    assert few.code == 6
    assert "raise it, or leave the coin out" in few.stderr


def test_a_list_that_met_nothing_is_no_exposure(holder: Holder) -> None:
    keys = holder.write("keys.txt", *holder.descriptors("wpkh("))
    stranger = holder.write("exposed.txt", "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202")
    told, _ = holder.tell(
        holder.electrum.tcp, "--nodes", keys, "--listed", stranger, "--accuracy", "0"
    )
    assert [coin["exposure"] for coin in told["coins"]] == [0, 0, 0]


def test_coins_a_server_does_not_have_are_one_line(holder: Holder) -> None:
    empty = holder.wallet("getnewaddress", "", "bech32")
    spent = holder.wallet("listtransactions")[0]["txid"]
    vout = holder.wallet("listtransactions")[0]["vout"]
    mainnet = (
        "zpub6rFR7y4Q2AijBEqTUquhVz398htDFrtymD9xYYfG1m4wAcvPhXNfE3EfH1r1ADqtfSdVCToUG868RvUUk"
        "gDKf31mGDtKsAYz2oz2AGutZYs"
    )
    for source in (holder.electrum.tcp, holder.esplora.source):
        for name, words in (
            (empty, f"address {empty} has no unspent coin"),
            (f"{spent}:{vout}", "is spent already"),
            (f"{'a' * 64}:0", f"no coin '{'a' * 64}:0'"),
            ("1BoatSLRHtKNngkdXEeobR76b53LETtpyT", "an address of bitcoin"),
            ("bcrt1qqqqqq", "is no address"),
            (mainnet, "a key of Bitcoin's main network"),
            (holder.descriptors("pkh(")[0], "no address of this key (pkh) was used"),
        ):
            done = holder.ask(source, "--nodes", name)
            assert (done.code, done.stdout) == (3, ""), done.stderr
            assert words in done.stderr
            assert mainnet not in done.stderr


def test_certificates_are_trusted_by_authority_or_by_fingerprint(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    coin = holder.wallet("listunspent")[0]["address"]
    electrum = holder.electrum
    done = holder.ask(electrum.ssl, "--nodes", coin)
    assert done.code == 4
    shown = bytes.fromhex(electrum.fingerprint).hex(":")
    assert f"SHA-256 fingerprint, {shown}" in done.stderr
    for fingerprint in (shown, electrum.fingerprint.upper()):
        holder.tell(electrum.ssl, "--nodes", coin, "--certificate", fingerprint)
    done = holder.ask(electrum.ssl, "--nodes", coin, "--certificate", "00" * 32)
    assert done.code == 4
    assert "another certificate than --certificate tells" in done.stderr
    monkeypatch.setenv("SSL_CERT_FILE", str(electrum.certificate))
    holder.tell(electrum.ssl, "--nodes", coin)
    done = holder.ask(electrum.ssl.replace("127.0.0.1", "localhost"), "--nodes", coin)
    assert done.code == 4
    assert "its certificate is not trusted: Hostname mismatch" in done.stderr


@pytest.mark.parametrize("kind", ["pkh(", "sh(wpkh(", "wpkh(", "tr("])
def test_scripts_are_those_that_the_node_derives(holder: Holder, kind: str) -> None:
    from coinhaze.formats.bitcoin_raw.networks import network_named
    from coinhaze.formats.bitcoin_raw.scripts import owners_of
    from coinhaze.formats.descriptors import checksum, parse_keys

    for text in holder.descriptors(kind):
        (branch,) = parse_keys(text)
        wanted = holder.node.ask("deriveaddresses", text, [0, 9])
        scripts = [branch.script(index) for index in range(10)]
        assert owners_of(scripts, network_named("bitcoin regtest"))[0].to_pylist() == wanted
        assert checksum(text.partition("#")[0]) == text.partition("#")[2]


@pytest.mark.parametrize("form", ["wsh({})", "sh(wsh({}))", "sh({})"])
@pytest.mark.parametrize("sort", ["multi", "sortedmulti"])
def test_scripts_of_several_keys_are_those_that_the_node_derives(
    holder: Holder, form: str, sort: str
) -> None:
    from coinhaze.formats.bitcoin_raw.networks import network_named
    from coinhaze.formats.bitcoin_raw.scripts import owners_of
    from coinhaze.formats.descriptors import checksum, parse_keys

    kinds = ("pkh(", "sh(wpkh(", "wpkh(")
    keys = [holder.descriptors(k)[0].rpartition("(")[2].partition(")")[0] for k in kinds]
    body = form.format(f"{sort}(2,{','.join(keys)})")
    text = f"{body}#{checksum(body)}"
    (branch,) = parse_keys(text)
    wanted = holder.node.ask("deriveaddresses", text, [0, 9])
    scripts = [branch.script(index) for index in range(10)]
    assert owners_of(scripts, network_named("bitcoin regtest"))[0].to_pylist() == wanted
