// Matrix and vector products. Matrices may have any strides; those that BLAS cannot address are
// packed (gemm/matrix.hpp).
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "candelabra/arguments/linalg.hpp"
#include "dtypes.hpp"
#include "gemm/matrix.hpp"
#include "gemm/panel_gemm.hpp"
#include "gemm/panel_loops.hpp"
#include "gemm/products.hpp"
#include "kernels.hpp"
#include "kernels/linalg/tiny_products.hpp"
#include "kernels/reduction/reduce_aminmax.hpp"
#include "memory/allocator.hpp"
#include "threads/interruption.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

template <typename T>
Matrix<const T> matrix(const cb_tensor& tensor, int first = 0) {
  return {data<T>(tensor), tensor.sizes[first], tensor.sizes[first + 1], tensor.strides[first],
          tensor.strides[first + 1]};
}
template <typename T>
Matrix<T> mutable_matrix(const cb_tensor& tensor, int first = 0) {
  return {mutable_data<T>(tensor), tensor.sizes[first], tensor.sizes[first + 1], tensor.strides[first],
          tensor.strides[first + 1]};
}

void mm(Call& call) {
  const arguments::Mm args(call);
  cb_tensor& out = call.output();
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    multiply_to<T>(matrix<T>(*args.self), matrix<T>(*args.mat2), mutable_matrix<T>(out));
  });
}

// Args: Addmm or AddmmActivation.
template <typename Args>
void add_product(Call& call, const Args& args, Activation activation) {
  cb_tensor& out = call.output();
  const cb_tensor& self = *args.self;
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    const T beta = scalar_to<T>(*args.beta), alpha = scalar_to<T>(*args.alpha);
    multiply_and_add<T>(matrix<T>(*args.mat1), matrix<T>(*args.mat2), alpha, beta, matrix<T>(self),
                        mutable_matrix<T>(out), activation);
  });
}

void addmm(Call& call) {
  add_product(call, arguments::Addmm(call), Activation::none);
}

void addmm_activation(Call& call) {
  const arguments::AddmmActivation args(call);
  add_product(call, args, args.use_gelu ? Activation::gelu : Activation::relu);
}

void mv(Call& call) {
  const arguments::Mv args(call);
  cb_tensor& out = call.output();
  const cb_tensor& vector = *args.vec;
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    multiply_to<T>(matrix<T>(*args.self), {data<T>(vector), vector.sizes[0], 1, vector.strides[0], 1},
                   {mutable_data<T>(out), out.sizes[0], 1, out.strides[0], 1});
  });
}

// Multiplies the whole batch in one library call. Returns false, with nothing written, if the
// library cannot address the matrices.
template <typename T>
bool multiply_in_one_call(const cb_tensor& a, const cb_tensor& b, const cb_tensor& out) {
  constexpr int64_t longest = int64_t{1} << 16;  // far below the range of MKL's integers
  const Matrix<const T> right = matrix<T>(b, 1), left = matrix<T>(a, 1);
  const Matrix<T> result = mutable_matrix<T>(out, 1);
  const int64_t m = result.rows, n = result.columns, k = left.columns;
  if (k == 0 || !result.has_plain_rows()) return false;
  const auto is_addressable = [&](const Matrix<const T>& factor, int64_t step, bool& transpose) {
    transpose = !factor.has_plain_rows();
    const Matrix<const T> seen = transpose ? factor.transposed() : factor;
    return seen.has_plain_rows() && seen.leading_dimension() <= longest && step >= seen.columns &&
           step <= longest * longest / 4;
  };
  bool transpose_left = false, transpose_right = false;
  if (!is_addressable(left, a.strides[0], transpose_left) || !is_addressable(right, b.strides[0], transpose_right))
    return false;
  if (result.leading_dimension() > longest || out.strides[0] < n || out.sizes[0] > longest) return false;
  const int64_t lda = (transpose_left ? left.transposed() : left).leading_dimension(),
                ldb = (transpose_right ? right.transposed() : right).leading_dimension();
  if constexpr (is_half_v<T>) {
    return half_gemm({.dtype = dtype_v<T>,
                      .transpose_a = transpose_left,
                      .transpose_b = transpose_right,
                      .m = m,
                      .n = n,
                      .k = k,
                      .a = left.data,
                      .lda = lda,
                      .b = right.data,
                      .ldb = ldb,
                      .bias = nullptr,
                      .c = result.data,
                      .ldc = result.leading_dimension(),
                      .float_result = false,
                      .batches = out.sizes[0],
                      .a_step = a.strides[0],
                      .b_step = b.strides[0],
                      .c_step = out.strides[0]});
  } else if constexpr (is_integer_v<T>) {
    return false;
  } else {
    gemm_batch(GemmBatch<T>{{transpose_left, transpose_right, m, n, k, T(1), left.data, lda, right.data, ldb, T(0),
                             result.data, result.leading_dimension()},
                            out.sizes[0],
                            a.strides[0],
                            b.strides[0],
                            out.strides[0]});
    return true;
  }
}

