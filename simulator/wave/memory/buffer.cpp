#include "simulator/wave/memory/buffer_space.hpp"
#include "simulator/wave/memory/lists.hpp"
#include "simulator/wave/memory/operations.hpp"

namespace kiln::simulator::memory_unit {

SemanticsList buffer() noexcept { return Operations<Buffer>::list(); }

}  // namespace kiln::simulator::memory_unit
