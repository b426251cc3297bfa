// Streams, events, graphs. Queued work runs immediately. With CANDELABRA_EMULATION_DEFERRED=1 it
// runs only when the host waits for it, which reveals missing synchronization and memory that is
// freed too early.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <set>
#include <thread>
#include <vector>

#include "machine.hpp"

namespace emulation {
struct Capture;
}

struct CUevent_st {
  unsigned flags;
  int device;
  uint64_t recorded = 0, done = 0;  // how often
  CUstream_st* stream = nullptr;    // of the last record
  std::shared_ptr<emulation::Capture> capture;
  std::chrono::steady_clock::time_point time;
};

namespace emulation {
namespace {
struct Operation {
  std::function<void()> work;
  std::function<bool()> ready;  // the work and its successors run once this returns true; null: immediately
  CUevent_st* event = nullptr;  // to wait for, or to record
  uint64_t number = 0;
  bool records = false;
};
}  // namespace
}  // namespace emulation

struct CUstream_st {
  int device;
  int priority;
  bool blocking;
  std::deque<emulation::Operation> queue;
  std::shared_ptr<emulation::Capture> capture;
  bool unjoined = false;
};

struct CUgraph_st {
  std::vector<std::function<void()>> work;
};
struct CUgraphExec_st {
  std::shared_ptr<std::vector<std::function<void()>>> work;
};

