#include "compile/loop_text.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "compile/formulas.hpp"

namespace candelabra::cpu {

namespace {

std::string_view register_type(int32_t dtype) {
  if (is_half(dtype)) return "float";
  return dtype == CB_BOOL ? "i1" : memory_type(dtype);
}

bool is_unsigned(int32_t dtype) {
  return dtype == CB_UINT8 || dtype == CB_BOOL;
}

// A vector whose elements are all this one, as a constant.
std::string repeated(std::string_view type, const std::string& element) {
  std::string result = "<";
  for (int k = 0; k < lanes; ++k) {
    if (k > 0) result += ", ";
    result.append(type).append(" ").append(element);
  }
  return result + ">";
}

std::string declarations() {
  std::string result;
  for (const int32_t dtype : {CB_FLOAT32, CB_FLOAT64}) {
    const std::string type = vector_type(dtype);
    const std::string suffix = ".v" + std::to_string(lanes) + (dtype == CB_FLOAT32 ? "f32(" : "f64(") + type;
    for (const char* const function : {"sqrt", "fabs", "floor", "ceil", "trunc", "roundeven"})
      result += "declare " + type + " @llvm." + function + suffix + ")\n";
    result += "declare " + type + " @llvm.fma" + suffix + ", " + type + ", " + type + ")\n";
  }
  return result;
}

std::string tensor_name(size_t number, int vector) {
  return "%t" + std::to_string(number) + "." + std::to_string(vector);
}

// The parts of the function's text, in their order.
class Loop {
 public:
  Loop(const cb_graph& graph, const std::vector<bool>& is_streamed)
      : graph_(graph), is_streamed_(is_streamed), vectors_(static_cast<int>(elements_per_iteration(graph) / lanes)) {}

  std::string text() {
    write_addresses();
    for (int u = 0; u < vectors_; ++u) write_loads(u);
    std::vector<std::vector<std::string>> results;
    for (int u = 0; u < vectors_; ++u) results.push_back(write_nodes(u));
    // After all loads: results may lie where inputs lie.
    for (int u = 0; u < vectors_; ++u) write_stores(u, results[static_cast<size_t>(u)]);
    const std::string step = std::to_string(vectors_ * lanes);
    return std::string("define void @") + loop_name + "(ptr %addresses, i64 %n) #0 {\nentry:\n" + entry_ +
           "  %any = icmp sgt i64 %n, 0\n  br i1 %any, label %loop, label %done\nloop:\n"
           "  %i = phi i64 [0, %entry], [%next, %loop]\n" +
           body_ + "  %next = add nuw nsw i64 %i, " + step +
           "\n  %more = icmp slt i64 %next, %n\n  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}\n" +
           declarations() +
           "attributes #0 = { nounwind \"prefer-vector-width\"=\"512\" \"min-legal-vector-width\"=\"512\" }\n"
           "!0 = !{i32 1}\n";
  }

 private:
  const cb_tensor& tensor(size_t number) const { return graph_.tensors[number]; }

  // An element that is the same in all iterations.
  void write_repeated(size_t number, const std::string& address) {
    const int32_t dtype = tensor(number).dtype;
    const std::string name = "%r" + std::to_string(number), type(memory_type(dtype)), vector = vector_type(dtype);
    entry_ += "  " + name + ".m = load " + type + ", ptr " + address + "\n";
    std::string element = name + ".m";
    if (dtype == CB_BOOL) {
      entry_ += "  " + name + ".e = icmp ne i8 " + element + ", 0\n";
      element = name + ".e";
    } else if (dtype == CB_FLOAT16) {
      entry_ += "  " + name + ".h = bitcast i16 " + element + " to half\n";
      entry_ += "  " + name + ".e = fpext half " + name + ".h to float\n";
      element = name + ".e";
    } else if (dtype == CB_BFLOAT16) {
      entry_ += "  " + name + ".z = zext i16 " + element + " to i32\n";
      entry_ += "  " + name + ".s = shl i32 " + name + ".z, 16\n";
      entry_ += "  " + name + ".e = bitcast i32 " + name + ".s to float\n";
      element = name + ".e";
    }
    entry_ += "  " + name + ".v = insertelement " + vector + " poison, " + std::string(register_type(dtype)) + " " +
              element + ", i32 0\n";
    entry_ += "  " + name + " = shufflevector " + vector + " " + name + ".v, " + vector + " poison, <" +
              std::to_string(lanes) + " x i32> zeroinitializer\n";
  }

