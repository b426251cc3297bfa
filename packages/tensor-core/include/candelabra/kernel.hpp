// The C++ interface for writing kernels: access to arguments, error reporting, and the kernel
// table.
//
//   void negate(Call& call);     a kernel; may throw failure(CB_VALUE_ERROR, "…")
//                                or not_implemented()
//   using Table = kernel::KernelTable<kernel::Call, kernel::Guarded>;
//   table.add<negate>("neg");    table.write_to(backend) fills in cb_backend.kernels
//
// Exactly one source file of a backend defines CANDELABRA_KERNEL_DEFINITIONS before including this
// header. It then contains the functions that are only declared here. They are not inline because a
// backend may compile its kernels for several instruction sets.
#ifndef CANDELABRA_KERNEL_HPP
#define CANDELABRA_KERNEL_HPP

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "candelabra/backend.h"

namespace candelabra::kernel {

// The exception by which a kernel or a host service fails. With an empty message, the core words
// the error.
class Failure : public std::exception {
 public:
  Failure(cb_status status, std::string message) : status_(status), message_(std::move(message)) {}
  cb_status status() const { return status_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  cb_status status_;
  std::string message_;
};

// throw failure(CB_INDEX_ERROR, "index %lld is out of bounds ...", index)
[[gnu::format(printf, 2, 3), gnu::cold]] Failure failure(cb_status status, const char* format, ...);
// No kernel for this dtype: the core says `"add" not implemented for 'Bool'`.
[[gnu::cold]] Failure not_implemented();
// Call inside catch (...). Writes the exception's message to the call and returns its status.
[[gnu::cold]] int32_t report_exception(cb_call* call) noexcept;

// A thin wrapper of cb_call. Indices are positions in the schema. Kernels read arguments by name,
// through the generated structs of candelabra/arguments/, which use this class.
class Call {
 public:
  explicit Call(cb_call* raw) : raw_(raw) {}

  cb_call* raw() const { return raw_; }
  std::string_view name() const { return raw_->operator_name; }
  int output_count() const { return raw_->output_count; }
  int argument_count() const { return raw_->argument_count; }
  cb_tensor& output(int i = 0) const { return raw_->outputs[i]; }
  bool given(int i) const { return raw_->arguments[i].kind != CB_NONE; }
  const cb_tensor& tensor(int i) const { return *raw_->arguments[i].as.tensor; }
  // Null if the argument was not given, or if a number is in the tensor's place.
  const cb_tensor* optional_tensor(int i) const {
    const cb_value& value = raw_->arguments[i];
    return value.kind == CB_TENSOR ? value.as.tensor : nullptr;
  }
  std::span<const cb_tensor* const> tensors(int i) const {
    const cb_value& value = raw_->arguments[i];
    return {value.as.tensors, static_cast<size_t>(value.kind == CB_TENSORS ? value.count : 0)};
  }
  const cb_scalar& scalar(int i) const { return *raw_->arguments[i].as.scalar; }
  // Null if the argument was not given, or if a tensor was given.
  const cb_scalar* optional_scalar(int i) const {
    const cb_value& value = raw_->arguments[i];
    return value.kind == CB_SCALAR ? value.as.scalar : nullptr;
  }
  int32_t dtype(int i) const { return static_cast<int32_t>(raw_->arguments[i].as.i); }
  int64_t integer(int i) const { return raw_->arguments[i].as.i; }
  bool boolean(int i) const { return raw_->arguments[i].as.i != 0; }
  // A float argument; also accepts a Scalar.
  double real(int i) const {
    const cb_value& value = raw_->arguments[i];
    return value.kind == CB_FLOAT    ? value.as.f
           : value.kind == CB_SCALAR ? value.as.scalar->re
                                     : static_cast<double>(value.as.i);
  }
  std::span<const int64_t> ints(int i) const {
    const cb_value& value = raw_->arguments[i];
    return {value.as.ints, static_cast<size_t>(value.kind == CB_INTS ? value.count : 0)};
  }
  std::span<const double> floats(int i) const {
    const cb_value& value = raw_->arguments[i];
    return {value.as.floats, static_cast<size_t>(value.kind == CB_FLOATS ? value.count : 0)};
  }
  // Empty if the argument was not given.
  std::string_view string(int i) const {
    const cb_value& value = raw_->arguments[i];
    return value.kind == CB_STRING ? value.as.string : std::string_view{};
  }
  std::optional<int64_t> optional_integer(int i) const { return given(i) ? std::optional(integer(i)) : std::nullopt; }
  std::optional<bool> optional_boolean(int i) const { return given(i) ? std::optional(boolean(i)) : std::nullopt; }
  std::optional<double> optional_real(int i) const { return given(i) ? std::optional(real(i)) : std::nullopt; }
  std::optional<int32_t> optional_dtype(int i) const { return given(i) ? std::optional(dtype(i)) : std::nullopt; }
  std::optional<std::string_view> optional_string(int i) const {
    return given(i) ? std::optional(string(i)) : std::nullopt;
  }
  std::optional<std::span<const int64_t>> optional_ints(int i) const {
    return given(i) ? std::optional(ints(i)) : std::nullopt;
  }
  // The content version of a tensor argument, or 0 (cb_call.content_versions in backend.h). Only
  // for kernels with CB_KERNEL_READS_VERSIONS.
  uint64_t content_version(int i) const { return raw_->content_versions ? raw_->content_versions[i] : 0; }
  uint64_t seed() const { return raw_->random_seed; }
  uint64_t offset() const { return raw_->random_offset; }
  // Allocates an output whose shape depends on data. Afterwards outputs[index] describes it.
  cb_tensor& allocate_output(int index, std::span<const int64_t> sizes) const {
    const int32_t status = raw_->host->allocate_output(raw_, index, static_cast<int32_t>(sizes.size()), sizes.data());
    if (status != CB_OK) throw Failure(static_cast<cb_status>(status), "");
    return raw_->outputs[index];
  }

