// One call of an operator, from parsed arguments to results. Shape rules read and modify it;
// dispatch.cpp runs it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "tensor/tensor.hpp"

namespace candelabra {

struct Kernel;
struct Operator;

enum class ArgumentKind : uint8_t {
  None,
  Tensor,
  Number /* a number in place of a tensor */,
  Tensors,
  Scalar,
  Int,
  Float,
  Bool,
  Ints,
  Floats,
  String,
  Dtype,
  Device,
  MemoryFormat,
};

struct Argument {
  ArgumentKind kind;
  int32_t count;
  PyObject* object;  // the caller's argument, or the default; borrowed
  union {
    TensorObject* tensor;    // borrowed; Call::keep() owns the tensors that a shape rule makes
    TensorObject** tensors;  // `count` entries, in the arena; an entry of Tensor?[] may be null
    int64_t i;
    double f;
    const int64_t* ints;  // in the arena; also bool[]
    const double* floats;
    const char* string;
    Dtype dtype;
    Device device;
    MemoryFormat memory_format;
  };
  cb_scalar scalar;  // only for Number and Scalar; otherwise uninitialized
  // Set by broadcast() and similar functions if the kernel sees another geometry than the tensor's
  // own; else null.
  cb_tensor* descriptor;

  // Uninitialized, so that a call does not pay for unused entries. The parser calls reset().
  Argument() {}
  void reset(PyObject* passed) {
    kind = ArgumentKind::None;
    count = 0;
    object = passed;
    i = 0;
    descriptor = nullptr;
  }
  bool given() const { return kind != ArgumentKind::None; }
  bool is_tensor() const { return kind == ArgumentKind::Tensor; }
};

// A bump allocator for memory that lives as long as the call.
class Arena {
 public:
  template <typename T>
  T* make(size_t count) {
    size_t bytes = (count * sizeof(T) + 15) & ~size_t{15};
    if (used_ + bytes > sizeof(inline_)) return static_cast<T*>(grow(bytes));
    void* memory = inline_ + used_;
    used_ += bytes;
    return static_cast<T*>(memory);
  }
  int64_t* copy(std::span<const int64_t> values) {
    int64_t* memory = make<int64_t>(values.size());
    std::copy(values.begin(), values.end(), memory);
    return memory;
  }

 private:
  void* grow(size_t bytes) {
    overflow_.push_back(std::make_unique<std::byte[]>(bytes));
    return overflow_.back().get();
  }
  size_t used_ = 0;
  alignas(16) std::byte inline_[1536];
  std::vector<std::unique_ptr<std::byte[]>> overflow_;
};

struct Output {
  // Set by the shape rule.
  Dtype dtype = Dtype::Float32;
  Dims sizes;
  std::optional<Dims> strides;  // contiguous when not set
  // bit mask of dimensions of size 1 that only the kernel sees: reductions without keepdim
  uint64_t inserted = 0;
  // bit mask of dimensions of size 1 that have stride 0 in the kernel: reductions with keepdim
  uint64_t reduced = 0;
  // for operators tagged view: the result is a view of this tensor with `strides` and `offset`
  TensorObject* view_of = nullptr;
  int64_t offset = 0;
  // Set before the shape rule runs if the caller provided the tensor: out=, or self of an in-place
  // call.
  TensorObject* given = nullptr;
  // Set by dispatch.
  TensorRef tensor;
  // memory in the arena, instead of `tensor`, for a result that the caller does not need
  void* scratch = nullptr;
};

constexpr int max_arguments = 20;
constexpr int max_outputs = 4;

struct Call {
  explicit Call(Operator& op) : op(op) {}

  Operator& op;
  // where the kernel runs: the tensors' device, else the device argument, else the default
  Device device;
  int argument_count = 0;
  int output_count = 0;
  bool first_alone = false;  // the caller needs only outputs[0]
  bool in_place = false;     // an in-place variant: outputs[0].given is argument 0
  std::array<Argument, max_arguments> arguments;
  std::array<Output, max_outputs> outputs;
  Ref<> result;                   // operators tagged core set this instead of outputs
  PyObject* generator = nullptr;  // borrowed; null: the device's default generator
  Arena arena;
  std::vector<TensorRef> kept;

  const char* name() const;
  const char* title() const;  // what messages call the operator
  // The kernel of the device; it may be absent.
  const Kernel& kernel() const;

