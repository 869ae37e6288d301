#include "amdgpu_pm4/toolchain/opencl_text.hpp"

#include <kiln/kernel_text.hpp>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <vector>

namespace kiln::amdgpu_pm4 {
namespace {

bool is_space(char c) noexcept { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// As a file's name in a line marker: no quotes, no line ends.
std::string marker_name(std::string_view name) {
  std::string text;
  for (const char c : name) text += c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' ? '_' : c;
  return text.empty() ? "kernel" : text;
}

// Where the text, without comments, asks a preprocessor for another file: the number of that line, else 0.
std::size_t line_of_include(std::string_view text) {
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view rest = text.substr(at, end - at);
    at = end + 1;
    const auto skip_blanks = [&rest] {
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t\v\f\r"), rest.size()));
    };
    skip_blanks();
    if (rest.starts_with("#")) {
      rest.remove_prefix(1);
    } else if (rest.starts_with("%:") || rest.starts_with("\?\?=")) {  // other spellings of "#"
      rest.remove_prefix(rest[0] == '%' ? 2 : 3);
    } else {
      continue;
    }
    skip_blanks();
    if (rest.starts_with("include") || rest.starts_with("import") || rest.starts_with("embed")) return line;
  }
  return 0;
}

// In C99 "extern inline" defines a function. Where "inline" alone does (-fgnu89-inline), it would not.
std::string without_extern_inline(std::string text) {
  constexpr std::string_view word = "extern";
  if (text.find(word) == std::string::npos) return text;
  const std::string code = code_of(text);
  for (std::size_t at = code.find(word); at != code.npos; at = code.find(word, at + 1)) {
    const std::size_t behind = at + word.size();
    const std::size_t next = std::min(code.find_first_not_of(" \t\r\n", behind), code.size());
    const std::string_view rest = std::string_view(code).substr(next);
    const bool follows = next != behind && (rest.starts_with("inline") || rest.starts_with("__inline"));
    if (follows && (at == 0 || !is_word(code[at - 1]))) text.replace(at, word.size(), word.size(), ' ');
  }
  return text;
}

// The text, with the files' names in the #line directives that read_kernel_text() wrote.
std::string with_file_names(std::string text, const std::vector<std::string>& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string marker = " \"" + line_marker(i) + "\"\n";
    const std::string named = " \"" + marker_name(files[i]) + "\"\n";
    for (std::size_t at = text.find(marker); at != std::string::npos; at = text.find(marker, at)) {
      const std::size_t line = text.rfind('\n', at) + 1;  // npos + 1 is 0
      const bool is_directive = std::string_view(text).substr(line).starts_with("#line ");
      if (is_directive) text.replace(at, marker.size(), named);
      at += is_directive ? named.size() : marker.size();
    }
  }
  return text;
}

constexpr std::string_view workgroup_attribute = "reqd_work_group_size";

std::string with_attribute(std::string text, std::string_view entry, const std::string& attribute);

// "0x5ULL", an integer's literal: its suffix where it is of long long.
std::string_view suffix_of_long_long(std::string_view literal) {
  const std::size_t first = literal.find_last_not_of("uUlL") + 1;
  const std::string_view suffix = literal.substr(first);
  return suffix.find("ll") != suffix.npos || suffix.find("LL") != suffix.npos ? suffix : std::string_view();
}

// What is said of the first long long of a code. In Clang's OpenCL C it has 128 bits.
std::string first_of_128_bits(std::string_view code) {
  std::string_view previous, before;  // words with only blanks between them
  for (std::size_t at = 0; at < code.size();) {
    const std::size_t from = at;
    while (at < code.size() && (is_word(code[at]) || (code[at] == '.' && at != from))) ++at;
    if (at == from) {
      if (!is_space(code[at])) previous = before = {};
      ++at;
      continue;
    }
    const std::string_view word = code.substr(from, at - from);
    if (const std::string_view suffix = suffix_of_long_long(word);
        word[0] >= '0' && word[0] <= '9' && !suffix.empty()) {
      std::string shorter(suffix);
      shorter.erase(shorter.find_first_of("lL"), 1);
      return "'" + std::string(suffix) + "' of " + std::string(word) + " means 128 bits in OpenCL C: write " + shorter;
    }
    if (word == "long" && previous == "long") {
      const bool is_unsigned = before == "unsigned";
      return std::string(is_unsigned ? "'unsigned long long'" : "'long long'") + " means 128 bits in OpenCL C: write " +
             (is_unsigned ? "ulong" : "long");
    }
    before = previous;
    previous = word;
  }
  return {};
}

}  // namespace

