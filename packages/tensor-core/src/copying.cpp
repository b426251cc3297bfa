// Copies for the core's own use: between tensors, dtypes and devices, without recording on the tape.
#include <cstring>
#include <vector>

#include "call.hpp"
#include "interop.hpp"
#include "operator.hpp"

namespace candelabra {

namespace {

// Below this, giving Python's global lock away costs more than it lets others do.
constexpr size_t unlocked_bytes = size_t{1} << 18;
// Below this, memcpy on this thread beats the call of a kernel.
constexpr size_t direct_bytes = size_t{1} << 16;

class Unlocked {
 public:
  explicit Unlocked(bool release) : state_(release ? PyEval_SaveThread() : nullptr) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() {
    if (state_) PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* state_;
};

Operator& required_operator(const char* name) {
  Operator* found = find_operator(name);
  check(found, PyExc_RuntimeError, "the operator catalogue lacks '", name, "'");
  return *found;
}

void set_tensor(Argument& argument, TensorObject* tensor) {
  argument.reset(as_object(tensor));
  argument.kind = ArgumentKind::Tensor;
  argument.tensor = tensor;
}

bool same_geometry(const TensorObject& a, const TensorObject& b) {
  return a.dtype == b.dtype && a.sizes == b.sizes && (a.strides == b.strides || (a.contiguous && b.contiguous));
}

// Whether the elements of both lie in the same order in one block each, so that a copy of bytes copies the tensor.
bool same_block(const TensorObject& a, const TensorObject& b) {
  return same_geometry(a, b) && is_dense_and_non_overlapping(a);
}

void copy_bytes_within(Device device, void* destination, const void* source, size_t bytes) {
  const DeviceType& type = device_type(device);
  if (!type.table->copy_within) {
    std::vector<std::byte> buffer(bytes);
    copy_bytes_to_host(device, buffer.data(), source, bytes);
    return copy_bytes_from_host(device, destination, buffer.data(), bytes);
  }
  int32_t status;
  {
    const Unlocked unlocked(bytes >= unlocked_bytes);
    status = type.table->copy_within(device.index, destination, source, bytes, nullptr);
  }
  if (status != CB_OK) raise_backend_failure(type, "copy_within", status);
}

void copy_bytes_between(Device to, void* destination, Device from, const void* source, size_t bytes) {
  if (device_type(from).has(CB_CAP_HOST_MEMORY)) {
    wait_for(from);
    return copy_bytes_from_host(to, destination, source, bytes);
  }
  if (device_type(to).has(CB_CAP_HOST_MEMORY)) {
    wait_for(to);
    return copy_bytes_to_host(from, destination, source, bytes);
  }
  std::vector<std::byte> buffer(bytes);
  copy_bytes_to_host(from, buffer.data(), source, bytes);
  copy_bytes_from_host(to, destination, buffer.data(), bytes);
}

Dims strides_for(const TensorObject& like, MemoryFormat format) {
  if (format == MemoryFormat::Preserve) return preserved_strides(like);
  if (format == MemoryFormat::Contiguous) return contiguous_strides(like.sizes);
  check_rank_of_format(format, like.sizes);
  return channels_last_strides(like.sizes);
}

}  // namespace

void wait_for(Device device) {
  const DeviceType& type = device_type(device);
  if (!type.has(CB_CAP_ASYNCHRONOUS)) return;
  int32_t status;
  {
    const Unlocked unlocked(true);
    status = type.table->synchronize(device.index);
  }
  if (status != CB_OK) raise_backend_failure(type, "synchronize", status);
}

void copy_bytes_to_host(Device device, void* destination, const void* source, size_t bytes) {
  if (bytes == 0) return;
  const DeviceType& type = device_type(device);
  if (type.has(CB_CAP_HOST_MEMORY) && bytes < direct_bytes) {
    wait_for(device);
    std::memcpy(destination, source, bytes);
    return;
  }
  int32_t status;
  {
    const Unlocked unlocked(bytes >= unlocked_bytes);
    status = type.table->copy_to_host(device.index, destination, source, bytes, nullptr);
  }
  if (status != CB_OK) raise_backend_failure(type, "copy_to_host", status);
}

void copy_bytes_from_host(Device device, void* destination, const void* source, size_t bytes) {
  if (bytes == 0) return;
  const DeviceType& type = device_type(device);
  if (type.has(CB_CAP_HOST_MEMORY) && bytes < direct_bytes) {
    wait_for(device);
    std::memcpy(destination, source, bytes);
    return;
  }
  int32_t status;
  {
    const Unlocked unlocked(bytes >= unlocked_bytes);
    status = type.table->copy_from_host(device.index, destination, source, bytes, nullptr);
  }
  if (status != CB_OK) raise_backend_failure(type, "copy_from_host", status);
}

bool copy_as_bytes(TensorObject* destination, TensorObject* source) {
  if (!same_block(*destination, *source)) return false;
  const size_t bytes = static_cast<size_t>(destination->numel) * itemsize(destination->dtype);
  if (bytes == 0 || destination->data() == source->data()) return true;
  const Device device = destination->device();
  if (device != source->device()) {
    copy_bytes_between(device, destination->data(), source->device(), source->data(), bytes);
    return true;
  }
  if (share_memory_partly(*destination, *source)) return false;
  const DeviceType& type = device_type(device);
  if (type.has(CB_CAP_HOST_MEMORY)) {
    if (bytes < direct_bytes) {
      wait_for(device);
      std::memcpy(destination->data(), source->data(), bytes);
      return true;
    }
    // A large copy in host memory goes to the kernel, which may use several threads, where there is one.
    if (required_operator("copy_").kernels[device.type].compiled) return false;
  }
  copy_bytes_within(device, destination->data(), source->data(), bytes);
  return true;
}

void copy_into(TensorObject* destination, TensorObject* source) {
  if (destination == source || copy_as_bytes(destination, source)) return;
  static Operator& op = required_operator("copy_");
  Call call(op);
  call.argument_count = 3;
  set_tensor(call[0], destination);
  set_tensor(call[1], source);
  call[2].reset(Py_False);
  call[2].kind = ArgumentKind::Bool;
  call.outputs[0].given = destination;
  run(call);
}

TensorRef convert_dtype(TensorObject* self, Dtype dtype) {
  if (self->dtype == dtype) return TensorRef::borrow(self);
  TensorRef result = empty_strided(self->sizes, preserved_strides(*self), dtype, self->device());
  copy_into(result.get(), self);
  return result;
}

TensorRef to_device(TensorObject* self, Device device) {
  if (self->device() == device) return TensorRef::borrow(self);
  const TensorRef block = is_dense_and_non_overlapping(*self) ? TensorRef::borrow(self) : contiguous(self);
  TensorRef result = empty_strided(block->sizes, preserved_strides(*block.get()), block->dtype, device);
  const size_t bytes = static_cast<size_t>(block->numel) * itemsize(block->dtype);
  if (bytes) copy_bytes_between(device, result->data(), block->device(), block->data(), bytes);
  return result;
}

TensorRef clone(TensorObject* self, MemoryFormat format) {
  TensorRef result = empty_strided(self->sizes, strides_for(*self, format), self->dtype, self->device());
  copy_into(result.get(), self);
  return result;
}

TensorRef contiguous(TensorObject* self) {
  return self->contiguous ? TensorRef::borrow(self) : clone(self, MemoryFormat::Contiguous);
}

void fill(TensorObject* self, const cb_scalar& value) {
  if (self->numel == 0) return;
  if (self->numel == 1 && device_type(self->device()).has(CB_CAP_HOST_MEMORY) && (value.im == 0 || is_complex(self->dtype))) {
    wait_for(self->device());
    store_scalar(value, self->dtype, self->data());
    return;
  }
  static Operator& op = required_operator("fill_");
  Call call(op);
  call.argument_count = 2;
  set_tensor(call[0], self);
  call[1].reset(Py_None);
  call[1].kind = ArgumentKind::Scalar;
  call[1].scalar = value;
  call.outputs[0].given = self;
  run(call);
}

}  // namespace candelabra
