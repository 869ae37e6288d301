#include "runtime/child_protocols.hpp"

#include "cache/entry_format.hpp"
#include "cache/key_material.hpp"

#include <kiln/digest.hpp>

#include <array>
#include <cstring>
#include <span>

#include <kiln_json.hpp>

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
  return internal_error("a frame of another process is not a valid " + std::string(what));
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
                                 StatusCode::not_found, StatusCode::device_lost, StatusCode::internal}) {
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
  if (!program) return internal_error("the answer of another process cannot be read: " + program.error().message);
  return program;
}

namespace {

constexpr std::array numbers = {
    &Conv2dSpec::n,     &Conv2dSpec::c,          &Conv2dSpec::h,          &Conv2dSpec::w,        &Conv2dSpec::k,
    &Conv2dSpec::r,     &Conv2dSpec::s,          &Conv2dSpec::stride_y,   &Conv2dSpec::stride_x, &Conv2dSpec::pad_y,
    &Conv2dSpec::pad_x, &Conv2dSpec::dilation_y, &Conv2dSpec::dilation_x, &Conv2dSpec::groups};

Json or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

std::optional<std::string> optional_text(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<std::string>());
}

Json json_of(const Conv2dSpec& spec) {
  Json json = Json::array();
  for (const auto number : numbers) json.push_back(spec.*number);
  for (const int word :
       {static_cast<int>(spec.bias), static_cast<int>(spec.activation), static_cast<int>(spec.accuracy)}) {
    json.push_back(word);
  }
  return json;
}

Conv2dSpec conv_of(const Json& json) {
  Conv2dSpec spec;
  for (std::size_t i = 0; i < numbers.size(); ++i) spec.*numbers[i] = json.at(i).get<std::int64_t>();
  spec.bias = static_cast<Bias>(json.at(numbers.size()).get<int>());
  spec.activation = static_cast<Activation>(json.at(numbers.size() + 1).get<int>());
  spec.accuracy = static_cast<Accuracy>(json.at(numbers.size() + 2).get<int>());
  return spec;
}

Json json_of(const GemmSpec& spec) {
  return {{"m", spec.m},
          {"n", spec.n},
          {"k", spec.k},
          {"bias", static_cast<int>(spec.bias)},
          {"activation", static_cast<int>(spec.activation)}};
}

GemmSpec gemm_of(const Json& json) {
  GemmSpec spec;
  spec.m = json.at("m").get<std::int64_t>();
  spec.n = json.at("n").get<std::int64_t>();
  spec.k = json.at("k").get<std::int64_t>();
  spec.bias = static_cast<Bias>(json.at("bias").get<int>());
  spec.activation = static_cast<Activation>(json.at("activation").get<int>());
  return spec;
}

constexpr StatusCode codes[] = {StatusCode::invalid_argument, StatusCode::not_found,   StatusCode::unsupported,
                                StatusCode::unavailable,      StatusCode::corrupt,     StatusCode::io,
                                StatusCode::timeout,          StatusCode::device_lost, StatusCode::cancelled,
                                StatusCode::internal};

}  // namespace

std::string to_line(const BenchSetup& setup) {
  const ConfigSources& sources = setup.sources;
  const auto* conv = std::get_if<Conv2dSpec>(&setup.subject);
  const auto* gemm = std::get_if<GemmSpec>(&setup.subject);
  const auto* job = std::get_if<std::string>(&setup.subject);
  const Json json = {{"file", sources.file ? Json(sources.file->string()) : Json(nullptr)},
                     {"environment", sources.environment},
                     {"set", sources.set},
                     {"cache_directory", or_null(sources.cache_directory)},
                     {"plugin_path", or_null(sources.plugin_path)},
                     {"device", setup.device},
                     {"conv2d", conv == nullptr ? Json(nullptr) : json_of(*conv)},
                     {"gemm", gemm == nullptr ? Json(nullptr) : json_of(*gemm)},
                     {"job", job == nullptr ? Json(nullptr) : Json(*job)},
                     {"outputs", setup.outputs}};
  return json_text(json) + "\n";
}

Result<BenchSetup> setup_of(std::string_view line) {
  try {
    const Json json = parse_json(line);
    BenchSetup setup;
    if (const auto file = optional_text(json.at("file"))) setup.sources.file = *file;
    setup.sources.environment = json.at("environment").get<std::map<std::string, std::string>>();
    setup.sources.set = json.at("set").get<std::vector<std::string>>();
    setup.sources.cache_directory = optional_text(json.at("cache_directory"));
    setup.sources.plugin_path = optional_text(json.at("plugin_path"));
    setup.device = json.at("device").get<std::string>();
    setup.outputs = json.value("outputs", -1);
    if (const auto job = optional_text(json.at("job"))) {
      setup.subject = *job;
    } else if (const Json& gemm = json.at("gemm"); !gemm.is_null()) {
      setup.subject = gemm_of(gemm);
    } else {
      setup.subject = conv_of(json.at("conv2d"));
    }
    return setup;
  } catch (const Json::exception& error) {
    return invalid_argument(std::string("bench: the set-up cannot be read: ") + error.what());
  }
}

std::string to_line(const Result<VariantSamples>& answer) {
  Json json;
  if (answer) {
    json = {{"wall_ns", answer->wall_ns},         {"device_ns", answer->device_ns},
            {"source", answer->source_digest},    {"max_rel_error", answer->max_rel_error},
            {"error_bound", answer->error_bound}, {"agreement", answer->agreement},
            {"contention", answer->contention}};
  } else {
    json = {{"code", to_string(answer.error().code)}, {"message", answer.error().message}};
  }
  return json_text(json) + "\n";
}

Result<VariantSamples> answer_of(std::string_view line) {
  try {
    const Json json = parse_json(line);
    if (json.contains("code")) {
      const std::string word = json.at("code").get<std::string>();
      for (const StatusCode code : codes) {
        if (to_string(code) == word) return Status{code, json.at("message").get<std::string>()};
      }
      return internal_error("bench: the answer has the unknown status '" + word + "'");
    }
    VariantSamples samples;
    samples.wall_ns = json.at("wall_ns").get<std::vector<std::uint64_t>>();
    samples.device_ns = json.at("device_ns").get<std::vector<std::uint64_t>>();
    samples.source_digest = json.at("source").get<std::string>();
    samples.max_rel_error = json.at("max_rel_error").get<double>();
    samples.error_bound = json.at("error_bound").get<double>();
    samples.agreement = json.value("agreement", std::uint32_t{0});
    samples.contention = json.value("contention", 0.0);
    return samples;
  } catch (const Json::exception& error) {
    return internal_error(std::string("bench: the answer cannot be read: ") + error.what());
  }
}

}  // namespace kiln