Result<OpenClText> assemble(const KernelSource& source, std::string_view name) {
  if (source.dialect != Dialect::opencl_c) {
    return unsupported("dialect " + std::string(to_string(source.dialect)) + ", expected opencl_c");
  }
  const std::string_view file = source.files.empty() ? name : source.files[0];
  if (!is_define_name(source.entry)) return invalid_argument("entry '" + source.entry + "': not an identifier");
  const std::string code = code_and_directives_of(source.text);
  if (const std::size_t line = line_of_include(code); line != 0) {
    return unsupported(marker_name(file) + ":" + std::to_string(line) +
                       ": #include is not resolved, expected the complete text. Use kiln::read_kernel_text(): included "
                       "files are part of the program's key");
  }
  std::string own;
  // A text that defines a constant again would not have the job's value.
  if (!source.constants.empty()) own = "#pragma clang diagnostic error \"-Wfinal-macro\"\n";
  for (const Define& define : source.constants) {
    if (!is_define_name(define.name)) return invalid_argument("constant '" + define.name + "': not an identifier");
    if (!is_define_text(define.text)) {
      return invalid_argument("constant '" + define.name + "': the value contains a line break or a backslash");
    }
    own += "#define " + define.name + " " + define.text + "\n#pragma clang final(" + define.name + ")\n";
  }
  std::string text = without_extern_inline(source.text);
  if (source.workgroup[0] != 0) {
    const auto& lanes = source.workgroup;
    const std::string attribute = "__attribute__((reqd_work_group_size(" + std::to_string(lanes[0]) + "," +
                                  std::to_string(lanes[1]) + "," + std::to_string(lanes[2]) + ")))";
    if (code.find(workgroup_attribute) != std::string::npos) {
      text = with_attribute(std::move(text), source.entry, attribute);
    } else {
      for (const char* const word : {"kernel", "__kernel"}) {
        own += "#define " + std::string(word) + " " + attribute + " " + word + "\n";
      }
    }
  }
  const bool calls = calls_library(own + source.text);
  own += "# 1 \"" + marker_name(file) + "\"\n" + with_file_names(std::move(text), source.files);
  // 3: as a system's header, of which no warning tells.
  std::string whole = "# 1 \"prelude\" 3\n";
  whole += uses_of(own);
  whole += prelude();
  whole += corrections_for(own);
  whole += refusals_for(own);
  whole += "# 1 \"constants\"\n";
  whole += own;
  if (whole.back() != '\n') whole += '\n';
  std::string warning = first_of_128_bits(code);
  if (!warning.empty()) warning = marker_name(file) + ": warning: " + warning + "\n";
  return OpenClText{std::move(whole), calls, marker_name(file), std::move(warning)};
}

namespace {

// Behind the comment or literal that begins there; `at` if none does.
std::size_t end_of_blank(std::string_view text, std::size_t at) {
  std::size_t end = at;
  if (text.substr(at, 2) == "//") {
    end = text.find('\n', at);
  } else if (text.substr(at, 2) == "/*") {
    end = text.find("*/", at + 2);
    if (end != text.npos) end += 2;
  } else if (text[at] == '"' || text[at] == '\'') {
    for (++end; end < text.size() && text[end] != text[at] && text[end] != '\n';) end += text[end] == '\\' ? 2 : 1;
    if (end < text.size() && text[end] == text[at]) ++end;  // in skipped text an apostrophe may stand alone
  }
  return std::min(end, text.size());
}

// Behind the last character of the directive's last line: a backslash or a comment may continue it.
std::size_t end_of_directive(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] != '\n' || text[at - 1] == '\\')) at = std::max(at + 1, end_of_blank(text, at));
  return at;
}

// Blanks in place of comments and literals, and of directives that are not to be kept.
std::string blanked(std::string_view text, bool keep_directives) {
  std::string code(text);
  bool first_of_line = true;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_directive = text[at] == '#' && first_of_line && !keep_directives;
    const std::size_t end = is_directive ? end_of_directive(text, at) : end_of_blank(text, at);
    if (end == at) {
      first_of_line = text[at] == '\n' || (first_of_line && is_space(text[at]));
      ++at;
      continue;
    }
    for (; at != end; ++at) {
      if (code[at] != '\n') code[at] = is_directive ? of_directive : ' ';
    }
  }
  return code;
}

}  // namespace

std::string code_of(std::string_view text) { return blanked(text, false); }

std::string code_and_directives_of(std::string_view text) { return blanked(text, true); }

namespace {

std::set<std::string_view> words_of(std::string_view text) {
  std::set<std::string_view> words;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t from = at;
    while (at < text.size() && is_word(text[at])) ++at;
    if (at != from) words.insert(text.substr(from, at - from));
  }
  return words;
}

