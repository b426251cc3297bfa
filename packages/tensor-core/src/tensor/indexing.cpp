// tensor[key] and tensor[key] = value. The basic parts of a key (ints, slices, None, ...) make a
// view. Tensors, lists, arrays and masks are then passed to the operators index and index_put_. If
// autograd records, the operators select, slice and unsqueeze make the view, so that it is
// recorded. Otherwise the view's geometry is computed here directly.
#include "tensor/indexing.hpp"

#include <vector>

#include "dispatch/dispatch_hook.hpp"
#include "dispatch/torch_function.hpp"
#include "interop/interop.hpp"
#include "operators/operator.hpp"
#include "shapes/checks.hpp"

namespace candelabra {

namespace {

PyObject* const failure = nullptr;

// Thrown where a part of the key, or the value, is of a foreign class that takes over functions.
struct ForeignKey {};

// Whether a dispatch hook sees this tensor of a subclass. Its memory may not tell the whole value,
// so everything must go through operators.
bool seen_by_dispatch_hook(const TensorObject* tensor) {
  return dispatch_hook() && Py_TYPE(tensor) != tensor_type;
}

bool uses_operators(TensorObject* tensor) {
  return (grad_mode.enabled && requires_grad(tensor)) || dispatch_hook() || may_be_overridden(as_object(tensor));
}

// ---- basic indexing

class BasicView {
 public:
  BasicView(TensorObject* self, bool recording) : self_(self), recording_(recording) {
    if (recording) {
      current_ = TensorRef::borrow(self);
    } else {
      sizes_ = self->sizes;
      strides_ = self->strides;
      offset_ = self->offset;
    }
  }

  const Dims& sizes() const { return recording_ ? current_->sizes : sizes_; }

  void select(int dim, int64_t index) {
    changed_ = true;
    if (recording_) {
      static Operator& op = required_operator("select");
      return record(op, {dim, index});
    }
    offset_ += index * strides_[dim];
    sizes_.erase(dim);
    strides_.erase(dim);
  }

  void slice(int dim, int64_t start, int64_t stop, int64_t step) {
    const int64_t size = sizes()[dim];
    if (start == 0 && stop >= size && step == 1) return;
    changed_ = true;
    if (recording_) {
      static Operator& op = required_operator("slice");
      return record(op, {dim, start, stop, step});
    }
    offset_ += start * strides_[dim];
    sizes_[dim] = stop > start ? (stop - start - 1) / step + 1 : 0;
    if (sizes_[dim] > 1) strides_[dim] *= step;
  }

  void unsqueeze(int dim) {
    check(sizes().size() < max_dims, PyExc_IndexError, "too many dimensions: a tensor has at most ", max_dims);
    changed_ = true;
    if (recording_) {
      static Operator& op = required_operator("unsqueeze");
      return record(op, {dim});
    }
    strides_.insert(dim, dim < sizes_.size() ? sizes_[dim] * strides_[dim] : 1);
    sizes_.insert(dim, 1);
  }

  // Returns a new tensor.
  TensorRef view() {
    if (!recording_) return make_view(self_, std::move(sizes_), std::move(strides_), offset_);
    if (changed_) return std::move(current_);
    static Operator& op = required_operator("alias");
    return TensorRef(as_tensor(call_operator(op, {as_object(self_)}).release()));
  }
  // Returns the tensor itself if the key has no effect.
  TensorRef view_or_self() { return changed_ ? view() : TensorRef::borrow(self_); }

 private:
  void record(Operator& op, std::initializer_list<int64_t> numbers) {
    Ref<> arguments[4];
    int count = 0;
    for (int64_t number : numbers) arguments[count++] = owned(PyLong_FromLongLong(number));
    PyObject* tensor = as_object(current_.get());
    Ref<> result;
    if (count == 1) {
      result = call_operator(op, {tensor, arguments[0].get()});
    } else if (count == 2) {
      result = call_operator(op, {tensor, arguments[0].get(), arguments[1].get()});
    } else {
      result =
          call_operator(op, {tensor, arguments[0].get(), arguments[1].get(), arguments[2].get(), arguments[3].get()});
    }
    current_ = TensorRef(as_tensor(result.release()));
  }

