// libkiln_glslang.so: GLSL to SPIR-V by glslang, and SPIRV-Tools' validator, in this process.
#include "codec/glslang_module.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <span>

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>
#include <glslang/SPIRV/doc.h>
#include <spirv-tools/libspirv.h>
#include <vulkan/vulkan.h>

namespace kiln::vulkan {
namespace {

bool is_word_part(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Whether the GLSL declares "layout(constant_id = …) const … name". False positives are possible before preprocessing.
bool declares_specialization(std::string_view glsl, std::string_view name) {
  constexpr std::string_view key = "constant_id";
  for (std::size_t at = glsl.find(key); at != std::string_view::npos; at = glsl.find(key, at + 1)) {
    const std::string_view statement = glsl.substr(at, glsl.find(';', at) - at);
    for (std::size_t word = statement.find(name); word != std::string_view::npos;
         word = statement.find(name, word + 1)) {
      const std::size_t next = statement.find_first_not_of(" \t\r\n", word + name.size());
      const std::string_view rest = statement.substr(std::min(next, statement.size()));
      // Its value follows; a constant of the job may stand in that value or in the number of another.
      if (!is_word_part(statement[word - 1]) && rest.starts_with('=') && !rest.starts_with("==")) return true;
    }
  }
  return false;
}

constexpr int default_version = 430;

// glslang's tables for the process: made once, never removed, because other threads may compile until the end.
bool initialized() {
  static const bool made = glslang::InitializeProcess();
  return made;
}

// "ERROR: SOURCE:LINE: text" with the file's name in front: "FILE:LINE: ERROR: text".
std::string with_file_names(std::string_view log, const std::vector<std::string>& files) {
  std::string named;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    const std::size_t word = line.find(": ");
    std::size_t source = 0;
    const bool message = line.starts_with("ERROR: ") || line.starts_with("WARNING: ");
    const char* const last = line.data() + line.size();
    const auto read = message ? std::from_chars(line.data() + word + 2, last, source)
                              : std::from_chars_result{line.data(), std::errc::invalid_argument};
    if (read.ec == std::errc() && read.ptr != last && *read.ptr == ':' && source < files.size() &&
        !files[source].empty()) {
      std::string_view rest(read.ptr + 1, static_cast<std::size_t>(last - read.ptr - 1));
      const std::size_t number = std::min(rest.find(':'), rest.size());
      named += files[source] + ":" + std::string(rest.substr(0, number)) + ": " + std::string(line.substr(0, word)) +
               std::string(rest.substr(number));
    } else {
      named += line;
    }
    named += '\n';
  }
  while (!named.empty() && named.back() == '\n') named.pop_back();
  return named;
}

Result<std::string> preamble_of(std::span<const Define> constants) {
  std::string preamble;
  for (const Define& define : constants) {
    if (!is_define_name(define.name)) return invalid_argument("constant '" + define.name + "': not an identifier");
    if (!is_define_text(define.text)) {
      return invalid_argument("constant '" + define.name + "': its text has a line break or a backslash");
    }
    if (define.name == "VULKAN" && define.text != "100") {
      return invalid_argument(
          "constant 'VULKAN': on Vulkan devices it is always defined, as 100. Remove it from the "
          "constants, or use an opengl device");
    }
    preamble += "#define " + define.name + " " + define.text + "\n";
  }
  return preamble;
}

// The values of the built-in constants, which the compiler also takes for limits.
TBuiltInResource resources_of(const GlslLimits& device) {
  using Resources = TBuiltInResource;
  Resources all = *GetDefaultResources();
  const auto set = [&all](std::initializer_list<int Resources::*> members, int value) {
    for (int Resources::*const member : members) all.*member = value;
  };
  const auto [count_x, count_y, count_z] = device.workgroup_count;
  const auto [size_x, size_y, size_z] = device.workgroup_size;
  set({&Resources::maxComputeWorkGroupCountX}, count_x);
  set({&Resources::maxComputeWorkGroupCountY}, count_y);
  set({&Resources::maxComputeWorkGroupCountZ}, count_z);
  set({&Resources::maxComputeWorkGroupSizeX}, size_x);
  set({&Resources::maxComputeWorkGroupSizeY}, size_y);
  set({&Resources::maxComputeWorkGroupSizeZ}, size_z);
  set({&Resources::maxComputeUniformComponents, &Resources::maxVertexUniformComponents,
       &Resources::maxTessControlUniformComponents, &Resources::maxTessEvaluationUniformComponents,
       &Resources::maxGeometryUniformComponents, &Resources::maxFragmentUniformComponents},
      device.uniform_components);
  set({&Resources::maxVertexUniformVectors, &Resources::maxFragmentUniformVectors}, device.uniform_components / 4);
  set({&Resources::maxComputeTextureImageUnits, &Resources::maxVertexTextureImageUnits,
       &Resources::maxTessControlTextureImageUnits, &Resources::maxTessEvaluationTextureImageUnits,
       &Resources::maxGeometryTextureImageUnits, &Resources::maxTextureImageUnits},
      device.textures);
  set({&Resources::maxCombinedTextureImageUnits}, device.all_textures);
  set({&Resources::maxComputeImageUniforms, &Resources::maxVertexImageUniforms, &Resources::maxTessControlImageUniforms,
       &Resources::maxTessEvaluationImageUniforms, &Resources::maxGeometryImageUniforms,
       &Resources::maxFragmentImageUniforms},
      device.images);
  set({&Resources::maxImageUnits, &Resources::maxCombinedImageUniforms}, device.all_images);
  set({&Resources::maxComputeAtomicCounterBuffers, &Resources::maxVertexAtomicCounterBuffers,
       &Resources::maxTessControlAtomicCounterBuffers, &Resources::maxTessEvaluationAtomicCounterBuffers,
       &Resources::maxGeometryAtomicCounterBuffers, &Resources::maxFragmentAtomicCounterBuffers,
       &Resources::maxCombinedAtomicCounterBuffers, &Resources::maxAtomicCounterBindings},
      device.counter_blocks);
  set({&Resources::maxComputeAtomicCounters, &Resources::maxVertexAtomicCounters,
       &Resources::maxTessControlAtomicCounters, &Resources::maxTessEvaluationAtomicCounters,
       &Resources::maxGeometryAtomicCounters, &Resources::maxFragmentAtomicCounters,
       &Resources::maxCombinedAtomicCounters},
      device.counter_block_bytes / static_cast<int>(sizeof(std::uint32_t)));
  set({&Resources::maxAtomicCounterBufferSize}, device.counter_block_bytes);
  set({&Resources::minProgramTexelOffset}, device.least_texel_offset);
  set({&Resources::maxProgramTexelOffset}, device.most_texel_offset);
  set({&Resources::maxSamples}, device.samples);
  set({&Resources::maxImageSamples}, device.image_samples);
  return all;
}

// Whether the program may read a built-in constant, which may come from the pasting of words.
bool may_read_limits(std::string_view text) {
  return text.find("gl_M") != std::string_view::npos || text.find("##") != std::string_view::npos;
}

// Of a program that reads none: those of any device. Its needs are compared with its device's (program.cpp).
TBuiltInResource any_resources() {
  TBuiltInResource all = *GetDefaultResources();
  constexpr int any = std::numeric_limits<int>::max();
  all.maxComputeWorkGroupSizeX = all.maxComputeWorkGroupSizeY = all.maxComputeWorkGroupSizeZ = any;
  return all;
}

constexpr auto rules = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);

void set_input(glslang::TShader& shader, const char* const& text, const int& length, const std::string& preamble) {
  shader.setStringsWithLengths(&text, &length, 1);
  shader.setPreamble(preamble.c_str());
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
}

// The text after preprocessing; empty: it cannot be.
std::string preprocessed(std::string_view text, const std::string& preamble) {
  glslang::TShader shader(EShLangCompute);
  const char* const begin = text.data();
  const int length = static_cast<int>(text.size());
  set_input(shader, begin, length, preamble);
  const TBuiltInResource resources = any_resources();
  std::string plain;
  glslang::TShader::ForbidIncluder no_files;
  if (!shader.preprocess(&resources, default_version, ECoreProfile, false, true, rules, &plain, no_files)) return {};
  return plain;
}

// The constants of a job that the text declares with constant_id: they are values, no macros. Removes them from
// `macros`.
Result<std::vector<Define>> take_specializations(std::string_view text, std::vector<Define>& macros) {
  const auto split = std::stable_partition(macros.begin(), macros.end(), [text](const Define& constant) {
    return !declares_specialization(text, constant.name);
  });
  std::vector<Define> candidates(split, macros.end());
  macros.erase(split, macros.end());
  if (text.find("constant_id") == std::string_view::npos) return candidates;
  const auto preamble = preamble_of(macros);
  if (!preamble) return preamble.error();
  // Not those in a comment, or where the text leaves the declaration out.
  const std::string plain = candidates.empty() ? std::string() : preprocessed(text, *preamble);
  std::erase_if(candidates, [&](const Define& constant) {
    if (declares_specialization(plain, constant.name)) return false;
    macros.push_back(constant);
    return true;
  });
  // Also those that a macro of the text declares: #define SPEC(id, name) layout(constant_id = id) const int name
  for (std::size_t i = 0; i < macros.size();) {
    std::vector<Define> others = macros;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const auto without = preamble_of(others);
    if (!without) return without.error();
    if (declares_specialization(preprocessed(text, *without), macros[i].name)) {
      candidates.push_back(std::move(macros[i]));
      macros = std::move(others);
    } else {
      ++i;
    }
  }
  return candidates;
}

// Where the last local_size_x, _y or _z within the brackets of a layout() stands, which a variable's name does not;
// npos: nowhere.
std::size_t last_size_declaration(std::string_view text) {
  constexpr std::string_view layout = "layout", size = "local_size_";
  std::size_t last = std::string_view::npos;
  for (std::size_t at = text.find(layout); at != std::string_view::npos; at = text.find(layout, at + 1)) {
    const std::size_t open = std::min(text.find_first_not_of(" \t\r\n", at + layout.size()), text.size());
    if (open == text.size() || text[open] != '(') continue;
    int depth = 1;
    for (std::size_t in = open + 1; in < text.size() && depth != 0; ++in) {
      depth += text[in] == '(' ? 1 : text[in] == ')' ? -1 : 0;
      if (text.substr(in).starts_with(size) && !is_word_part(text[in - 1])) last = in;
    }
  }
  return last;
}

// glslang takes gl_WorkGroupSize for 1x1x1 up to the declaration of the local size; GLSL has such a use as an error.
bool uses_size_before_declaration(std::string_view text, const std::string& preamble) {
  constexpr std::string_view use = "gl_WorkGroupSize", declaration = "local_size_";
  const auto is_before = [](std::size_t used, std::size_t declared) {
    return used != std::string_view::npos && declared != std::string_view::npos && used < declared;
  };
  // Comments and macros may have them in another order than the program.
  if (!is_before(preamble.find(use) == std::string::npos ? text.find(use) : 0, text.rfind(declaration))) return false;
  const std::string plain = preprocessed(text, preamble);
  return is_before(plain.find(use), last_size_declaration(plain));
}

// Extensions that GLSL 4.30 and later have in their core, and glslang does not know.
bool is_in_core(std::string_view extension) {
  constexpr std::string_view names[] = {"GL_ARB_arrays_of_arrays", "GL_ARB_texture_query_levels",
                                        "GL_ARB_texture_buffer_range", "GL_ARB_shader_precision",
                                        "GL_ARB_conservative_depth"};
  return std::ranges::find(names, extension) != std::end(names);
}

// Empty lines instead of the #extension lines of these.
std::string without_core_extensions(std::string_view text) {
  constexpr std::string_view blanks = " \t", extension = "extension";
  std::string made;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    std::string_view rest = line.substr(std::min(line.find_first_not_of(blanks), line.size()));
    if (rest.starts_with('#')) {
      rest.remove_prefix(std::min(rest.find_first_not_of(blanks, 1), rest.size()));
      const bool named = rest.starts_with(extension);
      if (named) rest.remove_prefix(std::min(rest.find_first_not_of(blanks, extension.size()), rest.size()));
      if (!named || !is_in_core(rest.substr(0, rest.find_first_of(" \t:\r")))) made += line;
    } else {
      made += line;
    }
    if (end < text.size()) made += '\n';
    at = end + 1;
  }
  return made;
}

