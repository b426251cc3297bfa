// What the user chooses for the whole process: candelabra.backends.cuda.matmul.allow_tf32 and the like.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace candelabra::cuda {

struct Settings {
  std::atomic<bool> matmul_tf32{false};              // float32 products of matrices by way of TF32
  std::atomic<bool> matmul_reduced_precision{true};  // partial sums of half precisions may be added up in half precision
  std::atomic<bool> cudnn_tf32{true};                // the same for convolutions
  std::atomic<bool> cudnn_benchmark{false};          // algorithms are chosen by timing them
  std::atomic<bool> cudnn_enabled{true};
};

inline Settings& settings() {
  static Settings instance;
  return instance;
}

// By the name of the field; null where there is no such setting.
inline std::atomic<bool>* setting(std::string_view name) {
  Settings& all = settings();
  if (name == "matmul_tf32") return &all.matmul_tf32;
  if (name == "matmul_reduced_precision") return &all.matmul_reduced_precision;
  if (name == "cudnn_tf32") return &all.cudnn_tf32;
  if (name == "cudnn_benchmark") return &all.cudnn_benchmark;
  if (name == "cudnn_enabled") return &all.cudnn_enabled;
  return nullptr;
}

}  // namespace candelabra::cuda
