// `kiln config check` and the same check at the start of `kiln run`: files, names and results, all at once.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"

#include "data/npy.hpp"
#include "data/png.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

void write_tensor(const std::filesystem::path& path, DType dtype, const Shape& shape) {
  REQUIRE(data::write_npy(path, **HostTensor::create(dtype, shape)).ok());
}

const std::string checked_kernel =
    "#version 430\nlayout(local_size_x = 4) in;\n"
    "layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
    "layout(std430, binding = 1) buffer Y { float y[]; };\n"
    "void main() { y[gl_GlobalInvocationID.x] = 2.0 * x[gl_GlobalInvocationID.x]; }\n";

// The check and the run: both end with 2, say the same of the file, and nothing is run.
std::string check_both(const TemporaryFolder& folder, const std::filesystem::path& file) {
  const Finished checked =
      run_kiln({"config", "check", file, "--cache-dir", folder / "cache"}, {.folder = folder.path()});
  const Finished ran = run_kiln({"run", file, "--json", "--cache-dir", folder / "cache"}, {.folder = folder.path()});
  INFO(checked.err << ran.err);
  CHECK(checked.status == 2);
  CHECK(ran.status == 2);
  CHECK(checked.err == ran.err);
  CHECK(checked.out == "");
  CHECK(ran.json()["jobs"].empty());
  CHECK_FALSE(std::filesystem::exists(folder / "cache"));
  return checked.err;
}

void check_valid(const TemporaryFolder& folder, const std::filesystem::path& file) {
  const Finished checked =
      run_kiln({"config", "check", file, "--cache-dir", folder / "cache"}, {.folder = folder.path()});
  INFO(checked.err << checked.out);
  CHECK(checked.status == 0);
  const Finished ran = run_kiln({"run", file, "--cache-dir", folder / "cache"}, {.folder = folder.path()});
  INFO(ran.err << ran.out);
  CHECK(ran.status == 0);
}

}  // namespace

TEST_CASE("config check names every missing file at its place, and run the same") {
  const TemporaryFolder folder;
  const auto file = folder.write("case.toml", R"([[job]]
name = "own"
op = "kernel"
source = "none.comp"
bindings = [ { input = "x.npy" }, { inout = "y.npy" } ]
grid = [1]
expect = "want.npy"

[[job]]
name = "layer"
op = "gemm"
m = 4
n = 4
k = 4
input = "in.npy"
weights = "w.npy"
bias = "b.npy"
)");
  const std::string err = check_both(folder, file);
  CHECK_THAT(err, Contains("case.toml:4:10: job \"own\": source: ") && Contains("none.comp"));
  CHECK_THAT(err, Contains("case.toml:5:24: job \"own\": bindings[0].input: ") && Contains("x.npy"));
  CHECK_THAT(err, Contains("case.toml:5:45: job \"own\": bindings[1].inout: ") && Contains("y.npy"));
  CHECK_THAT(err, Contains("case.toml:7:10: job \"own\": expect: ") && Contains("want.npy"));
  CHECK_THAT(err, Contains("case.toml:15:9: job \"layer\": input: ") && Contains("in.npy"));
  CHECK_THAT(err, Contains("case.toml:16:11: ") && Contains("w.npy"));
  CHECK_THAT(err, Contains("case.toml:17:8: ") && Contains("b.npy"));
  CHECK(std::count(err.begin(), err.end(), '\n') == 7);
}

