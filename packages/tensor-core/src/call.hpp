// One call of an operator, from parsed arguments to results. Shape rules read and write it; dispatch.cpp runs it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "tensor.hpp"

namespace candelabra {

struct Operator;

enum class ArgumentKind : uint8_t {
  None,
  Tensor,
  Number /* a number in a tensor's place */,
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
  PyObject* object;  // what the caller passed, or the default; borrowed
  union {
    TensorObject* tensor;    // borrowed; a shape rule that converts keeps the new one alive with Call::keep
    TensorObject** tensors;  // count of them, in the arena; an entry may be null in Tensor?[]
    int64_t i;
    double f;
    const int64_t* ints;  // in the arena; also bool[]
    const double* floats;
    const char* string;
    Dtype dtype;
    Device device;
    MemoryFormat memory_format;
  };
  cb_scalar scalar;  // Number and Scalar only; not set otherwise
  // What the kernel sees of a tensor, where that is not the tensor's own geometry: set by broadcast() and the like.
  cb_tensor* descriptor;

  // Left uninitialized: a call has room for many arguments and pays only for those it has. The parser calls reset().
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

// Memory that lives as long as the call.
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
  // Written by the shape rule.
  Dtype dtype = Dtype::Float32;
  Dims sizes;
  std::optional<Dims> strides;      // contiguous when not set
  uint64_t inserted = 0;            // dimensions (bits) of size 1 that the kernel sees in addition: reductions without keepdim
  uint64_t reduced = 0;             // dimensions (bits) of size 1 that the kernel sees with stride 0: reductions with keepdim
  TensorObject* view_of = nullptr;  // operators tagged view: the result is a view of this tensor with `strides` and `offset`
  int64_t offset = 0;
  // Set before the shape rule runs when the caller gave the tensor: out=, or the self of an in-place call.
  TensorObject* given = nullptr;
  // Set by dispatch.
  TensorRef tensor;
  void* scratch = nullptr;  // memory in the arena in a tensor's place, of a result that is not asked for
};

constexpr int max_arguments = 20;
constexpr int max_outputs = 4;

struct Call {
  explicit Call(Operator& op) : op(op) {}

  Operator& op;
  Device device;  // where the kernel runs: of the tensor arguments, else of the device argument, else the default
  int argument_count = 0;
  int output_count = 0;
  bool first_alone = false;  // only outputs[0] is asked for
  bool in_place = false;     // the in-place variant: outputs[0].given is argument 0
  std::array<Argument, max_arguments> arguments;
  std::array<Output, max_outputs> outputs;
  Ref<> result;                   // operators tagged core set this instead of outputs
  PyObject* generator = nullptr;  // borrowed; null: the device's default
  Arena arena;
  std::vector<TensorRef> kept;

  const char* name() const;

  // Arguments by position in the schema.
  Argument& operator[](int i) { return arguments[i]; }
  // Throws TypeError where a number stands in the tensor's place: an operator may take one for some of its arguments only.
  TensorObject& tensor(int i) const {
    if (!arguments[i].is_tensor()) [[unlikely]]
      raise_not_tensor(i);
    return *arguments[i].tensor;
  }
  [[noreturn, gnu::cold]] void raise_not_tensor(int i) const;
  int64_t integer(int i) const { return arguments[i].i; }
  bool boolean(int i) const { return arguments[i].i != 0; }
  std::span<const int64_t> ints(int i) const { return {arguments[i].ints, static_cast<size_t>(arguments[i].count)}; }
  Dtype dtype_or(int i, Dtype fallback) const { return arguments[i].kind == ArgumentKind::Dtype ? arguments[i].dtype : fallback; }
  int dim(int i, int ndim) { return static_cast<int>(arguments[i].i = wrap_dim(arguments[i].i, ndim)); }  // wraps in place

  // Replaces an argument by a list of integers that the kernel sees.
  void set_ints(int i, std::span<const int64_t> values);
  void set_int(int i, int64_t value);
  void set_float(int i, double value);
  void set_dtype(int i, Dtype dtype);

  // Takes a tensor into the call's keeping and returns it.
  TensorObject* keep(TensorRef tensor) { return kept.emplace_back(std::move(tensor)).get(); }

  // Converts tensor argument i to this dtype (a copy where it is not yet); a Number becomes a descriptor of one element.
  void convert(int i, Dtype dtype);
  // Makes the kernel see argument i (tensor or number) expanded to these sizes, which must be what it broadcasts to.
  void broadcast(int i, std::span<const int64_t> sizes);
  // Makes the kernel see argument i in row-major order without gaps: a copy where it is not.
  void make_contiguous(int i);
  // Makes the kernel see another geometry on the memory of argument i.
  void set_descriptor(int i, std::span<const int64_t> sizes, std::span<const int64_t> strides);

  Output& add_output(Dtype dtype, Dims sizes);
};

// A shape rule: checks the arguments, normalizes what the kernel is to see, and describes the outputs.
using ShapeRule = void (*)(Call&);
ShapeRule find_shape_rule(std::string_view name);  // null when there is none (shapes/registry.cpp)

// Sets call.device and checks that all tensors are there. A tensor without dimensions in host memory becomes a number where the
// operator takes numbers.
void resolve_device(Call& call);
// Gives out= the sizes of the result, with new memory where it has others.
void resize_output(const char* operator_name, TensorObject& out, std::span<const int64_t> sizes);

// What run() throws where the kernel of an operator tagged declines does not take the call.
struct Declined {};

// Runs a parsed call: device, shape rule, memory, kernel, in that order. Results are in outputs[].tensor or in result.
void run(Call& call);

// For the core's own use, without recording on the tape.
TensorRef convert_dtype(TensorObject* self, Dtype dtype);  // the tensor itself where it has that dtype
TensorRef to_device(TensorObject* self, Device device);
TensorRef clone(TensorObject* self, MemoryFormat format);
TensorRef contiguous(TensorObject* self);
void copy_into(TensorObject* destination, TensorObject* source);  // broadcasts, converts, crosses devices; bumps no version
void fill(TensorObject* self, const cb_scalar& value);
cb_scalar item(TensorObject* self);  // the value of a tensor of one element, from any device
// item() of a tensor as a Python number: new reference.
PyObject* scalar_object(const cb_scalar& scalar);
cb_scalar scalar_from_object(PyObject* object);  // bool, int, float, complex, NumPy numbers; throws TypeError
bool is_number(PyObject* object);
// Writes the number as one element of this dtype.
void store_scalar(const cb_scalar& scalar, Dtype dtype, void* element);
cb_scalar load_scalar(Dtype dtype, const void* element);

}  // namespace candelabra
