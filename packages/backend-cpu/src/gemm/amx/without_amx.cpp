// Stubs for builds without the AVX-512 loops, which do not use AMX.
#include <utility>

#include "gemm/amx/bf16x3_gemm.hpp"
#include "gemm/amx/tile_panels.hpp"
#include "kernels.hpp"
#include "kernels/attention/attention_amx.hpp"

namespace candelabra::cpu {

bool has_amx_gemm() {
  return false;
}

namespace {

[[noreturn]] void raise_without_amx() {
  throw failure(CB_RUNTIME_ERROR, "this build has no matrix products on AMX");
}

}  // namespace

void amx_gemm(const Gemm<float>&) {
  raise_without_amx();
}
void amx_gemm(const Gemm<float>&, const Epilogue<float>&) {
  raise_without_amx();
}

TilePanels::TilePanels(const float* data, int64_t side_step, int64_t depth_step, int64_t k,
                       std::vector<TileColumns> columns)
    : data_(data),
      side_step_(side_step),
      depth_step_(depth_step),
      k_(k),
      columns_(std::move(columns)),
      tiles_(0),
      ranges_(0) {
  raise_without_amx();
}
TileRows::TileRows(int64_t, int64_t k) : k_(k), tiles_(0), ranges_(0) {
  raise_without_amx();
}
TileRows::~TileRows() = default;
void TileRows::set_rows(const float*, int64_t, int64_t) {
  raise_without_amx();
}
void TileRows::multiply(TilePanels&, int64_t, float*, int, const Between&) {
  raise_without_amx();
}

class AmxAttention::Work {};
bool suits_amx_attention(const AttentionCall&) {
  return false;
}
AmxAttention::AmxAttention(const AttentionCall&) {
  raise_without_amx();
}
AmxAttention::~AmxAttention() = default;
bool AmxAttention::forward(int64_t, int64_t, int64_t, int64_t) {
  raise_without_amx();
}
bool AmxAttention::backward(int64_t, int64_t) {
  raise_without_amx();
}

}  // namespace candelabra::cpu
