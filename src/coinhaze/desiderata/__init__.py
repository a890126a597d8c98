"""What a measure of traceability should do, tried on small ledgers."""
