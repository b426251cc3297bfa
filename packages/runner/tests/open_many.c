/* open_many BACKEND FILE...: opens each file and writes the status and the message. */
#include <stdio.h>

#include "candelabra_run.h"

int main(int count, char** words) {
  cr_options options = {sizeof options, NULL, 0, 0};
  if (count < 2) return 2;
  options.backend = words[1];
  for (int k = 2; k < count; ++k) {
    cr_program* program;
    const cr_status status = cr_open(words[k], &options, &program);
    /* Messages may have several lines. */
    printf("%d %.60s\n", (int)status, status == CR_OK || status == CR_INPUT_ERROR ? "" : "refused");
    if (status != CR_OK && (!cr_error()[0] || program)) return 3;
    cr_close(program);
  }
  return 0;
}
