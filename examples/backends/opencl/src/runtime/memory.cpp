// The memory functions of the table: allocation, and copies by handle and offset.
#include "runtime/allocator.hpp"

namespace candelabra::opencl {

namespace {

cl_mem memory_of(const cb_memory& memory) {
  if (!memory.storage)
    throw kernel::failure(CB_NOT_IMPLEMENTED, "opencl copies from and to its own buffers only, not imported memory");
  return static_cast<const Buffer*>(memory.storage)->memory.get();
}

int32_t allocate(int32_t index, cb_allocation* allocation) {
  return guarded(
      [&] { allocation->storage = device(index).allocator->allocate(allocation->bytes, allocation->stream); });
}

void deallocate(int32_t index, void* storage, uint64_t) {
  devices()[static_cast<size_t>(index)]->allocator->deallocate(static_cast<Buffer*>(storage));
}

int32_t copy_from_host(int32_t index, const cb_memory* destination, const void* source, uint64_t bytes, void* stream) {
  return guarded([&] {
    check(cl.EnqueueWriteBuffer(device(index).queue_of(stream), memory_of(*destination), CL_TRUE, destination->offset,
                                bytes, source, 0, nullptr, nullptr),
          "clEnqueueWriteBuffer");
  });
}

int32_t copy_to_host(int32_t index, void* destination, const cb_memory* source, uint64_t bytes, void* stream) {
  return guarded([&] {
    check(cl.EnqueueReadBuffer(device(index).queue_of(stream), memory_of(*source), CL_TRUE, source->offset, bytes,
                               destination, 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
  });
}

bool overlap(const cb_memory& a, const cb_memory& b, uint64_t bytes) {
  return a.storage == b.storage && a.offset < b.offset + bytes && b.offset < a.offset + bytes;
}

int32_t copy_within(int32_t index, const cb_memory* destination, const cb_memory* source, uint64_t bytes,
                    void* stream) {
  return guarded([&] {
    Device& device = opencl::device(index);
    const cl_command_queue queue = device.queue_of(stream);
    const auto copy = [&](cl_mem from, uint64_t from_offset, cl_mem to, uint64_t to_offset) {
      check(cl.EnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes, 0, nullptr, nullptr),
            "clEnqueueCopyBuffer");
    };
    if (!overlap(*destination, *source, bytes))
      return copy(memory_of(*source), source->offset, memory_of(*destination), destination->offset);
    // clEnqueueCopyBuffer refuses ranges that overlap.
    const auto release = [&](Buffer* buffer) { device.allocator->deallocate(buffer); };
    const std::unique_ptr<Buffer, decltype(release)> between(device.allocator->allocate(bytes, stream), release);
    copy(memory_of(*source), source->offset, between->memory.get(), 0);
    copy(between->memory.get(), 0, memory_of(*destination), destination->offset);
  });
}

int32_t memory_statistics(int32_t index, cb_memory_statistics* result) {
  return guarded([&] { device(index).allocator->report(*result); });
}

void reset_peak_statistics(int32_t index) {
  devices()[static_cast<size_t>(index)]->allocator->reset_peaks();
}

void empty_cache(int32_t index) {
  devices()[static_cast<size_t>(index)]->allocator->empty_cache();
}

int32_t set_memory_limit(int32_t index, int64_t bytes) {
  return guarded([&] { device(index).allocator->set_limit(bytes); });
}

int32_t stream_record_memory(int32_t, void* storage, void* stream) {
  auto& buffer = *static_cast<Buffer*>(storage);
  if (buffer.stream != stream) buffer.shared = true;
  return CB_OK;
}

}  // namespace

void add_memory(cb_backend& table) {
  table.allocate = allocate;
  table.deallocate = deallocate;
  table.copy_from_host = copy_from_host;
  table.copy_to_host = copy_to_host;
  table.copy_within = copy_within;
  table.memory_statistics = memory_statistics;
  table.reset_peak_statistics = reset_peak_statistics;
  table.empty_cache = empty_cache;
  table.set_memory_limit = set_memory_limit;
  table.stream_record_memory = stream_record_memory;
}

}  // namespace candelabra::opencl
