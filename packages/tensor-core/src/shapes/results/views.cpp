// Views: sizes, strides and offset on the same memory.
#include <numeric>

#include "candelabra/positions.hpp"
#include "operators/arguments.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

struct Geometry {
  Dims sizes, strides;
  int64_t offset;
  explicit Geometry(const TensorObject& tensor) : sizes(tensor.sizes), strides(tensor.strides), offset(tensor.offset) {}
  Geometry(Dims sizes, Dims strides, int64_t offset)
      : sizes(std::move(sizes)), strides(std::move(strides)), offset(offset) {}
};

// Every view operator takes self first.
Output& view_result(Call& call, Geometry geometry) {
  TensorObject& self = call.tensor(positions::alias::self);
  Output& output = call.add_output(self.dtype, std::move(geometry.sizes));
  output.strides = std::move(geometry.strides);
  output.offset = geometry.offset;
  output.view_of = &self;
  return output;
}

// The requested sizes, with -1 replaced by the size that follows from the others.
Dims infer_sizes(std::span<const int64_t> requested, int64_t numel) {
  Dims sizes(requested);
  int inferred = -1;
  int64_t known = 1;
  bool overflow = false;
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      check(inferred < 0, PyExc_RuntimeError, "only one dimension can be inferred");
      inferred = i;
    } else {
      check(sizes[i] >= 0, PyExc_RuntimeError, "invalid shape dimension ", sizes[i], " at index ", i, " of shape ",
            shown(requested));
      overflow |= __builtin_mul_overflow(known, sizes[i], &known);
    }
  }
  const bool fits = !overflow && (inferred < 0 ? known == numel : known > 0 ? numel % known == 0 : numel == 0);
  check(fits, PyExc_RuntimeError, "shape '", shown(requested), "' is invalid for input of size ", numel);
  if (inferred >= 0) {
    check(known != 0, PyExc_RuntimeError, "cannot reshape tensor of 0 elements into shape ", shown(requested),
          " because the unspecified dimension size -1 can be any value and is ambiguous");
    sizes[inferred] = numel / known;
  }
  return sizes;
}

// The strides that give self these sizes without a copy, if they exist. Adjacent dimensions of self
// that are contiguous with one another form a run. The new sizes must split every run exactly.
std::optional<Dims> viewable_strides(const TensorObject& self, const Dims& sizes) {
  if (self.contiguous) return contiguous_strides(sizes);
  if (self.numel == 0) return contiguous_strides(sizes);
  Dims strides(sizes.size(), 1);
  int to = sizes.size() - 1;
  for (int from = self.ndim() - 1; from >= 0;) {
    const int64_t innermost = self.strides[from];
    int64_t run = self.sizes[from];
    for (--from; from >= 0 && (self.sizes[from] == 1 || self.strides[from] == run * innermost); --from)
      run *= self.sizes[from];
    int64_t split = 1;
    for (; to >= 0 && (split < run || sizes[to] == 1); --to) {
      strides[to] = split * innermost;
      split *= sizes[to];
    }
    if (split != run) return std::nullopt;
  }
  return strides;
}

void remove(Geometry& geometry, int dim) {
  geometry.sizes.erase(dim);
  geometry.strides.erase(dim);
}

}  // namespace

void view(Call& call) {
  namespace at = positions::view;
  const TensorObject& self = call.tensor(at::self);
  Dims sizes = infer_sizes(call.ints(at::size), self.numel);
  check(sizes.size() <= max_dims, PyExc_RuntimeError, "a tensor has at most ", max_dims, " dimensions, not ",
        sizes.size());
  std::optional<Dims> strides = viewable_strides(self, sizes);
  check(strides.has_value(), PyExc_RuntimeError,
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous "
        "subspaces). Use .reshape(...) instead.");
  view_result(call, {std::move(sizes), std::move(*strides), self.offset});
}

