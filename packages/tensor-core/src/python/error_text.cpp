#include "python/errors.hpp"

namespace candelabra {

namespace {

// The position of the first character at or after `at`: bytes that continue one are no beginning.
size_t character_from(const std::string& text, size_t at) {
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return at;
}

}  // namespace

std::string shortened(std::string message) {
  constexpr size_t limit = 1000, beginning = 600, end = 300;
  if (message.size() <= limit) return message;
  const size_t cut = character_from(message, beginning), rest = character_from(message, message.size() - end);
  return text(message.substr(0, cut), " ... (", rest - cut, " bytes left out) ... ", message.substr(rest));
}

}  // namespace candelabra
