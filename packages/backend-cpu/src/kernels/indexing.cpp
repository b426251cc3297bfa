// gather, scatter, scatter_add: one index for every element.
#include "../allocator.hpp"
#include "../load.hpp"
#include "move.hpp"
#include "scatter_lines.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// n elements of a line by number; a number that is none of the line's is refused before those next to it are read.
template <typename U>
void pick(U* to, int64_t to_step, const int64_t* numbers, int64_t index_step, const U* line, int64_t line_step, int64_t n,
          int64_t dim, int64_t size) {
  constexpr int64_t together = 512;
  for (int64_t first = 0; first < n; first += together) {
    const int64_t count = std::min(together, n - first);
    const int64_t* number = numbers + first * index_step;
    U* out = to + first * to_step;
    if (any_outside(number, index_step, count, size)) refuse(number, index_step, count, dim, size);
    if (to_step == 1 && index_step == 1 && line_step == 1)
      for (int64_t i = 0; i < count; ++i) out[i] = line[number[i]];
    else
      for (int64_t i = 0; i < count; ++i) out[i * to_step] = line[number[i * index_step] * line_step];
  }
}

// Short lines one after another, as those of tables with a few columns: indices are checked for several lines at once.
template <typename U>
bool gather_short_lines(const Lines& lines, U* to, const U* from, const int64_t* numbers, int64_t dim, int64_t size) {
  constexpr int64_t longest = 64, together = 512;
  const int64_t count = lines.count;
  for (const int64_t step : {lines.step[0], lines.step[1], lines.step[2]})
    if (step != 1) return false;
  if (!lines.along || !lines.g.flat() || count > longest || lines.g.strides[0][0] != count) return false;
  const int64_t out_side = lines.g.strides[1][0], self_side = lines.g.strides[2][0];
  parallel_for(lines.g.numel, grain_for(2 * count), [&](int64_t begin, int64_t end) {
    const int64_t each = std::max<int64_t>(1, together / count);
    for (int64_t first = begin; first < end; first += each) {
      const int64_t last = std::min(first + each, end);
      const int64_t* number = numbers + first * count;
      if (any_outside(number, 1, (last - first) * count, size)) refuse(number, 1, (last - first) * count, dim, size);
      for (int64_t i = first; i < last; ++i, number += count) {
        const U* line = from + i * self_side;
        U* out = to + i * out_side;
        for (int64_t k = 0; k < count; ++k) out[k] = line[number[k]];
      }
    }
  });
  return true;
}

void gather(Call& call) {
  const cb_tensor &self = call.tensor(0), &index = call.tensor(2);
  cb_tensor& out = call.output();
  const int64_t dim = call.integer(1);
  if (index.numel == 0) return;
  const int64_t size = self.ndim ? self.sizes[dim] : 1;
  const Lines lines(index, {&out, &self, &out}, dim);
  const auto [index_step, out_step, self_step, unused_step] = std::to_array(lines.step);
  const int64_t index_side = lines.g.strides[0][0], out_side = lines.g.strides[1][0], self_side = lines.g.strides[2][0];
  const int64_t* numbers = data<int64_t>(index);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    U* to = mutable_data<U>(out);
    const U* from = data<U>(self);
    if (gather_short_lines(lines, to, from, numbers, dim, size)) return;
    // A line that is read here and there comes to the cache sooner as a whole.
    constexpr int64_t whole_bytes = 16384;
    const int64_t line_bytes = size * static_cast<int64_t>(sizeof(U));
    const bool whole = self_step == 1 && line_bytes <= whole_bytes && lines.count * 2 >= size && size > 64;
    lines.for_each(
        line_bytes,
        [&](const int64_t* at, int64_t n) {
          for (int64_t i = 0; i < n; ++i) {
            const U* line = from + at[2] + i * self_side;
            if (whole) ask_for(line, size);
            pick(to + at[1] + i * out_side, out_step, numbers + at[0] + i * index_side, index_step, line, self_step, lines.count,
                 dim, size);
          }
        },
        [&](const int64_t* at, int64_t n) {
          constexpr int64_t ahead = 4;
          for (int64_t k = 0; k < lines.count; ++k) {
            const int64_t* number = numbers + at[0] + k * index_step;
            U* row = to + at[1] + k * out_step;
            const U* block = from + at[2];
            if (any_outside(number, index_side, n, size)) refuse(number, index_side, n, dim, size);
            if (index_side == 0) {  // one number for all of them
              move_run(row, out_side, block + *number * self_step, self_side, n);
            } else if (index_side == 1 && out_side == 1 && self_side == 1) {
              if (k + ahead < lines.count) ask_for(number + ahead * index_step, n);
              for (int64_t i = 0; i < n; ++i) row[i] = block[i + number[i] * self_step];
            } else {
              for (int64_t i = 0; i < n; ++i) row[i * out_side] = block[i * self_side + number[i * index_side] * self_step];
            }
          }
        });
  });
}

