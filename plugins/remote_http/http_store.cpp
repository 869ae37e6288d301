#include "http_store.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "sigv4.hpp"

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
    return unavailable(std::string("HTTP: ") + library_name + " has no symbol " + missing +
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

namespace {

constexpr std::size_t most_together = 16;  // transfers of one batch
constexpr int poll_ms = 10;                // how often `stop` is read

using Bytes = std::vector<std::byte>;

enum class Method : std::uint8_t { get, put, make_folder };

// One request and its answer.
struct Transfer {
  Method method = Method::get;
  std::string url;
  std::span<const std::byte> body;  // of a put
  std::uint64_t most_bytes = 0;

  std::size_t sent = 0;
  Bytes received;
  bool too_large = false;
  long http_status = 0;
  std::chrono::seconds retry_after{};
  CURLcode result = CURLE_OK;
};

std::size_t receive(char* from, std::size_t size, std::size_t count, void* to) noexcept {
  auto& transfer = *static_cast<Transfer*>(to);
  const std::size_t bytes = size * count;
  if (transfer.received.size() + bytes > transfer.most_bytes) {
    transfer.too_large = true;
    return 0;  // ends the transfer
  }
  try {
    const auto* begin = reinterpret_cast<const std::byte*>(from);
    transfer.received.insert(transfer.received.end(), begin, begin + bytes);
  } catch (...) {
    return 0;
  }
  return bytes;
}

std::size_t send(char* to, std::size_t size, std::size_t count, void* from) noexcept {
  auto& transfer = *static_cast<Transfer*>(from);
  const std::size_t bytes = std::min(size * count, transfer.body.size() - transfer.sent);
  if (bytes != 0) std::memcpy(to, transfer.body.data() + transfer.sent, bytes);
  transfer.sent += bytes;
  return bytes;
}

// libcurl sends the body again where the server had closed an idle connection.
int rewind_to(void* of, curl_off_t offset, int origin) noexcept {
  auto& transfer = *static_cast<Transfer*>(of);
  const bool is_inside = offset >= 0 && static_cast<std::uint64_t>(offset) <= transfer.body.size();
  if (origin != SEEK_SET || !is_inside) return CURL_SEEKFUNC_FAIL;
  transfer.sent = static_cast<std::size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

// A set of connections that one call uses at a time. They belong to the multi handle. Each transfer has an easy handle
// of its own: libcurl 7.88 keeps a pointer to the last header of the transfer before, and reads it, freed, where a
// server begins its answer with a folded line.
class Connections {
 public:
  explicit Connections(const CurlLibrary& curl) : curl_(curl), multi_(curl.multi_init()) {}
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  ~Connections() {
    if (multi_ != nullptr) curl_.multi_cleanup(multi_);
  }

  bool works() const noexcept { return multi_ != nullptr; }
  CURLM* multi() const noexcept { return multi_; }

 private:
  const CurlLibrary& curl_;
  CURLM* multi_;
};

class HttpStore final : public RemoteStore {
 public:
  HttpStore(const CurlLibrary& curl, const RemoteContext& context, std::string base, std::optional<S3Account> account)
      : curl_(curl),
        base_(std::move(base)),
        layout_(context.layout),
        credentials_(context.credentials),
        account_(std::move(account)) {}

  Result<std::optional<Bytes>> get(const std::string& name, const RemoteLimits& limits) noexcept override try {
    Transfer transfer = request(Method::get, name, limits);
    if (Status status = run(std::span(&transfer, 1), limits, {}); !status.ok()) return status;
    return object_of(transfer);
  } catch (...) {
    return caught();
  }

  Status get_many(std::span<const std::string> names, const RemoteLimits& limits,
                  const OnObject& on_object) noexcept override try {
    std::vector<Transfer> transfers;
    transfers.reserve(names.size());
    for (const std::string& name : names) transfers.push_back(request(Method::get, name, limits));
    Status failure;
    const Status status = run(transfers, limits, [&](std::size_t place) {
      auto object = object_of(transfers[place]);
      if (!object) {
        if (failure.ok()) failure = object.error();
        return;
      }
      if (*object) on_object(place, std::move(**object));
    });
    return status.ok() ? failure : status;
  } catch (...) {
    return caught();
  }

  Status put(const std::string& name, std::span<const std::byte> bytes, const RemoteLimits& limits) noexcept override
      try {
    for (int attempt = 0;; ++attempt) {
      Transfer transfer = request(Method::put, name, limits);
      transfer.body = bytes;
      if (Status status = run(std::span(&transfer, 1), limits, {}); !status.ok()) return status;
      if (Status status = failure_of(transfer); !status.ok()) return status;
      const Answer answer = meaning_of(transfer.http_status, true);
      if (answer == Answer::object) return {};
      if (answer != Answer::no_folder || attempt != 0 || name.find('/') == std::string::npos) {
        return refused_write(transfer);
      }
      // Apache makes no folders by itself.
      Transfer folder = request(Method::make_folder, name.substr(0, name.rfind('/')), limits);
      if (Status status = run(std::span(&folder, 1), limits, {}); !status.ok()) return status;
    }
  } catch (...) {
    return caught();
  }

  std::chrono::seconds retry_after() const noexcept override { return std::chrono::seconds(retry_after_s_.load()); }

 private:
  Transfer request(Method method, const std::string& name, const RemoteLimits& limits) const {
    Transfer transfer;
    transfer.method = method;
    transfer.url = base_ + "/" + (method == Method::make_folder ? name : path_of(name, layout_));
    transfer.most_bytes = limits.most_bytes;
    return transfer;
  }

  // The failure of a transfer that got no answer.
  Status failure_of(const Transfer& transfer) {
    if (transfer.result == CURLE_OK) return {};
    retry_after_s_ = 0;  // what an earlier answer said is not of this failure
    const std::string who = base_ + ": ";
    if (transfer.too_large || transfer.result == CURLE_FILESIZE_EXCEEDED) {
      return unavailable(who + "object has more than " + std::to_string(transfer.most_bytes) + " bytes");
    }
    const std::string why = curl_.easy_strerror(transfer.result);
    if (transfer.result == CURLE_OPERATION_TIMEDOUT) return timed_out(who + why);
    return unavailable(who + why);
  }

  // 408, 429, 502, 503, 504: later perhaps. 413: not this object. Others: not from here.
  Status refused_write(const Transfer& transfer) {
    Status status = refusal(transfer);
    if (transfer.http_status == 413) {
      return invalid_argument(status.message + ": object of " + std::to_string(transfer.body.size()) +
                              " bytes is too large");
    }
    constexpr long later[] = {408, 429, 502, 503, 504};
    if (std::ranges::find(later, transfer.http_status) == std::end(later)) status.code = StatusCode::unsupported;
    return status;
  }

  Status refusal(const Transfer& transfer) {
    retry_after_s_ = transfer.retry_after.count();
    return unavailable(base_ + ": HTTP status " + std::to_string(transfer.http_status) +
                       (transfer.http_status / 100 == 3 ? " (redirects are not followed)" : ""));
  }

  Result<std::optional<Bytes>> object_of(Transfer& transfer) {
    if (Status status = failure_of(transfer); !status.ok()) return status;
    switch (meaning_of(transfer.http_status, false)) {
      case Answer::object:
        return std::optional(std::move(transfer.received));
      case Answer::absent:
        return std::optional<Bytes>();
      default:
        return refusal(transfer);
    }
  }

  std::unique_ptr<Connections> take_connections() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto connections = std::move(idle_.back());
        idle_.pop_back();
        return connections;
      }
    }
    return std::make_unique<Connections>(curl_);
  }
  void give_back(std::unique_ptr<Connections> connections) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connections));
  }

  std::string credential(const char* name) const {
    const auto at = credentials_.find(name);
    return at == credentials_.end() ? std::string() : at->second;
  }

  // Sets the handle up for the request; returns its header lines.
  curl_slist* prepare(CURL* easy, Transfer& transfer, const RemoteLimits& limits) const {
    const auto set = [&](CURLoption option, auto value) { static_cast<void>(curl_.easy_setopt(easy, option, value)); };
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limits.deadline.left()).count();
    const auto connect = std::chrono::duration_cast<std::chrono::milliseconds>(limits.connect).count();
    set(CURLOPT_URL, transfer.url.c_str());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_QUICK_EXIT, 1L);  // waits for no name server; libcurl is never unloaded
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    set(CURLOPT_PIPEWAIT, 1L);
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::clamp<long long>(left, 1, 24LL * 3600 * 1000)));
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::max<long long>(connect, 1)));
    set(CURLOPT_TCP_NODELAY, 1L);
    set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(transfer.most_bytes));
    set(CURLOPT_WRITEFUNCTION, &receive);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
    set(CURLOPT_PRIVATE, static_cast<void*>(&transfer));
    set(CURLOPT_USERAGENT, "kiln");
    if (transfer.method == Method::put) {
      set(CURLOPT_UPLOAD, 1L);
      set(CURLOPT_READFUNCTION, &send);
      set(CURLOPT_READDATA, static_cast<void*>(&transfer));
      set(CURLOPT_SEEKFUNCTION, &rewind_to);
      set(CURLOPT_SEEKDATA, static_cast<void*>(&transfer));
      set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(transfer.body.size()));
    } else if (transfer.method == Method::make_folder) {
      set(CURLOPT_CUSTOMREQUEST, "MKCOL");
    }
    // Values of the handle are copied by libcurl.
    const auto set_text = [&](CURLoption option, const char* name) {
      if (const std::string value = credential(name); !value.empty()) set(option, value.c_str());
    };
    set_text(CURLOPT_SSLCERT, "certificate");
    set_text(CURLOPT_SSLKEY, "private_key");
    set_text(CURLOPT_CAINFO, "authority");
    // Beside the file libcurl would trust the system's folder of authorities.
    if (!credential("authority").empty()) set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    curl_slist* lines = curl_.slist_append(nullptr, "Expect:");
    if (account_) {
      const char* method = transfer.method == Method::put ? "PUT" : "GET";
      for (const std::string& line :
           signed_headers(*account_, {method, transfer.url, sha256(transfer.body).hex()}, std::time(nullptr))) {
        lines = curl_.slist_append(lines, line.c_str());
      }
    } else if (const std::string token = credential("token"); !token.empty()) {
      lines = curl_.slist_append(lines, ("Authorization: Bearer " + token).c_str());
    } else if (!credential("user").empty()) {
      set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
      set_text(CURLOPT_USERNAME, "user");
      set_text(CURLOPT_PASSWORD, "password");
    }
    set(CURLOPT_HTTPHEADER, static_cast<void*>(lines));
    return lines;
  }

  // Performs the transfers, some of them together; calls done(place) for each one that ended. An error: the deadline
  // passed or `stop` became true before all had ended.
  Status run(std::span<Transfer> transfers, const RemoteLimits& limits, const std::function<void(std::size_t)>& done) {
    auto connections = take_connections();
    if (!connections->works()) return unavailable(base_ + ": curl_multi_init failed");
    std::map<CURL*, curl_slist*> running;
    std::size_t next = 0;
    const auto end = [&](CURL* easy) {
      curl_.multi_remove_handle(connections->multi(), easy);
      curl_.easy_cleanup(easy);
      curl_.slist_free_all(running[easy]);
      running.erase(easy);
    };
    Status status;
    while (status.ok() && (next < transfers.size() || !running.empty())) {
      while (next < transfers.size() && running.size() < most_together) {
        CURL* easy = curl_.easy_init();
        if (easy == nullptr) break;
        running[easy] = prepare(easy, transfers[next], limits);
        curl_.multi_add_handle(connections->multi(), easy);
        ++next;
      }
      if (running.empty()) return unavailable(base_ + ": curl_easy_init failed");
      int active = 0;
      curl_.multi_perform(connections->multi(), &active);
      int left = 0;
      while (CURLMsg* message = curl_.multi_info_read(connections->multi(), &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        CURL* easy = message->easy_handle;
        void* place = nullptr;
        curl_.easy_getinfo(easy, CURLINFO_PRIVATE, &place);
        auto* transfer = static_cast<Transfer*>(place);
        transfer->result = message->data.result;
        curl_.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &transfer->http_status);
        curl_off_t retry_s = 0;
        curl_.easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_s);
        transfer->retry_after = std::chrono::seconds(std::max<curl_off_t>(retry_s, 0));
        end(easy);
        if (done) done(static_cast<std::size_t>(transfer - transfers.data()));
      }
      if (running.empty()) continue;
      if (limits.stop != nullptr && *limits.stop) {
        status = cancelled(base_ + ": stopped");
      } else if (limits.deadline.passed()) {
        retry_after_s_ = 0;
        status = timed_out(base_ + ": timed out");
      } else {
        curl_.multi_poll(connections->multi(), nullptr, 0, poll_ms, nullptr);
      }
    }
    while (!running.empty()) end(running.begin()->first);
    // A connection with an answer under way is of no use to the next request.
    if (status.ok()) give_back(std::move(connections));
    return status;
  }

  const CurlLibrary& curl_;
  const std::string base_;  // without a slash at the end
  const std::string layout_;
  const std::map<std::string, std::string> credentials_;
  const std::optional<S3Account> account_;
  std::atomic<std::int64_t> retry_after_s_{0};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connections>> idle_;
};

}  // namespace

