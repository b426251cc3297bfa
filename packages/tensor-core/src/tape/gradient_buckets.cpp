// Buckets of gradients, which are reduced together. A slot of a leaf takes the leaf's gradient into
// the memory of its bucket; Python is called once for each full bucket.
#include <Python.h>

#include <algorithm>
#include <vector>

#include "dispatch/call.hpp"
#include "dispatch/dispatch_hook.hpp"
#include "dispatch/torch_function.hpp"
#include "tensor/tensor_type.hpp"

namespace candelabra {

namespace {

PyObject* const failure = nullptr;
PyTypeObject* slot_type = nullptr;

struct Entry {
  TensorRef leaf;
  TensorRef view;  // where its gradient lies in the bucket; empty for one that stays where it is
  size_t bucket = 0;
  int64_t uses = 0;  // of a static graph: how often the first pass gave it a gradient
  int64_t left = 0;  // of these, in this pass
  bool is_ready = false;
};

struct BucketsObject {
  PyObject_HEAD PyObject* observer;
  std::vector<Entry> entries;
  std::vector<size_t> missing;  // by bucket
  std::vector<size_t> order;    // of the entries that are ready
  size_t next;                  // the first bucket that the observer was not told of
  bool keeps_views;             // gradients become views of their buckets
  bool is_expecting;
  bool has_started;
  bool counts_uses;
};

struct SlotObject {
  PyObject_HEAD PyObject* buckets;
  size_t index;
};

BucketsObject& buckets_of(PyObject* object) {
  return *reinterpret_cast<BucketsObject*>(object);
}

Entry& entry_at(BucketsObject& buckets, size_t index) {
  check(index < buckets.entries.size(), PyExc_IndexError, "GradientBuckets: there is no leaf ", index);
  return buckets.entries[index];
}

template <typename... Arguments>
void tell(const BucketsObject& buckets, const char* method, Arguments... arguments) {
  const Ref<> observer = Ref<>::borrow(buckets.observer);
  check(observer.get() != nullptr, PyExc_RuntimeError, "GradientBuckets: the observer is gone");
  if constexpr (sizeof...(arguments) == 0) {
    owned(PyObject_CallMethod(observer.get(), method, nullptr));
  } else {
    owned(PyObject_CallMethod(observer.get(), method, "n", static_cast<Py_ssize_t>(arguments)...));
  }
}

void set_gradient(TensorObject* leaf, TensorObject* grad) {
  track(leaf);
  Py_XSETREF(leaf->grad, Py_NewRef(as_object(grad)));
}

bool is_same_memory(const TensorObject& a, const TensorObject& b) {
  return root_storage(a.storage) == root_storage(b.storage) && a.data() == b.data();
}

// to.copy_(from), which nothing records.
void write(TensorObject* to, TensorObject* from) {
  const NoGrad no_grad;
  PyObject* const tensors[] = {as_object(to), as_object(from)};
  if (may_be_overridden(tensors, 2) || dispatch_hook() || to->inference) [[unlikely]] {
    static constinit InternedOnce copy("copy_");
    owned(PyObject_CallMethodOneArg(tensors[0], copy.get(), tensors[1]));
    return;
  }
  copy_into(to, from);
  ++to->storage->version;
}

// Brings the gradient of a leaf into its bucket.
void collect(BucketsObject& buckets, Entry& entry) {
  const TensorRef view = entry.view, leaf = entry.leaf;
  if (!view) return;
  if (!leaf->grad) {
    fill(view.get(), cb_scalar{});
    ++view->storage->version;
    return;
  }
  const TensorRef grad = TensorRef::borrow(as_tensor(leaf->grad));
  if (is_same_memory(*grad.get(), *view.get())) return;
  write(view.get(), grad.get());
  if (buckets.keeps_views) set_gradient(leaf.get(), view.get());
}

void empty_buckets(BucketsObject& buckets) {
  std::fill(buckets.missing.begin(), buckets.missing.end(), 0);
  for (Entry& entry : buckets.entries) {
    entry.is_ready = false;
    entry.left = entry.uses;
    ++buckets.missing[entry.bucket];
  }
  buckets.order.clear();
  buckets.next = 0;
}

// Notes that the gradient of an entry is there. Buckets are reduced in their order, which is the
// same for all ranks.
void mark(BucketsObject& buckets, size_t index) {
  Entry& entry = entry_at(buckets, index);
  if (entry.is_ready) return tell(buckets, "on_repeated", index);
  entry.is_ready = true;
  buckets.order.push_back(index);
  collect(buckets, entry);
  if (--buckets.missing[entry.bucket]) return;
  while (buckets.next < buckets.missing.size() && !buckets.missing[buckets.next])
    tell(buckets, "on_full", buckets.next++);
}

void arrive(BucketsObject& buckets, size_t index) {
  if (!buckets.is_expecting) return;
  Entry& entry = entry_at(buckets, index);
  if (!buckets.has_started) {
    buckets.has_started = true;
    tell(buckets, "on_start");
  }
  if (buckets.counts_uses) {
    ++entry.uses;
  } else if (entry.left > 1) {
    --entry.left;
  } else {
    mark(buckets, index);
  }
}

// Accumulates a gradient into an entry's leaf: takes it, or writes it to the bucket at once.
// Returns whether it did: candelabra.autograd knows the other cases. `held` is the number of
// references that it would count in a function of its own if nobody else had the gradient.
bool accumulate(BucketsObject& buckets, const Entry& entry, TensorObject* grad, Py_ssize_t held) {
  const TensorRef leaf = entry.leaf, view = entry.view;
  if (!is_gradient_for(*grad, *leaf.get())) return false;
  if (leaf->grad) {
    const Ref<> old = Ref<>::borrow(leaf->grad);
    if (Py_TYPE(old.get()) != tensor_type || requires_grad(as_tensor(old.get()))) return false;
    static constinit InternedOnce add("add_");
    owned(PyObject_CallMethodOneArg(old.get(), add.get(), as_object(grad)));
    return true;
  }
  if (view && buckets.keeps_views && buckets.is_expecting && !buckets.counts_uses && !entry.is_ready) {
    write(view.get(), grad);
    set_gradient(leaf.get(), view.get());
    return true;
  }
  if (Py_REFCNT(as_object(grad)) >= held || !is_exclusive_for(*grad, *leaf.get())) return false;
  set_gradient(leaf.get(), grad->base ? make_alias(grad).get() : grad);
  return true;
}

// ---- the slot of a leaf

SlotObject& slot_of(PyObject* object) {
  return *reinterpret_cast<SlotObject*>(object);
}

PyObject* slot_take(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return guarded<>(failure, [&] {
    check(count == 2 && is_tensor(arguments[0]), PyExc_TypeError, "take(grad, held)");
    const Py_ssize_t held = PyLong_AsSsize_t(arguments[1]);
    if (held == -1 && PyErr_Occurred()) throw PythonError();
    const size_t index = slot_of(self).index;
    const Ref<> kept = Ref<>::borrow(slot_of(self).buckets);
    BucketsObject& buckets = buckets_of(kept.get());
    if (!accumulate(buckets, entry_at(buckets, index), as_tensor(arguments[0]), held)) return Py_NewRef(Py_False);
    arrive(buckets, index);
    return Py_NewRef(Py_True);
  });
}

PyObject* slot_arrive(PyObject* self, PyObject*) {
  return guarded<>(failure, [&] {
    const Ref<> kept = Ref<>::borrow(slot_of(self).buckets);
    arrive(buckets_of(kept.get()), slot_of(self).index);
    return Py_NewRef(Py_None);
  });
}

int slot_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(slot_of(self).buckets);
  return 0;
}

void slot_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_XDECREF(slot_of(self).buckets);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef slot_methods[] = {
    {"take", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(slot_take)), METH_FASTCALL,
     "take(grad, held)\n\nAccumulate a complete gradient into the leaf and note its arrival; False, and nothing done, "
     "where candelabra.autograd has to do it. `held` is as in its take_gradient."},
    {"arrive", slot_arrive, METH_NOARGS, "arrive()\n\nNote that the leaf's gradient is accumulated."},
    {nullptr, nullptr, 0, nullptr},
};

