// Reductions over some or all dimensions.
#include <cmath>

#include "candelabra/positions.hpp"
#include "operators/operator.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

uint64_t all_dims(int ndim) {
  return ndim == max_dims ? ~uint64_t{0} : (uint64_t{1} << ndim) - 1;
}

// Every reduction takes self first.
constexpr int self_position = positions::sum::self;

// The set of dimensions in the list argument `dim`: all where the list is not given, or empty and
// not `literal`.
uint64_t reduced_dims(const Call& call, int dim, int ndim, bool literal = false) {
  const Argument& argument = call.arguments[dim];
  if (!argument.given() || (argument.count == 0 && !literal)) return all_dims(ndim);
  return dim_set(call.ints(dim), ndim);
}

// Replaces the argument `dim` by the list of reduced dimensions, and adds an output that lacks
// these dimensions or, with keepdim, has them of size 1.
Output& reduce(Call& call, int dim, uint64_t set, bool keepdim, Dtype dtype) {
  const TensorObject& self = call.tensor(self_position);
  Dims dims, sizes;
  for (int d = 0; d < self.ndim(); ++d) {
    if (set >> d & 1) {
      dims.push_back(d);
      if (keepdim) sizes.push_back(1);
    } else {
      sizes.push_back(self.sizes[d]);
    }
  }
  call.set_ints(dim, dims);
  Output& output = call.add_output(dtype, std::move(sizes));
  (keepdim ? output.reduced : output.inserted) = set;
  return output;
}

// Adds the output of a reduction of one dimension.
Output& reduce_one(Call& call, int dim, bool keepdim, Dtype dtype) {
  const TensorObject& self = call.tensor(self_position);
  Dims sizes = self.sizes;
  if (self.ndim() > 0) {
    if (keepdim) {
      sizes[dim] = 1;
    } else {
      sizes.erase(dim);
    }
  }
  Output& output = call.add_output(dtype, std::move(sizes));
  (keepdim && self.ndim() > 0 ? output.reduced : output.inserted) = uint64_t{1} << dim;
  return output;
}

// Converts self to the dtype in which sums and products are computed: the given one, else that of
// out=, else int64 for integers.
Dtype convert_to_accumulate(Call& call, int dtype_position) {
  const Dtype own = call.tensor(self_position).dtype;
  const TensorObject* given = call.outputs[0].given;
  const Dtype dtype = call.dtype_or(dtype_position, given ? given->dtype : is_integral(own) ? Dtype::Int64 : own);
  call.convert(self_position, dtype);
  call.set_dtype(dtype_position, dtype);
  return dtype;
}

void check_not_empty(const Call& call, uint64_t set) {
  const TensorObject& self = call.tensor(self_position);
  for (int d = 0; d < self.ndim(); ++d) {
    check(!(set >> d & 1) || self.sizes[d] != 0, PyExc_IndexError, call.op.title, "(): Expected reduction dim ", d,
          " to have non-zero size.");
  }
}

void check_real(const Call& call, Dtype dtype) {
  check(!is_complex(dtype), PyExc_RuntimeError, call.op.title, "(): does not support complex input");
}

}  // namespace

// sum, _nansum: the same positions.
void sum(Call& call) {
  namespace at = positions::sum;
  const Dtype dtype = convert_to_accumulate(call, at::dtype);
  reduce(call, at::dim, reduced_dims(call, at::dim, call.tensor(at::self).ndim()), call.boolean(at::keepdim), dtype);
}

void count_nonzero(Call& call) {
  namespace at = positions::count_nonzero;
  if (call.tensor(at::self).dtype == Dtype::Complex32) call.convert(at::self, Dtype::Bool);
  reduce(call, at::dim, reduced_dims(call, at::dim, call.tensor(at::self).ndim()), false, Dtype::Int64);
}

void mean(Call& call) {
  namespace at = positions::mean;
  const bool is_given = call[at::dtype].given();
  const Dtype dtype = call.dtype_or(at::dtype, call.tensor(at::self).dtype);
  check(!is_integral(dtype), PyExc_RuntimeError, "mean(): could not infer output dtype. ",
        is_given ? "Optional" : "Input",
        " dtype must be either a floating point or complex dtype. Got: ", info(dtype).type_name);
  call.convert(at::self, dtype);
  call.set_dtype(at::dtype, dtype);
  reduce(call, at::dim, reduced_dims(call, at::dim, call.tensor(at::self).ndim()), call.boolean(at::keepdim), dtype);
}

