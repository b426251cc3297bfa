#include "runtime/launch.hpp"

#include <bit>
#include <cstring>

#include "candelabra/geometry.hpp"

namespace candelabra::opencl {

const char* dtype_name(int32_t dtype) {
  static constexpr const char* names[CB_DTYPE_COUNT] = {"bool",  "uint8",   "int8",     "int16",   "int32",
                                                        "int64", "float16", "bfloat16", "float32", "float64",
                                                        nullptr, nullptr,   "uint16",   "uint32",  "uint64"};
  if (dtype < 0 || dtype >= CB_DTYPE_COUNT || !names[dtype]) throw not_implemented();
  return names[dtype];
}

uint64_t number_bits(double number, int32_t dtype) {
  if (dtype == CB_FLOAT64) return std::bit_cast<uint64_t>(number);
  if (kernel::is_floating_dtype(dtype)) return std::bit_cast<uint32_t>(static_cast<float>(number));
  return static_cast<uint64_t>(static_cast<int64_t>(number));
}

uint64_t number_bits(const cb_scalar& number, int32_t dtype) {
  if (kernel::is_floating_dtype(dtype)) return number_bits(number.re, dtype);
  if (dtype == CB_BOOL) return kernel::scalar_to<bool>(number);
  return static_cast<uint64_t>(kernel::scalar_to<int64_t>(number));
}

namespace {

// A number in place of a tensor has a dtype of its own: float32 beside half precisions.
uint64_t bits_of(const cb_tensor& number, int32_t dtype) {
  uint64_t result = 0;
  const auto read = [&]<typename T>() {
    const T value = *static_cast<const T*>(number.data);
    if (kernel::is_floating_dtype(dtype))
      result = number_bits(static_cast<double>(value), dtype);
    else
      result = static_cast<uint64_t>(static_cast<int64_t>(value));
  };
  kernel::dispatch<decltype(kernel::BoolType{} + kernel::RealTypes{})>(number.dtype, read);
  return result;
}

}  // namespace

Operands operands_of(std::initializer_list<const cb_tensor*> tensors, int32_t dtype, bool row_major) {
  static constexpr int64_t zeros[kernel::max_dims] = {};
  Operands result = {};
  std::array<cb_tensor, max_operands> seen = {};
  std::array<const cb_tensor*, max_operands> pointers = {};
  const cb_tensor& out = **tensors.begin();
  int count = 0;
  for (const cb_tensor* tensor : tensors) {
    const auto k = static_cast<size_t>(count++);
    const bool is_number = tensor->flags & CB_TENSOR_NUMBER;
    seen[k] = *tensor;
    if (is_number) {
      seen[k].strides = zeros;
      result.numbers[k] = bits_of(*tensor, dtype);
      result.is_number[k] = 1;
    } else {
      result.offsets[k] = tensor->offset;
    }
    pointers[k] = &seen[k];
  }
  for (auto k = static_cast<size_t>(count); k < max_operands; ++k) pointers[k] = &seen[0];
  const auto merged =
      kernel::geometry<max_operands>(pointers, row_major ? kernel::Order::RowMajor : kernel::Order::Any);
  if (merged.ndim > max_dimensions) throw not_implemented();
  result.numel = out.numel;
  result.ndim = merged.ndim;
  for (int d = 0; d < merged.ndim; ++d) {
    result.sizes[d] = merged.sizes[d];
    for (int k = 0; k < count; ++k) result.strides[k][d] = merged.strides[k][d];
  }
  return result;
}

bool is_flat(const Operands& operands, int count) {
  if (operands.ndim != 1) return false;
  for (int k = 0; k < count; ++k)
    if (!operands.is_number[k] && operands.strides[k][0] != 1) return false;
  return true;
}

Device& device_of(const Call& call) {
  return device(call.raw()->device_index);
}

cl_mem memory_of(const cb_tensor& tensor) {
  if (!tensor.storage && tensor.numel == 0) return nullptr;
  if (!tensor.storage)
    throw failure(CB_NOT_IMPLEMENTED, "opencl computes in its own buffers only, not in imported memory");
  return static_cast<const Buffer*>(tensor.storage)->memory.get();
}

namespace {

std::string options_of(const Device& device, std::initializer_list<Launch::Slot> slots, const std::string& others) {
  std::string options = "-cl-std=CL1.2";
  for (const Launch::Slot& slot : slots) {
    if (slot.dtype == CB_FLOAT64 && !device.has_float64)
      throw failure(CB_NOT_IMPLEMENTED, "%s has no float64 (cl_khr_fp64)", device.name.c_str());
    options += std::string(" -D ") + slot.name + '=' + dtype_name(slot.dtype);
    if (kernel::is_floating_dtype(slot.dtype)) options += std::string(" -D ") + slot.name + "_IS_FLOAT";
  }
  return others.empty() ? options : options + ' ' + others;
}

}  // namespace

Launch::Launch(const Call& call, const char* source, const std::string& kernel, std::initializer_list<Slot> slots,
               const std::string& options)
    : call_(call),
      device_(device_of(call)),
      kernel_(device_.programs->kernel(source, options_of(device_, slots, options), kernel)),
      lock_(kernel_.mutex) {}

Launch& Launch::set(const void* bytes, size_t size) {
  const cl_int code = cl.SetKernelArg(kernel_.handle.get(), count_, size, bytes);
  if (code != CL_SUCCESS)
    throw failure(CB_ACCELERATOR_ERROR, "clSetKernelArg of argument %u of %s failed: %s", count_, kernel_.name.c_str(),
                  error_name(code).c_str());
  ++count_;
  return *this;
}

Launch& Launch::tensor(const cb_tensor* tensor) {
  const cl_mem none = nullptr;
  if (!tensor || !tensor->storage) return set(&none, sizeof none).bits(0);
  return memory(*tensor).bits(tensor->offset);
}

void Launch::items(int64_t count) {
  groups((count + static_cast<int64_t>(group_size) - 1) / static_cast<int64_t>(group_size));
}

void Launch::groups(int64_t count) {
  if (count == 0) return;
  const size_t global = static_cast<size_t>(count) * group_size;
  grid({&global, 1}, {&group_size, 1});
}

void Launch::grid(std::span<const size_t> global, std::span<const size_t> local) {
  const cl_int code = cl.EnqueueNDRangeKernel(device_.queue_of(call_.raw()->stream), kernel_.handle.get(),
                                              static_cast<cl_uint>(global.size()), nullptr, global.data(), local.data(),
                                              0, nullptr, nullptr);
  check(code, ("the kernel " + kernel_.name).c_str());
}

Workspace::Workspace(const Call& call, int64_t bytes) {
  cb_memory result = {};
  const int32_t status =
      call.raw()->host->allocate_workspace(call.raw(), static_cast<uint64_t>(bytes > 0 ? bytes : 1), &result);
  if (status != CB_OK) throw kernel::Failure(static_cast<cb_status>(status), "");
  memory = static_cast<const Buffer*>(result.storage)->memory.get();
}

namespace {

struct IndexReport {  // as in kernels/types.cl
  int32_t is_bad;
  int32_t dim;
  int64_t index;
};

}  // namespace

IndexCheck::IndexCheck(const Call& call) : call_(call), workspace_(call, sizeof(IndexReport)) {
  static constexpr IndexReport good = {};
  check(cl.EnqueueWriteBuffer(device_of(call).queue_of(call.raw()->stream), memory(), CL_FALSE, 0, sizeof good, &good,
                              0, nullptr, nullptr),
        "clEnqueueWriteBuffer");
}

std::optional<IndexCheck::Bad> IndexCheck::bad() const {
  IndexReport report = {};
  check(cl.EnqueueReadBuffer(device_of(call_).queue_of(call_.raw()->stream), memory(), CL_TRUE, 0, sizeof report,
                             &report, 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
  return report.is_bad ? std::optional(Bad{report.index, report.dim}) : std::nullopt;
}

}  // namespace candelabra::opencl
