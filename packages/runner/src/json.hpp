// JSON (RFC 8259), as json.dumps writes it. Numbers are integers of 64 bits or doubles.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace candelabra::runner {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  // Throws Failure where the text is not JSON, or nested too deeply.
  static Json parse(std::string_view text);

  // These throw Failure where the value is of another kind or out of range. `what` names it.
  const Array& array(std::string_view what) const;
  // The same, with this many entries.
  const Array& array(std::string_view what, size_t count) const;
  const std::string& string(std::string_view what) const;
  int64_t integer(std::string_view what, int64_t least, int64_t most) const;
  // A number, or {"float": "inf"} as archives of Candelabra have what JSON lacks.
  double real(std::string_view what) const;
  // A member of an object.
  const Json& at(std::string_view name) const;
  // An entry of {"dict": [[key, value], ...]}, as archives of Candelabra have dicts; null if it is
  // missing.
  const Json* entry(std::string_view name) const;
  const Json& required_entry(std::string_view name) const;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }

 private:
  friend class JsonParser;
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

}  // namespace candelabra::runner
