// Checks that cuDNN has plans for the backend's requests. The library makes plans for a device that
// is only described, so no GPU is needed.
#include <cstdio>
#include <span>
#include <string>

#include "vendor/cudnn/cudnn_attention.hpp"
#include "vendor/cudnn/cudnn_convolution.hpp"
#include "vendor/cudnn/cudnn_recurrent.hpp"

using namespace candelabra::cuda;

namespace {

int failures = 0;

// A device's properties in the form in which cuDNN serializes them.
struct Device {
  const char* name;
  int capability, multiprocessors, shared;

  std::string properties() const {
    char text[1024];
    std::snprintf(
        text, sizeof text,
        R"({"cudaDeviceId":0,"deviceId":0,"deviceVer":%d,"driverVer":13000,"version":1,"regsPerBlock":65536,)"
        R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"multiProcessorCount":%d,)"
        R"("smCountOrigin":0,"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":%d,)"
        R"("oversizedSharedMemoryPerBlock":0,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)"
        R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
        R"("supportCoopLaunch":1,"smClockRateKHz":1980000,"memClockRateKHz":2619000,"memoryBusWidth":5120,)"
        R"("l2CacheSize":52428800,"totalGlobalMem":85899345920,"deviceName":"%s"})",
        capability, multiprocessors, shared, name);
    return text;
  }
};
constexpr Device hopper{"NVIDIA H100 80GB HBM3", 900, 132, 232448};
// Tested with fewer shapes: most of the result depends on the shapes, not on the device.
constexpr Device others[] = {{"NVIDIA A100-SXM4-80GB", 800, 108, 166912}, {"NVIDIA B200", 1000, 148, 232448}};

constexpr int64_t limit = int64_t{1} << 30;

ConvolutionTensor placed(std::array<int64_t, 5> n, bool channels_last) {
  static float memory[4];
  if (channels_last) return {memory, n, {n[1] * n[2] * n[3] * n[4], 1, n[1] * n[3] * n[4], n[1] * n[4], n[1]}};
  return {memory, n, {n[1] * n[2] * n[3] * n[4], n[2] * n[3] * n[4], n[3] * n[4], n[4], 1}};
}

struct Case {
  const char* name;
  int spatial;
  std::array<int64_t, 5> input, weight;
  std::array<int64_t, 3> stride, padding, dilation;
};

