// Tables of jobs, as texts and as named by [[job]] table.
#include "core/config/config_fixture.hpp"

#include "config/job_reader.hpp"

#include <cstdlib>

#include <sys/stat.h>

using namespace kiln;
using namespace kiln::test;
using kiln::config::JobTable;
using kiln::config::parse_job_table;

namespace {

const std::string header = "name,n,c,h,w,k,r,s,stride,pad,groups\n";

// A folder of its own with one table in it, removed at the end.
class TableFolder {
 public:
  explicit TableFolder(const std::string& table) {
    std::string name = (std::filesystem::temp_directory_path() / "kiln-table-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
    std::ofstream(path_ / "layers.csv") << table;
  }
  ~TableFolder() { std::filesystem::remove_all(path_); }

  ConfigReading read(const std::string& toml) const {
    return read_config_text(toml, (path_ / "jobs.toml").string(), at_home());
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("config::job_table: a row is a convolution", "[config]") {
  const JobTable table = parse_job_table(header + "one,2,3,5,7,11,1,2,3,4,1\n", "t.csv");
  CHECK(table.problems.empty());
  REQUIRE(table.rows.size() == 1);
  const Conv2dSpec& spec = table.rows[0].spec;
  CHECK(table.rows[0].name == "one");
  CHECK(table.rows[0].place.line == 2);
  Conv2dSpec expected;
  expected.n = 2, expected.c = 3, expected.h = 5, expected.w = 7, expected.k = 11, expected.r = 1, expected.s = 2;
  expected.stride_y = expected.stride_x = 3;
  expected.pad_y = expected.pad_x = 4;
  CHECK(spec == expected);
}

TEST_CASE("config::job_table: columns in any order, spaces, CRLF, empty lines, a mark at the start", "[config]") {
  const JobTable table = parse_job_table(
      "\xEF\xBB\xBFgroups,pad,stride,s,r,k,w,h,c,n,name\r\n\r\n 1 , 0,1,2,3,4,5,6,7, 8 , last \r\n   \r\n", "t.csv");
  CHECK(texts(table.problems) == std::vector<std::string>{});
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].name == "last");
  CHECK(table.rows[0].spec.n == 8);
  CHECK(table.rows[0].spec.h == 6);
  CHECK(table.rows[0].place.line == 3);
}

TEST_CASE("config::job_table: problems name line, column, found and expected", "[config]") {
  CHECK(texts(parse_job_table(header + "one,1,8,8,8,8,3,3,two,1,1\n", "t.csv").problems) ==
        std::vector<std::string>{"t.csv:2:19: column stride: found \"two\", expected an integer from 1 to 1048576"});
  CHECK(texts(parse_job_table("", "t.csv").problems) ==
        std::vector<std::string>{
            "t.csv:1:1: found an empty table, expected the header name,n,c,h,w,k,r,s,stride,pad,groups"});
  CHECK(parse_job_table(header + "one,1,8,8,8,8,3,3,1,1,1 1\n", "t.csv").problems.size() == 1);
  CHECK(parse_job_table(header + "one,1,8,8,8,8,3,3,1,1,99999999999999999999\n", "t.csv").problems.size() == 1);
}

TEST_CASE("config::job_table: no more rows than a table may have", "[config]") {
  std::string text = header;
  for (int i = 0; i < 10'001; ++i) text += "r,1,1,1,1,1,1,1,1,0,1\n";
  const JobTable table = parse_job_table(text, "t.csv");
  CHECK(table.rows.size() == 10'000);
  CHECK(texts(table.problems) ==
        std::vector<std::string>{"t.csv:10002:1: found too many rows, expected at most 10000"});
}

TEST_CASE("config: a job with a table becomes a job a row, each with the job's other keys", "[config]") {
  const TableFolder folder(header + "one,1,8,8,8,8,3,3,1,1,1\ntwo,1,8,8,8,16,1,1,2,0,8\n");
  const ConfigReading reading = folder.read(R"(
[[job]]
table = "layers.csv"
input = "random:1"
weights = "random:2"
bias = "random:3"
activation = "relu"
accuracy = "winograd"
verify = true
device = "cpu"
output = "all.npy"

[[job]]
name = "again"
table = "layers.csv"
input = "photo.png"
weights = "w.npy"
)");
  CHECK(texts(reading.problems) == std::vector<std::string>{});
  const std::vector<JobConfig>& jobs = reading.config.jobs;
  REQUIRE(jobs.size() == 4);
  CHECK(jobs[0].name == "one");
  CHECK(jobs[1].name == "two");
  CHECK(jobs[2].name == "again/one");
  CHECK(jobs[3].name == "again/two");
  const auto& spec = std::get<Conv2dSpec>(jobs[1].spec);
  CHECK(spec.k == 16);
  CHECK(spec.stride_x == 2);
  CHECK(spec.groups == 8);
  CHECK(spec.bias == Bias::per_channel);
  CHECK(spec.activation == Activation::relu);
  CHECK(spec.accuracy == Accuracy::winograd);
  CHECK(jobs[1].op == "conv2d");
  CHECK(jobs[1].input == "random:1");
  CHECK(jobs[1].weights == "random:2");
  CHECK(jobs[1].bias == "random:3");
  CHECK(jobs[1].output == "all-two.npy");
  CHECK(jobs[1].device == "cpu");
  CHECK(jobs[1].verify);
  CHECK(jobs[1].base == folder.path());
  CHECK(jobs[1].place.file == (folder.path() / "layers.csv").string());
  CHECK(jobs[1].place.line == 3);
  CHECK(std::get<Conv2dSpec>(jobs[3].spec).bias == Bias::none);
  CHECK_FALSE(jobs[3].verify);
}

TEST_CASE("config: a pipe is no table", "[config]") {
  const TableFolder folder(header);
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  const ConfigReading reading =
      folder.read("[[job]]\ntable = \"pipe\"\ninput = \"random:1\"\nweights = \"random:2\"\n");
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.problems[0].message == "job 1: table: file " + (folder.path() / "pipe").string() +
                                           ": not a regular file (expected a file, found a FIFO)");
}

TEST_CASE("config::job_table: every row has an output of its own", "[config]") {
  const TableFolder folder(header + "one,1,8,8,8,8,3,3,1,1,1\n../two,1,8,8,8,8,3,3,1,1,1\n");
  const ConfigReading reading = folder.read(R"([[job]]
table = "layers.csv"
input = "random:1"
weights = "random:2"
output = "folder.d/out.npy"
)");
  CHECK(texts(reading.problems) == std::vector<std::string>{});
  REQUIRE(reading.config.jobs.size() == 2);
  CHECK(reading.config.jobs[0].output == "folder.d/out-one.npy");
  CHECK(reading.config.jobs[1].output == "folder.d/out-___two.npy");
}

TEST_CASE("config: two jobs that write one file are told apart before either runs", "[config]") {
  const TableFolder folder(header + "a b,1,8,8,8,8,3,3,1,1,1\na_b,1,8,8,8,8,3,3,1,1,1\n");
  const ConfigReading rows = folder.read(
      "[[job]]\ntable = \"layers.csv\"\ninput = \"random:1\"\nweights = \"random:2\"\noutput = \"out.npy\"\n");
  REQUIRE(rows.problems.size() == 1);
  CHECK(rows.problems[0].text().find("layers.csv:3:1: output: the file \"out-a_b.npy\" is written twice") !=
        std::string::npos);

  const std::string gemm =
      "op = \"gemm\"\nm = 2\nn = 2\nk = 2\ninput = \"random:1\"\nweights = \"random:2\"\noutput = ";
  const ConfigReading jobs = folder.read("[[job]]\nname = \"a\"\n" + gemm +
                                         "\"x/../out.npy\"\n[[job]]\nname = \"b\"\n" + gemm + "\"out.npy\"\n");
  REQUIRE(jobs.problems.size() == 1);
  CHECK(jobs.problems[0].text().find("job \"b\": output: the file \"out.npy\" is written twice") != std::string::npos);
  CHECK(jobs.config.jobs.size() == 1);
}
