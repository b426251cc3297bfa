// The functions of NCCL that the backend calls, between processes of one machine. Ranks exchange
// data through files in a folder that the communicator's id names (in CANDELABRA_EMULATION_NCCL, or
// /dev/shm).
//
// As in the library, a collective runs on the device: the device waits for the other ranks, and the
// host continues. With CANDELABRA_EMULATION_NCCL_NOTICES=1, ranks notice that another one has died.
#include <nccl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "emulation.hpp"
#include "halves.hpp"

namespace fs = std::filesystem;
using emulation::queue;
using emulation::queue_when;

namespace {

using Bytes = std::vector<char>;

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text && *text && std::strcmp(text, "0") != 0;
}

// Files appear atomically.
void write_file(const fs::path& path, const Bytes& bytes) {
  const fs::path unfinished = path.string() + ".part";
  std::ofstream(unfinished, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::error_code error;
  fs::rename(unfinished, path, error);
}
Bytes read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}
bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}
void take_away(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
}

// State that the members of a communicator share with queued work, which may outlive it.
struct State {
  fs::path folder;
  int rank = 0, ranks = 0, device = 0;
  bool blocking = true;
  std::atomic<bool> aborted = false;
  std::atomic<int> error = ncclSuccess;
  std::atomic<int> under_way = 0;  // queued collectives that are not done
  std::set<cudaStream_t> streams;
  uint64_t collectives = 0, splits = 0;
  std::map<std::pair<int, int>, uint64_t> messages;  // by sender and receiver

  fs::path file(const std::string& name) const { return folder / name; }
  bool all_here() const {
    for (int each = 0; each < ranks; ++each)
      if (!is_there(file("rank." + std::to_string(each)))) return false;
    return true;
  }
  // Whether to stop waiting.
  bool is_over() {
    if (aborted || error != ncclSuccess) return true;
    static const bool notices = is_set("CANDELABRA_EMULATION_NCCL_NOTICES");
    if (!notices) return false;
    for (int each = 0; each < ranks; ++each) {
      const Bytes text = read_file(file("rank." + std::to_string(each)));
      if (text.empty()) continue;
      const int process = std::atoi(std::string(text.begin(), text.end()).c_str());
      const Bytes state = read_file("/proc/" + std::to_string(process) + "/stat");
      const std::string line(state.begin(), state.end());
      const size_t at = line.rfind(") ");
      if (line.empty() || (at != std::string::npos && line[at + 2] == 'Z')) {
        error = ncclRemoteError;
        return true;
      }
    }
    return false;
  }
};

struct Split {
  int color, key;
  uint64_t number;
  ncclComm_t* result;
  bool blocking;
};

}  // namespace

struct ncclComm {
  std::shared_ptr<State> state;
  bool told = true;  // whether the caller was told that the last call is done
  bool finalized = false;
  std::unique_ptr<Split> split;
};

namespace {

int64_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    default:
      return 8;
  }
}

template <typename T, typename C = T>
void reduce_as(const std::vector<Bytes>& parts, size_t at, size_t count, ncclRedOp_t operation, void* result) {
  auto* to = static_cast<T*>(result);
  for (size_t i = 0; i < count; ++i) {
    C total{};
    for (size_t rank = 0; rank < parts.size(); ++rank) {
      T raw;
      std::memcpy(&raw, parts[rank].data() + at + i * sizeof(T), sizeof raw);
      const auto value = static_cast<C>(raw);
      if (rank == 0)
        total = value;
      else if (operation == ncclProd)
        total = static_cast<C>(total * value);
      else if (operation == ncclMin)
        total = std::min(total, value);
      else if (operation == ncclMax)
        total = std::max(total, value);
      else
        total = static_cast<C>(total + value);
    }
    if (operation == ncclAvg) total = static_cast<C>(total / static_cast<C>(parts.size()));
    to[i] = static_cast<T>(total);
  }
}
void reduce_parts(const std::vector<Bytes>& parts, size_t at, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                  void* result) {
  switch (type) {
    case ncclInt8:
      return reduce_as<int8_t>(parts, at, count, operation, result);
    case ncclUint8:
      return reduce_as<uint8_t>(parts, at, count, operation, result);
    case ncclInt32:
      return reduce_as<int32_t>(parts, at, count, operation, result);
    case ncclUint32:
      return reduce_as<uint32_t>(parts, at, count, operation, result);
    case ncclInt64:
      return reduce_as<int64_t>(parts, at, count, operation, result);
    case ncclUint64:
      return reduce_as<uint64_t>(parts, at, count, operation, result);
    case ncclFloat16:
      return reduce_as<emulation::Half, float>(parts, at, count, operation, result);
    case ncclBfloat16:
      return reduce_as<emulation::BFloat16, float>(parts, at, count, operation, result);
    case ncclFloat32:
      return reduce_as<float>(parts, at, count, operation, result);
    default:
      return reduce_as<double>(parts, at, count, operation, result);
  }
}

