"""What runs a solve: limits, the seam between engines and backends, threads and clusters."""

from coinhaze.solve.pool.backend import (
    Backend,
    Work,
    Workers,
    backend_for,
    open_workers,
    register_backend,
)
from coinhaze.solve.pool.cluster import WorkerCluster
from coinhaze.solve.pool.limits import UNLIMITED, Budget
from coinhaze.solve.pool.threads import open_threads

__all__ = [
    "UNLIMITED",
    "Backend",
    "Budget",
    "Work",
    "WorkerCluster",
    "Workers",
    "backend_for",
    "open_threads",
    "open_workers",
    "register_backend",
]
