#include <kiln/elf_notes.hpp>

#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include <catch2/catch.hpp>

namespace kiln {
namespace {

using Catch::Contains;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string number(std::uint32_t value) {  // little-endian
  std::string text;
  for (int i = 0; i < 4; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

TEST_CASE("elf notes: owner, type and contents of each note, padded to four or eight bytes") {
  const std::string four = number(4) + number(5) + number(3) + std::string("GNU\0", 4) + "12345" +
                           std::string(3, '\0') + number(5) + number(0) + number(7) + "Other" + std::string(3, '\0') +
                           "rest";
  const auto read = read_notes(bytes_of(four));
  REQUIRE(read.has_value());
  REQUIRE(read->size() == 2);
  CHECK(read->at(0).owner == "GNU");
  CHECK(read->at(0).type == 3);
  CHECK(text_of(read->at(0).contents) == "12345");
  CHECK(read->at(1).owner == "Other");
  CHECK(read->at(1).type == 7);
  CHECK(read->at(1).contents.empty());
  CHECK(text_of(find_build_id(bytes_of(four))) == "12345");

  const std::string eight = number(4) + number(1) + number(9) + std::string("GNU\0", 4) + "1" + std::string(7, '\0') +
                            number(4) + number(2) + number(3) + std::string("GNU\0", 4) + "ab";
  const auto padded = read_notes(bytes_of(eight), 8);
  REQUIRE(padded.has_value());
  REQUIRE(padded->size() == 2);
  CHECK(text_of(padded->at(1).contents) == "ab");

  for (const std::uint32_t before : {1u, 3u, 4u, 7u}) {
    INFO(before);
    const std::string first =
        number(4) + number(before) + number(1) + std::string("GNU\0", 4) + std::string(before, 'x');
    const std::string both = first + std::string((4 - before % 4) % 4, '\0') + number(4) + number(2) + number(3) +
                             std::string("GNU\0", 4) + "ab";
    CHECK(text_of(find_build_id(bytes_of(both))) == "ab");
  }
}

TEST_CASE("elf notes: a note that exceeds the segment is corrupt, and the message names both sizes") {
  const std::string whole = number(4) + number(4) + number(3) + std::string("GNU\0", 4) + "abcd";
  CHECK(text_of(find_build_id(bytes_of(whole))) == "abcd");
  const auto cut = bytes_of(whole).first(whole.size() - 1);
  const auto read = read_notes(cut);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().code == StatusCode::corrupt);
  CHECK_THAT(read.error().message, Contains("note of 4 bytes exceeds the segment of 19 bytes"));
  CHECK(find_build_id(cut).empty());
  for (const std::string& huge :
       {number(0xffffffff) + number(0) + number(3), number(0) + number(0xffffffff) + number(3)}) {
    CHECK_FALSE(read_notes(bytes_of(huge + "abcd")).has_value());
  }
  CHECK(read_notes({}).value().empty());
}

TEST_CASE("loaded libraries: the C library is one of them and holds its functions, and the heap is in none") {
  const auto c_library = library_holding(reinterpret_cast<const void*>(&gnu_get_libc_version));
  REQUIRE(c_library.has_value());
  CHECK_THAT(c_library->path, Contains("libc.so"));
  CHECK(c_library->build_id.size() >= 16);
  CHECK(c_library->build_id.find_first_not_of("0123456789abcdef") == std::string::npos);
  std::size_t found = 0;
  for (const LoadedLibrary& library : loaded_libraries()) {
    if (library.path != c_library->path) continue;
    ++found;
    CHECK(library.build_id == c_library->build_id);
  }
  CHECK(found == 1);
  // As this process has it in its memory.
  std::string expected;
  const auto visit = [](dl_phdr_info* loaded, std::size_t, void* into) {
    if (std::string_view(loaded->dlpi_name).find("libc.so") == std::string_view::npos) return 0;
    for (int i = 0; i < loaded->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = loaded->dlpi_phdr[i];
      if (segment.p_type != PT_NOTE) continue;
      const auto* const begin = reinterpret_cast<const std::byte*>(loaded->dlpi_addr + segment.p_vaddr);
      for (const std::byte each : find_build_id({begin, segment.p_memsz})) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(each));
        *static_cast<std::string*>(into) += digits;
      }
    }
    return 1;
  };
  dl_iterate_phdr(visit, &expected);
  CHECK(c_library->build_id == expected);
  const auto on_heap = std::make_unique<int>();
  CHECK_FALSE(library_holding(on_heap.get()).has_value());
}

}  // namespace
}  // namespace kiln
