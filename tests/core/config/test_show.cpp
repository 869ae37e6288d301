// `config show` as lines and as JSON, against golden output.
#include "core/config/config_fixture.hpp"

#include "config/key_table.hpp"

#include <nlohmann/json.hpp>

using namespace kiln;
using namespace kiln::test;

namespace {

const std::string folder = "tests/golden/config/good/";

// Read under a relative name, so that no golden line depends on where the source tree lies.
Config shown_config() {
  ConfigSources sources = at_home();
  sources.environment["KILN_LOG"] = "info";
  sources.set = {"executor.in_flight=5", "plugin.mine.count=4"};
  const std::string text = file_text(source_dir() / folder / "show.toml");
  ConfigReading reading = read_config_text(text, "show.toml", sources);
  CHECK(texts(reading.problems) == std::vector<std::string>{});
  return std::move(reading.config);
}

std::map<std::string, std::vector<ConfigKey>> keys_of_mine() {
  ConfigKey count{"count", ConfigType::integer, std::int64_t{1}, "How many.", {}, {}, {}};
  ConfigKey word{"word", ConfigType::text, std::string("none"), "Which.", {}, {}, {}};
  return {{"mine", {word, count}}};
}

}  // namespace

TEST_CASE("config: show is one line a key with its origin", "[config]") {
  CHECK(lines(show_config(shown_config(), keys_of_mine())) ==
        lines(file_text(source_dir() / folder / "show.expected")));
}

TEST_CASE("config: show as JSON says the same", "[config]") {
  const std::string text = show_config_json(shown_config(), keys_of_mine());
  CHECK(lines(text) == lines(file_text(source_dir() / folder / "show.json")));
  const auto whole = nlohmann::json::parse(text);
  CHECK(whole["schema"] == 1);
  CHECK(whole["values"].size() == config::key_table().size() + 3);  // with plugin.mine: count, word; plugin.other: x
  CHECK(whole["jobs"].size() == 3);
}

TEST_CASE("config: what is no UTF-8 does not break the JSON", "[config]") {
  ConfigSources sources = at_home();
  sources.environment["KILN_CACHE_DIR"] = "/tmp/\xFF";
  CHECK(nlohmann::json::parse(show_config_json(read_valid("", sources), {})).is_object());
}

TEST_CASE("config: what show prints can be set again", "[config]") {
  const Config config = shown_config();
  ConfigSources sources = at_home();
  for (const std::string& line : lines(show_config(config, {}))) {
    const std::size_t close = line.find(") "), equals = line.find(" = ");
    REQUIRE(equals != std::string::npos);
    const std::string key = line.substr(close + 2, equals - close - 2);
    if (key.find("job ") == 0) continue;
    sources.set.push_back(key + "=" + line.substr(equals + 3));
  }
  const Config again = read_valid("", sources);
  for (const config::KeyEntry& key : config::key_table()) {
    INFO(key.name);
    CHECK(config::print(key.get(again)) == config::print(key.get(config)));
  }
}

TEST_CASE("config: show has every key of a remote that is set", "[config]") {
  Config config = read_valid("");
  RemoteConfig read, write;
  read.url = "https://cache.example/programs", read.writers = {"build", "office"};
  read.place = {"kiln.toml", 7, 1};
  write.url = "redis://host", write.writes = true, write.sign_with = "mine", write.credentials = "redis";
  write.layout = "bazel", write.place = {"kiln.toml", 12, 3};
  config.cache.remotes = {read, write};
  std::vector<std::string> found;
  for (const std::string& line : lines(show_config(config, {}))) {
    if (line.find("cache.remote[") != std::string::npos) found.push_back(line);
  }
  CHECK(found == std::vector<std::string>{
                     "(kiln.toml:7:1) cache.remote[0].url = \"https://cache.example/programs\"",
                     "(kiln.toml:7:1) cache.remote[0].mode = \"read\"",
                     "(kiln.toml:7:1) cache.remote[0].writers = [\"build\", \"office\"]",
                     "(kiln.toml:7:1) cache.remote[0].layout = \"plain\"",
                     "(kiln.toml:12:3) cache.remote[1].url = \"redis://host\"",
                     "(kiln.toml:12:3) cache.remote[1].mode = \"read_write\"",
                     "(kiln.toml:12:3) cache.remote[1].writers = []",
                     "(kiln.toml:12:3) cache.remote[1].sign_with = \"mine\"",
                     "(kiln.toml:12:3) cache.remote[1].credentials = \"redis\"",
                     "(kiln.toml:12:3) cache.remote[1].layout = \"bazel\"",
                 });
}

