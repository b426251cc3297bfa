// Device memory: one sparse file per device, mapped shared, so that other processes can open it.
// Also pinned host memory.
//
// CANDELABRA_EMULATION_GUARD=1 gives every allocation its own pages, followed by an inaccessible
// page (or preceded by one: =before). It never reuses freed memory, and fills new memory with NaN.
// =host makes device memory accessible only to work that runs on the device, and another device's
// memory only to kernels with peer access.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "memory.hpp"

namespace emulation {
namespace {

enum class Guard { None, After, Before, Host };
Guard guard() {
  static const Guard chosen = [] {
    const char* text = std::getenv("CANDELABRA_EMULATION_GUARD");
    if (!text || !*text || !std::strcmp(text, "0")) return Guard::None;
    return !std::strcmp(text, "host") ? Guard::Host : !std::strcmp(text, "before") ? Guard::Before : Guard::After;
  }();
  return chosen;
}

struct Region {
  char* base = nullptr;
  int file = -1;
  std::map<size_t, size_t> free;  // offset to bytes
};

struct Memory {
  Region regions[device_count];
  size_t used[device_count] = {};
  std::map<const char*, Allocation> live;
  std::map<const char*, size_t> graves;  // guarded allocations that were freed
  std::map<const char*, size_t> pinned;
  int access = 0;
};
Memory& memory() {
  static auto* all = new Memory();
  return *all;
}

size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
size_t round_up(size_t bytes, size_t to) {
  return (bytes + to - 1) / to * to;
}

bool open_region(Region& region) {
  if (region.base) return true;
  region.file = memfd_create("emulated device", MFD_CLOEXEC);
  if (region.file < 0 || ftruncate(region.file, static_cast<off_t>(total_memory()))) return false;
  void* base = mmap(nullptr, total_memory(), guard() == Guard::Host ? PROT_NONE : PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, region.file, 0);
  if (base == MAP_FAILED) return false;
  region.base = static_cast<char*>(base);
  region.free[0] = total_memory();
  return true;
}

void* guarded(int device, size_t bytes) {
  const size_t page = page_bytes(), room = round_up(bytes, page);
  char* base =
      static_cast<char*>(mmap(nullptr, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (base == MAP_FAILED) return nullptr;
  mprotect(base + page, room, PROT_READ | PROT_WRITE);
  char* at = guard() == Guard::Before ? base + page : base + page + room - round_up(bytes, 16);
  std::memset(base + page, 0xf7, room);
  note_allocation({at, bytes, device, false});
  return at;
}

void* allocate(int device, size_t bytes) {
  Memory& all = memory();
  if (!take_budget(device, bytes)) return nullptr;
  if (guard() == Guard::After || guard() == Guard::Before) {
    void* found = guarded(device, bytes);
    if (!found) give_budget(device, bytes);
    return found;
  }
  Region& region = all.regions[device];
  const size_t room = round_up(bytes, 512);
  if (open_region(region)) {
    for (auto each = region.free.begin(); each != region.free.end(); ++each) {
      const auto [offset, size] = *each;
      if (size < room) continue;
      region.free.erase(each);
      if (size > room) region.free[offset + room] = size - room;
      note_allocation({region.base + offset, bytes, device, false});
      return region.base + offset;
    }
  }
  give_budget(device, bytes);
  return nullptr;
}

void release(const Allocation& found) {
  Memory& all = memory();
  const size_t page = page_bytes();
  give_budget(found.device, found.bytes);
  if (guard() == Guard::After || guard() == Guard::Before) {
    char* first = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(found.base) / page * page);
    const size_t room = round_up(static_cast<size_t>(found.base - first) + found.bytes, page);
    // The addresses stay reserved, so that a use after free faults.
    mmap(first, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    all.graves[found.base] = found.bytes;
    return;
  }
  Region& region = all.regions[found.device];
  auto offset = static_cast<size_t>(found.base - region.base);
  size_t room = round_up(found.bytes, 512);
  const size_t first = round_up(offset, page), end = (offset + room) / page * page;
  if (end > first)
    fallocate(region.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
              static_cast<off_t>(end - first));
  const auto after = region.free.lower_bound(offset);
  if (after != region.free.end() && after->first == offset + room) {
    room += after->second;
    region.free.erase(after);
  }
  auto before = region.free.lower_bound(offset);
  if (before != region.free.begin() && (--before)->first + before->second == offset)
    before->second += room;
  else
    region.free[offset] = room;
}

bool is_pinned(const void* memory_, size_t bytes = 1) {
  const auto* at = static_cast<const char*>(memory_);
  const auto& all = memory().pinned;
  auto found = all.upper_bound(at);
  return found != all.begin() && (--found, at + bytes <= found->first + found->second);
}

}  // namespace

size_t total_memory() {
  static const size_t bytes = [] {
    const char* text = std::getenv("CANDELABRA_EMULATION_MEMORY");
    return (text ? std::strtoull(text, nullptr, 10) : 4096) << 20;
  }();
  return bytes;
}
bool take_budget(int device, size_t bytes) {
  size_t& used = memory().used[device];
  if (bytes > total_memory() || used + bytes > total_memory()) return false;
  used += bytes;
  return true;
}
void give_budget(int device, size_t bytes) {
  memory().used[device] -= bytes;
}
void note_allocation(const Allocation& allocation) {
  memory().live[allocation.base] = allocation;
}
void forget_allocation(const void* base) {
  memory().live.erase(static_cast<const char*>(base));
}

const Allocation* allocation_of(const void* address, size_t bytes) {
  const auto* at = static_cast<const char*>(address);
  const auto& all = memory().live;
  auto found = all.upper_bound(at);
  if (found == all.begin()) return nullptr;
  --found;
  // The allocations of expandable segments are adjacent.
  for (const char* end = at + bytes; at < end;) {
    if (found == all.end() || at < found->first || at >= found->first + found->second.bytes) return nullptr;
    at = found->first + found->second.bytes;
    if (at >= end) break;
    ++found;
  }
  found = --memory().live.upper_bound(static_cast<const char*>(address));
  return &found->second;
}

std::string describe_address(const void* address) {
  constexpr long long near = 65536;
  const auto* at = static_cast<const char*>(address);
  std::string text;
  long long least = near;
  // The allocation that contains the address, or the nearest one.
  const auto look = [&](const auto& all, const auto& bytes_of, const char* what) {
    const auto after = all.upper_bound(at);
    const auto tell = [&](const auto& each) {
      const long long offset = at - each.first, size = static_cast<long long>(bytes_of(each.second));
      const long long distance = offset < 0 ? -offset : std::max(0ll, offset - size + 1);
      if (distance >= least) return;
      least = distance;
      char words[200];
      std::snprintf(words, sizeof words, "address %p, byte %lld of %s of %lld bytes", address, offset, what, size);
      text = words;
    };
    if (after != all.end()) tell(*after);
    if (after != all.begin()) tell(*std::prev(after));
  };
  look(memory().live, [](const Allocation& each) { return each.bytes; }, "an allocation");
  const Allocation* found = allocation_of(address);
  if (found && found->device != running_device()) text += " of device " + std::to_string(found->device);
  look(memory().graves, [](size_t each) { return each; }, "a freed allocation");
  if (!text.empty()) return text;
  char words[100];
  std::snprintf(words, sizeof words, "address %p, which is no device memory", address);
  return words;
}

DeviceAccess::DeviceAccess() {
  if (guard() != Guard::Host || memory().access++) return;
  for (const Region& region : memory().regions)
    if (region.base) mprotect(region.base, total_memory(), PROT_READ | PROT_WRITE);
}
DeviceAccess::~DeviceAccess() {
  if (guard() != Guard::Host || --memory().access) return;
  for (const Region& region : memory().regions)
    if (region.base) mprotect(region.base, total_memory(), PROT_NONE);
}

KernelAccess::KernelAccess(int device) : device_(device) {
  if (guard() != Guard::Host) return;
  for (int other = 0; other < device_count; ++other)
    if (char* base = memory().regions[other].base; base && other != device_ && !is_peer(device_, other))
      mprotect(base, total_memory(), PROT_NONE);
}
KernelAccess::~KernelAccess() {
  if (guard() != Guard::Host) return;
  for (int other = 0; other < device_count; ++other)
    if (char* base = memory().regions[other].base; base && other != device_)
      mprotect(base, total_memory(), PROT_READ | PROT_WRITE);
}

}  // namespace emulation

using namespace emulation;

extern "C" {

cudaError_t cudaMalloc(void** result, size_t bytes) {
  const Lock lock(machine_mutex());
  *result = nullptr;
  if (disturbs_capture()) return failed(cudaErrorStreamCaptureUnsupported);
  if (bytes == 0) return cudaSuccess;
  *result = allocate(current_device(), bytes);
  return *result ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void* address) {
  const Lock lock(machine_mutex());
  if (disturbs_capture()) return failed(cudaErrorStreamCaptureUnsupported);
  if (!address) return cudaSuccess;
  const auto found = memory().live.find(static_cast<char*>(address));
  if (found == memory().live.end() || found->second.opened) return failed(cudaErrorInvalidValue);
  const Allocation gone = found->second;
  const cudaError_t waited = wait_for_device(gone.device);
  memory().live.erase(found);
  release(gone);
  return waited;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  const Lock lock(machine_mutex());
  *total = total_memory();
  *free_bytes = total_memory() - memory().used[current_device()];
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** result, size_t bytes, unsigned) {
  const Lock lock(machine_mutex());
  *result = nullptr;
  if (disturbs_capture()) return failed(cudaErrorStreamCaptureUnsupported);
  void* found = std::aligned_alloc(4096, round_up(std::max<size_t>(bytes, 1), 4096));
  if (!found) return failed(cudaErrorMemoryAllocation);
  memory().pinned[static_cast<char*>(found)] = bytes;
  *result = found;
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** result, size_t bytes) {
  return cudaHostAlloc(result, bytes, 0);
}
cudaError_t cudaFreeHost(void* address) {
  const Lock lock(machine_mutex());
  if (!address) return cudaSuccess;
  for (int device = 0; device < device_count; ++device) wait_for_device(device);
  if (!memory().pinned.erase(static_cast<char*>(address))) return failed(cudaErrorInvalidValue);
  std::free(address);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* result, const void* address) {
  const Lock lock(machine_mutex());
  *result = {};
  if (const Allocation* found = allocation_of(address)) {
    result->type = cudaMemoryTypeDevice;
    result->device = found->device;
    result->devicePointer = const_cast<void*>(address);
  } else if (is_pinned(address)) {
    result->type = cudaMemoryTypeHost;
    result->hostPointer = result->devicePointer = const_cast<void*>(address);
  } else {
    result->type = cudaMemoryTypeUnregistered;
    result->device = -2;
    result->hostPointer = const_cast<void*>(address);
  }
  return cudaSuccess;
}

// ---- copies

static cudaError_t copy(void* to, const void* from, size_t bytes, bool to_device, bool from_device,
                        cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if ((allocation_of(to, bytes) != nullptr) != to_device || (allocation_of(from, bytes) != nullptr) != from_device)
    return failed(cudaErrorInvalidValue, "emulation: a copy of " + std::to_string(bytes) + " bytes from " +
                                             (from_device ? describe_address(from) : "the host") + " to " +
                                             (to_device ? describe_address(to) : "the host") +
                                             ": the memory is not of that kind, or not that long");
  if (to_device && from_device) {
    const auto *a = static_cast<const char*>(to), *b = static_cast<const char*>(from);
    if (a != b && a < b + bytes && b < a + bytes)
      return failed(cudaErrorInvalidValue, "emulation: a copy between ranges that overlap");
  }
  cudaStreamCaptureStatus status{};
  cudaStreamIsCapturing(stream, &status);
  if (!from_device && !is_pinned(from, bytes)) {
    if (status != cudaStreamCaptureStatusNone) return failed(cudaErrorStreamCaptureUnsupported);
    // Memory that is not pinned is copied immediately.
    const std::shared_ptr<char[]> staged(static_cast<char*>(std::malloc(bytes)), std::free);
    std::memcpy(staged.get(), from, bytes);
    return queue(stream, [=] { std::memcpy(to, staged.get(), bytes); });
  }
  const cudaError_t queued = queue(stream, [=] { std::memcpy(to, from, bytes); });
  if (!to_device && !is_pinned(to, bytes) && queued == cudaSuccess) return cudaStreamSynchronize(stream);
  return queued;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const Lock lock(machine_mutex());
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault) {
    to_device = allocation_of(to) != nullptr;
    from_device = allocation_of(from) != nullptr;
  }
  return copy(to, from, bytes, to_device, from_device, stream);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const Lock lock(machine_mutex());
  const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  const Lock lock(machine_mutex());
  const Allocation *target = allocation_of(to, bytes), *source = allocation_of(from, bytes);
  if (bytes && (!target || !source || target->device != to_device || source->device != from_device))
    return failed(cudaErrorInvalidValue);
  return copy(to, from, bytes, true, true, stream);
}
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t stream) {
  const Lock lock(machine_mutex());
  if (bytes == 0) return cudaSuccess;
  if (!allocation_of(at, bytes))
    return failed(cudaErrorInvalidValue, "emulation: " + describe_address(at) + " is filled beyond its end");
  return queue(stream, [=] { std::memset(at, value, bytes); });
}

// ---- memory of other processes

struct SharedHandle {
  int process, file, device;
  size_t offset, bytes;
};
static_assert(sizeof(SharedHandle) <= sizeof(cudaIpcMemHandle_t));

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* address) {
  const Lock lock(machine_mutex());
  const Allocation* found = allocation_of(address);
  if (!found || found->opened || guard() == Guard::After || guard() == Guard::Before)
    return failed(cudaErrorInvalidValue);
  const Region& region = memory().regions[found->device];
  if (found->base < region.base || found->base >= region.base + total_memory()) return failed(cudaErrorInvalidValue);
  const SharedHandle made{getpid(), region.file, found->device, static_cast<size_t>(found->base - region.base),
                          found->bytes};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &made, sizeof made);
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void** result, cudaIpcMemHandle_t handle, unsigned) {
  const Lock lock(machine_mutex());
  SharedHandle given;
  std::memcpy(&given, &handle, sizeof given);
  if (given.process == getpid()) return failed(cudaErrorDeviceUninitialized);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", given.process, given.file);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    return failed(cudaErrorMapBufferObjectFailed, std::string("emulation: ") + path + ": " + std::strerror(errno));
  const size_t page = page_bytes(), first = given.offset / page * page,
               room = round_up(given.offset + given.bytes, page) - first;
  void* base = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(first));
  close(file);
  if (base == MAP_FAILED) return failed(cudaErrorMapBufferObjectFailed);
  char* at = static_cast<char*>(base) + (given.offset - first);
  note_allocation({at, given.bytes, given.device, true});
  *result = at;
  return cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void* address) {
  const Lock lock(machine_mutex());
  const auto found = memory().live.find(static_cast<char*>(address));
  if (found == memory().live.end() || !found->second.opened) return failed(cudaErrorInvalidValue);
  const Allocation gone = found->second;
  wait_for_device(gone.device);
  memory().live.erase(found);
  const size_t page = page_bytes(), before = reinterpret_cast<uintptr_t>(gone.base) % page;
  munmap(gone.base - before, round_up(before + gone.bytes, page));
  return cudaSuccess;
}

}  // extern "C"
