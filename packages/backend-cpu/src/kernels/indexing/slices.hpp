// Slices selected by an index (slices): their offsets, and loops over pairs of them. Indices are
// converted to offsets first, so that every index is checked before anything is written.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "kernels/movement/move.hpp"
#include "memory/allocator.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// ---- Offsets

// Calls f(j, index) for each element of the index tensor, in row-major order.
template <typename F>
void for_each_index(const cb_tensor& index, F&& f) {
  auto g = geometry<1>({&index}, Order::RowMajor);
  parallel_for(g.numel, light_grain, [&](int64_t begin, int64_t end) {
    int64_t j = begin;
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
      const int64_t* numbers = data<int64_t>(index) + at[0];
      for (int64_t i = 0; i < n; ++i, ++j) f(j, numbers[i * g.strides[0][0]]);
    });
  });
}

enum class Negative { Refused, Wraps };

[[noreturn, gnu::cold, gnu::noinline]] inline void raise_index_error(int64_t index, int64_t dim, int64_t size) {
  throw failure(CB_INDEX_ERROR, "index %lld is out of bounds for dimension %lld with size %lld",
                static_cast<long long>(index), static_cast<long long>(dim), static_cast<long long>(size));
}

inline int64_t checked(int64_t index, int64_t dim, int64_t size, Negative negative) {
  int64_t wrapped = index < 0 && negative == Negative::Wraps ? index + size : index;
  if (static_cast<uint64_t>(wrapped) >= static_cast<uint64_t>(size)) raise_index_error(index, dim, size);
  return wrapped;
}

// The offsets of slices: a list, or multiples of a step.
class Offsets {
 public:
  // Allocates a list for the caller to fill.
  int64_t* for_each_of(int64_t count) {
    values_ = std::make_unique<Scratch<int64_t>>(count);
    return values_->data();
  }
  void set_even(int64_t step) {
    values_.reset();
    step_ = step;
  }
  // The offsets of the elements of dimensions [first, first + count) of a tensor, in row-major
  // order.
  void set_dense(const cb_tensor& tensor, int first, int count) {
    cb_tensor part = tensor;
    part.ndim = count;
    part.sizes = tensor.sizes + first;
    part.strides = tensor.strides + first;
    part.numel = 1;
    for (int d = 0; d < count; ++d) part.numel *= part.sizes[d];
    auto g = geometry<1>({&part}, Order::RowMajor);
    if (g.flat()) return set_even(g.strides[0][0]);
    int64_t* to = for_each_of(g.numel);
    for_each_run(g, 0, g.numel, [&](const int64_t* at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) *to++ = at[0] + i * g.strides[0][0];
    });
  }
  int64_t operator[](int64_t j) const { return values_ ? (*values_)[j] : j * step_; }
  // Null if the offsets are multiples of a step.
  const int64_t* values() const { return values_ ? values_->data() : nullptr; }
  // Offsets [first, first + n): from the list, or computed into the buffer.
  const int64_t* some(int64_t first, int64_t n, int64_t* buffer) const {
    if (values_) return values_->data() + first;
    for (int64_t i = 0; i < n; ++i) buffer[i] = (first + i) * step_;
    return buffer;
  }

 private:
  std::unique_ptr<Scratch<int64_t>> values_;
  int64_t step_ = 0;
};

// ---- Slabs

// Pairs of slices: their offsets in the tensor written to and in the one read from, and their
// common shape.
struct IndexedSlices {
  int64_t count;
  Offsets to, from;
  Geometry<2> shape;
  // False: the outer loop is over elements and the inner one over slices, because neighbours in
  // memory are in different slices.
  bool slice_by_slice = true;

  explicit IndexedSlices(int64_t count) : count(count) {}

  // A slice has all dimensions of a tensor except [first, first + indexed).
  void set_shape(const cb_tensor& written, int written_first, int written_indexed, const cb_tensor& read,
                 int read_first, int read_indexed) {
    SliceView a(written, written_first, written_indexed), b(read, read_first, read_indexed);
    shape = geometry<2>({&a.tensor, &b.tensor});
  }
  void prefer(int64_t slice_step) {
    slice_by_slice = shape.numel == 1 || std::abs(slice_step) >= std::abs(shape.strides[0][0]);
  }

  // Calls run(to, from, n, to_stride, from_stride). Exclusive: slices do not overlap, so that
  // threads may share them. Otherwise each thread processes a part of every slice, so that writes
  // to one element stay in order.
  template <bool Exclusive, typename F>
  void for_each(const F& run) {
    for_each_of_runs(
        Exclusive, [](const Runs& runs, const void* function) { runs.call(*static_cast<const F*>(function)); }, &run);
  }

 private:
  // Runs of n elements, one in each of `count` slices. The loops over slices pass whole batches of
  // runs, so that they are compiled once and not per operation and dtype.
  struct Runs {
    const int64_t *to, *from;  // offsets of the slices
    int64_t count;
    int64_t to_shift, from_shift;  // of the run's first element in its slice
    int64_t n, to_stride, from_stride;

