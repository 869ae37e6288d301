// prepare_driver_cache: what a driver is given is this user's alone, and what it maps has blocks. Names of its folder.
#include "runtime/driver_environment.hpp"

#include <elf.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <kiln/digest.hpp>
#include <kiln/driver_cache.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cache/in_child.hpp"
#include "core/cache/workplace.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kiln {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

struct Place {
  test::CacheTestFolder temporary;
  fs::path driver = temporary.path() / "cache" / "driver";
  fs::path folder = driver / "name";
  fs::path index = folder / "mesa_shader_cache" / "index";
};

// In a child whose files may have so many bytes: the error; empty: there is none.
std::string prepared_with_room(const fs::path& folder, rlim_t bytes) {
  const test::ChildEnd end = test::in_child([&]() -> std::string {
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit can be set";
    return prepare_driver_cache(folder).message;
  });
  CHECK(end.signal == 0);
  return end.said;
}

template <class Part>
void put_part(std::string& image, std::size_t at, const Part& part) {
  if (image.size() < at + sizeof part) image.resize(at + sizeof part);
  std::memcpy(image.data() + at, &part, sizeof part);
}

void add_note(std::string& notes, Elf64_Word type, std::string_view owner, std::string_view text) {
  Elf64_Nhdr note{};
  note.n_namesz = static_cast<Elf64_Word>(owner.size());
  note.n_descsz = static_cast<Elf64_Word>(text.size());
  note.n_type = type;
  notes.append(reinterpret_cast<const char*>(&note), sizeof note);
  for (const std::string_view part : {owner, text}) {
    notes.append(part);
    notes.resize((notes.size() + 3) / 4 * 4);
  }
}

// A file with a build-id and the names of libraries. The names lie at another place in memory than in the file.
struct SmallElf {
  static constexpr std::uint64_t loaded_from = 0x1000, loaded_to = 0x5000;
  std::uint64_t loaded_bytes = 0x100;
  std::uint64_t table = loaded_to + 0x10;                     // in memory
  std::vector<std::pair<std::uint64_t, std::string>> needed;  // place in the table, name
  std::string notes;

  std::string image() const {
    constexpr std::size_t notes_at = 0x400, dynamic_at = 0x600;
    std::string bytes;
    Elf64_Ehdr elf{};
    std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
    elf.e_ident[EI_CLASS] = ELFCLASS64;
    elf.e_ident[EI_DATA] = ELFDATA2LSB;
    elf.e_phoff = sizeof elf;
    elf.e_phentsize = sizeof(Elf64_Phdr);
    elf.e_phnum = 4;
    put_part(bytes, 0, elf);
    std::vector<Elf64_Dyn> entries;
    const auto add_entry = [&](Elf64_Sxword tag, std::uint64_t value) {
      Elf64_Dyn entry{};
      entry.d_tag = tag;
      entry.d_un.d_val = value;
      entries.push_back(entry);
    };
    for (const auto& [at, name] : needed) {
      add_entry(DT_NEEDED, at);
      const std::uint64_t in_file = table - loaded_to + loaded_from + at;
      if (bytes.size() < in_file + name.size() + 1) bytes.resize(in_file + name.size() + 1);
      bytes.replace(in_file, name.size(), name);
    }
    add_entry(DT_STRTAB, table);
    add_entry(DT_NULL, 0);
    std::size_t header_at = sizeof elf;
    const auto add_header = [&](Elf64_Word type, std::uint64_t from, std::uint64_t to, std::uint64_t size) {
      Elf64_Phdr header{};
      header.p_type = type;
      header.p_offset = from;
      header.p_vaddr = to;
      header.p_filesz = size;
      put_part(bytes, header_at, header);
      header_at += sizeof header;
    };
    add_header(PT_LOAD, 0, 0, 0x800);
    add_header(PT_LOAD, loaded_from, loaded_to, loaded_bytes);
    add_header(PT_NOTE, notes_at, notes_at, notes.size());
    add_header(PT_DYNAMIC, dynamic_at, dynamic_at, entries.size() * sizeof(Elf64_Dyn));
    for (std::size_t i = 0; i < entries.size(); ++i) put_part(bytes, dynamic_at + i * sizeof(Elf64_Dyn), entries[i]);
    if (bytes.size() < notes_at + notes.size()) bytes.resize(notes_at + notes.size());
    bytes.replace(notes_at, notes.size(), notes);
    return bytes;
  }
  ElfFacts facts(const fs::path& file) const {
    const std::string bytes = image();
    std::ofstream(file, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const std::optional<ElfFacts> found = read_elf_facts(file);
    REQUIRE(found.has_value());
    return *found;
  }
};

}  // namespace

