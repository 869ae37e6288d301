// [[pipeline]]: its tensors, steps and loops; and what is wrong with one, told at its place.
#include "core/config/config_fixture.hpp"

#include <utility>

using namespace kiln;
using namespace kiln::test;

namespace {

const std::string pipeline_head = "[[pipeline]]\nname = \"p\"\n";  // lines 1 and 2
const std::string keys_of_step =                                   // six lines with the head of the step
    "name = \"s\"\nop = \"kernel\"\nsource = \"k.comp\"\nbindings = [ { input = \"x\" }, { output = \"y\" } ]\n"
    "grid = [1]\n";
const std::string pipeline_step = "[[pipeline.step]]\n" + keys_of_step;

}  // namespace

TEST_CASE("config: a pipeline has tensors, steps and loops", "[config]") {
  const Config config = read_valid(R"([[pipeline]]
name = "p"
device = "cpu"
verify = true
tolerance = 0.5
keep_failed = true
alpha = "drop"
tensors.x = { input = "x.npy" }
tensors.y = { output = "y.npy", expect = "e.npy", tolerance = 0.25 }
tensors.z = { inout = "z.npy" }
tensors.t = { shape = [4], dtype = "int32" }

[[pipeline.step]]
name = "mine"
op = "kernel"
source = "k.comp"
bindings = [ { input = "x" }, { output = "y" }, { inout = "z" }, { output = "t" } ]
grid = [1]
repeat = 3
swap = [["x", "y"], ["z", "t"]]

[[pipeline.step]]
name = "loop"
repeat = 2
swap = ["x", "y"]

[[pipeline.step.step]]
name = "sum"
op = "add"
shape = [4]
input = "x"
addend = "y"
output = "z"
)");
  CHECK(config.jobs.empty());
  REQUIRE(config.pipelines.size() == 1);
  const PipelineConfig& pipeline = config.pipelines[0];
  CHECK(pipeline.job.name == "p");
  CHECK(pipeline.job.op == "pipeline");
  CHECK(pipeline.job.device == "cpu");
  CHECK(pipeline.job.verify);
  CHECK(pipeline.job.tolerance == Tolerance{0, 0.5});
  CHECK(pipeline.job.keep_failed);
  CHECK(pipeline.job.alpha == Alpha::drop);

  const std::vector<KernelBindingConfig>& tensors = pipeline.job.bindings;
  REQUIRE(tensors.size() == 4);
  CHECK(tensors[0].name == "x");
  CHECK(tensors[0].label == "tensors.x");
  CHECK(tensors[0].access == Access::read);
  CHECK(tensors[0].input == "x.npy");
  CHECK(tensors[1].name == "y");
  CHECK(tensors[1].access == Access::write);
  CHECK(tensors[1].output == "y.npy");
  CHECK(tensors[1].dtype == DType::invalid);  // that of its step
  CHECK(tensors[1].expect == "e.npy");
  CHECK(tensors[1].tolerance == Tolerance{0, 0.25});
  CHECK(tensors[2].access == Access::read_write);
  CHECK(tensors[2].input == "z.npy");
  CHECK(tensors[2].output == "z.npy");
  CHECK(tensors[3].access == Access::invalid);
  CHECK(tensors[3].shape == Shape{4});
  CHECK(tensors[3].dtype == DType::i32);

  using Pairs = std::vector<std::pair<std::string, std::string>>;
  REQUIRE(pipeline.steps.size() == 2);
  const PipelineStepConfig& mine = pipeline.steps[0];
  CHECK(mine.job.name == "mine");
  CHECK(mine.job.op == "kernel");
  CHECK(mine.job.source == "k.comp");
  CHECK(mine.repeat == 3);
  CHECK(mine.swap == Pairs{{"x", "y"}, {"z", "t"}});
  CHECK(mine.steps.empty());
  REQUIRE(mine.job.bindings.size() == 4);
  CHECK(mine.job.bindings[0].input == "x");
  CHECK(mine.job.bindings[0].access == Access::read);
  CHECK(mine.job.bindings[1].output == "y");
  CHECK(mine.job.bindings[1].access == Access::write);
  CHECK(mine.job.bindings[2].output == "z");
  CHECK(mine.job.bindings[2].access == Access::read_write);
  CHECK(mine.job.bindings[3].output == "t");

  const PipelineStepConfig& loop = pipeline.steps[1];
  CHECK(loop.job.name == "loop");
  CHECK(loop.repeat == 2);
  CHECK(loop.swap == Pairs{{"x", "y"}});
  REQUIRE(loop.steps.size() == 1);
  CHECK(loop.steps[0].job.name == "sum");
  CHECK(loop.steps[0].job.op == "add");
  CHECK(loop.steps[0].job.input == "x");
  CHECK(loop.steps[0].job.addend == "y");
  CHECK(loop.steps[0].job.output == "z");
  CHECK(loop.steps[0].repeat == 1);
  CHECK(loop.steps[0].swap.empty());
  CHECK(std::get<AddSpec>(loop.steps[0].job.spec).shape == Extents{4});
}