void prod(Call& call) {
  namespace at = positions::prod;
  const Dtype dtype = convert_to_accumulate(call, at::dtype);
  const int ndim = call.tensor(at::self).ndim();
  const int64_t dim = call.integer(at::dim);
  const uint64_t set = call[at::dim].given() ? dim_set({&dim, 1}, ndim) : all_dims(ndim);
  reduce(call, at::dim, set, call.boolean(at::keepdim), dtype);
}

// amax, amin, aminmax: the same positions.
void extremum(Call& call) {
  namespace at = positions::amax;
  const TensorObject& self = call.tensor(at::self);
  const uint64_t set = reduced_dims(call, at::dim, self.ndim());
  check(self.numel != 0 || call[at::dim].count != 0, PyExc_RuntimeError, base_name(call),
        "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
        "argument.");
  check_not_empty(call, set);
  if (is_complex(self.dtype)) not_implemented(call, self.dtype);
  reduce(call, at::dim, set, call.boolean(at::keepdim), self.dtype);
}

void aminmax(Call& call) {
  extremum(call);
  Output& largest = call.add_output(call.outputs[0].dtype, call.outputs[0].sizes);
  largest.inserted = call.outputs[0].inserted;
  largest.reduced = call.outputs[0].reduced;
}

// max_with_indices, min_with_indices: the same positions.
void extremum_indices(Call& call) {
  namespace at = positions::max_with_indices;
  const TensorObject& self = call.tensor(at::self);
  const int dim = call.dim(at::dim, self.ndim());
  check_not_empty(call, uint64_t{1} << dim);
  check_real(call, self.dtype);
  reduce_one(call, dim, call.boolean(at::keepdim), self.dtype);
  reduce_one(call, dim, call.boolean(at::keepdim), Dtype::Int64);
  unsqueeze_scalar(call, at::self);
}

// argmax, argmin: the same positions.
void arg_extremum(Call& call) {
  namespace at = positions::argmax;
  const TensorObject& self = call.tensor(at::self);
  const int ndim = self.ndim();
  check(self.dtype != Dtype::Bool, PyExc_RuntimeError, base_name(call), "(): does not support bool input");
  check_real(call, self.dtype);
  const bool keepdim = call.boolean(at::keepdim);
  if (call[at::dim].given()) {
    const int dim = call.dim(at::dim, ndim);
    check_not_empty(call, uint64_t{1} << dim);
    reduce_one(call, dim, keepdim, Dtype::Int64);
    unsqueeze_scalar(call, at::self);
    return;
  }
  check(self.numel != 0, PyExc_IndexError, base_name(call),
        "(): Expected reduction dim to be specified for input.numel() == 0.");
  // Over all elements: the kernel sees self flattened, with leading dimensions of size 1 where the
  // result keeps its dimensions.
  call.make_contiguous(at::self);
  const int seen_ndim = keepdim && ndim > 0 ? ndim : 1;
  Dims sizes(seen_ndim, 1), strides(seen_ndim, 0);
  sizes[seen_ndim - 1] = self.numel;
  strides[seen_ndim - 1] = 1;
  call.set_descriptor(at::self, sizes, strides);
  call.set_int(at::dim, seen_ndim - 1);
  Output& output = call.add_output(Dtype::Int64, keepdim ? Dims(ndim, 1) : Dims());
  if (keepdim && ndim > 0) {
    output.reduced = all_dims(ndim);
  } else {
    output.inserted = 1;
  }
}

// all, any: the same positions.
void reduce_bool(Call& call) {
  namespace at = positions::all;
  // uint8 gives uint8, as in PyTorch, where it was the type of truth values before bool.
  const TensorObject* given = call.outputs[0].given;
  check(!given || given->dtype == Dtype::Bool || given->dtype == Dtype::UInt8, PyExc_RuntimeError, base_name(call),
        " only supports bool tensor for result, got: ", given ? info(given->dtype).type_name : "");
  const Dtype own = call.tensor(at::self).dtype;
  const Dtype dtype = given ? given->dtype : own == Dtype::UInt8 ? Dtype::UInt8 : Dtype::Bool;
  if (is_float8(own) || own == Dtype::Complex32) [[unlikely]]
    call.convert(at::self, Dtype::Bool);
  reduce(call, at::dim, reduced_dims(call, at::dim, call.tensor(at::self).ndim(), true), call.boolean(at::keepdim),
         dtype);
}

