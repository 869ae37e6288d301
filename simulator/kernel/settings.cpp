#include "simulator/kernel/settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

namespace kiln::simulator::kernel {
namespace {

bool read_target(std::string_view name, Settings& settings, std::string& reason) {
  settings.target = find_target(name);
  if (settings.target != nullptr) return true;
  reason = "KILN_SIM_TARGET: '" + std::string(name) + "' is none of";
  for (const Target& target : targets()) reason.append(" ").append(target.name);
  return false;
}

template <class T>
bool read_number(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_time(const char* name, std::string_view text, std::chrono::milliseconds& time, std::string& reason) {
  int count = 0;
  if (!read_number(text, count) || count <= 0) {
    reason = std::string(name) + ": '" + std::string(text) + "' is no number of milliseconds above 0";
    return false;
  }
  time = std::chrono::milliseconds(count);
  return true;
}

bool read_schedule(std::string_view text, Settings& settings, std::string& reason) {
  if (text.empty()) return true;
  std::uint64_t seed = 0;
  if (!read_number(text, seed)) {
    reason = "KILN_SIM_SCHEDULE: '" + std::string(text) + "' is no number of 0 or more";
    return false;
  }
  settings.schedule_seed = seed;
  return true;
}

}  // namespace

bool read_settings(const std::function<const char*(const char*)>& variable, Settings& settings, std::string& reason) {
  const auto value = [&variable](const char* name, std::string_view otherwise) {
    const char* text = variable(name);
    return text == nullptr || *text == '\0' ? otherwise : std::string_view(text);
  };
  settings.log_path = value("KILN_SIM_LOG", "");
  settings.capture_folder = value("KILN_SIM_CAPTURE", "");
  std::error_code error;
  if (!settings.capture_folder.empty() && !std::filesystem::is_directory(settings.capture_folder, error)) {
    reason = "KILN_SIM_CAPTURE: '" + settings.capture_folder + "' is no folder";
    return false;
  }
  const std::string_view trace = value("KILN_SIM_TRACE", "0");
  settings.trace = trace == "1";
  if (trace != "0" && trace != "1") {
    reason = "KILN_SIM_TRACE: '" + std::string(trace) + "' is neither 0 nor 1";
    return false;
  }
  const std::string_view check = value("KILN_SIM_CHECK", "0");
  settings.check = check == "1";
  if (check != "0" && check != "1") {
    reason = "KILN_SIM_CHECK: '" + std::string(check) + "' is neither 0 nor 1";
    return false;
  }
  if (!FaultPlan::parse(value("KILN_SIM_FAULT", ""), settings.faults, reason)) {
    reason = "KILN_SIM_FAULT: " + reason;
    return false;
  }
  return read_target(value("KILN_SIM_TARGET", "gfx1100"), settings, reason) &&
         read_time("KILN_SIM_LOCKUP_MS", value("KILN_SIM_LOCKUP_MS", "200"), settings.lockup, reason) &&
         read_time("KILN_SIM_WATCHDOG_MS", value("KILN_SIM_WATCHDOG_MS", "60000"), settings.watchdog, reason) &&
         read_schedule(value("KILN_SIM_SCHEDULE", ""), settings, reason);
}

namespace {

constexpr std::array<std::pair<PlannedFault, std::string_view>, 8> names = {{
    {PlannedFault::hang, "hang"},
    {PlannedFault::vram_lost, "vram_lost"},
    {PlannedFault::page_fault, "page_fault"},
    {PlannedFault::cancelled, "cancelled"},
    {PlannedFault::enomem, "enomem"},
    {PlannedFault::einval, "einval"},
    {PlannedFault::unplugged, "unplugged"},
    {PlannedFault::enomem_buffer, "enomem_buffer"},
}};

bool read_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

}  // namespace

std::string_view to_string(PlannedFault fault) noexcept {
  const auto at = std::find_if(names.begin(), names.end(), [fault](const auto& entry) { return entry.first == fault; });
  return at == names.end() ? "none" : at->second;
}

bool FaultPlan::parse(std::string_view text, FaultPlan& plan, std::string& reason) {
  plan.steps_.clear();
  std::vector<Step> steps;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::size_t split = word.find('@');
    const auto at = std::find_if(names.begin(), names.end(),
                                 [&](const auto& entry) { return entry.second == word.substr(0, split); });
    Step step;
    std::string_view number = split == std::string_view::npos ? std::string_view() : word.substr(split + 1);
    step.onwards = number.ends_with('+');
    if (step.onwards) number.remove_suffix(1);
    if (at == names.end() || !read_number(number, step.number)) {
      reason = "'" + std::string(word) + "' is no fault of the form NAME@N or NAME@N+ with NAME one of";
      for (const auto& [fault, name] : names) reason.append(" ").append(name);
      return false;
    }
    step.fault = at->first;
    steps.push_back(step);
  }
  plan.steps_ = std::move(steps);
  return true;
}

PlannedFault FaultPlan::at_submission(std::uint64_t number) const noexcept {
  for (const Step& step : steps_) {
    if (step.fault != PlannedFault::enomem_buffer && step.meets(number)) return step.fault;
  }
  return PlannedFault::invalid;
}

bool FaultPlan::fails_buffer(std::uint64_t number) const noexcept {
  return std::any_of(steps_.begin(), steps_.end(), [number](const Step& step) {
    return step.fault == PlannedFault::enomem_buffer && step.meets(number);
  });
}

}  // namespace kiln::simulator::kernel