// ---- GradientBuckets

Ref<> fast_sequence(PyObject* object, size_t size, const char* what) {
  Ref<> sequence = owned(PySequence_Fast(object, what));
  check(static_cast<size_t>(PySequence_Fast_GET_SIZE(sequence.get())) == size, PyExc_ValueError, what);
  return sequence;
}

PyObject* buckets_new(PyTypeObject* type, PyObject* arguments, PyObject*) {
  return guarded<>(failure, [&]() -> PyObject* {
    PyObject *leaves, *observer;
    if (!PyArg_ParseTuple(arguments, "OO:GradientBuckets", &leaves, &observer)) throw PythonError();
    const Ref<> sequence = owned(PySequence_Fast(leaves, "GradientBuckets(): leaves has to be a sequence"));
    Ref<> made = owned(type->tp_alloc(type, 0));
    BucketsObject& buckets = buckets_of(made.get());
    new (&buckets.entries) std::vector<Entry>();
    new (&buckets.missing) std::vector<size_t>();
    new (&buckets.order) std::vector<size_t>();
    buckets.observer = Py_NewRef(observer);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.get()); ++i) {
      PyObject* const leaf = PySequence_Fast_GET_ITEM(sequence.get(), i);
      check(is_tensor(leaf), PyExc_TypeError, "GradientBuckets(): leaves has to be of tensors, not ",
            Py_TYPE(leaf)->tp_name);
      buckets.entries.emplace_back().leaf = TensorRef::borrow(as_tensor(leaf));
    }
    return made.release();
  });
}

