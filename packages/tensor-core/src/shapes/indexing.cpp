// Gather and scatter: reading and writing slices or elements at the indices that a tensor holds.
#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/indexing_overlapping.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

int at_least_one(int ndim) {
  return std::max(ndim, 1);
}
int64_t size_at(const TensorObject& tensor, int dim) {
  return tensor.ndim() == 0 ? 1 : tensor.sizes[dim];
}

// Widens int32 indices to int64. An empty index tensor may have any dtype.
void check_index(Call& call, int i) {
  const Dtype dtype = call.tensor(i).dtype;
  check(call.tensor(i).numel == 0 || dtype == Dtype::Int64 || dtype == Dtype::Int32, PyExc_RuntimeError, call.title(),
        "(): Expected dtype int32/int64 for index, but got ", info(dtype).type_name,
        "; convert it with .to(candelabra.int64)");
  call.convert(i, Dtype::Int64);
}

void check_long_index(const Call& call, int i, PyObject* error) {
  const Dtype dtype = call.tensor(i).dtype;
  check(dtype == Dtype::Int64, error, call.title(),
        "(): Expected dtype int64 for index: Expected a long tensor for index, but got ", info(dtype).type_name,
        "; convert it with .to(candelabra.int64)");
}

// Makes the kernel see an empty argument with `ndim` dimensions, whatever number it has.
void see_empty(Call& call, int i, int ndim) {
  call.set_descriptor(i, Dims(ndim, 0), Dims(ndim, 1));
}

Output& output_like(Call& call, const TensorObject& self) {
  Output& output = call.add_output(self.dtype, self.sizes);
  output.inserted = scalar_inserted_dims(self);
  return output;
}

}  // namespace

void gather(Call& call) {
  namespace at = positions::gather;
  check_index(call, at::index);
  const TensorObject &self = call.tensor(at::self), &index = call.tensor(at::index);
  const int dim = call.dim(at::dim, self.ndim()), ndim = at_least_one(self.ndim());
  if (index.numel != 0) {
    check(at_least_one(index.ndim()) == ndim, PyExc_RuntimeError,
          "gather(): Index tensor must have the same number of dimensions as input tensor, but index has shape ",
          shown(index.sizes), " and input ", shown(self.sizes));
    for (int d = 0; d < ndim; ++d) {
      check(d == dim || size_at(index, d) <= size_at(self, d), PyExc_RuntimeError,
            "gather(): Size does not match at dimension ", d, " expected index ", shown(index.sizes),
            " to be no larger than self ", shown(self.sizes), " apart from dimension ", dim);
    }
  }
  call.add_output(self.dtype, index.sizes).inserted = scalar_inserted_dims(index);
  unsqueeze_scalar(call, at::self);
  unsqueeze_scalar(call, at::index);
}

// scatter, scatter_add, scatter_reduce: the same positions.
void scatter(Call& call) {
  namespace at = positions::scatter;
  check_index(call, at::index);
  const TensorObject &self = call.tensor(at::self), &index = call.tensor(at::index);
  const int dim = call.dim(at::dim, self.ndim()), ndim = at_least_one(self.ndim());
  const Argument& source = call[at::src];
  const TensorObject* src = source.is_tensor() ? source.tensor : nullptr;
  if (src) {
    check(src->dtype == self.dtype, PyExc_RuntimeError, base_name(call),
          "(): Expected self.dtype to be equal to src.dtype, but got ", info(self.dtype).type_name, " and ",
          info(src->dtype).type_name);
  } else {
    check_number_fits(source.scalar, self.dtype, true);
    call.convert(at::src, self.dtype);
  }
  output_like(call, self);
  unsqueeze_scalar(call, at::self);
  if (index.numel == 0) {
    see_empty(call, at::index, ndim);
    see_empty(call, at::src, ndim);
    return;
  }
  check(at_least_one(index.ndim()) == ndim, PyExc_RuntimeError, base_name(call),
        "(): Index tensor must have the same number of dimensions as self tensor, but index has shape ",
        shown(index.sizes), " and self ", shown(self.sizes));
  if (src && at_least_one(src->ndim()) != ndim) {
    raise(PyExc_RuntimeError, base_name(call),
          "(): Index tensor must have the same number of dimensions as src tensor, but index has shape ",
          shown(index.sizes), " and src ", shown(src->sizes));
  }
  for (int d = 0; d < ndim; ++d) {
    const bool fits =
        (d == dim || size_at(index, d) <= size_at(self, d)) && (!src || size_at(index, d) <= size_at(*src, d));
    if (!fits) {
      raise(PyExc_RuntimeError, base_name(call), "(): Expected index ", shown(index.sizes),
            " to be no larger than self ", shown(self.sizes), " apart from dimension ", dim,
            src ? " and to be no larger size than src " + to_text(src->sizes) : std::string());
    }
  }
  unsqueeze_scalar(call, at::index);
  if (src) {
    unsqueeze_scalar(call, at::src);
  } else {
    const cb_tensor* seen = call[at::index].descriptor;  // set where the index has no dimensions
    call.broadcast(at::src, seen ? std::span<const int64_t>(seen->sizes, 1) : std::span<const int64_t>(index.sizes));
  }
}

