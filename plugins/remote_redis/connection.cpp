#include "connection.hpp"

#include <kiln/without_sigpipe.hpp>

#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <mutex>
#include <system_error>
#include <type_traits>
#include <utility>

namespace kiln::remote_redis {
namespace {

// The functions of libssl and libcrypto that are used, under their own names.
struct Library {
  decltype(&::TLS_client_method) client_method = nullptr;
  decltype(&::SSL_CTX_new) ctx_new = nullptr;
  decltype(&::SSL_CTX_free) ctx_free = nullptr;
  decltype(&::SSL_CTX_set_verify) ctx_set_verify = nullptr;
  decltype(&::SSL_CTX_set_default_verify_paths) ctx_set_default_verify_paths = nullptr;
  decltype(&::SSL_CTX_load_verify_file) ctx_load_verify_file = nullptr;
  decltype(&::SSL_CTX_use_certificate_chain_file) ctx_use_certificate_chain_file = nullptr;
  decltype(&::SSL_CTX_use_PrivateKey_file) ctx_use_private_key_file = nullptr;
  decltype(&::SSL_CTX_ctrl) ctx_ctrl = nullptr;
  decltype(&::SSL_new) ssl_new = nullptr;
  decltype(&::SSL_free) ssl_free = nullptr;
  decltype(&::SSL_set_fd) set_fd = nullptr;
  decltype(&::SSL_set1_host) set1_host = nullptr;
  decltype(&::SSL_get0_param) get0_param = nullptr;
  decltype(&::X509_VERIFY_PARAM_set1_ip_asc) param_set1_ip = nullptr;
  decltype(&::SSL_ctrl) ctrl = nullptr;
  decltype(&::SSL_connect) connect = nullptr;
  decltype(&::SSL_read_ex) read_ex = nullptr;
  decltype(&::SSL_write_ex) write_ex = nullptr;
  decltype(&::SSL_get_error) get_error = nullptr;
  decltype(&::ERR_get_error) err_get = nullptr;
  decltype(&::ERR_error_string_n) err_text = nullptr;
  decltype(&::ERR_clear_error) err_clear = nullptr;
};

Result<Library> load() {
  Library ssl;
  std::string missing;
  void* library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* why = dlerror();
    return unavailable("TLS: " + std::string(why == nullptr ? "libssl.so.3" : why) + ". Install the package libssl3");
  }
  // libssl's own dependency has the functions of libcrypto.
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
  find(ssl.client_method, "TLS_client_method");
  find(ssl.ctx_new, "SSL_CTX_new");
  find(ssl.ctx_free, "SSL_CTX_free");
  find(ssl.ctx_set_verify, "SSL_CTX_set_verify");
  find(ssl.ctx_set_default_verify_paths, "SSL_CTX_set_default_verify_paths");
  find(ssl.ctx_load_verify_file, "SSL_CTX_load_verify_file");
  find(ssl.ctx_use_certificate_chain_file, "SSL_CTX_use_certificate_chain_file");
  find(ssl.ctx_use_private_key_file, "SSL_CTX_use_PrivateKey_file");
  find(ssl.ctx_ctrl, "SSL_CTX_ctrl");
  find(ssl.ssl_new, "SSL_new");
  find(ssl.ssl_free, "SSL_free");
  find(ssl.set_fd, "SSL_set_fd");
  find(ssl.set1_host, "SSL_set1_host");
  find(ssl.get0_param, "SSL_get0_param");
  find(ssl.param_set1_ip, "X509_VERIFY_PARAM_set1_ip_asc");
  find(ssl.ctrl, "SSL_ctrl");
  find(ssl.connect, "SSL_connect");
  find(ssl.read_ex, "SSL_read_ex");
  find(ssl.write_ex, "SSL_write_ex");
  find(ssl.get_error, "SSL_get_error");
  find(ssl.err_get, "ERR_get_error");
  find(ssl.err_text, "ERR_error_string_n");
  find(ssl.err_clear, "ERR_clear_error");
  if (!missing.empty())
    return unavailable("TLS: libssl.so.3 has no symbol " + missing + " (expected OpenSSL 3.0 or later)");
  return ssl;
}

const Result<Library>& library() {
  static const Result<Library> loaded = load();
  return loaded;
}

std::string last_error() {
  const unsigned long code = library()->err_get();
  if (code == 0) return "the connection was closed";
  char text[256];
  library()->err_text(code, text, sizeof text);
  return text;
}

}  // namespace

