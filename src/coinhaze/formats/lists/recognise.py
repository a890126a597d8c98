"""Files that are no ledger but go with one: a wallet's coins, its labels, a transaction to send."""

from __future__ import annotations

import re
from dataclasses import dataclass

from coinhaze.errors import InputError
from coinhaze.formats.descriptors import is_key
from coinhaze.formats.lists.bip329 import is_bip329
from coinhaze.formats.lists.coins import names_coins
from coinhaze.formats.tabular.delimited import header_names, separator_of

_WALLET = "coinhaze wallet LEDGER --nodes {file}"
_KEYS = re.compile(r'"([a-z_]{1,20})"\s*:')
# Keys of what wallets list; a ledger's transactions have inputs too.
_LISTED = (
    {"txid", "vout"}, {"prevout_hash", "prevout_n"}, {"tx_hash", "tx_pos"}, {"descriptors"},
    {"txid", "bc_value"},
)  # fmt: skip
# How addresses are written: in base 58, bech32 and hexadecimal.
_ADDRESS = re.compile(
    "[123mn9DLMXAtz2][1-9A-HJ-NP-Za-km-z]{25,59}|(bc|tb|bcrt|ltc|tltc)1[02-9ac-hj-np-z]{20,90}"
    "|0x[0-9a-fA-F]{40}"
)
_LINE = re.compile("[0-9a-fA-F]{64}:[0-9]{1,10}")


@dataclass(frozen=True)
class SideFile:
    """What a file is, and the command that takes it."""

    what: str
    command: str  # {file} stands for the file's name
    has_coins: bool = False

    def instead_of(self, what: str, path: str) -> InputError:
        """Make the error of a file taken for something else, with the command that takes it."""
        command = self.command.format(file=path)
        return InputError(f"{path}: no {what}: this is {self.what}; take it as in: {command}")


def side_file(head: bytes) -> SideFile | None:
    """Tell by its first bytes whether a file goes with a ledger.

    >>> side_file(b"ab" * 32 + b":1").command
    'coinhaze wallet LEDGER --nodes {file}'
    """
    if head.startswith((b"psbt\xff", b"cHNidP")):
        what = "a transaction to be signed (PSBT)"
        return SideFile(what, "coinhaze wallet LEDGER --nodes COINS --psbt {file}")
    text = head.decode("utf-8-sig", "replace").lstrip()
    line = text.partition("\n")[0].strip()
    if is_bip329(text):
        command = f"{_WALLET} --labels-out NEW.jsonl"
        return SideFile("labels of a wallet (BIP-329)", command, has_coins=True)
    if text.startswith(("[", "{")):
        keys = set(_KEYS.findall(text))
        listed = any(these <= keys for these in _LISTED) and not keys & {"vin", "inputs"}
    else:
        listed = bool(_LINE.fullmatch(line)) or names_coins(header_names(line, separator_of(line)))
    return SideFile("a list of coins", _WALLET, has_coins=True) if listed else None


def list_of_names(text: str) -> SideFile | None:
    """Tell whether text that is no ledger is a wallet's keys, or a list of addresses.

    >>> list_of_names("# sanctioned\\n0x" + "ab" * 20).what
    'a list of addresses'
    """
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    first = next((line for line in lines if line), "")
    if is_key(first):
        return SideFile("public keys of a wallet", _WALLET, has_coins=True)
    names = header_names(first, separator_of(first))
    if "address" in [name.strip().lower() for name in names] or _ADDRESS.fullmatch(first):
        return SideFile("a list of addresses", "coinhaze screen LEDGER --listed {file}")
    return None
