// Factorizations of matrices, and the checks that all LAPACK families share.
#include "candelabra/positions.hpp"
#include "shapes/matrices.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

std::string linalg_title(const Call& call) {
  std::string name(base_name(call));
  if (name.ends_with("_ex")) name.resize(name.size() - 3);
  if (name.ends_with("_driver")) name.resize(name.size() - 7);
  if (name.starts_with("linalg_")) name.replace(0, 7, "linalg.");
  return name;
}

void check_lapack_dtype(const Call& call, int i) {
  const Dtype dtype = call.tensor(i).dtype;
  const std::string title = linalg_title(call);
  // As in PyTorch, some functions check the dtype themselves; others have no kernel for it.
  if (is_floating(dtype) || is_complex(dtype)) {
    check(dtype != Dtype::Float16 && dtype != Dtype::BFloat16,
          title == "linalg.inv" ? PyExc_RuntimeError : PyExc_NotImplementedError, title,
          ": Low precision dtypes not supported. Got ", info(dtype).type_name,
          "; convert with .to(candelabra.float32)");
    return;
  }
  bool no_kernel = false;
  for (const char* name : {"linalg.eigh", "linalg.cholesky", "linalg.lu_factor", "linalg.solve_triangular",
                           "linalg.householder_product", "geqrf", "ormqr"}) {
    no_kernel |= title == name;
  }
  raise(no_kernel ? PyExc_NotImplementedError : PyExc_RuntimeError, title,
        ": Expected a floating point or complex tensor as input. Got ", info(dtype).type_name,
        "; convert with .to(candelabra.float32)");
}

void check_matrices(const Call& call, int i, const char* argument) {
  check(call.tensor(i).ndim() >= 2, PyExc_RuntimeError, linalg_title(call), ": The input tensor ", argument,
        " must have at least 2 dimensions, but its shape is ", shown(call.tensor(i).sizes));
}

void check_square(const Call& call, int i, const char* argument) {
  check_matrices(call, i, argument);
  const TensorObject& tensor = call.tensor(i);
  const int64_t rows = tensor.sizes[tensor.ndim() - 2], columns = tensor.sizes[tensor.ndim() - 1];
  check(rows == columns, PyExc_RuntimeError, linalg_title(call), ": ", argument,
        " must be batches of square matrices, but they are ", rows, " by ", columns, " matrices");
}

void check_same_dtype(const Call& call, int i, int j, const char* first, const char* second) {
  const Dtype a = call.tensor(i).dtype, b = call.tensor(j).dtype;
  check(a == b, PyExc_RuntimeError, linalg_title(call), ": Expected ", first, " and ", second,
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
  return broadcast_sizes(linalg_title(call).c_str(), batch_of(call.tensor(i)), batch_of(call.tensor(j)));
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
  check_lapack_dtype(call, at::self);
  const TensorObject& self = call.tensor(at::self);
  call.add_output(self.dtype, self.sizes);
  call.add_output(Dtype::Int32, batch_of(self));
}

void lu_factor(Call& call) {
  namespace at = positions::linalg_lu_factor_ex;
  check_matrices(call, at::A, "A");
  check_lapack_dtype(call, at::A);
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
  check_lapack_dtype(call, at::self);
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
  check_lapack_dtype(call, at::input);
  call.add_output(self.dtype, self.sizes);
}

}  // namespace candelabra::shapes
