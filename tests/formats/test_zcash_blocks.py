from __future__ import annotations

import json
import lzma
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import coinhaze
from coinhaze.errors import CoinhazeError, InputError, LedgerError
from coinhaze.formats.bitcoin_raw.wire import Cursor, Malformed
from coinhaze.formats.zcash_raw import blocks as zcash_blocks
from coinhaze.formats.zcash_raw.transactions import read_transaction
from formats import block_samples
from formats import zcash_samples as samples
from formats.block_samples import file_of, pay, pay_to_key_hash, spend, twice
from formats.zcash_samples import MAIN, TEST, VARIED, Made, chain

Rows = list[dict[str, Any]]
TABLES = ("blocks", "stated_blocks", "transactions", "outputs", "inputs", "pool_flows")


def hex_lines(blocks: Sequence[bytes]) -> bytes:
    return b"".join(b.hex().encode() + b"\n" for b in blocks)


def write(folder: Path, octets: bytes, called: str = "blocks.txt") -> Path:
    path = folder / called
    path.write_bytes(octets)
    return path


def rows(path: Path) -> dict[str, Rows]:
    tables: dict[str, Rows] = {table: [] for table in TABLES}
    for batch in zcash_blocks.batches(path):
        for table, read in batch.tables.items():
            tables[table] += read.to_pylist()
    return tables


def fault(path: Path) -> str:
    with pytest.raises(LedgerError) as caught:
        rows(path)
    return str(caught.value)


def flows(folder: Path, made: Made) -> dict[str, int]:
    read = rows(write(folder, hex_lines(chain([[made]]))))["pool_flows"]
    return {row["pool"]: row["into_pool"] for row in read}


def check_against_twin(read: dict[str, Rows], blocks: Sequence[bytes]) -> list[samples.SlowTx]:
    """Hold rows against the slow twin; give what the twin read."""
    slow = [t for b in blocks for t in samples.read_block(b)]
    assert len(read["transactions"]) == len(slow)
    names = [(row["height"], row["txid"]) for row in read["transactions"]]
    assert [row["coinbase"] for row in read["transactions"]] == [t.coinbase for t in slow]
    assert [row["value"] for row in read["outputs"]] == [v for t in slow for v in t.outputs]
    assert len(read["inputs"]) == sum(t.inputs for t in slow if not t.coinbase)
    found = {(r["height"], r["txid"], r["pool"]): r["into_pool"] for r in read["pool_flows"]}
    want = {
        (*named, pool): flow
        for named, t in zip(names, slow, strict=True)
        for pool, flow in t.into.items()
    }
    assert found == want
    return slow


def unhexed(path: Path) -> list[bytes]:
    with lzma.open(path) as file:
        return [bytes.fromhex(line.decode()) for line in file]


