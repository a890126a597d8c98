"""coinhaze wallet, as a person types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from coinhaze import CoinLedger
from coinhaze.formats.bitcoin_raw.networks import BITCOIN
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.ledger.parquet import write_folder
from formats.psbt_samples import record, transaction

Run = Callable[..., tuple[int, str, str]]
A, B, C, D = (letter * 64 for letter in "abcd")
MINE = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
KNOWN = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
TEST = "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn"
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Two kinds of money: a mix of two mints, and some that lay at a known address."""
    return write_folder(
        CoinLedger.from_transactions(
            [
                {"txid": A, "outputs": [{"value": 60, "address": "x"}, {"value": 60}]},
                {"txid": B, "outputs": [{"value": 40, "address": KNOWN}]},
                {
                    "txid": C,
                    "inputs": [{"txid": A, "vout": 0}, {"txid": "e" * 64, "vout": 1, "value": 60}],
                    "outputs": [{"value": 70, "address": MINE}, {"value": 50, "address": EVIL}],
                },
                {
                    "txid": D,
                    "inputs": [{"txid": B, "vout": 0}],
                    "outputs": [{"value": 40, "address": MINE}],
                },
            ]
        ),
        tmp_path / "ledger",
    )


@pytest.fixture
def coins(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text(
        f"txid,vout,label\n{C},0,rent\n{D},0,\n{A},1,{EVIL}\n".replace(",\n", ",gift\n")
    )
    return path


@pytest.fixture
def exposed(tmp_path: Path) -> Path:
    path = tmp_path / "known.txt"
    path.write_text(KNOWN + "\n")
    return path


def test_the_report_answers_what_people_ask(
    run: Run, ledger: Path, coins: Path, exposed: Path
) -> None:
    asked = ("--nodes", coins, "--listed", exposed, "--amount", "65 sat")
    code, out, err = run("wallet", ledger, *asked)
    assert (code, err) == (0, "")
    text = " ".join(out.split())
    for words in (
        f"To pay 0.00000065 BTC: spend coin 1 ({C}:0)",
        "Why: No exposed coin is in it",
        "What would change it",
        "What the numbers are not",
        "Bits are exact but for roundings",
        "Exposed: 1 coin worth 0.0000004 BTC. Keep apart from the rest: coin 2.",
        "keep apart: exposes",
        "100.00%",
    ):
        assert words in text, words


def test_json_holds_every_figure(run: Run, ledger: Path, coins: Path, exposed: Path) -> None:
    asked = ("--nodes", coins, "--listed", exposed, "--amount", "65 sat", "--json")
    told = json.loads(run("wallet", ledger, *asked)[1])
    assert [c["value"] for c in told["coins"]] == [70, 40, 60]
    assert [c["exposed"] for c in told["coins"]] == [False, True, False]
    assert told["coins"][0]["bits"] == 1
    assert told["coins"][0]["bits_low"] <= 1 <= told["coins"][0]["bits_high"]
    assert told["coins"][1]["bits"] == 0
    assert told["suggestion"]["spend"]["coins"] == [f"{C}:0"]
    # Who paid to the address of the first two coins would learn of the newly mined one.
    assert [pair["safe"] for pair in told["pairs"]] == [False, False, False]
    assert [[one["party"] for one in pair["learns"]] for pair in told["pairs"]] == [
        [], ["x", KNOWN], ["x", KNOWN],
    ]  # fmt: skip
    assert [len(pair["exposes"]) for pair in told["pairs"]] == [1, 0, 1]
    assert told["pairs"][0]["exposure"] == pytest.approx(40 / 110)
    assert told["total_value"] == 170
    assert {"file": "known.txt"}.items() <= told["provenance"]["inputs"][-1].items()


def test_what_if_on_coins_that_are_named(
    run: Run, ledger: Path, coins: Path, exposed: Path
) -> None:
    asked = ("--nodes", coins, "--listed", exposed, "--spend", f"{C}:0,{D}:0")
    code, out, _ = run("wallet", ledger, *asked)
    assert code == 0
    assert "36.36% of every payment would be exposed" in " ".join(out.split())
    told = json.loads(run("wallet", ledger, *asked, "--json")[1])["proposal"]
    assert told["exposure"] == pytest.approx(40 / 110)
    assert [coin["exposure"] for coin in told["coins"]] == [0.0, 1.0]


def test_what_if_on_a_psbt(run: Run, ledger: Path, coins: Path, exposed: Path) -> None:
    script = bytes.fromhex("0014751e76e8199196d454941c45d1b3a323f1433bd6")
    assert owners_of([script], BITCOIN)[0].to_pylist() == [KNOWN]
    other = bytes.fromhex("0014" + "11" * 20)
    spends = [(bytes.fromhex(C), 0), (bytes.fromhex(D), 0)]
    body = transaction(spends, [(30, script), (75, other)])
    Path("pay.psbt").write_bytes(b"psbt\xff" + record(0, body) + b"\0" * 5)
    asked = ("--nodes", coins, "--listed", exposed, "--psbt", "pay.psbt", "--json")
    code, out, err = run("wallet", ledger, *asked)
    assert (code, err) == (0, "")
    told = json.loads(out)["proposal"]
    assert told["fee"] == 5
    assert told["outputs"][0] == {"address": KNOWN, "value": 30, "exposure": 1.0}
    assert told["outputs"][1]["exposure"] == pytest.approx(40 / 110)
    assert told["what"] == "pay.psbt"
    assert any(KNOWN in warning for warning in told["warnings"])


def test_labels_of_a_wallet_say_who_knows_coins(run: Run, ledger: Path, coins: Path) -> None:
    Path("labels.jsonl").write_text(
        f'{{"type": "output", "ref": "{A}:1", "label": "Bob, a shop"}}\n'
        f'{{"type": "addr", "ref": "{MINE}", "label": "Bob"}}\n'
        f'{{"type": "xpub", "ref": "xpub1", "label": "savings"}}\n'
    )
    Path("more.csv").write_text(f"party,coin\nEve,{D}:0\n")
    asked = ("--nodes", coins, "--known", "labels.jsonl", "--known", "more.csv", "--json")
    told = json.loads(run("wallet", ledger, *asked)[1])
    # Two of the coins lie on one address: who knows one knows both.
    one = [f"{C}:0", f"{D}:0"]
    assert {row["party"]: row["knows"] for row in told["parties"]} == {
        "x": one, KNOWN: one, "Bob": [*one, f"{A}:1"], "a shop": [f"{A}:1"], "Eve": one,
    }  # fmt: skip
    assert [pair["safe"] for pair in told["pairs"]] == [True, False, False]
    assert told["provenance"]["inputs"][-1]["file"] == "more.csv"
    for text, fault in (
        ("party,who\n", "no table of parties"),
        ("party,coin\n", "names no party"),
        ('{"type": "odd", "ref": "x"}', "more.csv:1: not a BIP-329 label"),
    ):
        Path("more.csv").write_text(text)
        code, _, err = run("wallet", ledger, *asked)
        assert code == 3
        assert fault in err


def test_a_psbt_is_answered_first(run: Run, ledger: Path, coins: Path) -> None:
    known = bytes.fromhex("0014751e76e8199196d454941c45d1b3a323f1433bd6")
    new = bytes.fromhex(f"76a914{'11' * 20}88ac")
    body = transaction([(bytes.fromhex(C), 0), (bytes.fromhex(A), 1)], [(62, known), (63, new)])
    Path("pay.psbt").write_bytes(b"psbt\xff" + record(0, body) + b"\0" * 5)
    code, out, _ = run("wallet", ledger, "--nodes", coins, "--psbt", "pay.psbt")
    assert code == 0
    words = " ".join(out.partition("Your coins")[0].split())
    assert words.index("In short") < words.index("Who learns what: x learns coin 3 and the change")
    for part in (
        "One coin would do: coin 1 pays this alone",
        "because the rest go to addresses seen before",
        "one owner held these coins",
        "Without change",
    ):
        assert part in words, part


class Tags(HTMLParser):
    """Counts tags; refuses what a page that is kept must not have."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not {"src", "href", "onload", "onclick"} & {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_stands_alone_and_runs_nothing(
    run: Run, ledger: Path, coins: Path, exposed: Path
) -> None:
    Path("labels.csv").write_text(f"address,label\nx,{EVIL}\n")
    asked = ("--nodes", coins, "--listed", exposed, "--amount", "65 sat", "--labels", "labels.csv")
    code, out, err = run("wallet", ledger, *asked, "-o", "report.html")
    assert (code, out, err) == (0, "", "wrote report.html\n")
    text = Path("report.html").read_text()
    tags = Tags()
    tags.feed(text)
    assert "script" not in tags.seen
    assert not {"img", "link", "iframe"} & set(tags.seen)
    assert tags.seen.count("table") >= 4
    assert f"newly mined by {EVIL}" in tags.text
    assert "SHA-256" in tags.text
    assert "://" not in text


def test_a_file_of_text_is_written_too(run: Run, ledger: Path, coins: Path) -> None:
    assert run("wallet", ledger, "--nodes", coins, "-o", "report.txt")[0] == 0
    assert "Made by" in Path("report.txt").read_text()
    for name, fault in (("report.pdf", "end it in"), (coins, "one of the inputs")):
        code, _, err = run("wallet", ledger, "--nodes", coins, "--as", "text", "-o", name)
        assert code == (0 if name == "report.pdf" else 2)
        code, _, err = run("wallet", ledger, "--nodes", coins, "-o", name)
        assert code == 2
        assert fault in err or "end it in" in err


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (f"{'f' * 64}:0", "mine.csv:1: no coin"),
        (f"{B}:0", "is spent already, by dddd"),
        (TEST, f"mine.csv:1: {TEST} is an address of bitcoin "),
        ("", "mine.csv: lists no coin"),
        ("# none yet", "mine.csv: lists no coin"),
        ("cHNidP8BAA==", "this is a transaction to be signed (PSBT); take it as in: "),
        (
            f"output,value\n{C}:0,71",
            "is worth 0.0000007 BTC in the ledger, 0.00000071 BTC in the list",
        ),
    ],
    ids=["unknown", "spent", "network", "empty", "comment", "psbt", "value"],
)
def test_a_list_that_is_wrong_is_one_line(
    run: Run, ledger: Path, coins: Path, line: str, fault: str
) -> None:
    coins.write_text(line + "\n")
    code, out, err = run("wallet", ledger, "--nodes", coins)
    assert (code, out) == (3, "")
    assert fault in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("asked", "code", "fault"),
    [
        (("--spend", f"{'f' * 64}:0"), 3, "no coin"),
        (("--spend", f"{B}:0"), 3, "is spent already"),
        (("--spend", ","), 3, "list of coins to spend is empty"),
        (("--spend", MINE), 3, "is no coin; name coins"),
        (("--spend", f"{C}:0,{C}:0"), 3, "named twice"),
        (("--psbt", "nowhere"), 3, "nowhere: no such file"),
        (("--spend", f"{C}:0", "--psbt", "x"), 2, "one at a time"),
        (("--listed", "test.txt"), 3, f"{TEST} is an address of bitcoin "),
        (("--listed", "none.txt"), 3, "none.txt: lists no name"),
        (("--listed", "none.json"), 3, "list of exposed addresses is empty"),
        (("--amount", "0 sat"), 2, "an amount is above 0"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(
    run: Run, ledger: Path, coins: Path, asked: tuple[str, ...], code: int, fault: str
) -> None:
    Path("test.txt").write_text(TEST + "\n")
    Path("none.txt").write_text("\n")
    Path("none.json").write_text("[]")
    found, out, err = run("wallet", ledger, "--nodes", coins, *asked)
    assert (found, out) == (code, "")
    assert fault in err
    assert "Traceback" not in err


def test_accounts_have_no_coins(run: Run, transfers: Path, coins: Path) -> None:
    code, _, err = run("wallet", transfers, "--nodes", coins)
    assert code == 2
    assert "ledger of coins" in err


def test_bits_and_exposure_are_written_back_as_labels(
    run: Run, ledger: Path, coins: Path, exposed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    words = ["wallet", ledger, "--nodes", coins, "--listed", exposed, "--labels-out", out]
    assert run(*words)[0] == 0
    first = [json.loads(line) for line in out.read_text().splitlines()]
    assert {
        "type": "output",
        "ref": f"{D}:0",
        "label": "gift [haze: 0.00 bits, exposure 100.0 %]",
    } in (first)
    labels = {row["ref"]: row["label"] for row in first}
    assert labels[f"{C}:0"] == "rent [haze: 1.00 bits, exposure 0.0 %]"
    # What was written names the wallet's coins too, and is replaced instead of added to.
    again = tmp_path / "again.jsonl"
    assert run("wallet", ledger, "--nodes", out, "--labels-out", again)[0] == 0
    second = {row["ref"]: row["label"] for row in map(json.loads, again.read_text().splitlines())}
    assert second[f"{C}:0"] == "rent [haze: 1.00 bits]"
    assert run("wallet", ledger, "--nodes", out, "--labels-out", out)[0] == 2


def test_labels_name_spent_coins_too_which_are_passed_over(
    run: Run, ledger: Path, tmp_path: Path
) -> None:
    path = tmp_path / "labels.jsonl"
    named = [("output", f"{A}:0"), ("addr", KNOWN), ("output", f"{B}:0"), ("output", f"{C}:0")]
    lines = [json.dumps({"type": kind, "ref": ref, "label": "mine"}) for kind, ref in named]
    path.write_text("\n".join(lines))
    code, out, err = run("wallet", ledger, "--nodes", path)
    assert (code, out.startswith("Wallet of 1 coin worth 0.0000007 BTC")) == (0, True)
    assert "note: of a wallet's labels, 2 coins are spent, and passed over" in err
    assert "note: of a wallet's labels, 1 address has no unspent coin, and passed over" in err
    path.write_text("\n".join(lines[:3]))
    code, out, err = run("wallet", ledger, "--nodes", path)
    assert (code, out) == (3, "")
    assert f"labels.jsonl:1: coin {A}:0 is spent already" in err


def test_labels_of_a_file_name_coins_without_one(run: Run, ledger: Path, tmp_path: Path) -> None:
    known, out = tmp_path / "known.jsonl", tmp_path / "out.jsonl"
    known.write_text(json.dumps({"type": "output", "ref": f"{C}:0", "label": "rent"}) + "\n")
    words = ["wallet", ledger, "--nodes", f"{C}:0", "--labels", known, "--labels-out", out]
    assert run(*words)[0] == 0
    assert json.loads(out.read_text())["label"] == "rent [haze: 1.00 bits]"


def test_scores_are_written_back_as_labels(run: Run, ledger: Path, tmp_path: Path) -> None:
    known, out = tmp_path / "known.jsonl", tmp_path / "out.jsonl"
    known.write_text(json.dumps({"type": "output", "ref": f"{C}:0", "label": "rent"}) + "\n")
    assert run("score", ledger, "--labels", known, "--labels-out", out)[0] == 0
    labels = {row["ref"]: row["label"] for row in map(json.loads, out.read_text().splitlines())}
    assert labels[f"{C}:0"] == "rent [haze: 1.00 bits]"
    assert labels[f"{D}:0"] == "[haze: 0.00 bits]"
    assert run("score", ledger, "--view", "address", "--labels-out", out)[0] == 0
    kinds = {json.loads(line)["type"] for line in out.read_text().splitlines()}
    assert kinds == {"addr"}
    transfers = tmp_path / "t.csv"
    transfers.write_text("from,to,amount\na,b,5\n")
    code, _, said = run("score", transfers, "--labels-out", out)
    assert (code, "--view coin" in said) == (2, True)
