#include "record/guards.hpp"

#include <cstring>

#include "dispatch/dispatch_hook.hpp"
#include "dispatch/torch_function.hpp"
#include "memory/storage.hpp"

namespace candelabra {

bool is_same_value(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (PyTuple_CheckExact(a)) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(a); ++k)
      if (!is_same_value(PyTuple_GET_ITEM(a, k), PyTuple_GET_ITEM(b, k))) return false;
    return true;
  }
  if (!PyLong_CheckExact(a) && !PyUnicode_CheckExact(a) && !PyBytes_CheckExact(a) && !PyComplex_CheckExact(a))
    return false;
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) throw PythonError();
  return equal == 1;
}

namespace {

bool matches(const Tree& tree, PyObject* value, std::vector<TensorObject*>& tensors) {
  const auto count = static_cast<Py_ssize_t>(tree.children.size());
  switch (tree.kind) {
    case Tree::Kind::Tensor:
      if (!is_tensor(value)) return false;
      tensors.push_back(as_tensor(value));
      return true;
    case Tree::Kind::Value:
      return is_same_value(tree.object.get(), value);
    case Tree::Kind::Tuple:
      if (reinterpret_cast<PyObject*>(Py_TYPE(value)) != tree.object.get() || PyTuple_GET_SIZE(value) != count)
        return false;
      for (Py_ssize_t k = 0; k < count; ++k)
        if (!matches(tree.children[static_cast<size_t>(k)], PyTuple_GET_ITEM(value, k), tensors)) return false;
      return true;
    case Tree::Kind::List:
      if (!PyList_CheckExact(value) || PyList_GET_SIZE(value) != count) return false;
      for (Py_ssize_t k = 0; k < count; ++k)
        if (!matches(tree.children[static_cast<size_t>(k)], PyList_GET_ITEM(value, k), tensors)) return false;
      return true;
    case Tree::Kind::Dict: {
      if (!PyDict_CheckExact(value) || PyDict_GET_SIZE(value) != count) return false;
      PyObject *key, *item;
      Py_ssize_t at = 0;
      for (size_t k = 0; PyDict_Next(value, &at, &key, &item); ++k)
        if (!is_same_value(key, tree.keys[k].get()) || !matches(tree.children[k], item, tensors)) return false;
      return true;
    }
  }
  return false;
}

Ref<> build(const Tree& tree, std::vector<Ref<>>& tensors) {
  const auto count = static_cast<Py_ssize_t>(tree.children.size());
  switch (tree.kind) {
    case Tree::Kind::Tensor:
      return tensors[static_cast<size_t>(tree.tensor)];
    case Tree::Kind::Value:
      return tree.object;
    case Tree::Kind::List: {
      Ref<> list = owned(PyList_New(count));
      for (Py_ssize_t k = 0; k < count; ++k)
        PyList_SET_ITEM(list.get(), k, build(tree.children[static_cast<size_t>(k)], tensors).release());
      return list;
    }
    case Tree::Kind::Dict: {
      Ref<> dict = owned(PyDict_New());
      for (size_t k = 0; k < tree.children.size(); ++k) {
        const Ref<> item = build(tree.children[k], tensors);
        if (PyDict_SetItem(dict.get(), tree.keys[k].get(), item.get()) < 0) throw PythonError();
      }
      return dict;
    }
    case Tree::Kind::Tuple:
      break;
  }
  Ref<> tuple = owned(PyTuple_New(count));
  for (Py_ssize_t k = 0; k < count; ++k)
    PyTuple_SET_ITEM(tuple.get(), k, build(tree.children[static_cast<size_t>(k)], tensors).release());
  if (tree.object.get() == reinterpret_cast<PyObject*>(&PyTuple_Type)) return tuple;
  // A named tuple takes its fields one by one.
  return owned(PyObject_CallObject(tree.object.get(), tuple.get()));
}

const char* text_of(PyObject* object) {
  const char* characters = PyUnicode_AsUTF8(object);
  if (!characters) throw PythonError();
  return characters;
}

PyObject* item_of(PyObject* tuple, Py_ssize_t k) {
  check(PyTuple_Check(tuple) && k < PyTuple_GET_SIZE(tuple), PyExc_TypeError, "a description is too short");
  return PyTuple_GET_ITEM(tuple, k);
}

}  // namespace

