#include "amdgpu_pm4/toolchain/pointee.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <vector>

#include "amdgpu_pm4/toolchain/opencl_text.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

// The type that `typedef TYPE name;` declares, by OpenCL C's own name; the name itself if it is not declared so, or in
// several ways. text: without comments.
std::string declared_type(std::string_view text, const std::string& name) {
  constexpr std::string_view keyword = "typedef";
  std::string found;
  for (std::size_t at = text.find(keyword); at != std::string_view::npos; at = text.find(keyword, at + 1)) {
    if (at != 0 && is_word(text[at - 1])) continue;
    const std::string_view statement = text.substr(at, text.find(';', at) - at);
    if (statement.find_first_of("{}()[]*") != std::string_view::npos) continue;
    std::vector<std::string> words(1);
    for (const char c : statement) {
      if (is_word(c)) {
        words.back() += c;
      } else if (!words.back().empty()) {
        words.emplace_back();
      }
    }
    if (words.back().empty()) words.pop_back();
    if (words.size() < 3 || words.back() != name) continue;
    const auto has = [&](std::string_view word) { return std::ranges::find(words, word) != words.end(); };
    std::string type = words[words.size() - 2];
    for (const char* integer : {"int", "signed", "unsigned"}) {
      if (type == integer) type = has("long") ? "long" : has("short") ? "short" : has("char") ? "char" : "int";
    }
    if (has("unsigned")) type = "u" + type;
    if (!found.empty() && found != type) return name;
    found = type;
  }
  return found.empty() ? name : found;
}

}  // namespace

Pointee pointee_of(const std::string& type, const KernelSource& source) {
  constexpr struct {
    std::string_view name;
    ElementType element;
    std::uint32_t bytes;
  } types[] = {{"char", ElementType::i8, 1},    {"uchar", ElementType::u8, 1},  {"short", ElementType::i16, 2},
               {"ushort", ElementType::u16, 2}, {"int", ElementType::i32, 4},   {"uint", ElementType::u32, 4},
               {"long", ElementType::i64, 8},   {"ulong", ElementType::u64, 8}, {"half", ElementType::f16, 2},
               {"float", ElementType::f32, 4},  {"double", ElementType::f64, 8}};
  constexpr std::string_view widths[] = {"", "2", "3", "4", "8", "16"};
  constexpr int deepest = 8;  // of typedefs of typedefs
  std::string name = type.substr(0, type.find('*'));
  std::string text;  // read only if the source has names of its own
  for (int depth = 0; depth < deepest; ++depth) {
    const std::size_t letters = std::min(name.find_first_of("0123456789"), name.size());
    // "int16" is OpenCL C's own, "int16_t" the text's.
    const bool has_width = std::ranges::find(widths, std::string_view(name).substr(letters)) != std::end(widths);
    for (const auto& known : types) {
      if (!has_width || known.name != std::string_view(name).substr(0, letters)) continue;
      Pointee found{known.element, known.bytes};
      if (letters != name.size()) std::from_chars(name.data() + letters, name.data() + name.size(), found.components);
      return found;
    }
    if (source.dialect != Dialect::opencl_c) break;
    if (text.empty()) text = code_of(source.text);
    const std::string next = declared_type(text, name);
    if (next == name) break;
    name = next;
  }
  return {};
}

}  // namespace kiln::amdgpu_pm4