int buckets_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(buckets_of(self).observer);
  for (const Entry& entry : buckets_of(self).entries) {
    Py_VISIT(as_object(entry.leaf.get()));
    if (entry.view) Py_VISIT(as_object(entry.view.get()));
  }
  return 0;
}

int buckets_clear(PyObject* self) {
  const std::vector<Entry> given_up = std::exchange(buckets_of(self).entries, {});
  Py_CLEAR(buckets_of(self).observer);
  return 0;
}

void buckets_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  BucketsObject& buckets = buckets_of(self);
  std::destroy_at(&buckets.entries);
  std::destroy_at(&buckets.missing);
  std::destroy_at(&buckets.order);
  Py_XDECREF(buckets.observer);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* buckets_slot(PyObject* self, PyObject* number) {
  return guarded<>(failure, [&] {
    const size_t index = PyLong_AsSize_t(number);
    if (index == static_cast<size_t>(-1) && PyErr_Occurred()) throw PythonError();
    entry_at(buckets_of(self), index);
    PyObject* const made = owned(slot_type->tp_alloc(slot_type, 0)).release();
    slot_of(made).buckets = Py_NewRef(self);
    slot_of(made).index = index;
    return made;
  });
}

bool fits(PyObject* view, const TensorObject& leaf) {
  return is_tensor(view) && as_tensor(view)->sizes == leaf.sizes && as_tensor(view)->dtype == leaf.dtype;
}

