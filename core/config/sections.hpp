// read_sections: what a parsed file says, into a Draft.
//
// Thread-safety: none; one reading, one thread. Ownership: nothing is kept.
#pragma once

#include "config/draft.hpp"

namespace kiln::config {

void read_sections(Draft& draft, const TomlNode& root, const FileContext& file);

}  // namespace kiln::config
