// Whoever alters an entry and makes right what is inside it, the driver's checksum and ours, does not reach the driver.
#include "base/digest.hpp"
#include "core/cache/workplace.hpp"

#include <catch2/catch.hpp>

#include <random>

namespace kiln::test {
namespace {

TEST_CASE("cache::altered_entries: 10,000 of them, both checksums repaired: none reaches the driver") {
  Workplace place;
  place.config.compression = "none";
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  const auto file = place.files(".bin").at(0);
  const auto good = contents(file);
  const auto key = key_for("one", device);
  const auto payload = device.serialize(SyntheticProgram("one", 1, device.live))->bytes;
  const std::size_t payload_at = good.size() - entry_trailer_bytes - payload.size();
  REQUIRE(std::ranges::equal(std::span(good).subspan(payload_at, payload.size()), payload));

  CacheCounters counters;
  DiskTier tier({}, place.config, counters);
  std::mt19937 random(20240607);
  const auto below = [&](std::size_t most) { return static_cast<std::size_t>(random() % most); };
  std::uint64_t handed_over = 0;
  constexpr std::uint64_t altered = 10'000;
  for (std::uint64_t i = 0; i < altered; ++i) {
    auto bytes = good;
    const auto in_payload = std::span(bytes).subspan(payload_at, payload.size());
    // One to four bits of what the driver would interpret.
    for (std::size_t flips = 1 + below(4); flips != 0; --flips) {
      const std::size_t at = 8 + below(in_payload.size() - 8);
      in_payload[at] ^= static_cast<std::byte>(1u << below(8));
    }
    if (std::ranges::equal(bytes, good)) in_payload.back() ^= std::byte{1};
    SyntheticDevice::repair_sum(in_payload);
    const Checksum sum = xxh3_128(std::span(bytes).first(bytes.size() - entry_trailer_bytes));
    std::memcpy(bytes.data() + bytes.size() - entry_trailer_bytes, sum.data(), sum.size());
    overwrite(file, bytes);
    if (tier.find(key, device).stored) ++handed_over;
  }
  CHECK(handed_over == 0);
  CHECK(counters.rejected().tampered == altered);
  overwrite(file, good);
  CHECK(tier.find(key, device).stored);  // it was the alteration, and nothing else
}

TEST_CASE("cache::altered_entries: through the whole cache: built anew, and the driver is not asked") {
  Workplace place;
  place.config.compression = "none";
  place.config.max_programs = 0;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  const auto file = place.files(".bin").at(0);
  const auto good = contents(file);
  const auto cache = place.open();
  constexpr int altered = 100;
  for (int i = 0; i < altered; ++i) {
    auto bytes = good;
    bytes[bytes.size() - entry_trailer_bytes - 1 - static_cast<std::size_t>(i % 3)] ^= static_cast<std::byte>(1 + i);
    const std::size_t payload_bytes = 4 + 4 + 4 + 3;  // tag, checksum, number, "one"
    SyntheticDevice::repair_sum(
        std::span(bytes).subspan(bytes.size() - entry_trailer_bytes - payload_bytes, payload_bytes));
    const Checksum sum = xxh3_128(std::span(bytes).first(bytes.size() - entry_trailer_bytes));
    std::memcpy(bytes.data() + bytes.size() - entry_trailer_bytes, sum.data(), sum.size());
    overwrite(file, bytes);
    const auto got = acquire(*cache, "one", device);
    REQUIRE(got);
    REQUIRE(got->tier == Tier::built);
    REQUIRE(text_of(*got) == "one");
  }
  CHECK(device.loads == 0);
  CHECK(device.builds == 1 + altered);
  CHECK(cache->stats().rejected.tampered == altered);
}

}  // namespace
}  // namespace kiln::test
