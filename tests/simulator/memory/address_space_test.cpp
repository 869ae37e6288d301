#include "simulator/memory/address_space.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace kiln::simulator {
namespace {

constexpr std::uint64_t page = 4096;

BufferRef buffer(std::uint64_t id, std::uint64_t pages) {
  auto made = std::make_shared<BufferMemory>();
  made->id = id;
  made->bytes = pages * page;
  return made;
}

Mapping mapping(const BufferRef& of, std::uint64_t start, std::uint64_t pages, std::uint64_t first_page = 0) {
  return {start, pages * page, first_page * page, {true, true, false}, Caching::cached, of};
}

// "id:first page of the buffer" a page, '.' for none.
std::string layout(PageTable& table, std::uint64_t start, unsigned pages) {
  const auto space = table.snapshot();
  std::string text;
  for (std::uint64_t at = start; at != start + pages * page; at += page) {
    const Mapping* found = space->find(at + 5);
    if (space->find(at) != found || space->find(at + page - 1) != found) text += "part of ";
    text += found == nullptr
                ? "."
                : std::to_string(found->buffer->id) + ":" + std::to_string((found->offset + at - found->start) / page);
    text += ' ';
  }
  return text;
}

MapProblem problem(const std::optional<MapRefusal>& refusal) {
  if (!refusal) return MapProblem::invalid;
  CHECK_FALSE(refusal->reason.empty());
  return refusal->problem;
}

}  // namespace

TEST_CASE("simulator memory: what is mapped is found, to its last byte and no further") {
  PageTable table;
  const BufferRef one = buffer(1, 4);
  CHECK_FALSE(table.map(mapping(one, 0x10000, 2, 1)));
  const auto space = table.snapshot();
  CHECK(space->find(0xFFFF) == nullptr);
  REQUIRE(space->find(0x10000) != nullptr);
  CHECK(space->find(0x11FFF)->offset == page);
  CHECK(space->find(0x12000) == nullptr);
  CHECK(table.snapshot() == space);  // no change, no work
}

