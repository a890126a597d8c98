"""Indexing: the blocks of a chain become rows, slots and terms of a tape."""
