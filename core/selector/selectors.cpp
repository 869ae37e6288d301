#include "selector/selectors.hpp"

#include "selector/fixed_selector.hpp"
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

}  // namespace kiln
