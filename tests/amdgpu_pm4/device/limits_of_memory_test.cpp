// Where memory of the rings begins and ends, which of it is listed, and which passes may overlap, at each limit.
#include <catch2/catch.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "amdgpu_pm4/device/submission.hpp"
#include "device/fake_kernels.hpp"
#include "device/fake_winsys.hpp"
#include "device/queue_fixture.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

// A buffer that tells what it is asked, and has no memory.
class ToldBuffer final : public BufferObject {
 public:
  ToldBuffer(std::uint32_t handle, std::uint64_t address, std::uint64_t bytes, GpuAccess access)
      : handle_(handle), address_(address), bytes_(bytes), access_(access) {}
  std::uint64_t address() const noexcept override { return address_; }
  std::uint64_t bytes() const noexcept override { return bytes_; }
  std::uint32_t handle() const noexcept override { return handle_; }
  GpuAccess access() const noexcept override { return access_; }
  std::span<std::byte> mapped() noexcept override { return {}; }
  Result<UniqueFd> export_fd() noexcept override { return unsupported("told: no descriptors"); }

 private:
  std::uint32_t handle_;
  std::uint64_t address_, bytes_;
  GpuAccess access_;
};

// The device's time of a submission of so many passes that depend on each other: 1000 ns a stretch.
std::uint64_t ns_of_chain(const QueueFixture& f, const std::shared_ptr<const LoadedKernel>& kernel, std::size_t count) {
  std::vector<BoundPass> passes;
  for (std::size_t i = 0; i < count; ++i) passes.push_back(f.pass(kernel, i % 2, 1 - i % 2));
  const auto result = f.queue->wait(f.submit(passes), Deadline::after(std::chrono::seconds(60)));
  REQUIRE(result);
  return result->device_ns;
}

}  // namespace

TEST_CASE("ring space: what is taken fits to the last byte, at the end and in front of the oldest") {
  RingSpace ring(256);
  CHECK(ring.take(192, 1, 1) == 0);
  CHECK_FALSE(ring.take(65, 1, 2));
  CHECK(ring.take(64, 1, 2) == 192);  // up to the end
  ring.passed(1);
  CHECK_FALSE(ring.take(193, 1, 3));
  CHECK(ring.take(191, 1, 3) == 0);
  CHECK_FALSE(ring.take(2, 1, 4));
  CHECK(ring.take(1, 1, 4) == 191);  // up to the oldest
  CHECK_FALSE(ring.take(1, 1, 5));
  ring.passed(3);
  CHECK_FALSE(ring.empty());
  CHECK(ring.take(1, 1, 5) == 192);
  ring.passed(5);
  CHECK(ring.empty());
  CHECK(ring.bytes() == 256);
}

TEST_CASE("ring space: an alignment that leads to the end or beyond it begins anew") {
  const auto second = [](std::uint64_t first, std::uint64_t bytes, std::uint64_t alignment) {
    RingSpace ring(256);
    REQUIRE(ring.take(64, 1, 1) == 0);
    REQUIRE(ring.take(first, 1, 2) == 64);
    ring.passed(1);  // 64 bytes in front are free
    const auto at = ring.take(bytes, alignment, 3);
    return at ? static_cast<int>(*at) : -1;
  };
  CHECK(second(64, 128, 128) == 128);
  CHECK(second(65, 64, 128) == 0);
  CHECK(second(65, 65, 128) == -1);
  CHECK(second(65, 64, 64) == 192);
  CHECK(second(129, 64, 64) == 0);
  CHECK(second(129, 63, 1) == 193);
  CHECK(second(192, 64, 1) == 0);
}

TEST_CASE("ring space: an alignment in front of the oldest may leave no room") {
  const auto third = [](std::uint64_t bytes, std::uint64_t alignment) {
    RingSpace ring(256);
    REQUIRE(ring.take(100, 1, 1) == 0);
    REQUIRE(ring.take(156, 1, 2) == 100);
    ring.passed(1);
    REQUIRE(ring.take(33, 1, 3) == 0);
    const auto at = ring.take(bytes, alignment, 4);
    return at ? static_cast<int>(*at) : -1;
  };
  CHECK(third(67, 1) == 33);
  CHECK(third(68, 1) == -1);
  CHECK(third(36, 64) == 64);
  CHECK(third(37, 64) == -1);
  CHECK(third(1, 128) == -1);
}

