// The table of collectives that the core calls.
#include "table.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "candelabra/collectives.h"
#include "error.hpp"

namespace candelabra::mpi {
namespace {

std::mutex mutex;
std::map<void*, std::shared_ptr<Communicator>>& communicators() {
  static auto* all = new std::map<void*, std::shared_ptr<Communicator>>();
  return *all;
}

// Operations that this thread defers.
struct Group {
  int depth = 0;  // of group_begin()
  bool is_request = false;
  int tag = 0;
  struct Member {
    std::shared_ptr<Communicator> communicator;
    Arguments arguments;
  };
  std::vector<Member> members;       // of the group, which start at its end
  std::unique_ptr<Request> request;  // of begin_request()
};
thread_local Group group;

void run(void* handle, const Arguments& arguments) {
  auto communicator = find(handle);
  if (group.depth > 0) {
    group.members.push_back({std::move(communicator), arguments});
  } else if (group.is_request) {
    Engine::engine().start(communicator, arguments, *group.request);
  } else {
    Engine::engine().run(communicator, arguments);
  }
}

// All ranks give the same id; MPI itself knows who takes part.
constexpr char id_text[] = "candelabra-collectives-mpi: MPI_COMM_WORLD";

void add_communicator_functions(cb_collectives& table) {
  table.version = [](int32_t* result) {
    return guarded([&] {
      Engine::engine().check_usable();
      int major = 0, minor = 0;
      succeed(mpi().get_version(&major, &minor), "MPI_Get_version");
      *result = 100 * major + minor;
    });
  };
  table.unique_id = [](uint8_t* id) {
    return guarded([&] {
      Engine::engine().check_usable();
      std::memset(id, 0, 128);
      std::memcpy(id, id_text, sizeof id_text);
    });
  };
  table.create = [](int32_t, const uint8_t* id, int32_t rank, int32_t ranks, const cb_communicator_options* options,
                    void** communicator) {
    return guarded([&] {
      Engine& engine = Engine::engine();
      engine.check_usable();
      if (std::memcmp(id, id_text, sizeof id_text) != 0)
        throw Failure(CB_VALUE_ERROR, "communicator: the id is not one of candelabra.communication.unique_id(\"cpu\")");
      if (rank != engine.rank() || ranks != engine.ranks())
        throw Failure(CB_VALUE_ERROR, "communicator: this process is rank " + std::to_string(engine.rank()) + " of " +
                                          std::to_string(engine.ranks()) + " in MPI, not rank " + std::to_string(rank) +
                                          " of " + std::to_string(ranks) + "; split() makes smaller communicators");
      *communicator = enter(engine.duplicate_world(options->timeout_ms, options->name ? options->name : ""));
    });
  };
  table.split = [](void* communicator, int32_t color, int32_t key, const cb_communicator_options* options,
                   void** child) {
    return guarded([&] {
      auto made = Engine::engine().split(find(communicator), color, key, options->timeout_ms,
                                         options->name ? options->name : "");
      *child = made ? enter(std::move(made)) : nullptr;
    });
  };
  table.rank = [](void* communicator, int32_t* rank, int32_t* ranks) {
    return guarded([&] {
      const auto found = find(communicator);
      *rank = found->rank();
      *ranks = found->ranks();
    });
  };
  table.destroy = [](void* communicator) {
    return guarded([&] {
      const auto found = find(communicator);
      {
        const std::lock_guard lock(mutex);
        communicators().erase(communicator);
      }
      Engine::engine().close(found);
    });
  };
  table.abort = [](void* communicator) {
    return guarded([&] { Engine::engine().abort(find(communicator), "was aborted"); });
  };
  table.query = [](void* communicator) { return guarded([&] { Engine::engine().query(find(communicator)); }); };
  table.wait = [](void* communicator, int64_t timeout_ms) {
    return guarded([&] { Engine::engine().wait_for_all(find(communicator), timeout_ms); });
  };
}

void add_reductions(cb_collectives& table) {
  table.all_reduce = [](void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype,
                        int32_t reduction, void*) {
    return guarded([&] { run(communicator, {Kind::all_reduce, send, receive, count, dtype, reduction, 0, 0}); });
  };
  table.reduce = [](void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype,
                    int32_t reduction, int32_t root, void*) {
    return guarded([&] { run(communicator, {Kind::reduce, send, receive, count, dtype, reduction, root, 0}); });
  };
  table.reduce_scatter = [](void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype,
                            int32_t reduction, void*) {
    return guarded([&] { run(communicator, {Kind::reduce_scatter, send, receive, count, dtype, reduction, 0, 0}); });
  };
}

void add_movements(cb_collectives& table) {
  table.broadcast = [](void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype, int32_t root,
                       void*) {
    return guarded([&] { run(communicator, {Kind::broadcast, send, receive, count, dtype, 0, root, 0}); });
  };
  table.all_gather = [](void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype, void*) {
    return guarded([&] { run(communicator, {Kind::all_gather, send, receive, count, dtype, 0, 0, 0}); });
  };
  table.all_to_all = [](void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype, void*) {
    return guarded([&] { run(communicator, {Kind::all_to_all, send, receive, count, dtype, 0, 0, 0}); });
  };
  table.send = [](void* communicator, const void* data, uint64_t count, int32_t dtype, int32_t peer, void*) {
    return guarded([&] { run(communicator, {Kind::send, data, nullptr, count, dtype, 0, peer, group.tag}); });
  };
  table.receive = [](void* communicator, void* data, uint64_t count, int32_t dtype, int32_t peer, void*) {
    return guarded([&] { run(communicator, {Kind::receive, nullptr, data, count, dtype, 0, peer, group.tag}); });
  };
}

void end_group() {
  if (group.depth == 0) throw Failure(CB_RUNTIME_ERROR, "communicators: a group ends that was not begun");
  if (--group.depth > 0) return;
  const auto members = std::exchange(group.members, {});
  Engine& engine = Engine::engine();
  if (group.is_request) {
    for (const auto& each : members) engine.start(each.communicator, each.arguments, *group.request);
    return;
  }
  auto request = std::make_unique<Request>();
  try {
    for (const auto& each : members) engine.start(each.communicator, each.arguments, *request);
    engine.wait(*request, Clock::time_point::max(), Clock::time_point::max(), 0, true);
  } catch (...) {
    engine.release(std::move(request));
    throw;
  }
}

cb_collectives make_table() {
  cb_collectives table{};
  table.size = sizeof table;
  table.name = "mpi";
  add_communicator_functions(table);
  add_reductions(table);
  add_movements(table);
  table.group_begin = [] {
    ++group.depth;
    return static_cast<int32_t>(CB_OK);
  };
  table.group_end = [] { return guarded(end_group); };
  return table;
}

}  // namespace

std::shared_ptr<Communicator> find(void* handle) {
  const std::lock_guard lock(mutex);
  const auto found = communicators().find(handle);
  if (found == communicators().end()) throw Failure(CB_RUNTIME_ERROR, "the communicator was closed");
  return found->second;
}

void* enter(std::shared_ptr<Communicator> made) {
  const std::lock_guard lock(mutex);
  void* const handle = made.get();
  communicators()[handle] = std::move(made);
  return handle;
}

void begin_request() {
  if (group.is_request) throw Failure(CB_RUNTIME_ERROR, "communicators: a request begins inside another");
  group.request = std::make_unique<Request>();
  group.is_request = true;
}

void set_tag(int tag) {
  group.tag = tag;
}

std::unique_ptr<Request> end_request() {
  if (!group.is_request) throw Failure(CB_RUNTIME_ERROR, "communicators: a request ends that was not begun");
  group.is_request = false;
  group.tag = 0;
  return std::move(group.request);
}

}  // namespace candelabra::mpi

extern "C" __attribute__((visibility("default"))) const cb_collectives_library* candelabra_collectives(
    const cb_collectives_host* host) {
  using namespace candelabra::mpi;
  static const cb_collectives table = make_table();
  static const cb_collectives_library library = {sizeof library, &table, [] { return last_failure.message.c_str(); }};
  Engine::engine().is_interrupted = [ask = host->is_interrupted] { return ask() != 0; };
  return &library;
}