TEST_CASE("simulator memory: the top page of the space can be mapped") {
  PageTable table;
  CHECK_FALSE(table.map(mapping(buffer(1, 1), 0xFFFF'FFFF'FFFF'F000, 1)));
  CHECK(table.snapshot()->find(0xFFFF'FFFF'FFFF'FFFF) != nullptr);
  CHECK(problem(table.map(mapping(buffer(2, 1), 0xFFFF'FFFF'FFFF'F000, 1))) == MapProblem::overlap);
}

TEST_CASE("simulator memory: mappings that the kernel refuses are refused, each with its reason") {
  PageTable table;
  const BufferRef one = buffer(1, 4);
  REQUIRE_FALSE(table.map(mapping(one, 0x10000, 4)));
  CHECK(problem(table.map(mapping(one, 0x20800, 1))) == MapProblem::misaligned);
  Mapping odd = mapping(one, 0x20000, 1);
  odd.offset = 8;
  CHECK(problem(table.map(odd)) == MapProblem::misaligned);
  odd = mapping(one, 0x20000, 1);
  odd.bytes = 100;
  CHECK(problem(table.map(odd)) == MapProblem::misaligned);
  CHECK(problem(table.map(mapping(one, 0x20000, 0))) == MapProblem::bad_range);
  CHECK(problem(table.map(mapping(one, 0x20000, 5))) == MapProblem::bad_range);
  CHECK(problem(table.map(mapping(one, 0x20000, 2, 3))) == MapProblem::bad_range);
  CHECK(problem(table.map(mapping(one, 0x20000, 1, 1'000'000))) == MapProblem::bad_range);
  CHECK(problem(table.map(mapping(nullptr, 0x20000, 1))) == MapProblem::bad_range);
  CHECK(problem(table.map(mapping(one, 0x0000'7FFF'FFFF'F000, 2))) == MapProblem::bad_range);  // into the hole
  CHECK(problem(table.map(mapping(one, 0x0001'0000'0000'0000, 1))) == MapProblem::bad_range);
  CHECK(problem(table.map(mapping(one, 0xFFFF'FFFF'FFFF'F000, 2))) == MapProblem::bad_range);
  CHECK(problem(table.map(mapping(buffer(2, 9), 0xF000, 2))) == MapProblem::overlap);   // its tail
  CHECK(problem(table.map(mapping(buffer(2, 9), 0x13000, 2))) == MapProblem::overlap);  // its head
  CHECK(problem(table.map(mapping(buffer(2, 9), 0xF000, 9))) == MapProblem::overlap);   // around
  CHECK(problem(table.map(mapping(buffer(2, 9), 0x11000, 1))) == MapProblem::overlap);  // inside
  CHECK_FALSE(table.map(mapping(buffer(2, 9), 0xF000, 1)));
  CHECK_FALSE(table.map(mapping(buffer(2, 9), 0x14000, 1)));
  CHECK(layout(table, 0xE000, 8) == ". 2:0 1:0 1:1 1:2 1:3 2:0 . ");
}

TEST_CASE("simulator memory: unmapping takes a mapping by its start and its buffer") {
  PageTable table;
  REQUIRE_FALSE(table.map(mapping(buffer(1, 2), 0x10000, 2)));
  CHECK(problem(table.unmap(0x11000, 1)) == MapProblem::not_mapped);
  CHECK(problem(table.unmap(0x10000, 2)) == MapProblem::not_mapped);
  CHECK_FALSE(table.unmap(0x10000, 1));
  CHECK(problem(table.unmap(0x10000, 1)) == MapProblem::not_mapped);
  CHECK(layout(table, 0x10000, 2) == ". . ");
}

TEST_CASE("simulator memory: replacing and clearing cut what they cross") {
  PageTable table;
  REQUIRE_FALSE(table.map(mapping(buffer(1, 8), 0x10000, 8)));
  REQUIRE_FALSE(table.replace(mapping(buffer(2, 2), 0x13000, 2)));
  CHECK(layout(table, 0x10000, 9) == "1:0 1:1 1:2 2:0 2:1 1:5 1:6 1:7 . ");
  REQUIRE_FALSE(table.clear(0x12000, 2 * page));
  CHECK(layout(table, 0x10000, 9) == "1:0 1:1 . . 2:1 1:5 1:6 1:7 . ");
  REQUIRE_FALSE(table.clear(0x17000, 20 * page));
  CHECK(layout(table, 0x10000, 9) == "1:0 1:1 . . 2:1 1:5 1:6 . . ");
  CHECK_FALSE(table.clear(0x80000, page));  // nothing there is no error
  CHECK(problem(table.clear(0x80000, 0)) == MapProblem::bad_range);
  CHECK(problem(table.clear(0x80001, page)) == MapProblem::misaligned);
  CHECK_FALSE(table.unmap(0x15000, 1));  // a remainder starts where it was cut
  table.remove_buffer(1);
  CHECK(layout(table, 0x10000, 9) == ". . . . 2:1 . . . . ");
}

TEST_CASE("simulator memory: what is cut to its end leaves nothing behind it") {
  for (const std::uint64_t cut : {0x10000, 0x13000}) {
    PageTable table;
    REQUIRE_FALSE(table.map(mapping(buffer(1, 4), 0x10000, 4)));
    REQUIRE_FALSE(table.clear(cut, 0x14000 - cut));
    CHECK_FALSE(table.map(mapping(buffer(2, 1), 0x14000, 1)));
    CHECK(layout(table, 0x10000, 6) == (cut == 0x10000 ? ". . . . 2:0 . " : "1:0 1:1 1:2 . 2:0 . "));
  }
}

TEST_CASE("simulator memory: a snapshot keeps what is unmapped later, and the buffer with it") {
  PageTable table;
  BufferRef one = buffer(1, 1);
  const std::weak_ptr<const BufferMemory> watched = one;
  REQUIRE_FALSE(table.map(mapping(one, 0x10000, 1)));
  one.reset();
  auto space = table.snapshot();
  REQUIRE_FALSE(table.unmap(0x10000, 1));
  CHECK(space->find(0x10000) != nullptr);
  CHECK(table.snapshot()->find(0x10000) == nullptr);
  CHECK_FALSE(watched.expired());
  space.reset();
  CHECK(watched.expired());
}

}  // namespace kiln::simulator
