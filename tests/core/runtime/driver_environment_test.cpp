// driver_environment: the variables that a driver is given, and the name of its folder, which its files decide.
#include "runtime/driver_environment.hpp"

#include <elf.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <kiln/digest.hpp>
#include <kiln/driver_cache.hpp>
#include <kiln/host_processor.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cache/workplace.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

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

void write_bytes(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
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
    write_bytes(file, image());
    const std::optional<ElfFacts> found = read_elf_facts(file);
    REQUIRE(found.has_value());
    return *found;
  }
};

// A driver or a library with a build-id, at a place that is made for it.
void install_driver(const fs::path& file, const std::string& build_id, const std::vector<std::string>& needed = {}) {
  SmallElf elf;
  std::uint64_t at = 1;
  for (const std::string& name : needed) {
    elf.needed.emplace_back(at, name);
    at += name.size() + 1;
  }
  add_note(elf.notes, NT_GNU_BUILD_ID, std::string_view("GNU", 4), build_id);
  fs::create_directories(file.parent_path());
  write_bytes(file, elf.image());
}

std::map<std::string, std::string> variables_of(const Config& config, const DriverSurroundings& surroundings) {
  const DriverEnvironment environment = driver_environment(config, surroundings);
  return {environment.set.begin(), environment.set.end()};
}

}  // namespace

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

TEST_CASE("runtime::driver_cache: a file that is not 64-bit little-endian ELF, or has too many headers, is no driver",
          "[runtime][driver_cache]") {
  const test::CacheTestFolder temporary;
  const fs::path file = temporary.path() / "driver.so";
  CHECK_FALSE(read_elf_facts(file).has_value());
  SmallElf elf;
  add_note(elf.notes, NT_GNU_BUILD_ID, std::string_view("GNU", 4), "name");
  const std::string good = elf.image();
  Elf64_Ehdr header{};
  const auto reread = [&] {
    std::string bytes = good;
    put_part(bytes, 0, header);
    write_bytes(file, bytes);
    return read_elf_facts(file);
  };
  const auto restore = [&] { std::memcpy(&header, good.data(), sizeof header); };
  restore();
  REQUIRE(reread().has_value());
  CHECK(reread()->build_id == "name");
  for (const int at : {EI_MAG0, EI_MAG3, EI_CLASS, EI_DATA}) {
    CAPTURE(at);
    restore();
    ++header.e_ident[at];
    CHECK_FALSE(reread().has_value());
  }
  restore();
  ++header.e_phentsize;
  CHECK_FALSE(reread().has_value());
  restore();
  header.e_phnum = 0;
  CHECK_FALSE(reread().has_value());
  restore();
  header.e_phoff = good.size();
  CHECK_FALSE(reread().has_value());
  for (const std::size_t length : {std::size_t{0}, sizeof header - 1}) {
    write_bytes(file, good.substr(0, length));
    CHECK_FALSE(read_elf_facts(file).has_value());
  }
  // As many headers as are read, and one more: the true ones come last.
  for (const std::size_t count : {64, 65}) {
    CAPTURE(count);
    std::string bytes = good;
    std::memcpy(&header, bytes.data(), sizeof header);
    const std::string headers = bytes.substr(header.e_phoff, 4 * sizeof(Elf64_Phdr));
    header.e_phoff = bytes.size();
    header.e_phnum = static_cast<Elf64_Half>(count);
    put_part(bytes, 0, header);
    bytes.append((count - 4) * sizeof(Elf64_Phdr), '\0');
    bytes += headers;
    write_bytes(file, bytes);
    const auto facts = read_elf_facts(file);
    CHECK(facts.has_value() == (count == 64));
    if (facts) CHECK(facts->build_id == "name");
  }
}

TEST_CASE("runtime::driver_cache: notes of more than 4 KiB and entries of more than 64 KiB are ignored",
          "[runtime][driver_cache]") {
  const test::CacheTestFolder temporary;
  const fs::path file = temporary.path() / "driver.so";
  for (const std::size_t bytes : {4096, 4100}) {
    CAPTURE(bytes);
    SmallElf elf;
    std::string last;
    add_note(last, NT_GNU_BUILD_ID, std::string_view("GNU", 4), "name");
    add_note(elf.notes, 7, std::string_view("GNU", 4), std::string(bytes - last.size() - sizeof(Elf64_Nhdr) - 4, 'x'));
    elf.notes += last;
    REQUIRE(elf.notes.size() == bytes);
    CHECK(elf.facts(file).build_id == (bytes == 4096 ? "name" : ""));
  }
  SmallElf elf;
  elf.needed = {{1, "libone.so.1"}};
  for (const std::size_t bytes : {64 << 10, (64 << 10) + 16}) {
    CAPTURE(bytes);
    std::string image = elf.image();
    const std::size_t at = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
    Elf64_Phdr dynamic{};
    std::memcpy(&dynamic, image.data() + at, sizeof dynamic);
    REQUIRE(dynamic.p_type == PT_DYNAMIC);
    dynamic.p_filesz = bytes;
    put_part(image, at, dynamic);
    image.resize(dynamic.p_offset + bytes);
    write_bytes(file, image);
    const auto facts = read_elf_facts(file);
    REQUIRE(facts.has_value());
    CHECK(facts->needed.size() == (bytes == (64 << 10) ? 1 : 0));
  }
}

