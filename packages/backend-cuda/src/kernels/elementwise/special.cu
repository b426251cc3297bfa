// Special functions, by the scalar formulas of candelabra/special in double precision. The formulas
// are long, so that each is compiled once: a switch over dtypes reads and writes the elements.
#include <cmath>

#include "candelabra/arguments/special.hpp"
#include "candelabra/special/bessel.hpp"
#include "candelabra/special/gamma.hpp"
#include "candelabra/special/polynomials.hpp"
#include "drivers/elementwise.cuh"

namespace candelabra::cuda {
namespace {

constexpr int threads = elementwise::threads;

template <int N>
struct Arguments {
  elementwise::Piece<N> piece;
  int32_t dtype;
};

// ---- floating point

// A number in place of a tensor is stored as float, and as double for float64.
__device__ __forceinline__ double read(const void* data, const unsigned char* number, uint32_t offset, int32_t dtype) {
  if (dtype == CB_FLOAT64)
    return data ? static_cast<const double*>(data)[offset] : *reinterpret_cast<const double*>(number);
  if (!data) return static_cast<double>(*reinterpret_cast<const float*>(number));
  if (dtype == CB_FLOAT32) return static_cast<double>(static_cast<const float*>(data)[offset]);
  if (dtype == CB_FLOAT16) return static_cast<double>(loaded<Half>(static_cast<const Half*>(data)[offset]));
  return static_cast<double>(loaded<BFloat16>(static_cast<const BFloat16*>(data)[offset]));
}
__device__ __forceinline__ void write(void* data, uint32_t offset, int32_t dtype, double value) {
  if (dtype == CB_FLOAT64)
    static_cast<double*>(data)[offset] = value;
  else if (dtype == CB_FLOAT32)
    static_cast<float*>(data)[offset] = static_cast<float>(value);
  else if (dtype == CB_FLOAT16)
    static_cast<Half*>(data)[offset] = Half(static_cast<float>(value));
  else
    static_cast<BFloat16*>(data)[offset] = BFloat16(static_cast<float>(value));
}

template <auto Function, int Ins>
__global__ void __launch_bounds__(threads) function_kernel(const __grid_constant__ Arguments<Ins + 1> a) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= a.piece.indexer.count) return;
  uint32_t at[Ins + 1];
  a.piece.indexer.at_rolled(i, at);
  const double x = read(a.piece.data[1], a.piece.values[1], at[1], a.dtype);
  double result;
  if constexpr (Ins == 1)
    result = Function(x);
  else
    result = Function(x, read(a.piece.data[2], a.piece.values[2], at[2], a.dtype));
  write(a.piece.data[0], at[0], a.dtype, result);
}

template <int N, void Kernel(Arguments<N>)>
void launch_kernel(const Call& call, const void* dtype, const elementwise::Piece<N>& piece, bool) {
  Arguments<N> arguments{piece, *static_cast<const int32_t*>(dtype)};
  launch_with(call, reinterpret_cast<const void*>(Kernel), divide_up(piece.indexer.count, threads), threads,
              &arguments);
}

template <int N>
void run_each(Call& call, elementwise::Launcher<N> launcher) {
  const int32_t dtype = call.output().dtype;
  elementwise::Plan<N> plan{};
  plan.tensors[0] = &call.output();
  const auto operands = leading_tensors<N - 1>(call);
  std::copy(operands.begin(), operands.end(), plan.tensors.begin() + 1);
  plan.outs = 1;
  plan.vec = 1;
  for (int k = 0; k < N; ++k) {
    plan.sizes[k] = static_cast<int>(itemsize(dtype));
    plan.as_float[k] = is_floating_dtype(dtype) && dtype != CB_FLOAT64;
  }
  elementwise::run_pieces(call, plan, launcher, &dtype);
}

template <auto Function, int Ins>
void function(Call& call) {
  if (!is_floating_dtype(call.output().dtype)) throw not_implemented();
  run_each<Ins + 1>(call, launch_kernel<Ins + 1, function_kernel<Function, Ins>>);
}

template <double (*Function)(double)>
void add_unary(KernelTable& table, const char* name) {
  table.add<function<Function, 1>>(name);
}
template <double (*Function)(double, double)>
void add_binary(KernelTable& table, const char* name) {
  table.add<function<Function, 2>>(name);
}

// ---- integers

