#include "vendor/libraries.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <vector>

#include "candelabra/backend.h"

namespace candelabra::cuda {

namespace {

std::mutex mutex;
std::string& given_folders() {
  static auto* folders = new std::string();
  return *folders;
}
std::vector<std::string>& opened() {
  static auto* files = new std::vector<std::string>();
  return *files;
}

void split(const std::string& text, std::vector<std::filesystem::path>& into) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(':', at), text.size());
    if (end > at) into.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
}

std::vector<std::filesystem::path> folders() {
  std::vector<std::filesystem::path> result;
  if (const char* chosen = std::getenv("CANDELABRA_CUDA_LIBRARIES")) split(chosen, result);
  split(given_folders(), result);
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&set_library_folders), &own) && own.dli_fname) {
    // …/site-packages/candelabra_backend_cuda/lib/libcandelabra_cuda.so
    std::error_code error;
    const auto nvidia =
        std::filesystem::absolute(own.dli_fname, error).parent_path().parent_path().parent_path() / "nvidia";
    for (const char* part : {"cu13", "cudnn", "nccl"}) result.push_back(nvidia / part / "lib");
  }
  return result;
}

}  // namespace

void set_library_folders(const char* text) {
  const std::lock_guard lock(mutex);
  given_folders() = text ? text : "";
}

Library::Library(const char* title, const char* file, const char* distribution)
    : title_(title), file_(file), handle_(nullptr) {
  const std::lock_guard lock(mutex);
  std::string reason;
  for (const std::filesystem::path& folder : folders()) {
    std::error_code error;
    const std::filesystem::path path = folder / file;
    if (!std::filesystem::exists(path, error)) continue;
    // RTLD_GLOBAL, because the parts of cuDNN and cuSOLVER find each other by name.
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle_) {
      opened().push_back(path.string());
      return;
    }
    reason = dlerror();
  }
  handle_ = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
  if (!handle_) {
    if (reason.empty()) reason = dlerror();
    throw failure(CB_RUNTIME_ERROR, "%s (%s) could not be loaded: %s; pip install %s", title, file, reason.c_str(),
                  distribution);
  }
  opened().emplace_back(file);
}

void* Library::find(const char* name) const {
  return dlsym(handle_, name);
}

void* Library::address(const char* name) const {
  void* found = find(name);
  if (!found) throw failure(CB_RUNTIME_ERROR, "%s (%s) has no function %s: it is too old", title_, file_, name);
  return found;
}

std::string loaded_libraries() {
  const std::lock_guard lock(mutex);
  std::string text;
  for (const std::string& file : opened()) text += (text.empty() ? "" : ", ") + file;
  return text;
}

}  // namespace candelabra::cuda
