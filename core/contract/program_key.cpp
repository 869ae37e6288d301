#include <kiln/device.hpp>
#include <kiln/program.hpp>

#include <algorithm>

namespace kiln {
namespace {

// Raised when the meaning of a stored program changes; entries of another schema are misses.
constexpr std::uint64_t cache_schema = 2;

// Whether the compiled code depends on the binding. Values of uniforms, images and textures are given at each launch.
bool is_in_key(const KernelSource& source, std::size_t binding) {
  if (binding >= source.views.size()) return true;
  return source.views[binding] != View::uniforms && source.views[binding] != View::pixels;
}

}  // namespace

ProgramKey key_of(const KernelSource& source, const DeviceInfo& device, std::string label) {
  KeyEncoder encoder;
  encoder.field("schema", cache_schema);
  encoder.field("dialect", to_string(source.dialect));
  encoder.field("source", source.text);
  encoder.field("entry", source.entry);
  for (const Define& define : source.constants) encoder.field("constant." + define.name, define.text);
  for (std::size_t i = 0; i < source.bindings.size(); ++i) {
    if (is_in_key(source, i)) encoder.field("binding", static_cast<std::uint64_t>(source.bindings[i]));
  }
  const bool all_storage =
      std::ranges::all_of(source.views, [](View view) { return view != View::texels && view != View::image; });
  for (std::size_t i = 0; i < source.views.size() && !all_storage; ++i) {
    if (is_in_key(source, i)) encoder.field("view", static_cast<std::uint64_t>(source.views[i]));
  }
  for (const std::uint32_t lanes : source.workgroup) encoder.field("workgroup", lanes);
  for (const auto& [name, value] : device.device_identity) encoder.field("device." + name, value);
  for (const auto& [name, value] : device.driver_identity) encoder.field("driver." + name, value);
  return {encoder.digest(), encoder.material(), std::move(label)};
}

}  // namespace kiln
