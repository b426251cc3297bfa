// masked_fill_, index_fill_ and index_put_ on a tensor that overlaps itself.
#pragma once

#include <initializer_list>

#include "dispatch/call.hpp"

namespace candelabra::shapes {

// The last step of a shape rule. If self overlaps itself (an expanded tensor, mostly), does the
// whole call and returns true, so that kernels never see such a tensor. The elements are written by
// their offsets in memory; an element that is indexed twice is written twice. `select` is the
// operator that reads the elements to write; it takes the arguments at the positions `selectors`.
// `value` is the position of the written values. A bool argument that follows it says whether to
// accumulate.
bool write_overlapping(Call& call, const char* select, std::initializer_list<int> selectors, int value);

}  // namespace candelabra::shapes
