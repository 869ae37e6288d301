// Every key of every section and every form of a job, as typed values.
#include "core/config/config_fixture.hpp"

#include "config/job_keys.hpp"
#include "config/key_table.hpp"

using namespace kiln;
using namespace kiln::test;

namespace {

Config every_key() {
  ConfigSources sources = at_home();
  sources.file = source_dir() / "tests/golden/config/good/every_key.toml";
  ConfigReading reading = read_config(sources);
  CHECK(texts(reading.problems) == std::vector<std::string>{});
  return std::move(reading.config);
}

const JobConfig& job(const Config& config, const std::string& name) {
  for (const JobConfig& each : config.jobs) {
    if (each.name == name) return each;
  }
  FAIL("no job " + name);
  return config.jobs.front();
}

}  // namespace

TEST_CASE("config: every_key.toml sets every key of the fixed sections away from its default", "[config]") {
  const Config config = every_key();
  const Config plain = read_valid("");
  for (const config::KeyEntry& key : config::key_table()) {
    if (key.place == config::KeyPlace::outside_file) continue;
    INFO(key.name);
    CHECK(config.origins.at(std::string(key.name)).kind == OriginKind::file);
    CHECK(config::print(key.get(config)) != config::print(key.get(plain)));
  }
}

TEST_CASE("config: every_key.toml uses every key of a job", "[config]") {
  const std::string text = file_text(source_dir() / "tests/golden/config/good/every_key.toml");
  for (const config::JobKeyEntry& key : config::job_key_table()) {
    INFO(key.name);
    CHECK(text.find("\n" + std::string(key.name) + " = ") != std::string::npos);
  }
}

TEST_CASE("config: uniforms have the types and shapes that are written", "[config]") {
  using Type = UserKernelSpec::Uniform::Type;
  const Config config = every_key();
  const JobConfig& mine = job(config, "mine");
  const auto find = [&](const std::string& name) {
    const auto found = std::ranges::find(mine.uniforms, name, [](const UniformConfig& u) { return u.uniform.name; });
    REQUIRE(found != mine.uniforms.end());
    return *found;
  };
  REQUIRE(mine.uniforms.size() == 8);
  CHECK(find("gain").uniform.type == Type::integer);
  CHECK(find("gain").uniform.shape.empty());
  CHECK(find("gain").integers == std::vector<std::int64_t>{3});
  CHECK(find("size").uniform.shape == std::vector<std::uint32_t>{2});
  CHECK(find("transform").uniform.shape == std::vector<std::uint32_t>{2, 2});
  CHECK(find("transform").uniform.type == Type::number);
  CHECK(find("transform").numbers == std::vector<double>{1, 0, 0, 0.5});
  CHECK(find("transform").integers.empty());
  CHECK(find("on").uniform.type == Type::boolean);
  CHECK(find("light.power").numbers == std::vector<double>{2.5});
  CHECK(find("lamps[0].power").numbers == std::vector<double>{1.5});
  CHECK(find("lamps[1].power").numbers == std::vector<double>{0.5});
  CHECK(find("lamps[1].at").integers == std::vector<std::int64_t>{1, 2});
}

TEST_CASE("config: each uniform knows the line that it stands in", "[config]") {
  const Config config = read_valid(R"([[job]]
name = "k"
op = "kernel"
source = "k.comp"
grid = [1]
bindings = [ { input = "x.npy" } ]
[job.uniforms]
gain = 3
light.power = 2.5
lamps = [ { at = 1 },
          { at = 2 } ]
)");
  std::vector<std::pair<std::string, std::uint32_t>> lines;
  for (const UniformConfig& uniform : config.jobs.at(0).uniforms) {
    lines.emplace_back(uniform.uniform.name, uniform.place.line);
    CHECK(uniform.place.file == "test.toml");
  }
  CHECK(lines == std::vector<std::pair<std::string, std::uint32_t>>{
                     {"gain", 8}, {"light.power", 9}, {"lamps[0].at", 10}, {"lamps[1].at", 11}});
}

