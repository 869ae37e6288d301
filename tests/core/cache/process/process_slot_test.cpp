// The text of a slot: what is written is read; what is no such text is nothing.
#include "cache/process_table.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace kiln::test {
namespace {

std::string mark_line(const MarkText& text) { return {text.data(), text.size()}; }

TEST_CASE("cache::process_slot: a slot names its process and its marks, in lines that people can read") {
  const Digest one = sha256("one"), two = sha256("two");
  std::string slot = encode_slot(1234, 1700000000);
  REQUIRE(slot.size() == slot_bytes);
  CHECK(slot.starts_with("process 1234 since 1700000000 "));
  CHECK(pid_of_slot(slot) == 1234);
  CHECK(marks_of_slot(slot).empty());
  const std::string loading = mark_line(encode_mark({Doing::loading, one, 1700000001}));
  const std::string building = mark_line(encode_mark({Doing::building, two, 5}));
  CHECK(loading.starts_with("loading  " + one.hex() + " 1700000001 "));
  CHECK(building.back() == '\n');
  slot.replace(slot_header_bytes, mark_bytes, loading);
  slot.replace(slot_bytes - mark_bytes, mark_bytes, building);
  const auto marks = marks_of_slot(slot);
  REQUIRE(marks.size() == 2);
  CHECK(marks[0].doing == Doing::loading);
  CHECK(marks[0].digest == one);
  CHECK(marks[0].since_s == 1700000001);
  CHECK(marks[1].doing == Doing::building);
  CHECK(marks[1].digest == two);
}

TEST_CASE("cache::process_slot: nobody's slot, no mark, and what is cut off or altered") {
  CHECK_FALSE(pid_of_slot(encode_slot(0, 0)));
  CHECK_FALSE(pid_of_slot(""));
  CHECK_FALSE(pid_of_slot(std::string(slot_bytes, '\0')));
  CHECK_FALSE(decode_mark(mark_line(no_mark())));
  CHECK(marks_of_slot("").empty());
  CHECK(marks_of_slot(std::string(slot_bytes, '\xff')).empty());
  const std::string mark = mark_line(encode_mark({Doing::loading, sha256("one"), 7}));
  for (std::size_t size = 0; size < mark.size(); ++size) CHECK_FALSE(decode_mark(mark.substr(0, size)));
  for (const std::size_t at : {0u, 8u, 9u, 72u, 74u}) {
    std::string altered = mark;
    altered[at] = '!';
    CHECK_FALSE(decode_mark(altered));
  }
  CHECK(mark == "loading  " + sha256("one").hex() + " 7" + std::string(20, ' ') + "\n");
  std::string negative = mark;
  negative.replace(74, 2, "-7");
  CHECK_FALSE(decode_mark(negative));
}

TEST_CASE("cache::process_slot: a slot is a header of 128 bytes and twenty marks of 96, each with the end of a line") {
  const std::string blank_mark = std::string(95, ' ') + "\n";
  std::string marks;
  for (int i = 0; i < 20; ++i) marks += blank_mark;
  CHECK(encode_slot(0, 0) == std::string(127, ' ') + "\n" + marks);
  CHECK(encode_slot(-1, 5) == encode_slot(0, 0));
  const std::string first = "process 1 since 5";
  CHECK(encode_slot(1, 5) == first + std::string(127 - first.size(), ' ') + "\n" + marks);
  CHECK(mark_line(no_mark()) == blank_mark);
  // A header alone names its process, and half of one nobody.
  CHECK(pid_of_slot(encode_slot(1234, 5).substr(0, 128)) == 1234);
  CHECK_FALSE(pid_of_slot(encode_slot(1234, 5).substr(0, 127)));
  // What began with the clock at zero.
  const auto mark = decode_mark(mark_line(encode_mark({Doing::building, sha256("one"), 0})));
  REQUIRE(mark);
  CHECK(mark->since_s == 0);
}

}  // namespace
}  // namespace kiln::test
