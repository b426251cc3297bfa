/*
 * Elementwise operators. One kernel runs each row of a table; a new operator is a new row. Every
 * tensor argument has the sizes of the output: the core broadcasts. The operators of a table have
 * their tensors at the same positions.
 */
#include "candelabra/positions.h"
#include "kernels.h"
#include "tensor.h"

/* ---- one argument */

typedef struct unary_row {
  const char* name;
  double (*of_floats)(double);
  int64_t (*of_integers)(int64_t); /* null: the core converts integers before the call */
} unary_row;

static double negative(double a) {
  return -a;
}
static int64_t negative_integer(int64_t a) {
  return (int64_t)(0 - (uint64_t)a);
}
static int64_t absolute_integer(int64_t a) {
  return a < 0 ? negative_integer(a) : a;
}
static int64_t same_integer(int64_t a) {
  return a;
}

static const unary_row unary_rows[] = {
    {"neg", negative, negative_integer},
    {"abs", fabs, absolute_integer},
    {"floor", floor, same_integer},
    {"exp", exp, NULL},
    {"log", log, NULL},
    {"sqrt", sqrt, NULL},
    {"sin", sin, NULL},
    {"cos", cos, NULL},
    {"tanh", tanh, NULL},
    {"erf", erf, NULL},
    {"expm1", expm1, NULL},
    {"log1p", log1p, NULL},
};

static int32_t unary(cb_call* call) {
  const unary_row* row = unary_rows;
  while (strcmp(row->name, call->operator_name) != 0) ++row;
  const cb_tensor *out = &call->outputs[0], *a = call->arguments[CB_NEG_SELF].as.tensor;
  walk w = walk_over(out, 2, (const cb_tensor*[]){out, a});
  for (int64_t i = 0; i < w.count; ++i, step(&w)) {
    number value = load_number(w.at[1], a->dtype);
    if (is_floating(out->dtype))
      value.f = row->of_floats(value.f);
    else
      value.i = row->of_integers(value.i);
    store_number(w.at[0], out->dtype, value);
  }
  return CB_OK;
}

/* ---- two arguments */

typedef struct binary_row {
  const char* name;
  double (*of_floats)(double, double);
  int64_t (*of_integers)(int64_t, int64_t);
  uint64_t dtypes;
} binary_row;

/* Integers wrap, which C promises for unsigned ones only. */
static double add_floats(double a, double b) {
  return a + b;
}
static int64_t add_integers(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}
static double subtract_floats(double a, double b) {
  return a - b;
}
static int64_t subtract_integers(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a - (uint64_t)b);
}
static double multiply_floats(double a, double b) {
  return a * b;
}
static int64_t multiply_integers(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}
static double divide_floats(double a, double b) {
  return a / b;
}
/* A negative exponent gives 0, except for 1 and -1. */
static int64_t power_of_integers(int64_t a, int64_t exponent) {
  if (exponent < 0) return a == 1 ? 1 : a == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, factor = (uint64_t)a;
  for (; exponent; exponent >>= 1, factor *= factor)
    if (exponent & 1) result *= factor;
  return (int64_t)result;
}
/* NaN propagates. */
static double larger_float(double a, double b) {
  return a > b || isnan(a) ? a : b;
}
static int64_t larger_integer(int64_t a, int64_t b) {
  return a > b ? a : b;
}
static double smaller_float(double a, double b) {
  return a < b || isnan(a) ? a : b;
}
static int64_t smaller_integer(int64_t a, int64_t b) {
  return a < b ? a : b;
}
/* The quotients by -1 are apart, because INT64_MIN / -1 traps. */
static int64_t remainder_of_integers(int64_t a, int64_t b) {
  return b == -1 ? 0 : a % b;
}
static int64_t truncated_quotient(int64_t a, int64_t b) {
  return b == -1 ? negative_integer(a) : a / b;
}
static int64_t floored_quotient(int64_t a, int64_t b) {
  return truncated_quotient(a, b) - (remainder_of_integers(a, b) != 0 && (a < 0) != (b < 0));
}
static double truncated_ratio(double a, double b) {
  return trunc(a / b);
}
/* As in Python: (a - a mod b) / b, rounded. */
static double floored_ratio(double a, double b) {
  if (b == 0) return a / b;
  const double rest = fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return copysign(0, a / b);
  const double whole = floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}
