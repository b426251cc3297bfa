// fill_, arange, linspace, _tril_triu_indices.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "candelabra/arguments/creation.hpp"
#include "candelabra/triangle.hpp"
#include "drivers/blocks.hpp"
#include "drivers/iterate.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "memory/copy_bytes.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

template <typename U>
void fill_with(cb_tensor& out, U value) {
  Geometry<1> g = geometry<1>({&out});
  U* base = data<U>(out);
  if (g.contiguous()) {
    parallel_for(g.numel, grain_for(1),
                 [&](int64_t begin, int64_t end) { fill_bytes(base + begin, value, end - begin); });
    return;
  }
  parallel_for(g.numel, grain_for(2), [&](int64_t begin, int64_t end) {
    for_each_run(g, begin, end, [&](const int64_t* offsets, int64_t n) {
      U* run = base + offsets[0];
      int64_t stride = g.strides[0][0];
      for (int64_t i = 0; i < n; ++i) run[i * stride] = value;
    });
  });
}

void fill_(Call& call) {
  const arguments::Fill args(call);
  cb_tensor& out = call.output();
  if (is_float8_dtype(out.dtype)) {
    const auto value = static_cast<float>(args.value->re);
    uint8_t code;
    narrow(out.dtype, &value, &code, 1);
    return fill_with(out, code);
  }
  if (out.dtype == CB_COMPLEX32) {
    const float parts[2] = {static_cast<float>(args.value->re), static_cast<float>(args.value->im)};
    uint32_t bits;
    narrow(out.dtype, parts, &bits, 1);
    return fill_with(out, bits);
  }
  dispatch<AllTypes>(out.dtype, [&]<typename T>() {
    T value = scalar_to<T>(*args.value);
    dispatch_size(sizeof(T), [&]<typename U>() {
      if constexpr (sizeof(U) == sizeof(T)) fill_with(out, std::bit_cast<U>(value));
    });
  });
}

// f(elements, stride, i, n) for runs of elements in row-major order; the first element of a run is
// element i.
template <typename T, typename F>
void for_each_row_major_run(cb_tensor& out, F&& f) {
  Geometry<1> g = geometry<1>({&out}, Order::RowMajor);
  T* base = data<T>(out);
  parallel_for(g.numel, grain_for(4), [&](int64_t begin, int64_t end) {
    int64_t i = begin;
    for_each_run(g, begin, end, [&](const int64_t* offsets, int64_t n) {
      f(base + offsets[0], g.strides[0][0], i, n);
      i += n;
    });
  });
}

// Element i in row-major order becomes value(i).
template <typename T, typename F>
void generate(cb_tensor& out, F&& value) {
  for_each_row_major_run<T>(out, [&](T* run, int64_t stride, int64_t i, int64_t n) {
    if (stride == 1)
      for (int64_t j = 0; j < n; ++j) run[j] = value(i + j);
    else
      for (int64_t j = 0; j < n; ++j) run[j * stride] = value(i + j);
  });
}

void arange(Call& call) {
  const arguments::Arange args(call);
  cb_tensor& out = call.output();
  const cb_scalar &start = *args.start, &step = *args.step;
  const bool integral = start.kind <= CB_SCALAR_INT && step.kind <= CB_SCALAR_INT;
  dispatch<RealTypes>(out.dtype, [&]<typename T>() {
    if constexpr (is_integer_v<T>) {
      if (integral) {
        // Unsigned arithmetic wraps as the dtype does.
        auto first = static_cast<uint64_t>(start.i), each = static_cast<uint64_t>(step.i);
        generate<T>(out, [=](int64_t i) { return static_cast<T>(first + each * static_cast<uint64_t>(i)); });
      } else {  // each bound is truncated to the dtype before the first element, as in PyTorch
        auto first = static_cast<uint64_t>(truncated<int64_t>(start.re)),
             each = static_cast<uint64_t>(truncated<int64_t>(step.re));
        generate<T>(out, [=](int64_t i) { return static_cast<T>(first + each * static_cast<uint64_t>(i)); });
      }
    } else {
      double first = start.re, each = step.re;
      generate<T>(out, [=](int64_t i) {
        return static_cast<T>(static_cast<compute_t<T>>(first + each * static_cast<double>(i)));
      });
    }
  });
}

