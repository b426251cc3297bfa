// The backend's function table (candelabra/backend.h). Compiled for baseline x86-64, because it
// detects the processor's instruction sets before other code runs.
#include "candelabra/backend.h"

#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "candelabra/compile.h"
#include "compile/block_chain.hpp"
#include "compile/compiled_graph.hpp"
#include "families.hpp"
#include "gemm/choice_file.hpp"
#include "gemm/gemm.hpp"
#include "memory/allocator.hpp"
#include "memory/nontemporal.hpp"
#include "simd/denormals.hpp"
#include "simd/processor.hpp"
#include "threads/parallel.hpp"
#include "vendor/blas.hpp"
#include "vendor/packed_weights.hpp"

namespace candelabra::cpu {
namespace {

thread_local std::string last_message;

template <typename F>
int32_t guarded(F&& f) noexcept {
  try {
    f();
    return CB_OK;
  } catch (const Failure& error) {
    last_message = error.what();
    return error.status();
  } catch (const std::bad_alloc&) {
    last_message.clear();  // a message would need memory
    return CB_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    last_message = error.what();
    return CB_RUNTIME_ERROR;
  }
}

// A build with CANDELABRA_NATIVE has the loops of one instruction set.
constexpr bool compiled_avx2 = CANDELABRA_HAS_AVX2;
constexpr bool compiled_avx512 = CANDELABRA_HAS_AVX512;

bool avx2_is_forced() {
  const char* forced = std::getenv("CANDELABRA_CPU_ISA");
  return forced && std::strcmp(forced, "avx2") == 0;
}

bool use_avx512() {
  return compiled_avx512 && has_avx512() && !(compiled_avx2 && avx2_is_forced());
}

// Whether the library has loops that this processor runs.
bool runs_here() {
  return compiled_avx2 ? has_avx2() : compiled_avx512 && has_avx512();
}

int32_t initialize() {
  return guarded([] {
    if (!has_avx2())
      throw failure(CB_RUNTIME_ERROR,
                    "candelabra-backend-cpu needs a processor with AVX2 and FMA (Intel Haswell, AMD Zen, or newer)");
    if (!runs_here())
      throw failure(CB_RUNTIME_ERROR,
                    "this candelabra-backend-cpu was built with CANDELABRA_NATIVE=ON on a machine with AVX-512, which "
                    "this processor lacks: install it built without that option");
    if (!compiled_avx2 && avx2_is_forced())
      throw failure(CB_RUNTIME_ERROR,
                    "CANDELABRA_CPU_ISA=avx2: this candelabra-backend-cpu was built with CANDELABRA_NATIVE=ON and has "
                    "the loops for AVX-512 only");
    // malformed environment variables fail here
    cached_bytes_allowed(), kept_bytes_allowed(), check_streaming_choice();
    set_thread_count(default_thread_count());
    prepare_blas();
    // The core reports a fork to the child only if it went through Python. pthread_atfork covers
    // the others.
    static const int registered = pthread_atfork(
        [] {
          packed_weights_before_fork();
          allocator_before_fork();
        },
        [] {
          allocator_after_fork();
          packed_weights_after_fork();
        },
        [] {
          allocator_after_fork();
          packed_weights_after_fork();
          forked();
        });
    (void)registered;
  });
}

const char* last_error() {
  return last_message.c_str();
}

int32_t device_properties(int32_t, cb_device_properties* result) {
  std::snprintf(result->name, sizeof result->name, "%s", processor_name().c_str());
  result->total_memory = physical_memory();
  result->free_memory = available_memory();
  result->processor_count = default_thread_count();
  result->architecture = use_avx512() ? 512 : 256;
  return CB_OK;
}

int32_t allocate_memory(int32_t, cb_allocation* allocation) {
  return guarded([&] { allocation->address = allocate(allocation->bytes); });
}

void deallocate_memory(int32_t, void* memory, uint64_t bytes) {
  drop_packed_weights(memory, bytes);
  deallocate(memory, bytes);
}

int32_t copy_from_host(int32_t, const cb_memory* destination, const void* source, uint64_t bytes, void*) {
  std::memmove(destination->address, source, bytes);
  return CB_OK;
}

int32_t copy_to_host(int32_t, void* destination, const cb_memory* source, uint64_t bytes, void*) {
  std::memmove(destination, source->address, bytes);
  return CB_OK;
}

int32_t copy_within(int32_t, const cb_memory* destination, const cb_memory* source, uint64_t bytes, void*) {
  std::memmove(destination->address, source->address, bytes);
  return CB_OK;
}

int32_t statistics(int32_t, cb_memory_statistics* result) {
  memory_statistics(*result);
  return CB_OK;
}

int32_t limit_memory(int32_t, int64_t bytes) {
  set_memory_limit(bytes);
  return CB_OK;
}

int32_t change_thread_count(int32_t count) {
  return guarded([&] {
    if (count < 1) throw failure(CB_VALUE_ERROR, "set_num_threads expects a positive integer, but got %d", count);
    set_thread_count(count);
  });
}

const char* describe() {
  thread_local std::string text;  // autotuned choices are known only after first use
  text = std::string("loops: ") + (use_avx512() ? "AVX-512" : "AVX2") +
         (std::getenv("CANDELABRA_CPU_ISA") ? " (CANDELABRA_CPU_ISA)" : " (the widest this processor has)") +
         "\nthreads: " + std::to_string(thread_count()) + " (libgomp, shared with " + blas_name + " and oneDNN)\n" +
         describe_streaming() + describe_gemm();
  return text.c_str();
}

int32_t flush_denormal(int32_t on) {
  return guarded([&] { set_flush_denormal(on != 0); });
}

// The bodies do not throw.
void run_parallel(int64_t begin, int64_t end, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context) {
  parallel_for(end - begin, grain, [&](int64_t from, int64_t to) { body(context, begin + from, begin + to); });
}

int32_t claim_operators(const cb_graph* graph, uint8_t* claimed) {
  return guarded([&] { claim_graph(*graph, claimed); });
}

int32_t compile_operators(const cb_graph* graph, void** result) {
  return guarded([&] { *result = compile_graph(*graph).release(); });
}

int32_t execute_operators(void* compiled, const cb_graph_run* run) {
  return guarded([&] { static_cast<const CompiledGraph*>(compiled)->run(*run); });
}

void destroy_operators(void* compiled) {
  delete static_cast<CompiledGraph*>(compiled);
}

int32_t save_operators(void* compiled, void* buffer, uint64_t capacity, uint64_t* bytes) {
  return guarded([&] {
    const std::vector<std::byte> saved = saved_graph(*static_cast<const CompiledGraph*>(compiled));
    *bytes = saved.size();
    if (saved.size() <= capacity) std::memcpy(buffer, saved.data(), saved.size());
  });
}

int32_t load_operators(const cb_graph* graph, const void* saved, uint64_t bytes, void** result) {
  return guarded([&] { *result = load_graph(*graph, {static_cast<const std::byte*>(saved), bytes}).release(); });
}

const void* extension(const char* name) {
  static int32_t (*const flush)(int32_t) = flush_denormal;
  static const cb_compile compile{sizeof(cb_compile), run_parallel,      claim_operators, compile_operators,
                                  execute_operators,  destroy_operators, save_operators,  load_operators};
  if (std::strcmp(name, "flush_denormal") == 0) return &flush;
  return std::strcmp(name, "compile") == 0 ? &compile : nullptr;
}

const KernelTable& kernels() {
  static const KernelTable table = [] {
    KernelTable made;
    use_avx512() ? register_avx512(made) : register_avx2(made);
    return made;
  }();
  return table;
}

cb_backend make_table() {
  cb_backend table{};
  table.size = sizeof(cb_backend);
  table.abi_major = CB_ABI_MAJOR;
  table.abi_minor = CB_ABI_MINOR;
  table.device_type = "cpu";
  table.version = CANDELABRA_VERSION;
  table.capabilities = CB_CAP_HOST_MEMORY;
  // otherwise initialize() fails, and code that this processor cannot run must not run before that
  if (runs_here()) {
    kernels().write_to(table);
    use_kernels_in_chains(kernels().entries());
  }
  table.initialize = initialize;
  table.last_error = last_error;
  table.device_properties = device_properties;
  table.allocate = allocate_memory;
  table.deallocate = deallocate_memory;
  table.copy_from_host = copy_from_host;
  table.copy_to_host = copy_to_host;
  table.copy_within = copy_within;
  table.memory_statistics = statistics;
  table.reset_peak_statistics = [](int32_t) { reset_peak_statistics(); };
  table.empty_cache = [](int32_t) {
    drop_all_packed_weights();
    empty_cache();
  };
  table.set_memory_limit = limit_memory;
  table.thread_count = [] { return thread_count(); };
  table.set_thread_count = change_thread_count;
  table.after_fork_in_child = forked;
  table.extension = extension;
  table.describe = describe;
  return table;
}

}  // namespace
}  // namespace candelabra::cpu

extern "C" CB_EXPORT const cb_backend* candelabra_backend(const cb_host* host) {
  static const cb_backend table = candelabra::cpu::make_table();
  candelabra::cpu::set_choice_host(host, &table);
  return &table;
}