TEST_CASE("config: an expression of a shape is 1 at least", "[config]") {
  const auto reading = [](const std::string& n) {
    return read_text("[[job]]\nname = \"k\"\nop = \"kernel\"\nsource = \"k.comp\"\ngrid = [1]\nconstants = { N = \"" + n +
                     "\" }\nbindings = [ { output = \"y.npy\", shape = [\"N\"] } ]\n");
  };
  const ConfigReading one = reading("1");
  CHECK(texts(one.problems) == std::vector<std::string>{});
  CHECK(one.config.jobs.at(0).bindings.at(0).shape == Shape{1});
  CHECK(texts(reading("0").problems) ==
        std::vector<std::string>{
            "test.toml:7:43: job \"k\": bindings[0].shape[0] = \"N\": is 0, expected at least 1"});
}

TEST_CASE("config: pool2d, add, softmax and activation jobs", "[config]") {
  const Config config = every_key();
  Pool2dSpec pool;
  pool.n = 2, pool.c = 4, pool.h = 9, pool.w = 11, pool.r = 3, pool.s = 2;
  pool.stride_y = 2, pool.pad_y = 1, pool.kind = PoolKind::average;
  CHECK(std::get<Pool2dSpec>(job(config, "pooled").spec) == pool);
  const auto& whole = std::get<Pool2dSpec>(job(config, "whole plane").spec);
  CHECK(whole.r == 9);
  CHECK(whole.s == 11);
  CHECK(whole.kind == PoolKind::maximum);
  AddSpec sum;
  sum.shape = {2, 3, 5}, sum.activation = Activation::relu6;
  CHECK(std::get<AddSpec>(job(config, "sum").spec) == sum);
  CHECK(job(config, "sum").addend == "random:2");
  CHECK(std::get<SoftmaxSpec>(job(config, "rows of ten").spec).shape == Extents{4, 10});
  CHECK(std::get<ActivationSpec>(job(config, "rectifier").spec).activation == Activation::relu);
}

TEST_CASE("config: every form of a binding", "[config]") {
  const Config config = every_key();
  const auto& bindings = job(config, "several").bindings;
  REQUIRE(bindings.size() == 5);
  CHECK(bindings[0].access == Access::write);
  CHECK(bindings[0].input.empty());
  CHECK(bindings[0].shape == Shape{2, 3});
  CHECK(bindings[0].dtype == DType::i32);
  CHECK(bindings[1].dtype == DType::invalid);  // that of the file it is compared with
  CHECK(bindings[1].shape.empty());
  CHECK(bindings[1].tolerance == Tolerance{0, 0.5});
  CHECK(bindings[2].kind == BindingKind::value);
  CHECK(bindings[2].dtype == DType::f32);
  CHECK(bindings[2].numbers == std::vector<double>{2});
  CHECK(bindings[3].dtype == DType::i32);
  CHECK(bindings[3].integers == std::vector<std::int64_t>{-1});
  CHECK(bindings[4].kind == BindingKind::local);
  CHECK(bindings[4].local_bytes == 256);
}

TEST_CASE("config: a grid from a tensor is the last of a kernel job's bindings", "[config]") {
  const ConfigReading reading = read_text(R"([[job]]
name = "counted"
op = "kernel"
source = "k.comp"
grid = { input = "counts.npy", first = 3 }
images = { shown = { output = "out.png", size = [4, 4], format = "rgba8" } }
bindings = [ { inout = "y.npy" } ]

[[job]]
name = "inline"
op = "kernel"
source = "k.comp"
bindings = [ { inout = "y.npy" } ]
grid = { values = [4, 1, 1] }
)");
  REQUIRE(reading.problems.empty());
  const auto& bindings = reading.config.jobs.at(0).bindings;
  REQUIRE(bindings.size() == 3);
  CHECK(bindings[0].label == "bindings[0]");
  const KernelBindingConfig& grid = bindings[1].kind == BindingKind::grid ? bindings[1] : bindings[2];
  CHECK(grid.kind == BindingKind::grid);
  CHECK(grid.access == Access::read);
  CHECK(grid.input == "counts.npy");
  CHECK(grid.first == 3);
  CHECK(grid.dtype == DType::u32);
  const auto& values = reading.config.jobs.at(1).bindings;
  REQUIRE(values.size() == 2);
  CHECK(values[1].kind == BindingKind::grid);
  CHECK(values[1].integers == std::vector<std::int64_t>{4, 1, 1});
  CHECK(values[1].first == 0);
}

