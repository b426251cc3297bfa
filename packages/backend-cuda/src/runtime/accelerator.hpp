// The table of candelabra/accelerator.h: what the device supports beyond backend.h.
#pragma once

#include "candelabra/accelerator.h"

namespace candelabra::cuda {

const cb_accelerator* accelerator_table();

}  // namespace candelabra::cuda
