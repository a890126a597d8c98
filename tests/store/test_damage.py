"""A damaged store gives the answer of the whole one, or our error; never anything else.

All commands run in one child process, so that a library that ends it is seen as what it is.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

DAMAGES = 60
KINDS = ("coins", "accounts")
COMMANDS = ("info", "score", "verify", "ingest")
TOKEN, ONE, OTHER = "0x" + "a" * 40, "0x" + "b" * 40, "0x" + "c" * 40


def _make(folder: Path) -> None:
    """Write a store of coins and one of accounts, of several blocks each, and more to ingest."""
    import hashlib

    from store.made_stores import Chain, transfers

    def name(*parts: object) -> str:
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    chain = Chain()
    for height in range(60):
        chain.block()
        coins = [(name("owner", height, k)[:34], 50 + k) for k in range(40)]
        chain.pay(name("coinbase", height), made=coins)
        if height:
            spent = [(name("coinbase", height - 1), k, None) for k in range(20)]
            paid = [(name("paid", height, k)[:34], 10) for k in range(10)]
            chain.pay(name("tx", height), spent, paid)
    chain.store(folder / "coins").close()
    rows = [("0x" + "0" * 40, "alice", 10**30)]
    rows += [("alice", name("account", k)[:42], 5 + k) for k in range(1500)]
    transfers(rows, folder / "accounts").close()
    (folder / "more-accounts.csv").write_text(
        "token_address,from_address,to_address,value,transaction_hash,log_index,block_number\n"
        f"{TOKEN},{ONE},{OTHER},5,0x{'d' * 64},0,99999\n"
    )
    coin = {"index": 0, "value": 5, "addresses": ["k"], "type": "pubkeyhash", "script_hex": ""}
    more = {
        "hash": "e" * 64, "block_number": 99999, "block_hash": "f" * 64, "block_timestamp": 5,
        "is_coinbase": True, "index": 0, "inputs": [], "outputs": [coin], "input_count": 0,
        "output_count": 1, "input_value": 0, "output_value": 5, "fee": 0,
    }  # fmt: skip
    (folder / "more-coins.csv").write_text(json.dumps(more) + "\n")


def damaged(content: bytes, chance: random.Random) -> tuple[bytes, str]:
    """Damage a file as disks, copies and accidents do; also say how."""
    data = bytearray(content)
    how = chance.choice(["a bit", "some bits", "zeros", "cut", "noise"])
    at = chance.randrange(3 * 4096 if chance.random() < 0.3 else len(data))
    if how in ("a bit", "some bits"):
        for _ in range(1 if how == "a bit" else 5):
            data[at] ^= 1 << chance.randrange(8)
            at = chance.randrange(len(data))
    elif how == "cut":
        del data[at:]
    else:
        end = min(len(data), at + chance.choice([16, 512, 4096, 65536]))
        data[at:end] = bytes(end - at) if how == "zeros" else chance.randbytes(end - at)
    return bytes(data), f"{how} at {at}"


def _run(command: str, kind: str, folder: Path) -> tuple[object, str, str]:
    from coinhaze.cli import main

    more = [str(folder / f"more-{kind}.csv"), "-o"] if command == "ingest" else []
    sys.argv = ["coinhaze", command, *more, str(folder / "store")]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            return stop.code, out.getvalue(), err.getvalue()
    return None, "", ""


def _answers(folder: Path, kind: str, content: bytes) -> Iterator[tuple[str, object, str, str]]:
    """Give exit code, output and errors of every command; for an ingest the digest after it."""
    from coinhaze.errors import CoinhazeError
    from coinhaze.store.store import Store

    for command in COMMANDS:
        for left in folder.glob("store*"):
            left.unlink() if left.is_file() else shutil.rmtree(left)
        (folder / "store").write_bytes(content)
        code, out, err = _run(command, kind, folder)
        if command == "ingest" and code == 0:
            try:
                with Store(folder / "store", read_only=True) as store:
                    out = store.digest()
            except CoinhazeError as error:
                code, out, err = 3, "", f"coinhaze: {error}\n"
        yield command, code, out, err


def run_all(folder: Path, first: int, last: int) -> None:
    """Do the work of the child: say every damage before it is tried, and what is wrong after."""
    _make(folder)
    whole = {kind: (folder / kind).read_bytes() for kind in KINDS}
    right = {
        (kind, command): (code, out)
        for kind in KINDS
        for command, code, out, _ in _answers(folder, kind, whole[kind])
    }
    assert all(code == 0 for code, _ in right.values()), right
    same = ours = 0
    for number in range(first, last):
        chance = random.Random(number)
        kind = chance.choice(KINDS)
        content, how = damaged(whole[kind], chance)
        print(f"damage {number}: {kind}, {how}", flush=True)
        for command, code, out, err in _answers(folder, kind, content):
            if (code, out) == right[kind, command]:
                same += 1
            elif code == 3 and err.startswith("coinhaze: ") and err.count("\n") == 1 and not out:
                ours += 1
            else:
                print(f"WRONG {command}: exit {code}, {out[-300:]!r}, {err[-300:]!r}", flush=True)
    print(f"done: {same} same, {ours} errors", flush=True)


@pytest.mark.parametrize(
    ("first", "last"), [(0, 6), pytest.param(0, DAMAGES, marks=pytest.mark.long)]
)
def test_a_damaged_store_gives_the_same_answer_or_our_error(
    tmp_path: Path, first: int, last: int
) -> None:
    tests = Path(__file__).resolve().parents[1]
    here = os.pathsep.join([str(tests), str(tests.parent)])
    code = f"from store.test_damage import *; run_all(Path('.'), {first}, {last})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": here},
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    said = done.stdout.splitlines() or ["nothing"]
    assert done.returncode == 0, (said[-1], done.stderr[-2000:])
    assert not [line for line in said if line.startswith("WRONG")], "\n".join(said)
    same, ours = (int(part.split()[0]) for part in said[-1].split(": ")[1].split(", "))
    assert same + ours == len(COMMANDS) * (last - first)
    assert ours > same / 4  # most damages are seen