TEST_CASE("config: images, samplers, blocks and inline values of a kernel job", "[config]") {
  const ConfigReading reading = read_text(R"([[job]]
name = "textures"
op = "kernel"
source = "k.comp"
constants = { N = 8 }
images = { shown = { output = "out.png", size = ["N * 2", 4], format = "rgba16" }, layers = [ { input = "a.npy" }, { inout = "b.npy" } ] }
samplers = { photo = { input = "photo.png", filter = "nearest", wrap = "mirror" }, smooth = { wrap = "repeat" } }
bindings = [ { values = [1, 2.5], dtype = "float16" }, { output = "y.bin", shape = ["N + 1"], dtype = "int64" } ]
blocks = { Params = { scale = 2, lights = [ { at = [1, 2] } ] }, Many = [ { x = 1 }, { x = true } ] }
grid = [1]
)");
  REQUIRE(reading.problems.empty());
  const JobConfig& job = reading.config.jobs.at(0);
  REQUIRE(job.bindings.size() == 7);  // those of `bindings` first
  CHECK(job.bindings[0].numbers == std::vector<double>{1, 2.5});
  CHECK(job.bindings[0].dtype == DType::f16);
  CHECK(job.bindings[1].shape == Shape{9});
  CHECK(job.bindings[1].label == "bindings[1]");
  CHECK(job.bindings[2].kind == BindingKind::image);
  CHECK(job.bindings[2].size == std::vector<std::int64_t>{16, 4});
  CHECK(job.bindings[2].format == ImageFormat::rgba16);
  CHECK(job.bindings[3].name == "layers[0]");
  CHECK(job.bindings[4].access == Access::read_write);
  CHECK(job.bindings[5].kind == BindingKind::sampler);
  CHECK(job.bindings[5].filter == TextureFilter::nearest);
  CHECK(job.bindings[5].wrap == TextureWrap::mirror);
  CHECK(job.bindings[6].kind == BindingKind::sampler_state);  // no texture of its own
  CHECK(job.bindings[6].name == "smooth");
  CHECK(job.bindings[6].wrap == TextureWrap::repeat);
  std::vector<std::string> names;
  for (const UniformConfig& uniform : job.uniforms) names.push_back(uniform.uniform.name);
  CHECK(names == std::vector<std::string>{"Params.scale", "Params.lights[0].at", "Many[0].x", "Many[1].x"});
}

TEST_CASE("config: what images, samplers, blocks and values cannot be is told at its place", "[config]") {
  const std::string head = "[[job]]\nname = \"k\"\nop = \"kernel\"\nsource = \"k.comp\"\ngrid = [1]\n";
  const std::pair<const char*, const char*> wrong[] = {
      {"", "missing key bindings, images or samplers"},
      {"images = [ { input = \"a.png\" } ]", "images: found"},
      {"images = { a = { output = \"a.png\" } }", "images.a: output needs size"},
      {"images = { a = { output = \"a.png\", size = [4, 4], format = \"rgb8\" } }", "found \"rgb8\""},
      {"images = { a = { output = \"a.png\", shape = [4, 4] } }", "images.a.shape: unknown key"},
      {"images = { a = { output = \"a.png\", size = [4, 4, 4, 4] } }", "one to three sizes"},
      {"samplers = { a = { output = \"a.png\" } }", "samplers.a.output: unknown key"},
      {"samplers = { a = { input = \"a.png\", wrap = \"round\" } }", "expected one of clamp, repeat, mirror, border"},
      {"samplers = { a = { size = [4, 4], filter = \"nearest\" } }", "samplers.a.size: allowed only with input"},
      {"bindings = [ { values = [] } ]", "empty array"},
      {"bindings = [ { values = [5000000000] } ]", "dtype = \"int64\""},
      {"bindings = [ { values = [16777217, 0.5] } ]",
       "bindings[0].values: found 16777217, which float32 cannot represent"},
      {"bindings = [ { values = [2049, 0.5], dtype = \"float16\" } ]", "found 2049, which float16 cannot represent"},
      {"bindings = [ { values = [0.5, 9007199254740993], dtype = \"float64\" } ]",
       "found 9007199254740993, which float64"},
      {"bindings = [ { float = -16777217 } ]", "bindings[0].float: found -16777217, which float32 cannot represent"},
      {"bindings = [ { input = \"a.npy\" } ]\nuniforms = { u = [9007199254740993, 0.5] }",
       "which float64 cannot represent, together with a fraction"},
      {"bindings = [ { input = \"a.npy\" } ]\nuniforms = { u = [0.5, -9007199254740993] }",
       "which float64 cannot represent, together with a fraction"},
      {"bindings = [ { input = \"a.npy\", dtype = \"f32\" } ]", "\"float16\""},
      {"bindings = [ { inout = \"a.npy\", dtype = \"int8\" } ]",
       "dtype: allowed only with input, output, values, float or int"},
      {"bindings = [ { output = \"a.npy\", shape = [\"M * 2\"] } ]", "bindings[0].shape[0] = \"M * 2\""},
      {"bindings = [ { output = \"a.npy\", shape = [\"1 - 2\"] } ]", "is -1, expected at least 1"},
      {"bindings = [ { output = \"a.npy\", shape = [\"65536\", 65537] } ]", "more than 2^32 elements"},
      {"bindings = [ { input = \"a.npy\" } ]\nblocks = { P = 3 }", "blocks.P: found the integer 3"},
      {"bindings = [ { input = \"a.npy\" } ]\nblocks = { P = { a = \"x\" } }", "blocks.P.a: found"},
  };
  for (const auto& [keys, message] : wrong) {
    INFO(keys);
    const ConfigReading reading = read_text(head + keys + "\n");
    REQUIRE(reading.problems.size() == 1);
    CHECK_THAT(reading.problems[0].message, Catch::Contains(message));
    CHECK(reading.problems[0].place.line >= 1);
  }
}

