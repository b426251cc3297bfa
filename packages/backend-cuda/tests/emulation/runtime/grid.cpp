// Blocks of threads. The threads of a block run one after the other, each until it waits for
// others. Then it is suspended on its own stack and the next one runs. When all wait, the threads
// of complete barriers continue. If no barrier is complete, the kernel would hang on a device, and
// the emulation fails.
//
// CANDELABRA_EMULATION_ORDER=backward or shuffled changes the order of blocks and threads, which
// must not change results without races.
#include <dlfcn.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <unordered_map>
#include <vector>

#include "machine.hpp"

extern "C" {
uint3 emulated_thread_index, emulated_block_index;
dim3 emulated_block_size, emulated_grid_size;
uint64_t emulated_block_number = 0;
}

namespace emulation {
namespace {

constexpr int most_threads = 1024;
constexpr size_t stack_bytes = 512 * 1024;

// ---- stacks

#if defined(__x86_64__)

extern "C" void emulation_switch(void** save, void* load);
asm(R"(
.text
.globl emulation_switch
.hidden emulation_switch
.type emulation_switch, @function
emulation_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulation_switch, .-emulation_switch
)");

struct Context {
  void* at = nullptr;
};
void make_context(Context& context, char* stack, void (*entry)()) {
  // Below the return address the stack is aligned to 16 bytes.
  auto** top = reinterpret_cast<void**>(stack + stack_bytes - 72);
  top[0] = nullptr;
  top[-1] = reinterpret_cast<void*>(entry);
  for (int i = 2; i <= 7; ++i) top[-i] = nullptr;
  context.at = top - 7;
}
void change(Context& from, Context& to) {
  emulation_switch(&from.at, to.at);
}

#else

struct Context {
  ucontext_t at;
};
void make_context(Context& context, char* stack, void (*entry)()) {
  getcontext(&context.at);
  context.at.uc_stack.ss_sp = stack;
  context.at.uc_stack.ss_size = stack_bytes;
  context.at.uc_link = nullptr;
  makecontext(&context.at, entry, 0);
}
void change(Context& from, Context& to) {
  swapcontext(&from.at, &to.at);
}

#endif

struct Fibre {
  Context context;
  char* stack = nullptr;
};

// ---- one block

enum class State : uint8_t { Fresh, Ready, AtBlock, AtWarp, Done };

struct Thread {
  State state;
  Vote vote;
  int fibre;
  unsigned mask, lanes;
  int predicate, result;
  uint64_t value;
  Site site;
};

enum class Order { Forward, Backward, Shuffled };

struct Runner {
  Order order = Order::Forward;
  std::mt19937 random{12345};
  const Launch* launch = nullptr;
  void* arguments[64] = {};
  int count = 0, started = 0, done = 0;
  int current = 0, running = 0;
  Thread threads[most_threads] = {};
  uint64_t published[most_threads] = {};
  int turns[most_threads] = {};  // thread that starts as the i-th
  int ready[most_threads] = {};
  int first_ready = 0, ready_count = 0;
  std::vector<Fibre> fibres;
  std::vector<int> idle;
  Context main;
  bool trapped = false;
  DeviceFailure failure{};
  char* shared_end = nullptr;
  void* shared = nullptr;
};
Runner& runner() {
  static Runner* one = [] {
    auto* made = new Runner();
    if (const char* text = std::getenv("CANDELABRA_EMULATION_ORDER")) {
      if (!std::strcmp(text, "backward")) made->order = Order::Backward;
      if (!std::strcmp(text, "shuffled")) made->order = Order::Shuffled;
    }
    made->fibres.reserve(most_threads + 1);
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), whole = (shared_at_most + page - 1) / page * page;
    char* memory =
        static_cast<char*>(mmap(nullptr, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory + whole, page, PROT_NONE);
    made->shared_end = memory + whole;
    return made;
  }();
  return *one;
}

void become(Runner& r, int thread) {
  r.current = thread;
  const auto t = static_cast<unsigned>(thread);
  const dim3& size = emulated_block_size;
  emulated_thread_index = {t % size.x, t / size.x % size.y, t / (size.x * size.y)};
}

void fibre_main() {
  Runner& r = runner();
  for (;;) {
    while (r.started < r.count) {
      const int thread = r.turns[r.started++];
      become(r, thread);
      r.launch->signature->call(r.launch->kernel, r.arguments);
      r.threads[r.current].state = State::Done;
      ++r.done;
    }
    const int own = r.running;
    r.idle.push_back(own);
    change(r.fibres[static_cast<size_t>(own)].context, r.main);
  }
}

int idle_fibre(Runner& r) {
  if (!r.idle.empty()) {
    const int found = r.idle.back();
    r.idle.pop_back();
    return found;
  }
  Fibre fibre;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  fibre.stack = static_cast<char*>(mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0));
  mprotect(fibre.stack, page, PROT_NONE);
  make_context(fibre.context, fibre.stack, fibre_main);
  r.fibres.push_back(fibre);
  return static_cast<int>(r.fibres.size()) - 1;
}

// After a failure, suspended fibres are never resumed.
void forget_fibres(Runner& r) {
  r.idle.clear();
  for (size_t i = 0; i < r.fibres.size(); ++i) {
    make_context(r.fibres[i].context, r.fibres[i].stack, fibre_main);
    r.idle.push_back(static_cast<int>(i));
  }
}

std::string in_words(const uint3& i) {
  return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
}
std::string in_words(const Site& site) {
  return std::string(site.file) + ":" + std::to_string(site.line);
}
// The source line of a code address.
std::string place_of(const void* code) {
  Dl_info found{};
  if (!dladdr(code, &found) || !found.dli_fname) return "?";
  const auto offset =
      static_cast<unsigned long>(static_cast<const char*>(code) - static_cast<const char*>(found.dli_fbase));
  char command[4096];
  std::snprintf(command, sizeof command, "addr2line -Cfpe '%s' 0x%lx 2>/dev/null | head -c 600", found.dli_fname,
                offset);
  std::string text;
  if (FILE* pipe = popen(command, "r")) {
    char line[700];
    while (std::fgets(line, sizeof line, pipe)) text += line;
    pclose(pipe);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.empty()) {
    std::snprintf(command, sizeof command, "%s+0x%lx", found.dli_fname, offset);
    text = command;
  }
  return text;
}

[[noreturn]] void fail(Runner& r, cudaError_t error, const std::string& what) {
  throw DeviceFailure{error, what + "; block " + in_words(emulated_block_index) + " of a grid of " +
                                 std::to_string(emulated_grid_size.x) + " x " + std::to_string(emulated_grid_size.y) +
                                 " x " + std::to_string(emulated_grid_size.z) + " with " + std::to_string(r.count) +
                                 " threads, kernel " + place_of(r.launch->kernel)};
}

void make_ready(Runner& r, int thread) {
  r.threads[thread].state = State::Ready;
  r.ready[r.ready_count++] = thread;
}

bool is_same(const Site& a, const Site& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

// Releases the block if all its threads wait at one barrier.
bool release_block(Runner& r) {
  const Thread* first = nullptr;
  int count = 0;
  for (int t = 0; t < r.count; ++t) {
    const Thread& thread = r.threads[t];
    if (thread.state == State::Done) continue;
    if (thread.state != State::AtBlock) return false;
    if (!first) first = &thread;
    if (thread.vote != first->vote || !is_same(thread.site, first->site))
      fail(r, cudaErrorLaunchFailure,
           "threads of a block wait at different barriers, " + in_words(first->site) + " and " + in_words(thread.site));
    count += thread.predicate != 0;
  }
  const int waiting = r.count - r.done;
  const int result = first->vote == Vote::Count ? count : first->vote == Vote::And ? count == waiting : count != 0;
  for (int i = 0; i < r.count; ++i) {
    const int t = r.turns[i];
    if (r.threads[t].state != State::AtBlock) continue;
    r.threads[t].result = result;
    make_ready(r, t);
  }
  return true;
}

// Releases warps in which all threads of a mask wait.
bool release_warps(Runner& r) {
  bool any = false;
  for (int first = 0; first < r.count; first += 32) {
    const int lanes = std::min(32, r.count - first);
    unsigned there = 0;
    for (int lane = 0; lane < lanes; ++lane) there |= (r.threads[first + lane].state != State::Done ? 1u : 0u) << lane;
    for (int lane = 0; lane < lanes; ++lane) {
      const Thread& thread = r.threads[first + lane];
      if (thread.state != State::AtWarp) continue;
      const unsigned wanted = thread.mask & there;
      if (!(wanted >> lane & 1))
        fail(r, cudaErrorLaunchFailure, "a lane is not in the mask that it gives, at " + in_words(thread.site));
      bool complete = true;
      for (int other = 0; other < lanes; ++other) {
        if (!(wanted >> other & 1)) continue;
        const Thread& mate = r.threads[first + other];
        if (mate.state != State::AtWarp || mate.mask != thread.mask || !is_same(mate.site, thread.site))
          complete = false;
      }
      if (!complete) continue;
      any = true;
      for (int other = 0; other < lanes; ++other) {
        if (!(wanted >> other & 1)) continue;
        r.published[first + other] = r.threads[first + other].value;
        r.threads[first + other].lanes = wanted;
        make_ready(r, first + other);
      }
    }
  }
  if (any && r.order != Order::Forward) {
    if (r.order == Order::Backward)
      std::reverse(r.ready, r.ready + r.ready_count);
    else
      std::shuffle(r.ready, r.ready + r.ready_count, r.random);
  }
  return any;
}

void explain_hang(Runner& r) {
  const Thread *at_block = nullptr, *at_warp = nullptr;
  int in_block = 0, in_warp = 0;
  for (int t = 0; t < r.count; ++t) {
    if (r.threads[t].state == State::AtBlock) at_block = &r.threads[t], ++in_block;
    if (r.threads[t].state == State::AtWarp) at_warp = &r.threads[t], ++in_warp;
  }
  std::string text = "the block would hang: ";
  if (at_block) text += std::to_string(in_block) + " threads wait at the barrier " + in_words(at_block->site) + ", ";
  if (at_warp) {
    char mask[16];
    std::snprintf(mask, sizeof mask, "%08x", at_warp->mask);
    text += std::to_string(in_warp) + " wait for lanes that do not come at " + in_words(at_warp->site) + " (mask " +
            mask + "), ";
  }
  fail(r, cudaErrorLaunchTimeout, text + std::to_string(r.done) + " have ended");
}

void run_block(Runner& r) {
  r.started = r.done = r.first_ready = r.ready_count = 0;
  for (int t = 0; t < r.count; ++t) r.threads[t].state = State::Fresh;
  if (r.order == Order::Shuffled) std::shuffle(r.turns, r.turns + r.count, r.random);
  if (r.launch->shared) std::memset(r.shared, 0xf7, static_cast<size_t>(r.shared_end - static_cast<char*>(r.shared)));
  while (r.done < r.count) {
    if (r.first_ready < r.ready_count) {
      const int thread = r.ready[r.first_ready++];
      if (r.first_ready == r.ready_count) r.first_ready = r.ready_count = 0;
      r.running = r.threads[thread].fibre;
      become(r, thread);
    } else if (r.started < r.count) {
      r.running = idle_fibre(r);
    } else {
      if (!release_block(r) && !release_warps(r)) explain_hang(r);
      continue;
    }
    change(r.main, r.fibres[static_cast<size_t>(r.running)].context);
    if (r.trapped) {
      r.trapped = false;
      fail(r, r.failure.error, r.failure.text);
    }
  }
}

void wait_for_others(Runner& r, State state) {
  Thread& own = r.threads[r.current];
  own.state = state;
  own.fibre = r.running;
  change(r.fibres[static_cast<size_t>(r.running)].context, r.main);
}

// ---- invalid accesses

thread_local bool in_kernel = false;
sigjmp_buf escape;
struct Wild {
  int signal, kind;
  void* address;
  void* code;
} wild;
struct sigaction before[NSIG];

void on_signal(int signal, siginfo_t* info, void* context) {
  if (in_kernel) {
    void* code = nullptr;
#if defined(__x86_64__)
    code = reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#else
    (void)context;
#endif
    wild = {signal, info->si_code, info->si_addr, code};
    siglongjmp(escape, 1);
  }
  // The instruction is repeated under the previous handler.
  sigaction(signal, &before[signal], nullptr);
}

void take_signals() {
  thread_local std::unique_ptr<char[]> stack;
  if (!stack) {
    constexpr size_t bytes = 64 * 1024;
    stack_t current{};
    sigaltstack(nullptr, &current);
    stack = std::make_unique<char[]>(bytes);
    if (current.ss_flags & SS_DISABLE) {
      stack_t own{};
      own.ss_sp = stack.get();
      own.ss_size = bytes;
      sigaltstack(&own, nullptr);
    }
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE}) {
    struct sigaction now{};
    sigaction(signal, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal) continue;
    before[signal] = now;
    struct sigaction own{};
    own.sa_sigaction = on_signal;
    own.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&own.sa_mask);
    sigaction(signal, &own, nullptr);
  }
}

