#include <kiln/kernel_text.hpp>

#include <kiln/regular_file.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t most_text_bytes = 16u << 20;  // of one file, and of the whole text
constexpr std::size_t most_nested_includes = 100;      // files that include each other in a chain
constexpr std::string_view blanks = " \t\v\f";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

std::string_view take_word(std::string_view& rest) {
  rest = trimmed(rest);
  const auto end = std::ranges::find_if_not(rest, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  const std::string_view word = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  rest = trimmed(rest.substr(word.size()));
  return word;
}

// A line as the preprocessor sees it: continued lines joined, a blank for each comment. A comment may hold line ends.
struct Line {
  std::string plain;
  std::size_t begin = 0, end = 0;     // in the text; `end` is behind its line end
  std::size_t number = 0, lines = 1;  // its first line, from 1, and how many it takes
};

class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}

  std::optional<Line> next() {
    if (at_ == text_.size()) return std::nullopt;
    Line line;
    line.begin = at_;
    line.number = number_;
    while (at_ < text_.size() && text_[at_] != '\n') step(line.plain);
    if (at_ < text_.size()) take(1);
    line.end = at_;
    line.lines = number_ - line.number;
    return line;
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }

  void take(std::size_t count) {
    number_ += static_cast<std::size_t>(std::ranges::count(rest().substr(0, count), '\n'));
    at_ = std::min(at_ + count, text_.size());
  }

  void step(std::string& plain) {
    if (rest().starts_with("\\\n")) return take(2);
    if (rest().starts_with("//")) {
      while (at_ < text_.size() && text_[at_] != '\n') take(rest().starts_with("\\\n") ? 2 : 1);
      plain += ' ';
    } else if (rest().starts_with("/*")) {
      const std::size_t end = rest().find("*/", 2);
      take(end == std::string_view::npos ? rest().size() : end + 2);
      plain += ' ';
    } else if (text_[at_] == '"') {
      std::size_t end = at_ + 1;
      while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
      end = std::min(end, text_.size());
      if (end < text_.size() && text_[end] == '"') ++end;
      plain += text_.substr(at_, end - at_);
      take(end - at_);
    } else {
      plain += text_[at_];
      take(1);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t number_ = 1;
};

// The words of a directive: "include" and what follows; nullopt: no directive.
struct Directive {
  std::string_view word, rest;
};

std::optional<Directive> directive_of(std::string_view plain) {
  std::string_view rest = trimmed(plain);
  if (!rest.starts_with("#")) return std::nullopt;
  rest.remove_prefix(1);
  const std::string_view word = take_word(rest);
  return Directive{word, rest};
}

// The macro whose absence the condition asks for: "X" of `#ifndef X` and `#if !defined(X)`.
std::string_view guard_of(const Directive& directive) {
  std::string_view rest = directive.rest;
  if (directive.word == "ifndef") {
    const std::string_view name = take_word(rest);
    return rest.empty() ? name : std::string_view();
  }
  if (directive.word != "if" || !rest.starts_with("!")) return {};
  rest.remove_prefix(1);
  if (take_word(rest) != "defined") return {};
  const bool bracket = rest.starts_with("(");
  if (bracket) rest.remove_prefix(1);
  const std::string_view name = take_word(rest);
  return rest == (bracket ? ")" : "") ? name : std::string_view();
}

enum class Guard : std::uint8_t { none, once, macro };

// macro: all of the text stands between `#ifndef X`, `#define X` and its #endif.
Guard guard_in(std::string_view text) {
  Lines lines(text);
  std::string macro;
  std::size_t depth = 0, line_of_text = 0;
  bool whole = true;
  bool once = false;
  for (auto line = lines.next(); line; line = lines.next()) {
    if (trimmed(line->plain).empty()) continue;
    ++line_of_text;
    const auto directive = directive_of(line->plain);
    const std::string_view word = directive ? directive->word : std::string_view();
    std::string_view rest = directive ? directive->rest : std::string_view();
    if (word == "pragma" && rest == "once") {
      once = true;
      --line_of_text;
      continue;
    }
    if (line_of_text == 1) {
      macro = directive ? guard_of(*directive) : std::string_view();
      whole = !macro.empty();
    } else if (line_of_text == 2) {
      whole = whole && word == "define" && take_word(rest) == macro;
    } else if (depth == 0 || (depth == 1 && (word == "else" || word == "elif"))) {
      whole = false;
    }
    if (word == "if" || word == "ifdef" || word == "ifndef") ++depth;
    if (word == "endif" && depth > 0) --depth;
  }
  if (once) return Guard::once;
  return whole && depth == 0 && line_of_text > 2 ? Guard::macro : Guard::none;
}

struct File {
  std::string name;  // in messages
  std::size_t number = 0;
  std::string text;
  Guard guard = Guard::none;
  bool included = false;  // outside every condition
};

std::string place_of(std::string_view name, std::size_t line) {
  return std::string(name) + ":" + std::to_string(line) + ": ";
}

// Whether no directive of the text is one that this reader acts on. A directive that is written in an unusual way
// counts as one.
bool needs_no_reading(std::string_view text) {
  constexpr std::string_view passed_on[] = {"define", "undef", "if",    "ifdef",   "ifndef",
                                            "else",   "elif",  "endif", "version", "error"};
  for (std::size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1)) {
    std::string_view rest = text.substr(at + 1, 32);
    const std::string_view word = take_word(rest);
    const bool ends = rest.empty() || rest.front() != '\\';  // a line may be continued within a word
    if (!ends || std::ranges::find(passed_on, word) == std::end(passed_on)) return false;
  }
  return true;
}

