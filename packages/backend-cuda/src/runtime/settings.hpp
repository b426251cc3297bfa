// Settings of the whole process, such as candelabra.backends.cuda.matmul.allow_tf32.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace candelabra::cuda {

struct Settings {
  std::atomic<int> matmul_tf32{0};       // matrix products of float32 may use TF32
  std::atomic<int> float16_reduced{1};   // partial sums of float16 products may be accumulated in float16
  std::atomic<int> bfloat16_reduced{1};  // the same for bfloat16
  std::atomic<int> deterministic{0};     // every kernel of the backend is deterministic
  std::atomic<int> cudnn_enabled{1};
  // Convolutions and recurrent layers of float32 may use TF32.
  std::atomic<int> cudnn_tf32{1};
  std::atomic<int> cudnn_benchmark{0};         // cuDNN plans are chosen by timing them
  std::atomic<int> cudnn_benchmark_limit{10};  // how many plans are timed; 0: all
  std::atomic<int> cudnn_deterministic{0};     // cuDNN is deterministic
  std::atomic<int> cudnn_attention{1};         // attention in half precision uses cuDNN where it can
  std::atomic<int> cufft_plans{4096};          // the capacity of a thread's plan cache
  std::atomic<int> sync_debug_mode{0};         // calls that synchronize: 1: warn, 2: throw

  bool is_deterministic() const { return deterministic || cudnn_deterministic; }
};

inline Settings& settings() {
  static Settings instance;
  return instance;
}

// Returns the setting with the name of the field, or null.
inline std::atomic<int>* setting(std::string_view name) {
  struct Named {
    std::string_view name;
    std::atomic<int> Settings::* field;
  };
  static constexpr Named all[] = {
      {"matmul_tf32", &Settings::matmul_tf32},
      {"float16_reduced", &Settings::float16_reduced},
      {"bfloat16_reduced", &Settings::bfloat16_reduced},
      {"deterministic", &Settings::deterministic},
      {"cudnn_enabled", &Settings::cudnn_enabled},
      {"cudnn_tf32", &Settings::cudnn_tf32},
      {"cudnn_benchmark", &Settings::cudnn_benchmark},
      {"cudnn_benchmark_limit", &Settings::cudnn_benchmark_limit},
      {"cudnn_deterministic", &Settings::cudnn_deterministic},
      {"cudnn_attention", &Settings::cudnn_attention},
      {"cufft_plans", &Settings::cufft_plans},
      {"sync_debug_mode", &Settings::sync_debug_mode},
  };
  for (const Named& entry : all)
    if (entry.name == name) return &(settings().*entry.field);
  return nullptr;
}

}  // namespace candelabra::cuda
