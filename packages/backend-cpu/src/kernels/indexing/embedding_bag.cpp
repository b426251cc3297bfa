// _embedding_bag and _embedding_bag_backward: sums, means and maxima of bags of rows of a
// table. Half precisions are accumulated in float32. The gradient is computed per row of the table,
// in the order of the indices, so that it does not depend on the number of threads.
#include <algorithm>
#include <string_view>
#include <vector>

#include "candelabra/arguments/indexing.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "memory/allocator.hpp"
#include "simd/load_elements.hpp"
#include "simd/vec.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

enum class Mode { sum, mean, max };

Mode mode_named(std::string_view name) {
  return name == "mean" ? Mode::mean : name == "max" ? Mode::max : Mode::sum;
}

// Returns where each bag begins, and where the last one ends.
std::vector<int64_t> bag_starts(const cb_tensor& offsets, int64_t bags, int64_t count) {
  std::vector<int64_t> starts(bags + 1);
  const int64_t* begins = data<int64_t>(offsets);
  if (offsets.numel != 0 && begins[0] != 0)
    throw failure(CB_RUNTIME_ERROR,
                  "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                  "However, got %lld",
                  static_cast<long long>(begins[0]));
  if (offsets.numel != 0 && begins[offsets.numel - 1] > count)
    throw failure(CB_RUNTIME_ERROR,
                  "offsets[-1] can not be greater than input's length(%lld) but got offsets[-1] of %lld",
                  static_cast<long long>(count), static_cast<long long>(begins[offsets.numel - 1]));
  for (int64_t b = 0; b < bags; ++b) {
    if (begins[b] < 0)
      throw failure(CB_RUNTIME_ERROR, "embedding_bag: offsets must not be negative, but got %lld",
                    static_cast<long long>(begins[b]));
    starts[b] = std::min(begins[b], count);
  }
  starts[bags] = count;
  if (!std::is_sorted(starts.begin(), starts.end())) std::sort(starts.begin(), starts.end());
  return starts;
}

// Throws for an index that is out of range, before anything is written.
void check_rows(const int64_t* indices, int64_t count, int64_t rows) {
  int64_t outside = 0;  // negative if any index is out of range
#pragma omp simd reduction(| : outside)
  for (int64_t i = 0; i < count; ++i) outside |= indices[i] | (rows - 1 - indices[i]);
  if (outside >= 0) return;
  for (int64_t i = 0; i < count; ++i)
    if (static_cast<uint64_t>(indices[i]) >= static_cast<uint64_t>(rows))
      throw failure(CB_RUNTIME_ERROR,
                    "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be %lld, for %lld rows",
                    static_cast<long long>(indices[i]), static_cast<long long>(rows));
}

template <typename T>
void add_row(const T* row, int64_t step, int64_t columns, compute_t<T> factor, compute_t<T>* sums) {
  using C = compute_t<T>;
  if (step == 1) {
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) sums[c] += factor * static_cast<C>(row[c]);
  } else {
    for (int64_t c = 0; c < columns; ++c) sums[c] += factor * static_cast<C>(row[c * step]);
  }
}

// Sums the rows of one bag in order; returns their number without padding. Columns go in blocks
// whose sums stay in registers.
template <typename T>
int64_t add_bag(const cb_tensor& weight, const int64_t* indices, int64_t first, int64_t last, int64_t count,
                int64_t padding, const compute_t<T>* factors, compute_t<T>* sums) {
  using C = compute_t<T>;
  using V = math::Vec<C>;
  // Eight registers of AVX2
  constexpr int64_t block = 8 * V::size, ahead = 8, cache_line = 64, near_bytes = 1 << 20;
  const int64_t columns = weight.sizes[1], row_step = weight.strides[0], step = weight.strides[1];
  const T* table = data<T>(weight);
  const bool far = weight.numel * static_cast<int64_t>(sizeof(T)) > near_bytes;
  const int64_t whole = step == 1 ? columns - columns % block : 0;
  int64_t used = last - first;
  for (int64_t i = first; padding >= 0 && i < last; ++i) used -= indices[i] == padding;
  for (int64_t c0 = 0; c0 < whole; c0 += block) {
    V parts[block / V::size];
#pragma GCC unroll 32
    for (V& part : parts) part = C(0);
    for (int64_t i = first; i < last; ++i) {
      // Rows are in random order: prefetch them.
      if (far && i + ahead < count) {
        const char* next = reinterpret_cast<const char*>(table + indices[i + ahead] * row_step + c0);
        for (int64_t offset = 0; offset < block * static_cast<int64_t>(sizeof(T)); offset += cache_line)
          __builtin_prefetch(next + offset);
      }
      if (indices[i] == padding) continue;
      const T* row = table + indices[i] * row_step + c0;
      const V factor = factors ? factors[i] : C(1);
      alignas(64) C converted[block];
      const C* values = converted;
      if constexpr (std::is_same_v<T, C>)
        values = row;
      else
        load_contiguous(row, block, converted);
      // Constant indices keep the parts in registers.
#pragma GCC unroll 32
      for (int64_t k = 0; k < block / V::size; ++k)
        parts[k] = math::fma(factor, V::load(values + k * V::size), parts[k]);
    }
    for (int64_t k = 0; k < block / V::size; ++k) parts[k].store(sums + c0 + k * V::size);
  }
  if (whole == columns) return used;
  std::fill_n(sums + whole, columns - whole, C(0));
  for (int64_t i = first; i < last; ++i)
    if (indices[i] != padding)
      add_row<T>(table + indices[i] * row_step + whole * step, step, columns - whole, factors ? factors[i] : C(1),
                 sums + whole);
  return used;
}

