// mm, bmm, addmm, baddbmm and linear; see kernels/matmul.cl.
#include "candelabra/arguments/linalg.hpp"

#include "families.hpp"
#include "matmul.hpp"

namespace candelabra::opencl {

namespace {

// As in kernels/matmul.cl.
constexpr int64_t tile_rows = 32, tile_columns = 64;
constexpr size_t side = 8;  // items of a group, in each direction

struct Product {
  int64_t rows, columns, inner;
  int64_t out_strides[3], a_strides[3], b_strides[3], bias_strides[3];
  uint64_t out_offset, a_offset, b_offset, bias_offset;
  uint64_t alpha, beta;
  int64_t has_bias;
};

size_t items_for(int64_t extent, int64_t tile) {
  return static_cast<size_t>((extent + tile - 1) / tile) * side;
}

}  // namespace

void multiply(const Call& call, const Multiplication& m) {
  if (m.batch == 0 || m.rows == 0 || m.columns == 0) return;
  Product product = {};
  product.rows = m.rows;
  product.columns = m.columns;
  product.inner = m.inner;
  const Matrix& bias = m.bias ? *m.bias : m.out;
  for (size_t d = 0; d < 3; ++d) {
    product.out_strides[d] = m.out.strides[d];
    product.a_strides[d] = m.a.strides[d];
    product.b_strides[d] = m.b.strides[d];
    product.bias_strides[d] = bias.strides[d];
  }
  product.out_offset = m.out.offset;
  product.a_offset = m.a.offset;
  product.b_offset = m.b.offset;
  product.bias_offset = bias.offset;
  product.alpha = number_bits(m.alpha, m.dtype);
  product.beta = number_bits(m.beta, m.dtype);
  product.has_bias = m.bias && m.beta != 0;
  Launch kernel(call, "matmul", "matmul", {{"T", m.dtype}});
  kernel.memory(m.out.memory).memory(m.a.memory).memory(m.b.memory).memory(bias.memory).structure(product);
  const size_t global[] = {items_for(m.columns, tile_columns), items_for(m.rows, tile_rows),
                           static_cast<size_t>(m.batch)};
  static constexpr size_t local[] = {side, side, 1};
  kernel.grid(global, local);
}

namespace {

// A matrix, or a batch of them.
Matrix matrix_of(const cb_tensor& tensor) {
  const int64_t* strides = tensor.strides + tensor.ndim - 2;
  return {memory_of(tensor), tensor.offset, {tensor.ndim == 3 ? tensor.strides[0] : 0, strides[0], strides[1]}};
}

Multiplication multiplication_of(const cb_tensor& out, const cb_tensor& a, const cb_tensor& b) {
  const int64_t *left = a.sizes + a.ndim - 2, *right = b.sizes + b.ndim - 2;
  return {.dtype = out.dtype,
          .batch = out.ndim == 3 ? out.sizes[0] : 1,
          .rows = left[0],
          .inner = left[1],
          .columns = right[1],
          .out = matrix_of(out),
          .a = matrix_of(a),
          .b = matrix_of(b),
          .bias = std::nullopt};
}

void product(Call& call) {  // mm and bmm
  if (call.output().numel) multiply(call, multiplication_of(call.output(), call.tensor(0), call.tensor(1)));
}

void sum_and_product(Call& call) {  // addmm and baddbmm
  const arguments::Addmm args(call);
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  Multiplication m = multiplication_of(out, *args.mat1, *args.mat2);
  if (!kernel::is_floating_dtype(out.dtype) && (args.alpha->kind > CB_SCALAR_INT || args.beta->kind > CB_SCALAR_INT))
    throw not_implemented();
  m.bias = matrix_of(*args.self);
  m.alpha = args.alpha->re;
  m.beta = args.beta->re;
  multiply(call, m);
}

// input weight^T + bias. The leading dimensions of input are rows if their strides allow, else a
// batch.
void linear(Call& call) {
  const arguments::Linear args(call);
  const cb_tensor &out = call.output(), &input = *args.input, &weight = *args.weight;
  if (out.numel == 0) return;
  if (!kernel::is_contiguous(input)) throw not_implemented();
  const int64_t features = weight.sizes[1], columns = weight.sizes[0];
  Multiplication m = {.dtype = out.dtype,
                      .batch = 1,
                      .rows = out.numel / columns,
                      .inner = features,
                      .columns = columns,
                      .out = {memory_of(out), out.offset, {0, columns, 1}},
                      .a = {memory_of(input), input.offset, {0, features, 1}},
                      .b = {memory_of(weight), weight.offset, {0, weight.strides[1], weight.strides[0]}},
                      .bias = std::nullopt};
  if (args.bias) m.bias = {memory_of(*args.bias), args.bias->offset, {0, 0, args.bias->strides[0]}};
  multiply(call, m);
}

}  // namespace

void add_linalg(Table& table) {
  constexpr uint64_t numbers = float_dtypes | integer_dtypes;
  for (const char* name : {"mm", "bmm"}) table.add<product>(name, 0, numbers);
  for (const char* name : {"addmm", "baddbmm"}) table.add<sum_and_product>(name, 0, numbers);
  table.add<linear>("linear", 0, float_dtypes);
}

}  // namespace candelabra::opencl