  TensorObject* self_;
  bool recording_;
  bool changed_ = false;
  TensorRef current_;
  Dims sizes_, strides_;
  int64_t offset_ = 0;
};

// ---- parsing of keys

enum class Part : uint8_t { Int, Slice, NewDimension, Ellipsis, Bool, Tensor };

struct Item {
  Part part;
  int64_t index = 0;          // for Int; 0 or 1 for Bool
  PyObject* slice = nullptr;  // borrowed
  TensorRef tensor;           // integer indices or a mask; at least one dimension
};

bool is_mask(const TensorObject& tensor) {
  return tensor.dtype == Dtype::Bool || tensor.dtype == Dtype::UInt8;
}

int64_t integer_of(PyObject* object) {
  const Ref<> index = PyLong_Check(object) ? Ref<>::borrow(object) : owned(PyNumber_Index(object));
  const Py_ssize_t value = PyLong_AsSsize_t(index.get());
  if (value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    raise(PyExc_IndexError, "cannot fit the index into 64 bits");
  }
  return value;
}

int64_t index_of(const cb_scalar& number) {
  check(!(number.flags & CB_SCALAR_UNSIGNED), PyExc_IndexError, "index ", static_cast<uint64_t>(number.i),
        " is out of bounds: no dimension is as long");
  return number.i;
}

void classify_tensor(Item& item, TensorRef tensor, TensorObject* self) {
  check(is_integral(tensor->dtype), PyExc_IndexError,
        "tensors used as indices must be long, int, byte or bool tensors, not ", name(tensor->dtype));
  if (tensor->ndim() == 0 && !seen_by_dispatch_hook(tensor.get())) {
    item.part = is_mask(*tensor.get()) ? Part::Bool : Part::Int;
    item.index = index_of(candelabra::item(tensor.get()));
    if (item.part == Part::Bool) item.index = item.index != 0;
    return;
  }
  if (tensor->device() != self->device()) {
    if (!device_type(tensor->device()).has(CB_CAP_HOST_MEMORY)) {
      raise(PyExc_RuntimeError, "indices should be either in host memory or on the same device as the indexed tensor (",
            to_text(self->device()), "), not on ", to_text(tensor->device()));
    }
    tensor = to_device(tensor.get(), self->device());
  }
  item.part = Part::Tensor;
  item.tensor = std::move(tensor);
}

[[noreturn]] void invalid_index(PyObject* object) {
  raise(PyExc_IndexError,
        "only integers, slices (`:`), ellipsis (`...`), None and long or bool tensors are valid indices (got ",
        Py_TYPE(object)->tp_name, ")");
}

void classify(Item& item, PyObject* object, TensorObject* self) {
  if (PyLong_CheckExact(object)) {
    item.part = Part::Int;
    item.index = integer_of(object);
  } else if (PySlice_Check(object)) {
    item.part = Part::Slice;
    item.slice = object;
  } else if (object == Py_None) {
    item.part = Part::NewDimension;
  } else if (object == Py_Ellipsis) {
    item.part = Part::Ellipsis;
  } else if (PyBool_Check(object)) {
    item.part = Part::Bool;
    item.index = object == Py_True;
  } else if (is_tensor(object) && (Py_TYPE(object) == tensor_type || !takes_over(object))) {
    classify_tensor(item, TensorRef::borrow(as_tensor(object)), self);
  } else if (PyFloat_Check(object) || PyComplex_Check(object) || PyUnicode_Check(object) || PyBytes_Check(object)) {
    invalid_index(object);
  } else if (is_number(object)) {
    const cb_scalar number = scalar_from_object(object);
    if (number.kind > CB_SCALAR_INT) invalid_index(object);
    item.part = number.kind == CB_SCALAR_BOOL ? Part::Bool : Part::Int;
    item.index = index_of(number);
  } else if (overrides_functions(object)) {
    throw ForeignKey{};
  } else if (is_numpy_array(object) || PySequence_Check(object)) {
    TensorRef tensor = tensor_from_data(object, std::nullopt, self->device());
    // An empty list has no dtype of its own, so it becomes an index. NumPy integers of any width,
    // uint8 included, are indices and not masks.
    const bool is_index = tensor->dtype != Dtype::Bool && is_integral(tensor->dtype);
    if (is_index || (tensor->numel == 0 && !is_numpy_array(object))) tensor = convert_dtype(tensor.get(), Dtype::Int64);
    classify_tensor(item, std::move(tensor), self);
  } else if (PyIndex_Check(object)) {
    item.part = Part::Int;
    item.index = integer_of(object);
  } else {
    invalid_index(object);
  }
}

// NumPy's rule of old, which PyTorch keeps: a short sequence that holds a tensor, a sequence, a
// slice, None or an ellipsis is read as a tuple.
bool is_read_as_tuple(PyObject* key) {
  constexpr Py_ssize_t longest = 31;
  if (!PySequence_Check(key) || is_tensor(key) || is_numpy_array(key)) return false;
  if (PyUnicode_Check(key) || PyBytes_Check(key)) return false;
  const Py_ssize_t count = PySequence_Size(key);
  if (count < 0) PyErr_Clear();
  if (count < 0 || count > longest) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* found = PySequence_GetItem(key, i);
    if (!found) {
      PyErr_Clear();
      return false;
    }
    const Ref<> part = owned(found);
    if (is_tensor(found) || PySequence_Check(found) || PySlice_Check(found) || found == Py_None || found == Py_Ellipsis)
      return true;
  }
  return false;
}

// The key as a tuple where it is one or is read as one, else null.
Ref<> tuple_of(PyObject* key) {
  if (PyTuple_Check(key)) return Ref<>::borrow(key);
  if (!is_read_as_tuple(key)) return {};
  warn(
      "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in PyTorch: it will "
      "be interpreted as a tensor index, x[candelabra.tensor(seq)]. Use x[tuple(seq)] instead of x[seq].");
  return owned(PySequence_Tuple(key));
}

class Items {
 public:
  Items(PyObject* key, TensorObject* self) : tuple_(tuple_of(key)) {
    if (!tuple_) {
      resize(1);
      classify(data_[0], key, self);
      return;
    }
    resize(static_cast<size_t>(PyTuple_GET_SIZE(tuple_.get())));
    for (size_t i = 0; i < count_; ++i) {
      classify(data_[i], PyTuple_GET_ITEM(tuple_.get(), static_cast<Py_ssize_t>(i)), self);
    }
  }
  std::span<Item> all() { return {data_, count_}; }

