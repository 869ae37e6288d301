#include "simulator/wave/memory/lists.hpp"
#include "simulator/wave/memory/operations.hpp"

namespace kiln::simulator::memory_unit {

SemanticsList flat() noexcept { return Operations<Flat>::list(); }
SemanticsList global() noexcept { return Operations<Global>::list(); }
SemanticsList scratch() noexcept { return Operations<Scratch>::list(); }

}  // namespace kiln::simulator::memory_unit
