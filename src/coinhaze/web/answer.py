"""An answer: a model, the bytes sent for it, and the tag both go by; kept while there is room.

Bytes are a tenth of what a model takes in memory, so that far more of them are remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from coinhaze.web.asks import Model
from coinhaze.web.remembered import Remembered

M = TypeVar("M", bound=Model)
BODIES, PAGES, MODELS = 16 << 20, 16 << 20, 2 << 20  # bytes as sent


@dataclass(frozen=True, eq=False)
class Store:
    """Answers of a server by what was asked, pages and models by tag."""

    bodies: Remembered[Answer[Any]] = field(default_factory=lambda: Remembered(BODIES))
    pages: Remembered[bytes] = field(default_factory=lambda: Remembered(PAGES))
    models: Remembered[Any] = field(default_factory=lambda: Remembered(MODELS))

    def made(self, model: M, tag: str, key: Hashable) -> Answer[M]:
        """Make an answer that is remembered."""
        body = model.model_dump_json().encode()
        answer = Answer(type(model), body, tag, self)
        self.models.put(tag, model, len(body))
        self.bodies.put(key, answer, len(body))
        return answer


@dataclass(frozen=True, eq=False)
class Answer(Generic[M]):
    """What was asked for, as bytes and as a model."""

    kind: type[M]
    body: bytes
    tag: str  # empty where it may not be remembered by anybody
    store: Store
    fleeting: M | None = None  # the model, where it is not in the store

    @classmethod
    def once_only(cls, model: M, store: Store) -> Answer[M]:
        """Make an answer that nobody remembers."""
        return cls(type(model), model.model_dump_json().encode(), "", store, model)

    @property
    def model(self) -> M:
        """The model; read from its bytes again where it was forgotten."""
        if self.fleeting is not None:
            return self.fleeting
        found: M | None = self.store.models.get(self.tag)
        if found is None:
            found = self.kind.model_validate_json(self.body)
            self.store.models.put(self.tag, found, len(self.body))
        return found

    def once(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """Make a page of it, unless that is remembered."""
        if not self.tag:
            return make()
        page = self.store.pages.get((self.tag, key))
        if page is None:
            page = make()
            self.store.pages.put((self.tag, key), page, len(page))
        return page
