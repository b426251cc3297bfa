// Helpers of the LAPACK families: factorization, spectral, solving.
#pragma once

#include "shapes/checks.hpp"

namespace candelabra::shapes {

// What PyTorch raises for dtypes that LAPACK does not have.
struct LapackErrors {
  PyObject* integer = PyExc_RuntimeError;
  PyObject* half = PyExc_NotImplementedError;
};
// Of functions that PyTorch calls with any dtype.
const LapackErrors not_in_lapack{.integer = PyExc_NotImplementedError};

// Throws unless LAPACK supports the dtype of argument i.
void check_lapack_dtype(const Call& call, int i, LapackErrors errors = {});
// Throws unless argument i has at least two dimensions; `argument` names it in the message.
void check_matrices(const Call& call, int i, const char* argument);
void check_square(const Call& call, int i, const char* argument);
void check_same_dtype(const Call& call, int i, int j, const char* first, const char* second);

// All sizes but the last `inner`.
Dims batch_of(const TensorObject& tensor, int inner = 2);
// The sizes (batch..., inner...).
Dims joined(Dims batch, std::initializer_list<int64_t> inner);
// The batch that those of arguments i and j broadcast to.
Dims broadcast_batches(const Call& call, int i, int j);
// Broadcasts argument i to this batch; its last `inner` dimensions stay.
void broadcast_batch(Call& call, int i, const Dims& batch, int inner = 2);

}  // namespace candelabra::shapes