static int64_t and_bits(int64_t a, int64_t b) {
  return a & b;
}
static int64_t or_bits(int64_t a, int64_t b) {
  return a | b;
}
static int64_t xor_bits(int64_t a, int64_t b) {
  return a ^ b;
}

static const binary_row binary_rows[] = {
    {"add", add_floats, add_integers, BOOLS | INTEGERS | FLOATS},
    {"sub", subtract_floats, subtract_integers, INTEGERS | FLOATS},
    {"mul", multiply_floats, multiply_integers, BOOLS | INTEGERS | FLOATS},
    {"pow", pow, power_of_integers, INTEGERS | FLOATS},
    {"maximum", larger_float, larger_integer, BOOLS | INTEGERS | FLOATS},
    {"minimum", smaller_float, smaller_integer, BOOLS | INTEGERS | FLOATS},
    {"fmod", fmod, remainder_of_integers, INTEGERS | FLOATS},
    {"atan2", atan2, NULL, FLOATS},
    {"bitwise_and", NULL, and_bits, BOOLS | INTEGERS},
    {"bitwise_or", NULL, or_bits, BOOLS | INTEGERS},
    {"bitwise_xor", NULL, xor_bits, BOOLS | INTEGERS},
};

static const binary_row division = {"div", divide_floats, NULL, FLOATS};
static const binary_row truncated_division = {"div", truncated_ratio, truncated_quotient, INTEGERS | FLOATS};
static const binary_row floored_division = {"div", floored_ratio, floored_quotient, INTEGERS | FLOATS};

static int32_t compute(cb_call* call, const binary_row* row, const cb_scalar* alpha) {
  const cb_tensor *out = &call->outputs[0], *a = call->arguments[CB_ADD_SELF].as.tensor,
                  *b = call->arguments[CB_ADD_OTHER].as.tensor;
  const number factor = alpha ? number_of(alpha, out->dtype) : (number){1, 1};
  walk w = walk_over(out, 3, (const cb_tensor*[]){out, a, b});
  for (int64_t i = 0; i < w.count; ++i, step(&w)) {
    number x = load_number(w.at[1], a->dtype);
    const number y = load_number(w.at[2], b->dtype);
    if (is_floating(out->dtype))
      x.f = row->of_floats(x.f, factor.f * y.f);
    else
      x.i = row->of_integers(x.i, multiply_integers(factor.i, y.i));
    store_number(w.at[0], out->dtype, x);
  }
  return CB_OK;
}

/* Checked before anything is written: a kernel that fails halfway has changed its output. */
static int32_t check_divisor(cb_call* call) {
  const cb_tensor *out = &call->outputs[0], *b = call->arguments[CB_DIV_OTHER].as.tensor;
  if (is_floating(out->dtype)) return CB_OK;
  walk w = walk_over(out, 1, &b);
  for (int64_t i = 0; i < w.count; ++i, step(&w))
    if (load_number(w.at[0], b->dtype).i == 0) return fail(call, CB_RUNTIME_ERROR, "ZeroDivisionError");
  return CB_OK;
}

static int32_t binary(cb_call* call) {
  const binary_row* row = binary_rows;
  while (strcmp(row->name, call->operator_name) != 0) ++row;
  if (row->of_integers == remainder_of_integers) {
    const int32_t status = check_divisor(call);
    if (status != CB_OK) return status;
  }
  const bool is_scaled = row->of_floats == add_floats || row->of_floats == subtract_floats;
  return compute(call, row, is_scaled ? call->arguments[CB_ADD_ALPHA].as.scalar : NULL);
}

