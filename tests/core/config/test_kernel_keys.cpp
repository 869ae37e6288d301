// The keys of a kernel job at the borders of what each accepts, and the place that every problem names.
#include "core/config/config_fixture.hpp"

#include "config/job_keys.hpp"

#include <limits>
#include <utility>

using namespace kiln;
using namespace kiln::test;

namespace {

const std::string job_head = "[[job]]\nname = \"k\"\nop = \"kernel\"\nsource = \"k.comp\"\n";
const std::string with_grid = job_head + "grid = [1]\n";
const std::string with_input = with_grid + "bindings = [ { input = \"a.npy\" } ]\n";

// The text without its '|', and that mark's "line:column".
std::pair<std::string, std::string> unmarked(std::string text) {
  const std::size_t mark = text.find('|');
  REQUIRE(mark != std::string::npos);
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(mark), '\n');
  const std::size_t begin = text.rfind('\n', mark);
  const std::size_t column = begin == std::string::npos ? mark + 1 : mark - begin;
  text.erase(mark, 1);
  return {std::move(text), std::to_string(line) + ":" + std::to_string(column)};
}

// The one problem of the text stands at its '|'.
void check_problem(const std::string& with_mark, const std::string& message) {
  const auto [text, place] = unmarked(with_mark);
  INFO(text);
  CHECK(texts(read_text(text).problems) == std::vector<std::string>{"test.toml:" + place + ": job \"k\": " + message});
}

JobConfig kernel_job(const std::string& text) {
  INFO(text);
  const Config config = read_valid(text);
  REQUIRE(config.jobs.size() == 1);
  return config.jobs[0];
}

KernelBindingConfig binding_of(const std::string& keys) {
  const JobConfig job = kernel_job(with_grid + "bindings = [ { " + keys + " } ]\n");
  REQUIRE(job.bindings.size() == 1);
  return job.bindings[0];
}

}  // namespace

