#include "onednn_matmul.hpp"

#include <string_view>

#include "choice.hpp"
#include "onednn/primitive_cache.hpp"
#include "parallel.hpp"

namespace candelabra::cpu {
namespace {

using dnnl::memory;

struct Matmul {
  dnnl::matmul primitive;
  memory::desc a, b, c, bias, scratchpad;
};

memory::data_type data_type(int32_t dtype) {
  switch (dtype) {
    case CB_FLOAT32:
      return memory::data_type::f32;
    case CB_BFLOAT16:
      return memory::data_type::bf16;
    case CB_FLOAT16:
      return memory::data_type::f16;
    default:
      throw failure(CB_RUNTIME_ERROR, "oneDNN's matmul was asked for dtype %d", dtype);
  }
}

std::unique_ptr<Matmul> make(const MatmulProblem& p) {
  memory::desc a({p.m, p.k}, data_type(p.a_dtype), p.transpose_a ? memory::dims{1, p.lda} : memory::dims{p.lda, 1});
  memory::desc b({p.k, p.n}, data_type(p.a_dtype), p.transpose_b ? memory::dims{1, p.ldb} : memory::dims{p.ldb, 1});
  memory::desc c({p.m, p.n}, data_type(p.c_dtype), memory::dims{p.ldc, 1});
  memory::desc bias;
  if (p.bias) bias = memory::desc({1, p.n}, data_type(p.bias_dtype), memory::dims{p.n, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  try {
    auto description = p.bias ? dnnl::matmul::primitive_desc(onednn_engine(), a, b, bias, c, attributes)
                              : dnnl::matmul::primitive_desc(onednn_engine(), a, b, c, attributes);
    if (std::string_view(description.impl_info_str()).find("ref") != std::string_view::npos) return nullptr;
    return std::make_unique<Matmul>(Matmul{dnnl::matmul(description), a, b, c, bias, description.scratchpad_desc()});
  } catch (const dnnl::error& error) {
    if (is_unimplemented(error)) return nullptr;
    throw;
  }
}

}  // namespace

bool onednn_matmul(const MatmulProblem& p) {
  thread_local PrimitiveCache<Matmul> cache(256);
  return with_onednn("matrix product", [&] {
    PrimitiveKey key;
    int32_t limit = threads_for(shape_class(p.m, p.n, p.k));
    use_library_threads(limit);
    int32_t threads = in_parallel() ? 1 : std::min(limit, thread_count());
    key.add(p.a_dtype, p.c_dtype, p.bias ? p.bias_dtype : -1, p.transpose_a, p.transpose_b, p.m, p.n, p.k, p.lda, p.ldb, p.ldc,
            threads);
    const Matmul* found = cache.find(key, [&] { return make(p); });
    if (!found) return false;
    Scratch<char> scratchpad(static_cast<int64_t>(found->scratchpad.get_size()));
    memory a = onednn_memory(found->a, p.a), b = onednn_memory(found->b, p.b), c = onednn_memory(found->c, p.c);
    memory extra = onednn_memory(found->scratchpad, scratchpad.data());
    dnnl_exec_arg_t arguments[5] = {
        {DNNL_ARG_SRC, a.get()}, {DNNL_ARG_WEIGHTS, b.get()}, {DNNL_ARG_DST, c.get()}, {DNNL_ARG_SCRATCHPAD, extra.get()}, {}};
    memory bias;
    int count = 4;
    if (p.bias) {
      bias = onednn_memory(found->bias, p.bias);
      arguments[count++] = {DNNL_ARG_BIAS, bias.get()};
    }
    dnnl::error::wrap_c_api(dnnl_primitive_execute(found->primitive.get(), onednn_stream().get(), count, arguments),
                            "could not execute a matmul");
    return true;
  });
}

}  // namespace candelabra::cpu
