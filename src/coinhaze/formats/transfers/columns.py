"""Which columns of a table of transfers tell what, under the names that exports give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coinhaze.errors import LedgerError, first_few
from coinhaze.formats.tabular.column_use import NOTED, UNUSED, Use, plain_name, use_of
from coinhaze.formats.tabular.table_rows import TableLayout

# Plain names (`column_use.plain_name`), the better ones first: of several lines the first that a
# file has is taken. Two names of one line in a file are refused.
SPELT: dict[str, tuple[tuple[str, ...], ...]] = {
    "from": (("from", "sender"),),
    "to": (("to", "recipient"),),
    "amount": (("amountraw", "rawamount"), ("amount", "value")),
    "id": (("id",),),
    "txid": (("txid", "txhash", "transactionhash", "evttxhash", "hash", "transactionid"),),
    # Counts the events of a block.
    "log": (("logindex", "evtindex", "eventindex"),),
    # Counts what one transaction does.
    "step": (("step",), ("transferindex",), ("traceindex",)),
    "height": (
        ("height", "blocknumber", "blockno", "blockheight", "evtblocknumber", "blocknum"),
        ("block",),
        ("blockid",),
        ("slot", "blockslot"),
    ),
    "position": (
        ("position", "transactionindex", "txindex", "transactionposition", "evttxindex"),
        ("txposition",),
    ),
    "time": (
        ("time",),
        ("unixtimestamp",),
        ("unixtime",),
        ("timestamp",),
        ("blocktimestamp",),
        ("blocktime",),
        ("evtblocktime",),
        ("blocksignedat",),
        ("ts",),
        ("datetime",),
        ("datetimeutc",),
        ("timeutc",),
        ("date",),
        ("dateutc",),
        ("blockdate",),
        ("evtblockdate",),
    ),
    "nonce": (("nonce", "txnonce", "transactionnonce"),),
    "payer": (("txfrom", "evttxfrom", "transactionfrom"),),
    "token": (
        ("token", "tokenaddress", "contractaddress", "tokencontract", "tokencontractaddress"),
        ("erc20",),
        ("contract",),
        ("tokensymbol", "symbol"),
        ("asset", "currency"),
    ),
    "kind": (("kind",),),
    "fee": (("fee",),),
}
NEEDED = ("from", "to", "amount")


@dataclass(frozen=True)
class DescribedColumns:
    """Which columns tell what, and the layout to read them by.

    `times` are further columns of times, which must not contradict the first.

    >>> DescribedColumns.by(["From", "To", "Value", "Blockno"]).columns["height"]
    'Blockno'
    """

    columns: dict[str, str]
    times: tuple[str, ...] = ()

    @classmethod
    def by(cls, names: Sequence[str]) -> DescribedColumns | None:
        """Find out by the names of the columns; nothing if they tell of no transfers."""
        found = {what: _spelt(what, names) for what in SPELT}
        told = {what: lines[0][0] for what, lines in found.items() if lines}
        if any(what not in told for what in NEEDED):
            return None
        if "log" in told:
            told.pop("step", None)
        # The event itself says more than a number that somebody gave it.
        if "txid" in told and ("log" in told or "step" in told):
            told.pop("id", None)
        # Whose nonce it is, is told by the account that sent the transaction. That is not the one
        # that pays a token; and an index in the block says all that it could.
        if "position" in told or ("token" in told and "payer" not in told):
            told.pop("nonce", None)
        if "nonce" not in told:
            told.pop("payer", None)
        return cls(told, tuple(name for line in found["time"][1:] for name in line))

    def __contains__(self, what: str) -> bool:
        return what in self.columns

    @property
    def layout(self) -> TableLayout:
        """Say what to read."""
        needed = tuple(self.columns[what] for what in NEEDED)
        others = (name for name in self.columns.values() if name not in needed)
        return TableLayout("transfers", needed, (*others, *self.times))

    @property
    def index(self) -> str | None:
        """The column that tells events of one transaction apart."""
        return self.columns.get("log") or self.columns.get("step")

    @property
    def identifies(self) -> bool:
        """Whether rows say which event they are."""
        return "id" in self or ("txid" in self and self.index is not None)

    def use(self, names: Sequence[str]) -> Use:
        """Say what becomes of the columns of a file."""
        passed = {name for what in SPELT for line in _spelt(what, names) for name in line}
        used = [name for what, name in self.columns.items() if what != "kind"]
        return use_of(names, [*used, *self.times], UNUSED | NOTED, passed)

    def check(self, names: Sequence[str], place: str) -> None:
        """Refuse columns that say one thing twice, or half a thing."""
        for what, name in self.columns.items():
            here = next((line for line in _spelt(what, names) if name in line), [name])
            if len(here) > 1:
                fault = f"columns {first_few(here)} for one thing"
                raise LedgerError(place, fault, fix="leave one of them out")
        if "position" in self and not ("height" in self or "time" in self):
            name = self.columns["position"]
            raise LedgerError(place, f"a {name} without a height", fix="add the block's height")


def _spelt(what: str, names: Sequence[str]) -> list[list[str]]:
    """Give the columns that tell something, line by line; lines without any are left out."""
    plain = [plain_name(name) for name in names]
    lines = (
        [name for name, p in zip(names, plain, strict=True) if p in line] for line in SPELT[what]
    )
    return [list(dict.fromkeys(line)) for line in lines if line]
