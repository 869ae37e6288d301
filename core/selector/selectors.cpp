#include "selector/selectors.hpp"

#include "selector/learning_selector.hpp"

#include <memory>

namespace kiln {

Status register_selectors(Registry& registry) {
  Status status = registry.add_selector(
      "core", "fixed", [](const SelectorContext& context) -> Result<std::unique_ptr<DeviceSelector>> {
        return std::unique_ptr<DeviceSelector>(std::make_unique<FixedSelector>(context.device));
      });
  if (!status.ok()) return status;
  return registry.add_selector("core", "learning", LearningSelector::create);
}

namespace selector {
namespace {

constexpr const char* no_preference = "auto";

}  // namespace

std::optional<Result<Choice>> by_preference(const DeviceConfig& device, std::span<const Candidate> candidates) {
  if (candidates.empty()) return unavailable("no device can serve: there is no candidate");
  if (device.prefer == no_preference) return std::nullopt;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::string& id = candidates[i].device->id;
    if (id == device.prefer) return Choice{i, "[device] prefer = \"" + id + "\""};
  }
  return std::nullopt;
}

std::string missed_preference(const DeviceConfig& device) {
  if (device.prefer == no_preference) return {};
  return "[device] prefer = \"" + device.prefer + "\" cannot serve; ";
}

}  // namespace selector

Result<Choice> FixedSelector::select(const KernelSpec&, std::span<const Candidate> candidates,
                                     const JobTerms&) noexcept {
  if (auto decided = selector::by_preference(device_, candidates)) return *std::move(decided);
  return Choice{0, selector::missed_preference(device_) + candidates[0].device->id + ": the first of " +
                       std::to_string(candidates.size()) + (candidates.size() == 1 ? " candidate" : " candidates") +
                       " (selector fixed)"};
}

Result<Explanation> FixedSelector::explain(const KernelSpec& spec, std::span<const Candidate> candidates,
                                           const JobTerms& terms) noexcept {
  auto choice = select(spec, candidates, terms);
  if (!choice) return std::move(choice).error();
  Explanation explanation;
  explanation.bucket = "any";
  explanation.words = {choice->because, "selector fixed measures nothing: it has no figures"};
  explanation.choice = std::move(*choice);
  return explanation;
}

void FixedSelector::record(const KernelSpec&, const DeviceInfo&, const Measurement&, const RunConditions&) noexcept {}

}  // namespace kiln