    // By value, so that the members of `run` stay in registers.
    template <typename F>
    void call(F run) const {
      if (n == 1)
        for (int64_t j = 0; j < count; ++j)
          run(to[j] + to_shift, from[j] + from_shift, int64_t{1}, int64_t{1}, int64_t{1});
      else
        for (int64_t j = 0; j < count; ++j) run(to[j] + to_shift, from[j] + from_shift, n, to_stride, from_stride);
    }
  };
  using RunFunction = void (*)(const Runs& runs, const void* function);

  void for_each_of_runs(bool exclusive, RunFunction call, const void* function) const {
    int64_t elements = shape.numel;
    if (count == 0 || elements == 0) return;
    int64_t to_stride = shape.strides[0][0], from_stride = shape.strides[1][0];
    auto block = [&](int64_t first, int64_t last, int64_t begin, int64_t end) {
      constexpr int64_t batch = 256;
      int64_t to_buffer[batch], from_buffer[batch];
      for (; first < last; first += batch) {
        int64_t slice_count = std::min(batch, last - first);
        const int64_t *to_at = to.some(first, slice_count, to_buffer),
                      *from_at = from.some(first, slice_count, from_buffer);
        if (shape.flat())
          call({to_at, from_at, slice_count, begin * to_stride, begin * from_stride, end - begin, to_stride,
                from_stride},
               function);
        else
          for (int64_t j = 0; j < slice_count; ++j)
            for_each_run(shape, begin, end, [&](const int64_t* at, int64_t n) {
              call({to_at + j, from_at + j, 1, at[0], at[1], n, to_stride, from_stride}, function);
            });
      }
    };
    if (!slice_by_slice && elements > 1)
      for_each_element(call, function);
    else if (exclusive && (count >= 64 || elements < 1024))
      // The grain is doubled, because a copy costs half as much as an addition.
      parallel_for(count, 2 * grain_for(elements), [&](int64_t begin, int64_t end) { block(begin, end, 0, elements); });
    else
      parallel_for(elements, std::max<int64_t>(16, grain_for(count)),
                   [&](int64_t begin, int64_t end) { block(0, count, begin, end); });
  }

  // The outer loop is over elements, the inner one over slices. Their offsets stay in the L2 cache.
  void for_each_element(RunFunction call, const void* function) const {
    constexpr int64_t batch = 8192;
    const int64_t most = std::min(count, batch);
    Scratch<int64_t> even_to(to.values() ? 0 : most), even_from(from.values() ? 0 : most);
    for (int64_t first = 0; first < count; first += batch) {
      const int64_t slice_count = std::min(batch, count - first);
      const int64_t* to_at = to.some(first, slice_count, even_to.data());
      const int64_t* from_at = from.some(first, slice_count, even_from.data());
      parallel_for(shape.numel, std::max<int64_t>(1, grain_for(slice_count)), [&](int64_t begin, int64_t end) {
        for_each_run(shape, begin, end, [&](const int64_t* at, int64_t n) {
          for (int64_t i = 0; i < n; ++i)
            call({to_at, from_at, slice_count, at[0] + i * shape.strides[0][0], at[1] + i * shape.strides[1][0], 1, 1,
                  1},
                 function);
        });
      });
    }
  }

  struct SliceView {
    int64_t sizes[max_dims];
    int64_t strides[max_dims];
    cb_tensor tensor;
    SliceView(const cb_tensor& original, int first, int indexed) : tensor(original) {
      int kept = 0;
      tensor.numel = 1;
      for (int d = 0; d < original.ndim; ++d) {
        if (d >= first && d < first + indexed) continue;
        sizes[kept] = original.sizes[d];
        strides[kept++] = original.strides[d];
        tensor.numel *= original.sizes[d];
      }
      tensor.ndim = kept;
      tensor.sizes = sizes;
      tensor.strides = strides;
    }
  };
};

// Whether slices are contiguous rows, at least a register long and short enough for the overhead of
// a call per row to matter.
inline bool are_short_rows(const IndexedSlices& slices, int64_t bytes) {
  return slices.slice_by_slice && slices.shape.numel > 1 && slices.shape.flat() && slices.shape.strides[0][0] == 1 &&
         slices.shape.strides[1][0] == 1 && bytes >= 16 && bytes <= 1024;
}

using Bytes16 = char __attribute__((vector_size(16), aligned(1), may_alias));
using Bytes32 = char __attribute__((vector_size(32), aligned(1), may_alias));

