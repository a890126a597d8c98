"""Hot loops, compiled or as plain Python, with the same bits either way.

Compiling the loops that a score needs takes half a minute the first time, and loading the compiler
takes longer than solving a small ledger. So a loop runs as plain Python while its arrays are small,
and the compiler is imported for the first array that is not.

>>> @kernel()
... def total(values):
...     found = 0.0
...     for value in values:
...         found += value
...     return found
>>> total.plain([0.1, 0.2])
0.30000000000000004
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Set
from functools import update_wrapper
from types import FunctionType
from typing import Any

from coinhaze.kernel_files import Sources, use_files

Function = Callable[..., Any]

# Entries of all arrays of one call up to which it is plain Python: those of a tile of a ledger of
# some thousand rows. And the seconds that one loop may take so in all: loading the compiler and
# compiling the loop take longer.
SMALL = 1 << 18
MAX_SECONDS = 2.0

_lock = threading.RLock()  # while functions are copied
_compiling = False  # whether some array was not small: from then on everything is compiled

# Called once, when something is about to be compiled that no earlier process has compiled.
announce: Callable[[], None] = lambda: None  # noqa: E731
_listening = False


class Kernel:
    """A loop that runs as plain Python or compiled, by the size of its arrays."""

    def __init__(
        self,
        function: Function,
        compiler: Callable[[Function], Function],
        plain: Function | None = None,
        entries: Callable[..., int] | None = None,
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._compiler = compiler
        self._quicker = plain or function
        self._entries = entries
        self._seconds = 0.0
        self._plain: Function | None = None
        self._compiled: Function | None = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run it."""
        global _compiling
        if not _compiling and self._seconds < MAX_SECONDS:
            if self._size(arguments, named) <= SMALL:
                import numpy as np  # a command says what to announce before it needs numpy

                begun = time.thread_time()
                try:
                    # Compiled code wraps around and divides by zero without a word.
                    with np.errstate(all="ignore"):
                        return self.plain(*arguments, **named)
                finally:
                    self._seconds += time.thread_time() - begun
            _compiling = True
        return self.compiled(*arguments, **named)

    def _size(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> int:
        if self._entries is not None:
            return self._entries(*arguments, **named)
        return _entries(arguments) + _entries(named.values())

    @property
    def plain(self) -> Function:
        """The loop as plain Python; the kernels it calls are plain as well."""
        if self._plain is None:
            with _lock:
                copied = _plain.copy(self._quicker)
                self._plain = self._plain or copied  # made for another kernel of its module
        return self._plain

    @property
    def compiled(self) -> Function:
        """The compiled loop; the kernels it calls are compiled as well."""
        if self._compiled is None:
            with _lock:
                copied = _compiled.copy(self.py_func)
                self._compiled = self._compiled or self._compiler(copied)
        return self._compiled


class _Names:
    """The names that functions of each module see when all kernels among them are of one sort."""

    def __init__(self, sort: Callable[[Kernel], Function]) -> None:
        self._sort = sort
        # By the module's own names, which are held so that their address stays theirs.
        self._modules: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}

    def copy(self, function: Function) -> Function:
        """Copy a function so that it calls kernels of this sort."""
        names = self._of(function.__globals__)
        copied = FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
        copied.__kwdefaults__ = function.__kwdefaults__
        return copied

    def _of(self, module: dict[str, Any]) -> dict[str, Any]:
        if id(module) not in self._modules:
            # Known before it is complete, since kernels may call each other in a circle.
            names = dict(module)
            self._modules[id(module)] = module, names
            for name, value in module.items():
                if isinstance(value, Kernel):
                    names[name] = self._sort(value)
        return self._modules[id(module)][1]


_plain = _Names(lambda kernel: kernel.plain)
_compiled = _Names(lambda kernel: kernel.compiled)
_sources = Sources(Kernel)


def kernel(
    *,
    plain: Function | None = None,
    entries: Callable[..., int] | None = None,
    inline: str = "never",
    error_model: str = "python",
    fastmath: Set[str] = frozenset(),
    _nrt: bool = True,
) -> Callable[[Function], Any]:
    """Make a function a kernel; all but `plain` and `entries` is what numba.njit calls so.

    Where plain Python has a quicker way to the same bits, `plain` is that. Where arrays have room
    for more than a call reads or writes, `entries` counts from its arguments what it does.
    """
    options = {"inline": inline, "error_model": error_model, "_nrt": _nrt}

    def decorate(function: Function) -> Kernel:
        def compiler(copied: Function) -> Function:
            from numba import njit

            _listen()
            made: Function = njit(nogil=True, fastmath=set(fastmath), **options)(copied)
            use_files(made, _sources.of(function.__globals__))
            return made

        return Kernel(function, compiler, plain, entries)

    return decorate


def intrinsic(make: Callable[[], Function]) -> Callable[[Function], Any]:
    """Make a function a kernel that is not compiled: compiled code uses what `make` gives."""
    return lambda function: Kernel(function, lambda _: make())


def _listen() -> None:
    """Let the compiler tell when it begins."""
    global _listening
    if _listening:
        return
    _listening = True
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: object) -> None:
            global announce
            say, announce = announce, lambda: None
            say()

        def on_end(self, event: object) -> None:
            pass

    event.register("numba:compile", Listener())


def _entries(arguments: Iterable[Any]) -> int:
    count = 0
    for argument in arguments:
        if isinstance(argument, tuple | list):
            count += _entries(argument)
        else:
            count += getattr(argument, "size", 1)
    return count
