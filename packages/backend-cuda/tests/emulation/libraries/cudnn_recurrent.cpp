// The functions of cuDNN's recurrent layers. As strict as the library about their arguments. The
// reserve space is scrambled, and valid for one backward pass only.
#include "cudnn_recurrent.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

using namespace emulation::recurrent;

// ---- argument checks

size_t workspace_of(const cudnnRNNStruct& net, const cudnnRNNDataStruct& data) {
  return static_cast<size_t>(Rows(data).total * net.gates() * net.hidden * size_of(net.type)) + 256;
}
bool fits(const cudnnRNNStruct* net, const cudnnRNNDataStruct* x, const cudnnRNNDataStruct* y) {
  return net && net->set && x && x->set && y && y->set && x->type == net->type && y->type == net->type &&
         x->width == net->input && y->width == net->directions * net->hidden && x->lengths == y->lengths;
}
bool fits(const cudnnRNNStruct& net, const cudnnRNNDataStruct& x, const cudnnTensorStruct* states) {
  const int batch = static_cast<int>(x.lengths.size()), hidden = static_cast<int>(net.hidden);
  return states && states->type == net.type &&
         states->sizes == std::vector{static_cast<int>(net.count()), batch, hidden} &&
         states->strides == std::vector{batch * hidden, hidden, 1};
}
bool has_spaces(const cudnnRNNStruct& net, const cudnnRNNDataStruct& x, size_t weights, const void* weight_space,
                size_t work, const void* workspace) {
  return weight_space && weights >= static_cast<size_t>(Weights(net).size * size_of(net.type)) && workspace &&
         work >= workspace_of(net, x);
}
bool has_reserve(const cudnnRNNStruct& net, const cudnnRNNDataStruct& x, size_t size, const void* reserve) {
  return reserve && size >= Reserve(net, Rows(x).total).bytes() && reinterpret_cast<uintptr_t>(reserve) % 8 == 0;
}

cudnnStatus_t queued(cudnnHandle_t handle, std::function<void()> work) {
  return emulation::queue(handle->stream, std::move(work)) == cudaSuccess ? CUDNN_STATUS_SUCCESS
                                                                          : CUDNN_STATUS_EXECUTION_FAILED;
}

// For the tests: the number of forward calls, and the last one's cudnnMathType_t.
std::atomic<int> calls{0}, last_math{-1};

