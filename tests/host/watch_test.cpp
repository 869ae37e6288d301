// `kiln run --watch`: what its table says, how it is drawn in place, and that who has no terminal sees nothing of it.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"

#include "progress.hpp"
#include "run_watch.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>

using namespace kiln::test;
using Catch::Matchers::Contains;
using kiln::host::Colour;
using kiln::host::columns_of;
using kiln::host::cut_to;
using kiln::host::LiveArea;
using kiln::host::MetricsReading;
using kiln::host::RunCourse;
using kiln::host::seconds_left;
using kiln::host::size_of_terminal;
using kiln::host::watch_lines;

namespace {

const MetricsReading earlier(R"(# TYPE kiln_runtime_run_seconds histogram
kiln_runtime_run_seconds_sum{device="cpu",op="conv2d"} 0.4
kiln_runtime_run_seconds_count{device="cpu",op="conv2d"} 100
kiln_runtime_stage_seconds_total{device="cpu",op="conv2d",stage="device"} 0.3
kiln_runtime_cache_hits_total{tier="memory"} 100
)");
const MetricsReading later(R"(kiln_runtime_run_seconds_sum{device="cpu",op="conv2d"} 2
kiln_runtime_run_seconds_count{device="cpu",op="conv2d"} 400
kiln_runtime_run_seconds_sum{device="cpu",op="gemm"} 2
kiln_runtime_run_seconds_count{device="cpu",op="gemm"} 100
kiln_runtime_stage_seconds_total{device="cpu",op="conv2d",stage="device"} 1.3
kiln_runtime_stage_seconds_total{device="cpu",op="conv2d",stage="upload"} 0.5
kiln_runtime_device_jobs{device="cpu"} 3
kiln_runtime_device_usable{device="cpu",kind="cpu",name="a \"b\" } c",driver="d"} 1
kiln_runtime_device_usable{device="opengl:0",kind="software",name="n",driver="d"} 1
kiln_runtime_cache_hits_total{tier="memory"} 450
kiln_runtime_cache_hits_total{tier="disk"} 7
kiln_runtime_cache_builds_total{stored="yes"} 2
kiln_runtime_cache_programs 9
kiln_runtime_cache_memory_bytes 4096
)");

RunCourse watched() {
  RunCourse run;
  run.jobs = 4;
  run.ended = 2;
  run.failed = 1;
  run.repeat = 275;
  run.runs = 1100;
  run.runs_out = 100;
  run.job = "job 3 of 4: layer";
  run.elapsed_s = 5;
  return run;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// A terminal whose size is known, with what is written to it.
class Screen {
 public:
  Screen(unsigned short columns, unsigned short rows) {
    char name[64];
    master_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(master_ >= 0);
    REQUIRE(grantpt(master_) == 0);
    REQUIRE(unlockpt(master_) == 0);
    REQUIRE(ptsname_r(master_, name, sizeof name) == 0);
    slave_ = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(slave_ >= 0);
    resize(columns, rows);
  }
  ~Screen() {
    close(slave_);
    close(master_);
  }
  void resize(unsigned short columns, unsigned short rows) const {
    const winsize size{rows, columns, 0, 0};
    REQUIRE(ioctl(slave_, TIOCSWINSZ, &size) == 0);
  }
  int terminal() const { return slave_; }
  std::string read_new() const {
    pollfd waiting{master_, POLLIN, 0};
    REQUIRE(poll(&waiting, 1, 20'000) == 1);  // else nothing was written
    char bytes[8192];
    const ssize_t got = read(master_, bytes, sizeof bytes);
    REQUIRE(got > 0);
    return {bytes, static_cast<std::size_t>(got)};
  }

 private:
  int master_ = -1, slave_ = -1;
};

}  // namespace

TEST_CASE("watch: metrics are read back, whatever a label holds") {
  CHECK(later.sum("kiln_runtime_run_seconds_count") == 500);
  CHECK(later.sum("kiln_runtime_run_seconds_count", {{"op", "gemm"}}) == 100);
  CHECK(later.sum("kiln_runtime_run_seconds_count", {{"op", "gemm"}, {"device", "opengl:0"}}) == 0);
  CHECK(later.sum("kiln_runtime_cache_programs") == 9);
  CHECK(later.sum("absent") == 0);
  CHECK(later.values_of("kiln_runtime_device_usable", "device") == std::vector<std::string>{"cpu", "opengl:0"});
  CHECK(later.values_of("kiln_runtime_device_usable", "name").front() == "a \"b\" } c");
  for (const char* torn :
       {"name{a=\"b", "name{a=\"b\"}", "name{a} 1", "name 1x", "name", "{} 1 \n\n", "name{a=\"b\\"}) {
    INFO(torn);
    CHECK(MetricsReading(torn).sum("name") == 0);
  }
}

TEST_CASE("watch: samples are read with every escape, and none of a line that is no sample") {
  const MetricsReading reading(
      "# HELP a text {\nplain 1.5\nspaced{l=\"x\"}   2\nmany{a=\"1\",b=\"2\"} 3\nmany{a=\"1\",b=\"4\"} 5\n"
      "many{a=\"6\"} 7\nnewline{l=\"a\\nb\"} 1\nslash{l=\"a\\\\b\"} 1\nempty{} 4\nminus -1e3\nlast{l=\"\"} 9");
  CHECK(reading.sum("plain") == 1.5);
  CHECK(reading.sum("spaced", {{"l", "x"}}) == 2);
  CHECK(reading.sum("many") == 15);
  CHECK(reading.sum("many", {{"a", "1"}}) == 8);
  CHECK(reading.sum("many", {{"a", "1"}, {"b", "4"}}) == 5);
  CHECK(reading.sum("many", {{"b", "2"}}) == 3);
  CHECK(reading.sum("many", {{"c", "2"}}) == 0);
  CHECK(reading.values_of("many", "a") == std::vector<std::string>{"1", "6"});
  CHECK(reading.values_of("many", "b") == std::vector<std::string>{"2", "4"});
  CHECK(reading.values_of("many", "c").empty());
  CHECK(reading.values_of("none", "a").empty());
  CHECK(reading.values_of("newline", "l") == std::vector<std::string>{"a\nb"});
  CHECK(reading.values_of("slash", "l") == std::vector<std::string>{"a\\b"});
  CHECK(reading.values_of("last", "l") == std::vector<std::string>{""});
  CHECK(reading.sum("empty") == 4);
  CHECK(reading.sum("minus") == -1000);
  CHECK(reading.sum("last") == 9);
}

TEST_CASE("watch: the table tells progress, time left, each device's share and each tier's rate") {
  const auto lines = watch_lines(watched(), {earlier, later, 2}, 120, Colour::no);
  const std::string text = joined(lines);
  INFO(text);
  CHECK(lines[0] == "[" + std::string(27, '#') + std::string(23, '-') + "]  55 %  5 s left");
  CHECK(lines[1] == "2 of 4 jobs, 1 failed, 500 of 1100 runs, 200 runs/s, 5 s so far");
  CHECK(lines[2] == "job 3 of 4: layer");
  CHECK_THAT(text, Catch::Matches("(.|\n)*\ncpu +3 +50 % +200 +8.00 ms +500\n(.|\n)*"));
  CHECK_THAT(text, Catch::Matches("(.|\n)*\nopengl:0 +0 +0 % +0 +– +0\n(.|\n)*"));
  CHECK_THAT(text, Catch::Matches("(.|\n)*\nmemory +175 +450 +9 +4.0 KiB\n(.|\n)*"));
  CHECK_THAT(text, Catch::Matches("(.|\n)*\ndisk +3.50 +7 .*\na build +1.00 +2 .*\n"));
  CHECK_THAT(text, !Contains("warming") && !Contains("\033"));
  CHECK_THAT(joined(watch_lines(watched(), {earlier, later, 2}, 120, Colour::yes)),
             Contains("\033[1mdevice") && Contains("\033[0m"));
  CHECK_THAT(text, !Contains("layer ") && !Contains("remote"));
  const MetricsReading shared(
      "kiln_runtime_cache_hits_total{tier=\"layer\"} 4\nkiln_runtime_cache_hits_total{tier=\"remote\"} 6\n");
  CHECK_THAT(joined(watch_lines(watched(), {MetricsReading(), shared, 2}, 120, Colour::no)),
             Catch::Matches("(.|\n)*\ndisk +0 +0 .*\nlayer +2.00 +4 .*\nremote +3.00 +6 .*\na build (.|\n)*"));
  RunCourse warming = watched();
  warming.warming = {.running = true, .done = 3, .of = 8};
  CHECK_THAT(joined(watch_lines(warming, {earlier, later, 2}, 120, Colour::no)), Contains("3 of 8"));
}

TEST_CASE("watch: what cannot be known yet is not made up") {
  RunCourse run = watched();
  run.runs_out = 0;
  CHECK_FALSE(seconds_left(run, 0).has_value());
  CHECK(seconds_left(run, 550) == Approx(5));
  CHECK(seconds_left(run, 1100) == Approx(0));
  CHECK(seconds_left(run, 1200) == Approx(0));
  const MetricsReading nothing_yet;
  const auto lines = watch_lines(run, {nothing_yet, nothing_yet, 0}, 40, Colour::no);
  CHECK(lines[0] == "[" + std::string(23, '-') + "]   0 %  – left");  // as wide as the terminal
  CHECK_THAT(lines[1], Contains("0 of 1100 runs, – runs/s"));
  CHECK_THAT(watch_lines(run, {nothing_yet, nothing_yet, 0}, 10, Colour::no)[0], Catch::StartsWith("[]"));
}

TEST_CASE("watch: lines are cut by columns, and colours are no columns") {
  CHECK(cut_to("größer", 4) == "größ");
  CHECK(cut_to("\033[1mbold\033[0m", 2) == "\033[1mbo\033[0m");
  CHECK(columns_of("\033[1mgrö\033[0m") == 3);
  CHECK(cut_to("short", 80) == "short");
}

TEST_CASE("watch: a sequence that is cut off ends its line, and what is none takes columns") {
  CHECK(columns_of("") == 0);
  CHECK(columns_of("a\033[1") == 1);
  CHECK(columns_of("\033[") == 0);
  CHECK(columns_of("a\033") == 2);
  CHECK(columns_of("\033x") == 2);
  CHECK(columns_of("\033[1;31mab\033[K") == 2);
  CHECK(columns_of("\033[@b") == 1);
  CHECK(columns_of("\033[~b") == 1);
  CHECK(cut_to("ab\033[1", 1) == "a\033[1");
  CHECK(cut_to("abc", 0).empty());
  CHECK(cut_to("abc", 3) == "abc");
  CHECK(cut_to("abc", 2) == "ab");
}

TEST_CASE("watch: a terminal that tells no size is 80 by 24") {
  const Screen screen(0, 0);
  CHECK(size_of_terminal(screen.terminal()).width == 80);
  CHECK(size_of_terminal(screen.terminal()).height == 24);
  screen.resize(17, 5);
  CHECK(size_of_terminal(screen.terminal()).width == 17);
  CHECK(size_of_terminal(screen.terminal()).height == 5);
  CHECK(size_of_terminal(-1).width == 80);
  CHECK(size_of_terminal(-1).height == 24);
}

TEST_CASE("watch: what is printed above no table is what it is") {
  const Screen screen(10, 5);
  LiveArea area(screen.terminal());
  CHECK(area.width() == 10);
  area.print("a message\n");
  CHECK(screen.read_new() == "a message\r\n");
  area.draw({"", "1234567890"});
  CHECK(screen.read_new() == "\r\n123456789\r\n");
  area.print("");
  CHECK(screen.read_new() == "\033[2A\r\033[J\r\n123456789\r\n");
}

TEST_CASE("watch: no runs, and counts above a thousand") {
  const MetricsReading none;
  RunCourse nothing_to_run;
  CHECK_THAT(watch_lines(nothing_to_run, {none, none, 1}, 80, Colour::no)[0], Contains("]   0 %  "));
  CHECK(watch_lines(nothing_to_run, {none, none, 1}, 80, Colour::no)[1] ==
        "0 of 0 jobs, 0 of 0 runs, 0 runs/s, 0 s so far");
  // More can be counted before than now: a series that began anew.
  CHECK_THAT(watch_lines(watched(), {later, earlier, 2}, 120, Colour::no)[1], Contains(" 0 runs/s"));
}

TEST_CASE("watch: lines are redrawn in their place, within the terminal's size, and wiped at the end") {
  const Screen screen(10, 5);
  {
    LiveArea area(screen.terminal());
    area.draw({"one", "a line that is far too long", "three"});
    CHECK(screen.read_new() == "one\r\na line th\r\nthree\r\n");
    area.draw({"uno", "dos"});
    CHECK(screen.read_new() == "\033[3A\r\033[Juno\r\ndos\r\n");
    area.print("a message\n");
    CHECK(screen.read_new() == "\033[2A\r\033[Ja message\r\nuno\r\ndos\r\n");
    area.draw({"1", "2", "3", "4", "5", "6"});
    CHECK(screen.read_new() == "\033[2A\r\033[J1\r\n2\r\n3\r\n4\r\n");  // one row stays free
    area.draw({"123456789", "1"});
    CHECK(screen.read_new() == "\033[4A\r\033[J123456789\r\n1\r\n");
    screen.resize(4, 5);  // the first line stands on three rows now
    area.draw({"x"});
    CHECK(screen.read_new() == "\033[4A\r\033[Jx\r\n");
  }
  CHECK(screen.read_new() == "\033[1A\r\033[J");
}

TEST_CASE("kiln run --watch: on a terminal a table that is wiped, elsewhere an ordinary run") {
  const TemporaryFolder folder;
  const ConvExtents half_a_millisecond = {32, 56, 32};  // so that the runs outlast a few redraws, on fast machines too
  const std::string file =
      folder.write("two.toml", conv_3x3("one", half_a_millisecond) + conv_3x3("two", half_a_millisecond));
  const auto kiln = [&](std::vector<std::string> more, StandardOutput errors,
                        const std::map<std::string, std::string>& environment = {}) {
    std::vector<std::string> words = {"run", file, "--watch", "--device", "cpu", "--cache-dir", folder / "cache"};
    words.insert(words.end(), more.begin(), more.end());
    ProcessOptions options;
    options.errors = errors;
    options.environment = environment;
    options.environment.emplace("TERM", "xterm");
    Finished finished = run_kiln(words, options);
    INFO(finished.err);
    CHECK(finished.status == 0);
    return finished;
  };
  const Finished shown = kiln({"--repeat", "1000"}, StandardOutput::terminal, {{"NO_COLOR", ""}});
  CHECK_THAT(shown.err, Contains("0 of 2 jobs, ") && Contains("1 of 2 jobs, "));
  CHECK_THAT(shown.err, Contains("of 2000 runs") && Contains("runs/s") && Contains("left") && Contains("mean run") &&
                            Contains("programs from") && Contains("\033[1mdevice") && Contains("\r\ncpu "));
  CHECK(shown.err.ends_with("A\r\033[J"));
  CHECK_THAT(shown.err, !Contains("\033[?25l"));  // the cursor is never hidden
  CHECK_THAT(shown.out, Contains("one") && Contains("two") && !Contains("\033"));

  const Finished plain = kiln({}, StandardOutput::terminal, {{"NO_COLOR", "1"}});
  CHECK_THAT(plain.err, Contains("of 2 runs") && !Contains("\033[1m"));
  CHECK(kiln({"--progress", "none"}, StandardOutput::terminal).err == "");
  CHECK(kiln({}, StandardOutput::pipe).err == "");
  CHECK(kiln({"--json"}, StandardOutput::pipe).json().at("jobs").size() == 2);
}

TEST_CASE("kiln run --watch: lines of the log go above the table, each whole") {
  const TemporaryFolder folder;
  const std::string file = folder.write("one.toml", conv_3x3("one"));
  ProcessOptions options;
  options.errors = StandardOutput::terminal;
  const Finished finished = run_kiln(
      {"run", file, "--watch", "--device", "opengl:0", "--log", "debug", "--cache-dir", folder / "cache"}, options);
  INFO(finished.err);
  CHECK(finished.status == 0);
  // Wiped, said, and the table again below it.
  const std::size_t line = finished.err.find("kiln: debug: cache[");
  REQUIRE(line != std::string::npos);
  const std::size_t end = finished.err.find("\r\n", line);
  CHECK_THAT(finished.err.substr(line, end - line), Contains("]: built: program '"));
  CHECK(finished.err.substr(0, line).ends_with("A\r\033[J"));
  CHECK_THAT(finished.err.substr(end + 2, 80), Contains(" left\r\n0 of 1 job"));
}

TEST_CASE("kiln run --watch: Ctrl-C wipes the table and leaves the cursor shown, below what was said") {
  const TemporaryFolder folder;
  const std::string file = folder.write("long.toml", conv_3x3("long", {.channels = 64, .size = 56, .filters = 64}));
  ProcessOptions options;
  options.errors = StandardOutput::terminal;
  options.interrupt_when = " so far";
  const Finished finished = run_kiln(
      {"run", file, "--watch", "--device", "cpu", "--repeat", "100000", "--cache-dir", folder / "cache"}, options);
  INFO(finished.err);
  CHECK(finished.status == -SIGINT);
  CHECK_THAT(finished.err, Contains("A\r\033[Jkiln: interrupted") && !Contains("\033[?25l"));
  CHECK(finished.err.ends_with("\r\n"));
}