void scatter(Call& call) {
  const cb_tensor &self = call.tensor(0), &index = call.tensor(2), &source = call.tensor(3);
  const cb_tensor& out = call.output();
  const int64_t dim = call.integer(1);
  check_indices(index, dim, self.ndim ? self.sizes[dim] : 1);
  dispatch_size(itemsize(out.dtype),
                [&]<typename U>() { scatter_lines<U>(out, index, source, dim, [](U& to, const U& value) { to = value; }, &self); });
}

// A single long line that goes to few places: parts of it are summed apart, always the same ones, and the sums of the parts then
// are added in their order.
constexpr int64_t parts = 8, shortest_part = 8192;

template <typename T>
bool adds_in_parts(const cb_tensor& out, const cb_tensor& index, const cb_tensor& source) {
  if constexpr (std::is_same_v<T, bool>)
    return false;
  else
    return out.ndim == 1 && index.ndim == 1 && !(source.flags & CB_TENSOR_NUMBER) && index.numel >= parts * shortest_part &&
           index.numel >= 4 * parts * out.numel;
}

template <typename T>
void add_in_parts(const cb_tensor& out, const cb_tensor& self, const cb_tensor& index, const cb_tensor& source) {
  using C = compute_t<T>;
  const int64_t places = out.numel, length = (index.numel + parts - 1) / parts;
  const int64_t index_step = index.strides[0], source_step = source.strides[0];
  Scratch<C> sums(parts * places);
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      C* sum = sums.data() + part * places;
      std::fill_n(sum, places, C(0));
      const int64_t* number = data<int64_t>(index) + part * length * index_step;
      const T* value = data<T>(source) + part * length * source_step;
      const int64_t n = std::min(length, index.numel - part * length);
      if (index_step == 1 && source_step == 1)
        for (int64_t k = 0; k < n; ++k) sum[number[k]] += static_cast<C>(value[k]);
      else
        for (int64_t k = 0; k < n; ++k) sum[number[k * index_step]] += static_cast<C>(value[k * source_step]);
    }
  });
  parallel_for(places, light_grain / parts, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      C total = static_cast<C>(data<T>(self)[i * self.strides[0]]);
      for (int64_t part = 0; part < parts; ++part) total += sums[part * places + i];
      mutable_data<T>(out)[i * out.strides[0]] = static_cast<T>(total);
    }
  });
}

void scatter_add(Call& call) {
  const cb_tensor &self = call.tensor(0), &index = call.tensor(2), &source = call.tensor(3);
  const cb_tensor& out = call.output();
  const int64_t dim = call.integer(1);
  check_indices(index, dim, self.ndim ? self.sizes[dim] : 1);
  dispatch<AllTypes>(out.dtype, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, bool>)
      if (adds_in_parts<T>(out, index, source)) return add_in_parts<T>(out, self, index, source);
    const auto add = [](T& to, const T& value) {
      if constexpr (std::is_same_v<T, bool>)
        to = load(&to) || load(&value);
      else
        to = static_cast<T>(to + value);
    };
    scatter_lines<T>(out, index, source, dim, add, &self);
  });
}

}  // namespace

void register_indexing(KernelTable& table) {
  table.add<gather>("gather");
  table.add<scatter>("scatter");
  table.add<scatter_add>("scatter_add");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
