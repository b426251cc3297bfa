#include <mkl_dfti.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "kernels.hpp"
#include "vendor/fourier.hpp"

namespace candelabra::cpu::fourier {
namespace {

void check(MKL_LONG status) {
  if (DftiErrorClass(status, DFTI_MEMORY_ERROR)) throw failure(CB_OUT_OF_MEMORY, "MKL FFT ran out of memory");
  if (status != DFTI_NO_ERROR) throw failure(CB_RUNTIME_ERROR, "MKL FFT error: %s", DftiErrorMessage(status));
}

struct FreeDescriptor {
  void operator()(DFTI_DESCRIPTOR* descriptor) const { DftiFreeDescriptor(&descriptor); }
};
using Descriptor = std::unique_ptr<DFTI_DESCRIPTOR, FreeDescriptor>;

// The committed descriptor of a plan, cached per thread, since committing costs as much as many
// short transforms. MKL names the two sides by domain: the forward domain is the input of a forward
// transform and the output of a backward one.
DFTI_DESCRIPTOR* descriptor_for(const Plan& plan) {
  constexpr size_t capacity = 64;
  thread_local std::map<Plan, Descriptor> cache;
  if (auto found = cache.find(plan); found != cache.end()) return found->second.get();
  if (cache.size() >= capacity) cache.clear();
  DFTI_DESCRIPTOR* raw = nullptr;
  const auto integer = [](int64_t value) { return static_cast<MKL_LONG>(value); };
  const auto precision = plan.single ? DFTI_SINGLE : DFTI_DOUBLE;
  const auto domain = plan.kind == Kind::Complex ? DFTI_COMPLEX : DFTI_REAL;
  std::array<MKL_LONG, most_dims> sizes;
  std::transform(plan.sizes.begin(), plan.sizes.end(), sizes.begin(), integer);
  check(plan.rank == 1 ? (DftiCreateDescriptor)(&raw, precision, domain, integer(1), sizes[0])
                       : (DftiCreateDescriptor)(&raw, precision, domain, integer(plan.rank), sizes.data()));
  Descriptor made(raw);
  check(DftiSetValue(raw, DFTI_PLACEMENT, plan.in_place ? DFTI_INPLACE : DFTI_NOT_INPLACE));
  if (plan.kind != Kind::Complex) check(DftiSetValue(raw, DFTI_CONJUGATE_EVEN_STORAGE, DFTI_COMPLEX_COMPLEX));
  const Layout& forward_side = plan.forward ? plan.in : plan.out;
  const Layout& backward_side = plan.forward ? plan.out : plan.in;
  // The first is an offset
  std::array<MKL_LONG, most_dims + 1> forward_strides{}, backward_strides{};
  std::transform(forward_side.strides.begin(), forward_side.strides.end(), forward_strides.begin() + 1, integer);
  std::transform(backward_side.strides.begin(), backward_side.strides.end(), backward_strides.begin() + 1, integer);
  check(DftiSetValue(raw, DFTI_FWD_STRIDES, forward_strides.data()));
  check(DftiSetValue(raw, DFTI_BWD_STRIDES, backward_strides.data()));
  if (plan.batch > 1) {
    check(DftiSetValue(raw, DFTI_NUMBER_OF_TRANSFORMS, integer(plan.batch)));
    check(DftiSetValue(raw, DFTI_FWD_DISTANCE, integer(forward_side.distance)));
    check(DftiSetValue(raw, DFTI_BWD_DISTANCE, integer(backward_side.distance)));
  }
  check(DftiSetValue(raw, DFTI_FORWARD_SCALE, plan.scale));
  check(DftiSetValue(raw, DFTI_BACKWARD_SCALE, plan.scale));
  if (!plan.threaded) check(DftiSetValue(raw, DFTI_THREAD_LIMIT, integer(1)));
  check(DftiCommitDescriptor(raw));
  return cache.emplace(plan, std::move(made)).first->second.get();
}

}  // namespace

void transform(const Plan& plan, const void* in, void* out) {
  DFTI_DESCRIPTOR* descriptor = descriptor_for(plan);
  void* unchanged = const_cast<void*>(in);  // MKL does not write to it
  if (plan.in_place)
    check(plan.forward ? DftiComputeForward(descriptor, out) : DftiComputeBackward(descriptor, out));
  else
    check(plan.forward ? DftiComputeForward(descriptor, unchanged, out)
                       : DftiComputeBackward(descriptor, unchanged, out));
}

}  // namespace candelabra::cpu::fourier
