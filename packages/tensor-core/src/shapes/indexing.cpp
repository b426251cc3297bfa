// Rows, columns and elements along one dimension, taken or written at the positions of an index tensor.
#include "checks.hpp"
#include "indexing_overlapping.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

int at_least_one(int ndim) {
  return std::max(ndim, 1);
}
int64_t size_at(const TensorObject& tensor, int dim) {
  return tensor.ndim() == 0 ? 1 : tensor.sizes[dim];
}

// int32 indices are allowed and widened; those without elements may be of any dtype.
void check_index(Call& call, int i) {
  const Dtype dtype = call.tensor(i).dtype;
  check(call.tensor(i).numel == 0 || dtype == Dtype::Int64 || dtype == Dtype::Int32, PyExc_RuntimeError, call.name(),
        "(): Expected dtype int32/int64 for index, but got ", info(dtype).type_name, "; convert it with .to(candelabra.int64)");
  call.convert(i, Dtype::Int64);
}

void check_long_index(const Call& call, int i, PyObject* error) {
  const Dtype dtype = call.tensor(i).dtype;
  check(dtype == Dtype::Int64, error, call.name(), "(): Expected dtype int64 for index: Expected a long tensor for index, but got ",
        info(dtype).type_name, "; convert it with .to(candelabra.int64)");
}

// A geometry without elements for an argument whose own number of dimensions may be anything because it is empty.
void see_empty(Call& call, int i, int ndim) {
  call.set_descriptor(i, Dims(ndim, 0), Dims(ndim, 1));
}

Output& like_self(Call& call) {
  const TensorObject& self = call.tensor(0);
  Output& output = call.add_output(self.dtype, self.sizes);
  output.inserted = inserted_dimension(self);
  return output;
}

}  // namespace

void gather(Call& call) {
  check_index(call, 2);
  const TensorObject &self = call.tensor(0), &index = call.tensor(2);
  const int dim = call.dim(1, self.ndim()), ndim = at_least_one(self.ndim());
  if (index.numel != 0) {
    check(at_least_one(index.ndim()) == ndim, PyExc_RuntimeError,
          "gather(): Index tensor must have the same number of dimensions as input tensor, but index has shape ",
          shown(index.sizes), " and input ", shown(self.sizes));
    for (int d = 0; d < ndim; ++d) {
      check(d == dim || size_at(index, d) <= size_at(self, d), PyExc_RuntimeError, "gather(): Size does not match at dimension ", d,
            " expected index ", shown(index.sizes), " to be no larger than self ", shown(self.sizes), " apart from dimension ",
            dim);
    }
  }
  call.add_output(self.dtype, index.sizes).inserted = inserted_dimension(index);
  see_dimension(call, 0);
  see_dimension(call, 2);
}

void scatter(Call& call) {
  check_index(call, 2);
  const TensorObject &self = call.tensor(0), &index = call.tensor(2);
  const int dim = call.dim(1, self.ndim()), ndim = at_least_one(self.ndim());
  const Argument& source = call[3];
  const TensorObject* src = source.is_tensor() ? source.tensor : nullptr;
  if (src) {
    check(src->dtype == self.dtype, PyExc_RuntimeError, base_name(call),
          "(): Expected self.dtype to be equal to src.dtype, but got ", info(self.dtype).type_name, " and ",
          info(src->dtype).type_name);
  } else {
    check_number_fits(source.scalar, self.dtype, true);
    call.convert(3, self.dtype);
  }
  like_self(call);
  see_dimension(call, 0);
  if (index.numel == 0) {
    see_empty(call, 2, ndim);
    see_empty(call, 3, ndim);
    return;
  }
  check(at_least_one(index.ndim()) == ndim, PyExc_RuntimeError, base_name(call),
        "(): Index tensor must have the same number of dimensions as self tensor, but index has shape ", shown(index.sizes),
        " and self ", shown(self.sizes));
  if (src && at_least_one(src->ndim()) != ndim) {
    raise(PyExc_RuntimeError, base_name(call),
          "(): Index tensor must have the same number of dimensions as src tensor, but index has shape ", shown(index.sizes),
          " and src ", shown(src->sizes));
  }
  for (int d = 0; d < ndim; ++d) {
    const bool fits = (d == dim || size_at(index, d) <= size_at(self, d)) && (!src || size_at(index, d) <= size_at(*src, d));
    if (!fits) {
      raise(PyExc_RuntimeError, base_name(call), "(): Expected index ", shown(index.sizes), " to be no larger than self ",
            shown(self.sizes), " apart from dimension ", dim,
            src ? " and to be no larger size than src " + to_text(src->sizes) : std::string());
    }
  }
  see_dimension(call, 2);
  if (src) {
    see_dimension(call, 3);
  } else {
    call.broadcast(3, Dims(std::span<const int64_t>(call[2].descriptor ? std::span<const int64_t>(call[2].descriptor->sizes, 1)
                                                                       : std::span<const int64_t>(index.sizes))));
  }
}

