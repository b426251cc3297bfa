// Writing through indices or a mask to a tensor that overlaps itself: several of its indices
// address one element.
#include "shapes/indexing_overlapping.hpp"

#include <numeric>

#include "interop/interop.hpp"
#include "operators/operator.hpp"

namespace candelabra::shapes {

namespace {

Ref<> call_by_name(const char* name, std::initializer_list<PyObject*> arguments) {
  Operator* found = find_operator(name);
  check(found, PyExc_RuntimeError, "the operator catalogue lacks '", name, "'");
  return call_operator(*found, arguments);
}

// The number of elements from the first to the last one in memory.
int64_t span_of(const TensorObject& tensor) {
  int64_t span = 1;
  for (int d = 0; d < tensor.ndim(); ++d) span += (tensor.sizes[d] - 1) * tensor.strides[d];
  return span;
}

// For each element, its offset from the first one.
TensorRef element_offsets(const TensorObject& self, int64_t span) {
  const int64_t sizes[] = {span};
  TensorRef all = empty(sizes, Dtype::Int64, host_device());
  int64_t* first = static_cast<int64_t*>(all->storage->data);
  std::iota(first, first + span, int64_t{0});
  all = to_device(all.get(), self.device());
  return make_view(all.get(), self.sizes, self.strides, all->offset);
}

}  // namespace

bool write_overlapping(Call& call, const char* select, std::initializer_list<int> selectors, int value) {
  TensorObject& self = call.tensor(Operator::self_position);
  if (!call.in_place || !may_overlap_itself(self) || !(call.outputs[0].sizes == self.sizes)) return false;
  warn(text("Use of ", call.title(),
            " on expanded tensors is deprecated. Please clone() the tensor before performing this operation. This also "
            "applies to "
            "advanced indexing e.g. tensor[mask] = scalar"));
  const NoGrad no_grad;
  const int64_t span = span_of(self);
  const TensorRef offsets = element_offsets(self, span);
  PyObject* const source = as_object(offsets.get());
  PyObject* const first = call[*selectors.begin()].object;
  const Ref<> selected = selectors.size() == 1
                             ? call_by_name(select, {source, first})
                             : call_by_name(select, {source, first, call[*(selectors.end() - 1)].object});
  const Ref<> indices = owned(PyList_New(1));
  PyList_SET_ITEM(indices.get(), 0, Py_NewRef(selected.get()));
  const TensorRef flat = make_view(&self, Dims{span}, Dims{1}, self.offset);
  const Argument& given = call[value];
  const TensorRef values = given.is_tensor() ? convert_dtype(given.tensor, self.dtype)
                                             : number_tensor(given.scalar, self.dtype, self.device());
  const bool accumulate = call.argument_count > value + 1 && call.boolean(value + 1);
  call_by_name("index_put_",
               {as_object(flat.get()), indices.get(), as_object(values.get()), accumulate ? Py_True : Py_False});
  --self.storage->version;  // the caller counts this one change
  call.result = Ref<>::borrow(as_object(&self));
  return true;
}

}  // namespace candelabra::shapes
