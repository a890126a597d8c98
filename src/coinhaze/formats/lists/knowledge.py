"""Small files an analyst keeps beside a ledger: openings, histories, lists, links, clusters."""

from __future__ import annotations

import math
import re
from pathlib import Path

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.lists.labels import names_by_line, read_labels
from coinhaze.formats.tabular.delimited import read_text
from coinhaze.ledger.checks import exact_amount
from coinhaze.ledger.links import ROUNDING, Link

_PARTED = re.compile('[,;\t]|^".*"$')  # what tables and JSON have between names, or around them
_TABLE = (
    "write the name alone; a table is a .csv whose header calls the column of the names `address`, "
    "and JSON is a .json"
)


def read_opening(path: str | Path) -> dict[str, int]:
    """Read `account,amount`: opening balances."""
    table: dict[str, int] = {}
    for where, account, amount in _rows(path, "account", "amount"):
        if account in table:
            raise LedgerError(where, "an account twice", value=account)
        table[account] = exact_amount(amount, where, field="amount")
    return table


def read_history(path: str | Path) -> dict[str, list[int]]:
    """Read `pool,value`: what entered each pool before the window."""
    history: dict[str, list[int]] = {}
    for where, pool, value in _rows(path, "pool", "value"):
        amount = exact_amount(value, where, field="value")
        history.setdefault(pool, []).append(amount)
    return history


def read_listed(path: str | Path) -> list[str]:
    """Read one name per line; `#` begins a comment, except within a name.

    Lists of addresses in CSV, JSON and YAML are read too: see labels.py.
    """
    if is_label_list(path):
        return list(read_labels(path).addresses)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text: {error}") from None
    return parse_listed(text, str(path))


def parse_listed(text: str, where: str) -> list[str]:
    """Read text as `read_listed` reads a file of names.

    >>> parse_listed("# known\\nalice  # since 2022\\nbob#2\\n", "list")
    ['alice', 'bob#2']
    """
    names = []
    for place, name in names_by_line(text, where):
        if _PARTED.search(name):
            what = "no single name: one line of a list of names is one name"
            raise LedgerError(place, what, value=name[:80], fix=_TABLE)
        names.append(name)
    if not names:
        raise InputError(f"{where}: lists no name: write one per line")
    return names


def read_links(path: str | Path) -> dict[str, Link]:
    """Read `payment,node,probability`: where payments are known to come from.

    A column `confidence` says how sure that is, the same on all lines of a payment. The
    probabilities of a payment add up to 1.
    """
    links: dict[str, Link] = {}
    first: dict[str, str] = {}
    columns = ("payment", "node", "probability")
    for where, payment, node, text, *more in _rows(path, *columns, optional=("confidence",)):
        probability = _chance(text, where, field="probability")
        sure = _chance(more[0], where, field="confidence") if more else 1.0
        link = links.setdefault(payment, Link({}, sure))
        first.setdefault(payment, where)
        if node in link.origins:
            raise LedgerError(where, f"payment {payment} is linked twice to", value=node)
        if sure != link.confidence:
            what = f"payment {payment} has another confidence than on {first[payment]}"
            raise LedgerError(where, what, value=sure)
        links[payment] = Link({**link.origins, node: probability}, sure)
    for payment, link in links.items():
        total = sum(link.origins.values())
        if abs(total - 1) > ROUNDING:
            what = f"probabilities of payment {payment} do not add up to 1"
            raise LedgerError(first[payment], what, value=total)
    return links


def read_gas_prices(path: str | Path) -> dict[str, int]:
    """Read `payment,gas_price`: what a transfer's transaction paid for gas, in whole units."""
    prices: dict[str, int] = {}
    for where, payment, price in _rows(path, "payment", "gas_price"):
        if payment in prices:
            raise LedgerError(where, "a payment twice", value=payment)
        prices[payment] = exact_amount(price, where, field="gas_price")
    return prices


def _chance(text: str, where: str, *, field: str) -> float:
    try:
        chance = float(text)
    except ValueError:
        chance = math.nan
    if not 0 <= chance <= 1:
        raise LedgerError(where, f"{field} is not between 0 and 1", value=text)
    return chance


def read_clusters(path: str | Path) -> dict[str, str]:
    """Read `address,cluster`: addresses known to be one entity; or a TagPack, by its labels."""
    if is_label_list(path) and Path(path).suffix.lower() != ".csv":
        return dict(read_labels(path).names)
    clusters: dict[str, str] = {}
    for where, address, cluster in _rows(path, "address", "cluster"):
        if clusters.setdefault(address, cluster) != cluster:
            raise LedgerError(where, "an address in two clusters", value=address)
    return clusters


def is_label_list(path: str | Path) -> bool:
    """Tell whether a list may name entities, by its suffix; see labels.py."""
    return Path(path).suffix.lower() in (".csv", ".json", ".jsonl", ".yaml", ".yml")


def _rows(path: str | Path, *columns: str, optional: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    table = read_text(Path(path), columns, optional=optional)
    rows = zip(*(table[c].to_pylist() for c in table.column_names), strict=True)
    numbered = [(f"{path}:{k + 2}", *row) for k, row in enumerate(rows)]
    for where, *row in numbered:
        if not all(row):
            raise LedgerError(where, "an empty field", value=row)
    return numbered
