#include "core/selector/candidates.hpp"

#include "selector/model/model_store.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

using namespace kiln;
using namespace kiln::selector;
using namespace kiln::test;

namespace {

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_text(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

SelectorContext context_in(const std::filesystem::path& folder, Lines* lines = nullptr) {
  SelectorContext context;
  context.cache_directory = folder;
  context.config.policy = "ema";
  if (lines != nullptr) context.log = {lines, LogLevel::info};
  return context;
}

void teach(const std::filesystem::path& folder, const Fleet& fleet, Lines* lines = nullptr) {
  const auto selector = selector_of("learning", context_in(folder, lines));
  for (int i = 0; i < 4; ++i) {
    selector->record(conv(64, 56), fleet[0], run_of(9));
    selector->record(conv(64, 56), fleet[1], run_of(3));
  }
}

}  // namespace

TEST_CASE("selector store: what was learned is there in the next process", "[selector]") {
  const TemporaryFolder folder;
  const Fleet fleet({device_of("slow"), device_of("fast")});
  const auto cache = folder.path() / "deep" / "cache";  // made on demand, for its owner alone
  teach(cache, fleet);
  struct stat found {};
  REQUIRE(::stat((cache / "selector.json").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  REQUIRE(::stat(cache.c_str(), &found) == 0);
  CHECK((found.st_mode & 0077) == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(cache), {}) == 1);  // nothing temporary stays

  Lines lines;
  const auto selector = selector_of("learning", context_in(cache, &lines));
  const auto all = fleet.candidates();
  const auto choice = selector->select(conv(64, 56), all);
  CHECK(choice->candidate == 1);
  CHECK(choice->because == "fast: 3 ms expected (4 runs), slow: 9 ms expected (4 runs)");
  CHECK(lines.all.empty());
}

TEST_CASE("selector store: every field of every arm survives", "[selector]") {
  const TemporaryFolder folder;
  PerformanceModel model(0.1), again(0.1);
  const DeviceInfo device = device_of("d");
  for (int i = 1; i < 5; ++i) model.learn_run(bucket_of(conv(64, 56)), device, 1e6 * i);
  model.learn_build(bucket_of(conv(64, 56)), device, 5e7);
  model.count_look(bucket_of(conv(8, 8)), device);
  ModelStore store(folder.path(), {});
  store.save(model.arms());
  store.load(again);
  REQUIRE(again.arms().size() == 3);
  for (const auto& [key, arm] : model.arms()) {
    const Arm& read = again.arms().at(key);
    CHECK(read.log_ns.mean == arm.log_ns.mean);
    CHECK(read.log_ns.variance == arm.log_ns.variance);
    CHECK(read.log_ns.count == arm.log_ns.count);
    CHECK(read.log_flops == arm.log_flops);
    CHECK(read.looks == arm.looks);
    CHECK(read.used == arm.used);
  }
}

TEST_CASE("selector store: a damaged file is left out, with the reason", "[selector]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "selector.json";
  const Fleet fleet({device_of("slow"), device_of("fast")});
  teach(folder.path(), fleet);
  const std::string good = text_of_file(file);
  std::string why;
  SECTION("cut short") { write_text(file, good.substr(0, good.size() / 2)), why = "not a JSON object"; }
  SECTION("empty") { write_text(file, ""), why = "not a JSON object"; }
  SECTION("not an object") { write_text(file, "[1, 2]"), why = "not a JSON object"; }
  SECTION("of another schema") { write_text(file, R"({"schema": 2, "arms": []})"), why = "schema 2, expected 1"; }
  SECTION("without a schema") { write_text(file, R"({"arms": []})"), why = "schema null, expected 1"; }
  SECTION("without arms") { write_text(file, R"({"schema": 1, "arms": 3})"), why = "no list of arms"; }
  SECTION("a folder") { std::filesystem::remove(file), std::filesystem::create_directory(file), why = "regular file"; }
  SECTION("a link") {
    std::filesystem::rename(file, folder.path() / "elsewhere");
    std::filesystem::create_symlink(folder.path() / "elsewhere", file);
    why = "cannot be opened";
  }
  SECTION("too large") {
    write_text(file, "{}");
    std::filesystem::resize_file(file, (16 << 20) + 1);
    why = "16777217 bytes";
  }
  Lines lines;
  {
    const auto selector = selector_of("learning", context_in(folder.path(), &lines));
    const auto all = fleet.candidates();
    CHECK_THAT(selector->select(conv(64, 56), all)->because, Catch::StartsWith("look 1"));
  }
  INFO(lines.all.at(0));
  CHECK(lines.mention("selector.json: ignored: "));
  CHECK(lines.mention(why));
}

TEST_CASE("selector store: one bad record does not take the others with it", "[selector]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "selector.json";
  const Fleet fleet({device_of("slow"), device_of("fast"), device_of("bad")});
  teach(folder.path(), fleet);
  auto document = nlohmann::json::parse(text_of_file(file));
  nlohmann::json bad = document["arms"][0];
  bad["device"] = "bad";
  std::string why;
  SECTION("a mean out of range") { bad["mean"] = 1e9, why = "mean: 1000000000.000000, expected 0.000000 to 60"; }
  SECTION("a mean that is no number") { bad["mean"] = "soon", why = "string"; }
  SECTION("a missing field") { bad.erase("count"), why = "count"; }
  SECTION("a negative count") { bad["count"] = -1, why = "count: -1, expected a count"; }
  SECTION("a text without end") { bad["driver"] = std::string(5000, 'x'), why = "driver: 5000 bytes"; }
  SECTION("not an object") { bad = 7, why = "number"; }
  document["arms"].insert(document["arms"].begin(), bad);
  write_text(file, document.dump());
  Lines lines;
  const auto selector = selector_of("learning", context_in(folder.path(), &lines));
  const auto all = fleet.candidates();
  const std::string because = selector->select(conv(64, 56), all)->because;
  CHECK_THAT(because, Catch::Contains("fast: 3 ms expected (4 runs)") && Catch::Contains("bad: not measured yet"));
  INFO(lines.all.at(0));
  CHECK(lines.mention("1 of 3 records ignored"));
  CHECK(lines.mention(why));
}

TEST_CASE("selector store: what cannot be written stays in memory, said once", "[selector]") {
  const TemporaryFolder folder;
  write_text(folder.path() / "file", "in the way");
  const auto cache = folder.path() / "file" / "cache";  // below a file: no user may write there, root included
  REQUIRE_FALSE(std::ofstream(cache / "plain").is_open());
  Lines lines;
  ModelStore store(cache, {&lines, LogLevel::info});
  PerformanceModel model(0.1);
  store.load(model);
  store.save(model.arms());
  store.save(model.arms());
  INFO(lines.all.at(0));
  CHECK(lines.mention("stays in memory"));
  CHECK(std::count_if(lines.all.begin(), lines.all.end(),
                      [](const auto& line) { return line.find("stays in memory") != std::string::npos; }) == 1);
}

TEST_CASE("selector store: a driver's stray bytes do not cost the model", "[selector]") {
  const TemporaryFolder folder;
  DeviceInfo odd = device_of("odd");
  odd.driver = "driver \xff\xfe";
  const Fleet fleet({odd, device_of("even")});
  teach(folder.path(), fleet);
  PerformanceModel model(0.1);
  ModelStore(folder.path(), {}).load(model);
  CHECK(model.estimate(bucket_of(conv(64, 56)), fleet[1]).runs == 4);
}

TEST_CASE("selector store: no folder, no file", "[selector]") {
  Lines lines;
  const Fleet fleet({device_of("slow"), device_of("fast")});
  teach({}, fleet, &lines);
  CHECK(lines.all.empty());
  CHECK_FALSE(std::filesystem::exists("selector.json"));
}