TEST_CASE("config: what an element of bindings cannot be is told at its place", "[config]") {
  const std::string forms =
      "expected one: { input = FILE }, { output = FILE, shape = [N] }, { inout = FILE }, { values = [X, …] }, { float "
      "= "
      "NUMBER }, { int = NUMBER } or { local = BYTES }";
  const std::string all_keys = "of the keys input, output (or inout), values, float, int and local, ";
  const std::pair<std::string, std::string> wrong[] = {
      {"|{ input = \"a.npy\", values = [1] }", "bindings[0]: found 2 " + all_keys + forms},
      {"|{ float = 1, int = 2, local = 3 }", "bindings[0]: found 3 " + all_keys + forms},
      {"|{ binding = 1 }", "bindings[0]: found 0 " + all_keys + forms},
      {"{ input = |\"\" }", "bindings[0].input: found an empty text, expected a text that is not empty"},
      {"{ input = |3 }", "bindings[0].input: found the integer 3, expected a text that is not empty"},
      {"{ input = \"a\", binding = |65536 }", "bindings[0].binding: found 65536, expected an integer from 0 to 65535"},
      {"{ input = \"a\", binding = |-1 }", "bindings[0].binding: found -1, expected an integer from 0 to 65535"},
      {"{ local = |1048577 }", "bindings[0].local: found 1048577, expected an integer from 1 to 1048576"},
      {"{ local = |0 }", "bindings[0].local: found 0, expected an integer from 1 to 1048576"},
      {"{ local = 8, |binding = 1 }", "bindings[0].binding: allowed only with input, output, inout or values"},
      {"{ float = 8, |name = \"X\" }", "bindings[0].name: allowed only with input, output, inout or values"},
      {"{ local = 8, |dtype = \"int8\" }",
       "bindings[0].dtype: allowed only with input, output, values, float or int, or inout together with output"},
      {"{ float = 8, |shape = [1] }",
       "bindings[0].shape: allowed only with input, output or values, or inout together with output"},
      {"{ inout = \"a\", |shape = [1] }",
       "bindings[0].shape: allowed only with input, output or values, or inout together with output"},
      {"{ input = \"a\", |expect = \"b\" }", "bindings[0].expect: allowed only with output or inout"},
      {"{ values = [1], |tolerance = 1 }", "bindings[0].tolerance: allowed only with output or inout"},
      {"{ inout = \"a\", binding = 1, |name = \"A\" }",
       "bindings[0].name: found together with binding, expected only one of them"},
      {"{ values = [1, |\"2\"] }", "bindings[0].values: found the text \"2\", expected a number"},
      {"{ values = |\"2\" }", "bindings[0].values: found the text \"2\", expected a number"},
      {"{ values = |[] }", "bindings[0].values: found an empty array, expected numbers"},
      {"{ float = |true }", "bindings[0].float: found the boolean true, expected a number"},
      {"{ int = |1.5 }", "bindings[0].int: found the number 1.5, expected an integer"},
      {"{ int = |[1] }", "bindings[0].int: found an array, expected an integer"},
      {"{ |int = 4294967296 }",
       "bindings[0].int: found 4294967296, expected an integer from -2147483648 to 4294967295. Set dtype = \"int64\" "
       "for other integers"},
      {"{ |values = [-2147483649, 1] }",
       "bindings[0].values: found -2147483649, expected an integer from -2147483648 to 4294967295. Set dtype = "
       "\"int64\" for other integers"},
      {"{ |values = [-1, 2147483648] }",
       "bindings[0].values: found -1, expected an integer from -2147483648 to 4294967295. Set dtype = \"int64\" for "
       "other integers"},
      {"{ output = \"a\", shape = |3 }",
       "bindings[0].shape: found the integer 3, expected an array of one to eight sizes"},
      {"{ output = \"a\", shape = |[] }",
       "bindings[0].shape: found an empty array, expected an array of one to eight sizes"},
      {"{ output = \"a\", shape = |[1, 1, 1, 1, 1, 1, 1, 1, 1] }",
       "bindings[0].shape: found an array, expected an array of one to eight sizes"},
      {"{ output = \"a\", shape = [|0] }", "bindings[0].shape: found 0, expected an integer from 1 to 4294967296"},
      {"{ output = \"a\", shape = [|\"\"] }",
       "bindings[0].shape: found the text \"\", expected an integer from 1 to 4294967296"},
      {"{ output = \"a\", shape = |[65536, 65537] }", "bindings[0].shape: has more than 2^32 elements"},
      {"{ output = \"a\", shape = |[4294967296, 4294967296] }", "bindings[0].shape: has more than 2^32 elements"},
      {"{ inout = \"a\", tolerance = |true }",
       "bindings[0].tolerance: found the boolean true, expected a number or { absolute = NUMBER, relative = NUMBER }"},
      {"{ inout = \"a\", tolerance = { absolute = |-1.5 } }",
       "bindings[0].tolerance.absolute: found -1.5, expected a number from 0.0 to 1.7976931348623157e+308"},
      {"{ inout = \"a\", tolerance = { |relativ = 1 } }",
       "bindings[0].tolerance.relativ: unknown key; nearest: relative"},
  };
  for (const auto& [element, message] : wrong) check_problem(with_grid + "bindings = [ " + element + " ]\n", message);
}

