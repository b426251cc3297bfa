// What the user chooses for the whole process: candelabra.backends.cuda.matmul.allow_tf32 and the
// like.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace candelabra::cuda {

struct Settings {
  std::atomic<int> matmul_tf32{0};       // float32 products of matrices by way of TF32
  std::atomic<int> float16_reduced{1};   // partial sums of float16 products may be added up in float16
  std::atomic<int> bfloat16_reduced{1};  // the same for bfloat16
  std::atomic<int> deterministic{0};     // the same bits every time, of all that the backend does
  std::atomic<int> cudnn_enabled{1};
  // Float32 convolutions and recurrent layers by way of TF32
  std::atomic<int> cudnn_tf32{1};
  std::atomic<int> cudnn_benchmark{0};         // plans are chosen by timing them
  std::atomic<int> cudnn_benchmark_limit{10};  // how many of them; 0 for all
  std::atomic<int> cudnn_deterministic{0};     // the same bits every time, of cuDNN
  std::atomic<int> cudnn_attention{1};         // attention of half precisions by cuDNN, where it can
  std::atomic<int> cufft_plans{4096};          // how many a thread keeps
  std::atomic<int> told_of_waiting{0};         // calls that wait for the device: 1: a warning, 2: refused

  bool is_deterministic() const { return deterministic || cudnn_deterministic; }
};

inline Settings& settings() {
  static Settings instance;
  return instance;
}

// By the name of the field; null where there is no such setting.
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
      {"told_of_waiting", &Settings::told_of_waiting},
  };
  for (const Named& entry : all)
    if (entry.name == name) return &(settings().*entry.field);
  return nullptr;
}

}  // namespace candelabra::cuda
