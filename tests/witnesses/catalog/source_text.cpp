#include "witnesses/catalog/source_text.hpp"

namespace kiln::witness {
namespace {

std::string buffer_text(const BufferSpec& buffer, std::size_t binding) {
  const std::string place = "binding = " + std::to_string(binding) + ") ";
  if (buffer.use == Use::uniform) {
    return "layout(std140, " + place + "uniform Block_" + buffer.name + " { " + buffer.type + " " + buffer.name + "[" +
           std::to_string(buffer.count) + "]; };\n";
  }
  return "layout(std430, " + place + (buffer.use == Use::in ? "readonly " : "") + "buffer Buffer_" + buffer.name +
         " { " + buffer.type + " " + buffer.name + "[]; };\n";
}

std::string parameter_text(const ShaderCase& shader, Dialect dialect) {
  if (shader.parameters.empty()) return {};
  std::string members;
  for (const Parameter& each : shader.parameters) members += "  " + each.type + " " + each.name + ";\n";
  if (dialect == Dialect::vulkan) return "layout(push_constant) uniform Parameters {\n" + members + "} parameters;\n";
  return "struct Parameters {\n" + members + "};\nuniform Parameters parameters;\n";
}

}  // namespace

std::string source_text(const ShaderCase& shader, Dialect dialect) {
  std::string text = "#version 450\n";
  if (shader.needs.contains("int64") && !shader.needs.contains("vulkan")) {
    text += "#extension GL_ARB_gpu_shader_int64 : require\n";
  }
  for (const std::string& each : shader.extensions) text += "#extension " + each + " : require\n";
  text += "layout(local_size_x = " + std::to_string(shader.local[0]) +
          ", local_size_y = " + std::to_string(shader.local[1]) +
          ", local_size_z = " + std::to_string(shader.local[2]) + ") in;\n";
  for (std::size_t k = 0; k < shader.buffers.size(); ++k) text += buffer_text(shader.buffers[k], k);
  // GLSL 4.50 orders what is shared by a fence of its own; Vulkan's barrier() is one.
  text +=
      dialect == Dialect::vulkan ? "#define meet() barrier()\n" : "#define meet() memoryBarrierShared(), barrier()\n";
  return text + parameter_text(shader, dialect) + "#define ID gl_GlobalInvocationID.x\n" + shader.body;
}

std::vector<std::uint32_t> push_constants(const ShaderCase& shader, std::uint32_t pass) {
  std::vector<std::uint32_t> words;
  for (const Parameter& each : shader.parameters) {
    while (words.size() % each.words.size() != 0) words.push_back(0);
    if (each.name == "pass") {
      words.push_back(pass);
    } else {
      words.insert(words.end(), each.words.begin(), each.words.end());
    }
  }
  return words;
}

}  // namespace kiln::witness
