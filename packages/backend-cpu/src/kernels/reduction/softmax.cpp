// softmax, log_softmax and their gradients.
//
// A slice along `dim` is loaded into the cache once. The passes are: maximum, exponentials and
// their sum, division. Slices along the innermost dimension are processed one by one, others in
// tiles of neighbouring slices, row by row.
#include <cmath>

#include "candelabra/arguments/softmax.hpp"
#include "candelabra/math.hpp"
#include "drivers/iterate.hpp"
#include "kernels/movement/dense.hpp"
#include "kernels/reduction/softmax_slices.hpp"
#include "memory/allocator.hpp"
#include "memory/transpose.hpp"
#include "simd/load_elements.hpp"
#include "simd/vec_math.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace softmax_lines;

// Slices of a tile: many if they are read in place, in long rows of memory, fewer if they go
// through a buffer.
constexpr int64_t tile = 1024;
constexpr int64_t buffered_tile = 64;
constexpr int64_t short_length = 24;

// An operation has, for values of type V (float or double):
// - slice(): one contiguous slice, or slices(): at most max_slices of them;
// - rows(): `columns` neighbouring slices of n rows, which are pitch[k] apart in operand k.
// The first operand may be the output's memory.

template <typename V>
double sum_slice(const V* values, int64_t n) {
  double sum = 0;
  constexpr int64_t block = 4096;  // summed in V; block sums are added in float64
  for (int64_t begin = 0; begin < n; begin += block) {
    int64_t end = std::min(begin + block, n);
    V part = 0;
#pragma omp simd reduction(+ : part)
    for (int64_t i = begin; i < end; ++i) part += values[i];
    sum += static_cast<double>(part);
  }
  return sum;
}

// The maximum of each of `columns` slices and the sum of exp(x - maximum), in one pass over memory
// (online softmax). A block of rows is read twice, the second time from the cache. Earlier sums are
// rescaled when the maximum grows.
template <typename V>
void sum_exp_of_rows(const V* x, int64_t pitch, int64_t n, int64_t columns, V* largest, double* sum) {
  constexpr V lowest = Extremum<V, true>::identity();
  constexpr int64_t block = 16;
  V before[tile], e[tile];
  for (int64_t j = 0; j < columns; ++j) largest[j] = lowest, sum[j] = 0;
  for (int64_t first = 0; first < n; first += block) {
    int64_t rows = std::min(block, n - first);
    const V* top = x + first * pitch;
    std::copy_n(largest, columns, before);
    Extremum<V, true>::rows(largest, top, pitch, rows, columns, 0);
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) {
      V factor = before[j] == largest[j] ? V(1) : math::exp(before[j] - largest[j]);
      sum[j] *= static_cast<double>(factor);
      before[j] = largest[j] == lowest ? V(0) : largest[j];  // avoids inf - inf
    }
    for (int64_t r = 0; r < rows; ++r) {
      const V* row = top + r * pitch;
      for_registers<V>(columns, [&](int64_t j, int64_t count, auto whole) {
        store_register(
            e + j, exp_of_difference<V>(load_register(row + j, count, whole) - load_register(before + j, count, whole)),
            count, whole);
      });
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) sum[j] += static_cast<double>(e[j]);
    }
  }
}

struct Softmax {
  using Arguments = arguments::Softmax;
  static constexpr int inputs = 1;
  template <typename V>
  static void slices(const V* const* x, V* const* out, int64_t n, int64_t count) {
    if (n <= math::Vec<V>::size) {
      for (int64_t j = 0; j < count; ++j) {
        const ShortSlice<V> all(x[j], n);
        const V scale = static_cast<V>(1 / all.sum);
        (all.exponentials * scale).store(out[j], n);
      }
      return;
    }
    V largest[max_slices];
    double sums[max_slices];
    statistics_of(x, out, n, count, largest, sums);
    for (int64_t j = 0; j < count; ++j) {
      const V scale = static_cast<V>(1 / sums[j]);
      V* to = out[j];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) to[i] *= scale;
    }
  }
  template <typename V>
  static void rows(const V* const* in, const int64_t* pitch, V* out, int64_t out_pitch, int64_t n, int64_t columns) {
    V largest[tile], scale[tile];
    double sum[tile];
    sum_exp_of_rows(in[0], pitch[0], n, columns, largest, sum);
    for (int64_t j = 0; j < columns; ++j) scale[j] = static_cast<V>(1 / sum[j]);
    for (int64_t r = 0; r < n; ++r) {
      const V* x = in[0] + r * pitch[0];
      V* y = out + r * out_pitch;
      for_registers<V>(columns, [&](int64_t j, int64_t count, auto whole) {
        const auto e =
            exp_of_difference<V>(load_register(x + j, count, whole) - load_register(largest + j, count, whole));
        store_register(y + j, e * load_register(scale + j, count, whole), count, whole);
      });
    }
  }
};

