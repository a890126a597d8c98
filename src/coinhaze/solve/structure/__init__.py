"""The shape of a chain: what a solve must visit, lumped where states go together."""
