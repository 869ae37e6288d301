#include "simulator/memory/job_memory.hpp"

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "simulator/memory/address_space.hpp"

namespace kiln::simulator {
namespace {

constexpr std::uint64_t page_bytes = Page::bytes;

// A buffer whose host memory the test holds.
struct HostBuffer {
  explicit HostBuffer(std::uint64_t id, std::uint64_t pages = 1) : bytes(pages * page_bytes) {
    storage = std::make_unique<Block[]>(pages);
    memory = std::make_shared<BufferMemory>();
    memory->id = id;
    memory->host = storage[0].bytes.data();
    memory->bytes = bytes;
  }
  std::byte& operator[](std::size_t at) { return memory->host[at]; }

  struct alignas(4096) Block {
    std::array<std::byte, page_bytes> bytes{};
  };
  std::uint64_t bytes;
  std::unique_ptr<Block[]> storage;
  std::shared_ptr<BufferMemory> memory;
};

constexpr Rights all{true, true, true};

struct Device {
  PageTable table;
  L2Cache l2;
  std::vector<std::uint64_t> listed;

  void map(const HostBuffer& buffer, std::uint64_t start, Rights rights = all, Caching caching = Caching::cached) {
    REQUIRE_FALSE(table.map({start, buffer.bytes, 0, rights, caching, buffer.memory}));
  }
  JobMemory job() { return {table.snapshot(), listed, l2}; }
};

std::byte read(DeviceMemory& memory, std::uint64_t address) {
  Page page;
  const auto fault = memory.page(address, Access::read, page);
  if (fault) FAIL(describe(*fault));
  return page.data[address - page.address];
}

void write(DeviceMemory& memory, std::uint64_t address, int value) {
  Page page;
  const auto fault = memory.page(address, Access::write, page);
  if (fault) FAIL(describe(*fault));
  page.data[address - page.address] = std::byte(value);
  page.mark(address, 1);
}

FaultKind fault_of(DeviceMemory& memory, std::uint64_t address, Access access) {
  Page page;
  const auto fault = memory.page(address, access, page);
  if (!fault) return FaultKind::invalid;
  CHECK(fault->address == address);
  CHECK_FALSE(fault->reason.empty());
  return fault->kind;
}

}  // namespace

TEST_CASE("simulator memory: sparse addresses without memory read as zero and lose what is written") {
  HostBuffer buffer(1);
  Device device;
  device.listed = {1};
  device.table.set_sparse({{0x10000, 0x14000}});
  device.map(buffer, 0x11000);
  buffer[0] = std::byte(7);
  JobMemory job = device.job();
  for (const std::uint64_t address : {0x10008, 0x13FF8}) {
    write(job, address, 5);
    CHECK(read(job, address) == std::byte(0));
    CHECK_FALSE(job.resident(address));
    CHECK(fault_of(job, address, Access::execute) == FaultKind::unmapped);
  }
  CHECK(read(job, 0x11000) == std::byte(7));
  CHECK(job.resident(0x11000));
  CHECK(fault_of(job, 0xFFF8, Access::read) == FaultKind::unmapped);
  CHECK(fault_of(job, 0x14000, Access::write) == FaultKind::unmapped);
  std::array<std::byte, 16> bytes;
  bytes.fill(std::byte(9));
  CHECK_FALSE(job.store(0x12FF8, bytes));
  CHECK_FALSE(job.load(0x10FF8, bytes));  // over the end into the buffer
  CHECK(bytes[7] == std::byte(0));
  CHECK(bytes[8] == std::byte(7));
  for (const Access access : {Access::read, Access::write}) {
    Page page;  // of one call after the other
    REQUIRE_FALSE(job.page(0x10008, access, page));
    CHECK(page.unbacked);
    CHECK(page.address == 0x10000);
    CHECK(page.marks == nullptr);
    REQUIRE_FALSE(job.page(0x11008, access, page));
    CHECK_FALSE(page.unbacked);
    CHECK(page.address == 0x11000);
    CHECK((page.marks != nullptr) == (access == Access::write));
    REQUIRE_FALSE(job.page(0x13008, access, page));
    CHECK(page.unbacked);
    CHECK(page.marks == nullptr);
  }
}

TEST_CASE("simulator memory: a page is written back for a mark on any of its bytes, and for marks on all") {
  for (const auto& [first, count] : {std::pair(0U, 1U), {1U, 1U}, {2048U, 1U}, {4095U, 1U}, {0U, 4096U}, {1U, 4095U}}) {
    CAPTURE(first, count);
    HostBuffer buffer(1, 3);
    Device device;
    device.map(buffer, 0x10000);
    device.listed = {1};
    JobMemory job = device.job();
    Page page;
    REQUIRE_FALSE(job.page(0x10000, Access::write, page));  // and no byte of it is written
    REQUIRE_FALSE(job.page(0x12000, Access::write, page));
    std::memset(page.data + first, 7, count);
    page.mark(0x12000 + first, count);
    job.write_back_l2();
    CHECK(device.l2.counters().pages_written_back == 1);
    CHECK(device.l2.counters().bytes_written_back == count);
    for (std::size_t at = 0; at < page_bytes; ++at) {
      REQUIRE(buffer[0x2000 + at] == std::byte(at >= first && at < first + count ? 7 : 0));
    }
  }
}

TEST_CASE(
    "simulator memory: loads and stores reach the page and the byte that are meant, of every buffer on their way") {
  for (const Caching caching : {Caching::cached, Caching::uncached}) {
    CAPTURE(caching == Caching::cached);
    HostBuffer low(1, 3), high(2, 3);
    Device device;
    device.map(high, 0x10000, all, caching);
    device.map(low, 0x13000, all, caching);
    device.listed = {1, 2};
    JobMemory job = device.job();
    std::array<std::byte, 16> bytes{};
    for (std::size_t at = 0; at < 16; ++at) bytes[at] = std::byte(at + 1);
    CHECK_FALSE(job.store(0x11064, bytes));
    CHECK_FALSE(job.store(0x12FF4, bytes));  // 12 bytes in one buffer, 4 in the other
    for (std::size_t at = 0; at < 3 * page_bytes; ++at) {
      const bool first = at >= 0x1064 && at < 0x1074, second = at >= 0x2FF4;
      REQUIRE(high[at] == std::byte(first ? at - 0x1063 : second ? at - 0x2FF3 : 0));
      REQUIRE(low[at] == std::byte(at < 4 ? at + 13 : 0));
    }
    for (std::size_t at = 0; at < 3 * page_bytes; ++at) high[at] = low[at] = std::byte(at * 7 + at / page_bytes);
    for (const std::uint64_t from : {0x11064, 0x12FF4, 0x14108}) {
      CHECK_FALSE(job.load(from, bytes));
      for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t at = (from + i - 0x10000) % (3 * page_bytes);
        REQUIRE(bytes[i] == std::byte(at * 7 + at / page_bytes));
      }
    }
    write(job, 0x14108, 200);  // from here on L2 has a copy that is newer
    CHECK_FALSE(job.load(0x14100, bytes));
    CHECK(bytes[8] == std::byte(200));
    CHECK(bytes[9] == std::byte((0x1109 * 7 + 1) & 0xFF));
    CHECK(read(job, 0x12FF4) == std::byte((0x2FF4 * 7 + 2) & 0xFF));
    CHECK((low[0x1108] == std::byte(200)) == (caching == Caching::uncached));
  }
}