TEST_CASE("config check finds what the headers of files show") {
  const TemporaryFolder folder;
  write_tensor(folder / "f32.npy", DType::f32, {4, 4});
  write_tensor(folder / "long.npy", DType::f32, {4, 5});
  write_tensor(folder / "empty.npy", DType::f32, {0});
  folder.write("damaged.npy", "no header");
  REQUIRE(data::write_png(folder / "grey.png", **HostTensor::create(DType::f32, {1, 1, 8, 8})).ok());
  folder.write("own.comp", checked_kernel);
  folder.write("own.txt", checked_kernel);
  const std::string gemm = "[[job]]\nname = \"job\"\nop = \"gemm\"\nm = 4\nn = 4\nk = 4\nweights = \"random:1\"\n";
  const std::string conv = conv_3x3("job", {3, 8, 4});
  const std::string kernel = "[[job]]\nname = \"job\"\nop = \"kernel\"\ngrid = [1]\n";
  const std::string own = kernel + "source = \"own.comp\"\n";
  std::string picture = conv;
  picture.replace(picture.find("\"random:1\""), 10, "\"grey.png\"");
  const struct {
    std::string job;
    std::string says;
  } cases[] = {
      {gemm + "input = \"long.npy\"\n", "8:9: job \"job\": input: file "},
      {gemm + "input = \"long.npy\"\n", "shape [4, 5], expected [4, 4]"},
      {gemm + "input = \"damaged.npy\"\n", "damaged.npy"},
      {gemm + "input = \"photo.jpg\"\n", "expected random:SEED, he:SEED, zeros:, or a file .npy, .png, .bin or .raw"},
      {gemm + "input = \"random:1\"\noutput = \"out.txt\"\n", "9:10: job \"job\": output: "},
      {gemm + "input = \"random:1\"\noutput = \"out.txt\"\n", "extension \".txt\", expected .npy, .png, .bin or .raw"},
      {gemm + "input = \"random:1\"\noutput = \"out.png\"\n", "expected f32 [1, C, H, W]"},
      {gemm + "input = \"random:1\"\noutput = \"own.comp/out.npy\"\n", "is not a folder"},
      {gemm + "input = \"random:1\"\noutput = \".\"\n", "output"},
      {picture, "shape [1, 1, 8, 8], expected [1, 3, 8, 8]"},
      {kernel + "source = \"own.txt\"\nbindings = [ { inout = \"f32.npy\" } ]\n", "extension '.txt'"},
      {own + "bindings = [ { input = \"grey.png\", dtype = \"uint16\" } ]\n", "uint8 samples, expected uint16"},
      {own + "bindings = [ { input = \"random:1\" } ]\n", "6:24: job \"job\": bindings[0].input: found \"random:1\""},
      {own + "bindings = [ { input = \"empty.npy\" } ]\n", "has 0 elements"},
      {own + "bindings = [ { inout = \"f32.npy\" } ]\nexpect = \"long.npy\"\n",
       "float32 [4, 5], expected float32 [4, 4]"},
      {own + "bindings = [ { inout = \"f32.npy\" } ]\nexpect = \"long.npy\"\n", "7:10: job \"job\": expect long.npy"},
      {own + "bindings = [ { inout = \"f32.npy\", output = \"o.txt\" } ]\n", "expected .npy, .png, .bin or .raw"},
      {own + "bindings = [ { output = \"o.npy\", shape = [4], dtype = \"float32\", expect = \"long.npy\" } ]\n",
       "float32 [4, 5], expected float32 [4]"},
      {own + "bindings = [ { input = \"f32.npy\" } ]\ninclude = [\"nowhere\"]\n", "nowhere"}};
  for (const auto& one : cases) {
    INFO(one.job);
    CHECK_THAT(check_both(folder, folder.write("case.toml", one.job)), Contains(one.says));
  }
}

TEST_CASE("config check names unknown parts, and plugins that are required and missing") {
  const TemporaryFolder folder;
  const auto file = folder.write("case.toml",
                                 "[cache]\nname = \"tierd\"\n[executor]\nname = \"rnig\"\n[selector]\nname = \"x\"\n"
                                 "[generator]\nname = \"y\"\n[device]\nprefer = \"cuda:0\"\n" +
                                     tiny_gemm("product"));
  const Finished checked = run_kiln({"config", "check", file, "--cache-dir", folder / "cache"});
  INFO(checked.err);
  CHECK(checked.status == 2);
  for (const char* place : {":2:8: cache.name", ":4:8: executor.name", ":6:8: selector.name", ":8:8: generator.name",
                            ":10:10: device 'cuda:0': no such device"}) {
    CHECK_THAT(checked.err, Contains(place));
  }
  const auto required = folder.write("required.toml",
                                     "[plugins]\nload = [\"cpu\", \"gone\"]\nrequired = [\"gone\"]\n"
                                     "[generator]\nname = \"cpu\"\n");
  const Finished missing = run_kiln({"config", "check", required, "--cache-dir", folder / "cache"});
  CHECK(missing.status == 2);
  CHECK_THAT(missing.err, Contains("required.toml:3:12: plugins.required: plugin 'gone' is not loaded"));
}

TEST_CASE("errors of keys and of files are told together, in the order of the file") {
  const TemporaryFolder folder;
  const auto file =
      folder.write("case.toml", tiny_gemm("first") + "output = \"out.txt\"\n[plugin.opengl]\nvector_widht = 8\n" +
                                    "[[job]]\nname = \"second\"\nop = \"gemm\"\nm = 0\nn = 1\nk = 1\n"
                                    "input = \"random:1\"\nweights = \"random:2\"\n");
  const std::string err = check_both(folder, file);
  const std::size_t output = err.find("case.toml:11:10: "), plugin = err.find("case.toml:13:1: "),
                    m = err.find("case.toml:17:5: ");
  INFO(err);
  CHECK(output != std::string::npos);
  CHECK(plugin != std::string::npos);
  CHECK(m != std::string::npos);
  CHECK(output < plugin);
  CHECK(plugin < m);
}

TEST_CASE("a file that a job before writes is judged by what that job leaves in it") {
  const TemporaryFolder folder;
  const std::string first =
      "[[job]]\nname = \"first\"\nop = \"gemm\"\nm = 4\nn = 4\nk = 4\ninput = \"random:1\"\n"
      "weights = \"random:2\"\noutput = \"between.npy\"\n";
  const auto second = [](const char* name, int k) {
    return "[[job]]\nname = \"" + std::string(name) + "\"\nop = \"gemm\"\nm = 4\nn = 4\nk = " + std::to_string(k) +
           "\ninput = \"between.npy\"\nweights = \"random:2\"\n";
  };
  check_both(folder, folder.write("before.toml", second("second", 4) + first));  // written too late
  check_both(folder, folder.write("other.toml", first + second("second", 5)));
  check_valid(folder, folder.write("good.toml", first + second("second", 4)));
}

