// All operators by name: how they are declared from the rows of the catalogue, and found.
#include <deque>
#include <map>

#include "operators/operator.hpp"

namespace candelabra {
namespace {

PyObject* const failure = nullptr;

std::map<std::string, Operator*, std::less<>>& by_name() {
  static std::map<std::string, Operator*, std::less<>> operators;
  return operators;
}
std::vector<Operator*>& declared() {
  static std::vector<Operator*> operators;
  return operators;
}

PyObject* make_result_type(const Schema& schema) {
  if (schema.result_names.size() < 2 || schema.result_names[0].empty()) return nullptr;
  // The texts must outlive the type. A deque does not move them.
  struct Texts {
    std::string type_name;
    std::vector<PyStructSequence_Field> fields;
  };
  static std::deque<Texts> kept;
  Texts& texts = kept.emplace_back(Texts{"candelabra.return_types." + schema.name, {}});
  for (const std::string& name : schema.result_names) {
    texts.fields.push_back({PyUnicode_AsUTF8(owned(PyUnicode_InternFromString(name.c_str())).release()), nullptr});
  }
  texts.fields.push_back({nullptr, nullptr});
  PyStructSequence_Desc description = {texts.type_name.c_str(), nullptr, texts.fields.data(),
                                       static_cast<int>(schema.result_names.size())};
  return owned(reinterpret_cast<PyObject*>(PyStructSequence_NewType(&description))).release();
}

// What a catalogue row states besides the schema.
struct Row {
  uint32_t tags;
  const ShapeRuleEntry& rule;
  Refusals refusals;
  std::string title;
  PyObject* doc;
};

Operator* make_operator(Schema schema, const Row& row) {
  Operator* op = PyObject_New(Operator, operator_type);
  if (!op) throw PythonError();
  op->vectorcall = operator_vectorcall;
  new (&op->schema) Schema(std::move(schema));
  new (&op->kernels) std::array<Kernel, max_device_types>{};
  new (&op->refusals) Refusals(row.refusals);
  new (&op->title) std::string(row.title);
  op->tags = row.tags;
  op->shape = row.rule.rule;
  op->composite = op->decomposition = op->fallback = op->autograd_function = op->inplace_autograd_function = op->dict =
      nullptr;
  op->implementation = op->allocator = nullptr;
  op->doc = Py_NewRef(row.doc);
  op->inplace = op->functional = nullptr;
  op->result_type = make_result_type(op->schema);
  op->elementwise = row.rule.elementwise;
  op->exact_out = needs_exact_out(op->schema.name);
  op->out_memory = op->elementwise ? OutMemory::Whole : out_memory_of(op->schema.name);
  static_assert(max_arguments <= 32);
  op->changed_arguments = 0;
  for (size_t i = 0; i < op->schema.parameters.size(); ++i)
    op->changed_arguments |= uint32_t{op->schema.parameters[i].mutated} << i;
  op->returns_self = op->changed_arguments && !(row.tags & tag_custom) && op->schema.result_names.size() == 1 &&
                     op->schema.parameters[Operator::self_position].mutated &&
                     op->schema.parameters[Operator::self_position].type == ParameterType::Tensor;
  by_name()[op->schema.name] = op;
  return op;
}

PyObject* declare_operator(PyObject*, PyObject* arguments) {
  return guarded<>(failure, [&]() -> PyObject* {
    const char* text;
    const char* rule;
    unsigned int tags;
    const char* title;
    PyObject *doc, *refuses;
    if (!PyArg_ParseTuple(arguments, "ssIOO!s:declare_operator", &text, &rule, &tags, &doc, &PyDict_Type, &refuses,
                          &title))
      return nullptr;
    Schema schema = parse_schema(text);
    check(schema.parameters.size() <= max_arguments, PyExc_ValueError, schema.name, ": more than ", max_arguments,
          " parameters");
    check(!find_operator(schema.name), PyExc_ValueError, "the operator ", schema.name, " is declared already");
    const ShapeRuleEntry* shape = find_shape_rule(rule);
    check(shape, PyExc_ValueError, "there is no shape rule '", rule, "' for the operator ", schema.name);
    Row row{tags, *shape, parse_refusals(schema.name, refuses), *title ? title : schema.name, doc};
    Operator* op = make_operator(schema, row);
    if (!op->schema.custom) declared().push_back(op);
    if (tags & tag_inplace) {
      schema.name += "_";
      schema.parameters[Operator::self_position].mutated = true;
      size_t paren = schema.text.find('(');
      schema.text.replace(0, paren, schema.name);
      row.tags &= ~tag_inplace;
      op->inplace = make_operator(std::move(schema), row);
      op->inplace->functional = op;
    }
    return Py_NewRef(reinterpret_cast<PyObject*>(op));
  });
}

// The object lives on for its holders; another operator may be declared under its name.
PyObject* forget_operator(PyObject*, PyObject* name) {
  return guarded<>(failure, [&]() -> PyObject* {
    const char* text = PyUnicode_AsUTF8(name);
    if (!text) return nullptr;
    const Operator* op = find_operator(text);
    check(!op || op->schema.custom, PyExc_ValueError, "forget_operator(): ", text, " belongs to the catalogue");
    if (op && op->inplace) by_name().erase(op->inplace->schema.name);
    by_name().erase(text);
    return Py_NewRef(op ? Py_True : Py_False);
  });
}

PyMethodDef operator_functions[] = {
    {"forget_operator", forget_operator, METH_O,
     "forget_operator(name)\n\nTake a custom operator out of the registry."},
    {"declare_operator", declare_operator, METH_VARARGS,
     "Declare an operator: schema, shape rule, tags, docstring, refused dtypes, title."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

Operator* find_operator(std::string_view name) {
  auto found = by_name().find(name);
  return found == by_name().end() ? nullptr : found->second;
}

Operator& required_operator(const char* name) {
  Operator* found = find_operator(name);
  check(found, PyExc_RuntimeError, "the operator catalogue lacks '", name, "'");
  return *found;
}

const std::vector<Operator*>& all_operators() {
  return declared();
}

bool init_operator_registry(PyObject* module) {
  return PyModule_AddFunctions(module, operator_functions) == 0;
}

}  // namespace candelabra
