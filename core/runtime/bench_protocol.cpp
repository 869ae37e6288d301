#include "runtime/bench_protocol.hpp"

#include <kiln_json.hpp>

#include <array>

namespace kiln {
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
      return internal_error("bench: answered the unknown status '" + word + "'");
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
