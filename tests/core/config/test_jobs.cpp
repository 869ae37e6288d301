// [[job]] of each operation: numbers at their borders, seeds, and the place of what an operation refuses.
#include "core/config/config_fixture.hpp"

#include "config/job_keys.hpp"

#include <utility>

using namespace kiln;
using namespace kiln::test;

namespace {

using Lines = std::vector<std::string>;

const std::string conv_text = "[[job]]\nname = \"a\"\nop = \"conv2d\"\nc = 8\nh = 9\nw = 9\nk = 8\nr = 3\ns = 3\n";
const std::string tensor_keys_text = "input = \"random:1\"\nweights = \"random:2\"\n";
const std::string softmax_text = "[[job]]\nname = \"a\"\nop = \"softmax\"\ninput = \"x.npy\"\n";
const std::string kernel_text =
    "[[job]]\nname = \"a\"\nop = \"kernel\"\nsource = \"k.comp\"\nbindings = [ { input = \"x\" } ]\n";

JobConfig valid_job(const std::string& text) {
  INFO(text);
  const Config config = read_valid(text);
  REQUIRE(config.jobs.size() == 1);
  return config.jobs[0];
}

Lines problems_in(const std::string& text) { return texts(read_text(text).problems); }

}  // namespace

TEST_CASE("config: a conv2d job takes each extent up to 2^20, and pairs for y and x", "[config]") {
  const auto spec = [](const std::string& keys) {
    return std::get<Conv2dSpec>(valid_job(conv_text + tensor_keys_text + keys).spec);
  };
  CHECK(spec("stride = 3\n").stride_y == 3);
  CHECK(spec("stride = 3\n").stride_x == 3);
  CHECK(spec("stride = [2, 4]\n").stride_y == 2);
  CHECK(spec("stride = [2, 4]\n").stride_x == 4);
  CHECK(spec("pad = [0, 1]\n").pad_y == 0);
  CHECK(spec("pad = [0, 1]\n").pad_x == 1);
  CHECK(spec("dilation = [2, 3]\n").dilation_y == 2);
  CHECK(spec("dilation = [2, 3]\n").dilation_x == 3);
  CHECK(spec("stride = 1048576\n").stride_x == 1048576);
  CHECK(spec("activation = \"relu6\"\n").activation == Activation::relu6);
  CHECK(spec("activation = \"none\"\n").activation == Activation::none);
  CHECK(spec("accuracy = \"direct\"\n").accuracy == Accuracy::direct);
  CHECK(spec("accuracy = \"winograd\"\n").accuracy == Accuracy::winograd);
  const std::string pair = ", or an array [y, x] of two such integers";
  const std::pair<std::string, Lines> wrong[] = {
      {"stride = 1048577\n",
       {"test.toml:12:10: job \"a\": stride: found 1048577, expected an integer from 1 to 1048576"}},
      {"stride = 0\n", {"test.toml:12:10: job \"a\": stride: found 0, expected an integer from 1 to 1048576"}},
      {"dilation = 0\n", {"test.toml:12:12: job \"a\": dilation: found 0, expected an integer from 1 to 1048576"}},
      {"stride = [0, 0]\n",
       {"test.toml:12:11: job \"a\": stride: found 0, expected an integer from 1 to 1048576",
        "test.toml:12:14: job \"a\": stride: found 0, expected an integer from 1 to 1048576"}},
      {"pad = [1]\n",
       {"test.toml:12:7: job \"a\": pad: found an array of length 1, expected an integer from 0 to 1048576" + pair}},
      {"pad = 1.5\n",
       {"test.toml:12:7: job \"a\": pad: found the number 1.5, expected an integer from 0 to 1048576" + pair}},
  };
  for (const auto& [keys, expected] : wrong) CHECK(problems_in(conv_text + tensor_keys_text + keys) == expected);
}