// From the first word of its declaration to its last brace.
struct Function {
  std::string_view name;
  std::size_t begin = 0, end = 0;
};

// The last word outside of brackets in front of a "(": what stands before may be a macro or an attribute.
std::string_view name_of(std::string_view declaration) {
  std::string_view name;
  int depth = 0;
  for (std::size_t at = 0; at < declaration.size(); ++at) {
    if (declaration[at] == ')') --depth;
    if (declaration[at] != '(' || depth++ != 0 || at == 0) continue;
    std::size_t first = at;
    while (first != 0 && is_space(declaration[first - 1])) --first;
    const std::size_t behind = first;
    while (first != 0 && is_word(declaration[first - 1])) --first;
    const std::string_view word = declaration.substr(first, behind - first);
    if (word != "__attribute__") name = word;
  }
  return name;
}

// Those that the text defines; nullopt: its braces are not in pairs. code: of code_of().
std::optional<std::vector<Function>> functions_of(std::string_view code) {
  std::vector<Function> functions;
  std::size_t begin = 0;
  int depth = 0;
  std::string_view name;
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (code[at] == '{' && depth++ == 0) {
      const std::string_view declaration = code.substr(begin, at - begin);
      name = declaration.find('=') == declaration.npos ? name_of(declaration) : std::string_view();
    }
    if (code[at] == '}' && --depth < 0) return std::nullopt;
    if (depth != 0 || (code[at] != '}' && code[at] != ';')) continue;
    if (code[at] == '}' && name.empty()) continue;  // of a struct or an initializer: up to its ";"
    if (!name.empty()) functions.push_back({name, begin, at + 1});
    name = {};
    begin = at + 1;
  }
  if (depth != 0) return std::nullopt;
  return functions;
}

// The text, with the attribute at the kernel `entry` if only other kernels have one. Not where a macro may have it.
std::string with_attribute(std::string text, std::string_view entry, const std::string& attribute) {
  const std::string code = code_of(text);
  for (std::size_t at = text.find(workgroup_attribute); at != text.npos; at = text.find(workgroup_attribute, at + 1)) {
    if (code[at] == of_directive) return text;
  }
  const auto functions = functions_of(code);
  if (!functions) return text;
  const auto kernel = std::ranges::find(*functions, entry, &Function::name);
  if (kernel == functions->end()) return text;
  const std::string_view declaration =
      std::string_view(code).substr(kernel->begin, code.find('{', kernel->begin) - kernel->begin);
  const auto words = words_of(declaration);
  const bool is_kernel = words.contains("kernel") || words.contains("__kernel");
  if (!is_kernel || declaration.find(workgroup_attribute) != declaration.npos) return text;
  const auto first = static_cast<std::size_t>(std::ranges::find_if(declaration, is_word) - declaration.begin());
  return text.insert(kernel->begin + first, attribute + " ");
}

}  // namespace

std::optional<std::string> only_reachable(std::string_view text, std::string_view entry) {
  const std::string code = code_of(text);
  const auto functions = functions_of(code);
  if (!functions || std::ranges::find(*functions, entry, &Function::name) == functions->end()) return std::nullopt;
  // A directive may name any function, and so may what stands between functions.
  std::string around = code;
  for (const Function& function : *functions) {
    around.replace(function.begin, function.end - function.begin, function.end - function.begin, ' ');
  }
  for (std::size_t at = 0; at != code.size(); ++at) {
    if (code[at] == of_directive) around[at] = text[at];
  }
  std::set<std::string_view> reached = words_of(around);
  reached.insert(entry);
  std::vector<Function> left = *functions;
  for (bool more = true; more;) {
    const auto newly =
        std::partition(left.begin(), left.end(), [&](const Function& each) { return !reached.contains(each.name); });
    more = newly != left.end();
    for (const Function& function : std::span(newly, left.end())) {
      reached.merge(words_of(std::string_view(code).substr(function.begin, function.end - function.begin)));
    }
    left.erase(newly, left.end());
  }
  if (left.empty()) return std::nullopt;
  std::string reachable(text);
  for (const Function& function : left) {
    for (std::size_t at = function.begin; at != function.end; ++at) {
      if (code[at] != '\n' && code[at] != of_directive) reachable[at] = ' ';
    }
  }
  return reachable;
}

