"""Screening: how much of the balance of nodes came from a list, under every policy."""

from coinhaze.screening.report import ListFile, Statement, screening_json, screening_sections
from coinhaze.screening.screen import Screening, screen

__all__ = [
    "ListFile",
    "Screening",
    "Statement",
    "screen",
    "screening_json",
    "screening_sections",
]
