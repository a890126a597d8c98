"""Extended keys and descriptors: the vectors of the BIPs, and nothing private, ever."""

from __future__ import annotations

import hashlib
import hmac
import random
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coinhaze.errors import CoinhazeError, InputError, without_secrets
from coinhaze.formats.bitcoin_raw.networks import BITCOIN, base58_octets, network_named, script_of
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.formats.descriptors import Descriptor, checksum, is_key, parse_keys, refuse_private
from coinhaze.formats.lists.coins import parse_coin_list, parse_entry
from formats.base58 import base58_text

# BIP-84 and BIP-86: the account of "abandon abandon ... about", its addresses.
ZPUB = (
    "zpub6rFR7y4Q2AijBEqTUquhVz398htDFrtymD9xYYfG1m4wAcvPhXNfE3EfH1r1ADqtfSdVCToUG868RvUUkgDKf3"
    "1mGDtKsAYz2oz2AGutZYs"
)
XPUB_86 = (
    "xpub6BgBgsespWvERF3LHQu6CnqdvfEvtMcQjYrcRzx53QJjSxarj2afYWcLteoGVky7D3UKDP9QyrLprQ3VCECoY4"
    "9yfdDEHGCtMMj92pReUsQ"
)
# BIP-49: the account on testnet, and its first address.
UPUB = (
    "upub5EFU65HtV5TeiSHmZZm7FUffBGy8UKeqp7vw43jYbvZPpoVsgU93oac7Wk3u6moKegAEWtGNF8DehrnHtv21XX"
    "EMYRUocHqguyjknFHYfgY"
)
# BIP-32, vector 1: keys of m, m/0', m/0'/1, m/0'/1/2', and so on.
VECTOR_1 = (
    "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265"
    "TMg7usUDFdp6W1EGMcet8",
    "xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9x"
    "v5ski8PX9rL2dZXvgGDnw",
    "xpub6ASuArnXKPbfEwhqN6e3mwBcDTgzisQN1wXN9BJcM47sSikHjJf3UFHKkNAWbWMiGj7Wf5uMash7SyYq527Hqc"
    "k2AxYysAA7xmALppuCkwQ",
)
# BIP-32, vector 2: m and m/0, both public.
VECTOR_2 = (
    "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDz"
    "TJY47LJhkJ8UB7WEGuduB",
    "xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb"
    "7ap6r1D3tgFxHmwMkQTPH",
)
WIF = "L4rK1yDtCWekvXuE6oXD9jCYfFNV2cWRpVuPLBcCU2z8TrisoyY1"
XPRV = (
    "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3"
    "TGtRBeJgk33yuGBxrMPHi"
)
SEED = (
    "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
)


def addresses(branch: Descriptor, count: int, network: str = "bitcoin") -> list[str]:
    scripts = [branch.script(index) for index in range(count)]
    found = owners_of(scripts, network_named(network))[0].to_pylist()
    assert [script_of(address, network_named(network)) for address in found] == scripts
    return [str(address) for address in found]


def test_bip_84() -> None:
    receive, change = parse_keys(ZPUB)
    assert (receive.words, change.words) == ("wpkh receive", "wpkh change")
    assert addresses(receive, 2) == [
        "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu",
        "bc1qnjg0jd8228aq7egyzacy8cys3knf9xvrerkf9g",
    ]
    assert addresses(change, 1) == ["bc1q8c6fshw2dlwun7ekn9qwf37cu2rn755upcp6el"]


def test_bip_86() -> None:
    receive, change = parse_keys(f"tr({XPUB_86}/<0;1>/*)")
    assert addresses(receive, 2) == [
        "bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr",
        "bc1p4qhjn9zdvkux4e44uhx8tc55attvtyu358kutcqkudyccelu0was9fqzwh",
    ]
    assert addresses(change, 1) == [
        "bc1p3qkhfews2uk44qtvauqyr2ttdsw7svhkl9nkm9s9c3x4ax5h60wqwruhk7"
    ]


def test_bip_49() -> None:
    receive, _ = parse_keys(UPUB)
    assert (receive.words, receive.mainnet) == ("sh(wpkh) receive", False)
    assert addresses(receive, 1, "bitcoin testnet3") == ["2Mww8dCYPUpKHofjgcXcBCEGmniw9CoaiD2"]


