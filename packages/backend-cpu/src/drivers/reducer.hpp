// The driver of all reductions. It decides which elements make up each result, in which order
// memory is read, and by which thread. An operation defines how to accumulate a block of values,
// how to accumulate rows column by column, and how to merge two partial results
// (kernels/reduction/reduce.hpp).
//
// The operation sees only contiguous values. For any other input (strides, half precisions, complex
// numbers, a function applied first) a Load function fills a buffer in L1. So the driver is
// compiled once per instruction set, not once per operation and dtype. Work is split by sizes
// alone, never by the number of threads.
#pragma once

#include <cstdint>

#include "candelabra/backend.h"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace reduce {

constexpr int64_t block_length = 2048;   // most values in a block: two passes over it stay in L1
constexpr int64_t tile_columns = 512;    // columns that rows() accumulates together
constexpr int64_t largest_value = 16;    // bytes of a value
constexpr int64_t largest_partial = 32;  // bytes of a partial result

// complex elements as they are; as pairs of numbers reduced into one result
enum class Parts { Whole, Reduce };

// An operation as the driver sees it. Partial results and values are arrays of the operation's own
// types.
struct Steps {
  int64_t value_size, partial_size;
  bool ordered;  // rows must be accumulated in order
  // Sets `count` partial results to the identity element.
  void (*begin)(void* partial, int64_t count);
  // Accumulates a block of n values into each of `count` partial results. The blocks begin `pitch`
  // values apart. `first` is the index of their first value in the reduction.
  void (*blocks)(void* partial, int64_t count, const void* values, int64_t pitch, int64_t n, int64_t first);
  void (*rows)(void* partial, const void* values, int64_t stride, int64_t rows, int64_t columns, int64_t first);
  void (*merge)(void* partial, const void* later, int64_t count);
};

// Converts n elements, `stride` elements apart, to contiguous values of the operation.
using Load = void (*)(const char* from, int64_t stride, int64_t n, void* to, const void* context);

struct Source {
  const char* data;
  int64_t itemsize;     // bytes of an element as strides count them
  Load load = nullptr;  // null: memory holds values
  const void* context = nullptr;
};

struct Target {
  char* data;
  int64_t itemsize;
  // Writes `count` results, each of `length` elements, to memory.
  void (*store)(const Target& target, const void* results, int64_t count, int64_t length, char* to, int64_t stride);
  void (*typed_store)();  // type-erased function that `store` calls
  const void* context;
};

void run(const Steps& steps, const cb_tensor& in, const cb_tensor& out, const Source& source, const Target& target,
         Parts parts);

}  // namespace reduce
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
