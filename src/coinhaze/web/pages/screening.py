"""The page of a screening: a form, and the statement that was made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields

from coinhaze.explore.describe import TIMES, VIEWS
from coinhaze.explore.models import LedgerCard, ListCard, StatementAnswer
from coinhaze.explore.query import ScreenQuery, screen_link
from coinhaze.screening.report import HOW_SURE
from coinhaze.web.pages.render import render
from coinhaze.web.schema import Problem

PASTED = ""  # what the choice of a list says where names are pasted
DOWNLOADS = (("html", "HTML, to print"), ("csv", "CSV"), ("json", "JSON"))


@dataclass(frozen=True)
class ScreenForm:
    """What was chosen and pasted."""

    list: str = PASTED
    listed: str = ""
    nodes: str = ""
    view: str = ""
    time: str = ""
    limit: str = ""
    dust: str = ""
    case: str = ""
    analyst: str = ""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> ScreenForm:
        """Read what was posted; a pasted list stays as it is, since its digest is stated."""
        texts = {f.name: given.get(f.name, "") for f in fields(cls)}
        return cls(**{k: v if k == "listed" else v.strip() for k, v in texts.items()})

    @classmethod
    def of(cls, query: ScreenQuery) -> ScreenForm:
        """Fill it as a statement was requested."""
        return cls(**{k: str(v) for k, v in query.model_dump(exclude_none=True).items()})

    def given(self) -> dict[str, str]:
        """Give what was filled in."""
        return {key: value for key, value in asdict(self).items() if value}


def screen_page(
    card: LedgerCard,
    lists: Sequence[ListCard],
    form: ScreenForm,
    answer: StatementAnswer | Problem | None,
) -> str:
    """Return the form as it was filled, and the statement or what is wrong."""
    statement = answer if isinstance(answer, StatementAnswer) else None
    parts = () if statement is None else statement.sections
    first = [part for part in parts if not part.annex or part.title == HOW_SURE]
    action = screen_link(card.id)
    return render(
        "screen.html",
        "Screening" if statement is None else statement.title,
        card=card,
        here=action if answer is None else "",
        action=action,
        form=form,
        lists=[(each.id, each.name, f"{each.name} ({each.entries:,})") for each in lists],
        chosen=form.list.partition("@")[0],
        views=_choices(card.views, VIEWS),
        # Exposure is in the order of time unless another is chosen.
        times=_choices(tuple(reversed(card.times)), TIMES),
        problem=answer if isinstance(answer, Problem) else None,
        answer=statement,
        first=first,
        annex=[part for part in parts if part not in first],
        downloads=DOWNLOADS,
    )


def _choices(keys: Sequence[str], words: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Give for each choice what it sends, its key and its words; the first is what is meant."""
    if len(keys) < 2:
        return []
    return [("" if k == 0 else key, key, words[key]) for k, key in enumerate(keys)]
