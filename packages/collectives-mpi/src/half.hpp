// Reductions of float16 and bfloat16, which MPI does not have. They compute in float32.
#pragma once

#include <cstdint>

#include "mpi.hpp"

namespace candelabra::mpi {

// For CB_FLOAT16 and CB_BFLOAT16; made at the first use, by the thread that may call MPI.
MPI_Op half_operation(int32_t dtype, int32_t reduction);

void divide_half(void* data, int64_t count, int32_t dtype, int divisor);

}  // namespace candelabra::mpi