class TestForms:
    def test_rows_agree_with_the_slow_twin(self, tmp_path: Path) -> None:
        blocks = chain(VARIED)
        check_against_twin(rows(write(tmp_path, hex_lines(blocks))), blocks)

    def test_hex_bare_and_framed_blocks_have_the_same_rows(self, tmp_path: Path) -> None:
        blocks = chain(VARIED)
        want = rows(write(tmp_path, hex_lines(blocks)))
        assert [row["height"] for row in want["blocks"]] == [1000, 1001, 1002, 1003]
        for octets in (
            b"".join(blocks),
            file_of(blocks, MAIN),
            hex_lines(blocks).upper(),
            b"\xef\xbb\xbf" + hex_lines(blocks),
            b"\n\n" + hex_lines(blocks).replace(b"\n", b"\r\n\r\n"),
            hex_lines(blocks).rstrip(),
            lzma.compress(hex_lines(blocks)),
            lzma.compress(b"".join(blocks)),
        ):
            assert rows(write(tmp_path, octets)) == want

    def test_files_are_known_by_their_first_bytes(self) -> None:
        blocks = chain(VARIED)
        for octets in (hex_lines(blocks), b"".join(blocks), file_of(blocks, MAIN)):
            assert zcash_blocks.recognises(octets[:4096])
            assert not zcash_blocks.recognises(b"x" + octets[:4095])
        for other in (b"", b"{}", bytes(500), b"0" * 500, b"\xff" * 500):
            assert not zcash_blocks.recognises(other)
        bitcoin = file_of(block_samples.chain(300_000, 1))
        assert not zcash_blocks.recognises(bitcoin)

    def test_many_batches_have_the_rows_of_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        octets = hex_lines(chain(VARIED * 5))
        path = write(tmp_path, octets)
        whole = rows(path)
        monkeypatch.setattr(zcash_blocks, "BATCH_BYTES", 8000)
        read = [batch.read for batch in zcash_blocks.batches(path)]
        assert len(read) > 3
        assert read == sorted(set(read))
        assert read[-1] == len(octets)
        assert rows(path) == whole

    def test_frames_tell_the_network(self, tmp_path: Path) -> None:
        blocks = chain(VARIED)
        for magic, start in ((MAIN, "t1"), (TEST, "tm")):
            read = rows(write(tmp_path, file_of(blocks, magic)))
            assert read["outputs"][0]["owner"].startswith(start)

    def test_a_block_too_easy_for_the_main_network_is_the_test_network_s(
        self, tmp_path: Path
    ) -> None:
        for bits, start in ((samples.EASIEST_MAIN, "t1"), (samples.EASIEST_TEST, "tm")):
            read = rows(write(tmp_path, hex_lines(chain(VARIED, bits=bits))))
            assert read["outputs"][0]["owner"].startswith(start)
        assert zcash_blocks._target(0x1F07FFFF) == zcash_blocks._MAIN_LIMIT

    def test_undo_files_of_a_node_give_values(self, tmp_path: Path) -> None:
        blocks = chain(VARIED)
        spent: list[list[list[tuple[int, bytes]]]]
        spent = [[[(9, pay_to_key_hash(8))]], [[]], [[(3, b"")]], [[(1, b"\x51")], [], [], []]]
        records = [
            block_samples.undo_frame(block_samples.undo(coins), b[4:36], MAIN)
            for coins, b in zip(spent, blocks, strict=True)
        ]
        write(tmp_path, b"".join(records), "rev00000.dat")
        read = rows(write(tmp_path, file_of(blocks, MAIN), "blk00000.dat"))["inputs"]
        assert [row["value"] for row in read] == [9, 3, 1]
        assert str(read[0]["owner"]).startswith("t1")

    def test_the_first_coinbase_cannot_be_spent(self, tmp_path: Path) -> None:
        txs = [samples.made_by_miner(1).octets()]
        first = samples.block(bytes(32), txs)
        second = samples.block(samples.name(first), txs)
        read = rows(write(tmp_path, hex_lines([first, second])))
        assert [row["height"] for row in read["blocks"]] == [0, 1]
        assert [row["previous"] is None for row in read["blocks"]] == [True, False]
        assert [row["spendable"] for row in read["outputs"]] == [False, True]


class TestFlows:
    """Signs differ: balances are above 0 out of the pool, our flows above 0 into it."""

    def test_a_balance_above_0_leaves_the_sapling_pool(self, tmp_path: Path) -> None:
        assert flows(tmp_path, Made(4, sapling=850, spends=1)) == {"sapling": -850}

    def test_a_balance_below_0_enters_the_sapling_pool(self, tmp_path: Path) -> None:
        assert flows(tmp_path, Made(4, sapling=-850, sapling_outputs=1)) == {"sapling": 850}

    def test_old_money_enters_the_sprout_pool_and_new_leaves_it(self, tmp_path: Path) -> None:
        assert flows(tmp_path, Made(2, sprout=[(700, 0)])) == {"sprout": 700}
        assert flows(tmp_path, Made(2, sprout=[(0, 700)])) == {"sprout": -700}

    def test_joinsplits_of_one_transaction_are_added(self, tmp_path: Path) -> None:
        assert flows(tmp_path, Made(4, sprout=[(700, 0), (0, 100), (3, 0)])) == {"sprout": 603}

    def test_a_transaction_that_only_moves_inside_has_no_flow(self, tmp_path: Path) -> None:
        assert flows(tmp_path, Made(4, sprout=[(5, 0), (0, 5)], spends=1)) == {}

    def test_a_transaction_may_move_between_pools(self, tmp_path: Path) -> None:
        made = Made(4, sprout=[(0, 60)], sapling=-50, sapling_outputs=1)
        assert flows(tmp_path, made) == {"sprout": -60, "sapling": 50}

    def test_a_coinbase_may_be_shielded(self, tmp_path: Path) -> None:
        made = samples.made_by_miner(1000, sapling=-(10**9), sapling_outputs=1).octets()
        path = write(tmp_path, hex_lines([samples.block(b"\7" * 32, [made])]))
        (row,) = rows(path)["pool_flows"]
        assert row["into_pool"] == 10**9

    def test_orchard_flows_are_counted(self) -> None:
        made = Made(5, sapling=9, spends=2, sapling_outputs=1, orchard=-4, actions=2)
        assert read_transaction(Cursor(made.octets())).into == {"sapling": -9, "orchard": 4}

    @pytest.mark.parametrize(
        "made",
        [
            Made(2, sprout=[(-1, 0)]),
            Made(2, sprout=[(0, 21 * 10**14 + 1)]),
            Made(4, sapling=21 * 10**14 + 1, spends=1),
            Made(4, sapling=-(2**63), spends=1),
            Made(4, sapling=1),
            Made(1, outputs=[pay(-1, b"")]),
            Made(1, outputs=[pay(2**63 - 1, b"")]),
        ],
    )
    def test_amounts_that_cannot_be_are_refused(self, tmp_path: Path, made: Made) -> None:
        said = fault(write(tmp_path, hex_lines(chain([[made]]))))
        assert "blocks.txt:1: block 1000: no Zcash block: a" in said


