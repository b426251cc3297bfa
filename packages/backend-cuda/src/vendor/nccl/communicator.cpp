#include "vendor/nccl/communicator.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <thread>

#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/fault_messages.hpp"

namespace candelabra::cuda {

const Nccl& nccl() {
  static const Nccl table;
  return table;
}

namespace {

using std::chrono::milliseconds;

// The thread that watches all communicators with pending work.
class Watch {
 public:
  void add(const std::shared_ptr<Communicator>& communicator) {
    const std::lock_guard lock(mutex_);
    watched_.push_back(communicator);
    if (!running_) {
      std::thread([this] { run(); }).detach();
      // At the end of the process the thread must sleep: CUDA's functions are gone before it.
      std::atexit([] { watch().stop(); });
      running_ = true;
    }
  }
  void wake() {
    const std::lock_guard lock(mutex_);
    busy_ = true;
    changed_.notify_one();
  }
  static Watch& watch() {
    static auto* made = new Watch();
    return *made;
  }

 private:
  void stop() {
    stopped_ = true;
    // The process ends even if aborting a communicator hangs.
    if (looking_.try_lock_for(std::chrono::seconds(5))) looking_.unlock();
  }
  void run() {
    // Querying events is allowed while another thread captures a graph.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    for (;;) {
      std::vector<std::shared_ptr<Communicator>> all;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return busy_; });
        std::erase_if(watched_, [&](const std::weak_ptr<Communicator>& each) {
          auto communicator = each.lock();
          if (communicator) all.push_back(std::move(communicator));
          return each.expired();
        });
        busy_ = false;
      }
      bool something = false;
      {
        const std::lock_guard lock(looking_);
        if (stopped_) return;
        for (const auto& each : all) something |= each->look();
      }
      all.clear();
      if (!something) continue;
      std::this_thread::sleep_for(milliseconds(50));
      const std::lock_guard lock(mutex_);
      busy_ = true;
    }
  }

  std::mutex mutex_;
  std::timed_mutex looking_;
  std::condition_variable changed_;
  std::vector<std::weak_ptr<Communicator>> watched_;
  bool running_ = false, busy_ = false;
  std::atomic<bool> stopped_ = false;
};

// The calls of a thread since group_begin.
struct Member {
  std::shared_ptr<Communicator> communicator;
  std::string what;
  cudaStream_t stream;
};
struct Group {
  int depth = 0;
  std::vector<Member> members;
};
thread_local Group group;

std::string text_of(ncclResult_t result, ncclComm_t comm) {
  std::string text = nccl().error_string(result);
  const char* more = nccl().last_error(comm);
  if (more && *more) text += std::string("; ") + more;
  return text;
}

}  // namespace

Communicator::Use::Use(Communicator& of) : lock_(of.mutex_), before_(-1) {
  if (in_forked_child())
    throw failure(CB_RUNTIME_ERROR, "a communicator of the process that this one was forked from cannot be used here");
  if (!of.comm_)
    throw failure(CB_RUNTIME_ERROR, "%s",
                  of.failure_.empty() ? (of.title() + " is not there any more").c_str() : of.failure_.c_str());
  check(cudaGetDevice(&before_), "asking for the device");
  if (before_ != of.device_) check(cudaSetDevice(of.device_), "changing the device");
}
Communicator::Use::~Use() {
  int now = -1;
  if (before_ >= 0 && cudaGetDevice(&now) == cudaSuccess && now != before_) cudaSetDevice(before_);
}

Communicator::Communicator(int device, int64_t timeout_ms, const char* name)
    : device_(device), timeout_ms_(timeout_ms), name_(name ? name : "") {}

Communicator::~Communicator() {
  // Not finished: does not wait for other ranks.
  if (comm_ && !in_forked_child()) nccl().abort(comm_);
  release_events();
}

void Communicator::release_events() {
  if (in_forked_child()) return;
  for (const Pending& each : pending_) cudaEventDestroy(each.event);
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  pending_.clear();
  events_.clear();
}

std::string Communicator::title() const {
  std::string text = "communicator";
  if (!name_.empty()) text += " '" + name_ + "'";
  if (ranks_ > 0) text += " (rank " + std::to_string(rank_) + " of " + std::to_string(ranks_) + ")";
  return text;
}

Communicator::Clock::time_point Communicator::deadline() const {
  return timeout_ms_ > 0 ? Clock::now() + milliseconds(timeout_ms_) : Clock::time_point::max();
}

