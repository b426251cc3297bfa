// cumsum, cumprod, logcumsumexp.

#include <cmath>
#include <complex>
#include <limits>

#include "candelabra/arguments/scan.hpp"
#include "drivers/iterate.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "kernels/movement/dense.hpp"
#include "memory/allocator.hpp"
#include "simd/intrinsics.hpp"
#include "simd/load_elements.hpp"
#include "simd/vec.hpp"
#include "threads/interruption.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// Each element depends on the one before it, so that one running result leaves the processor mostly
// idle. A segment is therefore cut into parts. Their totals come first, vectorized, which also
// loads the segment into the L1 cache. Then all parts are scanned at once, each from the total of
// the parts before it.
constexpr int64_t parts = 8;
constexpr int64_t part_length = 528;  // not a power of two, so that parts do not share cache sets
constexpr int64_t segment = parts * part_length;
constexpr int64_t max_columns = 512, min_columns = 64;

template <typename V>
struct Wide {
  using type = double;
};
template <>
struct Wide<int64_t> {
  using type = uint64_t;  // wraps
};
template <typename T>
struct Wide<std::complex<T>> {
  using type = complex128;
};

struct Add {
  template <typename A>
  static A start() {
    return A(0);
  }
  template <typename A>
  [[gnu::always_inline]] static A apply(A a, A b) {
    return a + b;
  }
};
struct Multiply {
  template <typename A>
  static A start() {
    return A(1);
  }
  template <typename A>
  [[gnu::always_inline]] static A apply(A a, A b) {
    return a * b;
  }
};

template <typename Operation, typename A, typename V>
A total(const V* in, int64_t n) {
  A result[4] = {Operation::template start<A>(), Operation::template start<A>(), Operation::template start<A>(),
                 Operation::template start<A>()};
  for (int64_t i = 0; i + 4 <= n; i += 4)
    for (int64_t k = 0; k < 4; ++k) result[k] = Operation::apply(result[k], static_cast<A>(in[i + k]));
  for (int64_t i = n & ~int64_t{3}; i < n; ++i) result[0] = Operation::apply(result[0], static_cast<A>(in[i]));
  return Operation::apply(Operation::apply(result[0], result[1]), Operation::apply(result[2], result[3]));
}

// The scan of one register of float64: log2 steps combine each lane with those 1, 2 and 4 elements
// before it. The identity is shifted in. Only the last step, which applies the result of all
// registers before, depends on them.
using Register = math::Vec<double>::Raw;

