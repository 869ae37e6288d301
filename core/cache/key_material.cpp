#include "cache/key_material.hpp"

#include <kiln/device.hpp>
#include <kiln/digest.hpp>
#include <kiln/program.hpp>

#include <algorithm>

namespace kiln {
namespace {

constexpr std::size_t most_fields = 65536;
constexpr std::string_view driver_prefix = "driver.";
constexpr std::string_view application_dialect = "application";  // of keys that core/c_interface makes

// Takes a length of type Length and as many bytes off the front of `rest`.
template <class Length>
std::optional<std::string_view> take(std::string_view& rest) {
  if (rest.size() < sizeof(Length)) return std::nullopt;
  const Length length = read_little_endian<Length>(std::as_bytes(std::span(rest)), 0);
  rest.remove_prefix(sizeof(Length));
  if (length > rest.size()) return std::nullopt;
  const std::string_view taken = rest.substr(0, static_cast<std::size_t>(length));
  rest.remove_prefix(taken.size());
  return taken;
}

}  // namespace

std::optional<std::vector<KeyField>> decode_key_material(std::string_view material) {
  std::vector<KeyField> fields;
  while (!material.empty()) {
    const auto name = take<std::uint32_t>(material);
    if (!name) return std::nullopt;
    const auto value = take<std::uint64_t>(material);
    if (!value || fields.size() == most_fields) return std::nullopt;
    fields.push_back({*name, *value});
  }
  return fields;
}

std::optional<KernelSource> source_of(std::string_view material) {
  const auto fields = decode_key_material(material);
  if (!fields) return std::nullopt;
  constexpr std::string_view constant_prefix = "constant.";
  KernelSource source;
  source.entry.clear();
  std::size_t axis = 0;
  for (const KeyField& field : *fields) {
    const bool is_number = field.value.size() == sizeof(std::uint64_t);
    const std::uint64_t number =
        is_number ? read_little_endian<std::uint64_t>(std::as_bytes(std::span(field.value)), 0) : 0;
    if (field.name == "dialect" && field.value == application_dialect) {
      KernelSource of_callbacks;
      of_callbacks.dialect = Dialect::library;
      return of_callbacks;
    }
    if (field.name == "dialect") {
      for (const Dialect dialect : {Dialect::glsl, Dialect::opencl_c, Dialect::code_object}) {
        if (field.value == to_string(dialect)) source.dialect = dialect;
      }
    } else if (field.name == "source") {
      source.text = field.value;
    } else if (field.name == "entry") {
      source.entry = field.value;
    } else if (field.name.starts_with(constant_prefix)) {
      source.constants.push_back({std::string(field.name.substr(constant_prefix.size())), std::string(field.value)});
    } else if (field.name == "binding") {
      if (!is_number || number > static_cast<std::uint64_t>(Access::read_write)) return std::nullopt;
      source.bindings.push_back(static_cast<Access>(number));
    } else if (field.name == "view") {
      if (!is_number || number > static_cast<std::uint64_t>(View::uniforms)) return std::nullopt;
      source.views.push_back(static_cast<View>(number));
    } else if (field.name == "workgroup") {
      if (!is_number || axis == source.workgroup.size()) return std::nullopt;
      source.workgroup[axis++] = static_cast<std::uint32_t>(number);
    }
  }
  if (source.dialect == Dialect::invalid || axis != source.workgroup.size()) return std::nullopt;
  return source;
}

std::string device_fields(const DeviceInfo& device) {
  KeyEncoder encoder;
  for (const auto& [name, value] : device.device_identity) encoder.field("device." + name, value);
  return encoder.material();
}

std::string driver_fields(const DeviceInfo& device) {
  KeyEncoder encoder;
  for (const auto& [name, value] : device.driver_identity) encoder.field("driver." + name, value);
  return encoder.material();
}

std::optional<std::string> with_driver(std::string_view material, std::string_view driver) {
  const auto fields = decode_key_material(material);
  if (!fields) return std::nullopt;
  KeyEncoder encoder;
  for (const KeyField& field : *fields) {
    if (!field.name.starts_with(driver_prefix)) encoder.field(field.name, field.value);
  }
  return encoder.material() + std::string(driver);
}

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
