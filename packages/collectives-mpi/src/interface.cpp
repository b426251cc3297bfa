// What Python calls by ctypes: the start and the end of MPI, communicators of chosen ranks, and
// requests that are waited for later. Functions that can fail return enum cb_status.
#include <cstdio>
#include <cstring>

#include "error.hpp"
#include "table.hpp"

namespace {

using namespace candelabra::mpi;

Clock::time_point after(int64_t milliseconds) {
  return milliseconds < 0 ? Clock::time_point::max() : Clock::now() + std::chrono::milliseconds(milliseconds);
}

void write(const std::string& text, char* to, uint64_t capacity) {
  if (capacity) std::snprintf(to, capacity, "%s", text.c_str());
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int32_t candelabra_mpi_start(const char* path, int64_t timeout_ms) {
  return guarded([&] { Engine::engine().start(path, timeout_ms); });
}

int32_t candelabra_mpi_stop(int64_t timeout_ms) {
  return guarded([&] { Engine::engine().stop(timeout_ms); });
}

void candelabra_mpi_fail(const char* message) {
  Engine::engine().fail(message);
}

int32_t candelabra_mpi_world(int32_t* rank, int32_t* ranks) {
  return guarded([&] {
    Engine::engine().check_usable();
    *rank = Engine::engine().rank();
    *ranks = Engine::engine().ranks();
  });
}

// The name and version of MPI in one line.
int32_t candelabra_mpi_version(char* text, uint64_t capacity) {
  return guarded([&] {
    Engine::engine().check_usable();
    char version[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
    int length = 0;
    succeed(mpi().get_library_version(version, &length), "MPI_Get_library_version");
    write(std::string(version, strcspn(version, "\n")), text, capacity);
  });
}

// A communicator of these ranks of MPI_COMM_WORLD, in their order. Only they call it. `number` is
// the same on all, and tells it from others that are made at the same time.
int32_t candelabra_mpi_communicator(const int32_t* ranks, int32_t count, int32_t number, int64_t timeout_ms,
                                    const char* name, void** result) {
  return guarded([&] {
    *result = enter(Engine::engine().select(std::vector<int>(ranks, ranks + count), number, timeout_ms, name));
  });
}

int32_t candelabra_mpi_set_timeout(void* communicator, int64_t timeout_ms) {
  return guarded([&] { find(communicator)->set_timeout(timeout_ms); });
}

// What this thread calls of the table between the two is started, and not waited for.
int32_t candelabra_mpi_request_begin() {
  return guarded(begin_request);
}

// The tag of the sends and receives that follow in the request.
void candelabra_mpi_set_tag(int32_t tag) {
  set_tag(tag);
}

int32_t candelabra_mpi_request_end(void** request) {
  return guarded([&] { *request = end_request().release(); });
}

int32_t candelabra_mpi_barrier(void* communicator, void** request) {
  return guarded([&] {
    auto made = std::make_unique<Request>();
    Engine::engine().start(find(communicator), {Kind::barrier, nullptr, nullptr, 0, 0, 0, 0, 0}, *made);
    *request = made.release();
  });
}

int32_t candelabra_mpi_is_done(void* request) {
  return Engine::engine().is_done(*static_cast<Request*>(request));
}

// Waits for at most slice_ms; is_done tells whether the request is done. After left_ms, of limit_ms
// in all, the communicators of the request end; -1 for their own limit. source gets the rank that
// the first operation has received from.
int32_t candelabra_mpi_wait(void* request, int64_t slice_ms, int64_t left_ms, int64_t limit_ms, int32_t* is_done,
                            int32_t* source) {
  return guarded([&] {
    auto& waited = *static_cast<Request*>(request);
    *is_done = Engine::engine().wait(waited, after(slice_ms), after(left_ms), limit_ms, false);
    *source = waited.operations.empty() ? -1 : waited.operations.front()->source();
  });
}

void candelabra_mpi_release(void* request) {
  Engine::engine().release(std::unique_ptr<Request>(static_cast<Request*>(request)));
}

// The operation that runs, or an empty text.
void candelabra_mpi_describe(char* text, uint64_t capacity) {
  write(Engine::engine().description(), text, capacity);
}

// The reason of this thread's last failure, without the operation; whether it was the end of a time
// limit.
int32_t candelabra_mpi_failure(char* text, uint64_t capacity) {
  write(last_failure.reason, text, capacity);
  return last_failure.timed_out;
}
}  // extern "C"
#pragma GCC visibility pop
