"""bitcoin-etl: transactions of Bitcoin and its relatives, as JSON lines or Parquet."""