// A view of self where the strides allow it, else a view of a copy.
void reshape(Call& call) {
  namespace at = positions::reshape;
  TensorObject& self = call.tensor(at::self);
  Dims sizes = infer_sizes(call.ints(at::shape), self.numel);
  check(sizes.size() <= max_dims, PyExc_RuntimeError, "a tensor has at most ", max_dims, " dimensions, not ",
        sizes.size());
  if (std::optional<Dims> strides = viewable_strides(self, sizes)) {
    call.result = Ref<>(make_view(&self, std::move(sizes), std::move(*strides), self.offset).release_object());
    return;
  }
  const TensorRef copy = candelabra::contiguous(&self);
  Dims strides = contiguous_strides(sizes);
  call.result = Ref<>(make_view(copy.get(), std::move(sizes), std::move(strides), 0).release_object());
}

// The result is a tuple of views.
void split(Call& call) {
  namespace at = positions::split;
  TensorObject& self = call.tensor(at::self);
  const int64_t size = call.integer(at::split_size);
  check(self.ndim() > 0, PyExc_RuntimeError, "split expects at least a 1-dimensional tensor");
  check(size >= 0, PyExc_RuntimeError, "split expects split_size be non-negative, but got split_size=", size);
  const int dim = call.dim(at::dim, self.ndim());
  const int64_t length = self.sizes[dim];
  check(size > 0 || length == 0, PyExc_RuntimeError,
        "split_size can only be 0 if dimension size is 0, but got dimension size of ", length);
  // A length within split_size gives one part; so does an empty dimension.
  const int64_t count = size >= length ? 1 : (length - 1) / size + 1;
  check(count < int64_t{1} << 31, PyExc_RuntimeError, "split: ", count,
        " parts are too many; their views would not fit in memory");
  Ref<> parts = owned(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (int64_t i = 0; i < count; ++i) {
    Dims sizes = self.sizes;
    sizes[dim] = std::min(size, length - i * size);
    TensorRef part = make_view(&self, std::move(sizes), self.strides, self.offset + i * size * self.strides[dim]);
    part->one_of_views = true;
    PyTuple_SET_ITEM(parts.get(), static_cast<Py_ssize_t>(i), part.release_object());
  }
  call.result = std::move(parts);
}

void view_dtype(Call& call) {
  namespace at = positions::view_dtype;
  const TensorObject& self = call.tensor(at::self);
  const Dtype dtype = call[at::dtype].dtype;
  Geometry geometry(self);
  const int64_t from = itemsize(self.dtype), to = itemsize(dtype);
  const auto names = [&] {
    return text(info(self.dtype).type_name, " as ", info(dtype).type_name, " (different element sizes)");
  };
  if (from != to) {
    check(self.ndim() > 0, PyExc_RuntimeError, "self.dim() cannot be 0 to view ", names());
    const int last = self.ndim() - 1;
    check(self.strides[last] == 1 || self.sizes[last] == 1, PyExc_RuntimeError, "self.stride(-1) must be 1 to view ",
          names(), ", but got ", self.strides[last]);
    if (from > to) {
      const int64_t ratio = from / to;
      geometry.sizes[last] *= ratio;
      for (int i = 0; i < last; ++i) geometry.strides[i] *= ratio;
      geometry.offset *= ratio;
    } else {
      const int64_t ratio = to / from;
      check(self.sizes[last] % ratio == 0, PyExc_RuntimeError, "self.size(-1) must be divisible by ", ratio,
            " to view ", names(), ", but got ", self.sizes[last]);
      check(self.offset % ratio == 0, PyExc_RuntimeError, "self.storage_offset() must be divisible by ", ratio,
            " to view ", names(), ", but got ", self.offset);
      check(self.numel == 0 || !self.storage->is_host_visible || is_aligned(self.data(), dtype), PyExc_RuntimeError,
            "the memory of self is not aligned to elements of the dtype to view ", names(), "; clone() it first");
      for (int i = 0; i < last; ++i) {
        check(self.strides[i] % ratio == 0, PyExc_RuntimeError, "self.stride(", i, ") must be divisible by ", ratio,
              " to view ", names(), ", but got ", self.strides[i]);
        geometry.strides[i] /= ratio;
      }
      geometry.sizes[last] /= ratio;
      geometry.offset /= ratio;
    }
    geometry.strides[last] = 1;
  }
  view_result(call, std::move(geometry)).dtype = dtype;
}

void as_strided(Call& call) {
  namespace at = positions::as_strided;
  const TensorObject& self = call.tensor(at::self);
  const std::span<const int64_t> sizes = call.ints(at::size), strides = call.ints(at::stride);
  const int64_t offset = call[at::storage_offset].given() ? call.integer(at::storage_offset) : self.offset;
  check(sizes.size() == strides.size(), PyExc_RuntimeError, "mismatch in length of strides and shape: ", shown(strides),
        " and ", shown(sizes));
  check(sizes.size() <= static_cast<size_t>(max_dims), PyExc_RuntimeError, "only tensors with up to ", max_dims,
        " dims are supported, not ", sizes.size());
  check(offset >= 0, PyExc_RuntimeError, "Tensor: invalid storage offset ", offset);
  int64_t reach = 0;
  bool is_empty = false, overflow = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    check(sizes[i] >= 0, PyExc_RuntimeError, "as_strided: negative size ", sizes[i], " in ", shown(sizes));
    check(strides[i] >= 0, PyExc_RuntimeError,
          "as_strided: Negative strides are not supported at the moment, got strides: ", shown(strides));
    is_empty |= sizes[i] == 0;
    int64_t step = 0;
    check(strides[i] <= max_stride, PyExc_RuntimeError, "Storage size calculation overflowed with sizes=", shown(sizes),
          " and strides=", shown(strides));
    overflow |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(reach, step, &reach);
  }
  int64_t needed = 0;
  if (!is_empty) {
    overflow |= offset == INT64_MAX || __builtin_add_overflow(reach, offset + 1, &needed) ||
                __builtin_mul_overflow(needed, int64_t{itemsize(self.dtype)}, &needed);
    check(!overflow, PyExc_RuntimeError, "Storage size calculation overflowed with sizes=", shown(sizes),
          " and strides=", shown(strides));
  }
  check(static_cast<uint64_t>(needed) <= self.storage->bytes, PyExc_RuntimeError, "setStorage: sizes ", shown(sizes),
        ", strides ", shown(strides), ", storage offset ", offset, ", and itemsize ", itemsize(self.dtype),
        " requiring a storage size of ", needed, " are out of bounds for storage of size ", self.storage->bytes);
  view_result(call, {Dims(sizes), Dims(strides), is_empty ? std::min(offset, self.offset) : offset});
}

