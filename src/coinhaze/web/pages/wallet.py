"""A wallet's page: paste coins and exposed addresses, see what goes with what; not in the link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coinhaze.explore.describe import count_words, reading_words, share_words, short_id
from coinhaze.explore.links import ledger_link
from coinhaze.explore.models import (
    LedgerCard,
    Together,
    WalletAnswer,
)
from coinhaze.report.page import Html, escape
from coinhaze.web.pages.say import amount, bits_text, panel, tag, together
from coinhaze.web.pages.wallet_groups import coin_names, groups_section, share_or_dash
from coinhaze.web.schema import Problem

OF_COINS = "Wallets are of coins, and this ledger is of accounts: look up an account instead."


@dataclass(frozen=True)
class WalletForm:
    """What was pasted."""

    coins: str = ""
    exposed: str = ""
    amount: str = ""


def wallet_page(card: LedgerCard, form: WalletForm, answer: WalletAnswer | Problem | None) -> Html:
    """Give the main part: the form as it was filled, and the answer; accounts have no wallets."""
    if card.kind == "accounts":
        return together([tag("h1", "Wallet"), panel(card.name, tag("p", OF_COINS, id="of-coins"))])
    result: object = ""
    if isinstance(answer, Problem):
        result = Html(
            f'<section class="card sec state" role="alert"><h2>That could not be weighed</h2>'
            f"<p>{escape(answer.message)}</p><p>{escape(answer.fix)}</p></section>"
        )
    elif answer is not None:
        result = _answer(answer)
    return together([_form(card, form), result])


def _form(card: LedgerCard, form: WalletForm) -> Html:
    unit = f"in the smallest unit of {card.unit}" if card.unit else "in the ledger's smallest unit"
    return Html(
        f'<div class="id"><h1>Wallet</h1><span class="meta">coins you hold in {escape(card.name)}; '
        "they stay in this page, never in its address</span></div>"
        f'<form class="card sec wallet" method="post" action="{ledger_link(card.id)}/wallet" '
        'id="wallet-form"><div class="row2">'
        f"{_area('coins', 'Coins, one a line', form.coins, 'txid:0', True)}"
        f"{_area('exposed', 'Addresses others know are yours', form.exposed, 'address', False)}"
        '</div><div class="row"><label class="field-label" for="amount">Amount to spend, '
        f'{escape(unit)} (may stay empty)</label><input type="text" inputmode="numeric" '
        f'pattern="[0-9]*" id="amount" name="amount" value="{escape(form.amount)}" maxlength="80">'
        '<button class="btn main" type="submit">Weigh</button></div></form>'
    )


def _area(name: str, words: str, value: str, example: str, required: bool) -> str:
    need = " required" if required else ""
    return (
        f'<div><label class="field-label" for="{name}">{escape(words)}</label>'
        f'<textarea id="{name}" name="{name}" rows="6" spellcheck="false" autocomplete="off" '
        f'placeholder="{example}"{need}>{escape(value)}</textarea>'
        f'<label class="btn js file" for="{name}-file">Load a file</label>'
        f'<input class="vh" type="file" id="{name}-file" data-into="{name}" '
        'accept=".txt,.csv,text/plain,text/csv"></div>'
    )


def _read(answer: WalletAnswer) -> str:
    """Say how all figures of a wallet are read."""
    used = answer.settings
    read = reading_words(used.view, used.time, used.policy)
    return f"Bits and exposure: {read}. Amounts are those of the coins, none is assumed."


def _answer(answer: WalletAnswer) -> Html:
    parts = [
        _coins(answer),
        groups_section(answer),
        _suggestion(answer),
        _lists("What this is not", answer.is_not),
        _lists("What would change it", answer.would_change),
    ]
    notes = [tag("p", note, kind="note") for note in answer.notes]
    return Html(f'<div id="wallet-answer">{together(notes)}{together(parts)}</div>')


def _coins(answer: WalletAnswer) -> Html:
    rows = "".join(
        f"<tr><td>{_name(coin.name, coin.href)}{_label(coin.label)}</td>"
        f'<td class="num">{amount(coin.amount)}</td><td class="num">{bits_text(coin)}</td>'
        f'<td class="num">{share_or_dash(coin.exposure)}</td></tr>'
        for coin in answer.coins
    )
    return Html(
        '<section class="card sec"><div class="hd"><h2>Your coins</h2><span class="sub">'
        f"{count_words(len(answer.coins), 'coin')}, {amount(answer.total)}</span></div>"
        f'<div class="wide"><table><caption>{escape(_read(answer))}</caption><thead><tr>'
        '<th>Coin</th><th class="num">Amount</th><th '
        'class="num">Bits</th><th class="num">Exposure</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _suggestion(answer: WalletAnswer) -> Html:
    found = answer.suggestion
    if found is None:
        return Html("")
    said = (
        tag("p", "No set of coins fits.")
        if found.spend is None
        else Html(
            f'<p class="say">Spend {coin_names(found.spend.coins)}: {_together(found.spend)}.</p>'
        )
    )
    instead = "".join(
        f"<li>{coin_names(option.coins)}: {_together(option)}</li>" for option in found.instead
    )
    rest = f'<h3>Instead</h3><ul class="plain">{instead}</ul>' if instead else ""
    why = "".join(tag("li", line) for line in found.why)
    return Html(
        f'<section class="card sec" id="suggestion"><div class="hd"><h2>For {amount(found.amount)}'
        f"</h2></div>{said}<h3>Why</h3><ul>{why}</ul>{rest}</section>"
    )


def _together(spend: Together) -> Html:
    exposure = "" if spend.exposure is None else f", exposure {share_words(spend.exposure)}"
    return Html(f"{amount(spend.amount)}, {bits_text(spend)} bits{exposure}")


def _lists(title: str, lines: Sequence[str]) -> Html:
    if not lines:
        return Html("")
    items = "".join(tag("li", line) for line in lines)
    return Html(f'<section class="card sec"><h2>{escape(title)}</h2><ul>{items}</ul></section>')


def _name(name: str, href: str | None) -> Html:
    kind = "a" if href else "span"
    return tag(kind, short_id(name), kind="mono", title=name, href=href)


def _label(label: str | None) -> Html:
    return tag("span", tag("bdi", label), kind="sub") if label else Html("")
