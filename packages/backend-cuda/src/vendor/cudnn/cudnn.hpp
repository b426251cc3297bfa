// cuDNN: the functions in use, a handle per device and thread, and plans of operation graphs
// through the backend API.
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

// Whether the library can be loaded; and its version (92800 for 9.28.0), 0 if it cannot.
bool available();
int64_t version();

// The functions that other files call. Throws if the library cannot be loaded.
const Library& library();
// Whether the status says that cuDNN does not support the request.
constexpr bool is_unsupported(cudnnStatus_t status) {
  return status >= CUDNN_STATUS_NOT_SUPPORTED && status < CUDNN_STATUS_INTERNAL_ERROR;
}
// Throws if a function of cuDNN failed.
void check(cudnnStatus_t status, const char* function);

// A backend descriptor: created, given its attributes, finalized.
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
  // Returns the number of elements, and writes up to `most` of them to `values`.
  int64_t read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most, void* values) const;

  cudnnStatus_t try_finalize();
  void finalize();  // throws

 private:
  struct Destroy {
    void operator()(void* raw) const;
  };
  std::unique_ptr<void, Destroy> raw_;
};

// A tensor's descriptor, with the id under which a plan gets the data. A virtual tensor exists only
// within a graph; a host tensor is a number passed by value.
enum class Storage { Device, Virtual, Host };
Descriptor tensor(int64_t id, cudnnDataType_t type, std::span<const int64_t> sizes, std::span<const int64_t> strides,
                  int64_t alignment, Storage storage = Storage::Device);

// The device that plans are made for: a real one, by its handle, or one described by cuDNN's JSON.
// With a description, plans can be made and inspected on a machine without the device.
struct Target {
  cudnnHandle_t handle = nullptr;
  const char* properties = nullptr;
};

// Constraints on a plan.
struct Constraints {
  bool deterministic = false;
  bool full_float32 = false;  // no TF32
  int64_t workspace = 0;      // bytes at most, unless no plan needs less
};

struct Plan {
  Descriptor plan;
  int64_t workspace = 0;
  std::string name;  // engine and its settings, for the tests
};

// Up to `most` plans for a graph, the best first by cuDNN's heuristics. Empty if no engine supports
// the graph. The operations must live during the call.
std::vector<Plan> find_plans(const Target& target, std::span<const Descriptor> operations,
                             const Constraints& constraints, size_t most);

// The thread's handle for the call's device, with the call's stream.
Target target_of(const Call& call);

// The arguments of a plan: tensor ids and addresses.
using Arguments = std::span<const std::pair<int64_t, const void*>>;
// Queues a plan on the call's stream.
void execute(const Call& call, const Target& target, const Plan& plan, Arguments arguments);
// Times each plan several times and returns the index of the fastest: for cudnn.benchmark.
size_t fastest(const Call& call, const Target& target, std::span<const Plan> plans, Arguments arguments);

// The cuDNN type of an enum cb_dtype; throws not_implemented() for types that cuDNN lacks.
cudnnDataType_t data_type(int32_t dtype);

}  // namespace candelabra::cuda::cudnn
