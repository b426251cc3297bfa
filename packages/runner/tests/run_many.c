/* run_many BACKEND FILE...: opens and runs each file, which takes no arguments, and writes what comes of it. */
#include <stdio.h>

#include "candelabra_run.h"

int main(int count, char** words) {
  cr_options options = {sizeof options, NULL, 1, 0};
  if (count < 2) return 2;
  options.backend = words[1];
  for (int k = 2; k < count; ++k) {
    cr_program* program;
    const cr_tensor* outputs;
    int32_t output_count;
    cr_status status = cr_open(words[k], &options, &program);
    const char* step = "open";
    /* A process that ends shows by which file. */
    printf("%s ", words[k]);
    fflush(stdout);
    if (status == CR_OK) {
      step = "run";
      status = cr_run(program, NULL, 0, &outputs, &output_count);
    }
    printf("%s %d %.400s\n", step, (int)status, status == CR_OK ? "" : cr_error());
    if (status != CR_OK && !cr_error()[0]) return 3;
    cr_close(program);
  }
  return 0;
}
