// softmax, log_softmax and their gradients.
//
// A line is brought into the first cache levels once and walked there: largest value, exponentials and their sum, quotient. Lines
// along the innermost dimension are done one by one, others in tiles of neighbouring lines, row by row.
#include <cmath>

#include "../allocator.hpp"
#include "../bring.hpp"
#include "../half_registers.hpp"
#include "../iterate.hpp"
#include "../transpose.hpp"
#include "../vec_math.hpp"
#include "candelabra/math.hpp"
#include "dense.hpp"
#include "softmax_lines.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace softmax_lines;

// Neighbouring lines done together: many where they are read in place (long rows of memory), fewer where they go through a buffer.
constexpr int64_t tile = 1024;
constexpr int64_t buffered_tile = 64;
constexpr int64_t few_values = 24;  // of a line

// Each operation on lines of values of type V (float or double): `line` on one line without gaps (or `lines` on some of them, at
// most most_lines), `rows` on `columns` lines of n rows that lie `pitch` apart in each operand. The first operand may be the
// output's memory.

template <typename V>
double sum_line(const V* values, int64_t n) {
  double sum = 0;
  constexpr int64_t block = 4096;  // float sums of so many, added in float64
  for (int64_t begin = 0; begin < n; begin += block) {
    int64_t end = std::min(begin + block, n);
    V part = 0;
#pragma omp simd reduction(+ : part)
    for (int64_t i = begin; i < end; ++i) part += values[i];
    sum += static_cast<double>(part);
  }
  return sum;
}

// Largest value of each of `columns` lines and the sum of exp(x - largest), in one pass over memory: a block of rows is read again
// from the first cache levels, and what was summed before is scaled when a larger value comes.
template <typename V>
void exponentials_of_rows(const V* x, int64_t pitch, int64_t n, int64_t columns, V* largest, double* sum) {
  constexpr V none = Extremum<V, true>::identity();
  constexpr int64_t block = 16;
  V before[tile], e[tile];
  for (int64_t j = 0; j < columns; ++j) largest[j] = none, sum[j] = 0;
  for (int64_t first = 0; first < n; first += block) {
    int64_t rows = std::min(block, n - first);
    const V* top = x + first * pitch;
    std::copy_n(largest, columns, before);
    Extremum<V, true>::rows(largest, top, pitch, rows, columns, 0);
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) {
      V factor = before[j] == largest[j] ? V(1) : math::exp(before[j] - largest[j]);
      sum[j] *= static_cast<double>(factor);
      before[j] = largest[j] == none ? V(0) : largest[j];  // of nothing but -inf so far the sum is 0
    }
    for (int64_t r = 0; r < rows; ++r) {
      const V* row = top + r * pitch;
      for_registers<V>(columns, [&](int64_t j, int64_t count, auto whole) {
        store_register(e + j, exp_of_difference<V>(load_register(row + j, count, whole) - load_register(before + j, count, whole)),
                       count, whole);
      });
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) sum[j] += static_cast<double>(e[j]);
    }
  }
}

struct Softmax {
  static constexpr int inputs = 1;
  template <typename V>
  static void lines(const V* const* x, V* const* out, int64_t n, int64_t count) {
    if (n <= math::Vec<V>::size) {
      for (int64_t j = 0; j < count; ++j) {
        const ShortLine<V> all(x[j], n);
        const V by = static_cast<V>(1 / all.sum);
        (all.powers * by).store(out[j], n);
      }
      return;
    }
    V largest[most_lines];
    double sums[most_lines];
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
    exponentials_of_rows(in[0], pitch[0], n, columns, largest, sum);
    for (int64_t j = 0; j < columns; ++j) scale[j] = static_cast<V>(1 / sum[j]);
    for (int64_t r = 0; r < n; ++r) {
      const V* x = in[0] + r * pitch[0];
      V* y = out + r * out_pitch;
      for_registers<V>(columns, [&](int64_t j, int64_t count, auto whole) {
        const auto e = exp_of_difference<V>(load_register(x + j, count, whole) - load_register(largest + j, count, whole));
        store_register(y + j, e * load_register(scale + j, count, whole), count, whole);
      });
    }
  }
};