TEST_CASE("config: each number of a binding is accepted at its borders", "[config]") {
  CHECK(binding_of("input = \"a\", binding = 0").number == 0u);
  CHECK(binding_of("input = \"a\", binding = 65535").number == 65535u);
  CHECK(binding_of("local = 1").local_bytes == 1);
  CHECK(binding_of("local = 1048576").local_bytes == 1048576);
  CHECK(binding_of("local = 1").access == Access::read_write);
  CHECK(binding_of("output = \"a\", shape = [1, 2, 3, 4, 5, 6, 7, 8]").shape == Shape{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(binding_of("output = \"a\", shape = [65536, 65536]").shape == Shape{65536, 65536});
  CHECK(binding_of("output = \"a\", shape = [\"65536\", 65536]").shape == Shape{65536, 65536});
  CHECK(binding_of("inout = \"a\", tolerance = 0").tolerance == Tolerance{0, 0});
  CHECK(binding_of("inout = \"a\", tolerance = { relative = 0.5 }").tolerance == Tolerance{0, 0.5});
  CHECK(binding_of("inout = \"a\", tolerance = { absolute = 0.5 }").tolerance == Tolerance{0.5, 0});
  CHECK(binding_of("inout = \"a\", tolerance = {}").tolerance == Tolerance{0, 0});
  CHECK_FALSE(binding_of("inout = \"a\"").tolerance);
}

TEST_CASE("config: access, files and type of each form of a binding", "[config]") {
  struct Form {
    std::string keys;
    Access access;
    std::string input, output;
    DType dtype;
  };
  const Form forms[] = {
      {"input = \"i\"", Access::read, "i", "", DType::invalid},
      {"input = \"i\", dtype = \"uint8\", shape = [4]", Access::read, "i", "", DType::u8},
      {"inout = \"i\"", Access::read_write, "i", "i", DType::invalid},
      {"inout = \"i\", output = \"o\"", Access::read_write, "i", "o", DType::invalid},
      {"output = \"o\", inout = \"i\", shape = [4], dtype = \"bool\"", Access::read_write, "i", "o", DType::boolean},
      {"output = \"o\", shape = [4]", Access::write, "", "o", DType::f32},
      {"values = [1]", Access::read, "", "", DType::i32},
      {"values = 7", Access::read, "", "", DType::i32},
      {"values = [1, 2.0]", Access::read, "", "", DType::f32},
      {"values = [1], dtype = \"float64\"", Access::read, "", "", DType::f64},
      {"float = 3", Access::read, "", "", DType::f32},
      {"int = 3", Access::read, "", "", DType::i32},
      {"values = [-2147483648, 2147483647]", Access::read, "", "", DType::i32},
      {"values = [0, 2147483648]", Access::read, "", "", DType::u32},
      {"int = 4294967295", Access::read, "", "", DType::u32},
      {"values = [-2147483649], dtype = \"int64\"", Access::read, "", "", DType::i64},
  };
  for (const Form& form : forms) {
    INFO(form.keys);
    const KernelBindingConfig binding = binding_of(form.keys);
    CHECK(binding.access == form.access);
    CHECK(binding.input == form.input);
    CHECK(binding.output == form.output);
    CHECK(binding.dtype == form.dtype);
  }
  CHECK(binding_of("values = 7").integers == std::vector<std::int64_t>{7});
  CHECK(binding_of("values = 7").kind == BindingKind::buffer);
  CHECK(binding_of("float = 3").numbers == std::vector<double>{3});
  CHECK(binding_of("float = 3").integers.empty());
  CHECK(binding_of("float = 3").kind == BindingKind::value);
}

TEST_CASE("config: a floating-point type has the integers whose digits it holds", "[config]") {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::pair<DType, int> digits[] = {{DType::f16, 11}, {DType::f32, 24}, {DType::f64, 53}};
  for (const auto& [dtype, bits] : digits) {
    INFO(bits);
    const std::int64_t power = std::int64_t{1} << bits;
    for (const std::int64_t has : {std::int64_t{0}, std::int64_t{1}, power - 1, power, power + 2, 3 * power, least}) {
      CHECK(config::has_integer(dtype, has));
      if (has != least) CHECK(config::has_integer(dtype, -has));
    }
    for (const std::int64_t lacks : {power + 1, 2 * power + 1, 2 * power + 2, most, least + 1}) {
      CHECK_FALSE(config::has_integer(dtype, lacks));
      CHECK_FALSE(config::has_integer(dtype, -lacks));
    }
  }
}

TEST_CASE("config: the type of values decides which integers may stand beside a fraction", "[config]") {
  CHECK(binding_of("values = [2048, 0.5], dtype = \"float16\"").numbers == std::vector<double>{2048, 0.5});
  CHECK(binding_of("values = [16777216, 0.5]").numbers == std::vector<double>{16777216, 0.5});
  CHECK(binding_of("values = [16777217, 0.5], dtype = \"float64\"").numbers == std::vector<double>{16777217, 0.5});
  CHECK(binding_of("values = [9007199254740992, 0.5], dtype = \"float64\"").numbers.front() == 9007199254740992.0);
  check_problem(with_grid + "bindings = [ { |values = [16777217, 0.5], dtype = \"float32\" } ]\n",
                "bindings[0].values: found 16777217, which float32 cannot represent. Write the number with a fraction "
                "to round it");
}

TEST_CASE("config: an expression of a size has at most 4096 characters", "[config]") {
  const std::string longest = "1" + std::string(4095, ' ');
  CHECK(kernel_job(with_grid + "bindings = [ { output = \"a\", shape = [\"" + longest + "\"] } ]\n")
            .bindings.at(0)
            .shape == Shape{1});
  CHECK(kernel_job(job_head + "grid = [\"" + longest + "\"]\nbindings = [ { input = \"a\" } ]\n").grid_expressions[0] ==
        longest);
  const ConfigReading shape =
      read_text(with_grid + "bindings = [ { output = \"a\", shape = [\"" + longest + " \"] } ]\n");
  REQUIRE(shape.problems.size() == 1);
  CHECK_THAT(shape.problems[0].message, Catch::Contains("expected an integer from 1 to 4294967296"));
  const ConfigReading grid = read_text(job_head + "grid = [\"" + longest + " \"]\nbindings = [ { input = \"a\" } ]\n");
  REQUIRE(grid.problems.size() == 1);
  CHECK_THAT(grid.problems[0].message, Catch::Contains("grid[0]: ") && Catch::Contains("from 1 to 4294967295"));
}

TEST_CASE("config: the elements of a whole shape are counted with its expressions", "[config]") {
  check_problem("|" + with_grid + "bindings = [ { output = \"a\", shape = [\"65536\", 65537] } ]\n",
                "bindings[0]: has more than 2^32 elements");
  check_problem("|" + with_grid + "bindings = [ { output = \"a\", shape = [\"4294967296\", \"4294967296\"] } ]\n",
                "bindings[0]: has more than 2^32 elements");
  check_problem(with_grid + "constants = { N = 0 }\nimages = { a = { output = \"a.png\", size = [4, |\"N\"] } }\n",
                "images.a.size[1] = \"N\": is 0, expected at least 1");
}

TEST_CASE("config: a result's expect is the job's or its own", "[config]") {
  const JobConfig local =
      kernel_job(with_grid + "bindings = [ { local = 4 }, { input = \"i\" }, { inout = \"x\" } ]\nexpect = \"e\"\n");
  CHECK(local.bindings.at(0).expect.empty());
  CHECK(local.bindings.at(1).expect.empty());
  CHECK(local.bindings.at(2).expect == "e");
  const std::string one =
      "results (output or inout), expected exactly one. With several results, set expect in each of them";
  check_problem(with_input + "expect = |\"e\"\n", "expect: found 0 " + one);
  check_problem(with_grid + "bindings = [ { inout = \"x\" }, { inout = \"y\" } ]\nexpect = |\"e\"\n",
                "expect: found 2 " + one);
  check_problem(with_grid + "bindings = [ { inout = \"x\", expect = \"f\" } ]\nexpect = |\"e\"\n",
                "expect: found in the job and in its result, expected only one of them");
}

TEST_CASE("config: what uniforms and blocks cannot be is told at its place", "[config]") {
  const std::string values =
      ", expected a number, true or false, or an array of values of one type, with inner arrays of one length";
  const std::pair<std::string, std::string> wrong[] = {
      {"uniforms = |3", "uniforms: found the integer 3, expected a table such as { gain = 3.0, size = [640, 480] }"},
      {"blocks = |[1]", "blocks: found an array, expected a table such as { Params = { scale = 2.0, count = 64 } }"},
      {"blocks = { P = |[ { a = 1 }, 2 ] }",
       "blocks.P: found an array, expected a table of the members of the block, or an array of such tables"},
      {"blocks = { P = |[] }",
       "blocks.P: found an empty array, expected a table of the members of the block, or an array of such tables"},
      {"blocks = { P = |{} }", "blocks.P: found an empty table, expected at least one member"},
      {"uniforms = { u = { v = |{} } }", "uniforms.u.v: found an empty table, expected at least one member"},
      {"uniforms = { u = |\"x\" }", "uniforms.u: found the text \"x\"" + values},
      {"uniforms = { u = |[] }", "uniforms.u: found an empty array" + values},
      {"uniforms = { u = [[1], |[]] }", "uniforms.u: found an empty array" + values},
      {"uniforms = { u = [[1, 2], |[3]] }",
       "uniforms.u: found an array of length 1 together with arrays of length 2" + values},
      {"uniforms = { u = [1, |[3]] }", "uniforms.u: found an array of length 1 together with single values" + values},
      {"uniforms = { u = [[1], |3] }", "uniforms.u: found the integer 3 together with an array" + values},
      {"uniforms = { u = [true, |1] }", "uniforms.u: found both booleans and numbers" + values},
      {"uniforms = { u = [0.5, |false] }", "uniforms.u: found both booleans and numbers" + values},
      {"uniforms = { u = [1, |{ a = 2 }] }", "uniforms.u: found a table" + values},
  };
  for (const auto& [keys, message] : wrong) check_problem(with_input + keys + "\n", message);
}

TEST_CASE("config: uniforms of every type and depth", "[config]") {
  using Type = UserKernelSpec::Uniform::Type;
  const JobConfig job =
      kernel_job(with_input +
                 "uniforms = { off = false, on = [true, false], mixed = [1, 0.5, 2], whole = [[3, 4], [5, 6]], "
                 "edge = [9007199254740992, 0.5], cube = [[[1], [2]], [[3], [4]]] }\n");
  REQUIRE(job.uniforms.size() == 6);
  const auto& u = job.uniforms;
  CHECK(u[0].integers == std::vector<std::int64_t>{0});
  CHECK(u[0].uniform.type == Type::boolean);
  CHECK(u[1].integers == std::vector<std::int64_t>{1, 0});
  CHECK(u[2].numbers == std::vector<double>{1, 0.5, 2});
  CHECK(u[2].integers.empty());
  CHECK(u[2].uniform.type == Type::number);
  CHECK(u[3].integers == std::vector<std::int64_t>{3, 4, 5, 6});
  CHECK(u[3].uniform.type == Type::integer);
  CHECK(u[3].uniform.shape == std::vector<std::uint32_t>{2, 2});
  CHECK(u[4].numbers == std::vector<double>{9007199254740992.0, 0.5});
  CHECK(u[5].uniform.shape == std::vector<std::uint32_t>{2, 2, 1});
}

TEST_CASE("config: include, workgroup and grid at their borders", "[config]") {
  const std::pair<std::string, std::string> wrong[] = {
      {"include = |\"x\"", "include: found the text \"x\", expected an array of folders"},
      {"include = |[\"x\", \"\"]", "include: found an array of texts, expected an array of folders"},
      {"include = |[1]", "include: found an array, expected an array of folders"},
      {"workgroup = |8", "workgroup: found the integer 8, expected an array of one to three sizes"},
      {"workgroup = |[]", "workgroup: found an empty array, expected an array of one to three sizes"},
      {"workgroup = |[1, 1, 1, 1]", "workgroup: found an array, expected an array of one to three sizes"},
      {"workgroup = [1, |65536]", "workgroup[1]: found 65536, expected an integer from 1 to 65535"},
      {"workgroup = [|0]", "workgroup[0]: found 0, expected an integer from 1 to 65535"},
  };
  for (const auto& [keys, message] : wrong) check_problem(with_input + keys + "\n", message);
  CHECK(kernel_job(with_input + "include = []\n").include.empty());
  CHECK(kernel_job(with_input + "workgroup = [65535]\n").workgroup == std::array<std::uint32_t, 3>{65535, 1, 1});
  CHECK(kernel_job(with_input + "workgroup = [1, 2, 3]\n").workgroup == std::array<std::uint32_t, 3>{1, 2, 3});
  CHECK(kernel_job(with_input).workgroup == std::array<std::uint32_t, 3>{0, 0, 0});

  const std::string counts =
      ", expected an array of one to three workgroup counts, or { input = TENSOR } with a tensor of such counts";
  const std::string input = "bindings = [ { input = \"a.npy\" } ]\n";
  check_problem(job_head + input + "grid = |[]\n", "grid: found an array of length 0" + counts);
  check_problem(job_head + input + "grid = |[1, 1, 1, 1]\n", "grid: found an array of length 4" + counts);
  check_problem(job_head + input + "grid = |true\n", "grid: found the boolean true" + counts);
  check_problem(job_head + input + "grid = [1, |\"\"]\n",
                "grid[1]: found the text \"\", expected an integer from 1 to 4294967295");
  CHECK(kernel_job(job_head + input + "grid = [4294967295, 2, 3]\n").grid ==
        std::array<std::uint32_t, 3>{4294967295u, 2, 3});
  check_problem(job_head + input + "grid = { input = \"n\", first = |4294967297 }\n",
                "grid.first: found 4294967297, expected an integer from 0 to 4294967296");
}

TEST_CASE("config: constants and values to try are one line of text", "[config]") {
  const std::string expected = ", expected a finite number, a boolean or a text of one line without backslashes";
  const std::pair<std::string, std::string> wrong[] = {
      {"constants = { A = |2024-01-31 }", "constants.A: found the date or time 2024-01-31" + expected},
      {"constants = { A = |-inf }", "constants.A: found the number -inf" + expected},
      {"constants = { A = |[1] }", "constants.A: found an array" + expected},
      {"tune = |3", "tune: found the integer 3, expected a table such as { TILE = [8, 16, 32] }"},
      {"tune = { A = |3 }", "tune.A: found the integer 3, expected an array of values to try"},
      {"tune = { A = [1, |nan] }", "tune.A[1]: found the number nan" + expected},
  };
  for (const auto& [keys, message] : wrong) check_problem(with_input + keys + "\n", message);
  CHECK(kernel_job(with_input + "constants = { NO = false, YES = true, X = 0.5 }\n").constants ==
        std::vector<Define>{{"NO", "false"}, {"YES", "true"}, {"X", "0.5"}});
}

TEST_CASE("config: the words of a sampler and an image", "[config]") {
  const auto sampler = [](const std::string& keys) {
    return kernel_job(with_grid + "samplers = { s = { input = \"p.png\"" + keys + " } }\n").bindings.at(0);
  };
  CHECK(sampler("").filter == TextureFilter::automatic);
  CHECK(sampler("").wrap == TextureWrap::clamp);
  CHECK(sampler(", filter = \"linear\"").filter == TextureFilter::linear);
  CHECK(sampler(", filter = \"nearest\"").filter == TextureFilter::nearest);
  for (const auto& [word, wrap] :
       {std::pair("clamp", TextureWrap::clamp), std::pair("repeat", TextureWrap::repeat),
        std::pair("mirror", TextureWrap::mirror), std::pair("border", TextureWrap::border)}) {
    CHECK(sampler(", wrap = \"" + std::string(word) + "\"").wrap == wrap);
  }
  CHECK(sampler(", size = [4, 5, 6]").size == std::vector<std::int64_t>{4, 5, 6});
  const std::pair<std::string, std::string> wrong[] = {
      {"samplers = { s = { input = \"p\", filter = |\"cubic\" } }",
       "samplers.s.filter: found \"cubic\", expected one of nearest, linear"},
      {"samplers = { s = { |dtype = \"uint8\" } }", "samplers.s.dtype: allowed only with input"},
      {"samplers = { s = { |format = \"rgba8\" } }", "samplers.s.format: allowed only with input"},
      {"images = { a = { inout = \"a\", |size = [4, 4] } }", "images.a.size: allowed only with input or output"},
      {"images = { a = { input = \"a\", size = |4 } }",
       "images.a.size: found the integer 4, expected an array of one to three sizes"},
      {"images = { a = { inout = \"a\", |dtype = \"uint8\" } }",
       "images.a.dtype: allowed only with input, output, values, float or int, or inout together with output"},
      {"images = { a = |{ output = \"a\" } }",
       "images.a: output needs size = [W, H], or expect = FILE to use the size of the file"},
      {"images = { a = [ { input = \"a\" }, |3 ] }",
       "images.a[1]: found the integer 3, expected { input = FILE }, { output = FILE, size = [W, H], format = "
       "\"rgba8\" } or { inout = FILE }"},
  };
  for (const auto& [keys, message] : wrong) check_problem(with_grid + keys + "\n", message);
  for (const char* const keys : {"output = \"a\", expect = \"e.png\"", "output = \"memory:a\"", "inout = \"a\""}) {
    INFO(keys);
    CHECK(kernel_job(with_grid + "images = { a = { " + keys + " } }\n").bindings.at(0).size.empty());
  }
}
