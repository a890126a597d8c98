"""The pages: HTML made of the models the API gives."""

from __future__ import annotations

from coinhaze.web.pages import search
from coinhaze.web.pages.enter import enter_page
from coinhaze.web.pages.frame import whole_page
from coinhaze.web.pages.jobs import waiting_page
from coinhaze.web.pages.routes import routes
from coinhaze.web.problems import Refused
from coinhaze.web.schema import Job

__all__ = ["problem_page", "routes", "working_page"]

TITLES = {401: "This page needs its key", 404: "Nothing found", 429: "Too much at once"}


def problem_page(refused: Refused) -> bytes:
    """Draw a refusal; the search stays."""
    title = TITLES.get(refused.status, "That did not work")
    if refused.status == 401:
        return whole_page(title, enter_page(refused.problem, title=title)).encode()
    return whole_page(title, search.problem_page(refused.problem, title=title)).encode()


def working_page(job: Job) -> bytes:
    """Draw work that takes longer; it asks again by itself."""
    return whole_page("Still working", waiting_page(job), refresh=2).encode()
