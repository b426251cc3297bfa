// The part of the OpenCL 1.2 API that this backend calls, as declared by the specification.
//
// The functions are looked up at run time in the ICD loader, libOpenCL.so.1. So the backend builds
// without Khronos' headers, and its wheel installs on machines without OpenCL, where the first use
// of the device explains what is missing.
#ifndef CANDELABRA_OPENCL_API_HPP
#define CANDELABRA_OPENCL_API_HPP

#include <cstddef>
#include <cstdint>
#include <string>

using cl_int = int32_t;
using cl_uint = uint32_t;
using cl_ulong = uint64_t;
using cl_bool = cl_uint;
using cl_bitfield = cl_ulong;
using cl_platform_id = struct _cl_platform_id*;
using cl_device_id = struct _cl_device_id*;
using cl_context = struct _cl_context*;
using cl_command_queue = struct _cl_command_queue*;
using cl_mem = struct _cl_mem*;
using cl_program = struct _cl_program*;
using cl_kernel = struct _cl_kernel*;
using cl_event = struct _cl_event*;

namespace candelabra::opencl {

enum : cl_int {
  CL_SUCCESS = 0,
  CL_DEVICE_NOT_FOUND = -1,
  CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
  CL_OUT_OF_RESOURCES = -5,
  CL_OUT_OF_HOST_MEMORY = -6,
  CL_PROFILING_INFO_NOT_AVAILABLE = -7,
  CL_INVALID_BUFFER_SIZE = -61,
  CL_PLATFORM_NOT_FOUND_KHR = -1001,
};
enum : cl_bool { CL_FALSE = 0, CL_TRUE = 1 };
enum : cl_int { CL_COMPLETE = 0 };
enum : cl_bitfield {
  CL_DEVICE_TYPE_CPU = 1 << 1,
  CL_DEVICE_TYPE_ALL = 0xFFFFFFFF,
  CL_MEM_READ_WRITE = 1 << 0,
  CL_QUEUE_PROFILING_ENABLE = 1 << 1,
};
enum : cl_uint {
  CL_PLATFORM_VERSION = 0x0901,
  CL_PLATFORM_NAME = 0x0902,
  CL_DEVICE_TYPE = 0x1000,
  CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
  CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
  CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
  CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
  CL_DEVICE_NAME = 0x102B,
  CL_DRIVER_VERSION = 0x102D,
  CL_DEVICE_VERSION = 0x102F,
  CL_DEVICE_EXTENSIONS = 0x1030,
  CL_PROGRAM_BINARY_SIZES = 0x1165,
  CL_PROGRAM_BINARIES = 0x1166,
  CL_PROGRAM_BUILD_LOG = 0x1183,
  CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
  CL_PROFILING_COMMAND_END = 0x1283,
};

using ContextNotify = void (*)(const char*, const void*, size_t, void*);
using ProgramNotify = void (*)(cl_program, void*);

// The functions, in the order of the specification. load() fills them in.
struct Api {
  cl_int (*GetPlatformIDs)(cl_uint, cl_platform_id*, cl_uint*);
  cl_int (*GetPlatformInfo)(cl_platform_id, cl_uint, size_t, void*, size_t*);
  cl_int (*GetDeviceIDs)(cl_platform_id, cl_bitfield, cl_uint, cl_device_id*, cl_uint*);
  cl_int (*GetDeviceInfo)(cl_device_id, cl_uint, size_t, void*, size_t*);
  cl_context (*CreateContext)(const intptr_t*, cl_uint, const cl_device_id*, ContextNotify, void*, cl_int*);
  cl_int (*ReleaseContext)(cl_context);
  cl_command_queue (*CreateCommandQueue)(cl_context, cl_device_id, cl_bitfield, cl_int*);
  cl_int (*ReleaseCommandQueue)(cl_command_queue);
  cl_mem (*CreateBuffer)(cl_context, cl_bitfield, size_t, void*, cl_int*);
  cl_int (*ReleaseMemObject)(cl_mem);
  cl_program (*CreateProgramWithSource)(cl_context, cl_uint, const char**, const size_t*, cl_int*);
  cl_program (*CreateProgramWithBinary)(cl_context, cl_uint, const cl_device_id*, const size_t*, const unsigned char**,
                                        cl_int*, cl_int*);
  cl_int (*BuildProgram)(cl_program, cl_uint, const cl_device_id*, const char*, ProgramNotify, void*);
  cl_int (*GetProgramInfo)(cl_program, cl_uint, size_t, void*, size_t*);
  cl_int (*GetProgramBuildInfo)(cl_program, cl_device_id, cl_uint, size_t, void*, size_t*);
  cl_int (*ReleaseProgram)(cl_program);
  cl_kernel (*CreateKernel)(cl_program, const char*, cl_int*);
  cl_int (*SetKernelArg)(cl_kernel, cl_uint, size_t, const void*);
  cl_int (*ReleaseKernel)(cl_kernel);
  cl_int (*WaitForEvents)(cl_uint, const cl_event*);
  cl_int (*GetEventInfo)(cl_event, cl_uint, size_t, void*, size_t*);
  cl_int (*GetEventProfilingInfo)(cl_event, cl_uint, size_t, void*, size_t*);
  cl_int (*ReleaseEvent)(cl_event);
  cl_int (*Flush)(cl_command_queue);
  cl_int (*Finish)(cl_command_queue);
  cl_int (*EnqueueReadBuffer)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, void*, cl_uint, const cl_event*,
                              cl_event*);
  cl_int (*EnqueueWriteBuffer)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void*, cl_uint, const cl_event*,
                               cl_event*);
  cl_int (*EnqueueCopyBuffer)(cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event*,
                              cl_event*);
  cl_int (*EnqueueNDRangeKernel)(cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*, const size_t*,
                                 cl_uint, const cl_event*, cl_event*);
  cl_int (*EnqueueMarkerWithWaitList)(cl_command_queue, cl_uint, const cl_event*, cl_event*);
  cl_int (*EnqueueBarrierWithWaitList)(cl_command_queue, cl_uint, const cl_event*, cl_event*);
};

// The loaded functions. Valid after load().
extern Api cl;

// Loads the ICD loader from this path, or where the system finds libOpenCL.so.1 if it is empty.
// Throws Failure, with what to install, if there is none.
void load(const std::string& library);

// "CL_OUT_OF_RESOURCES"
std::string error_name(cl_int code);

// Throws Failure if an OpenCL function has failed: CB_OUT_OF_MEMORY for the codes that say so, else
// CB_ACCELERATOR_ERROR.
void check(cl_int code, const char* function);

}  // namespace candelabra::opencl

#endif
