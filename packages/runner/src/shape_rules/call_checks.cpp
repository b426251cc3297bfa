#include "call_checks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "failure.hpp"
#include "shape_rules/layouts.hpp"
#include "shape_rules/operators.hpp"

namespace candelabra::runner {

namespace {

using Rule = candelabra::Call;

// What a file does not say of the call of an operator whose kernel call it has. A check tries each.
struct Attempt {
  Dtype default_dtype = Dtype::Float32;
  uint32_t scalars = 0;   // mask: arguments that had no dimensions before they were broadcast
  bool is_given = false;  // the results are written to tensors of the caller, as with out=
};

// Of tensors in one buffer, of which one is written.
constexpr int64_t most_pairs = int64_t{1} << 22;

// A cb_scalar of Python's number: kernels read any of its fields.
bool is_canonical(const cb_scalar& number) {
  const bool is_unsigned = number.flags & CB_SCALAR_UNSIGNED;
  switch (number.kind) {
    case CB_SCALAR_BOOL:
      return !is_unsigned && (number.i == 0 || number.i == 1) && number.re == static_cast<double>(number.i) &&
             number.im == 0;
    case CB_SCALAR_INT:
      return is_unsigned ? number.i < 0 && number.re == static_cast<double>(static_cast<uint64_t>(number.i))
                         : number.re == static_cast<double>(number.i) && number.im == 0;
    case CB_SCALAR_FLOAT:
      return !is_unsigned && number.im == 0 &&
             (number.i == 0 || static_cast<double>(number.i) == std::trunc(number.re));
    default:
      return !is_unsigned && number.i == 0;
  }
}

bool is_same_number(const cb_scalar& a, const cb_scalar& b) {
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return a.kind == b.kind && a.i == b.i && same(a.re, b.re) && same(a.im, b.im);
}

// One call of a kernel: the call of the operator that the shape rule is applied to, and whether it
// gives back what the file has.
class CallCheck {
 public:
  CallCheck(Operator& op, const Call& call, const Program& program) : op_(op), call_(call), program_(program) {
    for (const Operand& operand : call.operands) operands_.emplace(operand.tensor, &operand);
  }

  void run() {
    check_aliases();
    std::optional<std::string> reason;
    for (const Attempt& attempt : attempts()) {
      try {
        return apply(attempt);
      } catch (const Error& error) {
        if (!reason) reason = error.message;
      }
    }
    fail(CR_FILE_ERROR, "a call of ", op_.schema.name, " makes no sense: ", *reason);
  }

 private:
  std::vector<Attempt> attempts() const {
    std::vector<int> candidates;
    for (size_t i = 0; i < call_.arguments.size() && candidates.size() < 3; ++i)
      if (call_.arguments[i].kind == CB_TENSOR && may_be_broadcast_scalar(*call_.arguments[i].as.tensor))
        candidates.push_back(static_cast<int>(i));
    std::vector<Attempt> made;
    for (const bool is_given : {false, true})
      for (const Dtype dtype : {Dtype::Float32, Dtype::Float64, Dtype::Float16, Dtype::BFloat16})
        for (uint32_t subset = 0; subset < 1u << candidates.size(); ++subset) {
          uint32_t mask = 0;
          for (size_t k = 0; k < candidates.size(); ++k) mask |= (subset >> k & 1) << candidates[k];
          made.push_back({dtype, mask, is_given});
        }
    return made;
  }

  // ---- tensors

  TensorObject* make(const cb_tensor& tensor, bool is_scalar = false) {
    const Operand& operand = *operands_.at(&tensor);
    TensorObject& made = tensors_.emplace_back();
    made.storage = &storage_of(operand.buffer);
    made.dtype = static_cast<Dtype>(tensor.dtype);
    made.offset = static_cast<int64_t>(operand.offset) / itemsize(made.dtype);
    const auto ndim = static_cast<size_t>(is_scalar ? 0 : tensor.ndim);
    made.sizes = Dims(std::span(tensor.sizes, ndim));
    made.strides = Dims(std::span(tensor.strides, ndim));
    made.numel = is_scalar ? 1 : tensor.numel;
    made.contiguous = made.numel == 0 || equal_strides(made.sizes, made.strides, contiguous_strides(made.sizes));
    return &made;
  }

