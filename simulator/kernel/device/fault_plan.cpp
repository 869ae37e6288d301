#include "simulator/kernel/device/fault_plan.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace kiln::simulator::kernel {
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
