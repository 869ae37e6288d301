// What `kiln` says: limits and places in errors, foreign names on the terminal, counts of builds.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <fstream>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

void write_vector(const std::filesystem::path& path) {
  REQUIRE(kiln::data::write_npy(path, **kiln::HostTensor::create(kiln::DType::f32, {4})).ok());
}

std::string kernel_job(const TemporaryFolder& folder, const std::string& statement, const std::string& more = {}) {
  folder.write("own.comp",
               "#version 430\nlayout(local_size_x = 4) in;\n"
               "layout(std430, binding = 0) buffer Y { float y[]; };\nvoid main() { " +
                   statement + " }\n");
  write_vector(folder / "y.npy");
  return "[[job]]\nname = \"own\"\nop = \"kernel\"\nsource = \"own.comp\"\nbindings = [ { inout = \"y.npy\" } ]\n" +
         (more.empty() ? "grid = [1]\n" : more);
}

// No byte that a terminal obeys, but for the ends of lines.
bool is_plain(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f) return false;
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a job that takes too long is reported with the limit and the place that sets it") {
  const TemporaryFolder folder;
  const std::string job = tiny_gemm("case");
  const auto in_file = folder.write("limit.toml", "[executor]\ntimeout = \"1 ns\"\n" + job);
  const auto plain = folder.write("plain.toml", job);
  const struct {
    std::vector<std::string> words;
    std::string says;
  } cases[] = {
      {{"run", in_file}, "job 'case' took longer than 1 ns ([executor] timeout, " + in_file.string() + ":2)"},
      {{"run", plain, "--set", "executor.timeout=2 ns"},
       "job 'case' took longer than 2 ns ([executor] timeout, --set executor.timeout=2 ns)"},
      {{"run", in_file, "--set", "executor.timeout=3 ns"}, "took longer than 3 ns ([executor] timeout, --set"},
      {{"run", plain, "--set", "executor.timeout=0.5 us", "--repeat", "3"}, "took longer than 500 ns ([executor]"}};
  for (auto one : cases) {
    // Not the CPU: it may have finished a job of this size when the wait begins.
    one.words.insert(one.words.end(), {"--device", "opengl:0"});
    one.words.insert(one.words.end(), {"--cache-dir", folder / "cache"});
    const Finished finished = run_kiln(one.words);
    INFO(finished.err << finished.out);
    CHECK(finished.status == 1);
    CHECK_THAT(finished.out, Contains(one.says));
  }
}

TEST_CASE("an error in an expression stands at the place of its value") {
  const TemporaryFolder folder;
  const struct {
    std::string keys;  // the job's first own key is in line 6
    std::string place;
    std::string says;
  } cases[] = {{"grid = [\"(4 + WG - 1) / WG\", 1]\n", "6:9", "'WG'"},
               {"grid = [1, \"4 /\"]\n", "6:12", "grid[1]"},
               {"constants = { A = 0 }\ngrid = [1, 1, \"A\"]\n", "7:15", "grid[2]"},
               {"constants = { A = 0 }\ngrid = [\n  1,\n  \"8 / A\"\n]\n", "9:3", "grid[1]"},
               {"grid = [\"1 - 2\"]\n", "6:9", "-1"},
               {"grid = [1]\ntune = { A = [1, 1] }\n", "7:14", "twice"},
               {"grid = [1]\nconstants = { B = 1 }\ntune = { A = [1], B = [2] }\n", "8:23", "constant"},
               {"grid = [1]\ntune = { A = [] }\n", "7:14", "has no values"}};
  for (const auto& one : cases) {
    const auto file = folder.write("case.toml", kernel_job(folder, "y[0] = 1.0;", one.keys));
    for (const std::vector<std::string>& verb : {std::vector<std::string>{"config", "check"}, {"run"}}) {
      std::vector<std::string> words = verb;
      words.insert(words.end(), {file, "--cache-dir", folder / "cache"});
      const Finished finished = run_kiln(words);
      INFO(one.keys << finished.err);
      CHECK(finished.status == 2);
      CHECK_THAT(finished.err, Contains("case.toml:" + one.place + ": ") && Contains(one.says));
    }
  }
  const auto groups = folder.write("groups.toml", conv_3x3("layer", {4, 8, 8}) + "groups = 3\n");
  CHECK_THAT(run_kiln({"config", "check", groups, "--cache-dir", folder / "cache"}).err,
             Contains("groups.toml:15:10: "));
}