// var, std: the same positions.
void variance(Call& call) {
  namespace at = positions::var;
  const TensorObject& self = call.tensor(at::self);
  check(!is_integral(self.dtype), PyExc_RuntimeError, base_name(call),
        "(): std and var only support floating point and complex dtypes, but got ", info(self.dtype).type_name);
  Argument& correction = call[at::correction];
  const double value = correction.given() ? correction.scalar.re : 1.0;
  check(!correction.given() || correction.scalar.kind != CB_SCALAR_COMPLEX, PyExc_TypeError, base_name(call),
        "(): correction must be a real number");
  correction.kind = ArgumentKind::Scalar;
  // float index: in range by the condition
  correction.scalar = {CB_SCALAR_FLOAT, 0, std::abs(value) < 0x1p63 ? static_cast<int64_t>(value) : 0, value, 0, 0};
  const uint64_t set = reduced_dims(call, at::dim, self.ndim());
  double count = 1;
  for (int d = 0; d < self.ndim(); ++d) count *= set >> d & 1 ? static_cast<double>(self.sizes[d]) : 1.0;
  Output& output = reduce(call, at::dim, set, call.boolean(at::keepdim), real_of(self.dtype));
  if (count <= value && product(output.sizes) != 0) {
    warn(text(base_name(call),
              "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
              "(input numel divided by output numel)."));
  }
}

void vector_norm(Call& call) {
  namespace at = positions::linalg_vector_norm;
  const Dtype own = call.tensor(at::self).dtype;
  check(!is_integral(own), PyExc_RuntimeError,
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ", info(own).type_name);
  const Dtype dtype = call.dtype_or(at::dtype, own);
  check(!is_integral(dtype), PyExc_RuntimeError,
        "linalg.vector_norm: dtype should be floating point or complex, but got ", info(dtype).type_name);
  check(is_complex(own) == is_complex(dtype), PyExc_RuntimeError, "linalg.vector_norm: dtype should be ",
        is_complex(own) ? "complex for complex inputs" : "floating point for floating point inputs", ", but got ",
        info(dtype).type_name);
  check(can_cast(own, dtype) && promote(own, dtype) == dtype, PyExc_RuntimeError,
        "linalg.vector_norm: the dtype of the input (", info(own).type_name,
        ") should be convertible without narrowing to the specified dtype (", info(dtype).type_name, ")");
  call.convert(at::self, dtype);
  call.set_dtype(at::dtype, dtype);

  cb_scalar& order = call[at::ord].scalar;
  check(order.kind != CB_SCALAR_COMPLEX, PyExc_RuntimeError,
        "linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
  order.kind = CB_SCALAR_FLOAT;
  const TensorObject& self = call.tensor(at::self);
  const uint64_t set = reduced_dims(call, at::dim, self.ndim());
  const bool has_identity = order.re >= 0 && !std::isinf(order.re);
  if (!has_identity && self.numel == 0) {
    check(call[at::dim].given() && call[at::dim].count != 0, PyExc_RuntimeError,
          "linalg.vector_norm cannot compute the ", order.re,
          " norm on an empty tensor because the operation does not have an identity");
    for (int d = 0; d < self.ndim(); ++d) {
      check(!(set >> d & 1) || self.sizes[d] != 0, PyExc_RuntimeError, "linalg.vector_norm cannot compute the ",
            order.re, " norm on the dimension ", d,
            " because this dimension is empty and the operation does not have an identity");
    }
  }
  reduce(call, at::dim, set, call.boolean(at::keepdim), real_of(dtype));
}

void logsumexp(Call& call) {
  namespace at = positions::logsumexp;
  const Dtype own = call.tensor(at::self).dtype;
  const Dtype dtype = is_integral(own) ? default_dtype() : own;
  call.convert(at::self, dtype);
  reduce(call, at::dim, reduced_dims(call, at::dim, call.tensor(at::self).ndim()), call.boolean(at::keepdim), dtype);
}

}  // namespace candelabra::shapes
