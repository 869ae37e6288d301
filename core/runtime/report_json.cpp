#include <kiln/run_request.hpp>
#include <kiln_json.hpp>

#include <cmath>
#include <utility>

namespace kiln {
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
  const auto rate = [&](std::uint64_t ns) { return report.status.ok() ? gflops(report.flops, ns) : 0; };
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
  json["program"] = {{"keys", report.keys},
                     {"tier", report.tier == Tier::invalid ? Json(nullptr) : Json(to_string(report.tier))},
                     {"build_ms", in_ms(report.build_ns)}};
  json["runs"] = report.runs;
  json["ms"] = {{"queue", in_ms(report.median.queue_ns)},      {"upload", in_ms(report.median.upload_ns)},
                {"device", in_ms(report.median.device_ns)},    {"readback", in_ms(report.median.readback_ns)},
                {"wall_median", in_ms(report.median.wall_ns)}, {"wall_min", in_ms(report.wall_min_ns)},
                {"wall_max", in_ms(report.wall_max_ns)},       {"first_result", first_result_ms}};
  const auto rate_or_null = [&](std::uint64_t ns) {
    return report.op == "kernel" || report.flops == 0 ? Json(nullptr) : Json(rate(ns));
  };
  json["gflops"] = rate_or_null(report.median.wall_ns);
  json["gflops_device"] = rate_or_null(report.median.device_ns);
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
  json["memory"] = {{"intermediates", report.intermediate_bytes}, {"live", report.live_bytes}};
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
