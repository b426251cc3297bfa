#include "operators/schema.hpp"

#include <cctype>
#include <charconv>
#include <map>
#include <stdexcept>

#include "python/errors.hpp"
#include "tensor/tensor.hpp"

namespace candelabra {

namespace {

struct TypeName {
  ParameterType type;
  ParameterType list_type;
  bool has_list;
};

const std::map<std::string, TypeName, std::less<>> type_names = {
    {"Tensor", {ParameterType::Tensor, ParameterType::Tensors, true}},
    {"Scalar", {ParameterType::Scalar, ParameterType::Scalar, false}},
    {"int", {ParameterType::Int, ParameterType::Ints, true}},
    {"float", {ParameterType::Float, ParameterType::Floats, true}},
    {"bool", {ParameterType::Bool, ParameterType::Bools, true}},
    {"str", {ParameterType::Str, ParameterType::Str, false}},
    {"dtype", {ParameterType::Dtype, ParameterType::Dtype, false}},
    {"device", {ParameterType::Device, ParameterType::Device, false}},
    {"memory_format", {ParameterType::MemoryFormat, ParameterType::MemoryFormat, false}},
    {"Generator", {ParameterType::Generator, ParameterType::Generator, false}},
    {"object", {ParameterType::Object, ParameterType::Object, false}},
    // PyTorch's type names, for schemas of custom operators.
    {"SymInt", {ParameterType::Int, ParameterType::Ints, true}},
    {"ScalarType", {ParameterType::Dtype, ParameterType::Dtype, false}},
    {"Device", {ParameterType::Device, ParameterType::Device, false}},
    {"MemoryFormat", {ParameterType::MemoryFormat, ParameterType::MemoryFormat, false}},
};

class Parser {
 public:
  explicit Parser(const std::string& source) : source_(source) {}

  Schema parse() {
    Schema schema;
    schema.text = source_;
    schema.name = identifier();
    if (schema.name.size() && source_.compare(at_, 2, "::") == 0) qualified_name(schema);
    expect('(');
    bool keyword_only = false;
    if (!accept(')')) {
      do {
        if (accept('*')) {
          keyword_only = true;
          continue;
        }
        Parameter parameter = this->parameter();
        parameter.keyword_only = keyword_only;
        if (!keyword_only) ++schema.positional_count;
        schema.parameters.push_back(std::move(parameter));
      } while (accept(','));
      expect(')');
    }
    expect('-');
    expect('>');
    results(schema);
    skip_spaces();
    if (at_ != source_.size()) fail("nothing more");
    if (!schema.custom) set_variadic_first_list(schema);
    return schema;
  }

 private:
  [[noreturn]] void fail(const char* expected) {
    raise(PyExc_ValueError, "schema: expected ", expected, " at position ", at_, " of \"", source_, "\"");
  }
  void skip_spaces() {
    while (at_ < source_.size() && source_[at_] == ' ') ++at_;
  }
  bool accept(char character) {
    skip_spaces();
    if (at_ < source_.size() && source_[at_] == character) {
      ++at_;
      return true;
    }
    return false;
  }
  void expect(char character) {
    const char text[] = {'\'', character, '\'', 0};
    if (!accept(character)) fail(text);
  }
  std::string identifier() {
    skip_spaces();
    size_t start = at_;
    while (at_ < source_.size() && (std::isalnum(static_cast<unsigned char>(source_[at_])) || source_[at_] == '_'))
      ++at_;
    if (at_ == start) fail("a name");
    return source_.substr(start, at_ - start);
  }

  // mylib::name or mylib::name.overload
  void qualified_name(Schema& schema) {
    schema.custom = true;
    at_ += 2;
    schema.name += "::" + identifier();
    if (accept('.')) schema.name += "." + identifier();
  }

  static PyObject* interned(const std::string& text) {
    PyObject* made = PyUnicode_InternFromString(text.c_str());
    if (!made) throw PythonError();
    return made;
  }

  // Tensor(a!) self, int[2] stride=1, Tensor?[] indices, int? dim=None
  Parameter parameter() {
    Parameter result{};
    skip_spaces();
    const size_t start = at_;
    auto found = type_names.find(identifier());
    if (found == type_names.end()) fail("a type");
    TypeName type = found->second;
    result.type = type.type;
    if (accept('(')) {
      identifier();
      result.mutated = accept('!');
      expect(')');
    }
    bool element_optional = accept('?');
    if (accept('[')) {
      if (!type.has_list) fail("no list of this type");
      result.type = type.list_type;
      result.optional_elements = element_optional;
      if (!accept(']')) {
        result.fixed_length = list_length();
        expect(']');
      }
      result.optional = accept('?');
    } else {
      result.optional = element_optional;
    }
    std::string written_type = source_.substr(start, at_ - start);
    while (written_type.back() == ' ') written_type.pop_back();
    result.written_type = interned(written_type);
    result.name = identifier();
    result.interned = interned(result.name);
    if (accept('=')) result.default_value = default_value(result.type);
    return result;
  }

