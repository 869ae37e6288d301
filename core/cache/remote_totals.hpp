// Remote totals: what all processes of this user got from one remote and wrote to it, in remote/NAME.totals of the cache.
//
// Text, one line "name number" each; unknown lines are ignored, and damaged text counts nothing.
// Thread-safety: functions from any thread; a file lock serializes the updates of processes. Ownership: values.
// An update that cannot get the lock within 20 ms is dropped without an error.
#pragma once

#include <kiln/cache_sharing.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace kiln {

std::string encode_remote_totals(const RemoteTotals& totals);
RemoteTotals decode_remote_totals(std::string_view text);

// The beginning of the names of the remote's files in remote/ of a cache folder.
std::string remote_file_stem(const std::string& url);

// Adds to the file below the cache folder `directory`, which exists. Does nothing if there is nothing to add.
void add_remote_totals(const std::filesystem::path& directory, const std::string& url, const RemoteTotals& more);
RemoteTotals read_remote_totals(const std::filesystem::path& directory, const std::string& url);

}  // namespace kiln
