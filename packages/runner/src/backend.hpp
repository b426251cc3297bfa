// A backend's library, and the services of candelabra/backend.h that its kernels get.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "candelabra/backend.h"

namespace candelabra::runner {

class Backend {
  struct Opened {};

 public:
  Backend(Opened, const cb_backend* table, std::string path) : table_(table), path_(std::move(path)) {}
  // The backend of a device type. An empty path: its library is searched for. A library is loaded
  // once and stays. Throws Failure.
  static const Backend& load(const std::string& device_type, const std::string& path);

  const cb_backend& table() const { return *table_; }
  const std::string& path() const { return path_; }
  // Null if there is none.
  const cb_kernel_entry* kernel(const std::string& operator_name) const;
  // Throws Failure where the backend cannot.
  void set_thread_count(int32_t count) const;
  // Runs a kernel. Throws Failure with its message.
  void call(cb_kernel kernel, cb_call& call) const;

 private:
  static std::unique_ptr<Backend> open(const std::string& file);

  const cb_backend* table_;
  std::string path_;
};

// Host memory of a backend.
class Memory {
 public:
  Memory() = default;
  Memory(const Backend& backend, uint64_t bytes);  // throws Failure
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();
  std::byte* address() const { return static_cast<std::byte*>(allocation_.address); }
  uint64_t bytes() const { return allocation_.bytes; }

 private:
  const Backend* backend_ = nullptr;
  cb_allocation allocation_{};
};

}  // namespace candelabra::runner