TEST_CASE("config: the pairs of pool2d, and its window", "[config]") {
  const std::string pool =
      "[[job]]\nname = \"a\"\nop = \"pool2d\"\npool = \"max\"\nc = 8\nh = 9\nw = 7\ninput = \"x.npy\"\n";
  const auto spec = [&](const std::string& keys) { return std::get<Pool2dSpec>(valid_job(pool + keys).spec); };
  CHECK(spec("stride = [2, 4]\npad = [0, 1]\nr = 3\ns = 3\n").stride_y == 2);
  CHECK(spec("stride = [2, 4]\npad = [0, 1]\nr = 3\ns = 3\n").stride_x == 4);
  CHECK(spec("stride = [2, 4]\npad = [0, 1]\nr = 3\ns = 3\n").pad_y == 0);
  CHECK(spec("stride = [2, 4]\npad = [0, 1]\nr = 3\ns = 3\n").pad_x == 1);
  CHECK(spec("r = 2\n").r == 2);
  CHECK(spec("r = 2\n").s == 7);
  CHECK(spec("s = 2\n").r == 9);
  CHECK(spec("s = 2\n").s == 2);
  CHECK(spec("n = 5\n").n == 5);
  CHECK(problems_in(pool + "dilation = 2\n") ==
        Lines{"test.toml:9:1: job \"a\": dilation: not a key of a job with op = \"pool2d\"; nearest: device"});
}

TEST_CASE("config: a shape has one to four extents", "[config]") {
  const auto shape = [](const std::string& text) {
    return std::get<SoftmaxSpec>(valid_job(softmax_text + "shape = " + text + "\n").spec).shape;
  };
  CHECK(shape("[4]") == Extents{4});
  CHECK(shape("[1, 2, 3, 1048576]") == Extents{1, 2, 3, 1048576});
  const std::pair<const char*, const char*> wrong[] = {
      {"[]", "5:9: job \"a\": shape: found an array of length 0, expected an array of one to four extents"},
      {"[1, 2, 3, 4, 5]",
       "5:9: job \"a\": shape: found an array of length 5, expected an array of one to four extents"},
      {"4", "5:9: job \"a\": shape: found the integer 4, expected an array of one to four extents"},
      {"[1, 0]", "5:13: job \"a\": shape: found 0, expected an integer from 1 to 1048576"},
      {"[\"N\"]", "5:10: job \"a\": shape: found the text \"N\", expected an integer from 1 to 1048576"},
  };
  for (const auto& [text, problem] : wrong) {
    CHECK(problems_in(softmax_text + "shape = " + text + "\n") == Lines{std::string("test.toml:") + problem});
  }
}

TEST_CASE("config: seeds of random tensors", "[config]") {
  for (const char* const good : {"random:0", "he:18446744073709551615", "random", "rand:x", "he", "a/random:x"}) {
    INFO(good);
    CHECK(valid_job(softmax_text + "shape = [4]\noutput = \"y\"\n").input == "x.npy");
    CHECK(valid_job(conv_text + "input = \"" + good + "\"\nweights = \"w\"\n").input == good);
  }
  for (const auto& [bad, scheme] : {std::pair("random:18446744073709551616", "random:"), std::pair("he:", "he:"),
                                    std::pair("he:1 ", "he:"), std::pair("random:+1", "random:")}) {
    CHECK(problems_in(conv_text + "input = \"" + bad + "\"\nweights = \"w\"\n") ==
          Lines{"test.toml:10:9: job \"a\": input: found \"" + std::string(bad) + "\", expected \"" + scheme +
                "SEED\" with a seed from 0 to 2^64 - 1"});
  }
}

TEST_CASE("config: the words for alpha", "[config]") {
  CHECK(valid_job(softmax_text + "shape = [4]\n").alpha == Alpha::keep);
  CHECK(valid_job(softmax_text + "shape = [4]\nalpha = \"keep\"\n").alpha == Alpha::keep);
  CHECK(valid_job(softmax_text + "shape = [4]\nalpha = \"drop\"\n").alpha == Alpha::drop);
  CHECK(valid_job(softmax_text + "shape = [4]\nalpha = \"premultiply\"\n").alpha == Alpha::premultiply);
}

TEST_CASE("config: one missing key is one, two are several", "[config]") {
  CHECK(problems_in(softmax_text) ==
        Lines{"test.toml:1:1: job \"a\": missing key shape: a job with op = \"softmax\" needs it"});
  CHECK(problems_in("[[job]]\nname = \"a\"\nop = \"softmax\"\n") ==
        Lines{"test.toml:1:1: job \"a\": missing keys shape, input: a job with op = \"softmax\" needs them"});
}

