// The services that the core provides to backends (cb_host of backend.h).
#pragma once

#include <string>

#include "candelabra/backend.h"

namespace candelabra {

// Lives as long as the process.
extern const cb_host host_services;

// Sets an option of a device type, which cb_host.option() returns from now on.
void set_backend_option(const std::string& device_type, const std::string& name, const std::string& value);

}  // namespace candelabra
