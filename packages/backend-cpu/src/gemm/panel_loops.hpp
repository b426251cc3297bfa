// The loops of our own matrix products (gemm/panel_gemm.hpp), for float and double.
#pragma once

#include "gemm/gemm.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

template <typename T>
void panel_gemm_loop(const Gemm<T>& problem);

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
