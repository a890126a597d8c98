"""What an observer believes: a graph becomes an absorbing Markov chain."""

from coinhaze.chain.build import absorbing_chain
from coinhaze.chain.chain import AbsorbingChain

__all__ = ["AbsorbingChain", "absorbing_chain"]
