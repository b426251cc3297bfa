// masked_fill, masked_scatter, masked_select, nonzero.
#include <memory>

#include "candelabra/arguments/indexing.hpp"
#include "kernels/movement/move.hpp"
#include "memory/allocator.hpp"
#include "simd/load.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// A tensor expanded to the given sizes.
struct Expanded {
  int64_t strides[max_dims];
  cb_tensor tensor;

  Expanded(const cb_tensor& original, int ndim, const int64_t* sizes) : tensor(original) {
    tensor.ndim = ndim;
    tensor.sizes = sizes;
    tensor.strides = strides;
    tensor.numel = 1;
    int missing = ndim - original.ndim;
    for (int d = 0; d < ndim; ++d) {
      bool own = d >= missing && !(original.flags & CB_TENSOR_NUMBER) && original.sizes[d - missing] == sizes[d];
      strides[d] = own ? original.strides[d - missing] : 0;
      tensor.numel *= sizes[d];
    }
  }
  Expanded(const Expanded&) = delete;
};

void masked_fill(Call& call) {
  const arguments::MaskedFill args(call);
  cb_tensor& out = call.output();
  Expanded self(*args.self, out.ndim, out.sizes), mask(*args.mask, out.ndim, out.sizes),
      value(*args.value, out.ndim, out.sizes);
  auto g = geometry<4>({&out, &self.tensor, &mask.tensor, &value.tensor});
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    parallel_for(g.numel, light_grain, [&](int64_t begin, int64_t end) {
      for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
        U* to = data<U>(out) + at[0];
        const U* from = data<U>(self.tensor) + at[1];
        const uint8_t* selected = data<uint8_t>(mask.tensor) + at[2];
        const U* values = data<U>(value.tensor) + at[3];
        int64_t s0 = g.strides[0][0], s1 = g.strides[1][0], s2 = g.strides[2][0], s3 = g.strides[3][0];
        if (s0 == 1 && s1 == 1 && s2 == 1 && s3 == 0) {
          U filled = *values;
          for (int64_t i = 0; i < n; ++i) to[i] = selected[i] ? filled : from[i];
        } else {
          for (int64_t i = 0; i < n; ++i) to[i * s0] = selected[i * s2] ? values[i * s3] : from[i * s1];
        }
      });
    });
  });
}

// Selected elements are counted in chunks of this size; a prefix sum gives the output offset of
// each chunk.
constexpr int64_t chunk = 32768;

// count(begin, end) is the number of selected elements in [begin, end). Returns the number before
// each chunk, then the total.
template <typename F>
std::unique_ptr<Scratch<int64_t>> count_chunks(int64_t n, F&& count) {
  int64_t chunks = (n + chunk - 1) / chunk;
  auto before = std::make_unique<Scratch<int64_t>>(chunks + 1);
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) (*before)[c] = count(c * chunk, std::min((c + 1) * chunk, n));
  });
  int64_t sum = 0;
  for (int64_t c = 0; c < chunks; ++c) sum += std::exchange((*before)[c], sum);
  (*before)[chunks] = sum;
  return before;
}

// Appends the selected ones of n adjacent elements, at most up to `full`. Masks often have long
// runs, so groups that are all true or all false take a short cut. In mixed groups every element is
// written and `to` advances only for selected ones: a branch would be mispredicted.
template <typename U>
U* append_selected(U* to, const U* full, const U* from, const uint8_t* selected, int64_t n) {
  constexpr int64_t group = 32;
  int64_t i = 0;
  for (; i + group <= n && full - to >= group; i += group) {
    int32_t count = 0;
#pragma omp simd reduction(+ : count)
    for (int64_t k = 0; k < group; ++k) count += selected[i + k] != 0;
    if (count == group) {
      for (int64_t k = 0; k < group; ++k) to[k] = from[i + k];
      to += group;
    } else if (count != 0) {
      for (int64_t k = 0; k < group; ++k) {
        *to = from[i + k];
        to += selected[i + k] != 0;
      }
    }
  }
  for (; i < n && to != full; ++i) {
    *to = from[i];
    to += selected[i] != 0;
  }
  return to;
}