TEST_CASE("runtime::driver_cache: what is missing is made for this user alone, with blocks for what Mesa maps",
          "[runtime][driver_cache]") {
  const Place place;
  REQUIRE(prepare_driver_cache(place.folder).ok());
  CHECK(check_private_folder(place.folder).ok());
  struct stat at {};
  REQUIRE(stat(place.index.c_str(), &at) == 0);
  CHECK(at.st_size == 1310728);
  CHECK(at.st_blocks * 512 >= at.st_size);
  CHECK((at.st_mode & 0777) == 0600);

  fs::resize_file(place.index, 0);
  fs::resize_file(place.index, 1310728);  // sparse, as Mesa makes it
  REQUIRE(stat(place.index.c_str(), &at) == 0);
  REQUIRE(at.st_blocks * 512 < at.st_size);
  REQUIRE(prepare_driver_cache(place.folder).ok());
  REQUIRE(stat(place.index.c_str(), &at) == 0);
  CHECK(at.st_blocks * 512 >= at.st_size);
}

TEST_CASE("runtime::driver_cache: a folder that others can change is named, and nothing is made in it",
          "[runtime][driver_cache]") {
  const Place place;
  fs::create_directories(place.folder);
  fs::permissions(place.folder, fs::perms::owner_all);
  const auto refused = [&](const char* why) {
    const Status status = prepare_driver_cache(place.folder);
    INFO(status.text());
    CHECK(status.code == StatusCode::unavailable);
    CHECK_THAT(status.message, Contains(why));
    CHECK_FALSE(fs::exists(place.index));
  };
  SECTION("its mode") {
    fs::permissions(place.folder, fs::perms(0777));
    refused("0777");
    fs::permissions(place.folder, fs::perms(0750));
    refused("0750, expected 0700");
  }
  SECTION("a link") {
    fs::rename(place.folder, place.driver / "elsewhere");
    fs::create_directory_symlink(place.driver / "elsewhere", place.folder);
    refused("link");
  }
  SECTION("the folder above it") {
    fs::permissions(place.driver, fs::perms(0777));
    refused("0777");
    fs::remove(place.folder);
    refused("0777");
    CHECK(fs::is_empty(place.driver));
  }
  SECTION("where a link above it leads") {
    fs::rename(place.driver, place.temporary.path() / "open");
    fs::permissions(place.temporary.path() / "open", fs::perms(0777));
    fs::create_directory_symlink(place.temporary.path() / "open", place.driver);
    refused("0777");
  }
}

TEST_CASE("runtime::driver_cache: a file without enough space is reported and removed", "[runtime][driver_cache]") {
  const Place place;
  REQUIRE(prepare_driver_cache(place.folder).ok());
  REQUIRE(fs::remove(place.index));
  const std::string why = prepared_with_room(place.folder, 1310727);
  CHECK_THAT(why, Contains("file " + place.index.string()) && Contains("cannot be extended to 1310728 bytes"));
  CHECK_FALSE(fs::exists(place.index));

  std::ofstream(place.index, std::ios::binary) << "12345";  // what a driver has written is left to it
  fs::permissions(place.index, fs::perms::owner_read | fs::perms::owner_write);
  CHECK_THAT(prepared_with_room(place.folder, 1310727), Contains("cannot be extended to 1310728 bytes"));
  REQUIRE(fs::exists(place.index));
  CHECK(fs::file_size(place.index) == 5);

  CHECK(prepared_with_room(place.folder, 1310728) == "");
  CHECK(fs::file_size(place.index) == 1310728);
}

