"""coinhaze knowledge and coinhaze robustness, as a person types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from coinhaze.graph.clusters.heuristics import NAMES

Run = Callable[..., tuple[int, str, str]]
GAME = "from,to,amount\na,dice,5\nb,dice,8\ndice,c,8\ndice,d,5\n"
MIX = "".join(
    json.dumps(
        {
            "hash": txid * 64,
            "block_number": height,
            "block_timestamp": height,
            "is_coinbase": False,
            "inputs": [
                {"spent_transaction_hash": "f" * 64, "spent_output_index": 9 * height + k,
                 "value": 100_000 + height, "addresses": [f"in{height}{k}"]}
                for k in range(5)
            ],
            "outputs": [
                {"index": k, "value": 100_000, "addresses": [f"out{height}{k}"]} for k in range(5)
            ],
        }
    )
    + "\n"
    for height, txid in ((1, "a"), (2, "b"))
)  # fmt: skip


def test_all_heuristics_are_listed(run: Run) -> None:
    code, out, _ = run("knowledge")
    assert code == 0
    assert "measured" in out
    assert "assumed" in out
    assert all(name[:12] in out for name in NAMES)


def test_links_found_are_links_that_score_takes(run: Run) -> None:
    Path("t.csv").write_text(GAME)
    Path("hubs.txt").write_text("dice\n")
    found = ("t.csv", "--by", "pay-outs", "--services", "hubs.txt", "--confidence", "1")
    code, out, _ = run("knowledge", *found)
    assert code == 0
    assert out == "payment,node,probability,confidence\n2,b,1.0,1.0\n3,a,1.0,1.0\n"
    code, _, err = run("knowledge", *found, "-o", "links.csv")
    assert (code, err) == (0, "wrote links.csv: 2 rows\n")
    before = json.loads(run("score", "t.csv", "--time", "temporal", "--json")[1])
    after = json.loads(
        run("score", "t.csv", "--time", "temporal", "--links", "links.csv", "--json")[1]
    )
    assert before["summary"]["bits_mean"] > 0.9
    assert after["summary"]["bits_mean"] == 0


def test_clusters_and_coinjoins_are_counted_and_written(run: Run) -> None:
    Path("mix.json").write_text(MIX)
    code, out, _ = run("knowledge", "mix.json")
    assert code == 0
    assert "2 transactions" in out  # two mixes, so nobody is merged
    assert (
        run("knowledge", "mix.json", "--by", "common-input-no-coinjoins")[1] == "address,cluster\n"
    )
    code, out, _ = run("knowledge", "mix.json", "--by", "whirlpool")
    assert out.splitlines()[1:] == [f"{'a' * 64},whirlpool", f"{'b' * 64},whirlpool"]
    for words in ("common-input", "common-input-no-coinjoins", "change"):
        assert run("score", "mix.json", "--view", "address", "--clusters", words)[0] == 0


def test_what_makes_no_sense_is_one_line(run: Run) -> None:
    Path("t.csv").write_text(GAME)
    for arguments, fault in (
        (("knowledge", "--by", "change"), "needs a SOURCE"),
        (("knowledge", "t.csv"), "no heuristic for accounts is on"),
        (("knowledge", "t.csv", "--by", "luck"), "no heuristic 'luck'"),
        (("knowledge", "t.csv", "--by", "change"), "change is for ledgers of coins"),
        (("knowledge", "t.csv", "--by", "gas-price"), "gas-price needs gas prices"),
        (("knowledge", "t.csv", "-o", "x.csv"), "name it with --by"),
        (("robustness", "t.csv", "--listed", "hubs.txt"), "over all sources"),
    ):
        Path("hubs.txt").write_text("dice\n")
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert fault in err
        assert err.count("\n") == 1


def test_robustness_prints_draws_and_gives_json(run: Run) -> None:
    Path("t.csv").write_text(GAME)
    code, out, _ = run("robustness", "t.csv", "--time", "temporal", "--learn", "2")
    assert code == 0
    assert "links of 2 of 2 payments in doubt" in out
    asked = ("robustness", "t.csv", "--time", "temporal", "--nodes", "c", "--figure", "f.png")
    code, out, err = run(*asked, "--json")
    assert code == 0
    assert err == "wrote f.png\n"
    assert Path("f.png").stat().st_size > 5000
    told = json.loads(out)
    assert told["of"] == "c"
    assert told["falls"][0]["best_first_bits"] > told["falls"][-1]["best_first_bits"]


def test_a_world_comes_from_a_file(run: Run) -> None:
    Path("t.csv").write_text(GAME)
    Path("truth.csv").write_text("payment,node,probability\n2,b,1\n3,a,1\n")
    asked = ("robustness", "t.csv", "--time", "temporal", "--world", "truth.csv", "--json")
    falls = json.loads(run(*asked)[1])["falls"]
    assert [row["links"] for row in falls] == [0, 1, 2]
    assert falls[-1]["best_first_bits"] == 0