template <typename T>
void forward(Call& call) {
  using C = compute_t<T>;
  const arguments::EmbeddingBag args(call);
  const cb_tensor &weight = *args.weight, &out = call.output(0);
  const int64_t* indices = data<int64_t>(*args.indices);
  const cb_tensor* factors = args.per_sample_weights;
  const Mode mode = mode_named(args.mode);
  const int64_t count = args.indices->numel, bags = out.sizes[0], columns = weight.sizes[1], padding = args.padding_idx;
  const int64_t row_step = weight.strides[0], step = weight.strides[1];
  check_rows(indices, count, weight.sizes[0]);
  int64_t* sizes = mutable_data<int64_t>(call.output(2));
  int64_t* positions = mutable_data<int64_t>(call.output(3));
  const std::vector<int64_t> starts = bag_starts(*args.offsets, bags, count);
  int64_t* bag_of = mutable_data<int64_t>(call.output(1));  // of each index
  std::fill_n(bag_of, bags == 0 ? count : starts[0], int64_t{-1});
  const int64_t each = bags ? (count * std::max<int64_t>(columns, 1)) / bags + 1 : 1;
  parallel_for(bags, grain_for(each), [&](int64_t begin, int64_t end) {
    Scratch<C> sums(columns);
    for (int64_t b = begin; b < end; ++b) {
      std::fill(bag_of + starts[b], bag_of + starts[b + 1], b);
      int64_t used = 0;
      if (mode == Mode::max) {
        std::fill_n(sums.data(), columns, C(0));
        std::fill_n(positions + b * columns, columns, int64_t{0});
      } else {
        used = add_bag<T>(weight, indices, starts[b], starts[b + 1], count, padding,
                          factors ? data<C>(*factors) : nullptr, sums.data());
      }
      for (int64_t i = starts[b]; mode == Mode::max && i < starts[b + 1]; ++i) {
        const int64_t index = indices[i];
        if (index == padding) continue;
        const T* row = data<T>(weight) + index * row_step;
        if (used == 0) {
          for (int64_t c = 0; c < columns; ++c) {
            sums[c] = static_cast<C>(row[c * step]);
            positions[b * columns + c] = index;
          }
        } else {
          for (int64_t c = 0; c < columns; ++c) {
            const C value = static_cast<C>(row[c * step]), largest = sums[c];
            const bool takes = value > largest || (value != value && largest == largest);
            sums[c] = takes ? value : largest;
            positions[b * columns + c] = takes ? index : positions[b * columns + c];
          }
        }
        ++used;
      }
      if (mode == Mode::mean && used > 1)
        for (int64_t c = 0; c < columns; ++c) sums[c] /= static_cast<C>(used);
      T* to = mutable_data<T>(out) + b * columns;
      store_contiguous(sums.data(), columns, to);
      sizes[b] = mode == Mode::sum ? 0 : used;
      if (mode != Mode::max) positions[b] = sizes[b];
    }
  });
}

