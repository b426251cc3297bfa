// running_extremum: where the largest or smallest element so far is along a dimension, the last among equals. NaN wins for good.
#include "../iterate.hpp"
#include "../load.hpp"
#include "../parallel.hpp"
#include "dense.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// Whether `now` takes the place of the extremum up to it.
template <bool Larger, typename C>
[[gnu::always_inline]] inline bool takes(C now, C before) {
  const bool reaches = Larger ? now >= before : now <= before;
  return reaches | (now != now);
}

// Lines side by side that are gone along together.
constexpr int64_t together = 64;

// A line without gaps. Blocks in which the extremum does not change are filled with its position; in others nothing branches.
template <bool Larger, typename T>
void along_line(const T* line, int64_t length, int64_t* to) {
  using C = std::conditional_t<std::is_same_v<T, bool>, uint8_t, compute_t<T>>;
  constexpr int64_t block = 32;
  C best = static_cast<C>(load(line));
  int64_t place = 0;
  for (int64_t k = 0; k < length; k += block) {
    const int64_t n = std::min(block, length - k);
    C values[block];
    int32_t found = 0, nan = best != best;
#pragma omp simd reduction(| : found, nan)
    for (int64_t i = 0; i < n; ++i) {
      const C value = static_cast<C>(load(line + k + i));
      values[i] = value;
      found |= takes<Larger>(value, best);
      nan |= value != value;
    }
    if (!found) {
      std::fill_n(to + k, n, place);
    } else if (nan) {
      for (int64_t i = 0; i < n; ++i) {
        if (takes<Larger>(values[i], best)) best = values[i], place = k + i;
        to[k + i] = place;
      }
    } else {
      for (int64_t i = 0; i < n; ++i) {
        // Positions grow: a later one that takes the place is the largest so far.
        const int64_t reaches = Larger ? values[i] >= best : values[i] <= best;
        best = Larger ? std::max(values[i], best) : std::min(values[i], best);
        place = std::max(place, -reaches & (k + i));
        to[k + i] = place;
      }
    }
  }
}

template <bool Larger, typename T>
void positions(const cb_tensor& in, const cb_tensor& out, int dim) {
  using C = compute_t<T>;
  const int64_t length = in.sizes[dim], in_step = in.strides[dim], out_step = out.strides[dim];
  int64_t sizes[max_dims];
  std::copy_n(in.sizes, in.ndim, sizes);
  sizes[dim] = 1;
  cb_tensor heads_in = in, heads_out = out;
  heads_in.sizes = heads_out.sizes = sizes;
  heads_in.numel = heads_out.numel = in.numel / length;
  const auto g = geometry<2>({&heads_out, &heads_in});
  const int64_t in_side = g.strides[1][0], out_side = g.strides[0][0];
  parallel_for(g.numel, grain_for(4 * length), [&](int64_t begin, int64_t end) {
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t lines) {
      for (int64_t first = 0; first < lines; first += together) {
        const int64_t count = std::min(together, lines - first);
        const T* from = data<T>(in) + at[1] + first * in_side;
        int64_t* to = mutable_data<int64_t>(out) + at[0] + first * out_side;
        if (in_step == 1 && out_step == 1) {
          for (int64_t j = 0; j < count; ++j) along_line<Larger>(from + j * in_side, length, to + j * out_side);
          continue;
        }
        if (in_step == 1 || count < 4) {
          for (int64_t j = 0; j < count; ++j) {
            const T* line = from + j * in_side;
            C best = static_cast<C>(load(line));
            int64_t place = 0;
            for (int64_t k = 0; k < length; ++k) {
              const C now = static_cast<C>(load(line + k * in_step));
              const bool better = takes<Larger>(now, best);
              best = better ? now : best;
              place = better ? k : place;
              to[j * out_side + k * out_step] = place;
            }
          }
          continue;
        }
        C best[together];
        int64_t place[together] = {};
        for (int64_t j = 0; j < count; ++j) best[j] = static_cast<C>(load(from + j * in_side));
        for (int64_t k = 0; k < length; ++k)
          for (int64_t j = 0; j < count; ++j) {
            const C now = static_cast<C>(load(from + j * in_side + k * in_step));
            const bool better = takes<Larger>(now, best[j]);
            best[j] = better ? now : best[j];
            place[j] = better ? k : place[j];
            to[j * out_side + k * out_step] = place[j];
          }
      }
    });
  });
}

void running_extremum(Call& call) {
  const cb_tensor &given = call.tensor(0), &out = call.output();
  if (out.numel == 0) return;
  const int dim = static_cast<int>(call.integer(1));
  const InOrderOf read(given, out, dim);
  const cb_tensor& in = *read;
  dispatch_among(in.dtype, BoolType{} + RealTypes{}, [&]<typename T>() {
    if (call.boolean(2))
      positions<true, T>(in, out, dim);
    else
      positions<false, T>(in, out, dim);
  });
}

}  // namespace

void register_scan_extremum(KernelTable& table) {
  table.add<running_extremum>("running_extremum");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
