// A recording as plain data: kernel calls over numbered buffers, for programs that run without this
// core.
#include "record/lowering.hpp"

#include <algorithm>

namespace candelabra {

namespace {

py::tuple integers(const int64_t* values, int32_t count) {
  py::tuple result(count);
  for (int32_t k = 0; k < count; ++k) result[static_cast<size_t>(k)] = values[k];
  return result;
}

// (buffer, offset in bytes, dtype, sizes, strides), or (None, the bytes of a number, dtype, sizes).
py::object lowered_tensor(const Instruction& instruction, const cb_tensor* tensor) {
  const auto operand = std::ranges::find(instruction.operands, tensor, &Operand::tensor);
  if (operand != instruction.operands.end())
    return py::make_tuple(operand->buffer, operand->offset, tensor->dtype, integers(tensor->sizes, tensor->ndim),
                          integers(tensor->strides, tensor->ndim));
  const auto bytes = static_cast<size_t>(itemsize(static_cast<Dtype>(tensor->dtype)));
  return py::make_tuple(py::none(), py::bytes(static_cast<const char*>(tensor->data), bytes), tensor->dtype,
                        integers(tensor->sizes, tensor->ndim));
}

// (enum cb_value_kind, what it holds...)
py::object lowered_value(const Instruction& instruction, const cb_value& value) {
  switch (value.kind) {
    case CB_TENSOR:
      return py::make_tuple(value.kind, lowered_tensor(instruction, value.as.tensor));
    case CB_TENSORS: {
      py::list list;
      for (int32_t k = 0; k < value.count; ++k) {
        const cb_tensor* const entry = value.as.tensors[k];
        list.append(entry ? lowered_tensor(instruction, entry) : py::none());
      }
      return py::make_tuple(value.kind, list);
    }
    case CB_SCALAR: {
      const cb_scalar& scalar = *value.as.scalar;
      return py::make_tuple(value.kind, scalar.kind, scalar.flags, scalar.i, scalar.re, scalar.im);
    }
    case CB_INT:
      return py::make_tuple(value.kind, value.as.i);
    case CB_FLOAT:
      return py::make_tuple(value.kind, value.as.f);
    case CB_INTS:
      return py::make_tuple(value.kind, integers(value.as.ints, value.count));
    case CB_FLOATS: {
      py::tuple list(value.count);
      for (int32_t k = 0; k < value.count; ++k) list[static_cast<size_t>(k)] = value.as.floats[k];
      return py::make_tuple(value.kind, list);
    }
    case CB_STRING:
      return py::make_tuple(value.kind, py::str(value.as.string));
    default:
      return py::make_tuple(static_cast<int32_t>(CB_NONE));
  }
}

void check_portable(const Instruction& instruction) {
  check(!instruction.is_random, PyExc_ValueError, place_of(instruction), " draws random numbers");
  check(!instruction.live, PyExc_ValueError, place_of(instruction), " takes numbers of an optimizer");
  const cb_backend* const backend = instruction.kernel.backend;
  const cb_kernel wanted = instruction.kernel.compiled;
  bool is_of_backend = false;
  for (uint64_t k = 0; wanted && backend && k < backend->kernel_count; ++k) {
    const char* const entry = reinterpret_cast<const char*>(backend->kernels) + k * backend->kernel_entry_size;
    is_of_backend = is_of_backend || reinterpret_cast<const cb_kernel_entry*>(entry)->kernel == wanted;
  }
  check(is_of_backend, PyExc_ValueError, place_of(instruction),
        " is no kernel of a backend: it is in Python, or in a library of operators");
}

py::object lowered_instruction(const Instruction& instruction) {
  const auto position = [&](size_t k) {
    return py::make_tuple(instruction.operands[k].buffer, instruction.operands[k].offset);
  };
  if (instruction.kind == Instruction::Kind::Copy)
    return py::make_tuple("copy", position(0), position(1), instruction.bytes);
  if (instruction.kind == Instruction::Kind::Fill)
    return py::make_tuple("fill", position(0), instruction.bytes,
                          py::bytes(reinterpret_cast<const char*>(instruction.pattern), sizeof instruction.pattern));
  check_portable(instruction);
  py::list outputs, values;
  for (int k = 0; k < instruction.output_count; ++k)
    outputs.append(lowered_tensor(instruction, &instruction.outputs[k]));
  for (int i = 0; i < instruction.value_count; ++i) values.append(lowered_value(instruction, instruction.values[i]));
  const Operator& op = *instruction.op;
  const std::string& name = op.functional ? op.functional->schema.name : op.schema.name;
  return py::make_tuple("kernel", name, instruction.kernel.flags, outputs, values);
}

}  // namespace

py::list lowered_instructions(const Recorder& recording) {
  py::list result;
  for (const Instruction& instruction : recording.instructions) result.append(lowered_instruction(instruction));
  return result;
}

py::list lowered_buffers(const Recorder& recording) {
  py::list result;
  for (const RecordedBuffer& buffer : recording.buffers) {
    const auto* const constant = reinterpret_cast<const char*>(buffer.constant.data());
    result.append(
        py::make_tuple(buffer.bytes, buffer.is_existing, buffer.is_written,
                       buffer.has_constant ? py::object(py::bytes(constant, buffer.constant.size())) : py::none()));
  }
  return result;
}

}  // namespace candelabra
