/* use_library BACKEND FILE ECHO: runs a program of two arguments, float32[2, 3] each, and one that
 * returns its argument, float32[16], and checks what the interface promises. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "candelabra_run.h"

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, cr_error()); \
      return 1;                                                                \
    }                                                                          \
  } while (0)

static int check_misuse(const char* path, const cr_options* options) {
  cr_program* program = (cr_program*)&program;
  const cr_tensor* outputs;
  cr_signature signature;
  int32_t count;
  EXPECT(cr_open(NULL, options, &program) == CR_INPUT_ERROR);
  EXPECT(cr_open(path, options, NULL) == CR_INPUT_ERROR);
  EXPECT(cr_open("nowhere.cex", options, &program) == CR_FILE_ERROR && !program);
  EXPECT(strcmp(cr_error(), "nowhere.cex: No such file or directory") == 0);
  EXPECT(cr_run(NULL, NULL, 0, &outputs, &count) == CR_INPUT_ERROR);
  EXPECT(cr_signature_at(NULL, 0, &signature) == CR_INPUT_ERROR);
  EXPECT(cr_signature_count(NULL) == 0);
  cr_close(NULL);
  return 0;
}

static int check_signature(const cr_program* program) {
  cr_signature signature;
  EXPECT(cr_signature_count(program) == 1);
  EXPECT(cr_signature_at(program, 1, &signature) == CR_INPUT_ERROR);
  EXPECT(cr_signature_at(program, 0, &signature) == CR_OK);
  EXPECT(signature.input_count == 2 && signature.output_count == 1);
  EXPECT(strcmp(signature.inputs[0].name, "x") == 0 && strcmp(signature.inputs[1].name, "y") == 0);
  EXPECT(signature.inputs[1].ndim == 2 && signature.inputs[1].sizes[0] == 2 && signature.inputs[1].sizes[1] == 3);
  EXPECT(signature.inputs[0].dtype == CR_FLOAT32 && signature.inputs[0].bytes == 24 && !signature.inputs[0].data);
  return 0;
}

/* The program counts its calls in a buffer: result = x * y + calls. */
static int check_runs(cr_program* program) {
  static const float values[7] = {0, 1, 2, 3, 4, 5, 6};
  const int64_t sizes[2] = {2, 3}, others[2] = {3, 2};
  const cr_tensor* outputs;
  int32_t count;
  /* Memory at any address. */
  cr_tensor inputs[2] = {{(void*)values, sizes, 2, CR_FLOAT32, NULL, 0},
                         {(void*)(values + 1), sizes, 2, CR_FLOAT32, NULL, 0}};
  for (int call = 1; call <= 3; ++call) {
    EXPECT(cr_run(program, inputs, 2, &outputs, &count) == CR_OK);
    EXPECT(count == 1 && outputs[0].ndim == 2 && outputs[0].sizes[1] == 3 && outputs[0].dtype == CR_FLOAT32);
    for (int k = 0; k < 6; ++k) EXPECT(((const float*)outputs[0].data)[k] == values[k] * values[k + 1] + (float)call);
  }
  EXPECT(cr_run(program, inputs, 1, &outputs, &count) == CR_INPUT_ERROR);
  EXPECT(cr_run(program, inputs, -1, &outputs, &count) == CR_INPUT_ERROR);
  inputs[1].sizes = others;
  EXPECT(cr_run(program, inputs, 2, &outputs, &count) == CR_INPUT_ERROR);
  EXPECT(strcmp(cr_error(),
                "no program in the file takes float32[2, 3], float32[3, 2]; there are programs for\n"
                "  float32[2, 3], float32[2, 3]") == 0);
  inputs[1].sizes = NULL;
  EXPECT(cr_run(program, inputs, 2, &outputs, &count) == CR_INPUT_ERROR);
  inputs[1].sizes = sizes;
  inputs[1].dtype = CR_INT32;
  EXPECT(cr_run(program, inputs, 2, &outputs, &count) == CR_INPUT_ERROR);
  inputs[1].dtype = CR_FLOAT32;
  inputs[1].data = NULL;
  EXPECT(cr_run(program, inputs, 2, &outputs, &count) == CR_INPUT_ERROR);
  EXPECT(strcmp(cr_error(), "argument y has no memory") == 0);
  return 0;
}

/* A result is the program's memory, also if it is an argument. */
static int check_echo(const char* path, const cr_options* options) {
  static union {
    char bytes[128];
    float values[32];
  } memory;
  const int64_t sizes[1] = {16};
  const cr_tensor* outputs;
  int32_t count;
  cr_program* program;
  const uintptr_t misaligned = (uintptr_t)memory.bytes % 64;
  float* const values = (float*)(memory.bytes + (misaligned ? 64 - misaligned : 0));
  cr_tensor input = {values, sizes, 1, CR_FLOAT32, NULL, 0};
  EXPECT(cr_open(path, options, &program) == CR_OK);
  values[3] = 7;
  EXPECT(cr_run(program, &input, 1, &outputs, &count) == CR_OK);
  EXPECT(count == 1 && outputs[0].data != values && ((const float*)outputs[0].data)[3] == 7);
  values[3] = 8;
  EXPECT(((const float*)outputs[0].data)[3] == 7);
  cr_close(program);
  return 0;
}

int main(int count, char** words) {
  cr_options options = {sizeof options, NULL, 1, 0};
  cr_program *first, *second;
  if (count != 4) return 2;
  options.backend = words[1];
  if (check_misuse(words[2], &options)) return 1;
  EXPECT(cr_open(words[2], &options, &first) == CR_OK);
  EXPECT(cr_open(words[2], &options, &second) == CR_OK);
  if (check_signature(first) || check_runs(first)) return 1;
  /* What one program changes, another does not see. */
  if (check_runs(second)) return 1;
  cr_close(first);
  cr_close(second);
  if (check_echo(words[3], &options)) return 1;
  puts("done");
  return 0;
}
