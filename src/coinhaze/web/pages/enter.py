"""The page of somebody who is not in yet: where to find the token, and a field for it."""

from __future__ import annotations

from coinhaze.report.page import Html, escape
from coinhaze.web.pages.frame import static_link
from coinhaze.web.schema import Problem
from coinhaze.web.security.codes import ENTER, LOGIN


def enter_page(problem: Problem, *, title: str) -> Html:
    """Say what is missing; the script takes the code of the address, or the token of the field."""
    return Html(
        f'<div class="id"><h1>{escape(title)}</h1></div><section class="card sec state" '
        f'data-code="{escape(problem.code)}"><p>{escape(problem.message)}</p>'
        "<p>The token is where <code>coinhaze serve</code> was started: in its terminal, or in the "
        "file it was given. This browser keeps it, for this address alone, until it is closed.</p>"
        '<form class="js" id="enter-form" method="post" autocomplete="off"><div class="row">'
        '<label class="field-label" for="enter-token">Token</label>'
        '<input type="password" id="enter-token" maxlength="400" required autocomplete="off">'
        '<button class="btn main" type="submit">Open</button></div></form>'
        '<p id="enter-said" role="status"></p>'
        f'<p class="sub"><a href="{ENTER}">Log in without scripts</a>: the name is '
        f"<code>{LOGIN}</code>, the password is the token.</p></section>"
        f'<script type="module" src="{static_link("enter.js")}"></script>'
    )
