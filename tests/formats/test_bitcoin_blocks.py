from __future__ import annotations

import gzip
import json
import lzma
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from coinhaze.errors import InputError
from coinhaze.formats.bitcoin_raw import blocks as bitcoin_blocks
from coinhaze.formats.bitcoin_raw import contents as block_contents
from coinhaze.formats.bitcoin_raw.files import LARGEST_FRAME
from formats import block_samples as samples
from formats import block_twin as twin
from formats.block_reading import Rows, fault, heights, rows, write
from formats.block_samples import (
    MAGIC,
    NO_BLOCK,
    block,
    chain,
    coinbase,
    compact,
    file_of,
    frame,
    name,
    pay,
    pay_to_key_hash,
    spend,
    transaction,
    twice,
    varied_blocks,
)

DOGECOIN, DASH = bytes.fromhex("c0c0c0c0"), bytes.fromhex("bf0c6bbd")
LITECOIN = bytes.fromhex("fbc0b6db")
KEY = bytes.fromhex("0123456789abcdef")


def rows_by_twin(octets: bytes, first: int) -> dict[str, Rows]:
    """Read blocks that stand in order, by the slow twin."""
    names = ("blocks", "stated_blocks", "transactions", "outputs", "inputs")
    tables: dict[str, Rows] = {name: [] for name in names}
    for height, b in enumerate(twin.read_file(octets), first):
        tables["blocks"].append(
            {"height": height, "hash": b.hash, "previous": b.previous, "time": b.time}
        )
        tables["stated_blocks"].append(
            {"height": height, "transaction_count": len(b.txs), "merkle_root": b.merkle}
        )
        for position, t in enumerate(b.txs):
            key = {"height": height, "txid": t.txid}
            tables["transactions"].append(
                key | {"coinbase": position == 0, "position": position, "time": b.time}
            )
            for vout, (value, s) in enumerate(t.outputs):
                known = {"value": value, "owner": twin.owner(s)}
                tables["outputs"].append(
                    key | {"vout": vout, "spendable": twin.spendable(s)} | known
                )
            for vin, (spent, n) in enumerate(t.inputs if position else []):
                coin = {"spent_txid": spent, "spent_vout": n}
                unknown = {"value": None, "owner": None}
                tables["inputs"].append(key | {"vin": vin} | coin | unknown)
    return tables


def test_rows_agree_with_the_slow_twin(tmp_path: Path) -> None:
    octets = file_of(varied_blocks()[0])
    read = rows(write(tmp_path, octets))
    assert read == rows_by_twin(octets, 300_000)
    assert len(read["outputs"]) == 12 + 1 + 1 + 2 + 1
    assert len(read["inputs"]) == 8 + 3


def test_a_transaction_is_named_without_its_witness(tmp_path: Path) -> None:
    blocks, _ = varied_blocks()
    read = rows(write(tmp_path, file_of(blocks)))["transactions"]
    spent = read[3]["txid"]
    bare = twin.read_block(blocks[1]).txs[2]
    assert spent == bare.txid
    assert b"x" * 300 in blocks[1]


def test_many_batches_have_the_rows_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    octets = file_of(chain(300_000, 30))
    path = write(tmp_path, octets)
    whole = rows(path)
    monkeypatch.setattr(bitcoin_blocks, "BATCH_BYTES", 700)
    read = [batch.read for batch in bitcoin_blocks.batches(path)]
    assert len(read) > 5
    assert read == sorted(set(read))
    assert read[-1] == len(octets)
    assert rows(path) == whole


def test_a_row_says_in_which_block_it_stood(tmp_path: Path) -> None:
    path = write(tmp_path, file_of(varied_blocks()[0]))
    (batch,) = bitcoin_blocks.batches(path)
    txid = batch.tables["inputs"]["txid"][2]
    assert batch.where("inputs", 2) == f"{path}: block 300001, transaction {txid}"
    assert batch.where("blocks", 1) == f"{path}: block 300001"


def test_files_are_known_by_their_first_bytes() -> None:
    octets = file_of(chain(300_000, 1, previous=b"\1" * 28 + bytes(4)))
    assert bitcoin_blocks.recognises(octets[:4096])
    assert bitcoin_blocks.recognises(samples.hide(octets, KEY)[:4096])
    for other in (b"", b"{}", b"from,to,amount\n" * 9, octets[1:], bytes(200), b"\1" * 200):
        assert not bitcoin_blocks.recognises(other)