TEST_CASE("config: the fixed sections as typed values", "[config]") {
  const Config config = every_key();
  CHECK(config.plugins.load == std::vector<std::string>{"cpu", "mine"});
  CHECK(config.plugins.required == std::vector<std::string>{});
  CHECK(config.device.prefer == "opengl:1");
  CHECK(config.device.fallback == Fallback::never);
  CHECK(config.cache.name == "mine");
  CHECK(config.cache.directory == "/home/person/kiln-cache");
  CHECK(config.cache.max_programs == 0);
  CHECK(config.cache.max_memory == 500ull << 20);
  CHECK(config.cache.max_disk == 4096);
  CHECK(config.cache.policy == "sieve");
  CHECK_FALSE(config.cache.auto_save);
  CHECK(config.cache.compression == "none");
  CHECK(config.cache.read_only);
  CHECK(config.cache.warm == "labels");
  CHECK(config.cache.warm_top == 7);
  CHECK(config.cache.warm_labels == std::vector<std::string>{"layer one", "net"});
  CHECK(config.cache.key_file == source_dir() / "tests/golden/config/good/keys/key");
  CHECK(config.executor.name == "serial");
  CHECK(config.executor.in_flight == 16);
  CHECK(config.executor.adaptive_depth);
  CHECK(config.executor.timeout == std::chrono::milliseconds(1500));
  CHECK(config.selector.name == "fixed");
  CHECK(config.selector.policy == "ucb");
  CHECK(config.selector.ema_alpha == 1.0);
  CHECK(config.selector.exploration == 0.0);
  CHECK_FALSE(config.selector.serve_while_building);
  CHECK(config.selector.log);
  CHECK(config.selector.max_log == 1u << 20);
  CHECK(config.metrics.file == source_dir() / "tests/golden/config/good/figures.prom");
  CHECK(config.metrics.interval == std::chrono::minutes(1));
  CHECK(config.generator.name == "other");
  CHECK(config.generator.background);
  CHECK(config.generator.serve_while_building);
  CHECK(config.log_level == LogLevel::debug);
  const RawPluginSection& section = config.plugin.at("mine");
  CHECK(std::get<bool>(section.at("flag").value));
  CHECK(std::get<std::int64_t>(section.at("count").value) == 3);
  CHECK(std::get<double>(section.at("share").value) == 0.5);
  CHECK(std::get<std::string>(section.at("word").value) == "x");
  CHECK(std::get<std::vector<std::string>>(section.at("list").value) == std::vector<std::string>{"a", "b"});
  CHECK(section.at("flag").place.line > 0);
  CHECK(section.at("flag").origin.kind == OriginKind::file);
}

