// gather, scatter, scatter_add: one index for every element.
#include "../load.hpp"
#include "move.hpp"
#include "scatter_lines.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

void gather(Call& call) {
  const cb_tensor &self = call.tensor(0), &index = call.tensor(2);
  cb_tensor& out = call.output();
  int64_t dim = call.integer(1);
  if (index.numel == 0) return;
  // Where element p of the index would be read if its number were 0.
  int64_t size = self.ndim ? self.sizes[dim] : 1, stride = self.ndim ? self.strides[dim] : 1;
  Seen base(self, index, -1);
  if (index.ndim) base.strides[dim] = 0;
  auto g = geometry<3>({&out, &index, &base.tensor});
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    parallel_for(g.numel, light_grain / 2, [&](int64_t begin, int64_t end) {
      for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
        U* to = data<U>(out) + at[0];
        const int64_t* numbers = data<int64_t>(index) + at[1];
        const U* from = data<U>(self) + at[2];
        for (int64_t i = 0; i < n; ++i) {
          int64_t number = numbers[i * g.strides[1][0]];
          if (static_cast<uint64_t>(number) >= static_cast<uint64_t>(size)) out_of_bounds(number, dim, size);
          to[i * g.strides[0][0]] = from[i * g.strides[2][0] + number * stride];
        }
      });
    });
  });
}

void scatter(Call& call) {
  const cb_tensor &self = call.tensor(0), &index = call.tensor(2), &source = call.tensor(3);
  cb_tensor& out = call.output();
  int64_t dim = call.integer(1);
  check_indices(index, dim, self.ndim ? self.sizes[dim] : 1);
  begin_as(out, self);
  dispatch_size(itemsize(out.dtype),
                [&]<typename U>() { scatter_lines<U>(out, index, source, dim, [](U& to, const U& value) { to = value; }); });
}

void scatter_add(Call& call) {
  const cb_tensor &self = call.tensor(0), &index = call.tensor(2), &source = call.tensor(3);
  cb_tensor& out = call.output();
  int64_t dim = call.integer(1);
  check_indices(index, dim, self.ndim ? self.sizes[dim] : 1);
  begin_as(out, self);
  dispatch<AllTypes>(out.dtype, [&]<typename T>() {
    scatter_lines<T>(out, index, source, dim, [](T& to, const T& value) {
      if constexpr (std::is_same_v<T, bool>)
        to = load(&to) || load(&value);
      else
        to = static_cast<T>(to + value);
    });
  });
}

}  // namespace

void register_indexing(KernelTable& table) {
  table.add<gather>("gather");
  table.add<scatter>("scatter");
  table.add<scatter_add>("scatter_add");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
