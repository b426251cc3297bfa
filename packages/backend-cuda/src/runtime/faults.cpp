#include "runtime/faults.hpp"

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/fault_messages.hpp"

namespace candelabra::cuda {

namespace {

constexpr int most_devices = 128;
std::atomic<Fault*> faults[most_devices];
std::mutex mutex;

std::atomic<bool> has_host_fault[most_devices];
std::unordered_map<int, std::string>& host_texts() {
  static auto* made = new std::unordered_map<int, std::string>();
  return *made;
}

struct Operators {
  std::unordered_map<std::string_view, int32_t> numbers;  // keys live as long as the core
  std::vector<const char*> names;
  std::vector<std::string> texts;
};
Operators& operators() {
  static auto* made = new Operators();
  return *made;
}

void replace(std::string& text, const char* place, int64_t value) {
  if (const size_t at = text.find(place); at != std::string::npos)
    text.replace(at, std::strlen(place), std::to_string(value));
}

Fault* fault_of(int device) {
  Fault* found = faults[device].load(std::memory_order_acquire);
  if (found) return found;
  const std::lock_guard lock(mutex);
  found = faults[device].load(std::memory_order_relaxed);
  if (found) return found;
  void* memory = nullptr;
  // The first use may be during a capture.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  const cudaError_t error = cudaHostAlloc(&memory, sizeof(Fault), cudaHostAllocMapped | cudaHostAllocPortable);
  cudaThreadExchangeStreamCaptureMode(&mode);
  check(error, "cudaHostAlloc");
  std::memset(memory, 0, sizeof(Fault));
  found = static_cast<Fault*>(memory);
  faults[device].store(found, std::memory_order_release);
  return found;
}

}  // namespace

FaultSink fault_sink(const Call& call, const char* text) {
  Fault* fault = fault_of(call.device());
  const std::lock_guard lock(mutex);
  Operators& all = operators();
  auto [found, is_new] = all.numbers.try_emplace(call.name(), static_cast<int32_t>(all.names.size()));
  if (is_new) {
    all.names.push_back(call.raw()->operator_name);
    all.texts.emplace_back();
  }
  if (text) all.texts[static_cast<size_t>(found->second)] = text;
  return {fault, found->second};
}

FaultSink message_sink(const Call& call, const char* title, const char* text) {
  Fault* fault = fault_of(call.device());
  const std::lock_guard lock(mutex);
  Operators& all = operators();
  auto [found, is_new] = all.numbers.try_emplace(text, static_cast<int32_t>(all.names.size()));
  if (is_new) {
    all.names.push_back(title);
    all.texts.emplace_back(text);
  }
  return {fault, found->second};
}

void report_failure(int device, const std::string& text) {
  const std::lock_guard lock(mutex);
  host_texts()[device] = text;
  has_host_fault[device].store(true, std::memory_order_release);
}

void raise_fault_of(int device) {
  if (has_host_fault[device].load(std::memory_order_acquire)) [[unlikely]] {
    const std::lock_guard lock(mutex);
    if (has_host_fault[device].exchange(false)) throw failure(CB_RUNTIME_ERROR, "%s", host_texts()[device].c_str());
  }
  Fault* fault = faults[device].load(std::memory_order_acquire);
  if (!fault || std::atomic_ref(fault->state).load(std::memory_order_acquire) != 2) return;
  const Fault told = *fault;
  std::atomic_ref(fault->state).store(0, std::memory_order_release);
  std::string name, text;
  {
    const std::lock_guard lock(mutex);
    const auto number = static_cast<size_t>(told.operator_number);
    if (number < operators().names.size()) {
      name = operators().names[number];
      text = operators().texts[number];
    }
  }
  const auto index = static_cast<long long>(told.index), size = static_cast<long long>(told.size);
  switch (told.kind) {
    case FaultKind::IndexError:
      throw failure(CB_INDEX_ERROR, "%s: index %lld is out of bounds for dimension %d with size %lld", name.c_str(),
                    index, told.dim, size);
    case FaultKind::RuntimeIndex:
      throw failure(CB_RUNTIME_ERROR, "%s: index %lld is out of bounds for dimension %d with size %lld", name.c_str(),
                    index, told.dim, size);
    case FaultKind::TargetRange:
      throw failure(CB_INDEX_ERROR, "%s: Target %lld is out of bounds.", name.c_str(), index);
    case FaultKind::NotPositive:
      throw failure(CB_RUNTIME_ERROR, "%s: probability tensor contains either `inf`, `nan` or element < 0",
                    name.c_str());
    default:
      replace(text, "{index}", told.index);
      replace(text, "{size}", told.size);
      throw failure(CB_RUNTIME_ERROR, "%s: %s", name.c_str(), text.c_str());
  }
}

}  // namespace candelabra::cuda