namespace emulation {

struct Capture {
  unsigned long long id;
  CUstream_st* origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool invalidated = false;
  std::vector<std::function<void()>> work;
  std::vector<CUstream_st*> streams;
};

namespace {

bool deferred() {
  static const bool chosen = is_set("CANDELABRA_EMULATION_DEFERRED");
  return chosen;
}

struct Machine {
  CUstream_st defaults[device_count];
  std::set<CUstream_st*> streams;
  std::set<CUevent_st*> events;
  std::vector<std::shared_ptr<Capture>> captures;
  unsigned long long last_capture = 0;
};
Machine& machine() {
  static Machine* one = [] {
    auto* made = new Machine();
    for (int device = 0; device < device_count; ++device)
      made->defaults[device] = {device, 0, true, {}, nullptr, false};
    return made;
  }();
  return *one;
}
thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;

// The stream of a handle, or null.
CUstream_st* find(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
    return &machine().defaults[current_device()];
  return machine().streams.contains(stream) ? stream : nullptr;
}
bool is_known(cudaEvent_t event) {
  return machine().events.contains(event);
}

// Runs queued work. If some is not ready, waits for it without the lock, or stops and returns
// false.
bool drain(CUstream_st& stream, bool waits = true);

bool drain_to(CUevent_st& event, uint64_t number, bool waits = true) {
  while (event.done < number && event.stream && !event.stream->queue.empty())
    if (!drain(*event.stream, waits)) return false;
  return true;
}

void run(CUstream_st& stream, Operation& operation) {
  if (operation.records) {
    operation.event->done = std::max(operation.event->done, operation.number);
    operation.event->time = std::chrono::steady_clock::now();
  } else if (operation.work) {
    const DeviceAccess access;
    const int before = std::exchange(running_device(), stream.device);
    try {
      operation.work();
    } catch (...) {
      running_device() = before;
      throw;
    }
    running_device() = before;
  }
}

bool is_ready(const Operation& operation) {
  if (operation.event && !operation.records) return drain_to(*operation.event, operation.number, false);
  return !operation.ready || operation.ready();
}

bool drain(CUstream_st& stream, bool waits) {
  // The null stream and blocking streams synchronize with each other.
  while (!stream.queue.empty()) {
    if (!is_ready(stream.queue.front())) {
      if (!waits) return false;
      const int depth = machine_mutex().release();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      machine_mutex().take_again(depth);
      continue;
    }
    if (stream.queue.empty()) break;
    Operation next = std::move(stream.queue.front());
    stream.queue.pop_front();
    run(stream, next);
  }
  return true;
}

// Streams may be created and destroyed while the loop waits for one.
template <typename F>
void drain_those(F&& wanted) {
  const std::vector<CUstream_st*> all(machine().streams.begin(), machine().streams.end());
  for (CUstream_st* each : all)
    if (machine().streams.contains(each) && wanted(*each)) drain(*each);
}

template <typename F>
cudaError_t attempt(F&& f) {
  try {
    f();
    return cudaSuccess;
  } catch (const DeviceFailure& failure) {
    std::fprintf(stderr, "emulation: %s\n", failure.text.c_str());
    return failed(failure.error, "emulation: " + failure.text);
  }
}

cudaError_t put(CUstream_st& stream, Operation operation) {
  stream.queue.push_back(std::move(operation));
  if (deferred()) return cudaSuccess;
  return attempt([&] { drain(stream, false); });
}

// Orders the stream behind the null stream of its device.
cudaError_t keep_order(CUstream_st& stream) {
  Machine& all = machine();
  CUstream_st& null = all.defaults[stream.device];
  if (!stream.blocking) return cudaSuccess;
  return attempt([&] {
    if (&stream != &null) {
      drain(null);
      return;
    }
    drain_those([&](const CUstream_st& each) { return each.blocking && each.device == stream.device; });
  });
}

void invalidate(const std::shared_ptr<Capture>& capture) {
  capture->invalidated = true;
}

void end_capture(const std::shared_ptr<Capture>& capture) {
  for (CUstream_st* each : capture->streams) {
    each->capture = nullptr;
    each->unjoined = false;
  }
  std::erase(machine().captures, capture);
}

bool is_blocking_capture(int device) {
  for (const auto& capture : machine().captures)
    for (const CUstream_st* each : capture->streams)
      if (each->blocking && each->device == device) return true;
  return false;
}

}  // namespace

bool disturbs_capture() {
  for (const auto& capture : machine().captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool forbidden =
        mode_of_thread == cudaStreamCaptureModeRelaxed ? false
        : mode_of_thread == cudaStreamCaptureModeThreadLocal
            ? own && capture->mode != cudaStreamCaptureModeRelaxed
            : (own && capture->mode != cudaStreamCaptureModeRelaxed) || capture->mode == cudaStreamCaptureModeGlobal;
    if (!forbidden) continue;
    invalidate(capture);
    return true;
  }
  return false;
}

cudaError_t wait_for_device(int device) {
  return attempt([&] {
    drain(machine().defaults[device]);
    drain_those([&](const CUstream_st& each) { return each.device == device; });
  });
}

cudaError_t queue(cudaStream_t handle, std::function<void()> work) {
  const Lock lock(machine_mutex());
  CUstream_st* stream = find(handle);
  if (!stream || stream->device != current_device())
    return failed(cudaErrorInvalidResourceHandle, "emulation: the stream is not one of the current device");
  if (stream->capture) {
    if (stream->capture->invalidated) return failed(cudaErrorStreamCaptureInvalidated);
    stream->capture->work.push_back(std::move(work));
    stream->unjoined = true;
    return cudaSuccess;
  }
  if (stream == &machine().defaults[stream->device] && is_blocking_capture(stream->device))
    return failed(cudaErrorStreamCaptureImplicit);
  if (const cudaError_t error = keep_order(*stream)) return error;
  return put(*stream, {std::move(work), nullptr, nullptr, 0, false});
}

cudaError_t queue_when(cudaStream_t handle, std::function<bool()> ready, std::function<void()> work) {
  const Lock lock(machine_mutex());
  CUstream_st* stream = find(handle);
  if (!stream || stream->device != current_device())
    return failed(cudaErrorInvalidResourceHandle, "emulation: the stream is not one of the current device");
  if (stream->capture) {
    invalidate(stream->capture);
    return failed(cudaErrorStreamCaptureUnsupported);
  }
  if (const cudaError_t error = keep_order(*stream)) return error;
  return put(*stream, {std::move(work), std::move(ready), nullptr, 0, false});
}

}  // namespace emulation

using namespace emulation;

