// Which dispatches are remembered and kept, at the limits of both.
#include <catch2/catch.hpp>

#include <vector>

#include "device/queue_fixture.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

DispatchKey key_with(std::uint64_t word) {
  DispatchKey key;
  key.add(word);
  return key;
}

}  // namespace

TEST_CASE("kept: a dispatch is remembered while 63 others come, and not while 64 do") {
  for (const std::uint64_t others : {0u, 1u, 63u, 64u, 65u}) {
    const QueueFixture f;
    bool again = false;
    CHECK(f.wait(f.submit({f.pass(f.good)}, 1, again)).ok());
    for (std::uint64_t word = 2; word < 2 + others; ++word) CHECK(f.wait(f.submit({f.pass(f.good)}, word, again)).ok());
    CHECK(f.wait(f.submit({f.pass(f.good)}, 1, again)).ok());
    CHECK_FALSE(again);
    CHECK(f.wait(f.submit({f.pass(f.good)}, 1, again)).ok());
    INFO(others << " others");
    CHECK(again == (others <= 63));
  }
}

TEST_CASE("kept: the one that was unused for 128 dispatches makes room for a new one") {
  // Sixteen are kept; the first was used as the 2nd dispatch, and the new one would be kept as the 130th.
  for (const std::uint64_t between : {95u, 96u}) {
    const QueueFixture f;
    bool again = false;
    const auto submit = [&](std::uint64_t word) { CHECK(f.wait(f.submit({f.pass(f.good)}, word, again)).ok()); };
    for (std::uint64_t word = 1; word <= 16; ++word) {
      submit(word);
      submit(word);
    }
    for (std::uint64_t word = 100; word < 100 + between; ++word) submit(word);
    submit(50);
    submit(50);
    submit(50);
    INFO(between << " between");
    CHECK(again == (between == 96));
    submit(2);  // is kept still
    CHECK(again);
    submit(1);
    CHECK_FALSE(again);
  }
}

TEST_CASE("kept: up to 16384 passes") {
  const QueueFixture f;
  const auto reader = fake::make_kernel(*f.winsys, "reader", {Access::read});
  const auto third_is_kept = [&](std::size_t passes, std::uint64_t word) {
    BoundDispatch dispatch;
    dispatch.add({reader, {f.buffers[0]}, {1, 1, 1}});
    dispatch.order.assign(passes, 0);
    for (int i = 0; i < 2; ++i) {
      const auto value = f.queue->submit(dispatch, key_with(word));
      REQUIRE(value);
      REQUIRE(f.wait(*value).ok());
    }
    const auto again = f.queue->submit_again(key_with(word));
    REQUIRE(again);
    if (*again) CHECK(f.wait(**again).ok());
    return again->has_value();
  };
  CHECK(third_is_kept(16384, 1));
  CHECK_FALSE(third_is_kept(16385, 2));
}

TEST_CASE("kept: a dispatch with another key or without one is written anew") {
  const QueueFixture f;
  bool again = false;
  for (int i = 0; i < 3; ++i) CHECK(f.wait(f.submit({f.pass(f.good)}, 1, again)).ok());
  CHECK(again);
  DispatchKey longer = key_with(1);
  longer.add(1);
  DispatchKey same_hash = key_with(2);
  same_hash.hash = key_with(1).hash;
  for (const DispatchKey& other : {key_with(2), longer, same_hash, DispatchKey{}}) {
    const auto submitted = f.queue->submit_again(other);
    REQUIRE(submitted);
    CHECK_FALSE(submitted->has_value());
  }
}

TEST_CASE("kept: a fence is exported of what was submitted, and of nothing else") {
  const QueueFixture f;
  CHECK(f.queue->export_fence(0).error().text() ==
        "not_found: amdgpu:0: submission 0 does not exist, the last submission is 0");
  CHECK(f.queue->export_fence(1).error().text() ==
        "not_found: amdgpu:0: submission 1 does not exist, the last submission is 0");
  CHECK(f.wait(f.submit({f.pass(f.good)})).ok());
  CHECK(f.queue->export_fence(1).error().text() == "unsupported: amdgpu:0: fake: no descriptors");
  CHECK(f.queue->export_fence(2).error().text() ==
        "not_found: amdgpu:0: submission 2 does not exist, the last submission is 1");
}

}  // namespace kiln::amdgpu_pm4
