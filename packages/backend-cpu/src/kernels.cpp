// The functions of candelabra/kernel.hpp that are no inline ones.
#define CANDELABRA_KERNEL_DEFINITIONS
#include "kernels.hpp"
