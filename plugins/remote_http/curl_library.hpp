// CurlLibrary: libcurl, opened at first use, so that a process without an HTTP remote does not load it.
//
// Thread-safety: functions from any thread. Ownership: the library stays loaded until the process ends.
#pragma once

#include <kiln/status.hpp>

#include <curl/curl.h>

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

}  // namespace kiln::remote_http
