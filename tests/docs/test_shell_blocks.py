"""Commands in the documentation's shell blocks run, one after another, as they are written.

Only sizes, ports and addresses are changed, and figures left out: examples are of weeks, and
what runs here is small.
"""

from __future__ import annotations

import contextlib
import glob
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import click
import duckdb
import httpx2
import pytest
from benchmarks.served import Served, serving
from click.exceptions import Abort

import coinhaze
from coinhaze import cli, kernels
from coinhaze.cli import ingest as ingest_command
from docs import example_files as examples
from docs.test_docs import PAGES, ROOT, blocks
from nodes.fakes import Fake
from web.asking import answered

# What is asked for beside, or instead, so that an example takes seconds: no array is so large that
# kernels would be compiled.
SMALLER = {
    "simulate bitcoin-week --size 0.1": "simulate bitcoin-week --size 0.0005",
    "simulate bitcoin-week --size 0.01 ": "simulate bitcoin-week --size 0.0005 ",
    "simulate bitcoin-history --blocks 20": "simulate bitcoin-history --blocks 3",
    "since week --nodes all --points 15": "since week --nodes all --points 4",
    "compare --weeks": "compare --weeks --size 0.0005 --no-figures --walks 0",
    "compare bitcoin=": "compare --no-figures --walks 0 bitcoin=",
    "robustness day.duckdb": "robustness day.duckdb --tries 20 --seeds 2",
    "lab wasabi": "lab wasabi --seeds 2 --people 20 --payments 30 --values 0,0.5",
    "lab all -o lab": "lab all --seeds 2 --people 12 --payments 20",  # drawing takes seconds
    "desiderata": "desiderata bits haircut --seeds 2",
    "score day.duckdb --with": "score day.duckdb --to 800020 --with",
}
# Fenced as code, but shown and not run: what files hold, and what programs print.
SHOWN = {"text", "csv", "toml", "json"}
RUN = {"python", "console", "sh", "sql"}
DIRECTIVES = {"{toctree}", "{literalinclude} gallery/write_your_own_policy.py"}
REAL = ROOT / "docs/knowledge.md"  # its blocks read real ledgers
SERVER_COMMAND = (
    "coinhaze wallet electrum+ssl://my-server:50002 --nodes zpub.txt --listed known.txt "
    '--amount "0.05 BTC"'
)
OWN = ROOT / "docs/mutants.md"  # its blocks run the tests


