// What kernels need of their arguments, from the operator catalogue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "candelabra/backend.h"

namespace candelabra::runner {

struct Schema {
  std::string_view name;
  // Of each argument: T a tensor, t or none; N a tensor or a number; L a list of tensors, l with
  // gaps; S a number, s or none; i an integer; f a number; d a dtype; I integers; F numbers; c a
  // text; - what no kernel reads.
  std::string_view arguments;
  int outputs;       // -1: a list
  uint32_t changed;  // mask: the arguments whose memory the kernel writes
  bool changes(size_t argument) const { return argument < 32 && (changed >> argument & 1); }
};

// Throws Failure if the catalogue has no such operator.
const Schema& schema_of(std::string_view operator_name);

// Throws Failure if a kernel would not find what it reads.
void check_arguments(const Schema& schema, const std::vector<cb_value>& arguments, size_t outputs);

}  // namespace candelabra::runner
