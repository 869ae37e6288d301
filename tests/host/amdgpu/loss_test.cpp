// The simulated card is taken away, is reset or hangs at each of a run's submissions in turn: no signal ends the
// command, the report says where each job ran, and another device serves what the card could not.
#include "host/kiln_process.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;

namespace {

// Served by the CPU too.
const std::string jobs = R"(
[[job]]
name = "convolution"
op = "conv2d"
c = 4
h = 9
w = 7
k = 5
r = 3
s = 3
pad = 1
input = "random:1"
weights = "random:2"
verify = true

[[job]]
name = "product"
op = "gemm"
m = 16
n = 12
k = 8
input = "random:3"
weights = "random:4"
verify = true
)";

struct Card {
  const char* device;
  const char* plugins;
  int submissions;  // that a run with two repeats makes, about
};

constexpr Card cards[] = {{"opengl:0", "\"cpu\", \"opengl\", \"dynamic_shaders\"", 20},
                          {"amdgpu:0", "\"cpu\", \"amdgpu_pm4\", \"dynamic_shaders\"", 5},
                          {"vulkan:0", "\"cpu\", \"vulkan\", \"dynamic_shaders\"", 8}};

constexpr const char* faults[] = {"unplugged", "vram_lost", "hang", "page_fault", "cancelled"};

class Runs {
 public:
  explicit Runs(const Card& card)
      : card_(card),
        file_(folder_.write("jobs.toml", "[plugins]\nload = [" + std::string(card.plugins) + "]\n" + jobs)) {}

  // Whether the card is there, and serves where nothing is planted. Its programs are stored from then on.
  bool is_usable() const {
    const Finished whole = run("");
    INFO(whole.err << whole.out);
    REQUIRE(whole.status == 0);
    const auto report = whole.json();
    return report["jobs"][0]["device"]["id"] == card_.device && report["jobs"][0]["device"]["kind"] == "simulated";
  }

  enum class Cache : std::uint8_t { invalid = 0, warm, empty };

  // Whether the run ended as the contract says.
  bool survives(const std::string& fault, Cache cache = Cache::warm) const {
    if (cache == Cache::empty) std::filesystem::remove_all(folder_ / "empty");
    const Finished met = run(fault, cache == Cache::empty ? "empty" : "cache");
    INFO(card_.device << " " << fault << ": " << met.status << " " << met.err << met.out);
    CHECK(met.status == 0);
    if (met.status != 0) return false;
    const auto report = met.json();
    bool good = report["jobs"].size() == 2;
    for (const auto& job : report["jobs"]) good = good && job["status"] == "ok" && job["verified"] == true;
    CHECK(good);
    return good;
  }

 private:
  Finished run(const std::string& fault, const std::string& cache = "cache") const {
    return run_kiln({"simulate", "--", std::string(KILN_BINARY_DIR) + "/bin/kiln", "run", file_, "--json", "--device",
                     card_.device, "--repeat", "2", "--cache-dir", folder_ / cache},
                    {.environment = {{"KILN_SIM_LOCKUP_MS", "20"},
                                     {"KILN_SIM_FAULT", fault},
                                     // Vulkan's loader unloads the driver before leaks are looked for.
                                     {"ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0"}},
                     .before = {"timeout", "-s", "KILL", "100"}});
  }

  Card card_;
  TemporaryFolder folder_;
  std::string file_;
};

}  // namespace

TEST_CASE("simulated loss: a fault at each submission of each driver", "[host][unsanitized]") {
  int runs = 0, failures = 0;
  for (const Card& card : cards) {
    const Runs place(card);
    if (!place.is_usable()) {
      WARN("skipped: no simulated card for " << card.device);
      continue;
    }
    for (const char* fault : faults) {
      const int step = is_long() ? 1 : is_sanitized ? card.submissions : card.submissions / 2;
      for (int at = 1; at <= card.submissions; at += step, ++runs) {
        if (!place.survives(fault + ("@" + std::to_string(at)))) ++failures;
        if (!is_long()) continue;
        ++runs;
        if (!place.survives(fault + ("@" + std::to_string(at)), Runs::Cache::empty)) ++failures;
      }
    }
  }
  WARN("simulated loss: " << runs << " runs, " << failures << " failures");
}