// A text that the compilers take: no byte-order mark, LF line ends.
Result<std::string> clean_text(std::string_view bytes, const std::string& name) {
  using namespace std::string_view_literals;
  for (const auto& [mark, encoding] : {std::pair("\xff\xfe\0\0"sv, "UTF-32"), std::pair("\0\0\xfe\xff"sv, "UTF-32"),
                                       std::pair("\xff\xfe"sv, "UTF-16"), std::pair("\xfe\xff"sv, "UTF-16")}) {
    if (!bytes.starts_with(mark)) continue;
    return invalid_argument(name + ": begins with the byte-order mark of " + encoding +
                            ", expected UTF-8. Save the file as UTF-8");
  }
  if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3);
  // One search for each: find_first_of() calls memchr() for every character.
  if (bytes.find('\r') == std::string_view::npos && bytes.find('\0') == std::string_view::npos)
    return std::string(bytes);
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\r') {
      text += '\n';
      if (i + 1 < bytes.size() && bytes[i + 1] == '\n') ++i;
    } else if (bytes[i] == '\0') {
      const auto line = 1 + static_cast<std::size_t>(std::ranges::count(text, '\n'));
      const std::size_t column = text.size() - (text.rfind('\n') + 1) + 1;  // npos + 1 is 0
      return invalid_argument(
          name + ":" + std::to_string(line) + ":" + std::to_string(column) +
          ": found a NUL byte, expected text in UTF-8. If the file is in UTF-16, save the file as UTF-8");
    } else {
      text += bytes[i];
    }
  }
  return text;
}

Result<std::string> read_included_file(const fs::path& path, const std::string& name) {
  const Result<RegularFile> file = RegularFile::open(path);
  if (!file) {
    const Status& why = file.error();
    if (why.code == StatusCode::not_found) return io_error(name + ": no such file (" + path.string() + ")");
    return io_error(name + ": " + why.message);
  }
  const Result<std::string> bytes = file->text(most_text_bytes);
  if (!bytes) return bytes.error().within(name);
  return clean_text(*bytes, name);
}

// A module of SPIR-V: its bytes, unchanged.
Result<KernelText> read_module(const KernelFile& kernel) {
  const fs::path path = kernel.folder / kernel.file;
  auto bytes = read_whole_file(path, most_text_bytes);
  if (!bytes) return io_error(kernel.file + ": " + bytes.error().message);
  constexpr std::string_view magic{"\x03\x02\x23\x07", 4};
  if (!bytes->starts_with(magic) || bytes->size() % magic.size() != 0) {
    return invalid_argument(
        kernel.file + ": is not a SPIR-V module (expected a multiple of 4 bytes that begins with 03 02 23 07, found " +
        std::to_string(bytes->size()) + " bytes). Compile the shader, for example with glslangValidator -V");
  }
  KernelText read;
  read.text = std::move(*bytes);
  return read;
}

