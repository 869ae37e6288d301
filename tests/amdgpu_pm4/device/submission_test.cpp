#include "amdgpu_pm4/device/submission.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/fake_kernels.hpp"
#include "device/fake_winsys.hpp"
#include "device/queue_fixture.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using Ends = std::vector<std::size_t>;

struct Fixture {
  std::shared_ptr<fake::Gpu> gpu = std::make_shared<fake::Gpu>();
  std::unique_ptr<Winsys> winsys = fake::make_winsys(gpu);
  Quarantine quarantine{nullptr, "device"};
  std::shared_ptr<const LoadedKernel> copy = fake::make_kernel(*winsys, "copy", {Access::read, Access::write});
  std::shared_ptr<const LoadedKernel> other = fake::make_kernel(*winsys, "other", {Access::read, Access::write});
  std::vector<std::shared_ptr<BufferObject>> buffers;

  Fixture() {
    for (int i = 0; i < 6; ++i) buffers.push_back(fake::make_buffer(*winsys));
  }
  BoundPass pass(std::size_t from, std::size_t to) const { return {copy, {buffers[from], buffers[to]}, {1, 1, 1}}; }
  Ends ends(const std::vector<BoundPass>& passes) const {
    Ends found;
    for (const PassGroup& group : groups_of(in_order(passes), quarantine)) found.push_back(group.end);
    return found;
  }
};

}  // namespace

TEST_CASE("pass order: passes that share nothing, or only what they read, overlap") {
  const Fixture f;
  CHECK(f.ends({}).empty());
  CHECK(f.ends({f.pass(0, 1)}) == Ends{1});
  CHECK(f.ends({f.pass(0, 1), f.pass(2, 3)}) == Ends{2});
  CHECK(f.ends({f.pass(0, 1), f.pass(0, 2), f.pass(0, 3)}) == Ends{3});
}

TEST_CASE("pass order: a pass waits for what it reads, writes over, or writes before it was read") {
  const Fixture f;
  CHECK(f.ends({f.pass(0, 1), f.pass(1, 2)}) == Ends{1, 2});  // read after write
  CHECK(f.ends({f.pass(0, 1), f.pass(2, 1)}) == Ends{1, 2});  // write after write
  CHECK(f.ends({f.pass(0, 1), f.pass(2, 0)}) == Ends{1, 2});  // write after read
  // Only against the passes that it could overlap.
  CHECK(f.ends({f.pass(0, 1), f.pass(1, 2), f.pass(0, 3), f.pass(3, 4)}) == Ends{1, 3, 4});
}

TEST_CASE("pass order: kernels with scratch memory do not share it") {
  Fixture f;
  f.copy = fake::make_kernel(*f.winsys, "spills", {Access::read, Access::write}, 64);
  CHECK(f.ends({f.pass(0, 1), f.pass(2, 3)}) == Ends{1, 2});
}

TEST_CASE("pass order: a suspect runs alone") {
  Fixture f;
  f.quarantine.suspect(f.other->quarantine_key);
  BoundPass suspect = f.pass(4, 5);
  suspect.kernel = f.other;
  CHECK(f.ends({f.pass(0, 1), suspect, f.pass(2, 3)}) == Ends{1, 2, 3});
}

TEST_CASE("arguments: each pass finds its own where its kernel wants them") {
  const QueueFixture f;
  const std::vector<Access> bindings(17, Access::read);
  const auto kernel = fake::make_kernel(*f.winsys, "aligned", bindings);
  REQUIRE(kernel->kernel.kernarg_bytes == 136);
  std::const_pointer_cast<LoadedKernel>(kernel)->kernel.kernarg_alignment = 128;
  const BoundPass pass{kernel, {bindings.size(), f.buffers[2]}, {1, 1, 1}};
  CHECK(f.wait(f.submit({f.pass(f.good), pass, pass})).ok());
  REQUIRE(f.gpu->arguments.size() == 3);
  const std::uint64_t ring = f.gpu->arguments[0];
  CHECK(ring % 128 == 0);
  CHECK(f.gpu->arguments == std::vector<std::uint64_t>{ring, ring + 128, ring + 384});
}

TEST_CASE("arguments: a kernel without any stands between kernels that have some") {
  const QueueFixture f;
  const auto bare = fake::make_kernel(*f.winsys, "bare", {});
  REQUIRE(bare->kernel.kernarg_bytes == 0);
  REQUIRE(f.good->kernel.kernarg_bytes == 16);
  CHECK(f.wait(f.submit({f.pass(f.good), {bare, {}, {1, 1, 1}}, f.pass(f.good)})).ok());
  REQUIRE(f.gpu->arguments.size() == 3);
  const std::uint64_t ring = f.gpu->arguments[0];
  CHECK(ring != 0);
  CHECK(f.gpu->arguments == std::vector<std::uint64_t>{ring, 0, ring + 64});
}

TEST_CASE("pass order: groups are bounded") {
  const Fixture f;
  const std::vector<BoundPass> many(130, BoundPass{f.copy, {f.buffers[0], f.buffers[1]}, {1, 1, 1}});
  CHECK(f.ends(many).size() == 130);  // each writes what the one before wrote
  const auto reader = fake::make_kernel(*f.winsys, "reader", {Access::read});
  const std::vector<BoundPass> readers(130, BoundPass{reader, {f.buffers[0]}, {1, 1, 1}});
  CHECK(f.ends(readers) == Ends{64, 128, 130});
}