def zstd(octets: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(octets)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstd])
def test_packed_files_are_unpacked(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    octets = file_of(varied_blocks()[0])
    assert rows(write(tmp_path, pack(octets), "blocks")) == rows_by_twin(octets, 300_000)


class TestFraming:
    def test_a_key_beside_the_file_takes_its_cover_off(self, tmp_path: Path) -> None:
        octets = file_of(varied_blocks()[0])
        (tmp_path / "xor.dat").write_bytes(KEY)
        assert rows(write(tmp_path, samples.hide(octets, KEY))) == rows_by_twin(octets, 300_000)

    def test_a_key_of_zeros_hides_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "xor.dat").write_bytes(bytes(8))
        assert heights(write(tmp_path, file_of(chain(300_000, 2)))) == [300_000, 300_001]

    def test_a_key_of_another_length_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "xor.dat").write_bytes(b"1234567")
        assert "a key has 8 bytes" in fault(write(tmp_path, file_of(chain(300_000, 1))))

    def test_a_hidden_file_without_its_key_says_so(self, tmp_path: Path) -> None:
        octets = samples.hide(file_of(chain(300_000, 1)), KEY)
        assert "xor.dat must lie beside" in fault(write(tmp_path, octets))

    @pytest.mark.parametrize("key", [b"", KEY])
    def test_room_set_aside_is_zeros_without_the_key(self, tmp_path: Path, key: bytes) -> None:
        one, two = (frame(b) for b in chain(300_000, 2))
        octets = one + bytes(3_000_001) + two + bytes(2_000_003)
        if key:
            (tmp_path / "xor.dat").write_bytes(key)
            hidden = bytearray(samples.hide(octets, key))
            after = len(one) + 3_000_001 + len(two)
            hidden[len(one) : len(one) + 3_000_001] = bytes(3_000_001)
            hidden[after:] = bytes(2_000_003)
            octets = bytes(hidden)
        path = write(tmp_path, octets)
        assert heights(path) == [300_000, 300_001]
        assert [b.read for b in bitcoin_blocks.batches(path)] == [len(octets)]

    @pytest.mark.parametrize("octets", [b"", bytes(100), bytes(3)])
    def test_a_file_without_blocks_has_no_rows(self, tmp_path: Path, octets: bytes) -> None:
        assert list(bitcoin_blocks.batches(write(tmp_path, octets))) == []

    @pytest.mark.parametrize("cut", [1, 4, 30, 100, 200])
    def test_a_file_cut_short_is_refused(self, tmp_path: Path, cut: int) -> None:
        octets = file_of(chain(300_000, 2))[:-cut]
        assert "the file ends" in fault(write(tmp_path, octets))
        assert "the file ends" in fault(write(tmp_path, gzip.compress(octets), "blocks.gz"))

    def test_bytes_that_are_no_frame_are_refused(self, tmp_path: Path) -> None:
        octets = file_of(chain(300_000, 1)) + b"rubbish and more"
        assert "block: b'rubb'" in fault(write(tmp_path, octets))

    def test_two_networks_in_one_file_are_refused(self, tmp_path: Path) -> None:
        one, two = chain(300_000, 2)
        octets = frame(one) + frame(two, samples.REGTEST)
        assert "no known network's block" in fault(write(tmp_path, octets))

    def test_a_block_larger_than_any_is_refused_before_it_is_read(self, tmp_path: Path) -> None:
        octets = MAGIC + (LARGEST_FRAME + 1).to_bytes(4, "little") + bytes(100)
        assert "larger than 32 MiB: 33554433" in fault(write(tmp_path, octets))

    def test_a_damaged_package_is_named(self, tmp_path: Path) -> None:
        packed = gzip.compress(file_of(chain(300_000, 2)))
        for broken in (packed[:-9], packed[:-5] + b"\0" + packed[-4:]):
            with pytest.raises(InputError, match=r"blocks\.gz"):
                rows(write(tmp_path, broken, "blocks.gz"))

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="blk00000"):
            rows(tmp_path / "blk00000.dat")


def one_block(*transactions: bytes, ids: Sequence[bytes] | None = None, **more: Any) -> bytes:
    return frame(block(b"\7" * 32, transactions, ids=ids, **more))


PLAIN = transaction([spend((b"\5" * 32, 0))], [pay(1, pay_to_key_hash(1))])