void expand(Call& call) {
  namespace at = positions::expand;
  const TensorObject& self = call.tensor(at::self);
  const std::span<const int64_t> requested = call.ints(at::size);
  const int ndim = static_cast<int>(requested.size()), added = ndim - self.ndim();
  check(ndim <= max_dims, PyExc_RuntimeError, "only tensors with up to ", max_dims, " dims are supported, not ", ndim);
  check(added >= 0, PyExc_RuntimeError, "expand(", info(self.dtype).type_name, "Tensor{", shown(self.sizes),
        "}, size=", shown(requested), "): the number of sizes provided (", ndim,
        ") must be greater or equal to the number of dimensions in the tensor (", self.ndim(), ")");
  Geometry geometry{Dims(requested), Dims(ndim, 0), self.offset};
  for (int i = 0; i < ndim; ++i) {
    const bool leading = i < added;
    if (requested[i] == -1) {
      check(!leading, PyExc_RuntimeError,
            "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension ", i);
      geometry.sizes[i] = self.sizes[i - added];
    }
    check(geometry.sizes[i] >= 0, PyExc_RuntimeError, "expand(): invalid size ", geometry.sizes[i], " at dimension ", i,
          " of ", shown(requested));
    if (leading) {
      geometry.strides[i] = 0;
      continue;
    }
    const int64_t size = self.sizes[i - added];
    check(size == geometry.sizes[i] || size == 1, PyExc_RuntimeError, "The expanded size of the tensor (",
          geometry.sizes[i], ") must match the existing size (", size, ") at non-singleton dimension ", i,
          ".  Target sizes: ", shown(requested), ".  Tensor sizes: ", shown(self.sizes));
    geometry.strides[i] = size == geometry.sizes[i] ? self.strides[i - added] : 0;
  }
  view_result(call, std::move(geometry));
}

