"""Building and checking what is published; see docs/releasing.md."""
