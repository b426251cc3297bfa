#include "npy_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "candelabra/backend.h"
#include "checked.hpp"
#include "failure.hpp"
#include "program.hpp"

namespace candelabra::runner {

namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

File open_file(const std::string& path, const char* mode) {
  File file(std::fopen(path.c_str(), mode));
  if (!file) fail(CR_INPUT_ERROR, path, ": ", std::strerror(errno));
  return file;
}

// NumPy has no bfloat16.
constexpr std::pair<std::string_view, int32_t> dtype_codes[] = {
    {"|b1", CR_BOOL},        {"|u1", CR_UINT8},   {"|i1", CR_INT8},    {"<i2", CR_INT16},   {"<i4", CR_INT32},
    {"<i8", CR_INT64},       {"<f2", CR_FLOAT16}, {"<f4", CR_FLOAT32}, {"<f8", CR_FLOAT64}, {"<c8", CR_COMPLEX64},
    {"<c16", CR_COMPLEX128}, {"<u2", CR_UINT16},  {"<u4", CR_UINT32},  {"<u8", CR_UINT64},
};
constexpr std::string_view magic = "\x93NUMPY";
constexpr size_t largest_header = size_t{1} << 16;
constexpr int64_t most_dimensions = 64;

// What stands after 'key': in the header.
std::string_view after_key(const std::string& path, std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == header.npos) fail(CR_INPUT_ERROR, path, ": the header has no ", key);
  const size_t begin = header.find_first_not_of(" ", at + key.size());
  return begin == header.npos ? std::string_view() : header.substr(begin);
}

std::vector<int64_t> parse_shape(const std::string& path, std::string_view text) {
  const size_t end = text.find(')');
  if (text.empty() || text[0] != '(' || end == text.npos) fail(CR_INPUT_ERROR, path, ": the shape makes no sense");
  std::vector<int64_t> sizes;
  text = text.substr(1, end - 1);
  while (true) {
    const size_t begin = text.find_first_not_of(" ,");
    if (begin == text.npos) break;
    text.remove_prefix(begin);
    int64_t size = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), size);
    if (parsed.ec != std::errc() || size < 0 || static_cast<int64_t>(sizes.size()) >= most_dimensions)
      fail(CR_INPUT_ERROR, path, ": the shape makes no sense");
    sizes.push_back(size);
    text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
  }
  return sizes;
}

std::string read_header(const std::string& path, std::FILE* file) {
  const auto read = [&](void* target, size_t bytes) {
    if (std::fread(target, 1, bytes, file) != bytes) fail(CR_INPUT_ERROR, path, ": the file is too short");
  };
  std::array<char, 8> start{};
  read(start.data(), start.size());
  if (std::string_view(start.data(), magic.size()) != magic) fail(CR_INPUT_ERROR, path, " is no .npy file");
  const int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3) fail(CR_INPUT_ERROR, path, ": version ", version, " of .npy is not read");
  uint32_t length = 0;
  read(&length, version == 1 ? 2 : 4);
  if (length > largest_header) fail(CR_INPUT_ERROR, path, ": the header has ", length, " bytes");
  std::string header(length, ' ');
  read(header.data(), length);
  return header;
}

std::string code_of(int32_t dtype) {
  const auto* const found = std::ranges::find(dtype_codes, dtype, &std::pair<std::string_view, int32_t>::second);
  if (found == std::end(dtype_codes)) fail(CR_INPUT_ERROR, "NumPy has no dtype ", dtype_name(dtype));
  return std::string(found->first);
}

}  // namespace

void Array::Free::operator()(std::byte* memory) const {
  std::free(memory);
}

Array read_npy(const std::string& path) {
  const File file = open_file(path, "rb");
  const std::string header = read_header(path, file.get());
  const std::string_view described = after_key(path, header, "'descr':");
  const auto* const code = std::ranges::find_if(
      dtype_codes, [&](const auto& one) { return described.starts_with("'" + std::string(one.first) + "'"); });
  if (code == std::end(dtype_codes))
    fail(CR_INPUT_ERROR, path, ": the dtype ", described.substr(0, described.find(',')), " is not read");
  Array made;
  made.dtype = code->second;
  made.sizes = parse_shape(path, after_key(path, header, "'shape':"));
  if (after_key(path, header, "'fortran_order':").starts_with("True") && made.sizes.size() > 1)
    fail(CR_INPUT_ERROR, path, " is in Fortran's order: save numpy.ascontiguousarray(array)");
  try {
    made.bytes =
        static_cast<uint64_t>(product_of(numel_of(made.sizes), static_cast<int64_t>(cb_dtype_size(made.dtype))));
  } catch (const Failure& failure) {
    fail(CR_INPUT_ERROR, path, ": ", failure.what());
  }
  // The file's length bounds the memory.
  const long begin = std::ftell(file.get());
  std::fseek(file.get(), 0, SEEK_END);
  const long end = std::ftell(file.get());
  if (begin < 0 || end < begin || static_cast<uint64_t>(end - begin) < made.bytes)
    fail(CR_INPUT_ERROR, path, ": the file is too short for its ", made.bytes, " bytes");
  std::fseek(file.get(), begin, SEEK_SET);
  made.data.reset(static_cast<std::byte*>(std::aligned_alloc(64, (made.bytes + 127) / 64 * 64)));
  if (!made.data) throw std::bad_alloc();
  if (std::fread(made.data.get(), 1, made.bytes, file.get()) != made.bytes)
    fail(CR_INPUT_ERROR, path, " cannot be read");
  return made;
}

void write_npy(const std::string& path, const cr_tensor& tensor) {
  std::string header = "{'descr': '" + code_of(tensor.dtype) + "', 'fortran_order': False, 'shape': (";
  for (int32_t d = 0; d < tensor.ndim; ++d)
    header += std::to_string(tensor.sizes[d]) + (tensor.ndim == 1 || d + 1 < tensor.ndim ? "," : "") +
              (d + 1 < tensor.ndim ? " " : "");
  header += "), }";
  // The data begin at a multiple of 64.
  constexpr size_t before_header = 10;
  header.append(63 - (before_header + header.size()) % 64, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  const File file = open_file(path, "wb");
  const auto write = [&](const void* source, size_t bytes) {
    if (std::fwrite(source, 1, bytes, file.get()) != bytes) fail(CR_INPUT_ERROR, path, ": ", std::strerror(errno));
  };
  write(magic.data(), magic.size());
  write("\x01\x00", 2);
  write(&length, sizeof length);
  write(header.data(), header.size());
  if (tensor.bytes > 0) write(tensor.data, tensor.bytes);
  if (std::fflush(file.get()) != 0) fail(CR_INPUT_ERROR, path, ": ", std::strerror(errno));
}

}  // namespace candelabra::runner
