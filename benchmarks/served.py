"""A real server in a process of its own, as `coinhaze serve` starts it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from coinhaze.web.client import Client

STARTED_WITHIN = 300.0


@dataclass(frozen=True)
class Served:
    """A running server: its address, its token, the address it printed, and what it wrote."""

    address: str
    token: str
    first: str
    process: subprocess.Popen[bytes]
    output: Path
    errors: Path

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 80

    @property
    def bearer(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    def client(self) -> Client:
        return Client(self.address, token=self.token, patience=120)

    def written(self) -> str:
        return self.output.read_text() + self.errors.read_text()


@contextmanager
def serving(
    *arguments: str | Path,
    command: Sequence[str] = ("-m", "coinhaze", "serve"),
    python: str | Path = sys.executable,
) -> Iterator[Served]:
    """Serve ledgers at a free port until the end of the block."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "out"), Path(folder, "err")
        whole = [str(python), "-P", *command, *map(str, arguments), "--port", "0"]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        with open(output, "wb") as out, open(errors, "wb") as err:
            process = subprocess.Popen(whole, stdout=out, stderr=err, env=environment)
        try:
            address = _address(process, output, errors)
            parts = urlsplit(address)
            token = "" if "--token-file" in whole else _token(process, errors)
            yield Served(f"http://{parts.netloc}", token, address, process, output, errors)
        finally:
            process.terminate()
            process.wait(10)


def _token(process: subprocess.Popen[bytes], errors: Path) -> str:
    until = time.monotonic() + STARTED_WITHIN
    while time.monotonic() < until and process.poll() is None:
        found = re.search(r"the token, .*: (\S+)\n", errors.read_text())
        if found:
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"no token: {errors.read_text()}")


def _address(process: subprocess.Popen[bytes], output: Path, errors: Path) -> str:
    until = time.monotonic() + STARTED_WITHIN
    while time.monotonic() < until and process.poll() is None:
        text = output.read_text()
        if text.endswith("\n"):
            return text.strip()
        time.sleep(0.05)
    raise AssertionError(f"no server: {errors.read_text()}")
