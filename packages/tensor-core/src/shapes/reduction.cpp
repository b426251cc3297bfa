// Reductions over some or all dimensions.
#include <cmath>

#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

uint64_t all_dims(int ndim) {
  return ndim == max_dims ? ~uint64_t{0} : (uint64_t{1} << ndim) - 1;
}

// The dimensions that argument i names, as a set; all where there is none and, unless `literal`, where the list is empty.
uint64_t reduced(const Call& call, int i, int ndim, bool literal = false) {
  const Argument& argument = call.arguments[i];
  if (!argument.given() || (argument.count == 0 && !literal)) return all_dims(ndim);
  return dim_set(call.ints(i), ndim);
}

// Gives the kernel the list of reduced dimensions and describes a result with these dimensions taken out, or of size 1.
Output& reduce(Call& call, int dim_argument, uint64_t set, bool keepdim, Dtype dtype) {
  const TensorObject& self = call.tensor(0);
  Dims dims, sizes;
  for (int d = 0; d < self.ndim(); ++d) {
    if (set >> d & 1) {
      dims.push_back(d);
      if (keepdim) sizes.push_back(1);
    } else {
      sizes.push_back(self.sizes[d]);
    }
  }
  call.set_ints(dim_argument, dims);
  Output& output = call.add_output(dtype, std::move(sizes));
  (keepdim ? output.reduced : output.inserted) = set;
  return output;
}

// One result, or two, along one dimension.
Output& reduce_one(Call& call, int dim, bool keepdim, Dtype dtype) {
  const TensorObject& self = call.tensor(0);
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

// sum and its relatives: in the dtype that was asked for, else in that of out=, else integers in int64.
Dtype accumulated(Call& call, int dtype_argument) {
  const Dtype own = call.tensor(0).dtype;
  const TensorObject* given = call.outputs[0].given;
  const Dtype dtype = call.dtype_or(dtype_argument, given ? given->dtype : is_integral(own) ? Dtype::Int64 : own);
  call.convert(0, dtype);
  call.set_dtype(dtype_argument, dtype);
  return dtype;
}

// The name that users know: max for max_with_indices.
std::string_view public_name(const Call& call) {
  const std::string_view name = base_name(call);
  return name == "extrema" ? "aminmax" : name.substr(0, name.find("_with_indices"));
}

void check_not_empty(const Call& call, uint64_t set) {
  const TensorObject& self = call.tensor(0);
  for (int d = 0; d < self.ndim(); ++d) {
    check(!(set >> d & 1) || self.sizes[d] != 0, PyExc_IndexError, public_name(call), "(): Expected reduction dim ", d,
          " to have non-zero size.");
  }
}

void check_real(const Call& call, Dtype dtype) {
  check(!is_complex(dtype), PyExc_RuntimeError, public_name(call), "(): does not support complex input");
}

}  // namespace

void sum(Call& call) {
  const Dtype dtype = accumulated(call, 3);
  reduce(call, 1, reduced(call, 1, call.tensor(0).ndim()), call.boolean(2), dtype);
}

void count_nonzero(Call& call) {
  reduce(call, 1, reduced(call, 1, call.tensor(0).ndim()), false, Dtype::Int64);
}

void mean(Call& call) {
  const bool asked = call[3].given();
  const Dtype dtype = call.dtype_or(3, call.tensor(0).dtype);
  check(!is_integral(dtype), PyExc_RuntimeError, "mean(): could not infer output dtype. ", asked ? "Optional" : "Input",
        " dtype must be either a floating point or complex dtype. Got: ", info(dtype).type_name);
  call.convert(0, dtype);
  call.set_dtype(3, dtype);
  reduce(call, 1, reduced(call, 1, call.tensor(0).ndim()), call.boolean(2), dtype);
}

void prod(Call& call) {
  const Dtype dtype = accumulated(call, 3);
  const int ndim = call.tensor(0).ndim();
  const int64_t dim = call.integer(1);
  const uint64_t set = call[1].given() ? dim_set({&dim, 1}, ndim) : all_dims(ndim);
  reduce(call, 1, set, call.boolean(2), dtype);
}

void extremum(Call& call) {
  const TensorObject& self = call.tensor(0);
  const uint64_t set = reduced(call, 1, self.ndim());
  check(self.numel != 0 || call[1].count != 0, PyExc_RuntimeError, base_name(call),
        "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.");
  check_not_empty(call, set);
  if (is_complex(self.dtype)) not_implemented(call, self.dtype);
  reduce(call, 1, set, call.boolean(2), self.dtype);
}

// extrema(self, dim, keepdim)
void extrema(Call& call) {
  extremum(call);
  Output& largest = call.add_output(call.outputs[0].dtype, call.outputs[0].sizes);
  largest.inserted = call.outputs[0].inserted;
  largest.reduced = call.outputs[0].reduced;
}

void extremum_indices(Call& call) {
  const TensorObject& self = call.tensor(0);
  const int dim = call.dim(1, self.ndim());
  check_not_empty(call, uint64_t{1} << dim);
  check_real(call, self.dtype);
  reduce_one(call, dim, call.boolean(2), self.dtype);
  reduce_one(call, dim, call.boolean(2), Dtype::Int64);
  see_dimension(call, 0);
}

