"""Tables in text, Parquet or Arrow: typed columns, checked row by row."""