class TestFaults:
    def test_transactions_that_do_not_give_the_root_are_refused(self, tmp_path: Path) -> None:
        octets = bytearray(file_of(varied_blocks()[0]))
        octets[octets.index(pay_to_key_hash(9)) + 5] ^= 1
        said = fault(write(tmp_path, bytes(octets)))
        assert "block 300000: the transactions do not give the Merkle root" in said

    def test_transactions_repeated_to_keep_the_root_are_refused(self, tmp_path: Path) -> None:
        txs = [coinbase(300_000), PLAIN, transaction([spend((b"\6" * 32, 0))], [pay(1, b"")])]
        assert twin.read_file(one_block(*txs))
        said = fault(write(tmp_path, one_block(*txs, txs[-1])))
        assert "block 300000: transactions that stand in the block twice" in said

    @pytest.mark.parametrize("value", [-1, -(2**63)])
    def test_a_negative_value_is_refused(self, tmp_path: Path, value: int) -> None:
        octets = one_block(coinbase(300_000, pay(value, b"")))
        assert "negative value" in fault(write(tmp_path, octets))

    def test_the_largest_value_is_read(self, tmp_path: Path) -> None:
        path = write(tmp_path, one_block(coinbase(300_000, pay(2**63 - 1, b""))))
        assert rows(path)["outputs"][0]["value"] == 2**63 - 1

    def test_the_largest_vout_is_read(self, tmp_path: Path) -> None:
        last = transaction([spend((b"\5" * 32, 2**32 - 1))], [pay(1, b"")])
        path = write(tmp_path, one_block(coinbase(300_000), last))
        assert rows(path)["inputs"][0]["spent_vout"] == 2**32 - 1

    @pytest.mark.parametrize(
        ("said", "octets"),
        [
            ("does not begin with a coinbase", one_block(PLAIN, version=1)),
            ("a second coinbase", one_block(coinbase(300_000), coinbase(300_000))),
            ("bytes left over", one_block(coinbase(300_000), behind=b"\0")),
            ("without outputs", one_block(transaction([spend((bytes(32), 2**32 - 1))], []))),
            ("flags that are not known", one_block(coinbase(300_000), PLAIN[:4] + b"\0\2" + PLAIN)),
            ("flags that are not known", one_block(coinbase(300_000), transaction([], []))),
        ],
    )
    def test_what_no_chain_would_take_is_refused(
        self, tmp_path: Path, said: str, octets: bytes
    ) -> None:
        first = frame(chain(0, 1, previous=NO_BLOCK, version=1)[0])
        behind = bytearray(octets)
        behind[12:44] = name(first[8:])
        assert said in fault(write(tmp_path, first + bytes(behind)))

    def test_a_coinbase_with_two_inputs_is_none(self, tmp_path: Path) -> None:
        nothing = spend((bytes(32), 2**32 - 1), samples.height_script(300_000))
        octets = one_block(transaction([nothing, nothing], [pay(1, b"")]))
        assert "does not begin with a coinbase" in fault(write(tmp_path, octets))

    def test_a_block_without_transactions_is_refused(self, tmp_path: Path) -> None:
        whole = chain(300_000, 2)
        empty = block(name(whole[0]), [coinbase(300_001)], version=1)[:80] + b"\0"
        octets = frame(whole[0]) + frame(empty) + file_of(chain(300_002, 1, previous=name(empty)))
        assert "does not begin with a coinbase" in fault(write(tmp_path, octets))

    def test_a_block_without_a_header_is_refused(self, tmp_path: Path) -> None:
        assert "no whole block header" in fault(write(tmp_path, frame(b"\1" * 79)))

    @pytest.mark.parametrize("number", [2**16, 2**32, 2**63 - 1, 2**64 - 1])
    def test_counts_of_more_than_follows_are_refused(self, tmp_path: Path, number: int) -> None:
        made = coinbase(300_000)
        whole = one_block(made)[8:]
        outputs = made.index(b"\1" + pay(50, pay_to_key_hash(0)))
        for broken in (
            whole[:80] + compact(number) + whole[81:],
            whole[:81] + made[:outputs] + compact(number) + made[outputs + 1 :],
            whole[:81] + made[: outputs + 9] + compact(number) + made[outputs + 10 :],
        ):
            assert "counts more than it holds" in fault(write(tmp_path, frame(broken)))

    def test_sizes_longer_than_they_need_to_be_are_refused(self, tmp_path: Path) -> None:
        whole = one_block(coinbase(300_000))[8:]
        broken = whole[:80] + b"\xfd\1\0" + whole[81:]
        assert "more bytes than it needs" in fault(write(tmp_path, frame(broken)))