struct LogSoftmax {
  static constexpr int inputs = 1;
  template <typename V>
  static void lines(const V* const* x, V* const* out, int64_t n, int64_t count) {
    if (n <= math::Vec<V>::size) {
      for (int64_t j = 0; j < count; ++j) {
        const ShortLine<V> all(x[j], n);
        const V rest = math::log(static_cast<V>(all.sum));
        ((all.x - math::Vec<V>(all.largest)) - math::Vec<V>(rest)).store(out[j], n);
      }
      return;
    }
    V largest[most_lines], logarithms[most_lines];
    double sums[most_lines];
    statistics_of<V>(x, nullptr, n, count, largest, sums);
    for (int64_t j = 0; j < count; ++j) logarithms[j] = math::log(static_cast<V>(sums[j]));
    for (int64_t j = 0; j < count; ++j) {
      const V *from = x[j], top = largest[j], rest = logarithms[j];
      V* to = out[j];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) to[i] = (from[i] - top) - rest;
    }
  }
  template <typename V>
  static void rows(const V* const* in, const int64_t* pitch, V* out, int64_t out_pitch, int64_t n, int64_t columns) {
    V largest[tile], logarithm[tile];
    double sum[tile];
    exponentials_of_rows(in[0], pitch[0], n, columns, largest, sum);
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
  static constexpr int inputs = 2;
  template <typename V>
  static void line(const V* const* in, V* out, int64_t n) {
    const V *grad = in[0], *y = in[1];
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(grad[i] * y[i]);
    V mean = static_cast<V>(sum);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = y[i] * (grad[i] - mean);
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
  static constexpr int inputs = 2;
  template <typename V>
  static void line(const V* const* in, V* out, int64_t n) {
    const V *grad = in[0], *y = in[1];
    V sum = static_cast<V>(sum_line(grad, n));
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
        store_register(to + j, fnma(p, load_register(sum + j, count, whole), load_register(grad + j, count, whole)), count, whole);
      });
    }
  }
};

template <typename Operation, typename T>
class Along {
  using V = compute_t<T>;
  static constexpr int inputs = Operation::inputs;
  static constexpr bool same = std::is_same_v<T, V>;
  static constexpr bool several = requires(const V* const* in, V* const* out) { Operation::lines(in, out, 0, 0); };
  static_assert(!several || inputs == 1);  // whose lines are pointers one after another

 public:
  Along(const cb_tensor* const* in, cb_tensor& out, int64_t dim) : out_(data<T>(out)), n_(out.ndim ? out.sizes[dim] : 1) {
    std::copy_n(out.sizes, out.ndim, sizes_);
    if (out.ndim) sizes_[dim] = 1;
    cb_tensor seen[inputs + 1] = {out};
    std::array<const cb_tensor*, inputs + 1> operands;
    for (int k = 0; k <= inputs; ++k) {
      if (k) seen[k] = *in[k - 1], in_[k - 1] = data<T>(*in[k - 1]);
      step_[k] = out.ndim ? seen[k].strides[dim] : 1;
      seen[k].sizes = sizes_;
      seen[k].numel = out.numel / std::max<int64_t>(n_, 1);
      operands[k] = &seen[k];
    }
    kept_ = geometry<inputs + 1>(operands);
  }

  void run() const {
    if (n_ == 0 || kept_.numel == 0) return;
    bool outer = n_ > 1 && std::abs(step_[0]) > std::abs(kept_.strides[0][0]) && kept_.sizes[0] >= 8;
    // Lines shorter than a few vectors (the classes of a small classifier) are turned around, to be done side by side as well.
    bool short_lines = n_ <= few_values && kept_.sizes[0] >= 16;
    if (outer || short_lines)
      run_tiles();
    else
      run_lines();
  }

