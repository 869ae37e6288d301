#include <kiln/device.hpp>
#include <kiln/program.hpp>

namespace kiln {
namespace {

// Raised when the meaning of a stored program changes; entries of another schema are misses.
constexpr std::uint64_t cache_schema = 2;

}  // namespace

ProgramKey key_of(const KernelSource& source, const DeviceInfo& device, std::string label) {
  KeyEncoder encoder;
  encoder.field("schema", cache_schema);
  encoder.field("dialect", to_string(source.dialect));
  encoder.field("source", source.text);
  encoder.field("entry", source.entry);
  for (const Define& define : source.constants) encoder.field("constant." + define.name, define.text);
  for (const Access access : source.bindings) encoder.field("binding", static_cast<std::uint64_t>(access));
  for (const View view : source.views) encoder.field("view", static_cast<std::uint64_t>(view));
  for (const std::uint32_t lanes : source.workgroup) encoder.field("workgroup", lanes);
  for (const auto& [name, value] : device.device_identity) encoder.field("device." + name, value);
  for (const auto& [name, value] : device.driver_identity) encoder.field("driver." + name, value);
  return {encoder.digest(), encoder.material(), std::move(label)};
}

}  // namespace kiln
