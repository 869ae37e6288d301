// The files of the driver's own cache that a build finds are stored with the program. Altered ones are refused.
#include "base/digest.hpp"
#include "host/build_place.hpp"
#include "support/test_length.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <random>
#include <span>

using namespace kiln::test;

TEST_CASE("driver files: the child's list is in the entry, and nothing is left outside of entries") {
  BuildPlace place;
  place.add("one", good_kernel(2), 2);
  place.add("two", good_kernel(3), 3);
  const Finished cold = place.run();
  INFO(cold.err);
  REQUIRE(cold.status == 0);
  if (!has_opengl(cold) || cold.json()["cache"]["driver_cache"] != "adopted") return;
  const kiln::EntryKey key = entry_key(place.key);
  REQUIRE(place.entries().size() == 2);
  for (const fs::path& path : place.entries()) {
    const kiln::ProgramBinary program = stored_program(path, key);
    CHECK(program.driver_setting.size() == 64);
    REQUIRE_FALSE(program.driver_files.empty());
    for (const auto& file : program.driver_files) CHECK_FALSE(file.bytes.empty());
  }
  CHECK_FALSE(fs::exists(place.cache / "driver"));
  CHECK(fs::is_empty(place.runtime / "kiln" / "driver"));
}

// A driver may compile once more for what is bound at the first dispatch, as llvmpipe does for the formats of images.
TEST_CASE("driver files: what the first dispatch compiles is stored too, once") {
  BuildPlace place;
  place.jobs =
      "[[job]]\nname = \"layer\"\nop = \"conv2d\"\nc = 16\nh = 28\nw = 28\nk = 16\nr = 3\ns = 3\npad = 1\n"
      "input = \"random:1\"\nweights = \"random:2\"\nverify = true\ndevice = \"opengl:0\"\n";
  const auto files = [&] {
    std::size_t count = 0;
    for (const fs::path& path : place.entries()) {
      count += stored_program(path, entry_key(place.key)).driver_files.size();
    }
    return count;
  };
  const std::vector<std::string> warm = {"cache", "warm", place.folder.write("jobs.toml", place.jobs)};
  const Finished built = place.verb(warm);
  INFO(built.err);
  REQUIRE(built.status == 0);
  const std::size_t of_builds = files();
  const Finished first = place.run();
  INFO(first.err);
  REQUIRE(first.status == 0);
  if (!has_opengl(first) || first.json()["cache"]["driver_cache"] != "adopted") return;
  const std::size_t of_dispatches = files();
  CHECK(of_builds > 0);
  CHECK(of_dispatches > of_builds);
  const Finished second = place.run();
  CHECK(second.json()["cache"]["builds"] == 0);
  check_verified(second, true);
  CHECK(files() == of_dispatches);
}

// Whoever holds the key can make the driver run other code: what an entry holds is what runs.
TEST_CASE("driver files: the driver runs what a signed entry holds") {
  BuildPlace place;
  place.add("one", good_kernel(2), 2);
  place.add("two", good_kernel(3), 3);
  const Finished cold = place.run();
  INFO(cold.err);
  REQUIRE(cold.status == 0);
  if (!has_opengl(cold) || cold.json()["cache"]["driver_cache"] != "adopted") return;
  const kiln::EntryKey key = entry_key(place.key);
  const std::vector<fs::path> files = place.entries();
  REQUIRE(files.size() == 2);
  kiln::ProgramBinary programs[] = {stored_program(files[0], key), stored_program(files[1], key)};
  // Not as many of each: the first program of a process has a file that Mesa writes once.
  REQUIRE_FALSE(programs[0].driver_files.empty());
  REQUIRE_FALSE(programs[1].driver_files.empty());
  const auto larger = [](const auto& a, const auto& b) { return a.bytes.size() < b.bytes.size(); };
  // The machine code is the largest.
  auto& first = *std::ranges::max_element(programs[0].driver_files, larger);
  auto& second = *std::ranges::max_element(programs[1].driver_files, larger);
  REQUIRE(first.name != second.name);
  std::swap(first.bytes, second.bytes);
  store_program(files[0], key, programs[0]);
  store_program(files[1], key, programs[1]);
  const Finished warm = place.run();
  INFO(warm.err << warm.out);
  CHECK(warm.json()["cache"]["disk_hits"] == 2);
  check_verified(warm, false);
}

