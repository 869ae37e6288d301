#include "amdgpu_pm4/toolchain/prelude/prelude.hpp"

#include <set>

#include "amdgpu_pm4/toolchain/prelude/refusals.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

// One literal: the pieces join where they meet.
constexpr char pieces[] =
#include "amdgpu_pm4/toolchain/prelude/types.inc"

#include "amdgpu_pm4/toolchain/prelude/work_items.inc"

#include "amdgpu_pm4/toolchain/prelude/arithmetic.inc"

#include "amdgpu_pm4/toolchain/prelude/functions.inc"

#include "amdgpu_pm4/toolchain/prelude/memory.inc"
    ;

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
constexpr std::string_view digits = "0123456789";
constexpr std::string_view blanks = " \t\v\f\r\n";

template <class Visit>
void for_each_identifier(std::string_view text, Visit visit) {
  std::size_t at = 0;
  while ((at = text.find_first_of(letters, at)) != std::string_view::npos) {
    std::size_t end = at;
    while (end < text.size() && (letters.find(text[end]) != letters.npos || digits.find(text[end]) != digits.npos)) {
      ++end;
    }
    visit(text.substr(at, end - at));
    at = end;
  }
}

// Whether `text` stands between identifiers and is nothing but blanks.
bool is_blank(std::string_view text) { return text.find_first_not_of(blanks) == text.npos; }

// Whether the identifier names a function that is called: "(" follows it, and no type stands before it, as it does in a
// declaration. In a #define's text any identifier may.
class CallFinder {
 public:
  explicit CallFinder(std::string_view text) : text_(text) {}

  bool is_call(std::string_view name) {
    const auto at = static_cast<std::size_t>(name.data() - text_.data());
    const std::size_t behind = text_.find_first_not_of(blanks, at + name.size());
    const bool opens = behind != text_.npos && text_[behind] == '(';
    const bool declared = !previous_.empty() && previous_ != "return" && previous_ != "else" && previous_ != "do" &&
                          previous_ != "case" && is_blank(text_.substr(previous_end_, at - previous_end_));
    const bool macro_name = previous_ == "define" && declared;
    const bool in_macro = !macro_name && within_define(at);
    previous_ = name;
    previous_end_ = at + name.size();
    return in_macro || (opens && !declared);
  }

 private:
  bool within_define(std::size_t at) {
    for (std::size_t next; (next = text_.find('\n', line_)) < at;) line_ = next + 1;
    const std::size_t sign = text_.find_first_not_of(" \t", line_);
    if (sign >= at || text_[sign] != '#') return false;
    const std::size_t word = text_.find_first_not_of(" \t", sign + 1);
    return word < at && text_.substr(word).starts_with("define");
  }

  const std::string_view text_;
  std::string_view previous_;
  std::size_t previous_end_ = 0, line_ = 0;
};

void add(std::string_view part, std::set<std::string_view>& names) {
  if (part.empty()) return;
  names.insert(part);
  if (part.ends_with("8") || part.ends_with("16")) names.insert("wide");
  const std::size_t last = part.find_last_not_of(digits);
  if (last != std::string_view::npos) names.insert(part.substr(0, last + 1));
}

// The identifier, each part of it that ends before an underscore, and each part between two: also without the digits
// at its end.
void add_parts(std::string_view identifier, std::set<std::string_view>& names) {
  add(identifier, names);
  std::size_t from = 0;
  for (std::size_t at = identifier.find('_'); at != std::string_view::npos; at = identifier.find('_', at + 1)) {
    add(identifier.substr(0, at), names);
    add(identifier.substr(from, at - from), names);
    from = at + 1;
  }
  add(identifier.substr(from), names);
}

bool pastes_identifiers(std::string_view text) { return text.find("##") != std::string_view::npos; }

const std::set<std::string_view>& prelude_names() {
  static const std::set<std::string_view> names = [] {
    std::set<std::string_view> all = {"if",     "for",     "while",  "switch",        "return",
                                      "sizeof", "defined", "define", "__attribute__", "reqd_work_group_size",
                                      "kernel", "__kernel"};
    for_each_identifier(prelude(), [&all](std::string_view name) { all.insert(name); });
    all.erase("tgamma");  // made of a function of the library
    return all;
  }();
  return names;
}

}  // namespace

std::string_view prelude() noexcept { return {pieces, sizeof pieces - 1}; }

std::string uses_of(std::string_view text) {
  if (pastes_identifiers(text)) return "#define KILN_USES(name) 1\n";
  std::set<std::string_view> names;
  for_each_identifier(text, [&names](std::string_view identifier) { add_parts(identifier, names); });
  std::string defines = "#define KILN_USES(name) KILN_USES_##name\n";
  for (const std::string_view name : names) {
    // "2x" of "scale_2x" makes no identifier that the prelude looks for.
    if (digits.find(name[0]) == digits.npos) defines += "#define KILN_USES_" + std::string(name) + " 1\n";
  }
  return defines;
}

bool calls_library(std::string_view text) {
  if (pastes_identifiers(text)) return true;
  bool calls = false;
  CallFinder finder(text);
  for_each_identifier(text, [&](std::string_view name) {
    const bool called = finder.is_call(name);
    calls = calls || (called && !prelude_names().contains(name));
  });
  return calls;
}

std::string refusals_for(std::string_view text) {
  if (pastes_identifiers(text)) return refusals({});
  std::set<std::string_view> names;
  for_each_identifier(text, [&names](std::string_view name) { names.insert(name); });
  return names.empty() ? std::string() : refusals(names);
}

}  // namespace kiln::amdgpu_pm4