class IncludeReader {
 public:
  IncludeReader(const KernelFile& kernel, Dialect dialect) : kernel_(kernel), dialect_(dialect) {}

  Result<KernelText> read() {
    const fs::path path = kernel_.folder / kernel_.file;
    auto text = read_included_file(path, "kernel source " + kernel_.file);
    if (!text) return text.error();
    if (needs_no_reading(*text)) return KernelText{*std::move(text), {}};
    File& main = files_[identity_of(path)];
    main.name = kernel_.file;
    main.text = *std::move(text);
    main.guard = guard_in(main.text);
    main.included = true;
    if (Status status = append(main, true); !status.ok()) return status;
    return std::move(read_);
  }

 private:
  struct Condition {
    bool certain = false;  // the include guard of the file: its text is compiled where the file is included first
  };

  static std::string identity_of(const fs::path& path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    return error ? path.string() : real.string();
  }

  // certain: outside every condition.
  Status append(const File& file, bool certain) {
    if (chain_.size() == most_nested_includes) return invalid_argument(chain() + ": more than 100 nested includes");
    chain_.push_back(&file);
    Lines lines(file.text);
    std::vector<Condition> conditions;
    std::size_t next_guard = file.guard == Guard::macro ? 1 : 0;
    for (auto line = lines.next(); line; line = lines.next()) {
      const auto directive = directive_of(line->plain);
      const std::string_view word = directive ? directive->word : std::string_view();
      if (word == "if" || word == "ifdef" || word == "ifndef")
        conditions.push_back({std::exchange(next_guard, 0) != 0});
      if (word == "endif" && !conditions.empty()) conditions.pop_back();
      Status status;
      if (word == "include") {
        status = include(file, *line, directive->rest, certain && std::ranges::all_of(conditions, &Condition::certain));
      } else if (word == "line" && names_file(directive->rest)) {
        std::string_view name = directive->rest;
        const std::string_view number = take_word(name);
        read_.text += "#line " + std::string(number) + " " +
                      std::to_string(number_of(name.substr(1, name.size() - 2))) + "\n" +
                      std::string(line->lines - 1, '\n');
      } else if (directive && is_dropped(*directive)) {
        read_.text.append(line->lines, '\n');
      } else {
        read_.text.append(file.text, line->begin, line->end - line->begin);
      }
      if (status.ok() && read_.text.size() > most_text_bytes) {
        status = invalid_argument(file.name + ": more than " + std::to_string(most_text_bytes) +
                                  " bytes together with all included files");
      }
      if (!status.ok()) return status;
    }
    chain_.pop_back();
    return {};
  }

  // Lines that do their work here: the compiler may not know them.
  bool is_dropped(const Directive& directive) const {
    std::string_view rest = directive.rest;
    if (directive.word == "pragma") return rest == "once";
    if (directive.word != "extension" || dialect_ != Dialect::glsl) return false;
    const std::string_view name = take_word(rest);
    return name == "GL_ARB_shading_language_include" || name == "GL_GOOGLE_include_directive" ||
           name == "GL_GOOGLE_cpp_style_line_directive";
  }

  // GLSL's "#line NUMBER "NAME"": OpenGL numbers the sources.
  bool names_file(std::string_view rest) const {
    take_word(rest);
    return dialect_ == Dialect::glsl && rest.size() > 1 && rest.front() == '"' && rest.back() == '"';
  }
  std::size_t number_of(std::string_view name) {
    const auto known = std::ranges::find(read_.includes, name);
    const auto number = static_cast<std::size_t>(known - read_.includes.begin()) + 1;
    if (known == read_.includes.end()) read_.includes.emplace_back(name);
    return number;
  }

