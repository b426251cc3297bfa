// The functions of cuDNN that the backend calls: its descriptors, and graphs whose operations run
// one after the other, as loops. Recurrent layers are in cudnn_recurrent.cpp.
#include "cudnn.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "emulation.hpp"

namespace {

using emulation::load;
using emulation::store;
using Sizes = std::vector<int64_t>;

struct Attribute {
  cudnnBackendAttributeType_t type;
  int64_t count;
  std::vector<unsigned char> bytes;
};

// A descriptor keeps the state that its inner descriptors had when they were set.
struct Descriptor {
  cudnnBackendDescriptorType_t type;
  std::map<int, Attribute> attributes;
  bool finalized = false;
  int64_t engine = 0;

  bool has(int name) const { return attributes.contains(name); }
  template <typename T>
  std::vector<T> all(int name) const {
    const Attribute& found = attributes.at(name);
    std::vector<T> values(static_cast<size_t>(found.count));
    std::memcpy(values.data(), found.bytes.data(), values.size() * sizeof(T));
    return values;
  }
  template <typename T>
  T one(int name) const {
    return all<T>(name).at(0);
  }
  template <typename T>
  T one(int name, T otherwise) const {
    return has(name) ? one<T>(name) : otherwise;
  }
  const Descriptor& inner(int name) const { return *static_cast<const Descriptor*>(one<void*>(name)); }
};

size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

// ---- tensors

struct Tensor {
  int64_t id;
  cudnnDataType_t type;
  Sizes sizes, strides;
  bool is_virtual, by_value;
  int64_t alignment;

