// What the fuzz targets call of sources that no package exports: the checks of a backend's tables,
// and the runner's reader of .npy files.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "candelabra/accelerator.h"
#include "device/backend_table.hpp"
#include "failure.hpp"
#include "npy_files.hpp"
#include "python/errors.hpp"

namespace candelabra {

PyObject* backend_error = nullptr;
PyObject* backend_version_error = nullptr;

}  // namespace candelabra

namespace candelabra::runner {

// For messages; program.cpp has it, which needs the rest of the runner.
std::string dtype_name(int32_t dtype) {
  return std::to_string(dtype);
}

}  // namespace candelabra::runner

namespace {

thread_local std::string message;

// A copy at an address of the right alignment, with nothing behind it that may be read.
std::unique_ptr<uint64_t[]> copy_of(const uint8_t* data, size_t size) {
  auto copy = std::make_unique<uint64_t[]>(size / 8 + 1);
  std::memcpy(copy.get(), data, size);
  return copy;
}

}  // namespace

extern "C" {

// Each returns whether the input was accepted. last_message() has the error of the others.
const char* last_message() {
  return message.c_str();
}

// A table whose pointers are null where their bytes are zero, and else point to something.
int32_t try_backend_table(const uint8_t* data, size_t size, const char* device_type) {
  static char something[64];
  static const cb_kernel_entry kernels[] = {{.operator_name = "neg", .kernel = reinterpret_cast<cb_kernel>(something)},
                                            {.operator_name = "abs", .kernel = reinterpret_cast<cb_kernel>(something)}};
  auto copy = copy_of(data, size);
  auto* table = reinterpret_cast<cb_backend*>(copy.get());
  // The core believes that a table has the size that it says; only what is there can be read.
  const size_t head = offsetof(cb_backend, device_type) + sizeof(char*);
  if (size < head || table->size > size) return 2;
  table->device_type = table->device_type ? device_type : nullptr;
  if (size >= offsetof(cb_backend, initialize) && table->kernels) {
    table->kernels = kernels;
    // The same for the number of kernels and the size of one.
    if (table->kernel_count > std::size(kernels) && table->kernel_count <= 100'000) table->kernel_count = 2;
    if (table->kernel_count && table->kernel_entry_size > sizeof(cb_kernel_entry) && table->kernel_entry_size <= 4096)
      table->kernel_entry_size = sizeof(cb_kernel_entry);
  }
  try {
    candelabra::check_table(device_type, "fuzz 1.0", table);
    const cb_backend whole = candelabra::completed(*table);
    candelabra::kernel_entries(whole);
    return 1;
  } catch (const candelabra::Error& error) {
    message = error.message;
    return 0;
  }
}

int32_t try_accelerator_table(const uint8_t* data, size_t size, uint64_t capabilities) {
  auto copy = copy_of(data, size);
  auto* table = reinterpret_cast<cb_accelerator*>(copy.get());
  if (size < sizeof(uint64_t) || table->size > size) return 2;
  if (size >= offsetof(cb_accelerator, collectives) + sizeof table->collectives && table->collectives) {
    static cb_collectives collectives{};
    collectives.size = capabilities % 512;
    table->collectives = &collectives;
  }
  try {
    candelabra::check_accelerator_table("fuzz", "fuzz 1.0", capabilities, table);
    return 1;
  } catch (const candelabra::Error& error) {
    message = error.message;
    return 0;
  }
}

int32_t try_npy(const uint8_t* data, size_t size) {
  const int file = memfd_create("npy", MFD_CLOEXEC);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) return -1;
  int32_t result = 1;
  try {
    const candelabra::runner::Array array = candelabra::runner::read_npy("/proc/self/fd/" + std::to_string(file));
    std::vector<std::byte> bytes(array.bytes);
    if (array.bytes) std::memcpy(bytes.data(), array.data.get(), array.bytes);
  } catch (const candelabra::runner::Failure& failure) {
    message = failure.what();
    result = 0;
  }
  close(file);
  return result;
}

}  // extern "C"