std::unordered_map<const void*, const Signature*>& signatures() {
  static auto* all = new std::unordered_map<const void*, const Signature*>();
  return *all;
}
std::unordered_map<const void*, size_t>& shared_limits() {
  static auto* all = new std::unordered_map<const void*, size_t>();
  return *all;
}

}  // namespace

void run_grid(const Launch& launch) {
  Runner& r = runner();
  take_signals();
  r.launch = &launch;
  for (size_t i = 0; i < launch.signature->count; ++i) r.arguments[i] = nullptr;
  char* at = launch.arguments.get();
  for (size_t i = 0; i < launch.signature->count; ++i) {
    r.arguments[i] = at;
    at += (launch.signature->sizes[i] + 15) / 16 * 16;
  }
  emulated_block_size = launch.threads;
  emulated_grid_size = launch.blocks;
  r.count = static_cast<int>(launch.threads.x * launch.threads.y * launch.threads.z);
  for (int t = 0; t < r.count; ++t) r.turns[t] = r.order == Order::Backward ? r.count - 1 - t : t;
  r.shared = r.shared_end - (launch.shared + 15) / 16 * 16;
  const uint64_t blocks = static_cast<uint64_t>(launch.blocks.x) * launch.blocks.y * launch.blocks.z;
  const uint64_t start = r.order == Order::Shuffled ? r.random() % blocks : 0;
  const DeviceAccess access;
  const KernelAccess reach(running_device());
  if (sigsetjmp(escape, 1) == 0) {
    in_kernel = true;
    try {
      for (uint64_t i = 0; i < blocks; ++i) {
        const uint64_t b = r.order == Order::Backward ? blocks - 1 - i : (i + start) % blocks;
        emulated_block_index = {static_cast<unsigned>(b % launch.blocks.x),
                                static_cast<unsigned>(b / launch.blocks.x % launch.blocks.y),
                                static_cast<unsigned>(b / launch.blocks.x / launch.blocks.y)};
        ++emulated_block_number;
        run_block(r);
      }
    } catch (...) {
      in_kernel = false;
      forget_fibres(r);
      throw;
    }
    in_kernel = false;
  } else {
    in_kernel = false;
    forget_fibres(r);
    const std::string who = ", thread " + in_words(emulated_thread_index) + ", at " + place_of(wild.code);
    if (wild.signal == SIGFPE) fail(r, cudaErrorIllegalInstruction, "an integer is divided by zero" + who);
    if (wild.signal == SIGSEGV && wild.kind == SI_KERNEL)
      fail(r, cudaErrorMisalignedAddress, "an access to an address that is not aligned, or none at all" + who);
    const auto* at = static_cast<const char*>(wild.address);
    if (at >= r.shared_end && at < r.shared_end + 4096)
      fail(r, cudaErrorIllegalAddress,
           "an access beyond the " + std::to_string(launch.shared) + " bytes of dynamic shared memory" + who);
    fail(r, cudaErrorIllegalAddress, "an access to " + describe_address(at) + who);
  }
}