TEST_CASE("config: what an operation refuses is told where its value stands", "[config]") {
  const std::pair<std::string, std::string> refused[] = {
      {conv_text + tensor_keys_text + "groups = 3\n",
       "12:10: job \"a\": conv2d: groups = 3: expected a divisor of c = 8 and of k = 8"},
      {conv_text + tensor_keys_text + "dilation = [5, 1]\n",
       "8:5: job \"a\": conv2d: kernel height 11 (r with dilation): larger than the padded input height 9"},
      {conv_text + tensor_keys_text + "dilation = [1, 5]\n",
       "9:5: job \"a\": conv2d: kernel width 11 (s with dilation): larger than the padded input width 9"},
      {kernel_text + "grid = [1, \"2 - 2\"]\n",
       "6:12: job \"a\": grid[1] = \"2 - 2\": is 0, expected 1 to 4294967295 workgroups"},
      {kernel_text + "grid = [\"M\"]\n", "6:9: job \"a\": grid[0] = \"M\": there is no constant or parameter 'M'"},
      {kernel_text + "grid = [1]\ntune = { A = [] }\n",
       "7:14: job \"a\": parameter A: has no values, expected at least one"},
      {kernel_text + "grid = [1]\ntune = { B = [1], A = [1, 1] }\n",
       "7:23: job \"a\": parameter A: has value '1' twice"},
      {kernel_text + "grid = [1]\nconstants = { A = 1 }\ntune = { A = [1] }\n",
       "8:14: job \"a\": parameter A: a constant has the same name"},
  };
  for (const auto& [text, problem] : refused) {
    INFO(text);
    CHECK(problems_in(text) == Lines{"test.toml:" + problem});
  }
  const ConfigReading many = read_text(kernel_text + "grid = [1]\ntune = { A = [" + [] {
    std::string values;
    for (int i = 0; i < 300; ++i) values += (i == 0 ? "" : ", ") + std::to_string(i);
    return values;
  }() + "], B = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20] }\n");
  REQUIRE(many.problems.size() == 1);
  CHECK_THAT(many.problems[0].text(), Catch::StartsWith("test.toml:7:8: job \"a\": the parameters have more than "));
  const ConfigReading odd = read_text(kernel_text + "grid = [1]\ntune = { \"2A\" = [1] }\n");
  REQUIRE(odd.problems.size() == 1);
  CHECK_THAT(odd.problems[0].text(), Catch::StartsWith("test.toml:7:17: job \"a\": parameter '2A"));
}

TEST_CASE("config: the output of a table's row has a plain name", "[config]") {
  // In the order of their code; each that is no letter, digit, '_' or '-' becomes '_'.
  std::string row, plain;
  for (char c = '!'; c <= '~'; ++c) {
    if (c == ',') continue;
    row += c;
    const bool kept = std::string_view("-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ").find(c) !=
                      std::string_view::npos;
    plain += kept ? c : '_';
  }
  std::string folder = (std::filesystem::temp_directory_path() / "kiln-jobs-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  std::ofstream(folder + "/t.csv") << "name,n,c,h,w,k,r,s,stride,pad,groups\n" << row << ",1,8,8,8,8,3,3,1,1,1\n";
  const ConfigReading reading = read_config_text(
      "[[job]]\ntable = \"t.csv\"\ninput = \"random:1\"\nweights = \"random:2\"\noutput = \"d/o.npy\"\n",
      folder + "/jobs.toml", at_home());
  std::filesystem::remove_all(folder);
  CHECK(texts(reading.problems) == Lines{});
  REQUIRE(reading.config.jobs.size() == 1);
  CHECK(reading.config.jobs[0].output == "d/o-" + plain + ".npy");
}

TEST_CASE("config: the names that other tools give a key", "[config]") {
  using config::JobForm;
  const std::pair<const char*, const char*> ours[] = {
      {"options", "constants"}, {"build_options", "constants"}, {"defines", "constants"},
      {"define", "constants"},  {"macros", "constants"},        {"file", "source"},
      {"shader", "source"},     {"kernel", "source"},           {"local_size", "workgroup"},
      {"block", "workgroup"},   {"threads", "workgroup"},       {"global_size", "grid"},
      {"groups", "grid"},       {"buffers", "bindings"},        {"inputs", "bindings"},
      {"outputs", "bindings"},  {"args", "bindings"},           {"arguments", "bindings"},
      {"params", "uniforms"},   {"push_constants", "uniforms"}, {"exepct", "expect"}};
  for (const auto& [theirs, key] : ours) {
    INFO(theirs);
    CHECK(config::nearest_job_key(theirs, JobForm::kernel) == key);
  }
  CHECK(config::nearest_job_key("inputs", JobForm::conv2d) == "input");  // which has no bindings
  CHECK(config::nearest_job_key("wieghts", JobForm::invalid) == "weights");
  CHECK(config::nearest_job_key("shaep", JobForm::add) == "shape");
  CHECK(config::has_form(4, JobForm::kernel));
  CHECK_FALSE(config::has_form(4, JobForm::gemm));
}
