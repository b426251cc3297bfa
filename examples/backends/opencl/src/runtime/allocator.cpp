#include "runtime/allocator.hpp"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstring>

namespace candelabra::opencl {

namespace {

// Sizes that buffers have: multiples of an eighth of the power of two below, so that a buffer fits
// most requests of about its size.
uint64_t rounded(uint64_t bytes) {
  if (bytes <= 512) return 512;
  const uint64_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) / step * step;
}

}  // namespace

Buffer* Allocator::allocate(uint64_t bytes, void* stream) {
  const std::lock_guard lock(mutex_);
  const uint64_t size = bytes > device_.global_memory ? bytes : rounded(bytes);
  std::unique_ptr<Buffer> buffer = cached(size, stream);
  if (buffer) {
    statistics_.cache_hit_count += 1;
  } else {
    buffer = create(size, stream);
    statistics_.reserved += static_cast<int64_t>(size);
    statistics_.reserved_peak = std::max(statistics_.reserved_peak, statistics_.reserved);
  }
  statistics_.allocation_count += 1;
  statistics_.allocated += static_cast<int64_t>(size);
  statistics_.allocated_peak = std::max(statistics_.allocated_peak, statistics_.allocated);
  return buffer.release();
}

std::unique_ptr<Buffer> Allocator::cached(uint64_t bytes, void* stream) {
  const auto found = free_.find({stream, bytes});
  if (found == free_.end() || found->second.empty()) return nullptr;
  std::unique_ptr<Buffer> buffer = std::move(found->second.back());
  found->second.pop_back();
  return buffer;
}

std::unique_ptr<Buffer> Allocator::create(uint64_t bytes, void* stream) {
  const auto fits = [&] { return limit_ < 0 || statistics_.reserved + static_cast<int64_t>(bytes) <= limit_; };
  const auto attempt = [&](cl_int& code) {
    return Memory(cl.CreateBuffer(device_.context.get(), CL_MEM_READ_WRITE, bytes, nullptr, &code));
  };
  if (!fits()) release_all();
  cl_int code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  Memory memory;
  if (fits() && bytes <= device_.largest_allocation) {
    memory = attempt(code);
    if (code != CL_SUCCESS) {
      release_all();
      memory = attempt(code);
    }
  }
  const bool is_full = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
                       code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
  if (is_full) {
    const std::string limit = limit_ < 0 ? "" : ", the limit is " + std::to_string(limit_);
    throw kernel::failure(CB_OUT_OF_MEMORY,
                          "out of memory on opencl:%d (%s): asked for %" PRIu64 " bytes; %" PRId64
                          " are in use, the largest possible allocation has %" PRIu64 " of %" PRIu64 "%s",
                          device_.index, device_.name.c_str(), bytes, statistics_.allocated, device_.largest_allocation,
                          device_.global_memory, limit.c_str());
  }
  check(code, "clCreateBuffer");
  auto buffer = std::make_unique<Buffer>();
  buffer->memory = std::move(memory);
  buffer->bytes = bytes;
  buffer->stream = stream;
  return buffer;
}

void Allocator::deallocate(Buffer* raw) {
  std::unique_ptr<Buffer> buffer(raw);
  const std::lock_guard lock(mutex_);
  const auto bytes = static_cast<int64_t>(buffer->bytes);
  statistics_.allocated -= bytes;
  if (buffer->shared) {
    statistics_.reserved -= bytes;
    return;
  }
  const Key key(buffer->stream, buffer->bytes);
  free_[key].push_back(std::move(buffer));
}

void Allocator::release_all() {
  for (const auto& [key, buffers] : free_) statistics_.reserved -= static_cast<int64_t>(key.second * buffers.size());
  free_.clear();
}

void Allocator::empty_cache() {
  const std::lock_guard lock(mutex_);
  release_all();
}

void Allocator::forget_stream(void* stream) {
  const std::lock_guard lock(mutex_);
  for (auto entry = free_.begin(); entry != free_.end();) {
    if (entry->first.first != stream) {
      ++entry;
      continue;
    }
    statistics_.reserved -= static_cast<int64_t>(entry->first.second * entry->second.size());
    entry = free_.erase(entry);
  }
}

void Allocator::set_limit(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
}

void Allocator::reset_peaks() {
  const std::lock_guard lock(mutex_);
  statistics_.allocated_peak = statistics_.allocated;
  statistics_.reserved_peak = statistics_.reserved;
}

void Allocator::report(cb_memory_statistics& result) const {
  const std::lock_guard lock(mutex_);
  cb_memory_statistics current = statistics_;
  current.size = std::min<uint64_t>(result.size, sizeof current);
  std::memcpy(&result, &current, current.size);
}

}  // namespace candelabra::opencl