// Every bit, without the command: what authenticates an entry refuses it, also where its checksum is repaired.
TEST_CASE("driver files: every altered bit of an entry is refused", "[unsanitized]") {
  BuildPlace place;
  place.add("one", good_kernel(2), 2);
  const Finished cold = place.run();
  INFO(cold.err);
  REQUIRE(cold.status == 0);
  const kiln::EntryKey key = entry_key(place.key);
  REQUIRE(place.entries().size() == 1);
  const std::string good = bytes_in(place.entries()[0]);
  const std::size_t at_checksum = good.size() - 48;  // 16 bytes, then the HMAC
  const std::size_t step = is_sanitized && !is_long() ? 97 : 1;
  std::size_t refused = 0, as_tampered = 0, tried = 0;
  const auto is_refused = [&](const std::string& altered) {
    ++tried;
    const auto decoded = kiln::decode_entry(std::as_bytes(std::span(altered)), key);
    if (decoded.rejection != kiln::Rejection::none) ++refused;
    if (decoded.rejection == kiln::Rejection::tampered) ++as_tampered;
    return decoded.rejection != kiln::Rejection::none;
  };
  REQUIRE_FALSE(is_refused(good));
  tried = 0;
  std::string altered = good;
  for (std::size_t bit = 0; bit < good.size() * 8; bit += step) {
    char& byte = altered[bit / 8];
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
    if (!is_refused(altered)) FAIL_CHECK("bit " << bit);
    if (bit / 8 < at_checksum) {
      const auto sum = kiln::xxh3_128(std::as_bytes(std::span(altered)).first(at_checksum));
      altered.replace(at_checksum, sum.size(), reinterpret_cast<const char*>(sum.data()), sum.size());
      if (!is_refused(altered)) FAIL_CHECK("bit " << bit << ", checksum repaired");
    }
    altered.replace(bit / 8, 1, good, bit / 8, 1);
    altered.replace(at_checksum, 16, good, at_checksum, 16);
  }
  CHECK(altered == good);
  CHECK(refused == tried);
  CHECK(as_tampered > tried / 3);
  WARN("driver files: " << tried << " alterations of one bit in " << good.size() << " bytes, " << tried - refused
                        << " not refused");
}

namespace {

// Ten programs with their driver files, stored, and a run of all of them after some were altered.
struct Ten : BuildPlace {
  static constexpr std::size_t count = 10;
  std::vector<fs::path> files;
  std::vector<std::string> good;
  bool is_usable = false;
  std::size_t altered = 0;
  std::chrono::duration<double> longest{};

  Ten() {
    for (int factor = 2; factor < 12; ++factor) add("k" + std::to_string(factor), good_kernel(factor), factor);
    const Finished cold = run();
    INFO(cold.err);
    REQUIRE(cold.status == 0);
    is_usable = has_opengl(cold) && cold.json()["cache"]["driver_cache"] == "adopted";
    files = entries();
    REQUIRE(files.size() == count);
    for (const fs::path& file : files) good.push_back(bytes_in(file));
  }

  // Each altered program is rejected once and built anew, and all results are right. Then all are put back.
  void check_refused(std::size_t expected) {
    const auto begun = std::chrono::steady_clock::now();
    const Finished finished = run({}, {.before = {"timeout", "-s", "KILL", "100"}});
    longest = std::max<std::chrono::duration<double>>(longest, std::chrono::steady_clock::now() - begun);
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    check_verified(finished, true);
    CHECK(finished.json()["cache"]["builds"] == expected);
    CHECK(rejected_in(finished.json()["cache"]) == static_cast<int>(expected));
    altered += expected;
    for (std::size_t i = 0; i < count; ++i) put(files[i], good[i]);
  }

