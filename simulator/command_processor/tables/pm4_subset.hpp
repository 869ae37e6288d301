// What the simulated command processor takes, as a page of documentation: docs/pm4-subset.md is this text.
//
// Thread-safety: any thread. Ownership: values.
#pragma once

#include <string>

namespace kiln::simulator {

std::string pm4_subset();  // Markdown, with a newline at its end

}  // namespace kiln::simulator
