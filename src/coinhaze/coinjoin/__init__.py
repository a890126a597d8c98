"""One transaction from the inside: which inputs can have paid for which outputs."""
