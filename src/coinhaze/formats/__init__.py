"""File formats: what each looks like, and how its rows are read."""
