"""The pages: templates filled with the models the API gives."""

from __future__ import annotations

from coinhaze.web.pages.render import render
from coinhaze.web.pages.routes import routes
from coinhaze.web.problems import Refused
from coinhaze.web.schema import Job
from coinhaze.web.security.codes import ENTER, LOGIN

__all__ = ["problem_page", "routes", "working_page"]

TITLES = {401: "This page needs its key", 404: "Nothing found", 429: "Too much at once"}


def problem_page(refused: Refused) -> bytes:
    """Return a refusal; the search stays. Who is not in yet is asked for the token."""
    title = TITLES.get(refused.status, "That did not work")
    template = "enter.html" if refused.status == 401 else "problem.html"
    return render(template, title, problem=refused.problem, enter=ENTER, login=LOGIN).encode()


def working_page(job: Job) -> bytes:
    """Return the page of work that takes longer; it asks again by itself."""
    return render("jobs.html", "Still working", refresh=2, waiting=job, jobs=()).encode()
