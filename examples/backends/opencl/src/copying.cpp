// copy_, fill_ and arange.
#include "candelabra/arguments/copying.hpp"
#include "candelabra/arguments/creation.hpp"
#include "families.hpp"
#include "launch.hpp"

namespace candelabra::opencl {

namespace {

// Elements of one dtype are moved as bytes, so that complex ones can be, too.
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

void copy(Call& call) {
  const arguments::Copy args(call);
  const cb_tensor &out = call.output(), &source = *args.src;
  if (out.numel == 0) return;
  const bool plain = out.dtype == source.dtype && out.dtype != CB_BOOL;
  const int32_t from = plain ? dtype_of_bytes(kernel::itemsize(source.dtype)) : source.dtype;
  const int32_t to = plain ? from : out.dtype;
  const Operands operands = operands_of({&out, &source}, from);
  Launch(call, "copying", is_flat(operands, 2) ? "copy_flat" : "copy_strided", {{"T", from}, {"R", to}})
      .memory(out)
      .memory(source)
      .structure(operands)
      .items(out.numel);
}

void fill(Call& call) {
  const arguments::Fill args(call);
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  Operands operands = operands_of({&out}, out.dtype);
  operands.parameters[0] = number_bits(*args.value, out.dtype);
  Launch(call, "copying", "fill", {{"T", out.dtype}, {"R", out.dtype}})
      .memory(out)
      .structure(operands)
      .items(out.numel);
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
  Launch(call, "copying", "arange", {{"T", out.dtype}, {"R", out.dtype}})
      .memory(out)
      .structure(operands)
      .items(out.numel);
}

}  // namespace

void add_copying(Table& table) {
  table.add<copy>("copy_");
  table.add<fill>("fill_", 0, real_dtypes);
  table.add<arange>("arange", 0, real_dtypes & ~bool_dtype);
}

}  // namespace candelabra::opencl
