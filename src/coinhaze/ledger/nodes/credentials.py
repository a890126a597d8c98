"""Who we are to a node: from a cookie file or the environment, never from argv, never shown."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coinhaze.errors import InputError, UsageError

USER, PASSWORD, COOKIE = "COINHAZE_RPC_USER", "COINHAZE_RPC_PASSWORD", "COINHAZE_RPC_COOKIE"


@dataclass(frozen=True)
class Credentials:
    """Who we are to a node; never shown. Monerod's `--rpc-login` wants `digest`."""

    user: str = field(repr=False)
    password: str = field(repr=False)
    digest: bool = False

    @classmethod
    def from_cookie(cls, path: Path) -> Credentials:
        """Read the file a node writes at its start, `user:password` in one line."""
        try:
            with open(path, encoding="utf-8") as file:
                user, colon, password = file.read(4096).strip().partition(":")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise InputError(f"{path}: the node's cookie cannot be read: {reason}") from None
        if not (user and colon and password):
            raise InputError(f"{path}: not a node's cookie: it should read user:password")
        return cls(user, password)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Credentials | None:
        """Take the cookie file, or else the user and password, that the environment names."""
        given = os.environ if environment is None else environment
        cookie, user, password = (given.get(name) for name in (COOKIE, USER, PASSWORD))
        if cookie and (user or password):
            raise UsageError(f"set {COOKIE}, or {USER} and {PASSWORD}, not both")
        if cookie:
            return cls.from_cookie(Path(cookie))
        if bool(user) != bool(password):
            raise UsageError(f"{USER} and {PASSWORD} go together: one of them is not set")
        return cls(user, password) if user and password else None
