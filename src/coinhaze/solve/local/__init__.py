"""One coin's past, without a look at the rest of the chain.

There is one walk back (`walk`): mass is pushed over moves, and what has passed each node and what
rests there are exact parts of the answer at any time. Questions differ in what they push:

- `row`: how many bits, to a proven width. It pushes what may narrow the interval, and stops early,
  on the bounded chain, in which most nodes are gone; so it knows no flow.
- `past`: which nodes, and how often each is visited: all of a short past, the largest flows of a
  long one. Flows, exposure and nearest ends are read from it, and so are `origins` and `paths`.
- `mixing`: where the money of several coins ends. It pushes all mass, or the largest shares.
- `hops`: how the money is spread after one, two, three hops between parties. A party's snapshots
  are one hop: between hops, it pushes what stays in the same account.

`paths` finds the largest single paths on the nodes that `origins` found: a path is no flow, so
paths are enumerated (A*). `origins` puts `row` and `past` together, or solves the whole past
exactly. Fetching the past from a node (`wallet/walk_back`) repeats `mixing` on a ledger that grows.
"""
