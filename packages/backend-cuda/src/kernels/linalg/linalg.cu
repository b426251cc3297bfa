// Products of matrices and vectors. cuBLASLt accepts matrices whose rows or columns are contiguous;
// others are copied first. No library multiplies integers: they have their own kernel.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "candelabra/arguments/linalg.hpp"
#include "candelabra/special_functions.hpp"
#include "drivers/elementwise.cuh"
#include "drivers/move.hpp"
#include "vendor/cublas/cublas.hpp"

namespace candelabra::cuda {
namespace {

// A batch of matrices of any strides; one matrix is a batch of one.
struct Matrices {
  void* data;
  int64_t batches, rows, columns;
  int64_t step, row_stride, column_stride;
};

Matrices matrices(const cb_tensor& t) {
  if (t.ndim == 2) return {t.data, 1, t.sizes[0], t.sizes[1], 0, t.strides[0], t.strides[1]};
  return {t.data, t.sizes[0], t.sizes[1], t.sizes[2], t.strides[0], t.strides[1], t.strides[2]};
}
Matrices as_column(const cb_tensor& vector) {
  return {vector.data, 1, vector.sizes[0], 1, 0, vector.strides[0], 1};
}

// The tensor descriptor of a batch of matrices, for the kernels that copy.
struct Described {
  std::array<int64_t, 3> sizes, strides;
  cb_tensor tensor;

