#include "gemm/gemm_onednn.hpp"

#include <dnnl.h>
#include <omp.h>

#include <string_view>

#include "gemm/autotune.hpp"
#include "threads/deterministic.hpp"
#include "threads/parallel.hpp"
#include "vendor/primitive_cache.hpp"

namespace candelabra::cpu {
namespace {

using dnnl::memory;

struct Matmul {
  dnnl::matmul primitive;
  memory::desc a, b, c, bias, scratchpad;
};

std::unique_ptr<Matmul> make(const MatmulProblem& p) {
  const auto matrix = [&](memory::dims sizes, int32_t dtype, bool transposed, int64_t pitch, int64_t step) {
    memory::dims strides = transposed ? memory::dims{1, pitch} : memory::dims{pitch, 1};
    if (p.batches > 1) {
      sizes.insert(sizes.begin(), p.batches);
      strides.insert(strides.begin(), step);
    }
    return memory::desc(sizes, onednn_type(dtype), strides);
  };
  memory::desc a = matrix({p.m, p.k}, p.a_dtype, p.transpose_a, p.lda, p.a_step);
  memory::desc b = matrix({p.k, p.n}, p.a_dtype, p.transpose_b, p.ldb, p.b_step);
  memory::desc c = matrix({p.m, p.n}, p.c_dtype, false, p.ldc, p.c_step);
  memory::desc bias;
  if (p.bias) bias = memory::desc({1, p.n}, onednn_type(p.bias_dtype), memory::dims{p.n, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (p.activation != Activation::none) {
    dnnl::post_ops then;
    then.append_eltwise(
        p.activation == Activation::relu ? dnnl::algorithm::eltwise_relu : dnnl::algorithm::eltwise_gelu_erf, 0, 0);
    attributes.set_post_ops(then);
  }
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

bool has_onednn() {
  return true;
}

bool onednn_matmul(const MatmulProblem& p) {
  thread_local PrimitiveCache<Matmul> cache(256);
  return with_onednn("matrix product", [&] {
    PrimitiveKey key;
    int32_t limit =
        p.batches > 1 ? threads_for_batch(p.m * p.n * p.k * p.batches) : threads_for(shape_class(p.m, p.n, p.k));
    limit = is_deterministic() ? 1 : std::min(limit, p.most_threads);
    const LibraryThreads of_library(limit);
    int32_t threads = in_parallel() ? 1 : std::min(limit, thread_count());
    key.add(p.a_dtype, p.c_dtype, p.bias ? p.bias_dtype : -1, p.transpose_a, p.transpose_b, p.m, p.n, p.k, p.lda, p.ldb,
            p.ldc, p.batches, p.a_step, p.b_step, p.c_step, static_cast<int32_t>(p.activation), threads);
    const Matmul* found = cache.find(key, [&] { return make(p); });
    if (!found) return false;
    Scratch<char> scratchpad(static_cast<int64_t>(found->scratchpad.get_size()));
    memory a = onednn_memory(found->a, p.a), b = onednn_memory(found->b, p.b), c = onednn_memory(found->c, p.c);
    memory extra = onednn_memory(found->scratchpad, scratchpad.data());
    dnnl_exec_arg_t arguments[5] = {{DNNL_ARG_SRC, a.get()},
                                    {DNNL_ARG_WEIGHTS, b.get()},
                                    {DNNL_ARG_DST, c.get()},
                                    {DNNL_ARG_SCRATCHPAD, extra.get()},
                                    {}};
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

void gemm_by_onednn(const Gemm<float>& p) {
  // For large products the primitive packs and divides better. Small ones save the cost of a
  // primitive.
  if (shape_class(p.m, p.n, p.k) >= ShapeClass::large && p.alpha == 1 && p.beta == 0) {
    MatmulProblem problem{.a_dtype = CB_FLOAT32,
                          .c_dtype = CB_FLOAT32,
                          .bias_dtype = CB_FLOAT32,
                          .transpose_a = p.transpose_a,
                          .transpose_b = p.transpose_b,
                          .m = p.m,
                          .n = p.n,
                          .k = p.k,
                          .a = p.a,
                          .lda = p.lda,
                          .b = p.b,
                          .ldb = p.ldb,
                          .bias = nullptr,
                          .c = p.c,
                          .ldc = p.ldc,
                          .most_threads = omp_get_max_threads()};
    if (onednn_matmul(problem)) return;
  }
  dnnl_status_t status = dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, p.alpha, p.a,
                                    p.lda, p.b, p.ldb, p.beta, p.c, p.ldc);
  if (status == dnnl_out_of_memory) throw failure(CB_OUT_OF_MEMORY, "matrix product: oneDNN ran out of memory");
  if (status != dnnl_success)
    throw failure(CB_RUNTIME_ERROR, "matrix product of %lldx%lldx%lld: oneDNN failed (status %d)",
                  static_cast<long long>(p.m), static_cast<long long>(p.n), static_cast<long long>(p.k),
                  static_cast<int>(status));
}

}  // namespace candelabra::cpu