Answer meaning_of(long http_status, bool is_put) noexcept {
  if (is_put && (http_status == 409 || http_status == 404)) return Answer::no_folder;
  if (http_status == 404 || http_status == 410) return Answer::absent;
  if (http_status == 429 || http_status == 503) return Answer::busy;
  const bool is_done = is_put ? http_status == 200 || http_status == 201 || http_status == 204 : http_status == 200;
  return is_done ? Answer::object : Answer::failed;
}

std::string path_of(const std::string& name, const std::string& layout) {
  if (layout != "bazel") return name;
  // The digest of a program is unique by itself; any other name is hashed to the form that such servers accept.
  const std::string last = name.substr(name.rfind('/') + 1);
  return "ac/" + (Digest::from_hex(last) ? last : sha256(name).hex());
}

Result<std::unique_ptr<RemoteStore>> open_http_store(const RemoteContext& context) {
  const Result<const CurlLibrary*> curl = CurlLibrary::open();
  if (!curl) return curl.error();
  std::string base = context.url;
  std::optional<S3Account> account;
  if (base.starts_with("s3://")) {
    const auto s3 = s3_account(context);
    if (!s3) return s3.error();
    account = *s3;
    base = account->base;
  }
  while (base.ends_with('/')) base.pop_back();
  return std::unique_ptr<RemoteStore>(
      std::make_unique<HttpStore>(**curl, context, std::move(base), std::move(account)));
}

}  // namespace kiln::remote_http