void permute(Call& call) {
  namespace at = positions::permute;
  const TensorObject& self = call.tensor(at::self);
  const std::span<const int64_t> dims = call.ints(at::dims);
  const int ndim = self.ndim();
  check(static_cast<int>(dims.size()) == ndim, PyExc_RuntimeError,
        "permute(): number of dimensions in the tensor input does not match the length of the desired ordering of "
        "dimensions i.e. "
        "input.dim() = ",
        ndim, " is not equal to len(dims) = ", dims.size());
  Geometry geometry(self);
  uint64_t seen = 0;
  for (int i = 0; i < ndim; ++i) {
    const int from = wrap_dim(dims[i], ndim);
    check(!(seen >> from & 1), PyExc_RuntimeError, "permute(): duplicate dims are not allowed.");
    seen |= uint64_t{1} << from;
    geometry.sizes[i] = self.sizes[from];
    geometry.strides[i] = self.strides[from];
  }
  view_result(call, std::move(geometry));
}

void transpose(Call& call) {
  namespace at = positions::transpose;
  const TensorObject& self = call.tensor(at::self);
  const int a = wrap_dim(call.integer(at::dim0), self.ndim()), b = wrap_dim(call.integer(at::dim1), self.ndim());
  Geometry geometry(self);
  if (self.ndim() > 0) {
    std::swap(geometry.sizes[a], geometry.sizes[b]);
    std::swap(geometry.strides[a], geometry.strides[b]);
  }
  view_result(call, std::move(geometry));
}

void t(Call& call) {
  namespace at = positions::t;
  const TensorObject& self = call.tensor(at::self);
  check(self.ndim() <= 2, PyExc_RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is ", self.ndim(),
        "D");
  Geometry geometry(self);
  if (self.ndim() == 2) {
    std::swap(geometry.sizes[0], geometry.sizes[1]);
    std::swap(geometry.strides[0], geometry.strides[1]);
  }
  view_result(call, std::move(geometry));
}

void squeeze(Call& call) {
  namespace at = positions::squeeze;
  const TensorObject& self = call.tensor(at::self);
  uint64_t removable = ~uint64_t{0};
  if (call[at::dim].given()) {
    removable = 0;
    for (int64_t dim : call.ints(at::dim)) {
      const uint64_t bit = uint64_t{1} << wrap_dim(dim, self.ndim());
      check(!(removable & bit), PyExc_RuntimeError, "dim ", dim, " appears multiple times in the list of dims");
      removable |= bit;
    }
  }
  Geometry geometry(self);
  for (int i = self.ndim() - 1; i >= 0; --i) {
    if (self.sizes[i] == 1 && (removable >> i & 1)) remove(geometry, i);
  }
  view_result(call, std::move(geometry));
}

void unsqueeze(Call& call) {
  namespace at = positions::unsqueeze;
  const TensorObject& self = call.tensor(at::self);
  check(self.ndim() < max_dims, PyExc_RuntimeError, "unsqueeze(): a tensor has at most ", max_dims, " dimensions");
  const int dim = wrap_dim(call.integer(at::dim), self.ndim() + 1);
  Geometry geometry(self);
  geometry.sizes.insert(dim, 1);
  geometry.strides.insert(dim, dim < self.ndim() ? self.sizes[dim] * self.strides[dim] : 1);
  view_result(call, std::move(geometry));
}