 private:
  // Whether neighbouring lines of an operand lie closer together than the elements of one: several are turned around at a time.
  bool is_turned(int operand) const {
    return step_[operand] != 1 && kept_.strides[operand][0] == 1 && kept_.sizes[0] >= 8 && n_ > 1;
  }
  static void turn(T* to, int64_t pitch, const T* from, int64_t from_pitch, int64_t columns, int64_t rows) {
    dispatch_size(sizeof(T), [&]<typename U>() {
      transpose_tile(reinterpret_cast<U*>(to), pitch, reinterpret_cast<const U*>(from), from_pitch, columns, rows);
    });
  }

  void bring_line(const T* from, int64_t step, V* to) const {
    if constexpr (is_half_v<T>)
      if (step == 1) return widen(from, to, n_);
    bring(from, step, n_, to);
  }
  void bring_line_back(const V* from, T* to) const {
    if constexpr (is_half_v<T>)
      if (step_[0] == 1) return narrow(from, to, n_);
    bring_back(from, n_, to, step_[0]);
  }

  void run_lines() const {
    bool direct = same, turned[inputs];
    for (int k = 0; k <= inputs; ++k) direct &= step_[k] == 1;
    int turns = 0;
    for (int k = 0; k < inputs; ++k) turns += turned[k] = is_turned(k + 1);
    constexpr int64_t turned_lines = 32;
    const int64_t together = turns ? turned_lines : int64_t{1} << 30;
    const int64_t at_once = several ? lines_at_once(n_) : 1;
    parallel_for(kept_.numel, grain_for(8 * n_), [&](int64_t begin, int64_t end) {
      Scratch<V> buffer(direct ? 0 : (inputs + 1) * n_ * at_once);
      Scratch<T> lines(turns ? inputs * turned_lines * n_ : 0);
      for_each_run(kept_, begin, end, [&](const int64_t* at, int64_t n) {
        for (int64_t first = 0; first < n; first += together) {
          const int64_t count = std::min(together, n - first);
          for (int k = 0; k < inputs; ++k)
            if (turned[k]) turn(lines.data() + k * turned_lines * n_, n_, in_[k] + at[k + 1] + first, step_[k + 1], n_, count);
          for (int64_t i = first; i < first + count; i += at_once) {
            const int64_t now = std::min(at_once, first + count - i);
            const V* in[most_lines][inputs] = {};
            V* to[most_lines] = {};
            const bool in_place = same && step_[0] == 1;
            for (int64_t j = 0; j < now; ++j) {
              V* room = direct ? nullptr : buffer.data() + j * (inputs + 1) * n_;
              for (int k = 0; k < inputs; ++k) {
                const T* from = turned[k] ? lines.data() + (k * turned_lines + i + j - first) * n_
                                          : in_[k] + at[k + 1] + (i + j) * kept_.strides[k + 1][0];
                if (same && (turned[k] || step_[k + 1] == 1)) {
                  in[j][k] = reinterpret_cast<const V*>(from);
                } else {
                  bring_line(from, turned[k] ? 1 : step_[k + 1], room + k * n_);
                  in[j][k] = room + k * n_;
                }
              }
              to[j] = in_place ? reinterpret_cast<V*>(out_ + at[0] + (i + j) * kept_.strides[0][0]) : room + inputs * n_;
            }
            if constexpr (several)
              Operation::lines(in[0], to, n_, now);
            else
              Operation::line(in[0], to[0], n_);
            if (in_place) continue;
            for (int64_t j = 0; j < now; ++j) bring_line_back(to[j], out_ + at[0] + (i + j) * kept_.strides[0][0]);
          }
        }
      });
    });
  }

