"""Ten questions a role, each of which the output alone answers, and answers rightly.

The ledger is small and its truth known. People who had not seen the software were given the same
outputs and questions.
"""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from coinhaze import CoinLedger
from coinhaze.cli import cli
from coinhaze.explore import Explorer
from coinhaze.explore.query import CoinQuery
from coinhaze.ledger import write_folder
from coinhaze.web.pages.coin import CoinView, coin_page


def spend(*coins: str) -> list[dict[str, Any]]:
    return [{"txid": coin[:-2], "vout": int(coin[-1])} for coin in coins]


def pay(*outputs: tuple[int, str]) -> list[dict[str, Any]]:
    return [{"value": value, "address": address} for value, address in outputs]


# Ann spends four coinbases of hers; a thief and Bob are merged; an employer pays twice.
TRUTH: list[dict[str, Any]] = [
    *({"txid": f"mint{k}", "outputs": pay((50_000, "ann"))} for k in range(1, 5)),
    {"txid": "savings", "inputs": spend("mint1:0", "mint2:0", "mint3:0", "mint4:0"),
     "outputs": pay((200_000, "ann2"))},
    {"txid": "mint5", "outputs": pay((50_000, "thief"))},
    {"txid": "mint6", "outputs": pay((150_000, "bob"))},
    {"txid": "shop", "inputs": spend("mint5:0", "mint6:0"),
     "outputs": pay((160_000, "shop"), (40_000, "shop2"))},
    {"txid": "gift", "inputs": spend("savings:0"),
     "outputs": pay((30_000, "me2"), (170_000, "ann3"))},
    {"txid": "mint7", "outputs": pay((90_000, "firm"))},
    {"txid": "mint8", "outputs": pay((90_000, "firm"))},
    {"txid": "wage1", "inputs": spend("mint7:0"),
     "outputs": pay((45_000, "me4"), (45_000, "firm"))},
    {"txid": "wage2", "inputs": spend("mint8:0"),
     "outputs": pay((45_000, "me5"), (45_000, "firm"))},
    {"txid": "sale", "inputs": spend("shop:1"), "outputs": pay((40_000, "me1"))},
    {"txid": "deposit", "inputs": spend("shop:0"), "outputs": pay((160_000, "exchange"))},
]  # fmt: skip
LABELS = {"firm": "my employer", "ann2": "ann", "shop2": "the shop"}

HOLDER = {
    "what do I hold": r"Wallet of 4 coins worth 0\.0016 BTC",
    "may I merge these": r"Do not merge all coins: ann learns coins 1, 3, 4",
    "which may be merged": r"coins 3, 4 .* safe: no known party learns of another coin; onlookers",
    "what should I spend": r"To pay 0\.0004 BTC: spend coin 3 \(wage1:0\)",
    "who else learns": r"No known party but the payee learns anything\. It is a tie",
    "what touched the list": r"Coin 1 is exposed through thief: 25\.00%, 0\.0001 BTC",
    "what would the shop learn": r"the shop learns coins 2, 3, 4",
    "are more bits better": r"more is better hidden",
    "do more bits make a merge safe": r"That they rise does not make a merge safe",
    "is change evident": r"0\.00005 BTC, not evident.*The payee knows its own output",
}
ANALYST = {
    "is this deposit clean": r"Match: 1 of 1 node screened holds or held money from the list",
    "and how sure": r"haircut: no share is off by more than .* This is proven",
    "what nobody can be sure of": r"Nothing here can say whether the list is right",
    "how much if money mixes": r"haircut 0\.0004 BTC \(25\.00%\)",
    "lowest and highest": r"deposit:0: 25\.00% \(haircut\); from 6\.25% \(lifo.* to 100\.00%",
    "whose money": r"thief │ The Thief │ Example Sanctions",
    "which way": r"mint5:0.*→ tx:shop.*→ shop:0.*→ tx:deposit",
    "which name was not found": r"not found: ghost",
    "whose case": r"case │ 2026-117 .* analyst │ J\. Doe",
    "is the holder guilty": r"It is no proof that the holder of a node did anything",
}
RESEARCHER = {
    "how many bits": r"2\.00 bits exact",
    "how many equal origins": r"As hard to trace as a coin with 4\.0 equally likely origins",
    "private to an exchange": r"By observer: 2\.00 bits; 0 if its inputs had one owner",
    "which rule": r"splits value in proportion",
    "possible origins": r"Possible origins 4 all shown",
    "the likeliest": r"Likeliest single origin 25\.0 %",
    "steps": r"Steps back to an origin 6\.0 on average",
    "why": r"Payment savings ?4 ways back, 2 hops away; 100 % of the money came by here \+2\.00",
    "who knows more": r"Exchange records, network logs or your own address list tell more",
    "was a list used": r"Exposure to loaded lists . no list loaded",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("questions")
    write_folder(CoinLedger.from_transactions(TRUTH), made / "town")
    names = [("sale:0", "sale"), ("gift:0", "gift"), ("wage1:0", "wage"), ("wage2:0", "wage")]
    (made / "mine.csv").write_text("coin,label\n" + "".join(f"{a},{b}\n" for a, b in names))
    programme = "Example Sanctions"
    (made / "list.csv").write_text(
        f"address,name,programme\nthief,The Thief,{programme}\nghost,The Ghost,{programme}\n"
    )
    rows = "".join(f"{address},{label}\n" for address, label in LABELS.items())
    (made / "labels.csv").write_text(f"address,label\n{rows}")
    return made


def told(*command: str) -> str:
    """Give a command's output on one line; a cell that goes on below follows at once."""
    done = CliRunner().invoke(cli, [*command, "--unit", "BTC"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return re.sub(r"\s+", " ", done.output)


@pytest.fixture(scope="module")
def wallet(folder: Path) -> str:
    files = [f"--{kind}={folder / file}" for kind, file in (
        ("nodes", "mine.csv"), ("listed", "list.csv"), ("labels", "labels.csv"))]  # fmt: skip
    return told("wallet", str(folder / "town"), *files, "--amount", "0.0004")


@pytest.fixture(scope="module")
def statement(folder: Path) -> str:
    listed = f"--listed={folder / 'list.csv'}"
    case = ["--case", "2026-117", "--analyst", "J. Doe"]
    return told("screen", str(folder / "town"), listed, "--nodes", "deposit", *case)


@pytest.fixture(scope="module")
def coin() -> str:
    explorer = Explorer(
        CoinLedger.from_transactions(TRUTH), id="town", labels=LABELS, unit="BTC"
    )  # fmt: skip
    page = coin_page(
        CoinView(explorer.card(), explorer.coin("gift:0"), CoinQuery(), explorer.histogram())
    )
    page = re.sub(r"<svg.*?</svg>|</(p|td|th|dt|b|li|tr)>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", page)))


@pytest.mark.parametrize("question", HOLDER)
def test_a_holder_finds_the_answer(wallet: str, question: str) -> None:
    assert re.search(HOLDER[question], wallet), wallet


@pytest.mark.parametrize("question", ANALYST)
def test_an_analyst_finds_the_answer(statement: str, question: str) -> None:
    assert re.search(ANALYST[question], statement), statement


@pytest.mark.parametrize("question", RESEARCHER)
def test_a_researcher_finds_the_answer(coin: str, question: str) -> None:
    assert re.search(RESEARCHER[question], coin), coin