const Case cases[] = {
    {"first of ResNet", 2, {32, 3, 1, 224, 224}, {64, 3, 1, 7, 7}, {1, 2, 2}, {0, 3, 3}, {1, 1, 1}},
    {"3x3", 2, {32, 64, 1, 56, 56}, {64, 64, 1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {"1x1, strided", 2, {32, 256, 1, 56, 56}, {512, 256, 1, 1, 1}, {1, 2, 2}, {0, 0, 0}, {1, 1, 1}},
    {"dilated", 2, {4, 16, 1, 33, 29}, {24, 16, 1, 3, 3}, {1, 1, 1}, {0, 2, 2}, {1, 2, 2}},
    {"groups", 2, {8, 32, 1, 28, 28}, {64, 8, 1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {"depthwise", 2, {8, 32, 1, 28, 28}, {32, 1, 1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {"of one dimension", 2, {8, 12, 1, 1, 100}, {20, 12, 1, 1, 5}, {1, 1, 2}, {0, 0, 2}, {1, 1, 1}},
    {"of three dimensions", 3, {2, 8, 9, 16, 16}, {16, 8, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {"odd sizes", 2, {3, 5, 1, 17, 13}, {7, 5, 1, 4, 2}, {1, 3, 1}, {0, 1, 0}, {1, 1, 1}},
};

std::array<int64_t, 5> output_sizes(const Case& c) {
  std::array<int64_t, 5> result{c.input[0], c.weight[0]};
  for (size_t d = 0; d < 3; ++d)
    result[d + 2] = (c.input[d + 2] + 2 * c.padding[d] - c.dilation[d] * (c.weight[d + 2] - 1) - 1) / c.stride[d] + 1;
  return result;
}

void convolutions(const cudnn::Target& target, bool all) {
  const std::pair<int32_t, const char*> dtypes[] = {
      {CB_FLOAT32, "float32"}, {CB_FLOAT16, "float16"}, {CB_BFLOAT16, "bfloat16"}, {CB_FLOAT64, "float64"}};
  const char* kinds[] = {"forward", "input gradient", "weight gradient"};
  for (const auto& [dtype, dtype_name] : dtypes)
    for (const bool channels_last : {false, true}) {
      if (!all && (channels_last != (dtype == CB_FLOAT16) || dtype == CB_FLOAT64)) continue;
      for (const Case& c : cases)
        for (int kind = 0; kind < 3; ++kind)
          for (const bool strict : {false, true}) {
            if (strict && dtype == CB_FLOAT64) continue;
            const Convolution convolution{static_cast<ConvolutionKind>(kind),
                                          dtype,
                                          c.spatial,
                                          placed(c.input, channels_last),
                                          placed(c.weight, channels_last),
                                          placed(output_sizes(c), channels_last),
                                          c.stride,
                                          c.padding,
                                          c.dilation};
            const auto plans =
                convolution_plans(target, convolution, {strict, strict && dtype == CB_FLOAT32, limit}, 1);
            const std::string what = std::string(dtype_name) + (channels_last ? ", channels-last, " : ", row-major, ") +
                                     c.name + ", " + kinds[kind] + (strict ? ", deterministic in full precision" : "");
            std::printf("%s: %s, %lld bytes\n", what.c_str(), plans.empty() ? "none" : plans[0].name.c_str(),
                        plans.empty() ? 0LL : static_cast<long long>(plans[0].workspace));
            failures += plans.empty();
          }
    }
}

AttentionTensor heads(std::array<int64_t, 4> n, bool within_rows) {
  alignas(16) static float memory[4];
  if (within_rows) return {memory, n, {n[1] * n[2] * n[3], n[3], n[1] * n[3], 1}};
  return {memory, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}};
}

void attention(const cudnn::Target& target, bool all) {
  struct Sizes {
    int64_t n, h, g, l, s, e, v;
  };
  const Sizes known[] = {{2, 8, 8, 512, 512, 64, 64}, {1, 12, 4, 1024, 1024, 128, 128}, {3, 4, 4, 77, 130, 64, 64}};
  for (const auto& [dtype, name] : {std::pair{CB_FLOAT16, "float16"}, std::pair{CB_BFLOAT16, "bfloat16"}})
    for (const Sizes& z : std::span<const Sizes>(known).first(all && dtype == CB_FLOAT16 ? 3 : 1))
      for (const bool causal : {false, true})
        for (const bool backward : {false, true}) {
          const bool within_rows = causal;  // as attention layers lay them out
          const auto query = heads({z.n, z.h, z.l, z.e}, within_rows), key = heads({z.n, z.g, z.s, z.e}, within_rows);
          const auto value = heads({z.n, z.g, z.s, z.v}, within_rows), output = heads({z.n, z.h, z.l, z.v}, false);
          const CudnnAttention a{dtype,
                                 backward,
                                 causal,
                                 query,
                                 key,
                                 value,
                                 output,
                                 heads({z.n, z.h, z.l, 1}, false),
                                 output,
                                 heads(query.sizes, false),
                                 heads(key.sizes, false),
                                 heads(value.sizes, false)};
          const auto plans = attention_plans(target, a, {false, false, limit}, 1);
          std::printf("attention, %s, %lld x %lld x %lld, width %lld%s%s%s: %s, %lld bytes\n", name,
                      static_cast<long long>(z.h), static_cast<long long>(z.l), static_cast<long long>(z.s),
                      static_cast<long long>(z.e), within_rows ? ", heads within rows" : "", causal ? ", causal" : "",
                      backward ? ", backward" : "", plans.empty() ? "none" : plans[0].name.c_str(),
                      plans.empty() ? 0LL : static_cast<long long>(plans[0].workspace));
          failures += plans.empty();
        }
}

// Without a device there is no handle, and so neither weights nor plans. Only checks that layers
// and sequences can be described.
void recurrent() {
  for (const auto& [dtype, name] : {std::pair{CB_FLOAT32, "float32"}, std::pair{CB_FLOAT64, "float64"},
                                    std::pair{CB_FLOAT16, "float16"}, std::pair{CB_BFLOAT16, "bfloat16"}})
    for (const auto& [cell, cell_name] : {std::pair{CUDNN_LSTM, "LSTM"}, std::pair{CUDNN_GRU, "GRU"},
                                          std::pair{CUDNN_RNN_TANH, "tanh"}, std::pair{CUDNN_RNN_RELU, "ReLU"}})
      for (const bool flag : {false, true}) {
        const RecurrentStack stack{dtype, cell, flag, flag, flag, 40, 64, flag ? 3 : 1};
        const bool possible = describe_layers(nullptr, stack).layers != nullptr;
        describe_rows(dtype, {7, 7, 7}, 40);
        describe_rows(dtype, {9, 4, 4, 1}, stack.directions() * stack.hidden);
        std::printf("recurrent, %s, %s%s: %s, 0 bytes\n", name, cell_name,
                    flag ? ", three layers of two directions" : "", possible ? "described" : "none");
        failures += !possible;
      }
}

}  // namespace

int main() {
  try {
    std::printf("cuDNN %lld\n", static_cast<long long>(cudnn::version()));
    const auto look = [](const Device& device, bool all) {
      std::printf("%s\n", device.name);
      const std::string properties = device.properties();
      convolutions({nullptr, properties.c_str()}, all);
      attention({nullptr, properties.c_str()}, all);
    };
    look(hopper, true);
    for (const Device& device : others) look(device, false);
    recurrent();
  } catch (const Failure& error) {
    std::printf("failed: %s\n", error.what());
    return 2;
  }
  std::printf("%d without a plan\n", failures);
  return failures != 0;
}
