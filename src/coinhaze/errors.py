"""Every exception coinhaze raises on purpose.

```
CoinhazeError
├── UsageError            settings that do not go together                       exit 2
├── InputError            what was given breaks a rule                           exit 3
│   ├── LedgerError       a ledger: names file and line or transaction, value, rule
│   ├── OpeningError      a table of opening balances below what was spent
│   ├── UnknownName       a node, payment or account that is not in the ledger
│   └── PolicyError       a user's policy whose rows are no probabilities
├── SourceUnreachable     a node or file server that does not answer             exit 4
│   └── NotAnswering      one that may answer later: not running, starting, too busy
├── AccuracyError         the requested accuracy was not reached; has what was   exit 5
└── ResourceError         a limit of time or memory was met                      exit 6
```

A message says what, where, the value seen, and what to do. Anything else that escapes is a bug.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coinhaze.measures.origins import Origins
    from coinhaze.measures.scores import Scores

# What no message may show: passwords and keys of the nodes this process talks to.
_secrets: set[str] = set()


def keep_secret(*secrets: str) -> None:
    """Hide these in every message from now on; nodes and proxies echo what they were sent."""
    import json
    from urllib.parse import quote, unquote

    for secret in filter(None, secrets):
        forms = {secret, quote(secret, safe=""), quote(secret), unquote(secret)}
        forms |= {json.dumps(form)[1:-1] for form in forms}
        forms |= {repr(form)[1:-1] for form in forms} | {repr(f.encode())[2:-1] for f in forms}
        _secrets.update(forms)


# Extended keys of wallets, public and private: who has one knows all of a wallet's coins.
_WALLET_KEY = re.compile("[xyzYZtuvUV]p(?:ub|rv)[1-9A-HJ-NP-Za-km-z]{20,}")


def hide_wallet_keys(text: str) -> None:
    """Hide every extended key of a text in all messages from now on."""
    if found := _WALLET_KEY.findall(text):
        keep_secret(*found)


def without_secrets(text: str) -> str:
    """Replace what `keep_secret` was given, however it is capitalised (hosts are lowered).

    Short ones are replaced where they stand alone: a password of one letter is in every word.
    """
    for secret in sorted(_secrets, key=len, reverse=True):
        alone = ("", "") if len(secret) > 3 else (r"(?<!\w)", r"(?!\w)")
        text = re.sub(re.escape(secret).join(alone), "***", text, flags=re.IGNORECASE)
    return text


class CoinhazeError(Exception):
    """Base of all errors a caller may want to catch.

    >>> import coinhaze
    >>> try:
    ...     coinhaze.score("no-such-file.csv")
    ... except coinhaze.CoinhazeError as error:
    ...     print(error.exit_code)
    3
    """

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """Give what notebooks show instead of a traceback: the user's own line, and the message.

        IPython calls this by its name. `traceback.print_exception(error)` shows everything.
        """
        import linecache
        import traceback

        ours = __name__.partition(".")[0]
        lines = [f"{type(self).__name__}: {self}"]
        theirs = [
            (frame.f_code.co_filename, line)
            for frame, line in traceback.walk_tb(self.__traceback__)
            if frame.f_globals.get("__name__", "").partition(".")[0] not in (ours, "IPython")
        ]
        if theirs:
            code = without_secrets(linecache.getline(*theirs[-1]).strip())
            lines.insert(0, f"in line {theirs[-1][1]}: {code}" if code else "")
        return [line for line in lines if line]

    def __str__(self) -> str:
        return without_secrets(super().__str__())


class UsageError(CoinhazeError):
    """Settings that do not go together.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> coinhaze.score(ledger, accuracy=-1)
    Traceback (most recent call last):
    coinhaze.errors.UsageError: accuracy is exact, preview or a width in bits, not -1
    """

    exit_code = 2


class InputError(CoinhazeError):
    """What was given breaks a rule.

    >>> import coinhaze
    >>> try:
    ...     coinhaze.read("no-such-file.csv")
    ... except coinhaze.InputError as error:
    ...     print(error)
    no-such-file.csv: no such file
    """

    exit_code = 3


class LedgerError(InputError):
    """A ledger that breaks a rule; `where` names file and line, or transaction.

    >>> import coinhaze
    >>> try:
    ...     coinhaze.AccountLedger.from_transfers([("a", "c", -1)])
    ... except coinhaze.LedgerError as error:
    ...     print(error.where, error.value)
    row 0 -1
    """

    def __init__(self, where: str, what: str, *, value: object = None, fix: str = "") -> None:
        seen = "" if value is None else f": {shorten(value)}"
        super().__init__(f"{where}: {what}{seen}" + (f" ({fix})" if fix else ""))
        self.where = where
        self.what = what
        self.value = value


class OpeningError(InputError):
    """A table of opening balances below what its accounts spent.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 5)])
    >>> try:
    ...     coinhaze.transaction_graph(ledger, opening={"a": 3})
    ... except coinhaze.OpeningError as error:
    ...     print(str(error).partition(";")[0])
    opening balance of a is 3, but its payments need 5: 2 short
    """


class UnknownName(InputError):
    """A node, payment or account that is not in the ledger.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> coinhaze.origins(ledger, "nobody")
    Traceback (most recent call last):
    coinhaze.errors.UnknownName: no node 'nobody' in the graph
    """


class PolicyError(InputError):
    """A user's policy whose rows are no probabilities.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> import numpy as np
    >>> try:
    ...     coinhaze.score(ledger, policy=lambda graph: np.full((3, 3), 0.5))
    ... except coinhaze.PolicyError as error:
    ...     print(str(error).partition(":")[0])
    a policy is a matrix of shape (3, 4) for this graph
    """


class SourceUnreachable(CoinhazeError):
    """A source of data that does not answer.

    >>> import coinhaze
    >>> coinhaze.SourceUnreachable.exit_code
    4
    """

    exit_code = 4


class NotAnswering(SourceUnreachable):
    """A source that may answer later: not running, starting, or too busy.

    >>> import coinhaze
    >>> try:
    ...     raise coinhaze.NotAnswering("the node is starting")
    ... except coinhaze.SourceUnreachable as error:
    ...     print("later:", error)
    later: the node is starting
    """


class AccuracyError(CoinhazeError):
    """The requested accuracy was not reached; the message says what was.

    `scores` holds what was reached, with proven intervals that are wider than requested, and
    `origins` the same where the origins of one node were requested. They are None where nothing
    can be trusted: a law is broken, or numbers left the range of floats.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> try:
    ...     coinhaze.score(ledger, accuracy=1e-15)
    ... except coinhaze.AccuracyError as error:
    ...     print(error.scores["c"].bits_high - error.scores["c"].bits_low < 1e-12)
    True
    """

    exit_code = 5

    def __init__(
        self, message: str, *, scores: Scores | None = None, origins: Origins | None = None
    ) -> None:
        super().__init__(message)
        self.scores = scores
        self.origins = origins


class ResourceError(CoinhazeError):
    """A limit of time or memory was met.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> try:
    ...     coinhaze.score(ledger, memory="1MB")
    ... except coinhaze.ResourceError as error:
    ...     print(str(error).partition(": ")[2])
    allow more memory, or take a shorter window
    """

    exit_code = 6


def count_words(number: int, one: str, many: str | None = None) -> str:
    """Say a count with its noun.

    >>> count_words(4320, "origin"), count_words(1, "origin"), count_words(2, "entry", "entries")
    ('4,320 origins', '1 origin', '2 entries')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def first_few(names: Sequence[str], maximum: int = 3) -> str:
    """Show some of many names.

    >>> first_few(["a", "b", "c", "d"])
    'a, b, c, ...'
    """
    return ", ".join(names[:maximum]) + (", ..." if len(names) > maximum else "")


def not_in_ledger(listed: Sequence[str]) -> str:
    """Say which names of a list the ledger does not have.

    >>> not_in_ledger(["nobody"])
    'list: 1 name not in the ledger: nobody'
    """
    names = "name" if len(listed) == 1 else "names"
    return f"list: {len(listed)} {names} not in the ledger: {first_few(listed, 5)}"


def shorten(value: object, maximum: int = 120) -> str:
    """Show a value as text of bounded length, escaped, for error messages.

    >>> shorten("1.5")
    "'1.5'"
    """
    text = without_secrets(repr(value))  # before it is cut: half a secret would stay
    return text if len(text) <= maximum else text[: maximum - 3] + "..."