PyObject* buckets_assign(PyObject* self, PyObject* arguments) {
  return guarded<>(failure, [&] {
    PyObject *numbers, *views;
    int keeps_views;
    if (!PyArg_ParseTuple(arguments, "OOp:assign", &numbers, &views, &keeps_views)) throw PythonError();
    BucketsObject& buckets = buckets_of(self);
    const size_t count = buckets.entries.size();
    const Ref<> all_numbers = fast_sequence(numbers, count, "assign(): numbers has to be one bucket for each leaf");
    const Ref<> all_views = fast_sequence(views, count, "assign(): views has to be one view, or None, for each leaf");
    size_t bucket_count = 0;
    std::vector<size_t> assigned(count);
    for (size_t i = 0; i < count; ++i) {
      assigned[i] = PyLong_AsSize_t(PySequence_Fast_GET_ITEM(all_numbers.get(), static_cast<Py_ssize_t>(i)));
      if (assigned[i] == static_cast<size_t>(-1) && PyErr_Occurred()) throw PythonError();
      check(assigned[i] < count, PyExc_ValueError, "assign(): there are more buckets than leaves");
      PyObject* const view = PySequence_Fast_GET_ITEM(all_views.get(), static_cast<Py_ssize_t>(i));
      check(view == Py_None || fits(view, *buckets.entries[i].leaf.get()), PyExc_ValueError, "assign(): view ", i,
            " is no tensor of the shape and dtype of its leaf");
      bucket_count = std::max(bucket_count, assigned[i] + 1);
    }
    for (size_t i = 0; i < count; ++i) {
      PyObject* const view = PySequence_Fast_GET_ITEM(all_views.get(), static_cast<Py_ssize_t>(i));
      buckets.entries[i].bucket = assigned[i];
      buckets.entries[i].view = view == Py_None ? TensorRef() : TensorRef::borrow(as_tensor(view));
    }
    buckets.missing.resize(bucket_count);
    buckets.keeps_views = keeps_views != 0;
    empty_buckets(buckets);
    return Py_NewRef(Py_None);
  });
}

PyObject* buckets_expect(PyObject* self, PyObject* counts_uses) {
  return guarded<>(failure, [&] {
    const int truth = PyObject_IsTrue(counts_uses);
    if (truth < 0) throw PythonError();
    BucketsObject& buckets = buckets_of(self);
    empty_buckets(buckets);
    buckets.is_expecting = true;
    buckets.has_started = false;
    buckets.counts_uses = truth != 0;
    return Py_NewRef(Py_None);
  });
}

