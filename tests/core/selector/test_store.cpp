#include "core/selector/candidates.hpp"

#include "selector/model_store.hpp"

#include <catch2/catch.hpp>
#include <kiln_json.hpp>

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <variant>

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
    selector->record(conv(64, 56), fleet[0], run_of(9), {});
    selector->record(conv(64, 56), fleet[1], run_of(3), {});
  }
}

PerformanceModel taught(const std::string& device, int runs, double ns = 1e6) {
  PerformanceModel model(0.1);
  for (int i = 0; i < runs; ++i) model.learn_run(ShapeBucket(conv(64, 56)), device_of(device), ns, 0);
  return model;
}

Arm only_arm(const StoredModel& stored) {
  REQUIRE(stored.arms.size() == 1);
  return stored.arms.begin()->second;
}

// A line with this record: the refusal of a wrong digest gives the right one.
std::string line_with(const Json& record) {
  const std::string body = json_text(record);
  const auto refused = record_of("0000000000000000 " + body, 1);
  const auto* const why = std::get_if<RejectedRecord>(&refused);
  REQUIRE(why != nullptr);
  REQUIRE(why->validator == "checksum");
  return why->found + " " + body;
}

// What refuses the record as line 7 of a file.
std::string refusal_of(const Json& record) {
  const auto refused = record_of(line_with(record), 7);
  const auto* const why = std::get_if<RejectedRecord>(&refused);
  return why != nullptr ? why->text() : "none";
}

}  // namespace