TEST_CASE("runtime::driver_cache: settings become variables, but for those that the user has set",
          "[runtime][driver_cache]") {
  Config config;
  config.cache.directory = "/cache";
  config.cache.max_disk = std::uint64_t{3} << 20;
  DriverSurroundings surroundings;
  auto variables = variables_of(config, surroundings);
  CHECK(variables.size() == 2);
  CHECK(fs::path(variables["MESA_SHADER_CACHE_DIR"]).parent_path() == "/cache/driver");
  CHECK(variables["MESA_SHADER_CACHE_MAX_SIZE"] == "1536K");

  auto& section = config.plugin["opengl"];
  section["vector_width"].value = std::int64_t{256};
  section["threads"].value = std::int64_t{0};
  config.cache.max_disk = 100;
  variables = variables_of(config, surroundings);
  CHECK(variables.size() == 4);
  CHECK(variables["LP_NATIVE_VECTOR_WIDTH"] == "256");
  CHECK(variables["LP_NUM_THREADS"] == "0");
  CHECK(variables["MESA_SHADER_CACHE_MAX_SIZE"] == "1K");
  section["vector_width"].value = std::int64_t{0};
  section["threads"].value = std::int64_t{-1};
  CHECK(variables_of(config, surroundings).size() == 2);
  section["vector_width"].value = std::string("wide");
  section["threads"].value = true;
  CHECK(variables_of(config, surroundings).size() == 2);
  section["vector_width"].value = std::int64_t{1};
  section["threads"].value = std::int64_t{1};

  surroundings.variables = {
      {"LP_NUM_THREADS", "2"}, {"MESA_SHADER_CACHE_DIR", "/mine"}, {"MESA_SHADER_CACHE_MAX_SIZE", "9G"}};
  DriverEnvironment environment = driver_environment(config, surroundings);
  CHECK(environment.kept == std::vector<std::string>{"LP_NUM_THREADS", "MESA_SHADER_CACHE_MAX_SIZE"});
  REQUIRE(environment.set.size() == 2);
  CHECK(environment.set[0].first == "LP_NATIVE_VECTOR_WIDTH");
  CHECK(environment.set[1].first == "MESA_SHADER_CACHE_DIR");
  surroundings.variables = {{"MESA_SHADER_CACHE_DIR", environment.set[1].second}};  // one of its own
  environment = driver_environment(config, surroundings);
  CHECK(environment.kept == std::vector<std::string>{"MESA_SHADER_CACHE_DIR"});
}

TEST_CASE("runtime::driver_cache: the folder is in memory, else in the cache folder, else there is none",
          "[runtime][driver_cache]") {
  Config config;
  config.cache.directory = "/cache";
  DriverSurroundings surroundings;
  surroundings.memory_folder = "/memory";
  const auto around = [&] {
    const fs::path folder = variables_of(config, surroundings)["MESA_SHADER_CACHE_DIR"];
    return folder == no_driver_cache ? std::string("none") : folder.parent_path().string();
  };
  for (const bool read_only : {false, true}) {
    config.cache.read_only = read_only;
    CHECK(around() == "/memory/driver");
  }
  surroundings.memory_folder.clear();
  CHECK(around() == "none");
  CHECK(variables_of(config, surroundings).size() == 1);
  config.cache.read_only = false;
  CHECK(around() == "/cache/driver");
  config.cache.directory.clear();
  CHECK(around() == "none");
}

TEST_CASE("runtime::driver_cache: the surroundings are the variables, the user's memory and the system's libraries",
          "[runtime][driver_cache]") {
  const test::CacheTestFolder temporary;
  struct statfs shared {};
  const bool in_memory = statfs("/dev/shm", &shared) == 0 && shared.f_type == 0x01021994;  // tmpfs
  const std::string otherwise = in_memory ? "/dev/shm/kiln-" + std::to_string(geteuid()) : "";
  const test::ChildEnd end = test::in_child([&]() -> std::string {
    std::string wrong;
    const auto check = [&](bool good, const char* what) { wrong += good ? "" : std::string(what) + "; "; };
    const auto memory_with = [&](const std::string& runtime) {
      setenv("XDG_RUNTIME_DIR", runtime.c_str(), 1);
      return surroundings_of_process().memory_folder.string();
    };
    setenv("KILN_TEST_TEXT", "a=b", 1);
    const DriverSurroundings surroundings = surroundings_of_process();
    const auto text = surroundings.variables.find("KILN_TEST_TEXT");
    check(text != surroundings.variables.end() && text->second == "a=b", "variable");
    const std::vector<fs::path>& folders = surroundings.library_folders;
    check(folders.size() >= 2, "number of folders");
    check(folders.end()[-2] == "/usr/lib64" && folders.back() == "/usr/lib", "folders");
    check(memory_with(temporary.path().string()) == (temporary.path() / "kiln").string(), "folder in memory");
    check(memory_with("relative") == otherwise, "relative folder");
    check(memory_with((temporary.path() / "absent").string()) == otherwise, "absent folder");
    unsetenv("XDG_RUNTIME_DIR");
    check(surroundings_of_process().memory_folder == otherwise, "no folder");
    return wrong;
  });
  CHECK(end.said == "");
  CHECK(end.signal == 0);
}