 private:
  void resize(size_t count) {
    count_ = count;
    if (count > std::size(inline_)) {
      heap_.resize(count);
      data_ = heap_.data();
    }
  }
  Ref<> tuple_;  // keeps the slices of the items alive
  size_t count_ = 0;
  Item inline_[4];
  std::vector<Item> heap_;
  Item* data_ = inline_;
};

// How many dimensions of the tensor a part of the key consumes.
int dims_consumed(const Item& item) {
  switch (item.part) {
    case Part::Int:
    case Part::Slice:
      return 1;
    case Part::Tensor:
      return is_mask(*item.tensor.get()) ? item.tensor->ndim() : 1;
    default:
      return 0;
  }
}

// The arguments of index and index_put_ after the basic view: one entry per dimension, where a mask
// of k dimensions covers k.
struct Advanced {
  std::vector<TensorRef> entries;
  int dims = 0;           // covered by the entries
  int given = 0;          // number of entries that are not null
  int last_position = 0;  // the dimension of the last entry that is not null

  void add(TensorRef tensor, int dim) {
    for (; dims < dim; ++dims) entries.emplace_back();
    last_position = dim;
    dims += is_mask(*tensor.get()) ? tensor->ndim() : 1;
    ++given;
    entries.push_back(std::move(tensor));
  }
  Ref<> list() const {
    Ref<> result = owned(PyList_New(static_cast<Py_ssize_t>(entries.size())));
    for (size_t i = 0; i < entries.size(); ++i) {
      PyObject* entry = entries[i] ? as_object(entries[i].get()) : Py_None;
      PyList_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), Py_NewRef(entry));
    }
    return result;
  }
};

