#include "json.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "failure.hpp"

namespace candelabra::runner {

// A parser by recursive descent.
class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : text_(text) {}

  Json document() {
    Json value = this->value(0);
    skip_space();
    require(at_ == text_.size(), "the description goes on after its end");
    return value;
  }

 private:
  static constexpr int most_depth = 200;

  [[noreturn]] void refuse() const { fail(CR_FILE_ERROR, "the description is no JSON at byte ", at_); }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  char peek() {
    skip_space();
    if (at_ >= text_.size()) refuse();
    return text_[at_];
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse();
  }
  bool accept_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Json value(int depth) {
    require(depth < most_depth, "the description is nested too deeply");
    Json made;
    switch (peek()) {
      case '{':
        made.value_ = object(depth);
        break;
      case '[':
        made.value_ = array(depth);
        break;
      case '"':
        made.value_ = string();
        break;
      default:
        plain(made);
    }
    return made;
  }

  void plain(Json& made) {
    if (accept_word("true")) {
      made.value_ = true;
    } else if (accept_word("false")) {
      made.value_ = false;
    } else if (!accept_word("null")) {
      number(made);
    }
  }

  void number(Json& made) {
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    int64_t whole = 0;
    const auto as_integer = std::from_chars(begin, end, whole);
    const bool is_whole =
        as_integer.ec == std::errc() &&
        (as_integer.ptr == end || (*as_integer.ptr != '.' && *as_integer.ptr != 'e' && *as_integer.ptr != 'E'));
    if (is_whole) {
      made.value_ = whole;
      at_ += static_cast<size_t>(as_integer.ptr - begin);
      return;
    }
    double real = 0;
    const auto as_real = std::from_chars(begin, end, real);
    if (as_real.ptr == begin || (*begin != '-' && (*begin < '0' || *begin > '9'))) refuse();
    // Of integers beyond 64 bits only the double is kept.
    if (as_real.ec != std::errc()) real = std::numeric_limits<double>::infinity();
    made.value_ = real;
    at_ += static_cast<size_t>(as_real.ptr - begin);
  }

  Json::Array array(int depth) {
    Json::Array made;
    expect('[');
    if (accept(']')) return made;
    do made.push_back(value(depth + 1));
    while (accept(','));
    expect(']');
    return made;
  }

  Json::Object object(int depth) {
    Json::Object made;
    expect('{');
    if (accept('}')) return made;
    do {
      if (peek() != '"') refuse();
      std::string name = string();
      expect(':');
      made.emplace_back(std::move(name), value(depth + 1));
    } while (accept(','));
    expect('}');
    return made;
  }

  std::string string() {
    expect('"');
    std::string made;
    while (true) {
      const size_t stop = text_.find_first_of("\"\\", at_);
      if (stop == text_.npos) refuse();
      made += text_.substr(at_, stop - at_);
      at_ = stop + 1;
      if (text_[stop] == '"') return made;
      escape(made);
    }
  }

  void escape(std::string& made) {
    static constexpr std::string_view names = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    if (at_ >= text_.size()) refuse();
    const char c = text_[at_++];
    if (const size_t which = names.find(c); which != names.npos) {
      made += meanings[which];
      return;
    }
    if (c != 'u') refuse();
    uint32_t code = hexadecimal();
    if (code >= 0xD800 && code < 0xDC00 && accept_word("\\u")) {
      const uint32_t low = hexadecimal();
      if (low < 0xDC00 || low > 0xDFFF) refuse();
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append(made, code);
  }

  uint32_t hexadecimal() {
    if (text_.size() - at_ < 4) refuse();
    uint32_t code = 0;
    const char* const begin = text_.data() + at_;
    if (std::from_chars(begin, begin + 4, code, 16).ptr != begin + 4) refuse();
    at_ += 4;
    return code;
  }

  // UTF-8
  static void append(std::string& made, uint32_t code) {
    const auto add = [&](uint32_t byte) { made += static_cast<char>(byte); };
    if (code < 0x80) {
      add(code);
    } else if (code < 0x800) {
      add(0xC0 | code >> 6), add(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      add(0xE0 | code >> 12), add(0x80 | (code >> 6 & 0x3F)), add(0x80 | (code & 0x3F));
    } else {
      add(0xF0 | code >> 18), add(0x80 | (code >> 12 & 0x3F)), add(0x80 | (code >> 6 & 0x3F)),
          add(0x80 | (code & 0x3F));
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

Json Json::parse(std::string_view text) {
  return JsonParser(text).document();
}

const Json::Array& Json::array(std::string_view what) const {
  const Array* const found = std::get_if<Array>(&value_);
  require(found, what, " is no list");
  return *found;
}

const Json::Array& Json::array(std::string_view what, size_t count) const {
  const Array& found = array(what);
  require(found.size() == count, what, " has ", found.size(), " entries instead of ", count);
  return found;
}

const std::string& Json::string(std::string_view what) const {
  const std::string* const found = std::get_if<std::string>(&value_);
  require(found, what, " is no text");
  return *found;
}

int64_t Json::integer(std::string_view what, int64_t least, int64_t most) const {
  const int64_t* const found = std::get_if<int64_t>(&value_);
  require(found, what, " is no integer of 64 bits");
  require(*found >= least && *found <= most, what, " is ", *found, ", which must be from ", least, " to ", most);
  return *found;
}

double Json::real(std::string_view what) const {
  if (const double* const found = std::get_if<double>(&value_)) return *found;
  if (const int64_t* const found = std::get_if<int64_t>(&value_)) return static_cast<double>(*found);
  require(std::holds_alternative<Object>(value_), what, " is no number");
  const std::string& name = at("float").string(what);
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "-inf") return -std::numeric_limits<double>::infinity();
  require(name == "nan", what, " is no number");
  return std::numeric_limits<double>::quiet_NaN();
}

const Json& Json::at(std::string_view name) const {
  const Object* const found = std::get_if<Object>(&value_);
  require(found, "an object with ", name, " is missing");
  const auto member = std::ranges::find(*found, name, &Object::value_type::first);
  require(member != found->end(), name, " is missing");
  return member->second;
}

const Json* Json::entry(std::string_view name) const {
  for (const Json& pair : at("dict").array("a dict")) {
    const Array& parts = pair.array("an entry of a dict", 2);
    if (parts[0].is_string() && parts[0].string("a key") == name) return &parts[1];
  }
  return nullptr;
}

const Json& Json::required_entry(std::string_view name) const {
  const Json* const found = entry(name);
  require(found, name, " is missing");
  return *found;
}

}  // namespace candelabra::runner