  int list_length() {
    const std::string digits = identifier();
    int length = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
    if (error != std::errc() || end != digits.data() + digits.size() || length < 1 || length > max_dims)
      fail("the length of a list");
    return length;
  }

  PyObject* default_value(ParameterType type, bool in_list = false) {
    skip_spaces();
    size_t start = at_;
    if (at_ < source_.size() && (source_[at_] == '\'' || source_[at_] == '"')) {
      at_ = source_.find(source_[at_], at_ + 1);
      if (at_ == std::string::npos) fail("a closing quote");
      ++at_;
      return owned(PyUnicode_FromStringAndSize(source_.data() + start + 1, static_cast<Py_ssize_t>(at_ - start - 2)))
          .release();
    }
    if (accept('(')) {
      expect(')');
      return owned(PyTuple_New(0)).release();
    }
    if (accept('[')) {
      if (in_list) fail("no list in a list");
      return default_list(type);
    }
    while (at_ < source_.size() && source_[at_] != ',' && source_[at_] != ')' && source_[at_] != ']') ++at_;
    std::string word = source_.substr(start, at_ - start);
    while (!word.empty() && word.back() == ' ') word.pop_back();
    if (type == ParameterType::Dtype && word != "None") return dtype_named(word);
    if (type == ParameterType::Device && word != "None") return owned(PyUnicode_FromString(word.c_str())).release();
    if (word == "None") return Py_NewRef(Py_None);
    if (word == "True") return Py_NewRef(Py_True);
    if (word == "False") return Py_NewRef(Py_False);
    if (word.find_first_of(".e") != std::string::npos || word == "inf" || word == "-inf" || word == "nan") {
      size_t used = 0;
      double value = 0;
      try {
        value = std::stod(word, &used);
      } catch (const std::logic_error&) {
        fail("a default value");
      }
      if (used != word.size()) fail("a default value");
      return owned(PyFloat_FromDouble(value)).release();
    }
    char* end = nullptr;
    PyObject* number = PyLong_FromString(word.c_str(), &end, 10);
    if (!number) {
      PyErr_Clear();
      fail("a default value");
    }
    return number;
  }

  // Parses the rest of a list such as [1, 2] after its opening bracket.
  PyObject* default_list(ParameterType type) {
    const Ref<> list = owned(PyList_New(0));
    if (!accept(']')) {
      do {
        const Ref<> element(default_value(type, true));
        if (PyList_Append(list.get(), element.get()) < 0) throw PythonError();
      } while (accept(','));
      expect(']');
    }
    return owned(PyList_AsTuple(list.get())).release();
  }

  PyObject* dtype_named(const std::string& word) {
    const Ref<> module = owned(PyImport_ImportModule("candelabra._C"));
    PyObject* dtype = PyObject_GetAttrString(module.get(), word.c_str());
    if (dtype && is_dtype_object(dtype)) return dtype;
    Py_XDECREF(dtype);
    PyErr_Clear();
    fail("the name of a dtype");
  }

  void result_type(Schema& schema) {
    const bool custom = schema.custom;
    const std::string type = identifier();
    if (!custom) {
      if (type != "Tensor") fail("Tensor");
    } else if (!type_names.contains(type)) {
      fail("a type");
    }
    if (accept('(')) {
      identifier();
      accept('!');
      expect(')');
      schema.aliased_results = true;
    }
    accept('?');
    if (accept('[')) expect(']');
    accept('?');
  }

  // Results of custom operators need no names.
  std::string result_name(bool custom) {
    skip_spaces();
    const bool nameless = custom && at_ < source_.size() && (source_[at_] == ',' || source_[at_] == ')');
    return nameless ? std::string() : identifier();
  }

  void results(Schema& schema) {
    if (!accept('(')) {
      result_type(schema);
      schema.result_names.emplace_back();
      return;
    }
    if (accept(')')) {
      schema.returns_nothing = true;
      return;
    }
    do {
      result_type(schema);
      schema.result_names.push_back(result_name(schema.custom));
    } while (accept(','));
    expect(')');
  }

  // Allows view(2, 3) for view([2, 3]) if the list is the only positional parameter besides the
  // tensor.
  static void set_variadic_first_list(Schema& schema) {
    if (schema.positional_count == 2 && schema.parameters[0].type == ParameterType::Tensor) {
      schema.variadic_first_list = schema.parameters[1].type == ParameterType::Ints &&
                                   schema.parameters[1].fixed_length == 0 && !schema.parameters[1].optional;
    } else if (schema.positional_count == 1) {
      schema.variadic_first_list = schema.parameters[0].type == ParameterType::Ints;
    }
  }

  const std::string& source_;
  size_t at_ = 0;
};

}  // namespace

Schema parse_schema(const std::string& text) {
  return Parser(text).parse();
}

}  // namespace candelabra
