// Parses CANDELABRA_CUDA_ALLOC_CONF.
#include <cstdlib>
#include <string>

#include "candelabra/float_index.hpp"
#include "kernels.hpp"
#include "memory/allocator.hpp"

namespace candelabra::cuda {

AllocatorOptions AllocatorOptions::parse(const char* text) {
  AllocatorOptions options;
  std::string rest = text ? text : "";
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string item = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    const size_t colon = item.find(':');
    const std::string name = item.substr(0, colon), value = colon == std::string::npos ? "" : item.substr(colon + 1);
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    const bool is_number = !value.empty() && *end == 0;
    constexpr int64_t most = 1'000'000'000;
    const auto fail = [&] {
      throw failure(CB_VALUE_ERROR, "CANDELABRA_CUDA_ALLOC_CONF: cannot make sense of '%s'", item.c_str());
    };
    if (name == "expandable_segments" || name == "caching") {
      if (value != "True" && value != "False" && value != "true" && value != "false") fail();
      (name == "caching" ? options.caching : options.expandable_segments) = value[0] == 'T' || value[0] == 't';
    } else if (name == "max_split_size_mb") {
      if (!is_number || !(number > 20 && number < 1e9)) fail();
      options.max_split_bytes = index_from_float<int64_t>(number, 0, most) << 20;
    } else if (name == "garbage_collection_threshold") {
      if (!is_number || !(number > 0 && number < 1)) fail();
      options.collect_threshold = number;
    } else if (name == "roundup_power2_divisions") {
      const auto divisions = index_from_float<int64_t>(number, 0, most);
      if (!is_number || !(number >= 1 && number < 1e9) || (divisions & (divisions - 1)) != 0) fail();
      options.rounding_divisions = divisions;
    } else if (!name.empty()) {
      fail();
    }
  }
  return options;
}

}  // namespace candelabra::cuda
