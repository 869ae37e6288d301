// A run of sixty programs on sixteen threads, killed at random times: no result is wrong, no good program is set aside,
// and the next run needs nobody's help.
#include "host/build_place.hpp"
#include "support/test_length.hpp"

#include "data/npy.hpp"

#include <chrono>
#include <csignal>
#include <random>

using namespace kiln::test;

namespace {

constexpr int program_count = 60;
constexpr int of_timeout_killed = 128 + SIGKILL;

std::string name_of_program(int program) { return "k" + std::to_string(program); }
// Program p makes y[i] = i * (p + 2) + 1.
constexpr int factor_of(int program) { return program + 2; }

struct Killed : BuildPlace {
  Killed() {
    for (int program = 0; program < program_count; ++program) {
      add(name_of_program(program), good_kernel(factor_of(program)), factor_of(program));
    }
  }

  // Ended by SIGKILL after so many seconds, unless it ends before; 0: never.
  Finished run_for(double seconds) const {
    ProcessOptions options;
    options.before = {"timeout", "-s", "KILL", std::to_string(seconds == 0 ? 120.0 : seconds)};
    return run({"--jobs", "16"}, options);
  }

  void remove_results() const {
    for (int program = 0; program < program_count; ++program) fs::remove(folder / (name_of_program(program) + ".npy"));
  }

  // How many results are there; -1: one of them is wrong.
  int right_results() const {
    int there = 0;
    for (int program = 0; program < program_count; ++program) {
      const fs::path file = folder / (name_of_program(program) + ".npy");
      if (!fs::exists(file)) continue;
      const auto tensor = kiln::data::read_npy(file);
      if (!tensor || (*tensor)->bytes().size() != 64 * sizeof(float)) return -1;
      const auto values = (*tensor)->as<float>();
      for (int i = 0; i < 64; ++i) {
        if (values[static_cast<std::size_t>(i)] != static_cast<float>(i * factor_of(program) + 1)) return -1;
      }
      ++there;
    }
    return there;
  }

  // A run that nobody kills serves all jobs, and leaves none of the temporary files of those that were killed.
  bool serves() const {
    remove_results();
    const Finished whole = run_for(0);
    INFO(whole.err << whole.out);
    CHECK(whole.status == 0);
    if (whole.status != 0) return false;
    check_verified(whole, true);
    const auto quarantined = whole.json()["cache"]["rejected"]["quarantined"].get<int>();
    const int results = right_results();
    CHECK(quarantined == 0);
    CHECK(results == program_count);
    std::string left;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(".")) left += name + " ";
    }
    CHECK(left.empty());
    return quarantined == 0 && results == program_count && left.empty();
  }
};

}  // namespace

TEST_CASE("killed runs: SIGKILL at random times of sixteen threads with sixty programs", "[host][unsanitized]") {
  const Killed place;
  const auto seconds_of = [&] {
    const auto begun = std::chrono::steady_clock::now();
    CHECK(place.serves());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  };
  const double cold = seconds_of(), warm = seconds_of();
  if (!has_opengl(place.run_for(0))) {
    WARN("skipped: no OpenGL device");
    return;
  }
  const int wanted = is_long() ? 1000 : is_sanitized ? 3 : 12;
  const int between_cold = is_long() ? 25 : 6, between_whole = is_long() ? 8 : 6;
  std::mt19937 random(22);
  int kills = 0, runs = 0, whole = 0, faults = 0;
  for (bool is_cold = false; kills < wanted && faults == 0 && runs < 4 * wanted + 40; ++runs) {
    if (kills % between_cold == 0 && !is_cold) fs::remove_all(place.cache), is_cold = true;
    place.remove_results();
    const double longest = is_cold ? cold : warm;
    const Finished killed = place.run_for(std::uniform_real_distribution<>(0.002, longest)(random));
    if (killed.status != -SIGKILL && killed.status != of_timeout_killed) {
      CAPTURE(killed.err, killed.status);
      CHECK(killed.status == 0);
      if (killed.status != 0) ++faults;
      continue;
    }
    ++kills;
    is_cold = false;
    CAPTURE(kills);
    const bool is_right = place.right_results() >= 0;
    CHECK(is_right);
    if (!is_right) ++faults;
    if (kills % between_whole != 0) continue;
    ++whole;
    if (!place.serves()) ++faults;
  }
  CHECK(kills == wanted);
  CHECK(place.serves());
  const Finished verified = place.verb({"cache", "verify", "--json"});
  INFO(verified.out << verified.err);
  CHECK(verified.json()["ok"] == program_count);
  WARN("killed runs: " << kills << " kills, " << whole << " whole runs between them, " << faults << " faults");
}
