#include "simulator/kernel/device/settings.hpp"

#include <charconv>
#include <filesystem>
#include <system_error>

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
  if (!FaultPlan::parse(value("KILN_SIM_FAULT", ""), settings.faults, reason)) {
    reason = "KILN_SIM_FAULT: " + reason;
    return false;
  }
  return read_target(value("KILN_SIM_TARGET", "gfx1100"), settings, reason) &&
         read_time("KILN_SIM_LOCKUP_MS", value("KILN_SIM_LOCKUP_MS", "200"), settings.lockup, reason) &&
         read_time("KILN_SIM_WATCHDOG_MS", value("KILN_SIM_WATCHDOG_MS", "60000"), settings.watchdog, reason) &&
         read_schedule(value("KILN_SIM_SCHEDULE", ""), settings, reason);
}

}  // namespace kiln::simulator::kernel