Result<std::unique_ptr<Tls>> Tls::create(int socket, const std::string& host,
                                         const std::map<std::string, std::string>& credentials) {
  const Result<Library>& loaded = library();
  if (!loaded) return loaded.error();
  const Library& ssl = *loaded;
  ssl.err_clear();
  std::unique_ptr<Tls> tls(new Tls);
  SSL_CTX* context = ssl.ctx_new(ssl.client_method());
  tls->context_ = context;
  if (context == nullptr) return unavailable("TLS: " + last_error());
  ssl.ctx_set_verify(context, SSL_VERIFY_PEER, nullptr);
  ssl.ctx_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
  const auto value = [&](const char* word) {
    const auto at = credentials.find(word);
    return at == credentials.end() ? std::string() : at->second;
  };
  const std::string authority = value("authority"), certificate = value("certificate"), key = value("private_key");
  const int trusted = authority.empty() ? ssl.ctx_set_default_verify_paths(context)
                                        : ssl.ctx_load_verify_file(context, authority.c_str());
  if (trusted != 1) return invalid_argument("TLS: authority " + authority + ": " + last_error());
  if (!certificate.empty() && ssl.ctx_use_certificate_chain_file(context, certificate.c_str()) != 1) {
    return invalid_argument("TLS: certificate " + certificate + ": " + last_error());
  }
  if (!key.empty() && ssl.ctx_use_private_key_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return invalid_argument("TLS: private key " + key + ": " + last_error());
  }
  SSL* connection = ssl.ssl_new(context);
  tls->ssl_ = connection;
  if (connection == nullptr) return unavailable("TLS: " + last_error());
  // A name and an address are different fields of a certificate.
  const bool is_address = ssl.param_set1_ip(ssl.get0_param(connection), host.c_str()) == 1;
  if (!is_address) {
    ssl.err_clear();
    ssl.ctrl(connection, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(host.c_str()));
    if (ssl.set1_host(connection, host.c_str()) != 1)
      return invalid_argument("TLS: host " + host + ": " + last_error());
  }
  if (ssl.set_fd(connection, socket) != 1) return unavailable("TLS: " + last_error());
  return tls;
}

Tls::~Tls() {
  const WithoutSigpipe quiet;
  if (ssl_ != nullptr) library()->ssl_free(static_cast<SSL*>(ssl_));
  if (context_ != nullptr) library()->ctx_free(static_cast<SSL_CTX*>(context_));
}

Result<Tls::Outcome> Tls::outcome_of(int result, const char* what) {
  if (result == 1) return Outcome::done;
  switch (library()->get_error(static_cast<SSL*>(ssl_), result)) {
    case SSL_ERROR_WANT_READ:
      return Outcome::wants_read;
    case SSL_ERROR_WANT_WRITE:
      return Outcome::wants_write;
    case SSL_ERROR_ZERO_RETURN:
      return Outcome::closed;
    default:
      return unavailable(std::string("TLS: ") + what + ": " + last_error());
  }
}

Result<Tls::Outcome> Tls::handshake() {
  const WithoutSigpipe quiet;  // OpenSSL writes without MSG_NOSIGNAL, also alerts while it reads
  library()->err_clear();
  return outcome_of(library()->connect(static_cast<SSL*>(ssl_)), "handshake");
}

Result<Tls::Outcome> Tls::read(char* to, std::size_t size, std::size_t& count) {
  const WithoutSigpipe quiet;
  library()->err_clear();
  return outcome_of(library()->read_ex(static_cast<SSL*>(ssl_), to, size, &count), "read");
}

Result<Tls::Outcome> Tls::write(const char* from, std::size_t size, std::size_t& count) {
  const WithoutSigpipe quiet;
  library()->err_clear();
  return outcome_of(library()->write_ex(static_cast<SSL*>(ssl_), from, size, &count), "write");
}