TEST_CASE("simulator memory: what the host writes after L2 has read a page is not seen until L2 is invalidated") {
  HostBuffer buffer(1);
  Device device;
  device.map(buffer, 0x10000);
  device.listed = {1};
  buffer[7] = std::byte(1);
  JobMemory first = device.job();
  CHECK(read(first, 0x10007) == std::byte(1));
  buffer[7] = std::byte(2);
  CHECK(read(first, 0x10007) == std::byte(1));
  first.write_back_l2();
  CHECK(read(first, 0x10007) == std::byte(1));
  JobMemory second = device.job();  // the cache is the device's
  CHECK(read(second, 0x10007) == std::byte(1));
  CHECK(buffer[7] == std::byte(2));
  second.invalidate_l2();
  CHECK(read(second, 0x10007) == std::byte(2));
  CHECK(device.l2.counters().pages_read == 2);
  CHECK(device.l2.counters().invalidations == 1);
}

TEST_CASE("simulator memory: what the device writes reaches the host with the write-back, byte by byte") {
  HostBuffer buffer(1);
  Device device;
  device.map(buffer, 0x10000);
  device.listed = {1};
  JobMemory job = device.job();
  write(job, 0x10000, 1);
  write(job, 0x1000B, 2);
  for (int at = 16; at < 24; ++at) write(job, 0x10000 + static_cast<std::uint64_t>(at), at);
  buffer[1] = std::byte(91);
  buffer[10] = std::byte(92);
  CHECK(buffer[0] == std::byte(0));
  job.write_back_l2();
  CHECK(buffer[0] == std::byte(1));
  CHECK(buffer[1] == std::byte(91));  // the host's own, of the same word
  CHECK(buffer[10] == std::byte(92));
  CHECK(buffer[11] == std::byte(2));
  CHECK(buffer[23] == std::byte(23));
  CHECK(read(job, 0x10001) == std::byte(0));  // not invalidated: still stale
  CHECK(device.l2.counters().pages_written_back == 1);
  CHECK(device.l2.counters().bytes_written_back == 10);
  buffer[0] = std::byte(50);
  job.write_back_l2();  // nothing new
  CHECK(buffer[0] == std::byte(50));
  CHECK(device.l2.counters().bytes_written_back == 10);
}