  void report(const char* how) const {
    WARN("driver files: " << altered << " programs " << how << ", each refused and built anew; the longest run of ten "
                          << longest.count() << " s");
  }
};

// The entry, otherwise than it was.
std::string altered_at_random(const std::string& good, std::mt19937& random) {
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  std::string bytes = good;
  while (bytes == good) {
    const std::size_t at = below(good.size()), length = 1 + below(std::min<std::size_t>(good.size() - at, 64));
    switch (below(7)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        for (std::size_t i = at; i < at + length; ++i) bytes[i] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, good, below(good.size()), length);
        break;
      case 4:
        bytes.replace(at, length, length, '\0');
        break;
      case 5:
        bytes.resize(at);
        break;
      default:  // one that whoever alters it makes whole again, as far as the checksum goes
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        const auto sum = kiln::xxh3_128(std::as_bytes(std::span(bytes)).first(bytes.size() - 48));
        bytes.replace(bytes.size() - 48, sum.size(), reinterpret_cast<const char*>(sum.data()), sum.size());
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("driver files: programs altered at random are refused, counted and built anew", "[unsanitized]") {
  Ten ten;
  if (!ten.is_usable) return;
  std::mt19937 random(22);
  for (std::size_t round = 0; round < (is_long() ? 200 : is_sanitized ? 1 : 4); ++round) {
    CAPTURE(round);
    for (std::size_t i = 0; i < Ten::count; ++i) put(ten.files[i], altered_at_random(ten.good[i], random));
    ten.check_refused(Ten::count);
  }
  ten.report("altered at random");
}

TEST_CASE("driver files: all exchanges among ten programs are refused, counted and built anew", "[unsanitized]") {
  Ten ten;
  if (!ten.is_usable) return;
  std::size_t exchanges = 0;
  // Nine rounds of five pairs each, in which each program meets each other one once.
  for (std::size_t round = 0; round < (is_sanitized ? 1 : Ten::count - 1); ++round) {
    CAPTURE(round);
    for (std::size_t pair = 0; pair < Ten::count / 2; ++pair, ++exchanges) {
      constexpr std::size_t others = Ten::count - 1;
      const std::size_t one = pair == 0 ? others : (round + pair) % others, two = (round + others - pair) % others;
      put(ten.files[one], ten.good[two]);
      put(ten.files[two], ten.good[one]);
    }
    if (round == 0) CHECK(ten.verb({"cache", "verify"}).status == 1);
    ten.check_refused(Ten::count);
  }
  CHECK(exchanges == (is_sanitized ? 5 : 45));
  ten.report("exchanged");
}

TEST_CASE("driver files: cut, longer and old programs are refused, and files that were added change nothing",
          "[unsanitized]") {
  Ten ten;
  if (!ten.is_usable) return;
  SECTION("cut") {
    const std::size_t cuts = is_long() ? 100 : 10;
    for (std::size_t cut = 0; cut < cuts; cut += Ten::count) {
      for (std::size_t i = 0; i < Ten::count; ++i) {
        put(ten.files[i], ten.good[i].substr(0, ten.good[i].size() * (cut + i) / cuts));
      }
      ten.check_refused(Ten::count);
    }
    ten.report("cut");
  }
  SECTION("longer") {
    put(ten.files[0], ten.good[0] + "more");
    put(ten.files[1], ten.good[1] + ten.good[1]);
    ten.check_refused(2);
  }
  SECTION("of schema 1") {
    std::string old = ten.good[0];
    old[8] = 1;
    put(ten.files[0], old);
    ten.check_refused(1);
  }
  SECTION("a FIFO") {
    fs::remove(ten.files[0]);
    REQUIRE(mkfifo(ten.files[0].c_str(), 0600) == 0);
    const Finished finished = ten.run();
    REQUIRE(finished.status == 0);
    CHECK(finished.json()["cache"]["builds"] == 1);
  }
  SECTION("a link") {
    fs::rename(ten.files[0], ten.folder / "aside");
    fs::create_symlink(ten.folder / "aside", ten.files[0]);
    ten.check_refused(1);
    CHECK(bytes_in(ten.folder / "aside") == ten.good[0]);
  }
  SECTION("added") {
    const fs::path beside = ten.files[0].parent_path();
    put(beside / (std::string(64, 'a') + ".bin"), ten.good[0]);
    put(beside / "f00d", ten.good[1]);
    fs::create_directories(ten.cache / "driver" / std::string(64, 'b') / "mesa_shader_cache" / "aa");
    put(ten.cache / "driver" / std::string(64, 'b') / "mesa_shader_cache" / "aa" / std::string(38, 'c'), ten.good[2]);
    fs::create_directories(ten.cache / "mesa_shader_cache" / "aa");
    put(ten.cache / "mesa_shader_cache" / "aa" / std::string(38, 'c'), ten.good[3]);
    ten.check_refused(0);
  }
}

TEST_CASE("driver files: two processes at once, and a folder that a killed process left") {
  BuildPlace place;
  BuildPlace beside;  // results of its own
  for (int factor = 2; factor < 6; ++factor) {
    place.add("k" + std::to_string(factor), good_kernel(factor), factor);
    beside.add("k" + std::to_string(factor), good_kernel(factor), factor);
  }
  beside.cache = place.cache, beside.runtime = place.runtime, beside.key = place.key;
  const fs::path left = place.runtime / "kiln" / "driver" / (std::string(64, 'a') + ".1.0123456789abcdef");
  fs::create_directories(left / "mesa_shader_cache" / "aa");
  put(left / "mesa_shader_cache" / "aa" / "file", "code");
  for (fs::path each = left; each != place.runtime; each = each.parent_path()) {
    fs::permissions(each, fs::perms::owner_all);
  }
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(1));
  auto other = std::async(std::launch::async, [&] { return beside.run(); });
  const Finished one = place.run(), two = other.get();
  for (const Finished& finished : {one, two}) {
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    check_verified(finished, true);
  }
  if (!has_opengl(one)) return;
  CHECK(place.entries().size() == 4);
  CHECK_FALSE(fs::exists(left));
  CHECK(fs::is_empty(place.runtime / "kiln" / "driver"));
}
