// Copies between tensors, dtypes and devices for the core's own use. Autograd does not record them.
#include <algorithm>
#include <cstring>
#include <vector>

#include "device/streams.hpp"
#include "dispatch/call.hpp"
#include "dispatch/cpu_fallback.hpp"
#include "interop/interop.hpp"
#include "memory/copy_on_write.hpp"
#include "operators/operator.hpp"
#include "python/gil.hpp"
#include "record/recorder.hpp"

namespace candelabra {

namespace {

// Smaller copies keep the GIL, because releasing it costs more than other threads gain. Waits for
// an asynchronous device always release it: the device may wait for work that another thread has
// yet to queue.
constexpr size_t unlocked_bytes = size_t{1} << 18;
// Smaller copies in host memory use memcpy instead of a kernel.
constexpr size_t direct_bytes = size_t{1} << 16;

void set_tensor(Argument& argument, TensorObject* tensor) {
  argument.reset(as_object(tensor));
  argument.kind = ArgumentKind::Tensor;
  argument.tensor = tensor;
}

bool same_geometry(const TensorObject& a, const TensorObject& b) {
  return a.dtype == b.dtype && a.sizes == b.sizes && (a.strides == b.strides || (a.contiguous && b.contiguous));
}

// Whether both tensors are dense with the same layout, so that copying bytes copies the tensor.
bool same_block(const TensorObject& a, const TensorObject& b) {
  return same_geometry(a, b) && is_dense_and_non_overlapping(a);
}

}  // namespace

void copy_bytes_within(Position destination, Position source, size_t bytes) {
  const NoRecording noted_as_a_whole;
  const Device device = source.storage.device;
  const DeviceType& type = device_type(device);
  if (!type.table->copy_within) {
    std::vector<std::byte> buffer(bytes);
    copy_bytes_to_host(buffer.data(), source, bytes);
    return copy_bytes_from_host(destination, buffer.data(), bytes);
  }
  const cb_memory to = memory_at(destination), from = memory_at(source);
  int32_t status;
  {
    const GilReleased released(bytes >= unlocked_bytes);
    status = type.table->copy_within(device.index, &to, &from, bytes, current_stream(device));
  }
  if (status != CB_OK) raise_backend_failure(type, "copy_within", status);
}

namespace {

// Queues the copy and returns true, if the backend can. The backend keeps the host memory alive
// until the copy is done.
bool copy_bytes_async(Position destination, Position source, size_t bytes) {
  const bool to_host = device_type(destination.storage.device).has(CB_CAP_HOST_MEMORY);
  const Device device = (to_host ? source : destination).storage.device;
  const DeviceType& type = device_type(device);
  const cb_accelerator& table = accelerator_of(type);
  if (to_host ? !table.copy_to_host_async : !table.copy_from_host_async) return false;
  const cb_memory memory = memory_at(to_host ? source : destination);
  void* const stream = current_stream(device);
  const int32_t status = to_host ? table.copy_to_host_async(device.index, destination.address(), &memory, bytes, stream)
                                 : table.copy_from_host_async(device.index, &memory, source.address(), bytes, stream);
  if (status != CB_OK) raise_backend_failure(type, to_host ? "copy_to_host_async" : "copy_from_host_async", status);
  return true;
}

// An event that lives as long as this object.
class ScopedEvent {
 public:
  explicit ScopedEvent(Device device) : device_(device), type_(device_type(device)) {
    const int32_t status = type_.table->event_create(device.index, 0, &event_);
    if (status != CB_OK) raise_backend_failure(type_, "event_create", status);
  }
  ScopedEvent(const ScopedEvent&) = delete;
  ScopedEvent& operator=(const ScopedEvent&) = delete;
  ~ScopedEvent() { type_.table->event_destroy(device_.index, event_); }
  // Work queued later on `waiting` waits for the work that is queued on this device now.
  void order_before(Device waiting) {
    int32_t status = type_.table->event_record(device_.index, event_, current_stream(device_));
    if (status == CB_OK) status = type_.table->event_wait(waiting.index, event_, current_stream(waiting));
    if (status != CB_OK) raise_backend_failure(type_, "event_wait", status);
  }