void select(Call& call) {
  namespace at = positions::select;
  const TensorObject& self = call.tensor(at::self);
  check(self.ndim() > 0, PyExc_IndexError, "select() cannot be applied to a 0-dim tensor.");
  const int dim = wrap_dim(call.integer(at::dim), self.ndim());
  int64_t index = call.integer(at::index);
  const int64_t size = self.sizes[dim];
  check(index >= -size && index < size, PyExc_IndexError, "select(): index ", index,
        " out of range for tensor of size ", shown(self.sizes), " at dimension ", dim);
  if (index < 0) index += size;
  Geometry geometry(self);
  geometry.offset += index * self.strides[dim];
  remove(geometry, dim);
  view_result(call, std::move(geometry));
}

void slice(Call& call) {
  namespace at = positions::slice;
  const TensorObject& self = call.tensor(at::self);
  check(self.ndim() > 0, PyExc_RuntimeError, "slice() cannot be applied to a 0-dim tensor.");
  const int dim = wrap_dim(call.integer(at::dim), self.ndim());
  const int64_t size = self.sizes[dim], step = call.integer(at::step);
  check(step > 0, PyExc_RuntimeError, "slice step must be positive");
  const auto clamped = [size](int64_t position) {
    return std::clamp<int64_t>(position < 0 ? position + size : position, 0, size);
  };
  const int64_t start = call[at::start].given() ? clamped(call.integer(at::start)) : 0;
  const int64_t end = std::max(start, call[at::end].given() ? clamped(call.integer(at::end)) : size);
  Geometry geometry(self);
  geometry.offset += start * self.strides[dim];
  geometry.sizes[dim] = (end - start) / step + ((end - start) % step != 0);
  // The product overflows only where at most one element is left along dim: its stride is not used.
  if (__builtin_mul_overflow(self.strides[dim], step, &geometry.strides[dim]))
    geometry.strides[dim] = self.strides[dim];
  view_result(call, std::move(geometry));
}

void narrow(Call& call) {
  namespace at = positions::narrow;
  const TensorObject& self = call.tensor(at::self);
  check(self.ndim() > 0, PyExc_RuntimeError, "narrow() cannot be applied to a 0-dim tensor.");
  if (PyObject* given = call[at::start].object; given && is_tensor(given)) {
    const TensorObject& tensor = *as_tensor(given);
    check(tensor.ndim() == 0 && is_integral(tensor.dtype) && tensor.dtype != Dtype::Bool, PyExc_RuntimeError,
          "narrow(): start must be an 0-dim integral Tensor.");
  }
  const int dim = wrap_dim(call.integer(at::dim), self.ndim());
  int64_t start = call.integer(at::start);
  const int64_t length = call.integer(at::length), size = self.sizes[dim];
  check(length >= 0, PyExc_RuntimeError, "narrow(): length must be non-negative.");
  check(start >= -size && start <= size, PyExc_IndexError, "start out of range (expected to be in range of [", -size,
        ", ", size, "], but got ", start, ")");
  if (start < 0) start += size;
  check(length <= size - start, PyExc_RuntimeError, "start (", start, ") + length (", length,
        ") exceeds dimension size (", size, ").");
  Geometry geometry(self);
  geometry.offset += start * self.strides[dim];
  geometry.sizes[dim] = length;
  view_result(call, std::move(geometry));
}

