#include "device/backend_table.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

#include "python/errors.hpp"

namespace candelabra {

namespace {

// A default function does not get the table that it belongs to, so it cannot call the table's other
// functions. Callers therefore handle a null copy_within by copying through the host.
const char* no_last_error() {
  return nullptr;
}
int32_t one_device(int32_t* count) {
  *count = 1;
  return CB_OK;
}
int32_t nothing_to_wait_for(int32_t) {
  return CB_OK;
}
int32_t always_usable(int32_t, char* message, uint64_t capacity) {
  if (capacity) *message = 0;
  return CB_OK;
}
int32_t no_reset(int32_t) {
  return CB_NOT_IMPLEMENTED;
}
int32_t no_statistics(int32_t, cb_memory_statistics* result) {
  uint64_t size = result->size;
  std::memset(result, 0, size);
  result->size = size;
  return CB_OK;
}
void nothing_on_device(int32_t) {}
int32_t no_memory_limit(int32_t, int64_t) {
  return CB_NOT_IMPLEMENTED;
}
int32_t one_thread() {
  return 1;
}
int32_t no_threads(int32_t) {
  return CB_NOT_IMPLEMENTED;
}
void nothing() {}

int32_t host_allocate(int32_t, cb_allocation* allocation) {
  // The sum overflows for a request that no machine can serve.
  if (allocation->bytes > UINT64_MAX - 63) return CB_OUT_OF_MEMORY;
  allocation->address = std::aligned_alloc(64, (allocation->bytes + 63) / 64 * 64);
  return allocation->address ? CB_OK : CB_OUT_OF_MEMORY;
}
void host_deallocate(int32_t, void* storage, uint64_t) {
  std::free(storage);
}
int32_t copy_from_host(int32_t, const cb_memory* destination, const void* source, uint64_t bytes, void*) {
  std::memmove(destination->address, source, bytes);
  return CB_OK;
}
int32_t copy_to_host(int32_t, void* destination, const cb_memory* source, uint64_t bytes, void*) {
  std::memmove(destination, source->address, bytes);
  return CB_OK;
}
int32_t copy_within(int32_t, const cb_memory* destination, const cb_memory* source, uint64_t bytes, void*) {
  std::memmove(destination->address, source->address, bytes);
  return CB_OK;
}

int32_t allocate_nothing(int32_t, cb_allocation* allocation) {
  static char token;  // a storage needs a handle
  allocation->storage = &token;
  allocation->address = nullptr;
  return CB_OK;
}
void deallocate_nothing(int32_t, void*, uint64_t) {}
int32_t take_nothing(int32_t, const cb_memory*, const void*, uint64_t, void*) {
  return CB_OK;
}
int32_t give_nothing(int32_t, void*, const cb_memory*, uint64_t, void*) {
  return CB_NOT_IMPLEMENTED;
}
int32_t copy_nothing(int32_t, const cb_memory*, const cb_memory*, uint64_t, void*) {
  return CB_OK;
}

template <typename Function>
void set_default(Function*& slot, Function* function) {
  if (!slot) slot = function;
}

// ---- checks

// The table as far as the backend's build has it.
cb_backend padded(const cb_backend& given) {
  cb_backend table{};
  std::memcpy(&table, &given, std::min<size_t>(given.size, sizeof table));
  return table;
}

constexpr uint64_t smallest_table = offsetof(cb_backend, initialize);
constexpr uint64_t smallest_entry = offsetof(cb_kernel_entry, reserved);
// More than any catalogue has: a count beyond it is not a count.
constexpr uint64_t most_kernels = 100'000;
constexpr size_t longest_name = 64;

bool is_word(const char* name) {
  const std::string_view text(name, strnlen(name, longest_name + 1));
  return !text.empty() && text.size() <= longest_name && std::isalpha(static_cast<unsigned char>(text[0])) &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

// What is wrong with a table, if anything.
class TableCheck {
 public:
  TableCheck(const std::string& device_type, const std::string& distribution, const cb_backend& table)
      : device_type_(device_type), distribution_(distribution), table_(table) {}

  void run() const {
    expect(table_.device_type && device_type_ == table_.device_type, "its device_type is '",
           table_.device_type ? table_.device_type : "(null)", "'");
    expect(is_word(table_.device_type), "its device_type is not a letter followed by letters, digits and _");
    expect(table_.allocate && table_.deallocate && table_.copy_from_host && table_.copy_to_host,
           "it lacks one of allocate, deallocate, copy_from_host, copy_to_host, which have no default");
    check_groups();
    check_kernels();
  }

 private:
  template <typename... Parts>
  void expect(bool is_right, const Parts&... parts) const {
    check(is_right, backend_error, "the table of ", distribution_, " for device '", device_type_,
          "' is malformed: ", parts..., "; see docs/backends.md");
  }

  void check_groups() const {
    const uint64_t has = table_.capabilities;
    const cb_backend& t = table_;
    expect(!(has & CB_CAP_STREAMS) || (t.stream_create && t.stream_destroy && t.stream_synchronize && t.stream_query),
           "it has CB_CAP_STREAMS, but lacks one of stream_create, stream_destroy, stream_synchronize, stream_query");
    expect(!(has & CB_CAP_EVENTS) || (t.event_create && t.event_destroy && t.event_record && t.event_wait &&
                                      t.event_synchronize && t.event_query),
           "it has CB_CAP_EVENTS, but lacks one of event_create, event_destroy, event_record, event_wait, "
           "event_synchronize, event_query");
    expect(!(has & CB_CAP_ASYNCHRONOUS) || t.synchronize, "it has CB_CAP_ASYNCHRONOUS, but lacks synchronize");
  }

  void check_kernels() const {
    if (table_.kernel_count == 0) return;
    expect(table_.kernels, "kernel_count is ", table_.kernel_count, ", but kernels is null");
    expect(table_.kernel_count <= most_kernels, "kernel_count is ", table_.kernel_count);
    expect(reinterpret_cast<uintptr_t>(table_.kernels) % alignof(cb_kernel_entry) == 0, "kernels is not aligned");
    const uint64_t stride = table_.kernel_entry_size;
    expect(stride >= smallest_entry && stride % alignof(cb_kernel_entry) == 0 && stride <= 4096,
           "kernel_entry_size is ", stride, ", not sizeof(cb_kernel_entry)");
    std::set<std::string_view> seen;
    uint64_t number = 0;
    for (const cb_kernel_entry& entry : kernel_entries(table_)) {
      expect(entry.operator_name, "the operator_name of kernel ", number, " is null");
      expect(entry.kernel, "the kernel of ", entry.operator_name, " is null");
      expect(seen.insert(entry.operator_name).second, "it has two kernels of ", entry.operator_name);
      ++number;
    }
  }

  const std::string& device_type_;
  const std::string& distribution_;
  const cb_backend& table_;
};

// version() and the groups, which a library may lack, are asked for at the call.
bool is_complete(const cb_collectives& t) {
  return t.name && t.unique_id && t.create && t.rank && t.destroy && t.abort && t.query && t.wait && t.all_reduce &&
         t.broadcast && t.reduce && t.all_gather && t.reduce_scatter && t.all_to_all && t.send && t.receive;
}

}  // namespace

uint64_t dtypes_of_minor(uint32_t minor) {
  return CB_DTYPE_BIT(minor == 0 ? CB_FLOAT8_E4M3FN : CB_DTYPE_COUNT) - 1;
}

std::vector<cb_kernel_entry> kernel_entries(const cb_backend& table) {
  std::vector<cb_kernel_entry> entries(table.kernel_count);
  const char* at = reinterpret_cast<const char*>(table.kernels);
  for (cb_kernel_entry& entry : entries) {
    std::memcpy(&entry, at, std::min<size_t>(table.kernel_entry_size, sizeof entry));
    at += table.kernel_entry_size;
  }
  return entries;
}

void check_table(const std::string& device_type, const std::string& distribution, const cb_backend* table) {
  check(table, backend_error, "candelabra_backend() of ", distribution, " returned null");
  check(reinterpret_cast<uintptr_t>(table) % alignof(cb_backend) == 0, backend_error, "candelabra_backend() of ",
        distribution, " returned an address that is not aligned");
  // The versions lie at the same place in every major version.
  if (table->abi_major != CB_ABI_MAJOR) {
    const std::string package = distribution.substr(0, distribution.find(' '));
    const bool is_newer = table->abi_major > CB_ABI_MAJOR;
    raise(backend_version_error, "the backend for device '", device_type, "' (", distribution, ") was built for ABI ",
          table->abi_major, ".", table->abi_minor, ", this tensor-core has ABI ", CB_ABI_MAJOR, ".", CB_ABI_MINOR,
          ": pip install --upgrade ", is_newer ? "candelabra-tensor-core" : package);
  }
  // A size within a field would make half of a pointer a function.
  const bool is_whole = table->size % alignof(cb_backend) == 0;
  check(table->size >= smallest_table && table->size <= (1 << 20) && is_whole, backend_error, "the table of ",
        distribution, " for device '", device_type, "' is malformed: its size is ", table->size,
        ", not sizeof(cb_backend); see docs/backends.md");
  TableCheck(device_type, distribution, padded(*table)).run();
}

void check_accelerator_table(const std::string& device_type, const std::string& distribution, uint64_t capabilities,
                             const cb_accelerator* table) {
  const auto expect = [&](bool is_right, const char* type, const auto&... fault) {
    check(is_right, backend_error, "the table ", type, " of ", distribution, " for device '", device_type,
          "' is malformed: ", fault..., "; see docs/backends.md");
  };
  const auto expect_size = [&](bool is_right, const char* type, uint64_t size) {
    const bool is_size = size >= 2 * sizeof size && size % sizeof size == 0;
    expect(is_right && is_size, type, "its size is ", size, ", not sizeof(", type, ")");
  };
  cb_accelerator t{};
  if (table) {
    expect_size(true, "cb_accelerator", table->size);
    std::memcpy(&t, table, std::min<size_t>(table->size, sizeof t));
  }
  if (t.collectives) expect_size(t.collectives->size >= sizeof(cb_collectives), "cb_collectives", t.collectives->size);
  const struct {
    uint64_t capability;
    bool is_kept;
    const char* names;
  } promises[] = {
      {CB_CAP_PINNED_MEMORY, t.allocate_pinned && t.deallocate_pinned,
       "CB_CAP_PINNED_MEMORY, but lacks one of allocate_pinned, deallocate_pinned"},
      {CB_CAP_PEER_ACCESS, t.can_access_peer && t.copy_peer,
       "CB_CAP_PEER_ACCESS, but lacks one of can_access_peer, copy_peer"},
      {CB_CAP_IPC, t.ipc_export_memory && t.ipc_open_memory && t.ipc_close_memory,
       "CB_CAP_IPC, but lacks one of ipc_export_memory, ipc_open_memory, ipc_close_memory"},
      {CB_CAP_GRAPHS,
       t.pool_create && t.pool_retain && t.pool_release && t.graph_begin && t.graph_end && t.graph_launch &&
           t.graph_destroy,
       "CB_CAP_GRAPHS, but lacks one of pool_create, pool_retain, pool_release, graph_begin, graph_end, "
       "graph_launch, graph_destroy"},
      {CB_CAP_COLLECTIVES, t.collectives && is_complete(*t.collectives),
       "CB_CAP_COLLECTIVES, but lacks collectives or one of its functions"},
  };
  for (const auto& promise : promises)
    expect(!(capabilities & promise.capability) || promise.is_kept, "cb_accelerator", "the device has ", promise.names);
}

void check_collectives_library(const std::string& path, const cb_collectives_library* library) {
  const auto expect = [&](bool is_right, const char* fault) {
    check(is_right, backend_error, "the collectives of ", path, " cannot be used: ", fault);
  };
  expect(library, "candelabra_collectives() returned null");
  expect(library->size >= sizeof(cb_collectives_library), "its size is not sizeof(cb_collectives_library)");
  expect(library->last_error, "last_error is null");
  expect(library->collectives && library->collectives->size >= sizeof(cb_collectives),
         "collectives is null, or its size is not sizeof(cb_collectives)");
  expect(is_complete(*library->collectives), "cb_collectives lacks one of its functions");
}

cb_backend completed(const cb_backend& given) {
  cb_backend table = padded(given);
  table.size = sizeof(cb_backend);
  set_default(table.last_error, no_last_error);
  set_default(table.device_count, one_device);
  set_default(table.synchronize, nothing_to_wait_for);
  set_default(table.device_status, always_usable);
  set_default(table.reset_device, no_reset);
  set_default(table.shutdown, nothing);
  set_default(table.memory_statistics, no_statistics);
  set_default(table.reset_peak_statistics, nothing_on_device);
  set_default(table.empty_cache, nothing_on_device);
  set_default(table.set_memory_limit, no_memory_limit);
  set_default(table.thread_count, one_thread);
  set_default(table.set_thread_count, no_threads);
  set_default(table.after_fork_in_child, nothing);
  return table;
}

cb_backend host_memory_backend(const char* device_type) {
  cb_backend table{};
  table.size = sizeof(cb_backend);
  table.abi_major = CB_ABI_MAJOR;
  table.abi_minor = CB_ABI_MINOR;
  table.device_type = device_type;
  table.version = "";
  table.capabilities = CB_CAP_HOST_MEMORY;
  table.allocate = host_allocate;
  table.deallocate = host_deallocate;
  table.copy_from_host = copy_from_host;
  table.copy_to_host = copy_to_host;
  table.copy_within = copy_within;
  return completed(table);
}

cb_backend meta_backend(const char* device_type) {
  cb_backend table = host_memory_backend(device_type);
  table.capabilities = 0;
  table.allocate = allocate_nothing;
  table.deallocate = deallocate_nothing;
  table.copy_from_host = take_nothing;
  table.copy_to_host = give_nothing;
  table.copy_within = copy_nothing;
  return table;
}

}  // namespace candelabra