// As an index, True selects the only entry of a new dimension, and False selects none.
TensorRef bool_index(bool truth, Device device) {
  TensorRef index = empty(Dims{truth ? 1 : 0}, Dtype::Int64, device);
  const int64_t zero = 0;
  if (truth) copy_bytes_from_host(position_of(*index.get()), &zero, sizeof(zero));
  return index;
}

int64_t checked_index(int64_t index, int64_t size, int dim) {
  check(index >= -size && index < size, PyExc_IndexError, "index ", index, " is out of bounds for dimension ", dim,
        " with size ", size);
  return index < 0 ? index + size : index;
}

[[noreturn]] void index_of_scalar() {
  raise(PyExc_IndexError, "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to a number");
}

void apply_slice(BasicView& view, int dim, PyObject* slice) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) throw PythonError();
  check(step > 0, PyExc_ValueError, "step must be greater than zero");
  PySlice_AdjustIndices(view.sizes()[dim], &start, &stop, step);
  view.slice(dim, start, stop, step);
}

void apply(BasicView& view, Advanced& advanced, std::span<Item> items, TensorObject* self) {
  const int ndim = self->ndim();
  int taken = 0, ellipses = 0;
  for (const Item& item : items) {
    taken += dims_consumed(item);
    ellipses += item.part == Part::Ellipsis;
  }
  check(ellipses <= 1, PyExc_IndexError, "an index can only have a single ellipsis ('...')");
  if (ndim == 0 && taken > 0 && items.size() == 1 && items[0].part == Part::Int) index_of_scalar();
  check(taken <= ndim, PyExc_IndexError, "too many indices for tensor of dimension ", ndim);
  int dim = 0;     // dimension of the view
  int source = 0;  // dimension of self
  for (Item& item : items) {
    switch (item.part) {
      case Part::Int:
        view.select(dim, checked_index(item.index, view.sizes()[dim], source));
        break;
      case Part::Slice:
        apply_slice(view, dim++, item.slice);
        break;
      case Part::NewDimension:
        view.unsqueeze(dim++);
        break;
      case Part::Ellipsis:
        dim += ndim - taken;
        source += ndim - taken;
        break;
      case Part::Bool:
        view.unsqueeze(dim);
        advanced.add(bool_index(item.index != 0, self->device()), dim++);
        break;
      case Part::Tensor: {
        const int count = dims_consumed(item);
        advanced.add(std::move(item.tensor), dim);
        dim += count;
        source += count - 1;
        break;
      }
    }
    if (item.part == Part::Int || item.part == Part::Slice || item.part == Part::Tensor) ++source;
  }
}

Ref<> get(TensorObject* self, PyObject* key) {
  const bool recording = uses_operators(self);
  if (PyLong_CheckExact(key) && !recording) {
    if (self->ndim() == 0) index_of_scalar();
    const int64_t index = checked_index(integer_of(key), self->sizes[0], 0);
    const std::span<const int64_t> sizes = self->sizes, strides = self->strides;
    return Ref<>(make_view(self, Dims(sizes.subspan(1)), Dims(strides.subspan(1)), self->offset + index * strides[0])
                     .release_object());
  }
  BasicView view(self, recording);
  Advanced advanced;
  Items items(key, self);
  apply(view, advanced, items.all(), self);
  if (advanced.given == 0) return Ref<>(view.view().release_object());
  static Operator& op = required_operator("index");
  const TensorRef base = view.view_or_self();
  const Ref<> list = advanced.list();
  return call_operator(op, {as_object(base.get()), list.get()});
}

// ---- writing

// Drops leading dimensions of size 1 that the destination does not have.
TensorRef without_leading_ones(TensorRef value, int ndim, bool recording) {
  while (value->ndim() > ndim && value->sizes[0] == 1) {
    if (recording) {
      BasicView view(value.get(), true);
      view.select(0, 0);
      value = view.view();
    } else {
      const std::span<const int64_t> sizes = value->sizes, strides = value->strides;
      value = make_view(value.get(), Dims(sizes.subspan(1)), Dims(strides.subspan(1)), value->offset);
    }
  }
  return value;
}