template <typename T>
cudnnStatus_t create(T** made) {
  if (!made) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *made = new T;
  return CUDNN_STATUS_SUCCESS;
}
template <typename T>
cudnnStatus_t destroy(T* made) {
  delete made;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

int emulated_recurrent_calls() {
  return calls;
}
int emulated_recurrent_math() {
  return last_math;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) {
  return create(made);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  return destroy(tensor);
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int dims,
                                         const int* sizes, const int* strides) {
  if (dims < 1 || dims > CUDNN_DIM_MAX || std::any_of(sizes, sizes + dims, [](int size) { return size < 1; }))
    return CUDNN_STATUS_BAD_PARAM;
  *tensor = {type, {sizes, sizes + dims}, {strides, strides + dims}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor, int room, cudnnDataType_t* type,
                                         int* dims, int* sizes, int* strides) {
  *type = tensor->type;
  *dims = static_cast<int>(tensor->sizes.size());
  std::copy_n(tensor->sizes.begin(), std::min(room, *dims), sizes);
  std::copy_n(tensor->strides.begin(), std::min(room, *dims), strides);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* made) {
  return create(made);
}
cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t dropout) {
  return destroy(dropout);
}
// Only a dropout of 0 is supported: cuDNN's random numbers are not emulated.
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle, float probability,
                                        void* states, size_t, unsigned long long) {
  if (!handle || !(probability >= 0 && probability <= 1)) return CUDNN_STATUS_BAD_PARAM;
  if (probability > 0 || states) return CUDNN_STATUS_NOT_SUPPORTED;
  dropout->set = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* made) {
  return create(made);
}
cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t net) {
  return destroy(net);
}
cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t net, cudnnRNNAlgo_t algorithm, cudnnRNNMode_t cell,
                                       cudnnRNNBiasMode_t biases, cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input_mode, cudnnDataType_t type, cudnnDataType_t precision,
                                       cudnnMathType_t math, int32_t input, int32_t hidden, int32_t projection,
                                       int32_t layers, cudnnDropoutDescriptor_t dropout, uint32_t flags) {
  // The library also rejects each of these.
  if (input < 1 || hidden < 1 || projection < 1 || layers < 1 || flags > CUDNN_RNN_PADDED_IO_ENABLED)
    return CUDNN_STATUS_BAD_PARAM;
  if (dropout && !dropout->set) return CUDNN_STATUS_BAD_PARAM;
  const bool wide = precision == CUDNN_DATA_FLOAT && (type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16);
  if (!has_type(type) || !(wide || (precision == type && type != CUDNN_DATA_BFLOAT16)) || projection > hidden ||
      (projection != hidden && cell != CUDNN_LSTM))
    return CUDNN_STATUS_NOT_SUPPORTED;
  // Supports what the backend uses, except for very large layers, so that there is an unsupported
  // case to test.
  constexpr int32_t largest = 999;
  if (algorithm != CUDNN_RNN_ALGO_STANDARD || input_mode != CUDNN_LINEAR_INPUT || projection != hidden ||
      hidden > largest || (biases != CUDNN_RNN_NO_BIAS && biases != CUDNN_RNN_DOUBLE_BIAS))
    return CUDNN_STATUS_NOT_SUPPORTED;
  const char* gaps = std::getenv("CANDELABRA_EMULATION_CUDNN_GAPS");
  *net = {true,   cell,   biases == CUDNN_RNN_DOUBLE_BIAS, direction == CUDNN_BIDIRECTIONAL ? 2 : 1, type, math, input,
          hidden, layers, gaps && gaps[0] == '1' ? 24 : 0};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* made) {
  return create(made);
}
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t data) {
  return destroy(data);
}
// Only rows without padding.
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int longest, int batch, int width,
                                        const int* lengths, void*) {
  if (!has_type(type) || layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED) return CUDNN_STATUS_NOT_SUPPORTED;
  if (longest < 1 || batch < 1 || width < 1 || !lengths) return CUDNN_STATUS_BAD_PARAM;
  const bool sorted = std::is_sorted(lengths, lengths + batch, std::greater<>());
  if (!sorted || lengths[0] != longest || lengths[batch - 1] < 1) return CUDNN_STATUS_BAD_PARAM;
  *data = {true, type, width, {lengths, lengths + batch}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t net, size_t* size) {
  if (!handle || !net->set) return CUDNN_STATUS_BAD_PARAM;
  *size = static_cast<size_t>(Weights(*net).size * size_of(net->type));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t net, int32_t at, size_t size,
                                      const void* space, int32_t linear, cudnnTensorDescriptor_t matrix,
                                      void** matrix_at, cudnnTensorDescriptor_t bias, void** bias_at) {
  if (!handle || !net->set || !space || at < 0 || at >= net->count() || linear < 0 || linear >= 2 * net->gates())
    return CUDNN_STATUS_BAD_PARAM;
  const Weights weights(*net);
  if (size < static_cast<size_t>(weights.size * size_of(net->type))) return CUDNN_STATUS_BAD_PARAM;
  const auto address = [&](int64_t place) {
    return const_cast<char*>(static_cast<const char*>(space) + place * size_of(net->type));
  };
  const int rows = static_cast<int>(net->hidden), columns = static_cast<int>(weights.columns(at, linear));
  *matrix = {net->type, {1, rows, columns}, {rows * columns, columns, 1}};
  *matrix_at = address(weights.matrix(at, linear));
  *bias = {net->type, {1, rows, 1}, {rows, 1, 1}};
  *bias_at = net->has_biases ? address(weights.bias(at, linear)) : nullptr;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t net, cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t x, size_t* workspace, size_t* reserve) {
  if (!handle || !net->set || !x->set || x->type != net->type || x->width != net->input) return CUDNN_STATUS_BAD_PARAM;
  *workspace = workspace_of(*net, *x);
  *reserve = mode == CUDNN_FWD_MODE_TRAINING ? Reserve(*net, Rows(*x).total).bytes() : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t net, cudnnForwardMode_t mode, const int32_t*,
                              cudnnRNNDataDescriptor_t x_rows, const void* x, cudnnRNNDataDescriptor_t y_rows, void* y,
                              cudnnTensorDescriptor_t h, const void* hx, void* hy, cudnnTensorDescriptor_t c,
                              const void* cx, void* cy, size_t weight_size, const void* weights, size_t work_size,
                              void* work, size_t reserve_size, void* reserve) {
  const bool training = mode == CUDNN_FWD_MODE_TRAINING, lstm = net->cell == CUDNN_LSTM;
  if (!handle || !x || !y || !fits(net, x_rows, y_rows) || !fits(*net, *x_rows, h) ||
      (lstm && !fits(*net, *x_rows, c)) || !has_spaces(*net, *x_rows, weight_size, weights, work_size, work) ||
      (training && !has_reserve(*net, *x_rows, reserve_size, reserve)))
    return CUDNN_STATUS_BAD_PARAM;
  ++calls;
  last_math = net->math;
  const Job job{*net, Weights(*net), Rows(*x_rows), x, nullptr, hx, lstm ? cx : nullptr, weights};
  return queued(handle, [=] {
    std::memset(work, 0x7f, work_size);
    Reserve kept(job.net, job.rows.total);
    kept.clear();
    job.forward(kept);
    job.write_forward(kept, y, hy, lstm ? cy : nullptr);
    if (training) kept.write(reserve, Reserve::Stage::Forward);
  });
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t net, const int32_t*,
                                      cudnnRNNDataDescriptor_t y_rows, const void* y, const void* dy,
                                      cudnnRNNDataDescriptor_t x_rows, void* dx, cudnnTensorDescriptor_t h,
                                      const void* hx, const void* dhy, void* dhx, cudnnTensorDescriptor_t c,
                                      const void* cx, const void* dcy, void* dcx, size_t weight_size,
                                      const void* weights, size_t work_size, void* work, size_t reserve_size,
                                      void* reserve) {
  const bool lstm = net->cell == CUDNN_LSTM;
  if (!handle || !y || !dy || !dx || !fits(net, x_rows, y_rows) || !fits(*net, *x_rows, h) ||
      (lstm && !fits(*net, *x_rows, c)) || !has_spaces(*net, *x_rows, weight_size, weights, work_size, work) ||
      !has_reserve(*net, *x_rows, reserve_size, reserve))
    return CUDNN_STATUS_BAD_PARAM;
  const Job job{*net, Weights(*net), Rows(*x_rows), nullptr, y, hx, lstm ? cx : nullptr, weights};
  return queued(handle, [=] {
    std::memset(work, 0x7f, work_size);
    Reserve kept(job.net, job.rows.total);
    kept.read(reserve, Reserve::Stage::Forward);
    job.backward(kept, dy, dhy, lstm ? dcy : nullptr, dx, dhx, lstm ? dcx : nullptr);
    kept.write(reserve, Reserve::Stage::Data);
  });
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t net, cudnnWgradMode_t mode,
                                         const int32_t*, cudnnRNNDataDescriptor_t x_rows, const void* x,
                                         cudnnTensorDescriptor_t h, const void* hx, cudnnRNNDataDescriptor_t y_rows,
                                         const void* y, size_t weight_size, void* gradients, size_t work_size,
                                         void* work, size_t reserve_size, void* reserve) {
  if (mode != CUDNN_WGRAD_MODE_ADD) return CUDNN_STATUS_NOT_SUPPORTED;
  if (!handle || !x || !y || !fits(net, x_rows, y_rows) || !fits(*net, *x_rows, h) ||
      !has_spaces(*net, *x_rows, weight_size, gradients, work_size, work) ||
      !has_reserve(*net, *x_rows, reserve_size, reserve))
    return CUDNN_STATUS_BAD_PARAM;
  const Job job{*net, Weights(*net), Rows(*x_rows), x, y, hx, nullptr, gradients};
  return queued(handle, [=] {
    std::memset(work, 0x7f, work_size);
    Reserve kept(job.net, job.rows.total);
    kept.read(reserve, Reserve::Stage::Data);
    job.add_weights(kept, gradients);
  });
}

}  // extern "C"
