"""What the outcomes of a chain are called, made when asked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.graph.names import NodeNames
from coinhaze.ledger.frozen import narrow


class SourceNames:
    """The names of sources; reads like an Arrow column of text."""

    def __init__(self, names: NodeNames, nodes: Ints) -> None:
        self.names = names
        self.nodes = narrow(nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, row: int) -> pa.StringScalar:
        return self.names.of_sources(self.nodes[[row]])[0]

    def take(self, rows: pa.Array) -> pa.StringArray:
        """Make some names; null where the row is null."""
        at = np.asarray(rows.drop_null(), dtype=np.int64)
        names = self.names.of_sources(self.nodes[at])
        if len(at) == len(rows):
            return names
        known = rows.is_valid()
        number = pc.subtract(pc.cumulative_sum(known.cast(pa.int64())), 1)
        return names.take(pc.if_else(known, number, None))

    def to_pylist(self) -> list[str]:
        """Make all names."""
        names: list[str] = self.names.of_sources(self.nodes).to_pylist()
        return names

    def cast(self, kind: pa.DataType) -> pa.Array:
        """Make all names as an Arrow column of some kind of text."""
        return self.names.of_sources(self.nodes).cast(kind)
