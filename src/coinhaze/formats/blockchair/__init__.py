"""Blockchair's dumps, one file a day."""
