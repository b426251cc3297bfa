// One index per slice of elements: index_select, index_add, index_copy, index_fill, index,
// index_put, take, embedding and its gradient. All of them convert indices to offsets first, then
// copy or add slice by slice.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "candelabra/arguments/indexing.hpp"
#include "kernels/indexing/slice_sums.hpp"
#include "kernels/indexing/slices.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

int64_t size_of(const cb_tensor& tensor, int64_t dim) {
  return tensor.ndim ? tensor.sizes[dim] : 1;
}
int64_t stride_of(const cb_tensor& tensor, int64_t dim) {
  return tensor.ndim ? tensor.strides[dim] : 1;
}
int indexed_dims(const cb_tensor& tensor) {
  return tensor.ndim ? 1 : 0;
}

// Slices of `indexed` along dim by index, slices of `dense` in order.
void set_along(IndexedSlices& slices, const cb_tensor& indexed, const cb_tensor& dense, int64_t dim,
               const cb_tensor& index, Negative negative, bool write_indexed) {
  int64_t size = size_of(indexed, dim), stride = stride_of(indexed, dim), dense_stride = stride_of(dense, dim);
  int64_t* offsets = (write_indexed ? slices.to : slices.from).for_each_of(index.numel);
  (write_indexed ? slices.from : slices.to).set_even(dense_stride);
  for_each_index(index, [&](int64_t j, int64_t number) { offsets[j] = checked(number, dim, size, negative) * stride; });
  const cb_tensor& written = write_indexed ? indexed : dense;
  const cb_tensor& read = write_indexed ? dense : indexed;
  int first = static_cast<int>(dim);
  slices.set_shape(written, first, indexed_dims(written), read, first, indexed_dims(read));
  slices.prefer(dense_stride);
}

void index_select(Call& call) {
  const arguments::IndexSelect args(call);
  const cb_tensor &self = *args.self, &index = *args.index;
  cb_tensor& out = call.output();
  IndexedSlices slices(index.numel);
  set_along(slices, self, out, args.dim, index, Negative::Refused, false);
  copy_slices<true>(slices, out, self);
}

void index_add(Call& call) {
  const arguments::IndexAdd args(call);
  const cb_tensor &self = *args.self, &index = *args.index, &source = *args.source;
  cb_tensor& out = call.output();
  IndexedSlices slices(index.numel);
  set_along(slices, out, source, args.dim, index, Negative::Refused, true);
  dispatch<AllTypes>(out.dtype,
                     [&]<typename T>() { add_slices(slices, out, &self, data<T>(source), scalar_to<T>(*args.alpha)); });
}

void index_copy(Call& call) {
  const arguments::IndexCopy args(call);
  const cb_tensor &self = *args.self, &index = *args.index, &source = *args.source;
  cb_tensor& out = call.output();
  IndexedSlices slices(index.numel);
  set_along(slices, out, source, args.dim, index, Negative::Refused, true);
  initialize_from(out, self);
  copy_slices<false>(slices, out, source);
}

void index_fill(Call& call) {
  const arguments::IndexFill args(call);
  const cb_tensor &self = *args.self, &index = *args.index;
  cb_tensor& out = call.output();
  IndexedSlices slices(index.numel);
  set_along(slices, out, out, args.dim, index, Negative::Wraps, true);
  initialize_from(out, self);
  alignas(Bits128) std::byte element[sizeof(Bits128)];
  dispatch<AllTypes>(out.dtype, [&]<typename T>() {
    const T value = scalar_to<T>(*args.value);
    std::memcpy(element, &value, sizeof value);
  });
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    U value;
    std::memcpy(&value, element, sizeof value);
    U* to = mutable_data<U>(out);
    slices.for_each<false>([=](int64_t o, int64_t, int64_t n, int64_t stride, int64_t) {
      for (int64_t k = 0; k < n; ++k) to[o + k * stride] = value;
    });
  });
}

// ---- index, index_put

// Which dimensions are indexed, and where the dimensions of the indices stand in the result.
struct Indexed {
  int count = 0;   // indexed dimensions
  int first = -1;  // the first of them
  bool adjacent = true;
  const cb_tensor* shape = nullptr;  // one of the index tensors: all have one shape
  int position = 0;                  // of the index dimensions in the indexed shape