TEST_CASE("config: errors in a pipeline name the line and column", "[config]") {
  CHECK(texts(read_text(pipeline_head + pipeline_step).problems) == std::vector<std::string>{});
  const std::pair<std::string, std::string> wrong[] = {
      // Keys of jobs and of steps are no keys of a pipeline.
      {pipeline_head + "source = \"k.comp\"\n" + pipeline_step,
       "3:1: pipeline \"p\": source: unknown key; nearest: device"},
      {pipeline_head + "op = \"kernel\"\n" + pipeline_step, "3:1: pipeline \"p\": op: unknown key; nearest: step"},
      {pipeline_head + "devcie = \"cpu\"\n" + pipeline_step,
       "3:1: pipeline \"p\": devcie: unknown key; nearest: device"},
      {pipeline_head + "verify = 1\n" + pipeline_step,
       "3:10: pipeline \"p\": verify: found the integer 1, expected true or false"},
      {"[[pipeline]]\n" + pipeline_step, "1:1: pipeline 1: missing key name"},
      {pipeline_head, "1:1: pipeline \"p\": missing key step"},
      {pipeline_head + "step = 3\n",
       "3:1: pipeline \"p\": step: found the integer 3, expected an array of tables, one for each step"},
      {pipeline_head + "step = []\n",
       "3:1: pipeline \"p\": step: found an empty array, expected an array of tables, one for each step"},
      {pipeline_head + "tensors = 3\n" + pipeline_step,
       "3:11: pipeline \"p\": tensors: found the integer 3, expected a table of names such as { x = { input = FILE "
       "} }"},
      {pipeline_head + "tensors.x = 3\n" + pipeline_step,
       "3:13: pipeline \"p\": tensors.x: found the integer 3, expected { input = FILE }, { output = FILE }, { inout = "
       "FILE } or { shape = [N] }"},
      {pipeline_head + "tensors.x = { input = \"x.npy\", inout = \"y.npy\" }\n" + pipeline_step,
       "3:13: pipeline \"p\": tensors.x: found 2 of the keys input and output (or inout), expected one: { input = FILE "
       "}, { output = FILE }, { inout = FILE } or { shape = [N] }"},
      {pipeline_head + "tensors.x = { imput = \"x.npy\" }\n" + pipeline_step,
       "3:15: pipeline \"p\": tensors.x.imput: unknown key; nearest: input"},
      {pipeline_head + pipeline_step + pipeline_head + pipeline_step,
       "9:1: pipeline \"p\": the name \"p\" is used twice, first at test.toml:2:8"},
      // Keys of a step.
      {pipeline_head + pipeline_step + "repeat = 0\n",
       "9:10: pipeline \"p\", step \"s\": repeat: found 0, expected an integer from 1 to 1000000"},
      {pipeline_head + pipeline_step + "swap = [\"x\"]\n",
       "9:8: pipeline \"p\", step \"s\": swap: found an array of texts, expected the names of two tensors, or an array "
       "of such pairs"},
      {pipeline_head + pipeline_step + "device = \"cpu\"\n",
       "9:1: pipeline \"p\", step \"s\": device: found in a step, expected in the pipeline or in one of its tensors"},
      {pipeline_head + pipeline_step + "verify = true\n",
       "9:1: pipeline \"p\", step \"s\": verify: found in a step, expected in the pipeline or in one of its tensors"},
      {pipeline_head + pipeline_step + "keep_failed = true\n",
       "9:1: pipeline \"p\", step \"s\": keep_failed: found in a step, expected in the pipeline or in one of its "
       "tensors"},
      {pipeline_head + pipeline_step + "expect = \"e.npy\"\n",
       "9:1: pipeline \"p\", step \"s\": expect: found in a step, expected in the pipeline or in one of its tensors"},
      {pipeline_head + pipeline_step + "alpha = \"drop\"\n",
       "9:1: pipeline \"p\", step \"s\": alpha: found in a step, expected in the pipeline or in one of its tensors"},
      {pipeline_head + pipeline_step + "table = \"t.csv\"\n",
       "9:1: pipeline \"p\", step \"s\": table: not a key of a step, because each row of a table is a job"},
      {pipeline_head + "[[pipeline.step]]\nname = \"s\"\n",
       "3:1: pipeline \"p\", step \"s\": missing key op (one of conv2d, gemm, pool2d, add, softmax, activation, "
       "kernel)"},
      {pipeline_head + "[[pipeline.step]]\nname = \"s\"\nop = \"kernel\"\nbindings = [ { input = \"x\" } ]\n",
       "3:1: pipeline \"p\", step \"s\": missing keys source, grid: a job with op = \"kernel\" needs them"},
      {pipeline_head + "[[pipeline.step]]\nname = \"s\"\nop = \"softmax\"\nshape = [4]\ninput = \"x\"\n",
       "3:1: pipeline \"p\", step \"s\": missing key output: the name of the tensor that the step writes"},
      // Loops.
      {pipeline_head + "[[pipeline.step]]\nname = \"l\"\nop = \"add\"\n[[pipeline.step.step]]\n" + keys_of_step,
       "5:1: pipeline \"p\", step \"l\": op: not a key of a step that contains steps, expected name, repeat, swap or "
       "step"},
      {pipeline_head + "[[pipeline.step]]\n[[pipeline.step.step]]\n" + keys_of_step,
       "3:1: pipeline \"p\", step 1: missing key name"},
      {pipeline_head + "[[pipeline.step]]\nname = \"l\"\n[[pipeline.step.step]]\n" + keys_of_step + "repeat = 0\n",
       "11:10: pipeline \"p\", step \"l\", step \"s\": repeat: found 0, expected an integer from 1 to 1000000"},
      // No list of tables.
      {"pipeline = 3\n", "1:1: pipeline: found the integer 3, expected [[pipeline]] once for each pipeline"},
      {"pipeline = [1]\n", "1:13: pipeline 1: found the integer 1, expected [[pipeline]]"},
      {"[pipeline]\nname = \"p\"\n",
       "1:2: pipeline: found the section [pipeline], expected [[pipeline]] once for each pipeline"},
  };
  for (const auto& [text, problem] : wrong) {
    INFO(text);
    CHECK(texts(read_text(text).problems) == std::vector<std::string>{"test.toml:" + problem});
  }
}