void arg_extremum(Call& call) {
  const TensorObject& self = call.tensor(0);
  const int ndim = self.ndim();
  check(self.dtype != Dtype::Bool, PyExc_RuntimeError, base_name(call), "(): does not support bool input");
  check_real(call, self.dtype);
  const bool keepdim = call.boolean(2);
  if (call[1].given()) {
    const int dim = call.dim(1, ndim);
    check_not_empty(call, uint64_t{1} << dim);
    reduce_one(call, dim, keepdim, Dtype::Int64);
    see_dimension(call, 0);
    return;
  }
  check(self.numel != 0, PyExc_IndexError, base_name(call), "(): Expected reduction dim to be specified for input.numel() == 0.");
  // Over all: along the only dimension of the flattened self, which keeps its dimensions, of size 1, where the result does.
  call.make_contiguous(0);
  const int seen = keepdim && ndim > 0 ? ndim : 1;
  Dims sizes(seen, 1), strides(seen, 0);
  sizes[seen - 1] = self.numel;
  strides[seen - 1] = 1;
  call.set_descriptor(0, sizes, strides);
  call.set_int(1, seen - 1);
  Output& output = call.add_output(Dtype::Int64, keepdim ? Dims(ndim, 1) : Dims());
  if (keepdim && ndim > 0) {
    output.reduced = all_dims(ndim);
  } else {
    output.inserted = 1;
  }
}

void reduce_bool(Call& call) {
  // Bytes were PyTorch's truths before it had bools, and still give bytes.
  const TensorObject* given = call.outputs[0].given;
  check(!given || given->dtype == Dtype::Bool || given->dtype == Dtype::UInt8, PyExc_RuntimeError, base_name(call),
        "(): only supports bool tensor for result, got: ", given ? info(given->dtype).type_name : "");
  const Dtype dtype = given ? given->dtype : call.tensor(0).dtype == Dtype::UInt8 ? Dtype::UInt8 : Dtype::Bool;
  reduce(call, 1, reduced(call, 1, call.tensor(0).ndim(), true), call.boolean(2), dtype);
}

void variance(Call& call) {
  const TensorObject& self = call.tensor(0);
  check(!is_integral(self.dtype), PyExc_RuntimeError, base_name(call),
        "(): std and var only support floating point and complex dtypes, but got ", info(self.dtype).type_name);
  Argument& correction = call[2];
  const double value = correction.given() ? correction.scalar.re : 1.0;
  check(!correction.given() || correction.scalar.kind != CB_SCALAR_COMPLEX, PyExc_TypeError, base_name(call),
        "(): correction must be a real number");
  correction.kind = ArgumentKind::Scalar;
  // float index: in range by the condition
  correction.scalar = {CB_SCALAR_FLOAT, 0, std::abs(value) < 0x1p63 ? static_cast<int64_t>(value) : 0, value, 0};
  const uint64_t set = reduced(call, 1, self.ndim());
  double count = 1;
  for (int d = 0; d < self.ndim(); ++d) count *= set >> d & 1 ? static_cast<double>(self.sizes[d]) : 1.0;
  Output& output = reduce(call, 1, set, call.boolean(3), real_of(self.dtype));
  if (count <= value && product(output.sizes) != 0) {
    warn(text(base_name(call),
              "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
              "(input numel divided by output numel)."));
  }
}

void vector_norm(Call& call) {
  const Dtype own = call.tensor(0).dtype;
  check(!is_integral(own), PyExc_RuntimeError, "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
        info(own).type_name);
  const Dtype dtype = call.dtype_or(4, own);
  check(!is_integral(dtype), PyExc_RuntimeError, "linalg.vector_norm: dtype should be floating point or complex, but got ",
        info(dtype).type_name);
  check(is_complex(own) == is_complex(dtype), PyExc_RuntimeError, "linalg.vector_norm: dtype should be ",
        is_complex(own) ? "complex for complex inputs" : "floating point for floating point inputs", ", but got ",
        info(dtype).type_name);
  check(can_cast(own, dtype) && promote(own, dtype) == dtype, PyExc_RuntimeError, "linalg.vector_norm: the dtype of the input (",
        info(own).type_name, ") should be convertible without narrowing to the specified dtype (", info(dtype).type_name, ")");
  call.convert(0, dtype);
  call.set_dtype(4, dtype);

  cb_scalar& order = call[1].scalar;
  check(order.kind != CB_SCALAR_COMPLEX, PyExc_RuntimeError,
        "linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
  order.kind = CB_SCALAR_FLOAT;
  const TensorObject& self = call.tensor(0);
  const uint64_t set = reduced(call, 2, self.ndim());
  const bool has_identity = order.re >= 0 && !std::isinf(order.re);
  if (!has_identity && self.numel == 0) {
    check(call[2].given() && call[2].count != 0, PyExc_RuntimeError, "linalg.vector_norm cannot compute the ", order.re,
          " norm on an empty tensor because the operation does not have an identity");
    for (int d = 0; d < self.ndim(); ++d) {
      check(!(set >> d & 1) || self.sizes[d] != 0, PyExc_RuntimeError, "linalg.vector_norm cannot compute the ", order.re,
            " norm on the dimension ", d, " because this dimension is empty and the operation does not have an identity");
    }
  }
  reduce(call, 2, set, call.boolean(3), real_of(dtype));
}

void logsumexp(Call& call) {
  const Dtype own = call.tensor(0).dtype;
  const Dtype dtype = is_integral(own) ? default_dtype() : own;
  call.convert(0, dtype);
  reduce(call, 1, reduced(call, 1, call.tensor(0).ndim()), call.boolean(2), dtype);
}

}  // namespace candelabra::shapes