TEST_CASE("config: words of every kind are known", "[config]") {
  for (const char* policy : {"lru", "sieve", "cost"}) {
    CHECK(read_valid("[cache]\npolicy = \"" + std::string(policy) + "\"\n").cache.policy == policy);
  }
  for (const char* policy : {"ema", "epsilon", "ucb", "thompson"}) {
    CHECK(read_valid("[selector]\npolicy = \"" + std::string(policy) + "\"\n").selector.policy == policy);
  }
  const std::pair<const char*, LogLevel> levels[] = {{"debug", LogLevel::debug},
                                                     {"info", LogLevel::info},
                                                     {"warning", LogLevel::warning},
                                                     {"error", LogLevel::error},
                                                     {"off", LogLevel::off}};
  for (const auto& [word, level] : levels) {
    CHECK(read_valid("[log]\nlevel = \"" + std::string(word) + "\"\n").log_level == level);
  }
}

TEST_CASE("config: eviction policies of earlier versions are read as cost, with a warning that names both",
          "[config]") {
  const auto warning = [](const std::string& place, const std::string& old) {
    return place + ": cache.policy: \"" + old + "\" is no longer supported: \"cost\" is used. Write \"cost\"";
  };
  for (const char* const old : {"s3fifo", "wtinylfu"}) {
    const ConfigReading reading = read_text("[cache]\nmax_programs = 5\npolicy = \"" + std::string(old) + "\"\n");
    CHECK(texts(reading.problems) == std::vector<std::string>{});
    CHECK(texts(reading.warnings) == std::vector<std::string>{warning("test.toml:3:10", old)});
    CHECK(reading.config.cache.policy == "cost");
    CHECK(reading.config.origins.at("cache.policy").detail == "test.toml:3:1");
  }
  ConfigSources sources = at_home();
  sources.set = {"cache.policy=wtinylfu", "cache.policy=\"s3fifo\""};
  const ConfigReading set = read_text("cache = { policy = 's3fifo' }\n", sources);
  CHECK(texts(set.problems) == std::vector<std::string>{});
  CHECK(texts(set.warnings) == std::vector<std::string>{warning("test.toml:1:20", "s3fifo"),
                                                        warning("--set cache.policy=wtinylfu", "wtinylfu"),
                                                        warning("--set cache.policy=\"s3fifo\"", "s3fifo")});
  CHECK(set.config.cache.policy == "cost");
  // Only these words, of only this key.
  for (const char* text : {"[cache]\npolicy = \"S3FIFO\"\n", "[cache]\npolicy = \"w-tinylfu\"\n",
                           "[selector]\npolicy = \"s3fifo\"\n", "[cache]\ncompression = \"wtinylfu\"\n"}) {
    INFO(text);
    const ConfigReading reading = read_text(text);
    CHECK(reading.problems.size() == 1);
    CHECK(reading.warnings.empty());
  }
  CHECK(read_text("[cache]\npolicy = \"cost\"\n").warnings.empty());
}

TEST_CASE("config: sizes as texts and as integers", "[config]") {
  CHECK(read_valid("[cache]\nmax_disk = 1073741824\n").cache.max_disk == 1ull << 30);
  CHECK(read_valid("[cache]\nmax_disk = \"500MiB\"\n").cache.max_disk == 500ull << 20);
  CHECK(read_valid("[cache]\nmax_disk = \"4096\"\n").cache.max_disk == 4096);
  CHECK(read_valid("[cache]\nmax_disk = 0\n").cache.max_disk == 0);
}

TEST_CASE("config: a conv2d job with every key", "[config]") {
  const Config config = every_key();
  const JobConfig& layer = job(config, "layer");
  Conv2dSpec expected;
  expected.n = 2, expected.c = 4, expected.h = 9, expected.w = 11, expected.k = 8, expected.r = 3, expected.s = 2;
  expected.stride_y = 2, expected.stride_x = 1;
  expected.pad_y = 1, expected.pad_x = 0;
  expected.dilation_y = expected.dilation_x = 2;
  expected.groups = 2;
  expected.bias = Bias::per_channel;
  expected.activation = Activation::relu;
  expected.accuracy = Accuracy::winograd;
  CHECK(std::get<Conv2dSpec>(layer.spec) == expected);
  CHECK(layer.op == "conv2d");
  CHECK(layer.input == "in.npy");
  CHECK(layer.weights == "random:18446744073709551615");
  CHECK(layer.bias == "bias.npy");
  CHECK(layer.output == "out.npy");
  CHECK(layer.device == "cpu");
  CHECK(layer.verify);
  CHECK(layer.base == source_dir() / "tests/golden/config/good");
  CHECK(layer.place.line > 0);
}