int64_t count_true(const Geometry<1>& g, const uint8_t* mask, int64_t begin, int64_t end) {
  int64_t count = 0;
  for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
    const uint8_t* here = mask + at[0];
    int64_t stride = g.strides[0][0], sum = 0;
    if (stride == 1)
      for (int64_t i = 0; i < n; ++i) sum += here[i] != 0;
    else
      for (int64_t i = 0; i < n; ++i) sum += here[i * stride] != 0;
    count += sum;
  });
  return count;
}

void masked_select(Call& call) {
  const arguments::MaskedSelect args(call);
  const cb_tensor &self = *args.self, &mask = *args.mask;
  int ndim = std::max(self.ndim, mask.ndim);
  int64_t sizes[max_dims];
  for (int d = 0; d < ndim; ++d) {
    int a = d - (ndim - self.ndim), b = d - (ndim - mask.ndim);
    int64_t size = a >= 0 ? self.sizes[a] : 1;
    sizes[d] = size == 1 && b >= 0 ? mask.sizes[b] : size;
  }
  Expanded values(self, ndim, sizes), selected(mask, ndim, sizes);
  auto m = geometry<1>({&selected.tensor}, Order::RowMajor);
  auto g = geometry<2>({&values.tensor, &selected.tensor}, Order::RowMajor);
  const uint8_t* bits = data<uint8_t>(mask);
  auto before = count_chunks(g.numel, [&](int64_t begin, int64_t end) { return count_true(m, bits, begin, end); });
  int64_t chunks = (g.numel + chunk - 1) / chunk;
  int64_t count = (*before)[chunks];
  cb_tensor& out = call.allocate_output(0, std::span(&count, 1));
  if (count == 0) return;
  dispatch_size(itemsize(self.dtype), [&]<typename U>() {
    parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
      U *to = data<U>(out) + (*before)[first], *end = data<U>(out) + (*before)[last];
      for_each_run(g, first * chunk, std::min(last * chunk, g.numel), [&](const int64_t* at, int64_t n) {
        const U* from = data<U>(self) + at[0];
        const uint8_t* here = bits + at[1];
        if (g.strides[0][0] == 1 && g.strides[1][0] == 1) {
          to = append_selected(to, end, from, here, n);
          return;
        }
        for (int64_t i = 0; i < n && to != end; ++i) {
          *to = from[i * g.strides[0][0]];
          to += here[i * g.strides[1][0]] != 0;
        }
      });
    });
  });
}

void masked_scatter(Call& call) {
  const arguments::MaskedScatter args(call);
  const cb_tensor& source = *args.source;
  cb_tensor& out = call.output();
  Expanded self(*args.self, out.ndim, out.sizes), mask(*args.mask, out.ndim, out.sizes);
  const uint8_t* bits = data<uint8_t>(mask.tensor);
  auto m = geometry<1>({&mask.tensor}, Order::RowMajor);
  auto before = count_chunks(m.numel, [&](int64_t begin, int64_t end) { return count_true(m, bits, begin, end); });
  int64_t chunks = (m.numel + chunk - 1) / chunk;
  if ((*before)[chunks] > source.numel)
    throw failure(CB_RUNTIME_ERROR, "masked_scatter: the mask selects %lld elements, but source has only %lld",
                  static_cast<long long>((*before)[chunks]), static_cast<long long>(source.numel));
  initialize_from(out, self.tensor);
  auto g = geometry<2>({&out, &mask.tensor}, Order::RowMajor);
  auto s = geometry<1>({&source}, Order::RowMajor);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
      int64_t taken = (*before)[first];
      for_each_run(g, first * chunk, std::min(last * chunk, g.numel), [&](const int64_t* at, int64_t n) {
        U* to = data<U>(out) + at[0];
        for (int64_t i = 0; i < n; ++i) {
          if (!bits[at[1] + i * g.strides[1][0]]) continue;
          int64_t from = s.flat() ? taken * s.strides[0][0] : Position<1>(s, taken).offsets[0];
          ++taken;
          to[i * g.strides[0][0]] = data<U>(source)[from];
        }
      });
    });
  });
}

// ---- nonzero