// Elements base + each * k for n integers k from `first` on. Integers that fit 32 bits are
// converted in vector registers.
template <typename T, typename C>
void number_steps(T* run, int64_t stride, int64_t n, C base, C each, int64_t first) {
  const auto at = [=](auto k) {
    const C value = base + each * static_cast<C>(k);
    if constexpr (is_integer_v<T>)
      return static_cast<T>(truncated<int64_t>(value));
    else
      return T(value);
  };
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (stride == 1 && std::abs(first) + n <= most) {
    const auto small = static_cast<int32_t>(first), count = static_cast<int32_t>(n);
#pragma omp simd
    for (int32_t j = 0; j < count; ++j) run[j] = at(small + j);
  } else {
    for (int64_t j = 0; j < n; ++j) run[j * stride] = at(first + j);
  }
}

void linspace(Call& call) {
  cb_tensor& out = call.output();
  const arguments::Linspace args(call);
  const cb_scalar &start = *args.start, &end = *args.end;
  int64_t steps = out.numel;
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    if constexpr (is_complex_v<T>) {
      complex128 first(start.re, start.im), last(end.re, end.im);
      complex128 each = steps > 1 ? (last - first) / static_cast<double>(steps - 1) : complex128(0);
      generate<T>(out, [=](int64_t i) {
        auto at =
            i < steps / 2 ? first + each * static_cast<double>(i) : last - each * static_cast<double>(steps - 1 - i);
        return steps == 1 ? T(first) : T(at);
      });
    } else {
      using C = std::conditional_t<is_integer_v<T>, double, compute_t<T>>;
      C first = static_cast<C>(start.re), last = static_cast<C>(end.re);
      C each = steps > 1 ? (last - first) / static_cast<C>(steps - 1) : C(0);
      // From both ends to the middle, so that both ends are exact.
      const int64_t middle = steps == 1 ? 1 : steps / 2;
      for_each_row_major_run<T>(out, [=](T* run, int64_t stride, int64_t i, int64_t n) {
        const int64_t low = std::clamp<int64_t>(middle - i, 0, n);
        number_steps(run, stride, low, first, each, i);
        number_steps(run + low * stride, stride, n - low, last, each, i + low - (steps - 1));
      });
    }
  });
}

// The row and column indices of elements [begin, end) of a triangle, in row-major order.
template <typename T>
void write_triangle_indices(T* rows_out, T* columns_out, int64_t begin, int64_t end, int64_t columns, int64_t offset,
                            bool upper) {
  // The row of element `begin`: the last row with at most `begin` elements before it.
  int64_t row = 0, beyond = 1;
  while (triangle::count(beyond, columns, offset, upper) <= begin) beyond *= 2;
  for (row = beyond / 2; beyond - row > 1;) {
    const int64_t middle = row + (beyond - row) / 2;
    (triangle::count(middle, columns, offset, upper) <= begin ? row : beyond) = middle;
  }
  for (int64_t at = triangle::count(row, columns, offset, upper); at < end; ++row) {
    const int64_t edge = std::clamp<int64_t>(row + offset + (upper ? 0 : 1), 0, columns);
    const int64_t first = upper ? edge : 0, length = upper ? columns - edge : edge;
    const int64_t skipped = std::max<int64_t>(0, begin - at), count = std::min(length, end - at) - skipped;
    T *to_row = rows_out + at + skipped, *to_column = columns_out + at + skipped;
    std::fill_n(to_row, count, static_cast<T>(row));
    const auto start = static_cast<T>(first + skipped);
    for (int64_t i = 0; i < count; ++i) to_column[i] = static_cast<T>(start + static_cast<T>(i));
    at += length;
  }
}

void tril_triu_indices(Call& call) {
  cb_tensor& out = call.output();
  const arguments::TrilTriuIndices args(call);
  const int64_t count = out.sizes[1];
  dispatch_among(out.dtype, Types<int32_t, int64_t>{}, [&]<typename T>() {
    T* rows = mutable_data<T>(out);
    parallel_for(count, grain_for(1), [&](int64_t begin, int64_t end) {
      write_triangle_indices(rows, rows + count, begin, end, args.columns, args.offset, args.upper);
    });
  });
}

}  // namespace

void register_creation(KernelTable& table) {
  table.add<fill_>("fill_");
  table.add<arange>("arange");
  table.add<linspace>("linspace");
  table.add<tril_triu_indices>("_tril_triu_indices");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
