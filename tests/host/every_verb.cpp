#include "host/every_verb.hpp"

#include "data/npy.hpp"
#include "data/png.hpp"
#include "host/sample_jobs.hpp"
#include "host/stored_programs.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* victim_text = "not Kiln's\n";
constexpr std::int64_t elements = 64;
constexpr const char* outputs[] = {"y.npy", "z.npy"};

constexpr const char* kernel = R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
layout(std430, binding = 2) buffer Z { float z[]; };
void main() { uint i = gl_GlobalInvocationID.x; y[i] = x[i] * 2.0 + 1.0; z[i] = x[i] - 1.0; }
)";

void write_values(const fs::path& file, float value) {
  auto tensor = HostTensor::create(DType::f32, {elements}).value();
  std::ranges::fill(tensor->as<float>(), value);
  REQUIRE(data::write_npy(file, *tensor).ok());
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) found.push_back(entry.path().lexically_relative(folder).string());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

EveryVerb::EveryVerb() : live_(folder_ / "live"), good_(folder_ / "good") {
  const fs::path data = live_ / "data";
  for (const char* name : {"data", "state", "cache"}) fs::create_directories(live_ / name);
  fs::permissions(live_ / "state", fs::perms::owner_all);
  put(data / "k.comp", kernel);
  put(data / "k.cl", "kernel void twice(global float* y) { y[get_global_id(0)] *= 2.0f; }\n");
  write_values(data / "x.npy", 3);
  write_values(data / "want-y.npy", 7);
  write_values(data / "want-z.npy", 2);
  auto photo = HostTensor::create(DType::f32, {1, 3, 8, 8}).value();
  std::ranges::fill(photo->as<float>(), 0.5F);
  REQUIRE(data::write_png(data / "photo.png", *photo).ok());
  put(data / "job.toml",
      "[selector]\nlog = true\n" + tiny_gemm("a") +
          "device = \"opengl:0\"\n"
          "[[job]]\nname = \"k\"\nop = \"kernel\"\nsource = \"k.comp\"\ndevice = \"opengl:0\"\ngrid = [1]\nverify = "
          "true\n"
          "bindings = [ { input = \"x.npy\" }, { output = \"y.npy\", shape = [64], dtype = \"float32\", expect = "
          "\"want-y.npy\" }, { output = \"z.npy\", shape = [64], dtype = \"float32\", expect = \"want-z.npy\" } ]\n"
          "[[job]]\nname = \"p\"\nop = \"conv2d\"\nc = 3\nh = 8\nw = 8\nk = 1\nr = 1\ns = 1\ninput = \"photo.png\"\n"
          "weights = \"random:1\"\ndevice = \"cpu\"\nverify = true\n");
  verbs_ = {
      {"run", {"run", data / "job.toml", "--json", "--output", data / "report.json", "--trace", data / "trace.json"}},
      {"tune", {"tune", data / "job.toml", "--budget", "200 ms", "--device", "opengl:0"}, true},
      {"tune audit", {"tune", "audit"}, true},
      {"tune export", {"tune", "export", data / "tuning.tsv"}},
      {"tune import", {"tune", "import", data / "tuning.tsv"}},
      {"tune push", {"tune", "push", data / "share.toml", "--device", "opengl:0"}},
      {"tune pull", {"tune", "pull", data / "share.toml", "--device", "opengl:0"}},
      {"devices", {"devices"}},
      {"plugins", {"plugins"}},
      {"plugins --retry", {"plugins", "--retry"}},
      {"config check", {"config", "check", data / "job.toml"}},
      {"config show", {"config", "show", data / "job.toml"}},
      {"cache list", {"cache", "list"}},
      {"cache stats", {"cache", "stats", "--prometheus", "--output", data / "kiln.prom"}},
      {"cache inspect", {"cache", "inspect", "a"}},
      {"cache verify", {"cache", "verify"}},
      {"cache verify --remove", {"cache", "verify", "--remove"}},
      {"cache explain", {"cache", "explain"}},
      {"cache release", {"cache", "release", "a"}},
      {"cache persist", {"cache", "persist"}},
      {"cache warm", {"cache", "warm", data / "job.toml"}},
      {"cache export", {"cache", "export", data / "programs.kiln"}},
      {"cache import", {"cache", "import", data / "programs.kiln", "--trust", data / "public"}},
      {"cache prune", {"cache", "prune", "--max-size", "1GiB"}},
      {"cache clear", {"cache", "clear"}},
      {"cache clear --all", {"cache", "clear", "--all"}},
      {"selector show", {"selector", "show"}},
      {"selector explain", {"selector", "explain", data / "job.toml"}},
      {"selector replay", {"selector", "replay"}},
      {"selector reset", {"selector", "reset"}},
      {"report", {"report", data / "report.json", "--output", data / "page.html"}},
      {"kernel build", {"kernel", "build", data / "k.cl", "--target", "gfx1100", "--output", data / "k.co"}},
      {"pm4 dump", {"pm4", "dump", data / "k.co"}},
      {"bench compare", {"bench", "compare", data / "report.json", data / "report.json"}},
      {"run shared", {"run", data / "share.toml", "--json"}},
      {"cache key create", {"cache", "key", "create", "next"}},
      {"cache key trust", {"cache", "key", "trust", "other", data / "other.key"}},
      {"cache key revoke", {"cache", "key", "revoke", "ci"}},
      {"cache key list", {"cache", "key", "list"}},
      {"cache push", {"cache", "push", data / "share.toml"}},
      {"cache pull", {"cache", "pull", data / "share.toml"}},
      {"cache remote status", {"cache", "remote", "status", data / "share.toml"}},
      {"cache layer create", {"cache", "layer", "create", data / "layer", "--sign-with", "ci"}},
      {"cache bake",
       {"cache", "bake", data / "share.toml", "--for", "opengl:0", "--sign-with", "ci", "--output", data / "layer"}},
  };
  // A server that is a folder, and a read-only layer.
  fs::create_directories(live_ / "share");
  put(data / "share.toml", "[cache]\nlayers = [\"" + (data / "layer").string() +
                               "\"]\n[[cache.remote]]\nurl = \"file://" + (live_ / "share").string() +
                               "\"\nmode = \"read_write\"\nwriters = [\"ci\"]\nsign_with = \"ci\"\n" + tiny_gemm("s") +
                               "device = \"opengl:0\"\n");
  put(data / "other.key", std::string(64, 'a') + "\n");
  const auto verb = [&](std::string_view name) { return kiln(std::ranges::find(verbs_, name, &Verb::name)->words); };
  const Finished first = verb("run");
  INFO(first.err << first.out);
  REQUIRE(first.status == 0);
  const Finished shown = kiln({"cache", "export", "--show-key"});
  REQUIRE(shown.status == 0);
  put(data / "public", shown.out);
  for (const char* name : {"cache export", "cache stats", "report", "kernel build", "selector replay"})
    (void)verb(name);
  REQUIRE(kiln({"cache", "key", "create", "ci"}).status == 0);
  for (const char* name : {"cache push", "cache bake", "run shared"}) {
    const Finished shared = verb(name);
    INFO(name << ": " << shared.err << shared.out);
    REQUIRE(shared.status == 0);
  }
  put(live_ / "cache/tuning.tsv", "kiln-tuning 1\n");
  (void)verb("tune export");
  // Files that are there for a moment only.
  for (const char* name : {"cache/tuning.tsv.lock", "cache/tuning.lock", "cache/selector.log.1"}) {
    if (!fs::exists(live_ / name)) put(live_ / name, "");
  }
  if (!fs::exists(live_ / "state/kiln/results.journal")) {
    fs::create_directories(live_ / "state/kiln");
    fs::permissions(live_ / "state/kiln", fs::perms::owner_all);
    put(live_ / "state/kiln/results.journal", "");
    fs::permissions(live_ / "state/kiln/results.journal", fs::perms::owner_read | fs::perms::owner_write);
  }
  fs::copy(live_, good_, fs::copy_options::recursive);
  files_ = files_below(good_);
}

