// cub::DeviceScan with CUB's arguments: the first call asks for the bytes of workspace.
#pragma once

#include <cstring>

#include "emulation.hpp"

namespace cub {

struct DeviceScan {
  template <typename In, typename Out, typename N>
  static cudaError_t ExclusiveSum(void* workspace, size_t& bytes, In in, Out out, N count, cudaStream_t stream) {
    return Sum(workspace, bytes, in, out, count, stream, false);
  }
  template <typename In, typename Out, typename N>
  static cudaError_t InclusiveSum(void* workspace, size_t& bytes, In in, Out out, N count, cudaStream_t stream) {
    return Sum(workspace, bytes, in, out, count, stream, true);
  }

 private:
  template <typename In, typename Out, typename N>
  static cudaError_t Sum(void* workspace, size_t& bytes, In in, Out out, N count, cudaStream_t stream, bool inclusive) {
    if (!workspace) {
      bytes = 256;
      return cudaSuccess;
    }
    return emulation::queue(stream, [=] {
      std::memset(workspace, 0x55, 256);
      auto sum = decltype(in[0] + in[0])(0);
      for (N i = 0; i < count; ++i) {
        const auto value = in[i];
        out[i] = inclusive ? sum + value : sum;
        sum += value;
      }
    });
  }
};

}  // namespace cub
