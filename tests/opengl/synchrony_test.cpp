// When the device's own stamps are taken, and when the host's clock around the call stands for them.
#include "synchrony.hpp"

#include <catch2/catch.hpp>

namespace kiln::opengl {
namespace {

constexpr std::uint64_t ms = 1'000'000;

// Dispatches until the first that asks for no stamps, at most so many.
int stamped(Synchrony& synchrony, std::uint64_t device_ns, std::uint64_t host_ns, int most) {
  for (int count = 0; count < most; ++count) {
    if (!synchrony.wants_stamps()) return count;
    synchrony.compare(device_ns, host_ns);
  }
  return most;
}

}  // namespace

TEST_CASE("synchrony: a driver that has done the work when its call returns is stamped four times") {
  Synchrony synchrony;
  CHECK(stamped(synchrony, 5 * ms, 5 * ms + 90'000, 100) == 4);
}

TEST_CASE("synchrony: a device that runs beside the host is always stamped") {
  Synchrony synchrony;
  CHECK(stamped(synchrony, 5 * ms, ms / 20, 1000) == 1000);
  CHECK(stamped(synchrony, ms / 20, 5 * ms, 1000) == 1000);  // likewise one whose calls wait for something else
}

TEST_CASE("synchrony: kernels as short as the calls around them prove nothing") {
  Synchrony synchrony;
  CHECK(stamped(synchrony, 50'000, 60'000, 1000) == 1000);
  CHECK(stamped(synchrony, 0, 60'000, 1000) == 1000);  // a device without stamps
}

TEST_CASE("synchrony: what agreed is compared again, one dispatch in 64, and one that disagrees is asked anew") {
  Synchrony synchrony;
  REQUIRE(stamped(synchrony, 5 * ms, 5 * ms, 100) == 4);
  int left_out = 1;  // the one that ended the count
  while (!synchrony.wants_stamps()) ++left_out;
  CHECK(left_out == 63);
  synchrony.compare(5 * ms, 5 * ms);
  CHECK_FALSE(synchrony.wants_stamps());
  while (!synchrony.wants_stamps()) {
  }
  synchrony.compare(9 * ms, 5 * ms);
  CHECK(stamped(synchrony, 5 * ms, 5 * ms, 100) == 4);
}

}  // namespace kiln::opengl