std::shared_ptr<Communicator> Communicator::create(int device, const ncclUniqueId& id, int rank, int ranks,
                                                   int64_t timeout_ms, const char* name) {
  if (ranks < 1 || rank < 0 || rank >= ranks)
    throw failure(CB_VALUE_ERROR, "communicator: rank %d is not among the %d ranks", rank, ranks);
  const auto made = std::make_shared<Communicator>(device, timeout_ms, name);
  made->rank_ = rank;
  made->ranks_ = ranks;
  const DeviceGuard guard(device);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (name) config.commName = made->name_.c_str();
  const std::lock_guard lock(made->mutex_);
  const ncclResult_t result = nccl().init(&made->comm_, ranks, id, rank, &config);
  made->settle(result, "making it", made->deadline());
  Watch::watch().add(made);
  return made;
}

std::shared_ptr<Communicator> Communicator::split(int color, int key, int64_t timeout_ms, const char* name) {
  const auto made = std::make_shared<Communicator>(device_, timeout_ms, name);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (name) config.commName = made->name_.c_str();
  const Use use(*this);
  const ncclResult_t result = nccl().split(comm_, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &made->comm_, &config);
  settle(result, "split", deadline());
  if (!made->comm_) return nullptr;
  // The new communicator is ready when NCCL says so.
  const std::lock_guard lock(made->mutex_);
  ncclResult_t state = ncclSuccess;
  nccl().async_error(made->comm_, &state);
  made->settle(state, "making it", made->deadline());
  if (nccl().rank(made->comm_, &made->rank_) != ncclSuccess || nccl().count(made->comm_, &made->ranks_) != ncclSuccess)
    throw failure(CB_RUNTIME_ERROR, "NCCL: the rank in the new communicator is not known");
  Watch::watch().add(made);
  return made;
}

// Requires the lock. Waits for the pending call, and throws its failure.
void Communicator::settle(ncclResult_t result, const char* what, Clock::time_point deadline) {
  auto pause = std::chrono::microseconds(10);
  while (result == ncclInProgress && comm_) {
    if (nccl().async_error(comm_, &result) != ncclSuccess) result = ncclInternalError;
    if (result != ncclInProgress) break;
    if (Clock::now() > deadline) {
      const std::string reason = title() + ": " + what + " timed out after " + std::to_string(timeout_ms_) +
                                 " ms: other ranks did not take part";
      end(reason);
      throw Failure(CB_RUNTIME_ERROR, reason);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(2000));
  }
  if (result == ncclSuccess) return;
  // Invalid arguments leave the communicator usable.
  if (result == ncclInvalidArgument || result == ncclInvalidUsage)
    if (ranks_ > 0 && comm_ && std::string_view(what) != "making it")
      throw failure(CB_RUNTIME_ERROR, "%s: %s: %s", title().c_str(), what, text_of(result, comm_).c_str());
  const std::string reason = title() + ": " + what + " failed: " + text_of(result, comm_);
  end(reason);
  throw Failure(CB_RUNTIME_ERROR, reason);
}

// Requires the lock. Ends the communicator and keeps the reason for later callers.
void Communicator::end(const std::string& reason) {
  if (!comm_) return;
  failure_ = reason;
  const ncclComm_t comm = std::exchange(comm_, nullptr);
  nccl().abort(comm);
  release_events();
}

bool Communicator::joins_group(const char* what, cudaStream_t stream) {
  if (group.depth == 0) return false;
  group.members.push_back({shared_from_this(), what, stream});
  return true;
}

// Requires the lock. Records an event behind the work just queued.
void Communicator::watch(const char* what, cudaStream_t stream) {
  ++count_;
  if (is_capturing(stream)) return;  // the work runs when the graph is replayed
  cudaEvent_t event = nullptr;
  if (!events_.empty()) {
    event = events_.back();
    events_.pop_back();
  } else {
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  }
  const cudaError_t error = cudaEventRecord(event, stream);
  if (error != cudaSuccess) {
    events_.push_back(event);
    check(error, "recording an event");
  }
  const bool first = pending_.empty();
  pending_.push_back({what, count_, event, deadline()});
  if (first) Watch::watch().wake();
}

std::string Communicator::waited_for(const std::string& what, uint64_t number) const {
  return what + " (collective " + std::to_string(number) + " of this rank)";
}