  explicit Indexed(std::span<const cb_tensor* const> indices) {
    int last = -1;
    for (int d = 0; d < static_cast<int>(indices.size()); ++d) {
      if (!indices[d]) continue;
      if (count == 0) first = d;
      if (last >= 0 && d != last + 1) adjacent = false;
      last = d;
      shape = indices[d];
      ++count;
    }
    position = adjacent && first >= 0 ? first : 0;
  }
};

// Sets slices between self (by index) and a tensor of the indexed shape.
void set_indexed(IndexedSlices& slices, const Indexed& indexed, const cb_tensor& self,
                 std::span<const cb_tensor* const> indices, const cb_tensor& dense, bool write_indexed) {
  int64_t* offsets = (write_indexed ? slices.to : slices.from).for_each_of(slices.count);
  bool first = true;
  for (int d = 0; d < static_cast<int>(indices.size()); ++d) {
    if (!indices[d]) continue;
    int64_t size = self.sizes[d], stride = self.strides[d];
    for_each_index(*indices[d], [&](int64_t j, int64_t number) {
      int64_t offset = checked(number, d, size, Negative::Wraps) * stride;
      offsets[j] = first ? offset : offsets[j] + offset;
    });
    first = false;
  }
  int index_dims = indexed.shape->ndim;
  (write_indexed ? slices.from : slices.to).set_dense(dense, indexed.position, index_dims);
  // self without its indexed dimensions.
  int64_t sizes[max_dims], strides[max_dims];
  cb_tensor kept = self;
  kept.ndim = 0;
  for (int d = 0; d < self.ndim; ++d) {
    if (d < static_cast<int>(indices.size()) && indices[d]) continue;
    sizes[kept.ndim] = self.sizes[d];
    strides[kept.ndim++] = self.strides[d];
  }
  kept.sizes = sizes;
  kept.strides = strides;
  if (write_indexed)
    slices.set_shape(kept, 0, 0, dense, indexed.position, index_dims);
  else
    slices.set_shape(dense, indexed.position, index_dims, kept, 0, 0);
  int64_t step = index_dims ? dense.strides[indexed.position + index_dims - 1] : 0;
  slices.slice_by_slice =
      slices.shape.numel == 1 || index_dims == 0 || std::abs(step) >= std::abs(slices.shape.strides[write_indexed][0]);
}

// A fast path where every dimension of self has a contiguous index: offsets are computed in blocks.
// False elsewhere.
bool index_elements(const cb_tensor& self, std::span<const cb_tensor* const> indices, const cb_tensor& out) {
  if (static_cast<int>(indices.size()) < self.ndim || !is_contiguous(out)) return false;
  for (const cb_tensor* each : indices)
    if (!each || !is_contiguous(*each)) return false;
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    parallel_for(out.numel, light_grain / 4, [&](int64_t begin, int64_t end) {
      constexpr int64_t block = 512;
      int64_t offsets[block];
      for (int64_t first = begin; first < end; first += block) {
        const int64_t count = std::min(block, end - first);
        std::fill_n(offsets, count, int64_t{0});
        for (int d = 0; d < self.ndim; ++d) {
          const int64_t *index = data<int64_t>(*indices[d]) + first, size = self.sizes[d], stride = self.strides[d];
          int64_t outside = 0;
#pragma omp simd reduction(| : outside)
          for (int64_t i = 0; i < count; ++i) {
            const int64_t wrapped = index[i] + (index[i] < 0 ? size : 0);
            outside |= wrapped | (size - 1 - wrapped);
            offsets[i] += wrapped * stride;
          }
          if (outside < 0)
            for (int64_t i = 0; i < count; ++i) checked(index[i], d, size, Negative::Wraps);
        }
        U* to = mutable_data<U>(out) + first;
        for (int64_t i = 0; i < count; ++i) to[i] = data<U>(self)[offsets[i]];
      }
    });
  });
  return true;
}

void index(Call& call) {
  const arguments::Index args(call);
  const cb_tensor& self = *args.self;
  cb_tensor& out = call.output();
  const auto indices = args.indices;
  Indexed indexed(indices);
  if (!indexed.shape) return move_elements(out, self);
  if (out.numel > 0 && index_elements(self, indices, out)) return;
  IndexedSlices slices(indexed.shape->numel);
  set_indexed(slices, indexed, self, indices, out, false);
  copy_slices<true>(slices, out, self);
}

