"""Long work: how far it is, how long it takes, a way to stop it, and where it leads."""

from __future__ import annotations

from collections.abc import Sequence

from coinhaze.report.page import Html, escape
from coinhaze.web.pages.say import tag
from coinhaze.web.schema import Job

LIVE = ("queued", "running")
HEADING = '<div class="id"><h1>Jobs</h1></div>'


def jobs_page(jobs: Sequence[Job]) -> Html:
    """Give the main part of the page of all jobs."""
    if not jobs:
        body = tag("p", "Nothing is being worked out. What takes more than 5 seconds comes here.")
        return Html(
            f'<div class="id"><h1>Jobs</h1></div><section class="card sec">{body}</section>'
        )
    cards = "".join(job_card(job) for job in jobs)
    return Html(f'{HEADING}<div id="jobs">{cards}</div>')


def waiting_page(job: Job) -> Html:
    """Give the main part of a page that is still being worked out."""
    return Html(
        '<div class="id"><h1>Still working</h1><span class="meta">this page comes by itself; you '
        f'may leave it</span></div><div id="jobs" data-then-reload="">{job_card(job)}</div>'
    )


def job_card(job: Job) -> Html:
    """Draw one job; the script keeps it up to date."""
    share = "" if job.share is None else f' value="{job.share:.4f}"'
    live = job.state in LIVE
    bar = f'<progress max="1"{share} aria-label="{escape(job.words)}"></progress>' if live else ""
    cancel = ""
    if live:
        cancel = (
            f'<form method="post" action="/jobs/{escape(job.id)}/cancel" class="cancel">'
            '<button class="btn" type="submit">Cancel</button></form>'
        )
    result = ""
    if job.state == "done" and job.page:
        result = tag("a", "Open", kind="btn", href=job.page)
    trouble = ""
    if job.error is not None:
        trouble = f'<p>{escape(job.error.message)}</p><p class="sub">{escape(job.error.fix)}</p>'
    so_far = f'<p class="sub">{escape(job.so_far)}</p>' if job.so_far else ""
    return Html(
        f'<section class="card sec job" id="{escape(job.id)}" data-job="{escape(job.id)}" '
        f'data-state="{job.state}"><div class="hd"><h2>{escape(job.words)}</h2><span class="sub '
        f'job-state">{escape(job_words(job))}</span><span class="grow"></span>{cancel}{result}'
        f"</div>{bar}{so_far}{trouble}</section>"
    )


def job_words(job: Job) -> str:
    """Say how far a job is.

    >>> job_words(Job(id="1", ledger="a", words="w", state="running", share=0.5, seconds=65,
    ...               seconds_left=65.0, page="/"))
    '50 % done · about 1 min 5 s left'
    """
    if job.state != "running":
        return job.state
    done = "running" if job.share is None else f"{100 * job.share:.0f} % done"
    if job.seconds_left is None:
        return f"{done} · {_span(job.seconds)} so far"
    return f"{done} · about {_span(job.seconds_left)} left"


def _span(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
