// cuDNN: the functions in use, a handle per device and thread, and plans for graphs of operations
// through its backend interface.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels.hpp"
#include "vendor/libraries.hpp"

namespace candelabra::cuda::cudnn {

// Whether the library can be loaded; and its number, 92800 for 9.28.0, or 0 where it cannot.
bool available();
int64_t version();

// For the functions that other files call; throws where the library cannot be loaded.
const Library& library();
// Whether it says that it has not what was asked for.
constexpr bool is_unsupported(cudnnStatus_t status) {
  return status >= CUDNN_STATUS_NOT_SUPPORTED && status < CUDNN_STATUS_INTERNAL_ERROR;
}
// Throws where a function of cuDNN failed.
void check(cudnnStatus_t status, const char* function);

// One of the backend's descriptors: created empty, given its attributes, finalized.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  cudnnBackendDescriptor_t get() const { return raw_.get(); }
  explicit operator bool() const { return raw_ != nullptr; }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values);
  void set_integer(cudnnBackendAttributeName_t name, int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set_integers(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
    set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  void set_descriptor(cudnnBackendAttributeName_t name, const Descriptor& value) {
    cudnnBackendDescriptor_t raw = value.get();
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  }
  template <typename E>
  void set_choice(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, E value) {
    set(name, type, 1, &value);
  }
  // How many elements there are; up to `most` of them are written to `values`.
  int64_t read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most, void* values) const;

  cudnnStatus_t try_finalize();
  void finalize();  // throws

 private:
  struct Destroy {
    void operator()(void* raw) const;
  };
  std::unique_ptr<void, Destroy> raw_;
};

// The descriptor of a tensor, under the number by which the data are given when a plan runs. A
// virtual one exists in a graph only; one by value is a number in host memory.
enum class Storage { Device, Virtual, Host };
Descriptor tensor(int64_t id, cudnnDataType_t type, std::span<const int64_t> sizes, std::span<const int64_t> strides,
                  int64_t alignment, Storage storage = Storage::Device);

// A device that plans are for: one in use, by its handle, or one that cuDNN's description in JSON
// tells of, so that plans can be made, and looked at, on a machine without it.
struct Target {
  cudnnHandle_t handle = nullptr;
  const char* properties = nullptr;
};

// What a plan must not do, and may use.
struct Wishes {
  bool deterministic = false;
  bool full_float32 = false;  // no TF32
  int64_t workspace = 0;      // bytes at most, unless nothing else is found
};

struct Plan {
  Descriptor plan;
  int64_t workspace = 0;
  std::string name;  // of engine and choices, for the tests
};

// The plans for a graph that are best by cuDNN's heuristics, `most` of them at most; none where
// there is no engine for it. The operations have to live as long as this runs.
std::vector<Plan> find_plans(const Target& target, std::span<const Descriptor> operations, const Wishes& wishes,
                             size_t most);

// The thread's handle for the call's device, with the call's stream.
Target target_of(const Call& call);

// A plan's arguments: numbers of tensors, and where they are.
using Arguments = std::span<const std::pair<int64_t, const void*>>;
// Queues a plan on the call's stream.
void execute(const Call& call, const Target& target, const Plan& plan, Arguments arguments);
// The one that takes the least time, each run several times: for cudnn.benchmark.
size_t fastest(const Call& call, const Target& target, std::span<const Plan> plans, Arguments arguments);

// Of enum cb_dtype; throws not_implemented() for what cuDNN has not.
cudnnDataType_t data_type(int32_t dtype);

}  // namespace candelabra::cuda::cudnn