std::string Communicator::trouble(Clock::time_point now) {
  std::string found;
  std::erase_if(pending_, [&](const Pending& each) {
    if (!found.empty()) return false;
    const cudaError_t state = cudaEventQuery(each.event);
    if (state == cudaSuccess) {
      events_.push_back(each.event);
      return true;
    }
    cudaGetLastError();
    if (state != cudaErrorNotReady)
      found = waited_for(each.what, each.number) + " failed: " + cudaGetErrorString(state);
    else if (now > each.deadline)
      found = waited_for(each.what, each.number) + " timed out after " + std::to_string(timeout_ms_) +
              " ms: other ranks did not take part, or the device is behind";
    return false;
  });
  if (found.empty()) {
    ncclResult_t state = ncclSuccess;
    if (nccl().async_error(comm_, &state) != ncclSuccess) state = ncclInternalError;
    if (state != ncclSuccess && state != ncclInProgress) found = "failed: " + text_of(state, comm_);
  }
  return found.empty() ? found : title() + ": " + found;
}

bool Communicator::look() {
  // Whoever holds the lock checks for failures itself.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return true;
  if (!comm_ || pending_.empty()) return false;
  try {
    const DeviceGuard guard(device_);
    const std::string found = trouble(Clock::now());
    if (!found.empty()) {
      end(found);
      report_failure(device_, found);
    }
  } catch (const Failure& error) {
    end(title() + ": " + error.what());
    report_failure(device_, failure_);
  }
  return comm_ && !pending_.empty();
}

void Communicator::query() {
  const Use use(*this);
  const std::string found = trouble(Clock::now());
  if (found.empty()) return;
  end(found);
  throw Failure(CB_RUNTIME_ERROR, found);
}

void Communicator::wait(int64_t timeout_ms) {
  const auto until = timeout_ms > 0 ? Clock::now() + milliseconds(timeout_ms) : Clock::time_point::max();
  auto pause = std::chrono::microseconds(20);
  for (;;) {
    {
      const Use use(*this);
      const std::string found = trouble(Clock::now());
      if (!found.empty()) {
        end(found);
        throw Failure(CB_RUNTIME_ERROR, found);
      }
      if (pending_.empty()) return;
      if (Clock::now() > until) {
        const Pending& first = pending_.front();
        const std::string reason = title() + ": " + waited_for(first.what, first.number) + " was not done after " +
                                   std::to_string(timeout_ms) + " ms";
        end(reason);
        throw Failure(CB_RUNTIME_ERROR, reason);
      }
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(2000));
  }
}

void Communicator::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (!comm_) return;  // ended already
  }
  const Use use(*this);
  settle(nccl().finalize(comm_), "finishing", deadline());
  const ncclComm_t comm = std::exchange(comm_, nullptr);
  failure_ = title() + " was closed";
  nccl().destroy(comm);
  release_events();
}

void Communicator::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (in_forked_child() || !comm_) return;
  const DeviceGuard guard(device_);
  end(title() + ": " + reason);
}

void Communicator::group_begin() {
  const ncclResult_t result = nccl().group_start();
  if (result != ncclSuccess)
    throw failure(CB_RUNTIME_ERROR, "NCCL: ncclGroupStart failed: %s", nccl().error_string(result));
  ++group.depth;
}

void Communicator::group_end() {
  if (group.depth == 0) throw failure(CB_RUNTIME_ERROR, "communicators: a group ends that was not begun");
  if (--group.depth > 0) {
    const ncclResult_t result = nccl().group_end();
    if (result != ncclSuccess && result != ncclInProgress)
      throw failure(CB_RUNTIME_ERROR, "NCCL: ncclGroupEnd failed: %s", nccl().error_string(result));
    return;
  }
  const std::vector<Member> members = std::exchange(group.members, {});
  std::vector<Communicator*> all;
  for (const Member& each : members) all.push_back(each.communicator.get());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<std::unique_lock<std::recursive_mutex>> locks;
  for (Communicator* each : all) locks.emplace_back(each->mutex_);
  const ncclResult_t result = nccl().group_end();
  if (all.empty()) {
    if (result != ncclSuccess && result != ncclInProgress)
      throw failure(CB_RUNTIME_ERROR, "NCCL: ncclGroupEnd failed: %s", nccl().error_string(result));
    return;
  }
  for (Communicator* each : all) {
    const Use use(*each);
    each->settle(result, "a group", each->deadline());
  }
  for (const Member& each : members) {
    const Use use(*each.communicator);
    each.communicator->watch(each.what.c_str(), each.stream);
  }
}

}  // namespace candelabra::cuda
