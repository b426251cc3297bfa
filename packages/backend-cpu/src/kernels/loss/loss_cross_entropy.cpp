// cross_entropy_forward and cross_entropy_backward: scores (N, C) and classes (N), without a
// log-softmax matrix.
//
// Forward reads each row from memory once. It saves the row's maximum and the logarithm of
// sum(exp(x - maximum)). Backward needs nothing else to write the gradient in one pass.
#include <cmath>

#include "candelabra/positions.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "kernels/reduction/softmax_slices.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace softmax_lines;

// The shape rule replaces the name of the reduction by this number.
enum Reduction : int64_t { None = 0, Mean = 1, Sum = 2 };

// Rows per partial sum. It is fixed, so that the result does not depend on the number of threads.
constexpr int64_t piece = 64;
// The cost of an exponential and the operations around it, in additions.
constexpr int64_t work = 8;

int64_t checked(int64_t target, int64_t classes) {
  if (static_cast<uint64_t>(target) >= static_cast<uint64_t>(classes))
    throw failure(CB_INDEX_ERROR, "Target %lld is out of bounds.", static_cast<long long>(target));
  return target;
}

template <typename T>
struct Weights {
  const T* values;
  int64_t stride;
  explicit Weights(const cb_tensor* weight)
      : values(weight ? data<T>(*weight) : nullptr), stride(weight ? weight->strides[0] : 0) {}
  double operator()(int64_t target) const { return values ? static_cast<double>(values[target * stride]) : 1.0; }
};

template <typename T>
T rounded(double value) {
  return static_cast<T>(static_cast<compute_t<T>>(value));
}

// Row `n` of the scores in the compute dtype. `buffer` is used for half precision only.
template <typename T>
const compute_t<T>* row_of(const T* scores, int64_t n, int64_t classes, [[maybe_unused]] compute_t<T>* buffer) {
  if constexpr (std::is_same_v<T, compute_t<T>>) {
    return scores + n * classes;
  } else {
    to_float(scores + n * classes, buffer, classes);
    return buffer;
  }
}

// The maximum and log(sum(exp(x - maximum))) of the first `count` rows, at most max_slices. x[j] is
// set to row j.
template <typename T, typename V>
void statistics_of_rows(const T* scores, int64_t classes, int64_t count, V* buffer, const V** x, V* largest,
                        V* logarithm) {
  for (int64_t j = 0; j < count; ++j)
    x[j] = row_of(scores, j, classes, std::is_same_v<T, V> ? nullptr : buffer + j * classes);
  double sums[max_slices];
  if (classes <= math::Vec<V>::size) {
    for (int64_t j = 0; j < count; ++j) {
      const ShortSlice<V> all(x[j], classes);
      largest[j] = all.largest;
      sums[j] = all.sum;
    }
  } else {
    statistics_of<V>(x, nullptr, classes, count, largest, sums);
  }
  for (int64_t j = 0; j < count; ++j) logarithm[j] = math::log(static_cast<V>(sums[j]));
}

