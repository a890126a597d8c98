"""PSBTs of both versions: what was written is what is read; damaged ones are our errors."""

from __future__ import annotations

import base64
import random
from dataclasses import replace
from pathlib import Path

import pytest

from coinhaze.errors import InputError
from coinhaze.formats.bitcoin_raw.networks import BITCOIN, Network
from coinhaze.formats.psbt import parse_psbt, read_psbt
from coinhaze.ledger.coins import Transaction
from formats import block_twin as twin
from formats.psbt_samples import Sample, digest, draw, record, told, transaction
from ledger.mutants import mutants

MUTANTS = 20_000
# The first valid case of BIP 174.
STANDARD = (
    "cHNidP8BAHUCAAAAASaBcTce3/KF6Tet7qSze3gADAVmy7OtZGQXE8pCFxv2AAAAAAD+////AtPf9QUAAAAAGXapFNDFmQPF"
    "usKGh2DpD9UhpGZap2UgiKwA4fUFAAAAABepFDVF5uM7gyxHBQ8k0+65PJwDlIvHh7MuEwAAAQD9pQEBAAAAAAECiaPHHqtN"
    "IOA3G7ukzGmPopXJRjr6Ljl/hTPMti+VZ+UBAAAAFxYAFL4Y0VKpsBIDna89p95PUzSe7LmF/////4b4qkOnHf8USIk6Uwpy"
    "N+9rRgi7st0tAXHmOuxqSJC0AQAAABcWABT+Pp7xp0XpdNkCxDVZQ6vLNL1TU/////8CAMLrCwAAAAAZdqkUhc/xCX/Z4Ai7"
    "NK9wnGIZeziXikiIrHL++E4sAAAAF6kUM5cluiHv1irHU6m80GfWx6ajnQWHAkcwRAIgJxK+IuAnDzlPVoMR3HyppolwuAJf"
    "3TskAinwf4pfOiQCIAGLONfc0xTnNMkna9b7QPZzMlvEuqFEyADS8vAtsnZcASED0uFWdJQbrUqZY3LLh+GFbTZSYG2YVi/j"
    "nF6efkE/IQUCSDBFAiEA0SuFLYXc2WHS9fSrZgZU327tzHlMDDPOXMMJ/7X85Y0CIGczio4OFyXBl/saiK9Z9R5E5CVbIBZ8"
    "hoQDHAXR8lkqASECI7cr7vCWXRC+B3jv7NYfysb3mk6haTkzgHNEZPhPKrMAAAAAAAAA"
)


def expected(sample: Sample, network: Network = BITCOIN) -> Transaction:
    def owner(script: bytes) -> str | None:
        return twin.owner(script, network.key_version, network.script_version, network.hrp)

    return Transaction.of(
        {
            "txid": digest(sample.plain())[::-1].hex(),
            "inputs": [
                {"txid": s.txid[::-1].hex(), "vout": s.vout}
                | ({"value": s.value, "address": owner(s.script)} if s.whole or s.witness else {})
                for s in sample.spends
            ],
            "outputs": [
                {"value": v, "address": owner(s), "vout": k, "spendable": twin.spendable(s)}
                for k, (v, s) in enumerate(sample.pays)
            ],
            "coinbase": False,
        }
    )


def test_both_versions_say_what_was_written() -> None:
    chance = random.Random(1)
    for _ in range(300):
        sample = draw(chance)
        assert parse_psbt(sample.first()) == expected(sample)
        assert parse_psbt(sample.second()) == expected(sample)


def test_addresses_are_those_of_the_network() -> None:
    from coinhaze.formats.bitcoin_raw.networks import network_named

    sample, regtest = draw(random.Random(2)), network_named("bitcoin regtest")
    assert parse_psbt(sample.first(), network=regtest) == expected(sample, regtest)


def test_the_standards_own_case_is_read() -> None:
    """BIP 174, a transaction given whole with its witness: the id must fit the coin spent."""
    proposed = parse_psbt(STANDARD.encode())
    assert [i.value for i in proposed.inputs] == [200_000_000]
    assert [o.value for o in proposed.outputs] == [99_999_699, 100_000_000]


def test_binary_base64_and_hex_are_one(tmp_path: Path) -> None:
    octets = draw(random.Random(3)).first()
    path = tmp_path / "proposed.psbt"
    plain = base64.b64encode(octets)
    lines = b"\n".join(plain[k : k + 60] for k in range(0, len(plain), 60)) + b"\n"
    for content in (octets, plain, lines, octets.hex().encode(), octets.hex().upper().encode()):
        path.write_bytes(content)
        assert read_psbt(path) == parse_psbt(octets)