TEST_CASE("config: a conv2d job with what it needs has the documented defaults", "[config]") {
  const Config config = read_valid(
      "[[job]]\nname = \"a\"\nop = \"conv2d\"\nc = 8\nh = 7\nw = 6\nk = 5\nr = 3\ns = 2\ninput = \"random:0\"\n"
      "weights = \"photo.png\"\n");
  REQUIRE(config.jobs.size() == 1);
  Conv2dSpec expected;
  expected.c = 8, expected.h = 7, expected.w = 6, expected.k = 5, expected.r = 3, expected.s = 2;
  CHECK(std::get<Conv2dSpec>(config.jobs[0].spec) == expected);
  CHECK_FALSE(config.jobs[0].verify);
  CHECK(config.jobs[0].output.empty());
  CHECK(config.jobs[0].bias.empty());
  CHECK(config.jobs[0].device.empty());
}

TEST_CASE("config: a gemm job", "[config]") {
  const Config config = every_key();
  const JobConfig& product = job(config, "product");
  GemmSpec expected;
  expected.m = 5, expected.n = 6, expected.k = 7;
  expected.activation = Activation::relu;
  CHECK(std::get<GemmSpec>(product.spec) == expected);
  CHECK(product.op == "gemm");
  const Config biased = read_valid(
      "[[job]]\nname = \"g\"\nop = \"gemm\"\nm = 1\nn = 2\nk = 3\ninput = \"a.npy\"\nweights = \"b.npy\"\nbias = "
      "\"c.npy\"\n");
  CHECK(std::get<GemmSpec>(biased.jobs.at(0).spec).bias == Bias::per_channel);
}

TEST_CASE("config: a user's kernel", "[config]") {
  const Config config = every_key();
  const JobConfig& mine = job(config, "mine");
  CHECK(mine.op == "kernel");
  CHECK(mine.source == "saxpy.comp");
  const std::vector<Define> constants{{"A", "2.5"},   {"TWO", "2.0"},   {"BIG", "1e+30"}, {"TAPS", "7"},
                                      {"LESS", "-3"}, {"FAST", "true"}, {"TYPE", "vec4"}, {"NOTHING", ""}};
  CHECK(mine.constants == constants);
  REQUIRE(mine.bindings.size() == 3);
  CHECK(mine.bindings[0].access == Access::read);
  CHECK(mine.bindings[0].input == "x.npy");
  CHECK(mine.bindings[1].access == Access::read_write);
  CHECK(mine.bindings[0].output.empty());
  CHECK(mine.bindings[1].input == "y.npy");
  CHECK(mine.bindings[1].output == "y2.npy");
  CHECK(mine.bindings[1].name == "Y");
  CHECK(mine.bindings[1].tolerance == Tolerance{1e-6, 1e-3});
  CHECK(mine.bindings[1].expect == "z.npy");  // the job's, since there is one result
  CHECK(mine.bindings[2].number == 5u);
  CHECK(mine.include == std::vector<std::string>{"shaders", "more"});
  CHECK(mine.workgroup == std::array<std::uint32_t, 3>{64, 2, 1});
  CHECK(mine.tolerance == Tolerance{0, 1e-3});
  CHECK(mine.keep_failed);
  CHECK(mine.alpha == Alpha::drop);
  CHECK(mine.tune == std::vector<UserKernelSpec::Parameter>{{"TILE", {"8", "16"}}, {"KIND", {"vec4", "float"}}});
  CHECK(mine.grid == std::array<std::uint32_t, 3>{1, 2, 1});
  CHECK(mine.grid_expressions == std::array<std::string, 3>{"4096 / TILE", "", ""});
  CHECK(mine.expect == "z.npy");
  CHECK(mine.verify);
  CHECK(mine.device == "opengl:0");
}

TEST_CASE("config: the jobs of a table stand where the table does", "[config]") {
  const Config config = every_key();
  REQUIRE(config.jobs.size() == 12);
  CHECK(config.jobs[2].name == "mine");
  CHECK(config.jobs[5].name == "rows/one");
  CHECK(config.jobs[6].name == "rows/two");
}
