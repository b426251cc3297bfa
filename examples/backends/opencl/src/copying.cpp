// copy_, fill_ and arange.
#include "candelabra/arguments/copying.hpp"
#include "candelabra/arguments/creation.hpp"
#include "families.hpp"
#include "runtime/launch.hpp"

namespace candelabra::opencl {

namespace {

// Elements of one dtype are moved as bytes, so that complex64 can be, too.
int32_t dtype_of_bytes(int64_t itemsize) {
  switch (itemsize) {
    case 1:
      return CB_UINT8;
    case 2:
      return CB_UINT16;
    case 4:
      return CB_UINT32;
    case 8:
      return CB_UINT64;
    default:
      throw not_implemented();
  }
}

}  // namespace

void copy_elements(const Call& call, const cb_tensor& out, const cb_tensor& source) {
  if (out.numel == 0) return;
  const bool moves = out.dtype == source.dtype;
  const int32_t dtype = moves ? dtype_of_bytes(kernel::itemsize(out.dtype)) : out.dtype;
  dtype_name(moves ? dtype : source.dtype);  // throws for complex ones
  Launch kernel(call, "copying", moves ? "move" : "copy", {{"R", dtype}});
  kernel.memory(out).memory(source).structure(operands_of({&out, &source}, dtype));
  if (!moves) kernel.value(source.dtype);
  kernel.items(out.numel);
}

void fill_zeros(const Call& call, const cb_tensor& out) {
  Launch(call, "copying", "fill", {{"R", out.dtype}})
      .memory(out)
      .structure(operands_of({&out}, out.dtype))
      .items(out.numel);
}

namespace {

void copy(Call& call) {
  const arguments::Copy args(call);
  copy_elements(call, call.output(), *args.src);
}

void fill(Call& call) {
  const arguments::Fill args(call);
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  Operands operands = operands_of({&out}, out.dtype);
  operands.parameters[0] = number_bits(*args.value, out.dtype);
  Launch(call, "copying", "fill", {{"R", out.dtype}}).memory(out).structure(operands).items(out.numel);
}

void arange(Call& call) {
  const arguments::Arange args(call);
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  Operands operands = operands_of({&out}, out.dtype);
  if (kernel::is_floating_dtype(out.dtype)) {
    const int32_t widest = device_of(call).has_float64 ? CB_FLOAT64 : CB_FLOAT32;
    operands.parameters[0] = number_bits(args.start->re, widest);
    operands.parameters[1] = number_bits(args.step->re, widest);
  } else {
    operands.parameters[0] = number_bits(*args.start, out.dtype);
    operands.parameters[1] = number_bits(*args.step, out.dtype);
  }
  Launch(call, "copying", "arange", {{"R", out.dtype}}).memory(out).structure(operands).items(out.numel);
}

}  // namespace

void add_copying(Table& table) {
  table.add<copy>("copy_");
  table.add<fill>("fill_", 0, real_dtypes);
  table.add<arange>("arange", 0, real_dtypes & ~bool_dtype);
}

}  // namespace candelabra::opencl