TEST_CASE("simulator memory: a store of the value that L2 already holds is written back too") {
  HostBuffer buffer(1);
  Device device;
  device.map(buffer, 0x10000);
  device.listed = {1};
  {
    JobMemory job = device.job();
    write(job, 0x10003, 7);
    job.write_back_l2();
    buffer[3] = std::byte(100);
    buffer[4] = std::byte(101);
  }
  {
    JobMemory job = device.job();
    write(job, 0x10003, 7);
    job.write_back_l2();
    CHECK(buffer[3] == std::byte(7));
    CHECK(buffer[4] == std::byte(101));  // L2 holds a 0 that nobody wrote
  }
  CHECK(device.l2.counters().bytes_written_back == 2);
  JobMemory job = device.job();
  write(job, 0x10004, 0);
  job.invalidate_l2();  // the mark goes with what was written
  buffer[4] = std::byte(102);
  write(job, 0x10005, 5);
  job.write_back_l2();
  CHECK(buffer[4] == std::byte(102));
  CHECK(buffer[5] == std::byte(5));
  const std::array<std::byte, 1> past{std::byte(9)};
  write(job, 0x10006, 6);
  CHECK_FALSE(job.store(0x10006, past));  // the newer value, past L2, which needs no write-back
  buffer[6] = std::byte(103);
  job.write_back_l2();
  CHECK(buffer[6] == std::byte(103));
}

TEST_CASE("simulator memory: a page kept over a write-back may still be written") {
  HostBuffer buffer(1);
  Device device;
  device.map(buffer, 0x10000);
  device.listed = {1};
  {
    JobMemory job = device.job();
    Page page;
    REQUIRE_FALSE(job.page(0x10000, Access::write, page));
    job.write_back_l2();
    page.data[5] = std::byte(5);
    page.mark(0x10005, 1);
    job.write_back_l2();
    CHECK(buffer[5] == std::byte(5));
    page.mark(0x10006, 1);
    page.data[6] = std::byte(6);  // and not written back: the end of the job must not lose it
  }
  JobMemory next = device.job();
  CHECK(buffer[6] == std::byte(0));
  CHECK(read(next, 0x10006) == std::byte(6));
  next.write_back_l2();
  CHECK(buffer[6] == std::byte(6));
}

TEST_CASE("simulator memory: an invalidation without a write-back loses what the device wrote") {
  HostBuffer buffer(1);
  Device device;
  device.map(buffer, 0x10000);
  device.listed = {1};
  JobMemory job = device.job();
  write(job, 0x10000, 1);
  job.invalidate_l2();
  CHECK(read(job, 0x10000) == std::byte(0));
  job.write_back_l2();
  CHECK(buffer[0] == std::byte(0));
}

