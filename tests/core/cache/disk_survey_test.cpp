// What lies in a cache folder: which names count, what a walk sweeps, and the text of the figure that processes share.
#include "base/os/private_folder.hpp"
#include "cache/disk_bound.hpp"
#include "core/cache/workplace.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <set>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("cache::survey: which names are those of programs and of their folders") {
  const std::string hex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  for (const std::string& name : {hex + ".bin", hex + ".meta"}) CHECK(is_stored_file_name(name));
  for (const std::string& name :
       {std::string(), std::string(".bin"), hex, hex + ".BIN", hex + ".bin2", hex + ".metabin", hex.substr(1) + ".bin",
        "0" + hex + ".bin", "g" + hex.substr(1) + ".bin", hex + ".quarantined", hex + ".suspect"}) {
    CAPTURE(name);
    CHECK_FALSE(is_stored_file_name(name));
  }
  for (int code = 0; code < 256; ++code) {
    const char c = static_cast<char>(code);
    const bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    CAPTURE(code);
    CHECK(is_subfolder_name(std::string("0") + c) == is_digit);
    CHECK(is_subfolder_name(c + std::string("f")) == is_digit);
  }
  for (const char* name : {"", "a", "abc"}) CHECK_FALSE(is_subfolder_name(name));
  const auto digest = Digest::from_hex(hex);
  REQUIRE(digest);
  CHECK(subfolder_of(*digest) == "01");
  CHECK(file_name_of(*digest, ".bin") == hex + ".bin");
}

TEST_CASE("cache::survey: a walk sweeps what was being written ten minutes ago, and quarantines of a week ago") {
  Workplace place;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  const auto program = place.files(".bin").at(0);
  const auto inner = program.parent_path(), folder = inner.parent_path();
  std::filesystem::path temporary;
  {
    const auto opened = open_folder(inner, Create::no);
    REQUIRE(opened);
    auto made = NewFile::create(opened->get(), "x");
    REQUIRE(made);
    for (const auto& entry : std::filesystem::directory_iterator(inner)) {
      if (NewFile::is_temporary(entry.path().filename().string())) temporary = entry.path().filename();
    }
  }
  REQUIRE_FALSE(temporary.empty());
  const auto put = [](const std::filesystem::path& path, std::chrono::seconds age) {
    std::ofstream(path) << "1234";
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - age);
  };
  const auto ages = GENERATE(table<std::chrono::seconds, std::chrono::seconds, bool>(
      {{500s, 6 * 24h, true}, {700s, 8 * 24h, false}, {-500s, -6 * 24h, true}, {-700s, -8 * 24h, false}}));
  const auto& [of_temporary, of_aside, stays] = ages;
  const std::vector<std::filesystem::path> files{place.config.directory / temporary, folder / temporary,
                                                 inner / temporary, inner / (std::string(64, 'a') + ".quarantined"),
                                                 inner / (std::string(64, 'b') + ".suspect")};
  const std::filesystem::path other = inner / "other";
  for (std::size_t i = 0; i < files.size(); ++i) put(files[i], i < 3 ? of_temporary : of_aside);
  put(other, 30 * 24h);
  const auto root = open_folder(place.config.directory, Create::no);
  REQUIRE(root);
  const Survey looked = survey(root->get(), Sweep::no);
  CHECK(looked.failure.ok());
  CHECK(looked.entries.size() == 1);
  REQUIRE(looked.aside.size() == 2);
  CHECK(looked.aside[0].quarantined != looked.aside[1].quarantined);
  for (const auto& file : files) CHECK(std::filesystem::exists(file));
  static_cast<void>(survey(root->get(), Sweep::yes));
  for (const auto& file : files) {
    CAPTURE(file);
    CHECK(std::filesystem::exists(file) == stays);
  }
  CHECK(std::filesystem::exists(other));
  CHECK(std::filesystem::exists(program));
}