#ifdef __AVX512F__
inline Register load_float64(const float* from) {
  return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(from));
}
inline void store_float64(float* to, Register values) {
  _mm256_storeu_ps(to, _mm512_maskz_cvtpd_ps(0xff, values));
}
template <typename Operation, bool Complex>
[[gnu::always_inline]] inline Register apply_register(Register a, Register b) {
  if constexpr (std::is_same_v<Operation, Add>) return _mm512_add_pd(a, b);
  if constexpr (!Complex) return _mm512_mul_pd(a, b);
  const Register real = _mm512_maskz_movedup_pd(0xff, b), imag = _mm512_maskz_permute_pd(0xff, b, 0xff);
  return _mm512_fmaddsub_pd(a, real, _mm512_mul_pd(_mm512_maskz_permute_pd(0xff, a, 0x55), imag));
}
template <typename Operation, bool Complex>
[[gnu::always_inline]] inline Register scan_lanes(Register x) {
  constexpr auto apply = apply_register<Operation, Complex>;
  if constexpr (Complex) {
    const double start = Operation::template start<double>();
    const __m512d identity = _mm512_setr_pd(start, 0, start, 0, start, 0, start, 0);
    const __m512i by_1 = _mm512_setr_epi64(8, 9, 0, 1, 2, 3, 4, 5), by_2 = _mm512_setr_epi64(8, 9, 10, 11, 0, 1, 2, 3);
    x = apply(_mm512_permutex2var_pd(x, by_1, identity), x);
    return apply(_mm512_permutex2var_pd(x, by_2, identity), x);
  }
  const __m512d identity = _mm512_set1_pd(Operation::template start<double>());
  const __m512i by_1 = _mm512_setr_epi64(8, 0, 1, 2, 3, 4, 5, 6), by_2 = _mm512_setr_epi64(8, 8, 0, 1, 2, 3, 4, 5),
                by_4 = _mm512_setr_epi64(8, 8, 8, 8, 0, 1, 2, 3);
  x = apply(x, _mm512_permutex2var_pd(x, by_1, identity));
  x = apply(x, _mm512_permutex2var_pd(x, by_2, identity));
  return apply(x, _mm512_permutex2var_pd(x, by_4, identity));
}
template <bool Complex>
[[gnu::always_inline]] inline Register repeated_last(Register x) {
  const __m512i last = Complex ? _mm512_setr_epi64(6, 7, 6, 7, 6, 7, 6, 7) : _mm512_set1_epi64(7);
  return _mm512_maskz_permutexvar_pd(0xff, last, x);
}
#else
inline Register load_float64(const float* from) {
  return _mm256_cvtps_pd(_mm_loadu_ps(from));
}
inline void store_float64(float* to, Register values) {
  _mm_storeu_ps(to, _mm256_cvtpd_ps(values));
}
template <typename Operation, bool Complex>
[[gnu::always_inline]] inline Register apply_register(Register a, Register b) {
  if constexpr (std::is_same_v<Operation, Add>) return _mm256_add_pd(a, b);
  if constexpr (!Complex) return _mm256_mul_pd(a, b);
  const Register real = _mm256_movedup_pd(b), imag = _mm256_permute_pd(b, 0xf);
  return _mm256_fmaddsub_pd(a, real, _mm256_mul_pd(_mm256_permute_pd(a, 0x5), imag));
}
template <typename Operation, bool Complex>
[[gnu::always_inline]] inline Register scan_lanes(Register x) {
  constexpr auto apply = apply_register<Operation, Complex>;
  const double start = Operation::template start<double>();
  if constexpr (Complex) return apply(_mm256_permute2f128_pd(_mm256_setr_pd(start, 0, start, 0), x, 0x20), x);
  const __m256d identity = _mm256_set1_pd(start);
  x = apply(x, _mm256_blend_pd(_mm256_permute4x64_pd(x, 0x90), identity, 0x1));
  return apply(x, _mm256_permute2f128_pd(identity, x, 0x20));
}
template <bool Complex>
[[gnu::always_inline]] inline Register repeated_last(Register x) {
  return _mm256_permute4x64_pd(x, Complex ? 0xee : 0xff);
}
#endif
inline Register load_float64(const double* from) {
  return math::Vec<double>::load(from).v;
}
inline void store_float64(double* to, Register values) {
  math::Vec<double>(values).store(to);
}
template <typename Operation, bool Complex, typename R>
[[gnu::always_inline]] inline Register scan_register(Register carry, const R* in, R* out) {
  constexpr auto apply = apply_register<Operation, Complex>;
  const Register x = scan_lanes<Operation, Complex>(load_float64(in));
  store_float64(out, apply(carry, x));
  return apply(carry, repeated_last<Complex>(x));
}

// Whether the register scan is used. Products of eight doubles may overflow where the running
// product does not; those of eight floats, held in float64, cannot.
template <typename Operation, typename V>
constexpr bool uses_registers =
    std::is_same_v<real_t<V>, float> || (std::is_same_v<real_t<V>, double> && std::is_same_v<Operation, Add>);
// Whether one running result keeps the processor busy: sums of integers take a cycle each.
template <typename Operation, typename V>
constexpr bool has_short_chain =
    uses_registers<Operation, V> || (std::is_same_v<V, int64_t> && std::is_same_v<Operation, Add>);

// Returns the last running result.
template <typename Operation, typename A, typename V>
A run_serial(const V* in, V* out, int64_t n, A acc) {
  int64_t whole = 0;
  if constexpr (uses_registers<Operation, V>) {
    using R = real_t<V>;
    constexpr bool is_complex = is_complex_v<V>;
    constexpr int64_t lanes = math::Vec<double>::size, per_register = is_complex ? lanes / 2 : lanes;
    whole = n & ~(per_register - 1);
    alignas(64) double numbers[lanes];
    for (int64_t lane = 0; lane < lanes; ++lane) {
      if constexpr (is_complex)
        numbers[lane] = lane % 2 ? acc.imag() : acc.real();
      else
        numbers[lane] = acc;
    }
    Register last = load_float64(numbers);
    for (int64_t i = 0; i < whole; i += per_register)
      last =
          scan_register<Operation, is_complex>(last, reinterpret_cast<const R*>(in + i), reinterpret_cast<R*>(out + i));
    store_float64(numbers, last);
    if constexpr (is_complex)
      acc = {numbers[0], numbers[1]};
    else
      acc = numbers[0];
  }
  for (int64_t i = whole; i < n; ++i) {
    acc = Operation::apply(acc, static_cast<A>(in[i]));
    out[i] = static_cast<V>(acc);
  }
  return acc;
}

