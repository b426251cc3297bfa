// gather, scatter, scatter_add: one index for every element.
#include "../load.hpp"
#include "move.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// A RuntimeError, as PyTorch's gather and scatter raise; the other indexing operators raise IndexError.
[[noreturn, gnu::cold, gnu::noinline]] void out_of_bounds(int64_t index, int64_t dim, int64_t size) {
  throw failure(CB_RUNTIME_ERROR, "index %lld is out of bounds for dimension %lld with size %lld", static_cast<long long>(index),
                static_cast<long long>(dim), static_cast<long long>(size));
}

// A descriptor with other sizes and strides on the same memory.
struct Seen {
  int64_t sizes[max_dims];
  int64_t strides[max_dims];
  cb_tensor tensor;

  // `tensor` as far as `shape` goes; dimension `dim` (where it is not negative) is made of size 1.
  Seen(const cb_tensor& original, const cb_tensor& shape, int64_t dim) : tensor(original) {
    bool number = original.flags & CB_TENSOR_NUMBER;
    tensor.numel = 1;
    for (int d = 0; d < shape.ndim; ++d) {
      sizes[d] = d == dim ? 1 : shape.sizes[d];
      strides[d] = number ? 0 : original.strides[d];
      tensor.numel *= sizes[d];
    }
    tensor.ndim = shape.ndim;
    tensor.sizes = sizes;
    tensor.strides = strides;
  }
  Seen(const Seen&) = delete;
};

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

void check_indices(const cb_tensor& index, int64_t dim, int64_t size) {
  auto g = geometry<1>({&index});
  parallel_for(g.numel, light_grain, [&](int64_t begin, int64_t end) {
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
      const int64_t* numbers = data<int64_t>(index) + at[0];
      for (int64_t i = 0; i < n; ++i) {
        int64_t number = numbers[i * g.strides[0][0]];
        if (static_cast<uint64_t>(number) >= static_cast<uint64_t>(size)) out_of_bounds(number, dim, size);
      }
    });
  });
}

// Where several indices are equal, the last one is written last, and sums are made in the order of the index: work is shared out
// by lines along `dim`, which write apart from one another.
template <typename T, typename F>
void scatter_lines(const cb_tensor& out, const cb_tensor& index, const cb_tensor& source, int64_t dim, F&& write) {
  if (index.numel == 0) return;
  int64_t count = index.ndim ? index.sizes[dim] : 1;
  auto step = [&](const cb_tensor& tensor) { return index.ndim && !(tensor.flags & CB_TENSOR_NUMBER) ? tensor.strides[dim] : 0; };
  int64_t out_step = step(out), index_step = step(index), source_step = step(source);
  Seen kept_out(out, index, dim), kept_index(index, index, dim), kept_source(source, index, dim);
  auto g = geometry<3>({&kept_index.tensor, &kept_out.tensor, &kept_source.tensor});
  int64_t index_stride = g.strides[0][0], out_stride = g.strides[1][0], source_stride = g.strides[2][0];
  bool along_dim = g.numel == 1 || std::abs(index_step) < std::abs(index_stride);
  parallel_for(g.numel, std::max<int64_t>(16, grain_for(count)), [&](int64_t begin, int64_t end) {
    auto one = [&](const int64_t* at, int64_t i, int64_t k) {
      int64_t number = data<int64_t>(index)[at[0] + i * index_stride + k * index_step];
      write(mutable_data<T>(out)[at[1] + i * out_stride + number * out_step],
            data<T>(source)[at[2] + i * source_stride + k * source_step]);
    };
    if (along_dim) {
      for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
        for (int64_t i = 0; i < n; ++i)
          for (int64_t k = 0; k < count; ++k) one(at, i, k);
      });
    } else {
      for (int64_t k = 0; k < count; ++k)
        for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
          for (int64_t i = 0; i < n; ++i) one(at, i, k);
        });
    }
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
