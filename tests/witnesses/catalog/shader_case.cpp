#include "witnesses/catalog/shader_case.hpp"

#include <algorithm>
#include <bit>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace kiln::witness {
namespace {

const std::set<std::string> known_needs{"vulkan",  "float64",   "int64",    "int16",        "int8",
                                        "float16", "storage16", "storage8", "atomic_int64", "denorm_preserve_float32"};

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

[[noreturn]] void refuse(const std::string& what) { throw std::runtime_error(what); }

std::uint32_t whole(const std::string& word) {
  std::size_t used = 0;
  const unsigned long value = std::stoul(word, &used, 10);
  if (used != word.size()) refuse("\"" + word + "\" is not a number");
  return static_cast<std::uint32_t>(value);
}

std::array<std::uint32_t, 3> size_of_words(const std::vector<std::string>& words) {
  if (words.size() < 2 || words.size() > 4) refuse("one to three numbers");
  std::array<std::uint32_t, 3> size{1, 1, 1};
  for (std::size_t k = 1; k < words.size(); ++k) size[k - 1] = whole(words[k]);
  return size;
}

BufferSpec buffer_of(const std::vector<std::string>& words) {
  BufferSpec buffer;
  buffer.use = words[0] == "@in"        ? Use::in
               : words[0] == "@uniform" ? Use::uniform
               : words[0] == "@inout"   ? Use::inout
                                        : Use::out;
  const std::size_t least = buffer.use == Use::inout ? 6 : 5;
  if (words.size() < least || words.size() > least + (buffer.compared() ? 1u : 0u))
    refuse("words missing, or too many");
  buffer.type = words[1];
  buffer.name = words[2];
  buffer.count = whole(words[3]);
  const Type type = type_of(buffer.type);
  if (type.lanes == 0) refuse("type " + buffer.type + " is not one for a buffer");
  buffer.scalar = type.scalar;
  buffer.lanes = type.lanes;
  if (buffer.use == Use::uniform && type.lanes * size_of(type.scalar) != 16)
    refuse("a uniform block is of 16-byte vectors");
  buffer.pattern = buffer.use == Use::out ? "zero" : words[4];
  if (buffer.compared()) {
    buffer.device = parse_comparison(words[least - 1]);
    buffer.software = buffer.device;
    if (words.size() > least) {
      const std::string prefix = "software=";
      if (words[least].rfind(prefix, 0) != 0) refuse("unknown word " + words[least]);
      buffer.software = parse_comparison(words[least].substr(prefix.size()));
    }
  }
  return buffer;
}

Parameter parameter_of(const std::vector<std::string>& words) {
  if (words.size() < 4) refuse("a type, a name and a value");
  Parameter parameter{words[1], words[2], {}};
  for (std::size_t k = 3; k < words.size(); ++k) {
    if (parameter.type == "float" || parameter.type == "vec4") {
      parameter.words.push_back(std::bit_cast<std::uint32_t>(std::stof(words[k])));
    } else if (parameter.type == "int" || parameter.type == "uint") {
      parameter.words.push_back(static_cast<std::uint32_t>(std::stoll(words[k])));
    } else {
      refuse("type " + parameter.type + " is not one for a parameter");
    }
  }
  if (parameter.words.size() != (parameter.type == "vec4" ? 4u : 1u)) refuse("another number of values");
  return parameter;
}

void read_line(ShaderCase& shader, std::string& indirect, const std::string& line) {
  const std::vector<std::string> words = words_of(line);
  const std::string& key = words[0];
  if (key == "@why") {
    shader.why += (shader.why.empty() ? "" : " ") + line.substr(key.size() + 1);
  } else if (key == "@needs") {
    for (std::size_t k = 1; k < words.size(); ++k) {
      if (!known_needs.contains(words[k])) refuse("unknown need " + words[k]);
      shader.needs.insert(words[k]);
    }
  } else if (key == "@extension" && words.size() == 2) {
    shader.extensions.push_back(words[1]);
  } else if (key == "@local") {
    shader.local = size_of_words(words);
  } else if (key == "@groups") {
    shader.groups = size_of_words(words);
  } else if (key == "@passes" && words.size() == 2) {
    shader.passes = whole(words[1]);
    shader.parameters.insert(shader.parameters.begin(), {"uint", "pass", {0}});
  } else if (key == "@indirect" && words.size() == 2) {
    indirect = words[1];
  } else if (key == "@in" || key == "@uniform" || key == "@inout" || key == "@out") {
    shader.buffers.push_back(buffer_of(words));
  } else if (key == "@parameter") {
    shader.parameters.push_back(parameter_of(words));
  } else {
    refuse("unknown line " + line);
  }
}

void finish(ShaderCase& shader, const std::string& indirect) {
  if (indirect == "host") {
    shader.indirect_host = true;
  } else if (!indirect.empty()) {
    const auto found = std::find_if(shader.buffers.begin(), shader.buffers.end(),
                                    [&](const BufferSpec& buffer) { return buffer.name == indirect; });
    if (found == shader.buffers.end()) refuse("@indirect names no buffer of " + shader.name);
    shader.indirect_buffer = static_cast<std::size_t>(found - shader.buffers.begin());
  }
  if (std::none_of(shader.buffers.begin(), shader.buffers.end(), [](const BufferSpec& b) { return b.compared(); })) {
    refuse(shader.name + " has no output");
  }
}

void read_file(const std::filesystem::path& path, std::vector<ShaderCase>& cases) {
  std::ifstream file(path);
  if (!file) refuse(path.string() + ": cannot be read");
  std::string indirect;
  std::size_t number = 0;
  bool open = false;
  try {
    for (std::string line; std::getline(file, line);) {
      ++number;
      if (line.rfind("@shader ", 0) == 0) {
        if (open) finish(cases.back(), indirect);
        indirect.clear();
        open = true;
        cases.emplace_back().name = words_of(line).at(1);
      } else if (open && !line.empty() && line[0] == '@') {
        read_line(cases.back(), indirect, line);
      } else if (open) {
        cases.back().body += line + "\n";
      }
    }
    if (open) finish(cases.back(), indirect);
  } catch (const std::exception& error) {
    refuse(path.string() + ":" + std::to_string(number) + ": " + error.what());
  }
}

}  // namespace

std::vector<ShaderCase> load_cases(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".glsl") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<ShaderCase> cases;
  for (const auto& path : files) read_file(path, cases);
  std::set<std::string> names;
  for (const ShaderCase& each : cases) {
    if (!names.insert(each.name).second) refuse(folder.string() + ": two shaders are called " + each.name);
  }
  return cases;
}

}  // namespace kiln::witness
