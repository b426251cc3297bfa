// Products of matrices, of any strides: the second one is packed, so that the inner loop is dense.
#include "candelabra/arguments/linalg.hpp"
#include "kernels.hpp"
#include "tensors.hpp"

namespace {

// A matrix of the last two dimensions.
template <typename T>
struct Matrix {
  memory_t<T>* data;
  int64_t row_stride, column_stride;
  Matrix(const cb_tensor& tensor, int64_t batch)
      : data(elements<T>(tensor) + (tensor.ndim > 2 ? batch * tensor.strides[0] : 0)),
        row_stride(tensor.strides[tensor.ndim - 2]),
        column_stride(tensor.strides[tensor.ndim - 1]) {}
  memory_t<T>& at(int64_t i, int64_t j) const { return data[i * row_stride + j * column_stride]; }
};

template <typename T>
void multiply_matrices(Matrix<T> out, Matrix<T> a, Matrix<T> b, int64_t m, int64_t n, int64_t k) {
  using C = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  std::vector<C> columns(static_cast<size_t>(n * k)), row(static_cast<size_t>(k));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t p = 0; p < k; ++p) columns[static_cast<size_t>(j * k + p)] = static_cast<C>(load<T>(&b.at(p, j)));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) row[static_cast<size_t>(p)] = static_cast<C>(load<T>(&a.at(i, p)));
    for (int64_t j = 0; j < n; ++j) {
      C total = 0;
      for (int64_t p = 0; p < k; ++p) total += row[static_cast<size_t>(p)] * columns[static_cast<size_t>(j * k + p)];
      out.at(i, j) = static_cast<T>(static_cast<compute_t<T>>(total));
    }
  }
}

// mm and bmm: without a batch there is one matrix.
void multiply(Call& call) {
  const candelabra::arguments::Mm args(call);
  const cb_tensor& out = call.output();
  const int d = out.ndim - 2;
  dispatch<RealTypes>(out.dtype, [&]<typename T>() {
    for (int64_t batch = 0; batch < (d > 0 ? out.sizes[0] : 1); ++batch)
      multiply_matrices<T>({out, batch}, {*args.self, batch}, {*args.mat2, batch}, out.sizes[d], out.sizes[d + 1],
                           args.self->sizes[d + 1]);
  });
}

}  // namespace

void add_linalg_kernels(Table& table) {
  table.add<multiply>("mm", 0, mask<RealTypes>);
  table.add<multiply>("bmm", 0, mask<RealTypes>);
}
