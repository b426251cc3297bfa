#include "runtime/sync_debug.hpp"

#include <atomic>

#include "kernels.hpp"
#include "runtime/settings.hpp"

namespace candelabra::cuda {

namespace {

constexpr const char* said = "called a synchronizing CUDA operation";
std::atomic<void (*)(const char*)> warner{nullptr};

}  // namespace

void about_to_wait() {
  const int mode = settings().sync_debug_mode.load(std::memory_order_relaxed);
  if (mode == 0) [[likely]]
    return;
  if (mode > 1) throw failure(CB_RUNTIME_ERROR, "%s", said);
  if (void (*say)(const char*) = warner.load()) say(said);
}

void set_warner(void (*given)(const char*)) {
  warner = given;
}

}  // namespace candelabra::cuda
