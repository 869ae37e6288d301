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

bool read_lockup(std::string_view text, Settings& settings, std::string& reason) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count <= 0) {
    reason = "KILN_SIM_LOCKUP_MS: '" + std::string(text) + "' is no number of milliseconds above 0";
    return false;
  }
  settings.lockup = std::chrono::milliseconds(count);
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
         read_lockup(value("KILN_SIM_LOCKUP_MS", "200"), settings, reason);
}

}  // namespace kiln::simulator::kernel
