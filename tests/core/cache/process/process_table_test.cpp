// The file `processes`: slots are taken over, not added; whatever stands in it does no harm.
#include "cache/process_table.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace kiln::test {
namespace {

std::string table_text(const std::filesystem::path& path) {
  const auto bytes = contents(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Folder : Workplace {
  SyntheticDevice device;
  std::filesystem::path table;

  Folder() {
    REQUIRE(acquire(*open(), "one", device));
    for (const auto& file : files("")) {
      if (file.filename() == "processes") table = file;
    }
    REQUIRE_FALSE(table.empty());
  }
};

TEST_CASE("cache::process_table: it says who is there, and forgets them when they leave") {
  Folder folder;
  {
    const auto cache = folder.open();
    REQUIRE(acquire(*cache, "one", folder.device));
    CHECK(table_text(folder.table).starts_with("process " + std::to_string(getpid()) + " since "));
    const auto other = folder.open();
    REQUIRE(acquire(*other, "one", folder.device));
    CHECK(table_text(folder.table).substr(slot_bytes).starts_with("process " + std::to_string(getpid()) + " since "));
  }
  CHECK(table_text(folder.table).find("process ") == std::string::npos);
}

TEST_CASE("cache::process_table: a hundred processes one after another, killed or not, leave one slot") {
  Folder folder;
  for (int i = 0; i < 100; ++i) {
    in_child([&]() -> std::string {
      const auto cache = folder.open();
      if (!acquire(*cache, std::to_string(i % 10), folder.device)) return "was not served";
      if (i % 2 == 0) kill(getpid(), SIGKILL);
      return {};
    });
  }
  CHECK(std::filesystem::file_size(folder.table) == slot_bytes);
  const auto device_folder = folder.table.parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(device_folder)) {
    if (entry.is_directory()) continue;
    CHECK((entry.path().filename() == "processes" || entry.path().filename() == "manifest.json"));
  }
}

TEST_CASE("cache::process_table: it says who builds what") {
  Folder folder;
  std::string during;
  folder.device.on_build = [&](const KernelSource&) { during = table_text(folder.table); };
  REQUIRE(acquire(*folder.open(), "two", folder.device));
  CHECK(during.find("building " + key_for("two", folder.device).digest.hex()) != std::string::npos);
}

TEST_CASE("cache::process_table: a slot holds twenty marks, one more has none, and free places are used again") {
  Folder folder;
  const auto root = open_folder(folder.config.directory, Create::no);
  REQUIRE(root);
  DeviceFolder device_folder(root->get(), folder.device.info());
  const ProcessSharing sharing{};
  ProcessTable table(device_folder, sharing, {&folder.log, LogLevel::info}, [](const ProcessMark&) {});
  const auto marked = [&] {
    std::set<std::string> digests;
    for (const ProcessMark& mark : marks_of_slot(table_text(folder.table))) digests.insert(mark.digest.hex());
    return digests;
  };
  std::set<std::string> expected;
  std::vector<LoadGuard> guards;
  for (std::size_t i = 0; i < 20; ++i) {
    INFO("mark " << i);
    const Digest digest = sha256(std::to_string(i));
    guards.push_back(table.loading(digest));
    CHECK(static_cast<bool>(guards.back()));
    expected.insert(digest.hex());
    CHECK(marked() == expected);
  }
  CHECK_FALSE(static_cast<bool>(table.loading(sha256("more"))));
  CHECK(marked() == expected);
  CHECK(std::filesystem::file_size(folder.table) == 2048);
  for (std::size_t i = 0; i < 20; ++i) {
    INFO("place " << i);
    guards[i] = LoadGuard();
    expected.erase(sha256(std::to_string(i)).hex());
    CHECK(marked() == expected);
    const Digest again = sha256("again " + std::to_string(i));
    guards[i] = table.loading(again);
    CHECK(static_cast<bool>(guards[i]));
    expected.insert(again.hex());
    CHECK(marked() == expected);
  }
  guards.clear();
  CHECK(marked().empty());
}

TEST_CASE("cache::process_table: what dead processes left is wiped, looked after once, and its slots are used again") {
  Folder folder;
  std::string dead;
  for (const char* program : {"first", "second", "third"}) {
    std::string slot = encode_slot(1, 1);
    const MarkText mark = encode_mark({Doing::loading, sha256(program), 2'000'000'000});
    slot.replace(slot_header_bytes, mark_bytes, mark.data(), mark_bytes);
    dead += slot;
  }
  overwrite(folder.table, std::as_bytes(std::span(dead)));
  const std::string here = "process " + std::to_string(getpid()) + " since ";
  const auto slot = [&](std::size_t place) { return table_text(folder.table).substr(place * slot_bytes, slot_bytes); };
  const auto one = folder.open();
  REQUIRE(acquire(*one, "one", folder.device));
  CHECK(folder.files(".quarantined").size() == 3);
  CHECK(slot(0).starts_with(here));
  CHECK(marks_of_slot(slot(0)).empty());
  CHECK(slot(1) == encode_slot(0, 0));
  CHECK(slot(2) == encode_slot(0, 0));
  const auto two = folder.open(), three = folder.open();
  REQUIRE(acquire(*two, "one", folder.device));
  REQUIRE(acquire(*three, "one", folder.device));
  CHECK(slot(1).starts_with(here));
  CHECK(slot(2).starts_with(here));
  CHECK(std::filesystem::file_size(folder.table) == 3 * slot_bytes);
}

TEST_CASE("cache::process_table: whatever stands in it, programs are served") {
  Folder folder;
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    std::vector<std::byte> noise(random() % (3 * slot_bytes));
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
    overwrite(folder.table, noise);
    const auto cache = folder.open();
    CHECK(acquire(*cache, "one", folder.device)->tier == Tier::disk);
    CHECK(acquire(*cache, "new " + std::to_string(i), folder.device)->tier == Tier::built);
  }
  CHECK(folder.device.false_bytes == 0);
  CHECK(folder.log.warnings().empty());
}

TEST_CASE("cache::process_table: the mark of a program that is not there quarantines that alone") {
  Folder folder;
  std::string slot = encode_slot(1, 1);
  const MarkText mark = encode_mark({Doing::loading, sha256("nothing"), 2'000'000'000});
  slot.replace(slot_header_bytes, mark_bytes, mark.data(), mark_bytes);
  overwrite(folder.table, std::as_bytes(std::span(slot)));
  CHECK(acquire(*folder.open(), "one", folder.device)->tier == Tier::disk);
  CHECK(folder.files(".quarantined").size() == 1);
  CHECK(folder.log.warnings().empty());
  CHECK(folder.log.said("program " + sha256("nothing").hex() + " in folder " +
                        device_folder_name(folder.device.info()) +
                        ": a process died while a driver loaded the program: the program is not taken from layers and "
                        "remotes") == 1);
}

TEST_CASE("cache::process_table: a link, a folder or a pipe in its place: no sharing, said, and programs are served") {
  Folder folder;
  std::filesystem::remove(folder.table);
  const auto elsewhere = folder.temporary.path() / "elsewhere";
  SECTION("a link") {
    overwrite(elsewhere, {});
    std::filesystem::create_symlink(elsewhere, folder.table);
  }
  SECTION("a folder") { std::filesystem::create_directory(folder.table); }
  SECTION("a pipe") { REQUIRE(mkfifo(folder.table.c_str(), 0600) == 0); }
  const auto cache = folder.open();
  CHECK(acquire(*cache, "one", folder.device)->tier == Tier::disk);
  CHECK(acquire(*cache, "two", folder.device)->tier == Tier::built);
  CHECK(folder.log.warnings().empty());
  CHECK(folder.log.said("processes do not share their builds") == 1);
  if (std::filesystem::exists(elsewhere)) CHECK(contents(elsewhere).empty());
}

}  // namespace
}  // namespace kiln::test
