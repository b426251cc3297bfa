// Warnings and errors for calls that make the host wait for the device
// (candelabra.cuda.set_sync_debug_mode).
#pragma once

namespace candelabra::cuda {

// Called before queueing work that is waited for. Warns or throws if the user asked for it.
void about_to_wait();

// Sets the function that shows a warning. It may be called without the GIL.
void set_warner(void (*warner)(const char* text));

}  // namespace candelabra::cuda