namespace {

KernelBindingConfig shown_binding(const std::string& label, BindingKind kind = BindingKind::buffer) {
  KernelBindingConfig binding;
  binding.label = label;
  binding.kind = kind;
  binding.access = Access::read;
  return binding;
}

// A kernel with every kind of binding but a grid.
JobConfig job_with_every_binding() {
  KernelBindingConfig number = shown_binding("bindings[0]", BindingKind::value), integer = number;
  number.numbers = {2.5}, number.dtype = DType::f32;
  integer.label = "bindings[1]", integer.integers = {7}, integer.dtype = DType::i64;
  KernelBindingConfig local = shown_binding("bindings[2]", BindingKind::local);
  local.local_bytes = 256;
  KernelBindingConfig both = shown_binding("bindings[3]");
  both.access = Access::read_write, both.input = "x.npy", both.output = "y.npy", both.shape = {2, 3};
  both.dtype = DType::f16, both.number = 4, both.expect = "z.npy", both.tolerance = Tolerance{0.5, 0.25};
  KernelBindingConfig numbers = shown_binding("bindings[4]"), integers = shown_binding("bindings[5]");
  numbers.numbers = {1, 2.5}, numbers.name = "B";
  integers.integers = {3, -4};
  KernelBindingConfig image = shown_binding("images.photo", BindingKind::image);
  image.access = Access::read_write, image.input = image.output = "p.png", image.size = {8, 9};
  image.format = ImageFormat::rgba8, image.name = "photo";
  KernelBindingConfig texture = shown_binding("samplers.tex", BindingKind::sampler);
  texture.input = "t.npy", texture.wrap = TextureWrap::border;
  KernelBindingConfig sampler = shown_binding("samplers.plain", BindingKind::sampler_state);
  sampler.filter = TextureFilter::linear, sampler.wrap = TextureWrap::repeat;
  JobConfig job;
  job.name = "all", job.op = "kernel", job.source = "all.comp", job.place = {"kiln.toml", 3, 1};
  job.bindings = {number, integer, local, both, numbers, integers, image, texture, sampler};
  job.grid = {4, 2, 1}, job.grid_expressions[1] = "N/2";
  return job;
}

}  // namespace

TEST_CASE("config: show tells of each binding what was set", "[config]") {
  Config config = read_valid("");
  config.jobs.push_back(job_with_every_binding());
  CHECK(lines(show_config(config, {})).back() ==
        "(kiln.toml:3:1) job \"all\" = kernel grid=4x(N/2)x1 source=\"all.comp\" bindings[0].float=2.5 "
        "bindings[1].int=7 bindings[1].dtype=\"int64\" bindings[2].local=256 bindings[3].inout=\"x.npy\" "
        "bindings[3].output=\"y.npy\" bindings[3].shape=\"[2, 3]\" bindings[3].dtype=\"float16\" bindings[3].binding=4 "
        "bindings[3].expect=\"z.npy\" bindings[3].tolerance=\"absolute 0.5, relative 0.25\" "
        "bindings[4].values=\"1.0, 2.5\" bindings[4].name=\"B\" bindings[5].values=\"3, -4\" "
        "images.photo.inout=\"p.png\" images.photo.size=\"[8, 9]\" images.photo.format=\"rgba8\" "
        "samplers.tex.input=\"t.npy\" samplers.tex.filter=\"automatic\" samplers.tex.wrap=\"border\" "
        "samplers.plain.filter=\"linear\" samplers.plain.wrap=\"repeat\" verify=false");
  const auto whole = nlohmann::json::parse(show_config_json(config, {}));
  const nlohmann::json& shown = whole.at("jobs").at(0);
  CHECK(shown.at("name") == "all");
  CHECK(shown.at("op") == "kernel");
  CHECK(shown.at("computation") == "kernel grid=4x(N/2)x1");
  CHECK(shown.at("place") == "kiln.toml:3:1");
  CHECK(shown.at("bindings[0].float") == 2.5);
  CHECK(shown.at("bindings[3].binding") == 4);
  CHECK(shown.at("verify") == false);

  KernelBindingConfig grid = shown_binding("grid", BindingKind::grid);
  grid.input = "counts.npy", grid.first = 2, grid.dtype = DType::u32;
  config.jobs[0].bindings = {grid};
  CHECK(lines(show_config(config, {})).back() ==
        "(kiln.toml:3:1) job \"all\" = kernel grid=read source=\"all.comp\" grid.input=\"counts.npy\" grid.first=2 "
        "verify=false");
}

TEST_CASE("config: show tells of a job what was set beside its bindings", "[config]") {
  Config config = read_valid("");
  JobConfig job;
  job.name = "all", job.op = "kernel", job.place = {"kiln.toml", 3, 1};
  job.input = "a", job.addend = "b", job.weights = "c", job.bias = "d", job.output = "e";
  job.source = "all.comp", job.text = "void main() {}";
  job.constants = {{"A", "2"}, {"B", "x"}};
  job.tune = {{"TILE", {"8", "16"}}};
  UniformConfig gain, count;
  gain.uniform.name = "gain", gain.numbers = {0.5, 1};
  count.uniform.name = "count", count.integers = {3, 4};
  job.uniforms = {gain, count};
  job.include = {"one", "two"};
  job.workgroup = {8, 4, 1};
  job.tolerance = Tolerance{1, 0};
  job.keep_failed = true, job.alpha = Alpha::premultiply, job.device = "cpu", job.verify = true;
  config.jobs.push_back(job);
  CHECK(
      lines(show_config(config, {})).back() ==
      "(kiln.toml:3:1) job \"all\" = kernel grid=1x1x1 input=\"a\" addend=\"b\" weights=\"c\" bias=\"d\" output=\"e\" "
      "source=\"all.comp\" text=\"void main() {}\" constants.A=\"2\" constants.B=\"x\" tune.TILE=\"8, 16\" "
      "uniforms.gain=\"0.5, 1.0\" uniforms.count=\"3, 4\" include=\"one\" include=\"two\" workgroup=\"8x4x1\" "
      "tolerance=\"absolute 1.0, relative 0.0\" keep_failed=true alpha=\"premultiply\" device=\"cpu\" verify=true");
}
