#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "dynamic_shaders/tuner/tuning_database.hpp"

namespace kiln::dynamic_shaders {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "kiln-tuning-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  fs::path file() const { return path_ / "tuning.tsv"; }

 private:
  fs::path path_;
};

TuningRecord record_for(const std::string& spec, const std::string& variant, Verdict verdict = Verdict::measured) {
  TuningRecord record;
  record.device = "d0";
  record.spec = spec;
  record.variant = variant;
  record.verdict = verdict;
  record.when = 1700000000;
  record.source = "abc";
  record.max_rel_error = 1.25e-7, record.error_bound = 3e-5;
  record.wall_ns = {100, 120, 90};
  record.device_ns = {80, 81, 79};
  return record;
}

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("tuning database: a record is its line and back, and a changed line is none") {
  TuningRecord record = record_for("conv2d n=1", "direct/plain", Verdict::rejected);
  record.why = "two\nlines\tand a tab";
  const std::string line = to_line(record);
  CHECK(std::count(line.begin(), line.end(), '\n') == 1);
  const auto back = record_of(line);
  REQUIRE(back.has_value());
  CHECK(back->spec == record.spec);
  CHECK(back->verdict == Verdict::rejected);
  CHECK(back->wall_ns == record.wall_ns);
  CHECK(back->device_ns == record.device_ns);
  CHECK(back->max_rel_error == record.max_rel_error);
  CHECK(back->why == "two lines and a tab");
  for (std::size_t at = 0; at + 1 < line.size(); ++at) {
    std::string altered = line;
    altered[at] = altered[at] == 'x' ? 'y' : 'x';
    CHECK_FALSE(record_of(altered).has_value());
    CHECK_FALSE(record_of(line.substr(0, at)).has_value());
  }
}

TEST_CASE("tuning database: a record has the basis of its verdict, and one without it is still read") {
  TuningRecord record = record_for("kernel k", "user:A=1", Verdict::outvoted);
  record.basis = "0123456789abcdef";
  const auto back = record_of(to_line(record));
  REQUIRE(back.has_value());
  CHECK(back->basis == record.basis);
  CHECK(back->verdict == Verdict::outvoted);
  record.basis.clear();
  REQUIRE(record_of(to_line(record)).has_value());
  CHECK(record_of(to_line(record))->basis.empty());
}

TEST_CASE("tuning database: what one process puts another finds, and there is one winner a shape") {
  const Folder folder;
  TuningDatabase first(folder.file()), second(folder.file());
  CHECK_FALSE(second.winner("d0", "s").has_value());  // read before anything was there
  REQUIRE(first.put({record_for("s", "a", Verdict::winner), record_for("s", "b")}).ok());
  REQUIRE(second.put({record_for("s", "c", Verdict::winner), record_for("t", "a", Verdict::winner)}).ok());
  TuningDatabase third(folder.file());
  CHECK(third.of("d0", "s").size() == 3);
  REQUIRE(third.winner("d0", "s").has_value());
  CHECK(third.winner("d0", "s")->variant == "c");
  CHECK(third.winners("d0").size() == 2);
  CHECK(third.winners("d1").empty());
  CHECK(third.has_winners());
  CHECK(third.damaged() == 0);
}

TEST_CASE("tuning database: a damaged line costs no other") {
  const Folder folder;
  REQUIRE(TuningDatabase(folder.file()).put({record_for("s", "a"), record_for("s", "b"), record_for("t", "a")}).ok());
  std::string text = contents(folder.file());
  text[text.find("\tb\t") + 1] = 'z';
  std::ofstream(folder.file(), std::ios::binary) << text << "half a li";
  TuningDatabase database(folder.file());
  CHECK(database.of("d0", "s").size() == 1);
  CHECK(database.of("d0", "t").size() == 1);
  CHECK(database.damaged() == 2);
  std::ofstream(folder.file(), std::ios::binary) << "kiln-tuning 9\nwhatever\n";
  TuningDatabase newer(folder.file());
  CHECK(newer.of("d0", "s").empty());
  CHECK(newer.damaged() == 1);
}