// In order, so that the last of equal indices wins, with prefetches of the targets.
void put_elements(const IndexedSlices& slices, const cb_tensor& out, const cb_tensor& values) {
  constexpr int64_t ahead = 24;
  const int64_t *offsets = slices.to.values(), last = slices.count - 1;
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    U* to = mutable_data<U>(out);
    const U* from = data<U>(values);
    for (int64_t j = 0; j <= last; ++j) {
      if (offsets) {
        __builtin_prefetch(to + offsets[std::min(j + ahead, last)], 1);
        to[offsets[j]] = from[slices.from[j]];
      } else {
        to[slices.to[j]] = from[slices.from[j]];
      }
    }
  });
}

void index_put(Call& call) {
  const arguments::IndexPut args(call);
  const cb_tensor &self = *args.self, &values = *args.values;
  cb_tensor& out = call.output();
  const auto indices = args.indices;
  Indexed indexed(indices);
  std::optional<IndexedSlices> slices;
  if (indexed.shape) {
    slices.emplace(indexed.shape->numel);
    set_indexed(*slices, indexed, out, indices, values, true);
  } else {
    slices.emplace(1);
    slices->to.set_even(0);
    slices->from.set_even(0);
    slices->set_shape(out, 0, 0, values, 0, 0);
  }
  if (args.accumulate)
    return dispatch<AllTypes>(out.dtype, [&]<typename T>() { add_slices(*slices, out, &self, data<T>(values), T(1)); });
  initialize_from(out, self);
  if (slices->shape.numel == 1)
    put_elements(*slices, out, values);
  else
    copy_slices<false>(*slices, out, values);
}

// ---- take

[[noreturn, gnu::cold, gnu::noinline]] void throw_out_of_range(int64_t index, int64_t numel) {
  throw failure(CB_INDEX_ERROR, "out of range: tried to access index %lld on a tensor of %lld elements.",
                static_cast<long long>(index), static_cast<long long>(numel));
}

// take from contiguous memory.
template <typename U>
void take_dense(U* to, const U* from, const int64_t* indices, int64_t n, int64_t size) {
  constexpr int64_t block = 512;
  int64_t wrapped[block];
  for (int64_t first = 0; first < n; first += block) {
    const int64_t count = std::min(block, n - first);
    int64_t outside = 0;
#pragma omp simd reduction(| : outside)
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = indices[first + i];
      wrapped[i] = index + (index < 0 ? size : 0);
      outside |= wrapped[i] | (size - 1 - wrapped[i]);
    }
    if (outside < 0) {
      for (int64_t i = 0; i < count; ++i)
        if (static_cast<uint64_t>(wrapped[i]) >= static_cast<uint64_t>(size))
          throw_out_of_range(indices[first + i], size);
    }
    for (int64_t i = 0; i < count; ++i) to[first + i] = from[wrapped[i]];
  }
}

void take(Call& call) {
  const arguments::Take args(call);
  const cb_tensor &self = *args.self, &index = *args.index;
  cb_tensor& out = call.output();
  if (index.numel == 0) return;
  if (is_contiguous(self) && is_contiguous(index) && is_contiguous(out)) {
    dispatch_size(itemsize(out.dtype), [&]<typename U>() {
      parallel_for(index.numel, light_grain / 4, [&](int64_t begin, int64_t end) {
        take_dense(mutable_data<U>(out) + begin, data<U>(self), data<int64_t>(index) + begin, end - begin, self.numel);
      });
    });
    return;
  }
  IndexedSlices slices(index.numel);
  auto g = geometry<1>({&self}, Order::RowMajor);
  int64_t* offsets = slices.from.for_each_of(index.numel);
  for_each_index(index, [&](int64_t j, int64_t number) {
    int64_t wrapped = number < 0 ? number + self.numel : number;
    if (static_cast<uint64_t>(wrapped) >= static_cast<uint64_t>(self.numel)) throw_out_of_range(number, self.numel);
    offsets[j] = g.flat() ? wrapped * g.strides[0][0] : Position<1>(g, wrapped).offsets[0];
  });
  slices.to.set_dense(out, 0, out.ndim);
  cb_tensor one = out;
  one.ndim = 0;
  slices.set_shape(one, 0, 0, one, 0, 0);
  copy_slices<true>(slices, out, self);
}

// ---- embedding

