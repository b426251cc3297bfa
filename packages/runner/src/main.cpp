// candelabra-run: runs a program of a file on arrays of .npy files.
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "candelabra_run.h"
#include "failure.hpp"
#include "npy_files.hpp"
#include "program.hpp"

namespace candelabra::runner {

namespace {

constexpr const char* usage =
    "usage: candelabra-run [options] MODEL.cex [NAME=]INPUT.npy...\n"
    "\n"
    "Runs the program in the file that takes arrays of these dtypes and sizes, and writes each result to NAME.npy.\n"
    "\n"
    "  --output PATH    the folder of the results, or the file of a single one (PATH ends with .npy)\n"
    "  --backend PATH   the library of the backend; by default that of an installed candelabra-backend-cpu\n"
    "  --threads N      how many threads kernels use\n"
    "  --list           write what the programs in the file take and give\n"
    "  --help           write this\n";

struct Arguments {
  std::string model, output, backend;
  std::vector<std::string> inputs;
  int32_t threads = 0;
  bool is_list = false;
};

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Arguments parse(const std::vector<std::string>& words) {
  Arguments parsed;
  for (size_t k = 0; k < words.size(); ++k) {
    const std::string& word = words[k];
    const auto value = [&]() -> const std::string& {
      if (k + 1 >= words.size()) throw UsageError(word + " needs a value");
      return words[++k];
    };
    if (word == "--output") {
      parsed.output = value();
    } else if (word == "--backend") {
      parsed.backend = value();
    } else if (word == "--threads") {
      const std::string& number = value();
      const auto end = number.data() + number.size();
      if (std::from_chars(number.data(), end, parsed.threads).ptr != end || parsed.threads < 1)
        throw UsageError("--threads needs a positive number, not " + number);
    } else if (word == "--list") {
      parsed.is_list = true;
    } else if (word.starts_with("--")) {
      throw UsageError("unknown option " + word);
    } else if (parsed.model.empty()) {
      parsed.model = word;
    } else {
      parsed.inputs.push_back(word);
    }
  }
  if (parsed.model.empty()) throw UsageError("the program's file is missing");
  return parsed;
}

struct CloseProgram {
  void operator()(cr_program* program) const { cr_close(program); }
};
using OpenProgram = std::unique_ptr<cr_program, CloseProgram>;

void check(cr_status status) {
  if (status != CR_OK) throw Failure(status, cr_error());
}

OpenProgram open(const Arguments& arguments) {
  cr_options options{};
  options.size = sizeof options;
  options.backend = arguments.backend.empty() ? nullptr : arguments.backend.c_str();
  options.threads = arguments.threads;
  cr_program* program = nullptr;
  check(cr_open(arguments.model.c_str(), &options, &program));
  return OpenProgram(program);
}

std::string described(const cr_tensor* tensors, int32_t count) {
  std::string made;
  for (int32_t k = 0; k < count; ++k)
    made += text(k > 0 ? ", " : "", tensors[k].name, " ",
                 shape_text(tensors[k].dtype, {tensors[k].sizes, static_cast<size_t>(tensors[k].ndim)}));
  return made;
}

void list(const cr_program* program) {
  for (int32_t k = 0; k < cr_signature_count(program); ++k) {
    cr_signature signature;
    check(cr_signature_at(program, k, &signature));
    std::printf("%s -> %s\n", described(signature.inputs, signature.input_count).c_str(),
                described(signature.outputs, signature.output_count).c_str());
  }
}

// Which of the program's arguments a word on the command line is: NAME=PATH, or the next one.
size_t place_of(const cr_signature& signature, std::string& word, size_t next) {
  const size_t equals = word.find('=');
  if (equals == word.npos) return next;
  for (int32_t k = 0; k < signature.input_count; ++k) {
    if (word.substr(0, equals) != signature.inputs[k].name) continue;
    word.erase(0, equals + 1);
    return static_cast<size_t>(k);
  }
  return next;
}

std::vector<Array> read_inputs(const cr_program* program, std::vector<std::string> words) {
  cr_signature signature;
  check(cr_signature_at(program, 0, &signature));
  const auto count = static_cast<size_t>(signature.input_count);
  if (words.size() != count)
    fail(CR_INPUT_ERROR, "the program takes ", count, " arguments, not ", words.size(), ": ",
         described(signature.inputs, signature.input_count));
  std::vector<Array> arrays(count);
  for (size_t k = 0; k < count; ++k) {
    Array& array = arrays[place_of(signature, words[k], k)];
    if (array.data) fail(CR_INPUT_ERROR, "an argument is given twice: ", words[k]);
    array = read_npy(words[k]);
  }
  return arrays;
}

void run(const Arguments& arguments) {
  const OpenProgram program = open(arguments);
  if (arguments.is_list) return list(program.get());
  const std::vector<Array> arrays = read_inputs(program.get(), arguments.inputs);
  std::vector<cr_tensor> inputs;
  for (const Array& array : arrays)
    inputs.push_back({array.data.get(), array.sizes.data(), static_cast<int32_t>(array.sizes.size()), array.dtype,
                      nullptr, array.bytes});
  const cr_tensor* outputs = nullptr;
  int32_t count = 0;
  check(cr_run(program.get(), inputs.data(), static_cast<int32_t>(inputs.size()), &outputs, &count));
  const bool is_file = arguments.output.ends_with(".npy");
  if (is_file && count != 1) fail(CR_INPUT_ERROR, "--output names one file, and there are ", count, " results");
  for (int32_t k = 0; k < count; ++k) {
    const std::filesystem::path folder = arguments.output;
    const std::string path = is_file ? arguments.output : (folder / (std::string(outputs[k].name) + ".npy")).string();
    write_npy(path, outputs[k]);
    std::printf("%s %s\n", path.c_str(),
                shape_text(outputs[k].dtype, {outputs[k].sizes, static_cast<size_t>(outputs[k].ndim)}).c_str());
  }
}

int run_command(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word != "--help") continue;
    std::fputs(usage, stdout);
    return 0;
  }
  try {
    run(parse(words));
    return 0;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "candelabra-run: %s\n%s", error.what(), usage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "candelabra-run: %s\n", error.what());
    return 1;
  }
}

}  // namespace

}  // namespace candelabra::runner

int main(int count, char** words) {
  return candelabra::runner::run_command({words + 1, words + count});
}
