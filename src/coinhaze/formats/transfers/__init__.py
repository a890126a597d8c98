"""Plain columns: who paid whom how much."""
