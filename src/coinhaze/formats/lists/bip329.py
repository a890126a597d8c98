"""Labels as wallets exchange them (BIP-329): JSON lines of `type`, `ref` and `label`.

Coins (`output`), addresses (`addr`) and transactions (`tx`) are read. Labels of keys and inputs are
passed over: an extended public key is read by nothing here, and shown in no message. So are types
that are not known, as the standard wants it.

Scores are written back as labels of coins or addresses, after the label they have already, in
brackets: `rent [haze: 3.21 bits, exposure 12.0 %]`. What is in such brackets is replaced when
labels are read and written again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from coinhaze.errors import LedgerError

OUTPUT, ADDRESS, TRANSACTION = "output", "addr", "tx"
READ = (OUTPUT, ADDRESS, TRANSACTION)
_KNOWN = (*READ, "input", "pubkey", "xpub")
_HASH = re.compile("[0-9a-fA-F]{64}")
_COIN = re.compile("([0-9a-fA-F]{64}):([0-9]{1,10})")
_OURS = re.compile(r"\s*\[haze: [^\[\]]*\]\s*$")
_FIX = 'one object a line, such as {"type":"output","ref":"TXID:0","label":"rent"}'


class _Line(msgspec.Struct):
    type: str
    ref: str
    label: str | None = None
    spendable: bool | str | None = None


_decode = msgspec.json.Decoder(_Line).decode


@dataclass(frozen=True)
class WalletLabel:
    """What a wallet calls a coin, an address or a transaction."""

    where: str
    type: str
    ref: str
    label: str | None


def is_bip329(text: str) -> bool:
    """Tell whether text is lines of labels, or an array of them, which is said to be wrong.

    >>> is_bip329('{"type":"addr","ref":"1abc","label":"rent"}'), is_bip329('{"1abc":"rent"}')
    (True, False)
    """
    start = text.lstrip()[:4096]
    keys = re.findall(r'"(type|ref)"\s*:\s*"', start.partition("}")[0])
    return start.startswith(("{", "[")) and set(keys) == {"type", "ref"}


def read_wallet_labels(text: str, where: str) -> list[WalletLabel]:
    """Read lines of labels: those of coins, addresses and transactions."""
    if text.lstrip().startswith("["):
        raise LedgerError(where, "an array where BIP-329 has lines", fix=_FIX)
    lines = list(_lines(text, where))
    following = [line.lstrip() for _, line in lines[1:]] + ["{"]
    found = [
        _label(line, place, parted=not after.startswith("{"))
        for (place, line), after in zip(lines, following, strict=True)
    ]
    return [label for label in found if label is not None]


def _lines(text: str, where: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"{where}:{number}", line


def _label(line: str, where: str, *, parted: bool) -> WalletLabel | None:
    """Read a line; it is `parted` if the next one begins no object."""
    try:
        read = _decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        why = "the object goes on over several lines" if parted else str(error)
        raise LedgerError(where, f"not a BIP-329 label: {why}", fix=_FIX) from None
    if read.type not in READ:
        near = next((known for known in _KNOWN if known == read.type.strip().lower()), None)
        if near is not None and near != read.type:
            fix = f"write {near}"
            raise LedgerError(where, "type must be lower case", value=read.type, fix=fix)
        return None
    ref = read.ref
    if read.type == OUTPUT:
        coin = _COIN.fullmatch(ref)
        if coin is None:
            fix = "a transaction's id of 64 digits and the number of its output: TXID:0"
            raise LedgerError(where, "ref is not a coin", value=ref, fix=fix)
        ref = f"{coin[1].lower()}:{int(coin[2])}"
    elif read.type == TRANSACTION:
        if not _HASH.fullmatch(ref):
            fix = "64 hexadecimal digits; of a coin the type is output"
            raise LedgerError(where, "ref is not a transaction's id", value=ref, fix=fix)
        ref = ref.lower()
    elif not ref or " " in ref or ":" in ref:
        fix = "of a coin the type is output"
        raise LedgerError(where, "ref is not an address", value=ref, fix=fix)
    label = without_haze(read.label or "").strip()
    return WalletLabel(where, read.type, ref, label or None)


def without_haze(label: str) -> str:
    """Leave out what was written behind a label.

    >>> without_haze("rent [haze: 3.21 bits]")
    'rent'
    """
    return _OURS.sub("", label)


@dataclass(frozen=True)
class Haze:
    """What is written back of one coin or address."""

    ref: str
    label: str | None
    bits: tuple[float, float]  # the interval
    exposure: tuple[float, float] | None = None

    def words(self) -> str:
        """Write the label.

        >>> Haze("t:0", "rent", (3.2, 3.2), (0.12, 0.12)).words()
        'rent [haze: 3.20 bits, exposure 12.0 %]'
        >>> Haze("t:0", None, (3.2, 3.4)).words()
        '[haze: 3.20-3.40 bits]'
        """
        said = f"{_span(*(f'{bits:.2f}' for bits in self.bits))} bits"
        if self.exposure is not None:
            shares = (f"{100 * share:.1f}" for share in self.exposure)
            said += f", exposure {_span(*shares)} %"
        return f"{without_haze(self.label or '')} [haze: {said}]".lstrip()


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low}-{high}"


def label_lines(hazes: Iterable[Haze], kind: str) -> str:
    """Write labels of coins or addresses; what has no answer has no line.

    >>> print(label_lines([Haze("1abc", None, (1.0, 1.0))], "addr"), end="")
    {"type": "addr", "ref": "1abc", "label": "[haze: 1.00 bits]"}
    """
    lines = (
        json.dumps({"type": kind, "ref": haze.ref, "label": haze.words()}, ensure_ascii=False)
        for haze in hazes
        if not any(math.isnan(bits) for bits in haze.bits)
    )
    return "".join(f"{line}\n" for line in lines)