def test_version_2_takes_the_lock_its_inputs_agree_to() -> None:
    sample = draw(random.Random(4))
    spend = sample.spends[0]
    one = Sample((replace(spend, whole=False, witness=True),), ())
    octets = one.second(locktime=record(3, (7).to_bytes(4, "little")))
    asks = record(0x12, (500).to_bytes(4, "little")) + record(0x11, b"\0\0\0\x70")
    locked = octets.replace(
        record(0x10, b"\xfd\xff\xff\xff"), record(0x10, b"\xfd\xff\xff\xff") + asks
    )
    for content, lock in ((octets, 7), (locked, 500)):
        plain = one.plain()[:-4] + lock.to_bytes(4, "little")
        assert parse_psbt(content).txid == digest(plain)[::-1].hex()


def bad() -> dict[str, tuple[bytes, str]]:
    sample = told(draw(random.Random(5)))
    spend, good = sample.spends[0], sample.first()
    twice = Sample((spend, spend), ())
    greedy = Sample((spend,), ((spend.value + 1, b"\x51"),))
    other = replace(spend, whole=True, maker=transaction([(bytes(32), 9)], [(5, b"")]), vout=0)
    lies = replace(spend, whole=True, value=spend.value + 1)
    old = b"psbt\xff" + record(0, sample.plain()) + record(0xFB, (1).to_bytes(4, "little")) + b"\0"
    many = b"psbt\xff" + record(2, bytes(4)) + record(4, b"\xff" + b"\xff" * 8) + record(5, b"\0")
    many += record(0xFB, (2).to_bytes(4, "little")) + b"\0"
    signed = bytearray(sample.plain())
    signed[41:42] = b"\1\x51"
    asks = {k: record(k, b"\1\0\0\0") for k in (0x11, 0x12)}
    two = Sample((spend, told(draw(random.Random(6))).spends[0]), ()).second()
    parts = two.split(record(0x10, b"\xfd\xff\xff\xff"))
    return {
        "nothing": (b"", "no PSBT"),
        "something else": (b"txid,vout\na,0\n", "begins with psbt"),
        "damaged base64": (b"cHNidP8B!", "no PSBT"),
        "base64 cut short": (b"cHNidP8BA", "damaged base64"),
        "bytes left over": (good + b"\0", "1 bytes left over"),
        "cut short": (good[:-1], "bytes wanted"),
        "a coin twice": (twice.first(), "spends a coin twice"),
        "no coin": (Sample((), ((1, b""),)).second(), "spends no coin"),
        "more paid than spent": (
            greedy.first(),
            r"whose outputs are worth more than its inputs: '[0-9.]+ BTC out, [0-9.]+ BTC in'",
        ),
        "another transaction": (
            Sample((spend,), ()).first().replace(spend.record(), other.record()),
            "did not make it",
        ),
        "two values": (Sample((lies,), ()).first(), "stated in two ways"),
        "a record twice": (good.replace(spend.record(), 2 * spend.record(), 1), "a record twice"),
        "version 1": (old, "version 1"),
        "counts beyond the file": (many, "maps in"),
        "signed": (b"psbt\xff" + record(0, bytes(signed)) + b"\0", "with a script"),
        "both versions": (
            b"psbt\xff" + record(0, sample.plain()) + record(4, b"\1") + b"\0",
            "records of version 2",
        ),
        "locks that differ": (
            parts[0] + asks[0x11] + parts[1] + asks[0x12] + parts[2],
            "exclude each other",
        ),
    }


@pytest.mark.parametrize("name", list(bad()))
def test_what_breaks_a_rule_is_refused_and_named(name: str) -> None:
    content, words = bad()[name]
    with pytest.raises(InputError, match=words) as error:
        parse_psbt(content, where="a.psbt")
    assert str(error.value).startswith("a.psbt: ")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.psbt: no such file"):
        read_psbt(tmp_path / "none.psbt")


@pytest.mark.parametrize("count", [MUTANTS // 8, pytest.param(MUTANTS, marks=pytest.mark.long)])
def test_mutants_are_read_or_refused_by_an_error_of_ours(count: int) -> None:
    chance = random.Random(7)
    samples = [draw(chance) for _ in range(4)]
    pieces = [
        b"\0",
        b"\xff" * 9,
        b"\xfe\0\0\0\x80",
        record(0xFB, b"\2\0\0\0"),
        record(4, b"\xfd\xff\xff"),
    ]
    read = refused = 0
    for seed, sample in enumerate(samples):
        forms = (sample.first(), sample.second(), base64.b64encode(sample.first()))
        for form in forms:
            each = count // (len(samples) * len(forms)) + 1
            for mutant in mutants(
                form, each, seed, pieces=pieces, cuts=(0, 1, 4, 40), repeats=(40,)
            ):
                try:
                    proposed = parse_psbt(mutant)
                except InputError:
                    refused += 1
                    continue
                read += 1
                assert proposed.inputs
                assert all(len(i.txid) == 64 and 0 <= i.vout < 2**32 for i in proposed.inputs)
                known = [i.value for i in proposed.inputs if i.value is not None]
                if len(known) == len(proposed.inputs):
                    assert sum(known) >= sum(o.value or 0 for o in proposed.outputs)
    assert read + refused >= count
    assert read > count // 40
