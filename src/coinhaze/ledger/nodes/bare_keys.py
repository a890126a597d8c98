"""Coins that pay to keys themselves, of which a node shows no address in JSON.

They get the name that readers of raw blocks give them, the address of the key's hash: the same
block must read the same whichever way it came.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.ledger.readers.networks import Network
from coinhaze.ledger.readers.scripts import owners_of

KINDS = ("pubkey", "multisig")


class _Script(msgspec.Struct):
    hex: str = ""
    type: str | None = None


class _Coin(msgspec.Struct):
    script: _Script = msgspec.field(name="scriptPubKey")


class _Input(msgspec.Struct):
    coinbase: str | None = None
    prevout: _Coin | None = None


class _Transaction(msgspec.Struct):
    vin: list[_Input]
    vout: list[_Coin]


class _Block(msgspec.Struct):
    tx: list[_Transaction]


_decoder = msgspec.json.Decoder(_Block)


def name_keys(
    tables: dict[str, pa.Table],
    blocks: Sequence[bytes],
    network: Network,
    place: Callable[[int], str],
) -> dict[str, pa.Table]:
    """Fill in the owners of such coins in tables made of these very blocks, in their order."""
    if not any(f'"{kind}"'.encode() in block for block in blocks for kind in KINDS):
        return tables
    made: list[bytes | None] = []
    spent: list[bytes | None] = []
    for number, block in enumerate(blocks):
        for t in _decoder.decode(block).tx:
            made += [_key_script(o.script, place(number)) for o in t.vout]
            spent += [
                _key_script(i.prevout.script, place(number)) if i.prevout else None
                for i in t.vin
                if i.coinbase is None
            ]
    named = {name: tables[name] for name in ("outputs", "inputs") if name in tables}
    for name, scripts in (("outputs", made), ("inputs", spent)):
        if name in named:
            named[name] = _with_owners(named[name], scripts, network)
    return tables | named


def _key_script(script: _Script, where: str) -> bytes | None:
    if script.type not in KINDS:
        return None
    try:
        return bytes.fromhex(script.hex)
    except ValueError:
        raise LedgerError(where, "a script that is no hex", value=script.hex) from None


def _with_owners(table: pa.Table, scripts: list[bytes | None], network: Network) -> pa.Table:
    assert len(table) == len(scripts)
    found, _ = owners_of([script or b"" for script in scripts], network)
    place = table.schema.get_field_index("owner")
    owners = pc.coalesce(table["owner"].combine_chunks(), found)
    return table.set_column(place, table.schema.field("owner"), owners)
