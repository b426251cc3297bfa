// What the device has beyond backend.h: the table of candelabra/accelerator.h.
#pragma once

#include "candelabra/accelerator.h"

namespace candelabra::cuda {

const cb_accelerator* accelerator_table();

}  // namespace candelabra::cuda