// Calls one(i) for each batch. Small products run one to a thread. A large one uses all threads,
// which limits the memory for packing.
template <typename F>
void for_each_batch(int64_t batches, int64_t operations, F&& one) {
  constexpr int64_t large = int64_t{1} << 24;
  if (operations >= large || batches == 1)
    for (int64_t i = 0; i < batches; ++i) {
      poll_interruption();
      one(i);
    }
  else
    parallel_for(batches, grain_for(operations / 8), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) one(i);
    });
}

int64_t operations_of_batch(const cb_tensor& a, const cb_tensor& out) {
  return out.sizes[1] * out.sizes[2] * std::max<int64_t>(1, a.sizes[2]);
}

template <typename T>
Matrix<const T> batch(const cb_tensor& tensor, int64_t index) {
  Matrix<const T> one = matrix<T>(tensor, 1);
  one.data += index * tensor.strides[0];
  return one;
}
template <typename T>
Matrix<T> mutable_batch(const cb_tensor& tensor, int64_t index) {
  Matrix<T> one = mutable_matrix<T>(tensor, 1);
  one.data += index * tensor.strides[0];
  return one;
}

// out[i] = a[i] @ b[i]
template <typename T>
void multiply_batches(const cb_tensor& a, const cb_tensor& b, const cb_tensor& out) {
  const int64_t batches = out.sizes[0], size = out.sizes[1] * out.sizes[2];
  if (out.numel == 0) return;
  if (!lies_as_new(mutable_matrix<T>(out, 1)) || (batches > 1 && out.strides[0] != size)) {
    Scratch<T> memory(out.numel);
    const int64_t strides[] = {size, out.sizes[2], 1};
    cb_tensor result = out;
    result.data = memory.data();
    result.strides = strides;
    multiply_batches<T>(a, b, result);
    for_each_batch(batches, size, [&](int64_t i) { copy_matrix<T>(batch<T>(result, i), mutable_batch<T>(out, i)); });
    return;
  }
  const int64_t operations = operations_of_batch(a, out);
  constexpr int64_t tiny = 256;
  // Up to this many operations a product, the overhead of a call dominates.
  constexpr int64_t small = is_half_v<T> ? int64_t{1} << 20 : int64_t{1} << 15;
  if (batches > 1 && operations > tiny && operations <= small && !in_parallel() && multiply_in_one_call<T>(a, b, out))
    return;
  for_each_batch(batches, operations, [&](int64_t i) {
    const Matrix<T> result = mutable_batch<T>(out, i);
    if (operations <= tiny) return multiply_tiny<T>(batch<T>(a, i), batch<T>(b, i), result);
    multiply<T>(batch<T>(a, i), batch<T>(b, i), T(1), T(0), result);
  });
}

void bmm(Call& call) {
  const arguments::Bmm args(call);
  cb_tensor& out = call.output();
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() { multiply_batches<T>(*args.self, *args.mat2, out); });
}