namespace {

// Whether the word at [at, end) of the code is called: "(" follows it, and neither "." nor "->" nor a type's name, as
// in a declaration, stands before it.
bool is_called(std::string_view code, std::size_t at, std::size_t end) {
  while (end < code.size() && is_space(code[end])) ++end;
  if (end == code.size() || code[end] != '(') return false;
  while (at != 0 && is_space(code[at - 1])) --at;
  if (at == 0) return true;
  if (code[at - 1] == '.' || (code[at - 1] == '>' && at >= 2 && code[at - 2] == '-')) return false;
  std::size_t first = at;
  while (first != 0 && is_word(code[first - 1])) --first;
  const std::string_view before = code.substr(first, at - first);
  return before.empty() || before == "return" || before == "else" || before == "do" || before == "case";
}

std::set<std::string_view> calls_of(std::string_view body) {
  std::set<std::string_view> calls;
  for (std::size_t at = 0; at < body.size(); ++at) {
    const std::size_t from = at;
    while (at < body.size() && is_word(body[at])) ++at;
    if (at != from && is_called(body, from, at)) calls.insert(body.substr(from, at - from));
  }
  return calls;
}

// The directives' first words, with what follows on their lines: "define", "fib(n) 1".
std::vector<std::pair<std::string_view, std::string_view>> directives_of(std::string_view text, std::string_view code) {
  constexpr std::string_view blanks = " \t";
  std::vector<std::pair<std::string_view, std::string_view>> directives;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (code[at] != of_directive || text[at] != '#') continue;
    std::size_t first = std::min(text.find_first_not_of(blanks, at + 1), text.size()), end = first;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::size_t rest = std::min(text.find_first_not_of(blanks, end), text.size());
    at = std::min(text.find('\n', end), text.size());
    directives.emplace_back(text.substr(first, end - first), text.substr(rest, std::max(at, rest) - rest));
  }
  return directives;
}

std::string_view first_word(std::string_view text) {
  return text.substr(0, static_cast<std::size_t>(std::ranges::find_if_not(text, is_word) - text.begin()));
}

// The names among `reached` whose calls are known from the text alone, with those calls. Everything that the functions
// of `entry` reach becomes `reached`.
std::map<std::string_view, std::set<std::string_view>> judged_calls(std::string_view text, std::string_view code,
                                                                    std::string_view entry,
                                                                    const std::vector<Function>& functions,
                                                                    const std::vector<Define>& constants) {
  std::map<std::string_view, std::set<std::string_view>> calls;
  std::set<std::string_view> unjudged;
  for (const Define& define : constants) unjudged.insert(define.name);
  for (const auto& [word, rest] : directives_of(text, code)) {
    if (word == "define") unjudged.insert(first_word(rest));
  }
  for (const Function& function : functions) {
    const std::size_t body = code.find('{', function.begin);
    const std::string_view declaration = code.substr(function.begin, body - function.begin);
    const auto inside = directives_of(text.substr(body, function.end - body), code.substr(body, function.end - body));
    const bool has_conditions =
        std::ranges::any_of(inside, [](const auto& each) { return each.first.starts_with("if"); });
    if (calls.contains(function.name) || has_conditions || declaration.find("overloadable") != declaration.npos) {
      unjudged.insert(function.name);
    }
    calls[function.name].merge(calls_of(code.substr(body, function.end - body)));
  }
  std::set<std::string_view> reached{entry};
  for (std::vector<std::string_view> next{entry}; !next.empty();) {
    const std::string_view name = next.back();
    next.pop_back();
    const auto at = calls.find(name);
    if (at == calls.end()) continue;
    for (const std::string_view called : at->second) {
      if (reached.insert(called).second) next.push_back(called);
    }
  }
  std::erase_if(calls,
                [&](const auto& each) { return !reached.contains(each.first) || unjudged.contains(each.first); });
  return calls;
}

}  // namespace

std::vector<std::string> call_cycle(std::string_view text, std::string_view entry,
                                    const std::vector<Define>& constants) {
  const std::string code = code_of(text);
  const auto functions = functions_of(code);
  if (!functions) return {};
  auto calls = judged_calls(text, code, entry, *functions, constants);
  // What calls none of the others is in no circle; where nothing more can be taken away, each leads on to another.
  const auto leads_on = [&calls](const auto& each) {
    return std::ranges::find_if(each.second, [&calls](std::string_view name) { return calls.contains(name); });
  };
  while (std::erase_if(calls, [&](const auto& each) { return leads_on(each) == each.second.end(); }) != 0) {
  }
  std::vector<std::string> way;
  if (calls.empty()) return way;
  for (auto at = calls.begin();; at = calls.find(*leads_on(*at))) {
    const auto again = std::ranges::find(way, at->first);
    if (again != way.end()) return {again, way.end()};
    way.emplace_back(at->first);
  }
}

}  // namespace kiln::amdgpu_pm4