  Status include(const File& from, const Line& line, std::string_view operand, bool certain) {
    auto found = find(from, operand);
    if (!found) {
      if (certain) return invalid_argument(place_of(from.name, line.number) + found.error().message);
      read_.text += "#error " + found.error().message + "\n" + std::string(line.lines - 1, '\n');
      return {};
    }
    File& file = **found;
    const bool guarded = file.guard != Guard::none;
    const bool is_open = std::ranges::find(chain_, &file) != chain_.end();
    if (is_open && !guarded) {
      return invalid_argument(place_of(from.name, line.number) + "files include each other: " + chain() + " -> " +
                              file.name + ". Begin " + file.name + " with #pragma once or an include guard");
    }
    if (guarded && (is_open || file.included)) {
      read_.text.append(line.lines, '\n');
      return {};
    }
    file.included = certain;
    const std::string once = file.guard == Guard::once ? "KILN_ONCE_" + std::to_string(file.number) : "";
    if (!once.empty()) read_.text += "#ifndef " + once + "\n#define " + once + "\n";
    read_.text += line_directive(1, file);
    if (Status status = append(file, certain); !status.ok()) return status;
    if (!read_.text.ends_with("\n")) read_.text += '\n';
    if (!once.empty()) read_.text += "#endif\n";
    read_.text += line_directive(line.number + line.lines, from);
    return {};
  }

  std::string line_directive(std::size_t line, const File& file) const {
    const std::string number =
        dialect_ == Dialect::glsl ? std::to_string(file.number) : "\"" + line_marker(file.number) + "\"";
    return "#line " + std::to_string(line) + " " + number + "\n";
  }

  std::string chain() const {
    std::string names;
    for (const File* file : chain_) names += (names.empty() ? "" : " -> ") + file->name;
    return names;
  }

  // The file that an #include names. The error does not say where the directive stands.
  Result<File*> find(const File& from, std::string_view operand) {
    const std::string what = "#include " + std::string(operand);
    const char close = operand.starts_with("<") ? '>' : '"';
    const bool quoted = operand.size() > 2 && (operand[0] == '"' || operand[0] == '<');
    if (!quoted || operand.find(close, 1) != operand.size() - 1) {
      return invalid_argument(what + ": expected \"FILE\" or <FILE>");
    }
    const std::string wanted(operand.substr(1, operand.size() - 2));
    const std::string below = wanted.substr(std::min(wanted.find_first_not_of('/'), wanted.size()));
    std::vector<std::string> places{(fs::path(from.name).parent_path() / wanted).lexically_normal().string()};
    for (const std::string& folder : kernel_.include) {
      std::string name = (fs::path(folder) / below).lexically_normal().string();
      if (std::ranges::find(places, name) == places.end()) places.push_back(std::move(name));
    }
    std::string tried;
    for (const std::string& name : places) {
      const fs::path path = kernel_.folder / name;
      std::error_code error;
      if (fs::is_regular_file(path, error)) return opened(path, name);
      tried += (tried.empty() ? "" : ", ") + name;
    }
    return invalid_argument(what + ": no such file (tried " + tried +
                            "). Put the file there, or add the folder of the file to the job's include");
  }

  Result<File*> opened(const fs::path& path, const std::string& name) {
    const std::string identity = identity_of(path);
    if (const auto known = files_.find(identity); known != files_.end()) return &known->second;
    auto text = read_included_file(path, name);
    if (!text) return text.error();
    File file{name, read_.includes.size() + 1, *std::move(text), Guard::none, false};
    file.guard = guard_in(file.text);
    read_.includes.push_back(name);
    return &files_.emplace(identity, std::move(file)).first->second;
  }

  const KernelFile& kernel_;
  Dialect dialect_;
  KernelText read_;
  std::map<std::string, File> files_;  // by their real path
  std::vector<const File*> chain_;     // open ones, outermost first
};

}  // namespace

Result<KernelText> read_kernel_text(const KernelFile& file, Dialect dialect) {
  return dialect == Dialect::code_object ? read_module(file) : IncludeReader(file, dialect).read();
}

std::string line_marker(std::size_t number) { return "kiln-file-" + std::to_string(number); }

}  // namespace kiln