PyObject* buckets_mark(PyObject* self, PyObject* numbers) {
  return guarded<>(failure, [&] {
    const Ref<> sequence = owned(PySequence_Fast(numbers, "mark() takes a sequence of ints"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.get()); ++i) {
      const size_t index = PyLong_AsSize_t(PySequence_Fast_GET_ITEM(sequence.get(), i));
      if (index == static_cast<size_t>(-1) && PyErr_Occurred()) throw PythonError();
      mark(buckets_of(self), index);
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* buckets_write_back(PyObject* self, PyObject* used) {
  return guarded<>(failure, [&] {
    BucketsObject& buckets = buckets_of(self);
    const size_t count = buckets.entries.size();
    Ref<> known;
    if (used != Py_None)
      known = fast_sequence(used, count, "write_back(): used has to be None or one bool for each leaf");
    for (size_t i = 0; i < count; ++i) {
      const Entry& entry = entry_at(buckets, i);
      const TensorRef leaf = entry.leaf, view = entry.view;
      if (!view) continue;
      if (leaf->grad) {
        const TensorRef grad = TensorRef::borrow(as_tensor(leaf->grad));
        if (!is_same_memory(*grad.get(), *view.get())) write(grad.get(), view.get());
      } else if (known) {
        const int truth = PyObject_IsTrue(PySequence_Fast_GET_ITEM(known.get(), static_cast<Py_ssize_t>(i)));
        if (truth < 0) throw PythonError();
        if (truth)
          set_gradient(leaf.get(), buckets.keeps_views ? view.get() : clone(view.get(), MemoryFormat::Preserve).get());
      }
    }
    return Py_NewRef(Py_None);
  });
}

// The end of a backward pass; the next one may bring what is missing, unless all is there.
PyObject* buckets_end(PyObject* self, PyObject*) {
  BucketsObject& buckets = buckets_of(self);
  buckets.has_started = false;
  return PyBool_FromLong(buckets.next == buckets.missing.size());
}

PyObject* buckets_pause(PyObject* self, PyObject*) {
  buckets_of(self).is_expecting = false;
  Py_RETURN_NONE;
}

// A list of what `read` gives for each entry of a range.
template <typename Range, typename Read>
PyObject* list_of(const Range& range, Read read) {
  return guarded<>(failure, [&] {
    Ref<> list = owned(PyList_New(0));
    for (const auto& one : range) {
      const Ref<> number = owned(PyLong_FromLongLong(static_cast<long long>(read(one))));
      if (PyList_Append(list.get(), number.get()) < 0) throw PythonError();
    }
    return list.release();
  });
}

PyGetSetDef buckets_attributes[] = {
    {"is_expecting", [](PyObject* self, void*) { return PyBool_FromLong(buckets_of(self).is_expecting); }, nullptr,
     "Whether the gradients of a backward pass go into the buckets.", nullptr},
    {"order", [](PyObject* self, void*) { return list_of(buckets_of(self).order, [](size_t index) { return index; }); },
     nullptr, "The leaves whose gradients are there, in the order in which they came.", nullptr},
    {"uses",
     [](PyObject* self, void*) {
       return list_of(buckets_of(self).entries, [](const Entry& entry) { return entry.uses; });
     },
     nullptr, "How many gradients each leaf got while uses were counted.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef buckets_methods[] = {
    {"slot", buckets_slot, METH_O, "slot(index)\n\nThe slot of a leaf."},
    {"assign", buckets_assign, METH_VARARGS,
     "assign(numbers, views, keeps_views)\n\nSet the bucket of each leaf, and where its gradient lies there: None for "
     "one that stays where it is. With keeps_views, gradients become these views."},
    {"expect", buckets_expect, METH_O,
     "expect(counts_uses)\n\nTake the gradients of the next backward pass: buckets are empty. With counts_uses, only "
     "count them."},
    {"pause", buckets_pause, METH_NOARGS, "pause()\n\nLet gradients accumulate: none goes into a bucket."},
    {"mark", buckets_mark, METH_O,
     "mark(indices)\n\nTake the gradients of leaves as they are now; zeros for those without one."},
    {"end", buckets_end, METH_NOARGS, "end()\n\nEnd a backward pass; return whether all buckets are full."},
    {"write_back", buckets_write_back, METH_O,
     "write_back(used)\n\nCopy what is in the buckets to the gradients. A leaf without one gets one where used is true "
     "of it."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool init_gradient_buckets(PyObject* module) {
  PyType_Slot slot_slots[] = {
      {Py_tp_traverse, reinterpret_cast<void*>(slot_traverse)},
      {Py_tp_dealloc, reinterpret_cast<void*>(slot_dealloc)},
      {Py_tp_methods, slot_methods},
      {Py_tp_doc, const_cast<char*>("Where the gradient of a leaf goes beside `grad`: into a bucket.")},
      {0, nullptr},
  };
  PyType_Spec slot_spec = {"candelabra.GradientSlot", sizeof(SlotObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slot_slots};
  slot_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&slot_spec));
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(buckets_new)},
      {Py_tp_traverse, reinterpret_cast<void*>(buckets_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(buckets_clear)},
      {Py_tp_dealloc, reinterpret_cast<void*>(buckets_dealloc)},
      {Py_tp_methods, buckets_methods},
      {Py_tp_getset, buckets_attributes},
      {Py_tp_doc,
       const_cast<char*>(
           "GradientBuckets(leaves, observer)\n\nBuckets of the leaves' gradients. Calls observer.on_start() at the "
           "first gradient of a backward pass, on_full(bucket) for each full bucket in order, and on_repeated(leaf) "
           "for a gradient that was there already.")},
      {0, nullptr},
  };
  PyType_Spec spec = {"candelabra.GradientBuckets", sizeof(BucketsObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                      slots};
  const Ref<> type(PyType_FromSpec(&spec));
  return slot_type && type &&
         PyModule_AddObjectRef(module, "GradientSlot", reinterpret_cast<PyObject*>(slot_type)) == 0 &&
         PyModule_AddObjectRef(module, "GradientBuckets", type.get()) == 0;
}

}  // namespace candelabra
