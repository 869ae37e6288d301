#include "amdgpu_pm4/toolchain/opencl_text.hpp"

#include <kiln/kernel_text.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <vector>

namespace kiln::amdgpu_pm4 {
namespace {

// As a file's name in a line marker: no quotes, no line ends.
std::string marker_name(std::string_view name) {
  std::string text;
  for (const char c : name) text += c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' ? '_' : c;
  return text.empty() ? "kernel" : text;
}

// Where the text, read as a preprocessor does, asks for another file: the number of that line, else 0. Comments between
// "#" and its word are not looked through; the compiler then looks for the file where there is none.
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

// The text, with the files' names in the #line directives that read_kernel_text() wrote.
std::string with_file_names(const KernelSource& source) {
  std::string text = source.text;
  for (std::size_t i = 0; i < source.files.size(); ++i) {
    const std::string marker = " \"" + line_marker(i) + "\"\n";
    const std::string named = " \"" + marker_name(source.files[i]) + "\"\n";
    for (std::size_t at = text.find(marker); at != std::string::npos; at = text.find(marker, at)) {
      const std::size_t line = text.rfind('\n', at) + 1;  // npos + 1 is 0
      const bool is_directive = std::string_view(text).substr(line).starts_with("#line ");
      if (is_directive) text.replace(at, marker.size(), named);
      at += is_directive ? named.size() : marker.size();
    }
  }
  return text;
}

}  // namespace

Result<OpenClText> assemble(const KernelSource& source, std::string_view name) {
  if (source.dialect != Dialect::opencl_c) {
    return unsupported("dialect " + std::string(to_string(source.dialect)) + ", expected opencl_c");
  }
  const std::string_view file = source.files.empty() ? name : source.files[0];
  if (!is_define_name(source.entry)) return invalid_argument("entry '" + source.entry + "': not an identifier");
  if (const std::size_t line = line_of_include(source.text); line != 0) {
    return unsupported(marker_name(file) + ":" + std::to_string(line) +
                       ": #include: not resolved, expected the whole text, as kiln::read_kernel_text() makes it. The "
                       "included files are part of the program's key");
  }
  std::string own;
  // A text that defines a constant again would not have the job's value.
  if (!source.constants.empty()) own = "#pragma clang diagnostic error \"-Wfinal-macro\"\n";
  for (const Define& define : source.constants) {
    if (!is_define_name(define.name)) return invalid_argument("constant '" + define.name + "': not an identifier");
    if (!is_define_text(define.text)) {
      return invalid_argument("constant '" + define.name + "': its text has a line break or a backslash");
    }
    own += "#define " + define.name + " " + define.text + "\n#pragma clang final(" + define.name + ")\n";
  }
  if (source.workgroup[0] != 0 && source.text.find("reqd_work_group_size") == std::string::npos) {
    const auto& lanes = source.workgroup;
    const std::string attribute = "__attribute__((reqd_work_group_size(" + std::to_string(lanes[0]) + "," +
                                  std::to_string(lanes[1]) + "," + std::to_string(lanes[2]) + ")))";
    for (const char* const word : {"kernel", "__kernel"}) {
      own += "#define " + std::string(word) + " " + attribute + " " + word + "\n";
    }
  }
  const bool calls = calls_library(own + source.text);
  own += "# 1 \"" + marker_name(file) + "\"\n" + with_file_names(source);
  // 3: as a system's header, of which no warning tells.
  std::string whole = "# 1 \"prelude\" 3\n";
  whole += uses_of(own);
  whole += prelude();
  whole += corrections_for(own);
  whole += refusals_for(own);
  whole += "# 1 \"constants\"\n";
  whole += own;
  if (whole.back() != '\n') whole += '\n';
  return OpenClText{std::move(whole), calls};
}

namespace {

bool is_word(char c) noexcept { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string without_comments(std::string_view text) {
  std::string left;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view two = text.substr(at, 2);
    if (two != "//" && two != "/*") {
      left += text[at++];
      continue;
    }
    const std::size_t end = text.find(two == "//" ? "\n" : "*/", at + 2);
    left += ' ';
    at = end == std::string_view::npos ? text.size() : end + (two == "//" ? 0 : 2);
  }
  return left;
}

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
  constexpr int deepest = 8;  // of typedefs of typedefs
  std::string name = type.substr(0, type.find('*'));
  std::string text;  // read only if the source has names of its own
  for (int depth = 0; depth < deepest; ++depth) {
    const std::size_t letters = std::min(name.find_first_of("0123456789"), name.size());
    for (const auto& known : types) {
      if (known.name != std::string_view(name).substr(0, letters)) continue;
      Pointee found{known.element, known.bytes};
      if (letters != name.size()) std::from_chars(name.data() + letters, name.data() + name.size(), found.components);
      return found;
    }
    if (source.dialect != Dialect::opencl_c) break;
    if (text.empty()) text = without_comments(source.text);
    const std::string next = declared_type(text, name);
    if (next == name) break;
    name = next;
  }
  return {};
}

}  // namespace kiln::amdgpu_pm4