namespace {

using std::chrono::milliseconds;

constexpr std::size_t receive_bytes = 64 << 10;
constexpr milliseconds longest_poll{10};  // how often `stop` is read

Status over(const RemoteLimits& limits, const Deadline& deadline, const char* what) {
  if (limits.stop != nullptr && *limits.stop) return cancelled("Redis: stopped");
  if (deadline.passed()) return timed_out(std::string("Redis: ") + what + " timed out");
  return {};
}

// Waits until the socket is ready for `events`.
Status wait_for(int socket, short events, const RemoteLimits& limits, const Deadline& deadline, const char* what) {
  while (true) {
    if (Status status = over(limits, deadline, what); !status.ok()) return status;
    pollfd polled{socket, events, 0};
    const auto left = std::chrono::duration_cast<milliseconds>(deadline.left()) + milliseconds(1);
    const int ready = poll(&polled, 1, static_cast<int>(std::min(left, longest_poll).count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return unavailable("Redis: " + std::generic_category().message(errno));
  }
}

Status failed(const char* what, int error) {
  return unavailable(std::string("Redis: ") + what + ": " + std::generic_category().message(error));
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// A request to the name service, whose answer may come after its deadline or never.
struct NameRequest {
  NameRequest() = default;
  ~NameRequest() {
    if (block.ar_result != nullptr) freeaddrinfo(block.ar_result);
  }
  NameRequest(const NameRequest&) = delete;
  NameRequest& operator=(const NameRequest&) = delete;

  std::string host, port;
  addrinfo hints{};
  gaicb block{};
  gaicb* blocks[1] = {&block};
};

// Keeps a request whose answer the C library writes whenever it comes, until then.
void keep(std::unique_ptr<NameRequest> request) {
  static std::mutex mutex;
  static auto& late = *new std::vector<std::unique_ptr<NameRequest>>;  // never destroyed, not even at exit
  const std::lock_guard lock(mutex);
  std::erase_if(late, [](const auto& one) { return gai_error(&one->block) != EAI_INPROGRESS; });
  late.push_back(std::move(request));
}

// getaddrinfo() with a deadline.
Result<Addresses> resolve(const ServerAddress& address, const RemoteLimits& limits, const Deadline& deadline) {
  auto request = std::make_unique<NameRequest>();
  request->host = address.host;
  request->port = address.port;
  request->hints.ai_socktype = SOCK_STREAM;
  request->hints.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST;  // without a name service
  addrinfo* numeric = nullptr;
  if (getaddrinfo(address.host.c_str(), address.port.c_str(), &request->hints, &numeric) == 0) {
    return Addresses(numeric, freeaddrinfo);
  }
  request->hints.ai_flags = AI_NUMERICSERV;
  request->block.ar_name = request->host.c_str();
  request->block.ar_service = request->port.c_str();
  request->block.ar_request = &request->hints;
  int error = getaddrinfo_a(GAI_NOWAIT, request->blocks, 1, nullptr);
  while (error == 0 && (error = gai_error(&request->block)) == EAI_INPROGRESS) {
    if (Status status = over(limits, deadline, "the name service"); !status.ok()) {
      if (gai_cancel(&request->block) == EAI_NOTCANCELED) keep(std::move(request));
      return status;
    }
    const timespec pause{0, std::chrono::nanoseconds(longest_poll).count()};
    static_cast<void>(gai_suspend(request->blocks, 1, &pause));
    error = 0;
  }
  if (error != 0) return unavailable("Redis: host " + address.host + ": " + gai_strerror(error));
  return Addresses(std::exchange(request->block.ar_result, nullptr), freeaddrinfo);
}

std::string_view word_of(const std::map<std::string, std::string>& credentials, const char* word) {
  const auto at = credentials.find(word);
  return at == credentials.end() ? std::string_view() : std::string_view(at->second);
}

}  // namespace

Result<ServerAddress> address_of(const std::string& url) {
  ServerAddress address;
  const std::size_t end = url.find("://");
  address.tls = url.starts_with("rediss://");
  std::string rest = end == std::string::npos ? std::string() : url.substr(end + 3);
  if (const std::size_t slash = rest.find('/'); slash != std::string::npos) {
    if (slash + 1 != rest.size()) address.database = rest.substr(slash + 1);
    rest.resize(slash);
  }
  std::size_t port = std::string::npos;
  if (rest.starts_with('[')) {
    const std::size_t close = rest.find(']');
    const std::string_view behind = close == std::string::npos ? "" : std::string_view(rest).substr(close + 1);
    if (close != std::string::npos && (behind.empty() || behind[0] == ':')) address.host = rest.substr(1, close - 1);
    if (!behind.empty()) port = close + 2;
  } else {
    const std::size_t colon = rest.find(':');
    address.host = rest.substr(0, colon);
    if (colon != std::string::npos) port = colon + 1;
  }
  if (port != std::string::npos) address.port = rest.substr(port);
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.size() <= 5 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  if (address.host.empty() || !is_number(address.port) || !is_number(address.database)) {
    return invalid_argument("remote " + url +
                            ": expected redis://HOST:PORT/DATABASE, such as redis://cache.example:6379/0");
  }
  return address;
}

Connection::Connection() = default;
Connection::~Connection() = default;

Result<std::unique_ptr<Connection>> Connection::open(const ServerAddress& address,
                                                     const std::map<std::string, std::string>& credentials,
                                                     const RemoteLimits& limits) {
  std::unique_ptr<Connection> connection(new Connection);
  if (Status status = connection->connect(address, limits); !status.ok()) return status;
  if (address.tls) {
    auto tls = Tls::create(connection->socket_.get(), address.host, credentials);
    if (!tls) return std::move(tls).error();
    connection->tls_ = std::move(*tls);
    while (true) {
      const auto outcome = connection->tls_->handshake();
      if (!outcome) return outcome.error();
      if (*outcome == Tls::Outcome::done) break;
      if (*outcome == Tls::Outcome::closed) return unavailable("TLS: handshake: the server closed the connection");
      const short events = *outcome == Tls::Outcome::wants_read ? POLLIN : POLLOUT;
      const Status status = wait_for(connection->socket_.get(), events, limits, limits.deadline, "the TLS handshake");
      if (!status.ok()) return status;
    }
  }
  std::vector<Command> commands;
  const std::string_view user = word_of(credentials, "user"), password = word_of(credentials, "password");
  if (!password.empty()) {
    commands.push_back(user.empty() ? Command{"AUTH", password} : Command{"AUTH", user, password});
  }
  if (address.database != "0") commands.push_back({"SELECT", address.database});
  if (commands.empty()) return connection;
  const Status status = connection->run(commands, limits, [](std::size_t, const Reply& reply) {
    return reply.kind == ReplyKind::error ? unavailable("Redis: AUTH or SELECT failed: " + reply.text) : ok_status();
  });
  if (!status.ok()) return status;
  return connection;
}

Status Connection::connect(const ServerAddress& address, const RemoteLimits& limits) {
  const Deadline deadline{std::min(limits.deadline.at, Deadline::after(limits.connect).at)};
  const auto found = resolve(address, limits, deadline);
  if (!found) return found.error();
  Status failure = unavailable("Redis: host " + address.host + ": no address found");
  for (const addrinfo* one = found->get(); one != nullptr; one = one->ai_next) {
    UniqueFd socket(::socket(one->ai_family, one->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, one->ai_protocol));
    if (!socket) {
      failure = failed("socket", errno);
      continue;
    }
    if (::connect(socket.get(), one->ai_addr, one->ai_addrlen) != 0 && errno != EINPROGRESS) {
      failure = failed("connect", errno);
      continue;
    }
    if (Status status = wait_for(socket.get(), POLLOUT, limits, deadline, "the connection"); !status.ok())
      return status;
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
      failure = failed("connect", error);
      continue;
    }
    const int on = 1;
    static_cast<void>(setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    socket_ = std::move(socket);
    return {};
  }
  return failure;
}

Status Connection::send(std::string_view bytes, const RemoteLimits& limits) {
  while (!bytes.empty()) {
    std::size_t sent = 0;
    short events = POLLOUT;
    if (tls_ != nullptr) {
      const auto outcome = tls_->write(bytes.data(), bytes.size(), sent);
      if (!outcome) return outcome.error();
      if (*outcome == Tls::Outcome::closed) return unavailable("Redis: the server closed the connection");
      if (*outcome == Tls::Outcome::wants_read) events = POLLIN;
    } else {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN && errno != EINTR) return failed("send", errno);
      if (count > 0) sent = static_cast<std::size_t>(count);
    }
    bytes.remove_prefix(sent);
    if (sent != 0) continue;
    if (Status status = wait_for(socket_.get(), events, limits, limits.deadline, "the request"); !status.ok()) {
      return status;
    }
  }
  return {};
}

// Adds at least one byte to the parser.
Status Connection::receive(const RemoteLimits& limits) {
  if (received_ == nullptr) received_ = std::make_unique_for_overwrite<char[]>(receive_bytes);
  while (true) {
    if (Status status = over(limits, limits.deadline, "the reply"); !status.ok()) return status;
    std::size_t count = 0;
    short events = POLLIN;
    if (tls_ != nullptr) {
      const auto outcome = tls_->read(received_.get(), receive_bytes, count);
      if (!outcome) return outcome.error();
      if (*outcome == Tls::Outcome::closed) return unavailable("Redis: the server closed the connection");
      if (*outcome == Tls::Outcome::wants_write) events = POLLOUT;
    } else {
      const ssize_t got = recv(socket_.get(), received_.get(), receive_bytes, 0);
      if (got == 0) return unavailable("Redis: the server closed the connection");
      if (got < 0 && errno != EAGAIN && errno != EINTR) return failed("receive", errno);
      if (got > 0) count = static_cast<std::size_t>(got);
    }
    if (count != 0) {
      parser_.add({received_.get(), count});
      return {};
    }
    if (Status status = wait_for(socket_.get(), events, limits, limits.deadline, "the reply"); !status.ok()) {
      return status;
    }
  }
}

Status Connection::run(std::span<const Command> commands, const RemoteLimits& limits, const OnReply& on_reply) {
  std::string bytes;
  for (const Command& command : commands) append_command(bytes, command);
  if (Status status = send(bytes, limits); !status.ok()) return status;
  for (std::size_t replied = 0; replied < commands.size();) {
    auto reply = parser_.next();
    if (!reply) return unavailable("Redis: " + reply.error().message);
    const Status status = *reply ? on_reply(replied++, std::move(**reply)) : receive(limits);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace kiln::remote_redis