void EveryVerb::renew() const {
  fs::remove_all(live_);
  fs::copy(good_, live_, fs::copy_options::recursive);
  put(victim(), victim_text);
}

bool EveryVerb::is_victim_untouched() const { return bytes_in(victim()) == victim_text; }

ProcessOptions EveryVerb::options() const {
  ProcessOptions options;
  options.environment = {{"KILN_KEY_FILE", live_ / "state/key"},
                         {"XDG_STATE_HOME", live_ / "state"},
                         {"XDG_CONFIG_HOME", live_ / "config"},
                         {"KILN_CACHE_DIR", live_ / "cache"},
                         {"ASAN_OPTIONS", "detect_leaks=0"}};  // which ptrace hinders
  options.before = {"timeout", "-s", "KILL", "120"};
  return options;
}

Finished EveryVerb::kiln(const std::vector<std::string>& words) const { return run_kiln(words, options()); }

Finished EveryVerb::run() const { return kiln({"run", live_ / "data/job.toml", "--json"}); }

bool EveryVerb::is_right(const Finished& run) const {
  if (run.status != 0) return false;
  const auto report = run.json();
  for (const auto& job : report["jobs"]) {
    if (job["status"] != "ok" || job["verified"] != true) return false;
  }
  return std::ranges::all_of(outputs, [&](const char* name) {
    const auto tensor = data::read_npy(live_ / "data" / name);
    const float expected = name[0] == 'y' ? 7 : 2;
    // An altered bit of the user's input may change a value by less than `verify` allows.
    constexpr float allowed = 1e-5F;
    return tensor && std::ranges::all_of((*tensor)->as<float>(),
                                         [&](float value) { return std::abs(value - expected) <= allowed; });
  });
}

}  // namespace kiln::test
