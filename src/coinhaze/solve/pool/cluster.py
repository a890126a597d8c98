"""The backend of many processes: those of a dask cluster, or some of this machine.

A work is packed once. Processes of this machine map the file, and leave parts in files beside it;
to others its bytes are sent once.
Pieces are tasks, of which few are begun ahead of the first that is not back yet, and parts come
back in the order of their pieces: the bytes are those of threads. dask solves a piece again if its
process is gone. What cannot be mended is one error that says what to do.

A scheduler of dask runs whatever it is sent. That of this machine is therefore closed to other
users: both ends show a certificate that is made for the occasion, in a folder of the user's own.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

from coinhaze.errors import (
    CoinhazeError,
    InputError,
    ResourceError,
    SourceUnreachable,
    UsageError,
)
from coinhaze.solve.pool.limits import Budget, in_words
from coinhaze.solve.pool.packed import map_packed, packed_bytes, write_packed
from coinhaze.solve.pool.probe import Probe, make_probe
from coinhaze.solve.pool.worker import OtherBits, close_work, main, solve_piece
from coinhaze.working_folder import python_command

INSTALL = "pip install 'coinhaze[cluster]'"
WORK = "work"  # the file of a work
SAFELY = "see docs/cluster.md"
CONNECTING = 10.0  # seconds until a scheduler must have answered
STARTING = 60.0  # seconds until there must be a worker, at the beginning and after the last is gone
LOOKING = 0.5  # seconds between looks at workers while a piece is awaited
FETCHING = 30.0  # seconds until a part that is there must have come, or it is looked for again
RESTARTS = 3  # of each process of this machine, in one work
REPUBLISHED = 3  # times a work may be lost with all processes that held it


def distributed() -> Any:
    """Import dask's scheduler and workers; say in one line what is missing."""
    try:
        import distributed
    except ImportError as error:
        raise UsageError(f"workers are run by dask, which is not installed: {INSTALL}") from error
    return distributed


def security_of(ca: Path, cert: Path, key: Path) -> Any:
    """Give dask's settings for encrypted connections between those who have these files."""
    ends = {
        f"tls_{end}_{what}": str(file)
        for end in ("scheduler", "worker", "client")
        for what, file in (("cert", cert), ("key", key))
    }
    return distributed().Security(tls_ca_file=str(ca), require_encryption=True, **ends)


