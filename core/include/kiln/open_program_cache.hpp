// Opening core's own cache without a Runtime: for applications that bring their devices themselves.
//
// Thread-safety: free functions, any thread. Ownership: the caller owns the cache, which dies before the devices that
// it is used with; a log's sink outlives it. Nothing is opened on disk before the first program is asked for: a folder
// that cannot be used means memory only, said once to the log. No thread is started but those that
// get_or_build_all() is asked for.
#pragma once

#include <kiln/config_reader.hpp>
#include <kiln/driver_notes.hpp>
#include <kiln/program_cache.hpp>

#include <memory>
#include <string>

namespace kiln {

// unsupported: a name, policy or compression that core does not have. An empty directory means memory only.
Result<std::unique_ptr<ProgramCache>> open_program_cache(const CacheConfig& config, Log log = {});

// The [cache] section as the sources give it, with the user's folder and key file where they name none.
// invalid_argument names every problem of the configuration, a line each.
Result<std::unique_ptr<ProgramCache>> open_program_cache(const ConfigSources& sources = {}, Log log = {});

// The notes of a driver, below `notes` in the cache folder, authenticated like programs. Without a folder or a key
// nothing is found and nothing is stored.
std::unique_ptr<DriverNotes> open_driver_notes(const CacheConfig& config, std::string driver);

}  // namespace kiln