// Appends the indices of the nonzero elements [begin, end) of a row, at most up to `full`. Indices
// are always written and `to` advances only for nonzero elements: a branch would be mispredicted.
// `index` has the leading indices. Dims is the number of dimensions, or 0 where only `ndim` knows
// it.
template <typename T, int Dims>
int64_t* write_row(const T* row, int64_t stride, int64_t begin, int64_t end, const int64_t* index, int ndim,
                   int64_t* to, const int64_t* full) {
  int64_t first = Dims == 2 ? index[0] : 0;
  int64_t j = begin;
  // Masks often have long runs: groups that are all true or all false take a short cut.
  if constexpr (sizeof(T) == 1 && (Dims == 1 || Dims == 2)) {
    constexpr int64_t group = 64;
    while (stride == 1 && j + group <= end && full - to >= group * Dims) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(row + j);
      int32_t count = 0;
#pragma omp simd reduction(+ : count)
      for (int64_t k = 0; k < group; ++k) count += bytes[k] != 0;
      if (count == group) {
        for (int64_t k = 0; k < group; ++k) {
          if constexpr (Dims == 2) to[2 * k] = first;
          to[Dims * k + Dims - 1] = j + k;
        }
        to += group * Dims;
      } else if (count != 0) {
        for (int64_t k = 0; k < group; ++k) {
          if constexpr (Dims == 2) to[0] = first;
          to[Dims - 1] = j + k;
          to += bytes[k] ? Dims : 0;
        }
      }
      j += group;
    }
  }
  for (; j < end && to != full; ++j) {
    if constexpr (Dims == 2)
      to[0] = first;
    else
      for (int d = 0; d + 1 < ndim; ++d) to[d] = index[d];
    to[ndim - 1] = j;
    to += is_nonzero(load(row + j * stride)) ? ndim : 0;
  }
  return to;
}

template <typename T>
void nonzero_of(Call& call, const cb_tensor& self) {
  auto g = geometry<1>({&self}, Order::RowMajor);
  const T* values = data<T>(self);
  auto before = count_chunks(g.numel, [&](int64_t begin, int64_t end) {
    int64_t count = 0;
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) count += is_nonzero(load(values + at[0] + i * g.strides[0][0]));
    });
    return count;
  });
  int64_t chunks = (g.numel + chunk - 1) / chunk;
  int64_t shape[2] = {(*before)[chunks], self.ndim};
  cb_tensor& out = call.allocate_output(0, shape);
  if (out.numel == 0) return;
  int last_dim = self.ndim - 1;
  int64_t row_length = self.sizes[last_dim];
  parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
    int64_t *to = data<int64_t>(out) + (*before)[first] * self.ndim,
            *full = data<int64_t>(out) + (*before)[last] * self.ndim;
    int64_t element = first * chunk, end = std::min(last * chunk, g.numel);
    int64_t index[max_dims];
    while (element < end) {  // row by row
      int64_t rest = element / row_length, offset = 0;
      int64_t j = element % row_length;
      int64_t row_end = std::min(row_length, j + end - element);
      for (int d = last_dim - 1; d >= 0; --d) {
        index[d] = rest % self.sizes[d];
        rest /= self.sizes[d];
        offset += index[d] * self.strides[d];
      }
      element += row_end - j;
      const T* row = values + offset;
      int64_t stride = self.strides[last_dim];
      if (self.ndim == 1)
        to = write_row<T, 1>(row, stride, j, row_end, index, 1, to, full);
      else if (self.ndim == 2)
        to = write_row<T, 2>(row, stride, j, row_end, index, 2, to, full);
      else
        to = write_row<T, 0>(row, stride, j, row_end, index, self.ndim, to, full);
    }
  });
}

void nonzero(Call& call) {
  const arguments::Nonzero args(call);
  dispatch<AllTypes>(args.self->dtype, [&]<typename T>() { nonzero_of<T>(call, *args.self); });
}

}  // namespace

void register_indexing_masks(KernelTable& table) {
  table.add<masked_fill>("masked_fill");
  table.add<masked_scatter>("masked_scatter");
  table.add<masked_select>("masked_select");
  table.add<nonzero>("nonzero");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
