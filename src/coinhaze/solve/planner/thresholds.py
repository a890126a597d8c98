"""Every size, cost and width at which one method gives way to another.

Work is counted, not timed, so that no choice depends on how busy the machine is. Costs are
nanoseconds of one core, measured by `make bench`.
"""

from __future__ import annotations

# Memory. Workspaces of all threads together, and lists of all blocks together, stay below these
# where the user gives no limit; an entry of a list takes so many bytes while lists grow.
WORKSPACE_MEMORY = 2 << 30
LIST_MEMORY = 3 << 30
LIST_ENTRY_BYTES = 24
# Reducing and lumping take so many bytes for every node and every move; more in the order of time.
LUMPING_BYTES = 55
LUMPING_BYTES_IN_TIME = 120
# Lists are swept in blocks of columns, at least so many where nothing is dropped, each of them
# expected to stay below this; where there are many workers, so much for each may be taken.
MIN_LIST_BLOCKS = 16
BLOCK_MEMORY = 256 << 20
# Lists get this share of the memory that is left: parts wait to be added, and pieces lie unused.
LIST_SHARE = 0.8

# Exact scores: dense tiles or sparse lists. An entry of a list; an entry of a tile mixed and one
# scored, while the tile fits a cache of so many bytes, and where it does not; an entry of a dense
# core. Below so many seconds of tiles there is nothing to gain from lists.
LIST_NS = 12.0
TILE_NS_CACHED = (0.3, 1.2)
TILE_NS_UNCACHED = (1.6, 7.0)
CORE_NS = 0.15
CACHE_BYTES = 8 << 20
MIN_SECONDS_FOR_LISTS = 0.5
# Columns are sampled to count what lists cost: so many, in runs that collapse nearly as they will.
SAMPLED_COLUMNS = 2048
SAMPLED_RUN = 64

# Dropping small probabilities: only for widths above this many bits; an entry then costs this much,
# and entries grow like this power of the level as it falls; below this level dropping saves little,
# and exact scores are taken.
MIN_DROPPING_WIDTH = 1e-6
DROP_NS = 20.0
DROP_GROWTH = 0.5
MIN_LEVEL = 1e-12

# Elimination. States of a strong component are eliminated one by one until those left have more
# than DENSE_SHARE of all possible moves, and to the end where MIN_CORE or fewer are left. The rest
# is a core, inverted as a dense matrix. Where it would have more than MAX_DENSE_CORE states, or
# elimination would take more than MAX_ELIMINATION_WORK ways through states, only states with up to
# THIN_DEGREE ways through them are eliminated, and the core is solved by Gauss-Seidel.
MIN_CORE = 48
DENSE_SHARE = 0.25
MAX_DENSE_CORE = 4_000
MAX_ELIMINATION_WORK = 200_000_000
THIN_DEGREE = 16
# Gauss-Seidel: clusters of up to so many states are solved by themselves where that makes their
# rows at most so many times longer; after so many passes a core is given up.
MAX_CLUSTER = 400
MAX_CLUSTER_GROWTH = 4
MAX_PASSES = 20_000
# What it may leave out of a row: where the answer must be exact, and for a preview, where it is
# far less than the standard error.
EXACT_MISSING = 1e-14
PREVIEW_MISSING = 1e-4

# Rounding. Where it could make intervals wider than this many bits, rows are scaled; chains of
# likeliest moves of at least so many states then carry what their sums lose. Shares inside a column
# are found with 106 bits where their roundings could add up to more than this, times 2^-53.
MAX_ROUNDING_WIDTH = 9e-11
MIN_CARRIED_CHAIN = 4096
MAX_SHARE_ROUNDINGS = 200.0
# Draws are taken in single precision where every pivot is above this, and where its rounding
# widens no interval by more than so many bits.
MIN_SINGLE_PIVOT = 1e-30
MAX_SINGLE_WIDTH = 0.01
# A draw of one source taken, one brought along a move, and one exponentiated for a scored row.
DRAW_NS = (8.0, 0.6, 2.5)

# Possible sources are counted where so many words of bit sets are read, a fraction of a second;
# beyond that they are bounded, unless requested. A word takes this long.
QUICK_WORDS = 1e8
COUNT_NS = 3.0
THREAD_SECONDS = 0.02  # of work, for which another thread is started

# Scores for a mean: seconds of one core that exact or proven ones may take before draws are taken.
MAX_MEAN_SECONDS = 60.0

# One coin. Widths above this many bits are reached without solving its whole past. Chains of up to
# so many nodes are solved whole where so few moves do not reach the width; larger ones are given up
# after so many moves, or so many rounds of them.
MIN_LOCAL_WIDTH = 1e-6
MAX_SOLVED_NODES = 200_000
FEW_LOCAL_MOVES = 10_000_000
MAX_LOCAL_MOVES = 100_000_000
MAX_LOCAL_ROUNDS = 40
# A past of up to so many moves is taken whole. Of a longer one the largest flows are followed down
# to MIN_FLOW; once so few moves are made, until all but ENOUGH has ended; and at most so many moves
# for a past, and for the flow of `origins`.
MAX_WHOLE_PAST = 30_000
MIN_FLOW, ENOUGH = 1e-12, 1e-3
FEW_TRACED_MOVES = 20_000
MAX_PAST_MOVES = 100_000
MAX_TRACED_MOVES = 300_000
# A past with loops is iterated until so little mass is left, or so many moves were made.
MIN_LOOPING_MASS = 1e-14
MAX_LOOPING_MOVES = 30_000_000
# Moves of a walk before its loop may go on compiled.
MOVES_AT_ONCE = 1 << 20
# Beginnings of paths looked at before the paths found so far must do.
MAX_PATH_BEGINNINGS = 50_000
# Money that goes to a node for every so many of the chain, or more, is added up on a dense array.
DENSE_HOP = 16

# A chain of up to so many nodes is solved exactly when one coin, a path or a walk needs it; a
# larger one is followed to this many bits.
MAX_EXACT_NODES = 200_000
NEARLY = 0.05

# The page. Graphs of up to so many nodes are scored exactly when another view, rule or list is
# chosen, larger ones to NEARLY bits; chains of up to so many are solved for a list whenever one
# coin is looked at; pasts of up to so many are solved exactly. Files of up to so many bytes are
# scored exactly when they are first opened, larger ones to a mean of this width in bits.
MAX_VIEW_NODES = 300_000
MAX_LISTED_NODES = 20_000
MAX_SOLVED_PAST = 5_000
MAX_EXACT_BYTES = 32 << 20
PAGE_MEAN_WIDTH = 0.1

# One GPU. One multiprocessor runs so many threads, those of all tiles on it. A tile is solved by so
# many threads, sixteen rows at a time, or by half as many where levels have so few operations on
# average.
GPU_RESIDENT_THREADS = 1024
GPU_WIDE_THREADS, GPU_NARROW_THREADS = 512, 256
MAX_GPU_NARROW_LEVEL = 64

# A history's draws are stored in single precision where that widens the widest interval by no more
# than this share of it.
MAX_HISTORY_SINGLE_SHARE = 0.05
