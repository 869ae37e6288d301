#include "base/os/privilege.hpp"

#include <sys/auxv.h>

namespace kiln {

// The kernel's own word, the same by which secure_getenv() and the dynamic linker go.
bool has_borrowed_rights() noexcept { return getauxval(AT_SECURE) != 0; }

}  // namespace kiln