TEST_CASE("runtime::driver_cache: reads the build id and the needed libraries of a driver file",
          "[runtime][driver_cache]") {
  const test::CacheTestFolder temporary;
  const fs::path file = temporary.path() / "driver.so";
  const std::string build_id = "twenty bytes of them";
  const std::vector<std::string> both{"libtwo.so.2", "libone.so.1"};
  SmallElf elf;
  elf.needed = {{40, "libtwo.so.2"}, {1, "libone.so.1"}};
  add_note(elf.notes, 7, std::string_view("GNU", 4), "of another type");
  add_note(elf.notes, NT_GNU_BUILD_ID, "other", "of another owner");
  add_note(elf.notes, NT_GNU_BUILD_ID, std::string_view("GNU", 4), build_id);
  CHECK(elf.facts(file).build_id == build_id);
  CHECK(elf.facts(file).needed == both);
  SECTION("names at the end of what is loaded, and beyond it") {
    elf.table = SmallElf::loaded_to + elf.loaded_bytes - 1;
    CHECK(elf.facts(file).needed == both);
    elf.table = SmallElf::loaded_to + elf.loaded_bytes;
    CHECK(elf.facts(file).needed.empty());
    CHECK(elf.facts(file).build_id == build_id);
  }
  SECTION("a table of more than 4 MiB is not looked at") {
    elf.needed.emplace_back(4 << 20, "libthree.so.3");
    CHECK(elf.facts(file).needed == std::vector<std::string>{"libtwo.so.2", "libone.so.1", "libthree.so.3"});
    ++elf.needed.back().first;
    CHECK(elf.facts(file).needed.empty());
    CHECK(elf.facts(file).build_id == build_id);
  }
  SECTION("no names") {
    elf.needed.clear();
    CHECK(elf.facts(file).needed.empty());
    CHECK(elf.facts(file).build_id == build_id);
  }
}

#if defined(__x86_64__)
TEST_CASE("runtime::driver_cache: the folder name depends on settings and processor features",
          "[runtime][driver_cache]") {
  Config config;
  config.cache.directory = "/cache";
  DriverSurroundings surroundings;  // without drivers
  surroundings.variables = {{"LP_NATIVE_VECTOR_WIDTH", "128"}, {"LP_NUM_THREADS", "3"}, {"HOME", "/elsewhere"}};
  KeyEncoder encoder;
  encoder.field("schema", std::uint64_t{1});
  encoder.field("setting.LP_NATIVE_VECTOR_WIDTH", "128");
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) {
    encoder.field("cpuid.1.ecx", std::uint64_t{c & 0xf7ffffffu});  // but for what the operating system sets
    encoder.field("cpuid.1.edx", std::uint64_t{d});
  }
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    encoder.field("cpuid.7.ebx", std::uint64_t{b});
    encoder.field("cpuid.7.ecx", std::uint64_t{c & 0xffffffefu});
  }
  std::string folder;
  for (const auto& [name, value] : driver_environment(config, surroundings).set) {
    if (name == "MESA_SHADER_CACHE_DIR") folder = value;
  }
  CHECK(fs::path(folder).parent_path() == "/cache/driver");
  CHECK(driver_setting_of(folder) == encoder.digest().hex());
}
#endif

TEST_CASE("runtime::driver_cache: where nothing can be made it says what and why", "[runtime][driver_cache]") {
  const Status status = prepare_driver_cache(no_driver_cache);
  CHECK_FALSE(status.ok());
  const Status below = prepare_driver_cache("/proc/none/driver");
  CHECK(below.code == StatusCode::io);
  CHECK_THAT(below.message, Contains("/proc/none"));
}

}  // namespace kiln
