// Defines the functions of candelabra/kernel.hpp that are not inline.
#define CANDELABRA_KERNEL_DEFINITIONS
#include "kernels.hpp"
