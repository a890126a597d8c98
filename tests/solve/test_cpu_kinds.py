"""Bits do not depend on the kind of CPU: code for any x86-64 or arm gives those of this one."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SOLVE = """
import hashlib, json
import numpy as np
import coinhaze
from coinhaze import absorbing_chain, transaction_graph
from coinhaze.simulate import simulate_week

def digest(scores):
    names = ("bits", "bits_low", "bits_high", "steps", "mass", "top", "top_probability")
    return [hashlib.sha256(getattr(scores, name).tobytes()).hexdigest() for name in names]

found = {}
for name, week, size, settings in (
    ("coins", "bitcoin-week", 0.001, {}),
    ("accounts", "dai-week", 0.1, {"time": "stationary"}),
    ("snapshots", "dai-week", 0.01, {"time": "temporal"}),
):
    chain = absorbing_chain(transaction_graph(simulate_week(week, size=size), **settings))
    found[name] = digest(coinhaze.score(chain))
    found[name + ", eliminated"] = digest(coinhaze.score(chain, method="eliminate"))
    found[name + ", dropped"] = digest(coinhaze.score(chain, accuracy=0.2, over="mean"))
    found[name + ", drawn"] = digest(coinhaze.score(chain, accuracy="preview", seed=3))
print(json.dumps(found))
"""


def solved(tmp_path: Path, **environment: str) -> dict[str, list[str]]:
    cache = str(tmp_path / f"kernels{len(environment)}")
    done = subprocess.run(
        [sys.executable, "-c", SOLVE],
        env=os.environ | {"NUMBA_CACHE_DIR": cache} | environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def dispatched_features() -> list[str]:
    """Name what numpy looks for on this CPU beyond what it always needs."""
    found = np.show_config(mode="dicts")
    assert found is not None
    names: list[str] = found["SIMD Extensions"]["found"]
    return names


@pytest.mark.long
def test_code_for_any_cpu_gives_the_same_bits(tmp_path: Path) -> None:
    here = solved(tmp_path)
    # Our loops, the linear algebra of numpy, and numpy's own functions, each for an older CPU.
    anywhere = solved(
        tmp_path,
        NUMBA_CPU_NAME="generic",
        NUMBA_CPU_FEATURES="",
        OPENBLAS_CORETYPE="Prescott" if platform.machine() == "x86_64" else "ARMV8",
        NPY_DISABLE_CPU_FEATURES=" ".join(dispatched_features()),
    )
    assert here == anywhere
    assert len({tuple(each) for each in here.values()}) > len(here) / 2


def test_a_digest_sees_one_last_digit() -> None:
    value = np.array([0.1])
    other = np.nextafter(value, 1)
    digests = {hashlib.sha256(v.tobytes()).hexdigest() for v in (value, other)}
    assert len(digests) == 2
