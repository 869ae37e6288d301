#include "curl_library.hpp"

#include <dlfcn.h>

#include <string>

namespace kiln::remote_http {
namespace {

constexpr const char* library_name = "libcurl.so.4";

Result<CurlLibrary> load() {
  void* library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* why = dlerror();
    return unavailable("HTTP: " + std::string(why == nullptr ? library_name : why) + ". Install the package libcurl4");
  }
  CurlLibrary curl;
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
  find(curl.global_init, "curl_global_init");
  find(curl.easy_init, "curl_easy_init");
  find(curl.easy_cleanup, "curl_easy_cleanup");
  find(curl.easy_strerror, "curl_easy_strerror");
  find(curl.easy_setopt, "curl_easy_setopt");
  find(curl.easy_getinfo, "curl_easy_getinfo");
  find(curl.multi_init, "curl_multi_init");
  find(curl.multi_cleanup, "curl_multi_cleanup");
  find(curl.multi_add_handle, "curl_multi_add_handle");
  find(curl.multi_remove_handle, "curl_multi_remove_handle");
  find(curl.multi_perform, "curl_multi_perform");
  find(curl.multi_poll, "curl_multi_poll");
  find(curl.multi_info_read, "curl_multi_info_read");
  find(curl.slist_append, "curl_slist_append");
  find(curl.slist_free_all, "curl_slist_free_all");
  if (!missing.empty()) {
    return unavailable(std::string("HTTP: ") + library_name + " has no " + missing +
                       " (expected libcurl 7.85 or later)");
  }
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return unavailable("HTTP: libcurl cannot be initialized");
  return curl;
}

}  // namespace

Result<const CurlLibrary*> CurlLibrary::open() {
  static const Result<CurlLibrary> curl = load();
  if (!curl) return curl.error();
  return &*curl;
}

}  // namespace kiln::remote_http
