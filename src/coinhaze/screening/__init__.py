"""Screening: how much of the balance of nodes came from a list, under every policy."""

from coinhaze.screening.screen import Screening, screen

__all__ = ["Screening", "screen"]
