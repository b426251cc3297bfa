// Products of matrices and vectors.
#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

void check_dtypes(const Call& call, int first, int second) {
  const Dtype a = call.tensor(first).dtype, b = call.tensor(second).dtype;
  check(a == b, PyExc_RuntimeError, "expected m1 and m2 to have the same dtype, but got: ", cpp_type_name(a),
        " != ", cpp_type_name(b), "; ", base_name(call), "(): convert one of them, for instance with .to(candelabra.",
        name(a), ")");
}

void check_product(const Call& call, const TensorObject& a, const TensorObject& b) {
  check(a.sizes[1] == b.sizes[0], PyExc_RuntimeError, "mat1 and mat2 shapes cannot be multiplied (", a.sizes[0], "x",
        a.sizes[1], " and ", b.sizes[0], "x", b.sizes[1], ") in ", base_name(call), "()");
}

// Returns the sizes of the product of two batches of matrices.
Dims check_batches(const Call& call, int first, int second) {
  const TensorObject &a = call.tensor(first), &b = call.tensor(second);
  check(a.ndim() == 3, PyExc_RuntimeError, base_name(call), "(): batch1 must be a 3D tensor, but got shape ",
        shown(a.sizes));
  check(b.ndim() == 3, PyExc_RuntimeError, base_name(call), "(): batch2 must be a 3D tensor, but got shape ",
        shown(b.sizes));
  check(a.sizes[0] == b.sizes[0] && a.sizes[2] == b.sizes[1], PyExc_RuntimeError, base_name(call),
        "(): Expected size for first two dimensions of batch2 tensor to be: [", a.sizes[0], ", ", a.sizes[2],
        "] but got: [", b.sizes[0], ", ", b.sizes[1], "].");
  check_dtypes(call, first, second);
  return {a.sizes[0], a.sizes[1], b.sizes[2]};
}

// addmm, _addmm_activation, baddbmm: the same positions. `sizes` are those of the product.
void add_product_output(Call& call, Dims sizes) {
  namespace at = positions::addmm;
  const Dtype dtype = call.tensor(at::self).dtype, other = call.tensor(at::mat2).dtype;
  check(dtype == other, PyExc_RuntimeError, base_name(call), "(): self and mat2 must have the same dtype, but got ",
        info(dtype).type_name, " and ", info(other).type_name,
        "; convert one of them, for instance with .to(candelabra.", name(other), ")");
  // Factors are truncated for integer dtypes, as PyTorch does here, but not in addr.
  for (int i : {at::beta, at::alpha}) check_number_fits(call[i].scalar, dtype, false);
  if (!(call.tensor(at::self).sizes == sizes)) call.broadcast(at::self, sizes);
  call.add_output(dtype, std::move(sizes));
}

}  // namespace

void mm(Call& call) {
  namespace at = positions::mm;
  const TensorObject &a = call.tensor(at::self), &b = call.tensor(at::mat2);
  check(a.ndim() == 2, PyExc_RuntimeError, "mm(): self must be a matrix, but got shape ", shown(a.sizes));
  check(b.ndim() == 2, PyExc_RuntimeError, "mm(): mat2 must be a matrix, but got shape ", shown(b.sizes));
  check_product(call, a, b);
  check_dtypes(call, at::self, at::mat2);
  call.add_output(a.dtype, Dims{a.sizes[0], b.sizes[1]});
}

void bmm(Call& call) {
  namespace at = positions::bmm;
  Dims sizes = check_batches(call, at::self, at::mat2);
  call.add_output(call.tensor(at::self).dtype, std::move(sizes));
}

void mv(Call& call) {
  namespace at = positions::mv;
  const TensorObject &matrix = call.tensor(at::self), &vector = call.tensor(at::vec);
  check(matrix.ndim() == 2 && vector.ndim() == 1, PyExc_RuntimeError, "mv(): matrix @ vector expected, got tensors of ",
        matrix.ndim(), " and ", vector.ndim(), " dimensions");
  check(matrix.sizes[1] == vector.sizes[0], PyExc_RuntimeError, "mv(): size mismatch, got mat (", matrix.sizes[0], "x",
        matrix.sizes[1], "), vec (", vector.sizes[0], ")");
  check_dtypes(call, at::self, at::vec);
  call.add_output(matrix.dtype, Dims{matrix.sizes[0]});
}