  // Arguments by position in the schema.
  Argument& operator[](int i) { return arguments[i]; }
  // Throws TypeError if the argument is a number: an operator may accept numbers for some of its
  // arguments only.
  TensorObject& tensor(int i) const {
    if (!arguments[i].is_tensor()) [[unlikely]]
      raise_not_tensor(i);
    return *arguments[i].tensor;
  }
  [[noreturn, gnu::cold]] void raise_not_tensor(int i) const;
  int64_t integer(int i) const { return arguments[i].i; }
  bool boolean(int i) const { return arguments[i].i != 0; }
  std::span<const int64_t> ints(int i) const { return {arguments[i].ints, static_cast<size_t>(arguments[i].count)}; }
  Dtype dtype_or(int i, Dtype fallback) const {
    return arguments[i].kind == ArgumentKind::Dtype ? arguments[i].dtype : fallback;
  }
  // also wraps the argument
  int dim(int i, int ndim) { return static_cast<int>(arguments[i].i = wrap_dim(arguments[i].i, ndim)); }

  // Replace the argument that the kernel sees.
  void set_ints(int i, std::span<const int64_t> values);
  void set_int(int i, int64_t value);
  void set_float(int i, double value);
  void set_dtype(int i, Dtype dtype);

  // Makes the call own a tensor, and returns it.
  TensorObject* keep(TensorRef tensor) { return kept.emplace_back(std::move(tensor)).get(); }

  // Converts tensor argument i to this dtype, which copies it unless the kernel converts. A Number
  // becomes a descriptor of one element.
  void convert(int i, Dtype dtype);
  // Makes the kernel see argument i (tensor or number) expanded to these sizes. The argument must
  // be broadcastable to them.
  void broadcast(int i, std::span<const int64_t> sizes);
  // Makes argument i contiguous; copies it if necessary.
  void make_contiguous(int i);
  // Makes the kernel see this geometry on the memory of argument i.
  void set_descriptor(int i, std::span<const int64_t> sizes, std::span<const int64_t> strides);

  Output& add_output(Dtype dtype, Dims sizes);
};

// The descriptor of a tensor as it is.
cb_tensor describe(const TensorObject& tensor);

// A shape rule checks the arguments, normalizes them for the kernel, and describes the outputs.
using ShapeRule = void (*)(Call&);
struct ShapeRuleEntry {
  ShapeRule rule;
  // Kernels compute element i of the result from element i of the inputs.
  bool elementwise = false;
};
const ShapeRuleEntry* find_shape_rule(std::string_view name);  // null if there is none (shapes/results/)

// Sets call.device and checks that all tensors are on it. If the operator accepts numbers, a 0-dim
// tensor in host memory becomes a Number.
void resolve_device(Call& call);
// Resizes out=, with new memory if necessary. Warns if it had elements.
void resize_output(const char* operator_name, TensorObject& out, std::span<const int64_t> sizes);

// Whether a call that the device's kernel does not compute is left to the decomposition of a
// primitive. With the CPU fallback, only where the device has the tier "required".
bool may_decompose(const Call& call);

// Thrown by run() if there is no kernel for the call, and the operator has a decomposition or the
// device type has the CPU fallback.
struct Declined {};

// Runs a parsed call: resolves the device, applies the shape rule, allocates outputs, calls the
// kernel. Results are in outputs[].tensor or in result.
void run(Call& call);

// For the core's own use. Autograd does not record these.
// returns the tensor itself if it has that dtype
TensorRef convert_dtype(TensorObject* self, Dtype dtype);
TensorRef to_device(TensorObject* self, Device device);
TensorRef clone(TensorObject* self, MemoryFormat format);
TensorRef contiguous(TensorObject* self);
// broadcasts, converts, crosses devices; does not bump the version
void copy_into(TensorObject* destination, TensorObject* source);
void fill(TensorObject* self, const cb_scalar& value);
cb_scalar item(TensorObject* self);  // the value of a one-element tensor on any device
// The number as a Python object: new reference.
PyObject* scalar_object(const cb_scalar& scalar);
// accepts bool, int, float, complex and NumPy scalars; throws TypeError
cb_scalar scalar_from_object(PyObject* object);
bool is_number(PyObject* object);
// Converts the number to this dtype and writes it as one element.
void store_scalar(const cb_scalar& scalar, Dtype dtype, void* element);
cb_scalar load_scalar(Dtype dtype, const void* element);

}  // namespace candelabra