TEST_CASE("simulator memory: two addresses of one buffer share L2's copy") {
  HostBuffer buffer(1, 2);
  Device device;
  device.map(buffer, 0x10000);
  device.map(buffer, 0xFFFF'8000'0001'0000);
  device.listed = {1};
  JobMemory job = device.job();
  write(job, 0x11004, 4);
  CHECK(read(job, 0xFFFF'8000'0001'1004) == std::byte(4));
  CHECK(read(job, 0x0000'8000'0001'1004) == std::byte(4));  // 48 bits of it, as packets have
  CHECK(buffer[page_bytes + 4] == std::byte(0));
}

TEST_CASE("simulator memory: uncached mappings are coherent with the host") {
  HostBuffer buffer(1);
  Device device;
  device.map(buffer, 0x10000, all, Caching::uncached);
  device.listed = {1};
  JobMemory job = device.job();
  write(job, 0x10000, 1);
  CHECK(buffer[0] == std::byte(1));
  buffer[0] = std::byte(2);
  CHECK(read(job, 0x10000) == std::byte(2));
  std::array<std::byte, 2> bytes{std::byte(8), std::byte(9)};
  CHECK_FALSE(job.store(0x10003, bytes));
  CHECK(buffer[4] == std::byte(9));
  buffer[4] = std::byte(10);
  CHECK_FALSE(job.load(0x10003, bytes));
  CHECK(bytes[1] == std::byte(10));
}

TEST_CASE("simulator memory: accesses are checked against mapping, rights and the submission's list") {
  HostBuffer code(1), data(2), foreign(3), common(4);
  common.memory->always_valid = true;
  Device device;
  device.map(code, 0x10000, {true, false, true});
  device.map(data, 0x11000, {false, true, false});
  device.map(foreign, 0x12000);
  device.map(common, 0x13000);
  device.listed = {2, 1};
  JobMemory job = device.job();
  CHECK(fault_of(job, 0x10010, Access::read) == FaultKind::invalid);
  CHECK(fault_of(job, 0x10010, Access::execute) == FaultKind::invalid);
  CHECK(fault_of(job, 0x10010, Access::write) == FaultKind::permission);
  CHECK(fault_of(job, 0x11010, Access::write) == FaultKind::invalid);
  CHECK(fault_of(job, 0x11010, Access::read) == FaultKind::permission);
  CHECK(fault_of(job, 0x11010, Access::execute) == FaultKind::permission);
  CHECK(fault_of(job, 0x11010, Access::invalid) == FaultKind::permission);
  CHECK(fault_of(job, 0x12010, Access::read) == FaultKind::not_listed);
  CHECK(fault_of(job, 0x13010, Access::read) == FaultKind::invalid);
  CHECK(fault_of(job, 0x14000, Access::read) == FaultKind::unmapped);
  CHECK(fault_of(job, 0x0001'0000'0001'0010, Access::read) == FaultKind::unmapped);
  std::array<std::byte, 16> bytes{};
  const auto across = job.load(0x10FF8, bytes);
  REQUIRE(across);
  CHECK(across->kind == FaultKind::permission);
  CHECK(across->address == 0x11000);
  CHECK(job.store(0x10FF8, bytes)->kind == FaultKind::permission);
}

TEST_CASE("simulator memory: loads and stores pass L2's copies without losing either side's bytes") {
  HostBuffer buffer(1, 2);
  Device device;
  device.map(buffer, 0x10000);
  device.listed = {1};
  JobMemory job = device.job();
  CHECK(read(job, 0x10000) == std::byte(0));
  buffer[0] = std::byte(1);
  std::array<std::byte, 4> word{};
  CHECK_FALSE(job.load(0x10000, word));
  CHECK(word[0] == std::byte(1));
  CHECK(read(job, 0x10000) == std::byte(0));  // a copy the device only read stays stale

  write(job, 0x10002, 2);
  CHECK_FALSE(job.load(0x10000, word));
  CHECK(word[0] == std::byte(1));
  CHECK(word[2] == std::byte(2));
  CHECK(buffer[2] == std::byte(0));

  word = {std::byte(5), std::byte(6), std::byte(7), std::byte(8)};
  CHECK_FALSE(job.store(0x10FFE, word));  // over two pages
  CHECK(buffer[0xFFF] == std::byte(6));
  CHECK(buffer[0x1000] == std::byte(7));
  CHECK(read(job, 0x10FFF) == std::byte(6));
  buffer[0xFFF] = std::byte(60);
  job.write_back_l2();  // what was stored is not written a second time
  CHECK(buffer[0xFFF] == std::byte(60));
  CHECK(buffer[2] == std::byte(2));
}

TEST_CASE(
    "simulator memory: copies go when their buffer is gone, and a buffer of another device is coherent by memory") {
  Device device, other;
  HostBuffer shared(2);
  device.map(shared, 0x20000);
  other.map(shared, 0x70000);
  device.listed = other.listed = {1, 2};
  {
    HostBuffer buffer(1);
    device.map(buffer, 0x10000);
    JobMemory job = device.job();
    write(job, 0x10000, 1);
    write(job, 0x20000, 3);
  }
  device.table.remove_buffer(1);
  device.l2.write_back();
  device.l2.purge();
  CHECK(shared[0] == std::byte(3));
  JobMemory reader = other.job();
  CHECK(read(reader, 0x70000) == std::byte(3));
  {
    HostBuffer again(1);  // not what a kernel node does, but it shows that nothing of the old one is left
    device.map(again, 0x10000);
    JobMemory job = device.job();
    CHECK(read(job, 0x10000) == std::byte(0));
    device.table.remove_buffer(1);
  }
}

TEST_CASE("simulator memory: pages are found from many threads") {
  HostBuffer buffer(1, 600);
  Device device;
  device.map(buffer, 0x100000);
  device.listed = {1};
  JobMemory job = device.job();
  std::atomic<int> faults{0};
  std::vector<std::thread> threads;
  for (unsigned each = 0; each < 4; ++each) {
    threads.emplace_back([&, each] {
      for (std::uint64_t at = 0; at < 600; ++at) {
        Page page;
        if (job.page(0x100000 + at * page_bytes, Access::write, page)) ++faults;
        page.data[each] = std::byte(each + 1);
        page.mark(0x100000 + at * page_bytes + each, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(faults == 0);
  job.write_back_l2();
  CHECK(device.l2.counters().pages_read == 600);
  CHECK(device.l2.counters().bytes_written_back == 2400);
  for (std::uint64_t at = 0; at < 600; ++at) {
    REQUIRE(buffer[at * page_bytes] == std::byte(1));
    REQUIRE(buffer[at * page_bytes + 3] == std::byte(4));
  }
}

TEST_CASE("simulator memory: memory without a cache is read and written page by page, and marked where written") {
  struct Plain final : DeviceMemory {
    std::optional<Fault> page(std::uint64_t address, Access access, Page& out) override {
      asked.push_back(access);
      if (address >= 3 * page_bytes) return Fault{FaultKind::unmapped, address, {}, "the end"};
      out.address = address / page_bytes * page_bytes;
      out.data = bytes.data() + out.address;
      out.marks = access == Access::write ? marks.data() + out.address : nullptr;
      return {};
    }
    void invalidate_l2() override {}
    void write_back_l2() override {}
    std::vector<std::byte> bytes = std::vector<std::byte>(3 * page_bytes), marks = bytes;
    std::vector<Access> asked;
  } memory;
  CHECK(memory.resident(12));
  std::vector<std::byte> written(page_bytes + 100);
  for (std::size_t at = 0; at < written.size(); ++at) written[at] = std::byte(at % 251 + 1);
  REQUIRE_FALSE(memory.store(page_bytes - 50, written));
  CHECK(memory.asked == std::vector<Access>(3, Access::write));
  for (std::size_t at = 0; at < memory.bytes.size(); ++at) {
    const bool inside = at >= page_bytes - 50 && at < 2 * page_bytes + 50;
    REQUIRE(memory.bytes[at] == (inside ? written[at - (page_bytes - 50)] : std::byte(0)));
    REQUIRE(memory.marks[at] == std::byte(inside ? 1 : 0));
  }
  memory.asked.clear();
  std::vector<std::byte> out(written.size());
  REQUIRE_FALSE(memory.load(page_bytes - 50, out));
  CHECK(out == written);
  CHECK(memory.asked == std::vector<Access>(3, Access::read));
  std::array<std::byte, 8> across{};
  auto fault = memory.load(3 * page_bytes - 4, across);
  REQUIRE(fault);
  CHECK(fault->address == 3 * page_bytes);
  fault = memory.store(3 * page_bytes - 4, across);
  REQUIRE(fault);
  CHECK(fault->address == 3 * page_bytes);
  CHECK(memory.marks[3 * page_bytes - 1] == std::byte(1));
  memory.asked.clear();
  CHECK_FALSE(memory.load(9 * page_bytes, {}));  // no bytes, no access
  CHECK_FALSE(memory.store(9 * page_bytes, {}));
  CHECK(memory.asked.empty());
}

TEST_CASE("simulator memory: bytes and marks at every alignment and of every length, and none beside them") {
  constexpr std::size_t room = 48;
  alignas(8) std::array<std::byte, room> host, other;
  for (std::size_t first = 8; first < 17; ++first) {
    for (std::size_t count = 0; count < 24; ++count) {
      CAPTURE(first, count);
      for (std::size_t at = 0; at < room; ++at) host[at] = std::byte(at + 1);
      other.fill(std::byte(0));
      read_host(host.data() + first, {other.data() + 3, count});
      for (std::size_t at = 0; at < room; ++at) {
        const bool inside = at >= 3 && at < 3 + count;
        REQUIRE(other[at] == std::byte(inside ? at - 3 + first + 1 : 0));
      }
      other.fill(std::byte(200));
      write_host(host.data() + first, {other.data() + 3, count});
      for (std::size_t at = 0; at < room; ++at) {
        const bool inside = at >= first && at < first + count;
        REQUIRE(host[at] == std::byte(inside ? 200 : at + 1));
      }
      other.fill(std::byte(0));
      Page::mark_bytes(other.data() + first, count);
      for (std::size_t at = 0; at < room; ++at) {
        const bool inside = at >= first && at < first + count;
        REQUIRE(other[at] == std::byte(inside ? 1 : 0));
      }
    }
  }
}

TEST_CASE("simulator memory: marked bytes alone are written, and counted") {
  alignas(8) std::array<std::byte, 24> host, fresh, marks;
  for (unsigned pattern = 0; pattern < 256; ++pattern) {
    CAPTURE(pattern);
    host.fill(std::byte(1));
    for (std::size_t at = 0; at < 24; ++at) {
      fresh[at] = std::byte(100 + at);
      marks[at] = std::byte(at < 8 ? 0 : at < 16 ? 1 : pattern >> (at - 16) & 1);
    }
    CHECK(write_marked(host.data(), fresh, marks) == 8 + static_cast<std::size_t>(__builtin_popcount(pattern)));
    for (std::size_t at = 0; at < 24; ++at) REQUIRE(host[at] == (marks[at] == std::byte(1) ? fresh[at] : std::byte(1)));
  }
}

TEST_CASE("simulator memory: a fault is one line") {
  CHECK(describe({FaultKind::unmapped, 0x8000001000, {}, "no buffer is mapped there"}) ==
        "unmapped at 0x8000001000: no buffer is mapped there");
  CHECK(describe({FaultKind::unknown_packet, 0x10, 0xC0000700, "opcode 0x07"}) ==
        "unknown packet at 0x10 (0xc0000700): opcode 0x07");
  CHECK(describe({FaultKind::unknown_opcode, 0x14, 0, "VOP2 has no opcode 0"}) ==
        "unknown opcode at 0x14 (0x00000000): VOP2 has no opcode 0");
  for (int kind = 1; kind <= static_cast<int>(FaultKind::planted); ++kind)
    CHECK(to_string(static_cast<FaultKind>(kind)) != "invalid");
}

}  // namespace kiln::simulator
