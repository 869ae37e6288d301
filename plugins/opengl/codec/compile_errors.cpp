#include "codec/source_text.hpp"

#include "codec/preprocessor.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

namespace kiln::opengl {
namespace {

using glsl::Token;
using glsl::Tokens;

std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::uint32_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

std::string line_with_name(std::string_view line, std::span<const std::string> files) {
  std::string_view rest = line;
  std::string_view kind;
  for (const std::string_view word : {"ERROR: ", "WARNING: "}) {
    if (kind.empty() && take(rest, word)) kind = word;
  }
  const auto source = take_number(rest);
  if (!source || *source >= files.size()) return std::string(line);
  const bool mesa = take(rest, ":");
  if (!mesa && !take(rest, "(")) return std::string(line);
  const auto number = take_number(rest);
  if (!number) return std::string(line);
  std::string place = files[*source] + ":" + std::to_string(*number) + ":";
  if (mesa && take(rest, "(")) {
    const auto column = take_number(rest);
    if (!column || !take(rest, ")")) return std::string(line);
    place += std::to_string(*column) + ":";
  } else if (!mesa && !take(rest, ")")) {
    return std::string(line);
  }
  if (!take(rest, " : ") && !take(rest, ": ")) return std::string(line);
  return place + " " + std::string(kind) + std::string(rest);
}

struct Advice {
  std::string_view word;
  std::string_view instead;
};

constexpr std::string_view no_sets =
    "remove it: OpenGL has no descriptor sets, and each block needs a separate binding";
constexpr std::string_view as_uniforms =
    "declare its members as plain uniforms, and give their values in the job's uniforms";
constexpr std::string_view as_constant = "remove the declaration, and give its value in the job's constants";
constexpr std::string_view as_size = "write the size, or the name of one of the job's constants, without \"_id\"";

// Qualifiers within layout(…).
constexpr Advice layout_words[] = {
    {"set", no_sets},
    {"push_constant", as_uniforms},
    {"constant_id", as_constant},
    {"local_size_x_id", as_size},
    {"local_size_y_id", as_size},
    {"local_size_z_id", as_size},
    {"input_attachment_index", "compute shaders have no input attachments"},
    {"scalar", "write std430, and pad the data as it says"},
    {"buffer_reference", "bind the memory as a buffer block"},
    {"buffer_reference_align", "bind the memory as a buffer block"},
};

// Parts of the names of extensions that only Vulkan has.
constexpr std::string_view extension_words[] = {"GL_KHR_vulkan_glsl",
                                                "GL_EXT_scalar_block_layout",
                                                "GL_EXT_buffer_reference",
                                                "GL_EXT_samplerless_texture_functions",
                                                "GL_EXT_shader_explicit_arithmetic_types",
                                                "GL_EXT_shader_8bit_storage",
                                                "GL_EXT_shader_16bit_storage",
                                                "GL_EXT_nonuniform_qualifier",
                                                "GL_EXT_debug_printf",
                                                "GL_EXT_shader_atomic_float",
                                                "GL_EXT_control_flow_attributes",
                                                "GL_EXT_spirv_intrinsics",
                                                "GL_EXT_ray_query",
                                                "GL_KHR_memory_scope_semantics",
                                                "GL_KHR_cooperative_matrix",
                                                "GL_NV_cooperative_matrix",
                                                "GL_KHR_shader_subgroup"};

// Types of textures and samplers apart from each other.
bool is_separate_type(std::string_view word) {
  if (word == "sampler" || word == "samplerShadow") return true;
  if (word.starts_with("u") || word.starts_with("i")) word.remove_prefix(1);
  if (word.starts_with("subpassInput")) return true;
  constexpr std::array<std::string_view, 11> shapes{
      "texture1D",     "texture1DArray", "texture2D",   "texture2DArray",   "texture2DMS",  "texture2DMSArray",
      "texture2DRect", "texture3D",      "textureCube", "textureCubeArray", "textureBuffer"};
  return std::ranges::find(shapes, word) != shapes.end();
}

class Findings {
 public:
  explicit Findings(std::span<const std::string> files) : files_(files) {}

  void add(const Token& token, std::string what, std::string_view instead) {
    auto known = std::ranges::find(found_, what, &Finding::what);
    if (known == found_.end()) known = found_.insert(found_.end(), {std::move(what), instead, {}});
    std::string place = token.source < files_.size() ? files_[token.source] + ":" : "line ";
    place += std::to_string(token.line);
    if (std::ranges::find(known->places, place) == known->places.end()) known->places.push_back(std::move(place));
  }

  std::string words() const {
    if (found_.empty()) return {};
    std::string all = (files_.empty() ? "the text" : files_[0]) +
                      std::string(" is written for Vulkan, expected GLSL for OpenGL. Change:\n");
    for (const Finding& finding : found_) {
      std::string places;
      for (const std::string& place : finding.places) places += (places.empty() ? "" : ", ") + place;
      all += "  " + places + ": " + finding.what + ": " + std::string(finding.instead) + "\n";
    }
    return all;
  }

 private:
  struct Finding {
    std::string what;
    std::string_view instead;
    std::vector<std::string> places;
  };

  std::span<const std::string> files_;
  std::vector<Finding> found_;  // in the order of the text
};

void find_in_layout(Tokens tokens, std::size_t layout, Findings& findings) {
  const Tokens inside = glsl::in_brackets(tokens, layout + 1);
  for (const Tokens qualifier : glsl::split(inside, ",")) {
    if (qualifier.empty()) continue;
    for (const Advice& advice : layout_words) {
      if (qualifier[0].text != advice.word) continue;
      std::string what(advice.word);
      if (advice.word == "constant_id") {
        // "layout(constant_id = 0) const int NAME = …": the name stands before "=".
        std::size_t at = glsl::past_brackets(tokens, layout + 1);
        while (at + 1 < tokens.size() && tokens[at + 1].text != "=" && tokens[at + 1].text != ";") ++at;
        if (at + 1 < tokens.size()) what += " of " + std::string(tokens[at].text);
      }
      findings.add(qualifier[0], std::move(what), advice.instead);
    }
  }
}

}  // namespace

std::string with_file_names(std::string_view log, std::span<const std::string> files) {
  std::string named;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    named += line_with_name(log.substr(0, end), files);
    if (end < log.size()) named += '\n';
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return named;
}

std::string vulkan_advice(std::string_view text, std::span<const std::string> files) {
  const glsl::Preprocessed read = glsl::preprocessed(text, {});
  Findings findings(files);
  for (const std::vector<Token>& extension : read.extensions) {
    if (extension.empty() || extension.back().text == "disable") continue;
    const std::string_view name = extension[0].text;
    const bool known = std::ranges::any_of(extension_words, [name](auto word) { return name.starts_with(word); });
    if (!known) continue;
    const bool exists = name.starts_with("GL_KHR_shader_subgroup");  // also in OpenGL, in some drivers
    findings.add(extension[0], "#extension " + std::string(name),
                 exists ? "this driver does not support it: use a vulkan device" : "remove it: OpenGL has no such extension");
  }
  const Tokens tokens = read.tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view word = tokens[i].text;
    const std::string_view next = i + 1 < tokens.size() ? tokens[i + 1].text : std::string_view();
    if (word == "layout" && next == "(") {
      find_in_layout(tokens, i, findings);
    } else if (word == "subpassLoad" || (is_separate_type(word) && glsl::is_name(next))) {
      findings.add(tokens[i], std::string(word), "use a combined sampler such as sampler2D, or a buffer");
    }
  }
  return findings.words();
}

}  // namespace kiln::opengl
