// gather, scatter, scatter_add: one index per element.
#include "candelabra/arguments/indexing.hpp"
#include "kernels/indexing/scatter_slices.hpp"
#include "kernels/movement/move.hpp"
#include "memory/allocator.hpp"
#include "simd/load.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// Gathers n elements of a slice along `dim`. Indices are checked block by block, before elements
// are read.
template <typename U>
void gather_slice(U* to, int64_t to_step, const int64_t* indices, int64_t index_step, const U* slice,
                  int64_t slice_step, int64_t n, int64_t dim, int64_t size) {
  constexpr int64_t block = 512;
  for (int64_t first = 0; first < n; first += block) {
    const int64_t count = std::min(block, n - first);
    const int64_t* index = indices + first * index_step;
    U* out = to + first * to_step;
    if (any_out_of_range(index, index_step, count, size)) raise_out_of_bounds(index, index_step, count, dim, size);
    if (to_step == 1 && index_step == 1 && slice_step == 1)
      for (int64_t i = 0; i < count; ++i) out[i] = slice[index[i]];
    else
      for (int64_t i = 0; i < count; ++i) out[i * to_step] = slice[index[i * index_step] * slice_step];
  }
}

// Short contiguous slices, as in tables with few columns: indices are checked for several slices at
// once. False where the slices are long or strided.
template <typename U>
bool gather_short_slices(const Lines& lines, U* to, const U* from, const int64_t* indices, int64_t dim, int64_t size) {
  constexpr int64_t longest = 64, block = 512;
  const int64_t count = lines.count;
  for (const int64_t step : {lines.step[0], lines.step[1], lines.step[2]})
    if (step != 1) return false;
  if (!lines.along || !lines.g.flat() || count > longest || lines.g.strides[0][0] != count) return false;
  const int64_t out_side = lines.g.strides[1][0], self_side = lines.g.strides[2][0];
  parallel_for(lines.g.numel, grain_for(2 * count), [&](int64_t begin, int64_t end) {
    const int64_t each = std::max<int64_t>(1, block / count);
    for (int64_t first = begin; first < end; first += each) {
      const int64_t last = std::min(first + each, end);
      const int64_t* index = indices + first * count;
      if (any_out_of_range(index, 1, (last - first) * count, size))
        raise_out_of_bounds(index, 1, (last - first) * count, dim, size);
      for (int64_t i = first; i < last; ++i, index += count) {
        const U* slice = from + i * self_side;
        U* out = to + i * out_side;
        for (int64_t k = 0; k < count; ++k) out[k] = slice[index[k]];
      }
    }
  });
  return true;
}

void gather(Call& call) {
  const arguments::Gather args(call);
  const cb_tensor &self = *args.self, &index = *args.index;
  cb_tensor& out = call.output();
  const int64_t dim = args.dim;
  if (index.numel == 0) return;
  const int64_t size = self.ndim ? self.sizes[dim] : 1;
  const Lines lines(index, {&out, &self, &out}, dim);
  const auto [index_step, out_step, self_step, unused_step] = std::to_array(lines.step);
  const int64_t index_side = lines.g.strides[0][0], out_side = lines.g.strides[1][0], self_side = lines.g.strides[2][0];
  const int64_t* indices = data<int64_t>(index);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    U* to = mutable_data<U>(out);
    const U* from = data<U>(self);
    if (gather_short_slices(lines, to, from, indices, dim, size)) return;
    // A slice that is read in random order is prefetched as a whole.
    constexpr int64_t whole_bytes = 16384;
    const int64_t slice_bytes = size * static_cast<int64_t>(sizeof(U));
    const bool whole = self_step == 1 && slice_bytes <= whole_bytes && lines.count * 2 >= size && size > 64;
    lines.for_each(
        slice_bytes,
        [&](const int64_t* at, int64_t n) {
          for (int64_t i = 0; i < n; ++i) {
            const U* slice = from + at[2] + i * self_side;
            if (whole) prefetch_row(slice, size);
            gather_slice(to + at[1] + i * out_side, out_step, indices + at[0] + i * index_side, index_step, slice,
                         self_step, lines.count, dim, size);
          }
        },
        [&](const int64_t* at, int64_t n) {
          constexpr int64_t ahead = 4;
          for (int64_t k = 0; k < lines.count; ++k) {
            const int64_t* index = indices + at[0] + k * index_step;
            U* row = to + at[1] + k * out_step;
            const U* block = from + at[2];
            if (any_out_of_range(index, index_side, n, size)) raise_out_of_bounds(index, index_side, n, dim, size);
            if (index_side == 0) {  // one index for the whole row
              move_run(row, out_side, block + *index * self_step, self_side, n);
            } else if (index_side == 1 && out_side == 1 && self_side == 1) {
              if (k + ahead < lines.count) prefetch_row(index + ahead * index_step, n);
              for (int64_t i = 0; i < n; ++i) row[i] = block[i + index[i] * self_step];
            } else {
              for (int64_t i = 0; i < n; ++i)
                row[i * out_side] = block[i * self_side + index[i * index_side] * self_step];
            }
          }
        });
  });
}

