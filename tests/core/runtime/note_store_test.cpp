// NoteStore: what one process keeps another finds; nothing that was altered, misplaced or another's is believed.
#include "runtime/device_table.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/cache/copied_bytes.hpp"
#include "core/cache/workplace.hpp"

namespace kiln {
namespace {

struct NoteFolder {
  test::CacheTestFolder temporary;
  CacheConfig config;
  NoteFolder() {
    config.directory = temporary.path() / "cache";
    config.key_file = temporary.path() / "state" / "key";
  }
  std::filesystem::path only_note() const {
    for (const auto& file : std::filesystem::directory_iterator(config.directory / "notes")) return file.path();
    return {};
  }
};

}  // namespace

TEST_CASE("runtime::NoteStore: a note outlives its store, under its name and its driver only", "[runtime][notes]") {
  const NoteFolder place;
  NoteStore(place.config, "opengl").keep("canary of Mesa", test::copied_bytes("sha"));
  NoteStore later(place.config, "opengl");
  CHECK(later.find("canary of Mesa") == test::copied_bytes("sha"));
  CHECK(later.find("canary of Mes") == std::nullopt);
  CHECK(NoteStore(place.config, "cpu").find("canary of Mesa") == std::nullopt);
  later.keep("canary of Mesa", test::copied_bytes("another"));
  CHECK(later.find("canary of Mesa") == test::copied_bytes("another"));
}

TEST_CASE("runtime::NoteStore: every altered byte and every truncation makes a note unknown", "[runtime][notes]") {
  const NoteFolder place;
  NoteStore(place.config, "cpu").keep("layout", test::copied_bytes("nChw8c"));
  const std::filesystem::path file = place.only_note();
  std::string good;
  {
    std::ifstream in(file, std::ios::binary);
    good.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto write = [&](const std::string& text) { std::ofstream(file, std::ios::binary) << text; };
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write(bad);
    REQUIRE(NoteStore(place.config, "cpu").find("layout") == std::nullopt);
    write(good.substr(0, at));
    REQUIRE(NoteStore(place.config, "cpu").find("layout") == std::nullopt);
  }
  write(good);
  CHECK(NoteStore(place.config, "cpu").find("layout") == test::copied_bytes("nChw8c"));
}

TEST_CASE("runtime::NoteStore: a good note under another's file name is not believed", "[runtime][notes]") {
  const NoteFolder place;
  NoteStore store(place.config, "cpu");
  store.keep("a", test::copied_bytes("1"));
  const std::filesystem::path of_a = place.only_note();
  std::filesystem::rename(of_a, place.temporary.path() / "aside");
  store.keep("b", test::copied_bytes("2"));
  std::filesystem::rename(place.temporary.path() / "aside", place.only_note());
  CHECK(store.find("b") == std::nullopt);
}

TEST_CASE("runtime::NoteStore: without a folder, a key or leave to write it keeps nothing and leaves no trace",
          "[runtime][notes]") {
  NoteFolder place;
  SECTION("no folder is configured") { place.config.directory.clear(); }
  SECTION("no key is configured") { place.config.key_file.clear(); }
  SECTION("read only") { place.config.read_only = true; }
  NoteStore store(place.config, "cpu");
  store.keep("a", test::copied_bytes("1"));
  CHECK(store.find("a") == std::nullopt);
  CHECK_FALSE(std::filesystem::exists(place.temporary.path() / "cache"));
}

TEST_CASE("runtime::NoteStore: a store that is only read finds what others keep, and makes no key",
          "[runtime][notes]") {
  NoteFolder place;
  NoteStore(place.config, "cpu").keep("a", test::copied_bytes("1"));
  place.config.read_only = true;
  NoteStore reader(place.config, "cpu");
  CHECK(reader.find("a") == test::copied_bytes("1"));
  reader.keep("a", test::copied_bytes("2"));
  reader.keep("b", test::copied_bytes("2"));
  CHECK(reader.find("a") == test::copied_bytes("1"));
  CHECK(reader.find("b") == std::nullopt);
  place.config.key_file = place.temporary.path() / "state" / "another key";
  CHECK(NoteStore(place.config, "cpu").find("a") == std::nullopt);
  CHECK_FALSE(std::filesystem::exists(place.config.key_file));
}

TEST_CASE("runtime::NoteStore: a note beyond 64 KiB is not kept", "[runtime][notes]") {
  const NoteFolder place;
  NoteStore store(place.config, "cpu");
  store.keep("large", std::vector<std::byte>((64u << 10) + 1));
  CHECK(store.find("large") == std::nullopt);
  store.keep("largest", std::vector<std::byte>(64u << 10));
  CHECK(store.find("largest").has_value());
}

}  // namespace kiln