 private:
  Device device_;
  const DeviceType& type_;
  void* event_ = nullptr;
};

// A copy between devices of one type, on the source's stream. It runs after the queued work of the
// destination and before later work there.
bool copy_bytes_to_peer(Position destination, Position source, size_t bytes) {
  const Device to = destination.storage.device, from = source.storage.device;
  if (to.type != from.type) return false;
  const DeviceType& type = device_type(from);
  const auto function = accelerator_of(type).copy_peer;
  if (!function || !type.has(CB_CAP_EVENTS)) return false;
  ScopedEvent(to).order_before(from);
  const cb_memory target = memory_at(destination), origin = memory_at(source);
  const int32_t status = function(to.index, &target, from.index, &origin, bytes, current_stream(from));
  if (status != CB_OK) raise_backend_failure(type, "copy_peer", status);
  ScopedEvent(from).order_before(to);
  return true;
}

void copy_bytes_between(Position destination, Position source, size_t bytes, bool non_blocking) {
  const Device to = destination.storage.device, from = source.storage.device;
  const bool from_host = device_type(from).has(CB_CAP_HOST_MEMORY), to_host = device_type(to).has(CB_CAP_HOST_MEMORY);
  if (from_host) {
    wait_for(from);
    if (non_blocking && !to_host && copy_bytes_async(destination, source, bytes)) return;
    return copy_bytes_from_host(destination, source.address(), bytes);
  }
  if (to_host) {
    wait_for(to);
    if (non_blocking && copy_bytes_async(destination, source, bytes)) return;
    return copy_bytes_to_host(destination.address(), source, bytes);
  }
  if (copy_bytes_to_peer(destination, source, bytes)) return;
  std::vector<std::byte> buffer(bytes);
  copy_bytes_to_host(buffer.data(), source, bytes);
  copy_bytes_from_host(destination, buffer.data(), bytes);
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
    const GilReleased released(true);
    status = type.table->synchronize(device.index);
  }
  if (status != CB_OK) raise_backend_failure(type, "synchronize", status);
}

void copy_bytes_to_host(void* destination, Position source, size_t bytes) {
  if (bytes == 0) return;
  const Device device = source.storage.device;
  check(!is_meta(device), PyExc_NotImplementedError, no_data);
  refuse_recording("the host reads the values of a tensor");
  const DeviceType& type = device_type(device);
  if (source.storage.is_host_visible && bytes < direct_bytes) {
    wait_for(device);
    std::memcpy(destination, source.address(), bytes);
    return;
  }
  const cb_memory memory = memory_at(source);
  int32_t status;
  {
    const GilReleased released(bytes >= unlocked_bytes || type.has(CB_CAP_ASYNCHRONOUS));
    status = type.table->copy_to_host(device.index, destination, &memory, bytes, current_stream(device));
  }
  if (status != CB_OK) raise_backend_failure(type, "copy_to_host", status);
}

void copy_bytes_from_host(Position destination, const void* source, size_t bytes) {
  if (bytes == 0) return;
  note_host_write(destination.storage);
  make_writable(&destination.storage);
  const Device device = destination.storage.device;
  const DeviceType& type = device_type(device);
  if (destination.storage.is_host_visible && bytes < direct_bytes) {
    wait_for(device);
    std::memcpy(destination.address(), source, bytes);
    return;
  }
  const cb_memory memory = memory_at(destination);
  int32_t status;
  {
    const GilReleased released(bytes >= unlocked_bytes || type.has(CB_CAP_ASYNCHRONOUS));
    status = type.table->copy_from_host(device.index, &memory, source, bytes, current_stream(device));
  }
  if (status != CB_OK) raise_backend_failure(type, "copy_from_host", status);
}

bool copy_as_bytes(TensorObject* destination, TensorObject* source) {
  return copy_as_bytes(destination, source, false);
}

bool copy_as_bytes(TensorObject* destination, TensorObject* source, bool non_blocking) {
  if (!same_block(*destination, *source)) return false;
  const size_t bytes = static_cast<size_t>(destination->numel) * itemsize(destination->dtype);
  if (bytes == 0 || destination->data() == source->data()) return true;
  const Device device = destination->device();
  if (device != source->device()) {
    refuse_recording("a tensor is copied to another device");
    copy_bytes_between(position_of(*destination), position_of(*source), bytes, non_blocking);
    return true;
  }
  if (share_memory_partly(*destination, *source)) return false;
  if (destination->storage->is_host_visible && source->storage->is_host_visible) {
    if (bytes < direct_bytes) {
      if (Recorder* active = recorder()) [[unlikely]]
        active->note_copy(*destination, *source, bytes);
      wait_for(device);
      std::memcpy(destination->data(), source->data(), bytes);
      return true;
    }
    // The kernel, if there is one, may use several threads for a large copy in host memory.
    if (required_operator("copy_").kernels[device.type].compiled) return false;
  }
  if (Recorder* active = recorder()) [[unlikely]]
    active->note_copy(*destination, *source, bytes);
  copy_bytes_within(position_of(*destination), position_of(*source), bytes);
  return true;
}

void copy_into(TensorObject* destination, TensorObject* source) {
  if (destination == source) return;
  make_writable(destination->storage);
  if (copy_as_bytes(destination, source)) return;
  check(!is_meta(source->device()) || is_meta(destination->device()), PyExc_NotImplementedError, no_data);
  TensorRef apart;
  if (share_memory_partly(*destination, *source)) {
    apart = clone(source, MemoryFormat::Preserve);
    source = apart.get();
  }
  static Operator& op = required_operator("copy_");
  Call call(op);
  call.argument_count = 3;
  set_tensor(call[0], destination);
  set_tensor(call[1], source);
  call[2].reset(Py_False);
  call[2].kind = ArgumentKind::Bool;
  call.outputs[0].given = destination;
  try {
    run(call);
  } catch (const Declined&) {
    const Ref<> values = owned(PyTuple_Pack(3, as_object(destination), as_object(source), Py_False));
    compute_on_cpu(op, values.get(), nullptr, destination->device());
  }
}

TensorRef convert_dtype(TensorObject* self, Dtype dtype) {
  if (self->dtype == dtype) return TensorRef::borrow(self);
  TensorRef result = empty_strided(self->sizes, preserved_strides(*self), dtype, self->device());
  copy_into(result.get(), self);
  return result;
}

TensorRef to_device(TensorObject* self, Device device) {
  return to_device(self, device, false);
}

TensorRef to_device(TensorObject* self, Device device, bool non_blocking) {
  if (self->device() == device) return TensorRef::borrow(self);
  check(!is_meta(self->device()), PyExc_NotImplementedError, no_data);
  const TensorRef block = is_dense_and_non_overlapping(*self) ? TensorRef::borrow(self) : contiguous(self);
  const size_t bytes = static_cast<size_t>(block->numel) * itemsize(block->dtype);
  const DeviceType& from = device_type(block->device());
  TensorRef result;
  // A copy to the host is asynchronous only if it goes to pinned memory.
  if (non_blocking && bytes && device == host_device() && accelerator_of(from).copy_to_host_async &&
      has_pinned_memory(from))
    result =
        make_tensor(make_pinned_storage(from, bytes), block->dtype, block->sizes, preserved_strides(*block.get()), 0);
  else
    result = empty_strided(block->sizes, preserved_strides(*block.get()), block->dtype, device);
  refuse_recording("a tensor is copied to another device");
  if (bytes) copy_bytes_between(position_of(*result.get()), position_of(*block.get()), bytes, non_blocking);
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
  make_writable(self->storage);
  if (self->numel == 0) return;
  // For few elements in host memory, writing them here is faster than calling a kernel.
  constexpr int64_t few_bytes = 256;
  const int64_t size = itemsize(self->dtype), bytes = self->numel * size;
  if (bytes <= few_bytes && self->contiguous && self->storage->is_host_visible &&
      (value.im == 0 || is_complex(self->dtype))) {
    wait_for(self->device());
    uint64_t words[2];  // the element, repeated over 16 bytes
    store_scalar(value, self->dtype, words);
    if (size == 1) words[0] = (words[0] & 0xff) * 0x0101010101010101;
    if (size == 2) words[0] = (words[0] & 0xffff) * 0x0001000100010001;
    if (size == 4) words[0] = (words[0] & 0xffffffff) * 0x0000000100000001;
    if (size <= 8) words[1] = words[0];
    if (Recorder* active = recorder()) [[unlikely]]
      active->note_fill(*self, words, static_cast<size_t>(bytes));
    char* memory = self->data();
    int64_t done = 0;
    for (; done + 16 <= bytes; done += 16) std::memcpy(memory + done, words, 16);
    std::memcpy(memory + done, words, static_cast<size_t>(bytes - done));
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
  try {
    run(call);
  } catch (const Declined&) {
    const Ref<> number = owned(scalar_object(value));
    const Ref<> values = owned(PyTuple_Pack(2, as_object(self), number.get()));
    compute_on_cpu(op, values.get(), nullptr, self->device());
  }
}

}  // namespace candelabra