// Each element of the gradient is added to the row that the maximum came from.
template <typename T>
void max_backward(const arguments::EmbeddingBagBackward& args, const cb_tensor& out) {
  using C = compute_t<T>;
  const cb_tensor& grad = *args.grad;
  const int64_t bags = grad.sizes[0], columns = grad.sizes[1], rows = args.num_weights;
  const int64_t *positions = data<int64_t>(*args.max_indices), *sizes = data<int64_t>(*args.bag_size);
  for (int64_t b = 0; b < bags; ++b)
    if (sizes[b] > 0) check_rows(positions + b * columns, columns, rows);
  constexpr int64_t width = 16;  // columns per task
  T* to = mutable_data<T>(out);
  parallel_for((columns + width - 1) / width, grain_for((rows + bags) * width), [&](int64_t begin, int64_t end) {
    Scratch<C> sums(rows * width);
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * width, n = std::min(width, columns - first);
      std::fill_n(sums.data(), rows * width, C(0));
      for (int64_t b = 0; b < bags; ++b) {
        if (sizes[b] == 0) continue;
        for (int64_t c = 0; c < n; ++c) {
          const int64_t at = b * columns + first + c;
          sums[positions[at] * width + c] += static_cast<C>(data<T>(grad)[at]);
        }
      }
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < n; ++c) to[r * columns + first + c] = static_cast<T>(sums[r * width + c]);
    }
  });
}

template <typename T>
void backward(Call& call) {
  using C = compute_t<T>;
  const arguments::EmbeddingBagBackward args(call);
  const cb_tensor &grad = *args.grad, &out = call.output();
  const Mode mode = mode_named(args.mode);
  if (mode == Mode::max) return max_backward<T>(args, out);
  const int64_t *indices = data<int64_t>(*args.indices), *bag_of = data<int64_t>(*args.offset2bag);
  const int64_t* sizes = data<int64_t>(*args.bag_size);
  const cb_tensor* factors = args.per_sample_weights;
  const bool by_frequency = args.scale_grad_by_freq;
  const int64_t count = args.indices->numel, columns = grad.sizes[1], bags = grad.sizes[0], rows = args.num_weights;
  const int64_t padding = args.padding_idx;
  check_rows(indices, count, rows);
  for (int64_t i = 0; i < count; ++i)
    if (bag_of[i] < -1 || bag_of[i] >= bags)
      throw failure(CB_INDEX_ERROR, "_embedding_bag_backward: bag %lld is out of range for %lld bags",
                    static_cast<long long>(bag_of[i]), static_cast<long long>(bags));
  // `order`: the indices sorted by row, stable within a row.
  std::vector<int64_t> starts(rows + 1, 0), order(count);
  for (int64_t i = 0; i < count; ++i) ++starts[indices[i] + 1];
  for (int64_t r = 0; r < rows; ++r) starts[r + 1] += starts[r];
  std::vector<int64_t> next(starts.begin(), starts.end() - 1);
  for (int64_t i = 0; i < count; ++i) order[next[indices[i]]++] = i;
  T* to = mutable_data<T>(out);
  parallel_for(rows, grain_for(columns), [&](int64_t begin, int64_t end) {
    Scratch<C> wide(is_half_v<T> ? columns : 0);
    for (int64_t r = begin; r < end; ++r) {
      C* sums;
      if constexpr (is_half_v<T>)
        sums = wide.data();
      else
        sums = to + r * columns;
      std::fill_n(sums, columns, C(0));
      if (r != padding)
        for (int64_t e = starts[r]; e < starts[r + 1]; ++e) {
          const int64_t i = order[e], b = bag_of[i];
          if (b < 0) continue;
          C factor = factors ? data<C>(*factors)[i] : C(1);
          if (mode == Mode::mean) factor /= static_cast<C>(std::max<int64_t>(sizes[b], 1));
          if (by_frequency) factor /= static_cast<C>(starts[r + 1] - starts[r]);
          add_row<T>(data<T>(grad) + b * columns, 1, columns, factor, sums);
        }
      if constexpr (is_half_v<T>) from_float(sums, to + r * columns, columns);
    }
  });
}

void embedding_bag(Call& call) {
  const arguments::EmbeddingBag args(call);
  dispatch<FloatTypes>(args.weight->dtype, [&]<typename T>() { forward<T>(call); });
}
void embedding_bag_backward(Call& call) {
  const arguments::EmbeddingBagBackward args(call);
  dispatch<FloatTypes>(args.grad->dtype, [&]<typename T>() { backward<T>(call); });
}

}  // namespace

void register_embedding_bag(KernelTable& table) {
  table.add<embedding_bag>("_embedding_bag");
  table.add<embedding_bag_backward>("_embedding_bag_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
