#include "runtime/opencl_api.hpp"

#include <dlfcn.h>

#include <map>

#include "candelabra/kernel.hpp"

namespace candelabra::opencl {

Api cl = {};

namespace {

template <typename Function>
void find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function) throw kernel::failure(CB_RUNTIME_ERROR, "the OpenCL loader lacks %s, a function of OpenCL 1.2", name);
}

void find_objects(void* library) {
  find(library, cl.GetPlatformIDs, "clGetPlatformIDs");
  find(library, cl.GetPlatformInfo, "clGetPlatformInfo");
  find(library, cl.GetDeviceIDs, "clGetDeviceIDs");
  find(library, cl.GetDeviceInfo, "clGetDeviceInfo");
  find(library, cl.CreateContext, "clCreateContext");
  find(library, cl.ReleaseContext, "clReleaseContext");
  find(library, cl.CreateCommandQueue, "clCreateCommandQueue");
  find(library, cl.ReleaseCommandQueue, "clReleaseCommandQueue");
  find(library, cl.CreateBuffer, "clCreateBuffer");
  find(library, cl.ReleaseMemObject, "clReleaseMemObject");
  find(library, cl.CreateProgramWithSource, "clCreateProgramWithSource");
  find(library, cl.CreateProgramWithBinary, "clCreateProgramWithBinary");
  find(library, cl.BuildProgram, "clBuildProgram");
  find(library, cl.GetProgramInfo, "clGetProgramInfo");
  find(library, cl.GetProgramBuildInfo, "clGetProgramBuildInfo");
  find(library, cl.ReleaseProgram, "clReleaseProgram");
  find(library, cl.CreateKernel, "clCreateKernel");
  find(library, cl.SetKernelArg, "clSetKernelArg");
  find(library, cl.ReleaseKernel, "clReleaseKernel");
}

void find_commands(void* library) {
  find(library, cl.WaitForEvents, "clWaitForEvents");
  find(library, cl.GetEventInfo, "clGetEventInfo");
  find(library, cl.GetEventProfilingInfo, "clGetEventProfilingInfo");
  find(library, cl.ReleaseEvent, "clReleaseEvent");
  find(library, cl.Flush, "clFlush");
  find(library, cl.Finish, "clFinish");
  find(library, cl.EnqueueReadBuffer, "clEnqueueReadBuffer");
  find(library, cl.EnqueueWriteBuffer, "clEnqueueWriteBuffer");
  find(library, cl.EnqueueCopyBuffer, "clEnqueueCopyBuffer");
  find(library, cl.EnqueueNDRangeKernel, "clEnqueueNDRangeKernel");
  find(library, cl.EnqueueMarkerWithWaitList, "clEnqueueMarkerWithWaitList");
  find(library, cl.EnqueueBarrierWithWaitList, "clEnqueueBarrierWithWaitList");
}

}  // namespace

void load(const std::string& library) {
  const char* path = library.empty() ? "libOpenCL.so.1" : library.c_str();
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    throw kernel::failure(
        CB_RUNTIME_ERROR,
        "there is no OpenCL loader (%s). Install one with a driver, such as the Debian packages "
        "ocl-icd-libopencl1 and pocl-opencl-icd, or `pip install intel-opencl-rt intel-cmplr-lib-rt`; "
        "CANDELABRA_OPENCL_LIBRARY names a loader elsewhere",
        reason ? reason : path);
  }
  find_objects(handle);
  find_commands(handle);
}

std::string error_name(cl_int code) {
  static const std::map<cl_int, const char*> names = {
      {CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND"},
      {-2, "CL_DEVICE_NOT_AVAILABLE"},
      {-3, "CL_COMPILER_NOT_AVAILABLE"},
      {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
      {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
      {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
      {CL_PROFILING_INFO_NOT_AVAILABLE, "CL_PROFILING_INFO_NOT_AVAILABLE"},
      {-11, "CL_BUILD_PROGRAM_FAILURE"},
      {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
      {-30, "CL_INVALID_VALUE"},
      {-34, "CL_INVALID_CONTEXT"},
      {-36, "CL_INVALID_COMMAND_QUEUE"},
      {-38, "CL_INVALID_MEM_OBJECT"},
      {-42, "CL_INVALID_BINARY"},
      {-43, "CL_INVALID_BUILD_OPTIONS"},
      {-44, "CL_INVALID_PROGRAM"},
      {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
      {-46, "CL_INVALID_KERNEL_NAME"},
      {-48, "CL_INVALID_KERNEL"},
      {-49, "CL_INVALID_ARG_INDEX"},
      {-50, "CL_INVALID_ARG_VALUE"},
      {-51, "CL_INVALID_ARG_SIZE"},
      {-52, "CL_INVALID_KERNEL_ARGS"},
      {-54, "CL_INVALID_WORK_GROUP_SIZE"},
      {-55, "CL_INVALID_WORK_ITEM_SIZE"},
      {-58, "CL_INVALID_EVENT"},
      {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
      {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
      {CL_PLATFORM_NOT_FOUND_KHR, "CL_PLATFORM_NOT_FOUND_KHR"},
  };
  const auto found = names.find(code);
  return found == names.end() ? "OpenCL error " + std::to_string(code) : found->second;
}

void check(cl_int code, const char* function) {
  if (code == CL_SUCCESS) return;
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
  throw kernel::failure(memory ? CB_OUT_OF_MEMORY : CB_ACCELERATOR_ERROR, "%s failed: %s", function,
                        error_name(code).c_str());
}

}  // namespace candelabra::opencl