void baddbmm(Call& call) {
  const arguments::Baddbmm args(call);
  cb_tensor& out = call.output();
  if (out.numel == 0) return;
  const cb_tensor &self = *args.self, &a = *args.batch1, &b = *args.batch2;
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    const T beta = scalar_to<T>(*args.beta), alpha = scalar_to<T>(*args.alpha);
    const int64_t size = out.sizes[1] * out.sizes[2];
    for_each_batch(out.sizes[0], operations_of_batch(a, out), [&](int64_t i) {
      multiply_and_add<T>(batch<T>(a, i), batch<T>(b, i), alpha, beta, batch<T>(self, i), mutable_batch<T>(out, i),
                          Activation::none, position_in_batch<T>(i, size));
    });
  });
}

// The row stride of input seen as a matrix with all leading dimensions collapsed, if their strides
// allow that.
std::optional<int64_t> collapsed_row_stride(const cb_tensor& input) {
  int64_t stride = 0, rows = 1;
  for (int d = input.ndim - 2; d >= 0; --d) {
    if (input.sizes[d] == 1) continue;
    if (rows == 1)
      stride = input.strides[d];
    else if (input.strides[d] != stride * rows)
      return std::nullopt;
    rows *= input.sizes[d];
  }
  return stride;
}

// A contiguous copy of a tensor of any strides.
template <typename T>
void pack(const cb_tensor& tensor, T* out) {
  const T* in = data<T>(tensor);
  int last = tensor.ndim - 1;
  int64_t n = tensor.sizes[last], step = tensor.strides[last];
  parallel_for(tensor.numel / n, grain_for(n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t offset = 0, rest = row;
      for (int d = last - 1; d >= 0; --d) {
        offset += rest % tensor.sizes[d] * tensor.strides[d];
        rest /= tensor.sizes[d];
      }
      for (int64_t i = 0; i < n; ++i) out[row * n + i] = in[offset + i * step];
    }
  });
}

template <typename T>
void linear_of(Call& call) {
  const arguments::Linear args(call);
  cb_tensor& out = call.output();
  const cb_tensor &input = *args.input, &weight = *args.weight;
  const cb_tensor* bias = args.bias;
  if (out.numel == 0) return;
  int64_t k = weight.sizes[1], n = weight.sizes[0], rows = out.numel / n;
  Matrix<T> result{mutable_data<T>(out), rows, n, n, 1};
  Matrix<const T> factor{data<T>(weight), k, n, weight.strides[1], weight.strides[0]};
  Matrix<const T> samples{data<T>(input), rows, k, k, input.strides[input.ndim - 1]};
  std::unique_ptr<Scratch<T>> packed;
  if (k != 0) {
    if (auto stride = collapsed_row_stride(input)) {
      samples.row_stride = *stride;
    } else {
      packed = std::make_unique<Scratch<T>>(input.numel);
      pack<T>(input, packed->data());
      samples = {packed->data(), rows, k, k, 1};
    }
  }
  if (!bias) return multiply_to<T>(samples, factor, result);
  multiply_and_add<T>(samples, factor, T(1), T(1), {data<T>(*bias), rows, n, 0, bias->strides[0]}, result);
}

void linear(Call& call) {
  dispatch<NumberTypes>(call.output().dtype, [&]<typename T>() { linear_of<T>(call); });
}

// The sum of products over [begin, end). Independent lanes let the compiler vectorize it.
template <typename T, typename Sum>
Sum dot_range(const T* a, int64_t a_step, const T* b, int64_t b_step, int64_t begin, int64_t end) {
  constexpr int64_t lanes = is_complex_v<T> ? 8 : 32;
  std::array<Sum, lanes> sums{};
  int64_t i = begin;
  if constexpr (!is_complex_v<T>)
    if (a_step == 1 && b_step == 1)
      for (; i + lanes <= end; i += lanes)
        for (int64_t lane = 0; lane < lanes; ++lane)
          sums[lane] += static_cast<Sum>(a[i + lane]) * static_cast<Sum>(b[i + lane]);
  for (; i < end; ++i) sums[(i - begin) % lanes] += static_cast<Sum>(a[i * a_step]) * static_cast<Sum>(b[i * b_step]);
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
}