struct LogSoftmax {
  using Arguments = arguments::LogSoftmax;
  static constexpr int inputs = 1;
  template <typename V>
  static void slices(const V* const* x, V* const* out, int64_t n, int64_t count) {
    if (n <= math::Vec<V>::size) {
      for (int64_t j = 0; j < count; ++j) {
        const ShortSlice<V> all(x[j], n);
        const V logarithm = math::log(static_cast<V>(all.sum));
        ((all.x - math::Vec<V>(all.largest)) - math::Vec<V>(logarithm)).store(out[j], n);
      }
      return;
    }
    V largest[max_slices], logarithms[max_slices];
    double sums[max_slices];
    statistics_of<V>(x, nullptr, n, count, largest, sums);
    for (int64_t j = 0; j < count; ++j) logarithms[j] = math::log(static_cast<V>(sums[j]));
    for (int64_t j = 0; j < count; ++j) {
      const V *from = x[j], maximum = largest[j], logarithm = logarithms[j];
      V* to = out[j];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) to[i] = (from[i] - maximum) - logarithm;
    }
  }
  template <typename V>
  static void rows(const V* const* in, const int64_t* pitch, V* out, int64_t out_pitch, int64_t n, int64_t columns) {
    V largest[tile], logarithm[tile];
    double sum[tile];
    sum_exp_of_rows(in[0], pitch[0], n, columns, largest, sum);
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) logarithm[j] = math::log(static_cast<V>(sum[j]));
    for (int64_t r = 0; r < n; ++r) {
      const V* x = in[0] + r * pitch[0];
      V* y = out + r * out_pitch;
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) y[j] = (x[j] - largest[j]) - logarithm[j];
    }
  }
};

// grad_input = y (grad - sum(grad y))
struct SoftmaxBackward {
  using Arguments = arguments::SoftmaxBackward;
  static constexpr int inputs = 2;
  template <typename V>
  static void slice(const V* const* in, V* out, int64_t n) {
    const V *grad = in[0], *y = in[1];
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(grad[i] * y[i]);
    V total = static_cast<V>(sum);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = y[i] * (grad[i] - total);
  }
  template <typename V>
  static void rows(const V* const* in, const int64_t* pitch, V* out, int64_t out_pitch, int64_t n, int64_t columns) {
    double total[tile] = {};
    for (int64_t r = 0; r < n; ++r) {
      const V *grad = in[0] + r * pitch[0], *y = in[1] + r * pitch[1];
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) total[j] += static_cast<double>(grad[j] * y[j]);
    }
    V sum[tile];
    for (int64_t j = 0; j < columns; ++j) sum[j] = static_cast<V>(total[j]);
    for (int64_t r = 0; r < n; ++r) {
      const V *grad = in[0] + r * pitch[0], *y = in[1] + r * pitch[1];
      V* to = out + r * out_pitch;
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) to[j] = y[j] * (grad[j] - sum[j]);
    }
  }
};

// grad_input = grad - exp(y) sum(grad)
struct LogSoftmaxBackward {
  using Arguments = arguments::LogSoftmaxBackward;
  static constexpr int inputs = 2;
  template <typename V>
  static void slice(const V* const* in, V* out, int64_t n) {
    const V *grad = in[0], *y = in[1];
    V sum = static_cast<V>(sum_slice(grad, n));
    for_registers<V>(n, [&](int64_t i, int64_t count, auto whole) {
      const auto p = math::exp(load_register(y + i, count, whole));
      store_register(out + i, fnma(p, math::Vec<V>(sum), load_register(grad + i, count, whole)), count, whole);
    });
  }
  template <typename V>
  static void rows(const V* const* in, const int64_t* pitch, V* out, int64_t out_pitch, int64_t n, int64_t columns) {
    double total[tile] = {};
    for (int64_t r = 0; r < n; ++r) {
      const V* grad = in[0] + r * pitch[0];
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) total[j] += static_cast<double>(grad[j]);
    }
    V sum[tile];
    for (int64_t j = 0; j < columns; ++j) sum[j] = static_cast<V>(total[j]);
    for (int64_t r = 0; r < n; ++r) {
      const V *grad = in[0] + r * pitch[0], *y = in[1] + r * pitch[1];
      V* to = out + r * out_pitch;
      for_registers<V>(columns, [&](int64_t j, int64_t count, auto whole) {
        const auto p = math::exp(load_register(y + j, count, whole));
        store_register(to + j, fnma(p, load_register(sum + j, count, whole), load_register(grad + j, count, whole)),
                       count, whole);
      });
    }
  }
};

