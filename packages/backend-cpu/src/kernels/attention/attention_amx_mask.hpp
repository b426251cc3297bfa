// The attention mask on registers of sixteen scores.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "dtypes.hpp"
#include "gemm/amx/bf16x3_gemm.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace attention {

constexpr float none = -std::numeric_limits<float>::infinity();

// The attention mask of a call: a tensor, the causal mask, both, or none.
template <typename T>
class AmxMask {
 public:
  AmxMask(const cb_tensor* tensor, bool causal) : tensor_(tensor), causal_(causal) {}

  bool given() const { return tensor_; }
  bool causal() const { return causal_; }
  int64_t last_key(int64_t query_end, int64_t keys) const { return causal_ ? std::min(query_end, keys) : keys; }
  // Masks sixteen scores of query q with keys from `k` on.
  __m512 of_keys(__m512 scores, int64_t n, int64_t h, int64_t q, int64_t k, __mmask16 lanes) const {
    if (tensor_) scores = add(scores, n, h, q, k, tensor_->strides[3], lanes);
    if (causal_) scores = _mm512_mask_mov_ps(_mm512_set1_ps(none), split_detail::first_lanes(q + 1 - k), scores);
    return scores;
  }
  // The same for key k with queries from `q` on.
  __m512 of_queries(__m512 scores, int64_t n, int64_t h, int64_t q, int64_t k, __mmask16 lanes) const {
    if (tensor_) scores = add(scores, n, h, q, k, tensor_->strides[2], lanes);
    if (causal_) scores = _mm512_mask_mov_ps(scores, split_detail::first_lanes(k - q), _mm512_set1_ps(none));
    return scores;
  }

 private:
  __m512 add(__m512 scores, int64_t n, int64_t h, int64_t q, int64_t k, int64_t step, __mmask16 lanes) const {
    const int64_t* strides = tensor_->strides;
    const int64_t start = n * strides[0] + h * strides[1] + q * strides[2] + k * strides[3];
    if (tensor_->dtype == CB_BOOL) {
      const uint8_t* seen = data<uint8_t>(*tensor_) + start;
      __mmask16 visible = 0;
      if (step == 1) {
        const __m128i bytes = _mm_maskz_loadu_epi8(lanes, seen);
        visible = _mm_test_epi8_mask(bytes, bytes);
      } else {
        for (int lane = 0; lane < 16; ++lane)
          if ((lanes >> lane & 1) && seen[lane * step]) visible = static_cast<__mmask16>(visible | 1u << lane);
      }
      return _mm512_mask_mov_ps(_mm512_set1_ps(none), visible, scores);
    }
    const T* added = data<T>(*tensor_) + start;
    if (step == 1) {
      if constexpr (std::is_same_v<T, float>)
        return _mm512_add_ps(scores, _mm512_maskz_loadu_ps(lanes, added));
      else
        return _mm512_add_ps(scores, _mm512_castsi512_ps(_mm512_slli_epi32(
                                         _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, added)), 16)));
    }
    if constexpr (std::is_same_v<T, float>) {
      constexpr int64_t farthest = int64_t{1} << 26;
      if (step < farthest) {
        const __m512i offsets =
            _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                               _mm512_set1_epi32(static_cast<int>(step)));
        return _mm512_add_ps(scores,
                             _mm512_mask_i32gather_ps(_mm512_setzero_ps(), lanes, offsets, added, sizeof(float)));
      }
    }
    alignas(64) float values[16] = {};
    for (int lane = 0; lane < 16; ++lane)
      if (lanes >> lane & 1) values[lane] = static_cast<float>(added[lane * step]);
    return _mm512_add_ps(scores, _mm512_load_ps(values));
  }

  const cb_tensor* tensor_;
  bool causal_;
};

}  // namespace attention
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
