#include "sigv4.hpp"

#include <kiln/digest.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

namespace kiln::remote_http {
namespace {

constexpr std::size_t block_bytes = 64;

// HMAC-SHA256 (RFC 2104).
std::string hmac(std::string_view key, std::string_view message) {
  std::array<char, block_bytes> block{};
  const Digest long_key = sha256(key);
  if (key.size() > block_bytes) {
    std::memcpy(block.data(), long_key.bytes.data(), long_key.bytes.size());
  } else if (!key.empty()) {
    std::memcpy(block.data(), key.data(), key.size());
  }
  const auto padded = [&](char pad) {
    std::string text(block.begin(), block.end());
    for (char& each : text) each = static_cast<char>(each ^ pad);
    return text;
  };
  const auto raw = [](const Digest& digest) {
    return std::string(reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size());
  };
  return raw(sha256(padded(0x5c) + raw(sha256(padded(0x36) + std::string(message)))));
}

std::string hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += digits[static_cast<unsigned char>(byte) >> 4];
    text += digits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string value_of(const RemoteContext& context, const char* word, const char* variable) {
  if (const auto at = context.credentials.find(word); at != context.credentials.end()) return at->second;
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

}  // namespace

Result<S3Account> s3_account(const RemoteContext& context) {
  constexpr std::string_view scheme = "s3://";
  const std::string_view rest = std::string_view(context.url).substr(scheme.size());
  const std::string bucket(rest.substr(0, rest.find('/')));
  const std::string prefix(rest.substr(std::min(bucket.size(), rest.size())));
  S3Account account;
  account.access_key = value_of(context, "access_key", "AWS_ACCESS_KEY_ID");
  account.secret_key = value_of(context, "secret_key", "AWS_SECRET_ACCESS_KEY");
  account.session_token = value_of(context, "session_token", "AWS_SESSION_TOKEN");
  account.region = value_of(context, "region", "AWS_REGION");
  if (account.region.empty()) account.region = "us-east-1";
  if (account.access_key.empty() || account.secret_key.empty()) {
    return invalid_argument("remote " + context.url +
                            ": no access key (expected access_key and secret_key in the credentials file, or "
                            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)");
  }
  const auto endpoint = context.credentials.find("endpoint");
  account.base = endpoint != context.credentials.end()
                     ? endpoint->second + "/" + bucket + prefix
                     : "https://" + bucket + ".s3." + account.region + ".amazonaws.com" + prefix;
  return account;
}

std::string authorization_of(const SignedRequest& request, const S3Account& account, const std::string& service,
                             const std::string& time) {
  auto headers = request.headers;
  std::ranges::sort(headers);
  std::string canonical = request.method + "\n" + request.path + "\n" + request.query + "\n";
  std::string names;
  for (const auto& [name, value] : headers) {
    canonical += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  canonical += "\n" + names + "\n" + request.payload_sha256;
  const std::string day = time.substr(0, 8);
  const std::string scope = day + "/" + account.region + "/" + service + "/aws4_request";
  const std::string to_sign = "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + sha256(canonical).hex();
  const std::string key =
      hmac(hmac(hmac(hmac("AWS4" + account.secret_key, day), account.region), service), "aws4_request");
  return "AWS4-HMAC-SHA256 Credential=" + account.access_key + "/" + scope + ",SignedHeaders=" + names +
         ",Signature=" + hex(hmac(key, to_sign));
}

std::vector<std::string> signed_headers(const S3Account& account, const S3Request& request, std::time_t now) {
  std::tm utc{};
  char time[32] = "";
  if (gmtime_r(&now, &utc) != nullptr) std::strftime(time, sizeof time, "%Y%m%dT%H%M%SZ", &utc);
  const std::size_t host_at = request.url.find("://") + 3;
  const std::size_t path_at = std::min(request.url.find('/', host_at), request.url.size());
  // As libcurl sends it: without the scheme's own port.
  std::string host = request.url.substr(host_at, path_at - host_at);
  const std::string_view own_port = request.url.starts_with("https://") ? ":443" : ":80";
  if (host.ends_with(own_port)) host.resize(host.size() - own_port.size());
  SignedRequest to_sign;
  to_sign.method = request.method;
  to_sign.path = path_at == request.url.size() ? "/" : request.url.substr(path_at);
  to_sign.payload_sha256 = request.payload_sha256;
  to_sign.headers = {{"host", std::move(host)}, {"x-amz-content-sha256", request.payload_sha256}, {"x-amz-date", time}};
  if (!account.session_token.empty()) to_sign.headers.emplace_back("x-amz-security-token", account.session_token);
  std::vector<std::string> lines{"Authorization: " + authorization_of(to_sign, account, "s3", time)};
  for (const auto& [name, value] : to_sign.headers) {
    if (name != "host") lines.push_back(name + ": " + value);  // libcurl sends the host
  }
  return lines;
}

}  // namespace kiln::remote_http