Tree tree_from_object(PyObject* description) {
  Tree tree;
  const std::string_view kind = text_of(item_of(description, 0));
  if (kind == "tensor") {
    tree.kind = Tree::Kind::Tensor;
    tree.tensor = static_cast<int>(PyLong_AsLong(item_of(description, 1)));
    return tree;
  }
  if (kind == "value") {
    tree.object = Ref<>::borrow(item_of(description, 1));
    return tree;
  }
  // (kind, type or keys, children)
  PyObject* const children = item_of(description, 2);
  for (Py_ssize_t k = 0; k < PyTuple_Size(children); ++k)
    tree.children.push_back(tree_from_object(item_of(children, k)));
  if (kind == "tuple") {
    tree.kind = Tree::Kind::Tuple;
    tree.object = Ref<>::borrow(item_of(description, 1));
  } else if (kind == "list") {
    tree.kind = Tree::Kind::List;
  } else {
    check(kind == "dict", PyExc_TypeError, "a tree has no parts of kind ", kind);
    tree.kind = Tree::Kind::Dict;
    for (size_t k = 0; k < tree.children.size(); ++k)
      tree.keys.push_back(Ref<>::borrow(item_of(item_of(description, 1), static_cast<Py_ssize_t>(k))));
  }
  return tree;
}

int Tree::visit(visitproc visitor, void* arg) const {
  if (const int result = visit_references(visitor, arg, object)) return result;
  if (const int result = visit_each(keys, [&](const Ref<>& key) { return visit_references(visitor, arg, key); }))
    return result;
  return visit_each(children, [&](const Tree& child) { return child.visit(visitor, arg); });
}

int ArgumentTree::visit(visitproc visitor, void* arg) const {
  if (const int result = visit_each(positional, [&](const Tree& tree) { return tree.visit(visitor, arg); }))
    return result;
  return visit_each(keywords, [&](const std::pair<Ref<>, Tree>& one) {
    const int result = visit_references(visitor, arg, one.first);
    return result ? result : one.second.visit(visitor, arg);
  });
}

bool ArgumentTree::matches(PyObject* const* values, Py_ssize_t count, PyObject* names,
                           std::vector<TensorObject*>& tensors) const {
  if (count != static_cast<Py_ssize_t>(positional.size())) return false;
  if ((names ? PyTuple_GET_SIZE(names) : 0) != static_cast<Py_ssize_t>(keywords.size())) return false;
  for (size_t k = 0; k < positional.size(); ++k)
    if (!candelabra::matches(positional[k], values[k], tensors)) return false;
  for (size_t k = 0; k < keywords.size(); ++k) {
    if (!is_same_value(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(k)), keywords[k].first.get())) return false;
    if (!candelabra::matches(keywords[k].second, values[positional.size() + k], tensors)) return false;
  }
  return true;
}

PyObject* ResultTree::build(std::vector<Ref<>>& tensors) const {
  return candelabra::build(root, tensors).release();
}

