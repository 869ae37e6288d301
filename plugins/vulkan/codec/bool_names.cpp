#include "codec/bool_names.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "codec/reflection.hpp"

namespace kiln::vulkan {
namespace {

bool is_word(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Words and signs, without comments and directives.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  bool at_line_start = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view two = text.substr(at, 2);
    const bool is_line = two == "//" || (at_line_start && text[at] == '#');
    if (is_line || two == "/*") {
      const std::size_t end = text.find(is_line ? "\n" : "*/", at + 1);
      at = end == std::string_view::npos ? text.size() : end + (is_line ? 0 : 2);
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const bool blank = std::string_view(" \t\r\n").find(text[at]) != std::string_view::npos;
    at_line_start = text[at] == '\n' || (at_line_start && blank);
    end = std::max(end, at + 1);
    if (!blank) words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

bool is_bool(std::string_view word) noexcept {
  return word == "bool" || word == "bvec2" || word == "bvec3" || word == "bvec4";
}

bool is_in(const std::vector<std::string_view>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

}  // namespace

bool BoolNames::contains(std::string_view name, bool is_member) const {
  if (is_member) return is_in(members, name);
  return is_in(uniforms, name) || (is_in(members, name) && !is_in(others, name));
}

BoolNames bool_names(std::string_view text) {
  BoolNames names;
  std::vector<bool> inside;  // by open brace: of a struct or block
  std::vector<std::string_view> statement;
  // "uniform bool a, b[2] = …"
  const auto declare = [&] {
    const bool is_member = !inside.empty();
    const auto type = std::ranges::find_if(statement, is_bool);
    if (!is_member && !is_in(statement, "uniform")) return;
    if (type == statement.end()) {
      if (!is_member) names.others.insert(names.others.end(), statement.begin(), statement.end());
      return;
    }
    int depth = 0;
    bool is_name = true;  // the next word
    for (auto word = type + 1; word != statement.end(); ++word) {
      if (*word == "(" || *word == "[") ++depth;
      if (*word == ")" || *word == "]") --depth;
      if (is_name && depth == 0 && is_word(word->front())) {
        (is_member ? names.members : names.uniforms).push_back(*word);
        is_name = false;
      }
      if (depth == 0 && *word == ",") is_name = true;
    }
  };
  for (const std::string_view word : words_of(text)) {
    const bool readable = std::ranges::find(inside, false) == inside.end();
    if (word == "{") {
      inside.push_back(is_in(statement, "struct") || is_in(statement, "uniform") || is_in(statement, "buffer"));
    } else if (word == "}") {
      if (!inside.empty()) inside.pop_back();
    } else if (word == ";") {
      if (readable) declare();
    } else {
      statement.push_back(word);
      continue;
    }
    statement.clear();
  }
  return names;
}

ProgramInterface complete(const Reflection& reflection, const KernelSource& source) {
  ProgramInterface interface;
  interface.resources = reflection.resources;
  interface.unused = reflection.unused;
  if (source.dialect != Dialect::glsl) return interface;
  std::optional<BoolNames> bools;  // reading a long text takes as long as loading its program
  for (ProgramResource& resource : interface.resources) {
    if (resource.kind != ResourceKind::uniform || resource.element != ElementType::u32) continue;
    if (!bools) bools = bool_names(source.text);
    const std::size_t dot = resource.name.rfind('.');
    std::string_view last = std::string_view(resource.name).substr(dot == std::string::npos ? 0 : dot + 1);
    last = last.substr(0, last.find('['));
    const bool is_member = dot != std::string::npos || !resource.block.empty();
    if (!bools->contains(last, is_member)) continue;
    // SPIR-V has no bool in a block: glslang declares it as uint.
    resource.element = ElementType::boolean;
    if (resource.type.starts_with("uint")) resource.type.replace(0, 4, "bool");
    if (resource.type.starts_with("uvec")) resource.type[0] = 'b';
  }
  return interface;
}

}  // namespace kiln::vulkan