static int32_t divide(cb_call* call) {
  const cb_value* mode = &call->arguments[CB_DIV_ROUNDING_MODE];
  if (mode->kind == CB_NONE) return compute(call, &division, NULL);
  const int32_t status = check_divisor(call);
  if (status != CB_OK) return status;
  return compute(call, strcmp(mode->as.string, "floor") == 0 ? &floored_division : &truncated_division, NULL);
}

/* ---- comparisons */

enum comparison { EQUAL, NOT_EQUAL, LESS, LESS_EQUAL };

static bool compare_floats(enum comparison kind, double a, double b) {
  return kind == EQUAL ? a == b : kind == NOT_EQUAL ? a != b : kind == LESS ? a < b : a <= b;
}
static bool compare_integers(enum comparison kind, int64_t a, int64_t b) {
  return kind == EQUAL ? a == b : kind == NOT_EQUAL ? a != b : kind == LESS ? a < b : a <= b;
}

static int32_t compare(cb_call* call, enum comparison kind) {
  const cb_tensor *out = &call->outputs[0], *a = call->arguments[CB_ADD_SELF].as.tensor,
                  *b = call->arguments[CB_ADD_OTHER].as.tensor;
  walk w = walk_over(out, 3, (const cb_tensor*[]){out, a, b});
  for (int64_t i = 0; i < w.count; ++i, step(&w)) {
    const number x = load_number(w.at[1], a->dtype), y = load_number(w.at[2], b->dtype);
    const bool holds = is_floating(a->dtype) ? compare_floats(kind, x.f, y.f) : compare_integers(kind, x.i, y.i);
    store_number(w.at[0], CB_BOOL, (number){0, holds});
  }
  return CB_OK;
}

static int32_t equal(cb_call* call) {
  return compare(call, EQUAL);
}
static int32_t not_equal(cb_call* call) {
  return compare(call, NOT_EQUAL);
}
static int32_t less(cb_call* call) {
  return compare(call, LESS);
}
static int32_t less_equal(cb_call* call) {
  return compare(call, LESS_EQUAL);
}

/* Moves elements, of any dtype. */
static int32_t where(cb_call* call) {
  const cb_tensor *out = &call->outputs[0], *condition = call->arguments[CB_WHERE_CONDITION].as.tensor;
  const cb_tensor *a = call->arguments[CB_WHERE_INPUT].as.tensor, *b = call->arguments[CB_WHERE_OTHER].as.tensor;
  const size_t bytes = cb_dtype_size(out->dtype);
  walk w = walk_over(out, 4, (const cb_tensor*[]){out, condition, a, b});
  for (int64_t i = 0; i < w.count; ++i, step(&w)) memmove(w.at[0], *w.at[1] ? w.at[2] : w.at[3], bytes);
  return CB_OK;
}

void add_elementwise_kernels(kernel_table* table) {
  for (size_t i = 0; i < sizeof unary_rows / sizeof *unary_rows; ++i)
    add_kernel(table, unary_rows[i].name, unary, unary_rows[i].of_integers ? INTEGERS | FLOATS : FLOATS);
  for (size_t i = 0; i < sizeof binary_rows / sizeof *binary_rows; ++i)
    add_kernel(table, binary_rows[i].name, binary, binary_rows[i].dtypes);
  add_kernel(table, "div", divide, INTEGERS | FLOATS);
  add_kernel(table, "eq", equal, BOOLS | INTEGERS | FLOATS);
  add_kernel(table, "ne", not_equal, BOOLS | INTEGERS | FLOATS);
  add_kernel(table, "lt", less, BOOLS | INTEGERS | FLOATS);
  add_kernel(table, "le", less_equal, BOOLS | INTEGERS | FLOATS);
  add_kernel(table, "where", where, 0);
}
