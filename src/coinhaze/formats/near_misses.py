"""Files of the right program that are the wrong ones: what they are, and what to take instead.

They are recognised by names of columns of a table, keys of JSON, or how text begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from coinhaze.formats.tabular.column_use import plain_name

# Columns, what has them, and what to take instead; the first that fits is meant.
_TABLES: tuple[tuple[set[str], str, str], ...] = (
    (
        {"logindex", "topics", "data"},
        "logs of contracts, whatever they tell",
        "take token_transfers: ethereumetl export_token_transfers, or cryo erc20_transfers",
    ),
    (
        {"transactionhash", "gasused", "status"},
        "receipts of transactions, which tell no amounts",
        "take traces, or transactions, or token_transfers",
    ),
    (
        {"hash", "inputs", "outputs"},
        "transactions whose inputs and outputs are lists, which CSV has no form for",
        "export them as JSON lines: bitcoinetl ... --transactions-output transactions.json",
    ),
    (
        {"address", "bytecode"},
        "a table of contracts, which tells no transfers",
        "take token_transfers, traces or transactions",
    ),
    (
        {"address", "name", "decimals"},
        "a table of tokens, which tells no transfers",
        "take their transfers: token_transfers, or erc-20/transactions",
    ),
    (
        {"blockno", "unixtimestamp", "from", "to", "tokenvalue"},  # with the rest it is known
        "Etherscan's export of tokens without ContractAddress",
        "export it again, with all its columns",
    ),
)
# Keys of JSON, in the same way.
_JSON: tuple[tuple[set[str], str, str], ...] = (
    (
        {"result", "error", "code", "message"},
        "the answer of a node that did not do what was wanted, as its `message` says",
        "repeat the request, or let `coinhaze ingest bitcoin+http://HOST:8332` make it",
    ),
    (
        {"status", "message", "result", "blockNumber"},
        "the answer of Etherscan's API",
        "download the CSV export from the page of the address, and read it with --decimals",
    ),
    (
        {"execution_id", "result"},
        "the answer of Dune's API",
        "export the result of the query as CSV",
    ),
    (
        {"coinbase_param", "merkle_root"},
        "bitcoin-etl's blocks, which list no transactions",
        "give its transactions.json beside them",
    ),
    (
        {"finalsaplingroot", "tx", "height"},
        "a block of Zcash in JSON",
        "take it in hexadecimal: zcash-cli getblock HASH 0; or let `coinhaze ingest "
        "zcash+http://HOST:PORT` read the node",
    ),
    (
        {"nTx", "tx", "height"},
        "a block with the ids of its transactions alone",
        "take it with verbosity 3: bitcoin-cli getblock HASH 3",
    ),
    (
        {"nTx", "height", "merkleroot"},
        "the header of a block",
        "take the whole block: bitcoin-cli getblock HASH 3",
    ),
    (
        {"tx_count", "merkle_root", "height"},
        "a block of Esplora, which lists no transactions",
        "take them: /block/HASH/txs/0, /25, ..., or let `coinhaze wallet esplora+https://HOST/api` "
        "fetch them",
    ),
    (
        {"spent", "vin", "txid"},
        "who spends the outputs of a transaction, and no transaction",
        "take the transaction itself: /tx/TXID",
    ),
    (
        {"jsonrpc", "result"},
        "the answer of a node",
        "save what stands in `result` alone, or let `coinhaze ingest KIND+http://HOST:PORT` read "
        "the node",
    ),
)
_HEX = re.compile(r"[0-9a-fA-F]{80,}\s*")
_DATA = re.compile(r"[0-9]+|0x[0-9a-fA-F]{40,}|[0-9a-fA-F]{64}|[0-9]{4}-[0-9]{2}-[0-9]{2}.*")


def near_table(names: Iterable[str]) -> tuple[str, str] | None:
    """Say what a table of these columns is, and what to take instead.

    >>> near_table(["transaction_hash", "gas_used", "status"])[1]
    'take traces, or transactions, or token_transfers'
    """
    names = list(names)
    if sum(_DATA.fullmatch(name) is not None for name in names) > 1:
        return "a table without a header", "put the line with the columns' names first again"
    return _first(_TABLES, {plain_name(name) for name in names})


def near_json(keys: Iterable[str]) -> tuple[str, str] | None:
    """Say what JSON of these keys is, and what to take instead."""
    return _first(_JSON, set(keys))


def near_text(line: str) -> tuple[str, str] | None:
    """Say what text that begins so is, and what to take instead."""
    if _HEX.fullmatch(line):
        what = "a block or transaction in hexadecimal"
        return what, "take it with verbosity 3: bitcoin-cli getblock HASH 3; or give blk*.dat"
    return None


def near_binary(file_name: str) -> tuple[str, str] | None:
    """Say what a binary file of this name is, and what to take instead.

    >>> near_binary("rev00001.dat")[1]
    'give blk00001.dat; this file is read where it lies beside it'
    """
    undo = re.fullmatch(r"rev([0-9]+\.dat)(\.[a-z0-9]+)?", file_name)
    if undo:
        fix = f"give blk{undo[1]}; this file is read where it lies beside it"
        return "a node's undo data, which has no blocks", fix
    if re.fullmatch(r"blk[0-9]+\.dat(\.[a-z0-9]+)?", file_name):
        what = "a node's blocks of a network that is not known, or hidden by a key"
        return what, "copy xor.dat, from the node's folder of blocks, beside it"
    if file_name.endswith("wallet.dat"):
        fix = (
            "give the node's blk*.dat for a ledger, and the wallet's coins beside it: bitcoin-cli "
            "listunspent > coins.json, then coinhaze wallet LEDGER --nodes coins.json"
        )
        return "a wallet's database, which has no blocks", fix
    if file_name.endswith((".ldb", ".sst")):
        return "a node's index (LevelDB), which has no blocks", "give the node's blk*.dat"
    return None


def _first(known: Iterable[tuple[set[str], str, str]], there: set[str]) -> tuple[str, str] | None:
    return next(((what, fix) for needed, what, fix in known if needed <= there), None)
