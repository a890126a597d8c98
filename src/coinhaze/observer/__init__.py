"""What an observer believes: a graph becomes an absorbing Markov chain."""

from coinhaze.observer.build import absorbing_chain
from coinhaze.observer.chain import AbsorbingChain

__all__ = ["AbsorbingChain", "absorbing_chain"]