 private:
  cb_call* raw_;
};

// The C entry point of a synchronous kernel. Exceptions must not cross the boundary, so it turns
// them into a status.
template <void (*Kernel)(Call&)>
struct Guarded {
  static int32_t run(cb_call* raw) noexcept {
    try {
      Call call(raw);
      Kernel(call);
      return CB_OK;
    } catch (...) {
      return report_exception(raw);
    }
  }
};

// Entry<kernel>::run is the function that the core calls. CallType is Call, or the backend's own
// class that is built on it.
template <typename CallType, template <void (*)(CallType&)> typename Entry>
class KernelTable {
 public:
  // table.add<add>("add", CB_KERNEL_CONVERTS). Flags and dtypes are those of cb_kernel_entry.
  template <void (*Kernel)(CallType&)>
  void add(const char* operator_name, uint32_t flags = 0, uint64_t dtypes = 0) {
    entries_.push_back({operator_name, Entry<Kernel>::run, dtypes, flags, 0});
  }
  // The entries, as cb_backend has them.
  void write_to(cb_backend& table) const {
    table.kernels = entries_.data();
    table.kernel_count = entries_.size();
    table.kernel_entry_size = sizeof(cb_kernel_entry);
  }
  std::span<const cb_kernel_entry> entries() const { return entries_; }

 private:
  std::vector<cb_kernel_entry> entries_;
};

inline bool same_sizes(const cb_tensor& a, const cb_tensor& b) {
  if (a.ndim != b.ndim) return false;
  for (int d = 0; d < a.ndim; ++d)
    if (a.sizes[d] != b.sizes[d]) return false;
  return true;
}

// Row-major without gaps. Dimensions of size 1 may have any stride.
inline bool is_contiguous(const cb_tensor& tensor) {
  int64_t expected = 1;
  for (int d = tensor.ndim - 1; d >= 0; --d) {
    if (tensor.sizes[d] != 1 && tensor.strides[d] != expected) return tensor.numel == 0;
    expected *= tensor.sizes[d];
  }
  return true;
}

}  // namespace candelabra::kernel

#ifdef CANDELABRA_KERNEL_DEFINITIONS

namespace candelabra::kernel {

Failure failure(cb_status status, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return Failure(status, text);
}

Failure not_implemented() {
  return Failure(CB_NOT_IMPLEMENTED, "");
}

int32_t report_exception(cb_call* call) noexcept {
  const auto write = [&](const char* text) {
    if (call->error && call->error_capacity) std::snprintf(call->error, call->error_capacity, "%s", text);
  };
  try {
    throw;
  } catch (const Failure& error) {
    if (*error.what()) write(error.what());
    return error.status();
  } catch (const std::bad_alloc&) {
    write("out of memory in a kernel's own bookkeeping");
    return CB_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    char text[1024];
    std::snprintf(text, sizeof text, "%s: %s", call->operator_name, error.what());
    write(text);
    return CB_RUNTIME_ERROR;
  } catch (...) {
    write("unknown exception in a kernel");
    return CB_RUNTIME_ERROR;
  }
}

}  // namespace candelabra::kernel

#endif  // CANDELABRA_KERNEL_DEFINITIONS

#endif  // CANDELABRA_KERNEL_HPP