TEST_CASE("ring space: what is given back is that of the last point alone") {
  RingSpace ring(64);
  CHECK(ring.take(16, 1, 1) == 0);
  CHECK(ring.take(16, 1, 2) == 16);
  CHECK(ring.take(16, 1, 2) == 32);
  ring.give_back(3);
  CHECK(ring.take(16, 1, 3) == 48);
  ring.give_back(2);  // not the last
  CHECK_FALSE(ring.take(1, 1, 4));
  ring.give_back(3);
  ring.give_back(2);
  CHECK(ring.take(48, 1, 4) == 16);
}

TEST_CASE("ring buffer: up to half of it lies in the ring, more has a buffer of its own") {
  const auto gpu = std::make_shared<fake::Gpu>();
  const auto winsys = fake::make_winsys(gpu);
  auto made = RingBuffer::create(*winsys, BufferUse::arguments, 8192);
  REQUIRE(made);
  RingBuffer& ring = **made;
  std::vector<std::shared_ptr<BufferObject>> own;
  const auto half = ring.take(4096, 256, 1, own);
  REQUIRE(half);
  CHECK(own.empty());
  CHECK(half->memory.size() == 4096);
  CHECK(half->address == ring.object().address());
  const auto more = ring.take(4097, 256, 1, own);
  REQUIRE(more);
  REQUIRE(own.size() == 1);
  CHECK(more->memory.size() == 4097);
  CHECK(more->address == own[0]->address());
  CHECK(own[0]->bytes() == 8192);
  CHECK(own[0]->access() == GpuAccess::read);
  const auto second = ring.take(4096, 256, 2, own);
  REQUIRE(second);
  CHECK(second->address == ring.object().address() + 4096);
  CHECK(second->memory.data() == half->memory.data() + 4096);
  const auto none = ring.take(1, 1, 3, own);
  REQUIRE(none);
  CHECK(none->memory.empty());
  CHECK(own.size() == 1);
  gpu->allocation_error = unavailable("no memory");
  CHECK(ring.take_own(1, own).error().message == "no memory");
  CHECK(RingBuffer::create(*winsys, BufferUse::commands, 4096).error().message == "no memory");
}

TEST_CASE("buffer list: each buffer once, in order, with what the GPU may do") {
  BufferList list;
  list.add(ToldBuffer(9, 0x3000, 0x1000, GpuAccess::read));
  list.add(ToldBuffer(4, 0x9000, 0x2000, GpuAccess::read_execute));
  list.add(ToldBuffer(9, 0x3000, 0x1000, GpuAccess::read));
  list.add(ToldBuffer(7, 0x1000, 0x1000, GpuAccess::read_write));
  list.add(ToldBuffer(7, 0x2000, 0x1000, GpuAccess::invalid));  // the same memory at another address
  list.sort();
  const std::vector<std::uint32_t> handles(list.handles().begin(), list.handles().end());
  CHECK(handles == std::vector<std::uint32_t>{4, 7, 9});
  REQUIRE(list.ranges().size() == 4);
  struct Row {
    std::uint64_t va, bytes;
    std::uint8_t rights;
  };
  const Row rows[] = {{0x1000, 0x1000, may_read | may_write},
                      {0x2000, 0x1000, 0},
                      {0x3000, 0x1000, may_read},
                      {0x9000, 0x2000, may_read | may_execute}};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(list.ranges()[i].va == rows[i].va);
    CHECK(list.ranges()[i].bytes == rows[i].bytes);
    CHECK(list.ranges()[i].rights == rows[i].rights);
  }
  list.clear();
  CHECK(list.handles().empty());
  CHECK(list.ranges().empty());
}

TEST_CASE("stamps: one more than stretches, eight bytes each") {
  CHECK(Stamps::bytes_of(0) == 8);
  CHECK(Stamps::bytes_of(1) == 16);
  CHECK(Stamps::bytes_of(64) == 520);
  std::uint64_t memory[3] = {7, 8, 9};
  const Stamps stamps(std::as_writable_bytes(std::span(memory)), 0x4000);
  for (const std::uint64_t each : memory) CHECK(each == 0);
  memory[0] = 5, memory[1] = 6, memory[2] = 11;
  CHECK(stamps.size() == 3);
  CHECK(stamps.first() == 5);
  CHECK(stamps[1] == 6);
  CHECK(stamps.last() == 11);
  CHECK(stamps.address_of(0) == 0x4000);
  CHECK(stamps.address_of(2) == 0x4010);
  CHECK(stamps.memory().memory.size() == 24);
  CHECK(stamps.memory().address == 0x4000);
  CHECK(Stamps().size() == 0);
}

