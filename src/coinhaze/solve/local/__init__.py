"""One coin's past, without a look at the rest of the chain.

Every module follows a node's money back over the same moves, `AbsorbingChain.moves_of`. They are as
many as there are different questions:

- `row`: how many bits, to a proven width. It pushes the mass that matters most first and stops
  early, on the bounded chain, in which most nodes are gone; so it knows no flow.
- `past`: which nodes, and how often each is visited: all of a short past, the largest flows of a
  long one. Flows, exposure and nearest ends are read from it, and so are `origins` and `paths`.
- `mixing`: where the money of several coins ends, exactly. It pushes all mass, once, in the order
  of the chain, holding no nodes; a past would have to hold them all. `mix_nearly` adds up pasts.
- `hops`: how the money is spread after one, two, three hops between parties. A party's snapshots
  are one hop, so it walks by parties; the other walks know no hops.
- `paths`: the largest single paths. A path is no flow: paths are enumerated (A*) on the nodes that
  `origins` found.

`origins` puts `row` and `past` together, or solves the whole past exactly. Fetching the past from a
node (`wallet/walk_back`) repeats `mixing` on a ledger that grows, and walks nothing itself.
"""