// Scans a full segment; part k begins from starts[k]. in and out may be the same memory.
template <typename Operation, typename A, typename V>
void run_parts(const V* in, V* out, const A* starts) {
  if constexpr (has_short_chain<Operation, V>) {
    for (int64_t k = 0; k < parts; ++k)
      run_serial<Operation>(in + k * part_length, out + k * part_length, part_length, starts[k]);
    return;
  }
  A acc[parts];
  for (int64_t k = 0; k < parts; ++k) acc[k] = starts[k];
  for (int64_t i = 0; i < part_length; ++i)
    for (int64_t k = 0; k < parts; ++k) {
      acc[k] = Operation::apply(acc[k], static_cast<A>(in[k * part_length + i]));
      out[k * part_length + i] = static_cast<V>(acc[k]);
    }
}

template <typename Operation, typename T>
class Scan {
  using V = std::conditional_t<is_integer_v<T>, int64_t, compute_t<T>>;
  using A = typename Wide<V>::type;
  static constexpr bool same = std::is_same_v<T, V>;

 public:
  Scan(const cb_tensor& in, cb_tensor& out, int dim)
      : in_(data<T>(in)),
        out_(data<T>(out)),
        n_(out.sizes[dim]),
        in_stride_(in.strides[dim]),
        out_stride_(out.strides[dim]) {
    std::copy_n(out.sizes, out.ndim, sizes_);
    sizes_[dim] = 1;
    cb_tensor outer_in = in, outer_out = out;
    outer_in.sizes = outer_out.sizes = sizes_;
    outer_in.numel = outer_out.numel = out.numel / std::max<int64_t>(n_, 1);
    outer_ = geometry<2>({&outer_out, &outer_in});
  }

  void run() const {
    bool rows = outer_.strides[0][0] == 1 && outer_.strides[1][0] == 1 && outer_.sizes[0] >= 8 && n_ > 1;
    if (rows && std::abs(out_stride_) != 1) return run_rows();
    int64_t slices = outer_.numel;
    // One thread need not sum integers first; other sums would depend on the number of threads.
    const bool one_pass = has_short_chain<Operation, V> && is_integer_v<T> && thread_count() == 1;
    if (slices < 8 && n_ > 4 * segment && !one_pass) {
      for_each_run(outer_, 0, slices, [&](const int64_t* at, int64_t n) {
        for (int64_t i = 0; i < n; ++i)
          scan_long_slice(in_ + at[1] + i * outer_.strides[1][0], out_ + at[0] + i * outer_.strides[0][0]);
      });
      return;
    }
    parallel_for(slices, grain_for(2 * n_), [&](int64_t begin, int64_t end) {
      for_each_run(outer_, begin, end, [&](const int64_t* at, int64_t n) {
        for (int64_t i = 0; i < n; ++i)
          scan_slice(in_ + at[1] + i * outer_.strides[1][0], out_ + at[0] + i * outer_.strides[0][0]);
      });
    });
  }

 private:
  bool direct() const { return same && in_stride_ == 1 && out_stride_ == 1; }

  // Calls f(values, results) for n elements from i on, through a buffer unless the memory can be
  // used directly.
  template <typename F>
  void with_values(const T* in, T* out, int64_t i, int64_t n, F&& f) const {
    if constexpr (same)
      if (direct()) return f(in + i, out + i);
    Scratch<V> storage(n);  // an array of complex numbers would be zeroed
    V* buffer = storage.data();
    load_strided(in + i * in_stride_, in_stride_, n, buffer);
    if constexpr (same)
      if (out_stride_ == 1) return f(buffer, out + i);
    f(buffer, buffer);
    store_strided(buffer, n, out + i * out_stride_, out_stride_);
  }

  // The running result before each part of a full segment, and after the last.
  static void compute_starts(const V* values, A* starts) {
    for (int64_t k = 0; k < parts; ++k)
      starts[k + 1] = Operation::apply(starts[k], total<Operation, A>(values + k * part_length, part_length));
  }

  // Called for each segment; polls for some.
  static void poll_at(int64_t i) {
    if (i / segment % 256 == 255) poll_interruption();
  }

  void scan_slice(const T* in, T* out) const {
    A starts[parts + 1];
    starts[0] = Operation::template start<A>();
    int64_t i = 0;
    if constexpr (has_short_chain<Operation, V>) {
      for (; i + segment <= n_; i += segment) {
        poll_at(i);
        with_values(in, out, i, segment, [&](const V* values, V* results) {
          starts[0] = run_serial<Operation>(values, results, segment, starts[0]);
        });
      }
    } else {
      for (; i + segment <= n_; i += segment) {
        poll_at(i);
        with_values(in, out, i, segment, [&](const V* values, V* results) {
          compute_starts(values, starts);
          run_parts<Operation>(values, results, starts);
        });
        starts[0] = starts[parts];
      }
    }
    if (i < n_)
      with_values(in, out, i, n_ - i,
                  [&](const V* values, V* results) { run_serial<Operation>(values, results, n_ - i, starts[0]); });
  }

