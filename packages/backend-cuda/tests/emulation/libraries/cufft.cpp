// The functions of cuFFT that the backend calls: recursive mixed radix over the prime factors, in
// double precision.
#include <cufft.h>

#include <complex>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numbers>
#include <vector>

#include "emulation.hpp"

namespace {

using Number = std::complex<double>;

struct Plan {
  bool is_made = false;
  cufftType type{};
  std::vector<long long> sizes;
  long long batches = 0;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
};
std::mutex mutex;
std::map<cufftHandle, Plan> plans;
cufftHandle last = 0;

Plan* find(cufftHandle handle) {
  const auto found = plans.find(handle);
  return found == plans.end() ? nullptr : &found->second;
}

// out[k] = sum over j of in[j * step] exp(sign 2 pi i j k / n)
void transform(const Number* in, size_t step, Number* out, size_t n, const std::vector<Number>& roots,
               size_t root_step) {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  size_t factor = 2;
  while (n % factor && factor * factor <= n) ++factor;
  if (n % factor) factor = n;
  const size_t part = n / factor;
  std::vector<Number> parts(n);
  for (size_t p = 0; p < factor; ++p)
    transform(in + p * step, step * factor, parts.data() + p * part, part, roots, root_step * factor);
  for (size_t k = 0; k < n; ++k) {
    Number sum = 0;
    for (size_t p = 0; p < factor; ++p) sum += parts[p * part + k % part] * roots[p * k % n * root_step];
    out[k] = sum;
  }
}

void along_dims(std::vector<Number>& values, const std::vector<long long>& sizes, int direction) {
  size_t inner = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    const auto n = static_cast<size_t>(sizes[d]);
    std::vector<Number> roots(n), line(n);
    for (size_t k = 0; k < n; ++k)
      roots[k] = std::polar(1.0, direction * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
    for (size_t outer = 0; outer < values.size() / (n * inner); ++outer)
      for (size_t i = 0; i < inner; ++i) {
        Number* first = values.data() + outer * n * inner + i;
        transform(first, inner, line.data(), n, roots, 1);
        for (size_t k = 0; k < n; ++k) first[k * inner] = line[k];
      }
    inner *= n;
  }
}

template <typename In, typename Out>
cufftResult run(cufftHandle handle, cufftType type, const In* in, Out* out, int direction) {
  const std::lock_guard lock(mutex);
  const Plan* found = find(handle);
  if (!found || !found->is_made || found->type != type) return CUFFT_INVALID_PLAN;
  if (!found->workspace) return CUFFT_INVALID_VALUE;
  const Plan plan = *found;
  const cudaError_t error = emulation::queue(plan.stream, [=] {
    std::memset(plan.workspace, 0x55, 512);
    size_t whole = 1;
    for (const long long size : plan.sizes) whole *= static_cast<size_t>(size);
    const auto last_size = static_cast<size_t>(plan.sizes.back()), half = last_size / 2 + 1, rows = whole / last_size;
    constexpr bool in_real = std::is_floating_point_v<In>, out_real = std::is_floating_point_v<Out>;
    for (long long b = 0; b < plan.batches; ++b) {
      std::vector<Number> values(whole);
      const In* from = in + static_cast<size_t>(b) * rows * (out_real ? half : last_size);
      Out* to = out + static_cast<size_t>(b) * rows * (in_real ? half : last_size);
      if constexpr (out_real) {
        // The missing half of a real signal's spectrum is the conjugate at the opposite frequency.
        for (size_t row = 0; row < rows; ++row) {
          size_t mirrored = 0, rest = row, scale = 1;
          for (size_t d = plan.sizes.size() - 1; d-- > 0;) {
            const auto n = static_cast<size_t>(plan.sizes[d]);
            mirrored += (n - rest % n) % n * scale;
            rest /= n;
            scale *= n;
          }
          for (size_t k = 0; k < last_size; ++k)
            values[row * last_size + k] =
                k < half ? Number(from[row * half + k]) : std::conj(Number(from[mirrored * half + last_size - k]));
        }
      } else {
        for (size_t i = 0; i < whole; ++i) values[i] = Number(from[i]);
      }
      along_dims(values, plan.sizes, direction);
      for (size_t row = 0; row < rows; ++row)
        for (size_t k = 0; k < (in_real ? half : last_size); ++k) {
          const Number value = values[row * last_size + k];
          if constexpr (out_real)
            to[row * last_size + k] = static_cast<Out>(value.real());
          else
            to[row * (in_real ? half : last_size) + k] = Out(static_cast<typename Out::value_type>(value.real()),
                                                             static_cast<typename Out::value_type>(value.imag()));
        }
    }
    // A transform to real numbers clobbers its input.
    if constexpr (out_real)
      std::memset(static_cast<void*>(const_cast<In*>(in)), 0xf7,
                  static_cast<size_t>(plan.batches) * rows * half * sizeof(In));
  });
  return error == cudaSuccess ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

}  // namespace

extern "C" {

cufftResult cufftCreate(cufftHandle* handle) {
  const std::lock_guard lock(mutex);
  *handle = ++last;
  plans[*handle];
  return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(cufftHandle handle) {
  const std::lock_guard lock(mutex);
  return plans.erase(handle) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
cufftResult cufftSetAutoAllocation(cufftHandle handle, int automatic) {
  const std::lock_guard lock(mutex);
  return !find(handle) ? CUFFT_INVALID_PLAN : automatic ? CUFFT_NOT_SUPPORTED : CUFFT_SUCCESS;
}
cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long* sizes, long long* in_embed, long long,
                                long long, long long* out_embed, long long, long long, cufftType type,
                                long long batches, size_t* workspace) {
  const std::lock_guard lock(mutex);
  Plan* plan = find(handle);
  if (!plan || plan->is_made) return CUFFT_INVALID_PLAN;
  if (rank < 1 || rank > 3 || in_embed || out_embed || batches < 1) return CUFFT_INVALID_VALUE;
  for (int d = 0; d < rank; ++d)
    if (sizes[d] < 1) return CUFFT_INVALID_SIZE;
  plan->is_made = true;
  plan->type = type;
  plan->sizes.assign(sizes, sizes + rank);
  plan->batches = batches;
  *workspace = 512;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  Plan* plan = find(handle);
  if (!plan) return CUFFT_INVALID_PLAN;
  plan->stream = stream;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetWorkArea(cufftHandle handle, void* workspace) {
  const std::lock_guard lock(mutex);
  Plan* plan = find(handle);
  if (!plan) return CUFFT_INVALID_PLAN;
  plan->workspace = workspace;
  return CUFFT_SUCCESS;
}

using Single = std::complex<float>;
using Double = std::complex<double>;
cufftResult cufftExecC2C(cufftHandle handle, cufftComplex* in, cufftComplex* out, int direction) {
  return run(handle, CUFFT_C2C, reinterpret_cast<Single*>(in), reinterpret_cast<Single*>(out), direction);
}
cufftResult cufftExecZ2Z(cufftHandle handle, cufftDoubleComplex* in, cufftDoubleComplex* out, int direction) {
  return run(handle, CUFFT_Z2Z, reinterpret_cast<Double*>(in), reinterpret_cast<Double*>(out), direction);
}
cufftResult cufftExecR2C(cufftHandle handle, cufftReal* in, cufftComplex* out) {
  return run(handle, CUFFT_R2C, in, reinterpret_cast<Single*>(out), CUFFT_FORWARD);
}
cufftResult cufftExecD2Z(cufftHandle handle, cufftDoubleReal* in, cufftDoubleComplex* out) {
  return run(handle, CUFFT_D2Z, in, reinterpret_cast<Double*>(out), CUFFT_FORWARD);
}
cufftResult cufftExecC2R(cufftHandle handle, cufftComplex* in, cufftReal* out) {
  return run(handle, CUFFT_C2R, reinterpret_cast<Single*>(in), out, CUFFT_INVERSE);
}
cufftResult cufftExecZ2D(cufftHandle handle, cufftDoubleComplex* in, cufftDoubleReal* out) {
  return run(handle, CUFFT_Z2D, reinterpret_cast<Double*>(in), out, CUFFT_INVERSE);
}

}  // extern "C"