TEST_CASE("tuning database: a file of another form, or that cannot be read, is never written over") {
  const Folder folder;
  const std::string newer = "kiln-tuning 9\nwhatever\n";
  std::ofstream(folder.file(), std::ios::binary) << newer;
  TuningDatabase database(folder.file());
  const Status refused = database.put({record_for("s", "a", Verdict::winner)});
  CHECK(refused.code == StatusCode::corrupt);
  CHECK_THAT(refused.message, Catch::Contains(folder.file().string()) && Catch::Contains("found 'kiln-tuning 9'") &&
                                  Catch::Contains("expected 'kiln-tuning 1'"));
  CHECK(contents(folder.file()) == newer);
  CHECK(database.usable().message == refused.message);
  CHECK(TuningDatabase({}).usable().ok());
  CHECK(TuningDatabase(folder.file(), true).usable().code == StatusCode::unavailable);
  CHECK(database.winner("d0", "s").has_value());  // for as long as this process lives

  fs::remove(folder.file());
  fs::create_directory(folder.file());
  TuningDatabase blocked(folder.file());
  const Status unread = blocked.put({record_for("s", "a")});
  CHECK(unread.code == StatusCode::invalid_argument);
  CHECK_THAT(unread.message, Catch::Contains(folder.file().string()) && Catch::Contains("found a folder"));
  CHECK(fs::is_directory(folder.file()));

  fs::remove(folder.file());
  CHECK(blocked.usable().ok());
  CHECK(blocked.put({record_for("s", "b")}).ok());
  CHECK(TuningDatabase(folder.file()).of("d0", "s").size() == 2);  // what could not be kept before is kept with it
}

TEST_CASE("tuning database: a user's kernel is one spec, whatever further values its parameters may take") {
  UserKernelSpec kernel;
  kernel.text = "void main() {}";
  kernel.parameters = {{"TILE", {"8", "16"}}};
  UserKernelSpec wider = kernel;
  wider.parameters[0].texts.push_back("32");
  CHECK(canonical_text(kernel) != canonical_text(wider));
  CHECK(record_spec(kernel) == record_spec(wider));
  UserKernelSpec other = kernel;
  other.text += " ";
  CHECK(record_spec(kernel) != record_spec(other));
  other = kernel;
  other.parameters[0].texts = {"16", "8"};  // compared with another first variant
  CHECK(record_spec(kernel) != record_spec(other));
  other = kernel;
  other.parameters[0].name = "WIDTH";
  CHECK(record_spec(kernel) != record_spec(other));
  CHECK(record_spec(GemmSpec{1, 2, 3}) == canonical_text(GemmSpec{1, 2, 3}));
}

TEST_CASE("tuning database: writers at once lose nothing, and leave nothing behind") {
  const Folder folder;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&folder, writer] {
      TuningDatabase database(folder.file());
      for (int i = 0; i < 8; ++i) {
        (void)database.put({record_for("s" + std::to_string(writer), "v" + std::to_string(i))});
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  TuningDatabase database(folder.file());
  for (int writer = 0; writer < 4; ++writer) CHECK(database.of("d0", "s" + std::to_string(writer)).size() == 8);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder.file().parent_path())) files += entry.path() != "";
  CHECK(files == 2);  // the file and its lock
}

