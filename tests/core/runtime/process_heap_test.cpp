// The heaps that a process of Kiln's own asks for. The C library decides once a process, so each test is one.
#include "base/os/process_limits.hpp"

#include <kiln/process_limits.hpp>

#include "support/own_process.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>

namespace {

struct Span {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool operator==(const Span&) const = default;
};

// Whether huge pages were asked for in the mapping that holds an address.
bool is_advised(const void* at) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(at);
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) inside = begin <= wanted && wanted < end;
    if (inside && line.starts_with("VmFlags:")) return line.find(" hg") != std::string::npos;
  }
  return false;
}

// The mapping that holds an address, and may be written.
Span writable_around(const void* at) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(at);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t dash = line.find('-'), blank = line.find(' ');
    const Span span{std::stoull(line.substr(0, dash), nullptr, 16),
                    std::stoull(line.substr(dash + 1, blank - dash - 1), nullptr, 16)};
    if (span.begin <= wanted && wanted < span.end && line.compare(blank + 1, 2, "rw") == 0) return span;
  }
  return {};
}

}  // namespace

TEST_CASE("runtime::heaps: in a process of its own", "[.heaps]") {
  kiln::prefer_roomy_heaps();
  constexpr std::size_t frame_bytes = 4000;  // more than a thread's own small store keeps
  Span heaps[2];
  std::latch both(2);
  const auto work = [&](Span& heap) {
    const std::unique_ptr<void, decltype(&std::free)> block(std::malloc(frame_bytes), &std::free);
    both.arrive_and_wait();  // neither has ended, so neither's heap is the other's next one
    heap = writable_around(block.get());
  };
  std::thread first(work, std::ref(heaps[0])), second(work, std::ref(heaps[1]));
  first.join();
  second.join();
  for (const Span& heap : heaps) CHECK(heap.end - heap.begin >= std::uintptr_t{48} << 20);
  CHECK(heaps[0] != heaps[1]);
}

TEST_CASE("runtime::heaps: pages, in a process of its own", "[.heap_pages]") {
  const auto asked_with = [](std::uint64_t most_ns) {
    bool is_asked = false;
    auto thread = kiln::start_thread([&] {
      kiln::prefer_huge_pages(most_ns);
      const std::unique_ptr<void, decltype(&std::free)> block(std::malloc(4000), &std::free);
      is_asked = is_advised(block.get());
    });
    REQUIRE(thread);
    thread->join();
    return is_asked;
  };
  constexpr std::uint64_t any_time = UINT64_MAX, no_time = 0;
  CHECK_FALSE(asked_with(any_time));  // before the heaps are roomy
  kiln::prefer_roomy_heaps();
  CHECK(asked_with(any_time));
  CHECK_FALSE(asked_with(no_time));
  CHECK_FALSE(asked_with(any_time));  // one was slow
}

namespace {

void check_in_process_of_its_own(const char* tag) {
  if (kiln::test::is_sanitized) {
    WARN("skipped: a sanitizer has a heap of its own");
    return;
  }
  // Without what whoever runs the tests may ask of the C library's heaps.
  const kiln::support::ChildResult child =
      kiln::support::run_child(tag, {{"MALLOC_ARENA_MAX", ""}, {"GLIBC_TUNABLES", ""}});
  INFO(child.output);
  CHECK(child.status == 0);
}

}  // namespace

// A software driver allocates for every workgroup: at one heap its threads waited for each other.
TEST_CASE("runtime::heaps: each thread has a roomy one of its own", "[unsanitized]") {
  check_in_process_of_its_own("[.heaps]");
}

TEST_CASE("runtime::heaps: a thread asks for huge pages", "[unsanitized]") {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) {
    WARN("skipped: this kernel has no huge pages on request");
    return;
  }
  check_in_process_of_its_own("[.heap_pages]");
}