  // Memory at made-up addresses: buffers that a call uses are apart.
  Storage& storage_of(int buffer) {
    const auto [found, is_new] = storages_.try_emplace(buffer);
    Storage& storage = found->second;
    if (is_new) {
      storage.data = reinterpret_cast<void*>(next_address_);
      storage.bytes = program_.buffers[static_cast<size_t>(buffer)].bytes;
      storage.device = {0, 0};
      storage.is_host_visible = true;
      next_address_ += storage.bytes + 64;
      require(next_address_ < uintptr_t{1} << 62, "a call uses too much memory");
    }
    return storage;
  }

  // ---- arguments

  void require_kind(bool holds, size_t i) const {
    candelabra::check(holds, PyExc_TypeError, "argument ", op_.schema.parameters[i].name, " is of another kind");
  }

  void read_tensor(Rule& rule, size_t i, const Attempt& attempt) {
    Argument& argument = rule[static_cast<int>(i)];
    const cb_tensor& tensor = *call_.arguments[i].as.tensor;
    if (!(tensor.flags & CB_TENSOR_NUMBER)) {
      argument.kind = ArgumentKind::Tensor;
      argument.tensor = make(tensor, attempt.scalars >> i & 1);
      return;
    }
    require_kind(op_.tags & tag_numbers, i);
    argument.kind = ArgumentKind::Number;
    argument.scalar = load_scalar(static_cast<Dtype>(tensor.dtype), tensor.data);
  }

  void read_list(Rule& rule, size_t i) {
    Argument& argument = rule[static_cast<int>(i)];
    const cb_value& value = call_.arguments[i];
    argument.kind = ArgumentKind::Tensors;
    argument.count = value.count;
    argument.tensors = rule.arena.make<TensorObject*>(static_cast<size_t>(value.count));
    for (int32_t k = 0; k < value.count; ++k) {
      const cb_tensor* const entry = value.as.tensors[k];
      require_kind(entry ? !(entry->flags & CB_TENSOR_NUMBER) : op_.schema.parameters[i].optional_elements, i);
      argument.tensors[k] = entry ? make(*entry) : nullptr;
    }
  }

  // A list of integers that the kernel gets where the operator has one, or none for all.
  void read_integer(Argument& argument, const Parameter& parameter, const cb_value& value, size_t i) {
    if (value.kind == CB_INTS && value.count != 1) return require_kind(parameter.optional, i);
    require_kind(value.kind == CB_INT || value.kind == CB_INTS, i);
    argument.kind = ArgumentKind::Int;
    argument.i = value.kind == CB_INT ? value.as.i : value.as.ints[0];
  }

  void read_text(Argument& argument, const cb_value& value, size_t i) {
    static constexpr std::array<const char*, 3> reductions{"none", "mean", "sum"};
    const bool is_number = value.kind == CB_INT && value.as.i >= 0 && value.as.i < 3;
    require_kind(value.kind == CB_STRING || is_number, i);
    argument.kind = ArgumentKind::String;
    argument.string = is_number ? reductions[static_cast<size_t>(value.as.i)] : value.as.string;
  }

  void read_argument(Rule& rule, size_t i, const Attempt& attempt) {
    const Parameter& parameter = op_.schema.parameters[i];
    const cb_value& value = call_.arguments[i];
    Argument& argument = rule[static_cast<int>(i)];
    argument.reset(nullptr);
    const bool is_of_core = parameter.type == ParameterType::Device || parameter.type == ParameterType::MemoryFormat ||
                            parameter.type == ParameterType::Generator || parameter.type == ParameterType::Object;
    if (value.kind == CB_NONE) return require_kind(parameter.optional || is_of_core, i);
    const auto expect = [&](int32_t kind) { require_kind(value.kind == kind, i); };
    argument.count = value.count;
    switch (parameter.type) {
      case ParameterType::Tensor:
        expect(CB_TENSOR);
        return read_tensor(rule, i, attempt);
      case ParameterType::Tensors:
        expect(CB_TENSORS);
        return read_list(rule, i);
      case ParameterType::Scalar:
        expect(CB_SCALAR);
        require_kind(is_canonical(*value.as.scalar), i);
        argument.kind = ArgumentKind::Scalar;
        argument.scalar = *value.as.scalar;
        return;
      case ParameterType::Int:
        return read_integer(argument, parameter, value, i);
      case ParameterType::Bool:
        require_kind(value.kind == CB_INT && (value.as.i == 0 || value.as.i == 1), i);
        argument.kind = ArgumentKind::Bool;
        argument.i = value.as.i;
        return;
      case ParameterType::Float:
        expect(CB_FLOAT);
        argument.kind = ArgumentKind::Float;
        argument.f = value.as.f;
        return;
      case ParameterType::Str:
        return read_text(argument, value, i);
      case ParameterType::Ints:
      case ParameterType::Bools:
        expect(CB_INTS);
        argument.kind = ArgumentKind::Ints;
        argument.ints = value.as.ints;
        return;
      case ParameterType::Floats:
        expect(CB_FLOATS);
        argument.kind = ArgumentKind::Floats;
        argument.floats = value.as.floats;
        return;
      case ParameterType::Dtype:
        require_kind(value.kind == CB_INT && value.as.i >= 0 && value.as.i < dtype_count, i);
        argument.kind = ArgumentKind::Dtype;
        argument.dtype = static_cast<Dtype>(value.as.i);
        return;
      default:
        require_kind(false, i);
    }
  }