// The absolute value as an unsigned integer, which also represents that of the smallest integer.
template <typename U>
__device__ __forceinline__ U magnitude(const elementwise::Piece<3>& piece, int k, uint32_t offset, int32_t dtype) {
  const void* from = piece.data[k] ? piece.data[k] : piece.values[k];
  const uint32_t at = piece.data[k] ? offset : 0;
  int64_t value;
  switch (dtype) {
    case CB_UINT8:
      return static_cast<const uint8_t*>(from)[at];
    case CB_UINT16:
      return static_cast<const uint16_t*>(from)[at];
    case CB_UINT32:
    case CB_UINT64:
      return static_cast<const U*>(from)[at];
    case CB_INT8:
      value = static_cast<const int8_t*>(from)[at];
      break;
    case CB_INT16:
      value = static_cast<const int16_t*>(from)[at];
      break;
    case CB_INT32:
      value = static_cast<const int32_t*>(from)[at];
      break;
    default:
      value = static_cast<const int64_t*>(from)[at];
  }
  return static_cast<U>(value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
}

// Writes a magnitude wrapped to the dtype, then made positive as abs() does.
template <typename S, typename U>
__device__ __forceinline__ void write_magnitude(void* data, uint32_t offset, U value) {
  using Unsigned = std::make_unsigned_t<S>;
  const S wrapped = static_cast<S>(value);
  static_cast<S*>(data)[offset] = wrapped < 0 ? static_cast<S>(Unsigned{0} - static_cast<Unsigned>(wrapped)) : wrapped;
}

// U: 32 bits for all dtypes that fit, 64 for the others.
template <typename U, bool Multiple>
__global__ void __launch_bounds__(threads) divisor_kernel(const __grid_constant__ Arguments<3> a) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= a.piece.indexer.count) return;
  uint32_t at[3];
  a.piece.indexer.at_rolled(i, at);
  const U x = magnitude<U>(a.piece, 1, at[1], a.dtype), y = magnitude<U>(a.piece, 2, at[2], a.dtype);
  U result = x;
  for (U other = y; other != 0;) {
    const U rest = result % other;
    result = other;
    other = rest;
  }
  if constexpr (Multiple) result = result == 0 ? U{0} : x / result * y;
  void* out = a.piece.data[0];
  switch (a.dtype) {
    case CB_UINT8:
      static_cast<uint8_t*>(out)[at[0]] = static_cast<uint8_t>(result);
      break;
    case CB_UINT16:
      static_cast<uint16_t*>(out)[at[0]] = static_cast<uint16_t>(result);
      break;
    case CB_UINT32:
    case CB_UINT64:
      static_cast<U*>(out)[at[0]] = result;
      break;
    case CB_INT8:
      write_magnitude<int8_t>(out, at[0], result);
      break;
    case CB_INT16:
      write_magnitude<int16_t>(out, at[0], result);
      break;
    case CB_INT32:
      write_magnitude<int32_t>(out, at[0], result);
      break;
    default:
      write_magnitude<int64_t>(out, at[0], result);
  }
}

template <bool Multiple>
void divisor(Call& call) {
  const int32_t dtype = call.output().dtype;
  run_each<3>(call, itemsize(dtype) == 8 ? launch_kernel<3, divisor_kernel<uint64_t, Multiple>>
                                         : launch_kernel<3, divisor_kernel<uint32_t, Multiple>>);
}

// ---- computed in compute_t

struct Entropy {
  template <typename T>
  __device__ T operator()(T x) const {
    return x < T(0) ? -math::detail::infinity<T> : x == T(0) ? T(0) : -x * math::log(x);
  }
};

// The mantissa, of magnitude in [1/2, 1), and the exponent.
struct Parts {
  template <typename T>
  __device__ void operator()(T x, T* mantissa, int32_t* exponent) const {
    int power = 0;
    const bool finite = math::abs(x) < math::detail::infinity<T>;
    *mantissa = finite ? std::frexp(x, &power) : x;
    *exponent = power;
  }
};
void frexp(Call& call) {
  const arguments::Frexp args(call);
  dispatch<FloatTypes>(args.self->dtype, [&]<typename T>() {
    map<Types<T, int32_t>, Types<T>>(call, Parts{}, {&call.output(0), &call.output(1)}, {args.self});
  });
}

}  // namespace

void register_special(KernelTable& table) {
  add_unary<math::i0>(table, "i0");
  add_unary<math::i0e>(table, "special_i0e");
  add_unary<math::i1>(table, "special_i1");
  add_unary<math::i1e>(table, "special_i1e");
  add_unary<math::k0>(table, "special_modified_bessel_k0");
  add_unary<math::k1>(table, "special_modified_bessel_k1");
  add_unary<math::scaled_k0>(table, "special_scaled_modified_bessel_k0");
  add_unary<math::scaled_k1>(table, "special_scaled_modified_bessel_k1");
  add_unary<math::bessel_j0>(table, "special_bessel_j0");
  add_unary<math::bessel_j1>(table, "special_bessel_j1");
  add_unary<math::bessel_y0>(table, "special_bessel_y0");
  add_unary<math::bessel_y1>(table, "special_bessel_y1");
  add_unary<math::spherical_bessel_j0>(table, "special_spherical_bessel_j0");
  add_unary<math::airy_ai>(table, "special_airy_ai");
  add_unary<math::erfcx>(table, "special_erfcx");
  add_unary<math::ndtr>(table, "special_ndtr");
  add_unary<math::log_ndtr>(table, "special_log_ndtr");
  add_unary<math::ndtri>(table, "special_ndtri");
  table.add<unary<Entropy, FloatTypes>>("special_entr");
  add_binary<math::igamma>(table, "igamma");
  add_binary<math::igammac>(table, "igammac");
  add_binary<math::zeta>(table, "special_zeta");
  add_binary<math::xlog1py>(table, "special_xlog1py");
  add_binary<math::chebyshev_t>(table, "special_chebyshev_polynomial_t");
  add_binary<math::chebyshev_u>(table, "special_chebyshev_polynomial_u");
  add_binary<math::chebyshev_v>(table, "special_chebyshev_polynomial_v");
  add_binary<math::chebyshev_w>(table, "special_chebyshev_polynomial_w");
  add_binary<math::shifted_chebyshev_t>(table, "special_shifted_chebyshev_polynomial_t");
  add_binary<math::shifted_chebyshev_u>(table, "special_shifted_chebyshev_polynomial_u");
  add_binary<math::shifted_chebyshev_v>(table, "special_shifted_chebyshev_polynomial_v");
  add_binary<math::shifted_chebyshev_w>(table, "special_shifted_chebyshev_polynomial_w");
  add_binary<math::hermite_h>(table, "special_hermite_polynomial_h");
  add_binary<math::hermite_he>(table, "special_hermite_polynomial_he");
  add_binary<math::laguerre_l>(table, "special_laguerre_polynomial_l");
  add_binary<math::legendre_p>(table, "special_legendre_polynomial_p");
  table.add<divisor<false>>("gcd");
  table.add<divisor<true>>("lcm");
  table.add<frexp>("frexp");
}

}  // namespace candelabra::cuda
