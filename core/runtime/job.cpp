#include "runtime/job.hpp"

#include "contract/overlap.hpp"
#include "runtime/verification.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include <kiln/operation.hpp>
#include <kiln/run_request.hpp>

#include <kiln_json.hpp>

namespace kiln {
namespace {

// One reference too few would leave an output uncompared and call it verified.
Status check_expected(const RunRequest& request, const std::vector<TensorDecl>& declared) {
  const auto inouts = std::ranges::count(declared, TensorRole::inout, &TensorDecl::role);
  if (request.expected.empty() || std::cmp_equal(request.expected.size(), inouts)) return {};
  return invalid_argument(std::to_string(request.expected.size()) + " expected tensors given, expected " +
                          std::to_string(inouts) + ": one for each output and inout");
}

Status check_apart(const RunRequest& request, const std::vector<TensorDecl>& declared) {
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const HostTensor* const written = is_written(declared[i].role) ? request.tensors[i].host.get() : nullptr;
    for (std::size_t other = 0; other < declared.size(); ++other) {
      const HostTensor* const tensor = request.tensors[other].host.get();
      if (other == i || written == nullptr || tensor == nullptr) continue;
      if (overlap(written->bytes(), tensor->bytes())) return shared_memory(declared[i].name, declared[other].name);
    }
  }
  return {};
}

Status check(const RunRequest& request) {
  if (Status status = validate(request.spec); !status.ok()) return status;
  if (Status status = check_tensors(request); !status.ok()) return status;
  return check_verifiable(request);
}

}  // namespace

bool stop_requested(const std::atomic<bool>* stop) noexcept { return stop != nullptr && stop->load(); }

Job::Job(const RunRequest& asked, TraceSink* trace)
    : request(asked),
      span(trace, TraceArea::runtime, asked.name.empty() ? std::string_view("job") : std::string_view(asked.name)),
      stop_(asked.stop) {
  report.name = request.name;
  report.op = operation(request.spec);
  report.flops = flops(request.spec);
  report.bytes = bytes_moved(request.spec);
  of_layers = operation_of(request.spec).is_layer;
  report.status = check(request);
}

Status check_tensors(const RunRequest& request) {
  const std::vector<TensorDecl> declared = tensors_of(request.spec);
  if (declared.size() != request.tensors.size()) {
    return invalid_argument(std::to_string(request.tensors.size()) + " tensors given, expected " +
                            std::to_string(declared.size()));
  }
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const TensorArgument& given = request.tensors[i];
    const bool constant = declared[i].role == TensorRole::constant;
    const bool on_device = !constant && given.device != nullptr;  // of a pipeline
    if (constant ? given.constant == nullptr : !on_device && given.host == nullptr) {
      return invalid_argument("tensor " + declared[i].name + ": no " + (constant ? "Constant" : "host tensor") +
                              " given");
    }
    const std::size_t bytes = constant    ? given.constant->tensor().bytes().size()
                              : on_device ? static_cast<std::size_t>(given.device->bytes)
                                          : given.host->bytes().size();
    if (bytes != declared[i].bytes) {
      return invalid_argument("tensor " + declared[i].name + ": " + std::to_string(bytes) + " bytes, expected " +
                              std::to_string(declared[i].bytes));
    }
  }
  if (Status status = check_apart(request, declared); !status.ok()) return status;
  return check_expected(request, declared);
}

Status check_on_host(const RunRequest& request) {
  for (std::size_t i = 0; i < request.tensors.size(); ++i) {
    if (request.tensors[i].device == nullptr) continue;
    return invalid_argument("tensor " + tensors_of(request.spec)[i].name +
                            ": a DeviceTensor given, expected a host tensor");
  }
  return {};
}

InoutSnapshot::InoutSnapshot(const RunRequest& request) : request_(request) {
  const std::vector<TensorDecl> declared = tensors_of(request.spec);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].role != TensorRole::inout) continue;
    const std::span<const std::byte> bytes = request.tensors[i].host->bytes();
    saved_.emplace_back(i, std::vector<std::byte>(bytes.begin(), bytes.end()));
  }
}

void InoutSnapshot::restore() const {
  for (const auto& [index, bytes] : saved_) {
    std::memcpy(request_.tensors[index].host->bytes().data(), bytes.data(), bytes.size());
  }
}

