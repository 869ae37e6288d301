// HttpStore: a RemoteStore on a web server: GET and PUT below a URL.
//
// It works with the DAV modules of nginx and Apache, with bazel-remote (layout "bazel"), and with S3. It follows no
// redirect: another host may not be meant to see the credentials.
// Thread-safety: as RemoteStore; each call uses a connection of its own from a pool. Ownership: owns the connections.
#pragma once

#include "curl_library.hpp"

#include <kiln/remote_store.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kiln::remote_http {

// Opens libcurl. unavailable: it is not installed.
Result<std::unique_ptr<RemoteStore>> open_http_store(const RemoteContext& context);

// What an answer of a server means.
enum class Answer : std::uint8_t { object = 0, absent, no_folder, busy, failed };
Answer meaning_of(long http_status, bool is_put) noexcept;

// The path of an object below the URL of the store.
std::string path_of(const std::string& name, const std::string& layout);

}  // namespace kiln::remote_http
