// What processes keep of a remote's answers: how long it is left alone, and the bytes of that in a file.
#include "core/cache/shared/sharing.hpp"

#include <catch2/catch.hpp>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("remote state: the pause is 10 s and doubles with each failure, at most 60 s") {
  const auto now_ms = [] { return std::chrono::system_clock::now().time_since_epoch() / 1ms; };
  RemoteBreaker breaker({}, true, url);  // without a folder: nothing else changes its state
  CHECK(breaker.allows_jobs());
  std::uint64_t failures = 0;
  for (const std::int64_t pause_ms : {10'000, 20'000, 40'000, 60'000, 60'000}) {
    CAPTURE(pause_ms);
    const std::int64_t before = now_ms();
    breaker.probe_failed();
    ++failures;
    const std::int64_t after = now_ms();
    CHECK(breaker.state().closed_until_ms >= before + pause_ms);
    CHECK(breaker.state().closed_until_ms <= after + pause_ms);
    CHECK(breaker.state().failures == failures);
    CHECK(breaker.has_failed());
    CHECK_FALSE(breaker.allows_jobs());
  }
  const std::int64_t until = breaker.state().closed_until_ms;
  breaker.failed();  // it was sent before the pause
  CHECK(breaker.state().failures == failures);
  CHECK(breaker.state().closed_until_ms == until);
  breaker.succeeded();
  CHECK(breaker.state().failures == 0);
  CHECK(breaker.state().closed_until_ms == 0);
  CHECK(breaker.allows_jobs());
  breaker.failed();  // a row begins anew
  CHECK(breaker.state().failures == 1);
  CHECK(breaker.state().closed_until_ms <= now_ms() + 10'000);
}

TEST_CASE("remote state: a pause that a server demands ends after ten minutes at most") {
  const auto now_ms = [] { return std::chrono::system_clock::now().time_since_epoch() / 1ms; };
  for (const std::chrono::seconds demanded : {std::chrono::seconds(3600), std::chrono::seconds::max()}) {
    RemoteBreaker breaker({}, true, url);
    breaker.failed(demanded);
    CHECK(breaker.state().closed_until_ms > now_ms() + 590'000);
    CHECK(breaker.state().closed_until_ms <= now_ms() + 600'000);
  }
}

TEST_CASE("remote state: it is read as it was written, and anything else means nothing is known") {
  RemoteState state{1234, 5, 678, 9012, 34};
  const std::string text = encode_remote_state(state);
  const RemoteState read = decode_remote_state(text);
  CHECK(read.closed_until_ms == 1234);
  CHECK(read.failures == 5);
  CHECK(read.round_trip_us == 678);
  CHECK(read.slow_us == 9012);
  CHECK(read.late_until_ms == 34);
  for (const std::string& bad :
       {std::string(), text.substr(1), text + " ", std::string(text.size(), 'x'), std::string(text.size(), '9')}) {
    CHECK(decode_remote_state(bad).failures == 0);
  }
}

}  // namespace
}  // namespace kiln::test
