// copy_, fill_ and arange. R is the dtype of the output. That of the source is a number at run
// time, so that there is a program for each dtype, not for each pair.

#ifdef HAS_FLOAT64
typedef double Wide;
#else
typedef float Wide;
#endif

// As enum cb_dtype numbers them.
enum { BOOL, UINT8, INT8, INT16, INT32, INT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64, UINT16 = 12, UINT32, UINT64 };

static inline Wide load_wide(const __global char* p, long i, long dtype) {
  switch (dtype) {
    case FLOAT16:
      return load_float16((const __global ushort*)p, i);
    case BFLOAT16:
      return load_bfloat16((const __global ushort*)p, i);
#ifdef HAS_FLOAT64
    case FLOAT64:
      return load_float64((const __global double*)p, i);
#endif
    default:
      return load_float32((const __global float*)p, i);
  }
}

static inline long load_whole(const __global char* p, long i, long dtype) {
  switch (dtype) {
    case BOOL:
      return load_bool((const __global uchar*)p, i);
    case UINT8:
      return load_uint8((const __global uchar*)p, i);
    case INT8:
      return load_int8((const __global char*)p, i);
    case INT16:
      return load_int16((const __global short*)p, i);
    case UINT16:
      return load_uint16((const __global ushort*)p, i);
    case INT32:
      return load_int32((const __global int*)p, i);
    case UINT32:
      return load_uint32((const __global uint*)p, i);
    default:
      return load_int64((const __global long*)p, i);
  }
}

// A floating-point number as an integer, toward zero. NaN and numbers out of range become the
// minimum, as on every device of Candelabra.
static inline int truncated_int(Wide x) {
  return x > -2147483649.0f && x < 2147483648.0f ? (int)x : (int)0x80000000;
}
static inline long truncated_long(Wide x) {
  return x >= -0x1p63f && x < 0x1p63f ? (long)x : (long)0x8000000000000000;
}
#define whole_as_bool(x) ((x) != 0)
#define whole_as_uint8(x) ((uchar)truncated_int(x))
#define whole_as_int8(x) ((char)truncated_int(x))
#define whole_as_int16(x) ((short)truncated_int(x))
#define whole_as_int32(x) truncated_int(x)
#define whole_as_int64(x) truncated_long(x)
#define whole_as_uint16(x) ((ushort)truncated_int(x))
#define whole_as_uint32(x) ((uint)truncated_long(x))
#define whole_as_uint64(x) ((x) >= 0x1p63f ? (ulong)(x) : (ulong)truncated_long(x))

static inline COMPUTE(R) converted(const __global char* p, long i, long dtype) {
  if (dtype >= FLOAT16 && dtype <= FLOAT64) {
#ifdef R_IS_FLOAT
    return (COMPUTE(R))load_wide(p, i, dtype);
#else
    return JOIN(whole_as_, R)(load_wide(p, i, dtype));
#endif
  }
  const long whole = load_whole(p, i, dtype);
#ifdef R_IS_FLOAT
  return dtype == UINT64 ? (COMPUTE(R))(ulong)whole : (COMPUTE(R))whole;
#else
  return NUMBER(R, (ulong)whole);
#endif
}

__kernel void copy(__global char* out, const __global char* source, const Operands g, const long dtype) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  STORE(R, AT(R, out, g.offsets[0]), position(&g, 0, i), converted(source + g.offsets[1], position(&g, 1, i), dtype));
}

// Elements of one dtype, moved as bytes: uint8 to uint64 by size.
__kernel void move(__global char* out, const __global char* source, const Operands g) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  AT(R, out, g.offsets[0])[position(&g, 0, i)] = AT_CONST(R, source, g.offsets[1])[position(&g, 1, i)];
}

__kernel void fill(__global char* out, const Operands g) {
  const long i = get_global_id(0);
  if (i < g.numel) STORE(R, AT(R, out, g.offsets[0]), position(&g, 0, i), NUMBER(R, g.parameters[0]));
}

// Integers are computed as such, floats in the widest type: start + i * step.
__kernel void arange(__global char* out, const Operands g) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
#if defined(R_IS_FLOAT) && defined(HAS_FLOAT64)
  STORE(R, AT(R, out, g.offsets[0]), i, as_double(g.parameters[0]) + i * as_double(g.parameters[1]));
#elif defined(R_IS_FLOAT)
  STORE(R, AT(R, out, g.offsets[0]), i, as_float((uint)g.parameters[0]) + i * as_float((uint)g.parameters[1]));
#else
  STORE(R, AT(R, out, g.offsets[0]), i, (MEMORY(R))(g.parameters[0] + (ulong)i * g.parameters[1]));
#endif
}
