// Programs: built from kernels/*.cl on first use for the dtypes of a call, and cached on disk.
#ifndef CANDELABRA_OPENCL_PROGRAM_HPP
#define CANDELABRA_OPENCL_PROGRAM_HPP

#include <map>
#include <mutex>
#include <string>

#include "runtime/device.hpp"

namespace candelabra::opencl {

// The text of kernels/NAME.cl. CMake writes the table.
struct Source {
  const char* name;
  const char* text;
};
extern const Source sources[];
extern const size_t source_count;

// A kernel object. Its arguments are state, so that one thread at a time sets them and enqueues.
struct Kernel {
  Kernel(cl_kernel kernel, std::string name) : handle(kernel), name(std::move(name)) {}
  Handle<cl_kernel, &Api::ReleaseKernel> handle;
  std::string name;
  std::mutex mutex;
};

class ProgramCache {
 public:
  explicit ProgramCache(Device& device) : device_(device) {}
  // The kernel of kernels/SOURCE.cl, compiled with these options ("-D T=float32").
  Kernel& kernel(const std::string& source, const std::string& options, const std::string& name);

 private:
  struct Entry {
    Program program;
    std::map<std::string, std::unique_ptr<Kernel>> kernels;
  };
  Program build(const std::string& source, const std::string& options);
  Program load(const std::string& path, const std::string& options);
  void store(cl_program program, const std::string& path);
  std::string path_of(const std::string& text, const std::string& options);

  Device& device_;
  std::mutex mutex_;
  std::map<std::string, Entry> programs_;
};

}  // namespace candelabra::opencl

#endif
