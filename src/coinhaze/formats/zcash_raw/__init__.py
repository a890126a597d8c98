"""Raw blocks of Zcash."""