void index_select(Call& call) {
  namespace at = positions::index_select;
  check_index(call, at::index);
  const TensorObject &self = call.tensor(at::self), &index = call.tensor(at::index);
  const int dim = call.dim(at::dim, self.ndim());
  check(index.ndim() <= 1, PyExc_IndexError, "index_select(): Index is supposed to be a vector, but got shape ",
        shown(index.sizes));
  Dims sizes = self.sizes;
  if (self.ndim() == 0) {
    check(index.numel == 1, PyExc_RuntimeError, "index_select(): Index to scalar can have only 1 value, got ",
          index.numel, " value(s)");
  } else {
    check(index.numel == 0 || self.sizes[dim] > 0, PyExc_RuntimeError,
          "index_select(): self indexing axis dim should be positive");
    sizes[dim] = index.numel;
  }
  call.add_output(self.dtype, std::move(sizes)).inserted = scalar_inserted_dims(self);
  unsqueeze_scalar(call, at::self);
  unsqueeze_scalar(call, at::index);
}

namespace {

// index_add, index_copy: the same positions, but that index_copy has no alpha.
struct SliceWrite {
  const char* name;              // in messages
  PyObject* mismatch_exception;  // where source does not fit self and index
  bool checks_rank_with_shape;   // the numbers of dimensions are compared with the shapes
};

void write_slices(Call& call, const SliceWrite& write) {
  namespace at = positions::index_add;
  const char* name = write.name;
  const TensorObject &self = call.tensor(at::self), &index = call.tensor(at::index), &source = call.tensor(at::source);
  const int dim = call.dim(at::dim, self.ndim());
  check(index.ndim() <= 1, PyExc_IndexError, name, "Index is supposed to be a vector, but got dim: ", index.ndim(),
        " with type: ", info(index.dtype).type_name, " and size: ", shown(index.sizes));
  check(self.dtype == source.dtype, PyExc_RuntimeError, name, "self (", info(self.dtype).type_name, ") and source (",
        info(source.dtype).type_name, ") must have the same scalar type");
  const bool is_of_rank = at_least_one(source.ndim()) == at_least_one(self.ndim());
  check(is_of_rank || write.checks_rank_with_shape, write.mismatch_exception, name,
        "When source and destination are not scalars, their dimensionality must match. Source dimensionality (",
        source.ndim(), "), destination dimensionality (", self.ndim(), ")");
  const int64_t slices = dim < source.ndim() ? source.sizes[dim] : 1;
  check(index.numel == slices, write.mismatch_exception, name, "Number of indices (", index.numel,
        ") should be equal to source.size(dim): (", slices, "), for dim: ", dim);
  bool is_of_shape = is_of_rank;
  for (int d = 0; is_of_shape && d < self.ndim(); ++d)
    is_of_shape = d == dim || source.ndim() == 0 || self.sizes[d] == source.sizes[d];
  check(is_of_shape, PyExc_RuntimeError, name,
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ",
        shown(self.sizes), " source.shape = ", shown(source.sizes));
  output_like(call, self);
  for (int i : {at::self, at::index, at::source}) unsqueeze_scalar(call, i);
}

}  // namespace

void index_add(Call& call) {
  namespace at = positions::index_add;
  check_index(call, at::index);
  write_slices(call, {"index_add_(): ", PyExc_RuntimeError, true});
  const Dtype dtype = call.tensor(at::self).dtype;
  if (dtype != Dtype::Bool) check_number_fits(call[at::alpha].scalar, dtype, false);
}

