"""How much the server takes on: sizes, counts, times. One place, told in docs/serve.md."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]


@dataclass(frozen=True)
class Limits:
    """What one server allows; times in seconds, sizes in bytes."""

    body: int = 2 << 20
    headers: int = 8 << 10
    concurrent: int = 16
    waiting: int = 64
    # Open at once. One more closes the one that has been open for longest without the token.
    connections: int = 200
    code_within: float = 600.0  # a printed address can be opened, once
    headers_within: float = 10.0  # a request's head, or else the connection is closed
    body_within: float = 30.0
    sent_within: float = 30.0  # each piece of an answer that its reader must take
    requests: float = 1_000.0  # a second, from one address ...
    changes: float = 20.0  # ... of them what changes something or takes work: POST and DELETE
    bad_tokens: float = 1.0  # a second: nobody guesses 256 bits, but nobody shall try


class RateLimit:
    """Tells whether something comes too often: `rate` a second, and some at once.

    >>> pace = RateLimit(1.0, at_once=2, clock=lambda: 0.0)
    >>> [pace.allows("a") for _ in range(3)], pace.allows("b")
    ([True, True, False], True)
    """

    def __init__(self, rate: float, *, at_once: float, clock: Clock = time.monotonic) -> None:
        self._rate, self._at_once = rate, at_once
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def allows(self, who: str) -> bool:
        """Count one more, unless it is one too many."""
        now = self._clock()
        left, since = self._left.pop(who, (self._at_once, now))
        left = min(self._at_once, left + (now - since) * self._rate)
        allowed = left >= 1
        self._left[who] = (left - 1 if allowed else left, now)
        if len(self._left) > 10_000:  # the one not heard of for longest
            del self._left[next(iter(self._left))]
        return allowed