void index_select(Call& call) {
  check_index(call, 2);
  const TensorObject &self = call.tensor(0), &index = call.tensor(2);
  const int dim = call.dim(1, self.ndim());
  check(index.ndim() <= 1, PyExc_IndexError, "index_select(): Index is supposed to be a vector, but got shape ",
        shown(index.sizes));
  Dims sizes = self.sizes;
  if (self.ndim() == 0) {
    check(index.numel == 1, PyExc_RuntimeError, "index_select(): Index to scalar can have only 1 value, got ", index.numel,
          " value(s)");
  } else {
    sizes[dim] = index.numel;
  }
  call.add_output(self.dtype, std::move(sizes)).inserted = inserted_dimension(self);
  see_dimension(call, 0);
  see_dimension(call, 2);
}

// index_add and index_copy
void index_add(Call& call) {
  const bool copies = base_name(call) == "index_copy";
  const char* name = copies ? "index_copy_(): " : "index_add_(): ";
  if (copies) {
    check_long_index(call, 2, PyExc_RuntimeError);
  } else {
    check_index(call, 2);
  }
  const TensorObject &self = call.tensor(0), &index = call.tensor(2), &source = call.tensor(3);
  const int dim = call.dim(1, self.ndim());
  check(index.ndim() <= 1, PyExc_IndexError, name, "Index is supposed to be a vector, but got dim: ", index.ndim(),
        " with type: ", info(index.dtype).type_name, " and size: ", shown(index.sizes));
  check(self.dtype == source.dtype, PyExc_RuntimeError, name, "self (", info(self.dtype).type_name, ") and source (",
        info(source.dtype).type_name, ") must have the same scalar type");
  check(at_least_one(source.ndim()) == at_least_one(self.ndim()), copies ? PyExc_IndexError : PyExc_RuntimeError, name,
        "When source and destination are not scalars, their dimensionality must match. Source dimensionality (", source.ndim(),
        "), destination dimensionality (", self.ndim(), ")");
  check(index.numel == size_at(source, dim), copies ? PyExc_IndexError : PyExc_RuntimeError, name, "Number of indices (",
        index.numel, ") should be equal to source.size(dim): (", size_at(source, dim), "), for dim: ", dim);
  for (int d = 0; d < self.ndim(); ++d) {
    check(d == dim || source.ndim() == 0 || self.sizes[d] == source.sizes[d], PyExc_RuntimeError, name,
          "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ",
          shown(self.sizes), " source.shape = ", shown(source.sizes));
  }
  if (!copies && self.dtype != Dtype::Bool) check_number_fits(call[4].scalar, self.dtype, false);
  like_self(call);
  for (int i : {0, 2, 3}) see_dimension(call, i);
}