void index_copy(Call& call) {
  check_long_index(call, positions::index_copy::index, PyExc_RuntimeError);
  write_slices(call, {"index_copy_(): ", PyExc_IndexError, false});
}

void index_fill(Call& call) {
  namespace at = positions::index_fill;
  check_long_index(call, at::index, PyExc_IndexError);
  const TensorObject &self = call.tensor(at::self), &index = call.tensor(at::index);
  call.dim(at::dim, self.ndim());
  check(index.ndim() <= 1, PyExc_RuntimeError, "index_fill_(): Index has to be a vector/scalar, but got shape ",
        shown(index.sizes));
  check(call[at::value].scalar.kind != CB_SCALAR_COMPLEX || is_complex(self.dtype), PyExc_RuntimeError,
        "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  check_number_fits(call[at::value].scalar, self.dtype, true);
  Output& output = output_like(call, self);
  if (!self.contiguous) output.strides = preserved_strides(self);
  if (write_overlapping(call, "index_select", {at::dim, at::index}, at::value)) return;
  unsqueeze_scalar(call, at::self);
  unsqueeze_scalar(call, at::index);
}

void take(Call& call) {
  namespace at = positions::take;
  check_long_index(call, at::index, PyExc_RuntimeError);
  const TensorObject &self = call.tensor(at::self), &index = call.tensor(at::index);
  check(self.numel != 0 || index.numel == 0, PyExc_IndexError, "take(): tried to take from an empty tensor");
  call.add_output(self.dtype, index.sizes);
}

void embedding(Call& call) {
  namespace at = positions::embedding;
  const TensorObject& weight = call.tensor(at::weight);
  const Dtype dtype = call.tensor(at::indices).dtype;
  check(weight.ndim() == 2, PyExc_RuntimeError, "embedding(): 'weight' must be 2-D, but got shape ",
        shown(weight.sizes));
  check(dtype == Dtype::Int64 || dtype == Dtype::Int32, PyExc_RuntimeError,
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got ",
        info(dtype).type_name, " instead (while checking arguments for embedding)");
  call.convert(at::indices, Dtype::Int64);
  Dims sizes = call.tensor(at::indices).sizes;
  sizes.push_back(weight.sizes[1]);
  call.add_output(weight.dtype, std::move(sizes));
}

void embedding_backward(Call& call) {
  namespace at = positions::embedding_backward;
  const TensorObject& grad = call.tensor(at::grad);
  check_index(call, at::indices);
  const TensorObject& indices = call.tensor(at::indices);
  const int ndim = indices.ndim();
  const bool matches =
      grad.ndim() == ndim + 1 && std::equal(indices.sizes.begin(), indices.sizes.end(), grad.sizes.begin());
  check(matches, PyExc_RuntimeError, "embedding_backward(): grad of shape ", shown(grad.sizes),
        " does not belong to indices of shape ", shown(indices.sizes));
  check(call.integer(at::num_weights) >= 0, PyExc_RuntimeError,
        "embedding_backward(): num_weights must not be negative, but got ", call.integer(at::num_weights));
  call.add_output(grad.dtype, Dims{call.integer(at::num_weights), grad.sizes[ndim]});
}

void scatter_reduce(Call& call) {
  namespace at = positions::scatter_reduce;
  const std::string_view reduce = call[at::reduce].string;
  const bool extremum = reduce == "amax" || reduce == "amin";
  check(extremum || reduce == "sum" || reduce == "prod" || reduce == "mean", PyExc_RuntimeError,
        "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
  const Dtype dtype = call.tensor(at::self).dtype;
  check(reduce != "mean" || dtype != Dtype::Bool, PyExc_NotImplementedError, "\"", base_name(call),
        "\" with reduce=\"mean\" is not implemented for bool; convert with .to(candelabra.float32)");
  if (extremum && is_complex(dtype)) not_implemented(call, dtype);
  call.tensor(at::src);  // throws for a number, which scatter() would take
  scatter(call);
}

namespace {

void check_bag_indices(Call& call, int i, const char* name) {
  const TensorObject& indices = call.tensor(i);
  check(indices.ndim() == 1, PyExc_RuntimeError, "embedding_bag: expected ", name, " of one dimension, but got shape ",
        shown(indices.sizes));
  check(indices.dtype == Dtype::Int64 || indices.dtype == Dtype::Int32, PyExc_RuntimeError,
        "Expected tensor for argument '", name, "' to have one of the following scalar types: Long, Int; but got ",
        info(indices.dtype).type_name, " instead");
  call.convert(i, Dtype::Int64);
  call.make_contiguous(i);
}

void check_bag_mode(std::string_view mode) {
  check(mode == "sum" || mode == "mean" || mode == "max", PyExc_ValueError,
        "embedding_bag: mode has to be one of sum, mean or max");
}

}  // namespace

void embedding_bag(Call& call) {
  namespace at = positions::embedding_bag;
  const TensorObject& weight = call.tensor(at::weight);
  check(weight.ndim() == 2, PyExc_RuntimeError, "embedding_bag: 'weight' must be 2-D, but got shape ",
        shown(weight.sizes));
  if (!is_floating(weight.dtype)) not_implemented(call, weight.dtype);
  check_bag_indices(call, at::indices, "indices");
  check_bag_indices(call, at::offsets, "offsets");
  check_bag_mode(call[at::mode].string);
  const bool has_end = call.boolean(at::include_last_offset);
  const int64_t offsets = call.tensor(at::offsets).sizes[0], indices = call.tensor(at::indices).sizes[0];
  check(!has_end || offsets >= 1, PyExc_RuntimeError, "include_last_offset: numBags should be at least 1");
  if (call[at::per_sample_weights].given()) {
    check(call.tensor(at::per_sample_weights).sizes == call.tensor(at::indices).sizes, PyExc_RuntimeError,
          "embedding_bag: expected per_sample_weights of the shape ", shown(call.tensor(at::indices).sizes),
          " of indices, but got ", shown(call.tensor(at::per_sample_weights).sizes));
    call.convert(at::per_sample_weights, statistics_dtype(weight.dtype));
    call.make_contiguous(at::per_sample_weights);
  }
  const int64_t bags = offsets - (has_end ? 1 : 0);
  const bool max = std::string_view(call[at::mode].string) == "max";
  call.add_output(weight.dtype, Dims{bags, weight.sizes[1]});
  call.add_output(Dtype::Int64, Dims{indices});
  call.add_output(Dtype::Int64, Dims{bags});
  call.add_output(Dtype::Int64, max ? Dims{bags, weight.sizes[1]} : Dims{bags});
}

void embedding_bag_backward(Call& call) {
  namespace at = positions::embedding_bag_backward;
  const TensorObject& grad = call.tensor(at::grad);
  check(grad.ndim() == 2, PyExc_RuntimeError,
        "_embedding_bag_backward(): expected grad of two dimensions, but got shape ", shown(grad.sizes));
  if (!is_floating(grad.dtype)) not_implemented(call, grad.dtype);
  check_bag_mode(call[at::mode].string);
  check_bag_indices(call, at::indices, "indices");
  check_bag_indices(call, at::offset2bag, "offset2bag");
  check_bag_indices(call, at::bag_size, "bag_size");
  const bool max = std::string_view(call[at::mode].string) == "max";
  const int64_t rows = call.integer(at::num_weights);
  const TensorObject& max_indices = call.tensor(at::max_indices);
  check(rows >= 0, PyExc_RuntimeError, "_embedding_bag_backward(): num_weights must not be negative, but got ", rows);
  check(call.tensor(at::offset2bag).sizes == call.tensor(at::indices).sizes &&
            call.tensor(at::bag_size).sizes[0] == grad.sizes[0] &&
            (!max || (max_indices.sizes == grad.sizes && max_indices.dtype == Dtype::Int64)),
        PyExc_RuntimeError,
        "_embedding_bag_backward(): what the forward pass gave does not belong to a gradient of shape ",
        shown(grad.sizes));
  if (max) call.make_contiguous(at::max_indices);
  if (call[at::per_sample_weights].given()) {
    check(call.tensor(at::per_sample_weights).sizes == call.tensor(at::indices).sizes, PyExc_RuntimeError,
          "_embedding_bag_backward(): per_sample_weights do not belong to these indices");
    call.convert(at::per_sample_weights, statistics_dtype(grad.dtype));
    call.make_contiguous(at::per_sample_weights);
  }
  call.make_contiguous(at::grad);
  call.add_output(grad.dtype, Dims{rows, grad.sizes[1]});
}

}  // namespace candelabra::shapes
