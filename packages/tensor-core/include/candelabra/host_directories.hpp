// What a host gives a backend from the environment: the directories in which it keeps compiled
// programs and measured choices, and its options. The core and candelabra-runner share them, so
// that a kernel which one has chosen by measuring is that of the other, with the same bits.
#ifndef CANDELABRA_HOST_DIRECTORIES_HPP
#define CANDELABRA_HOST_DIRECTORIES_HPP

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "candelabra/backend.h"

namespace candelabra::host {

// Copies a text to a buffer of the backend; returns enum cb_status.
inline int32_t copy_text(std::string_view text, char* buffer, uint64_t capacity) {
  if (!buffer || text.size() >= capacity) return CB_VALUE_ERROR;
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
  return CB_OK;
}

// A text as the name of a file; "none" for an empty one.
inline std::string file_name_of(const char* text) {
  std::string name = text && *text ? text : "none";
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') c = '_';
  if (name == "." || name == "..") name = "_";
  return name.substr(0, 200);
}

// Where the directories of all backends are; empty if the environment names no place.
inline std::filesystem::path cache_root() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::filesystem::path(value ? value : "");
  };
  if (const auto root = variable("CANDELABRA_CACHE_DIR"); !root.empty()) return root;
  if (const auto root = variable("XDG_CACHE_HOME"); root.is_absolute()) return root / "candelabra";
  if (const auto home = variable("HOME"); home.is_absolute()) return home / ".cache" / "candelabra";
  return {};
}

// cb_host.cache_directory: makes the directory of this version of a backend, and writes its path.
inline int32_t cache_directory(const cb_backend* backend, const char* key, char* path, uint64_t capacity) {
  try {
    const std::filesystem::path root = cache_root();
    if (root.empty() || !backend) return CB_RUNTIME_ERROR;
    const std::string owner = file_name_of(backend->device_type) + "-" + file_name_of(backend->version);
    const std::filesystem::path directory = std::filesystem::absolute(root) / owner / file_name_of(key);
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (!std::filesystem::is_directory(directory)) return CB_RUNTIME_ERROR;
    return copy_text(directory.string(), path, capacity);
  } catch (...) {
    return CB_RUNTIME_ERROR;
  }
}

// cb_host.option, from the variable CANDELABRA_TYPE_NAME.
inline int32_t option_of_environment(const char* device_type, const char* name, char* value, uint64_t capacity) {
  if (!device_type || !name) return CB_VALUE_ERROR;
  try {
    std::string key = std::string("CANDELABRA_") + device_type + "_" + name;
    for (char& c : key) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const char* const found = std::getenv(key.c_str());
    return found ? copy_text(found, value, capacity) : CB_NOT_IMPLEMENTED;
  } catch (...) {
    return CB_RUNTIME_ERROR;
  }
}

}  // namespace candelabra::host

#endif  // CANDELABRA_HOST_DIRECTORIES_HPP
