"""The best chain of a node of Bitcoin's family: its network, its tip, its hashes, its blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import msgspec

from coinhaze.errors import InputError, LedgerError, SourceUnreachable, UsageError
from coinhaze.nodes.http import ResponseTooLarge
from coinhaze.nodes.rpc import Call, JsonRpc, RpcError

T = TypeVar("T")

HIGHEST = 2**31 - 1
IN_FLIGHT = 3  # requests; more would crowd out the node's other users
MAX_BLOCKS = 256  # per request
WANTED = 4 << 20  # bytes per response
HASHES = 500  # per request
# Its messages for an unknown hash, and for a height above its tip.
NO_SUCH_BLOCK = (-5, -8)
BLOCKS_AT_ONCE, BYTES_AT_ONCE = 2_000, 8 << 20  # per batch

# Genesis blocks. Bitcoin Cash shares Bitcoin's.
NETWORKS = {
    "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f": "bitcoin",
    "000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943": "bitcoin testnet3",
    "00000000da84f2bafbbc53dee25a72ae507ff4914b867c565be350b0da8bf043": "bitcoin testnet4",
    "00000008819873e925422c1ff0f99f7cc9bbb232af63a077a480a3633bee1ef6": "bitcoin signet",
    "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206": "bitcoin regtest",
    "12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2": "litecoin",
    "4966625a4b2851d9fdee139e56211a0d88575f59ed816ff5e6a63deb4a3e29a0": "litecoin testnet",
    "530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9": "litecoin regtest",
    "1a91e3dace36e2be3bf030a65679fe821aa1d6ef92e7c9902eb318182c355691": "dogecoin",
    "00000ffd590b1485b3caadc19b22e6379c733355108f107a430458cdf3407ab6": "dash",
    "00040fe8ec8471911baa1db1266ea15dd06b4a8a5c453883c000b031973dce08": "zcash",
    "05a60a92d99d85997cce3b87616c089f6124d7342af37106edc76126334a2c38": "zcash testnet",
    "029f11d80ef9765602235e1bc9727e3eb6ba20839319f761fee920d63401e327": "zcash regtest",
}


class ChainChanged(LedgerError):
    """Responses from different chains: a reorganisation happened while reading, so read again."""


class BlockMissing(SourceUnreachable):
    """The node does not have a block: not yet, or no longer."""


class WrongNetwork(InputError):
    """The node belongs to another network than the requested one."""


class PrunedBlocks(SourceUnreachable):
    """The node has pruned the requested blocks."""


class MissingUndo(SourceUnreachable):
    """The node no longer knows the values of the coins that a block spent."""


def check_follows(previous: object, before: str, where: str) -> None:
    """Raise ChainChanged if a block does not follow the one read before it, if any."""
    if before and previous != before:
        raise ChainChanged(
            where,
            "does not follow the block before: the chain was reorganised",
            value=previous,
            fix="go back to the common ancestor and read again",
        )


def check_heights(first: int, last: int) -> None:
    """Raise an error for what cannot be heights of blocks, on any chain."""
    if not (0 <= first <= HIGHEST and 0 <= last <= HIGHEST):
        raise UsageError(f"blocks are counted from 0 to {HIGHEST}, not {first} to {last}")


class ChainInfo(msgspec.Struct):
    """The fields of `getblockchaininfo` that are needed."""

    chain: str
    blocks: int
    bestblockhash: str
    pruned: bool = False
    pruneheight: int = 0


class RawBlock(NamedTuple):
    """A block as the node sent it: JSON or bytes, and the spent coins where they are separate."""

    height: int
    hash: str
    body: bytes
    spent: bytes = b""

    @property
    def size(self) -> int:
        """Return the number of bytes read."""
        return len(self.body) + len(self.spent)


class ChainNode:
    """Base of all nodes that have a best chain and describe it as Bitcoin Core does.

    `network` is the name of the expected network.
    """

    def __init__(self, rpc: JsonRpc, *, network: str | None = None) -> None:
        self.rpc = rpc
        info = self.info()
        (first,) = self.hashes(0, 0)
        self.network = NETWORKS.get(first, f"unknown ({info.chain})")
        if network is not None and network != self.network:
            raise WrongNetwork(
                f"{rpc.node}: a node of the network {self.network}, not {network}: give the URL of "
                "another, or that network"
            )

    def info(self) -> ChainInfo:
        """Request the state of the chain."""
        return self.decode(self.rpc.call("getblockchaininfo"), ChainInfo, "getblockchaininfo")

    def tip(self) -> tuple[int, str]:
        """Return the height and hash of the last block."""
        info = self.info()
        return info.blocks, info.bestblockhash

    def hashes(self, first: int, last: int) -> list[str]:
        """Return the hashes of a range of blocks, both ends included."""
        return self.hashes_at(range(first, last + 1))

    def hashes_at(self, heights: Sequence[int]) -> list[str]:
        """Return the hashes of the blocks at some heights."""
        found: list[str] = []
        for start in range(0, len(heights), HASHES):
            calls: list[Call] = [("getblockhash", [h]) for h in heights[start : start + HASHES]]
            with self.missing(heights):
                answers = self.rpc.batch(calls)
            found += [self.decode(raw, str, "getblockhash") for raw in answers]
        return found

    def common_ancestor(self, headers: Mapping[int, str]) -> int | None:
        """Walk back from the highest of known blocks to the last one still on the best chain."""
        tip = self.info().blocks
        known = sorted((height for height in headers if height <= tip), reverse=True)
        for start in range(0, len(known), HASHES):
            some = known[start : start + HASHES]
            for height, now in zip(some, self.hashes_at(some), strict=True):
                if now == headers[height].lower():
                    return height
        return None

    def check_range(self, first: int, last: int) -> None:
        """Raise an error for blocks that do not exist or were pruned."""
        check_heights(first, last)
        info = self.info()
        if last > info.blocks:
            raise BlockMissing(
                f"{self.rpc.node}: block {last} is not there yet: the last one is {info.blocks}"
            )
        if info.pruned and first < info.pruneheight:
            raise self.pruned(first, f"it keeps blocks from {info.pruneheight} on")

    def pruned(self, height: int, said: str) -> PrunedBlocks:
        """Return the error for a pruned block."""
        return PrunedBlocks(
            f"{self.rpc.node}: a pruned node: block {height} is gone ({said}): begin later, or use "
            "a node without -prune"
        )

    @contextmanager
    def missing(self, heights: Sequence[int]) -> Iterator[None]:
        """Convert an unknown hash, of a block the node had a moment ago, to BlockMissing."""
        try:
            yield
        except RpcError as error:
            if error.code not in NO_SUCH_BLOCK:
                raise
            raise BlockMissing(
                f"{self.rpc.node}: one of blocks {min(heights)} to {max(heights)} is not there: "
                f"{error.message[:200]} (the chain was reorganised, or the node is not in step)"
            ) from None

    def getblocks(self, heights: range, verbosity: int) -> list[RawBlock]:
        """Request several blocks as JSON at once, or one by one where that is too much."""
        hashes = self.hashes_at(heights)
        calls: list[Call] = [("getblock", [name, verbosity]) for name in hashes]
        with self.missing(heights):
            try:
                bodies = self.rpc.batch(calls)
            except ResponseTooLarge:
                bodies = [self.rpc.call("getblock", name, verbosity) for name in hashes]
        return [RawBlock(*b) for b in zip(heights, hashes, bodies, strict=True)]

    def decode(self, raw: bytes, kind: type[T], method: str) -> T:
        """Decode a response of known shape."""
        try:
            return msgspec.json.decode(raw, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SourceUnreachable(
                f"{self.rpc.node}: an unknown answer to {method}: {error} (is it a node of "
                "Bitcoin's family?)"
            ) from None

    def chunks(
        self, request: Callable[[range], list[RawBlock]], first: int, last: int
    ) -> Iterator[tuple[list[RawBlock], int]]:
        """Yield blocks in chunks large enough for a batch, with the number of bytes read so far."""
        self.check_range(first, last)
        read = 0
        for blocks in gathered(read_ahead(request, first, last), BLOCKS_AT_ONCE, BYTES_AT_ONCE):
            read += sum(block.size for block in blocks)
            yield blocks, read


def read_ahead(
    request: Callable[[range], list[RawBlock]], first: int, last: int
) -> Iterator[list[RawBlock]]:
    """Request blocks in chunks, a few requests ahead, and yield the responses in order.

    Chunks begin with one block and grow while responses are small.
    """
    waiting: deque[Future[list[RawBlock]]] = deque()
    following, chunk = first, 1
    pool = ThreadPoolExecutor(IN_FLIGHT, thread_name_prefix="coinhaze-node")
    try:
        while waiting or following <= last:
            while following <= last and len(waiting) < IN_FLIGHT:
                end = min(following + chunk, last + 1)
                waiting.append(pool.submit(request, range(following, end)))
                following = end
            blocks = waiting.popleft().result()
            largest = max(block.size for block in blocks)
            chunk = max(1, min(2 * chunk, MAX_BLOCKS, WANTED // max(largest, 1)))
            yield blocks
    finally:
        pool.shutdown(cancel_futures=True)


def gathered(chunks: Iterator[list[RawBlock]], blocks: int, size: int) -> Iterator[list[RawBlock]]:
    """Join short chunks until they have `blocks` blocks or `size` bytes."""
    some: list[RawBlock] = []
    for chunk in chunks:
        some += chunk
        if len(some) >= blocks or sum(block.size for block in some) >= size:
            yield some
            some = []
    if some:
        yield some