TEST_CASE("config: loops of a pipeline are nested at most eight deep", "[config]") {
  const auto nested = [](int depth) {
    std::string text = pipeline_head, path = "pipeline";
    for (int i = 1; i <= depth; ++i) {
      path += ".step";
      text += "[[" + path + "]]\nname = \"" + std::to_string(i) + "\"\n";
    }
    return text + "op = \"softmax\"\nshape = [4]\ninput = \"x\"\noutput = \"y\"\n";
  };
  CHECK(texts(read_text(nested(8)).problems) == std::vector<std::string>{});
  const ConfigReading reading = read_text(nested(9));
  REQUIRE(reading.problems.size() == 1);
  CHECK(
      reading.problems[0].message ==
      "pipeline \"p\", step \"1\", step \"2\", step \"3\", step \"4\", step \"5\", step \"6\", step \"7\", step \"8\": "
      "step: nested more than 8 levels deep");
  CHECK(reading.config.pipelines.empty());
}

TEST_CASE("config: a result's type is given, inherited with its shape, or float32", "[config]") {
  const std::string head = "[[job]]\nname = \"k\"\nop = \"kernel\"\nsource = \"k.comp\"\ngrid = [1]\nbindings = [ ";
  const std::pair<std::string, DType> results[] = {
      {"output = \"y.npy\", shape = [2]", DType::f32},
      {"output = \"y.npy\", shape = [2], expect = \"e.npy\"", DType::f32},
      {"output = \"y.npy\", expect = \"e.npy\"", DType::invalid},
      {"output = \"y.npy\", shape = [2], dtype = \"int8\"", DType::i8},
      {"output = \"y.npy\", expect = \"e.npy\", dtype = \"int8\"", DType::i8},
      {"output = \"memory:y\"", DType::invalid},
      {"output = \"memory:y\", shape = [2]", DType::f32},
      {"inout = \"y.npy\"", DType::invalid},
  };
  for (const auto& [keys, dtype] : results) {
    INFO(keys);
    const Config config = read_valid(head + "{ " + keys + " } ]\n");
    REQUIRE(config.jobs.size() == 1);
    REQUIRE(config.jobs[0].bindings.size() == 1);
    CHECK(config.jobs[0].bindings[0].dtype == dtype);
  }
  CHECK(texts(read_text(head + "{ output = \"y.npy\" } ]\n").problems) ==
        std::vector<std::string>{"test.toml:6:14: job \"k\": bindings[0]: output needs shape = [N, …], or expect = "
                                 "FILE to use the shape of the file"});
}
