// Where the signing key must not lie: below the folder whose entries it signs. Whoever copies, shares or mounts the
// cache would hand the key over with it.
//
// Thread-safety: pure calls of the operating system. Ownership: values.
#pragma once

#include <kiln/config.hpp>
#include <kiln/status.hpp>

namespace kiln {

// not_found: nothing names the folder, or the key file.
Status no_cache_folder();
Status no_key_file();

// invalid_argument, naming both, where it does; also by way of links.
Status check_key_file_place(const CacheConfig& config);

}  // namespace kiln