  explicit Tensor(const Descriptor& d)
      : id(d.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        type(d.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        sizes(d.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides(d.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)),
        is_virtual(d.one<unsigned char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0) != 0),
        by_value(d.one<unsigned char>(CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) != 0),
        alignment(d.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)) {}
  int64_t count() const {
    int64_t product = 1;
    for (const int64_t size : sizes) product *= size;
    return product;
  }
  // The offset of element `number` in row-major order.
  int64_t offset(int64_t number) const {
    int64_t sum = 0;
    for (size_t d = sizes.size(); d-- > 0; number /= sizes[d]) sum += number % sizes[d] * strides[d];
    return sum;
  }
};

double rounded(cudnnDataType_t type, double value) {
  if (type == CUDNN_DATA_INT32 || type == CUDNN_DATA_BOOLEAN) return value;
  double room = 0;
  store(type, &room, 0, value);
  return load(type, &room, 0);
}

// Values in row-major order, by tensor id.
using Values = std::map<int64_t, std::vector<double>>;

int64_t product_of(const Sizes& sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}
Sizes place_of(int64_t number, const Sizes& sizes) {
  Sizes at(sizes.size());
  for (size_t d = sizes.size(); d-- > 0; number /= sizes[d]) at[d] = number % sizes[d];
  return at;
}
// The element of a tensor for an index of a larger one. Sizes of 1 are broadcast, shared dimensions
// divided.
size_t within(const Sizes& at, const Sizes& of, const Sizes& sizes) {
  int64_t number = 0;
  for (size_t d = 0; d < sizes.size(); ++d) number = number * sizes[d] + at[d] / (of[d] / sizes[d]);
  return static_cast<size_t>(number);
}

// ---- operations

struct Operation {
  std::vector<Tensor> inputs;
  Tensor output;
  std::function<std::vector<double>(const std::vector<const std::vector<double>*>&)> run;
};

Operation matmul(const Descriptor& d) {
  const Tensor a(d.inner(CUDNN_ATTR_OPERATION_MATMUL_ADESC)), b(d.inner(CUDNN_ATTR_OPERATION_MATMUL_BDESC)),
      c(d.inner(CUDNN_ATTR_OPERATION_MATMUL_CDESC));
  return {{a, b}, c, [=](const auto& given) {
            std::vector<double> result(static_cast<size_t>(c.count()));
            const int64_t inner = a.sizes[3];
            for (size_t i = 0; i < result.size(); ++i) {
              const Sizes at = place_of(static_cast<int64_t>(i), c.sizes);
              const int64_t a_head = at[0] / (c.sizes[0] / a.sizes[0]) * a.sizes[1] + at[1] / (c.sizes[1] / a.sizes[1]);
              const int64_t b_head = at[0] / (c.sizes[0] / b.sizes[0]) * b.sizes[1] + at[1] / (c.sizes[1] / b.sizes[1]);
              for (int64_t k = 0; k < inner; ++k)
                result[i] += (*given[0])[static_cast<size_t>((a_head * a.sizes[2] + at[2]) * inner + k)] *
                             (*given[1])[static_cast<size_t>((b_head * inner + k) * b.sizes[3] + at[3])];
            }
            return result;
          }};
}

Operation pointwise(const Descriptor& d) {
  const Descriptor& mode = d.inner(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  const auto formula = mode.one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
  const auto axis = static_cast<size_t>(mode.one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS, 0));
  std::vector<Tensor> inputs{Tensor(d.inner(CUDNN_ATTR_OPERATION_POINTWISE_XDESC))};
  for (const int name : {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC})
    if (d.has(name)) inputs.emplace_back(d.inner(name));
  const Tensor y(d.inner(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
  return {inputs, y, [=](const auto& given) {
            std::vector<double> result(static_cast<size_t>(y.count()));
            for (size_t i = 0; i < result.size(); ++i) {
              const Sizes at = place_of(static_cast<int64_t>(i), y.sizes);
              double v[3] = {};
              for (size_t k = 0; k < inputs.size(); ++k) v[k] = (*given[k])[within(at, y.sizes, inputs[k].sizes)];
              switch (formula) {
                case CUDNN_POINTWISE_ADD:
                  result[i] = v[0] + v[1];
                  break;
                case CUDNN_POINTWISE_SUB:
                  result[i] = v[0] - v[1];
                  break;
                case CUDNN_POINTWISE_MUL:
                  result[i] = v[0] * v[1];
                  break;
                case CUDNN_POINTWISE_DIV:
                  result[i] = v[0] / v[1];
                  break;
                case CUDNN_POINTWISE_EXP:
                  result[i] = std::exp(v[0]);
                  break;
                case CUDNN_POINTWISE_LOG:
                  result[i] = std::log(v[0]);
                  break;
                case CUDNN_POINTWISE_CMP_GE:
                  result[i] = v[0] >= v[1];
                  break;
                case CUDNN_POINTWISE_GEN_INDEX:
                  result[i] = static_cast<double>(at[axis]);
                  break;
                default:  // CUDNN_POINTWISE_BINARY_SELECT
                  result[i] = v[2] != 0 ? v[0] : v[1];
              }
            }
            return result;
          }};
}

Operation reduction(const Descriptor& d) {
  const Tensor x(d.inner(CUDNN_ATTR_OPERATION_REDUCTION_XDESC)), y(d.inner(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
  const bool largest =
      d.inner(CUDNN_ATTR_OPERATION_REDUCTION_DESC).one<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR) ==
      CUDNN_REDUCE_TENSOR_MAX;
  return {{x}, y, [=](const auto& given) {
            std::vector<double> result(static_cast<size_t>(y.count()), largest ? -INFINITY : 0.0);
            for (size_t i = 0; i < given[0]->size(); ++i) {
              double& to = result[within(place_of(static_cast<int64_t>(i), x.sizes), x.sizes, y.sizes)];
              to = largest ? std::max(to, (*given[0])[i]) : to + (*given[0])[i];
            }
            return result;
          }};
}

Operation reshape(const Descriptor& d) {
  const Tensor x(d.inner(CUDNN_ATTR_OPERATION_RESHAPE_XDESC)), y(d.inner(CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
  return {{x}, y, [=](const auto& given) {
            std::vector<double> memory(given[0]->size()), result(given[0]->size());
            for (size_t i = 0; i < memory.size(); ++i)
              memory.at(static_cast<size_t>(x.offset(static_cast<int64_t>(i)))) = (*given[0])[i];
            for (size_t i = 0; i < result.size(); ++i)
              result[i] = memory.at(static_cast<size_t>(y.offset(static_cast<int64_t>(i))));
            return result;
          }};
}

enum class Kind { Forward, ToInput, ToWeight };

Operation convolution(const Descriptor& d, Kind kind) {
  const int first = kind == Kind::Forward   ? CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA
                    : kind == Kind::ToInput ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA
                                            : CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA;
  // After alpha, beta and the geometry: weight, input, output. Gradients use the same positions.
  const Descriptor& geometry = d.inner(first + 2);
  const Tensor weight(d.inner(first + 3)), input(d.inner(first + 4)), output(d.inner(first + 5));
  const Sizes step = geometry.all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
              wide = geometry.all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS),
              before = geometry.all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const Tensor& made = kind == Kind::Forward ? output : kind == Kind::ToInput ? input : weight;
  const std::vector<Tensor> given_tensors = kind == Kind::Forward   ? std::vector{input, weight}
                                            : kind == Kind::ToInput ? std::vector{output, weight}
                                                                    : std::vector{output, input};
  return {given_tensors, made, [=](const auto& given) {
            std::vector<double> result(static_cast<size_t>((kind == Kind::Forward   ? output
                                                            : kind == Kind::ToInput ? input
                                                                                    : weight)
                                                               .count()));
            const int64_t channels = weight.sizes[1], groups = input.sizes[1] / channels,
                          share = weight.sizes[0] / groups;
            const Sizes of_output(output.sizes.begin() + 2, output.sizes.end()),
                of_input(input.sizes.begin() + 2, input.sizes.end()),
                of_weight(weight.sizes.begin() + 2, weight.sizes.end());
            const int64_t places = product_of(of_output), all = product_of(of_input), taps = product_of(of_weight);
            // Offsets in an image of each tap of each element of the result; -1 beyond the edges.
            std::vector<int64_t> reached;
            for (int64_t place = 0; place < places; ++place) {
              const Sizes at = place_of(place, of_output);
              for (int64_t tap = 0; tap < taps; ++tap) {
                const Sizes of_tap = place_of(tap, of_weight);
                int64_t i = 0;
                for (size_t k = 0; k < step.size() && i >= 0; ++k) {
                  const int64_t x = at[k] * step[k] - before[k] + of_tap[k] * wide[k];
                  i = x >= 0 && x < of_input[k] ? i * of_input[k] + x : -1;
                }
                reached.push_back(i);
              }
            }
            const std::vector<double>&first_given = *given[0], &second_given = *given[1];
            for (int64_t o = 0; o < output.count(); ++o) {
              const int64_t image = o / places / output.sizes[1], channel = o / places % output.sizes[1];
              const int64_t* of_place = reached.data() + o % places * taps;
              for (int64_t c = 0; c < channels; ++c) {
                const int64_t from = (image * input.sizes[1] + channel / share * channels + c) * all,
                              by = (channel * channels + c) * taps;
                for (int64_t tap = 0; tap < taps; ++tap) {
                  if (of_place[tap] < 0) continue;
                  const auto i = static_cast<size_t>(from + of_place[tap]), w = static_cast<size_t>(by + tap),
                             to = static_cast<size_t>(o);
                  if (kind == Kind::Forward)
                    result[to] += first_given[i] * second_given[w];
                  else if (kind == Kind::ToInput)
                    result[i] += first_given[to] * second_given[w];
                  else
                    result[w] += first_given[to] * second_given[i];
                }
              }
            }
            return result;
          }};
}

bool is_operation(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return true;
    default:
      return false;
  }
}

Operation operation_of(const Descriptor& d) {
  switch (d.type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return matmul(d);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return pointwise(d);
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return reduction(d);
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return reshape(d);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return convolution(d, Kind::Forward);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return convolution(d, Kind::ToInput);
    default:
      return convolution(d, Kind::ToWeight);
  }
}

// A plan: operations in execution order. Stored beside the descriptors, which may be destroyed
// earlier.
using Program = std::vector<Operation>;
std::map<const void*, std::shared_ptr<const Program>>& programs() {
  static std::map<const void*, std::shared_ptr<const Program>> all;
  return all;
}
constexpr int64_t workspace_bytes = 512;

std::shared_ptr<const Program> program_of(const Descriptor& graph) {
  std::vector<Operation> waiting;
  for (void* raw : graph.all<void*>(CUDNN_ATTR_OPERATIONGRAPH_OPS))
    waiting.push_back(operation_of(*static_cast<Descriptor*>(raw)));
  auto program = std::make_shared<Program>();
  std::set<int64_t> made;
  while (!waiting.empty()) {
    const auto ready = std::find_if(waiting.begin(), waiting.end(), [&](const Operation& operation) {
      return std::all_of(operation.inputs.begin(), operation.inputs.end(),
                         [&](const Tensor& t) { return !t.is_virtual || made.contains(t.id); });
    });
    if (ready == waiting.end()) return nullptr;
    made.insert(ready->output.id);
    program->push_back(std::move(*ready));
    waiting.erase(ready);
  }
  return program;
}

const Descriptor& of(cudnnBackendDescriptor_t raw) {
  return *static_cast<const Descriptor*>(raw);
}

std::atomic<int> choices{0};

}  // namespace

extern "C" {

// Counts the queries for engines. A caller with a cache makes one query per kind of engine.
int emulated_choices() {
  return choices;
}

size_t cudnnGetVersion(void) {
  return CUDNN_VERSION;
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "emulated cuDNN failed";
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new Descriptor{type, {}, false, 0};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  programs().erase(descriptor);
  delete static_cast<Descriptor*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  auto& d = *static_cast<Descriptor*>(descriptor);
  if (d.finalized) return CUDNN_STATUS_NOT_INITIALIZED;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    for (int64_t i = 0; i < count; ++i)
      if (!of(static_cast<const cudnnBackendDescriptor_t*>(values)[i]).finalized) return CUDNN_STATUS_BAD_PARAM;
  const auto* bytes = static_cast<const unsigned char*>(values);
  d.attributes[name] = {type, count, {bytes, bytes + static_cast<size_t>(count) * size_of(type)}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t* count, void* values) {
  const Descriptor& d = of(descriptor);
  if (!d.finalized) return CUDNN_STATUS_NOT_INITIALIZED;
  const auto give = [&]<typename T>(std::vector<T> given) {
    if (size_of(type) != sizeof(T)) return CUDNN_STATUS_BAD_PARAM;
    *count = static_cast<int64_t>(given.size());
    std::copy_n(given.begin(), std::min<size_t>(given.size(), static_cast<size_t>(room)), static_cast<T*>(values));
    return CUDNN_STATUS_SUCCESS;
  };
  // Engine 0 is fast and inaccurate, 1 fails, 2 is slow and accurate. The fallback heuristics only
  // know engine 2.
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      ++choices;
      const bool fallback = d.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
      *count = fallback ? 1 : 2;
      for (int64_t i = 0; i < std::min(room, *count); ++i) {
        auto& configuration = *static_cast<Descriptor*>(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
        configuration.attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] =
            d.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        configuration.engine = fallback ? 2 : i;
        configuration.finalized = true;
      }
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      auto& engine = *static_cast<Descriptor*>(*static_cast<cudnnBackendDescriptor_t*>(values));
      engine.engine = d.engine;
      engine.finalized = true;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      if (d.engine != 0) return give(std::vector<cudnnBackendNumericalNote_t>{});
      return give(std::vector{CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC});
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return give(std::vector{d.engine});
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return give(std::vector{workspace_bytes});
    default:
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  auto& d = *static_cast<Descriptor*>(descriptor);
  try {
    if (d.type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
      const Tensor t(d);
      if (t.sizes.size() != t.strides.size() || t.sizes.size() < 3 || t.count() == 0) return CUDNN_STATUS_BAD_PARAM;
    } else if (is_operation(d.type)) {
      const Operation operation = operation_of(d);
      for (const Tensor& t : operation.inputs)
        if (t.sizes.size() != operation.output.sizes.size()) return CUDNN_STATUS_BAD_PARAM;
    } else if (d.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
      if (!program_of(d)) return CUDNN_STATUS_BAD_PARAM;
    } else if (d.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
      const Descriptor& configuration = d.inner(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      if (configuration.engine == 1) return CUDNN_STATUS_NOT_SUPPORTED;
      programs()[descriptor] = program_of(configuration.inner(CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
    }
  } catch (const std::out_of_range&) {
    return CUDNN_STATUS_BAD_PARAM;  // something is missing
  }
  d.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const Descriptor& given = of(pack);
  const std::shared_ptr<const Program> program = programs().at(plan);
  const Sizes ids = given.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto places = given.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  void* workspace = given.one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (!workspace || ids.size() != places.size()) return CUDNN_STATUS_BAD_PARAM;
  std::map<int64_t, void*> data;
  for (size_t i = 0; i < ids.size(); ++i) data[ids[i]] = places[i];
  Values numbers;  // values of host tensors are read now
  for (const Operation& operation : *program) {
    std::vector<Tensor> all = operation.inputs;
    all.push_back(operation.output);
    for (const Tensor& t : all) {
      if (t.is_virtual) continue;
      if (!data.contains(t.id) || reinterpret_cast<uintptr_t>(data[t.id]) % static_cast<uintptr_t>(t.alignment))
        return CUDNN_STATUS_BAD_PARAM;
      if (t.by_value) numbers[t.id] = {load(t.type, data[t.id], 0)};
    }
  }
  const cudaError_t error = emulation::queue(handle->stream, [=] {
    std::memset(workspace, 0x7f, workspace_bytes);
    Values values = numbers;
    for (const Operation& operation : *program) {
      std::vector<std::vector<double>> turned;
      std::vector<const std::vector<double>*> inputs;
      turned.reserve(operation.inputs.size());
      for (const Tensor& t : operation.inputs) {
        if (t.is_virtual || t.by_value) {
          inputs.push_back(&values.at(t.id));
          continue;
        }
        // Two tensors may be views of the same memory in different orders.
        std::vector<double>& read = turned.emplace_back(static_cast<size_t>(t.count()));
        for (size_t i = 0; i < read.size(); ++i)
          read[i] = load(t.type, data.at(t.id), t.offset(static_cast<int64_t>(i)));
        inputs.push_back(&read);
      }
      std::vector<double> made = operation.run(inputs);
      const Tensor& out = operation.output;
      for (double& value : made) value = rounded(out.type, value);
      if (!out.is_virtual)
        for (size_t i = 0; i < made.size(); ++i)
          store(out.type, data.at(out.id), out.offset(static_cast<int64_t>(i)), made[i]);
      values[out.id] = std::move(made);
    }
  });
  return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