template <typename L>
typename L::type swap_adjacent_lanes(typename L::type v) {
  return [&]<size_t... lane>(std::index_sequence<lane...>) {
    return __builtin_shufflevector(v, v, static_cast<int>(lane ^ 1)...);
  }(std::make_index_sequence<L::count>());
}

// The dot product of contiguous complex vectors. `equal` sums re*re and im*im in alternating lanes,
// `unequal` sums re*im and im*re. The lanes are separated only at the end.
template <typename R>
std::complex<R> complex_dot(const std::complex<R>* a, const std::complex<R>* b, int64_t n) {
  using L = reduce::Lanes<R>;
  constexpr int vectors = 4, step = vectors * L::count;
  const R *x = reinterpret_cast<const R*>(a), *y = reinterpret_cast<const R*>(b);
  typename L::type equal[vectors] = {}, unequal[vectors] = {};
  int64_t i = 0;
  for (; i + step <= 2 * n; i += step)
    for (int v = 0; v < vectors; ++v) {
      const auto left = L::load(x + i + v * L::count), right = L::load(y + i + v * L::count);
      equal[v] += left * right;
      unequal[v] += left * swap_adjacent_lanes<L>(right);
    }
  R equals[L::count], unequals[L::count];
  L::store(equals, (equal[0] + equal[1]) + (equal[2] + equal[3]));
  L::store(unequals, (unequal[0] + unequal[1]) + (unequal[2] + unequal[3]));
  for (int half = L::count / 2; half > 1; half /= 2)
    for (int lane = 0; lane < half; ++lane)
      equals[lane] += equals[lane + half], unequals[lane] += unequals[lane + half];
  const std::complex<R> rest = dot_range<std::complex<R>, std::complex<R>>(a, 1, b, 1, i / 2, n);
  return std::complex<R>(equals[0] - equals[1], unequals[0] + unequals[1]) + rest;
}

// Pairwise summation: the rounding error grows with the logarithm of n.
template <typename Sum>
Sum sum_pairwise(const Sum* values, int64_t n) {
  if (n <= 4) {
    Sum total{0};
    for (int64_t i = 0; i < n; ++i) total += values[i];
    return total;
  }
  return sum_pairwise(values, n / 2) + sum_pairwise(values + n / 2, n - n / 2);
}

void dot(Call& call) {
  const arguments::Dot args(call);
  cb_tensor& out = call.output();
  const cb_tensor &a = *args.self, &b = *args.tensor;
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    // Integers are summed unsigned because they must wrap.
    using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    using Sum =
        typename std::conditional_t<is_integer_v<T>, std::type_identity<Wide>, std::type_identity<compute_t<T>>>::type;
    constexpr int64_t block = 4096;  // independent of the number of threads
    int64_t n = a.sizes[0], blocks = (n + block - 1) / block;
    const T *x = data<T>(a), *y = data<T>(b);
    int64_t x_step = a.strides[0], y_step = b.strides[0];
    const auto dot_of = [&](int64_t begin, int64_t end) -> Sum {
      if constexpr (is_complex_v<T>)
        if (x_step == 1 && y_step == 1) return complex_dot(x + begin, y + begin, end - begin);
      return dot_range<T, Sum>(x, x_step, y, y_step, begin, end);
    };
    if (blocks <= 1) {
      *mutable_data<T>(out) = static_cast<T>(dot_of(0, n));
      return;
    }
    Scratch<Sum> sums(blocks);
    parallel_for(blocks, grain_for(block), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sums[i] = dot_of(i * block, std::min(n, (i + 1) * block));
    });
    *mutable_data<T>(out) = static_cast<T>(sum_pairwise<Sum>(sums.data(), blocks));
  });
}

}  // namespace

void register_linalg(KernelTable& table) {
  use_panel_loops(panel_gemm_loop<float>, panel_gemm_loop<double>);
  table.add<mm>("mm");
  table.add<bmm>("bmm");
  table.add<mv>("mv");
  table.add<dot>("dot");
  table.add<addmm>("addmm");
  table.add<addmm_activation>("_addmm_activation");
  table.add<baddbmm>("baddbmm");
  table.add<linear>("linear");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
