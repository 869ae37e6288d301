// The folder of one device: how a program is set aside and comes back, which other drivers have it, and what its .meta
// says after several notes.
#include "cache/device_folder.hpp"
#include "base/os/private_folder.hpp"
#include "cache/manifest.hpp"
#include "core/cache/workplace.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <ctime>

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t day_s = 24 * 3600, second_ns = 1'000'000'000;

struct OfDevice {
  Workplace place;
  SyntheticDevice device;
  UniqueFd root;
  ProgramKey key = key_for("one", device);
  Digest digest = key.digest;

  OfDevice() {
    fs::create_directories(place.config.directory);
    fs::permissions(place.config.directory, fs::perms::owner_all);
    root = UniqueFd(::open(place.config.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  fs::path file(std::string_view suffix) const {
    const std::string hex = digest.hex();
    return place.config.directory / device_folder_name(device.info()) / hex.substr(0, 2) / (hex + std::string(suffix));
  }
  void age(std::string_view suffix, std::int64_t seconds) const {
    const timespec then{std::time(nullptr) - seconds, 0};
    const timespec times[] = {then, then};
    if (utimensat(AT_FDCWD, file(suffix).c_str(), times, 0) != 0) throw std::runtime_error("no such file");
  }
  std::int64_t age_of(std::string_view suffix) const {
    struct stat at {};
    if (stat(file(suffix).c_str(), &at) != 0) throw std::runtime_error("no such file");
    return std::time(nullptr) - at.st_mtime;
  }
};

TEST_CASE("cache::device_folder: a program is set aside, comes back or is condemned, and nothing else is renamed") {
  OfDevice of;
  DeviceFolder folder(of.root.get(), of.device.info());
  const auto bytes = copied_bytes("older"), newer = copied_bytes("newer one");
  const std::int64_t later_s = std::time(nullptr) + day_s;
  CHECK_FALSE(folder.set_aside(of.digest, StoredFile::suspect, later_s));
  CHECK_FALSE(folder.condemn(of.digest));
  CHECK_FALSE(folder.acquit(of.digest));
  CHECK(folder.remove(of.digest) == 0);
  REQUIRE(folder.write(of.digest, StoredFile::program, bytes).ok());
  CHECK_FALSE(folder.condemn(of.digest));  // there is no suspect
  of.age(".bin", 8 * day_s);
  const std::int64_t written_s = *folder.last_written_ns(of.digest, StoredFile::program) / second_ns;
  CHECK_FALSE(folder.set_aside(of.digest, StoredFile::suspect, written_s - 1));  // it was written after that
  CHECK(folder.holds(of.digest, StoredFile::program));
  CHECK(folder.set_aside(of.digest, StoredFile::suspect, written_s));
  CHECK_FALSE(folder.holds(of.digest, StoredFile::program));
  CHECK(of.age_of(".suspect") < day_s);  // its time begins
  of.age(".suspect", 8 * day_s);
  CHECK(folder.acquit(of.digest));
  CHECK_FALSE(folder.holds(of.digest, StoredFile::suspect));
  CHECK(of.age_of(".bin") >= 8 * day_s);  // that of a program stays
  // A newer program stays, and the suspect goes.
  REQUIRE(folder.set_aside(of.digest, StoredFile::suspect, later_s));
  REQUIRE(folder.write(of.digest, StoredFile::program, newer).ok());
  CHECK(folder.acquit(of.digest));
  CHECK_FALSE(fs::exists(of.file(".suspect")));
  CHECK(contents(of.file(".bin")) == newer);
  REQUIRE(folder.set_aside(of.digest, StoredFile::suspect, later_s));
  CHECK(folder.condemn(of.digest));
  CHECK_FALSE(fs::exists(of.file(".suspect")));
  CHECK(contents(of.file(".quarantined")) == newer);
  for (const auto& [age_s, lasts] :
       {std::pair(std::int64_t{0}, true), std::pair(7 * day_s - 60, true), std::pair(7 * day_s + 60, false),
        std::pair(-7 * day_s + 60, true), std::pair(-7 * day_s - 60, false)}) {  // the clock was set back
    CAPTURE(age_s);
    of.age(".quarantined", age_s);
    CHECK(folder.quarantine_lasts(of.digest) == lasts);
  }
  folder.forget(of.digest, StoredFile::quarantined);
  CHECK_FALSE(fs::exists(of.file(".quarantined")));
  CHECK_FALSE(folder.quarantine_lasts(of.digest));
}

TEST_CASE("cache::device_folder: another driver's program is found among folders that cannot be read") {
  OfDevice of;
  SyntheticDevice older;
  older.facts().driver_identity.front().second = "0.9";
  const ProgramKey key = key_for("one", older);
  const std::string name = device_folder_name(older.info());
  // As of more drivers: without a manifest, and open to others.
  for (int i = 0; i < 10; ++i) {
    const std::string stem = name.substr(0, name.size() - 2);
    for (const char* which : {"a", "b"}) {
      const fs::path bad = of.place.config.directory / (stem + which + std::to_string(i));
      fs::create_directory(bad);
      fs::permissions(bad, *which == 'a' ? fs::perms::owner_all : fs::perms::all);
    }
  }
  const auto is_held = [&](const ProgramKey& asked) {
    return DeviceFolder(of.root.get(), of.device.info()).held_under_another_driver(asked);
  };
  CHECK_FALSE(is_held(of.key));
  DeviceFolder other(of.root.get(), older.info());
  REQUIRE(other.write(sha256("x"), StoredFile::program, copied_bytes("another program")).ok());
  CHECK_FALSE(is_held(of.key));
  REQUIRE(other.write(key.digest, StoredFile::program, copied_bytes("a program")).ok());
  CHECK(is_held(of.key));
  CHECK_FALSE(is_held(key_for("two", of.device)));
  ProgramKey none = of.key;
  none.material = "no fields";
  CHECK_FALSE(is_held(none));
  SyntheticDevice elsewhere;
  elsewhere.facts().device_identity.front().second = "another";
  CHECK_FALSE(DeviceFolder(of.root.get(), elsewhere.info()).held_under_another_driver(key_for("one", elsewhere)));
}

TEST_CASE("cache::meta_ledger: what is noted is written once, and what nothing was said of stays") {
  OfDevice of;
  of.key.purpose = {"conv2d", "shape", "direct"};
  DeviceFolder folder(of.root.get(), of.device.info());
  const auto meta = [&] { return stored_meta(folder, of.digest); };
  {
    MetaLedger ledger;
    ledger.used(of.digest, 1);  // not noted: ignored, as all of these
    ledger.asked_for(of.digest);
    ledger.loaded(of.digest, 1);
    ledger.dispatched_first(of.digest, 1);
    ledger.rate(of.digest, 1);
    ledger.moved(of.digest, folder);
    CHECK(ledger.flush() == 0);
    ledger.note(of.key, folder, 5'000'000);
    CHECK(ledger.flush(of.digest) == 0);  // there is no program
    CHECK_FALSE(fs::exists(of.file(".meta")));
    REQUIRE(folder.write(of.digest, StoredFile::program, copied_bytes("a program")).ok());
    ledger.note(of.key, folder, 5'000'000);
    ledger.used(of.digest, 3);
    ledger.loaded(of.digest, 2'000'000);
    ledger.rate(of.digest, 1.5);
    ledger.rate(of.digest, 3.5);
    for (const std::uint64_t ns : {8'000'000u, 3'000'000u, 5'000'000u}) ledger.dispatched_first(of.digest, ns);
    CHECK(ledger.flush(sha256("another")) == 0);
    const std::uint64_t bytes = ledger.flush(of.digest);
    CHECK(bytes > 0);
    CHECK(bytes == fs::file_size(of.file(".meta")));
    CHECK(ledger.flush(of.digest) == 0);  // nothing is new
    CHECK(ledger.flush() == 0);
    CHECK(meta().key == of.digest.hex());
    CHECK(meta().label == "the label of one");
    CHECK(meta().operation == "conv2d");
    CHECK(meta().build_ms == 5);
    CHECK(meta().load_ms == 2);
    CHECK(meta().gflops == 3.5);
    CHECK(meta().first_dispatch_ms == 8);
    CHECK(meta().warm_dispatch_ms == 3);
    CHECK(meta().times_used == 3);
    CHECK(meta().runs == 1);
    CHECK(meta().first_use_ms == 0);
    CHECK(std::abs(meta().last_used - std::time(nullptr)) < 600);
    ledger.used(of.digest, 2);
    CHECK(ledger.flush() == bytes);  // in its place
    CHECK(meta().times_used == 5);
    CHECK(meta().runs == 1);  // the same process
    // Each of these alone is news.
    const std::function<void()> news[] = {[&] { ledger.loaded(of.digest, 4'000'000); },
                                          [&] { ledger.rate(of.digest, 7); },
                                          [&] { ledger.dispatched_first(of.digest, 9'000'000); },
                                          [&] { ledger.used(of.digest, 0); },
                                          [&] { ledger.asked_for(of.digest); },
                                          [&] { ledger.moved(of.digest, folder); },
                                          [&] { ledger.note(of.key, folder, 0); }};
    for (const auto& one : news) {
      one();
      CHECK(ledger.flush(of.digest) == bytes);
    }
    ledger.asked_for(of.digest);  // once in a process
    CHECK(ledger.flush() == 0);
  }
  const EntryMeta before = meta();
  CHECK(before.load_ms == 4);
  CHECK(before.gflops == 7);
  CHECK(before.first_dispatch_ms == 9);
  CHECK(before.first_use_ms > 0);
  CHECK(before.times_used == 5);
  // The next process knows less.
  MetaLedger next;
  ProgramKey key = of.key;
  key.purpose = {};
  next.note(key, folder, 0);
  next.flush();
  CHECK(encode_meta(meta()) == encode_meta(before));
  next.used(of.digest, 1);
  next.dispatched_first(of.digest, 4'000'000);
  CHECK(next.flush() > 0);
  CHECK(meta().runs == 2);
  CHECK(meta().times_used == 6);
  CHECK(meta().first_dispatch_ms == 9);
  CHECK(meta().warm_dispatch_ms == 3);
  CHECK(meta().variant == "direct");
}

TEST_CASE("cache::device_folder: a folder that was removed while it is open is made again, with its manifest") {
  OfDevice of;
  DeviceFolder folder(of.root.get(), of.device.info());
  const fs::path path = of.file(".bin").parent_path().parent_path();
  REQUIRE(folder.write(of.digest, StoredFile::program, copied_bytes("older")).ok());
  const auto manifest = contents(path / "manifest.json");
  CHECK_FALSE(manifest.empty());
  fs::remove_all(path);
  CHECK_FALSE(folder.holds(of.digest, StoredFile::program));
  CHECK_FALSE(fs::exists(path));
  REQUIRE(folder.write(of.digest, StoredFile::program, copied_bytes("newer")).ok());
  CHECK(contents(of.file(".bin")) == copied_bytes("newer"));
  CHECK(contents(path / "manifest.json") == manifest);
  CHECK(folder.remove(of.digest) == 5);
}

TEST_CASE("cache::meta_ledger: what cannot be written counts no bytes, and of 64 KiB and a byte nothing is read") {
  OfDevice of;
  DeviceFolder folder(of.root.get(), of.device.info());
  REQUIRE(folder.write(of.digest, StoredFile::program, copied_bytes("a program")).ok());
  for (const std::size_t size : {64u << 10, (64u << 10) + 1}) {
    EntryMeta padded;
    padded.label = "padded";
    std::string text = encode_meta(padded);
    text.insert(text.size() - 1, size - text.size(), ' ');
    REQUIRE(folder.write(of.digest, StoredFile::meta, std::as_bytes(std::span(text))).ok());
    CHECK(stored_meta(folder, of.digest).label == (size == 64u << 10 ? "padded" : ""));
  }
  fs::remove(of.file(".meta"));
  fs::create_directories(of.file(".meta") / "in the way");
  MetaLedger ledger;
  ledger.note(of.key, folder, 1'000'000);
  CHECK(ledger.flush(of.digest) == 0);
  ledger.used(of.digest, 1);
  CHECK(ledger.flush() == 0);
  fs::remove_all(of.file(".meta"));
  ledger.used(of.digest, 1);
  CHECK(ledger.flush() > 0);
  // Room for counts to grow in: more than 64 bytes and at most 128, before the end of the line.
  const std::string text = copied_text(contents(of.file(".meta")));
  REQUIRE(text.ends_with(" \n"));
  const std::size_t room = text.size() - 2 - text.find_last_not_of(" \n");
  CHECK(room > 64);
  CHECK(room <= 128);
  CHECK(text.size() % 64 == 0);
}

TEST_CASE("cache::meta_ledger: a first use counts a quarter of what is known, and a dispatch may be short") {
  OfDevice of;
  DeviceFolder folder(of.root.get(), of.device.info());
  REQUIRE(folder.write(of.digest, StoredFile::program, copied_bytes("a program")).ok());
  EntryMeta known;
  known.label = "one";
  known.warm_dispatch_ms = 0.75;
  known.first_use_ms = 8e9;
  const std::string before = encode_meta(known);
  REQUIRE(folder.write(of.digest, StoredFile::meta, std::as_bytes(std::span(before))).ok());
  MetaLedger ledger;
  ledger.note(of.key, folder, 500'000);
  ledger.asked_for(of.digest);
  ledger.loaded(of.digest, 250'000);
  ledger.dispatched_first(of.digest, 500'000);
  ledger.rate(of.digest, 0.5);
  CHECK(ledger.flush() > 0);
  const EntryMeta meta = stored_meta(folder, of.digest);
  CHECK(meta.first_use_ms >= 6e9);
  CHECK(meta.first_use_ms < 6e9 + 1e9);  // a quarter of what this process took
  CHECK(meta.build_ms == 0.5);
  CHECK(meta.load_ms == 0.25);
  CHECK(meta.first_dispatch_ms == 0.5);
  CHECK(meta.warm_dispatch_ms == 0.5);
  CHECK(meta.gflops == 0.5);
}

TEST_CASE("cache::meta_ledger: a program that moved is written where it is now") {
  OfDevice of;
  SyntheticDevice newer;
  newer.facts().driver_identity.front().second = "2.0";
  DeviceFolder from(of.root.get(), of.device.info()), to(of.root.get(), newer.info());
  for (DeviceFolder* each : {&from, &to}) REQUIRE(each->write(of.digest, StoredFile::program, {}).ok());
  MetaLedger ledger;
  ledger.note(of.key, from, 1'000'000);
  ledger.moved(of.digest, to);
  CHECK(ledger.flush() > 0);
  CHECK(stored_meta(from, of.digest).label.empty());
  CHECK(stored_meta(to, of.digest).label == "the label of one");
}

}  // namespace
}  // namespace kiln::test