  // The same on all threads: the totals of all segments come first.
  void scan_long_slice(const T* in, T* out) const {
    int64_t full = n_ / segment;
    Scratch<A> totals(full * parts + 1);
    totals[0] = Operation::template start<A>();
    parallel_for(full, 4, [&](int64_t begin, int64_t end) {
      alignas(64) V buffer[segment];
      for (int64_t s = begin; s < end; ++s) {
        const V* values = buffer;
        if constexpr (same) {
          if (in_stride_ == 1)
            values = in + s * segment;
          else
            load_strided(in + s * segment * in_stride_, in_stride_, segment, buffer);
        } else {
          load_strided(in + s * segment * in_stride_, in_stride_, segment, buffer);
        }
        for (int64_t k = 0; k < parts; ++k)
          totals[s * parts + k + 1] = total<Operation, A>(values + k * part_length, part_length);
      }
    });
    for (int64_t k = 1; k <= full * parts; ++k) totals[k] = Operation::apply(totals[k - 1], totals[k]);
    parallel_for(full + 1, 4, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        int64_t i = s * segment, n = std::min(segment, n_ - i);
        with_values(in, out, i, n, [&](const V* values, V* results) {
          if (s < full)
            run_parts<Operation>(values, results, totals.data() + s * parts);
          else
            run_serial<Operation>(values, results, n, totals[full * parts]);
        });
      }
    });
  }

  static void scan_row(A* acc, const V* in, V* out, int64_t columns) {
    int64_t j = 0;
    if constexpr (is_complex_v<V>) {
      using R = real_t<V>;
      constexpr int64_t per_register = math::Vec<double>::size / 2;
      auto* sums = reinterpret_cast<double*>(acc);
      for (; j + per_register <= columns; j += per_register) {
        const Register result = apply_register<Operation, true>(load_float64(sums + 2 * j),
                                                                load_float64(reinterpret_cast<const R*>(in + j)));
        store_float64(sums + 2 * j, result);
        store_float64(reinterpret_cast<R*>(out + j), result);
      }
      for (; j < columns; ++j) out[j] = static_cast<V>(acc[j] = Operation::apply(acc[j], static_cast<A>(in[j])));
      return;
    }
#pragma omp simd
    for (int64_t k = j; k < columns; ++k) {
      acc[k] = Operation::apply(acc[k], static_cast<A>(in[k]));
      out[k] = static_cast<V>(acc[k]);
    }
  }

  // Neighbouring slices are contiguous: scans row by row with one running result per column.
  void run_rows() const {
    // Tiles are narrow enough to give every thread work.
    const int64_t others = outer_.numel / outer_.sizes[0], parts_per_row = (thread_count() + others - 1) / others;
    const int64_t share = ((outer_.sizes[0] + parts_per_row - 1) / parts_per_row + 15) & ~int64_t{15};
    int64_t width = std::min({max_columns, outer_.sizes[0], std::max(min_columns, share)});
    int64_t tiles = (outer_.sizes[0] + width - 1) / width;
    int64_t units = tiles * others;
    parallel_for(units, grain_for(width * n_), [&](int64_t begin, int64_t end) {
      A acc[max_columns];
      V buffer[max_columns];
      for (int64_t unit = begin; unit < end; ++unit) {
        poll_interruption();
        int64_t first = unit % tiles * width, columns = std::min(width, outer_.sizes[0] - first);
        Position<2> at(outer_, unit / tiles * outer_.sizes[0] + first);
        const T* in = in_ + at.offsets[1];
        T* out = out_ + at.offsets[0];
        for (int64_t j = 0; j < columns; ++j) acc[j] = Operation::template start<A>();
        for (int64_t r = 0; r < n_; ++r, in += in_stride_, out += out_stride_) {
          if constexpr (same) {
            scan_row(acc, in, out, columns);
          } else {
            load_strided(in, 1, columns, buffer);
            scan_row(acc, buffer, buffer, columns);
            store_strided(buffer, columns, out, 1);
          }
        }
      }
    });
  }

  const T* in_;
  T* out_;
  int64_t n_, in_stride_, out_stride_;
  int64_t sizes_[max_dims];
  Geometry<2> outer_;
};

