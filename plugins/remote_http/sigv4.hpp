// SigV4: signs requests to S3 with AWS Signature Version 4, in headers.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/remote_store.hpp>
#include <kiln/status.hpp>

#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace kiln::remote_http {

struct S3Account {
  std::string base;  // URL of the bucket and the prefix
  std::string region, access_key, secret_key;
  std::string session_token;  // empty: none
};

// From the credentials file, else from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION. The
// secret itself is never sent. The word `endpoint` of the file names another server than Amazon's.
// invalid_argument: the error says what is missing.
Result<S3Account> s3_account(const RemoteContext& context);

struct SignedRequest {
  std::string method, path, query;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string payload_sha256;                                // hexadecimal
};

// Returns the value of the header Authorization. time: "20130524T000000Z", also the value of the header x-amz-date.
std::string authorization_of(const SignedRequest& request, const S3Account& account, const std::string& service,
                             const std::string& time);

struct S3Request {
  std::string method, url, payload_sha256;
};

// Returns the header lines to send with the request.
std::vector<std::string> signed_headers(const S3Account& account, const S3Request& request, std::time_t now);

}  // namespace kiln::remote_http
