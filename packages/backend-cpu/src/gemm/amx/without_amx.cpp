// Stubs for builds without the AVX-512 loops, which do not use AMX.
#include <utility>

#include "kernels.hpp"
#include "gemm/amx/bf16x3_gemm.hpp"
#include "kernels/attention/attention_amx.hpp"
#include "gemm/amx/tile_panels.hpp"

namespace candelabra::cpu {

bool has_split_gemm() {
  return false;
}

namespace {

[[noreturn]] void refuse() {
  throw failure(CB_RUNTIME_ERROR, "this build has no matrix products on AMX");
}

}  // namespace

void split_gemm(const Gemm<float>&) {
  refuse();
}
void split_gemm(const Gemm<float>&, const Finish<float>&) {
  refuse();
}

TilePanels::TilePanels(const float* data, int64_t side_step, int64_t depth_step, int64_t k, std::vector<TileColumns> columns)
    : data_(data), side_step_(side_step), depth_step_(depth_step), k_(k), columns_(std::move(columns)), tiles_(0), ranges_(0) {
  refuse();
}
TileRows::TileRows(int64_t, int64_t k) : k_(k), tiles_(0), ranges_(0) {
  refuse();
}
TileRows::~TileRows() = default;
void TileRows::set_rows(const float*, int64_t, int64_t) {
  refuse();
}
void TileRows::multiply(TilePanels&, int64_t, float*, int, const Between&) {
  refuse();
}

class TileAttention::Work {};
bool suits_tile_attention(const AttentionCall&) {
  return false;
}
TileAttention::TileAttention(const AttentionCall&) {
  refuse();
}
TileAttention::~TileAttention() = default;
bool TileAttention::forward(int64_t, int64_t, int64_t, int64_t) {
  refuse();
}
bool TileAttention::backward(int64_t, int64_t) {
  refuse();
}

}  // namespace candelabra::cpu