namespace {

// Items of a dictionary: those of a namespace, of an object, of a parameter group.
class ItemsGuard : public Guard {
 public:
  // (_, dict, ((key, value or missing), ...), missing, exact size or -1)
  explicit ItemsGuard(PyObject* description) : dict_(Ref<>::borrow(item_of(description, 1))) {
    check(PyDict_Check(dict_.get()), PyExc_TypeError, "a guard of items needs a dict");
    PyObject* const missing = item_of(description, 3);
    PyObject* const items = item_of(description, 2);
    for (Py_ssize_t k = 0; k < PyTuple_Size(items); ++k) {
      PyObject* const value = item_of(item_of(items, k), 1);
      items_.emplace_back(Ref<>::borrow(item_of(item_of(items, k), 0)),
                          value == missing ? Ref<>() : Ref<>::borrow(value));
    }
    size_ = PyLong_AsSsize_t(item_of(description, 4));
    has_own_order_ = items_.size() > 1 && PyODict_Check(dict_.get());
  }
  bool holds() override {
#if PY_VERSION_HEX < 0x030C0000
    const uint64_t version = reinterpret_cast<PyDictObject*>(dict_.get())->ma_version_tag;
    if (version == version_ && !has_own_order_) return true;
#endif
    if (size_ >= 0 && PyDict_GET_SIZE(dict_.get()) != size_) return false;
    if (size_ == static_cast<Py_ssize_t>(items_.size()) && !is_in_order()) return false;
    for (const auto& [key, expected] : items_) {
      PyObject* const value = PyDict_GetItemWithError(dict_.get(), key.get());
      if (!value && PyErr_Occurred()) throw PythonError();
      if (value == expected.get()) continue;
      if (!value || !expected || !is_same_value(value, expected.get())) {
        failed_ = key;
        return false;
      }
    }
#if PY_VERSION_HEX < 0x030C0000
    version_ = version;
#endif
    return true;
  }
  std::string description() const override {
    const Ref<> shown(failed_ ? PyObject_Repr(failed_.get()) : nullptr);
    return shown ? text("the item ", text_of(shown.get())) : "the number of items";
  }
  int visit(visitproc visitor, void* arg) const override {
    const int result = visit_references(visitor, arg, dict_, failed_);
    return result ? result : visit_each(items_, [&](const std::pair<Ref<>, Ref<>>& item) {
      return visit_references(visitor, arg, item.first, item.second);
    });
  }

 private:
  // Whether all keys of the dictionary are those that are expected, in their order.
  bool is_in_order() {
    const auto is_next = [&](size_t k, PyObject* key) {
      if (is_same_value(items_[k].first.get(), key)) return true;
      failed_ = items_[k].first;
      return false;
    };
    if (has_own_order_) {
      const Ref<> keys = owned(PySequence_List(dict_.get()));
      for (Py_ssize_t k = 0; k < PyList_GET_SIZE(keys.get()); ++k)
        if (!is_next(static_cast<size_t>(k), PyList_GET_ITEM(keys.get(), k))) return false;
      return true;
    }
    PyObject *key, *value;
    Py_ssize_t at = 0;
    for (size_t k = 0; PyDict_Next(dict_.get(), &at, &key, &value); ++k)
      if (!is_next(k, key)) return false;
    return true;
  }

  Ref<> dict_, failed_;
  std::vector<std::pair<Ref<>, Ref<>>> items_;
  Py_ssize_t size_ = -1;
  bool has_own_order_ = false;  // an OrderedDict, whose order changes without the dict below it
  uint64_t version_ = 0;
};

class ListGuard : public Guard {
 public:
  explicit ListGuard(PyObject* description) : list_(Ref<>::borrow(item_of(description, 1))) {
    PyObject* const expected = item_of(description, 2);
    check(PyList_Check(list_.get()) && PyTuple_Check(expected), PyExc_TypeError, "a guard of a list needs a list");
    expected_ = Ref<>::borrow(expected);
  }
  bool holds() override {
    const Py_ssize_t count = PyTuple_GET_SIZE(expected_.get());
    if (PyList_GET_SIZE(list_.get()) != count) return false;
    for (Py_ssize_t k = 0; k < count; ++k)
      if (!is_same_value(PyList_GET_ITEM(list_.get(), k), PyTuple_GET_ITEM(expected_.get(), k))) return false;
    return true;
  }
  std::string description() const override { return "an entry of a list"; }
  int visit(visitproc visitor, void* arg) const override { return visit_references(visitor, arg, list_, expected_); }