const void* register_kernel(const void* kernel, const Signature* signature) {
  const Lock lock(machine_mutex());
  signatures()[kernel] = signature;
  return kernel;
}

int sync_block(Vote vote, int predicate, Site site) {
  Runner& r = runner();
  Thread& own = r.threads[r.current];
  own.vote = vote;
  own.predicate = predicate;
  own.site = site;
  wait_for_others(r, State::AtBlock);
  return own.result;
}

Exchanged exchange(unsigned mask, uint64_t value, Site site) {
  Runner& r = runner();
  const int thread = r.current;
  Thread& own = r.threads[thread];
  own.mask = mask;
  own.value = value;
  own.site = site;
  wait_for_others(r, State::AtWarp);
  return {r.published + thread / 32 * 32, own.lanes, static_cast<unsigned>(thread % 32)};
}

void trap(const char* text, Site site) {
  Runner& r = runner();
  r.trapped = true;
  r.failure = {cudaErrorLaunchFailure,
               std::string(text) + " at " + in_words(site) + ", thread " + in_words(emulated_thread_index)};
  change(r.fibres[static_cast<size_t>(r.running)].context, r.main);
  std::abort();
}

void* dynamic_shared() {
  return runner().shared;
}

}  // namespace emulation

using namespace emulation;

extern "C" {

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const Lock lock(machine_mutex());
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<size_t>(value) > shared_at_most) return failed(cudaErrorInvalidValue);
  shared_limits()[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 blocks, dim3 threads, void** arguments, size_t shared,
                             cudaStream_t stream) {
  const Lock lock(machine_mutex());
  const auto found = signatures().find(kernel);
  if (found == signatures().end()) return failed(cudaErrorInvalidDeviceFunction);
  const auto within = [](const dim3& size, unsigned x, unsigned y, unsigned z) {
    return size.x >= 1 && size.y >= 1 && size.z >= 1 && size.x <= x && size.y <= y && size.z <= z;
  };
  const auto limit = shared_limits().find(kernel);
  if (!within(blocks, 0x7fffffffu, 65535, 65535) || !within(threads, 1024, 1024, 64) ||
      static_cast<uint64_t>(threads.x) * threads.y * threads.z > 1024 ||
      shared > (limit == shared_limits().end() ? shared_by_default : std::max(limit->second, shared_by_default)))
    return failed(cudaErrorInvalidConfiguration, "emulation: grid " + std::to_string(blocks.x) + " x " +
                                                     std::to_string(blocks.y) + " x " + std::to_string(blocks.z) +
                                                     ", block " + std::to_string(threads.x) + " x " +
                                                     std::to_string(threads.y) + " x " + std::to_string(threads.z) +
                                                     ", " + std::to_string(shared) + " bytes of dynamic shared memory");
  const Signature* signature = found->second;
  size_t bytes = 16;
  for (size_t i = 0; i < signature->count; ++i) bytes += (signature->sizes[i] + 15) / 16 * 16;
  Launch launch{kernel, signature, blocks, threads, shared, nullptr};
  launch.arguments =
      std::shared_ptr<char[]>(static_cast<char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)), std::free);
  char* at = launch.arguments.get();
  for (size_t i = 0; i < signature->count; ++i) {
    std::memcpy(at, arguments[i], signature->sizes[i]);
    at += (signature->sizes[i] + 15) / 16 * 16;
  }
  // CANDELABRA_EMULATION_FAIL_LAUNCH=N: the N-th kernel of this process accesses invalid memory.
  static const char* chosen = std::getenv("CANDELABRA_EMULATION_FAIL_LAUNCH");
  static int64_t count = 0;
  if (chosen && ++count == std::atoll(chosen))
    return queue(stream, [] { throw DeviceFailure{cudaErrorIllegalAddress, "a failure that was asked for"}; });
  return queue(stream, [launch = std::move(launch)] { run_grid(launch); });
}

}  // extern "C"