void check_expands(const TensorObject& value, const TensorObject& destination) {
  const int added = destination.ndim() - value.ndim();
  check(added >= 0, PyExc_RuntimeError, "expand(", info(value.dtype).type_name, "Tensor{", shown(value.sizes),
        "}, size=", shown(destination.sizes), "): the number of sizes provided (", destination.ndim(),
        ") must be greater or equal to the number of dimensions in the tensor (", value.ndim(), ")");
  for (int i = 0; i < value.ndim(); ++i) {
    const int64_t wanted = destination.sizes[added + i];
    check(value.sizes[i] == wanted || value.sizes[i] == 1, PyExc_RuntimeError, "The expanded size of the tensor (",
          wanted, ") must match the existing size (", value.sizes[i], ") at non-singleton dimension ", added + i,
          ".  Target sizes: ", shown(destination.sizes), ".  Tensor sizes: ", shown(value.sizes));
  }
}

// The assigned value as a tensor; null for a number.
TensorRef value_tensor(TensorObject* self, PyObject* value) {
  if (is_tensor(value)) return TensorRef::borrow(as_tensor(value));
  if (is_number(value)) return {};
  if (overrides_functions(value)) throw ForeignKey{};
  const bool data =
      is_numpy_array(value) || (PySequence_Check(value) && !PyUnicode_Check(value) && !PyBytes_Check(value));
  check(data, PyExc_TypeError, "can't assign a ", Py_TYPE(value)->tp_name, " to a candelabra.",
        info(self->dtype).type_name, "Tensor");
  return tensor_from_data(value, self->dtype, self->device());
}

// In half precision, numbers out of range become infinity: masks are often made with -1e9.
bool is_half(Dtype dtype) {
  return is_floating(dtype) && itemsize(dtype) == 2;
}

void check_assigned(const cb_scalar& number, Dtype dtype) {
  shapes::check_number_fits(number, dtype, !is_half(dtype));
}

void write_basic(TensorRef destination, TensorRef value, PyObject* number, bool recording) {
  if (!value) {
    if (recording) {
      static Operator& op = required_operator("fill_");
      call_operator(op, {as_object(destination.get()), number});
      return;
    }
    check(!may_overlap_itself(*destination.get()), PyExc_RuntimeError,
          "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
          "Please clone() the tensor before performing the operation.");
    const cb_scalar scalar = scalar_from_object(number);
    check_assigned(scalar, destination->dtype);
    fill(destination.get(), scalar);
    ++destination->storage->version;
    return;
  }
  value = without_leading_ones(std::move(value), destination->ndim(), recording && uses_operators(value.get()));
  check_expands(*value.get(), *destination.get());
  if (recording) {
    static Operator& op = required_operator("copy_");
    call_operator(op, {as_object(destination.get()), as_object(value.get())});
    return;
  }
  check(!share_memory_partly(*destination.get(), *value.get()), PyExc_RuntimeError, overlaps_written);
  copy_into(destination.get(), value.get());
  ++destination->storage->version;
}

// Appends dimensions of size 1 to the mask, one for each later dimension of the tensor.
TensorRef mask_for(const TensorObject& destination, TensorObject* mask, int position) {
  if (seen_by_dispatch_hook(mask) || may_be_overridden(as_object(mask))) {
    BasicView view(mask, true);
    for (int i = position + mask->ndim(); i < destination.ndim(); ++i) view.unsqueeze(view.sizes().size());
    return view.view_or_self();
  }
  Dims sizes = mask->sizes, strides = mask->strides;
  for (int i = 0; i < mask->ndim(); ++i) {
    check(sizes[i] == destination.sizes[position + i], PyExc_IndexError, "The shape of the mask ", shown(mask->sizes),
          " at index ", i, " does not match the shape of the indexed tensor ", shown(destination.sizes), " at index ",
          position + i);
  }
  for (int i = position + mask->ndim(); i < destination.ndim(); ++i) {
    sizes.push_back(1);
    strides.push_back(1);
  }
  return make_view(mask, std::move(sizes), std::move(strides), mask->offset);
}

