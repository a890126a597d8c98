"""Credentials for a node: from a cookie file or the environment, never from argv, never shown."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from coinhaze.errors import InputError, UsageError, keep_secret

USER, PASSWORD, COOKIE = "COINHAZE_RPC_USER", "COINHAZE_RPC_PASSWORD", "COINHAZE_RPC_COOKIE"


@dataclass(frozen=True)
class Credentials:
    """Credentials for a node, never shown. Monerod's `--rpc-login` needs `digest`."""

    user: str = field(repr=False)
    password: str = field(repr=False)
    digest: bool = False
    cookie: Path | None = field(default=None, compare=False)  # where they were read

    def __post_init__(self) -> None:
        pair = f"{self.user}:{self.password}"
        keep_secret(self.password, pair, b64encode(pair.encode()).decode())

    @classmethod
    def from_cookie(cls, path: Path) -> Credentials:
        """Read the file a node writes when it starts: `user:password` on one line."""
        try:
            with open(path, encoding="utf-8") as file:
                user, colon, password = file.read(4096).strip().partition(":")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise InputError(f"{path}: the node's cookie cannot be read: {reason}") from None
        if not (user and colon and password):
            raise InputError(f"{path}: not a node's cookie: it should read user:password")
        return cls(user, password, cookie=path)

    def renewed(self) -> Credentials | None:
        """Read the cookie file again: a restarted node writes a new one. None if it is unchanged.

        Also None where the credentials came from elsewhere, or the file is gone.
        """
        if self.cookie is None:
            return None
        try:
            now = replace(Credentials.from_cookie(self.cookie), digest=self.digest)
        except InputError:
            return None
        return None if now == self else now

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Credentials | None:
        """Use the cookie file, or else the user and password, that the environment names."""
        given = os.environ if environment is None else environment
        cookie, user, password = (given.get(name) for name in (COOKIE, USER, PASSWORD))
        if cookie and (user or password):
            raise UsageError(f"set {COOKIE}, or {USER} and {PASSWORD}, not both")
        if cookie:
            return cls.from_cookie(Path(cookie))
        if bool(user) != bool(password):
            raise UsageError(f"{USER} and {PASSWORD} go together: one of them is not set")
        return cls(user, password) if user and password else None