TEST_CASE("selector store: what was learned is there in the next process", "[selector]") {
  const TemporaryFolder folder;
  const Fleet fleet({device_of("slow"), device_of("fast")});
  const auto cache = folder.path() / "deep" / "cache";  // made on demand, for its owner alone
  teach(cache, fleet);
  struct stat found {};
  REQUIRE(::stat((cache / "selector.model").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  REQUIRE(::stat((cache / "selector.lock").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  REQUIRE(::stat(cache.c_str(), &found) == 0);
  CHECK((found.st_mode & 0077) == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(cache), {}) == 2);  // the lock; nothing temporary stays

  Lines lines;
  const auto selector = selector_of("learning", context_in(cache, &lines));
  const auto all = fleet.candidates();
  const auto choice = selector->select(conv(64, 56), all, {});
  CHECK(choice->candidate == 1);
  CHECK(choice->because == "fast: 3 ms expected (4 runs), slow: 9 ms expected (4 runs)");
  const auto explained = selector->explain(conv(64, 56), all, {});
  REQUIRE(explained);
  for (const std::string& words : explained->words) {
    INFO(words);
    CHECK((words.find("; x3.0 of the chosen") != std::string::npos) == words.starts_with("slow"));
  }
  CHECK(lines.all.empty());
}

TEST_CASE("selector store: every field of every arm survives", "[selector]") {
  const TemporaryFolder folder;
  PerformanceModel model(0.1);
  const DeviceInfo device = device_of("d");
  for (int i = 0; i < 9; ++i) model.learn_run(ShapeBucket(conv(64, 56)), device, i < 5 ? 1e6 + i : 9e6, 1e4);
  model.learn_first(ShapeBucket(conv(64, 56)), device, 4e7);
  model.learn_build(ShapeBucket(conv(64, 56)), device, build_shape, 5e7);
  model.count_look(ShapeBucket(conv(8, 8)), device);
  ModelStore store(folder.path(), {});
  REQUIRE(store.merge(model.arms(), {{"contended", 3}}));
  const auto read = read_model(folder.path() / "selector.model");
  REQUIRE(read);
  CHECK(read->unfit == UnfitCounts{{"contended", 3}});
  REQUIRE(read->arms.size() == 3);
  CHECK(model.arms().begin()->second.run.alarms + std::next(model.arms().begin())->second.run.alarms +
            std::next(model.arms().begin(), 2)->second.run.alarms >
        0);
  for (const auto& [key, arm] : model.arms()) {
    const Arm& again = read->arms.at(key);
    CHECK(again.run.log_ns.mean == arm.run.log_ns.mean);
    CHECK(again.run.log_ns.variance == arm.run.log_ns.variance);
    CHECK(again.run.log_ns.count == arm.run.log_ns.count);
    CHECK(again.run.weight == arm.run.weight);
    CHECK(again.run.widening == arm.run.widening);
    CHECK(again.run.alarms == arm.run.alarms);
    CHECK(again.log_transfer.mean == arm.log_transfer.mean);
    CHECK(again.log_transfer.variance == arm.log_transfer.variance);
    CHECK(again.log_transfer.count == arm.log_transfer.count);
    CHECK(again.log_first.mean == arm.log_first.mean);
    CHECK(again.log_first.variance == arm.log_first.variance);
    CHECK(again.log_first.count == arm.log_first.count);
    CHECK(again.log_flops == arm.log_flops);
    CHECK(again.log_bytes == arm.log_bytes);
    CHECK(again.looks == arm.looks);
    CHECK(again.used == arm.used);
  }
}

TEST_CASE("selector store: a file that is no model is left out, with the reason", "[selector]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "selector.model";
  const Fleet fleet({device_of("slow"), device_of("fast")});
  teach(folder.path(), fleet);
  std::string why;
  SECTION("empty") { write_text(file, ""), why = "header: expected kiln selector model 2, found "; }
  SECTION("of another schema") { write_text(file, "kiln selector model 1\n"), why = "found kiln selector model 1"; }
  SECTION("a folder") { std::filesystem::remove(file), std::filesystem::create_directory(file), why = "regular file"; }
  SECTION("a link") {
    std::filesystem::rename(file, folder.path() / "elsewhere");
    std::filesystem::create_symlink(folder.path() / "elsewhere", file);
    why = "found a symbolic link";
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
    CHECK_THAT(selector->select(conv(64, 56), all, {})->because, Catch::StartsWith("exploration run 1"));
  }
  INFO(lines.all.at(0));
  CHECK(lines.mention("selector.model: "));
  CHECK(lines.mention(why));
}

TEST_CASE("selector store: one bad record does not take the others with it, and says which validator refused it",
          "[selector]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "selector.model";
  const auto model = taught("good", 4);
  REQUIRE(ModelStore(folder.path(), {}).merge(model.arms(), {}));
  ArmKey key = model.arms().begin()->first;
  Arm arm = model.arms().begin()->second;
  key.device = "bad";
  std::string line = line_of(key, arm), validator, expected, found;
  SECTION("an altered byte") {
    line[40] ^= 1;
    validator = "checksum", expected = line.substr(0, 16);
  }
  SECTION("cut short") { line.resize(60), validator = "checksum", expected = line.substr(0, 16); }
  SECTION("no frame") { line = "nonsense", validator = "frame", found = "nonsense"; }
  SECTION("a mean out of range") {
    arm.run.log_ns.mean = 1e9;
    line = line_of(key, arm), validator = "field mean", expected = "a number from 0 to 60", found = "1000000000.0";
  }
  SECTION("a text without end") {
    key.driver = std::string(5000, 'x');
    line = line_of(key, arm), validator = "field driver", expected = "at most 1024 bytes", found = "5000 bytes";
  }
  std::ofstream(file, std::ios::app) << line << "\n";
  std::ofstream(file, std::ios::app) << line_of({"gemm", "other", "", "thin"}, arm.run.log_ns.mean > 60 ? Arm{} : arm)
                                     << "\n";
  const auto read = read_selector_model(folder.path());
  REQUIRE(read);
  CHECK(read->arms.size() == 2);
  REQUIRE(read->rejected.size() == 1);
  CHECK(read->rejected[0].line == 3);
  CHECK(read->rejected[0].validator == validator);
  if (!expected.empty()) CHECK(read->rejected[0].expected == expected);
  if (!found.empty()) CHECK(read->rejected[0].found == found);
  CHECK_THAT(read->rejected[0].text(), Catch::StartsWith("line 3: " + validator + ": expected "));
  Lines lines;
  (void)ModelStore(folder.path(), {&lines, LogLevel::info}).load();
  CHECK(lines.mention("1 of 3 records ignored: line 3: " + validator));
}

TEST_CASE("selector store: an error about a record names the missing or wrong field", "[selector]") {
  const auto model = taught("good", 4);
  const std::string line = line_of(model.arms().begin()->first, model.arms().begin()->second);
  const Json record = parse_json(line.substr(17));
  REQUIRE(record.is_object());
  CHECK(refusal_of(record) == "none");
  std::istringstream names(
      "operation device driver shape runs weight mean variance widening alarms transfer first "
      "log_flops log_bytes looks used");
  std::size_t fields = 0;
  for (std::string name; names >> name; ++fields) {
    CAPTURE(name);
    Json lacking = Json::object();
    for (const auto& item : record.items()) {
      if (item.key() != name) lacking[item.key()] = item.value();
    }
    REQUIRE(lacking.size() + 1 == record.size());
    CHECK(refusal_of(lacking) == "line 7: field " + name + ": expected a value, found none");
  }
  CHECK(record.size() == fields);
  struct Wrong {
    std::string name, value, expected;
  };
  const std::vector<Wrong> all{
      {"operation", "5", "a text"},
      {"shape", "null", "a text"},
      {"runs", "-1", "a count up to 9.0072e+15"},
      {"weight", "1.5", "a count up to 9.0072e+15"},
      {"alarms", "4294967296", "a count up to 4.29497e+09"},
      {"looks", "4294967296", "a count up to 4.29497e+09"},
      {"mean", "60.5", "a number from 0 to 60"},
      {"variance", "3600.5", "a number from 0 to 3600"},
      {"widening", "-0.5", "a number from 0 to 3600"},
      {"transfer", "[1,2]", "an array of count, mean and variance"},
      {"transfer", "3", "an array of count, mean and variance"},
      {"first", "[1,2,3,4]", "an array of count, mean and variance"},
      {"log_flops", "61", "a number from 0 to 60"},
      {"used", "true", "a count up to 9.0072e+15"},
  };
  for (const Wrong& wrong : all) {
    CAPTURE(wrong.name, wrong.value);
    Json altered = record;
    altered[wrong.name] = parse_json(wrong.value);
    CHECK(refusal_of(altered) ==
          "line 7: field " + wrong.name + ": expected " + wrong.expected + ", found " + wrong.value);
  }
  Json altered = record;
  altered["first"] = parse_json("[1,61,0]");
  CHECK(refusal_of(altered) == "line 7: field first: expected a number from 0 to 60, found 61");
}

TEST_CASE("selector store: an error about a record quotes at most 80 bytes of it, and marks what it leaves out",
          "[selector]") {
  const std::size_t bytes = GENERATE(80u, 81u, 200u);
  CAPTURE(bytes);
  const std::string text(bytes - 2, 'x');  // and the two quotes
  const std::string whole = "\"" + text + "\"";
  const std::string quoted = bytes == 80 ? whole : whole.substr(0, 80) + "…";
  const auto framed = record_of(whole, 7);
  const auto* const refused = std::get_if<RejectedRecord>(&framed);
  REQUIRE(refused != nullptr);
  CHECK(refused->text() == "line 7: frame: expected 16 hexadecimal digits, a space, a record, found " + quoted);
  const Json value(text);
  CHECK(refusal_of(value) == "line 7: json: expected an object, found " + quoted);
  const auto model = taught("good", 4);
  const std::string line = line_of(model.arms().begin()->first, model.arms().begin()->second);
  Json record = parse_json(line.substr(17));
  REQUIRE(record.is_object());
  record["mean"] = value;
  CHECK(refusal_of(record) == "line 7: field mean: expected a number from 0 to 60, found " + quoted);
  Json counts = Json::object();
  counts["unfit"] = value;
  CHECK(refusal_of(counts) == "line 7: field unfit: expected an object of at most 64 counts, found " + quoted);
  counts["unfit"] = Json::object();
  counts["unfit"]["contended"] = value;
  CHECK(refusal_of(counts) == "line 7: field unfit: expected a count, found " + quoted);
  const TemporaryFolder folder;
  write_text(folder.path() / "selector.model", whole + "\n");
  const auto read = read_model(folder.path() / "selector.model");
  REQUIRE(read);
  REQUIRE(read->rejected.size() == 1);
  CHECK(read->rejected[0].text() == "line 1: header: expected kiln selector model 2, found " + whole.substr(0, 80));
}

TEST_CASE("selector store: two processes that learn at once lose nothing to each other", "[selector]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "selector.model";
  ModelStore one(folder.path(), {}), two(folder.path(), {});
  (void)one.load(), (void)two.load();
  SECTION("of different devices") {
    REQUIRE(one.merge(taught("a", 3).arms(), {{"contended", 1}}));
    REQUIRE(two.merge(taught("b", 5).arms(), {{"contended", 2}}));
    const auto read = read_model(file);
    REQUIRE(read->arms.size() == 2);
    CHECK(read->arms.begin()->second.run.log_ns.count == 3);
    CHECK(std::next(read->arms.begin())->second.run.log_ns.count == 5);
    CHECK(read->unfit.at("contended") == 3);
  }
  SECTION("of the same arm: means count by their runs") {
    REQUIRE(one.merge(taught("a", 6, 1e6).arms(), {}));
    REQUIRE(two.merge(taught("a", 2, 2e6).arms(), {}));
    const Arm& arm = only_arm(*read_model(file));
    CHECK(arm.run.log_ns.count == 8);
    CHECK(std::exp(arm.run.log_ns.mean) == Approx(std::exp((6 * std::log(1e6) + 2 * std::log(2e6)) / 8)));
  }
  SECTION("of the same arm: every count is the sum") {
    const auto learned = [](int firsts, int transfers, int looks, int builds) {
      PerformanceModel model(0.1);
      const ShapeBucket bucket = conv(64, 56);
      for (int i = 0; i < transfers; ++i) model.learn_run(bucket, device_of("a"), 1e6, 1e4);
      for (int i = 0; i < firsts; ++i) model.learn_first(bucket, device_of("a"), 4e7);
      for (int i = 0; i < looks; ++i) model.count_look(bucket, device_of("a"));
      for (int i = 0; i < builds; ++i) model.learn_build(bucket, device_of("a"), build_shape, 5e7);
      return model;
    };
    std::map<ArmKey, Arm> mine = learned(2, 3, 4, 1).arms(), its = learned(5, 6, 1, 2).arms();
    REQUIRE(mine.size() == 2);
    const auto of_shape = [](std::map<ArmKey, Arm>& arms, bool of_build) -> Arm& {
      for (auto& [key, arm] : arms) {
        if ((key.shape == build_shape) == of_build) return arm;
      }
      throw std::runtime_error("no such arm");
    };
    of_shape(mine, false).run.alarms = 2;
    of_shape(its, false).run.alarms = 5;
    REQUIRE(one.merge(mine, {{"contended", 4}, {"failed", 1}}));
    REQUIRE(two.merge(its, {{"contended", 3}}));
    auto read = read_model(file);
    REQUIRE(read);
    REQUIRE(read->arms.size() == 2);
    CHECK(read->unfit == UnfitCounts{{"contended", 7}, {"failed", 1}});
    const Arm& arm = of_shape(read->arms, false);
    CHECK(arm.run.log_ns.count == 9);
    CHECK(arm.run.weight == 9);
    CHECK(arm.run.alarms == 7);
    CHECK(arm.log_first.count == 7);
    CHECK(arm.log_transfer.count == 9);
    CHECK(arm.looks == 5);
    CHECK(of_shape(read->arms, true).run.log_ns.count == 3);
  }
  SECTION("what one brings is brought once") {
    PerformanceModel model = taught("a", 3);
    for (int i = 0; i < 5; ++i) {
      auto all = one.merge(model.arms(), {});
      REQUIRE(all);
      one.adopted(*all);
      model.replace(*all);
    }
    CHECK(only_arm(*read_model(file)).run.log_ns.count == 3);
  }
  SECTION("a reset by another process holds for what was there; what is learned after it comes") {
    PerformanceModel model = taught("a", 3);
    auto all = one.merge(model.arms(), {});
    one.adopted(*all);
    model.replace(*all);
    const auto reset = reset_selector_model(folder.path(), "");
    REQUIRE(reset);
    CHECK(reset->removed == 1);
    REQUIRE(one.merge(model.arms(), {}));
    CHECK(read_model(file)->arms.empty());
    model.learn_run(ShapeBucket(conv(64, 56)), device_of("a"), 2e6, 0);
    REQUIRE(one.merge(model.arms(), {}));
    const Arm& arm = only_arm(*read_model(file));
    CHECK(arm.run.log_ns.count == 1);
    CHECK(arm.run.weight == 1);
    CHECK(arm.run.log_ns.mean == Approx(std::log(2e6)));
    CHECK(arm.log_first.count == 0);
  }
  SECTION("a reset holds for what was there also where the averages forget") {
    PerformanceModel model = taught("a", 100);
    model.learn_first(ShapeBucket(conv(64, 56)), device_of("a"), 4e7);
    model.count_look(ShapeBucket(conv(64, 56)), device_of("a"));
    REQUIRE(one.merge(model.arms(), {}));
    REQUIRE(reset_selector_model(folder.path(), ""));
    for (int i = 0; i < 5; ++i) model.learn_run(ShapeBucket(conv(64, 56)), device_of("a"), 1.05e6, 0);
    REQUIRE(one.merge(model.arms(), {}));
    const Arm& arm = only_arm(*read_model(file));
    CHECK(arm.run.log_ns.count == 5);
    CHECK(arm.run.log_ns.mean == Approx(std::log(1.05e6)));
    CHECK(arm.log_first.count == 0);
    CHECK(arm.looks == 0);
  }
}

// By hand: 3 samples of mean 2 and variance 4, 1 sample of mean 6: mean 3, variance 3 + 3/4 * 1/4 * 16.
TEST_CASE("selector model: two averages merge to the average of all their samples", "[selector]") {
  const Average three{2, 4, 3}, one{6, 0, 1}, none;
  for (const Average& both : {merged(three, one), merged(one, three)}) {
    CHECK(both.mean == Approx(3));
    CHECK(both.variance == Approx(6));
    CHECK(both.count == 4);
  }
  for (const Average& alone : {merged(three, none), merged(none, three)}) {
    CHECK(alone.mean == 2);
    CHECK(alone.variance == 4);
    CHECK(alone.count == 3);
  }
  CHECK(merged(none, none).count == 0);
  CHECK(merged(none, none).mean == 0);
  CHECK(merged(none, none).variance == 0);
}

TEST_CASE("selector store: a reset takes one device or all", "[selector]") {
  const TemporaryFolder folder;
  ModelStore store(folder.path(), {});
  std::map<ArmKey, Arm> arms = taught("a", 3).arms();
  const PerformanceModel other = taught("b", 3);
  arms.insert(other.arms().begin(), other.arms().end());
  REQUIRE(store.merge(arms, {}));
  const auto one = reset_selector_model(folder.path(), "a");
  REQUIRE(one);
  CHECK(one->removed == 1);
  CHECK(one->kept == 1);
  CHECK(read_selector_model(folder.path())->arms.at(0).device == "b");
  CHECK(reset_selector_model(folder.path(), "")->removed == 1);
  CHECK(read_selector_model(folder.path())->arms.empty());
  const TemporaryFolder empty;
  CHECK(reset_selector_model(empty.path(), "")->removed == 0);
  CHECK_FALSE(read_selector_model(empty.path())->exists);
}

TEST_CASE("selector store: what cannot be written stays in memory, said once", "[selector]") {
  const TemporaryFolder folder;
  write_text(folder.path() / "file", "in the way");
  const auto cache = folder.path() / "file" / "cache";  // below a file: no user may write there, root included
  Lines lines;
  ModelStore store(cache, {&lines, LogLevel::info});
  const PerformanceModel model = taught("a", 1);
  CHECK(store.load().empty());
  CHECK_FALSE(store.merge(model.arms(), {}));
  CHECK_FALSE(store.merge(model.arms(), {}));
  CHECK(std::count_if(lines.all.begin(), lines.all.end(),
                      [](const auto& line) { return line.find("stays in memory") != std::string::npos; }) == 1);
}

TEST_CASE("selector store: a full disk costs neither the model nor the folder's order", "[selector]") {
  const TemporaryFolder folder;
  REQUIRE(ModelStore(folder.path(), {}).merge(taught("a", 3).arms(), {}));
  const std::string before = text_of_file(folder.path() / "selector.model");
  struct rlimit room {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &room) == 0);
  const struct rlimit none = {0, room.rlim_max};
  const auto heard = std::signal(SIGXFSZ, SIG_IGN);  // the write then answers EFBIG, as a full disk answers ENOSPC
  REQUIRE(setrlimit(RLIMIT_FSIZE, &none) == 0);
  Lines lines;
  const auto merged = ModelStore(folder.path(), {&lines, LogLevel::info}).merge(taught("b", 3).arms(), {});
  REQUIRE(setrlimit(RLIMIT_FSIZE, &room) == 0);
  std::signal(SIGXFSZ, heard);
  CHECK_FALSE(merged);
  CHECK(lines.mention("the learned model stays in memory only: file "));
  CHECK(lines.mention("selector.model.new: cannot be written: File too large"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "selector.model.new"));
  CHECK(text_of_file(folder.path() / "selector.model") == before);
}

TEST_CASE("selector store: a read-only folder is read and not written", "[selector]") {
  const TemporaryFolder folder;
  REQUIRE(ModelStore(folder.path(), {}).merge(taught("a", 3).arms(), {}));
  const std::string before = text_of_file(folder.path() / "selector.model");
  ModelStore store(folder.path(), {}, true);
  CHECK(store.load().size() == 1);
  CHECK_FALSE(store.merge(taught("a", 9).arms(), {}));
  CHECK(text_of_file(folder.path() / "selector.model") == before);
}

TEST_CASE("selector store: a driver's stray bytes do not cost the model", "[selector]") {
  const TemporaryFolder folder;
  DeviceInfo odd = device_of("odd");
  odd.driver = "driver \xff\xfe";
  const Fleet fleet({odd, device_of("even")});
  teach(folder.path(), fleet);
  PerformanceModel model(0.1);
  model.replace(ModelStore(folder.path(), {}).load());
  CHECK(model.estimate(ShapeBucket(conv(64, 56)), fleet[1]).runs == 4);
}

TEST_CASE("selector store: what is learned is written at the end and now and then, not after each run", "[selector]") {
  const TemporaryFolder folder;
  const Fleet fleet({device_of("one"), device_of("two")});
  {
    const auto selector = selector_of("learning", context_in(folder.path()));
    for (int i = 0; i < 20; ++i) selector->record(conv(64, 56), fleet[0], run_of(3), {});
    CHECK_FALSE(std::filesystem::exists(folder.path() / "selector.model"));
  }
  CHECK(std::filesystem::exists(folder.path() / "selector.model"));
}

TEST_CASE("selector store: what is learned is written when asked, and only what came since at the end", "[selector]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "selector.model";
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto runs = [&] {
    PerformanceModel model(0.1);
    model.replace(ModelStore(folder.path(), {}).load());
    return model.estimate(ShapeBucket(conv(64, 56)), fleet[0]).runs;
  };
  {
    const auto selector = selector_of("learning", context_in(folder.path()));
    selector->save();
    CHECK_FALSE(std::filesystem::exists(file));  // nothing was learned
    for (int i = 0; i < 5; ++i) selector->record(conv(64, 56), fleet[0], run_of(3), {});
    selector->save();
    CHECK(runs() == 5);
    std::filesystem::remove(file);
    selector->save();
    CHECK_FALSE(std::filesystem::exists(file));
  }
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("selector store: what another process kept from being written is written the next time", "[selector]") {
  const TemporaryFolder folder;
  const Fleet fleet({device_of("one"), device_of("two")});
  Lines lines;
  {
    const auto selector = selector_of("learning", context_in(folder.path(), &lines));
    for (int i = 0; i < 5; ++i) selector->record(conv(64, 56), fleet[0], run_of(3), {});
    const auto lock = selector::lock_model(folder.path());
    REQUIRE(lock);
    selector->save();
    CHECK_FALSE(std::filesystem::exists(folder.path() / "selector.model"));
  }
  CHECK(lines.all ==
        std::vector<std::string>{"the model was not saved this time: file " +
                                 (folder.path() / "selector.lock").string() + ": another process holds its lock"});
  PerformanceModel model(0.1);
  model.replace(ModelStore(folder.path(), {}).load());
  CHECK(model.estimate(ShapeBucket(conv(64, 56)), fleet[0]).runs == 5);
}

TEST_CASE("selector store: no folder, no file", "[selector]") {
  Lines lines;
  const Fleet fleet({device_of("slow"), device_of("fast")});
  teach({}, fleet, &lines);
  CHECK(lines.all.empty());
  CHECK_FALSE(std::filesystem::exists("selector.model"));
}