TEST_CASE("tuning database: a writer waits while another holds the lock") {
  const Folder folder;
  REQUIRE(TuningDatabase(folder.file()).put({record_for("s", "a")}).ok());
  const std::string before = contents(folder.file()), beside = folder.file().string() + ".lock";
  const int lock = ::open(beside.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(lock >= 0);
  REQUIRE(::flock(lock, LOCK_EX | LOCK_NB) == 0);
  std::atomic<bool> is_done{false};
  Status status = unavailable("not yet");
  std::thread writer([&] {
    status = TuningDatabase(folder.file()).put({record_for("s", "b")});
    is_done = true;
  });
  // A writer that did not wait would be done long before; one that waits gives up only after seconds.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (!is_done && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const std::string meanwhile = contents(folder.file());
  ::close(lock);
  writer.join();
  CHECK(meanwhile == before);
  CHECK(status.text() == "ok");
  CHECK(TuningDatabase(folder.file()).of("d0", "s").size() == 2);
}

TEST_CASE("tuning database: it is bounded, and the oldest shapes go first") {
  const Folder folder;
  std::vector<TuningRecord> records;
  for (std::size_t i = 0; i < TuningDatabase::most_records + 10; ++i) {
    records.push_back(record_for("s" + std::to_string(i), "a"));
    records.back().when = i;
  }
  TuningDatabase database(folder.file());
  REQUIRE(database.put(records).ok());
  CHECK(database.of("d0", "s9").empty());
  CHECK(database.of("d0", "s10").size() == 1);
}

TEST_CASE("tuning database: a winner of another machine does not replace what was rejected here") {
  TuningDatabase database({});
  const TuningRecord rejected = record_for("s", "a", Verdict::rejected);
  REQUIRE(database.put({rejected}).ok());
  TuningRecord theirs = record_for("s", "a", Verdict::winner);
  for (const std::string source : {"abc", "of another version"}) {
    theirs.source = source;
    const auto merged = database.merge_foreign("kiln-tuning 1\n" + to_line(theirs), "d0");
    REQUIRE(merged.has_value());
    CHECK(merged->taken == 0);
    REQUIRE(database.of("d0", "s").size() == 1);
    CHECK(database.of("d0", "s")[0].verdict == Verdict::rejected);
  }
  theirs.variant = "b";
  const std::string text = "kiln-tuning 1\n" + to_line(theirs);
  CHECK(database.merge_foreign(text, "d0", [](const TuningRecord&) { return false; })->older == 1);
  CHECK(database.merge_foreign(text, "d0")->taken == 1);
}

TEST_CASE("tuning database: winners of other machines that are not needed here are passed on unchanged") {
  const std::string head = "kiln-tuning 1\n";
  TuningDatabase database({});
  TuningRecord stale = record_for("stale here", "a", Verdict::winner);
  stale.why = "runs in a row took longer";
  const TuningRecord ours = record_for("won here", "a", Verdict::winner);
  REQUIRE(database.put({ours, stale, record_for("measured here", "a"), record_for("rejected", "a", Verdict::rejected)})
              .ok());
  TuningRecord theirs = record_for("measured here", "a", Verdict::winner);
  std::string remote = head, expected = head;
  for (const std::string spec : {"measured here", "rejected", "stale here", "won here"}) {
    theirs.spec = spec;
    theirs.wall_ns = {1000};
    remote += to_line(theirs);
    expected += to_line(spec == ours.spec ? ours : theirs);
  }
  CHECK(database.merge_foreign(remote, "d0")->taken == 0);
  CHECK(database.winners_text("d0") == expected);
  CHECK(database.winners_text("d1").empty());
  theirs.spec = "rejected";
  theirs.when -= 1;
  theirs.variant = "older";
  CHECK(database.merge_foreign(head + to_line(theirs), "d0")->taken == 1);  // another variant than the rejected one
  CHECK(database.winners_text("d0") == expected);
}

TEST_CASE("tuning database: an import leaves no shape without the winner that it had") {
  TuningDatabase database({});
  const TuningRecord ours = record_for("s", "a", Verdict::winner);
  TuningRecord older = record_for("s", "b", Verdict::winner), newer = record_for("s", "a");
  older.when -= 1;
  newer.when += 1;
  newer.verdict = GENERATE(Verdict::measured, Verdict::foreign);
  REQUIRE(database.put({ours}).ok());
  const bool first = GENERATE(true, false);
  const auto merged =
      database.merge("kiln-tuning 1\n" + (first ? to_line(older) + to_line(newer) : to_line(newer) + to_line(older)));
  REQUIRE(merged.has_value());
  CHECK(merged->taken == 1);
  CHECK(merged->older == 1);
  REQUIRE(database.winner("d0", "s").has_value());
  CHECK(database.winner("d0", "s")->variant == "a");
  older.when += 2;  // a newer winner takes its place
  CHECK(database.merge("kiln-tuning 1\n" + to_line(older))->taken == 1);
  CHECK(database.winner("d0", "s")->variant == "b");
}

TEST_CASE("tuning database: one that is only read is read, and stays as it is") {
  const Folder folder;
  REQUIRE(TuningDatabase(folder.file()).put({record_for("s", "a", Verdict::winner)}).ok());
  const std::string before = contents(folder.file());
  TuningDatabase database(folder.file(), true);
  CHECK(database.winner("d0", "s")->variant == "a");
  CHECK(database.merge(before).has_value());  // nothing newer: nothing to write
  CHECK(database.merge_foreign(before, "d0", {}).has_value());
  CHECK(database.put({record_for("s", "b", Verdict::winner)}).code == StatusCode::unavailable);
  CHECK(database.winner("d0", "s")->variant == "b");  // in this process
  CHECK(contents(folder.file()) == before);
}

TEST_CASE("tuning database: a folder that cannot be written is told, and memory has the record") {
  TuningDatabase database("/proc/nowhere/tuning.tsv");
  CHECK(database.put({record_for("s", "a", Verdict::winner)}).code == StatusCode::io);
  CHECK(database.winner("d0", "s").has_value());
}

}  // namespace kiln::dynamic_shaders
