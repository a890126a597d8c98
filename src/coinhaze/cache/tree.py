"""Values over arrays as a tree of plain JSON beside one run of bytes, and back.

Nothing is pickled: what is read back can only be one of the classes named here, over numbers and
text. A value that stands in several places is written once, so that what was shared is shared
again; a layer may also refer to what stands in the layers below it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse

from coinhaze.errors import UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.graph.names import Aliases, CoinBlock, NodeNames, PartyNames, PrefixBlock, TextBlock
from coinhaze.ledger import AccountLedger, Amounts, CoinLedger
from coinhaze.ledger.completeness import Check, Completeness
from coinhaze.ledger.text import TextIndex
from coinhaze.measures import Scores
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import SourceNames, Walk
from coinhaze.solve.local.row import BoundedChain
from coinhaze.units import Unit

Place = list[int]  # where bytes begin, and how many there are
Put = Callable[[Any], Place]


class Recipe(NamedTuple):
    """What a value of a class is made of, and what it works out at the first question."""

    kind: type
    parts: tuple[str, ...]
    ready: tuple[str, ...] = ()


def _recipe(kind: type, *parts: str, ready: Sequence[str] = ()) -> Recipe:
    return Recipe(kind, parts or tuple(f.name for f in fields(kind)), tuple(ready))


_RECIPES = {
    recipe.kind.__name__: recipe
    for recipe in (
        _recipe(AbsorbingChain),
        _recipe(AccountLedger),
        _recipe(Aliases, "names", "name", "party", ready=["_by_name"]),
        _recipe(Amounts),
        _recipe(Check),
        _recipe(CoinBlock, "ledger", "txids", ready=["_by_tx"]),
        _recipe(CoinLedger),
        _recipe(Completeness),
        _recipe(BoundedChain),
        _recipe(NodeNames, ready=["_nodes_of_party"]),
        _recipe(PartyNames, "blocks", "starts"),
        _recipe(PrefixBlock, "prefix", "ids", "rows"),
        _recipe(Scores),
        _recipe(SourceNames, "names", "nodes"),
        _recipe(TextBlock, "index"),
        _recipe(TextIndex, "column", ready=["_sorted"]),
        _recipe(TransactionGraph),
        _recipe(Unit),
        _recipe(Walk),
    )
}
_NUMBERS = frozenset({"|b1", "|i1", "|u1", "<i4", "<i8", "<u8", "<f4", "<f8"})
_ARROW = {str(t): t for t in (pa.string(), pa.large_string(), pa.int64(), pa.bool_())}


def shape_of_format() -> list[Any]:
    """Name classes and their parts: another shape is another format."""
    return [[name, *r.parts, *r.ready] for name, r in sorted(_RECIPES.items())]


class Packer:
    """Writes a value of one layer; `below` are the objects of each layer under it."""

    def __init__(self, put: Put, below: Sequence[Sequence[object]]) -> None:
        self.put = put
        self.objects: list[object] = []
        self._layer = len(below)
        self._known = {
            id(thing): [layer, number]
            for layer, things in enumerate(below)
            for number, thing in enumerate(things)
        }

    def pack(self, value: Any) -> Any:
        """Give the tree of a value, its arrays written to the run of bytes."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, tuple | list):
            return {type(value).__name__: [self.pack(v) for v in value]}
        if isinstance(value, frozenset):
            return {"frozenset": sorted(value)}
        if isinstance(value, Mapping):
            return {"dict": [[self.pack(k), self.pack(v)] for k, v in value.items()]}
        if id(value) in self._known:
            return {"ref": self._known[id(value)]}
        tree = self._thing(value)
        self._known[id(value)] = [self._layer, len(self.objects)]
        self.objects.append(value)
        return tree

    def _thing(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return {"array": self._array(value)}
        if isinstance(value, pa.Array):
            return {"arrow": self._arrow(value)}
        if isinstance(value, scipy.sparse.csr_array):
            parts = [self.pack(a) for a in (value.data, value.indices, value.indptr)]
            flags = [bool(value.has_sorted_indices), bool(value.has_canonical_format)]
            return {"csr": [*parts, list(value.shape), flags]}
        recipe = _RECIPES.get(type(value).__name__)
        if recipe is None or type(value) is not recipe.kind:
            raise UsageError(f"cannot be cached: {type(value).__name__}")
        names = (*recipe.parts, *recipe.ready)
        return {
            "made": recipe.kind.__name__,
            "of": {n: self.pack(getattr(value, n)) for n in names},
        }

    def _array(self, array: npt.NDArray[Any]) -> list[Any]:
        kind, shape = array.dtype.str, list(array.shape)
        if kind not in _NUMBERS:
            raise UsageError(f"cannot be cached: an array of {array.dtype}")
        if array.ndim == 1 and array.strides == (0,) and len(array):  # one number, said often
            return [kind, shape, "repeated", False, self.put(array[:1].copy())]
        order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
        data = array.ravel(order=order)  # a copy only where the array is in pieces
        return [kind, shape, order, array.flags.writeable, self.put(data)]

    def _arrow(self, column: pa.Array) -> list[Any]:
        kind: Any = str(column.type)
        if pa.types.is_timestamp(column.type):
            kind = [column.type.unit, column.type.tz]
        elif kind not in _ARROW:
            raise UsageError(f"cannot be cached: a column of {kind}")
        places = [None if b is None else self.put(b) for b in column.buffers()]
        return [kind, len(column), column.null_count, column.offset, places]


class Unpacker:
    """Reads a value of one layer out of bytes; `below` as for `Packer`."""

    def __init__(self, data: memoryview, below: Sequence[Sequence[object]]) -> None:
        self.data = data
        self.objects: list[object] = []
        self._layers = [*below, self.objects]

    def unpack(self, tree: Any) -> Any:
        """Give the value a tree stands for; its arrays are views of the bytes."""
        if tree is None or isinstance(tree, bool | int | float | str):
            return tree
        word = next(iter(tree), "")
        body = tree[word]
        if word == "ref":
            layer, number = body
            if not (0 <= layer < len(self._layers) and 0 <= number < len(self._layers[layer])):
                raise ValueError(f"no object {body}")
            return self._layers[layer][number]
        if word in ("tuple", "list"):
            return (tuple if word == "tuple" else list)(self.unpack(t) for t in body)
        if word == "frozenset":
            return frozenset(str(t) for t in body)
        if word == "dict":
            return {self.unpack(k): self.unpack(v) for k, v in body}
        value = self._made(tree) if word == "made" else _READERS[word](self, body)
        self.objects.append(value)
        return value

    def _made(self, tree: Any) -> Any:
        recipe = _RECIPES[tree["made"]]
        parts = {name: self.unpack(part) for name, part in tree["of"].items()}
        if tuple(parts) != (*recipe.parts, *recipe.ready):
            raise ValueError(f"a {tree['made']} of other parts")
        # Checks were made, and arrays narrowed, when the value was built.
        value: Any = object.__new__(recipe.kind)
        vars(value).update(parts)
        return value

    def _bytes(self, place: Place) -> memoryview:
        first, size = place
        if not (0 <= first <= first + size <= len(self.data)):
            raise ValueError(f"bytes beyond the end: {place}")
        return self.data[first : first + size]

    def _array(self, body: Any) -> npt.NDArray[Any]:
        kind, shape, order, writeable, place = body
        if kind not in _NUMBERS:
            raise ValueError(f"an array of {kind}")
        flat = np.frombuffer(self._bytes(place), dtype=kind)
        if order == "repeated":
            return np.broadcast_to(flat[0], shape)
        array = flat.reshape(shape, order="F" if order == "F" else "C")
        array.setflags(write=bool(writeable))
        return array

    def _arrow(self, body: Any) -> pa.Array:
        kind, length, nulls, offset, places = body
        known = pa.timestamp(*kind) if isinstance(kind, list) else _ARROW[kind]
        buffers = [None if p is None else pa.py_buffer(self._bytes(p)) for p in places]
        column = pa.Array.from_buffers(known, length, buffers, nulls, offset)
        column.validate()
        return column

    def _csr(self, body: Any) -> scipy.sparse.csr_array:
        data, indices, indptr = (self.unpack(t) for t in body[:3])
        q = scipy.sparse.csr_array((data, indices, indptr), shape=tuple(body[3]))
        # Others may hold these very arrays: scipy's own may be views of them.
        q.data, q.indices, q.indptr = data, indices, indptr
        q.has_sorted_indices, q.has_canonical_format = body[4]
        return q


_READERS: dict[str, Callable[[Unpacker, Any], Any]] = {
    "array": Unpacker._array,
    "arrow": Unpacker._arrow,
    "csr": Unpacker._csr,
}
