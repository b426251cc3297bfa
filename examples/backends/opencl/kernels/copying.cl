// copy_, fill_ and arange. T is the dtype of the source, R that of the output.

// A floating-point number as an integer, toward zero. NaN and numbers out of range become the
// minimum, as on every device of Candelabra.
#ifdef T_IS_FLOAT
#ifdef HAS_FLOAT64
typedef double Wide;
#else
typedef float Wide;
#endif
static inline int truncated_int(Wide x) { return x > -2147483649.0f && x < 2147483648.0f ? (int)x : (int)0x80000000; }
static inline long truncated_long(Wide x) { return x >= -0x1p63f && x < 0x1p63f ? (long)x : (long)0x8000000000000000; }
#define convert_to_uint8(x) ((uchar)truncated_int(x))
#define convert_to_int8(x) ((char)truncated_int(x))
#define convert_to_int16(x) ((short)truncated_int(x))
#define convert_to_int32(x) truncated_int(x)
#define convert_to_int64(x) truncated_long(x)
#define convert_to_uint16(x) ((ushort)truncated_int(x))
#define convert_to_uint32(x) ((uint)truncated_long(x))
#define convert_to_uint64(x) ((x) >= 0x1p63f ? (ulong)(x) : (ulong)truncated_long(x))
#else
#define convert_to_uint8(x) ((uchar)(x))
#define convert_to_int8(x) ((char)(x))
#define convert_to_int16(x) ((short)(x))
#define convert_to_int32(x) ((int)(x))
#define convert_to_int64(x) ((long)(x))
#define convert_to_uint16(x) ((ushort)(x))
#define convert_to_uint32(x) ((uint)(x))
#define convert_to_uint64(x) ((ulong)(x))
#endif
#define convert_to_bool(x) ((x) != 0)
#define convert_to_float16(x) ((float)(x))
#define convert_to_bfloat16(x) ((float)(x))
#define convert_to_float32(x) ((float)(x))
#define convert_to_float64(x) ((double)(x))
#define CONVERT(R, x) JOIN(convert_to_, R)(x)

__kernel void copy_flat(__global char* out, const __global char* source, const Operands g) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  STORE(R, AT(R, out, g.offsets[0]), i, CONVERT(R, LOAD(T, AT_CONST(T, source, g.offsets[1]), i)));
}
__kernel void copy_strided(__global char* out, const __global char* source, const Operands g) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  const COMPUTE(T) x = LOAD(T, AT_CONST(T, source, g.offsets[1]), position(&g, 1, i));
  STORE(R, AT(R, out, g.offsets[0]), position(&g, 0, i), CONVERT(R, x));
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
