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

TEST_CASE("pass order: groups are bounded") {
  const Fixture f;
  const std::vector<BoundPass> many(130, BoundPass{f.copy, {f.buffers[0], f.buffers[1]}, {1, 1, 1}});
  CHECK(f.ends(many).size() == 130);  // each writes what the one before wrote
  const auto reader = fake::make_kernel(*f.winsys, "reader", {Access::read});
  const std::vector<BoundPass> readers(130, BoundPass{reader, {f.buffers[0]}, {1, 1, 1}});
  CHECK(f.ends(readers) == Ends{64, 128, 130});
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