class TestNamesOfVersion5:
    """ZIP 244: a name covers what a transaction does and not what proves that it may."""

    MADE = Made(
        5,
        [spend((b"\1" * 32, 3), b"signature"), spend((b"\2" * 32, 4), b"")],
        [pay(5, pay_to_key_hash(2))],
        sapling=9,
        spends=2,
        sapling_outputs=2,
        orchard=-4,
        actions=2,
    )

    def test_every_byte_counts_but_those_that_prove(self) -> None:
        octets = self.MADE.octets()
        name = read_transaction(Cursor(octets)).txid
        proofs = [samples.filler(192 * 4 + 64 * 3, 3), samples.filler(64 * 3, 7)]
        proofs += [samples.filler(200, 6), b"signature"]
        free = {octets.index(p) + i for p in proofs for i in range(len(p))}
        checked = set()
        for at in range(len(octets)):
            broken = bytearray(octets)
            broken[at] ^= 1
            try:
                other = read_transaction(Cursor(bytes(broken))).txid
            except Malformed:
                continue
            assert (other == name) == (at in free), at
            checked.add(at)
        assert len(octets) - len(checked) < 30

    def test_each_part_may_be_missing(self) -> None:
        parts = [
            Made(5),
            Made(5, [spend((b"\1" * 32, 3))]),
            Made(5, outputs=[pay(1, b"")]),
            Made(5, spends=1),
            Made(5, sapling_outputs=1),
            Made(5, actions=1),
        ]
        read = [Cursor(made.octets()) for made in parts]
        assert len({read_transaction(cursor).txid for cursor in read}) == len(parts)
        assert all(cursor.at == len(cursor.data) for cursor in read)