class WorkerCluster:
    """Processes that solve pieces, open until it is closed.

    `workers` is how many processes of this machine, or the address of a dask scheduler.

    >>> from coinhaze.solve.pool import WorkerCluster
    >>> with WorkerCluster(2) as cluster:  # doctest: +SKIP
    ...     coinhaze.score(ledger, workers=cluster)
    """

    def __init__(
        self,
        workers: int | str,
        *,
        tls_ca: str | Path | None = None,
        tls_cert: str | Path | None = None,
        tls_key: str | Path | None = None,
    ) -> None:
        number = _number_of(workers)
        files = _tls_files(tls_ca, tls_cert, tls_key)
        if number is None:
            _check_address(str(workers), encrypted=files is not None)
        dask = distributed()
        self.local = number is not None
        self.folder = Path(tempfile.mkdtemp(prefix="coinhaze-"))  # nobody else can open it
        self._probe: Probe | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self._restarts = self._seen = 0
        self._alone_since: float | None = None
        self._client: Any = None
        self._scheduler: Any = None
        self._loggers = _silenced()
        try:
            if number is not None:
                self._start(dask, number, files or _own_certificate(self.folder))
            else:
                self._connect(dask, str(workers), files)
        except BaseException:
            self.close()
            raise

    def _start(self, dask: Any, number: int, files: tuple[Path, Path, Path]) -> None:
        """Start a scheduler in this process, and others that work for it."""
        import dask.config as settings

        security = security_of(*files)
        own = {"distributed.scheduler.http.routes": [], "temporary-directory": str(self.folder)}
        with settings.set(own):
            self._scheduler = dask.LocalCluster(
                n_workers=0,
                host="127.0.0.1",
                protocol="tls://",
                dashboard_address="127.0.0.1:0",
                security=security,
                silence_logs=logging.CRITICAL,
            )
        self.address: str = self._scheduler.scheduler_address
        self._files = files
        self._client = dask.Client(
            self.address, security=security, set_as_default=False, direct_to_workers=True
        )
        self._processes = [self._process(k) for k in range(number)]

    def _process(self, k: int) -> subprocess.Popen[bytes]:
        """Start one process; an interrupt of this one does not reach it, its end does."""
        words = (self.address, f"{k}-{uuid.uuid4().hex[:8]}", self.folder, *self._files)
        with open(self.folder / f"worker{k}.log", "wb") as said:
            return subprocess.Popen(
                python_command("-c", f"import {main.__module__} as w; w.main()", *map(str, words)),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )

    def _connect(self, dask: Any, address: str, files: tuple[Path, Path, Path] | None) -> None:
        """Connect to a scheduler, and see that its workers have this version."""
        self.address = address
        security = None if files is None else security_of(*files)
        try:
            self._client = dask.Client(
                address, security=security, timeout=CONNECTING, set_as_default=False
            )
        except (OSError, TimeoutError) as error:
            why = str(error).splitlines()[0] if str(error) else "no answer"
            raise SourceUnreachable(
                f"{address}: no scheduler of dask answers there ({why}): start one, or check the "
                f"address and the TLS files; {SAFELY}"
            ) from None
        self.await_workers()
        check_versions(self._client.run(version, "coinhaze", on_error="return"))

    def await_workers(self) -> None:
        """Wait for the first worker."""
        until = time.monotonic() + STARTING
        while not self.count:
            if time.monotonic() > until:
                raise SourceUnreachable(
                    f"{self.address}: the scheduler has no worker: start some, such as "
                    f"dask worker {self.address}; {SAFELY}"
                )
            time.sleep(0.1)

    @property
    def count(self) -> int:
        """How many pieces can be solved at once: processes of this machine, or threads of all."""
        self._seen = len(self._processes) if self.local else sum(self._threads().values())
        return self._seen

    def _threads(self) -> dict[str, int]:
        """Ask the scheduler for the threads of each worker."""
        try:
            found: dict[str, int] = self._client.sync(
                self._client.scheduler.ncores, callback_timeout=CONNECTING
            )
        except (OSError, TimeoutError):
            raise self.gone() from None
        return found

    def in_words(self) -> str:
        """Say how many workers there are, as last heard."""
        count = self._seen
        return f"{count} worker" + ("" if count == 1 else "s")

    @contextmanager
    def open(self, work: Any, pieces: int, budget: Budget) -> Iterator[ClusterWorkers]:
        """Open the workers for one work; this is a backend."""
        self._restarts = 0
        self.restart()
        place = Path(tempfile.mkdtemp(dir=self.folder))  # also of parts that nobody will fetch
        try:
            self._write(work, place / WORK)
            workers = ClusterWorkers(self, place / WORK, work, pieces, budget)
            try:
                yield workers
            finally:
                workers.close()
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _write(self, work: Any, path: Path) -> None:
        try:
            write_packed(work if self.local else (work, self._made_probe()), path)
        except OSError as error:
            raise ResourceError(
                f"{path}: the chain cannot be written for workers: {error.strerror}; make room, "
                "or set TMPDIR to a folder that has some"
            ) from None

    def _made_probe(self) -> Probe:
        if self._probe is None:
            self._probe = make_probe()
        return self._probe

    def submit(self, name: str, packed: Any, piece: Any) -> Any:
        """Begin a piece."""
        try:
            return self._client.submit(solve_piece, name, packed, piece, pure=False)
        except OSError:
            raise self.gone() from None

    def send(self, path: Path) -> Any:
        """Send a packed work to every worker, unless they see it themselves."""
        if self.local:
            return str(path)
        try:
            return self._client.scatter(packed_bytes(path), broadcast=True, hash=False)
        except (OSError, TimeoutError):
            raise self.gone() from None

    def received(self, part: Any) -> Any:
        """Take a part, which processes of this machine leave in a file."""
        if not self.local:
            return part
        found = map_packed(part)
        part.unlink()
        return found

    def look_after(self) -> None:
        """See that there is somebody to solve pieces."""
        if self._client.status != "running":
            raise self.gone()
        self.restart()
        if not self.local:
            self._notice_none()

    def restart(self) -> None:
        """Start processes of this machine again that have ended."""
        for k, process in enumerate(self._processes):
            if process.poll() is None:
                continue
            self._restarts += 1
            if self._restarts > RESTARTS * len(self._processes):
                raise ResourceError(
                    f"workers end again and again, the last {_ended(process)}"
                    f"{self._last_words(k)}: give them more memory, or take fewer of them"
                )
            _hang_up(process)
            self._processes[k] = self._process(k)

    def _notice_none(self) -> None:
        if self.count:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since > STARTING:
            raise SourceUnreachable(
                f"{self.address}: no worker is left: start some again, and repeat the command"
            )

    def gone(self) -> SourceUnreachable:
        """Say that the scheduler is gone."""
        return SourceUnreachable(
            f"{self.address}: the scheduler is gone: start it again, and repeat the command"
        )

    def _last_words(self, k: int) -> str:
        lines = (self.folder / f"worker{k}.log").read_text("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f" ({said[-1][:200]})" if said else ""

    def forget(self, name: str) -> None:
        """Let workers of other machines, which go on when this is closed, free a work."""
        if not self.local and self._client.status == "running":
            with suppress(Exception):  # they may be gone, and so is the work then
                self._client.run(close_work, name, on_error="ignore")

    def close(self) -> None:
        """End the processes of this machine; let go of those of others."""
        for process in self._processes:
            _hang_up(process)
        for closing in (self._client, self._scheduler):
            if closing is not None:
                with suppress(Exception):  # nothing can be done about it, and nothing depends on it
                    closing.close(timeout=2)
        for process in self._processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        for logger, level in self._loggers:
            logger.setLevel(level)

    def __enter__(self) -> WorkerCluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class ClusterWorkers:
    """The workers of a cluster, with one work open."""

    def __init__(
        self, cluster: WorkerCluster, path: Path, work: Any, pieces: int, budget: Budget
    ) -> None:
        self.cluster = cluster
        self.path = path
        self.count = max(1, min(cluster.count, budget.threads or cluster.count, pieces))
        if cluster.local:
            budget.fits(self.count * work.room_bytes, f"tiles of {self.count} workers")
        self.room_bytes = work.room_bytes
        self.maximum = self.count * work.waiting
        self.name = path.parent.name
        self._packed: Any = None
        self._sent = 0

    def map(self, pieces: Iterable[Any]) -> Iterator[Any]:
        """Give the parts in the order of their pieces, few of them begun ahead of the first."""
        if self._packed is None:
            self._send()
        begun: deque[tuple[Any, Any]] = deque()
        try:
            for piece in pieces:
                if len(begun) == self.maximum:
                    yield self._next(begun)
                begun.append((piece, self.cluster.submit(self.name, self._packed, piece)))
            while begun:
                yield self._next(begun)
        finally:
            for _, future in begun:
                with suppress(Exception):
                    future.cancel()

    def _send(self) -> None:
        self._sent += 1
        self._packed = self.cluster.send(self.path)

    def _next(self, begun: deque[tuple[Any, Any]]) -> Any:
        """Give the first part that was begun, however often workers are lost on the way."""
        self.cluster.restart()
        while True:
            future = begun[0][1]
            if not self._done(future):
                continue
            if future.status == "cancelled":
                self._begin_again(begun)
                continue
            try:
                part = self._checked(partial(future.result, FETCHING))
            except TimeoutError:  # lost with the worker that had it, and begun again
                self.cluster.look_after()
                continue
            begun.popleft()
            return self.cluster.received(part)

    def _done(self, future: Any) -> bool:
        try:
            future.exception(timeout=LOOKING)
        except TimeoutError:
            self.cluster.look_after()
            return False
        except distributed().CancelledError:
            return True  # its status tells
        return True

    def _begin_again(self, begun: deque[tuple[Any, Any]]) -> None:
        """Send the work again where it was lost with all that held it, and begin its pieces."""
        self.cluster.look_after()
        if self.cluster.local or self._sent > REPUBLISHED:
            raise self.cluster.gone()
        self.cluster.await_workers()
        self._send()
        for k, (piece, _) in enumerate(begun):
            begun[k] = (piece, self.cluster.submit(self.name, self._packed, piece))

    def _checked(self, result: Callable[[], Any]) -> Any:
        dask = distributed()
        try:
            return result()
        except OtherBits as error:
            raise UsageError(
                f"worker {error} gives other last digits than this machine, for its CPU is of "
                "another kind or its libraries are others: use machines of one kind, with the "
                "same versions"
            ) from None
        except (CoinhazeError, TimeoutError):
            raise
        except MemoryError as error:
            raise ResourceError(f"a worker is out of memory ({error}): {self._cure()}") from None
        except dask.KilledWorker as error:
            raise ResourceError(
                f"a piece was begun {self._failures(error)} times, and its worker ended each time, "
                f"most likely for want of memory: {self._cure()}"
            ) from None
        except (dask.CancelledError, OSError):
            self.cluster.look_after()
            raise self.cluster.gone() from None

    @staticmethod
    def _failures(error: Any) -> int:
        return int(getattr(error, "allowed_failures", 0)) + 1

    def _cure(self) -> str:
        need = f" (a piece needs {in_words(self.room_bytes)})" if self.room_bytes else ""
        return f"give workers more memory{need}, or take fewer of them on a machine"

    def close(self) -> None:
        """Let go of the work."""
        self._packed = None
        self.cluster.forget(self.name)


def refuse_threads(workers: object, threads: int | None) -> None:
    """Refuse two statements of who solves."""
    if workers is not None and threads is not None:
        raise UsageError("workers take the place of threads: leave one of them out")


@contextmanager
def opened(
    workers: int | str | WorkerCluster | None,
    *,
    tls_ca: str | Path | None = None,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
) -> Iterator[WorkerCluster | None]:
    """Open the workers that options name, if any; those that are open already stay so."""
    files = (tls_ca, tls_cert, tls_key)
    if workers is None or isinstance(workers, WorkerCluster):
        if any(file is not None for file in files):
            raise UsageError("TLS files are for the connection to workers: name workers, or none")
        yield workers
        return
    with WorkerCluster(workers, tls_ca=tls_ca, tls_cert=tls_cert, tls_key=tls_key) as cluster:
        yield cluster


def check_versions(found: Mapping[str, str | Exception]) -> None:
    """Refuse workers that have another version of coinhaze, or none."""
    ours = version("coinhaze")
    for worker, theirs in sorted(found.items()):
        if theirs != ours:
            has = "no coinhaze" if isinstance(theirs, Exception) else f"coinhaze {theirs}"
            raise UsageError(
                f"worker {worker} has {has}, not {ours}: install the same version on every "
                "machine of the cluster"
            )


def _number_of(workers: int | str) -> int | None:
    """Give how many processes of this machine are requested; None for an address."""
    if isinstance(workers, str) and not workers.strip().lstrip("-").isdecimal():
        return None
    number = int(workers)
    if number < 1:
        raise UsageError(f"workers are 1 or more, or an address, not {workers}")
    return number


def _check_address(address: str, *, encrypted: bool) -> None:
    scheme, _, rest = address.partition("://")
    host, _, port = rest.rpartition(":")
    if scheme not in ("tcp", "tls") or not host or not port.isdecimal():
        raise UsageError(
            f"workers is a number or a scheduler's address, as tcp://host:8786 is: not {address!r}"
        )
    if (scheme == "tls") != encrypted:
        needs = "needs" if scheme == "tls" else "has no use for"
        raise UsageError(f"{address} {needs} --tls-ca, --tls-cert and --tls-key")


def _tls_files(
    ca: str | Path | None, cert: str | Path | None, key: str | Path | None
) -> tuple[Path, Path, Path] | None:
    """Give all three files, or None if there is none."""
    if ca is None and cert is None and key is None:
        return None
    if ca is None or cert is None or key is None:
        raise UsageError("TLS takes three files: --tls-ca, --tls-cert and --tls-key")
    files = Path(ca).absolute(), Path(cert).absolute(), Path(key).absolute()
    for file in files:
        if not os.access(file, os.R_OK):
            raise InputError(
                f"{file}: cannot be read: name the CA's, your certificate's, your key's"
            )
    return files


def _own_certificate(folder: Path) -> tuple[Path, Path, Path]:
    """Make a certificate that is its own authority, for processes of this machine and user."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "30"]
    command += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=coinhaze"]
    try:
        subprocess.run(
            [*command, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise UsageError(
            f"openssl, which makes the certificate that keeps other users out, does not run "
            f"({error}): install it, or give --tls-ca, --tls-cert and --tls-key"
        ) from None
    key.chmod(0o600)
    return cert, cert, key


def _hang_up(process: subprocess.Popen[bytes]) -> None:
    """Let a process end, if it has not yet."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()


def _ended(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"


def _silenced() -> list[tuple[logging.Logger, int]]:
    """Let dask say nothing, since every fault is one error here; give what it said before."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    found = [(logging.getLogger(name), logging.getLogger(name).level) for name in names]
    for logger, _ in found:
        logger.setLevel(logging.CRITICAL)
    return found