  void write_addresses() {
    size_t count = 0;
    const auto take = [&](size_t number) {
      const std::string name = "%a" + std::to_string(number);
      entry_ += "  " + name + ".p = getelementptr ptr, ptr %addresses, i64 " + std::to_string(count++) + "\n";
      entry_ += "  " + name + " = load ptr, ptr " + name + ".p\n";
      return name;
    };
    for (int k = 0; k < graph_.input_count; ++k) {
      const auto number = static_cast<size_t>(graph_.inputs[k]);
      const std::string address = take(number);
      if (tensor(number).strides[0] == 0) write_repeated(number, address);
    }
    for (size_t k = 0; k < static_cast<size_t>(graph_.tensor_count); ++k)
      if (tensor(k).flags & CB_TENSOR_NUMBER) write_repeated(k, take(k));
    for (int k = 0; k < graph_.output_count; ++k) take(static_cast<size_t>(graph_.outputs[k]));
  }

  std::string element_address(size_t number, int u) {
    const std::string name = "%p" + std::to_string(number) + "." + std::to_string(u);
    body_ += "  " + name + ".i = add i64 %i, " + std::to_string(u * lanes) + "\n";
    body_ += "  " + name + " = getelementptr " + std::string(memory_type(tensor(number).dtype)) + ", ptr %a" +
             std::to_string(number) + ", i64 " + name + ".i\n";
    return name;
  }

  std::string memory_vector(size_t number) const {
    return "<" + std::to_string(lanes) + " x " + std::string(memory_type(tensor(number).dtype)) + ">";
  }

  void write_loads(int u) {
    for (int k = 0; k < graph_.input_count; ++k) {
      const auto number = static_cast<size_t>(graph_.inputs[k]);
      if (tensor(number).strides[0] == 0) continue;
      const std::string address = element_address(number, u), name = tensor_name(number, u);
      const int32_t dtype = tensor(number).dtype;
      const bool is_bool = dtype == CB_BOOL;
      body_ += "  " + name + (is_bool || is_half(dtype) ? ".m" : "") + " = load " + memory_vector(number) + ", ptr " +
               address + ", align " + std::to_string(cb_dtype_size(tensor(number).dtype)) + "\n";
      if (is_half(dtype)) halves_[name] = VectorText(body_, name + ".w", true).widened(dtype, name + ".m");
      if (is_bool) body_ += "  " + name + " = icmp ne " + memory_vector(number) + " " + name + ".m, zeroinitializer\n";
    }
  }

  // Returns the names of all tensors in this vector.
  std::vector<std::string> write_nodes(int u) {
    std::vector<std::string> names(static_cast<size_t>(graph_.tensor_count));
    for (size_t k = 0; k < names.size(); ++k) {
      const bool is_repeated = (tensor(k).flags & CB_TENSOR_NUMBER) || tensor(k).strides[0] == 0;
      names[k] = is_repeated ? "%r" + std::to_string(k) : tensor_name(k, u);
      if (const auto half = halves_.find(names[k]); half != halves_.end()) names[k] = half->second;
    }
    VectorText to(body_, "%v" + std::to_string(u) + ".", !(graph_.flags & CB_GRAPH_INEXACT));
    for (int k = 0; k < graph_.node_count; ++k) {
      const cb_graph_node& node = graph_.nodes[k];
      std::vector<std::string> operands(static_cast<size_t>(node.argument_count));
      for (size_t i = 0; i < operands.size(); ++i)
        if (node.arguments[i].kind == CB_TENSOR)
          operands[i] = names[static_cast<size_t>(node.arguments[i].as.tensor - graph_.tensors)];
      names[static_cast<size_t>(node.output)] = formula_text({node, to, operands});
    }
    return names;
  }

