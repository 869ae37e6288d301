#include "c_interface/cache.hpp"
#include "c_interface/status.hpp"

#include <kiln/digest.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

// The fields of the application stand between those that every key begins and ends with.
struct kiln_key_builder {
  kiln_cache& cache;
  kiln::DeviceInfo device;
  const void* context;
  std::string label;
  kiln::KeyEncoder fields;
  std::size_t count = 0;
  kiln::Status failure;  // the first one
};

namespace kiln::c_interface {
namespace {

constexpr std::uint64_t key_schema = 1;  // raised when the meaning of a stored program changes
constexpr std::size_t most_name = 128;
constexpr std::size_t most_label = 4096;  // the metadata of a program that has a longer one cannot be read
constexpr std::size_t most_fields = 4096;
constexpr std::size_t most_material = 15u << 20;  // EntryLimits::material, less the fields that Kiln adds

Status check_name(const std::string& function, std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  };
  if (name.empty() || name.size() > most_name || !std::ranges::all_of(name, plain)) {
    return invalid_argument(function + ": field name '" + std::string(name.substr(0, most_name)) +
                            "': expected 1 to 128 of letters, digits, '_', '.' and '-'");
  }
  if (name == "schema" || name == "dialect" || name.starts_with("device.") || name.starts_with("driver.")) {
    return invalid_argument(function + ": field name '" + std::string(name) +
                            "' is Kiln's own: choose another; the device and the driver are in the identity");
  }
  return {};
}

kiln_status* add(const char* function, kiln_key_builder* builder, const char* name, const void* bytes,
                 std::size_t count) {
  return guarded([&]() -> Status {
    if (builder == nullptr) return null_argument(function, "builder");
    const auto checked = [&]() -> Status {
      if (name == nullptr) return null_argument(function, "name");
      if (Status status = check_name(function, name); !status.ok()) return status;
      if (bytes == nullptr && count != 0) return null_argument(function, "the value").within(name);
      if (builder->count == most_fields || count > most_material ||
          builder->fields.material().size() > most_material - count) {
        return invalid_argument(std::string(function) + ": field '" + name + "' of " + std::to_string(count) +
                                " bytes: a key has at most " + std::to_string(most_fields) + " fields and " +
                                std::to_string(most_material) + " bytes; it has " + std::to_string(builder->count) +
                                " and " + std::to_string(builder->fields.material().size()));
      }
      builder->fields.field(name, std::string_view(static_cast<const char*>(bytes), count));
      ++builder->count;
      return {};
    };
    Status status = checked();
    if (!status.ok() && builder->failure.ok()) builder->failure = status;
    return status;
  });
}

}  // namespace
}  // namespace kiln::c_interface

using namespace kiln;
using namespace kiln::c_interface;

kiln_status* kiln_key_builder_create(kiln_cache* cache, const kiln_identity* identity, const char* label,
                                     kiln_key_builder** builder) {
  constexpr const char* function = "kiln_key_builder_create";
  return guarded([&]() -> Status {
    if (builder == nullptr) return null_argument(function, "builder");
    *builder = nullptr;
    if (Status status = check_cache(function, cache); !status.ok()) return status;
    if (label == nullptr) return null_argument(function, "label");
    if (const std::size_t length = std::strlen(label); length > most_label) {
      return invalid_argument(std::string(function) + ": label of " + std::to_string(length) +
                              " bytes, expected at most " + std::to_string(most_label));
    }
    kiln_identity copy;
    if (Status status = copy_struct(function, "identity", identity, &copy, sizeof copy); !status.ok()) return status;
    Result<DeviceInfo> device = device_of(function, copy);
    if (!device) return std::move(device).error();
    *builder = new kiln_key_builder{*cache, std::move(*device), copy.context, label, {}, 0, {}};
    return {};
  });
}

kiln_status* kiln_key_builder_text(kiln_key_builder* builder, const char* name, const char* text) {
  constexpr const char* function = "kiln_key_builder_text";
  if (text == nullptr && builder != nullptr) return add(function, builder, name, nullptr, 1);
  return add(function, builder, name, text, text == nullptr ? 0 : std::strlen(text));
}

kiln_status* kiln_key_builder_bytes(kiln_key_builder* builder, const char* name, const void* bytes, size_t count) {
  return add("kiln_key_builder_bytes", builder, name, bytes, count);
}

kiln_status* kiln_key_builder_number(kiln_key_builder* builder, const char* name, uint64_t value) {
  std::array<unsigned char, sizeof value> bytes;
  for (unsigned char& byte : bytes) {
    byte = static_cast<unsigned char>(value & 0xff);
    value >>= 8;
  }
  return add("kiln_key_builder_number", builder, name, bytes.data(), bytes.size());
}

kiln_status* kiln_key_builder_finish(const kiln_key_builder* builder, kiln_key** key) {
  constexpr const char* function = "kiln_key_builder_finish";
  return guarded([&]() -> Status {
    if (key == nullptr) return null_argument(function, "key");
    *key = nullptr;
    if (builder == nullptr) return null_argument(function, "builder");
    if (Status status = check_cache(function, &builder->cache); !status.ok()) return status;
    if (!builder->failure.ok()) return builder->failure.within(std::string(function) + ": a field is missing");
    if (builder->count == 0) {
      return invalid_argument(std::string(function) + ": program '" + builder->label +
                              "' has no field. Add everything that changes the compiled bytes, such as the source");
    }
    KeyEncoder start, end;
    start.field("schema", key_schema);
    start.field("dialect", "application");
    for (const auto& [name, value] : builder->device.device_identity) end.field("device." + name, value);
    for (const auto& [name, value] : builder->device.driver_identity) end.field("driver." + name, value);
    std::string material = start.material() + builder->fields.material() + end.material();
    const Digest digest = sha256(material);
    auto device = builder->cache.device(builder->device, builder->context);
    *key = new kiln_key{builder->cache.id, std::move(device), {digest, std::move(material), builder->label}};
    return {};
  });
}

void kiln_key_builder_free(kiln_key_builder* builder) { delete builder; }
void kiln_key_free(kiln_key* key) { delete key; }

void kiln_key_hex(const kiln_key* key, char hex[65]) {
  if (hex == nullptr) return;
  constexpr char digits[] = "0123456789abcdef";
  std::size_t at = 0;
  if (key != nullptr) {
    for (const std::uint8_t byte : key->key.digest.bytes) {
      hex[at++] = digits[byte >> 4];
      hex[at++] = digits[byte & 15];
    }
  }
  hex[at] = '\0';
}
