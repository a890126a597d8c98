"""Blocks as they lie in files, in no order -> their heights, and which are on the chain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.networks import Network
from coinhaze.formats.bitcoin_raw.wire import id_text

NO_BLOCK = bytes(32)
# No chain here began before Bitcoin nor makes a block in 15 seconds, in the long run: what a block
# tells above that is no height but, most often, the time.
_FIRST_TIME, _FASTEST = 1_231_006_505, 15


@dataclass(frozen=True)
class Header:
    """What a block says of its place. `stated` is the height in its coinbase, if there is one.

    `hash` is empty where it cannot be computed. `own` is false for blocks of other files that were
    looked at only to place these.
    """

    where: str
    hash: bytes
    previous: bytes
    time: int
    stated: int | None
    own: bool = True


def stated_height(version: int, script: bytes, time: int) -> int | None:
    """Give the height that the script of a coinbase begins with (BIP34), if it does.

    >>> stated_height(2, bytes.fromhex("03be8b08"), 1541000000)
    560062
    """
    if version < 2 or not script:
        return None
    first = script[0]
    if 0x51 <= first <= 0x60:
        return first - 0x50
    number = script[1 : 1 + first]
    if not 1 <= first <= 4 or len(number) < first:
        return None
    height = int.from_bytes(number, "little", signed=True)
    # A number is written in as few bytes as it needs; a last byte of zero only holds the sign.
    short = first > 1 and number[-1] == 0 and number[-2] < 0x80
    if height < 17 or short or height > max(0, time - _FIRST_TIME) // _FASTEST:
        return None
    return height


def place(headers: Sequence[Header], network: Network) -> dict[int, int]:
    """Give the heights of the headers that are on the chain, by their number.

    Blocks that lost a race stand in the files too; they are left out. Raises where a height cannot
    be known, or where it is not known which of two blocks won.
    """
    numbers = _once(headers)
    heights = _heights(headers, numbers, network)
    unknown = [i for i in numbers if heights.get(i) is None and headers[i].own]
    if unknown:
        _raise_unknown(headers[unknown[0]], len(unknown))
    return _on_chain(headers, {i: h for i, h in heights.items() if h is not None})


def all_known(headers: Sequence[Header], network: Network) -> bool:
    """Tell whether the heights of all own headers can be known."""
    numbers = _once(headers)
    heights = _heights(headers, numbers, network)
    return all(heights.get(i) is not None for i in numbers if headers[i].own)


def _once(headers: Sequence[Header]) -> list[int]:
    """Give the numbers of the headers, of a block that stands there twice only the first own."""
    seen: dict[object, int] = {}
    for i, header in enumerate(headers):
        name = header.hash or (header.previous, header.time, header.stated)
        if name not in seen or (header.own and not headers[seen[name]].own):
            seen[name] = i
    return list(seen.values())


def _heights(
    headers: Sequence[Header], numbers: Iterable[int], network: Network
) -> dict[int, int | None]:
    """Give heights by what blocks tell and by who follows whom."""
    after = defaultdict(list)
    known = {headers[i].hash for i in numbers if headers[i].hash}
    for i in numbers:
        after[headers[i].previous].append(i)
    heights: dict[int, int | None] = {}
    for i in numbers:
        if headers[i].previous not in known:
            tree = _tree(headers, i, after)
            base = _base(headers, tree, network)
            heights |= {k: None if base is None else base + depth for k, depth in tree}
    return heights


def _tree(
    headers: Sequence[Header], root: int, after: dict[bytes, list[int]]
) -> list[tuple[int, int]]:
    """List all blocks that follow one, with their distance."""
    tree = [(root, 0)]
    for i, depth in tree:  # grows as it is read
        if headers[i].hash:
            tree += [(k, depth + 1) for k in after[headers[i].hash]]
    return tree


def _base(
    headers: Sequence[Header], tree: Sequence[tuple[int, int]], network: Network
) -> int | None:
    """Give the height of the first block of a tree."""
    if headers[tree[0][0]].previous == NO_BLOCK:
        return 0
    stated = [(headers[i].stated, depth, i) for i, depth in tree]
    claims = {h - depth: i for h, depth, i in stated if h is not None and h - depth > 0}
    # Before the rule was in force some blocks stated nonsense.
    binding = {
        h - depth: i
        for h, depth, i in stated
        if h is not None and h - depth > 0 and h >= network.bip34
    }
    bases = binding or claims
    if len(bases) > 1:
        (one, i), (other, k) = list(bases.items())[:2]
        what = f"a block of the same chain tells a height {abs(one - other)} off that of block"
        raise LedgerError(headers[k].where, what, value=id_text(headers[i].hash))
    return next(iter(bases), None)


def _on_chain(headers: Sequence[Header], heights: dict[int, int]) -> dict[int, int]:
    """Leave out blocks that lost: from the top down, what the winner above does not build on."""
    at = defaultdict(list)
    for i, height in heights.items():
        at[height].append(i)
    kept: dict[int, int] = {}
    above: Header | None = None
    for height in sorted(at, reverse=True):
        rivals = at[height]
        if above is not None and height + 1 not in at:
            above = None
        if above is not None and all(headers[i].hash for i in rivals):
            rivals = [i for i in rivals if headers[i].hash == above.previous]
            if not rivals:
                # The winner here lies in another file; so nothing is known of the one below.
                above = None
                continue
        if len(rivals) > 1:
            _raise_race(headers, rivals, height)
        above = headers[rivals[0]]
        if above.own:
            kept[rivals[0]] = height
    return kept


def _raise_unknown(header: Header, number: int) -> None:
    what = (
        f"{number} blocks of unknown height: they tell none (BIP34), and the blocks before them, "
        "back to the first of the chain, are not there; the first of them is"
    )
    fix = "keep the files from blk00000.dat on in one folder, or join them into one file"
    raise LedgerError(header.where, what, value=id_text(header.hash), fix=fix)


def _raise_race(headers: Sequence[Header], rivals: Sequence[int], height: int) -> None:
    one, other = (headers[i] for i in rivals[:2])
    what = f"two blocks of height {height}, and none above to tell which is on the chain; one is"
    fix = f"the other stands at {other.where}; add the file of blocks that follows"
    raise LedgerError(one.where, what, value=id_text(one.hash), fix=fix)