void dot(Call& call) {
  namespace at = positions::dot;
  const TensorObject &a = call.tensor(at::self), &b = call.tensor(at::tensor);
  check(a.ndim() == 1 && b.ndim() == 1, PyExc_RuntimeError, "dot(): 1D tensors expected, but got ", a.ndim(), "D and ",
        b.ndim(), "D tensors");
  check(a.dtype == b.dtype, PyExc_RuntimeError, "dot : expected both vectors to have same dtype, but found ",
        info(a.dtype).type_name, " and ", info(b.dtype).type_name,
        "; convert one of them, for instance with .to(candelabra.", name(a.dtype), ")");
  check(a.numel == b.numel, PyExc_RuntimeError, "dot(): inconsistent tensor size, expected tensor ", shown(a.sizes),
        " and src ", shown(b.sizes), " to have the same number of elements, but got ", a.numel, " and ", b.numel,
        " elements respectively");
  call.add_output(a.dtype, Dims{});
}

// addmm, _addmm_activation: the same positions.
void addmm(Call& call) {
  namespace at = positions::addmm;
  const TensorObject &a = call.tensor(at::mat1), &b = call.tensor(at::mat2);
  check(a.ndim() == 2, PyExc_RuntimeError, base_name(call), "(): mat1 must be a matrix, got ", a.ndim(), "-D tensor");
  check(b.ndim() == 2, PyExc_RuntimeError, base_name(call), "(): mat2 must be a matrix, got ", b.ndim(), "-D tensor");
  check_product(call, a, b);
  check_dtypes(call, at::mat1, at::mat2);
  add_product_output(call, Dims{a.sizes[0], b.sizes[1]});
}

void addmm_activation(Call& call) {
  namespace at = positions::addmm_activation;
  const Dtype dtype = call.tensor(at::self).dtype;
  if (is_complex(dtype) || dtype == Dtype::Bool || (call.boolean(at::use_gelu) && is_integral(dtype)))
    not_implemented(call, dtype);
  addmm(call);
}

void baddbmm(Call& call) {
  namespace at = positions::baddbmm;
  add_product_output(call, check_batches(call, at::batch1, at::batch2));
}

void linear(Call& call) {
  namespace at = positions::linear;
  const TensorObject &input = call.tensor(at::input), &weight = call.tensor(at::weight);
  const Argument& bias = call[at::bias];
  check(input.ndim() >= 1 && weight.ndim() >= 1 && weight.ndim() <= 2, PyExc_RuntimeError,
        "linear(): both arguments to linear need to be at least 1D, and weight at most 2D, but they are ", input.ndim(),
        "D and ", weight.ndim(), "D");
  check_dtypes(call, at::input, at::weight);
  const int last = input.ndim() - 1;
  const int64_t features = weight.sizes[weight.ndim() - 1], outputs = weight.ndim() == 2 ? weight.sizes[0] : 1;
  if (input.sizes[last] != features) {
    int64_t rows = 1;
    for (int d = 0; d < last; ++d) rows *= input.sizes[d];
    raise(PyExc_RuntimeError, "mat1 and mat2 shapes cannot be multiplied (", rows, "x", input.sizes[last], " and ",
          features, "x", outputs, "): input has shape ", shown(input.sizes), " and weight ", shown(weight.sizes),
          ", so the last size of input has to be ", features);
  }
  Dims sizes = input.sizes;
  uint64_t inserted = 0;
  if (weight.ndim() == 2) {
    sizes[last] = outputs;
  } else {  // weight (features): the result has no last dimension
    sizes.erase(last);
    inserted |= uint64_t{1} << (input.ndim() == 1 ? 1 : last);
    call.set_descriptor(at::weight, Dims{1, features}, Dims{0, weight.strides[0]});
  }
  if (input.ndim() == 1) {  // the kernel sees (1, features)
    inserted |= 1;
    call.set_descriptor(at::input, Dims{1, features}, Dims{0, input.strides[0]});
  }
  if (bias.given()) {
    check(bias.tensor->dtype == input.dtype, PyExc_RuntimeError,
          "linear(): self and mat2 must have the same dtype, but got ", info(bias.tensor->dtype).type_name,
          " (bias) and ", info(input.dtype).type_name, " (input)");
    if (bias.tensor->ndim() != 1 || bias.tensor->sizes[0] != outputs) call.broadcast(at::bias, Dims{outputs});
  }
  call.add_output(input.dtype, std::move(sizes)).inserted = inserted;
}