  // ---- the rule

  void apply(const Attempt& attempt) {
    set_default_dtype(attempt.default_dtype);
    tensors_.clear();
    Rule rule(op_);
    rule.device = {0, 0};
    rule.argument_count = static_cast<int>(call_.arguments.size());
    std::array<const TensorObject*, max_arguments> read{};
    for (size_t i = 0; i < call_.arguments.size(); ++i) {
      read_argument(rule, i, attempt);
      if (rule.arguments[i].is_tensor()) read[i] = rule.arguments[i].tensor;
    }
    if (op_.returns_self) {
      rule.outputs[0].given = &rule.tensor(0);
    } else if (attempt.is_given) {
      for (size_t k = 0; k < call_.outputs.size(); ++k) rule.outputs[k].given = make(call_.outputs[k]);
    }
    op_.shape(rule);
    candelabra::check(!rule.result && rule.output_count == static_cast<int>(call_.outputs.size()), PyExc_ValueError,
                      "no kernel is called for these arguments");
    for (size_t i = 0; i < call_.arguments.size(); ++i)
      candelabra::check(is_unchanged(rule.arguments[i], call_.arguments[i], read[i]), PyExc_ValueError, "argument ",
                        op_.schema.parameters[i].name, " is not as the kernel takes it");
    for (size_t k = 0; k < call_.outputs.size(); ++k) check_output(rule.outputs[k], k);
  }

  // Whether the rule leaves an argument as it is in the file.
  static bool is_unchanged(const Argument& made, const cb_value& value, const TensorObject* read) {
    switch (made.kind) {
      case ArgumentKind::None:
        return value.kind == CB_NONE;
      case ArgumentKind::Tensor:
        return made.tensor == read &&
               is_same_layout(made.descriptor ? *made.descriptor : describe(*read), *value.as.tensor);
      case ArgumentKind::Number:
        return made.descriptor && is_same_layout(*made.descriptor, *value.as.tensor);
      case ArgumentKind::Tensors:
        return value.kind == CB_TENSORS && made.count == value.count && is_same_list(made, value);
      case ArgumentKind::Scalar:
        return value.kind == CB_SCALAR && is_same_number(made.scalar, *value.as.scalar);
      case ArgumentKind::Int:
      case ArgumentKind::Bool:
        return value.kind == CB_INT && made.i == value.as.i;
      case ArgumentKind::Float:
        return value.kind == CB_FLOAT && std::memcmp(&made.f, &value.as.f, sizeof made.f) == 0;
      case ArgumentKind::Ints:
        return value.kind == CB_INTS &&
               std::equal(made.ints, made.ints + made.count, value.as.ints, value.as.ints + value.count);
      case ArgumentKind::Dtype:
        return value.kind == CB_INT && static_cast<int64_t>(made.dtype) == value.as.i;
      case ArgumentKind::Floats:
        return value.kind == CB_FLOATS && made.floats == value.as.floats;
      case ArgumentKind::String:
        return value.kind == CB_STRING;
      default:
        return false;
    }
  }

  // A rule may add gaps at the end of a list, but it may not change what is in it.
  static bool is_same_list(const Argument& made, const cb_value& value) {
    for (int32_t k = 0; k < value.count; ++k) {
      const cb_tensor* const entry = value.as.tensors[k];
      if (!made.tensors[k] != !entry) return false;
      if (entry && !is_same_layout(describe(*made.tensors[k]), *entry)) return false;
    }
    return true;
  }