extern "C" {

// There is no profiler to attach.
cudaError_t cudaProfilerStart() {
  return cudaSuccess;
}
cudaError_t cudaProfilerStop() {
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* result, unsigned flags, int priority) {
  const Lock lock(machine_mutex());
  *result = new CUstream_st{
      current_device(), std::clamp(priority, -5, 0), !(flags & cudaStreamNonBlocking), {}, nullptr, false};
  machine().streams.insert(*result);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* result, unsigned flags) {
  return cudaStreamCreateWithPriority(result, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* result) {
  return cudaStreamCreateWithPriority(result, cudaStreamDefault, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(machine_mutex());
  if (!machine().streams.contains(stream)) return failed(cudaErrorInvalidResourceHandle);
  const cudaError_t error = attempt([&] { drain(*stream); });
  for (CUevent_st* each : machine().events)
    if (each->stream == stream) each->stream = nullptr;
  machine().streams.erase(stream);
  delete stream;
  return error;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  const Lock lock(machine_mutex());
  const CUstream_st* stream = find(handle);
  if (!stream) return failed(cudaErrorInvalidResourceHandle);
  *device = stream->device;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const Lock lock(machine_mutex());
  CUstream_st* stream = find(handle);
  if (!stream) return failed(cudaErrorInvalidResourceHandle);
  if (stream->capture) {
    invalidate(stream->capture);
    return failed(cudaErrorStreamCaptureUnsupported);
  }
  if (const cudaError_t error = keep_order(*stream)) return error;
  return attempt([&] { drain(*stream); });
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const Lock lock(machine_mutex());
  CUstream_st* stream = find(handle);
  if (!stream) return failed(cudaErrorInvalidResourceHandle);
  if (stream->capture) {
    invalidate(stream->capture);
    return failed(cudaErrorStreamCaptureUnsupported);
  }
  if (stream->queue.empty()) return cudaSuccess;
  // Queries make progress, so that polling ends.
  if (const cudaError_t error = attempt([&] { drain(*stream, false); })) return error;
  return failed(cudaErrorNotReady);
}
cudaError_t cudaDeviceSynchronize() {
  const Lock lock(machine_mutex());
  if (disturbs_capture()) return failed(cudaErrorStreamCaptureUnsupported);
  return wait_for_device(current_device());
}

// ---- events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* result, unsigned flags) {
  const Lock lock(machine_mutex());
  if (flags & ~(cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess) ||
      ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming)))
    return failed(cudaErrorInvalidValue);
  *result = new CUevent_st{flags, current_device(), 0, 0, nullptr, nullptr, {}};
  machine().events.insert(*result);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* result) {
  return cudaEventCreateWithFlags(result, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Lock lock(machine_mutex());
  if (!is_known(event)) return failed(cudaErrorInvalidResourceHandle);
  // Queued waits outlive the event.
  const cudaError_t error = attempt([&] { drain_to(*event, event->recorded); });
  const auto strip = [&](CUstream_st& stream) {
    std::erase_if(stream.queue, [&](const Operation& each) { return each.event == event; });
  };
  for (CUstream_st& each : machine().defaults) strip(each);
  for (CUstream_st* each : machine().streams) strip(*each);
  machine().events.erase(event);
  delete event;
  return error;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  const Lock lock(machine_mutex());
  CUstream_st* stream = find(handle);
  if (!stream || !is_known(event) || stream->device != event->device)
    return failed(cudaErrorInvalidResourceHandle, "emulation: event and stream are not of one device");
  event->capture = stream->capture;
  event->stream = stream;
  if (stream->capture) return cudaSuccess;
  ++event->recorded;
  const cudaError_t error = put(*stream, {{}, {}, event, event->recorded, true});
  // Other processes cannot make this one progress.
  return error == cudaSuccess && (event->flags & cudaEventInterprocess) ? attempt([&] { drain(*stream); }) : error;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t handle, unsigned) {
  return cudaEventRecord(event, handle);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  const Lock lock(machine_mutex());
  CUstream_st* stream = find(handle);
  if (!stream || !is_known(event)) return failed(cudaErrorInvalidResourceHandle);
  if (event->capture) {
    if (std::find(machine().captures.begin(), machine().captures.end(), event->capture) == machine().captures.end())
      return failed(cudaErrorIllegalState);
    if (!stream->capture) {
      stream->capture = event->capture;
      stream->capture->streams.push_back(stream);
      stream->unjoined = true;
    } else if (stream->capture != event->capture) {
      invalidate(event->capture);
      return failed(cudaErrorStreamCaptureInvalidated);
    }
    if (event->stream != stream && event->stream) event->stream->unjoined = false;
    return cudaSuccess;
  }
  if (stream->capture) {
    if (event->recorded == 0) return cudaSuccess;
    invalidate(stream->capture);
    return failed(cudaErrorStreamCaptureInvalidated,
                  "emulation: a stream that is captured waits for an event of before");
  }
  if (event->recorded == event->done) return cudaSuccess;
  return put(*stream, {{}, {}, event, event->recorded, false});
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Lock lock(machine_mutex());
  if (!is_known(event)) return failed(cudaErrorInvalidResourceHandle);
  if (event->capture) {
    invalidate(event->capture);
    return failed(cudaErrorCapturedEvent);
  }
  return attempt([&] { drain_to(*event, event->recorded); });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(machine_mutex());
  if (!is_known(event)) return failed(cudaErrorInvalidResourceHandle);
  if (event->capture) {
    invalidate(event->capture);
    return failed(cudaErrorCapturedEvent);
  }
  if (disturbs_capture()) return failed(cudaErrorStreamCaptureUnsupported);
  if (event->done == event->recorded) return cudaSuccess;
  if (const cudaError_t error = attempt([&] { drain_to(*event, event->recorded, false); })) return error;
  return failed(cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Lock lock(machine_mutex());
  if (!is_known(start) || !is_known(end) || (start->flags | end->flags) & cudaEventDisableTiming || !start->recorded ||
      !end->recorded)
    return failed(cudaErrorInvalidResourceHandle);
  if (start->done != start->recorded || end->done != end->recorded) return failed(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}

static constexpr char event_mark[] = "an event of the emulation";
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  const Lock lock(machine_mutex());
  if (!is_known(event) || !(event->flags & cudaEventInterprocess)) return failed(cudaErrorInvalidResourceHandle);
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, event_mark, sizeof event_mark);
  return cudaSuccess;
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* result, cudaIpcEventHandle_t handle) {
  if (std::memcmp(&handle, event_mark, sizeof event_mark)) return failed(cudaErrorMapBufferObjectFailed);
  return cudaEventCreateWithFlags(result, cudaEventDisableTiming | cudaEventInterprocess);
}

// ---- graphs

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, mode_of_thread);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const Lock lock(machine_mutex());
  const CUstream_st* stream = find(handle);
  if (!stream) return failed(cudaErrorInvalidResourceHandle);
  if (stream == &machine().defaults[stream->device] && is_blocking_capture(stream->device))
    return failed(cudaErrorStreamCaptureImplicit);
  *status = !stream->capture               ? cudaStreamCaptureStatusNone
            : stream->capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                           : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  const Lock lock(machine_mutex());
  if (graph || dependencies || edges || count) return failed(cudaErrorNotSupported);
  if (const cudaError_t error = cudaStreamIsCapturing(handle, status)) return error;
  const CUstream_st* stream = find(handle);
  if (id) *id = stream->capture ? stream->capture->id : 0;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const Lock lock(machine_mutex());
  CUstream_st* stream = find(handle);
  if (!stream) return failed(cudaErrorInvalidResourceHandle);
  if (stream == &machine().defaults[stream->device]) return failed(cudaErrorStreamCaptureUnsupported);
  if (stream->capture) return failed(cudaErrorIllegalState);
  if (const cudaError_t error = attempt([&] { drain(*stream); })) return error;
  stream->capture = std::make_shared<Capture>();
  stream->capture->id = ++machine().last_capture;
  stream->capture->origin = stream;
  stream->capture->mode = mode;
  stream->capture->thread = std::this_thread::get_id();
  stream->capture->streams.push_back(stream);
  machine().captures.push_back(stream->capture);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* result) {
  const Lock lock(machine_mutex());
  *result = nullptr;
  CUstream_st* stream = find(handle);
  if (!stream || !stream->capture || stream->capture->origin != stream) return failed(cudaErrorIllegalState);
  const std::shared_ptr<Capture> capture = stream->capture;
  const bool unjoined = std::any_of(capture->streams.begin(), capture->streams.end(),
                                    [&](CUstream_st* each) { return each != stream && each->unjoined; });
  end_capture(capture);
  if (capture->invalidated) return failed(cudaErrorStreamCaptureInvalidated);
  if (unjoined) return failed(cudaErrorStreamCaptureUnjoined);
  *result = new CUgraph_st{std::move(capture->work)};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* result, cudaGraph_t graph, unsigned long long) {
  *result = new CUgraphExec_st{std::make_shared<std::vector<std::function<void()>>>(graph->work)};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return queue(stream, [work = graph->work] {
    for (const auto& each : *work) each();
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned) {
  FILE* file = std::fopen(path, "w");
  if (!file) return failed(cudaErrorInvalidValue);
  std::fprintf(file, "digraph emulated {\n");
  for (size_t i = 0; i < graph->work.size(); ++i)
    std::fprintf(file, i ? "  n%zu -> n%zu;\n" : "  n%zu;\n", i ? i - 1 : i, i);
  std::fprintf(file, "}\n");
  std::fclose(file);
  return cudaSuccess;
}

}  // extern "C"