class TestVersion6:
    """ZIP 229: the pool Ironwood beside Orchard, and names that do not depend on anchors."""

    SPENT = (b"\1" * 32, 3)
    MADE = Made(
        6,
        [spend(SPENT, b"signature")],
        [pay(5, pay_to_key_hash(2))],
        sapling=9,
        spends=2,
        sapling_outputs=2,
        orchard=-4,
        actions=2,
        ironwood=-7,
        ironwood_actions=1,
    )
    PARTS = (
        Made(6),
        Made(6, [spend(SPENT)]),
        Made(6, outputs=[pay(1, b"")]),
        Made(6, spends=1),
        Made(6, sapling_outputs=1),
        Made(6, actions=1),
        Made(6, ironwood_actions=1),
        Made(6, ironwood_actions=3, ironwood=8),
        MADE,
    )

    def test_names_are_those_of_the_twin(self) -> None:
        for made in self.PARTS:
            cursor = Cursor(made.octets())
            assert read_transaction(cursor).txid == made.v6_id()
            assert cursor.at == len(cursor.data)
        assert len({made.v6_id() for made in self.PARTS}) == len(self.PARTS)

    def test_anchors_and_proofs_do_not_count(self) -> None:
        octets = self.MADE.octets()
        for free in (samples.filler(32, seed) for seed in (2, 5, 15)):
            broken = bytearray(octets)
            broken[octets.index(free)] ^= 1
            assert read_transaction(Cursor(bytes(broken))).txid == self.MADE.v6_id()

    def test_blocks_are_read_with_the_flows_of_the_new_pool(self, tmp_path: Path) -> None:
        first = samples.made_by_miner(1000)
        into = Made(6, [spend((b"\5" * 32, 0))], ironwood=-8, ironwood_actions=2)
        out = Made(6, outputs=[pay(3, pay_to_key_hash(4))], ironwood=3, ironwood_actions=1)
        turned = Made(6, orchard=6, actions=1, ironwood=-6, ironwood_actions=1)
        txs = [first.octets(), *(made.octets() for made in (into, out, turned))]
        ids = [twice(txs[0]), *(made.v6_id() for made in (into, out, turned))]
        octets = samples.block(b"\7" * 32, txs, ids=ids)
        read = rows(write(tmp_path, hex_lines([octets])))
        check_against_twin(read, [octets])
        found = [(row["pool"], row["into_pool"]) for row in read["pool_flows"]]
        assert sorted(found) == [
            ("ironwood", -3),
            ("ironwood", 6),
            ("ironwood", 8),
            ("orchard", -6),
        ]

    def test_a_window_is_scored_as_by_hand(self, tmp_path: Path) -> None:
        """Of what Ironwood holds, the first coinbase brought three parts and the second one."""
        coinbases = [samples.made_by_miner(height).octets() for height in (1000, 1001, 1002)]
        first, second = (spend((twice(c), 0)) for c in coinbases[:2])
        part = 10**9 // 4
        into = [(first, 3 * part), (second, part)]
        made = [
            Made(6, [coin], [pay(10**9 - shielded, pay_to_key_hash(7))],
                 ironwood=-shielded, ironwood_actions=2)
            for coin, shielded in into
        ]  # fmt: skip
        made.append(Made(6, outputs=[pay(part, pay_to_key_hash(4))], ironwood=part,
                         ironwood_actions=1))  # fmt: skip
        blocks = chain([[], []])
        txs = [coinbases[2], *(m.octets() for m in made)]
        ids = [twice(txs[0]), *(m.v6_id() for m in made)]
        blocks.append(samples.block(samples.name(blocks[1]), txs, ids=ids))
        scores = coinhaze.score(write(tmp_path, hex_lines(blocks)))
        taken = f"{made[2].v6_id()[::-1].hex()}:0"
        # -(3/4) log2(3/4) - (1/4) log2(1/4)
        assert scores[taken].bits == pytest.approx(0.8112781244591328, abs=1e-12)