namespace {

// Checks x1 (..., P, M) and x2 (..., R, M); returns the sizes of the distances, (..., P, R).
Dims check_rows(Call& call, int x1_argument, int x2_argument) {
  const TensorObject &x1 = call.tensor(x1_argument), &x2 = call.tensor(x2_argument);
  const int ndim = x1.ndim();
  if (!is_floating(x1.dtype)) not_implemented(call, x1.dtype);
  check(x1.dtype == x2.dtype, PyExc_RuntimeError, base_name(call), "(): expected tensors of one dtype, but got ",
        info(x1.dtype).type_name, " and ", info(x2.dtype).type_name);
  bool fits = ndim >= 2 && x2.ndim() == ndim && x1.sizes[ndim - 1] == x2.sizes[ndim - 1];
  for (int d = 0; fits && d < ndim - 2; ++d) fits = x1.sizes[d] == x2.sizes[d];
  check(fits, PyExc_RuntimeError, base_name(call), "(): expected shapes (..., P, M) and (..., R, M), but got ",
        shown(x1.sizes), " and ", shown(x2.sizes));
  Dims sizes = x1.sizes;
  sizes[ndim - 1] = x2.sizes[ndim - 2];
  call.make_contiguous(x1_argument);
  call.make_contiguous(x2_argument);
  return sizes;
}

}  // namespace

// The distance of each row of x1 to each row of x2.
void cdist_forward(Call& call) {
  namespace at = positions::cdist_forward;
  Dims sizes = check_rows(call, at::x1, at::x2);
  const double p = call[at::p].f;
  check(p >= 0, PyExc_RuntimeError, "cdist(): expected a p that is not negative, but got ", p);
  call.add_output(call.tensor(at::x1).dtype, std::move(sizes));
}

// The distances of all pairs of different rows.
void pdist_forward(Call& call) {
  namespace at = positions::pdist_forward;
  const TensorObject& self = call.tensor(at::self);
  check(self.ndim() == 2 && is_floating(self.dtype), PyExc_RuntimeError,
        "pdist(): expected a floating-point matrix, but got shape ", shown(self.sizes), " and ",
        info(self.dtype).type_name);
  const double p = call[at::p].f;
  check(p >= 0, PyExc_RuntimeError, "pdist(): expected a p that is not negative, but got ", p);
  const int64_t rows = self.sizes[0];
  call.make_contiguous(at::self);
  call.add_output(self.dtype, Dims{rows < 2 ? 0 : rows * (rows - 1) / 2});
}

// The gradient of x1.
void cdist_backward(Call& call) {
  namespace at = positions::cdist_backward;
  const Dims sizes = check_rows(call, at::x1, at::x2);
  const Dtype dtype = call.tensor(at::x1).dtype;
  const double p = call[at::p].f;
  check(p >= 0, PyExc_RuntimeError, "_cdist_backward(): expected a p that is not negative, but got ", p);
  for (int i : {at::grad, at::result}) {
    check(call.tensor(i).sizes == sizes, PyExc_RuntimeError, "_cdist_backward(): expected grad and result of shape ",
          shown(sizes), ", but got ", shown(call.tensor(i).sizes));
    call.convert(i, dtype);
    call.make_contiguous(i);
  }
  call.add_output(dtype, call.tensor(at::x1).sizes);
}

}  // namespace candelabra::shapes
