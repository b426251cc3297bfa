// The functions of the table, which the interface for Python uses, too.
#pragma once

#include <memory>

#include "engine.hpp"

namespace candelabra::mpi {

// Communicators by the handles that the core and Python hold.
std::shared_ptr<Communicator> find(void* handle);  // throws for an unknown one
void* enter(std::shared_ptr<Communicator> made);

// Between the two, collectives of this thread start, but are not waited for.
void begin_request();
void set_tag(int tag);  // of the sends and receives that follow in the request
std::unique_ptr<Request> end_request();

}  // namespace candelabra::mpi
