// Devices: the OpenCL devices of all platforms, each with a context and a default queue.
#ifndef CANDELABRA_OPENCL_DEVICE_HPP
#define CANDELABRA_OPENCL_DEVICE_HPP

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "candelabra/kernel.hpp"
#include "runtime/opencl_api.hpp"

namespace candelabra::opencl {

// Owns a reference to an OpenCL object.
template <typename Object, cl_int (*Api::*Release)(Object)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(Object object) : object_(object) {}
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (object_) (cl.*Release)(object_);
  }
  Object get() const { return object_; }

 private:
  Object object_ = nullptr;
};

using Context = Handle<cl_context, &Api::ReleaseContext>;
using Queue = Handle<cl_command_queue, &Api::ReleaseCommandQueue>;
using Memory = Handle<cl_mem, &Api::ReleaseMemObject>;
using Program = Handle<cl_program, &Api::ReleaseProgram>;
using Event = Handle<cl_event, &Api::ReleaseEvent>;

class Allocator;
class ProgramCache;

// A command queue that executes in order. The counters tell whether it is idle without asking it.
struct Stream {
  Queue queue;
  std::atomic<uint64_t> submitted = 0, finished = 0;  // commands
};

struct Device {
  int32_t index = 0;
  cl_device_id id = nullptr;
  std::string name, driver, platform;
  uint64_t global_memory = 0, largest_allocation = 0;
  uint32_t processors = 0;
  bool has_float64 = false;
  Context context;
  mutable Stream default_stream;
  std::mutex streams_mutex;
  std::set<Stream*> streams;  // the others
  std::unique_ptr<Allocator> allocator;
  std::unique_ptr<ProgramCache> programs;

  // Null is the default stream.
  Stream& stream_of(void* stream) const;
  // The queue of a stream, for a command.
  cl_command_queue queue_of(void* stream) const;
  // Waits until all commands of a stream are done.
  void finish(void* stream) const;
  // Waits for all streams.
  void finish_all();
};

// Finds the devices. Throws Failure if there are none, with the reason and what to install.
void initialize_devices(const cb_host* host);
const std::vector<std::unique_ptr<Device>>& devices();
// Throws Failure for a number that is no device, and in a process that was forked afterwards.
Device& device(int32_t index);
void mark_forked();

// The core's services, from candelabra_backend().
const cb_host& host();
// The option CANDELABRA_OPENCL_NAME, or an empty string.
std::string option(const char* name);

// The message of this thread's last failure outside a kernel.
const char* last_error();
void set_last_error(const char* message);

// Runs f; a Failure becomes its status, and last_error() its message.
template <typename F>
int32_t guarded(F&& f) noexcept {
  try {
    f();
    return CB_OK;
  } catch (const kernel::Failure& failure) {
    set_last_error(failure.what());
    return failure.status();
  } catch (const std::bad_alloc&) {
    set_last_error("out of host memory");
    return CB_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    set_last_error(error.what());
    return CB_RUNTIME_ERROR;
  }
}

}  // namespace candelabra::opencl

#endif