def commands(page: Path) -> list[str]:
    return [line for block in blocks(page, "sh") for line in block.splitlines() if line.strip()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with everything the examples name, and a node where they look for one."""
    examples.write_dumps(tmp_path)
    examples.write_lists(tmp_path)
    for csv in blocks(ROOT / "README.md", "csv"):
        (tmp_path / "transfers.csv").write_text(csv)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COINHAZE_RPC_USER", "somebody")
    monkeypatch.setenv("COINHAZE_RPC_PASSWORD", "secret")
    return tmp_path


@pytest.fixture
def address() -> Iterator[str]:
    fake = Fake()
    fake.answer = examples.node()
    yield fake.url.removeprefix("http://")
    fake.close()


def run(line: str, patch: pytest.MonkeyPatch, node: str) -> None:
    """Run a line of a block: a command of ours in this process, others by a shell."""
    if assigned := re.fullmatch(r"(\w+)=(\S+)", line):
        patch.setenv(assigned[1], os.path.expandvars(assigned[2]))
    elif line.startswith("coinhaze serve "):
        with served(line):
            pass
    elif line.startswith("coinhaze "):
        patch.setattr(kernels, "_compiling", False)  # each command is a process of its own
        for whole, small in SMALLER.items():
            line = line.replace(whole, small)
        line = os.path.expandvars(line.replace("127.0.0.1:8332", node))
        words = [name for word in shlex.split(line) for name in sorted(glob.glob(word)) or [word]]
        if "--follow" in words:
            patch.setattr(ingest_command, "time", SimpleNamespace(sleep=_interrupt))
            with pytest.raises(Abort):
                cli.cli.main(words[1:], standalone_mode=False)
            return
        patch.setattr(sys, "argv", words)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == 0, line
        assert printed.getvalue() or "-o" in words or "--keep" in words, line
    else:
        subprocess.run(["bash", "-euc", line], check=True, timeout=600, stdout=subprocess.DEVNULL)


def _interrupt(seconds: float) -> NoReturn:
    raise KeyboardInterrupt


@contextlib.contextmanager
def served(line: str) -> Iterator[Served]:
    """Run `coinhaze serve` at a free port, with nothing to open a browser by."""
    arguments = [word for word in shlex.split(line)[2:] if word != "--open"]
    with serving(*arguments) as server:
        assert httpx2.get(server.address, headers=server.bearer, timeout=600).status_code == 200
        yield server


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if commands(page) and page not in (REAL, OWN)],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_commands_of_a_page_run(
    page: Path, folder: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any(line.startswith("coinhaze ") for line in commands(page))
    for line in commands(page):
        run(line, monkeypatch, address)
    for query in blocks(page, "sql"):
        with duckdb.connect("bitcoin.duckdb", read_only=True) as connection:
            assert connection.sql(query).fetchall() == []  # a store of coins has no transfers


def test_commands_on_real_ledgers_run(
    data: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(commands(REAL)) >= 8
    for line in commands(REAL):
        run(line, monkeypatch, "")


def test_the_server_and_a_request_are_as_shown(
    folder: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(f"coinhaze ingest bitcoin+http://{address} --from 800000 -o week.duckdb", monkeypatch, "")
    (folder / "list.txt").write_text((folder / "sanctioned.txt").read_text())
    start, request = blocks(ROOT / "docs/serve.md", "text")
    command, *shown = start.splitlines()
    with served(command.removeprefix("$ ")) as server:
        printed = server.written().splitlines()
        assert len(printed) == len(shown)
        for line, example in zip(printed, shown, strict=True):
            known = re.sub(r"(code=|programs: )\S+|:\d+(?=/)", r"\1", line)
            assert known == re.sub(r"(code=|programs: )\S+|:\d+(?=/)", r"\1", example)
        monkeypatch.setenv("TOKEN", server.token)
        first, second = (folder / "mine.txt").read_text().split()[:2]
        request = request.replace("TXID:0", first).replace("TXID:1", second)
        words = shlex.split(os.path.expandvars(request))
        assert words[0] == "curl"
        headers = dict(words[at + 1].split(": ") for at, word in enumerate(words) if word == "-H")
        body = words[words.index("-d") + 1]
        url = words[-1].replace("127.0.0.1:8000", f"127.0.0.1:{server.port}")
        answer = answered(lambda: httpx2.post(url, headers=headers, content=body, timeout=600))
        assert answer.status_code == 200, answer.text
        assert json.loads(answer.text)["after"]["bits"] > 0


def test_a_line_of_transactions_is_read(folder: Path) -> None:
    (line,) = blocks(ROOT / "docs/data-model.md", "json")
    Path("transactions.json").write_text(line)
    assert len(coinhaze.read("transactions.json")) == 1


def test_no_block_of_commands_is_left_out() -> None:
    for page in PAGES:
        fences = re.findall(r"^```(.*)$", page.read_text(), re.MULTILINE)
        opened = set(fences[::2])
        assert set(fences[1::2]) <= {""}, page
        assert opened <= RUN | SHOWN | DIRECTIVES, page
        for shown in blocks(page, "text"):
            # Run above, and by tests/nodes/test_wallet_servers.py.
            shown = shown.replace(SERVER_COMMAND, "")
            if page.name != "serve.md":
                assert not re.search(r"^(\$ )?(coinhaze|curl|python|make) ", shown, re.MULTILINE)


def test_programs_named_beside_ours_are_there() -> None:
    """Targets of make, and modules run by python with the options they are given."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = 0
    for page in PAGES:
        text = re.sub(r"\s+", " ", page.read_text())
        for target in re.findall(r"`make ([\w-]+)", text):
            assert target in targets, (page.name, target)
        for module, options in re.findall(
            r"python -m ((?:benchmarks|mutants)[\w.]*)([^`]*)`", text
        ):
            path = ROOT / (module.replace(".", "/") + ".py")
            source = (path if path.exists() else ROOT / module / "__main__.py").read_text()
            for option in re.findall(r"--[\w-]+", options):
                assert f'"{option}"' in source, (page.name, module, option)
            named += 1
    assert named > 15


def test_options_named_in_the_docs_are_offered() -> None:
    """Former spellings are on the page of options alone, which says what replaced them."""
    context = click.Context(cli.cli)
    offered = {"--help"}
    for name in cli.cli.list_commands(context):
        command = cli.cli.get_command(context, name)
        assert command is not None
        inner = command.commands.values() if isinstance(command, click.Group) else ()
        for option in [param for one in (command, *inner) for param in one.params]:
            if isinstance(option, click.Option) and not option.hidden:
                offered |= {*option.opts, *option.secondary_opts}
    for page in PAGES:
        if page.name != "options.md":
            text = re.sub(r"python -m [^`\n]*", "", page.read_text())
            # What other programs are told: the schedulers of clusters and of batches.
            text = re.sub(r"^(dask|#SBATCH|sbatch) .*$", "", text, flags=re.MULTILINE)
            named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text))
            assert named <= offered | ({"--only", "--missing"} if page == OWN else set()), page.name