// Copies a row. By32: `bytes` is a multiple of 32. Otherwise registers of 16 bytes are used, and
// the last two may overlap.
template <bool By32>
[[gnu::always_inline]] inline void move_row(std::byte* out, const std::byte* in, int64_t bytes) {
  if constexpr (By32) {
    for (int64_t at = 0; at < bytes; at += 32)
      *reinterpret_cast<Bytes32*>(out + at) = *reinterpret_cast<const Bytes32*>(in + at);
  } else {
    const Bytes16 last = *reinterpret_cast<const Bytes16*>(in + bytes - 16);
    for (int64_t at = 0; at + 16 < bytes; at += 16)
      *reinterpret_cast<Bytes16*>(out + at) = *reinterpret_cast<const Bytes16*>(in + at);
    *reinterpret_cast<Bytes16*>(out + bytes - 16) = last;
  }
}

// Copies indexed short rows. `far`: the table is larger than the L2 cache, so that rows are
// prefetched.
template <bool By32>
void move_short_rows(const IndexedSlices& slices, std::byte* out, const std::byte* in, int64_t size, int64_t bytes,
                     bool far) {
  constexpr int64_t batch = 256, ahead = 12, cache_line = 64;
  // Far rows are latency bound: more threads help earlier.
  parallel_for(slices.count, (far ? 1 : 2) * grain_for(slices.shape.numel), [&](int64_t begin, int64_t end) {
    int64_t to_buffer[batch], from_buffer[batch];
    for (int64_t first = begin; first < end; first += batch) {
      const int64_t n = std::min(batch, end - first);
      const int64_t* to_at = slices.to.some(first, n, to_buffer);
      const int64_t* from_at = slices.from.some(first, n, from_buffer);
      for (int64_t j = 0; j < n; ++j) {
        if (far && j + ahead < n)
          for (int64_t at = 0; at < bytes; at += cache_line) __builtin_prefetch(in + from_at[j + ahead] * size + at);
        move_row<By32>(out + to_at[j] * size, in + from_at[j] * size, bytes);
      }
    }
  });
}

// Whether slices are contiguous on one side and strided on the other, such as rows of a transposed
// matrix. They are copied a cache line of each slice at a time, so that the strided side uses all
// of a cache line before it is evicted from L2.
inline bool are_columns(const IndexedSlices& slices, int64_t size) {
  const int64_t to = std::abs(slices.shape.strides[0][0]), from = std::abs(slices.shape.strides[1][0]),
                cache_line = 64 / size;
  return slices.shape.flat() && slices.count >= 4 && slices.shape.numel > cache_line && std::min(to, from) == 1 &&
         std::max(to, from) >= cache_line;
}

template <bool Exclusive, typename U>
void move_columns(const IndexedSlices& slices, U* to, const U* from) {
  constexpr int64_t width = std::max<int64_t>(64 / sizeof(U), 1), batch = 256;
  const int64_t elements = slices.shape.numel, to_stride = slices.shape.strides[0][0],
                from_stride = slices.shape.strides[1][0];
  const auto block = [&](int64_t first_slice, int64_t last_slice, int64_t begin, int64_t end) {
    int64_t to_buffer[batch], from_buffer[batch];
    for (int64_t element = begin; element < end; element += width) {
      const int64_t n = std::min(width, end - element);
      for (int64_t first = first_slice; first < last_slice; first += batch) {
        const int64_t count = std::min(batch, last_slice - first);
        const int64_t *to_at = slices.to.some(first, count, to_buffer),
                      *from_at = slices.from.some(first, count, from_buffer);
        for (int64_t j = 0; j < count; ++j)
          move_run(to + to_at[j] + element * to_stride, to_stride, from + from_at[j] + element * from_stride,
                   from_stride, n);
      }
    }
  };
  if (Exclusive && slices.count >= elements / width)
    parallel_for(slices.count, grain_for(elements),
                 [&](int64_t begin, int64_t end) { block(begin, end, 0, elements); });
  else
    parallel_for(elements, std::max(width, grain_for(slices.count)),
                 [&](int64_t begin, int64_t end) { block(0, slices.count, begin, end); });
}

template <bool Exclusive>
void copy_slices(IndexedSlices& slices, const cb_tensor& out, const cb_tensor& in) {
  const int64_t size = itemsize(out.dtype), bytes = slices.shape.numel * size;
  if (Exclusive && slices.count > 0 && are_short_rows(slices, bytes)) {
    constexpr int64_t near_bytes = 1 << 20;
    const bool far = in.numel * size > near_bytes;
    auto* to = static_cast<std::byte*>(out.data);
    const auto* from = static_cast<const std::byte*>(in.data);
    return bytes % 32 == 0 ? move_short_rows<true>(slices, to, from, size, bytes, far)
                           : move_short_rows<false>(slices, to, from, size, bytes, far);
  }
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    U* to = mutable_data<U>(out);
    const U* from = data<U>(in);
    if (slices.slice_by_slice && are_columns(slices, size)) return move_columns<Exclusive, U>(slices, to, from);
    slices.for_each<Exclusive>([=](int64_t o, int64_t i, int64_t n, int64_t out_stride, int64_t in_stride) {
      move_run(to + o, out_stride, from + i, in_stride, n);
    });
  });
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
