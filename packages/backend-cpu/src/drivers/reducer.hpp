// The driver of all reductions: which elements make up each result, in which order memory is read, and who reads it. An operation
// says how a block of values is taken up, how rows are taken up column by column and how two partial results become one
// (../kernels/reduce.hpp). It only ever sees values side by side; whatever lies in memory otherwise (strides, half precisions,
// complex numbers, a function applied first) is brought into a buffer in the first cache level by a Load function. So the driver is
// compiled once for each instruction set, and not once per operation and dtype. Results are split by sizes alone, never by the
// number of threads.
#pragma once

#include <cstdint>

#include "candelabra/backend.h"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace reduce {

constexpr int64_t block_length = 2048;   // values that a block holds at most: two passes over it stay in the first cache level
constexpr int64_t tile_columns = 512;    // columns taken up together by rows()
constexpr int64_t largest_value = 16;    // bytes of a value
constexpr int64_t largest_partial = 32;  // and of a partial result

enum class Parts { Whole, Reduce };  // complex elements as they are; as pairs of numbers into one result

// An operation as the driver sees it. Partial results and values are arrays of the operation's own types.
struct Steps {
  int64_t value_size, partial_size;
  bool ordered;  // rows must be taken up one after the other
  // Makes `count` partial results of nothing.
  void (*begin)(void* partial, int64_t count);
  // Takes up a block of n values in each of `count` partial results; the blocks begin `pitch` values apart.
  void (*blocks)(void* partial, int64_t count, const void* values, int64_t pitch, int64_t n, int64_t first);
  void (*rows)(void* partial, const void* values, int64_t stride, int64_t rows, int64_t columns, int64_t first);
  void (*merge)(void* partial, const void* later, int64_t count);
};

// Brings n elements, `stride` elements apart, side by side as values of the operation.
using Load = void (*)(const char* from, int64_t stride, int64_t n, void* to, const void* context);

struct Input {
  const char* data;
  int64_t itemsize;  // of one element as strides count them
  Load load;         // null: memory holds values
  const void* context;
};

struct Output {
  char* data;
  int64_t itemsize;
  // Writes `count` results, each made of `length` elements, to memory.
  void (*store)(const Output& output, const void* results, int64_t count, int64_t length, char* to, int64_t stride);
  void (*typed_store)();  // what store needs to know
  const void* context;
};

void run(const Steps& steps, const cb_tensor& in, const cb_tensor& out, const Input& input, const Output& output, Parts parts);

}  // namespace reduce
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
