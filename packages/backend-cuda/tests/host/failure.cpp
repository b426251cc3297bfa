// The words of a failure, which error.cpp has beside what needs the CUDA runtime.
#define CANDELABRA_KERNEL_DEFINITIONS
#include "kernels.hpp"
