"""SHA-256 in kernels is that of hashlib, and Merkle roots are those of the plain rule."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from coinhaze.formats.bitcoin_raw.hash_kernels import double_hashes, merkle_roots
from coinhaze.formats.bitcoin_raw.wire import Malformed, double_sha256, merkle_root


@pytest.mark.parametrize("way", ["compiled", "plain", "py_func"])
def test_hashes_of_every_length(way: str) -> None:
    random = np.random.default_rng(1)
    sizes = (
        np.arange(0, 200) if way != "py_func" else np.array([0, 1, 55, 56, 63, 64, 65, 119, 120])
    )
    ends = np.cumsum(sizes)
    data = random.integers(0, 256, int(ends[-1])).astype(np.uint8)
    with np.errstate(over="ignore"):
        found = getattr(double_hashes, way)(data, ends)
    for size, end, row in zip(sizes.tolist(), ends.tolist(), found, strict=True):
        text = data[end - size : end].tobytes()
        assert row.tobytes() == double_sha256(text)
        assert row.tobytes() == hashlib.sha256(hashlib.sha256(text).digest()).digest()


@pytest.mark.parametrize("way", ["compiled", "plain"])
def test_roots_of_every_number_of_ids(way: str) -> None:
    random = np.random.default_rng(2)
    sizes = np.array([*range(1, 40), 127, 128, 129])
    ids = random.integers(0, 256, (int(sizes.sum()), 32)).astype(np.uint8)
    after = np.cumsum(sizes)
    roots, twice = getattr(merkle_roots, way)(ids, after)
    assert not twice.any()
    for first, last, root in zip(after - sizes, after, roots, strict=True):
        assert root.tobytes() == merkle_root([row.tobytes() for row in ids[first:last]])


@pytest.mark.parametrize("way", ["compiled", "plain"])
def test_lists_that_repeat_their_end_are_noticed(way: str) -> None:
    """They have the root of the shorter list (CVE-2012-2459)."""
    random = np.random.default_rng(3)
    for size in range(1, 24):
        ids = random.integers(0, 256, (size, 32)).astype(np.uint8)
        for again in (1, 2, 4, 8):
            whole = np.concatenate([ids, ids[-again:]])
            _, twice = getattr(merkle_roots, way)(whole, np.array([len(whole)]))
            try:
                merkle_root([row.tobytes() for row in whole])
            except Malformed:
                assert twice[0]
            else:
                assert not twice[0]