// Sets slices between rows of a matrix (by index) and a tensor with one more dimension than the
// indices.
void set_rows(IndexedSlices& slices, const cb_tensor& matrix, const cb_tensor& indices, const cb_tensor& dense,
              bool write_matrix) {
  int64_t* offsets = (write_matrix ? slices.to : slices.from).for_each_of(indices.numel);
  for_each_index(indices, [&](int64_t j, int64_t number) {
    offsets[j] = checked(number, 0, matrix.sizes[0], Negative::Refused) * matrix.strides[0];
  });
  (write_matrix ? slices.from : slices.to).set_dense(dense, 0, indices.ndim);
  if (write_matrix)
    slices.set_shape(matrix, 0, 1, dense, 0, indices.ndim);
  else
    slices.set_shape(dense, 0, indices.ndim, matrix, 0, 1);
}

void embedding(Call& call) {
  const arguments::Embedding args(call);
  const cb_tensor &weight = *args.weight, &indices = *args.indices;
  cb_tensor& out = call.output();
  IndexedSlices slices(indices.numel);
  set_rows(slices, weight, indices, out, false);
  copy_slices<true>(slices, out, weight);
}

void set_zero(const cb_tensor& out) {
  static constexpr Bits128 zero{};
  static constexpr int64_t no_strides[max_dims] = {};
  cb_tensor zeros = out;
  zeros.data = const_cast<Bits128*>(&zero);
  zeros.strides = no_strides;
  move_elements(out, zeros);
}

// Removes the slices whose index is padding.
void remove_padding(IndexedSlices& slices, const cb_tensor& indices, int64_t padding) {
  Scratch<char> keep(indices.numel);
  for_each_index(indices, [&](int64_t j, int64_t index) { keep[j] = index != padding; });
  Offsets to, from;
  int64_t *kept_to = to.for_each_of(slices.count), *kept_from = from.for_each_of(slices.count);
  int64_t kept = 0;
  for (int64_t j = 0; j < slices.count; ++j) {
    if (!keep[j]) continue;
    kept_to[kept] = slices.to[j];
    kept_from[kept++] = slices.from[j];
  }
  std::swap(slices.to, to);
  std::swap(slices.from, from);
  slices.count = kept;
}

void embedding_backward(Call& call) {
  const arguments::EmbeddingBackward args(call);
  const cb_tensor &grad = *args.grad, &indices = *args.indices;
  cb_tensor& out = call.output();
  const int64_t padding = args.padding_idx;
  dispatch<decltype(FloatTypes{} + ComplexTypes{})>(out.dtype, [&]<typename T>() {
    if constexpr (is_half_v<T>) {
      IndexedSlices slices(indices.numel);
      set_rows(slices, out, indices, grad, true);
      if (padding >= 0) remove_padding(slices, indices, padding);
      if (const auto groups = group(slices)) {
        const bool all = is_contiguous(out);
        if (!all) set_zero(out);
        return add_groups<T, T>(*groups, slices.shape.numel, mutable_data<T>(out), all ? nullptr : data<T>(out), all,
                                out.numel, data<T>(grad), 1.0f);
      }
    }
    using S = compute_t<T>;  // half precisions are summed in float32, in a buffer
    Scratch<S> sums(is_half_v<T> ? out.numel : 0);
    int64_t strides[2] = {out.sizes[1], 1};
    cb_tensor summed = out;
    if (is_half_v<T>) {
      summed.data = sums.data();
      summed.dtype = CB_FLOAT32;
      summed.strides = strides;
    }
    IndexedSlices slices(indices.numel);
    set_rows(slices, summed, indices, grad, true);
    if (padding >= 0) remove_padding(slices, indices, padding);
    if constexpr (!is_half_v<T>)
      if (const auto groups = is_contiguous(out) ? group(slices) : nullptr)
        return add_groups<T, T>(*groups, slices.shape.numel, mutable_data<T>(out), nullptr, true, out.numel,
                                data<T>(grad), T(1));
    set_zero(summed);
    add_slices<S, T>(slices, summed, nullptr, data<T>(grad), S(1));
    if constexpr (is_half_v<T>) {
      auto g = geometry<2>({&out, &summed});
      for_each_run(g, 0, g.numel, [&](const int64_t* at, int64_t n) {
        for (int64_t i = 0; i < n; ++i)
          data<T>(out)[at[0] + i * g.strides[0][0]] = T(sums[at[1] + i * g.strides[1][0]]);
      });
    }
  });
}

}  // namespace

void register_indexing_slices(KernelTable& table) {
  table.add<index_select>("index_select");
  table.add<index_add>("index_add");
  table.add<index_copy>("index_copy");
  table.add<index_fill>("index_fill");
  table.add<index>("index");
  table.add<index_put>("index_put");
  table.add<take>("take");
  table.add<embedding>("embedding");
  table.add<embedding_backward>("embedding_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
