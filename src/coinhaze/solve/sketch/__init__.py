"""The entropy sketch: any chain at linear cost, bits with a standard error."""
