// The selectors that core brings: "fixed" and "learning".
//
// Thread-safety: as Registry::add_selector. Ownership: the registry owns the factories.
#pragma once

#include <kiln/registry.hpp>

namespace kiln {

// Registers both in the name of "core".
Status register_selectors(Registry& registry);

}  // namespace kiln