template <typename T>
void forward(Call& call) {
  using V = compute_t<T>;
  namespace at = positions::cross_entropy_forward;
  const cb_tensor &scores = call.tensor(at::input), &target = call.tensor(at::target);
  const Weights<T> weight(call.optional_tensor(at::weight));
  const int64_t ignored = call.integer(at::ignore_index), reduction = call.integer(at::reduction);
  const int64_t rows = scores.sizes[0], classes = scores.sizes[1];
  cb_tensor &out = call.output(0), &total = call.output(1), &statistics = call.output(2);
  V* largest = data<V>(statistics);
  V* logarithm = largest + rows;
  const int64_t pieces = (rows + piece - 1) / piece, row_batch = slice_batch(classes);
  Scratch<double> losses(pieces), weights(pieces);
  parallel_for(pieces, grain_for(work * piece * classes), [&](int64_t begin, int64_t end) {
    Scratch<V> buffer(std::is_same_v<T, V> ? 0 : row_batch * classes);
    const V* x[max_slices];
    for (int64_t p = begin; p < end; ++p) {
      double loss = 0, sum = 0;
      const int64_t last = std::min((p + 1) * piece, rows);
      for (int64_t n = p * piece; n < last; ++n) {
        const int64_t slot = (n - p * piece) % row_batch;
        if (slot == 0 && classes > 0)
          statistics_of_rows(data<T>(scores) + n * classes, classes, std::min(row_batch, last - n), buffer.data(), x,
                             largest + n, logarithm + n);
        const int64_t number = data<int64_t>(target)[n * target.strides[0]];
        double here = 0;
        if (classes > 0) {
          if (number != ignored) {
            const double w = weight(checked(number, classes));
            here = -w * static_cast<double>((x[slot][number] - largest[n]) - logarithm[n]);
            sum += w;
            loss += here;
          }
        } else {
          largest[n] = logarithm[n] = 0;
          if (number != ignored) checked(number, classes);
        }
        if (reduction == None) data<T>(out)[n * out.strides[0]] = rounded<T>(here);
      }
      losses[p] = loss;
      weights[p] = sum;
    }
  });
  double loss = 0, sum = 0;
  for (int64_t p = 0; p < pieces; ++p) loss += losses[p], sum += weights[p];
  if (reduction != None) *data<T>(out) = rounded<T>(reduction == Mean ? loss / sum : loss);
  *data<T>(total) = rounded<T>(sum);
}

// share * exp((x - largest) - logarithm); the caller subtracts `share` at the class of the row.
template <typename V>
void gradient_of_row(const V* x, V* out, int64_t n, V largest, V logarithm, V share) {
  const math::Vec<V> maximum = largest, log_sum = logarithm, factors = share;
  for_registers<V>(n, [&](int64_t i, int64_t count, auto whole) {
    const auto power = exp_of_difference<V>((load_register(x + i, count, whole) - maximum) - log_sum);
    store_register(out + i, power * factors, count, whole);
  });
}

template <typename T>
void backward(Call& call) {
  using V = compute_t<T>;
  namespace at = positions::cross_entropy_backward;
  const cb_tensor &grad = call.tensor(at::grad), &scores = call.tensor(at::input), &target = call.tensor(at::target);
  const Weights<T> weight(call.optional_tensor(at::weight));
  const int64_t ignored = call.integer(at::ignore_index), reduction = call.integer(at::reduction);
  const int64_t rows = scores.sizes[0], classes = scores.sizes[1];
  T* out = data<T>(call.output());
  const V* largest = data<V>(call.tensor(at::statistics));
  const V* logarithm = largest + rows;
  const double scale = reduction == Mean ? 1 / static_cast<double>(*data<T>(call.tensor(at::total_weight))) : 1;
  parallel_for(rows, grain_for(work * classes), [&](int64_t begin, int64_t end) {
    Scratch<V> buffer(std::is_same_v<T, V> ? 0 : classes);
    for (int64_t n = begin; n < end; ++n) {
      const int64_t number = data<int64_t>(target)[n * target.strides[0]];
      T* to = out + n * classes;
      if (number == ignored) {
        std::fill_n(to, classes, T{});
        continue;
      }
      const double incoming = static_cast<double>(data<T>(grad)[reduction == None ? n * grad.strides[0] : 0]);
      const V share = static_cast<V>(weight(checked(number, classes)) * scale * incoming);
      const V* x = row_of(data<T>(scores), n, classes, buffer.data());
      if constexpr (std::is_same_v<T, V>) {
        gradient_of_row(x, to, classes, largest[n], logarithm[n], share);
        to[number] -= share;
      } else {
        gradient_of_row(x, buffer.data(), classes, largest[n], logarithm[n], share);
        buffer[number] -= share;
        from_float(buffer.data(), to, classes);
      }
    }
  });
}

void cross_entropy_forward(Call& call) {
  dispatch<FloatTypes>(call.tensor(positions::cross_entropy_forward::input).dtype,
                       [&]<typename T>() { forward<T>(call); });
}
void cross_entropy_backward(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { backward<T>(call); });
}

}  // namespace

void register_loss_cross_entropy(KernelTable& table) {
  table.add<cross_entropy_forward>("cross_entropy_forward");
  table.add<cross_entropy_backward>("cross_entropy_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