void diagonal(Call& call) {
  namespace at = positions::diagonal;
  const TensorObject& self = call.tensor(at::self);
  const int64_t shift = call.integer(at::offset);
  const int rows = wrap_dim(call.integer(at::dim1), self.ndim()),
            columns = wrap_dim(call.integer(at::dim2), self.ndim());
  check(rows != columns, PyExc_RuntimeError, "diagonal dimensions cannot be identical ", call.integer(at::dim1), ", ",
        call.integer(at::dim2));
  const int64_t row_count = self.sizes[rows], column_count = self.sizes[columns];
  Geometry geometry(self);
  int64_t length = 0;
  if (shift >= 0 && shift < column_count) {
    length = std::min(row_count, column_count - shift);
    if (length > 0) geometry.offset += shift * self.strides[columns];
  } else if (shift < 0 && shift > -row_count) {
    length = std::min(row_count + shift, column_count);
    if (length > 0) geometry.offset -= shift * self.strides[rows];
  }
  remove(geometry, std::max(rows, columns));
  remove(geometry, std::min(rows, columns));
  geometry.sizes.push_back(length);
  geometry.strides.push_back(self.strides[rows] + self.strides[columns]);
  view_result(call, std::move(geometry));
}

void unfold(Call& call) {
  namespace at = positions::unfold;
  const TensorObject& self = call.tensor(at::self);
  const int dim = wrap_dim(call.integer(at::dimension), self.ndim());
  const int64_t size = call.integer(at::size), step = call.integer(at::step);
  const int64_t length = self.ndim() == 0 ? 1 : self.sizes[dim];
  check(size >= 0, PyExc_RuntimeError, "size is ", size, " but must be >= 0");
  check(size <= length, PyExc_RuntimeError, "maximum size for tensor at dimension ", dim, " is ", length,
        " but size is ", size);
  check(step > 0, PyExc_RuntimeError, "step is ", step, " but must be > 0");
  check(self.ndim() < max_dims, PyExc_RuntimeError, "unfold(): a tensor has at most ", max_dims, " dimensions");
  Geometry geometry(self);
  const int64_t stride = self.ndim() == 0 ? 1 : self.strides[dim];
  if (self.ndim() > 0) {
    geometry.sizes[dim] = (length - size) / step + 1;
    if (__builtin_mul_overflow(stride, step, &geometry.strides[dim])) geometry.strides[dim] = stride;
  }
  geometry.sizes.push_back(size);
  geometry.strides.push_back(stride);
  view_result(call, std::move(geometry));
}

void movedim(Call& call) {
  namespace at = positions::movedim;
  const TensorObject& self = call.tensor(at::self);
  const std::span<const int64_t> source = call.ints(at::source), destination = call.ints(at::destination);
  check(source.size() == destination.size(), PyExc_RuntimeError,
        "movedim: Invalid source or destination dims: source (", shown(source),
        " dims) should contain the same number of dims as destination (", shown(destination), " dims)");
  const int ndim = self.ndim();
  int from[max_dims];
  std::fill_n(from, ndim, -1);
  uint64_t moved = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    const int a = wrap_dim(source[i], ndim), b = wrap_dim(destination[i], ndim);
    check(!(moved >> a & 1), PyExc_RuntimeError, "movedim: repeated dim in `source` (", shown(source), ")");
    moved |= uint64_t{1} << a;
    if (ndim == 0) continue;
    check(from[b] < 0, PyExc_RuntimeError, "movedim: repeated dim in `destination` (", shown(destination), ")");
    from[b] = a;
  }
  // The other dimensions fill the remaining positions in order.
  int next = 0;
  Geometry geometry(self);
  for (int i = 0; i < ndim; ++i) {
    if (from[i] < 0) {
      while (moved >> next & 1) ++next;
      from[i] = next++;
    }
    geometry.sizes[i] = self.sizes[from[i]];
    geometry.strides[i] = self.strides[from[i]];
  }
  view_result(call, std::move(geometry));
}

