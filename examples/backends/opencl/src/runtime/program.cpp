#include "runtime/program.hpp"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

namespace candelabra::opencl {

namespace {

const char* text_of(const std::string& name) {
  for (size_t i = 0; i < source_count; ++i)
    if (name == sources[i].name) return sources[i].text;
  throw kernel::failure(CB_RUNTIME_ERROR, "the backend has no source %s.cl", name.c_str());
}

std::string log_of(cl_program program, cl_device_id id) {
  size_t size = 0;
  if (cl.GetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) != CL_SUCCESS) return "";
  std::string log(size, '\0');
  if (cl.GetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr) != CL_SUCCESS) return "";
  return log.c_str();
}

// FNV-1a, as 16 hexadecimal digits.
std::string digest(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

// PoCL caches on disk itself, one kernel at a time. Asking it for a binary compiles all kernels.
bool uses_disk(const Device& device) {
  const std::string choice = option("PROGRAM_CACHE");
  if (!choice.empty()) return choice != "0";
  return device.platform.find("Portable Computing Language") == std::string::npos;
}

}  // namespace

Kernel& ProgramCache::kernel(const std::string& source, const std::string& options, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const std::string key = source + ' ' + options;
  auto found = programs_.find(key);
  if (found == programs_.end()) found = programs_.emplace(key, Entry{build(source, options), {}}).first;
  std::unique_ptr<Kernel>& kernel = found->second.kernels[name];
  if (!kernel) {
    cl_int code = CL_SUCCESS;
    const cl_kernel handle = cl.CreateKernel(found->second.program.get(), name.c_str(), &code);
    check(code, ("clCreateKernel of " + name + " in " + source + ".cl").c_str());
    kernel = std::make_unique<Kernel>(handle, name);
  }
  return *kernel;
}

Program ProgramCache::build(const std::string& source, const std::string& options) {
  const std::string all = options + (device_.has_float64 ? " -D HAS_FLOAT64" : "");
  const std::string text = std::string(text_of("types")) + text_of(source);
  const std::string path = uses_disk(device_) ? path_of(text, all) : "";
  if (!path.empty()) {
    Program stored = load(path, all);
    if (stored.get()) return stored;
  }
  cl_int code = CL_SUCCESS;
  const char* characters = text.c_str();
  const size_t length = text.size();
  Program program(cl.CreateProgramWithSource(device_.context.get(), 1, &characters, &length, &code));
  check(code, "clCreateProgramWithSource");
  code = cl.BuildProgram(program.get(), 1, &device_.id, all.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) {
    const std::string log = log_of(program.get(), device_.id);
    host().log("opencl", CB_LOG_ERROR, (source + ".cl (" + all + ") failed to build: " + log).c_str());
    throw kernel::failure(CB_ACCELERATOR_ERROR, "%s.cl (%s) failed to build on %s: %s\n%.600s", source.c_str(),
                          all.c_str(), device_.name.c_str(), error_name(code).c_str(), log.c_str());
  }
  if (!path.empty()) store(program.get(), path);
  return program;
}

std::string ProgramCache::path_of(const std::string& text, const std::string& options) {
  char directory[4096];
  const std::string key = device_.name + '-' + device_.driver;
  const cb_backend* table = candelabra_backend(&host());
  if (host().cache_directory(table, key.c_str(), directory, sizeof directory) != CB_OK) return "";
  return std::string(directory) + '/' + digest(text + options) + ".bin";
}

Program ProgramCache::load(const std::string& path, const std::string& options) {
  std::ifstream file(path, std::ios::binary);
  const std::string binary((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (binary.empty()) return Program();
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int code = CL_SUCCESS, status = CL_SUCCESS;
  Program program(cl.CreateProgramWithBinary(device_.context.get(), 1, &device_.id, &size, &bytes, &status, &code));
  // A driver may refuse the binary of another version of itself; the program is built again.
  if (code != CL_SUCCESS || status != CL_SUCCESS) return Program();
  if (cl.BuildProgram(program.get(), 1, &device_.id, options.c_str(), nullptr, nullptr) != CL_SUCCESS) return Program();
  return program;
}

void ProgramCache::store(cl_program program, const std::string& path) {
  size_t size = 0;
  if (cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS || !size) return;
  std::vector<unsigned char> binary(size);
  unsigned char* bytes = binary.data();
  if (cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) return;
  // Renaming is atomic: another process sees the whole file or none.
  const std::string temporary = path + '.' + std::to_string(getpid());
  std::ofstream file(temporary, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::remove(temporary.c_str());
    host().log("opencl", CB_LOG_WARNING, ("cannot write " + path + ": programs are compiled again next time").c_str());
  }
}

}  // namespace candelabra::opencl
