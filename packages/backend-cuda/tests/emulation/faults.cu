// Kernels with faults that the emulation must find, and kernels without: faults NAME. Compiled like
// the backend.
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

__global__ void block_sums(const int* in, int* out, int count) {
  __shared__ int of_warps[32];
  int sum = 0;
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += static_cast<int>(gridDim.x * blockDim.x))
    sum += in[i];
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < blockDim.x / 32 ? of_warps[threadIdx.x] : 0;
  for (int delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(0xffffffffu, sum, static_cast<unsigned>(delta));
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

__global__ void votes(int* out) {
  const bool odd = threadIdx.x % 2;
  const unsigned ballot = __ballot_sync(0xffffffffu, odd);
  const int count = __syncthreads_count(odd), any = __syncthreads_or(threadIdx.x == 5),
            all = __syncthreads_and(threadIdx.x != 5);
  if (threadIdx.x == 0) {
    out[0] = static_cast<int>(__popc(ballot));
    out[1] = count;
    out[2] = any;
    out[3] = all;
  }
}

__global__ void reversed_by_dynamic_memory(int* values) {
  extern __shared__ __align__(16) unsigned char memory[];
  int* shared = reinterpret_cast<int*>(memory);
  shared[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

__global__ void without_barrier(int* values) {
  __shared__ int shared[64];
  shared[threadIdx.x] = values[threadIdx.x];
  values[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

__global__ void different_barriers(int* out) {
  if (threadIdx.x < 16)
    __syncthreads();
  else
    __syncthreads();
  out[threadIdx.x] = 1;
}

__global__ void hangs(int* out) {
  if (threadIdx.x == 0)
    out[0] = __shfl_sync(0xffffffffu, 1, 3);
  else
    __syncthreads();
}

__global__ void lane_that_has_ended(int* out) {
  if (threadIdx.x == 7) return;
  out[threadIdx.x] = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x), 7);
}

__global__ void leftovers(int* out) {
  __shared__ int left[2], behind;
  if (blockIdx.x == 0) left[0] = left[1] = behind = 7;
  out[blockIdx.x] = left[1] == behind ? behind : 0;
}

__global__ void __launch_bounds__(64) bounded(int* out) {
  out[0] = 1;
}

__global__ void writes(int* out, int index) {
  out[index] = 1;
}

int status(const char* doing) {
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  std::printf("%s: %s: %s\n", doing, cudaGetErrorName(error), cudaGetErrorString(error));
  return 0;
}

}  // namespace

int main(int, char** arguments) {
  const char* name = arguments[1];
  constexpr int count = 1000;
  int *in = nullptr, *out = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&in), count * sizeof(int));
  cudaMalloc(reinterpret_cast<void**>(&out), count * sizeof(int));
  std::vector<int> values(count);
  for (int i = 0; i < count; ++i) values[static_cast<size_t>(i)] = i;
  cudaMemcpy(in, values.data(), count * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemsetAsync(out, 0, count * sizeof(int), nullptr);
  const auto is = [&](const char* text) { return std::strcmp(name, text) == 0; };
  const auto show = [&](const int* from, int n) {
    cudaMemcpy(values.data(), from, static_cast<size_t>(n) * sizeof(int), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i) std::printf("%d ", values[static_cast<size_t>(i)]);
  };
  if (is("sums")) {
    block_sums<<<dim3(3), dim3(96), 0, nullptr>>>(in, out, count);
    show(out, 1);
  } else if (is("votes")) {
    votes<<<dim3(1), dim3(96), 0, nullptr>>>(out);
    show(out, 4);
  } else if (is("dynamic")) {
    reversed_by_dynamic_memory<<<dim3(1), dim3(64), 64 * sizeof(int), nullptr>>>(in);
    show(in, 64);
  } else if (is("short dynamic")) {
    reversed_by_dynamic_memory<<<dim3(1), dim3(64), 32 * sizeof(int), nullptr>>>(in);
  } else if (is("race")) {
    without_barrier<<<dim3(1), dim3(64), 0, nullptr>>>(in);
    show(in, 64);
  } else if (is("different barriers")) {
    different_barriers<<<dim3(1), dim3(32), 0, nullptr>>>(out);
  } else if (is("hang")) {
    hangs<<<dim3(1), dim3(32), 0, nullptr>>>(out);
  } else if (is("ended lane")) {
    lane_that_has_ended<<<dim3(1), dim3(32), 0, nullptr>>>(out);
    show(out, 8);
  } else if (is("leftovers")) {
    leftovers<<<dim3(2), dim3(1), 0, nullptr>>>(out);
    show(out, 2);
  } else if (is("bounds")) {
    bounded<<<dim3(1), dim3(65), 0, nullptr>>>(out);
  } else if (is("beyond")) {
    writes<<<dim3(1), dim3(1), 0, nullptr>>>(out, count);
  } else if (is("before")) {
    writes<<<dim3(1), dim3(1), 0, nullptr>>>(out, -1);
  } else if (is("freed")) {
    cudaFree(out);
    writes<<<dim3(1), dim3(1), 0, nullptr>>>(out, 0);
  } else if (is("grid")) {
    writes<<<dim3(1, 65536), dim3(1), 0, nullptr>>>(out, 0);
  } else if (is("threads")) {
    writes<<<dim3(1), dim3(33, 32), 0, nullptr>>>(out, 0);
  } else if (is("shared")) {
    writes<<<dim3(1), dim3(1), 48 * 1024 + 1, nullptr>>>(out, 0);
  } else if (is("long copy")) {
    cudaMemcpy(values.data(), out, (count + 200) * sizeof(int), cudaMemcpyDeviceToHost);
  } else if (is("other device") || is("peer")) {
    cudaSetDevice(1);
    if (is("peer")) cudaDeviceEnablePeerAccess(0, 0);
    writes<<<dim3(1), dim3(1), 0, nullptr>>>(out, 0);
  } else if (is("host")) {
    std::printf("%d\n", out[0]);
  } else {
    return 2;
  }
  return status(name);
}