// cumsum, cumprod: the same arguments.
template <typename Operation>
void scan(Call& call) {
  const arguments::Cumsum args(call);
  const cb_tensor& in = *args.self;
  cb_tensor& out = call.output();
  if (out.numel == 0) return;
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    if (out.ndim == 0) {
      *data<T>(out) = *data<T>(in);
      return;
    }
    const int dim = static_cast<int>(args.dim);
    // A small input stride along `dim` is gathered on the fly; otherwise the input is copied into
    // the output's order.
    constexpr int64_t small_stride = 4;
    if (out.strides[dim] == 1 && std::abs(in.strides[dim]) <= small_stride)
      return Scan<Operation, T>(in, out, dim).run();
    const InOrderOf read(in, out, dim);
    Scan<Operation, T>(*read, out, dim).run();
  });
}

// log(exp(x[0]) + ... + exp(x[i])) as largest + log(sum of exp(x - largest)), so that nothing
// overflows.
template <typename T>
class RunningLog {
 public:
  T next(T x) {
    const double value = static_cast<double>(x);
    if (value == largest_) {
      sum_ += 1;
    } else if (value < largest_) {
      sum_ += std::exp(value - largest_);
    } else {  // larger, or NaN, which then persists
      sum_ = sum_ * std::exp(largest_ - value) + 1;
      largest_ = value;
    }
    return static_cast<T>(largest_ + std::log(sum_));
  }

 private:
  double largest_ = -std::numeric_limits<double>::infinity(), sum_ = 0;
};

// Complex numbers: each step is big + log1p(exp(small - big)), where `big` has the larger real
// part. The angle of the sum continues from that of `big`.
template <typename R>
class RunningLog<std::complex<R>> {
 public:
  std::complex<R> next(std::complex<R> value) {
    const complex128 x(value);
    if (!begun_) {
      begun_ = true;
      total_ = x;
    } else if (!std::isfinite(x.real()) && x.real() == total_.real()) {
      if (x.real() > 0) total_ = std::log(std::exp(total_) + std::exp(x));  // both are infinite
    } else {
      const bool larger = x.real() >= total_.real();
      const complex128 big = larger ? x : total_, part = std::exp((larger ? total_ : x) - big);
      // log(1 + part)
      total_ =
          big + complex128(std::log1p(2 * part.real() + std::norm(part)) / 2, std::atan2(part.imag(), 1 + part.real()));
    }
    return std::complex<R>(static_cast<R>(total_.real()), static_cast<R>(total_.imag()));
  }

 private:
  complex128 total_{};
  bool begun_ = false;
};

template <typename T>
void logcumsumexp_of(const cb_tensor& in, cb_tensor& out, int dim) {
  const int64_t n = out.sizes[dim], in_stride = in.strides[dim], out_stride = out.strides[dim];
  int64_t sizes[max_dims];
  std::copy_n(out.sizes, out.ndim, sizes);
  sizes[dim] = 1;
  cb_tensor outer_in = in, outer_out = out;
  outer_in.sizes = outer_out.sizes = sizes;
  outer_in.numel = outer_out.numel = out.numel / n;
  const Geometry<2> slices = geometry<2>({&outer_out, &outer_in});
  parallel_for(outer_out.numel, grain_for(20 * n), [&](int64_t begin, int64_t end) {
    for_each_run(slices, begin, end, [&](const int64_t* at, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        const T* from = data<T>(in) + at[1] + i * slices.strides[1][0];
        T* to = data<T>(out) + at[0] + i * slices.strides[0][0];
        RunningLog<T> running;
        constexpr int64_t between_polls = int64_t{1} << 18;
        for (int64_t first = 0; first < n; first += between_polls) {
          poll_interruption();
          for (int64_t k = first; k < std::min(n, first + between_polls); ++k)
            to[k * out_stride] = running.next(from[k * in_stride]);
        }
      }
    });
  });
}

void logcumsumexp(Call& call) {
  const arguments::Logcumsumexp args(call);
  const cb_tensor& in = *args.self;
  cb_tensor& out = call.output();
  if (out.numel == 0) return;
  dispatch<decltype(FloatTypes{} + ComplexTypes{})>(out.dtype, [&]<typename T>() {
    if (out.ndim == 0) {
      *data<T>(out) = *data<T>(in);
      return;
    }
    logcumsumexp_of<T>(in, out, static_cast<int>(args.dim));
  });
}

}  // namespace

void register_scan(KernelTable& table) {
  table.add<scan<Add>>("cumsum");
  table.add<scan<Multiply>>("cumprod");
  table.add<logcumsumexp>("logcumsumexp");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
