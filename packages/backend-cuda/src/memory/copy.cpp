#include "memory/copy.hpp"

#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "memory/pinned.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/faults.hpp"
#include "runtime/sync_debug.hpp"

namespace candelabra::cuda {

namespace {

void refuse_capture(cudaStream_t stream) {
  if (is_capturing(stream))
    throw failure(CB_RUNTIME_ERROR,
                  "waiting for a copy between host and device cannot be captured in a graph; use pinned memory and "
                  "non_blocking=True");
}

// Once per pair of devices. Kernels may then read the other device's memory, too.
void enable_peer(int device, int peer) {
  static std::mutex mutex;
  static auto* enabled = new std::set<std::pair<int, int>>();
  const std::lock_guard lock(mutex);
  if (!enabled->emplace(device, peer).second) return;
  const DeviceGuard guard(device);
  const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();
  else
    check(error, "making the memory of another device accessible");
}

}  // namespace

void copy_from_host(int device, void* to, const void* from, size_t bytes, cudaStream_t stream) {
  const DeviceGuard guard(device);
  refuse_capture(stream);
  about_to_wait();
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "copying to the device");
  check(cudaStreamSynchronize(stream), "copying to the device");
  raise_fault_of(device);
}

void copy_to_host(int device, void* to, const void* from, size_t bytes, cudaStream_t stream) {
  const DeviceGuard guard(device);
  refuse_capture(stream);
  about_to_wait();
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "copying from the device");
  check(cudaStreamSynchronize(stream), "copying from the device");
  raise_fault_of(device);
}

void copy_from_host_async(int device, void* to, const void* from, size_t bytes, cudaStream_t stream) {
  if (!is_pinned(from)) return copy_from_host(device, to, from, bytes, stream);
  const DeviceGuard guard(device);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "copying to the device");
  record_pinned(const_cast<void*>(from), device, stream);
}

void copy_to_host_async(int device, void* to, const void* from, size_t bytes, cudaStream_t stream) {
  if (!is_pinned(to)) return copy_to_host(device, to, from, bytes, stream);
  const DeviceGuard guard(device);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "copying from the device");
  record_pinned(to, device, stream);
}

void copy_within(int device, void* to, const void* from, size_t bytes, cudaStream_t stream) {
  const DeviceGuard guard(device);
  const auto *a = static_cast<const char*>(to), *b = static_cast<const char*>(from);
  if (a < b + bytes && b < a + bytes && a != b) {
    // cudaMemcpy does not support overlapping ranges. They are copied in steps of their distance,
    // so that no byte is overwritten before it is read.
    const size_t step = static_cast<size_t>(a < b ? b - a : a - b);
    for (size_t done = 0; done < bytes; done += step) {
      const size_t n = std::min(step, bytes - done), at = a < b ? done : bytes - done - n;
      check(cudaMemcpyAsync(static_cast<char*>(to) + at, b + at, n, cudaMemcpyDeviceToDevice, stream),
            "copying on the device");
    }
    return;
  }
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copying on the device");
}

bool can_access_peer(int device, int peer) {
  if (device == peer) return true;
  int result = 0;
  check(cudaDeviceCanAccessPeer(&result, device, peer), "asking whether devices reach each other");
  return result != 0;
}

void copy_peer(int to_device, void* to, int from_device, const void* from, size_t bytes, cudaStream_t stream) {
  if (can_access_peer(from_device, to_device)) enable_peer(from_device, to_device);
  const DeviceGuard guard(from_device);
  check(cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream), "copying between devices");
}

}  // namespace candelabra::cuda
