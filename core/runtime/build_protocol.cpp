#include "runtime/build_protocol.hpp"

#include "cache/key_material.hpp"
#include "cache/little_endian.hpp"
#include "cache/program_payload.hpp"

#include <kiln/digest.hpp>

#include <cstring>
#include <span>

namespace kiln {
namespace {

constexpr std::string_view setting_prefix = "setting.";

std::string framed(const KeyEncoder& fields) {
  std::vector<std::byte> length;
  append_little_endian(length, static_cast<std::uint32_t>(fields.material().size()));
  return std::string(reinterpret_cast<const char*>(length.data()), length.size()) + fields.material();
}

template <class Number>
std::string bytes_of_number(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

template <class Number>
bool read_number(std::string_view bytes, Number& number) {
  if (bytes.size() != sizeof number) return false;
  std::memcpy(&number, bytes.data(), sizeof number);
  return true;
}

// A letter for the type, then the value. A list is one field for each of its texts, behind one for the empty list.
void add_setting(KeyEncoder& fields, const std::string& name, const ConfigValue& value) {
  const std::string field = std::string(setting_prefix) + name;
  if (const auto* boolean = std::get_if<bool>(&value)) fields.field(field, std::string("b") + (*boolean ? '1' : '0'));
  if (const auto* integer = std::get_if<std::int64_t>(&value)) fields.field(field, "i" + bytes_of_number(*integer));
  if (const auto* number = std::get_if<double>(&value)) fields.field(field, "n" + bytes_of_number(*number));
  if (const auto* text = std::get_if<std::string>(&value)) fields.field(field, "t" + *text);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    fields.field(field, "l");
    for (const std::string& text : *list) fields.field(field, "+" + text);
  }
}

bool take_setting(const std::string& name, std::string_view value, PluginSettings& settings) {
  if (value.empty()) return false;
  const char type = value.front();
  value.remove_prefix(1);
  std::int64_t integer = 0;
  double number = 0;
  switch (type) {
    case 'b':
      settings[name] = value == "1";
      return true;
    case 'i':
      if (!read_number(value, integer)) return false;
      settings[name] = integer;
      return true;
    case 'n':
      if (!read_number(value, number)) return false;
      settings[name] = number;
      return true;
    case 't':
      settings[name] = std::string(value);
      return true;
    case 'l':
      settings[name] = std::vector<std::string>();
      return true;
    case '+': {
      const auto at = settings.find(name);
      auto* list = at == settings.end() ? nullptr : std::get_if<std::vector<std::string>>(&at->second);
      if (list != nullptr) list->emplace_back(value);
      return list != nullptr;
    }
    default:
      return false;
  }
}

void add_program(KeyEncoder& fields, const ProgramBinary& program) {
  const std::vector<std::byte> payload = encode_payload(program);
  fields.field("format", program.format);
  fields.field("payload", {reinterpret_cast<const char*>(payload.data()), payload.size()});
}

Status no_frame(std::string_view what) {
  return internal_error("a frame of another process is no " + std::string(what));
}

std::string framed(const Status& failure) {
  KeyEncoder fields;
  fields.field("code", static_cast<std::uint64_t>(failure.code));
  fields.field("message", failure.message);
  return framed(fields);
}

// nullopt: the frame holds no failure.
std::optional<Status> failure_in(std::span<const KeyField> fields) {
  std::uint64_t code = 0;
  if (fields.size() != 2 || fields[0].name != "code" || fields[1].name != "message" ||
      !read_number(fields[0].value, code)) {
    return std::nullopt;
  }
  for (const StatusCode known : {StatusCode::invalid_argument, StatusCode::unsupported, StatusCode::unavailable,
                                 StatusCode::not_found, StatusCode::device_lost}) {
    if (code == static_cast<std::uint64_t>(known)) return Status{known, std::string(fields[1].value)};
  }
  return unavailable(std::string(fields[1].value));
}

}  // namespace

std::string to_frame(const BuildSetup& setup) {
  KeyEncoder fields;
  fields.field("plugin", setup.plugin.string());
  fields.field("driver", setup.driver);
  fields.field("device", setup.device);
  fields.field("cache_directory", setup.cache_directory.string());
  fields.field("driver_folder", setup.driver_folder.string());
  fields.field("memory", bytes_of_number(setup.memory));
  for (const std::string& library : setup.libraries) fields.field("library", library);
  for (const std::string& path : setup.hidden) fields.field("hidden", path);
  for (const auto& [name, value] : setup.settings) add_setting(fields, name, value);
  return framed(fields);
}

Result<BuildSetup> build_setup_of(std::string_view frame) {
  const auto fields = decode_key_material(frame);
  BuildSetup setup;
  bool good = fields.has_value();
  for (const KeyField& field : fields ? *fields : std::vector<KeyField>()) {
    if (field.name == "plugin") setup.plugin = std::string(field.value);
    if (field.name == "driver") setup.driver = field.value;
    if (field.name == "device") setup.device = field.value;
    if (field.name == "cache_directory") setup.cache_directory = std::string(field.value);
    if (field.name == "driver_folder") setup.driver_folder = std::string(field.value);
    if (field.name == "memory") good = good && read_number(field.value, setup.memory);
    if (field.name == "library") setup.libraries.emplace_back(field.value);
    if (field.name == "hidden") setup.hidden.emplace_back(field.value);
    if (field.name.starts_with(setting_prefix)) {
      good = good && take_setting(std::string(field.name.substr(setting_prefix.size())), field.value, setup.settings);
    }
  }
  if (!good || setup.plugin.empty() || setup.device.empty()) return no_frame("setup");
  return setup;
}

std::string to_frame(const BuildRequest& request) {
  KeyEncoder fields;
  fields.field("material", request.material);
  for (const std::string& file : request.files) fields.field("file", file);
  if (request.stored) add_program(fields, *request.stored);
  return framed(fields);
}

Result<BuildRequest> build_request_of(std::string_view frame) {
  const auto fields = decode_key_material(frame);
  if (!fields || fields->empty() || fields->front().name != "material") return no_frame("request");
  BuildRequest request{std::string(fields->front().value), {}};
  std::string format;
  for (const KeyField& field : std::span(*fields).subspan(1)) {
    if (field.name == "file") request.files.emplace_back(field.value);
    if (field.name == "format") format = field.value;
    if (field.name != "payload") continue;
    auto stored = decode_payload(format, std::as_bytes(std::span(field.value)));
    if (!stored) return no_frame("request");
    request.stored = std::move(*stored);
  }
  return request;
}

std::string to_frame(const Result<BuildOpened>& opened) {
  if (!opened) return framed(opened.error());
  KeyEncoder fields;
  fields.field("opened", std::string());
  for (const std::string& gap : opened->gaps) fields.field("gap", gap);
  return framed(fields);
}

Result<BuildOpened> build_opened_of(std::string_view frame) {
  const auto fields = decode_key_material(frame);
  if (!fields || fields->empty()) return no_frame("answer");
  if (auto failure = failure_in(*fields)) return std::move(*failure);
  if (fields->front().name != "opened") return no_frame("answer");
  BuildOpened opened;
  for (const KeyField& field : std::span(*fields).subspan(1)) opened.gaps.emplace_back(field.value);
  return opened;
}

std::string to_frame(const Result<ProgramBinary>& built) {
  if (!built) return framed(built.error());
  KeyEncoder fields;
  add_program(fields, *built);
  return framed(fields);
}

Result<ProgramBinary> built_program_of(std::string_view frame) {
  const auto fields = decode_key_material(frame);
  if (!fields || fields->size() != 2) return no_frame("answer");
  if (auto failure = failure_in(*fields)) return std::move(*failure);
  const KeyField &first = fields->front(), &second = fields->back();
  if (first.name != "format" || second.name != "payload") return no_frame("answer");
  auto program = decode_payload(std::string(first.value), std::as_bytes(std::span(second.value)));
  if (!program) return internal_error("the answer of another process: " + program.error().message);
  return program;
}

}  // namespace kiln
