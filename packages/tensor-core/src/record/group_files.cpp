#include "record/group_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "candelabra/host_directories.hpp"

namespace candelabra {

namespace {

constexpr off_t largest_file = off_t{1} << 25;
// Beyond so many, the oldest is removed for each new one.
constexpr size_t most_files = 512;
constexpr int64_t line_bytes = 64;

class Hash {
 public:
  void add(const void* bytes, size_t count) {
    const auto* const begin = static_cast<const unsigned char*>(bytes);
    for (size_t i = 0; i < count; ++i) value_ = (value_ ^ begin[i]) * 1099511628211u;
  }
  void add(int64_t number) { add(&number, sizeof number); }
  void add(double number) { add(&number, sizeof number); }
  void add(const char* text) { add(text, std::strlen(text) + 1); }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 1469598103934665603u;
};

void add_tensor(Hash& hash, const cb_tensor& tensor) {
  hash.add(int64_t{tensor.dtype});
  // The values of numbers are not in it: most code serves all.
  if (tensor.flags & CB_TENSOR_NUMBER) return;
  hash.add(tensor.strides[0]);
  // By their memory, backends choose how results are stored.
  hash.add(static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(tensor.numel))));
  hash.add(static_cast<int64_t>(tensor.offset) % line_bytes);
}

void add_value(Hash& hash, const cb_value& value, const cb_graph& graph) {
  hash.add(int64_t{value.kind});
  switch (value.kind) {
    case CB_TENSOR:
      return hash.add(static_cast<int64_t>(value.as.tensor - graph.tensors));
    case CB_SCALAR:
      hash.add(int64_t{value.as.scalar->kind});
      hash.add(value.as.scalar->i);
      hash.add(value.as.scalar->re);
      return hash.add(value.as.scalar->im);
    case CB_INT:
      return hash.add(value.as.i);
    case CB_FLOAT:
      return hash.add(value.as.f);
    case CB_STRING:
      return hash.add(value.as.string);
    default:
      return;
  }
}

// The folder, which only this user can write to; empty if there is none.
std::filesystem::path private_folder(const cb_backend* backend) {
  const char* const wanted = std::getenv("CANDELABRA_COMPILE_CACHE");
  std::array<char, 4096> path{};
  if ((wanted && std::strcmp(wanted, "0") == 0) ||
      host::cache_directory(backend, "compiled", path.data(), path.size()) != CB_OK)
    return {};
  struct stat found{};
  if (::stat(path.data(), &found) != 0 || found.st_uid != ::geteuid()) return {};
  const bool is_private = (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (!is_private && ::chmod(path.data(), S_IRWXU) != 0) return {};
  return path.data();
}

class OpenFile {
 public:
  OpenFile(const std::filesystem::path& path, int flags)
      : number_(::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR)) {}
  ~OpenFile() {
    if (number_ >= 0) ::close(number_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

void remove_oldest(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::path oldest;
  std::filesystem::file_time_type since = std::filesystem::file_time_type::max();
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    ++count;
    const auto time = entry.last_write_time(error);
    if (error || time >= since) continue;
    since = time;
    oldest = entry.path();
  }
  if (count > most_files) std::filesystem::remove(oldest, error);
}

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(file, bytes.data(), bytes.size());
    if (done <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  return true;
}

}  // namespace

std::string file_name_of(const cb_graph& graph) {
  Hash hash;
  hash.add(int64_t{graph.flags});
  for (int k = 0; k < graph.tensor_count; ++k) add_tensor(hash, graph.tensors[k]);
  for (int k = 0; k < graph.node_count; ++k) {
    const cb_graph_node& node = graph.nodes[k];
    hash.add(node.operator_name);
    hash.add(int64_t{node.output});
    for (int i = 0; i < node.argument_count; ++i) add_value(hash, node.arguments[i], graph);
  }
  for (int k = 0; k < graph.output_count; ++k) hash.add(int64_t{graph.outputs[k]});
  std::array<char, 17> name{};
  std::snprintf(name.data(), name.size(), "%016llx", static_cast<unsigned long long>(hash.value()));
  return name.data();
}

std::vector<std::byte> read_saved(const cb_backend* backend, const std::string& name) {
  const std::filesystem::path folder = private_folder(backend);
  if (folder.empty()) return {};
  const OpenFile file(folder / name, O_RDONLY);
  struct stat found{};
  if (file.number() < 0 || ::fstat(file.number(), &found) != 0 || !S_ISREG(found.st_mode) ||
      found.st_uid != ::geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)) || found.st_size > largest_file)
    return {};
  std::vector<std::byte> saved(static_cast<size_t>(found.st_size));
  size_t done = 0;
  while (done < saved.size()) {
    const ssize_t count = ::read(file.number(), saved.data() + done, saved.size() - done);
    if (count <= 0) return {};
    done += static_cast<size_t>(count);
  }
  return saved;
}

void write_saved(const cb_backend* backend, const std::string& name, std::span<const std::byte> saved) {
  static std::atomic<int> number{0};
  const std::filesystem::path folder = private_folder(backend);
  if (folder.empty()) return;
  const std::filesystem::path draft =
      folder / (name + "." + std::to_string(::getpid()) + "." + std::to_string(number++));
  std::error_code error;
  bool is_written = false;
  {
    const OpenFile file(draft, O_WRONLY | O_CREAT | O_EXCL);
    is_written = file.number() >= 0 && write_all(file.number(), saved);
  }
  if (is_written) std::filesystem::rename(draft, folder / name, error);
  if (!is_written || error) std::filesystem::remove(draft, error);
  remove_oldest(folder);
}

}  // namespace candelabra