void write_advanced(TensorRef destination, const Advanced& advanced, TensorRef value, PyObject* number) {
  if (!value) {
    TensorObject* last = advanced.entries.back().get();
    if (advanced.given == 1 && last->dtype == Dtype::Bool) {
      static Operator& op = required_operator("masked_fill_");
      const TensorRef mask = mask_for(*destination.get(), last, advanced.last_position);
      if (is_half(destination->dtype))
        value = number_tensor(scalar_from_object(number), destination->dtype, destination->device());
      call_operator(op, {as_object(destination.get()), as_object(mask.get()), value ? as_object(value.get()) : number});
      return;
    }
    const cb_scalar scalar = scalar_from_object(number);
    check_assigned(scalar, destination->dtype);
    value = number_tensor(scalar, destination->dtype, destination->device());
  } else if (value->ndim() == 0 && value->device() != destination->device()) {
    value = to_device(value.get(), destination->device());
  }
  static Operator& op = required_operator("index_put_");
  const Ref<> list = advanced.list();
  call_operator(op, {as_object(destination.get()), list.get(), as_object(value.get())});
}

void set(TensorObject* self, PyObject* key, PyObject* given) {
  check(!self->inference || grad_mode.inference, PyExc_RuntimeError,
        "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
        "tensor before doing inplace update.");
  TensorRef value = value_tensor(self, given);
  const bool recording_view = uses_operators(self);
  const bool recording = recording_view || (value && uses_operators(value.get()));
  BasicView view(self, recording_view);
  Advanced advanced;
  Items items(key, self);
  if (key == Py_False) return;  // False selects nothing
  if (key == Py_True) {         // like None; unlike a mask, it allows a value of another dtype
    view.unsqueeze(0);
  } else {
    apply(view, advanced, items.all(), self);
  }
  TensorRef destination = view.view_or_self();
  if (advanced.given) {
    write_advanced(std::move(destination), advanced, std::move(value), given);
  } else {
    write_basic(std::move(destination), std::move(value), given, recording);
  }
}

}  // namespace

PyObject* tensor_getitem(PyObject* self, PyObject* key) {
  return guarded<>(failure, [&] {
    try {
      return get(as_tensor(self), key).release();
    } catch (const ForeignKey&) {
      PyObject* const arguments[] = {self, key};
      if (const auto result = call_overrides_of_tensor("__getitem__", nullptr, arguments, 2, nullptr)) return *result;
      invalid_index(key);
    }
  });
}

int tensor_setitem(PyObject* self, PyObject* key, PyObject* value) {
  return guarded<>(-1, [&] {
    check(value, PyExc_TypeError, "Tensor does not support deleting items");
    try {
      set(as_tensor(self), key, value);
    } catch (const ForeignKey&) {
      PyObject* const arguments[] = {self, key, value};
      const auto result = call_overrides_of_tensor("__setitem__", nullptr, arguments, 3, nullptr);
      if (!result) invalid_index(key);
      owned(*result);
    }
    return 0;
  });
}

PyObject* tensor_iter(PyObject* self) {
  return guarded<>(failure, [&] {
    TensorObject* tensor = as_tensor(self);
    check(tensor->ndim() > 0, PyExc_TypeError, "iteration over a 0-d tensor");
    if (may_be_overridden(self) && may_be_overridden(&self, 1))
      return PyObject_GetIter(owned(PyObject_CallMethod(self, "unbind", nullptr)).get());
    const bool recording = uses_operators(tensor);
    const Ref<> entries = owned(PyList_New(tensor->sizes[0]));
    for (int64_t i = 0; i < tensor->sizes[0]; ++i) {
      BasicView view(tensor, recording);
      view.select(0, i);
      TensorRef entry = view.view();
      entry->one_of_views = true;
      PyList_SET_ITEM(entries.get(), i, entry.release_object());
    }
    return PyObject_GetIter(entries.get());
  });
}

}  // namespace candelabra
