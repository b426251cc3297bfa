// The functions of candelabra_run.h.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "failure.hpp"
#include "session.hpp"

struct cr_program {
  cr_program(const std::string& path, const cr_options& options) : session(path, options) {}
  candelabra::runner::Session session;
};

namespace candelabra::runner {

namespace {

static_assert(static_cast<int>(CR_BOOL) == CB_BOOL && static_cast<int>(CR_FLOAT32) == CB_FLOAT32 &&
              static_cast<int>(CR_COMPLEX128) == CB_COMPLEX128 && static_cast<int>(CR_UINT64) == CB_UINT64);

thread_local std::string last_error;
// A message of it would need memory.
thread_local bool is_out_of_memory = false;

template <typename F>
cr_status guarded(F&& function) noexcept {
  try {
    last_error.clear();
    is_out_of_memory = false;
    function();
    return CR_OK;
  } catch (const Failure& failure) {
    last_error = failure.what();
    return failure.status();
  } catch (const std::bad_alloc&) {
    is_out_of_memory = true;
    return CR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    last_error = error.what();
    return CR_FILE_ERROR;
  }
}

// The options of a caller whose struct may be shorter or longer.
cr_options read_options(const cr_options* given) {
  cr_options options{};
  if (given) std::memcpy(&options, given, std::min<uint64_t>(given->size, sizeof options));
  return options;
}

}  // namespace

}  // namespace candelabra::runner

using namespace candelabra::runner;

extern "C" {

cr_status cr_open(const char* path, const cr_options* options, cr_program** program) {
  return guarded([&] {
    if (!path || !program) fail(CR_INPUT_ERROR, "cr_open() needs a path and where to put the program");
    *program = nullptr;
    try {
      *program = std::make_unique<cr_program>(path, read_options(options)).release();
    } catch (const Failure& failure) {
      const bool is_named = std::string_view(failure.what()).starts_with(path) || failure.status() != CR_FILE_ERROR;
      throw Failure(failure.status(), is_named ? failure.what() : text(path, ": ", failure.what()));
    }
  });
}

int32_t cr_signature_count(const cr_program* program) {
  return program ? static_cast<int32_t>(program->session.program_count()) : 0;
}

cr_status cr_signature_at(const cr_program* program, int32_t index, cr_signature* signature) {
  return guarded([&] {
    if (!program || !signature || index < 0 || index >= cr_signature_count(program))
      fail(CR_INPUT_ERROR, "cr_signature_at(): there is no program of number ", index);
    *signature = program->session.signature(static_cast<size_t>(index));
  });
}

cr_status cr_run(cr_program* program, const cr_tensor* inputs, int32_t input_count, const cr_tensor** outputs,
                 int32_t* output_count) {
  return guarded([&] {
    if (!program || input_count < 0 || (input_count > 0 && !inputs) || !outputs || !output_count)
      fail(CR_INPUT_ERROR, "cr_run() needs a program, inputs, and where to put the outputs");
    const auto results = program->session.run({inputs, static_cast<size_t>(input_count)});
    *outputs = results.data();
    *output_count = static_cast<int32_t>(results.size());
  });
}

const char* cr_error(void) {
  return is_out_of_memory ? "out of memory" : last_error.c_str();
}

void cr_close(cr_program* program) {
  const std::unique_ptr<cr_program> owned(program);
}

}  // extern "C"
