// Tiles of B on a GPU: schedule.py says what is done in which order, and `run_levels` in
// schedule_kernels.py is the twin on the CPU.
//
// A block of threads owns one tile of 64 columns and walks through all levels by itself, so that
// blocks never wait for each other. A warp takes one row at a time, each thread two columns of it.
// No sum depends on how many tiles run at once: a tile's sums are stored apart, and added up in
// the order of tiles.

constexpr int WIDTH = 64;
constexpr int WARPS = THREADS / 32;
constexpr unsigned ALL = 0xffffffffu;
constexpr int BACK = 1, READ = 2, CARRY = 4;

struct __align__(16) Operation {
  int begin, counted, slot, column;  // counted: how many entries, times 8, and the flags
  int score, lost, unused[2];
  double own, excess;
};
struct __align__(16) Entry {
  int slot, unused;
  double value;
};

// Sum and what it loses (Knuth); no multiplication stands beside these additions to be fused.
__device__ inline double two_sum(double a, double b, double &less) {
  double total = a + b, part = total - a;
  less = (a - (total - part)) + (b - part);
  return total;
}

__device__ inline double warp_sum(double value) {
  for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(ALL, value, step);
  return value;
}

#if DRAWS
__device__ inline unsigned long long mix(unsigned long long value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

// One draw of a source: see fill_draws in sketch/kernels.py.
__device__ double draw(unsigned long long source, unsigned long long seed, long long number) {
  unsigned long long k = seed * 0x9E3779B97F4A7C15ull + (unsigned long long)number;
  unsigned long long state = mix(source ^ mix(k));
  double v = ((double)(state >> 12) + 0.5) * 0x1p-52;
  state = mix(state + 0x9E3779B97F4A7C15ull);
  double w = ((double)(state >> 12) + 0.5) * 0x1p-52;
  double z = 3.141592653589793 * v, near = v < 0.5 ? v : 1.0 - v;
  double sine = sinpi(near), cosine = v < 0.5 ? cospi(near) : -cospi(near);
  return z * cosine / sine + log(-log(w) * sine / z);
}
#endif

// What one warp does next, looked up while it still waits for the rows of the present operation:
// the first half of the operation, and of its entries one for each thread.
struct Ahead {
  int k;  // -1: none in sight
  int4 op;  // begin, counted, slot, column
  int slot;
  double value;
};

__device__ inline Ahead look_up(
    int k, int end, const Operation *__restrict__ operations, const Entry *__restrict__ entries,
    int lane) {
  Ahead ahead;
  ahead.k = k < end ? k : -1;
  ahead.op = make_int4(0, 0, -1, -1);
  ahead.slot = 0;
  ahead.value = 0.0;
  if (k < end) {
    ahead.op = *reinterpret_cast<const int4 *>(operations + k);
    if (lane < ahead.op.y >> 3) {
      const Entry *entry = entries + ahead.op.x + lane;
      ahead.slot = entry->slot;
      ahead.value = entry->value;
    }
  }
  return ahead;
}

extern "C" __global__ __launch_bounds__(THREADS, BLOCKS) void run_levels(
    const int *__restrict__ level_start, int first_level, int last_level, int begin_tile,
    const Operation *__restrict__ operations, const Entry *__restrict__ entries,
    double *__restrict__ rooms, unsigned char *__restrict__ lives, double *__restrict__ losts,
    long long slots, int chains, long long first_column, int columns, int elsewhere,
    const double *__restrict__ inner, const double *__restrict__ prior_bits,
    const double *__restrict__ prior_top, const unsigned long long *__restrict__ source,
    unsigned long long seed, const double *__restrict__ mass, long long rows,
    double *__restrict__ entropies, double *__restrict__ masses, double *__restrict__ priors,
    double *__restrict__ tops, unsigned char *__restrict__ top_columns,
    double *__restrict__ apart, double *__restrict__ weighed) {
  __shared__ double parts[WARPS][WIDTH];
  __shared__ double2 law[3][32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, mine = 2 * lane;
  double2 *x = reinterpret_cast<double2 *>(rooms + (long long)blockIdx.x * slots * WIDTH) + lane;
  unsigned char *live = lives + (long long)blockIdx.x * slots;
  // Where a chain keeps what its sums lost.
  const auto lost = [&](int chain) {
    return reinterpret_cast<double2 *>(
               losts + ((long long)blockIdx.x * chains + chain) * WIDTH) + lane;
  };
  const long long first = first_column + (long long)blockIdx.x * WIDTH;
#if !DRAWS
  if (threadIdx.x < 3 * 32) {
    const double *of = warp == 0 ? inner : warp == 1 ? prior_bits : prior_top;
    double2 pair = make_double2(0.0, 0.0);
    if (first + mine < columns) pair.x = of[first + mine];
    if (first + mine + 1 < columns) pair.y = of[first + mine + 1];
    law[warp][lane] = pair;
  }
  const int skip = elsewhere >= first && elsewhere < first + WIDTH ? (int)(elsewhere - first) : -1;
#endif
  parts[warp][mine] = parts[warp][mine + 1] = 0.0;
  if (begin_tile)
    for (int k = warp; k < chains; k += WARPS) *lost(k) = make_double2(0.0, 0.0);
  __syncthreads();
  int start = level_start[first_level], end = level_start[first_level + 1];
  Ahead ahead = look_up(start + warp, end, operations, entries, lane);
  for (int level = first_level; level < last_level; level++) {
    const int next_end = level + 1 < last_level ? level_start[level + 2] : end;
    if (ahead.k < 0) ahead = look_up(start + warp, end, operations, entries, lane);
    while (ahead.k >= 0 && ahead.k < end) {
      const int k = ahead.k, begin = ahead.op.x, count = ahead.op.y >> 3, row_slot = ahead.op.z;
      const int column = ahead.op.w, flags = ahead.op.y & 7;
      const Operation *op = operations + k;
      int slot = ahead.slot;
      double value = ahead.value;
      bool alive = lane < count && live[slot];
      double2 sum[4];
#pragma unroll
      for (int g = 0; g < 4; g++) sum[g] = make_double2(0.0, 0.0);
      bool anything = false;
      if (flags & (BACK | READ)) {
        anything = live[row_slot];
        if (anything) sum[0] = x[(long long)row_slot * 32];
      } else if (column >= 0) {
#if DRAWS
        anything = true;
        const double shift = inner[column];
        sum[0].x = op->own * (draw(source[column], seed, first + mine) - shift);
        sum[0].y = op->own * (draw(source[column], seed, first + mine + 1) - shift);
#else
        const long long place = column - first;
        if (place >= 0 && place < WIDTH) {
          anything = true;
          if (place == mine) sum[0].x = op->own;
          if (place == mine + 1) sum[0].y = op->own;
        }
#endif
      }
      const bool same = k + WARPS < end;
      ahead = look_up(same ? k + WARPS : end + warp, same ? end : next_end, operations, entries, lane);
      double2 less = make_double2(0.0, 0.0);
      if (flags & CARRY) less = *lost(op->lost);
      for (int chunk = 0; chunk < count; chunk += 32) {
        // Each thread looked one entry up; those with anything in them are now added in order.
        if (chunk > 0) {
          alive = chunk + lane < count;
          if (alive) {
            const Entry entry = entries[begin + chunk + lane];
            slot = entry.slot;
            value = entry.value;
            alive = live[slot];
          }
        }
        unsigned left = __ballot_sync(ALL, alive);
        if (left) anything = true;
        if (flags & CARRY) {
          while (left) {
            const int e = __ffs(left) - 1;
            left &= left - 1;
            const double v = __shfl_sync(ALL, value, e);
            const double2 row = x[(long long)__shfl_sync(ALL, slot, e) * 32];
            double gone0, gone1;
            sum[0].x = two_sum(sum[0].x, __dmul_rn(v, row.x), gone0);
            sum[0].y = two_sum(sum[0].y, __dmul_rn(v, row.y), gone1);
            if (chunk + e == 0) {
              less.x = __dmul_rn(v, less.x);
              less.y = __dmul_rn(v, less.y);
            }
            less.x += gone0;
            less.y += gone1;
          }
        } else {
          while (left) {
            // Two rows are on their way at once; what is missing of four adds zero.
#pragma unroll
            for (int g = 0; g < 4; g += 2) {
              const bool second = (left & (left - 1)) != 0;
              const int e0 = left ? __ffs(left) - 1 : 0;
              const bool any0 = left != 0;
              left &= left - 1;
              const int e1 = second ? __ffs(left) - 1 : 0;
              if (second) left &= left - 1;
              const double v0 = __shfl_sync(ALL, value, e0), v1 = __shfl_sync(ALL, value, e1);
              const int s0 = __shfl_sync(ALL, slot, e0), s1 = __shfl_sync(ALL, slot, e1);
              double2 row0 = make_double2(0.0, 0.0), row1 = make_double2(0.0, 0.0);
              if (any0) row0 = x[(long long)s0 * 32];
              if (second) row1 = x[(long long)s1 * 32];
              sum[g].x += v0 * row0.x;
              sum[g].y += v0 * row0.y;
              sum[g + 1].x += v1 * row1.x;
              sum[g + 1].y += v1 * row1.y;
              if (!left) break;
            }
          }
        }
      }
      double2 total;
      if (flags & CARRY) {
        total.x = sum[0].x + less.x;
        total.y = sum[0].y + less.y;
        less.x += sum[0].x - total.x;
        less.y += sum[0].y - total.y;
        if (anything) *lost(op->lost) = less;
      } else {
        total.x = (sum[0].x + sum[1].x) + (sum[2].x + sum[3].x);
        total.y = (sum[0].y + sum[1].y) + (sum[2].y + sum[3].y);
      }
      if (flags & BACK) {
        total.x /= op->own;
        total.y /= op->own;
      }
      if (row_slot >= 0 && !(flags & READ)) {
        if (anything) x[(long long)row_slot * 32] = total;
        if (lane == 0) live[row_slot] = anything;
      }
      if (!anything) continue;
      if (op->excess > 0.0) {
        parts[warp][mine] += op->excess * total.x;
        parts[warp][mine + 1] += op->excess * total.y;
      }
      const int score = op->score;
      if (score < 0) continue;
#if DRAWS
      const double scale = 1.0 / mass[score];
      const double drawn = warp_sum(exp(scale * total.x) + exp(scale * total.y));
      if (lane == 0) entropies[(long long)blockIdx.x * rows + score] = drawn;
#else
      const double2 top = law[2][lane], of_inner = law[0][lane];
      const double t0 = total.x * top.x, t1 = total.y * top.y;
      double best = fmax(t0, t1);
      for (int step = 16; step; step >>= 1) best = fmax(best, __shfl_xor_sync(ALL, best, step));
      const unsigned even = __ballot_sync(ALL, t0 == best), odd = __ballot_sync(ALL, t1 == best);
      if (skip == mine) { apart[score] = total.x; total.x = 0.0; }
      if (skip == mine + 1) { apart[score] = total.y; total.y = 0.0; }
      double h = total.x * of_inner.x + total.y * of_inner.y;
      if (total.x > 0.0) h -= total.x * log2(total.x);
      if (total.y > 0.0) h -= total.y * log2(total.y);
      h = warp_sum(h);
      const double m = warp_sum(total.x + total.y);
      if (priors) {
        const double2 bits = law[1][lane];
        const double q = warp_sum(total.x * bits.x + total.y * bits.y);
        if (lane == 0) priors[(long long)blockIdx.x * rows + score] = q;
      }
      if (lane == 0) {
        const int of_even = even ? 2 * (__ffs(even) - 1) : WIDTH;
        const int of_odd = odd ? 2 * (__ffs(odd) - 1) + 1 : WIDTH;
        entropies[(long long)blockIdx.x * rows + score] = h;
        masses[(long long)blockIdx.x * rows + score] = m;
        tops[(long long)blockIdx.x * rows + score] = best;
        top_columns[(long long)blockIdx.x * rows + score] = (unsigned char)min(of_even, of_odd);
      }
#endif
    }
    __syncthreads();
    start = end;
    end = next_end;
  }
  if (!weighed) return;
  if (threadIdx.x < WIDTH) {
    double total = 0.0;
    for (int w = 0; w < WARPS; w++) total += parts[w][threadIdx.x];
    weighed[(long long)blockIdx.x * WIDTH + threadIdx.x] += total;
  }
}

// Add tiles to all, one after the other; of equal largest entries the earlier tile's stays.
extern "C" __global__ void add_tiles(
    long long rows, int begin, int end, long long first_column,
    const double *__restrict__ entropies,
    const double *__restrict__ masses, const double *__restrict__ priors,
    const double *__restrict__ tops, const unsigned char *__restrict__ top_columns,
    double *__restrict__ total) {
  const long long r = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  double sums[8];
  for (int k = 0; k < 8; k++) sums[k] = total[k * rows + r];
  for (int t = begin; t < end; t++) {
    const long long at = t * rows + r;
    const double m = masses[at], best = tops[at];
    double less;
    if (m > 0.0) {
      sums[0] = two_sum(sums[0], entropies[at], less);
      sums[1] += less;
      sums[2] = two_sum(sums[2], m, less);
      sums[3] += less;
      if (priors) {
        sums[4] = two_sum(sums[4], priors[at], less);
        sums[5] += less;
      }
    }
    if (best > sums[6]) {
      sums[6] = best;
      sums[7] = (double)(first_column + (long long)t * WIDTH + top_columns[at]);
    }
  }
  for (int k = 0; k < 8; k++) total[k * rows + r] = sums[k];
}

// Before a core is solved: rows with nothing in them become zero, if any row has something.
extern "C" __global__ void begin_core(
    long long slots, int slot, int n, double *__restrict__ rooms, unsigned char *__restrict__ lives,
    unsigned char *__restrict__ solve) {
  __shared__ int found;
  unsigned char *live = lives + (long long)blockIdx.x * slots + slot;
  double *x = rooms + ((long long)blockIdx.x * slots + slot) * WIDTH;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    if (live[i]) found = 1;
  __syncthreads();
  if (threadIdx.x == 0) solve[blockIdx.x] = found;
  if (!found) return;
  for (long long k = threadIdx.x; k < (long long)n * WIDTH; k += blockDim.x)
    if (!live[k / WIDTH]) x[k] = 0.0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) live[i] = 1;
}

// Multiply the rows of a core by its inverse, 64 rows at a time. Sums go by 16 terms, so that each
// term meets few others.
extern "C" __global__ __launch_bounds__(256) void multiply_core(
    long long slots, int slot, int n, const double *__restrict__ inverse,
    const double *__restrict__ rooms, const unsigned char *__restrict__ solve,
    double *__restrict__ solved) {
  if (!solve[blockIdx.x]) return;
  __shared__ double a[16][65], b[16][WIDTH];
  const double *x = rooms + ((long long)blockIdx.x * slots + slot) * WIDTH;
  const int row = blockIdx.y * 64, i0 = (threadIdx.x / 16) * 4, c0 = (threadIdx.x % 16) * 4;
  double total[4][4] = {};
  for (int first = 0; first < n; first += 16) {
    for (int k = threadIdx.x; k < 64 * 16; k += 256) {
      const int i = k / 16, j = k % 16;
      a[j][i] = row + i < n && first + j < n ? inverse[(long long)(row + i) * n + first + j] : 0.0;
    }
    for (int k = threadIdx.x; k < 16 * WIDTH; k += 256) {
      const int j = k / WIDTH;
      b[j][k % WIDTH] = first + j < n ? x[(long long)(first + j) * WIDTH + k % WIDTH] : 0.0;
    }
    __syncthreads();
    double part[4][4] = {};
#pragma unroll
    for (int j = 0; j < 16; j++)
      for (int i = 0; i < 4; i++)
        for (int c = 0; c < 4; c++) part[i][c] += a[j][i0 + i] * b[j][c0 + c];
    for (int i = 0; i < 4; i++)
      for (int c = 0; c < 4; c++) total[i][c] += part[i][c];
    __syncthreads();
  }
  double *to = solved + (long long)blockIdx.x * n * WIDTH;
  for (int i = 0; i < 4; i++)
    for (int c = 0; c < 4; c++)
      if (row + i0 + i < n) to[(long long)(row + i0 + i) * WIDTH + c0 + c] = total[i][c];
}

extern "C" __global__ void end_core(
    long long slots, int slot, int n, const unsigned char *__restrict__ solve,
    const double *__restrict__ solved, double *__restrict__ rooms) {
  if (!solve[blockIdx.x]) return;
  double *x = rooms + ((long long)blockIdx.x * slots + slot) * WIDTH;
  const double *from = solved + (long long)blockIdx.x * n * WIDTH;
  for (long long k = (long long)blockIdx.y * blockDim.x + threadIdx.x; k < (long long)n * WIDTH;
       k += (long long)gridDim.y * blockDim.x)
    x[k] = from[k];
}