// ---- queued work

enum class Kind { AllReduce, Broadcast, Reduce, AllGather, ReduceScatter, Send, Receive };

struct Operation {
  ncclComm_t comm;
  Kind kind;
  const void* send;
  void* receive;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t operation;
  int peer;
  cudaStream_t stream;
};

// Arguments on which all ranks must agree.
struct Agreement {
  Kind kind;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t operation;
  int root;
};

// Sets the communicator's device as the current one. The library does so where a group of several
// ends.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    cudaGetDevice(&before_);
    cudaSetDevice(device);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaSetDevice(before_); }

 private:
  int before_ = 0;
};

ncclResult_t result_of(cudaError_t error) {
  return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t queue_collective(const Operation& o) {
  const std::shared_ptr<State> state = o.comm->state;
  const OnDevice scope(state->device);
  const std::string name = "collective." + std::to_string(++state->collectives) + ".";
  const std::string before = "collective." + std::to_string(state->collectives - 1) + ".";
  const size_t bytes = o.count * static_cast<size_t>(size_of(o.type));
  const bool sends = o.kind != Kind::Broadcast || o.peer == state->rank;
  const size_t parts = o.kind == Kind::ReduceScatter ? static_cast<size_t>(state->ranks) : 1;
  const Agreement agreement{o.kind, o.count, o.type, o.operation,
                            o.kind == Kind::Broadcast || o.kind == Kind::Reduce ? o.peer : 0};
  ++state->under_way;
  state->streams.insert(o.stream);
  cudaError_t error = queue(o.stream, [=] {
    Bytes mine(sizeof agreement + (sends ? bytes * parts : 0));
    std::memset(mine.data(), 0, sizeof agreement);
    std::memcpy(mine.data(), &agreement, sizeof agreement);
    if (sends) std::memcpy(mine.data() + sizeof agreement, o.send, bytes * parts);
    if (!state->is_over()) write_file(state->file(name + std::to_string(state->rank)), mine);
  });
  if (error != cudaSuccess) return result_of(error);
  const auto ready = [=] {
    if (state->is_over()) return true;
    for (int each = 0; each < state->ranks; ++each)
      if (!is_there(state->file(name + std::to_string(each)))) return false;
    return true;
  };
  error = queue_when(o.stream, ready, [=] {
    --state->under_way;
    if (state->is_over()) return;
    std::vector<Bytes> all;
    for (int each = 0; each < state->ranks; ++each) {
      all.push_back(read_file(state->file(name + std::to_string(each))));
      Agreement theirs{};
      std::memcpy(&theirs, all.back().data(), std::min(sizeof theirs, all.back().size()));
      if (theirs.kind != agreement.kind || theirs.count != agreement.count || theirs.type != agreement.type ||
          theirs.operation != agreement.operation || theirs.root != agreement.root) {
        state->error = ncclInvalidUsage;
        return;
      }
    }
    // A rank that is here has read the files before.
    take_away(state->file(before + std::to_string(state->rank)));
    constexpr size_t data = sizeof(Agreement);
    const auto own = static_cast<size_t>(state->rank);
    switch (o.kind) {
      case Kind::AllReduce:
        return reduce_parts(all, data, o.count, o.type, o.operation, o.receive);
      case Kind::Reduce:
        if (state->rank == o.peer) reduce_parts(all, data, o.count, o.type, o.operation, o.receive);
        return;
      case Kind::ReduceScatter:
        return reduce_parts(all, data + own * bytes, o.count, o.type, o.operation, o.receive);
      case Kind::Broadcast:
        std::memcpy(o.receive, all[static_cast<size_t>(o.peer)].data() + data, bytes);
        return;
      default:
        for (size_t each = 0; each < all.size(); ++each)
          std::memcpy(static_cast<char*>(o.receive) + each * bytes, all[each].data() + data, bytes);
    }
  });
  return result_of(error);
}

fs::path message(const State& state, int from, int to, uint64_t number) {
  return state.file("message." + std::to_string(from) + "." + std::to_string(to) + "." + std::to_string(number));
}

// Sends of a group are all started before any receive waits.
ncclResult_t queue_messages(const std::vector<Operation>& all) {
  std::vector<std::pair<const Operation*, fs::path>> under_way;
  for (const bool sending : {true, false})
    for (const Operation& o : all) {
      if (o.kind != (sending ? Kind::Send : Kind::Receive)) continue;
      const std::shared_ptr<State> state = o.comm->state;
      const int from = sending ? state->rank : o.peer, to = sending ? o.peer : state->rank;
      // Messages of a rank to itself are counted on both sides.
      const fs::path path = message(*state, from, to, ++state->messages[{sending ? from : from + (1 << 20), to}]);
      under_way.emplace_back(&o, path);
      if (!sending) continue;
      const OnDevice scope(state->device);
      const size_t bytes = o.count * static_cast<size_t>(size_of(o.type));
      const cudaError_t error = queue(o.stream, [=] {
        if (state->is_over()) return;
        write_file(path, Bytes(static_cast<const char*>(o.send), static_cast<const char*>(o.send) + bytes));
      });
      if (error != cudaSuccess) return result_of(error);
    }
  for (const bool sending : {false, true})
    for (const auto& [operation, path] : under_way) {
      const Operation o = *operation;
      if (o.kind != (sending ? Kind::Send : Kind::Receive)) continue;
      const std::shared_ptr<State> state = o.comm->state;
      const OnDevice scope(state->device);
      const size_t bytes = o.count * static_cast<size_t>(size_of(o.type));
      ++state->under_way;
      state->streams.insert(o.stream);
      const fs::path place = path;
      const cudaError_t error = queue_when(
          o.stream, [=] { return state->is_over() || is_there(place) != sending; },
          [=] {
            --state->under_way;
            if (sending || state->is_over()) return;
            const Bytes received = read_file(place);
            if (received.size() != bytes) {
              state->error = ncclInvalidUsage;
              return;
            }
            std::memcpy(o.receive, received.data(), bytes);
            take_away(place);
          });
      if (error != cudaSuccess) return result_of(error);
    }
  return ncclSuccess;
}

struct Group {
  int depth = 0;
  std::vector<Operation> operations;
};
thread_local Group group;
thread_local std::string last_text;

ncclResult_t invalid_argument(const char* text) {
  last_text = text;
  return ncclInvalidArgument;
}

ncclResult_t done(const std::vector<Operation>& all) {
  bool all_blocking = true;
  for (const Operation& each : all) {
    if (each.comm->state->blocking) continue;
    each.comm->told = false;
    all_blocking = false;
  }
  return all_blocking ? ncclSuccess : ncclInProgress;
}

ncclResult_t enter(const Operation& o) {
  if (!o.comm || o.comm->finalized) return invalid_argument("the communicator is not there");
  if (!o.comm->told) return invalid_argument("the call before is still in progress");
  if (o.peer < 0 || o.peer >= o.comm->state->ranks) return invalid_argument("there is no such rank");
  int device = -1;
  cudaGetDevice(&device);
  if (device != o.comm->state->device) return invalid_argument("the communicator is one of another device");
  if (group.depth > 0) {
    group.operations.push_back(o);
    return ncclSuccess;
  }
  const ncclResult_t result =
      o.kind == Kind::Send || o.kind == Kind::Receive ? queue_messages({o}) : queue_collective(o);
  return result == ncclSuccess ? done({o}) : result;
}

std::shared_ptr<State> new_state(const fs::path& folder, int rank, int ranks, bool blocking) {
  auto state = std::make_shared<State>();
  state->folder = folder;
  state->rank = rank;
  state->ranks = ranks;
  state->blocking = blocking;
  cudaGetDevice(&state->device);
  std::error_code error;
  fs::create_directories(folder, error);
  const std::string process = std::to_string(getpid());
  write_file(state->file("rank." + std::to_string(rank)), Bytes(process.begin(), process.end()));
  return state;
}

// Creates the new communicator when all ranks have announced their color; returns whether it did.
bool try_split(ncclComm& comm) {
  const Split& wanted = *comm.split;
  const State& state = *comm.state;
  const std::string name = "split." + std::to_string(wanted.number) + ".";
  std::vector<std::array<int, 3>> members;  // key, rank, color
  for (int each = 0; each < state.ranks; ++each) {
    const Bytes bytes = read_file(state.file(name + std::to_string(each)));
    if (bytes.size() != 2 * sizeof(int)) return false;
    int said[2];
    std::memcpy(said, bytes.data(), sizeof said);
    if (said[0] == wanted.color) members.push_back({said[1], each, said[0]});
  }
  *wanted.result = nullptr;
  if (wanted.color != NCCL_SPLIT_NOCOLOR) {
    std::sort(members.begin(), members.end());
    const auto own =
        std::find_if(members.begin(), members.end(), [&](const auto& each) { return each[1] == state.rank; });
    *wanted.result = new ncclComm{
        new_state(state.file(name + "color." + std::to_string(wanted.color)), static_cast<int>(own - members.begin()),
                  static_cast<int>(members.size()), wanted.blocking),
        true, false, nullptr};
  }
  comm.split.reset();
  return true;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    default:
      return "internal error";
  }
}
const char* ncclGetLastError(ncclComm_t) {
  return last_text.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const char* chosen = std::getenv("CANDELABRA_EMULATION_NCCL");
  std::string folder = std::string(chosen && *chosen ? chosen : "/dev/shm") + "/emulated_nccl_XXXXXX";
  if (folder.size() >= sizeof id->internal || !mkdtemp(folder.data())) return ncclSystemError;
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->internal, folder.c_str(), folder.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  *comm = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks || !is_there(id.internal)) return invalid_argument("rank, or id");
  *comm = new ncclComm{new_state(id.internal, rank, ranks, !config || config->blocking != 0), true, false, nullptr};
  if (!(*comm)->state->blocking) {
    (*comm)->told = false;
    return ncclInProgress;
  }
  while (!(*comm)->state->all_here()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* result, ncclConfig_t* config) {
  if (!comm || !comm->told || (color < 0 && color != NCCL_SPLIT_NOCOLOR))
    return invalid_argument("color, or a communicator that is busy");
  *result = nullptr;
  const int said[2] = {color, key};
  Bytes bytes(sizeof said);
  std::memcpy(bytes.data(), said, sizeof said);
  const uint64_t number = ++comm->state->splits;
  comm->split = std::make_unique<Split>(Split{color, key, number, result, !config || config->blocking != 0});
  write_file(comm->state->file("split." + std::to_string(number) + "." + std::to_string(comm->state->rank)), bytes);
  comm->told = false;
  if (!comm->state->blocking) return ncclInProgress;
  while (!try_split(*comm)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  comm->told = true;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  State& state = *comm->state;
  *result = static_cast<ncclResult_t>(state.error.load());
  if (*result != ncclSuccess) return ncclSuccess;
  if (!state.all_here() || (comm->split && !try_split(*comm))) {
    *result = ncclInProgress;
  } else if (comm->finalized && state.under_way > 0) {
    const OnDevice scope(state.device);
    for (const cudaStream_t each : state.streams) cudaStreamQuery(each);
    *result = state.under_way > 0 ? ncclInProgress : ncclSuccess;
  } else if (!comm->told) {  // InProgress once more, to find callers that do not poll
    comm->told = true;
    *result = ncclInProgress;
  }
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  comm->finalized = true;
  if (!comm->state->blocking) return ncclInProgress;
  ncclResult_t result = ncclInProgress;
  while (result == ncclInProgress) ncclCommGetAsyncError(comm, &result);
  return result;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm->finalized) return invalid_argument("a communicator has to be finalized first");
  const std::shared_ptr<State> state = comm->state;
  write_file(state->file("gone." + std::to_string(state->rank)), {});
  bool all = true;
  for (int each = 0; each < state->ranks; ++each) all &= is_there(state->file("gone." + std::to_string(each)));
  if (all) take_away(state->folder);
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->state->aborted = true;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  *rank = comm->state->rank;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  *count = comm->state->ranks;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t comm, cudaStream_t stream) {
  return enter({comm, Kind::AllReduce, send, receive, count, type, operation, 0, stream});
}
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return enter({comm, Kind::Broadcast, send, receive, count, type, ncclSum, root, stream});
}
ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return enter({comm, Kind::Reduce, send, receive, count, type, operation, root, stream});
}
ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return enter({comm, Kind::AllGather, send, receive, count, type, ncclSum, 0, stream});
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return enter({comm, Kind::ReduceScatter, send, receive, count, type, operation, 0, stream});
}
ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enter({comm, Kind::Send, send, nullptr, count, type, ncclSum, peer, stream});
}
ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enter({comm, Kind::Receive, nullptr, receive, count, type, ncclSum, peer, stream});
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return invalid_argument("a group that was not begun");
  if (--group.depth > 0) return ncclSuccess;
  const std::vector<Operation> all = std::exchange(group.operations, {});
  std::vector<Operation> messages;
  for (const Operation& each : all) {
    if (each.kind == Kind::Send || each.kind == Kind::Receive) {
      messages.push_back(each);
    } else if (const ncclResult_t result = queue_collective(each); result != ncclSuccess) {
      return result;
    }
  }
  const ncclResult_t result = queue_messages(messages);
  return result == ncclSuccess ? done(all) : result;
}

}  // extern "C"
