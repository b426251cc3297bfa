// The message of a failure. The real error.cpp also needs the CUDA runtime.
#define CANDELABRA_KERNEL_DEFINITIONS
#include "kernels.hpp"
