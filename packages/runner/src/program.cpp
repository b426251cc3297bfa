#include "program.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "checked.hpp"
#include "reader.hpp"

namespace candelabra::runner {

namespace {

constexpr const char* dtype_names[] = {
    "bool",     "uint8",         "int8",        "int16",           "int32",           "int64",          "float16",
    "bfloat16", "float32",       "float64",     "complex64",       "complex128",      "uint16",         "uint32",
    "uint64",   "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "complex32"};
static_assert(std::size(dtype_names) == CB_DTYPE_COUNT);

constexpr int64_t version_of_programs = 1;
// How a kernel takes its arguments. The core has arranged them for it when the file was saved.
constexpr uint32_t arranging_flags = CB_KERNEL_CONVERTS | CB_KERNEL_CHANNELS_LAST | CB_KERNEL_CONTIGUOUS;

const Json& runner_part(const Json& description) {
  require(description.at("format").string("the format") == "candelabra archive", "it is no archive of candelabra.save");
  const Json& content = description.at("content");
  const Json* const part = content.entry("runner");
  require(part, "it has no programs for the runner: save it by candelabra.export.save(program, path, runner=True)");
  const int64_t version = part->required_entry("version").integer("the version of the programs", 0, INT64_MAX);
  require(version == version_of_programs, "its programs are of version ", version, ", and this runner reads ",
          version_of_programs);
  return *part;
}

void read_kernels(const Json& part, const Backend& backend, Programs& result) {
  const Json::Array& abi = part.required_entry("abi").array("abi", 2);
  require(abi[0].integer("abi", 0, INT32_MAX) == CB_ABI_MAJOR && abi[1].integer("abi", 0, CB_ABI_MINOR) >= 0,
          "it was saved for another version of backend.h");
  for (const Json& one : part.required_entry("kernels").array("kernels")) {
    const Json::Array& pair = one.array("a kernel", 2);
    const std::string& name = pair[0].string("the name of a kernel");
    const auto flags = static_cast<uint32_t>(pair[1].integer("the flags of a kernel", 0, UINT32_MAX));
    schema_of(name);
    const cb_kernel_entry* const entry = backend.kernel(name);
    if (!entry || !entry->kernel) fail(CR_BACKEND_ERROR, backend.path(), " has no kernel of ", name);
    if ((entry->flags ^ flags) & arranging_flags)
      fail(CR_BACKEND_ERROR, "the kernel of ", name, " in ", backend.path(),
           " takes its arguments otherwise than that of the backend which the program was saved with; save it again");
    result.kernels.push_back({name, entry});
  }
}

void read_stored(const Json& description, const Json& part, const Archive& archive, Programs& result) {
  const Json::Array& storages = description.at("storages").array("storages");
  for (const Json& one : part.required_entry("storages").array("storages of the programs")) {
    const int64_t number = one.at("storage").integer("a storage", 0, static_cast<int64_t>(storages.size()) - 1);
    const std::string name = text("storages/", number);
    const std::span<std::byte> bytes = archive.entry(name);
    const int64_t claimed =
        storages[static_cast<size_t>(number)].at("bytes").integer("the size of a storage", 0, INT64_MAX);
    require(bytes.size() == static_cast<uint64_t>(claimed), name, " has ", bytes.size(), " bytes instead of ", claimed);
    result.stored.push_back({bytes, false, 0});
  }
}

}  // namespace

std::string dtype_name(int32_t dtype) {
  return dtype >= 0 && dtype < CB_DTYPE_COUNT ? dtype_names[dtype] : text("dtype ", dtype);
}

std::string shape_text(int32_t dtype, std::span<const int64_t> sizes) {
  std::string made = dtype_name(dtype) + "[";
  for (size_t d = 0; d < sizes.size(); ++d) made += (d > 0 ? ", " : "") + std::to_string(sizes[d]);
  return made + "]";
}

std::string device_of(const Json& description) {
  return runner_part(description).required_entry("device").string("the device");
}

void read_programs(const Json& description, const Archive& archive, const Backend& backend, Programs& result) {
  const Json& part = runner_part(description);
  read_kernels(part, backend, result);
  read_stored(description, part, archive, result);
  for (const Json& one : part.required_entry("programs").array("programs"))
    ProgramReader(one, backend, result, result.programs.emplace_back()).read();
  require(!result.programs.empty(), "it has no programs");
}

}  // namespace candelabra::runner
