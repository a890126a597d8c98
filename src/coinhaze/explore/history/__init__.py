"""A whole history, explored: what pages show of a window, from a tape and its scores."""

from coinhaze.explore.history.explorer import HistoryExplorer as HistoryExplorer
