#include "vendor/nccl/collectives.hpp"

#include <cstring>
#include <map>

#include "dtypes.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "vendor/nccl/communicator.hpp"

namespace candelabra::cuda {
namespace {

// Communicators by the handle that the core holds. An unknown handle is ignored.
std::mutex mutex;
std::map<void*, std::shared_ptr<Communicator>>& communicators() {
  static auto* all = new std::map<void*, std::shared_ptr<Communicator>>();
  return *all;
}
std::shared_ptr<Communicator> find(void* address) {
  const std::lock_guard lock(mutex);
  const auto found = communicators().find(address);
  if (found == communicators().end()) throw failure(CB_RUNTIME_ERROR, "the communicator is not there any more");
  return found->second;
}
void* enter(std::shared_ptr<Communicator> made) {
  const std::lock_guard lock(mutex);
  void* const address = made.get();
  communicators()[address] = std::move(made);
  return address;
}

cudaStream_t as_stream(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

struct Elements {
  ncclDataType_t type;
  size_t count;
};

// Data that is only moved is sent as some type of the same size.
Elements moved(uint64_t count, int32_t dtype) {
  switch (dtype) {
    case CB_FLOAT16:
      return {ncclFloat16, count};
    case CB_BFLOAT16:
      return {ncclBfloat16, count};
    case CB_FLOAT32:
      return {ncclFloat32, count};
    case CB_FLOAT64:
      return {ncclFloat64, count};
    default:
      return {ncclUint8, count * static_cast<size_t>(itemsize(dtype))};
  }
}

struct Reduced : Elements {
  ncclRedOp_t operation;
};

Reduced reduced(const char* what, uint64_t count, int32_t dtype, int32_t reduction) {
  ncclRedOp_t operation = ncclSum;
  switch (reduction) {
    case CB_REDUCE_SUM:
      operation = ncclSum;
      break;
    case CB_REDUCE_PRODUCT:
      operation = ncclProd;
      break;
    case CB_REDUCE_MIN:
      operation = ncclMin;
      break;
    case CB_REDUCE_MAX:
      operation = ncclMax;
      break;
    case CB_REDUCE_MEAN:
      operation = ncclAvg;
      break;
    default:
      throw failure(CB_VALUE_ERROR, "%s: there is no reduction %d", what, reduction);
  }
  switch (dtype) {
    case CB_BOOL:  // or, and
      if (operation == ncclAvg) throw failure(CB_NOT_IMPLEMENTED, "%s: bools have no mean", what);
      return {{ncclUint8, count}, operation == ncclSum || operation == ncclMax ? ncclMax : ncclMin};
    case CB_UINT8:
      return {{ncclUint8, count}, operation};
    case CB_INT8:
      return {{ncclInt8, count}, operation};
    case CB_INT32:
      return {{ncclInt32, count}, operation};
    case CB_INT64:
      return {{ncclInt64, count}, operation};
    case CB_UINT32:
      return {{ncclUint32, count}, operation};
    case CB_UINT64:
      return {{ncclUint64, count}, operation};
    case CB_FLOAT16:
      return {{ncclFloat16, count}, operation};
    case CB_BFLOAT16:
      return {{ncclBfloat16, count}, operation};
    case CB_FLOAT32:
      return {{ncclFloat32, count}, operation};
    case CB_FLOAT64:
      return {{ncclFloat64, count}, operation};
    case CB_COMPLEX64:
    case CB_COMPLEX128:  // two real numbers
      if (operation != ncclSum && operation != ncclAvg)
        throw failure(CB_NOT_IMPLEMENTED, "%s: complex numbers have sum and mean only", what);
      return {{dtype == CB_COMPLEX64 ? ncclFloat32 : ncclFloat64, 2 * count}, operation};
    default:
      throw failure(CB_NOT_IMPLEMENTED, "%s: NCCL does not reduce integers of 16 bits; convert them to int32", what);
  }
}

void check_rank(const char* what, const Communicator& communicator, int32_t rank) {
  if (rank < 0 || rank >= communicator.ranks())
    throw failure(CB_VALUE_ERROR, "%s: rank %d is not among the %d ranks", what, rank, communicator.ranks());
}

// Each rank sends one part to each rank, including itself.
void exchange_parts(Communicator& communicator, const void* send, void* receive, uint64_t count, int32_t dtype,
                    cudaStream_t stream) {
  const Elements part = moved(count, dtype);
  const auto bytes = static_cast<size_t>(count) * static_cast<size_t>(itemsize(dtype));
  Communicator::group_begin();
  try {
    communicator.run("all_to_all", stream, [&](ncclComm_t comm) {
      ncclResult_t result = ncclSuccess;
      for (int peer = 0; peer < communicator.ranks() && (result == ncclSuccess || result == ncclInProgress); ++peer) {
        const size_t at = static_cast<size_t>(peer) * bytes;
        result = nccl().send(static_cast<const std::byte*>(send) + at, part.count, part.type, peer, comm, stream);
        if (result == ncclSuccess || result == ncclInProgress)
          result = nccl().receive(static_cast<std::byte*>(receive) + at, part.count, part.type, peer, comm, stream);
      }
      return result;
    });
  } catch (...) {
    try {
      Communicator::group_end();
    } catch (const Failure&) {  // the first failure is reported
    }
    throw;
  }
  Communicator::group_end();
}

void add_communicator_functions(cb_collectives& table) {
  table.version = [](int32_t* result) {
    return guarded([&] {
      int version = 0;
      if (nccl().version(&version) != ncclSuccess) throw failure(CB_RUNTIME_ERROR, "NCCL: its version is not known");
      *result = version;
    });
  };
  table.unique_id = [](uint8_t* id) {
    return guarded([&] {
      ncclUniqueId made{};
      static_assert(sizeof made == 128);
      const ncclResult_t result = nccl().unique_id(&made);
      if (result != ncclSuccess)
        throw failure(CB_RUNTIME_ERROR, "NCCL: ncclGetUniqueId failed: %s", nccl().error_string(result));
      std::memcpy(id, &made, sizeof made);
    });
  };
  table.create = [](int32_t device, const uint8_t* id, int32_t rank, int32_t ranks,
                    const cb_communicator_options* options, void** communicator) {
    return guarded([&] {
      ncclUniqueId given{};
      std::memcpy(&given, id, sizeof given);
      *communicator = enter(Communicator::create(device, given, rank, ranks, options ? options->timeout_ms : 0,
                                                 options ? options->name : nullptr));
    });
  };
  table.split = [](void* communicator, int32_t color, int32_t key, const cb_communicator_options* options,
                   void** child) {
    return guarded([&] {
      auto made =
          find(communicator)->split(color, key, options ? options->timeout_ms : 0, options ? options->name : nullptr);
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
      if (!in_forked_child()) found->finish();
    });
  };
  table.abort = [](void* communicator) { return guarded([&] { find(communicator)->abort("was aborted"); }); };
  table.query = [](void* communicator) { return guarded([&] { find(communicator)->query(); }); };
  table.wait = [](void* communicator, int64_t timeout_ms) {
    return guarded([&] { find(communicator)->wait(timeout_ms); });
  };
}

void add_collectives(cb_collectives& table) {
  table.all_reduce = [](void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype,
                        int32_t reduction, void* stream) {
    return guarded([&] {
      const Reduced all = reduced("all_reduce", count, dtype, reduction);
      find(communicator)->run("all_reduce", as_stream(stream), [&](ncclComm_t comm) {
        return nccl().all_reduce(send, receive, all.count, all.type, all.operation, comm, as_stream(stream));
      });
    });
  };
  table.broadcast = [](void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype, int32_t root,
                       void* stream) {
    return guarded([&] {
      const auto found = find(communicator);
      check_rank("broadcast", *found, root);
      const Elements all = moved(count, dtype);
      found->run("broadcast", as_stream(stream), [&](ncclComm_t comm) {
        return nccl().broadcast(send, receive, all.count, all.type, root, comm, as_stream(stream));
      });
    });
  };
  table.reduce = [](void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype,
                    int32_t reduction, int32_t root, void* stream) {
    return guarded([&] {
      const auto found = find(communicator);
      check_rank("reduce", *found, root);
      const Reduced all = reduced("reduce", count, dtype, reduction);
      found->run("reduce", as_stream(stream), [&](ncclComm_t comm) {
        return nccl().reduce(send, receive, all.count, all.type, all.operation, root, comm, as_stream(stream));
      });
    });
  };
  table.all_gather = [](void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype,
                        void* stream) {
    return guarded([&] {
      const Elements part = moved(count, dtype);
      find(communicator)->run("all_gather", as_stream(stream), [&](ncclComm_t comm) {
        return nccl().all_gather(send, receive, part.count, part.type, comm, as_stream(stream));
      });
    });
  };
  table.reduce_scatter = [](void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype,
                            int32_t reduction, void* stream) {
    return guarded([&] {
      const Reduced part = reduced("reduce_scatter", count, dtype, reduction);
      find(communicator)->run("reduce_scatter", as_stream(stream), [&](ncclComm_t comm) {
        return nccl().reduce_scatter(send, receive, part.count, part.type, part.operation, comm, as_stream(stream));
      });
    });
  };
  table.all_to_all = [](void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype,
                        void* stream) {
    return guarded([&] { exchange_parts(*find(communicator), send, receive, count, dtype, as_stream(stream)); });
  };
}

void add_point_to_point_functions(cb_collectives& table) {
  table.send = [](void* communicator, const void* data, uint64_t count, int32_t dtype, int32_t peer, void* stream) {
    return guarded([&] {
      const auto found = find(communicator);
      check_rank("send", *found, peer);
      const Elements all = moved(count, dtype);
      found->run("send", as_stream(stream), [&](ncclComm_t comm) {
        return nccl().send(data, all.count, all.type, peer, comm, as_stream(stream));
      });
    });
  };
  table.receive = [](void* communicator, void* data, uint64_t count, int32_t dtype, int32_t peer, void* stream) {
    return guarded([&] {
      const auto found = find(communicator);
      check_rank("receive", *found, peer);
      const Elements all = moved(count, dtype);
      found->run("receive", as_stream(stream), [&](ncclComm_t comm) {
        return nccl().receive(data, all.count, all.type, peer, comm, as_stream(stream));
      });
    });
  };
  table.group_begin = [] { return guarded([] { Communicator::group_begin(); }); };
  table.group_end = [] { return guarded([] { Communicator::group_end(); }); };
}

cb_collectives make_table() {
  cb_collectives table{};
  table.size = sizeof table;
  table.name = "nccl";
  add_communicator_functions(table);
  add_collectives(table);
  add_point_to_point_functions(table);
  return table;
}

}  // namespace

const cb_collectives* collectives() {
  static const cb_collectives table = make_table();
  return &table;
}

}  // namespace candelabra::cuda
