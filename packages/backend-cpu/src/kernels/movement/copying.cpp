// copy_: between any two dtypes and any two sets of strides.
#include <algorithm>

#include "candelabra/arguments/copying.hpp"
#include "drivers/elementwise.hpp"
#include "drivers/iterate.hpp"
#include "kernels/movement/move.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// The dtypes of the loops: the driver converts half precisions to float32 and back.
using LoopTypes = Types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t, float, double,
                        complex64, complex128>;

template <typename R>
struct Convert {
  template <typename A>
  R operator()(A a) const {
    if constexpr (std::is_same_v<R, A>)
      return a;
    else if constexpr (std::is_same_v<R, bool>)
      return a != A(0);
    else if constexpr (is_complex_v<R> && is_complex_v<A>)
      return R(static_cast<real_t<R>>(a.real()), static_cast<real_t<R>>(a.imag()));
    else if constexpr (is_complex_v<R>)
      return R(static_cast<real_t<R>>(a), 0);
    else if constexpr (is_complex_v<A>)
      return (*this)(a.real());
    else if constexpr (is_integer_v<R> && std::is_floating_point_v<A>)
      return truncated<R>(a);
    else
      return static_cast<R>(a);
  }
};

struct Same {
  template <typename U>
  U operator()(U x) const {
    return x;
  }
};

void copy_same(cb_tensor& out, const cb_tensor& source) {
  if (out.numel > tiny_elements) return move_elements(out, source);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    static constexpr Same op{};
    Blocks blocks{loop1<Same, U, U>, &op, light};
    blocks.halves_as_float = false;
    run<1>(blocks, out, {&source});
  });
}

void copy_(Call& call) {
  const arguments::Copy args(call);
  cb_tensor& out = call.output();
  const cb_tensor& source = *args.src;
  if (out.numel == 0) return;
  if (out.dtype == source.dtype)
    copy_same(out, source);
  else
    run<1>(conversion(loop_dtype(out.dtype), loop_dtype(source.dtype)), out, {&source});
}

}  // namespace

Blocks conversion(int32_t to, int32_t from) {
  Blocks blocks{};
  dispatch<LoopTypes>(to, [&]<typename R>() {
    dispatch<LoopTypes>(from, [&]<typename A>() {
      static constexpr Convert<R> op{};
      blocks = {loop1<Convert<R>, R, A>, &op, light};
    });
  });
  return blocks;
}

void register_copying(KernelTable& table) {
  table.add<copy_>("copy_");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
