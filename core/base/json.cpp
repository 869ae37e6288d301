#include "base/json.hpp"

#include "base/visible_text.hpp"

namespace kiln {

Json parse_json(std::string_view text) { return Json::parse(text, nullptr, false); }

std::string json_text(const Json& json, int indent) {
  const std::string text = json.dump(indent, ' ', false, Json::error_handler_t::replace);
  // The library escapes C0 alone. The others stand inside strings, where an escape means the same.
  std::string safe;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const std::string_view rest = std::string_view(text).substr(at);
    const std::size_t length = first < 0x7f ? 1 : character_length(rest);
    if (first >= 0x7f && is_control_character(rest.substr(0, length))) {
      safe.append(text, copied, at - copied);
      safe += visible(rest.substr(0, length)).replace(0, 2, "\\u").insert(2, length == 1 ? "00" : "");
      copied = at + length;
    }
    at += length;
  }
  if (copied == 0) return text;
  return safe.append(text, copied);
}

}  // namespace kiln
