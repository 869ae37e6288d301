// Privilege: whether this process has more rights than the user who started it (setuid, setgid or file capabilities).
//
// Such a process does not trust folders named by its environment. Thread-safety: pure.
#pragma once

namespace kiln {

bool has_borrowed_rights() noexcept;

}  // namespace kiln
