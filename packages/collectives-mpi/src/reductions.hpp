// The dtypes and reductions of the core in the words of MPI.
#pragma once

#include <cstdint>

#include "mpi.hpp"

namespace candelabra::mpi {

const char* dtype_name(int32_t dtype);
int64_t itemsize(int32_t dtype);  // throws for a dtype that is not known
// A type in which elements are only moved.
struct Elements {
  MPI_Datatype type;
  int64_t per_element;  // how many of the type make one element
};
Elements moved(int32_t dtype);

struct Reduced : Elements {
  MPI_Op operation;
};
// Throws for reductions that the dtype does not have. A mean is summed, and then divided.
Reduced reduced(const char* what, int32_t dtype, int32_t reduction);

void divide(void* data, int64_t count, int32_t dtype, int divisor);

}  // namespace candelabra::mpi
