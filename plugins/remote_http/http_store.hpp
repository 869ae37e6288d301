// CurlLibrary: libcurl, opened at first use, so that a process without an HTTP remote does not load it.
//
// Thread-safety: functions from any thread. Ownership: the library stays loaded until the process ends.
#pragma once

#include <kiln/remote_store.hpp>
#include <kiln/status.hpp>

#include <curl/curl.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kiln::remote_http {

// The functions of libcurl that the store uses, under their own names.
struct CurlLibrary {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  CURLcode (*easy_setopt)(CURL*, CURLoption, ...) = nullptr;
  CURLcode (*easy_getinfo)(CURL*, CURLINFO, ...) = nullptr;
  decltype(&::curl_multi_init) multi_init = nullptr;
  decltype(&::curl_multi_cleanup) multi_cleanup = nullptr;
  decltype(&::curl_multi_add_handle) multi_add_handle = nullptr;
  decltype(&::curl_multi_remove_handle) multi_remove_handle = nullptr;
  decltype(&::curl_multi_perform) multi_perform = nullptr;
  decltype(&::curl_multi_poll) multi_poll = nullptr;
  decltype(&::curl_multi_info_read) multi_info_read = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;

  // unavailable: there is no libcurl.so.4; the error has the text of the dynamic loader.
  static Result<const CurlLibrary*> open();
};

// HttpStore: a RemoteStore on a web server: GET and PUT below a URL.
//
// It works with the DAV modules of nginx and Apache, with bazel-remote (layout "bazel"), and with S3. It follows no
// redirect: another host may not be meant to see the credentials.
// Thread-safety: as RemoteStore; each call uses a connection of its own from a pool. Ownership: owns the connections.

// Opens libcurl. unavailable: it is not installed.
Result<std::unique_ptr<RemoteStore>> open_http_store(const RemoteContext& context);

// What an answer of a server means.
enum class Answer : std::uint8_t { object = 0, absent, no_folder, busy, failed };
Answer meaning_of(long http_status, bool is_put) noexcept;

// The path of an object below the URL of the store.
std::string path_of(const std::string& name, const std::string& layout);

}  // namespace kiln::remote_http