BLOCK = chain(VARIED[1:2])[0]
SPENDING = chain(VARIED[:1])[0]
NEW = samples.block(
    b"\7" * 32,
    [samples.made_by_miner(1000).octets(), bytes.fromhex("070000800a270a26") + bytes(60)],
)
SHIELDED = b'{"hash":"ab","height":1,"tx":["cd"],"finalsaplingroot":"x","valuePools":[]}'
# What each message must say to mend it.
MISTAKES: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "cut short": (BLOCK.hex().encode()[:-40], {}, "cut short, .*zcash-cli getblock HASH 0"),
    "cut in the middle of a digit": (BLOCK.hex().encode()[:-41], {}, "zcash-cli getblock HASH 0"),
    "a letter changed": (
        BLOCK.hex().encode()[:-300] + b"0" + BLOCK.hex().encode()[-299:], {},
        "another Merkle root.*take it from the node again"),
    "two blocks on a line": ((BLOCK + BLOCK).hex().encode(), {}, "left over after it.*no block"),
    "quotes of the answer": (
        b'"' + BLOCK.hex().encode() + b'"', {"format": "zcash-blocks"},
        "digits 0-9, a-f.*one per line; .*getblock HASH 0"),
    "a transaction": (
        VARIED[0][0].octets().hex().encode(), {"format": "zcash-blocks"}, "getblock HASH 0"),
    "a block as ids alone (verbosity 1)": (SHIELDED, {}, "zcash-cli getblock HASH 0"),
    "values not known": (
        SPENDING.hex().encode(), {}, "not known.*add the blocks that made them, .*rev|leave-out"),
    "a version of a later upgrade": (
        NEW.hex().encode(), {}, "version 7.*versions 1 to 6 are known"),
    "a block of Bitcoin": (
        block_samples.block(bytes(32), [block_samples.coinbase(300_000)]).hex().encode(),
        {"format": "zcash-blocks"}, "no Zcash block.*getblock HASH 0"),
    "an error of the node": (
        b"error code: -5\nerror message:\nBlock not found\n", {"format": "zcash-blocks"},
        "a block in hex is wanted.*getblock HASH 0"),
    "nothing": (b"", {}, "empty: export or download it again"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_likely_mistake_is_named_with_its_fix(tmp_path: Path, mistake: str) -> None:
    content, settings, words = MISTAKES[mistake]
    with pytest.raises(CoinhazeError, match=words) as caught:
        coinhaze.score(write(tmp_path, content), **settings)
    assert str(caught.value).isprintable()


class TestFaults:
    def test_transactions_that_do_not_give_the_root_are_refused(self, tmp_path: Path) -> None:
        blocks = chain(VARIED)
        broken = blocks[3][:-1] + bytes([blocks[3][-1] ^ 1])
        said = fault(write(tmp_path, hex_lines([*blocks[:3], broken])))
        assert "blocks.txt:4: block 1003: no Zcash block: its transactions give another" in said

    @pytest.mark.parametrize("text", [b"zz", b"abc", b"\xff\xff", b"04 00", b"0x04", "٠٤".encode()])
    def test_what_is_not_hex_is_refused_with_its_line(self, tmp_path: Path, text: bytes) -> None:
        said = fault(write(tmp_path, hex_lines(chain(VARIED)[:2]) + b"\n" + text + b"\n"))
        assert "blocks.txt:4: " in said

    @pytest.mark.parametrize("cut", [1, 50, 3000, 4900])
    def test_a_block_cut_short_is_refused(self, tmp_path: Path, cut: int) -> None:
        blocks = chain(VARIED[:2])
        blocks[1] = blocks[1][:-cut]
        for octets in (hex_lines(blocks), b"".join(blocks)):
            assert "no Zcash block" in fault(write(tmp_path, octets))

    def test_bytes_after_a_block_are_refused(self, tmp_path: Path) -> None:
        blocks = [b + b"\0" for b in chain(VARIED[:2])]
        assert "1 bytes are left over" in fault(write(tmp_path, hex_lines(blocks)))
        assert "no Zcash block" in fault(write(tmp_path, b"".join(blocks)))

    def test_a_line_longer_than_any_block_is_refused(self, tmp_path: Path) -> None:
        octets = chain(VARIED[:1])[0].hex().encode() + b"00" * (2 * zcash_blocks.LARGEST)
        assert "longer than any block" in fault(write(tmp_path, octets))

    @pytest.mark.parametrize(
        ("start", "said"),
        [
            ("06000080 0a270a26", "version 6, group 0x260a270a: versions 1 to 6 are known"),
            ("05000080 85202f89", "version 5, group 0x892f2085"),
            ("00000000", "version 0"),
        ],
    )
    def test_versions_that_are_not_known_are_named(
        self, tmp_path: Path, start: str, said: str
    ) -> None:
        txs = [samples.made_by_miner(1000).octets(), bytes.fromhex(start) + bytes(60)]
        assert said in fault(write(tmp_path, hex_lines([samples.block(b"\7" * 32, txs)])))

    def test_coinbases_stand_first_and_alone(self, tmp_path: Path) -> None:
        one, plain = samples.made_by_miner(1000).octets(), VARIED[0][0].octets()
        nothing = spend((bytes(32), 2**32 - 1))
        mixed = [Made(4, [spend((b"\1" * 32, 0)), nothing]), Made(4, [nothing, nothing])]
        for txs in ([one, one[:-1] + b"\0", plain], *([one, m.octets()] for m in mixed)):
            said = fault(write(tmp_path, hex_lines([samples.block(b"\7" * 32, txs)])))
            assert "twice" in said or "spends nothing beside others" in said
        other = samples.made_by_miner(1000, version=1).octets()
        said = fault(write(tmp_path, hex_lines([samples.block(b"\7" * 32, [one, other])])))
        assert "two coinbases" in said
        first = samples.block(bytes(32), [plain])
        assert "no coinbase" in fault(write(tmp_path, hex_lines([first])))

    def test_an_unreadable_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="nowhere"):
            rows(tmp_path / "nowhere")
        packed = lzma.compress(hex_lines(chain(VARIED)))
        with pytest.raises(InputError, match=r"blocks\.xz"):
            rows(write(tmp_path, packed[:-20], "blocks.xz"))