// Runs an operation over all slices.
template <typename Operation, typename T>
class Driver {
  using V = compute_t<T>;
  static constexpr int inputs = Operation::inputs;
  static constexpr bool same = std::is_same_v<T, V>;
  static constexpr bool batched = requires(const V* const* in, V* const* out) { Operation::slices(in, out, 0, 0); };
  static_assert(!batched || inputs == 1);  // slices() takes one pointer per slice

 public:
  Driver(const cb_tensor* const* in, cb_tensor& out, int64_t dim)
      : out_(data<T>(out)), n_(out.ndim ? out.sizes[dim] : 1) {
    std::copy_n(out.sizes, out.ndim, sizes_);
    if (out.ndim) sizes_[dim] = 1;
    cb_tensor outer[inputs + 1] = {out};
    std::array<const cb_tensor*, inputs + 1> operands;
    for (int k = 0; k <= inputs; ++k) {
      if (k) outer[k] = *in[k - 1], in_[k - 1] = data<T>(*in[k - 1]);
      stride_[k] = out.ndim ? outer[k].strides[dim] : 1;
      outer[k].sizes = sizes_;
      outer[k].numel = out.numel / std::max<int64_t>(n_, 1);
      operands[k] = &outer[k];
    }
    outer_ = geometry<inputs + 1>(operands);
  }

  void run() const {
    if (n_ == 0 || outer_.numel == 0) return;
    bool outer = n_ > 1 && std::abs(stride_[0]) > std::abs(outer_.strides[0][0]) && outer_.sizes[0] >= 8;
    // Slices of only a few vectors (the classes of a small classifier) are processed as tiles as
    // well, transposed.
    bool short_slices = n_ <= short_length && outer_.sizes[0] >= 16;
    if (outer || short_slices)
      run_tiles();
    else
      run_slices();
  }

 private:
  // Whether slices of an operand are contiguous across and not along: several are then transposed
  // at a time.
  bool is_transposed(int operand) const {
    return stride_[operand] != 1 && outer_.strides[operand][0] == 1 && outer_.sizes[0] >= 8 && n_ > 1;
  }
  static void transpose(T* to, int64_t pitch, const T* from, int64_t from_pitch, int64_t columns, int64_t rows) {
    dispatch_size(sizeof(T), [&]<typename U>() {
      transpose_bits(reinterpret_cast<U*>(to), pitch, reinterpret_cast<const U*>(from), from_pitch, columns, rows);
    });
  }

  void load_slice(const T* from, int64_t step, V* to) const {
    if constexpr (is_half_v<T>)
      if (step == 1) return to_float(from, to, n_);
    load_strided(from, step, n_, to);
  }
  void store_slice(const V* from, T* to) const {
    if constexpr (is_half_v<T>)
      if (stride_[0] == 1) return from_float(from, to, n_);
    store_strided(from, n_, to, stride_[0]);
  }

  void run_slices() const {
    bool direct = same, transposed[inputs];
    for (int k = 0; k <= inputs; ++k) direct &= stride_[k] == 1;
    int transposes = 0;
    for (int k = 0; k < inputs; ++k) transposes += transposed[k] = is_transposed(k + 1);
    constexpr int64_t transposed_slices = 32;
    const int64_t block = transposes ? transposed_slices : int64_t{1} << 30;
    const int64_t batch = batched ? slice_batch(n_) : 1;
    parallel_for(outer_.numel, grain_for(8 * n_), [&](int64_t begin, int64_t end) {
      Scratch<V> buffer(direct ? 0 : (inputs + 1) * n_ * batch);
      Scratch<T> slices(transposes ? inputs * transposed_slices * n_ : 0);
      for_each_run(outer_, begin, end, [&](const int64_t* at, int64_t n) {
        for (int64_t first = 0; first < n; first += block) {
          const int64_t count = std::min(block, n - first);
          for (int k = 0; k < inputs; ++k)
            if (transposed[k])
              transpose(slices.data() + k * transposed_slices * n_, n_, in_[k] + at[k + 1] + first, stride_[k + 1], n_,
                        count);
          for (int64_t i = first; i < first + count; i += batch) {
            const int64_t now = std::min(batch, first + count - i);
            const V* in[max_slices][inputs] = {};
            V* to[max_slices] = {};
            const bool in_place = same && stride_[0] == 1;
            for (int64_t j = 0; j < now; ++j) {
              V* own = direct ? nullptr : buffer.data() + j * (inputs + 1) * n_;
              for (int k = 0; k < inputs; ++k) {
                const T* from = transposed[k] ? slices.data() + (k * transposed_slices + i + j - first) * n_
                                              : in_[k] + at[k + 1] + (i + j) * outer_.strides[k + 1][0];
                if (same && (transposed[k] || stride_[k + 1] == 1)) {
                  in[j][k] = reinterpret_cast<const V*>(from);
                } else {
                  load_slice(from, transposed[k] ? 1 : stride_[k + 1], own + k * n_);
                  in[j][k] = own + k * n_;
                }
              }
              to[j] =
                  in_place ? reinterpret_cast<V*>(out_ + at[0] + (i + j) * outer_.strides[0][0]) : own + inputs * n_;
            }
            if constexpr (batched)
              Operation::slices(in[0], to, n_, now);
            else
              Operation::slice(in[0], to[0], n_);
            if (in_place) continue;
            for (int64_t j = 0; j < now; ++j) store_slice(to[j], out_ + at[0] + (i + j) * outer_.strides[0][0]);
          }
        }
      });
    });
  }