void index_fill(Call& call) {
  check_long_index(call, 2, PyExc_IndexError);
  const TensorObject &self = call.tensor(0), &index = call.tensor(2);
  call.dim(1, self.ndim());
  check(index.ndim() <= 1, PyExc_RuntimeError, "index_fill_(): Index has to be a vector/scalar, but got shape ",
        shown(index.sizes));
  check(call[3].scalar.kind != CB_SCALAR_COMPLEX || is_complex(self.dtype), PyExc_RuntimeError,
        "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  check_number_fits(call[3].scalar, self.dtype, true);
  Output& output = like_self(call);
  if (!self.contiguous) output.strides = preserved_strides(self);
  if (write_overlapping(call, "index_select", {1, 2}, 3)) return;
  see_dimension(call, 0);
  see_dimension(call, 2);
}

void take(Call& call) {
  check_long_index(call, 1, PyExc_RuntimeError);
  const TensorObject &self = call.tensor(0), &index = call.tensor(1);
  check(self.numel != 0 || index.numel == 0, PyExc_IndexError, "take(): tried to take from an empty tensor");
  call.add_output(self.dtype, index.sizes);
}

void embedding(Call& call) {
  const TensorObject& weight = call.tensor(0);
  const Dtype dtype = call.tensor(1).dtype;
  check(weight.ndim() == 2, PyExc_RuntimeError, "embedding(): 'weight' must be 2-D, but got shape ", shown(weight.sizes));
  check(dtype == Dtype::Int64 || dtype == Dtype::Int32, PyExc_RuntimeError,
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got ",
        info(dtype).type_name, " instead (while checking arguments for embedding)");
  call.convert(1, Dtype::Int64);
  Dims sizes = call.tensor(1).sizes;
  sizes.push_back(weight.sizes[1]);
  call.add_output(weight.dtype, std::move(sizes));
}

void embedding_backward(Call& call) {
  const TensorObject& grad = call.tensor(0);
  check_index(call, 1);
  const TensorObject& indices = call.tensor(1);
  const int ndim = indices.ndim();
  const bool matches = grad.ndim() == ndim + 1 && std::equal(indices.sizes.begin(), indices.sizes.end(), grad.sizes.begin());
  check(matches, PyExc_RuntimeError, "embedding_backward(): grad of shape ", shown(grad.sizes),
        " does not belong to indices of shape ", shown(indices.sizes));
  check(call.integer(2) >= 0, PyExc_RuntimeError, "embedding_backward(): num_weights must not be negative, but got ",
        call.integer(2));
  call.add_output(grad.dtype, Dims{call.integer(2), grad.sizes[ndim]});
}

// scatter_reduce(self, dim, index, src, reduce, include_self)
void scatter_reduce(Call& call) {
  const std::string_view reduce = call[4].string;
  const bool extremum = reduce == "amax" || reduce == "amin";
  check(extremum || reduce == "sum" || reduce == "prod" || reduce == "mean", PyExc_RuntimeError,
        "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
  const Dtype dtype = call.tensor(0).dtype;
  check(reduce != "mean" || dtype != Dtype::Bool, PyExc_NotImplementedError, "\"", base_name(call),
        "\" with reduce=\"mean\" is not implemented for bool; convert with .to(candelabra.float32)");
  if (extremum && is_complex(dtype)) not_implemented(call, dtype);
  call.tensor(3);
  scatter(call);
}

namespace {

void check_positions(Call& call, int i, const char* name) {
  const TensorObject& positions = call.tensor(i);
  check(positions.ndim() == 1, PyExc_RuntimeError, "embedding_bag: expected ", name, " of one dimension, but got shape ",
        shown(positions.sizes));
  check(positions.dtype == Dtype::Int64 || positions.dtype == Dtype::Int32, PyExc_RuntimeError, "Expected tensor for argument '",
        name, "' to have one of the following scalar types: Long, Int; but got ", info(positions.dtype).type_name, " instead");
  call.convert(i, Dtype::Int64);
  call.make_contiguous(i);
}

void check_bag_mode(const Call& call, int i) {
  const std::string_view mode = call.arguments[i].string;
  check(mode == "sum" || mode == "mean" || mode == "max", PyExc_ValueError,
        "embedding_bag: mode has to be one of sum, mean or max");
}

}  // namespace

// embedding_bag_forward(weight, indices, offsets, mode, per_sample_weights, scale_grad_by_freq, include_last_offset, padding_idx)
void embedding_bag_forward(Call& call) {
  const TensorObject& weight = call.tensor(0);
  check(weight.ndim() == 2, PyExc_RuntimeError, "embedding_bag: 'weight' must be 2-D, but got shape ", shown(weight.sizes));
  if (!is_floating(weight.dtype)) not_implemented(call, weight.dtype);
  check_positions(call, 1, "indices");
  check_positions(call, 2, "offsets");
  check_bag_mode(call, 3);
  const bool has_end = call.boolean(6);
  const int64_t offsets = call.tensor(2).sizes[0], indices = call.tensor(1).sizes[0];
  check(!has_end || offsets >= 1, PyExc_RuntimeError, "include_last_offset: numBags should be at least 1");
  if (call[4].given()) {
    check(call.tensor(4).sizes == call.tensor(1).sizes, PyExc_RuntimeError,
          "embedding_bag: expected per_sample_weights of the shape ", shown(call.tensor(1).sizes), " of indices, but got ",
          shown(call.tensor(4).sizes));
    call.convert(4, statistics_dtype(weight.dtype));
    call.make_contiguous(4);
  }
  const int64_t bags = offsets - (has_end ? 1 : 0);
  const bool max = std::string_view(call[3].string) == "max";
  call.add_output(weight.dtype, Dims{bags, weight.sizes[1]});
  call.add_output(Dtype::Int64, Dims{indices});
  call.add_output(Dtype::Int64, Dims{bags});
  call.add_output(Dtype::Int64, max ? Dims{bags, weight.sizes[1]} : Dims{bags});
}

// embedding_bag_backward(grad, indices, offset2bag, bag_size, max_indices, num_weights, mode, per_sample_weights,
// scale_grad_by_freq, padding_idx)
void embedding_bag_backward(Call& call) {
  const TensorObject& grad = call.tensor(0);
  check(grad.ndim() == 2, PyExc_RuntimeError, "embedding_bag_backward(): expected grad of two dimensions, but got shape ",
        shown(grad.sizes));
  if (!is_floating(grad.dtype)) not_implemented(call, grad.dtype);
  check_bag_mode(call, 6);
  check_positions(call, 1, "indices");
  check_positions(call, 2, "offset2bag");
  check_positions(call, 3, "bag_size");
  const bool max = std::string_view(call[6].string) == "max";
  const int64_t rows = call.integer(5);
  const TensorObject& positions = call.tensor(4);
  check(rows >= 0, PyExc_RuntimeError, "embedding_bag_backward(): num_weights must not be negative, but got ", rows);
  check(call.tensor(2).sizes == call.tensor(1).sizes && call.tensor(3).sizes[0] == grad.sizes[0] &&
            (!max || (positions.sizes == grad.sizes && positions.dtype == Dtype::Int64)),
        PyExc_RuntimeError, "embedding_bag_backward(): what the forward pass gave does not belong to a gradient of shape ",
        shown(grad.sizes));
  if (max) call.make_contiguous(4);
  if (call[7].given()) {
    check(call.tensor(7).sizes == call.tensor(1).sizes, PyExc_RuntimeError,
          "embedding_bag_backward(): per_sample_weights do not belong to these indices");
    call.convert(7, statistics_dtype(grad.dtype));
    call.make_contiguous(7);
  }
  call.make_contiguous(0);
  call.add_output(grad.dtype, Dims{rows, grad.sizes[1]});
}

}  // namespace candelabra::shapes
