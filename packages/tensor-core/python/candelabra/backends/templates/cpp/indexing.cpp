// Reading and writing at indices, which are int64. A kernel checks them before it writes.
#include "candelabra/arguments/indexing.hpp"
#include "kernels.hpp"
#include "tensors.hpp"

namespace arguments = candelabra::arguments;

namespace {

int64_t size_along(const cb_tensor& tensor, int64_t dim) {
  return tensor.ndim ? tensor.sizes[dim] : 1;
}
int64_t stride_along(const cb_tensor& tensor, int64_t dim) {
  return tensor.ndim ? tensor.strides[dim] : 0;
}

void check_index(const cb_tensor& index, int64_t dim, int64_t size) {
  const int64_t* const data = elements<int64_t>(index);
  for_each(geometry<1>({&index}), [&](auto offset) {
    const int64_t found = data[offset[0]];
    if (found < 0 || found >= size)
      throw failure(CB_RUNTIME_ERROR, "index %lld is out of bounds for dimension %lld with size %lld",
                    static_cast<long long>(found), static_cast<long long>(dim), static_cast<long long>(size));
  });
}

// A view of the tensor over the sizes of the index, with stride 0 in `dim`: the index adds what is
// left out.
struct OverIndex : View {
  OverIndex(const cb_tensor& tensor, const cb_tensor& index, int64_t dim) : View(tensor) {
    for (int64_t d = 0; d < tensor.ndim; ++d) set_size(d, index.sizes[d]);
    if (tensor.ndim) own_strides[static_cast<size_t>(dim)] = 0;
  }
};

// Moves elements, of any dtype.
void gather(Call& call) {
  const arguments::Gather args(call);
  const cb_tensor &out = call.output(), &self = *args.self, &index = *args.index;
  check_index(index, args.dim, size_along(self, args.dim));
  const size_t bytes = cb_dtype_size(out.dtype);
  const auto size = static_cast<int64_t>(bytes);
  const int64_t along = stride_along(self, args.dim);
  const int64_t* const positions = elements<int64_t>(index);
  char *const to = memory_of(out), *const from = memory_of(self);
  const OverIndex source(self, index, args.dim);
  for_each(geometry<3>({&out, &index, &source}), [&](auto offset) {
    std::memcpy(to + offset[0] * size, from + (offset[2] + positions[offset[1]] * along) * size, bytes);
  });
}

// The output begins as self, unless it is self: then the call is in place.
void copy_self(const cb_tensor& out, const cb_tensor& self) {
  char *const to = memory_of(out), *const from = memory_of(self);
  if (to == from) return;
  const size_t bytes = cb_dtype_size(out.dtype);
  const auto size = static_cast<int64_t>(bytes);
  for_each(geometry<2>({&out, &self}),
           [&](auto offset) { std::memcpy(to + offset[0] * size, from + offset[1] * size, bytes); });
}

// Calls write(target, source) with the offset of an element of the output and of src.
template <typename Args, typename F>
void write_at_index(const cb_tensor& out, const Args& args, F write) {
  check_index(*args.index, args.dim, size_along(*args.self, args.dim));
  copy_self(out, *args.self);
  const int64_t along = stride_along(out, args.dim);
  const int64_t* const positions = elements<int64_t>(*args.index);
  const OverIndex target(out, *args.index, args.dim);
  View source(*args.src);
  for (int64_t d = 0; d < source.ndim; ++d) source.set_size(d, args.index->sizes[d]);
  for_each(geometry<3>({&target, args.index, &source}, Order::RowMajor),
           [&](auto offset) { write(offset[0] + positions[offset[1]] * along, offset[2]); });
}

void scatter(Call& call) {
  const arguments::Scatter args(call);
  const cb_tensor &out = call.output(), &src = *args.src;
  const size_t bytes = cb_dtype_size(out.dtype);
  const auto size = static_cast<int64_t>(bytes);
  char *const to = memory_of(out), *const from = memory_of(src);
  write_at_index(out, args,
                 [&](int64_t target, int64_t source) { std::memcpy(to + target * size, from + source * size, bytes); });
}

void scatter_add(Call& call) {
  const arguments::ScatterAdd args(call);
  const cb_tensor &out = call.output(), &src = *args.src;
  dispatch<AllTypes>(out.dtype, [&]<typename T>() {
    memory_t<T>* const to = elements<T>(out);
    const memory_t<T>* const from = elements<T>(src);
    write_at_index(out, args, [&](int64_t target, int64_t source) {
      const auto total = load<T>(to + target) + load<T>(from + source);
      to[target] = static_cast<memory_t<T>>(static_cast<compute_t<T>>(total));
    });
  });
}

}  // namespace

void add_indexing_kernels(Table& table) {
  table.add<gather>("gather");
  table.add<scatter>("scatter");
  table.add<scatter_add>("scatter_add", 0, mask<AllTypes>);
}