TEST_CASE("device clock: counts become nanoseconds by the device's frequency") {
  const auto gpu = std::make_shared<fake::Gpu>();
  const auto ns_between = [&gpu](std::uint64_t khz, std::uint64_t begin, std::uint64_t end) {
    NodeFacts facts = fake::navi31_facts();
    facts.counter_khz = static_cast<decltype(facts.counter_khz)>(khz);
    const auto winsys = fake::make_winsys(gpu, facts);
    return DeviceClock(*winsys).ns_between(begin, end);
  };
  CHECK(ns_between(100'000, 1000, 1001) == 10);
  CHECK(ns_between(100'000, 1000, 101'000) == 1'000'000);
  CHECK(ns_between(1'000'000, 5, 12) == 7);
  CHECK(ns_between(1, 5, 7) == 2'000'000);
  CHECK(ns_between(100'000, 1000, 1000) == 0);
  CHECK(ns_between(100'000, 1000, 999) == 0);
  CHECK(ns_between(0, 1000, 2000) == 0);
}

TEST_CASE("device clock: a count before or after the comparison has its place on the host's clock") {
  const auto gpu = std::make_shared<fake::Gpu>();
  gpu->clock = 1'000'000;
  const auto winsys = fake::make_winsys(gpu);  // 100 MHz
  DeviceClock clock(*winsys);
  const std::uint64_t before = now_ns();
  const std::uint64_t now = clock.on_host_clock(1'000'000);
  CHECK(now >= before);
  CHECK(now <= now_ns());
  const std::uint64_t later = clock.on_host_clock(1'000'100), earlier = clock.on_host_clock(999'900);
  gpu->clock = 1;
  const std::uint64_t again = clock.on_host_clock(1'000'000);
  if (now_ns() < before + 500'000'000) {  // within a second the two are not compared again
    CHECK(later == now + 1'000);
    CHECK(earlier == now - 1'000);
    CHECK(again == now);
  }

  NodeFacts unknown = fake::navi31_facts();
  unknown.counter_khz = 0;
  const auto without = fake::make_winsys(gpu, unknown);
  CHECK(DeviceClock(*without).on_host_clock(1'000'000) == 0);
}

TEST_CASE("results: each is taken once, and what was never submitted is named") {
  Results results;
  const auto refusal = [&results](std::uint64_t value, std::uint64_t first_pending) {
    const auto taken = results.take(value, first_pending);
    REQUIRE(taken.has_value());
    REQUIRE_FALSE(taken->has_value());
    CHECK(taken->error().code == StatusCode::not_found);
    return taken->error().message;
  };
  CHECK(results.next() == 1);
  CHECK(refusal(1, 1) == "submission 1 does not exist, the last submission is 0");
  for (int i = 0; i < 3; ++i) results.begin();
  CHECK(results.next() == 4);
  results.finish(1, FenceResult{10, 20});
  CHECK_FALSE(results.take(2, 2).has_value());
  CHECK_FALSE(results.take(3, 2).has_value());
  const auto first = results.take(1, 2);
  REQUIRE((first && first->has_value()));
  CHECK((*first)->device_ns == 10);
  CHECK((*first)->begun_ns == 20);
  CHECK(refusal(1, 2) == "submission 1: the result was already taken");
  CHECK(refusal(0, 2) == "submission 0 does not exist, the last submission is 3");
  CHECK(refusal(4, 2) == "submission 4 does not exist, the last submission is 3");
}

TEST_CASE("stamps: the passes that did not end, and those that took longest") {
  using Passes = InFlight::Passes;
  // Where stretches of passes end, and the stamps: at the start, then after each stretch.
  const auto check = [](const Ends& ends, const std::vector<std::uint64_t>& stamps, Passes unfinished, Passes longest) {
    CAPTURE(ends, stamps);
    std::vector<std::uint64_t> memory(stamps.size());
    auto passes = std::make_shared<PassTable>();
    passes->kernel_of.resize(ends.empty() ? 7 : ends.back());
    passes->stretch_ends = ends;
    InFlight work;
    work.passes = passes;
    if (!memory.empty()) work.stamps = Stamps(std::as_writable_bytes(std::span(memory)), 0x1000);
    std::copy(stamps.begin(), stamps.end(), memory.begin());
    CHECK(work.unfinished().begin == unfinished.begin);
    CHECK(work.unfinished().end == unfinished.end);
    CHECK(work.longest().begin == longest.begin);
    CHECK(work.longest().end == longest.end);
  };
  check({4, 8, 10}, {100, 150, 170, 190}, {0, 0}, {0, 4});
  check({4, 8, 10}, {100, 110, 160, 170}, {0, 0}, {4, 8});
  check({4, 8, 10}, {100, 110, 120, 200}, {0, 0}, {8, 10});
  check({4, 8, 10}, {100, 150, 200, 250}, {0, 0}, {0, 4});  // of equal ones the first
  check({4, 8, 10}, {100, 110, 160, 210}, {0, 0}, {4, 8});
  check({1, 2}, {100, 130, 140}, {0, 0}, {0, 1});
  // All, where that is not known.
  check({4, 8, 10}, {100, 150, 170, 0}, {8, 10}, {0, 10});
  check({4, 8, 10}, {100, 150, 0, 0}, {4, 8}, {0, 10});
  check({4, 8, 10}, {100, 0, 0, 0}, {0, 4}, {0, 10});
  check({4, 8, 10}, {0, 0, 0, 0}, {0, 0}, {0, 10});  // it never began
  check({}, {100}, {0, 0}, {0, 7});
  check({}, {}, {0, 0}, {0, 7});
  check({3}, {100, 0}, {0, 3}, {0, 3});
  check({3}, {100, 200}, {0, 0}, {0, 3});
}

}  // namespace kiln::amdgpu_pm4