void unflatten(Call& call) {
  namespace at = positions::unflatten;
  const TensorObject& self = call.tensor(at::self);
  check(self.ndim() > 0, PyExc_IndexError, "unflatten: a 0-dim tensor has no dimension to unflatten");
  const int dim = wrap_dim(call.integer(at::dim), self.ndim());
  const std::span<const int64_t> requested = call.ints(at::sizes);
  check(!requested.empty(), PyExc_RuntimeError, "unflatten: sizes must be non-empty");
  check(std::count(requested.begin(), requested.end(), -1) <= 1, PyExc_RuntimeError,
        "unflatten: only one dimension can be inferred");
  int64_t known = 1;
  bool fits = true;
  int inferred = -1;
  for (size_t i = 0; i < requested.size(); ++i) {
    if (requested[i] == -1) {
      inferred = static_cast<int>(i);
    } else {
      fits &= requested[i] >= 0 && !__builtin_mul_overflow(known, requested[i], &known);
    }
  }
  const int64_t length = self.sizes[dim];
  fits = fits && (inferred < 0 ? known == length : known != 0 && length % known == 0);
  check(fits, PyExc_RuntimeError, "unflatten: Provided sizes ", shown(requested),
        " don't multiply up to the size of dim ", dim, " (", length, ") in the input tensor");
  check(self.ndim() - 1 + static_cast<int>(requested.size()) <= max_dims, PyExc_RuntimeError,
        "unflatten: a tensor has at most ", max_dims, " dimensions");
  Geometry geometry(self);
  remove(geometry, dim);
  int64_t stride = self.strides[dim];
  for (int i = static_cast<int>(requested.size()) - 1; i >= 0; --i) {
    const int64_t size = i == inferred ? length / known : requested[i];
    geometry.sizes.insert(dim, size);
    geometry.strides.insert(dim, stride);
    stride *= std::max<int64_t>(size, 1);
  }
  view_result(call, std::move(geometry));
}

void alias(Call& call) {
  namespace at = positions::alias;
  view_result(call, Geometry(call.tensor(at::self)));
}

void view_as_real(Call& call) {
  namespace at = positions::view_as_real;
  const TensorObject& self = call.tensor(at::self);
  check(is_complex(self.dtype), PyExc_RuntimeError, "view_as_real is only supported for complex tensors, not ",
        name(self.dtype));
  check(self.ndim() < max_dims, PyExc_RuntimeError, "view_as_real: a tensor has at most ", max_dims, " dimensions");
  Geometry geometry(self);
  for (int64_t& stride : geometry.strides) stride *= 2;
  geometry.offset *= 2;
  geometry.sizes.push_back(2);
  geometry.strides.push_back(1);
  view_result(call, std::move(geometry)).dtype = real_of(self.dtype);
}

void view_as_complex(Call& call) {
  namespace at = positions::view_as_complex;
  const TensorObject& self = call.tensor(at::self);
  check(self.dtype == Dtype::Float32 || self.dtype == Dtype::Float64 || self.dtype == Dtype::Float16,
        PyExc_RuntimeError,
        "view_as_complex is only supported for float and double tensors, but got a tensor of scalar type: ",
        info(self.dtype).type_name);
  check(self.ndim() > 0, PyExc_RuntimeError, "Input tensor must have one or more dimensions");
  const int last = self.ndim() - 1;
  check(self.sizes[last] == 2, PyExc_RuntimeError, "Tensor must have a last dimension of size 2");
  check(self.strides[last] == 1, PyExc_RuntimeError, "Tensor must have a last dimension with stride 1");
  check(self.offset % 2 == 0, PyExc_RuntimeError, "Tensor must have a storage_offset divisible by 2");
  Geometry geometry(self);
  remove(geometry, last);
  for (int i = 0; i < last; ++i) {
    check(self.strides[i] % 2 == 0 || self.sizes[i] == 1, PyExc_RuntimeError,
          "Tensor must have a stride divisible by 2 for all but last dimension");
    geometry.strides[i] /= 2;
  }
  geometry.offset /= 2;
  view_result(call, std::move(geometry)).dtype = complex_of(self.dtype);
}

// The result has no base: changing it in place leaves the autograd history alone.
void detach(Call& call) {
  namespace at = positions::detach;
  call.result = Ref<>(make_alias(&call.tensor(at::self)).release_object());
}

}  // namespace candelabra::shapes
