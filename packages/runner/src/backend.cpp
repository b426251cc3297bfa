#include "backend.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "host_services.hpp"

namespace candelabra::runner {

namespace {

namespace fs = std::filesystem;

// The file that this code was linked into: the shared library, or the executable.
fs::path own_file() {
  Dl_info info{};
  if (!::dladdr(reinterpret_cast<const void*>(&own_file), &info) || !info.dli_fname) return {};
  std::error_code error;
  // An executable that was found on the PATH is called by its name alone.
  const fs::path named = fs::canonical(info.dli_fname, error);
  return error ? fs::read_symlink("/proc/self/exe", error) : named;
}

// Where the library of an installed backend may be, seen from the own file.
std::vector<fs::path> candidates(const std::string& device_type) {
  const fs::path folder = own_file().parent_path();
  const std::string name = "libcandelabra_" + device_type + ".so";
  const fs::path in_package = fs::path("candelabra_backend_" + device_type) / "lib" / name;
  // site-packages/candelabra_runner/lib/libcandelabra_run.so
  std::vector<fs::path> found = {folder / name, folder.parent_path().parent_path() / in_package};
  // PREFIX/bin/candelabra-run
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder.parent_path() / "lib", error))
    if (entry.path().filename().string().starts_with("python3"))
      found.push_back(entry.path() / "site-packages" / in_package);
  return found;
}

fs::path find_library(const std::string& device_type) {
  std::string tried;
  for (const fs::path& path : candidates(device_type)) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) return path;
    tried += (tried.empty() ? "" : ", ") + path.string();
  }
  fail(CR_BACKEND_ERROR, "the program runs on the device ", device_type,
       ", whose backend was not found: pip install candelabra-backend-", device_type,
       ", or give the path of libcandelabra_", device_type, ".so (looked for ", tried, ")");
}

std::string message_of(const cb_backend& table) {
  const char* const message = table.last_error ? table.last_error() : nullptr;
  return message && *message ? message : "no reason given";
}

std::string last_loader_error() {
  const char* const message = ::dlerror();
  return message ? message : "unknown error";
}

}  // namespace

std::unique_ptr<Backend> Backend::open(const std::string& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(CR_BACKEND_ERROR, "the backend cannot be loaded: ", last_loader_error());
  const auto entry = reinterpret_cast<cb_backend_entry>(::dlsym(library, "candelabra_backend"));
  if (!entry) fail(CR_BACKEND_ERROR, file, " is no backend: it does not export candelabra_backend");
  const cb_backend* const table = entry(&host_services());
  if (!table) fail(CR_BACKEND_ERROR, file, " gives no table of a backend");
  if (table->size < offsetof(cb_backend, extension) || table->abi_major != CB_ABI_MAJOR)
    fail(CR_BACKEND_ERROR, file, " is of version ", table->abi_major, ".", table->abi_minor,
         " of backend.h, and this runner reads ", CB_ABI_MAJOR, ".", CB_ABI_MINOR);
  if (!(table->capabilities & CB_CAP_HOST_MEMORY) || (table->capabilities & CB_CAP_ASYNCHRONOUS))
    fail(CR_BACKEND_ERROR, file, ": the runner uses backends whose memory is host memory, and the device ",
         table->device_type, " has memory of its own");
  if (!table->kernels || table->kernel_entry_size < sizeof(cb_kernel_entry) || !table->allocate || !table->deallocate)
    fail(CR_BACKEND_ERROR, file, ": its table has no kernels or no memory");
  if (table->initialize && table->initialize() != CB_OK)
    fail(CR_BACKEND_ERROR, file, " cannot be initialized: ", message_of(*table));
  return std::make_unique<Backend>(Opened{}, table, file);
}

const Backend& Backend::load(const std::string& device_type, const std::string& path) {
  // The name becomes a part of a path.
  const bool is_name =
      !device_type.empty() && device_type.size() <= 32 &&
      std::ranges::all_of(device_type, [](unsigned char c) { return std::islower(c) || std::isdigit(c); });
  require(is_name, "the device of the program has no name");
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Backend>> loaded;
  // One library has one host, whatever its path is called.
  std::error_code error;
  const std::string wanted =
      fs::weakly_canonical(path.empty() ? find_library(device_type) : fs::path(path), error).string();
  if (error) fail(CR_BACKEND_ERROR, path, ": ", error.message());
  const std::lock_guard locked(mutex);
  std::unique_ptr<Backend>& backend = loaded[wanted];
  if (!backend) backend = open(wanted);
  const std::string type = backend->table().device_type ? backend->table().device_type : "";
  if (type != device_type)
    fail(CR_BACKEND_ERROR, "the program is for the device ", device_type, ", and ", backend->path(),
         " is the backend of ", type);
  return *backend;
}

const cb_kernel_entry* Backend::kernel(const std::string& operator_name) const {
  const auto* const begin = reinterpret_cast<const std::byte*>(table_->kernels);
  for (uint64_t k = 0; k < table_->kernel_count; ++k) {
    const auto* const entry = reinterpret_cast<const cb_kernel_entry*>(begin + k * table_->kernel_entry_size);
    if (operator_name == entry->operator_name) return entry;
  }
  return nullptr;
}

void Backend::set_thread_count(int32_t count) const {
  if (!table_->set_thread_count) fail(CR_BACKEND_ERROR, "the backend has no number of threads to set");
  if (table_->set_thread_count(count) != CB_OK) fail(CR_BACKEND_ERROR, message_of(*table_));
}

void Backend::call(cb_kernel kernel, cb_call& call) const {
  const int32_t status = kernel(&call);
  if (status == CB_OK) return;
  call.error[call.error_capacity - 1] = 0;
  const char* const reason = call.error[0] ? call.error
                             : status == CB_NOT_IMPLEMENTED
                                 ? "this backend has no kernel for these arguments; save the program again"
                                 : "the kernel failed";
  fail(status == CB_OUT_OF_MEMORY ? CR_OUT_OF_MEMORY : CR_KERNEL_ERROR, call.operator_name, "(): ", reason);
}

Memory::Memory(const Backend& backend, uint64_t bytes) : backend_(&backend) {
  allocation_.size = sizeof allocation_;
  allocation_.bytes = std::max<uint64_t>(bytes, 1);
  allocation_.kind = CB_MEMORY_DEVICE;
  allocation_.host_visible = 1;
  if (backend.table().allocate(0, &allocation_) == CB_OK && allocation_.address) return;
  fail(CR_OUT_OF_MEMORY, "out of memory: ", bytes, " bytes");
}

Memory::Memory(Memory&& other) noexcept
    : backend_(std::exchange(other.backend_, nullptr)), allocation_(std::exchange(other.allocation_, {})) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(backend_, other.backend_);
  std::swap(allocation_, other.allocation_);
  return *this;
}

Memory::~Memory() {
  if (!backend_) return;
  void* const storage = allocation_.storage ? allocation_.storage : allocation_.address;
  backend_->table().deallocate(0, storage, allocation_.bytes);
}

}  // namespace candelabra::runner
