#include "vendor/primitive_cache.hpp"

namespace candelabra::cpu {

const dnnl::engine& onednn_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& onednn_stream() {
  thread_local dnnl::stream stream(onednn_engine());
  return stream;
}

dnnl::memory::data_type onednn_type(int32_t dtype) {
  switch (dtype) {
    case CB_FLOAT32:
      return dnnl::memory::data_type::f32;
    case CB_BFLOAT16:
      return dnnl::memory::data_type::bf16;
    case CB_FLOAT16:
      return dnnl::memory::data_type::f16;
    default:
      throw failure(CB_RUNTIME_ERROR, "oneDNN was asked for dtype %d", dtype);
  }
}

bool has_product_instructions(int32_t dtype) {
  static const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto has = [](dnnl::cpu_isa wanted) {
    return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  if (dtype == CB_BFLOAT16) return has(dnnl::cpu_isa::avx512_core_bf16);
  if (dtype == CB_FLOAT16) return has(dnnl::cpu_isa::avx512_core_fp16);
  return true;
}

void rethrow_onednn(const dnnl::error& error, const char* what) {
  if (error.status == dnnl_out_of_memory)
    throw failure(CB_OUT_OF_MEMORY, "%s: oneDNN ran out of memory (%s)", what, error.what());
  throw failure(CB_RUNTIME_ERROR, "%s: oneDNN failed: %s (status %d)", what, error.what(),
                static_cast<int>(error.status));
}

}  // namespace candelabra::cpu
