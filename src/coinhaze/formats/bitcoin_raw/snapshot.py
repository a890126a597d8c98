"""UTXO snapshots, as `dumptxoutset` of Bitcoin Core writes them since version 28.

A snapshot has all coins that were unspent after one block: id, number, height, value and script,
compressed as in undo files. It is no ledger by itself; it gives values and owners to the coins that
blocks spend. It names the block by its hash, not by its height.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.bitcoin_raw.files import errors_named
from coinhaze.formats.bitcoin_raw.networks import BITCOIN_MAGICS, Network
from coinhaze.formats.bitcoin_raw.scripts import owner_column
from coinhaze.formats.bitcoin_raw.wire import Cursor, id_letters, id_text, text_column
from coinhaze.formats.compression import bytes_read, open_plain
from coinhaze.ledger.batches import Batch

MAGIC = b"utxo\xff"
VERSION = 2
HEADER = len(MAGIC) + 2 + 4 + 32 + 8
_CHUNK = 1 << 21
_LARGEST = 1 << 22  # bytes of a transaction's coins: without witnesses one has a million at most
_FAULTS = {
    -2: "a size that takes more bytes than it needs",
    -3: "a transaction without coins",
    -4: "a value or number of a coin that is out of range",
}
_CUT = "the file is cut short: copy it again, or let the node write it again"
# How to have one made.
MAKE = "bitcoin-cli -rpcclienttimeout=0 -named dumptxoutset FILE rollback={height}"


@dataclass(frozen=True)
class Snapshot:
    """What the first bytes of a snapshot say."""

    path: Path
    network: Network
    block: str  # hash of the block after which the coins were unspent
    coins: int

    def facts(self) -> dict[str, object]:
        """Describe it."""
        return {"network": self.network.name, "after_block": self.block, "coins": self.coins}


def recognises(head: bytes) -> bool:
    """Tell whether a file begins as snapshots do."""
    return head.startswith(MAGIC)


def batches(path: Path) -> Iterator[Batch]:
    """Give no rows: the coins belong to the inputs of blocks, which `store.snapshot` fills."""
    read_header(path)
    return iter(())


def read_header(path: Path) -> Snapshot:
    """Read what a snapshot is of."""
    with errors_named(path), open_plain(path) as file:
        head = bytes(file.read(HEADER))
    if not recognises(head):
        fix = "`dumptxoutset` of Bitcoin Core 28 or later writes one"
        raise LedgerError(str(path), "no UTXO snapshot: it does not begin with utxo", fix=fix)
    if len(head) < HEADER:
        raise LedgerError(str(path), f"a snapshot begins with {HEADER} bytes", fix=_CUT)
    cursor = Cursor(head, len(MAGIC))
    version, magic = cursor.unsigned(2), cursor.take(4)
    if version != VERSION:
        fix = "let `dumptxoutset` of Bitcoin Core 28 or later write it"
        what = f"a snapshot of another version than {VERSION}"
        raise LedgerError(str(path), what, value=version, fix=fix)
    network = BITCOIN_MAGICS.get(magic)
    if network is None:
        known = ", ".join(n.name for n in BITCOIN_MAGICS.values())
        what = "a snapshot of a network that is not known"
        raise LedgerError(str(path), what, value=magic.hex(), fix=f"known are {known}")
    return Snapshot(path, network, id_text(cursor.take(32)), cursor.unsigned(8))


def prefix_of(txid: str) -> int:
    """Give the number by which coins of a transaction are found quickly."""
    return int(txid[:16], 16)


def coins_of(
    snapshot: Snapshot,
    prefixes: npt.NDArray[np.uint64],
    progress: Callable[[int], None] = lambda read: None,
) -> Iterator[pa.Table]:
    """Read a whole snapshot, and give the coins of transactions whose ids begin in these ways.

    Some others may come with them. `progress` hears the bytes of the file read so far.
    """
    from coinhaze.formats.bitcoin_raw.kernels import unspent_coins

    path, wanted = snapshot.path, np.unique(prefixes)
    held, read, done = b"", 0, HEADER
    with errors_named(path), open_plain(path) as file:
        file.read(HEADER)
        while chunk := bytes(file.read(_CHUNK)):
            octets = np.frombuffer(held + chunk, np.uint8)
            fault, end, coins = unspent_coins(octets, 0, len(octets))
            if fault:
                raise LedgerError(f"{path}: byte {done + end}", _FAULTS[fault])
            if end == 0 and len(octets) > _LARGEST:
                what = "a transaction with more coins than any block can hold"
                raise LedgerError(f"{path}: byte {done}", what)
            read, done = read + len(coins), done + end
            if read > snapshot.coins:
                break
            yield _table(octets, coins, wanted, snapshot.network)
            held = octets[end:].tobytes()
            progress(bytes_read(file, path))
    if held and read >= snapshot.coins:
        read += 1
    if read > snapshot.coins:
        what = f"more coins than the {snapshot.coins:,} that its header says"
        raise LedgerError(str(path), what, fix="let the node write it again")
    if read < snapshot.coins:
        what = f"the file ends after {read:,} of {snapshot.coins:,} coins"
        raise LedgerError(str(path), what, fix=_CUT)


def _table(
    octets: npt.NDArray[np.uint8],
    coins: npt.NDArray[np.int64],
    wanted: npt.NDArray[np.uint64],
    network: Network,
) -> pa.Table:
    ids = octets[coins[:, 4][:, None] + np.arange(24, 32)].view("<u8").reshape(-1)
    value, kinds, places, sizes, tx, vout, height = np.ascontiguousarray(
        coins[np.isin(ids, wanted)].T
    )
    return pa.table(
        {
            "txid": text_column(id_letters(octets[tx[:, None] + np.arange(32)])),
            "vout": vout,
            "height": height,
            "value": value,
            "owner": owner_column(octets, kinds, places, sizes, network),
        }
    )


def alone(snapshot: Snapshot) -> InputError:
    """Say what else is needed beside a snapshot."""
    return InputError(
        f"{snapshot.path}: a UTXO snapshot is no ledger: it has the {snapshot.coins:,} coins of "
        f"{snapshot.network.name} after block {snapshot.block}; name the blocks above that one "
        f"beside it, such as: coinhaze score blk*.dat {snapshot.path}"
    )