def test_bip_32() -> None:
    """The public child 0 of vector 2, and 1 of m/0' of vector 1, are the keys of the vectors."""
    for parent, number, child in ((VECTOR_2[0], 0, VECTOR_2[1]), (VECTOR_1[1], 1, VECTOR_1[2])):
        below = base58_octets(child)
        assert below is not None
        (derived,) = parse_keys(f"wpkh({parent}/{number})")
        (plain,) = parse_keys(f"wpkh({below[45:].hex()})")
        assert derived.script(0) == plain.script(0)
        (deeper,) = parse_keys(f"wpkh({parent}/{number}/7/*)")
        (deep,) = parse_keys(f"wpkh({child}/7/*)")
        assert deeper.script(5) == deep.script(5)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        # BIP-32, vector 5.
        (
            "xpub661MyMwAqRbcEYS8w7XLSVeEsBXy79zSzH1J8vCdxAZningWLdN3zgtU6LBpB85b3D2yc8sfvZU5"
            "21AAwdZafEz7mnzBBsz4wKY5fTtTQBm",
            "without a public key",
        ),
        (
            "xpub661MyMwAqRbcEYS8w7XLSVeEsBXy79zSzH1J8vCdxAZningWLdN3zgtU6Txnt3siSujt9RCVYsx4"
            "qHZGc62TG4McvMGcAUjeuwZdduYEvFn",
            "without a public key",
        ),
        (
            "xpub661MyMwAqRbcEYS8w7XLSVeEsBXy79zSzH1J8vCdxAZningWLdN3zgtU6N8ZMMXctdiCjxTNq964"
            "yKkwrkBJJwpzZS4HS2fxvyYUA4q2Xe4",
            "without a public key",
        ),
        (
            "xpub661no6RGEX3uJkY4bNnPcw4URcQTrSibUZ4NqJEw5eBkv7ovTwgiT91XX27VbEXGENhYRCf7hyEb"
            "WrR3FewATdCEebj6znwMfQkhRYHRLpJ",
            "depth 0 with a parent",
        ),
        (
            "xpub661MyMwAuDcm6CRQ5N4qiHKrJ39Xe1R1NyfouMKTTWcguwVcfrZJaNvhpebzGerh7gucBvzEQWRu"
            "gZDuDXjNDRmXzSZe4c7mnTK97pTvGS8",
            "depth 0 with a parent",
        ),
        (
            "xpub661MyMwAqRbcEYS8w7XLSVeEsBXy79zSzH1J8vCdxAZningWLdN3zgtU6Q5JXayek4PRsn35jii4"
            "veMimro1xefsM58PgBMrvdYre8QyULY",
            "no point of the curve",
        ),
    ],
)
def test_bip_32_invalid_keys(key: str, words: str) -> None:
    assert base58_octets(key) is not None
    with pytest.raises(InputError, match=words) as caught:
        parse_keys(key, "here")
    assert key not in str(caught.value)


def test_bip_380_checksums() -> None:
    assert checksum("raw(deadbeef)") == "89f8spxm"
    good = "pkh(02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5)"
    assert checksum(good) == "8fhd9pwu"  # as Bitcoin Core documents it
    (key,) = parse_keys(f"{good}#8fhd9pwu")
    assert addresses(key, 1) == ["1cMh228HTCiwS8ZsaakH8A8wze1JR5ZsP"]
    for wrong in ("8fhd9pw", "8fhd9pwux", "8fhd9pwv", "", "8FHD9PWU"):
        with pytest.raises(InputError, match="checksum after # is wrong"):
            parse_keys(f"{good}#{wrong}")
    letters = list(f"{good}#8fhd9pwu")
    for place in range(5, len(good) - 1):  # one letter of the key mistyped
        changed = "".join(
            [*letters[:place], "1" if letters[place] == "0" else "0", *letters[place + 1 :]]
        )
        with pytest.raises(InputError):
            parse_keys(changed)


def test_a_wallet_of_several_keys() -> None:
    a, b = VECTOR_1[0], VECTOR_2[0]
    one = parse_keys(f"wsh(sortedmulti(2,{a}/<0;1>/*,{b}/<0;1>/*))")
    other = parse_keys(f"wsh(sortedmulti(2,{b}/<0;1>/*,{a}/<0;1>/*))")
    assert [k.words for k in one] == ["wsh(sortedmulti) receive", "wsh(sortedmulti) change"]
    assert [k.script(3) for k in one] == [k.script(3) for k in other]
    plain = parse_keys(f"wsh(multi(2,{a}/<0;1>/*,{b}/<0;1>/*))")
    turned = parse_keys(f"wsh(multi(2,{b}/<0;1>/*,{a}/<0;1>/*))")
    assert plain[0].script(3) != turned[0].script(3)