  void run_tiles() const {
    bool direct = same;
    for (int k = 0; k <= inputs; ++k) direct &= outer_.strides[k][0] == 1;
    int64_t max_width = !direct ? buffered_tile : outer_.numel >= 8 * tile ? tile : tile / 2;
    int64_t width = std::min(max_width, outer_.sizes[0]);
    int64_t tiles = (outer_.sizes[0] + width - 1) / width;
    int64_t units = tiles * (outer_.numel / outer_.sizes[0]);
    parallel_for(units, grain_for(8 * n_ * width), [&](int64_t begin, int64_t end) {
      Scratch<V> buffer(direct ? 0 : (inputs + 1) * n_ * width);
      for (int64_t unit = begin; unit < end; ++unit) {
        int64_t first = unit % tiles * width, columns = std::min(width, outer_.sizes[0] - first);
        Position<inputs + 1> at(outer_, unit / tiles * outer_.sizes[0] + first);
        const V* in[inputs];
        int64_t pitch[inputs];
        T* out = out_ + at.offsets[0];
        for (int k = 0; k < inputs; ++k) {
          const T* from = in_[k] + at.offsets[k + 1];
          in[k] = direct ? reinterpret_cast<const V*>(from) : buffer.data() + k * n_ * width;
          pitch[k] = direct ? stride_[k + 1] : width;
          if (direct) continue;
          if (same && stride_[k + 1] == 1)
            transpose(reinterpret_cast<T*>(buffer.data() + k * n_ * width), width, from, outer_.strides[k + 1][0],
                      columns, n_);
          else
            for (int64_t r = 0; r < n_; ++r)
              load_strided(from + r * stride_[k + 1], outer_.strides[k + 1][0], columns,
                           buffer.data() + (k * n_ + r) * width);
        }
        V* to = direct ? reinterpret_cast<V*>(out) : buffer.data() + inputs * n_ * width;
        Operation::rows(in, pitch, to, direct ? stride_[0] : width, n_, columns);
        if (!direct)
          for (int64_t r = 0; r < n_; ++r)
            store_strided(to + r * width, columns, out + r * stride_[0], outer_.strides[0][0]);
      }
    });
  }

  const T* in_[inputs];
  T* out_;
  int64_t n_;
  int64_t stride_[inputs + 1];
  int64_t sizes_[max_dims];
  Geometry<inputs + 1> outer_;
};

// Whether an operand is contiguous along a third dimension, neither `dim` nor the one along which
// neighbouring slices lie. Reading it in the output's order would touch a cache line per element,
// so that it is copied first.
bool needs_copy(const cb_tensor& in, const cb_tensor& out, int64_t dim) {
  constexpr int64_t fewest = 4096;  // below, allocating the copy costs more
  if (in.numel < fewest || !is_contiguous(out)) return false;
  int64_t beside = out.ndim - 1;
  while (beside >= 0 && (beside == dim || out.sizes[beside] == 1)) --beside;
  if (beside < 0 || in.strides[dim] <= 1 || in.strides[beside] <= 1) return false;
  for (int64_t d = 0; d < in.ndim; ++d)
    if (in.strides[d] == 1 && in.sizes[d] >= 8) return true;
  return false;
}

template <typename Operation>
void run_along_dim(Call& call) {
  cb_tensor& out = call.output();
  const int64_t dim = typename Operation::Arguments(call).dim;
  const cb_tensor* in[Operation::inputs];
  std::optional<DenseCopy> copies[Operation::inputs];
  for (int k = 0; k < Operation::inputs; ++k) {
    in[k] = &call.tensor(k);  // inputs come first
    if (needs_copy(*in[k], out, dim)) in[k] = &copies[k].emplace(*in[k]).tensor();
  }
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() { Driver<Operation, T>(in, out, dim).run(); });
}

}  // namespace

void register_softmax(KernelTable& table) {
  table.add<run_along_dim<Softmax>>("softmax");
  table.add<run_along_dim<LogSoftmax>>("log_softmax");
  table.add<run_along_dim<SoftmaxBackward>>("softmax_backward");
  table.add<run_along_dim<LogSoftmaxBackward>>("log_softmax_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