  Described(const Matrices& m, int32_t dtype, int device)
      : sizes{m.batches, m.rows, m.columns}, strides{m.step, m.row_stride, m.column_stride}, tensor{} {
    tensor.data = m.data;
    tensor.sizes = sizes.data();
    tensor.strides = strides.data();
    tensor.numel = m.batches * m.rows * m.columns;
    tensor.ndim = 3;
    tensor.dtype = dtype;
    tensor.device_index = device;
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;
};

void copy_matrices(const Call& call, const Matrices& from, const Matrices& to, int32_t dtype) {
  const Described source(from, dtype, call.device()), target(to, dtype, call.device());
  move_elements(call, target.tensor, source.tensor);
}

Matrices row_major(void* memory, int64_t batches, int64_t rows, int64_t columns) {
  return {memory, batches, rows, columns, rows * columns, columns, 1};
}

// The leading dimension of a matrix with `count` contiguous columns of length `length`; nullopt if
// they are not contiguous.
std::optional<int64_t> leading_dimension(int64_t length, int64_t count, int64_t along, int64_t across) {
  if (along != 1 && length > 1) return std::nullopt;
  const int64_t minimum = std::max<int64_t>(1, length);
  if (count <= 1) return minimum;
  return across >= minimum ? std::optional(across) : std::nullopt;
}

struct Operand {
  GemmOperand gemm;
  Workspace copy;
};

// A factor of the transposed product result^T = b^T @ a^T: cuBLASLt is column-major, our results
// are row-major.
Operand operand(const Call& call, const Matrices& m, int32_t dtype) {
  // A row-major matrix is the column-major transpose: for the library it is not transposed.
  if (m.batches <= 1 || m.step >= 0) {
    if (auto leading = leading_dimension(m.columns, m.rows, m.column_stride, m.row_stride))
      return {{m.data, *leading, m.step, false}, {}};
    if (auto leading = leading_dimension(m.rows, m.columns, m.row_stride, m.column_stride))
      return {{m.data, *leading, m.step, true}, {}};
  }
  // A matrix that is broadcast over the batch is copied once.
  const int64_t batches = m.step == 0 ? 1 : m.batches;
  Workspace memory(call, static_cast<size_t>(batches * m.rows * m.columns * itemsize(dtype)));
  Matrices from = m;
  from.batches = batches;
  const Matrices to = row_major(memory.data(), batches, m.rows, m.columns);
  copy_matrices(call, from, to, dtype);
  const GemmOperand gemm{memory.data(), std::max<int64_t>(1, m.columns), batches == 1 ? 0 : to.step, false};
  return {gemm, std::move(memory)};
}

Matrices transposed(const Matrices& m) {
  return {m.data, m.batches, m.columns, m.rows, m.step, m.column_stride, m.row_stride};
}

// ---- integers

constexpr int tile = 16;

template <typename T>
struct IntegerProduct {
  const T *a, *b;
  T* result;
  int64_t rows, columns, inner;
  int64_t a_step, a_row, a_column, b_step, b_row, b_column, result_step, result_row, result_column;
  T alpha, beta;
};

// Sums wrap, in the unsigned type of at least 32 bits.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T>
__global__ void __launch_bounds__(tile* tile)
    multiply_integers(const __grid_constant__ IntegerProduct<T> p, int64_t first_batch) {
  using Wide = Wrapping<T>;
  __shared__ Wide left[tile][tile + 1], right[tile][tile + 1];
  const int64_t batch = first_batch + blockIdx.z;
  const int64_t row = static_cast<int64_t>(blockIdx.y) * tile + threadIdx.y,
                column = static_cast<int64_t>(blockIdx.x) * tile + threadIdx.x;
  const T* a = p.a + batch * p.a_step;
  const T* b = p.b + batch * p.b_step;
  Wide sum = 0;
  for (int64_t at = 0; at < p.inner; at += tile) {
    const int64_t a_column = at + threadIdx.x, b_row = at + threadIdx.y;
    left[threadIdx.y][threadIdx.x] =
        row < p.rows && a_column < p.inner ? static_cast<Wide>(a[row * p.a_row + a_column * p.a_column]) : Wide{0};
    right[threadIdx.y][threadIdx.x] =
        b_row < p.inner && column < p.columns ? static_cast<Wide>(b[b_row * p.b_row + column * p.b_column]) : Wide{0};
    __syncthreads();
#pragma unroll
    for (int k = 0; k < tile; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  if (row >= p.rows || column >= p.columns) return;
  T& result = p.result[batch * p.result_step + row * p.result_row + column * p.result_column];
  Wide value = static_cast<Wide>(p.alpha) * sum;
  if (p.beta != T(0)) value += static_cast<Wide>(p.beta) * static_cast<Wide>(result);
  result = static_cast<T>(value);
}

template <typename T>
void integer_product(const Call& call, const Matrices& a, const Matrices& b, const Matrices& out,
                     const cb_scalar& alpha, const cb_scalar& beta) {
  IntegerProduct<T> p{static_cast<const T*>(a.data),
                      static_cast<const T*>(b.data),
                      static_cast<T*>(out.data),
                      out.rows,
                      out.columns,
                      a.columns,
                      a.step,
                      a.row_stride,
                      a.column_stride,
                      b.step,
                      b.row_stride,
                      b.column_stride,
                      out.step,
                      out.row_stride,
                      out.column_stride,
                      scalar_to<T>(alpha),
                      scalar_to<T>(beta)};
  // The y and z of a grid are at most 65535. With more tiles of rows, compute the transposed
  // product.
  constexpr int64_t most = 65535;
  if (divide_up(p.rows, tile) > most) {
    if (divide_up(p.columns, tile) > most)
      throw failure(CB_RUNTIME_ERROR, "%s: matrices of this size are not multiplied on CUDA",
                    call.raw()->operator_name);
    std::swap(p.a, p.b);
    std::swap(p.rows, p.columns);
    std::swap(p.a_step, p.b_step);
    const int64_t a_row = p.a_row, a_column = p.a_column;
    p.a_row = p.b_column, p.a_column = p.b_row;
    p.b_row = a_column, p.b_column = a_row;
    std::swap(p.result_row, p.result_column);
  }
  for (int64_t first = 0; first < out.batches; first += most) {
    const dim3 blocks(static_cast<unsigned>(divide_up(p.columns, tile)), static_cast<unsigned>(divide_up(p.rows, tile)),
                      static_cast<unsigned>(std::min(most, out.batches - first)));
    launch(call, multiply_integers<T>, blocks, dim3(tile, tile), 0, p, first);
  }
}

// ---- any dtype

constexpr cb_scalar one{CB_SCALAR_INT, 0, 1, 1.0, 0.0, 0}, zero{CB_SCALAR_INT, 0, 0, 0.0, 0.0, 0};

bool is_zero(const cb_scalar& scalar) {
  return scalar.re == 0 && scalar.im == 0;
}
bool is_one(const cb_scalar& scalar) {
  return scalar.re == 1 && scalar.im == 0;
}

template <typename T>
struct Scale {
  T factor;
  __device__ T operator()(T x) const { return static_cast<T>(factor * x); }
};

// result = beta * result, for products with an inner size of 0.
void scale(const Call& call, const Matrices& out, int32_t dtype, const cb_scalar& beta) {
  const Described target(out, dtype, call.device());
  if (is_zero(beta)) return clear(call, target.tensor);  // also clears NaN
  dispatch<NumberTypes>(dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map<Types<T>, Types<T>>(call, Scale<C>{scalar_to<C>(beta)}, {&target.tensor}, {&target.tensor});
  });
}

// Whether the matrices of a batch can be seen as one matrix of all their rows.
bool stacked(const Matrices& m) {
  return m.step == m.rows * m.row_stride || m.rows == 1;
}
Matrices as_stack(const Matrices& m) {
  return {m.data, 1, m.batches * m.rows, m.columns, 0, m.rows == 1 ? m.step : m.row_stride, m.column_stride};
}
Matrices part_of(const Matrices& m, int64_t first, int64_t count, int32_t dtype) {
  Matrices part = m;
  part.data = static_cast<std::byte*>(m.data) + first * m.step * itemsize(dtype);
  part.batches = count;
  return part;
}

// Multiplies by cuBLASLt into a row-major result; false where it has no algorithm, as for some
// epilogues.
bool multiply_row_major(const Call& call, const Matrices& a, const Matrices& b, const Matrices& out, int64_t leading,
                        int32_t dtype, const cb_scalar& alpha, const cb_scalar& beta, const void* bias = nullptr,
                        Epilogue epilogue = Epilogue::none) {
  const Operand left = operand(call, b, dtype), right = operand(call, a, dtype);
  return multiply(call,
                  {dtype, out.columns, out.rows, a.columns, out.batches, left.gemm, right.gemm, out.data, leading,
                   out.step, bias, epilogue},
                  alpha, beta);
}

// out = alpha * a @ b + beta * out
void product(const Call& call, const Matrices& a, const Matrices& b, const Matrices& out, int32_t dtype,
             const cb_scalar& alpha, const cb_scalar& beta) {
  if (out.batches * out.rows * out.columns == 0) return;
  if (a.columns == 0) return scale(call, out, dtype, beta);
  // If the batch shares the second factor, it is one product with more rows. If it shares the first
  // factor, it is one product with more columns.
  if (out.batches > 1 && b.step == 0 && stacked(a) && stacked(out)) {
    Matrices shared_factor = b;
    shared_factor.batches = 1;
    return product(call, as_stack(a), shared_factor, as_stack(out), dtype, alpha, beta);
  }
  if (out.batches > 1 && a.step == 0 && stacked(transposed(b)) && stacked(transposed(out))) {
    Matrices shared_factor = a;
    shared_factor.batches = 1;
    return product(call, shared_factor, transposed(as_stack(transposed(b))), transposed(as_stack(transposed(out))),
                   dtype, alpha, beta);
  }
  if (!multiplies(dtype))
    return dispatch<IntegerTypes>(dtype, [&]<typename T>() { integer_product<T>(call, a, b, out, alpha, beta); });
  // The result must be row-major; a column-major result is the row-major result of the transposed
  // product.
  const bool step_is_supported = out.batches == 1 || out.step >= 0;
  const auto leading =
      step_is_supported ? leading_dimension(out.columns, out.rows, out.column_stride, out.row_stride) : std::nullopt;
  if (!leading) {
    if (step_is_supported && leading_dimension(out.rows, out.columns, out.row_stride, out.column_stride))
      return product(call, transposed(b), transposed(a), transposed(out), dtype, alpha, beta);
    const Workspace memory(call, static_cast<size_t>(out.batches * out.rows * out.columns * itemsize(dtype)));
    const Matrices dense = row_major(memory.data(), out.batches, out.rows, out.columns);
    if (!is_zero(beta)) copy_matrices(call, out, dense, dtype);
    product(call, a, b, dense, dtype, alpha, beta);
    return copy_matrices(call, dense, out, dtype);
  }
  if (multiply_row_major(call, a, b, out, *leading, dtype, alpha, beta)) return;
  // Some algorithms use the third grid dimension for the batch, which limits it: split the batch.
  constexpr int64_t most = 65535;
  for (int64_t first = 0; first < out.batches && out.batches > most; first += most) {
    const int64_t count = std::min(most, out.batches - first);
    product(call, part_of(a, first, count, dtype), part_of(b, first, count, dtype), part_of(out, first, count, dtype),
            dtype, alpha, beta);
  }
  if (out.batches <= most)
    throw failure(CB_RUNTIME_ERROR, "%s: cuBLASLt has no algorithm for these matrices (%lld x %lld by %lld x %lld)",
                  call.raw()->operator_name, static_cast<long long>(a.rows), static_cast<long long>(a.columns),
                  static_cast<long long>(b.rows), static_cast<long long>(b.columns));
}

// Whether the output is the memory of self: an in-place call.
bool is_in_place(const cb_tensor& out, const cb_tensor& self) {
  if (out.data != self.data) return false;
  for (int d = 0; d < out.ndim; ++d)
    if (out.sizes[d] != 1 && out.strides[d] != self.strides[d]) return false;
  return true;
}

// mm, bmm: the same arguments.
void mm(Call& call) {
  const arguments::Mm args(call);
  const cb_tensor& out = call.output();
  product(call, matrices(*args.self), matrices(*args.mat2), matrices(out), out.dtype, one, zero);
}

void mv(Call& call) {
  const arguments::Mv args(call);
  const cb_tensor& out = call.output();
  product(call, matrices(*args.self), as_column(*args.vec), as_column(out), out.dtype, one, zero);
}

// out = epilogue(alpha * a @ b + bias), where `bias` is one row. False where cuBLASLt does not
// support the bias or the epilogue; then nothing was written.
bool product_with_epilogue(const Call& call, const Matrices& a, const Matrices& b, const Matrices& bias,
                           const Matrices& out, int32_t dtype, const cb_scalar& alpha, Epilogue epilogue) {
  const bool half_or_single = dtype == CB_FLOAT16 || dtype == CB_BFLOAT16 || dtype == CB_FLOAT32;
  if (!half_or_single || out.batches != 1 || a.columns == 0 || out.columns <= 1) return false;
  if ((bias.row_stride != 0 && out.rows != 1) || bias.column_stride != 1 || bias.data == out.data) return false;
  if (reinterpret_cast<uintptr_t>(bias.data) % 16 != 0) return false;
  const auto leading = leading_dimension(out.columns, out.rows, out.column_stride, out.row_stride);
  return leading && multiply_row_major(call, a, b, out, *leading, dtype, alpha, zero, bias.data, epilogue);
}

// addmm, baddbmm, _addmm_activation: the same positions.
void add_product(Call& call) {
  const arguments::Addmm args(call);
  const cb_tensor &out = call.output(), &self = *args.self;
  const cb_scalar &beta = *args.beta, &alpha = *args.alpha;
  if (out.numel == 0) return;
  const Matrices a = matrices(*args.mat1), b = matrices(*args.mat2), result = matrices(out);
  if (is_one(beta) && product_with_epilogue(call, a, b, matrices(self), result, out.dtype, alpha, Epilogue::bias))
    return;
  if (!is_zero(beta) && !is_in_place(out, self)) copy_matrices(call, matrices(self), result, out.dtype);
  product(call, a, b, result, out.dtype, alpha, beta);
}

struct Activate {
  bool gelu;
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (gelu) return math::gelu(x);
    }
    return x < T(0) ? T(0) : x;  // keeps NaN
  }
};

// cuBLASLt's gelu differs from ours by up to 4.7e-4. That is half an ulp of float16 near one, but
// too much for float32.
void addmm_activation(Call& call) {
  const arguments::AddmmActivation args(call);
  const cb_tensor& out = call.output();
  const bool gelu = args.use_gelu;
  if (out.numel == 0) return;
  if (is_one(*args.beta) && (!gelu || out.dtype != CB_FLOAT32) &&
      product_with_epilogue(call, matrices(*args.mat1), matrices(*args.mat2), matrices(*args.self), matrices(out),
                            out.dtype, *args.alpha, gelu ? Epilogue::bias_and_gelu : Epilogue::bias_and_relu))
    return;
  add_product(call);
  dispatch<RealTypes>(out.dtype,
                      [&]<typename T>() { map<Types<T>, Types<T>>(call, Heavy<Activate>{{gelu}}, {&out}, {&out}); });
}

// The row stride of the input as one matrix, if the strides of its leading dimensions allow that.
std::optional<int64_t> flattened_row_stride(const cb_tensor& input) {
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

// input @ weight^T + bias
void linear(Call& call) {
  const arguments::Linear args(call);
  const cb_tensor &out = call.output(), &input = *args.input, &weight = *args.weight;
  const cb_tensor* bias = args.bias;
  if (out.numel == 0) return;
  const int64_t inner = weight.sizes[1], columns = weight.sizes[0], rows = out.numel / columns;
  const Matrices result = row_major(out.data, 1, rows, columns);
  const Matrices factor = transposed(matrices(weight));
  Workspace packed;
  Matrices samples{input.data, 1, rows, inner, 0, inner, input.strides[input.ndim - 1]};
  if (inner != 0) {
    if (const auto stride = flattened_row_stride(input)) {
      samples.row_stride = *stride;
    } else {
      packed = Workspace(call, static_cast<size_t>(input.numel * itemsize(out.dtype)));
      std::vector<int64_t> dense(static_cast<size_t>(input.ndim));
      int64_t step = 1;
      for (int d = input.ndim; d-- > 0; step *= input.sizes[d]) dense[static_cast<size_t>(d)] = step;
      cb_tensor target = input;
      target.data = packed.data();
      target.strides = dense.data();
      move_elements(call, target, input);
      samples = row_major(packed.data(), 1, rows, inner);
    }
  }
  if (!bias) return product(call, samples, factor, result, out.dtype, one, zero);
  const Matrices rows_of_bias{bias->data, 1, rows, columns, 0, 0, bias->strides[0]};
  if (product_with_epilogue(call, samples, factor, rows_of_bias, result, out.dtype, one, Epilogue::bias)) return;
  copy_matrices(call, rows_of_bias, result, out.dtype);
  product(call, samples, factor, result, out.dtype, one, one);
}

// ---- dot

constexpr int dot_threads = 256;

// The sum over all threads of a block, in a fixed order.
template <typename Sum>
__device__ Sum block_sum(Sum sum) {
  __shared__ alignas(16) unsigned char memory[dot_threads * sizeof(Sum)];
  Sum* shared = reinterpret_cast<Sum*>(memory);
  shared[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned left = dot_threads / 2; left > 0; left /= 2) {
    if (threadIdx.x < left) shared[threadIdx.x] = shared[threadIdx.x] + shared[threadIdx.x + left];
    __syncthreads();
  }
  return shared[0];
}

template <typename T, typename Sum>
__global__ void __launch_bounds__(dot_threads)
    dot_parts(const memory_t<T>* a, int64_t a_step, const memory_t<T>* b, int64_t b_step, int64_t count, Sum* parts) {
  Sum sum(0);
  for (int64_t i = first_index(); i < count; i += index_step())
    sum = sum + static_cast<Sum>(loaded<T>(a[i * a_step])) * static_cast<Sum>(loaded<T>(b[i * b_step]));
  sum = block_sum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

template <typename T, typename Sum>
__global__ void __launch_bounds__(dot_threads) dot_of_parts(const Sum* parts, int count, memory_t<T>* result) {
  Sum sum(0);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += dot_threads) sum = sum + parts[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *result = stored<T>(static_cast<compute_t<T>>(sum));
}

void dot(Call& call) {
  const arguments::Dot args(call);
  const cb_tensor &a = *args.self, &b = *args.tensor, &out = call.output();
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    using Sum = typename sum_type<T>::type;
    const unsigned blocks = grid_for(call, divide_up(a.numel, 8), dot_threads, 4);
    const Workspace parts(call, blocks * sizeof(Sum));
    launch(call, dot_parts<T, Sum>, blocks, dot_threads, 0, static_cast<const memory_t<T>*>(a.data), a.strides[0],
           static_cast<const memory_t<T>*>(b.data), b.strides[0], a.numel, parts.as<Sum>());
    launch(call, dot_of_parts<T, Sum>, 1, dot_threads, 0, parts.as<Sum>(), static_cast<int>(blocks),
           static_cast<memory_t<T>*>(out.data));
  });
}

}  // namespace

void register_linalg(KernelTable& table) {
  table.add<mm>("mm");
  table.add<mm>("bmm");
  table.add<mv>("mv");
  table.add<add_product>("addmm");
  table.add<addmm_activation>("_addmm_activation");
  table.add<add_product>("baddbmm");
  table.add<dot>("dot");
  table.add<linear>("linear");
}

}  // namespace candelabra::cuda