bool is_for_es(std::string_view text) {
  const std::size_t version = text.find("#version");
  if (version == std::string_view::npos) return false;
  const std::string_view line = text.substr(version, text.find('\n', version) - version);
  return line.find(" es") != std::string_view::npos;
}

// What a name of the text may be in GLSL for Vulkan alone; empty: nothing that the log tells.
std::string_view keyword_hint(std::string_view log) {
  for (const std::string_view token :
       {"unexpected SAMPLER", "unexpected TEXTURE", "unexpected ITEXTURE", "unexpected UTEXTURE"}) {
    if (log.find(token) == std::string_view::npos) continue;
    return "A name such as sampler or texture2D is a keyword in GLSL for Vulkan: rename it, or use an opengl device\n";
  }
  return {};
}

Result<CompiledGlsl> compile_glsl(const KernelSource& source, const GlslLimits& device, LineNumbers lines) {
  if (source.dialect != Dialect::glsl) {
    return unsupported("dialect " + std::string(to_string(source.dialect)) + ", expected glsl or code_object (SPIR-V)");
  }
  if (source.entry != "main") return invalid_argument("entry '" + source.entry + "', expected 'main' for GLSL");
  if (!initialized()) return internal_error("glslang cannot be initialized");
  std::string_view text = source.text;
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return invalid_argument("line " + std::to_string(1 + std::ranges::count(text.substr(0, nul), '\n')) +
                            " has a NUL byte, expected text in UTF-8");
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return invalid_argument("the text has " + std::to_string(text.size()) + " bytes, expected at most 2147483647");
  }
  std::string shorter;
  if (text.find("GL_ARB_") != std::string_view::npos) text = shorter = without_core_extensions(text);
  std::vector<Define> macros = source.constants;
  const auto values = take_specializations(text, macros);
  if (!values) return values.error();
  auto preamble = preamble_of(macros);
  if (!preamble) return preamble.error();
  if (is_for_es(text) && text.find("atomicCounter") != std::string_view::npos) {
    // glslang adds a signed 1 to the unsigned counter, which ES does not convert.
    *preamble +=
        "#define atomicCounterIncrement(c) atomicAdd(c, 1u)\n"
        "#define atomicCounterDecrement(c) (atomicAdd(c, 0xffffffffu) - 1u)\n";
  }

  glslang::TShader shader(EShLangCompute);
  const char* const begin = text.data();
  const int length = static_cast<int>(text.size());
  set_input(shader, begin, length, *preamble);
  const char* const name = source.files.empty() ? "" : source.files[0].c_str();
  if (lines == LineNumbers::kept) shader.setStringsWithLengthsAndNames(&begin, &length, &name, 1);
  shader.setEnvInputVulkanRulesRelaxed();
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_1);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_3);
  shader.setAutoMapBindings(true);
  shader.setAutoMapLocations(true);
  shader.setGlobalUniformBlockName(uniform_block_name);
  shader.setAtomicCounterBlockName(counter_block_name);
  const bool reads_limits = may_read_limits(text) || may_read_limits(*preamble);
  const TBuiltInResource resources = reads_limits ? resources_of(device) : any_resources();
  if (!shader.parse(&resources, default_version, ECoreProfile, false, true, rules)) {
    const std::string log = shader.getInfoLog();
    return invalid_argument("GLSL compiler: " + with_file_names(log, source.files) + std::string(keyword_hint(log)));
  }
  const std::string file = source.files.empty() ? "" : source.files[0] + ": ";
  if (uses_size_before_declaration(text, *preamble)) {
    return invalid_argument(file +
                            "gl_WorkGroupSize is used before the local size is declared. Move \"layout(local_size_x"
                            " = …) in;\" in front of the first use");
  }
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(rules)) {
    return invalid_argument(file + "GLSL linker: " + with_file_names(program.getInfoLog(), source.files));
  }
  std::vector<unsigned> words;
  spv::SpvBuildLogger logger;
  glslang::SpvOptions options;
  options.disableOptimizer = true;
  options.generateDebugInfo = lines == LineNumbers::kept;
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), words, &logger, &options);
  if (words.empty()) return invalid_argument("SPIR-V generator: " + logger.getAllMessages());
  if (const std::string messages = logger.getAllMessages(); messages.find("error") != std::string::npos) {
    return invalid_argument("SPIR-V generator: " + messages);
  }
  return CompiledGlsl{{words.begin(), words.end()}, *values};
}