 private:
  Ref<> list_, expected_;
};

class CellGuard : public Guard {
 public:
  explicit CellGuard(PyObject* description)
      : cell_(Ref<>::borrow(item_of(description, 1))), expected_(Ref<>::borrow(item_of(description, 2))) {
    check(PyCell_Check(cell_.get()), PyExc_TypeError, "a guard of a cell needs a cell");
  }
  bool holds() override {
    PyObject* const value = PyCell_GET(cell_.get());
    return value && is_same_value(value, expected_.get());
  }
  std::string description() const override { return "a variable of an enclosing function"; }
  int visit(visitproc visitor, void* arg) const override { return visit_references(visitor, arg, cell_, expected_); }

 private:
  Ref<> cell_, expected_;
};

// A tensor that the program reaches by itself, such as a parameter.
class TensorGuard : public Guard {
 public:
  // (_, tensor, whether its gradient is None: 0 no, 1 yes, 2 either)
  explicit TensorGuard(PyObject* description) {
    PyObject* const object = item_of(description, 1);
    check(is_tensor(object), PyExc_TypeError, "a guard of a tensor needs a tensor");
    tensor_ = TensorRef::borrow(as_tensor(object));
    gradient_ = static_cast<int>(PyLong_AsLong(item_of(description, 2)));
    storage_ = retain(root_storage(tensor_->storage));
    sizes_ = tensor_->sizes;
    strides_ = tensor_->strides;
    offset_ = tensor_->offset;
    dtype_ = tensor_->dtype;
    requires_grad_ = candelabra::requires_grad(tensor_.get());
    history_ = Ref<>::borrow(tensor_->grad_fn);
    check(!tensor_->hooks, PyExc_ValueError, "a tensor has hooks");
  }
  TensorGuard(const TensorGuard&) = delete;
  TensorGuard& operator=(const TensorGuard&) = delete;
  ~TensorGuard() override { release(storage_); }
  bool holds() override {
    const TensorObject& now = *tensor_.get();
    return root_storage(now.storage) == storage_ && now.offset == offset_ && now.dtype == dtype_ &&
           candelabra::requires_grad(tensor_.get()) == requires_grad_ && now.grad_fn == history_.get() && !now.hooks &&
           now.sizes == sizes_ && now.strides == strides_ &&
           (gradient_ == 2 || (now.grad == nullptr) == (gradient_ == 1));
  }
  std::string description() const override {
    return text("a tensor of shape ", shown(sizes_), ": its memory, requires_grad, history, hooks or gradient");
  }
  int visit(visitproc visitor, void* arg) const override { return visit_references(visitor, arg, tensor_, history_); }

 private:
  TensorRef tensor_;
  Ref<> history_;
  Storage* storage_;
  Dims sizes_, strides_;
  int64_t offset_;
  Dtype dtype_;
  bool requires_grad_;
  int gradient_;
};

// The code of a function, and the defaults of its parameters.
class FunctionGuard : public Guard {
 public:
  explicit FunctionGuard(PyObject* description) : function_(Ref<>::borrow(item_of(description, 1))) {
    check(PyFunction_Check(function_.get()), PyExc_TypeError, "a guard of a function needs a function");
    code_ = Ref<>::borrow(PyFunction_GetCode(function_.get()));
    defaults_ = Ref<>::borrow(PyFunction_GetDefaults(function_.get()));
    keyword_defaults_ = Ref<>::borrow(PyFunction_GetKwDefaults(function_.get()));
  }
  bool holds() override {
    PyObject* const function = function_.get();
    return PyFunction_GetCode(function) == code_.get() && PyFunction_GetDefaults(function) == defaults_.get() &&
           PyFunction_GetKwDefaults(function) == keyword_defaults_.get();
  }
  std::string description() const override { return "the code or the defaults of a function"; }
  int visit(visitproc visitor, void* arg) const override {
    return visit_references(visitor, arg, function_, code_, defaults_, keyword_defaults_);
  }

