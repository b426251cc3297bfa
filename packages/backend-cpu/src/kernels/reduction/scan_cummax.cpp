// _cummax_cummin: the index of the largest or smallest element so far along a dimension, of the
// last one among equals. A NaN is never replaced by a number.
#include "candelabra/arguments/scan.hpp"
#include "drivers/iterate.hpp"
#include "kernels/movement/dense.hpp"
#include "simd/load.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// Whether `now` replaces the extremum so far.
template <bool Larger, typename C>
[[gnu::always_inline]] inline bool replaces(C now, C before) {
  const bool reaches = Larger ? now >= before : now <= before;
  return reaches | (now != now);
}

// Neighbouring slices that are scanned at once.
constexpr int64_t slices_per_block = 64;

// Scans a contiguous slice. A block in which the extremum does not change is filled with its index;
// other blocks are scanned without branches.
template <bool Larger, typename T>
void scan_contiguous(const T* slice, int64_t length, int64_t* to) {
  using C = std::conditional_t<std::is_same_v<T, bool>, uint8_t, compute_t<T>>;
  constexpr int64_t block = 32;
  C best = static_cast<C>(load(slice));
  int64_t index = 0;
  for (int64_t k = 0; k < length; k += block) {
    const int64_t n = std::min(block, length - k);
    C values[block];
    int32_t found = 0, nan = best != best;
#pragma omp simd reduction(| : found, nan)
    for (int64_t i = 0; i < n; ++i) {
      const C value = static_cast<C>(load(slice + k + i));
      values[i] = value;
      found |= replaces<Larger>(value, best);
      nan |= value != value;
    }
    if (!found) {
      std::fill_n(to + k, n, index);
    } else if (nan) {
      for (int64_t i = 0; i < n; ++i) {
        if (replaces<Larger>(values[i], best)) best = values[i], index = k + i;
        to[k + i] = index;
      }
    } else {
      for (int64_t i = 0; i < n; ++i) {
        // Indices grow, so that a maximum selects the later of the two.
        const int64_t reaches = Larger ? values[i] >= best : values[i] <= best;
        best = Larger ? std::max(values[i], best) : std::min(values[i], best);
        index = std::max(index, -reaches & (k + i));
        to[k + i] = index;
      }
    }
  }
}

template <bool Larger, typename T>
void running_indices(const cb_tensor& in, const cb_tensor& out, int dim) {
  using C = compute_t<T>;
  const int64_t length = in.sizes[dim], in_stride = in.strides[dim], out_stride = out.strides[dim];
  int64_t sizes[max_dims];
  std::copy_n(in.sizes, in.ndim, sizes);
  sizes[dim] = 1;
  cb_tensor outer_in = in, outer_out = out;
  outer_in.sizes = outer_out.sizes = sizes;
  outer_in.numel = outer_out.numel = in.numel / length;
  const auto g = geometry<2>({&outer_out, &outer_in});
  const int64_t in_pitch = g.strides[1][0], out_pitch = g.strides[0][0];
  parallel_for(g.numel, grain_for(4 * length), [&](int64_t begin, int64_t end) {
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t slices) {
      for (int64_t first = 0; first < slices; first += slices_per_block) {
        const int64_t count = std::min(slices_per_block, slices - first);
        const T* from = data<T>(in) + at[1] + first * in_pitch;
        int64_t* to = mutable_data<int64_t>(out) + at[0] + first * out_pitch;
        if (in_stride == 1 && out_stride == 1) {
          for (int64_t j = 0; j < count; ++j) scan_contiguous<Larger>(from + j * in_pitch, length, to + j * out_pitch);
          continue;
        }
        if (in_stride == 1 || count < 4) {
          for (int64_t j = 0; j < count; ++j) {
            const T* slice = from + j * in_pitch;
            C best = static_cast<C>(load(slice));
            int64_t index = 0;
            for (int64_t k = 0; k < length; ++k) {
              const C now = static_cast<C>(load(slice + k * in_stride));
              const bool better = replaces<Larger>(now, best);
              best = better ? now : best;
              index = better ? k : index;
              to[j * out_pitch + k * out_stride] = index;
            }
          }
          continue;
        }
        C best[slices_per_block];
        int64_t index[slices_per_block] = {};
        for (int64_t j = 0; j < count; ++j) best[j] = static_cast<C>(load(from + j * in_pitch));
        for (int64_t k = 0; k < length; ++k)
          for (int64_t j = 0; j < count; ++j) {
            const C now = static_cast<C>(load(from + j * in_pitch + k * in_stride));
            const bool better = replaces<Larger>(now, best[j]);
            best[j] = better ? now : best[j];
            index[j] = better ? k : index[j];
            to[j * out_pitch + k * out_stride] = index[j];
          }
      }
    });
  });
}

void cummax_cummin(Call& call) {
  const arguments::CummaxCummin args(call);
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  const int dim = static_cast<int>(args.dim);
  const InOrderOf read(*args.self, out, dim);
  const cb_tensor& in = *read;
  dispatch_among(in.dtype, BoolType{} + RealTypes{}, [&]<typename T>() {
    if (args.larger)
      running_indices<true, T>(in, out, dim);
    else
      running_indices<false, T>(in, out, dim);
  });
}

}  // namespace

void register_scan_cummax(KernelTable& table) {
  table.add<cummax_cummin>("_cummax_cummin");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