// The language that a module was written in is information only. SPIRV-Tools refuse the numbers that they do not know.
void forget_new_languages(std::vector<std::uint32_t>& words) {
  constexpr std::size_t header_words = 5;
  constexpr std::uint32_t last_known = spv::SourceLanguageCPP_for_OpenCL;
  for (std::size_t at = header_words; at < words.size();) {
    const std::size_t length = words[at] >> spv::WordCountShift;
    if (length == 0 || length > words.size() - at) return;
    const auto op = static_cast<spv::Op>(words[at] & spv::OpCodeMask);
    if (op == spv::OpFunction) return;
    if (op == spv::OpSource && length > 1 && words[at + 1] > last_known) words[at + 1] = spv::SourceLanguageUnknown;
    at += length;
  }
}

// "FILE:LINE" of an instruction, counted from 1, where the module has it; else empty.
std::string place_of(const std::vector<std::uint32_t>& words, std::size_t instruction) {
  std::map<std::uint32_t, std::string> files;
  std::string place;
  std::size_t at = 5;
  for (std::size_t i = 0; i < instruction && at < words.size(); ++i) {
    const std::size_t length = words[at] >> spv::WordCountShift;
    if (length == 0 || length > words.size() - at) return {};
    const auto op = static_cast<spv::Op>(words[at] & spv::OpCodeMask);
    if (op == spv::OpString && length > 2) {
      const char* const text = reinterpret_cast<const char*>(&words[at + 2]);
      files[words[at + 1]].assign(text, strnlen(text, (length - 2) * sizeof words[at]));
    } else if (op == spv::OpLine && length > 2) {
      const std::string& file = files[words[at + 1]];
      place = (file.empty() ? "line " : file + ":") + std::to_string(words[at + 2]);
    } else if (op == spv::OpNoLine || op == spv::OpLabel || op == spv::OpFunctionEnd) {
      place.clear();
    }
    at += length;
  }
  return place;
}

