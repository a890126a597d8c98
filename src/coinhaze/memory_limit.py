"""What a command does when the memory it may take (`ulimit -v`) does not suffice: one line, exit 6.

Most libraries raise an error that is recognised here. Some end the process instead (the C library
when a thread cannot have its data, Arrow and LLVM in places), so under a limit the work is done by
a child process, and its parent says what happened.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import resource
import signal
import sys
from collections.abc import Iterator
from typing import IO

OUT_OF_MEMORY = 6
# What the loader, the thread library and compiled libraries say.
_SAID = (
    "failed to map segment",
    "cannot allocate memory",
    "can't start new thread",
    "unable to allocate",
    "bad_alloc",
    "alloc of size",
    "out of memory",
)
_ENDED = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP)
_NO_THREAD_DATA = 127  # how the C library ends a process that cannot have data for a thread
_SENT = 0  # `si_code` of a signal that a process sent; others come from the terminal, to both
_ROOM = 128 << 20  # for Arrow's thread and what it reads; no command gets by with less
_PARENT_ENDS, _ARENAS = 1, -8  # of prctl and mallopt
_child = False  # whether this process is such a child


def is_out_of_memory(error: BaseException | None) -> bool:
    """Tell whether an error, or one it was raised in place of, is for want of memory.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(ValueError("no number"))
    (True, False)
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        if isinstance(error, OSError | ImportError | RuntimeError | SystemError) or (
            type(error).__name__ in ("OutOfMemoryException", "ArrowInvalid")
        ):
            text = str(error).lower()
            if any(words in text for words in _SAID):
                return True
        error = error.__cause__ or error.__context__
    return False


def memory_limit() -> int | None:
    """Give the bytes of memory a process may take, if there is a limit."""
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min((limit for limit in limits if limit != resource.RLIM_INFINITY), default=None)


def work_in_a_child() -> None:
    """Under a limit, go on in a child process; its parent ends here, with the child's exit code."""
    limit = memory_limit()
    if limit is None or not hasattr(signal, "sigwaitinfo"):
        return
    import tempfile  # only here: starting a command takes a third longer with it

    waited = {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child:
            os._exit(_wait(child, waited, said, limit))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _keep_apart(said)
    global _child
    _child = True
    _save_room()


def leave(code: int) -> None:
    """End such a child with the exit code of its command; elsewhere do nothing.

    Libraries that were refused memory may abort while they are taken down, when all is said.
    """
    if _child:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
        os._exit(code)


def _keep_apart(said: IO[bytes]) -> None:
    """Let libraries write their last words to a file, and Python to where it always does."""
    sys.stderr.flush()
    terminal = os.dup(2)
    os.dup2(said.fileno(), 2)
    sys.stderr = io.TextIOWrapper(
        open(terminal, "wb", buffering=0),  # noqa: SIM115 - open as long as Python runs
        encoding=sys.stderr.encoding,
        errors="backslashreplace",
        write_through=True,
    )


def _save_room() -> None:
    """Take less room for threads, and start Arrow's while there is some: without it, it waits."""
    import ctypes
    import mmap

    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.prctl(_PARENT_ENDS, signal.SIGKILL)
        library.mallopt(_ARENAS, 1)
    # Without memory for all its threads OpenBLAS, which SciPy loads, tries for ever.
    for name in ("ARROW_IO_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    with _as_memory_error():
        import pyarrow.csv

        mmap.mmap(-1, _ROOM).close()
        for _ in pyarrow.csv.open_csv(io.BytesIO(b"a\n1\n")):
            pass


@contextlib.contextmanager
def _as_memory_error() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if is_out_of_memory(error):
            raise MemoryError from None
        raise


def _wait(child: int, waited: set[signal.Signals], said: IO[bytes], limit: int) -> int:
    """Wait for the child, passing signals on; give the exit code."""
    while True:
        info = signal.sigwaitinfo(waited)
        if info.si_signo != signal.SIGCHLD:
            if info.si_code == _SENT:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, info.si_signo)
            continue
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
    said.seek(0)
    last_words = said.read(1 << 20).decode("utf-8", "replace")
    code = os.waitstatus_to_exitcode(status)
    if -code in _ENDED or code == _NO_THREAD_DATA:
        why = last_words.strip().splitlines()[-1:]
        text = f"coinhaze: ended for want of memory, {limit / 1e6:,.0f} MB at the most"
        sys.stderr.write(text + (f" ({why[0][:200]})\n" if why else "\n"))
        code = OUT_OF_MEMORY
    else:
        sys.stderr.write(last_words)
    sys.stderr.flush()
    return code if code >= 0 else 128 - code