  void run_tiles() const {
    bool direct = same;
    for (int k = 0; k <= inputs; ++k) direct &= kept_.strides[k][0] == 1;
    int64_t most = !direct ? buffered_tile : kept_.numel >= 8 * tile ? tile : tile / 2;
    int64_t width = std::min(most, kept_.sizes[0]);
    int64_t tiles = (kept_.sizes[0] + width - 1) / width;
    int64_t units = tiles * (kept_.numel / kept_.sizes[0]);
    parallel_for(units, grain_for(8 * n_ * width), [&](int64_t begin, int64_t end) {
      Scratch<V> buffer(direct ? 0 : (inputs + 1) * n_ * width);
      for (int64_t unit = begin; unit < end; ++unit) {
        int64_t first = unit % tiles * width, columns = std::min(width, kept_.sizes[0] - first);
        Position<inputs + 1> at(kept_, unit / tiles * kept_.sizes[0] + first);
        const V* in[inputs];
        int64_t pitch[inputs];
        T* out = out_ + at.offsets[0];
        for (int k = 0; k < inputs; ++k) {
          const T* from = in_[k] + at.offsets[k + 1];
          in[k] = direct ? reinterpret_cast<const V*>(from) : buffer.data() + k * n_ * width;
          pitch[k] = direct ? step_[k + 1] : width;
          if (direct) continue;
          if (same && step_[k + 1] == 1)
            turn(reinterpret_cast<T*>(buffer.data() + k * n_ * width), width, from, kept_.strides[k + 1][0], columns, n_);
          else
            for (int64_t r = 0; r < n_; ++r)
              bring(from + r * step_[k + 1], kept_.strides[k + 1][0], columns, buffer.data() + (k * n_ + r) * width);
        }
        V* to = direct ? reinterpret_cast<V*>(out) : buffer.data() + inputs * n_ * width;
        Operation::rows(in, pitch, to, direct ? step_[0] : width, n_, columns);
        if (!direct)
          for (int64_t r = 0; r < n_; ++r) bring_back(to + r * width, columns, out + r * step_[0], kept_.strides[0][0]);
      }
    });
  }

  const T* in_[inputs];
  T* out_;
  int64_t n_;
  int64_t step_[inputs + 1];
  int64_t sizes_[max_dims];
  Geometry<inputs + 1> kept_;
};

// Whether an operand has gaps both along lines and from line to line, being contiguous along a third dimension: walking it in the
// results' order would touch a cache line for every element.
bool lies_across(const cb_tensor& in, const cb_tensor& out, int64_t dim) {
  constexpr int64_t fewest = 4096;  // below, the copy's memory is dearer than the steps
  if (in.numel < fewest || !is_contiguous(out)) return false;
  int64_t beside = out.ndim - 1;
  while (beside >= 0 && (beside == dim || out.sizes[beside] == 1)) --beside;
  if (beside < 0 || in.strides[dim] <= 1 || in.strides[beside] <= 1) return false;
  for (int64_t d = 0; d < in.ndim; ++d)
    if (in.strides[d] == 1 && in.sizes[d] >= 8) return true;
  return false;
}

template <typename Operation>
void along(Call& call) {
  cb_tensor& out = call.output();
  const int64_t dim = call.integer(Operation::inputs);
  const cb_tensor* in[Operation::inputs];
  std::optional<DenseCopy> copies[Operation::inputs];
  for (int k = 0; k < Operation::inputs; ++k) {
    in[k] = &call.tensor(k);
    if (lies_across(*in[k], out, dim)) in[k] = &copies[k].emplace(*in[k]).tensor();
  }
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() { Along<Operation, T>(in, out, dim).run(); });
}

}  // namespace

void register_softmax(KernelTable& table) {
  table.add<along<Softmax>>("softmax");
  table.add<along<LogSoftmax>>("log_softmax");
  table.add<along<SoftmaxBackward>>("softmax_backward");
  table.add<along<LogSoftmaxBackward>>("log_softmax_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