// What "Invalid capability operand: 4473" and "Invalid opcode: 4473" leave out.
std::string with_advice(std::string message) {
  const bool unknown_number = message.starts_with("Invalid ") && (message.find(" operand: ") != std::string::npos ||
                                                                  message.find(" opcode: ") != std::string::npos);
  if (!unknown_number) return message;
  return message +
         ": the SPIRV-Tools that Kiln was built with do not know this number. The module is newer, or damaged";
}

Result<std::vector<std::uint32_t>> validated(std::string_view bytes, const SpirvRules& device) {
  if (bytes.size() % sizeof(std::uint32_t) != 0) {
    return invalid_argument("SPIR-V module of " + std::to_string(bytes.size()) + " bytes, expected a multiple of 4");
  }
  std::vector<std::uint32_t> words(bytes.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  forget_new_languages(words);
  const spv_target_env environment = device.vulkan_version >= VK_API_VERSION_1_3   ? SPV_ENV_VULKAN_1_3
                                     : device.vulkan_version >= VK_API_VERSION_1_2 ? SPV_ENV_VULKAN_1_2
                                                                                   : SPV_ENV_VULKAN_1_1;
  const std::unique_ptr<spv_context_t, decltype(&spvContextDestroy)> context(spvContextCreate(environment),
                                                                             spvContextDestroy);
  const std::unique_ptr<spv_validator_options_t, decltype(&spvValidatorOptionsDestroy)> options(
      spvValidatorOptionsCreate(), spvValidatorOptionsDestroy);
  spvValidatorOptionsSetScalarBlockLayout(options.get(), device.scalar_blocks);
  spvValidatorOptionsSetAllowLocalSizeId(options.get(), device.local_size_ids);
  spv_diagnostic found = nullptr;
  spv_const_binary_t module{words.data(), words.size()};
  const spv_result_t result = spvValidateWithOptions(context.get(), options.get(), &module, &found);
  const std::unique_ptr<spv_diagnostic_t, decltype(&spvDiagnosticDestroy)> message(found, spvDiagnosticDestroy);
  if (result == SPV_SUCCESS) return words;
  if (message == nullptr) return invalid_argument("SPIR-V validation failed with result " + std::to_string(result));
  const std::string place = place_of(words, message->position.index);
  return invalid_argument("SPIR-V validation: " + place + (place.empty() ? "" : ": ") + "instruction " +
                          std::to_string(message->position.index) + ": " + with_advice(message->error));
}

std::string capability_name(std::uint32_t capability) {
  constexpr std::string_view prefix = "Capability";
  std::string_view name = spv::CapabilityString(static_cast<int>(capability));
  if (name == "Bad") return "number " + std::to_string(capability);
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  return std::string(name);
}

}  // namespace
}  // namespace kiln::vulkan

extern "C" __attribute__((visibility("default"))) const kiln::vulkan::GlslangModule kiln_glslang_module = {
    kiln::vulkan::compile_glsl, kiln::vulkan::validated, kiln::vulkan::capability_name};
