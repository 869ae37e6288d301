#include "tls.hpp"

#include <kiln/without_sigpipe.hpp>

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <type_traits>

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
  if (!missing.empty()) return unavailable("TLS: libssl.so.3 has no " + missing + " (expected OpenSSL 3.0 or later)");
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

}  // namespace kiln::remote_redis