  void check_output(const Output& expected, size_t k) const {
    const cb_tensor& tensor = call_.outputs[k];
    const auto agrees = [&](bool holds) {
      candelabra::check(holds, PyExc_ValueError, "output ", k, " is ",
                        shape_text(tensor.dtype, {tensor.sizes, static_cast<size_t>(tensor.ndim)}),
                        ", which the operator does not give for these arguments");
    };
    agrees(static_cast<int32_t>(expected.dtype) == tensor.dtype);
    const std::optional<Dims> strides = without_seen_dims(tensor, expected);
    agrees(strides.has_value());
    if (tensor.numel == 0) return;
    const bool is_contiguous = equal_strides(expected.sizes, *strides, contiguous_strides(expected.sizes));
    const bool is_as_described = expected.strides && equal_strides(expected.sizes, *strides, *expected.strides);
    const bool is_free = op_.elementwise || op_.returns_self || is_self(k);
    candelabra::check(is_contiguous || is_as_described || is_free, PyExc_ValueError, "output ", k,
                      " has other strides than the operator gives it");
  }

  // ---- memory that several tensors share

  // Whether output k is self, as in an in-place call.
  bool is_self(size_t k) const {
    return k == 0 && (op_.returns_self || (op_.tags & tag_inplace)) && !call_.arguments.empty() &&
           call_.arguments[0].kind == CB_TENSOR && is_same_view(call_.outputs[0], *call_.arguments[0].as.tensor);
  }

  bool is_same_view(const cb_tensor& a, const cb_tensor& b) const {
    const auto x = operands_.find(&a), y = operands_.find(&b);
    return x != operands_.end() && y != operands_.end() && x->second->buffer == y->second->buffer &&
           x->second->offset == y->second->offset && is_same_layout(a, b);
  }

  // A kernel reads its arguments while it writes, and trusts what it has checked of them. What it
  // writes must be apart from what it reads. Excepted are self, and the same elements where element
  // i of the result depends on element i of the arguments alone.
  void check_aliases() {
    if (op_.returns_self)
      require(call_.outputs.size() == 1 && is_self(0), "a call of ", op_.schema.name,
              " does not return what it changes");
    std::map<int, std::vector<Access>> by_buffer;
    const auto note = [&](const cb_tensor& tensor, Access access) {
      if (tensor.flags & CB_TENSOR_NUMBER || tensor.numel == 0) return;
      if (access.is_written && !(op_.tags & tag_one_value))
        require(!repeats_elements(*make(tensor)), "a call of ", op_.schema.name,
                " writes to elements that share memory");
      access.tensor = &tensor;
      by_buffer[operands_.at(&tensor)->buffer].push_back(access);
    };
    for (const cb_tensor& output : call_.outputs) note(output, {.is_written = true});
    for (size_t i = 0; i < call_.arguments.size(); ++i) {
      // It is the output.
      if (i == 0 && op_.returns_self) continue;
      const bool may_be_output = op_.elementwise || (i == 0 && is_self(0));
      for_each_tensor(call_.arguments[i], [&](const cb_tensor& tensor) {
        note(tensor, {.is_written = op_.schema.parameters[i].mutated, .may_be_output = may_be_output});
      });
    }
    int64_t pairs = 0;
    for (const auto& [buffer, accesses] : by_buffer)
      for (size_t a = 0; a < accesses.size(); ++a)
        for (size_t b = 0; b < a; ++b) {
          if (!accesses[a].is_written && !accesses[b].is_written) continue;
          require(++pairs <= most_pairs, "a call of ", op_.schema.name, " has too many tensors in one buffer");
          require_apart(accesses[a], accesses[b]);
        }
  }

  // A tensor of the call in memory that others may be in, too.
  struct Access {
    bool is_written = false;
    bool may_be_output = false;  // an argument, of the same elements
    const cb_tensor* tensor = nullptr;
  };

  // `earlier` may be an output, `later` an argument.
  void require_apart(const Access& later, const Access& earlier) {
    const bool is_apart = is_same_view(*later.tensor, *earlier.tensor)
                              ? later.may_be_output && !later.is_written && earlier.is_written
                              : !share_memory_partly(*make(*later.tensor), *make(*earlier.tensor));
    require(is_apart, "a call of ", op_.schema.name, " writes to what it reads");
  }

  Operator& op_;
  const Call& call_;
  const Program& program_;
  std::unordered_map<const cb_tensor*, const Operand*> operands_;
  std::map<int, Storage> storages_;
  uintptr_t next_address_ = 64;
  std::deque<TensorObject> tensors_;
};

}  // namespace

void check_call(const Kernel& kernel, const Call& call, const Program& program) {
  // The rules ask for one default dtype of the process.
  static std::mutex mutex;
  const std::lock_guard locked(mutex);
  const std::unique_ptr<Operator> op = operator_of(kernel);
  CallCheck(*op, call, program).run();
}

}  // namespace candelabra::runner