TEST_CASE("what is missing for many rows of a table is told once") {
  const TemporaryFolder folder;
  folder.write("layers.csv", "name,n,c,h,w,k,r,s,stride,pad,groups\na,1,3,8,8,4,3,3,1,1,1\nb,1,3,8,8,4,1,1,1,0,1\n");
  const auto file =
      folder.write("case.toml", "[[job]]\ntable = \"layers.csv\"\ninput = \"in.npy\"\nweights = \"random:2\"\n");
  const std::string err = check_both(folder, file);
  CHECK_THAT(err, Contains("case.toml:3:9: ") && Contains("in.npy"));
  CHECK(std::count(err.begin(), err.end(), '\n') == 1);
}

TEST_CASE("config check prints the number of jobs and pipelines of a valid file") {
  const TemporaryFolder folder;
  const auto pipeline = [](const std::string& name) {
    return "\n[[pipeline]]\nname = \"" + name + "\"\ntensors.x = { input = \"random:1\", shape = [1, 4] }\n" +
           "tensors.y = { output = \"" + name + ".npy\" }\n[[pipeline.step]]\nname = \"classes\"\nop = \"gemm\"\n" +
           "m = 1\nn = 5\nk = 4\nweights = \"random:3\"\ninput = \"x\"\noutput = \"y\"\n";
  };
  const struct {
    std::string text, says;
  } cases[] = {{"", "valid, 0 jobs"},
               {tiny_gemm("one"), "valid, 1 job"},
               {tiny_gemm("one") + tiny_gemm("two"), "valid, 2 jobs"},
               {pipeline("net"), "valid, 0 jobs, 1 pipeline"},
               {tiny_gemm("one") + pipeline("net") + pipeline("other"), "valid, 1 job, 2 pipelines"}};
  for (const auto& one : cases) {
    const auto file = folder.write("case.toml", one.text);
    const Finished checked = run_kiln({"config", "check", file, "--cache-dir", folder / "cache"});
    INFO(one.text << checked.err);
    CHECK(checked.status == 0);
    CHECK(checked.out == file.string() + ": " + one.says + "\n");
  }
}

TEST_CASE("config check --device compiles, stores and runs nothing, and agrees with run") {
  const TemporaryFolder folder;
  write_tensor(folder / "x.npy", DType::f32, {4});
  write_tensor(folder / "y.npy", DType::f32, {4});
  const std::string job =
      "[[job]]\nname = \"own\"\nop = \"kernel\"\nsource = \"own.comp\"\n"
      "bindings = [ { input = \"x.npy\" }, { inout = \"y.npy\" } ]\ngrid = [1]\n";
  const auto file = folder.write("case.toml", job + tiny_gemm("product"));
  const std::vector<std::string> words = {"config",      "check",         file, "--device", "opengl:0",
                                          "--cache-dir", folder / "cache"};
  folder.write("own.comp", checked_kernel);
  const Finished good = run_kiln(words);
  INFO(good.err << good.out);
  CHECK(good.status == 0);
  CHECK_THAT(good.out, Contains("valid, 2 jobs") && Contains("job own: compiled for opengl:0 (built)") &&
                           Contains("job product: compiled for opengl:0"));
  CHECK(std::filesystem::exists(folder / "cache"));
  const Finished ran = run_kiln({"run", file, "--json", "--device", "opengl:0", "--cache-dir", folder / "cache"});
  CHECK(ran.status == 0);
  CHECK(ran.json()["cache"]["builds"] == 0);

  folder.write("own.comp", checked_kernel + "nonsense\n");
  const Finished broken = run_kiln(words);
  CHECK(broken.status == 2);
  CHECK_THAT(broken.err, Contains("case.toml:4:10: job \"own\": "));
  // A block that the job does not provide.
  std::string more = checked_kernel;
  more.insert(more.find("void main"), "layout(std430, binding = 5) buffer Z { float z[]; };\n");
  more.replace(more.rfind("}"), 1, "z[0] = 1.0; }");
  folder.write("own.comp", more);
  const Finished unprovided = run_kiln(words);
  INFO(unprovided.err << unprovided.out);
  CHECK(unprovided.status == 2);
  CHECK_THAT(unprovided.err, Contains("Z"));
  const Finished run_too = run_kiln({"run", file, "--device", "opengl:0", "--cache-dir", folder / "cache"});
  CHECK(run_too.status != 0);
  folder.write("own.comp", checked_kernel);
  CHECK(run_kiln({"config", "check", file, "--device", "amdgpu:0", "--set", "device.fallback=never", "--cache-dir",
                  folder / "cache"})
            .status == 3);
}