TEST_CASE("dispatch key: words in their order, each of which counts") {
  DispatchKey a, b, c;
  CHECK(a.hash == 0);
  CHECK(a.words.empty());
  for (const std::uint64_t word : {1, 2}) a.add(word);
  for (const std::uint64_t word : {2, 1}) b.add(word);
  for (const std::uint64_t word : {1, 2}) c.add(word);
  CHECK(a == c);
  CHECK(a.hash != b.hash);
  CHECK(a.words == std::vector<std::uint64_t>{1, 2});
  CHECK(b.words == std::vector<std::uint64_t>{2, 1});
}

TEST_CASE("pass groups: each says whether a suspect or a program that never ended well is in it") {
  QueueFixture f;
  const auto groups = [&f](const std::vector<BoundPass>& passes) {
    std::string text;
    for (const PassGroup& group : groups_of(in_order(passes), f.quarantine)) {
      text += std::to_string(group.end) + (group.suspect ? "s" : "") + (group.unproven ? "u" : "") + " ";
    }
    return text;
  };
  const BoundPass good = f.pass(f.good, 0, 1), bad = f.pass(f.bad, 2, 3), after_good = f.pass(f.good, 1, 4);
  CHECK(groups({good, bad}) == "2u ");
  f.good->ended_well = true;
  CHECK(groups({good}) == "1 ");
  CHECK(groups({good, bad}) == "2u ");
  CHECK(groups({bad, good}) == "2u ");
  CHECK(groups({good, after_good, bad}) == "1 3u ");
  f.quarantine.suspect(f.bad->quarantine_key);
  CHECK(groups({good, bad, good}) == "1 2su 3 ");
  CHECK(groups({bad}) == "1su ");
  CHECK(groups({bad, bad}) == "1su 2su ");
  f.bad->ended_well = true;
  CHECK(groups({good, bad}) == "1 2s ");
}

TEST_CASE("pass groups: 64 passes are a group, and the 65th begins another") {
  QueueFixture f;
  const auto reader = fake::make_kernel(*f.winsys, "reader", {Access::read});
  const auto ends = [&](std::size_t count) {
    std::string text;
    const std::vector<BoundPass> passes(count, BoundPass{reader, {f.buffers[0]}, {1, 1, 1}});
    for (const PassGroup& group : groups_of(in_order(passes), f.quarantine)) text += std::to_string(group.end) + " ";
    return text;
  };
  CHECK(ends(0) == "");
  CHECK(ends(1) == "1 ");
  CHECK(ends(64) == "64 ");
  CHECK(ends(65) == "64 65 ");
  CHECK(ends(129) == "64 128 129 ");
}

TEST_CASE("stretches: 64 of programs that have ended well, 1024 of others") {
  const QueueFixture f(1 << 18);
  struct Row {
    std::size_t passes;
    std::uint64_t stretches;
  };
  // Never run before: one a pass, then one for two.
  CHECK(ns_of_chain(f, fake::make_kernel(*f.winsys, "a", {Access::read, Access::write}), 1024) == 1024'000);
  CHECK(ns_of_chain(f, fake::make_kernel(*f.winsys, "b", {Access::read, Access::write}), 1025) == 513'000);
  CHECK(ns_of_chain(f, f.good, 1) == 1'000);
  for (const Row& row : {Row{2, 2}, {63, 63}, {64, 64}, {65, 33}, {127, 64}, {128, 64}, {129, 43}, {192, 64}}) {
    INFO(row.passes << " passes");
    CHECK(ns_of_chain(f, f.good, row.passes) == row.stretches * 1000);
  }
}

TEST_CASE("object numbers: grow, and are never given twice") {
  const std::uint64_t first = next_object_number();
  CHECK(first > 0);
  CHECK(next_object_number() > first);
}

}  // namespace kiln::amdgpu_pm4