 private:
  Ref<> function_, code_, defaults_, keyword_defaults_;
};

// The class of an object, and which dictionary holds its attributes.
class ObjectGuard : public Guard {
 public:
  // (_, object, its dictionary or None)
  explicit ObjectGuard(PyObject* description)
      : object_(Ref<>::borrow(item_of(description, 1))), dict_(Ref<>::borrow(item_of(description, 2))) {
    type_ = Ref<>::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object_.get())));
  }
  bool holds() override {
    if (reinterpret_cast<PyObject*>(Py_TYPE(object_.get())) != type_.get()) return false;
    if (dict_.get() == Py_None) return true;
    const Ref<> dict = owned(PyObject_GenericGetDict(object_.get(), nullptr));
    return dict.get() == dict_.get();
  }
  std::string description() const override { return "the class of an object"; }
  int visit(visitproc visitor, void* arg) const override {
    return visit_references(visitor, arg, object_, dict_, type_);
  }

 private:
  Ref<> object_, dict_, type_;
};

// The attributes of a class have not been replaced. A class has a version from its first lookup on,
// as long as there are numbers left for versions.
class TypeGuard : public Guard {
 public:
  explicit TypeGuard(PyObject* description) : type_(Ref<>::borrow(item_of(description, 1))) {
    check(PyType_Check(type_.get()), PyExc_TypeError, "a guard of a class needs a class");
    version_ = reinterpret_cast<PyTypeObject*>(type_.get())->tp_version_tag;
  }
  bool holds() override {
    const auto now = reinterpret_cast<PyTypeObject*>(type_.get())->tp_version_tag;
    return version_ != 0 && now == version_;
  }
  std::string description() const override {
    return text("the class ", reinterpret_cast<PyTypeObject*>(type_.get())->tp_name);
  }
  int visit(visitproc visitor, void* arg) const override { return visit_references(visitor, arg, type_); }

 private:
  Ref<> type_;
  unsigned version_;
};

// State that only a function tells, such as that of an extension.
class CallGuard : public Guard {
 public:
  // (_, function without arguments, its result, the name of the state)
  explicit CallGuard(PyObject* description)
      : function_(Ref<>::borrow(item_of(description, 1))),
        expected_(Ref<>::borrow(item_of(description, 2))),
        name_(text_of(item_of(description, 3))) {
    check(PyCallable_Check(function_.get()), PyExc_TypeError, "a guard of a call needs a function");
  }
  bool holds() override {
    const Ref<> now = owned(PyObject_CallNoArgs(function_.get()));
    return is_same_value(now.get(), expected_.get());
  }
  std::string description() const override { return name_; }
  int visit(visitproc visitor, void* arg) const override {
    return visit_references(visitor, arg, function_, expected_);
  }

 private:
  Ref<> function_, expected_;
  std::string name_;
};

// Grad mode, default dtype and device. Modes and hooks that take over operators are never replayed.
class ModeGuard : public Guard {
 public:
  ModeGuard() : grad_mode_(grad_mode), dtype_(default_dtype()), device_(default_device()) {}
  bool holds() override {
    return grad_mode.enabled == grad_mode_.enabled && grad_mode.inference == grad_mode_.inference &&
           default_dtype() == dtype_ && default_device() == device_ && !dispatch_hook() &&
           torch_function_modes.load(std::memory_order_relaxed) == 0;
  }
  std::string description() const override { return "the grad mode, the default dtype or device, or a mode"; }

 private:
  GradMode grad_mode_;
  Dtype dtype_;
  Device device_;
};

}  // namespace

std::shared_ptr<Guard> guard_from_object(PyObject* description) {
  const std::string_view kind = text_of(item_of(description, 0));
  if (kind == "items") return std::make_shared<ItemsGuard>(description);
  if (kind == "list") return std::make_shared<ListGuard>(description);
  if (kind == "cell") return std::make_shared<CellGuard>(description);
  if (kind == "tensor") return std::make_shared<TensorGuard>(description);
  if (kind == "function") return std::make_shared<FunctionGuard>(description);
  if (kind == "object") return std::make_shared<ObjectGuard>(description);
  if (kind == "class") return std::make_shared<TypeGuard>(description);
  if (kind == "call") return std::make_shared<CallGuard>(description);
  check(kind == "modes", PyExc_TypeError, "there are no guards of kind ", kind);
  return std::make_shared<ModeGuard>();
}

}  // namespace candelabra
