#include "runtime/stream.hpp"

#include <mutex>

#include "candelabra/accelerator.h"
#include "runtime/allocator.hpp"

namespace candelabra::opencl {

namespace {

// An event that can be recorded several times. Empty until it is recorded.
struct Marker {
  std::mutex mutex;
  Event event;
  bool timing = false;
};

Marker& marker_of(void* event) {
  return *static_cast<Marker*>(event);
}

bool is_complete(cl_event event) {
  cl_int status = CL_COMPLETE;
  check(cl.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr), "clGetEventInfo");
  check(status < 0 ? status : CL_SUCCESS, "a command of the queue");
  return status == CL_COMPLETE;
}

cl_event mark(cl_command_queue queue) {
  cl_event event = nullptr;
  check(cl.EnqueueMarkerWithWaitList(queue, 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  return event;
}

int32_t stream_create(int32_t index, int32_t, void** result) {
  return guarded([&] {
    Device& device = opencl::device(index);
    cl_int code = CL_SUCCESS;
    auto stream = std::make_unique<Stream>();
    stream->queue = Queue(cl.CreateCommandQueue(device.context.get(), device.id, CL_QUEUE_PROFILING_ENABLE, &code));
    check(code, "clCreateCommandQueue");
    const std::lock_guard lock(device.streams_mutex);
    device.streams.insert(stream.get());
    *result = stream.release();
  });
}

void stream_destroy(int32_t index, void* stream) {
  const std::unique_ptr<Stream> owned(static_cast<Stream*>(stream));
  Device& device = *devices()[static_cast<size_t>(index)];
  {
    const std::lock_guard lock(device.streams_mutex);
    device.streams.erase(owned.get());
  }
  cl.Finish(owned->queue.get());  // its buffers are free for others afterwards
  device.allocator->forget_stream(stream);
}

int32_t stream_synchronize(int32_t index, void* stream) {
  return guarded([&] { device(index).finish(stream); });
}

int32_t stream_query(int32_t index, void* handle, int32_t* done) {
  return guarded([&] {
    Stream& stream = device(index).stream_of(handle);
    const uint64_t submitted = stream.submitted;
    *done = stream.finished >= submitted;
    if (*done) return;
    const Event event(mark(stream.queue.get()));
    check(cl.Flush(stream.queue.get()), "clFlush");
    *done = is_complete(event.get());
    if (*done) stream.finished = submitted;
  });
}

int32_t event_create(int32_t, int32_t flags, void** result) {
  return guarded([&] {
    auto marker = std::make_unique<Marker>();
    marker->timing = flags & CB_EVENT_TIMING;
    *result = marker.release();
  });
}

void event_destroy(int32_t, void* event) {
  delete static_cast<Marker*>(event);
}

int32_t event_record(int32_t index, void* event, void* stream) {
  return guarded([&] {
    const cl_command_queue queue = device(index).queue_of(stream);
    Event recorded(mark(queue));
    check(cl.Flush(queue), "clFlush");  // other queues may wait for it
    Marker& marker = marker_of(event);
    const std::lock_guard lock(marker.mutex);
    marker.event = std::move(recorded);
  });
}

int32_t event_wait(int32_t index, void* event, void* stream) {
  return guarded([&] {
    Marker& marker = marker_of(event);
    const std::lock_guard lock(marker.mutex);
    const cl_event recorded = marker.event.get();
    if (!recorded) return;
    check(cl.EnqueueBarrierWithWaitList(device(index).queue_of(stream), 1, &recorded, nullptr),
          "clEnqueueBarrierWithWaitList");
  });
}

int32_t event_synchronize(int32_t, void* event) {
  return guarded([&] {
    Marker& marker = marker_of(event);
    const std::lock_guard lock(marker.mutex);
    const cl_event recorded = marker.event.get();
    if (recorded) check(cl.WaitForEvents(1, &recorded), "clWaitForEvents");
  });
}

int32_t event_query(int32_t, void* event, int32_t* done) {
  return guarded([&] {
    Marker& marker = marker_of(event);
    const std::lock_guard lock(marker.mutex);
    *done = !marker.event.get() || is_complete(marker.event.get());
  });
}

uint64_t end_of(void* event) {
  Marker& marker = marker_of(event);
  const std::lock_guard lock(marker.mutex);
  if (!marker.timing || !marker.event.get())
    throw kernel::failure(CB_VALUE_ERROR, "both events must be recorded and created with enable_timing=True");
  if (!is_complete(marker.event.get()))
    throw kernel::failure(CB_RUNTIME_ERROR, "the work before an event is not done: synchronize first");
  cl_ulong nanoseconds = 0;
  check(
      cl.GetEventProfilingInfo(marker.event.get(), CL_PROFILING_COMMAND_END, sizeof nanoseconds, &nanoseconds, nullptr),
      "clGetEventProfilingInfo");
  return nanoseconds;
}

int32_t event_elapsed(int32_t, void* start, void* end, double* milliseconds) {
  return guarded(
      [&] { *milliseconds = (static_cast<double>(end_of(end)) - static_cast<double>(end_of(start))) * 1e-6; });
}

}  // namespace

void add_streams(cb_backend& table) {
  table.capabilities |= CB_CAP_STREAMS | CB_CAP_EVENTS;
  table.stream_create = stream_create;
  table.stream_destroy = stream_destroy;
  table.stream_synchronize = stream_synchronize;
  table.stream_query = stream_query;
  table.event_create = event_create;
  table.event_destroy = event_destroy;
  table.event_record = event_record;
  table.event_wait = event_wait;
  table.event_synchronize = event_synchronize;
  table.event_query = event_query;
  table.event_elapsed = event_elapsed;
}

}  // namespace candelabra::opencl
