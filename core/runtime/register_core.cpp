#include "cache/tiered_cache.hpp"
#include "executor/ring_executor.hpp"
#include "selector/selectors.hpp"

#include <kiln/runtime.hpp>

namespace kiln {

Status register_core(Registry& registry) {
  if (Status status = register_tiered_cache(registry); !status.ok()) return status;
  if (Status status = register_ring_executor(registry); !status.ok()) return status;
  return register_selectors(registry);
}

}  // namespace kiln
