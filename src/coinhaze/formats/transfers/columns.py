"""Which columns of a table of transfers tell what, under the names that exports give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coinhaze.errors import LedgerError, UsageError, first_few
from coinhaze.formats.tabular.column_use import NOTED, UNUSED, Use, plain_name, use_of
from coinhaze.formats.tabular.table_rows import TableLayout
from coinhaze.units import Unit

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
# What a user can name a column for, and what it is called here.
CHOOSABLE = {what: what for what in SPELT if what not in ("payer", "kind", "log")} | {
    "log_index": "log"
}
MAX_DECIMALS = 77  # 2^256 has 78 digits
_LIKE = "columns are named like from=sender,to=receiver,amount=value"


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns a user says tell what, and the places amounts have after the point.

    >>> ColumnChoice.of("from=payer, amount=Total", 18).columns
    {'from': 'payer', 'amount': 'Total'}
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    decimals: int | None = None

    @classmethod
    def of(cls, columns: str | None, decimals: int | None) -> ColumnChoice:
        """Read what a user writes."""
        if decimals is not None and not 0 <= decimals <= MAX_DECIMALS:
            raise UsageError(f"decimals are from 0 to {MAX_DECIMALS}, not {decimals}")
        chosen: dict[str, str] = {}
        for part in [] if columns is None else columns.split(","):
            word, parted, name = (text.strip() for text in part.partition("="))
            if not (word and parted and name):
                raise UsageError(f"{_LIKE}, not {columns!r}")
            if word not in CHOOSABLE:
                known = ", ".join(CHOOSABLE)
                raise UsageError(f"{_LIKE}; {word!r} is not one of {known}")
            if CHOOSABLE[word] in chosen:
                raise UsageError(f"{_LIKE}; {word!r} is there twice")
            chosen[CHOOSABLE[word]] = name
        return cls(chosen, decimals)

    def __bool__(self) -> bool:
        return bool(self.columns) or self.decimals is not None

    def __str__(self) -> str:
        words = {what: word for word, what in CHOOSABLE.items()}
        said = [f"{words[what]}={name}" for what, name in self.columns.items()]
        places = [] if self.decimals is None else [f"decimals {self.decimals}"]
        return "; ".join([*([f"columns {','.join(said)}"] if said else []), *places])

    @property
    def given(self) -> str:
        """Name the options that were given, for errors."""
        options = ["--columns"] * bool(self.columns) + ["--decimals"] * (self.decimals is not None)
        return " and ".join(options)

    def found(self, names: Sequence[str], place: str) -> dict[str, str]:
        """Give the columns as the file calls them: letter case and punctuation do not count."""
        found = {}
        for what, name in self.columns.items():
            same = [n for n in names if n == name]
            same = same or [n for n in names if plain_name(n) == plain_name(name)]
            if len(same) != 1:
                fault = "more than one column" if same else "no column"
                fix = f"the file has {first_few(list(names), 20)}"
                raise LedgerError(place, f"{fault} {name!r}, named for {what!r}", fix=fix)
            found[what] = same[0]
        return found


AS_NAMED = ColumnChoice()


@dataclass(frozen=True)
class DescribedColumns:
    """Which columns tell what, and the layout to read them by.

    `times` are further columns of times, which must not contradict the first. `decimals` are the
    places that amounts have after the point; without them they are whole numbers. `choice` is what
    the user gave, in words; `money` is the currency that the file names.

    >>> DescribedColumns.by(["From", "To", "Value", "Blockno"]).columns["height"]
    'Blockno'
    """

    columns: dict[str, str]
    times: tuple[str, ...] = ()
    decimals: int | None = None
    choice: str = ""
    money: Unit | None = None

    @classmethod
    def by(
        cls, names: Sequence[str], choice: ColumnChoice = AS_NAMED, place: str = ""
    ) -> DescribedColumns | None:
        """Find out by the names of the columns; nothing if they tell of no transfers.

        A `choice` of the user goes before what names say; `place` is what errors call the file.
        """
        chosen = choice.found(names, place)
        others = [name for name in names if name not in chosen.values()]
        found = {what: spelt(what, others) for what in SPELT}
        stated = {what: lines[0][0] for what, lines in found.items() if lines} | chosen
        if any(what not in stated for what in NEEDED):
            return None
        if "log" in stated:
            stated.pop("step", None)
        # The event itself says more than a number that somebody gave it.
        if "txid" in stated and ("log" in stated or "step" in stated):
            stated.pop("id", None)
        # A nonce belongs to the account that sent the transaction. That is not the one
        # that pays a token; and an index in the block says all that it could.
        if "position" in stated or ("token" in stated and "payer" not in stated):
            stated.pop("nonce", None)
        if "nonce" not in stated:
            stated.pop("payer", None)
        further = found["time"] if "time" in chosen else found["time"][1:]
        times = tuple(name for line in further for name in line)
        return cls(stated, times, choice.decimals, str(choice))

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
        passed = {name for what in SPELT for line in spelt(what, names) for name in line}
        used = [name for what, name in self.columns.items() if what != "kind"]
        return use_of(names, [*used, *self.times], UNUSED | NOTED, passed)

    def check(self, names: Sequence[str], place: str) -> None:
        """Refuse columns that say one thing twice, or half a thing."""
        for what, name in self.columns.items():
            here = next((line for line in spelt(what, names) if name in line), [name])
            if len(here) > 1:
                fault = (
                    f"columns {first_few(here)} {'both' if len(here) == 2 else 'all'} mean {what}"
                )
                raise LedgerError(place, fault, fix="leave one of them out")
        if self.decimals and plain_name(self.columns["amount"]) in SPELT["amount"][0]:
            name = self.columns["amount"]
            fix = "leave out --decimals, or name the other column: --columns amount=..."
            raise LedgerError(place, f"{name} is in the smallest unit already", fix=fix)
        if "position" in self and not ("height" in self or "time" in self):
            name = self.columns["position"]
            raise LedgerError(place, f"a {name} without a height", fix="add the block's height")


def spelt(what: str, names: Sequence[str]) -> list[list[str]]:
    """Give the columns that tell something, line by line; lines without any are left out."""
    plain = [plain_name(name) for name in names]
    lines = (
        [name for name, p in zip(names, plain, strict=True) if p in line] for line in SPELT[what]
    )
    return [list(dict.fromkeys(line)) for line in lines if line]
