"""Works for tests of clusters, whose pieces do what they are told."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

from coinhaze.errors import ResourceError


@dataclass(frozen=True)
class Acting:
    """Gives its piece back after a while, but for piece 1."""

    piece_1: str = ""
    seconds: float = 0.0
    room_bytes: int = 1000
    waiting: int = 2

    def room(self) -> list[int]:
        return []

    def solve(self, piece: int, room: list[int]) -> int:
        time.sleep(self.seconds)
        if piece == 1 and self.piece_1 == "memory":
            raise MemoryError("no room for 8 GB")
        if piece == 1 and self.piece_1 == "limit":
            raise ResourceError("the lists of outcomes passed 1 GB")
        if piece == 1 and self.piece_1 == "end":
            os.kill(os.getpid(), signal.SIGKILL)
        return piece
