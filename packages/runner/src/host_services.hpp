// What this library provides to a backend in the core's place.
#pragma once

#include <vector>

#include "backend.hpp"

namespace candelabra::runner {

// A call with the temporary memory that its kernel has asked for. The call is the first member,
// from which the services find the rest.
struct Frame {
  cb_call call{};
  const Backend* backend = nullptr;
  std::vector<Memory> workspaces;
};

const cb_host& host_services();

}  // namespace candelabra::runner