class TestLostCoins:
    def test_the_first_coinbase_cannot_be_spent(self, tmp_path: Path) -> None:
        path = write(tmp_path, file_of(chain(0, 2, previous=NO_BLOCK, version=1)))
        assert [row["spendable"] for row in rows(path)["outputs"]] == [False, True]

    def test_a_coinbase_that_was_written_over_cannot_be_spent(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """BIP30: coinbases of blocks 91722 and 91812 were made again under the same names."""
        blocks = chain(300_000, 3)
        assert len(block_contents.OVERWRITTEN) == 2
        monkeypatch.setattr(block_contents, "OVERWRITTEN", {name(blocks[1])[::-1].hex()})
        path = write(tmp_path, file_of(blocks))
        assert [row["spendable"] for row in rows(path)["outputs"]] == [True, False, True]


def ending_in_mweb(script: bytes) -> tuple[bytes, list[bytes]]:
    """A block of Litecoin whose last transaction pays to a script, and ids of its transactions."""
    made = coinbase(2_300_000)
    plain = transaction([spend((b"\5" * 32, 0))], [pay(9, script)])
    hogex = plain[:4] + b"\0\x08" + plain[4:-4] + b"\0" + plain[-4:]
    ids = [twice(made), twice(plain)]
    return block(b"\7" * 32, [made, hogex], ids=ids, behind=b"\1" + b"hidden" * 9), ids


class TestRelatives:
    def test_dogecoin_blocks_carry_the_work_of_another_chain(self, tmp_path: Path) -> None:
        other = coinbase(638_789)
        branches = compact(2) + bytes(64) + bytes(4) + b"\0" + bytes(4)
        for parent in (other, other[:4] + b"\0\1" + other[4:-4] + b"\1\3abc" + other[-4:]):
            work = parent + b"\1" * 32 + branches + b"\2" * 80
            one = block(b"\7" * 32, [coinbase(1_500_000)], version=0x620104, work=work)
            (row,) = rows(write(tmp_path, frame(one, DOGECOIN)))["blocks"]
            assert row["height"] == 1_500_000
            assert row["hash"] == name(one)[::-1].hex()

    def test_dogecoin_blocks_without_it_are_plain(self, tmp_path: Path) -> None:
        path = write(tmp_path, file_of(chain(1_500_000, 2, version=0x620004), DOGECOIN))
        assert heights(path) == [1_500_000, 1_500_001]

    @pytest.mark.parametrize(
        ("version", "want"),
        [(0x620104, "byte 196: no block"), (0x620101, "proof of work cannot be read")],
    )
    def test_other_work_that_is_cut_short_is_refused(
        self, tmp_path: Path, version: int, want: str
    ) -> None:
        first = chain(1_500_000, 1, version=0x620004)[0]
        broken = block(name(first), [coinbase(1_500_001)], version=version)
        last = chain(1_500_002, 1, previous=name(broken), version=0x620004)[0]
        said = fault(write(tmp_path, file_of([first, broken, last], DOGECOIN)))
        assert want in said

    def test_litecoin_blocks_end_in_the_hidden_side_chain(self, tmp_path: Path) -> None:
        one, ids = ending_in_mweb(b"\x57\x20" + b"\3" * 32)
        path = write(tmp_path, frame(one, LITECOIN))
        assert [row["txid"] for row in rows(path)["transactions"]] == [i[::-1].hex() for i in ids]
        (row,) = rows(path)["inputs"]
        assert row["spent_txid"] == "05" * 32
        assert "flags that are not known" in fault(write(tmp_path, frame(one)))

    def test_litecoin_blocks_that_move_coins_of_the_pool_are_refused(self, tmp_path: Path) -> None:
        one, _ = ending_in_mweb(b"\x58\x20" + b"\3" * 32)
        said = fault(write(tmp_path, frame(one, LITECOIN)))
        assert "block 2300000: holds coins of MWEB" in said
        assert "ingest from a node" in said

    def test_litecoin_transactions_with_hidden_coins_are_refused(self, tmp_path: Path) -> None:
        hidden = PLAIN[:4] + b"\0\x08" + PLAIN[4:-4] + b"\1" + PLAIN[-4:]
        one = block(b"\7" * 32, [coinbase(2_300_000), hidden])
        assert "hidden in MWEB" in fault(write(tmp_path, frame(one, LITECOIN)))

    def test_dash_transactions_carry_a_payload(self, tmp_path: Path) -> None:
        special = transaction(
            [spend((bytes(32), 2**32 - 1), samples.height_script(2_000_000))],
            [pay(1, pay_to_key_hash(1))],
            version=3 | 5 << 16,
            extra=b"\5hello",
        )
        one = block(b"\7" * 32, [special])
        (row,) = rows(write(tmp_path, frame(one, DASH)))["transactions"]
        assert row["txid"] == twice(special)[::-1].hex()
        assert "bytes left over" in fault(write(tmp_path, frame(one)))

    def test_a_dash_block_is_named_by_the_one_above(self, tmp_path: Path) -> None:
        """Its own hash is X11, which is not computed."""
        blocks = [block(bytes([n]) * 32, [coinbase(2_000_000 + n)]) for n in range(1, 4)]
        read = rows(write(tmp_path, file_of(blocks, DASH)))
        assert [(row["height"], row["hash"][:2]) for row in read["blocks"]] == [
            (2_000_001, "02"),
            (2_000_002, "03"),
        ]
        assert len(read["transactions"]) == 3

    def test_dash_money_from_the_platform_is_refused(self, tmp_path: Path) -> None:
        unlock = transaction([], [pay(5, b"")], version=3 | 9 << 16, extra=b"\0")
        one = block(b"\7" * 32, [coinbase(2_000_000), unlock])
        assert "asset unlock" in fault(write(tmp_path, frame(one, DASH)))


class TestReal:
    def test_eight_full_blocks(self, data: Path) -> None:
        read = rows(data / "btc_raw_560062_560069" / "blk00000.dat.xz")
        assert [row["height"] for row in read["blocks"]] == list(range(560_062, 560_070))
        for above, below in zip(read["blocks"][1:], read["blocks"], strict=False):
            assert above["previous"] == below["hash"]
        assert {t: len(r) for t, r in read.items()} == {
            "blocks": 8,
            "stated_blocks": 8,
            "transactions": 20_988,
            "outputs": 52_482,
            "inputs": 41_855,
        }
        made = [row for row in read["transactions"] if row["coinbase"]]
        assert [row["position"] for row in made] == [0] * 8

    def test_a_full_block_agrees_with_the_slow_twin(self, data: Path, tmp_path: Path) -> None:
        with lzma.open(data / "btc_raw_560062_560069" / "blk00000.dat.xz") as file:
            head = file.read(8)
            octets = head + file.read(int.from_bytes(head[4:], "little"))
        assert rows(write(tmp_path, octets)) == rows_by_twin(octets, 560_062)

    @pytest.mark.parametrize(
        ("called", "magic", "hash_known"),
        [
            ("bitcoin_mainnet_951658", MAGIC, True),
            ("bitcoin_signet_31500", bytes.fromhex("0a03cf40"), True),
            ("bitcoin_testnet4_40000", bytes.fromhex("1c163f28"), True),
            ("litecoin_mainnet_900000", LITECOIN, True),
            ("dogecoin_mainnet_371337", DOGECOIN, True),
            ("dash_mainnet_844898", DASH, False),
            ("dash_testnet_2999", bytes.fromhex("cee2caff"), False),
        ],
    )
    def test_blocks_of_many_networks(
        self, data: Path, tmp_path: Path, called: str, magic: bytes, hash_known: bool
    ) -> None:
        told = electrumx_block(data, called)
        path = write(tmp_path, frame(bytes.fromhex(told["block"]), magic))
        assert bitcoin_blocks.recognises(path.read_bytes())
        read = rows(path)
        assert [row["txid"] for row in read["transactions"]] == told["tx"]
        assert {row["height"] for row in read["transactions"]} == {told["height"]}
        want = {k: told[v] for k, v in {"height": "height", "hash": "hash"}.items()}
        want |= {"previous": told["previousblockhash"], "time": told["time"]}
        assert read["blocks"] == ([want] if hash_known else [])

    def test_a_block_of_litecoin_with_its_pool_is_refused(self, data: Path, tmp_path: Path) -> None:
        """Its transactions give its Merkle root, else that would be said first."""
        told = electrumx_block(data, "litecoin_mainnet_2265985")
        path = write(tmp_path, frame(bytes.fromhex(told["block"]), LITECOIN))
        assert "block 2265985: holds coins of MWEB" in fault(path)

    def test_an_old_block_alone_has_no_height(self, data: Path, tmp_path: Path) -> None:
        told = electrumx_block(data, "bitcoinsv_mainnet_100000")
        path = write(tmp_path, frame(bytes.fromhex(told["block"])))
        assert "unknown height: they tell none (BIP34)" in fault(path)


def electrumx_block(data: Path, called: str) -> dict[str, Any]:
    with tarfile.open(data / "etl_fixtures" / "electrumx_tests_blocks.tar.xz") as tar:
        file = tar.extractfile(f"tests/blocks/{called}.json")
        assert file is not None
        told: dict[str, Any] = json.load(file)
    return told
