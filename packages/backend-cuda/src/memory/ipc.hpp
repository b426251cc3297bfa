// Memory and events of other processes on this machine.
#pragma once

#include <cuda_runtime_api.h>

#include "candelabra/accelerator.h"

namespace candelabra::cuda {

void export_memory(int device, void* memory, cb_ipc_handle& result);
void* open_memory(int device, const cb_ipc_handle& handle);
void close_memory(int device, void* base);
void export_event(int device, cudaEvent_t event, cb_ipc_handle& result);
cudaEvent_t open_event(int device, const cb_ipc_handle& handle);

}  // namespace candelabra::cuda
