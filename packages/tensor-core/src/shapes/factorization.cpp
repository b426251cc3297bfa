// Factorizations of matrices, and the checks that all LAPACK families share.
#include "candelabra/positions.hpp"
#include "operators/operator.hpp"
#include "shapes/matrices.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

void check_lapack_dtype(const Call& call, int i, LapackErrors errors) {
  const Dtype dtype = call.tensor(i).dtype;
  check(is_floating(dtype) || is_complex(dtype), errors.integer, call.op.title,
        ": Expected a floating point or complex tensor as input. Got ", info(dtype).type_name,
        "; convert with .to(candelabra.float32)");
  check(dtype != Dtype::Float16 && dtype != Dtype::BFloat16, errors.half, call.op.title,
        ": Low precision dtypes not supported. Got ", info(dtype).type_name, "; convert with .to(candelabra.float32)");
}

void check_matrices(const Call& call, int i, const char* argument) {
  check(call.tensor(i).ndim() >= 2, PyExc_RuntimeError, call.op.title, ": The input tensor ", argument,
        " must have at least 2 dimensions, but its shape is ", shown(call.tensor(i).sizes));
}

void check_square(const Call& call, int i, const char* argument) {
  check_matrices(call, i, argument);
  const TensorObject& tensor = call.tensor(i);
  const int64_t rows = tensor.sizes[tensor.ndim() - 2], columns = tensor.sizes[tensor.ndim() - 1];
  check(rows == columns, PyExc_RuntimeError, call.op.title, ": ", argument,
        " must be batches of square matrices, but they are ", rows, " by ", columns, " matrices");
}

void check_same_dtype(const Call& call, int i, int j, const char* first, const char* second) {
  const Dtype a = call.tensor(i).dtype, b = call.tensor(j).dtype;
  check(a == b, PyExc_RuntimeError, call.op.title, ": Expected ", first, " and ", second,
        " to have the same dtype, but found ", first, " of type ", info(a).type_name, " and ", second, " of type ",
        info(b).type_name, " instead");
}

Dims batch_of(const TensorObject& tensor, int inner) {
  Dims batch = tensor.sizes;
  batch.resize(tensor.ndim() - inner);
  return batch;
}

Dims joined(Dims batch, std::initializer_list<int64_t> inner) {
  for (int64_t size : inner) batch.push_back(size);
  return batch;
}

Dims broadcast_batches(const Call& call, int i, int j) {
  return broadcast_sizes(call.op.title.c_str(), batch_of(call.tensor(i)), batch_of(call.tensor(j)));
}

void broadcast_batch(Call& call, int i, const Dims& batch, int inner) {
  const TensorObject& tensor = call.tensor(i);
  Dims sizes = batch;
  for (int d = tensor.ndim() - inner; d < tensor.ndim(); ++d) sizes.push_back(tensor.sizes[d]);
  if (!(tensor.sizes == sizes)) call.broadcast(i, sizes);
}

void cholesky(Call& call) {
  namespace at = positions::linalg_cholesky_ex;
  check_square(call, at::self, "A");
  check_lapack_dtype(call, at::self, not_in_lapack);
  const TensorObject& self = call.tensor(at::self);
  call.add_output(self.dtype, self.sizes);
  call.add_output(Dtype::Int32, batch_of(self));
}

void lu_factor(Call& call) {
  namespace at = positions::linalg_lu_factor_ex;
  check_matrices(call, at::A, "A");
  check_lapack_dtype(call, at::A, not_in_lapack);
  const TensorObject& self = call.tensor(at::A);
  const int n = self.ndim();
  call.add_output(self.dtype, self.sizes);
  call.add_output(Dtype::Int32, joined(batch_of(self), {std::min(self.sizes[n - 2], self.sizes[n - 1])}));
  call.add_output(Dtype::Int32, batch_of(self));
}

void ldl_factor(Call& call) {
  namespace at = positions::linalg_ldl_factor_ex;
  check_square(call, at::self, "A");
  check_lapack_dtype(call, at::self);
  const TensorObject& self = call.tensor(at::self);
  call.add_output(self.dtype, self.sizes);
  call.add_output(Dtype::Int32, batch_of(self, 1));
  call.add_output(Dtype::Int32, batch_of(self));
}

void geqrf(Call& call) {
  namespace at = positions::geqrf;
  check_matrices(call, at::self, "input");
  check_lapack_dtype(call, at::self, not_in_lapack);
  const TensorObject& self = call.tensor(at::self);
  const int n = self.ndim();
  call.add_output(self.dtype, self.sizes);
  call.add_output(self.dtype, joined(batch_of(self), {std::min(self.sizes[n - 2], self.sizes[n - 1])}));
}

void qr(Call& call) {
  namespace at = positions::linalg_qr;
  check_matrices(call, at::A, "A");
  check_lapack_dtype(call, at::A);
  const TensorObject& self = call.tensor(at::A);
  const std::string_view mode = call[at::mode].string;
  check(mode == "reduced" || mode == "complete" || mode == "r", PyExc_RuntimeError, "qr received unrecognized mode '",
        mode, "' but expected one of 'reduced' (default), 'r', or 'complete'");
  const int64_t m = self.sizes[self.ndim() - 2], n = self.sizes[self.ndim() - 1], k = std::min(m, n);
  call.add_output(self.dtype, mode == "r" ? Dims{0} : joined(batch_of(self), {m, mode == "complete" ? m : k}));
  call.add_output(self.dtype, joined(batch_of(self), {mode == "complete" ? m : k, n}));
}

void householder_product(Call& call) {
  namespace at = positions::linalg_householder_product;
  check(call.tensor(at::input).ndim() >= 2, PyExc_RuntimeError,
        "torch.linalg.householder_product: input must have at least 2 dimensions, but its shape is ",
        shown(call.tensor(at::input).sizes));
  const TensorObject &self = call.tensor(at::input), &tau = call.tensor(at::tau);
  const int64_t m = self.sizes[self.ndim() - 2], n = self.sizes[self.ndim() - 1];
  check(m >= n, PyExc_RuntimeError,
        "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1], but the "
        "shape is ",
        shown(self.sizes));
  check(tau.ndim() == self.ndim() - 1, PyExc_RuntimeError,
        "torch.linalg.householder_product: Expected tau to have one dimension less than input, but got tau.ndim equal "
        "to ",
        tau.ndim(), " and input.ndim is equal to ", self.ndim());
  check(n >= tau.sizes[tau.ndim() - 1], PyExc_RuntimeError,
        "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1], but got ", n,
        " and ", tau.sizes[tau.ndim() - 1]);
  check(batch_of(self) == batch_of(tau, 1), PyExc_RuntimeError,
        "torch.linalg.householder_product: Expected batch dimensions of tau to be equal to input.shape[:-2], but got ",
        shown(batch_of(tau, 1)));
  check(self.dtype == tau.dtype, PyExc_RuntimeError, "torch.linalg.householder_product: tau dtype ",
        info(tau.dtype).type_name, " does not match input dtype ", info(self.dtype).type_name);
  check_lapack_dtype(call, at::input, not_in_lapack);
  call.add_output(self.dtype, self.sizes);
}

}  // namespace candelabra::shapes