namespace {

double in_ms(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json amount_or_null(double amount) { return amount > 0 ? Json(amount) : Json(nullptr); }

// JSON has no numbers that are not finite.
Json number_or_word(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return value;
}

}  // namespace

double gflops(double flops, std::uint64_t ns) { return ns == 0 ? 0 : flops / static_cast<double>(ns); }

std::string report_json(const RunReport& report, double first_result_ms, const std::string& output) {
  const bool ran = report.runs > 0;
  const bool timed = report.median.wall_ns != 0;
  const auto time = [&](std::uint64_t ns) { return timed ? Json(in_ms(ns)) : Json(nullptr); };
  const auto rate = [&](std::uint64_t ns) { return amount_or_null(report.status.ok() ? gflops(report.flops, ns) : 0); };
  Json json;
  json["name"] = report.name;
  json["op"] = report.op;
  json["status"] = report.status.ok() ? "ok" : std::string(to_string(report.status.code));
  json["error"] = text_or_null(report.status.message);
  json["device"] = report.device.id.empty() ? Json(nullptr)
                                            : Json{{"id", report.device.id},
                                                   {"kind", to_string(report.device.kind)},
                                                   {"name", report.device.name},
                                                   {"driver", report.device.driver}};
  json["variant"] = text_or_null(report.variant);
  json["selected_because"] = text_or_null(report.selected_because);
  const bool found = report.tier != Tier::invalid;
  json["program"] = {{"keys", report.keys},
                     {"tier", found ? Json(to_string(report.tier)) : Json(nullptr)},
                     {"build_ms", found ? Json(in_ms(report.build_ns)) : Json(nullptr)}};
  json["runs"] = report.runs;
  json["ms"] = {{"queue", time(report.median.queue_ns)},
                {"upload", time(report.median.upload_ns)},
                {"device", amount_or_null(in_ms(report.median.device_ns))},
                {"readback", time(report.median.readback_ns)},
                {"wall_median", time(report.median.wall_ns)},
                {"wall_min", time(report.wall_min_ns)},
                {"wall_max", time(report.wall_max_ns)},
                {"first_result", amount_or_null(first_result_ms)}};
  json["gflops"] = rate(report.median.wall_ns);
  json["gflops_device"] = rate(report.median.device_ns);
  json["work"] = {{"flops", amount_or_null(report.flops)},
                  {"bytes", amount_or_null(report.bytes)},
                  {"roof_gflops", amount_or_null(report.device.roof_gflops)}};
  json["verified"] = report.verified ? Json(*report.verified) : Json(nullptr);
  json["max_rel_error"] = report.verified ? Json(report.max_rel_error) : Json(nullptr);
  json["error_bound"] = report.verified ? Json(report.error_bound) : Json(nullptr);
  json["elements"] = nullptr;
  if (report.verified && report.worst) {
    json["elements"] = {{"compared", report.compared_elements},
                        {"wrong", report.wrong_elements},
                        {"worst",
                         {{"output", report.worst->output},
                          {"index", report.worst->index},
                          {"found", number_or_word(report.worst->found)},
                          {"expected", number_or_word(report.worst->expected)},
                          {"allowed", number_or_word(report.worst->allowed)}}}};
  }
  json["output"] = ran && report.status.ok() ? text_or_null(output) : Json(nullptr);
  json["notes"] = report.notes;
  if (report.op != "pipeline") return json_text(json);
  const auto bytes = [&](std::uint64_t count) { return report.steps.empty() ? Json(nullptr) : Json(count); };
  json["memory"] = {{"intermediates", bytes(report.intermediate_bytes)}, {"live", bytes(report.live_bytes)}};
  json["steps"] = Json::array();
  for (const StepReport& step : report.steps) {
    json["steps"].push_back(
        {{"name", step.name},
         {"op", step.op},
         {"variant", step.variant},
         {"tier", to_string(step.tier)},
         {"build_ms", in_ms(step.build_ns)},
         {"rounds", step.rounds},
         {"device_ms", step.device_ns == 0 ? Json(nullptr) : Json(in_ms(step.device_ns))},
         {"gflops_device", amount_or_null(gflops(step.flops * static_cast<double>(step.rounds), step.device_ns))},
         {"verified", step.verified ? Json(*step.verified) : Json(nullptr)},
         {"max_rel_error", step.verified ? Json(step.max_rel_error) : Json(nullptr)},
         {"error_bound", step.verified ? Json(step.error_bound) : Json(nullptr)}});
  }
  return json_text(json);
}

}  // namespace kiln
