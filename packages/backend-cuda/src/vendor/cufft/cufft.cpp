#include "vendor/cufft/cufft.hpp"

#include <algorithm>
#include <atomic>
#include <compare>
#include <map>
#include <memory>

#include "runtime/error.hpp"
#include "runtime/launch.hpp"
#include "runtime/settings.hpp"
#include "vendor/libraries.hpp"

namespace candelabra::cuda {
namespace {

struct CuFft {
  Library library{"cuFFT", "libcufft.so.12", "nvidia-cufft"};
  Function<decltype(cufftCreate)> create{library, "cufftCreate"};
  Function<decltype(cufftDestroy)> destroy{library, "cufftDestroy"};
  Function<decltype(cufftSetAutoAllocation)> set_auto_allocation{library, "cufftSetAutoAllocation"};
  Function<decltype(cufftMakePlanMany64)> make_plan_many{library, "cufftMakePlanMany64"};
  Function<decltype(cufftSetStream)> set_stream{library, "cufftSetStream"};
  Function<decltype(cufftSetWorkArea)> set_work_area{library, "cufftSetWorkArea"};
  Function<decltype(cufftExecC2C)> complex_single{library, "cufftExecC2C"};
  Function<decltype(cufftExecZ2Z)> complex_double{library, "cufftExecZ2Z"};
  Function<decltype(cufftExecR2C)> to_complex_single{library, "cufftExecR2C"};
  Function<decltype(cufftExecD2Z)> to_complex_double{library, "cufftExecD2Z"};
  Function<decltype(cufftExecC2R)> to_real_single{library, "cufftExecC2R"};
  Function<decltype(cufftExecZ2D)> to_real_double{library, "cufftExecZ2D"};
};
const CuFft& cufft() {
  static const CuFft table;
  return table;
}

const char* text_of(cufftResult status) {
  switch (status) {
    case CUFFT_INVALID_PLAN:
      return "CUFFT_INVALID_PLAN";
    case CUFFT_ALLOC_FAILED:
      return "CUFFT_ALLOC_FAILED";
    case CUFFT_INVALID_VALUE:
      return "CUFFT_INVALID_VALUE";
    case CUFFT_INTERNAL_ERROR:
      return "CUFFT_INTERNAL_ERROR";
    case CUFFT_EXEC_FAILED:
      return "CUFFT_EXEC_FAILED";
    case CUFFT_SETUP_FAILED:
      return "CUFFT_SETUP_FAILED";
    case CUFFT_INVALID_SIZE:
      return "CUFFT_INVALID_SIZE";
    case CUFFT_NOT_SUPPORTED:
      return "CUFFT_NOT_SUPPORTED";
    default:
      return "";
  }
}

void check(cufftResult status, const char* function) {
  if (status != CUFFT_SUCCESS) [[unlikely]]
    raise_library("cuFFT", function, static_cast<int>(status), text_of(status));
}

std::atomic<int> plan_count{0};
std::atomic<int> clearings{0};  // a thread with an older count frees its plans

struct Plan {
  cufftHandle handle = 0;
  size_t workspace = 0;

  Plan() {
    check(cufft().create(&handle), "cufftCreate");
    ++plan_count;
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    cufft().destroy(handle);
    --plan_count;
  }
};

// One cache per thread: a plan has one stream and one workspace at a time.
Plan& plan_for(int device, const FourierTransform& what) {
  using Key = std::pair<int, FourierTransform>;
  const auto most = static_cast<size_t>(std::max(1, settings().cufft_plans.load()));
  thread_local std::map<Key, std::unique_ptr<Plan>> kept;
  thread_local int cleared = 0;
  if (const int asked = clearings; cleared != asked) {
    kept.clear();
    cleared = asked;
  }
  const Key key{device, what};
  if (auto found = kept.find(key); found != kept.end()) return *found->second;
  if (kept.size() >= most) kept.clear();
  auto plan = std::make_unique<Plan>();
  check(cufft().set_auto_allocation(plan->handle, 0), "cufftSetAutoAllocation");
  std::array<long long, 3> sizes{};
  for (int d = 0; d < what.rank; ++d) sizes[static_cast<size_t>(d)] = what.sizes[static_cast<size_t>(d)];
  check(cufft().make_plan_many(plan->handle, what.rank, sizes.data(), nullptr, 1, 0, nullptr, 1, 0, what.type,
                               what.batches, &plan->workspace),
        "cufftMakePlanMany64");
  return *kept.emplace(key, std::move(plan)).first->second;
}

}  // namespace

int transform_plans() {
  return plan_count;
}

void clear_transform_plans() {
  ++clearings;
}

void transform(const Call& call, const FourierTransform& what, void* in, void* out, bool forward) {
  const CuFft& fft = cufft();
  const Plan& plan = plan_for(call.device(), what);
  const Workspace workspace(call, plan.workspace);
  check(fft.set_stream(plan.handle, call.stream()), "cufftSetStream");
  check(fft.set_work_area(plan.handle, workspace.data()), "cufftSetWorkArea");
  const int direction = forward ? CUFFT_FORWARD : CUFFT_INVERSE;
  switch (what.type) {
    case CUFFT_C2C:
      return check(
          fft.complex_single(plan.handle, static_cast<cufftComplex*>(in), static_cast<cufftComplex*>(out), direction),
          "cufftExecC2C");
    case CUFFT_Z2Z:
      return check(fft.complex_double(plan.handle, static_cast<cufftDoubleComplex*>(in),
                                      static_cast<cufftDoubleComplex*>(out), direction),
                   "cufftExecZ2Z");
    case CUFFT_R2C:
      return check(fft.to_complex_single(plan.handle, static_cast<cufftReal*>(in), static_cast<cufftComplex*>(out)),
                   "cufftExecR2C");
    case CUFFT_D2Z:
      return check(
          fft.to_complex_double(plan.handle, static_cast<cufftDoubleReal*>(in), static_cast<cufftDoubleComplex*>(out)),
          "cufftExecD2Z");
    case CUFFT_C2R:
      return check(fft.to_real_single(plan.handle, static_cast<cufftComplex*>(in), static_cast<cufftReal*>(out)),
                   "cufftExecC2R");
    case CUFFT_Z2D:
      return check(
          fft.to_real_double(plan.handle, static_cast<cufftDoubleComplex*>(in), static_cast<cufftDoubleReal*>(out)),
          "cufftExecZ2D");
  }
}

}  // namespace candelabra::cuda
