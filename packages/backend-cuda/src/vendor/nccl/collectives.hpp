// Collectives of several processes (NCCL).
#pragma once

#include "candelabra/accelerator.h"

namespace candelabra::cuda {

const cb_collectives* collectives();

}  // namespace candelabra::cuda
