#include "config/text/toml_text.hpp"

#include "base/visible_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace kiln::config {
namespace {

void append_control(std::string& out, unsigned char byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  if (byte == '\n') {
    out += "\\n";
  } else if (byte == '\t') {
    out += "\\t";
  } else if (byte == '\r') {
    out += "\\r";
  } else {
    out += "\\u00";
    out += digits[byte >> 4u];
    out += digits[byte & 15u];
  }
}

bool is_control(unsigned char byte) { return byte < 0x20 || byte == 0x7F; }

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

}  // namespace

std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    is_control(byte) ? append_control(out, byte) : out.push_back(c);
  }
  return visible(out) + '"';  // what TOML allows and a terminal would obey
}

std::string toml_key(std::string_view key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), is_bare);
  return bare ? std::string(key) : toml_text(key);
}

std::string print_number(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::array<char, 32> digits{};  // the shortest form of a double has at most 24 characters
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  std::string text(digits.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace kiln::config
