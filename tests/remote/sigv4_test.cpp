// Accounts of S3 and the header lines of signed requests. The signatures are those of another implementation.
#include "sigv4.hpp"

#include <kiln/digest.hpp>

#include <catch2/catch.hpp>

#include <cstdlib>

namespace kiln::test {
namespace {

using namespace remote_http;
using Catch::Contains;
using Catch::EndsWith;

const std::string digest_of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// Sets variables of the environment, and takes all that S3 reads away again.
struct S3Environment {
  explicit S3Environment(const std::vector<std::pair<const char*, const char*>>& variables = {}) {
    clear();
    for (const auto& [name, value] : variables) setenv(name, value, 1);
  }
  ~S3Environment() { clear(); }
  S3Environment(const S3Environment&) = delete;
  S3Environment& operator=(const S3Environment&) = delete;

  static void clear() {
    for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"}) {
      unsetenv(name);
    }
  }
};

TEST_CASE("sigv4: the published examples") {
  const std::string empty = sha256("").hex();
  // Of the test suite of Signature Version 4.
  const S3Account suite{"", "us-east-1", "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
  CHECK(
      authorization_of({"GET", "/", "", {{"host", "example.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}}, empty},
                       suite, "service", "20150830T123600Z") ==
      "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request,"
      "SignedHeaders=host;x-amz-date,Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  // Of the documentation of S3.
  const S3Account s3{"", "us-east-1", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
  CHECK_THAT(authorization_of({"GET",
                               "/test.txt",
                               "",
                               {{"host", "examplebucket.s3.amazonaws.com"},
                                {"range", "bytes=0-9"},
                                {"x-amz-content-sha256", empty},
                                {"x-amz-date", "20130524T000000Z"}},
                               empty},
                              s3, "s3", "20130524T000000Z"),
             Contains("Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
  const std::string body = sha256("Welcome to Amazon S3.").hex();
  CHECK_THAT(authorization_of({"PUT",
                               "/test%24file.text",
                               "",
                               {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                {"host", "examplebucket.s3.amazonaws.com"},
                                {"x-amz-content-sha256", body},
                                {"x-amz-date", "20130524T000000Z"},
                                {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                               body},
                              s3, "s3", "20130524T000000Z"),
             Contains("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST_CASE("sigv4: the host is signed as it is sent, without the scheme's own port") {
  const S3Account account{"", "us-east-1", "AK", "SK", ""};
  const auto signed_for = [&](const std::string& url) {
    return signed_headers(account, {"GET", url + "/bucket/one", sha256("").hex()}, 1'700'000'000);
  };
  CHECK(signed_for("https://s3.example:443") == signed_for("https://s3.example"));
  CHECK(signed_for("http://s3.example:80") == signed_for("http://s3.example"));
  CHECK(signed_for("http://s3.example:443") != signed_for("http://s3.example"));
  CHECK(signed_for("https://s3.example:8443") != signed_for("https://s3.example"));
}

TEST_CASE("sigv4: a secret key of any length, also beyond a block of SHA-256") {
  struct Case {
    std::size_t length;
    std::string signature;
  };
  // "AWS4" stands before the secret key: 60 characters fill a block of 64 bytes.
  for (const Case& one : {Case{59, "56656d076368d9e27440b9b53467656a6d70ac6f5d1f427754d991b62a7ecc22"},
                          Case{60, "006d99e2868e918b26ce57ab1c17e8e3d57a35dbc9da63414e81b581a7722c58"},
                          Case{61, "3e80b60d7dc3329704ffa28f44e0bca9cfb8a884431a50362cad715c1dba2f3d"},
                          Case{100, "76b477772ea5327fca28446c926ea8c98c82904b89a3632122f18809e67d46f4"}}) {
    INFO(one.length);
    const S3Account account{"", "r", "AK", std::string(one.length, 'k'), ""};
    CHECK_THAT(
        authorization_of({"GET", "/", "", {{"x-amz-date", "20231114T221320Z"}, {"host", "h"}}, digest_of_nothing},
                         account, "s", "20231114T221320Z"),
        EndsWith("SignedHeaders=host;x-amz-date,Signature=" + one.signature));
  }
}

TEST_CASE("sigv4: the header lines of a request") {
  const S3Account plain{"", "eu-1", "AK", "SK", ""}, session{"", "eu-1", "AK", "SK", "TOKEN"};
  const std::string scope = "Authorization: AWS4-HMAC-SHA256 Credential=AK/20231114/eu-1/s3/aws4_request,";
  const std::string names = "SignedHeaders=host;x-amz-content-sha256;x-amz-date";
  CHECK(signed_headers(plain, {"PUT", "https://s3.example:443", digest_of_nothing}, 1'700'000'000) ==
        std::vector<std::string>{
            scope + names + ",Signature=d3400f4e4cd5305fdc8b1dfda2b2b9a8051bdbabf701954098910d1bfc18e450",
            "x-amz-content-sha256: " + digest_of_nothing, "x-amz-date: 20231114T221320Z"});
  CHECK(signed_headers(session, {"GET", "http://s3.example:80/b/one", digest_of_nothing}, 1'700'000'000) ==
        std::vector<std::string>{scope + names +
                                     ";x-amz-security-token,Signature="
                                     "1ad37262e9756d8575dae1292892b15d984b2e4e743cb72d380dcfac98df02eb",
                                 "x-amz-content-sha256: " + digest_of_nothing, "x-amz-date: 20231114T221320Z",
                                 "x-amz-security-token: TOKEN"});
}

TEST_CASE("sigv4: an account is of the credentials file") {
  // What the file says goes before the environment.
  const S3Environment environment({{"AWS_ACCESS_KEY_ID", "other"},
                                   {"AWS_SECRET_ACCESS_KEY", "other"},
                                   {"AWS_SESSION_TOKEN", "other"},
                                   {"AWS_REGION", "other"}});
  const auto account = s3_account({{},
                                   "s3://bucket/some/prefix",
                                   {{"access_key", "AK"},
                                    {"secret_key", "SK"},
                                    {"session_token", "T"},
                                    {"region", "eu-1"},
                                    {"endpoint", "https://s3.example:9000"}},
                                   "plain"});
  REQUIRE(account);
  CHECK(account->access_key == "AK");
  CHECK(account->secret_key == "SK");
  CHECK(account->session_token == "T");
  CHECK(account->region == "eu-1");
  CHECK(account->base == "https://s3.example:9000/bucket/some/prefix");
}

TEST_CASE("sigv4: an account is of the environment where the credentials file says nothing") {
  const S3Environment environment({{"AWS_ACCESS_KEY_ID", "AK"},
                                   {"AWS_SECRET_ACCESS_KEY", "SK"},
                                   {"AWS_SESSION_TOKEN", "T"},
                                   {"AWS_REGION", "eu-1"}});
  const auto account = s3_account({{}, "s3://bucket/some/prefix", {}, "plain"});
  REQUIRE(account);
  CHECK(account->access_key == "AK");
  CHECK(account->secret_key == "SK");
  CHECK(account->session_token == "T");
  CHECK(account->region == "eu-1");
  CHECK(account->base == "https://bucket.s3.eu-1.amazonaws.com/some/prefix");
}

TEST_CASE("sigv4: an account needs both keys, and nothing else") {
  const S3Environment environment;
  const auto account = s3_account({{}, "s3://bucket", {{"access_key", "AK"}, {"secret_key", "SK"}}, "plain"});
  REQUIRE(account);
  CHECK(account->session_token.empty());
  CHECK(account->region == "us-east-1");
  CHECK(account->base == "https://bucket.s3.us-east-1.amazonaws.com");
  for (const char* word : {"access_key", "secret_key"}) {
    const auto half = s3_account({{}, "s3://bucket", {{word, "one"}}, "plain"});
    REQUIRE(!half);
    CHECK(half.error().text() ==
          "invalid_argument: remote s3://bucket: no access key (expected access_key and secret_key in the credentials "
          "file, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)");
  }
}

}  // namespace
}  // namespace kiln::test
