#include "half.hpp"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "candelabra/accelerator.h"
#include "candelabra/half.hpp"
#include "error.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace candelabra::mpi {
namespace {

// Elements that are converted, combined and converted back at a time.
constexpr int64_t block = 256;

struct Float16 {
  static float load(uint16_t bits) { return half_bits::float16_to_float(bits); }
  static uint16_t store(float value) { return half_bits::float16_from_double(value); }
};
struct Bfloat16 {
  static float load(uint16_t bits) { return half_bits::bfloat16_to_float(bits); }
  static uint16_t store(float value) { return half_bits::bfloat16_from_float(value); }
};

template <typename Type>
void load_scalar(const uint16_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = Type::load(from[i]);
}
template <typename Type>
void store_scalar(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = Type::store(from[i]);
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) void load_f16c(const uint16_t* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  load_scalar<Float16>(from + i, to + i, count - i);
}
__attribute__((target("avx,f16c"))) void store_f16c(const float* from, uint16_t* to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  store_scalar<Float16>(from + i, to + i, count - i);
}
bool has_f16c() {
  static const bool has = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
  return has;
}
#endif

template <typename Type>
void load(const uint16_t* from, float* to, int64_t count) {
#if defined(__x86_64__)
  if (std::is_same_v<Type, Float16> && has_f16c()) return load_f16c(from, to, count);
#endif
  load_scalar<Type>(from, to, count);
}
template <typename Type>
void store(const float* from, uint16_t* to, int64_t count) {
#if defined(__x86_64__)
  if (std::is_same_v<Type, Float16> && has_f16c()) return store_f16c(from, to, count);
#endif
  store_scalar<Type>(from, to, count);
}

template <int reduction>
void combine(const float* a, float* b, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (reduction == CB_REDUCE_SUM) b[i] = a[i] + b[i];
    if constexpr (reduction == CB_REDUCE_PRODUCT) b[i] = a[i] * b[i];
    if constexpr (reduction == CB_REDUCE_MIN) b[i] = a[i] < b[i] ? a[i] : b[i];
    if constexpr (reduction == CB_REDUCE_MAX) b[i] = a[i] > b[i] ? a[i] : b[i];
  }
}

template <typename Type, int reduction>
void reduce(void* in, void* in_out, MPI_Count* count, MPI_Datatype*) {
  const auto* from = static_cast<const uint16_t*>(in);
  auto* to = static_cast<uint16_t*>(in_out);
  float a[block], b[block];
  for (int64_t at = 0; at < *count; at += block) {
    const int64_t size = std::min<int64_t>(block, *count - at);
    load<Type>(from + at, a, size);
    load<Type>(to + at, b, size);
    combine<reduction>(a, b, size);
    store<Type>(b, to + at, size);
  }
}

template <typename Type, int... reductions>
constexpr std::array<MPI_User_function_c*, sizeof...(reductions)> functions(std::integer_sequence<int, reductions...>) {
  return {reduce<Type, reductions>...};
}

template <typename Type>
void divide(uint16_t* data, int64_t count, float divisor) {
  float values[block];
  for (int64_t at = 0; at < count; at += block) {
    const int64_t size = std::min<int64_t>(block, count - at);
    load<Type>(data + at, values, size);
    for (int64_t i = 0; i < size; ++i) values[i] /= divisor;
    store<Type>(values, data + at, size);
  }
}

constexpr int reduction_count = CB_REDUCE_MAX + 1;

}  // namespace

MPI_Op half_operation(int32_t dtype, int32_t reduction) {
  static constexpr auto float16 = functions<Float16>(std::make_integer_sequence<int, reduction_count>());
  static constexpr auto bfloat16 = functions<Bfloat16>(std::make_integer_sequence<int, reduction_count>());
  static std::array<std::array<MPI_Op, reduction_count>, 2> made{};
  const bool is_bfloat = dtype == CB_BFLOAT16;
  const auto index = static_cast<size_t>(reduction);
  MPI_Op& operation = made[is_bfloat][index];
  if (!operation) succeed(mpi().op_create((is_bfloat ? bfloat16 : float16)[index], 1, &operation), "MPI_Op_create_c");
  return operation;
}

void divide_half(void* data, int64_t count, int32_t dtype, int divisor) {
  auto* bits = static_cast<uint16_t*>(data);
  if (dtype == CB_BFLOAT16) return divide<Bfloat16>(bits, count, static_cast<float>(divisor));
  divide<Float16>(bits, count, static_cast<float>(divisor));
}

}  // namespace candelabra::mpi
