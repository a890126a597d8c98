"""From a real node into a store and on to scores, by the command itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import coinhaze
from coinhaze.store.store import Store
from coinhaze.store.verify import verify
from nodes.daemons import bitcoin_daemon
from nodes.ethereum_fixtures import running_anvil


def ingest(source: str, store: Path, *options: str, cookie: Path | None = None) -> str:
    """Run `coinhaze ingest`; give what it says."""
    environment = os.environ | ({"COINHAZE_RPC_COOKIE": str(cookie)} if cookie else {})
    command = [sys.executable, "-m", "coinhaze", "ingest", source, "-o", str(store), *options]
    done = subprocess.run(
        command, env=environment, check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("program", ["bitcoind", "litecoind"])
def test_coins_of_a_node_are_scored_and_follow_its_reorganisations(
    program: str, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    with bitcoin_daemon(program, "-rest") as node:
        source = f"bitcoin+{node.url}"
        node.mine(101)
        # Two coinbases, 50 coins each, go into one payment of 99: one bit of doubt.
        node.mine(1)
        shop = node.text("getnewaddress")
        txid = node.text("sendtoaddress", shop, "99")
        node.mine(1)
        assert "up to block 103" in ingest(source, store, cookie=node.cookie)
        assert bits_at(store, txid) == pytest.approx([1.0] * 2, abs=1e-9)
        first = digest(store)
        assert "0 new rows" in ingest(source, store, cookie=node.cookie)
        assert digest(store) == first
        # The payment falls out of the chain, and another branch becomes longer.
        node.ask("invalidateblock", node.text("getblockhash", 103))
        node.ask("generateblock", node.text("getnewaddress"), [])
        node.ask("generateblock", node.text("getnewaddress"), [])
        assert "1 blocks the chain has left" in ingest(source, store, cookie=node.cookie)
        with Store(store, read_only=True) as opened:
            assert opened.ask("SELECT 1 FROM transactions WHERE txid = ?", [txid]) == []
            assert any("passed: 104 links" in line for line in verify(opened))
        node.mine(1)  # the payment comes back
        ingest(source, store, cookie=node.cookie)
        assert bits_at(store, txid) == pytest.approx([1.0] * 2, abs=1e-9)
        fresh = tmp_path / "fresh"
        ingest(source, fresh, cookie=node.cookie)
        assert digest(fresh) == digest(store)


def bits_at(store: Path, txid: str) -> list[float]:
    """Give the bits of a transaction's coins."""
    rows = coinhaze.score(store, nodes="all").to_arrow().to_pylist()
    return [row["bits"] for row in rows if row["node"].startswith(f"{txid}:")]


def digest(store: Path) -> str:
    with Store(store, read_only=True) as opened:
        return opened.digest()


def test_ether_of_a_node_is_scored_and_what_lies_before_a_window_opens_it(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with running_anvil(tmp_path) as anvil:
        a, b, *_ = anvil.accounts
        fresh = "0x" + "ab" * 20
        anvil.transact(a, to=fresh, value=3 * 10**18)
        anvil.mine()
        anvil.transact(b, to=fresh, value=1 * 10**18)
        last = anvil.mine()
        for _ in range(70):  # the tip stays behind the latest block
            anvil.mine()
        ingest(f"ethereum+{anvil.rpc.node}", store, "--from", "0", "--to", str(last))
        scores = coinhaze.score(store, nodes=[fresh])
        assert scores.bits[0] == pytest.approx(0.811278, abs=1e-6)
        # The window with the second payment alone knows what was there before it.
        late = coinhaze.score(
            store, nodes=[fresh], first=last, opening={fresh: 3 * 10**18, b: 10**22}
        )
        assert late.bits[0] == pytest.approx(0.811278, abs=1e-6)
        assert not np.isnan(late.steps[0])
