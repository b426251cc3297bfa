// The Tensor object: a CPython type with its geometry inline.
#pragma once

#include <Python.h>

#include <utility>

#include "dtype/dtype.hpp"
#include "memory/storage.hpp"
#include "python/errors.hpp"
#include "tensor/dims.hpp"

namespace candelabra {

struct TensorObject {
  PyObject_HEAD Storage* storage;  // never null
  int64_t offset;                  // in elements
  int64_t numel;
  Dims sizes;
  Dims strides;  // in elements
  Dtype dtype;
  bool contiguous;     // row-major without gaps; kept by set_geometry
  bool requires_grad;  // on a leaf: asked for; with a grad_fn: true
  bool retains_grad;
  bool inference;         // made in inference mode: never part of a tape
  bool unrecorded_view;   // made of its base while recording was off: not to be changed in place while it is on
  bool one_of_views;      // a function that returns several views made it: not to be changed in place while recording
  int32_t output_number;  // which result of grad_fn this is
  uint32_t
      history;  // of a base: counts changes of its history; of a view: the base's count that its own history belongs to
  PyObject* grad;     // these may be null
  PyObject* grad_fn;  // the tape entry that made this tensor
  PyObject* base;     // the tensor this is a view of, itself not a view
  PyObject* hooks;    // owned by candelabra.autograd
  PyObject* shape;    // the Size that was last made of `sizes`; right only where it says the same
  PyObject* dict;
  PyObject* weakrefs;

  int ndim() const { return sizes.size(); }
  Device device() const { return storage->device; }
  char* data() const { return static_cast<char*>(storage->data) + offset * itemsize(dtype); }
  bool is_leaf() const { return grad_fn == nullptr; }
};

// Owns one reference to a tensor (or any Python object).
template <typename T = PyObject>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* owned) : object_(owned) {}
  static Ref borrow(T* object) {
    Py_XINCREF(reinterpret_cast<PyObject*>(object));
    return Ref(object);
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    T* old = std::exchange(object_, std::exchange(other.object_, nullptr));
    Py_XDECREF(reinterpret_cast<PyObject*>(old));
    return *this;
  }
  Ref(const Ref& other) : Ref(borrow(other.object_)) {}
  Ref& operator=(const Ref& other) { return *this = Ref(other); }
  ~Ref() { Py_XDECREF(reinterpret_cast<PyObject*>(object_)); }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T* release() { return std::exchange(object_, nullptr); }
  PyObject* release_object() { return reinterpret_cast<PyObject*>(release()); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};
using TensorRef = Ref<TensorObject>;

// Throws PythonError when `owned` is null: for results of the C API.
inline Ref<> owned(PyObject* object) {
  if (!object) throw PythonError();
  return Ref<>(object);
}

// A Python object that is looked up at its first use and kept until the process ends. Declare it
// `static constinit`.
//
// A static whose initializer does the look-up deadlocks: the look-up may release the GIL while C++
// holds the static's guard, and the next thread then waits for the guard with the GIL. No guard is
// held here: two threads may look up at once, and the first to finish wins.
class LookedUpOnce {
 public:
  // Returns a borrowed reference; needs the GIL. Where `look_up` throws, the next call tries again.
  template <typename LookUp>
  PyObject* get(LookUp look_up) {
    if (object_) [[likely]]
      return object_;
    Ref<> found = look_up();
    if (!object_) object_ = found.release();
    return object_;
  }

 private:
  PyObject* object_ = nullptr;
};
// An interned string, by which attributes and keywords are looked up.
class InternedOnce {
 public:
  explicit constexpr InternedOnce(const char* characters) : characters_(characters) {}
  PyObject* get() {
    return object_.get([this] { return owned(PyUnicode_InternFromString(characters_)); });
  }

 private:
  const char* characters_;
  LookedUpOnce object_;
};

extern PyTypeObject* tensor_type;
inline bool is_tensor(PyObject* object) {
  return Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_type);
}
inline TensorObject* as_tensor(PyObject* object) {
  return reinterpret_cast<TensorObject*>(object);
}
inline PyObject* as_object(TensorObject* tensor) {
  return reinterpret_cast<PyObject*>(tensor);
}

enum class MemoryFormat : uint8_t { Contiguous, ChannelsLast, Preserve, ChannelsLast3d };
PyObject* memory_format_object(MemoryFormat format);  // borrowed
bool is_memory_format_object(PyObject* object);
MemoryFormat memory_format_from_object(PyObject* object);
void check_rank_of_format(MemoryFormat format,
                          std::span<const int64_t> sizes);  // channels_last is of four dimensions, …_3d of five
bool init_memory_format(PyObject* module);

// New tensors. All throw.
// Takes over one reference
TensorRef make_tensor(Storage* retained, Dtype dtype, Dims sizes, Dims strides, int64_t offset);
// Contiguous
TensorRef empty(std::span<const int64_t> sizes, Dtype dtype, Device device);
TensorRef empty_strided(std::span<const int64_t> sizes, std::span<const int64_t> strides, Dtype dtype, Device device);
// Strides like those of `like` where it is dense and without overlap (memory format "preserve"),
// else contiguous.
Dims preserved_strides(const TensorObject& like);
// A view: same storage; base is set to self's base, or to self.
TensorRef make_view(TensorObject* self, Dims sizes, Dims strides, int64_t offset);
// Same memory and version counter, no base, no tape.
TensorRef make_alias(TensorObject* self);

// Keeps numel and contiguous
void set_geometry(TensorObject& tensor, Dims sizes, Dims strides, int64_t offset);
bool is_channels_last(const TensorObject& tensor);
// Whether the elements lie in the order of this format; a size of 1 has any stride.
bool is_in_format(const TensorObject& tensor, MemoryFormat format);
bool is_dense_and_non_overlapping(const TensorObject& tensor);
// Two indices may mean one element
bool may_overlap_itself(const TensorObject& tensor);
// Overlap, but not the same view
bool share_memory_partly(const TensorObject& a, const TensorObject& b);
inline constexpr const char* overlaps_written =
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation.";

// The history of a view follows from its base's. Where that has changed (an in-place operation on
// the base or another view was recorded), candelabra.autograd works the view's out anew; throws
// what it raises.
void update_history(TensorObject* view);
inline void follow_base(TensorObject* tensor) {
  if (tensor->base && as_tensor(tensor->base)->history != tensor->history) [[unlikely]]
    update_history(tensor);
}
inline bool requires_grad(TensorObject* tensor) {
  follow_base(tensor);
  return tensor->requires_grad;
}

// Grad mode and inference mode of this thread.
struct GradMode {
  bool enabled = true;
  bool inference = false;
};
extern thread_local GradMode grad_mode;
// Nothing is recorded as long as this object lives.
class NoGrad {
 public:
  NoGrad() : before_(grad_mode.enabled) { grad_mode.enabled = false; }
  ~NoGrad() { grad_mode.enabled = before_; }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

bool init_tensor(PyObject* module);

}  // namespace candelabra