  void write_stores(int u, const std::vector<std::string>& names) {
    for (int k = 0; k < graph_.output_count; ++k) {
      const auto number = static_cast<size_t>(graph_.outputs[k]);
      std::string value = names[number];
      const std::string address = element_address(number, u);
      if (tensor(number).dtype == CB_BOOL) {
        body_ += "  " + address + ".z = zext <" + std::to_string(lanes) + " x i1> " + value + " to " +
                 memory_vector(number) + "\n";
        value = address + ".z";
      } else if (is_half(tensor(number).dtype)) {
        value = VectorText(body_, address + ".n", true).narrowed(tensor(number).dtype, value);
      }
      const bool is_streamed = is_streamed_[static_cast<size_t>(k)];
      const size_t itemsize = cb_dtype_size(tensor(number).dtype);
      const size_t alignment = is_streamed ? std::min<size_t>(64, lanes * itemsize) : itemsize;
      body_ += "  store " + memory_vector(number) + " " + value + ", ptr " + address + ", align " +
               std::to_string(alignment) + (is_streamed ? ", !nontemporal !0\n" : "\n");
    }
  }

  const cb_graph& graph_;
  const std::vector<bool>& is_streamed_;
  int vectors_;
  std::map<std::string, std::string> halves_;  // the names of inputs in registers, by their own
  std::string entry_, body_;
};

}  // namespace

std::string_view memory_type(int32_t dtype) {
  switch (dtype) {
    case CB_BOOL:
    case CB_UINT8:
    case CB_INT8:
      return "i8";
    case CB_INT16:
    case CB_FLOAT16:
    case CB_BFLOAT16:
      return "i16";
    case CB_INT32:
      return "i32";
    case CB_INT64:
      return "i64";
    case CB_FLOAT32:
      return "float";
    case CB_FLOAT64:
      return "double";
    default:
      return {};
  }
}

std::string vector_type(int32_t dtype) {
  return "<" + std::to_string(lanes) + " x " + std::string(register_type(dtype)) + ">";
}

int64_t elements_per_iteration(const cb_graph& graph) {
  const bool is_wide = std::any_of(graph.tensors, graph.tensors + graph.tensor_count,
                                   [](const cb_tensor& tensor) { return cb_dtype_size(tensor.dtype) == 8; });
  // Four vectors of few tensors, so that the operators of one do not wait for each other. Of more,
  // intermediate results would not fit the registers.
  return (is_wide || graph.input_count > 3 ? 2 : 4) * lanes;
}

std::string loop_text(const cb_graph& graph, const std::vector<bool>& is_streamed) {
  return Loop(graph, is_streamed).text();
}

std::string VectorText::line(const std::string& expression) {
  std::string result = name_ + std::to_string(count_++);
  text_ += "  " + result + " = " + expression + "\n";
  return result;
}

std::string VectorText::number(double value) const {
  // LLVM writes floats as the bits of the double of the same value.
  if (dtype_ == CB_FLOAT32) value = static_cast<double>(static_cast<float>(value));
  char bits[24];
  std::snprintf(bits, sizeof bits, "0x%016llX", static_cast<unsigned long long>(std::bit_cast<uint64_t>(value)));
  return repeated(register_type(dtype_), bits);
}

std::string VectorText::integer(int64_t value) const {
  return repeated(register_type(dtype_), std::to_string(value));
}

std::string VectorText::binary(const char* operation, const std::string& a, const std::string& b) {
  const bool contracts = is_float() && !is_exact_ && std::strcmp(operation, "div") != 0;
  return line(std::string(is_float() ? "f" : "") + operation + (contracts ? " contract " : " ") + vector_type(dtype_) +
              " " + a + ", " + b);
}

std::string VectorText::negative(const std::string& a) {
  return is_float() ? line("fneg " + vector_type(dtype_) + " " + a) : binary("sub", integer(0), a);
}

std::string VectorText::compare(const char* condition, const std::string& a, const std::string& b) {
  const bool is_equality = std::strcmp(condition, "eq") == 0 || std::strcmp(condition, "ne") == 0;
  std::string predicate;
  if (is_float()) {
    predicate = std::string("fcmp ") + (std::strcmp(condition, "ne") == 0 ? "u" : "o") + condition;
  } else {
    predicate = std::string("icmp ") + (is_equality ? "" : is_unsigned(dtype_) ? "u" : "s") + condition;
  }
  return line(predicate + " " + vector_type(dtype_) + " " + a + ", " + b);
}

std::string VectorText::is_nan(const std::string& a) {
  return line("fcmp uno " + vector_type(dtype_) + " " + a + ", " + a);
}

std::string VectorText::either(const std::string& a, const std::string& b) {
  return line("or " + vector_type(CB_BOOL) + " " + a + ", " + b);
}

std::string VectorText::select(const std::string& condition, const std::string& a, const std::string& b) {
  const std::string type = vector_type(dtype_);
  return line("select " + vector_type(CB_BOOL) + " " + condition + ", " + type + " " + a + ", " + type + " " + b);
}

std::string VectorText::fma(const std::string& a, const std::string& b, const std::string& c) {
  const std::string type = vector_type(dtype_), suffix = dtype_ == CB_FLOAT32 ? "f32" : "f64";
  return line("call " + type + " @llvm.fma.v" + std::to_string(lanes) + suffix + "(" + type + " " + a + ", " + type +
              " " + b + ", " + type + " " + c + ")");
}

std::string VectorText::widened(int32_t half, const std::string& a) {
  const std::string memory = vector_type(CB_INT16), ints = vector_type(CB_INT32), floats = vector_type(CB_FLOAT32);
  if (half == CB_FLOAT16)
    return line("fpext <16 x half> " + line("bitcast " + memory + " " + a + " to <16 x half>") + " to " + floats);
  const std::string wide = line("zext " + memory + " " + a + " to " + ints);
  const int32_t before = std::exchange(dtype_, CB_INT32);
  const std::string bits = line("shl " + ints + " " + wide + ", " + integer(16));
  dtype_ = before;
  return line("bitcast " + ints + " " + bits + " to " + floats);
}

std::string VectorText::narrowed(int32_t half, const std::string& a) {
  const std::string memory = vector_type(CB_INT16), ints = vector_type(CB_INT32), floats = vector_type(CB_FLOAT32);
  if (half == CB_FLOAT16)
    return line("bitcast <16 x half> " + line("fptrunc " + floats + " " + a + " to <16 x half>") + " to " + memory);
  // To the upper 16 bits: to nearest, ties to even.
  const int32_t before = std::exchange(dtype_, CB_INT32);
  const std::string bits = line("bitcast " + floats + " " + a + " to " + ints);
  const std::string odd = binary("and", line("lshr " + ints + " " + bits + ", " + integer(16)), integer(1));
  const std::string sum = binary("add", binary("add", bits, integer(0x7fff)), odd);
  const std::string is_not_number = line("fcmp uno " + floats + " " + a + ", " + a);
  const std::string rounded = select(is_not_number, integer(0x7fc00000), sum);
  const std::string upper = line("lshr " + ints + " " + rounded + ", " + integer(16));
  dtype_ = before;
  return line("trunc " + ints + " " + upper + " to " + memory);
}

std::string VectorText::intrinsic(const char* function, const std::string& a) {
  const std::string type = vector_type(dtype_), suffix = dtype_ == CB_FLOAT32 ? "f32" : "f64";
  return line("call " + type + " @llvm." + function + ".v" + std::to_string(lanes) + suffix + "(" + type + " " + a +
              ")");
}

}  // namespace candelabra::cpu
