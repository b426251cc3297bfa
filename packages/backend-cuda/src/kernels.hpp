// What a kernel is written with: its arguments, how it fails, and the table it is entered in.
//
// kernels/FAMILY.cu defines, in namespace candelabra::cuda, functions `void add(Call& call)` that queue work on call.stream(), and
// one `void register_FAMILY(KernelTable& table)`. CMake writes the list of families from the files. Everything of a family but its
// register function stays in an unnamed namespace.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdarg>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "candelabra/backend.h"

namespace candelabra::cuda {

// A kernel or a service fails with this; an empty message leaves the words to the core.
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
// Writes the message of the exception being handled to the call and returns its status.
[[gnu::cold]] int32_t report_exception(cb_call* call) noexcept;

// A thin reader of cb_call. Positions are those of the schema.
class Call {
 public:
  explicit Call(cb_call* raw) : raw_(raw) {}

  cb_call* raw() const { return raw_; }
  std::string_view name() const { return raw_->operator_name; }
  int device() const { return raw_->device_index; }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(raw_->stream); }
  int output_count() const { return raw_->output_count; }
  int argument_count() const { return raw_->argument_count; }
  cb_tensor& output(int i = 0) const { return raw_->outputs[i]; }
  bool given(int i) const { return raw_->arguments[i].kind != CB_NONE; }
  const cb_tensor& tensor(int i) const { return *raw_->arguments[i].as.tensor; }
  // Null where the argument was not given.
  const cb_tensor* optional_tensor(int i) const { return given(i) ? raw_->arguments[i].as.tensor : nullptr; }
  std::span<const cb_tensor* const> tensors(int i) const {
    const cb_value& value = raw_->arguments[i];
    return {value.as.tensors, static_cast<size_t>(value.count)};
  }
  const cb_scalar& scalar(int i) const { return *raw_->arguments[i].as.scalar; }
  int64_t integer(int i) const { return raw_->arguments[i].as.i; }
  bool boolean(int i) const { return raw_->arguments[i].as.i != 0; }
  // A float argument; also reads a Scalar.
  double real(int i) const {
    const cb_value& value = raw_->arguments[i];
    return value.kind == CB_FLOAT ? value.as.f : value.kind == CB_SCALAR ? value.as.scalar->re : static_cast<double>(value.as.i);
  }
  std::span<const int64_t> ints(int i) const {
    const cb_value& value = raw_->arguments[i];
    return {value.as.ints, static_cast<size_t>(value.kind == CB_INTS ? value.count : 0)};
  }
  std::span<const double> floats(int i) const {
    const cb_value& value = raw_->arguments[i];
    return {value.as.floats, static_cast<size_t>(value.kind == CB_FLOATS ? value.count : 0)};
  }
  // Empty where the argument was not given.
  std::string_view string(int i) const { return given(i) ? raw_->arguments[i].as.string : std::string_view{}; }
  uint64_t seed() const { return raw_->random_seed; }
  uint64_t offset() const { return raw_->random_offset; }
  // Memory for an output whose shape depends on data; outputs[index] describes it afterwards.
  cb_tensor& allocate_output(int index, std::span<const int64_t> sizes) const {
    int32_t status = raw_->host->allocate_output(raw_, index, static_cast<int32_t>(sizes.size()), sizes.data());
    if (status != CB_OK) throw Failure(static_cast<cb_status>(status), "");
    return raw_->outputs[index];
  }

 private:
  cb_call* raw_;
};

// Makes the call's device the thread's, runs the kernel, and looks for failures: of the launch always, of the run where
// CANDELABRA_LAUNCH_BLOCKING=1 has every kernel waited for.
int32_t run_kernel(cb_call* raw, void (*kernel)(Call&)) noexcept;

// The C entry of a kernel: nothing may be thrown across the boundary.
template <void (*Kernel)(Call&)>
int32_t entry(cb_call* raw) noexcept {
  return run_kernel(raw, Kernel);
}

class KernelTable {
 public:
  // table.add<add>("add")
  template <void (*Kernel)(Call&)>
  void add(const char* operator_name) {
    entries_.push_back({operator_name, entry<Kernel>});
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

// Row-major without gaps (dimensions of size 1 may have any stride).
inline bool is_contiguous(const cb_tensor& tensor) {
  int64_t expected = 1;
  for (int d = tensor.ndim - 1; d >= 0; --d) {
    if (tensor.sizes[d] != 1 && tensor.strides[d] != expected) return tensor.numel == 0;
    expected *= tensor.sizes[d];
  }
  return true;
}

}  // namespace candelabra::cuda
