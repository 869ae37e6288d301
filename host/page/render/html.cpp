#include "page/render/html.hpp"

#include "base/visible_text.hpp"

#include <kiln/digest.hpp>

#include <cstdint>
#include <span>

namespace kiln::host::page {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    const auto at = [&](std::size_t k) { return k < left ? std::uint32_t{bytes[i + k]} : 0U; };
    const std::uint32_t group = at(0) << 16 | at(1) << 8 | at(2);
    text += digits[group >> 18 & 63];
    text += digits[group >> 12 & 63];
    text += left > 1 ? digits[group >> 6 & 63] : '=';
    text += left > 2 ? digits[group & 63] : '=';
  }
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  html.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (length == 0 || (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f) {
      html += replacement;
    } else if (first == '&') {
      html += "&amp;";
    } else if (first == '<') {
      html += "&lt;";
    } else if (first == '>') {
      html += "&gt;";
    } else if (first == '"') {
      html += "&quot;";
    } else if (first == '\'') {
      html += "&#39;";
    } else {
      html += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return html;
}

std::string script_json(const Json& json) {
  std::string safe;
  const std::string text = json_text(json);
  safe.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<') {
      safe += "\\u003c";
    } else if (c == '>') {
      safe += "\\u003e";
    } else if (c == '&') {
      safe += "\\u0026";
    } else if (text.compare(i, 3, "\xe2\x80\xa8") == 0) {
      safe += "\\u2028";
      i += 2;
    } else if (text.compare(i, 3, "\xe2\x80\xa9") == 0) {
      safe += "\\u2029";
      i += 2;
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string policy_hash(std::string_view content) { return "'sha256-" + base64(sha256(content).bytes) + "'"; }

}  // namespace kiln::host::page
