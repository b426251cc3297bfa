// Filling and copying.
#include "candelabra/arguments/creation.hpp"
#include "candelabra/arguments/copying.hpp"
#include "kernels.hpp"
#include "tensors.hpp"

namespace arguments = candelabra::arguments;
using candelabra::kernel::scalar_to;

namespace {

void fill(Call& call) {
  const arguments::Fill args(call);
  const cb_tensor& out = call.output();
  dispatch<AllTypes>(out.dtype,
                     [&]<typename T>() { map<T, T>(out, [value = scalar_to<T>(*args.value)] { return value; }); });
}

// Copies between any two dtypes of this backend, and elements of other dtypes unchanged.
void copy(Call& call) {
  const arguments::Copy args(call);
  const cb_tensor &out = call.output(), &source = *args.src;
  if (out.dtype == source.dtype) {
    const size_t bytes = cb_dtype_size(out.dtype);
    const auto size = static_cast<int64_t>(bytes);
    for_each(geometry<2>({&out, &source}), [to = memory_of(out), from = memory_of(source), size, bytes](auto offset) {
      std::memmove(to + offset[0] * size, from + offset[1] * size, bytes);
    });
    return;
  }
  dispatch<AllTypes>(source.dtype, [&]<typename A>() {
    dispatch<AllTypes>(out.dtype,
                       [&]<typename R>() { map<R, A>(out, [](auto value) { return converted<R>(value); }, source); });
  });
}

// start + i * step. The core has computed the size.
void arange(Call& call) {
  const arguments::Arange args(call);
  const cb_tensor& out = call.output();
  const bool is_whole = args.start->kind <= CB_SCALAR_INT && args.step->kind <= CB_SCALAR_INT;
  dispatch<RealTypes>(out.dtype, [&]<typename T>() {
    T* const results = elements<T>(out);
    for (int64_t i = 0; i < out.numel; ++i) {
      if (std::is_integral_v<T> && is_whole)
        results[i] = converted<T>(static_cast<int64_t>(static_cast<uint64_t>(args.start->i) +
                                                       static_cast<uint64_t>(i) * static_cast<uint64_t>(args.step->i)));
      else
        results[i] = converted<T>(args.start->re + static_cast<double>(i) * args.step->re);
    }
  });
}

}  // namespace

void add_creation_kernels(Table& table) {
  table.add<fill>("fill_", 0, mask<AllTypes>);
  table.add<copy>("copy_");
  table.add<arange>("arange", 0, mask<RealTypes>);
}
