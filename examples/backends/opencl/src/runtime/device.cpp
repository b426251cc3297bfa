#include "runtime/device.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "runtime/allocator.hpp"
#include "runtime/program.hpp"

namespace candelabra::opencl {

namespace {

struct State {
  const cb_host* host = nullptr;
  std::vector<std::unique_ptr<Device>> devices;
  std::atomic<bool> forked = false;
};

// Never destroyed: drivers have destructors of their own, and threads may still run at exit.
State& state() {
  static State* const instance = new State;
  return *instance;
}

thread_local char message[4096] = "";

std::string trimmed(std::string text) {
  text.erase(std::find(text.begin(), text.end(), '\0'), text.end());
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string text_of(cl_device_id id, cl_uint what) {
  size_t size = 0;
  check(cl.GetDeviceInfo(id, what, 0, nullptr, &size), "clGetDeviceInfo");
  std::string text(size, '\0');
  check(cl.GetDeviceInfo(id, what, size, text.data(), nullptr), "clGetDeviceInfo");
  return trimmed(text);
}

template <typename T>
T number_of(cl_device_id id, cl_uint what) {
  T value = 0;
  check(cl.GetDeviceInfo(id, what, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}

std::string platform_name(cl_platform_id platform) {
  char text[256] = "";
  check(cl.GetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof text - 1, text, nullptr), "clGetPlatformInfo");
  return text;
}

std::vector<cl_platform_id> platforms() {
  cl_uint count = 0;
  const cl_int code = cl.GetPlatformIDs(0, nullptr, &count);
  if (code == CL_PLATFORM_NOT_FOUND_KHR || (code == CL_SUCCESS && count == 0)) {
    throw kernel::failure(CB_RUNTIME_ERROR,
                          "the OpenCL loader finds no platform: install the driver of the device, or one for the "
                          "processor, such as the Debian package pocl-opencl-icd or `pip install intel-opencl-rt "
                          "intel-cmplr-lib-rt`");
  }
  check(code, "clGetPlatformIDs");
  std::vector<cl_platform_id> found(count);
  check(cl.GetPlatformIDs(count, found.data(), nullptr), "clGetPlatformIDs");
  return found;
}

std::vector<cl_device_id> devices_of(cl_platform_id platform) {
  cl_uint count = 0;
  const cl_int code = cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
  if (code == CL_DEVICE_NOT_FOUND) return {};
  check(code, "clGetDeviceIDs");
  std::vector<cl_device_id> found(count);
  check(cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, found.data(), nullptr), "clGetDeviceIDs");
  return found;
}

std::unique_ptr<Device> open(cl_device_id id, const std::string& platform, int32_t index) {
  auto device = std::make_unique<Device>();
  device->index = index;
  device->id = id;
  device->platform = platform;
  device->name = text_of(id, CL_DEVICE_NAME);
  device->driver = text_of(id, CL_DRIVER_VERSION);
  device->global_memory = number_of<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  device->largest_allocation = number_of<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  device->processors = number_of<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS);
  device->has_float64 = text_of(id, CL_DEVICE_EXTENSIONS).find("cl_khr_fp64") != std::string::npos;
  cl_int code = CL_SUCCESS;
  device->context = Context(cl.CreateContext(nullptr, 1, &id, nullptr, nullptr, &code));
  check(code, "clCreateContext");
  device->default_stream.queue =
      Queue(cl.CreateCommandQueue(device->context.get(), id, CL_QUEUE_PROFILING_ENABLE, &code));
  check(code, "clCreateCommandQueue");
  device->allocator = std::make_unique<Allocator>(*device);
  device->programs = std::make_unique<ProgramCache>(*device);
  return device;
}

}  // namespace

Stream& Device::stream_of(void* stream) const {
  return stream ? *static_cast<Stream*>(stream) : default_stream;
}

cl_command_queue Device::queue_of(void* stream) const {
  Stream& target = stream_of(stream);
  ++target.submitted;
  return target.queue.get();
}

void Device::finish(void* stream) const {
  Stream& target = stream_of(stream);
  const uint64_t submitted = target.submitted;
  check(cl.Finish(target.queue.get()), "clFinish");
  target.finished = submitted;
}

void Device::finish_all() {
  finish(nullptr);
  const std::lock_guard lock(streams_mutex);
  for (Stream* stream : streams) finish(stream);
}

void initialize_devices(const cb_host* host) {
  state().host = host;
  load(option("LIBRARY"));
  const std::string wanted = option("PLATFORM");
  std::string seen;
  for (const cl_platform_id platform : platforms()) {
    const std::string name = platform_name(platform);
    seen += (seen.empty() ? "'" : ", '") + name + "'";
    if (name.find(wanted) == std::string::npos) continue;
    for (const cl_device_id id : devices_of(platform))
      state().devices.push_back(open(id, name, static_cast<int32_t>(state().devices.size())));
  }
  if (state().devices.empty()) {
    throw kernel::failure(CB_RUNTIME_ERROR, "no OpenCL device: the platforms are %s%s%s", seen.c_str(),
                          wanted.empty() ? ", without devices" : ", and CANDELABRA_OPENCL_PLATFORM asks for ",
                          wanted.c_str());
  }
  // Graphics processors first: opencl:0 is the device that most programs want.
  auto& all = state().devices;
  const auto is_cpu = [](const auto& device) {
    return (number_of<cl_bitfield>(device->id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  };
  std::stable_partition(all.begin(), all.end(), [&](const auto& device) { return !is_cpu(device); });
  for (size_t i = 0; i < all.size(); ++i) all[i]->index = static_cast<int32_t>(i);
}

const std::vector<std::unique_ptr<Device>>& devices() {
  return state().devices;
}

Device& device(int32_t index) {
  if (state().forked) {
    throw kernel::failure(CB_RUNTIME_ERROR,
                          "OpenCL cannot be used in a forked process: start processes by the method 'spawn'");
  }
  if (index < 0 || static_cast<size_t>(index) >= state().devices.size()) {
    throw kernel::failure(CB_RUNTIME_ERROR, "there is no device opencl:%d, only %zu", index, state().devices.size());
  }
  return *state().devices[static_cast<size_t>(index)];
}

void mark_forked() {
  state().forked = true;
}

const cb_host& host() {
  return *state().host;
}

std::string option(const char* name) {
  char value[4096] = "";
  const int32_t status = host().option("opencl", name, value, sizeof value);
  if (status == CB_VALUE_ERROR)
    throw kernel::failure(CB_VALUE_ERROR, "CANDELABRA_OPENCL_%s has more than %zu characters", name, sizeof value - 1);
  return status == CB_OK ? value : "";
}

const char* last_error() {
  return message;
}

void set_last_error(const char* text) {
  std::strncpy(message, text, sizeof message - 1);
}

}  // namespace candelabra::opencl
