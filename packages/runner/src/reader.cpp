#include "reader.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <new>

#include "call_checks.hpp"
#include "checked.hpp"

namespace candelabra::runner {

namespace {

constexpr int64_t most_dimensions = 64;
constexpr int64_t most_bytes = int64_t{1} << 47;
// Kernels multiply strides by the size of an element, even those of a size of 1.
constexpr int64_t largest_stride = int64_t{1} << 56;

bool is_file_name(const std::string& name) {
  return !name.empty() && name.size() <= 200 && std::ranges::all_of(name, [](unsigned char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
  });
}

}  // namespace

template <typename T>
T* ProgramReader::make(size_t count) {
  return static_cast<T*>(shared_.pool.allocate(std::max<size_t>(count, 1) * sizeof(T), alignof(T)));
}

const int64_t* ProgramReader::keep(const std::vector<int64_t>& values) {
  int64_t* const kept = make<int64_t>(values.size());
  std::ranges::copy(values, kept);
  return kept;
}

std::vector<int64_t> ProgramReader::read_integers(const Json& one, std::string_view what, int64_t least,
                                                  int64_t most) const {
  std::vector<int64_t> values;
  for (const Json& entry : one.array(what)) values.push_back(entry.integer(what, least, most));
  return values;
}

int32_t ProgramReader::read_dtype(const Json& one) const {
  // A backend of an earlier minor version knows fewer dtypes.
  const int64_t count = backend_.table().abi_minor >= 1 ? int64_t{CB_DTYPE_COUNT} : int64_t{CB_FLOAT8_E4M3FN};
  return static_cast<int32_t>(one.integer("a dtype", 0, count - 1));
}

void ProgramReader::read() {
  result_.arena_bytes =
      static_cast<uint64_t>(source_.required_entry("arena").integer("the size of the arena", 0, most_bytes));
  for (const Json& one : source_.required_entry("inputs").array("inputs")) read_described(one, true);
  for (const Json& one : source_.required_entry("outputs").array("outputs")) read_described(one, false);
  for (const Json& one : source_.required_entry("buffers").array("buffers")) read_buffer(one);
  for (const Described& input : result_.inputs) {
    if (input.buffer < 0) continue;
    require(static_cast<size_t>(input.buffer) < result_.buffers.size(), "input ", input.name, " is in no buffer");
    const Buffer& buffer = result_.buffers[static_cast<size_t>(input.buffer)];
    require(buffer.kind == Buffer::Kind::Input && &result_.inputs[buffer.place] == &input, "input ", input.name,
            " is in the buffer of something else");
  }
  for (const Json& one : source_.required_entry("calls").array("calls")) read_call(one);
  check_outputs();
  check_arena();
  check_bools();
}

// [name, dtype, sizes, buffer], and of an output the offset in the buffer.
void ProgramReader::read_described(const Json& one, bool is_input) {
  const Json::Array& parts = one.array("an input or output", is_input ? 4 : 5);
  Described made;
  made.name = parts[0].string("the name of an input or output");
  require(is_file_name(made.name), "an input or output has no name");
  made.dtype = read_dtype(parts[1]);
  made.sizes = read_integers(parts[2], "a size", 0, largest_number);
  require(made.sizes.size() <= most_dimensions, made.name, " has ", made.sizes.size(), " dimensions");
  const int64_t bytes = product_of(numel_of(made.sizes), static_cast<int64_t>(cb_dtype_size(made.dtype)));
  require(bytes <= most_bytes, made.name, " has ", bytes, " bytes");
  made.bytes = static_cast<uint64_t>(bytes);
  made.buffer = static_cast<int>(parts[3].integer("a buffer", -1, INT32_MAX));
  if (!is_input) made.offset = static_cast<uint64_t>(parts[4].integer("an offset", 0, most_bytes));
  (is_input ? result_.inputs : result_.outputs).push_back(std::move(made));
}

// [kind, bytes, place]
void ProgramReader::read_buffer(const Json& one) {
  const Json::Array& parts = one.array("a buffer", 3);
  Buffer made;
  made.kind = static_cast<Buffer::Kind>(
      parts[0].integer("the kind of a buffer", 0, static_cast<int64_t>(Buffer::Kind::Changed)));
  made.bytes = static_cast<uint64_t>(parts[1].integer("the size of a buffer", 0, most_bytes));
  made.place = static_cast<uint64_t>(parts[2].integer("the place of a buffer", 0, most_bytes));
  const size_t number = result_.buffers.size();
  if (made.kind == Buffer::Kind::Arena) {
    require(made.place <= result_.arena_bytes && made.bytes <= result_.arena_bytes - made.place, "buffer ", number,
            " reaches beyond the arena");
    require(made.place % 64 == 0, "buffer ", number, " is not aligned");
  } else if (made.kind == Buffer::Kind::Input) {
    require(made.place < result_.inputs.size() && made.bytes == result_.inputs[made.place].bytes, "buffer ", number,
            " is of another size than its argument");
  } else {
    require(made.place < shared_.stored.size() && made.bytes == shared_.stored[made.place].bytes.size(), "buffer ",
            number, " is of another size than what is stored");
    Stored& stored = shared_.stored[made.place];
    stored.is_changed = stored.is_changed || made.kind == Buffer::Kind::Changed;
  }
  made.is_written = made.kind != Buffer::Kind::Arena;
  result_.buffers.push_back(made);
}

// [kernel, outputs, arguments], ["copy", to, offset, from, offset, bytes] or
// ["fill", to, offset, bytes, pattern]
void ProgramReader::read_call(const Json& one) {
  const Json::Array& parts = one.array("a call");
  require(!parts.empty(), "a call of nothing");
  Call& call = result_.calls.emplace_back();
  if (!parts[0].is_string()) {
    read_kernel(one.array("a call", 3), call);
  } else if (parts[0].string("a call") == "copy") {
    read_copy(one.array("a copy", 6), call);
  } else {
    require(parts[0].string("a call") == "fill", "a call of something unknown");
    read_fill(one.array("a fill", 5), call);
  }
}

void ProgramReader::read_copy(const Json::Array& parts, Call& call) {
  call.kind = Call::Kind::Copy;
  call.bytes = static_cast<uint64_t>(parts[5].integer("the size of a copy", 0, most_bytes));
  call.from = read_range(parts[3], parts[4], call.bytes, Use::Read, true);
  call.to = read_range(parts[1], parts[2], call.bytes, Use::Written, true);
  result_.buffers[static_cast<size_t>(call.to.buffer)].has_others = true;
}

void ProgramReader::read_fill(const Json::Array& parts, Call& call) {
  call.kind = Call::Kind::Fill;
  call.bytes = static_cast<uint64_t>(parts[3].integer("the size of a fill", 0, most_bytes));
  call.to = read_range(parts[1], parts[2], call.bytes, Use::Written, true);
  const Json::Array& pattern = parts[4].array("a pattern", sizeof call.pattern);
  for (size_t k = 0; k < sizeof call.pattern; ++k)
    call.pattern[k] = static_cast<uint8_t>(pattern[k].integer("a pattern", 0, 255));
  Buffer& buffer = result_.buffers[static_cast<size_t>(call.to.buffer)];
  buffer.has_others = buffer.has_others || std::ranges::any_of(call.pattern, [](uint8_t byte) { return byte > 1; });
}

Range ProgramReader::read_range(const Json& buffer, const Json& offset, uint64_t bytes, Use use, bool is_dense) {
  const auto number = static_cast<int>(buffer.integer("a buffer", 0, static_cast<int64_t>(result_.buffers.size()) - 1));
  const Buffer& found = result_.buffers[static_cast<size_t>(number)];
  const auto at = static_cast<uint64_t>(offset.integer("an offset", 0, most_bytes));
  this->use(number, use, is_dense && bytes == found.bytes);
  // A tensor without elements may begin beyond the end.
  if (bytes == 0) return {number, 0};
  require(at <= found.bytes && bytes <= found.bytes - at, "a call reaches beyond buffer ", number);
  return {number, at};
}

void ProgramReader::read_kernel(const Json::Array& parts, Call& call) {
  call.kernel = static_cast<int>(parts[0].integer("a kernel", 0, static_cast<int64_t>(shared_.kernels.size()) - 1));
  const Schema& schema = schema_of(shared_.kernels[static_cast<size_t>(call.kernel)].name);
  const Json::Array& outputs = parts[1].array("outputs of a call");
  const Json::Array& arguments = parts[2].array("arguments of a call");
  for (const Json& one : outputs) call.outputs.push_back(read_tensor(one));
  for (size_t i = 0; i < arguments.size(); ++i) {
    const size_t before = call.operands.size();
    const Use changed = i == 0 && overwrites_self(schema.name) ? Use::Written : Use::Changed;
    call.arguments.push_back(read_argument(arguments[i], call, schema.changes(i) ? changed : Use::Read));
    const bool is_tensor = call.arguments.back().kind == CB_TENSOR && call.operands.size() > before;
    call.argument_buffers.push_back(is_tensor ? call.operands.back().buffer : -1);
  }
  check_arguments(schema, call.arguments, call.outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) place(&call.outputs[k], outputs[k], call, Use::Written);
  check_dtypes(call);
  check_call(shared_.kernels[static_cast<size_t>(call.kernel)], call, result_);
}

// [buffer, offset, dtype, sizes, strides]: all but the place.
cb_tensor ProgramReader::read_tensor(const Json& one) {
  const Json::Array& parts = one.array("a tensor");
  require(parts.size() == 5 || parts.size() == 4, "a tensor of ", parts.size(), " parts");
  if (parts.size() == 4) return read_number(parts);
  cb_tensor made{};
  made.dtype = read_dtype(parts[2]);
  const std::vector<int64_t> sizes = read_integers(parts[3], "a size", 0, largest_number);
  const std::vector<int64_t> strides = read_integers(parts[4], "a stride", 0, largest_stride);
  require(sizes.size() <= most_dimensions && sizes.size() == strides.size(), "a tensor of ", sizes.size(),
          " sizes and ", strides.size(), " strides");
  made.ndim = static_cast<int32_t>(sizes.size());
  made.numel = numel_of(sizes);
  made.sizes = keep(sizes);
  made.strides = keep(strides);
  made.flags = CB_TENSOR_HOST_VISIBLE;
  return made;
}

// [-1, bytes, dtype, sizes]: a number in place of a tensor.
cb_tensor ProgramReader::read_number(const Json::Array& parts) {
  require(parts[0].integer("a number", -1, -1) == -1, "a number with a buffer");
  cb_tensor made{};
  made.dtype = read_dtype(parts[2]);
  const std::vector<int64_t> bytes = read_integers(parts[1], "a number", 0, 255);
  require(bytes.size() == cb_dtype_size(made.dtype), "a number of ", bytes.size(), " bytes");
  const std::vector<int64_t> sizes = read_integers(parts[3], "a size", 0, largest_number);
  require(sizes.size() <= most_dimensions, "a number of ", sizes.size(), " dimensions");
  auto* const data = static_cast<uint8_t*>(shared_.pool.allocate(16, 16));
  std::ranges::transform(bytes, data, [](int64_t byte) { return static_cast<uint8_t>(byte); });
  made.data = data;
  made.ndim = static_cast<int32_t>(sizes.size());
  made.numel = numel_of(sizes);
  made.sizes = keep(sizes);
  made.strides = keep(std::vector<int64_t>(sizes.size(), 0));
  made.flags = CB_TENSOR_NUMBER | CB_TENSOR_HOST_VISIBLE;
  return made;
}

// Gives a descriptor its buffer, if it is no number, and checks that it lies in it.
void ProgramReader::place(cb_tensor* tensor, const Json& one, Call& call, Use use) {
  if (tensor->flags & CB_TENSOR_NUMBER) {
    require(use == Use::Read, "a call writes to a number");
    return;
  }
  int64_t last = 0;
  for (int32_t d = 0; d < tensor->ndim && tensor->numel > 0; ++d)
    last = sum_of(last, product_of(tensor->sizes[d] - 1, tensor->strides[d]));
  const auto itemsize = static_cast<int64_t>(cb_dtype_size(tensor->dtype));
  const int64_t bytes = tensor->numel > 0 ? product_of(sum_of(last, 1), itemsize) : 0;
  const Json::Array& parts = one.array("a tensor");
  const bool is_dense = bytes == product_of(tensor->numel, itemsize);
  const Range range = read_range(parts[0], parts[1], static_cast<uint64_t>(bytes), use, is_dense);
  require(range.offset % static_cast<uint64_t>(itemsize) == 0, "a tensor is not aligned");
  call.operands.push_back({tensor, range.buffer, range.offset, static_cast<uint64_t>(bytes), use != Use::Written});
  Buffer& buffer = result_.buffers[static_cast<size_t>(range.buffer)];
  buffer.has_others = buffer.has_others || (use != Use::Read && bytes > 0 && tensor->dtype != CB_BOOL);
}

// [kind, what it holds...], the kinds of enum cb_value_kind
cb_value ProgramReader::read_argument(const Json& one, Call& call, Use use) {
  const Json::Array& parts = one.array("an argument");
  require(!parts.empty(), "an argument of nothing");
  cb_value value{};
  value.kind = static_cast<int32_t>(parts[0].integer("the kind of an argument", CB_NONE, CB_STRING));
  one.array("an argument", value.kind == CB_NONE ? 1 : value.kind == CB_SCALAR ? 6 : 2);
  switch (value.kind) {
    case CB_TENSOR: {
      cb_tensor* const tensor = new (make<cb_tensor>(1)) cb_tensor(read_tensor(parts[1]));
      place(tensor, parts[1], call, use);
      value.as.tensor = tensor;
      break;
    }
    case CB_TENSORS:
      read_tensors(parts[1], call, use, value);
      break;
    case CB_SCALAR:
      read_scalar(parts, value);
      break;
    case CB_INT:
      value.as.i = parts[1].integer("an integer", INT64_MIN, INT64_MAX);
      break;
    case CB_FLOAT:
      value.as.f = parts[1].real("a number");
      break;
    case CB_INTS: {
      const std::vector<int64_t> values = read_integers(parts[1], "an integer", INT64_MIN, INT64_MAX);
      value.count = static_cast<int32_t>(values.size());
      value.as.ints = keep(values);
      break;
    }
    case CB_FLOATS: {
      const Json::Array& values = parts[1].array("numbers");
      auto* const kept = make<double>(values.size());
      for (size_t k = 0; k < values.size(); ++k) kept[k] = values[k].real("a number");
      value.count = static_cast<int32_t>(values.size());
      value.as.floats = kept;
      break;
    }
    case CB_STRING: {
      const std::string& string = parts[1].string("a text");
      auto* const kept = make<char>(string.size() + 1);
      std::memcpy(kept, string.c_str(), string.size() + 1);
      value.as.string = kept;
      break;
    }
    default:
      break;
  }
  return value;
}

void ProgramReader::read_tensors(const Json& one, Call& call, Use use, cb_value& value) {
  const Json::Array& entries = one.array("a list of tensors");
  auto* const list = make<const cb_tensor*>(entries.size());
  for (size_t k = 0; k < entries.size(); ++k) {
    list[k] = nullptr;
    if (entries[k].is_null()) continue;
    cb_tensor* const tensor = new (make<cb_tensor>(1)) cb_tensor(read_tensor(entries[k]));
    place(tensor, entries[k], call, use);
    list[k] = tensor;
  }
  value.count = static_cast<int32_t>(entries.size());
  value.as.tensors = list;
}

void ProgramReader::read_scalar(const Json::Array& parts, cb_value& value) {
  auto* const scalar = new (make<cb_scalar>(1)) cb_scalar{};
  scalar->kind = static_cast<int32_t>(parts[1].integer("the kind of a number", CB_SCALAR_BOOL, CB_SCALAR_COMPLEX));
  scalar->flags = static_cast<int32_t>(parts[2].integer("the flags of a number", 0, CB_SCALAR_UNSIGNED));
  scalar->i = parts[3].integer("a number", INT64_MIN, INT64_MAX);
  scalar->re = parts[4].real("a number");
  scalar->im = parts[5].real("a number");
  value.as.scalar = scalar;
}

void ProgramReader::use(int number, Use use, bool is_covered) {
  Buffer& buffer = result_.buffers[static_cast<size_t>(number)];
  const int at = static_cast<int>(result_.calls.size()) - 1;
  if (buffer.first < 0) {
    buffer.first = at;
    // What was in this memory before is nobody's business, and no bool.
    buffer.begins_with_zeros = buffer.kind == Buffer::Kind::Arena && !(use == Use::Written && is_covered);
    if (buffer.begins_with_zeros) result_.calls.back().zeroed.push_back(number);
  }
  buffer.last = at;
  if (use == Use::Read) return;
  require(buffer.may_be_written(), "a call writes to buffer ", number, ", which must not change");
  buffer.is_written = true;
}

// The kernel computes in the dtype of its first tensor, or of its first output.
void ProgramReader::check_dtypes(const Call& call) const {
  const Kernel& kernel = shared_.kernels[static_cast<size_t>(call.kernel)];
  if (kernel.entry->dtypes == 0) return;
  const cb_tensor* leading = call.outputs.empty() ? nullptr : &call.outputs[0];
  for (const cb_value& value : call.arguments) {
    const bool is_list = value.kind == CB_TENSORS && value.count > 0 && value.as.tensors[0];
    if (value.kind != CB_TENSOR && !is_list) continue;
    leading = is_list ? value.as.tensors[0] : value.as.tensor;
    break;
  }
  if (leading && !(kernel.entry->dtypes & CB_DTYPE_BIT(leading->dtype)))
    fail(CR_BACKEND_ERROR, "the kernel of ", kernel.name, " in ", backend_.path(), " does not compute in ",
         dtype_name(leading->dtype));
}

void ProgramReader::check_outputs() {
  for (const Described& output : result_.outputs) {
    if (output.buffer < 0) {
      require(output.bytes == 0, "output ", output.name, " is in no buffer");
      continue;
    }
    require(static_cast<size_t>(output.buffer) < result_.buffers.size(), "output ", output.name, " is in no buffer");
    Buffer& buffer = result_.buffers[static_cast<size_t>(output.buffer)];
    require(output.offset <= buffer.bytes && output.bytes <= buffer.bytes - output.offset, "output ", output.name,
            " reaches beyond its buffer");
    require(buffer.is_written, "output ", output.name, " is in a buffer that no call writes");
    buffer.last = static_cast<int>(result_.calls.size());
    if (buffer.kind == Buffer::Kind::Input) result_.inputs[buffer.place].is_result = true;
  }
}

// Bools of arguments are checked when they are given, and stored ones that do not change are
// checked here. What kernels have written as bools are bools.
void ProgramReader::check_bools() {
  for (Call& call : result_.calls)
    for (Operand& operand : call.operands) {
      if (!operand.is_read || operand.tensor->dtype != CB_BOOL || operand.bytes == 0) continue;
      const Buffer& buffer = result_.buffers[static_cast<size_t>(operand.buffer)];
      if (buffer.kind == Buffer::Kind::Stored) {
        const std::span<const std::byte> held =
            shared_.stored[buffer.place].bytes.subspan(operand.offset, operand.bytes);
        require(are_bools(held), "buffer ", operand.buffer, " has bools that are neither 0 nor 1");
      } else if (buffer.kind == Buffer::Kind::Input) {
        operand.needs_bool_check = result_.inputs[buffer.place].dtype != CB_BOOL;
      } else {
        operand.needs_bool_check = buffer.kind == Buffer::Kind::Changed || buffer.has_others;
      }
    }
}

// No two buffers that are in use at the same time overlap.
void ProgramReader::check_arena() const {
  std::vector<const Buffer*> begins, ends;
  for (const Buffer& buffer : result_.buffers)
    if (buffer.kind == Buffer::Kind::Arena && buffer.first >= 0 && buffer.bytes > 0) begins.push_back(&buffer);
  ends = begins;
  std::ranges::stable_sort(begins, {}, &Buffer::first);
  std::ranges::stable_sort(ends, {}, &Buffer::last);
  std::map<uint64_t, const Buffer*> live;  // by place
  auto ended = ends.begin();
  for (const Buffer* const buffer : begins) {
    for (; ended != ends.end() && (*ended)->last < buffer->first; ++ended) live.erase((*ended)->place);
    const auto next = live.lower_bound(buffer->place);
    const bool is_before_next = next == live.end() || next->first - buffer->place >= buffer->bytes;
    const bool is_after_previous =
        next == live.begin() || buffer->place - std::prev(next)->first >= std::prev(next)->second->bytes;
    require(is_before_next && is_after_previous, "two buffers overlap in the arena");
    live.emplace(buffer->place, buffer);
  }
}

}  // namespace candelabra::runner
