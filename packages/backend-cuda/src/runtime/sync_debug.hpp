// Calls that keep the host waiting for the device, and who wants to know of them
// (candelabra.cuda.set_sync_debug_mode).
#pragma once

namespace candelabra::cuda {

// Before anything is queued that is waited for. Warns or throws where the user asked for it.
void about_to_wait();

// How a warning is said; it may be called without Python's lock.
void set_warner(void (*warner)(const char* text));

}  // namespace candelabra::cuda
