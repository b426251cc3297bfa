#include "gemm/choice_file.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "simd/processor.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
namespace {

std::atomic<const cb_host*> core{nullptr};
std::atomic<const cb_backend*> own_table{nullptr};

// Names all that the times depend on.
std::string key() {
  static const std::string processor = processor_name();
  std::string made = "gemm-" + processor + "-" + std::to_string(thread_count()) + "-threads";
  for (const char* name : {"CANDELABRA_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA"})
    if (const char* value = std::getenv(name); value && *value) made += std::string("-") + value;
  return made;
}

// The file of a choice, or an empty path where there is no place for it.
std::filesystem::path file_of(const std::string& name) {
  const char* wanted = std::getenv("CANDELABRA_CPU_GEMM_CACHE");
  const cb_host* const host = core;
  if ((wanted && std::strcmp(wanted, "0") == 0) || !host) return {};
  std::array<char, 4096> directory{};
  if (host->cache_directory(own_table, key().c_str(), directory.data(), directory.size()) != CB_OK) return {};
  return std::filesystem::path(directory.data()) / name;
}

// The first word of a file. Longer ones are none of ours.
std::string word_in(const std::filesystem::path& file) {
  std::array<char, 32> text{};
  std::ifstream stream(file);
  stream.getline(text.data(), text.size());
  return stream ? text.data() : "";
}

}  // namespace

void set_choice_host(const cb_host* host, const cb_backend* table) {
  own_table = table;
  // A smaller host ends before cache_directory.
  const bool has_directory = host && host->size >= offsetof(cb_host, cache_directory) + sizeof(host->cache_directory);
  core = has_directory ? host : nullptr;
}

std::string stored_choice(const std::string& name) {
  const std::filesystem::path file = file_of(name);
  return file.empty() ? "" : word_in(file);
}

std::string store_choice(const std::string& name, const std::string& chosen, bool replaces) {
  static std::atomic<int> number{0};
  const std::filesystem::path file = file_of(name);
  if (file.empty()) return chosen;
  std::filesystem::path draft = file;
  draft += "." + std::to_string(::getpid()) + "." + std::to_string(number++);
  std::error_code error;
  if (!(std::ofstream(draft) << chosen << '\n')) {
    std::filesystem::remove(draft, error);
    return chosen;
  }
  // A link fails if the name is taken, unlike a rename: the first process wins.
  if (!replaces) std::filesystem::create_hard_link(draft, file, error);
  const bool is_taken = error == std::errc::file_exists;
  std::error_code ignored;
  // Without links in the file system, the last process wins.
  if (replaces || (error && !is_taken)) std::filesystem::rename(draft, file, ignored);
  std::filesystem::remove(draft, ignored);
  return is_taken ? word_in(file) : chosen;
}

}  // namespace candelabra::cpu