TEST_CASE("control characters of foreign names never reach the terminal") {
  const TemporaryFolder folder;
  const std::string names[] = {"\\u001b]0;title\\u0007", "two\\nlines", "a\\rb", "c1 \\u009b2J", "del \\u007f",
                               "rtl \\u202e gnp",        "tab\\tstop"};
  for (const std::string& name : names) {
    const auto file = folder.write("case.toml", tiny_gemm(name));
    const Finished plain = run_kiln({"run", file, "--device", "cpu", "--cache-dir", folder / "cache"});
    INFO(name << plain.err << plain.out);
    CHECK(plain.status == 0);
    CHECK(is_plain(plain.out));
    CHECK(lines_of(plain.out) == 4);  // head, job, programs, jobs
    CHECK_THAT(plain.out, Contains("\\"));
    const Finished progress = run_kiln(
        {"run", file, "--device", "cpu", "--progress", "plain", "--log", "debug", "--trace", folder / "trace.json",
         "--json", "--set", "metrics.file=" + (folder / "metrics.prom").string(), "--cache-dir", folder / "cache"});
    CHECK(is_plain(progress.err));
    CHECK(is_plain(progress.out));
    CHECK(progress.json()["jobs"][0]["status"] == "ok");
    for (const char* written : {"trace.json", "metrics.prom"}) {
      std::ifstream stream(folder / written);
      CHECK(is_plain({std::istreambuf_iterator<char>(stream), {}}));
    }
  }
}

TEST_CASE("control characters in errors, file names and arguments never reach the terminal") {
  const TemporaryFolder folder;
  const std::string evil =
      "\x1b[2Jx\xc2\x9b"
      "31m";
  const auto file = folder.write("case.toml", tiny_gemm("product"));
  const auto odd_file = folder.write(evil + ".toml", "[cache]\npolcy = 1\n");
  const std::vector<std::vector<std::string>> lines = {{"run", folder / (evil + "absent.toml")},
                                                       {"config", "check", odd_file},
                                                       {"run", file, "--device", evil},
                                                       {evil},
                                                       {"run", file, "--" + evil},
                                                       {"run", file, "--progress", evil},
                                                       {"run", file, "--set", evil + "=1"},
                                                       {"run", file, "--output", folder / evil / "x"},
                                                       {"cache", "list", "--cache-dir", folder / evil},
                                                       {"plugins", "--set", "plugins.load=[\"\\u001b[2J\"]"}};
  for (std::vector<std::string> words : lines) {
    if (words[0] == "run") words.insert(words.end(), {"--cache-dir", folder / "cache"});
    const Finished finished = run_kiln(words);
    INFO(finished.err << finished.out);
    CHECK(is_plain(finished.err));
    CHECK(is_plain(finished.out));
  }
  // A compiler's message has several lines: each of them is shown, and none as a line of the table.
  folder.write("own.toml", kernel_job(folder, "no\x01thing; nor = this;"));
  const Finished failed = run_kiln({"run", folder / "own.toml", "--cache-dir", folder / "cache"});
  INFO(failed.out);
  CHECK(failed.status == 1);
  CHECK(is_plain(failed.out));
  CHECK_THAT(failed.out, Contains("GLSL compiler"));
}

