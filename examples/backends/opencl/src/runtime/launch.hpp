// What kernels are launched with: programs by dtype, descriptors of operands, and arguments.
#ifndef CANDELABRA_OPENCL_LAUNCH_HPP
#define CANDELABRA_OPENCL_LAUNCH_HPP

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "candelabra/dtypes.hpp"
#include "candelabra/kernel.hpp"
#include "runtime/allocator.hpp"
#include "runtime/program.hpp"

namespace candelabra::opencl {

using kernel::Call;
using kernel::failure;
using kernel::not_implemented;

// ---- dtypes

constexpr uint64_t float_dtypes =
    CB_DTYPE_BIT(CB_FLOAT16) | CB_DTYPE_BIT(CB_BFLOAT16) | CB_DTYPE_BIT(CB_FLOAT32) | CB_DTYPE_BIT(CB_FLOAT64);
constexpr uint64_t integer_dtypes = CB_DTYPE_BIT(CB_UINT8) | CB_DTYPE_BIT(CB_INT8) | CB_DTYPE_BIT(CB_INT16) |
                                    CB_DTYPE_BIT(CB_INT32) | CB_DTYPE_BIT(CB_INT64) | CB_DTYPE_BIT(CB_UINT16) |
                                    CB_DTYPE_BIT(CB_UINT32) | CB_DTYPE_BIT(CB_UINT64);
constexpr uint64_t bool_dtype = CB_DTYPE_BIT(CB_BOOL);
constexpr uint64_t real_dtypes = float_dtypes | integer_dtypes | bool_dtype;

// "float32", as kernels/types.cl calls it.
const char* dtype_name(int32_t dtype);
// A number as bits of the type in which the kernels compute with this dtype.
uint64_t number_bits(const cb_scalar& number, int32_t dtype);
uint64_t number_bits(double number, int32_t dtype);

// ---- operands

constexpr int max_operands = 4, max_dimensions = 12;

// The struct of the same name in kernels/types.cl. Operand 0 is the output. Dimension 0 is the
// innermost; strides are in elements, offsets in bytes.
struct Operands {
  int64_t numel;
  int64_t ndim;
  int64_t sizes[max_dimensions];
  int64_t strides[max_operands][max_dimensions];
  uint64_t offsets[max_operands];
  uint64_t numbers[max_operands];  // an operand that is a number, as bits of the compute type
  int64_t is_number[max_operands];
  uint64_t parameters[max_operands];  // other numbers of the formula, as bits of the compute type
};

// Describes tensors of the same sizes; numbers are converted to the compute type of `dtype`.
// Throws not_implemented() if they have more dimensions than the kernels can do.
Operands operands_of(std::initializer_list<const cb_tensor*> tensors, int32_t dtype, bool row_major = false);
// One dimension, and stride 1 in all operands that are not numbers.
bool is_flat(const Operands& operands, int count);

// ---- launches

constexpr size_t group_size = 64;

Device& device_of(const Call& call);
// Null if there are no elements.
cl_mem memory_of(const cb_tensor& tensor);

// A launch of one kernel: arguments in order, then run().
class Launch {
 public:
  // The kernel of kernels/SOURCE.cl for these dtypes, by slot: {{"T", dtype}, {"R", dtype}}.
  struct Slot {
    const char* name;
    int32_t dtype;
  };
  Launch(const Call& call, const char* source, const std::string& kernel, std::initializer_list<Slot> slots,
         const std::string& options = "");

  // The buffer of a tensor. The kernel gets offsets otherwise.
  Launch& memory(const cb_tensor& tensor) { return memory(memory_of(tensor)); }
  Launch& memory(cl_mem buffer) { return set(&buffer, sizeof buffer); }
  // The buffer of a tensor and the byte offset of its first element; no buffer if it is null.
  Launch& tensor(const cb_tensor* tensor);
  Launch& value(int64_t number) { return set(&number, sizeof number); }
  Launch& bits(uint64_t number) { return set(&number, sizeof number); }
  template <typename Struct>
  Launch& structure(const Struct& object) {
    return set(&object, sizeof object);
  }
  // At least this many work items, in groups of group_size; those beyond return at once.
  void items(int64_t count);
  // This many groups.
  void groups(int64_t count);
  void grid(std::span<const size_t> global, std::span<const size_t> local);

 private:
  Launch& set(const void* bytes, size_t size);

  const Call& call_;
  Device& device_;
  Kernel& kernel_;
  std::unique_lock<std::mutex> lock_;
  cl_uint count_ = 0;
};

// Copies elements of any dtypes and strides; throws not_implemented() for conversions of complex
// ones.
void copy_elements(const Call& call, const cb_tensor& out, const cb_tensor& source);
void fill_zeros(const Call& call, const cb_tensor& out);

// Temporary memory of a call.
struct Workspace {
  Workspace(const Call& call, int64_t bytes);
  cl_mem memory;
};

// Kernels write the first bad index here, and the host reads it before anything else is written.
class IndexCheck {
 public:
  explicit IndexCheck(const Call& call);
  cl_mem memory() const { return workspace_.memory; }
  struct Bad {
    int64_t index;
    int64_t dim;
  };
  // The bad index, or nothing.
  std::optional<Bad> bad() const;

 private:
  const Call& call_;
  Workspace workspace_;
};

}  // namespace candelabra::opencl

#endif
