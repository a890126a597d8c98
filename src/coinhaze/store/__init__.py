"""The store: a ledger in one DuckDB file, ingested from files or nodes."""