TEST_CASE("runtime::driver_cache: the folder name depends on the driver's files and on libraries that make code",
          "[runtime][driver_cache]") {
  const test::CacheTestFolder temporary;
  const fs::path one = temporary.path() / "one", two = temporary.path() / "two", own = temporary.path() / "own";
  install_driver(one / "dri" / "swrast_dri.so", "driver", {"libLLVM-15.so.1", "libc.so.6", "libgallium-23.so"});
  install_driver(one / "libc.so.6", "libc");
  install_driver(one / "libgallium-23.so", "gallium", {"libLLVM-15.so.1", "libgallium-23.so"});
  install_driver(two / "libgallium-23.so", "another gallium");  // behind the one that is found
  install_driver(two / "libLLVM-15.so.1", "llvm");
  install_driver(two / "libEGL_mesa.so.0", "egl", {"libLLVM-99.so"});
  install_driver(one / "libvulkan_lvp.so", "lavapipe");
  install_driver(two / "libvulkan_radeon.so", "radv");
  install_driver(own / "swrast_dri.so", "own driver");
  Config config;
  config.cache.directory = "/cache";
  DriverSurroundings surroundings;
  surroundings.library_folders = {one, two};
  const auto setting = [&] { return driver_setting_of(variables_of(config, surroundings)["MESA_SHADER_CACHE_DIR"]); };
  KeyEncoder plain;
  plain.field("schema", std::uint64_t{1});
  plain.field("instructions", host_instructions());
  const auto add_egl = [](KeyEncoder& encoder) {
    encoder.field("build_id.libEGL_mesa.so.0", "egl");
    encoder.field("needs", "libLLVM-99.so");  // which is not there
  };

  KeyEncoder encoder = plain;
  encoder.field("build_id.swrast_dri.so", "driver");
  encoder.field("needs", "libLLVM-15.so.1");
  encoder.field("build_id.libLLVM-15.so.1", "llvm");
  encoder.field("needs", "libgallium-23.so");
  encoder.field("build_id.libgallium-23.so", "gallium");
  encoder.field("needs", "libLLVM-15.so.1");  // both are known
  encoder.field("needs", "libgallium-23.so");
  add_egl(encoder);
  CHECK(setting() == encoder.digest().hex());

  config.plugins.load = {"cpu", "vulkan"};
  encoder.field("build_id.libvulkan_lvp.so", "lavapipe");
  encoder.field("build_id.libvulkan_radeon.so", "radv");
  CHECK(setting() == encoder.digest().hex());

  config.plugins.load = {"cpu"};
  surroundings.variables["LIBGL_DRIVERS_PATH"] = ":" + own.string() + "::/nowhere";
  encoder = plain;
  encoder.field("build_id.swrast_dri.so", "own driver");
  add_egl(encoder);
  CHECK(setting() == encoder.digest().hex());
  surroundings.variables["LIBGL_DRIVERS_PATH"] = "/nowhere:" + own.string();
  CHECK(setting() == encoder.digest().hex());
}

TEST_CASE("runtime::driver_cache: the folder name depends on settings and processor features",
          "[runtime][driver_cache]") {
  Config config;
  config.cache.directory = "/cache";
  DriverSurroundings surroundings;  // without drivers
  surroundings.variables = {{"LP_NATIVE_VECTOR_WIDTH", "128"}, {"LP_NUM_THREADS", "3"}, {"HOME", "/elsewhere"}};
  KeyEncoder encoder;
  encoder.field("schema", std::uint64_t{1});
  encoder.field("setting.GALLIUM_DRIVER", "llvmpipe");
  encoder.field("setting.GALLIVM_DEBUG", "nopt");
  encoder.field("setting.LP_NATIVE_VECTOR_WIDTH", "128");
  encoder.field("instructions", host_instructions());
  surroundings.variables["GALLIVM_DEBUG"] = "nopt";
  surroundings.variables["GALLIUM_DRIVER"] = "llvmpipe";
  std::string folder;
  for (const auto& [name, value] : driver_environment(config, surroundings).set) {
    if (name == "MESA_SHADER_CACHE_DIR") folder = value;
  }
  CHECK(fs::path(folder).parent_path() == "/cache/driver");
  CHECK(driver_setting_of(folder) == encoder.digest().hex());
  surroundings.variables.erase("LP_NATIVE_VECTOR_WIDTH");
  config.plugin["opengl"]["vector_width"].value = std::int64_t{128};  // by the configuration: the same code
  CHECK(driver_setting_of(variables_of(config, surroundings)["MESA_SHADER_CACHE_DIR"]) == encoder.digest().hex());
}

}  // namespace kiln
