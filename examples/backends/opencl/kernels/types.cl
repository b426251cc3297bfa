// Element types, and the description of operands. This text precedes each of the other files.
//
// A file is compiled for the dtypes of a call: `-D T=bfloat16` makes LOAD(T, p, i) read a bfloat16
// as a float, the type in which half precisions are computed. T_IS_FLOAT tells its kind.
#ifdef HAS_FLOAT64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

// The type of an element in memory, and the one in which it is computed.
#define MEMORY(T) JOIN(memory_, T)
#define COMPUTE(T) JOIN(compute_, T)
// Element i of an array, and the number in the bits of a 64-bit argument.
#define LOAD(T, pointer, i) JOIN(load_, T)(pointer, i)
#define STORE(T, pointer, i, value) JOIN(store_, T)(pointer, i, value)
#define NUMBER(T, bits) JOIN(number_, T)(bits)
// The type of sums: int64 for integers, float for half precisions.
#define SUM(T) JOIN(sum_, T)

#define PLAIN_TYPE(NAME, TYPE, SUM_TYPE)                                                                      \
  typedef TYPE memory_##NAME;                                                                                 \
  typedef TYPE compute_##NAME;                                                                                \
  typedef SUM_TYPE sum_##NAME;                                                                                \
  static inline TYPE load_##NAME(const __global TYPE* p, long i) { return p[i]; }                                    \
  static inline void store_##NAME(__global TYPE* p, long i, TYPE value) { p[i] = value; }                            \
  static inline TYPE number_##NAME(ulong bits) { return (TYPE)bits; }

PLAIN_TYPE(uint8, uchar, long)
PLAIN_TYPE(int8, char, long)
PLAIN_TYPE(int16, short, long)
PLAIN_TYPE(int32, int, long)
PLAIN_TYPE(int64, long, long)
PLAIN_TYPE(uint16, ushort, long)
PLAIN_TYPE(uint32, uint, long)
PLAIN_TYPE(uint64, ulong, long)

// Any byte but 0 is true.
typedef uchar memory_bool;
typedef uchar compute_bool;
typedef long sum_bool;
static inline uchar load_bool(const __global uchar* p, long i) { return p[i] != 0; }
#define store_bool(p, i, value) ((p)[i] = (value) != 0)
static inline uchar number_bool(ulong bits) { return bits != 0; }

typedef float memory_float32;
typedef float compute_float32;
typedef float sum_float32;
static inline float load_float32(const __global float* p, long i) { return p[i]; }
static inline void store_float32(__global float* p, long i, float value) { p[i] = value; }
static inline float number_float32(ulong bits) { return as_float((uint)bits); }

typedef ushort memory_float16;
typedef float compute_float16;
typedef float sum_float16;
static inline float load_float16(const __global ushort* p, long i) {
  return vload_half(i, (const __global half*)p);
}
static inline void store_float16(__global ushort* p, long i, float value) {
  vstore_half_rte(value, i, (__global half*)p);
}
static inline float number_float16(ulong bits) { return as_float((uint)bits); }

// The upper half of a float32, rounded to nearest even.
typedef ushort memory_bfloat16;
typedef float compute_bfloat16;
typedef float sum_bfloat16;
static inline float load_bfloat16(const __global ushort* p, long i) { return as_float((uint)p[i] << 16); }
static inline void store_bfloat16(__global ushort* p, long i, float value) {
  const uint bits = as_uint(value);
  p[i] = isnan(value) ? 0x7FC0 : (ushort)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
static inline float number_bfloat16(ulong bits) { return as_float((uint)bits); }

#ifdef HAS_FLOAT64
typedef double memory_float64;
typedef double compute_float64;
typedef double sum_float64;
static inline double load_float64(const __global double* p, long i) { return p[i]; }
static inline void store_float64(__global double* p, long i, double value) { p[i] = value; }
static inline double number_float64(ulong bits) { return as_double(bits); }
#endif

// The element at a byte offset of a buffer.
#define AT(T, buffer, offset) ((__global MEMORY(T)*)((buffer) + (offset)))
#define AT_CONST(T, buffer, offset) ((const __global MEMORY(T)*)((buffer) + (offset)))

// The struct of the same name in src/launch.hpp.
typedef struct {
  long numel;
  long ndim;
  long sizes[12];
  long strides[4][12];
  ulong offsets[4];
  ulong numbers[4];
  long is_number[4];
  ulong parameters[4];
} Operands;

// The position of element i in operand k, in elements.
static inline long position(const Operands* g, int k, long i) {
  long result = 0;
  for (int d = 0; d < g->ndim; ++d) {
    result += i % g->sizes[d] * g->strides[k][d];
    i /= g->sizes[d];
  }
  return result;
}

// What kernels report about indices; see IndexCheck in src/launch.hpp.
typedef struct {
  int is_bad;
  int dim;  // that it indexes, where there are several
  long index;
} IndexReport;

static inline void report_index(__global IndexReport* report, int dim, long index) {
  if (atomic_xchg(&report->is_bad, 1) != 0) return;
  report->dim = dim;
  report->index = index;
}

// Combines one value `v` of each item of a group, in local memory. FORMULA has `a` and `b`.
#define GROUP 64
#define GROUP_COMBINE(TYPE, scratch, v, FORMULA)                                                              \
  do {                                                                                                        \
    const int item_ = get_local_id(0);                                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                             \
    scratch[item_] = v;                                                                                       \
    for (int half_ = GROUP / 2; half_ > 0; half_ /= 2) {                                                      \
      barrier(CLK_LOCAL_MEM_FENCE);                                                                           \
      if (item_ < half_) {                                                                                    \
        const TYPE a = scratch[item_], b = scratch[item_ + half_];                                            \
        scratch[item_] = FORMULA;                                                                             \
      }                                                                                                       \
    }                                                                                                         \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                             \
    v = scratch[0];                                                                                           \
  } while (0)

// Of an element of T. Compilers warn of integers that are compared with themselves.
#ifdef T_IS_FLOAT
#define IS_NAN(x) ((x) != (x))
#else
#define IS_NAN(x) 0
#endif
// Whether a program with results of dtype R has more operators than comparisons. It is built faster
// without those that are not called.
#define IS_BOOL_bool 1
#define IS_BOOL(T) JOIN(IS_BOOL_, T)
#define COMPUTES_NUMBERS (!IS_BOOL(R) || IS_BOOL(T))
// NaN wins over all other numbers.
#define LARGER(a, b) ((a) > (b) || IS_NAN(a) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) || IS_NAN(a) ? (a) : (b))

// 1-D slices along a dimension. An Operands `g` has one element of each slice.
// The struct of the same name in src/slices.hpp.
typedef struct {
  long size;      // elements of a slice
  long steps[4];  // the stride along it, for each operand
} Along;

#define SLICE(TYPE, buffer, k, s) (AT(TYPE, buffer, g.offsets[k]) + position(&g, k, s))
#define SLICE_CONST(TYPE, buffer, k, s) (AT_CONST(TYPE, buffer, g.offsets[k]) + position(&g, k, s))