class TestReal:
    def test_101_blocks_of_the_main_network(self, data: Path) -> None:
        path = data / "zcash_main_663150_663250" / "blocks.hex.txt.xz"
        read = rows(path)
        slow = check_against_twin(read, unhexed(path))
        assert [row["height"] for row in read["blocks"]] == list(range(663_150, 663_251))
        for above, below in zip(read["blocks"][1:], read["blocks"], strict=False):
            assert above["previous"] == below["hash"]
        assert len(read["transactions"]) == 303
        assert len(read["inputs"]) + 101 == 978
        assert len(read["outputs"]) == 1500
        made = {(row["txid"], row["vout"]) for row in read["outputs"]}
        spent = {(row["spent_txid"], row["spent_vout"]) for row in read["inputs"]}
        assert len(made & spent) == 128
        assert sum(len(t.joinsplits) for t in slow) == 13
        assert sum(row["pool"] == "sapling" for row in read["pool_flows"]) == 41
        assert sum(row["into_pool"] > 0 for row in read["pool_flows"]) == 26
        assert sum(row["into_pool"] < 0 for row in read["pool_flows"]) == 27
        assert {str(row["owner"])[0:2] for row in read["outputs"]} <= {"t1", "t3", "No"}

    def test_201_blocks_of_the_test_network(self, data: Path) -> None:
        path = data / "zcash_test_1028400_1028600" / "blocks.hex.txt.xz"
        read = rows(path)
        check_against_twin(read, unhexed(path))
        assert [row["height"] for row in read["blocks"]] == list(range(1_028_400, 1_028_601))
        assert len(read["transactions"]) == 237
        assert {str(row["owner"])[0:2] for row in read["outputs"]} <= {"tm", "t2", "No"}

    def test_blocks_around_every_upgrade(self, data: Path, tmp_path: Path) -> None:
        pools, number = set(), 0
        with tarfile.open(data / "zcash_blocks_zebra" / "block-main.tar.xz") as tar:
            for member in tar.getmembers():
                file = tar.extractfile(member)
                assert file is not None
                octets = file.read()
                path = write(tmp_path, octets, member.name)
                assert zcash_blocks.recognises(octets[:4096])
                if "bad" in member.name:
                    assert "unknown height" in fault(path)  # its coinbase tells no height
                    continue
                read = rows(path)
                bare = octets if member.name.endswith("bin") else bytes.fromhex(octets.decode())
                check_against_twin(read, [bare])
                height = int("".join(c for c in member.name if c.isdigit()))
                assert read["blocks"][0]["height"] == height
                pools |= {row["pool"] for row in read["pool_flows"]}
                number += 1
        assert number == 42
        assert pools == {"sprout", "sapling", "orchard"}

    @pytest.mark.parametrize(
        ("called", "magic"),
        [
            ("zcash_mainnet_1000", MAIN),
            ("zcash_testnet_242100", TEST),
            ("zcash_testnet_283046", TEST),
            ("zcash_testnet_304290", TEST),
        ],
    )
    def test_blocks_of_electrumx(
        self, data: Path, tmp_path: Path, called: str, magic: bytes
    ) -> None:
        with tarfile.open(data / "etl_fixtures" / "electrumx_tests_blocks.tar.xz") as tar:
            file = tar.extractfile(f"tests/blocks/{called}.json")
            assert file is not None
            told = json.load(file)
        block = bytes.fromhex(told["block"])
        read = rows(write(tmp_path, block_samples.frame(block, magic)))
        check_against_twin(read, [block])
        assert [row["txid"] for row in read["transactions"]] == told["tx"]
        assert read["blocks"][0] == {
            "height": told["height"],
            "hash": told["hash"],
            "previous": told["previousblockhash"],
            "time": told["time"],
        }