def test_an_xpub_is_looked_for_in_all_kinds() -> None:
    words = [branch.words for branch in parse_keys(XPUB_86)]
    kinds = ("pkh", "sh(wpkh)", "wpkh", "tr")
    assert words == [f"{kind} {branch}" for kind in kinds for branch in ("receive", "change")]
    taproot = next(b for b in parse_keys(XPUB_86) if b.words == "tr receive")
    assert taproot.script(1) == parse_keys(f"tr({XPUB_86}/0/*)")[0].script(1)


KEY = VECTOR_1[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"wpkh({KEY}/0'/*)", "needs the private key: take the xpub"),
        (f"wpkh({KEY}/0/*h)", "needs the private key: take the xpub"),
        (f"wpkh({KEY}/0/*", "a bracket is missing"),
        (f"wpkh({KEY}/x/*)", "no number"),
        (f"wpkh({KEY}/2147483648/*)", "no number"),
        (f"wpkh({KEY}/<0;1>/<0;1>/*)", "two <...;...>"),
        (f"wpkh({KEY}/<0;0>/*)", "a branch twice"),
        (f"wpkh({ZPUB}/0/*)", "ypub or zpub in a descriptor"),
        (f"tr({KEY}/0/*,pk({KEY}))", "tree of scripts"),
        (f"wpkh({KEY},{KEY})", "of several keys"),
        (f"combo({KEY})", "are known"),
        (f"wsh(sortedmulti(3,{KEY},{XPUB_86}))", "3 signatures of 2 keys"),
        (f"wsh(sortedmulti(0,{KEY}))", "0 signatures of 1 keys"),
        ("wsh(sortedmulti(1))", "needs a number, and 1 to 20 keys"),
        (f"wsh(multi(1,{KEY}/<0;1>/*,{XPUB_86}/<0;1;2>/*))", "different numbers of branches"),
        (f"wpkh([0000000/84h]{KEY})", "not [fingerprint/path]"),
        ("wpkh(02" + "00" * 32 + ")", "no point of the curve"),
        ("wpkh(zz)", "neither an extended public key nor a public key"),
        (f"wpkh({KEY[:-1]})", "checksum is wrong"),
        (f"wpkh({KEY}/0/*)é", "a bracket is missing|a letter that no descriptor has"),
        ("wpkh(" * 50 + ")" * 50, "are known"),
        ("wpkh(" + "a" * 9_000 + ")", "longer than 8192 letters"),
        (base58_text(bytes.fromhex("02aa7ed3") + (base58_octets(KEY) or b"")[4:]), "one key of a"),
        (base58_text(bytes.fromhex("02aa7ed4") + (base58_octets(KEY) or b"")[4:]), "unknown"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_says_why_and_shows_no_key(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words.replace("[", r"\[")) as caught:
        parse_keys(text, "mine.txt:3")
    assert str(caught.value).startswith("mine.txt:3: ")
    for key in (KEY, ZPUB, XPUB_86):
        assert key not in str(caught.value)


@pytest.mark.parametrize("secret", [XPRV, WIF, SEED, f"wpkh({XPRV}/0/*)", f"wpkh({WIF})",
                                    f"[00000000/84h]{XPRV}"])  # fmt: skip
@pytest.mark.parametrize("form", ["{}", "{}\n", "# mine\n{}\n", "coin,label\n{},rent\n", '["{}"]'])
def test_nothing_private_is_read_or_shown(secret: str, form: str) -> None:
    with pytest.raises(InputError, match="neither stored nor shown") as caught:
        parse_coin_list(form.format(secret).encode(), where="mine.txt")
    for piece in (XPRV, WIF, "abandon"):
        assert piece not in str(caught.value)
    with pytest.raises(InputError, match="neither stored nor shown"):
        parse_entry(secret, "--nodes")
    assert WIF not in without_secrets(f"said {WIF}") or WIF not in secret


def test_what_is_not_private_is_not_refused() -> None:
    refuse_private("the wages of the month of may, for the rent", "here")
    refuse_private(f"{'a' * 64}:0,{'K' + 'a' * 51}", "here")  # no checksum
    refuse_private("txid,vout,coin,address,label,value,amount,date,time,fee,size,note", "here")
    assert not is_key("bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu")
    assert not is_key("mix:0")


def test_keys_in_files() -> None:
    text = (
        f"# savings\nwpkh({KEY}/0/*)#{checksum(f'wpkh({KEY}/0/*)')} # mine\n{ZPUB} # other\nmix:0\n"
    )
    first = parse_coin_list(text.partition("\n")[2].encode())
    assert [len(entry.keys) for entry in first] == [1, 2, 0]
    assert first[2].coin == "mix:0"
    listed = parse_coin_list(f"wsh(sortedmulti(1,{KEY}/0/*,{XPUB_86}/0/*))\n".encode())
    assert listed[0].keys[0].words == "wsh(sortedmulti) receive"
    assert KEY not in repr(listed)
    assert KEY not in str(InputError(KEY))


def child_twin(point: tuple[int, int], chain: bytes, number: int) -> tuple[int, int]:
    """BIP-32's CKDpub with textbook arithmetic on the curve."""
    field, order = (
        2**256 - 2**32 - 977,
        0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141,
    )
    g = (
        0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
        0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
    )

    def add(a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int] | None:
        if a is None or b is None:
            return a or b
        if a[0] == b[0] and (a[1] + b[1]) % field == 0:
            return None
        slope = (
            3 * a[0] * a[0] * pow(2 * a[1], -1, field)
            if a == b
            else (b[1] - a[1]) * pow(b[0] - a[0], -1, field)
        )
        x = (slope * slope - a[0] - b[0]) % field
        return x, (slope * (a[0] - x) - a[1]) % field

    octets = bytes([2 + point[1] % 2]) + point[0].to_bytes(32)
    digest = hmac.new(chain, octets + number.to_bytes(4), hashlib.sha512).digest()
    factor, power, total = int.from_bytes(digest[:32]), g, None
    assert factor < order
    step: tuple[int, int] | None = power
    while factor:
        total = add(total, step) if factor & 1 else total
        step = add(step, step)
        factor >>= 1
    made = add(total, point)
    assert made is not None
    return made


def test_children_are_those_of_textbook_arithmetic() -> None:
    octets = base58_octets(KEY)
    assert octets is not None
    field = 2**256 - 2**32 - 977
    x = int.from_bytes(octets[46:])
    y = pow(x**3 + 7, (field + 1) // 4, field)
    y = y if y % 2 == octets[45] % 2 else field - y
    for number in (0, 1, 19, 2**31 - 1):
        point = child_twin((x, y), octets[13:45], number)
        key = bytes([2 + point[1] % 2]) + point[0].to_bytes(32)
        (wanted,) = parse_keys(f"pkh({key.hex()})")
        (found,) = parse_keys(f"pkh({KEY}/{number})")
        assert found.script(0) == wanted.script(0)


@given(st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_damaged_keys_raise_our_own_errors_alone(seed: int) -> None:
    chance = random.Random(seed)
    base = chance.choice([f"wsh(sortedmulti(2,[00000000/48h]{KEY}/<0;1>/*,{XPUB_86}/0/*))", ZPUB,
                          f"tr({XPUB_86}/<0;1>/*)#{'q' * 8}", f"sh(wpkh({KEY}/0/*))"])  # fmt: skip
    letters = list(base)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(letters))
        kind = chance.randrange(3)
        if kind == 0:
            letters[at] = chance.choice("()<>;/*#[],'h01\x00é\n{}")
        elif kind == 1:
            del letters[at : at + chance.randint(1, 30)]
        else:
            letters[at:at] = letters[at : at + chance.randint(1, 40)]
        if not letters:
            break
    text = "".join(letters)
    for read in (parse_keys, parse_entry, lambda t: parse_coin_list(t.encode())):
        with suppress(CoinhazeError):
            read(text)


def test_scripts_of_addresses() -> None:
    """BIP-173 and BIP-350: addresses and their scripts; others have none."""
    for address, script in (
        (
            "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4",
            "0014751e76e8199196d454941c45d1b3a323f1433bd6",
        ),
        (
            "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y",
            "5128751e76e8199196d454941c45d1b3a323f1433bd6751e76e8199196d454941c45d1b3a323f1433bd6",
        ),
        ("BC1SW50QGDZ25J", "6002751e"),
        ("bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs", "5210751e76e8199196d454941c45d1b3a323"),
        (
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
            "512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
        ),
        (
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac",
        ),
    ):
        found = script_of(address, BITCOIN)
        assert found is not None
        assert found.hex() == script
    for wrong in (
        "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",  # another network
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd",  # Bech32, not Bech32m
        "BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R",  # version 17
        "bc1pw5dgrnzv",  # one byte
        "BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P",  # 16 bytes of version 0
        "bc1zw508d6qejxtdg4y5r3zarvaryvqyzf3du",  # padding of 5 bits
        "bc1gmk9yu",  # nothing
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb",
        "",
        "1",
    ):
        assert script_of(wrong, BITCOIN) is None, wrong
