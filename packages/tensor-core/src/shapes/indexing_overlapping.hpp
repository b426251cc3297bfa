// What masked_fill_, index_fill_ and index_put_ do to a tensor in which several indices mean one element.
#pragma once

#include <initializer_list>

#include "../call.hpp"

namespace candelabra::shapes {

// Last in a shape rule: where the tensor that is changed overlaps itself, does the whole call and returns true. `select` is the
// operator that picks the elements to write, `where` are the arguments that it takes them from, and `value` is the argument with
// what is written; the one after it, if there is one, says whether to add. Kernels need not know of such tensors: the elements are
// written by their places in memory, an element that is named twice as often.
bool write_overlapping(Call& call, const char* select, std::initializer_list<int> where, int value);

}  // namespace candelabra::shapes