TEST_CASE("kiln run: where --output cannot be written after all, the result goes to standard output") {
  const TemporaryFolder folder;
  // The first job makes a folder in the file's place.
  const auto file = folder.write("jobs.toml", tiny_gemm("product") + "output = \"" + (folder / "made/y.npy").string() +
                                                  "\"\n" + kernel_job(folder, "nothing;"));
  const Finished finished = run_kiln(
      {"run", file, "--json", "--device", "opengl:0", "--cache-dir", folder / "cache", "--output", folder / "made"});
  INFO(finished.err);
  CHECK(finished.status == 1);
  CHECK_THAT(finished.err, Contains("made: is a folder, expected a file") && !Contains("failed: see"));
  const auto jobs = finished.json()["jobs"];
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0]["status"] == "ok");
  CHECK(jobs[1]["status"] != "ok");
}

TEST_CASE("a build that fails is no built program") {
  const TemporaryFolder folder;
  const auto file = folder.write("own.toml", kernel_job(folder, "nothing;") + tiny_gemm("product"));
  const Finished table = run_kiln({"run", file, "--device", "opengl:0", "--cache-dir", folder / "one"});
  INFO(table.out);
  CHECK(table.status == 1);
  CHECK_THAT(table.out, Contains("programs: 1 built, 1 failed, "));
  const Finished other = run_kiln({"run", file, "--json", "--device", "opengl:0", "--cache-dir", folder / "two",
                                   "--set", "metrics.file=" + (folder / "metrics.prom").string()});
  CHECK(other.json()["cache"]["builds"] == 1);
  CHECK(other.json()["cache"]["failed_builds"] == 1);
  std::ifstream stream(folder / "metrics.prom");
  const std::string metrics{std::istreambuf_iterator<char>(stream), {}};
  CHECK_THAT(metrics, Contains("kiln_runtime_cache_failed_builds_total 1\n") &&
                          Contains("kiln_runtime_cache_builds_total{stored=\"yes\"} 1\n"));
  const auto stats = run_kiln({"cache", "stats", "--json", "--cache-dir", folder / "two"}).json();
  CHECK(stats["builds"] == 1);
  CHECK(stats["failed_builds"] == 1);
  CHECK_THAT(run_kiln({"cache", "stats", "--prometheus", "--cache-dir", folder / "two"}).out,
             Contains("kiln_cache_failed_builds_total 1\n"));
  const Finished clean = run_kiln(
      {"run", folder.write("p.toml", tiny_gemm("product")), "--device", "opengl:0", "--cache-dir", folder / "three"});
  CHECK_THAT(clean.out, Contains("programs: 1 built, 0 from disk"));
}

TEST_CASE("Ctrl-C shows the jobs that had begun, as a table and as JSON") {
  const TemporaryFolder folder;
  const std::string job =
      "[[job]]\nop = \"conv2d\"\nc = 64\nk = 64\nr = 3\ns = 3\npad = 1\ninput = \"random:1\"\n"
      "weights = \"random:2\"\n";
  const auto file = folder.write("two.toml", job + "name = \"short\"\nh = 8\nw = 8\n" +       //
                                                 job + "name = \"long\"\nh = 28\nw = 28\n" +  //
                                                 job + "name = \"never\"\nh = 8\nw = 8\n");
  ProcessOptions options;
  options.interrupt_when = "job 2 of 3";
  const std::vector<std::string> words = {"run", file, "--device", "opengl:0", "--repeat", "1000", "--progress", "plain"};
  const Finished table = run_interrupted(words, options, folder).finished;
  INFO(table.err << table.out);
  CHECK(table.status == -SIGINT);
  CHECK_THAT(table.out, Contains("short") && Contains("opengl:0") && Contains("long") && !Contains("never"));
  CHECK_THAT(table.err, Contains("interrupted: 2 of 3 jobs were started, 1 finished"));
  std::vector<std::string> for_machines = words;
  for_machines.push_back("--json");
  const Finished machine = run_interrupted(for_machines, options, folder).finished;
  CHECK(machine.status == -SIGINT);
  const auto out = machine.json();
  CHECK(out["interrupted"] == true);
  REQUIRE(out["jobs"].size() == 2);
  CHECK(out["jobs"][0]["status"] == "ok");
  CHECK(out["jobs"][1]["status"] == "cancelled");
}
