#include "opengl/support/kernels.hpp"

#include <catch2/catch.hpp>

namespace kiln::support {

OpenGl::OpenGl(PluginSettings settings) : plugin_("opengl", std::move(settings)) {}

bool OpenGl::usable() {
  if (device_ != nullptr) return true;
  auto opened = plugin_.driver().open("opengl:0");
  if (!opened) {
    WARN("skipped: " << opened.error().message);
    return false;
  }
  device_ = std::move(*opened);
  return true;
}

Device& OpenGl::device() {
  if (device_ == nullptr) device_ = plugin_.open("opengl:0");
  return *device_;
}

PluginSettings with_wrapping_egl() { return {{"egl_library", std::string(KILN_WRAPPING_EGL)}}; }

KernelSource saxpy() {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text =
      "#version 430\n"
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
      "layout(std430, binding = 1) buffer Y { float y[]; };\n"
      "void main() {\n"
      "  uint i = gl_GlobalInvocationID.x;\n"
      "  if (i < uint(y.length())) y[i] = A * x[i] + y[i];\n"
      "}\n";
  source.constants = {{"A", "2.5"}};
  source.bindings = {Access::read, Access::read_write};
  source.workgroup = {64, 1, 1};
  return source;
}

KernelSource square_into_scratch() {
  KernelSource source = saxpy();
  source.text =
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
      "layout(std430, binding = 1) writeonly buffer Y { float y[]; };\n"
      "void main() { y[gl_GlobalInvocationID.x] = x[gl_GlobalInvocationID.x] * x[gl_GlobalInvocationID.x]; }\n";
  source.constants.clear();
  return source;
}

KernelSource add_neighbour() {
  KernelSource source = square_into_scratch();
  source.text =
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
      "layout(std430, binding = 1) writeonly buffer Y { float y[]; };\n"
      "void main() { uint i = gl_GlobalInvocationID.x; y[i] = x[i] + x[i ^ 1u]; }\n";
  return source;
}

KernelSource spin(std::uint32_t rounds) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  // Nested, because llvmpipe ends a loop after 65535 rounds.
  source.text =
      "layout(local_size_x = 1) in;\n"
      "layout(std430, binding = 0) buffer Y { float y[]; };\n"
      "void main() {\n"
      "  float v = y[0];\n"
      "  for (int i = 0; i < ROUNDS; ++i)\n"
      "    for (int k = 0; k < 1000; ++k) v = sqrt(v * 0.5 + 1.0);\n"
      "  y[0] = v;\n"
      "}\n";
  source.constants = {{"ROUNDS", std::to_string(rounds)}};
  source.bindings = {Access::read_write};
  return source;
}

std::unique_ptr<Program> build(Device& device, const KernelSource& source) {
  auto program = device.build(source);
  INFO((program ? std::string() : program.error().text()));
  REQUIRE(program.has_value());
  return std::move(program).value();
}

std::unique_ptr<Buffer> buffer_of(Device& device, const std::vector<float>& values, BufferUsage usage) {
  BufferDesc desc;
  desc.bytes = values.size() * sizeof(float);
  desc.usage = usage;
  auto buffer = device.create_buffer(desc);
  INFO((buffer ? std::string() : buffer.error().text()));
  REQUIRE(buffer.has_value());
  REQUIRE((*buffer)->write(0, std::as_bytes(std::span(values))).ok());
  return std::move(buffer).value();
}

std::vector<float> contents(Buffer& buffer) {
  std::vector<float> values(static_cast<std::size_t>(buffer.bytes() / sizeof(float)));
  const Status status = buffer.read(0, std::as_writable_bytes(std::span(values)));
  INFO(status.text());
  REQUIRE(status.ok());
  return values;
}

Result<FenceResult> run(Device& device, const Program& program, std::vector<Buffer*> bindings,
                        std::array<std::uint32_t, 3> grid) {
  const PassLaunch launch{&program, bindings, grid};
  const auto value = device.submit({std::span(&launch, 1)});
  if (!value) return value.error();
  return device.wait(*value, Deadline::never());
}

}  // namespace kiln::support
