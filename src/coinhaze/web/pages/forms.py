"""The pages with forms whose answers are not addresses: a wallet is weighed, a list screened for.

What is pasted is nobody else's business, so it is posted, and an address names at most the job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from coinhaze.errors import CoinhazeError
from coinhaze.explore.describe import TIMES, VIEWS
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.models import (
    LedgerCard,
    ListCard,
    StatementAnswer,
    StatementFile,
    WalletAnswer,
)
from coinhaze.explore.query import (
    ScreenQuery,
    StatementQuery,
    WalletQuery,
    screen_link,
    wallet_link,
)
from coinhaze.formats.lists.coins import parse_coin_list
from coinhaze.screening.report import HOW_SURE
from coinhaze.web import replies
from coinhaze.web.answers import Answer, Answers
from coinhaze.web.pages.coin_sets import WalletForm, wallet_page
from coinhaze.web.pages.render import render
from coinhaze.web.pages.settings import form_of, validated
from coinhaze.web.replies import Served
from coinhaze.web.schema import Problem, Refused, StillWorking, refusal_of

router = APIRouter(include_in_schema=False)


@router.get("/l/{ledger}/wallet")
async def wallet(answers: Served, request: Request, ledger: str) -> Response:
    """Show an empty form of a wallet, or what a job has found about one."""
    card = answers.card(ledger)
    name = request.query_params.get("job")
    if not name:
        return replies.page(wallet_page(card, WalletForm(), None))
    found = _found(answers, name)
    if isinstance(found, Problem):
        return replies.page(wallet_page(card, WalletForm(), found), 422)
    if not isinstance(found, WalletAnswer) or found.ledger != card.id:
        raise Refused("unknown-job", f"job {name!r} weighed no wallet here", fix="weigh it again")
    coins = "\n".join(coin.name for coin in found.coins)
    return replies.page(wallet_page(card, WalletForm(coins=coins), found))


def _found(answers: Answers, name: str) -> object:
    """Give what a job has found, or what it failed of; it is shown as working until it is done."""
    job = answers.jobs.find(name)
    if job.state in ("queued", "running"):
        raise StillWorking(job)
    if job.error is not None:
        return job.error
    result = answers.jobs.result(name)
    return result.model if isinstance(result, Answer) else None


@router.post("/l/{ledger}/wallet")
async def weigh(answers: Served, request: Request, ledger: str) -> Response:
    """Weigh the wallet that was pasted."""
    card = answers.card(ledger)
    given = await form_of(request)
    form = WalletForm(**{f.name: given.get(f.name, "").strip() for f in fields(WalletForm)})
    try:
        coins = {} if card.source is None else {"coins": await _walked(answers, ledger, form)}
        ask = validated(
            WalletQuery, {**asdict(form), **coins, "amount": _amount(form.amount, card) or None}
        )
    except Refused as refused:
        return replies.page(wallet_page(card, form, refused.problem), refused.status)
    try:
        answer = (await answers.ask(ledger, Explorer.wallet, ask)).model
    except Refused as refused:
        return replies.page(wallet_page(card, form, refused.problem), refused.status)
    except StillWorking as working:  # its address shows the answer when it is there
        return RedirectResponse(wallet_link(ledger, job=working.job.id), 303)
    return replies.page(wallet_page(card, form, answer))


async def _walked(answers: Answers, ledger: str, form: WalletForm) -> str:
    """Walk a wallet back; give its coins one per line, since only those are known to be unspent."""
    try:
        listed = parse_coin_list(form.coins.encode(), where="coins")
    except CoinhazeError as error:
        raise refusal_of(error) from None
    found = (await answers.walk(ledger, listed, page=wallet_link(ledger), unspent=True)).model
    return "\n".join(coin.name for coin in found.coins)


@router.get("/l/{ledger}/screen")
async def screening(answers: Served, request: Request, ledger: str) -> Response:
    """Show the form of a screening, or the statement that a job has made."""
    card, lists = answers.card(ledger), answers.lists().lists
    name = request.query_params.get("job")
    if name:
        return _screened(answers, card, name)
    first = {"list": lists[0].id} if lists else {}
    form = ScreenForm.read({**first, **request.query_params})
    return replies.page(screen_page(card, lists, form, None))


def _screened(answers: Answers, card: LedgerCard, name: str) -> Response:
    """Show what a job that screens has found, as far as it is."""
    found, lists = _found(answers, name), answers.lists().lists
    if isinstance(found, Problem):
        return replies.page(screen_page(card, lists, ScreenForm(), found), 422)
    if isinstance(found, StatementFile):
        return replies.file(found)
    if not isinstance(found, StatementAnswer) or found.ledger != card.id:
        raise Refused("unknown-job", f"job {name!r} screened nothing here", fix="screen again")
    return replies.page(screen_page(card, lists, ScreenForm.of(found.query), found))


@router.post("/l/{ledger}/screen")
async def screen(answers: Served, request: Request, ledger: str) -> Response:
    """Screen what was pasted: show the statement, or send it as a file."""
    card, lists = answers.card(ledger), answers.lists().lists
    posted = await form_of(request)
    form = ScreenForm.read(posted)
    given = form.given() | ({"dust": _amount(form.dust, card)} if form.dust else {})
    try:
        if posted.get("kind"):
            query = validated(StatementQuery, {**given, "kind": posted["kind"]})
            return replies.file((await answers.ask(ledger, Explorer.statement_file, query)).model)
        ask = validated(ScreenQuery, given)
        answer = (await answers.ask(ledger, Explorer.statement, ask)).model
    except Refused as refused:
        return replies.page(screen_page(card, lists, form, refused.problem), refused.status)
    except StillWorking as working:  # its address shows the answer when it is there
        return RedirectResponse(screen_link(ledger, job=working.job.id), 303)
    return replies.page(screen_page(card, lists, form, answer))


def _amount(text: str, card: LedgerCard) -> str:
    """Read a plain number in the unit that the form names."""
    plain = text.replace(".", "", 1).replace("_", "").isdigit()
    return f"{text} {card.unit}" if plain and card.unit else text


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