TEST_CASE("cache::survey: what an entry is made of") {
  Workplace place;
  SyntheticDevice device;
  for (const char* text : {"one", "two"}) REQUIRE(acquire(*place.open(), text, device));
  const ProgramKey one = key_for("one", device), two = key_for("two", device);
  const auto now = std::filesystem::file_time_type::clock::now();
  std::uint64_t bytes = 0;
  for (const char* suffix : {".bin", ".meta"}) {
    const auto file = place.named(one.digest.hex() + suffix).at(0);
    bytes += std::filesystem::file_size(file);
    std::filesystem::last_write_time(file, now - (suffix == std::string(".meta") ? 1h : 2h));
  }
  std::filesystem::remove(place.named(two.digest.hex() + ".bin").at(0));
  const auto root = open_folder(place.config.directory, Create::no);
  REQUIRE(root);
  const Survey found = survey(root->get(), Sweep::no);
  REQUIRE(found.entries.size() == 2);
  const bool first_is_one = found.entries[0].digest == one.digest;
  const StoredEntry &of_one = found.entries[first_is_one ? 0 : 1], &of_two = found.entries[first_is_one ? 1 : 0];
  CHECK(of_one.digest == one.digest);
  CHECK(of_one.bytes == bytes);
  CHECK(of_one.program);
  CHECK(of_two.digest == two.digest);
  CHECK_FALSE(of_two.program);  // its .meta alone
  CHECK(found.bytes == of_one.bytes + of_two.bytes);
  CHECK(found.folders.size() == 1);
  // The later of the two files tells when it was used.
  CHECK(of_one.last_used_ns < of_two.last_used_ns);
  std::filesystem::last_write_time(place.named(two.digest.hex() + ".meta").at(0), now - 90min);
  Survey again = survey(root->get(), Sweep::no);
  CHECK(prune(root->get(), again, of_one.bytes) == 1);
  CHECK(again.bytes == of_one.bytes);
  CHECK(place.named(one.digest.hex() + ".bin").size() == 1);
  CHECK(place.files(".meta").size() == 1);
  CHECK(prune(root->get(), again, of_one.bytes) == 0);  // exactly as much is allowed
}

TEST_CASE("cache::survey: an entry is removed with both files, and one that is gone is no error") {
  Workplace place;
  SyntheticDevice device;
  for (const char* text : {"one", "two"}) REQUIRE(acquire(*place.open(), text, device));
  const Digest one = key_for("one", device).digest;
  const auto file = place.named(one.hex() + ".bin").at(0);
  const std::string folder = file.parent_path().parent_path().filename();
  const auto root = open_folder(place.config.directory, Create::no);
  REQUIRE(root);
  CHECK(remove_entry(root->get(), folder, one).ok());
  CHECK(place.files(".bin").size() == 1);
  CHECK(place.files(".meta").size() == 1);
  CHECK(remove_entry(root->get(), folder, one).ok());
  CHECK(remove_entry(root->get(), "w-0123456789abcdef-0123456789abcdef", one).ok());
  std::filesystem::create_directories(file);
  CHECK(remove_entry(root->get(), folder, one).text() ==
        "io: file " + folder + "/" + one.hex() + ".bin: cannot be removed: Is a directory");
}

TEST_CASE("cache::disk_use: the text of the figure") {
  const Workplace place;
  std::filesystem::create_directory(place.config.directory);
  std::filesystem::permissions(place.config.directory, std::filesystem::perms::owner_all);
  const auto root = open_folder(place.config.directory, Create::no);
  REQUIRE(root);
  CHECK_FALSE(DiskUseFile::peek(root->get()));
  {
    const auto file = DiskUseFile::take(root->get());
    REQUIRE(file);
    CHECK_FALSE(file->read());
    file->write({UINT64_MAX, 22, 3});
    const auto read = file->read();
    REQUIRE(read);
    CHECK(read->programs == UINT64_MAX);
    CHECK(read->published == 22);
    CHECK(read->walked == 3);
    CHECK(read->since_walk() == 19);
  }
  const auto path = place.config.directory / disk_use_name;
  CHECK(copied_text(contents(path)) == "18446744073709551615 00000000000000000022 00000000000000000003\n");
  const auto is_figure = [&](const std::string& text) {
    overwrite(path, std::as_bytes(std::span(text)));
    const auto file = DiskUseFile::take(root->get());
    REQUIRE(file);
    CHECK(file->read().has_value() == DiskUseFile::peek(root->get()).has_value());
    return file->read().has_value();
  };
  const std::string zero(20, '0'), two = "00000000000000000002", three = "00000000000000000003";
  CHECK(is_figure(zero + " " + three + " " + three + "\n"));
  CHECK_FALSE(is_figure(zero + " " + two + " " + three + "\n"));  // more was walked than published
  CHECK_FALSE(is_figure(zero + " " + three + " " + two));
  CHECK_FALSE(is_figure(zero + " " + three + " " + two + "\n "));
  CHECK_FALSE(is_figure(zero + "0 " + three + " " + two));
  CHECK_FALSE(is_figure("-" + zero.substr(1) + " " + three + " " + two + "\n"));
  CHECK_FALSE(is_figure(zero + " x" + three.substr(1) + " " + two + "\n"));
  CHECK_FALSE(is_figure(zero + " " + three + " " + two.substr(1) + "x\n"));
  CHECK_FALSE(is_figure("99999999999999999999 " + three + " " + two + "\n"));
  DiskUse use;
  CHECK(use.programs == 0);
  CHECK(use.published == 0);
  CHECK(use.walked == 0);
  use.add(5);
  use.remove(7);
  CHECK(use.programs == 0);
  CHECK(use.published == 5);
}

}  // namespace
}  // namespace kiln::test
