// Whether this process has rights that the user who started it has not: a setuid or setgid file, or one with
// capabilities.
//
// Thread-safety: pure. Such a process trusts no folder that its environment names.
#pragma once

namespace kiln {

bool has_borrowed_rights() noexcept;

}  // namespace kiln