void scatter(Call& call) {
  const arguments::Scatter args(call);
  const cb_tensor &self = *args.self, &index = *args.index, &source = *args.src;
  const cb_tensor& out = call.output();
  const int64_t dim = args.dim;
  check_indices(index, dim, self.ndim ? self.sizes[dim] : 1);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    scatter_slices<U>(out, index, source, dim, [](U& to, const U& value) { to = value; }, &self);
  });
}

// scatter_add of a long vector to few elements: a fixed number of parts is summed in parallel, then
// the partial sums are added in order. The result does not depend on the number of threads.
constexpr int64_t parts = 8, shortest_part = 8192;

template <typename T>
bool suits_parts(const cb_tensor& out, const cb_tensor& index, const cb_tensor& source) {
  if constexpr (std::is_same_v<T, bool>)
    return false;
  else
    return out.ndim == 1 && index.ndim == 1 && !(source.flags & CB_TENSOR_NUMBER) &&
           index.numel >= parts * shortest_part && index.numel >= 4 * parts * out.numel;
}

template <typename T>
void add_in_parts(const cb_tensor& out, const cb_tensor& self, const cb_tensor& index, const cb_tensor& source) {
  using C = compute_t<T>;
  const int64_t targets = out.numel, length = (index.numel + parts - 1) / parts;
  const int64_t index_step = index.strides[0], source_step = source.strides[0];
  Scratch<C> sums(parts * targets);
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      C* sum = sums.data() + part * targets;
      std::fill_n(sum, targets, C(0));
      const int64_t* indices = data<int64_t>(index) + part * length * index_step;
      const T* value = data<T>(source) + part * length * source_step;
      const int64_t n = std::min(length, index.numel - part * length);
      if (index_step == 1 && source_step == 1)
        for (int64_t k = 0; k < n; ++k) sum[indices[k]] += static_cast<C>(value[k]);
      else
        for (int64_t k = 0; k < n; ++k) sum[indices[k * index_step]] += static_cast<C>(value[k * source_step]);
    }
  });
  parallel_for(targets, light_grain / parts, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      C total = static_cast<C>(data<T>(self)[i * self.strides[0]]);
      for (int64_t part = 0; part < parts; ++part) total += sums[part * targets + i];
      mutable_data<T>(out)[i * out.strides[0]] = static_cast<T>(total);
    }
  });
}

void scatter_add(Call& call) {
  const arguments::ScatterAdd args(call);
  const cb_tensor &self = *args.self, &index = *args.index, &source = *args.src;
  const cb_tensor& out = call.output();
  const int64_t dim = args.dim;
  check_indices(index, dim, self.ndim ? self.sizes[dim] : 1);
  dispatch<AllTypes>(out.dtype, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, bool>)
      if (suits_parts<T>(out, index, source)) return add_in_parts<T>(out, self, index, source);
    const auto add = [](T& to, const T& value) {
      if constexpr (std::is_same_v<T, bool>)
        to = load(&to) || load(&value);
      else
        to = static_cast<T>(to + value);
    };
    scatter_slices<T>(out, index, source, dim, add, &self);
  });
}

}  // namespace

void register_indexing(KernelTable& table) {
  table.add<gather>("gather");
  table.add<scatter>("scatter");
  table.add<scatter_add>("scatter_add");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
