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
    if (found != nullptr && found->offset % page != 0) text += "inside ";
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

TEST_CASE("simulator memory: a cut takes all that it crosses, and leaves what lies before and behind") {
  struct Case {
    std::uint64_t start, pages;
    const char *cleared, *replaced;
  };
  const Case cases[] = {
      {0x12000, 5, "1:0 . . . . . . 3:1 . . . . . . . . 4:0 ", "1:0 . 9:0 9:1 9:2 9:3 9:4 3:1 . . . . . . . . 4:0 "},
      {0x13000, 2, "1:0 . . . . . 3:0 3:1 . . . . . . . . 4:0 ", "1:0 . . 9:0 9:1 . 3:0 3:1 . . . . . . . . 4:0 "},
      {0x10000, 7, ". . . . . . . 3:1 . . . . . . . . 4:0 ", "9:0 9:1 9:2 9:3 9:4 9:5 9:6 3:1 . . . . . . . . 4:0 "},
      {0x14000, 1, "1:0 . . 2:0 . . 3:0 3:1 . . . . . . . . 4:0 ", "1:0 . . 2:0 9:0 . 3:0 3:1 . . . . . . . . 4:0 "},
      {0x11000, 2, "1:0 . . 2:0 2:1 . 3:0 3:1 . . . . . . . . 4:0 ",
       "1:0 9:0 9:1 2:0 2:1 . 3:0 3:1 . . . . . . . . 4:0 "},
      {0x16000, 1, "1:0 . . 2:0 2:1 . . 3:1 . . . . . . . . 4:0 ", "1:0 . . 2:0 2:1 . 9:0 3:1 . . . . . . . . 4:0 "},
  };
  for (const bool replaces : {false, true}) {
    for (const Case& one : cases) {
      CAPTURE(replaces, one.start, one.pages);
      PageTable table;
      REQUIRE_FALSE(table.map(mapping(buffer(1, 1), 0x10000, 1)));
      CHECK(layout(table, 0x10000, 4) == "1:0 . . . ");
      REQUIRE_FALSE(table.map(mapping(buffer(2, 2), 0x13000, 2)));
      REQUIRE_FALSE(table.map(mapping(buffer(3, 2), 0x16000, 2)));
      REQUIRE_FALSE(table.map(mapping(buffer(4, 1), 0x20000, 1)));
      CHECK(layout(table, 0x10000, 17) == "1:0 . . 2:0 2:1 . 3:0 3:1 . . . . . . . . 4:0 ");
      if (replaces) {
        REQUIRE_FALSE(table.replace(mapping(buffer(9, 9), one.start, one.pages)));
      } else {
        REQUIRE_FALSE(table.clear(one.start, one.pages * page));
      }
      CHECK(layout(table, 0x10000, 17) == (replaces ? one.replaced : one.cleared));
    }
  }
}

TEST_CASE("simulator memory: a refusal names the range and what is wrong with it") {
  PageTable table;
  const BufferRef one = buffer(1, 4);
  REQUIRE_FALSE(table.map(mapping(one, 0x10000, 4)));
  Mapping inside = mapping(one, 0x20000, 1);
  inside.offset = 4095;
  Mapping part = mapping(one, 0x20000, 1);
  part.bytes = 4097;
  for (const auto& [wrong, reason] : {
           std::pair(mapping(one, 0x20001, 1), "0x20001+0x1000 is not of whole pages"),
           {part, "0x20000+0x1001 is not of whole pages"},
           {mapping(one, 0x20000, 0), "0x20000+0x0 is empty"},
           {mapping(one, 0x0000'7FFF'FFFF'F000, 2), "0x7ffffffff000+0x2000 is not inside one half of the 48-bit space"},
           {mapping(one, 0xFFFF'7FFF'FFFF'F000, 2),
            "0xffff7ffffffff000+0x2000 is not inside one half of the 48-bit space"},
           {inside, "offset of 0x20000+0x1000 is inside a page"},
           {mapping(one, 0x20000, 2, 3), "0x20000+0x2000 passes the end of its buffer"},
           {mapping(one, 0x12000, 1), "0x12000+0x1000 overlaps 0x10000+0x4000"},
       }) {
    const auto refusal = table.map(wrong);
    REQUIRE(refusal);
    CHECK(refusal->reason == reason);
  }
  const auto refusal = table.unmap(0x20000, 1);
  REQUIRE(refusal);
  CHECK(refusal->reason == "no mapping of that buffer starts at 0x20000+0x0");
  CHECK_FALSE(table.map(mapping(buffer(2, 1), 0x0000'7FFF'FFFF'F000, 1)));
  CHECK_FALSE(table.map(mapping(buffer(2, 1), 0xFFFF'8000'0000'0000, 1)));
}

TEST_CASE("simulator memory: sparse ranges are the next snapshot's, and end where they are said to") {
  PageTable table;
  const auto before = table.snapshot();
  table.set_sparse({{0x10000, 0x12000}, {0x20000, 0x21000}});
  const auto after = table.snapshot();
  for (const auto& [address, sparse] : {std::pair(0xFFFFU, false),
                                        {0x10000, true},
                                        {0x11FFF, true},
                                        {0x12000, false},
                                        {0x20FFF, true},
                                        {0x21000, false}}) {
    CAPTURE(address);
    CHECK_FALSE(before->is_sparse(address));
    CHECK(after->is_sparse(address) == sparse);
  }
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
