"""The command lines whose answers are stored, by the file that stores them.

Each group is a test and runs from top to bottom in a folder with all ledgers. `show FILE` is no
command: its answer is what a command before it wrote to that file.
"""

from __future__ import annotations

_COIN = f"{8:064x}:0"
_SAVED = f"{5:064x}:1"
_BLOCKCHAIR = " ".join(
    f"blockchair/{table}.tsv" for table in ("blocks", "transactions", "outputs", "inputs")
)

# Run before all others: what they read.
MADE = """
simulate dai-week --size 0.00002 -o dai
simulate usdc-week --size 0.00002 --seed 2 -o usdc
simulate ethereum-week --size 0.000005 -o ethereum
simulate bitcoin-week --size 0.00001 -o bitcoin
simulate zcash-week --size 0.0001 -o zcash
ingest five.json -o five.duckdb
ingest token_transfers.json -o token.duckdb
"""

LINES = {
    "info": f"""
info pay.csv --json
info accounts --json
info coins --json
info shielded --json
info rings --json
info dai --json
info usdc --json
info ethereum --json
info bitcoin --json
info zcash --json
info five.duckdb --json
info five.duckdb --from 2 --to 4 --json
info token.duckdb --json
info five.json --json
info {_BLOCKCHAIR} --json
info esplora.json --json
info getblock.json --json
info vertices-1.csv edges-1.csv --json
info dumplings.txt --json
info zcash.hex --json
info blk00000.dat --json
info deposits_1_eth_0.1.json.gz withdrawals_1_eth_0.1.json.gz --json
info transactions.csv --json
info token_transfers.json --json
info traces.csv --json
info erc20.tsv --json
info calls.tsv --json
info mev.json --json
info plain_transfers.parquet --json
info plain_transactions.parquet plain_outputs.parquet plain_inputs.parquet --json
""",
    "score_formats": f"""
score five.json --json
score five.duckdb --json
score five.duckdb --from 2 --to 4 --json
score {_BLOCKCHAIR} --json
score esplora.json --json
score getblock.json --json
score vertices-1.csv edges-1.csv --json
score dumplings.txt --json
score blk00000.dat --unknown leave-out --json
score zcash.hex --json
score deposits_1_eth_0.1.json.gz withdrawals_1_eth_0.1.json.gz --time temporal --json
score transactions.csv --json
score token.duckdb --time temporal --json
score traces.csv --json
score erc20.tsv --json
score calls.tsv --json
score mev.json --json
score plain_transfers.parquet --json
score plain_transactions.parquet plain_outputs.parquet plain_inputs.parquet --json
""",
    "merge": """
score dai --time temporal --part 1/2 -o dai1
score dai --time temporal --part 2/2 -o dai2
merge dai2 dai1 --json
score dai --time temporal --json
merge dai1
merge dai1 dai1
score dai --part 2/2 -o other
merge dai1 other
merge pay.csv
""",
    "score_accounts": """
score pay.csv --json
score pay.csv --all --time stationary --json
score pay.csv --all --time temporal --json
score pay.csv --mint one --json
score pay.csv --opening observed --json
score pay.csv --time temporal --opening pay_opening.csv --top-up --json
score pay.csv --policy uniform --json
score pay.csv --policy poison --json
score pay.csv --policy poison --listed pay_listed.txt --json
score pay.csv --policy fifo --json
score pay.csv --policy lifo --json
score pay.csv --listed pay_listed.txt --json
score pay.csv --time temporal --links pay_links.csv --json
score pay.csv --clusters pay_clusters.csv --json
score pay.csv --preset paper --json
score pay.csv --accuracy preview --draws 64 --seed 0 --json
score pay.csv --accuracy 0.1 --json
score pay.csv --time temporal --accuracy 0.1 --over mean --json
score pay.csv --with degree,effective-sources,mint-centrality,possible-sources --json
score accounts --all --time temporal --json
score dai --time stationary --json
score dai --time temporal --json
score usdc --time temporal --policy fifo --json
score ethereum --time stationary --json
score ethereum --time temporal --json
""",
    "score_coins": """
score coins --json
score coins --all --json
score coins --view address --json
score coins --view address --time temporal --json
score coins --view account --json
score coins --policy uniform --json
score coins --policy poison --listed coins_listed.txt --json
score coins --policy fifo --json
score coins --policy lifo --json
score coins --listed coins_listed.txt --json
score coins --clusters common-input --view address --json
score coins --clusters change --view address --json
score coins --with boltzmann,degree,effective-sources,efficiency,k-anonymity,link-bits --json
score coins --with matching,mint-centrality,possible-sources,system-anonymity --json
score coins --with wasabi --owners coins_owners.csv --json
score coins --accuracy preview --seed 0 --json
score coins --preset paper --json
score shielded --json
score shielded --pools merged --json
score shielded --history shielded_before.csv --json
score shielded --all --policy uniform --json
score rings --all --json
score rings --policy uniform --json
score rings --with matching,possible-sources --json
score bitcoin --json
score bitcoin --accuracy 0.05 --over worst --json
score zcash --json
""",
    "score_plans": """
score pay.csv --dry-run
score coins --dry-run
score ethereum --time temporal --accuracy 0.05 --dry-run
""",
    "origins": f"""
origins pay.csv carol --json
origins pay.csv carol --time temporal --json
origins pay.csv ivan --time temporal --links pay_links.csv --labels pay_labels.csv --json
origins pay.csv carol --policy uniform --json
origins pay.csv carol --policy poison --listed pay_listed.txt --json
origins pay.csv carol --policy fifo --json
origins pay.csv carol --policy lifo --json
origins pay.csv carol --listed pay_listed.txt --top 2 --hops 2 --json
origins coins {_COIN} --labels coins_labels.csv --json
origins coins {_COIN} --accuracy 0.1 --json
origins coins {_COIN} --policy fifo --json
origins coins dave --view address --json
origins shielded {_COIN} --json
origins shielded {_COIN} --history shielded_before.csv --json
origins shielded {_COIN} --pools merged --json
origins rings f:0 --json
origins coins {_COIN}
origins coins {_COIN} --as dot
""",
    "destinations": f"""
destinations pay.csv alice --json
destinations pay.csv alice --time temporal --json
destinations pay.csv alice --policy fifo --json
destinations pay.csv alice --as dot
destinations coins tx:{_COIN.partition(":")[0]} --labels coins_labels.csv --json
""",
    "since": f"""
since coins {_COIN} --points 3 --json
""",
    "shared": f"""
shared coins {_COIN} {_SAVED} --top 1 --json
""",
    "screen": """
screen pay.csv --listed pay_listed.txt --json
screen pay.csv --listed pay_listed.txt --time temporal --json
screen pay.csv --listed pay_listed.txt --policy haircut,tiho --nodes carol --paths 1 --json
screen coins --listed coins_listed.txt --json
screen coins --listed coins_listed.txt --policy tiho,lifo --top 2 --json
screen coins --listed coins_listed.txt --view address --json
screen shielded --listed coins_listed.txt --json
""",
    "wallet": f"""
wallet coins --coins coins_mine.csv --as json
wallet coins --coins coins_mine.csv --exposed coins_known.txt --labels coins_labels.csv --as json
wallet coins --coins coins_mine.csv --exposed coins_known.txt --amount 35000 --as json
wallet coins --coins coins_mine.csv --exposed coins_known.txt --limit 0.4 --amount 9000 --as json
wallet coins --coins coins_mine.csv --spend {_COIN},{5:064x}:1 --as json
wallet coins --coins coins_mine.csv --psbt spend.psbt --as json
wallet coins --coins coins_mine.csv --policy uniform --top 2 --as json
""",
    "knowledge": """
knowledge
knowledge coins
knowledge coins --by common-input
knowledge coins --by common-input-no-coinjoins
knowledge coins --by change
knowledge coins --by whirlpool
knowledge coins --by wasabi1
knowledge coins --by wasabi2
knowledge coins --by joinmarket
knowledge pay.csv --by pay-outs --services pay_services.txt
knowledge pay.csv --by address-reuse --services pay_services.txt
knowledge pay.csv --by gas-price --services pay_services.txt --gas-prices pay_gas.csv
knowledge pay.csv --by multi-denomination --services pay_services.txt
""",
    "history": f"""
history index coins.history coins
history score coins.history --seed 1 -o coins.csv
show coins.csv
history score coins.history --accuracy exact
history table coins.history
history table coins.history --group-by height
history show coins.history {_COIN}
history show coins.history nobody:0
history index pay.history pay.csv
history score bitcoin
history index pools.history shielded
history score pools.history --accuracy exact
simulate bitcoin-history --blocks 4 -o made.history
history score made.history --seed 2 --draws 64
history table made.history
""",
    "growth": """
growth pay.csv --length 4 --json
growth pay.csv --time temporal --length 4 --json
growth pay.csv --length 3 --walks 50 --seed 3 --json
growth coins --length 3 --json
growth coins --view address --length 3 --accuracy 0.1 --json
growth dai --time temporal --length 3 --json
""",
    "robustness": f"""
robustness dai --learn 2 --seeds 2 --json
robustness usdc --time temporal --learn 2 --seeds 2 --json
robustness pay.csv --time temporal --learn 2 --seeds 2 --coin carol --json
robustness coins --learn 2 --seeds 1 --tries 3 --json
robustness coins --learn 1 --seeds 1 --policy uniform --coin {_COIN} --json
""",
    "sensitivity": """
sensitivity pay.csv --json
sensitivity coins --json
sensitivity shielded --json
""",
    "lab": """
lab --list
lab plain --values 0.5 --seeds 2 --people 8 --payments 40 --json
lab stealth --values 1 --seeds 1 --people 8 --payments 40 --json
lab confidential --values 1 --seeds 1 --people 8 --payments 40 --json
lab wasabi --values 0.5 --seeds 1 --people 12 --payments 40 --json
lab wabisabi --values 0.5 --seeds 1 --people 12 --payments 40 --json
lab whirlpool --values 0.5 --seeds 1 --people 12 --payments 40 --observer told --json
lab joinmarket --values 0.5 --seeds 1 --people 12 --payments 40 --json
lab dash --values 2 --seeds 1 --people 8 --payments 40 --json
lab shielded --values 0.5 --seeds 1 --people 8 --payments 40 --json
lab accounts --seeds 1 --people 8 --payments 40 --json
lab stealth-accounts --values 0.5 --seeds 1 --people 8 --payments 40 --json
lab confidential-accounts --values 1 --seeds 1 --people 8 --payments 40 --json
lab deposit-pool --values 0.5 --seeds 1 --people 8 --payments 40 --json
lab rings --values 4 --seeds 1 --people 8 --payments 40 --observer ages --json
""",
    "desiderata": """
desiderata --seeds 1 --json
""",
    "stores": """
verify five.duckdb
verify five.duckdb --complete
verify token.duckdb
""",
    "compare": """
compare mine=pay.csv coins=coins dai=dai -o compared --no-figures --walks 20
show compared/comparison.json
show compared/tables/stationary.csv
show compared/tables/temporal.csv
show compared/tables/temporal.csv.provenance.json
show compared/tables/temporal.tex
compare pay.csv -o paper --no-figures --conventions paper --listed pay_listed.txt --walks 0
show paper/tables/stationary.csv
compare pools=shielded -o pooled --no-figures --history pools=shielded_before.csv --walks 0
""",
    "written": """
score coins --with k-anonymity,boltzmann -o scores.csv
show scores.csv
show scores.csv.provenance.json
screen pay.csv --listed pay_listed.txt -o screened.csv
show screened.csv
growth pay.csv --length 3 -o growth.csv
show growth.csv
sensitivity pay.csv -o sensitivity.csv
show sensitivity.csv
""",
}
