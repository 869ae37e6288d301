// Random programs in OpenCL C, compiled by clang-19 for both generations, both wave sizes and three levels of
// optimization, with the hazard checks on. KILN_TEST_PROGRAMS=FIRST:COUNT chooses the seeds.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "support/test_length.hpp"
#include "tests/simulator/compute/launcher.hpp"
#include "tests/simulator/random/random_program.hpp"

namespace kiln::simulator::test {
namespace {

struct Build {
  const char* target;
  const char* options;
};
// Two neighbours differ in all three respects.
constexpr Build builds[] = {
    {"gfx1100", "-O0"}, {"gfx1030", "-O1 -mwavefrontsize64"},
    {"gfx1030", "-O0"}, {"gfx1100", "-O3 -mwavefrontsize64"},
    {"gfx1100", "-O1"}, {"gfx1030", "-O3 -mwavefrontsize64"},
    {"gfx1030", "-O1"}, {"gfx1100", "-O0 -mwavefrontsize64 -mcumode"},
    {"gfx1100", "-O3"}, {"gfx1030", "-O0 -mwavefrontsize64"},
    {"gfx1030", "-O3"}, {"gfx1100", "-O1 -mwavefrontsize64 -mcumode"},
};

std::vector<std::uint32_t> given_words(std::uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<std::uint32_t> words(RandomProgram::given_words);
  const std::uint32_t edges[] = {0,      1,          2,          0x7F,       0x80,       0xFFFF,
                                 0x8000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0x7F800000};
  for (std::uint32_t& word : words) word = random() % 4 == 0 ? edges[random() % std::size(edges)] : random();
  return words;
}

template <class T>
std::string first_difference(const std::vector<T>& got, const std::vector<T>& expected) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] != expected[i]) {
      return "[" + std::to_string(i) + "] is " + std::to_string(got[i]) + ", not " + std::to_string(expected[i]);
    }
  }
  return {};
}

// What is wrong with the program's results; empty: nothing.
std::string verdict(const RandomProgram& program, const KernelCode& code, std::uint64_t seed) {
  const std::vector<std::uint32_t> given = given_words(seed);
  const RandomProgram::Results expected = program.expected(given, code.wave32() ? 32 : 64);
  Launcher launcher;
  const std::uint64_t words = launcher.memory.allocate(expected.words.size() * 4),
                      sums = launcher.memory.allocate(expected.sums.size() * 4),
                      wide = launcher.memory.allocate(expected.wide.size() * 8);
  Arguments arguments;
  arguments.add(launcher.memory.allocate(given, Rights::read_only)).add(words).add(sums).add(wide);
  const std::optional<Fault> fault =
      launcher.run(code, arguments, {{program.groups(), 1, 1}, {program.threads_per_group(), 1, 1}});
  if (fault) return describe(*fault);
  const auto got = launcher.memory.values<std::uint32_t>(words, expected.words.size());
  std::string wrong;
  for (std::size_t i = 0, count = 0; i < got.size() && count < 6; ++i) {
    if (got[i] == expected.words[i]) continue;
    wrong += (count++ == 0 ? "" : "; ") + program.word_name(i) + " is " + std::to_string(got[i]) + ", not " +
             std::to_string(expected.words[i]);
  }
  if (!wrong.empty()) return wrong;
  const std::string of_sums =
      first_difference(launcher.memory.values<std::uint32_t>(sums, expected.sums.size()), expected.sums);
  if (!of_sums.empty()) return "sums" + of_sums;
  const std::string of_wide =
      first_difference(launcher.memory.values<std::uint64_t>(wide, expected.wide.size()), expected.wide);
  return of_wide.empty() ? "" : "wide" + of_wide;
}

}  // namespace

TEST_CASE("simulator kernels: random programs give the host's results", "[simulator][kernel][random]") {
  if (!compiler_present()) {
    WARN("skipped: no clang-19");
    return;
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("kiln-random-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  unsigned wrong = 0, built = 0, refused = 0;
  const std::uint64_t count = kiln::test::is_long() ? 600 : std::size(builds) / 2;  // each build once
  for (const std::uint64_t seed : RandomProgram::chosen_seeds(count)) {
    const RandomProgram program(RandomProgram::Language::opencl, seed);
    const std::filesystem::path source = folder / (program.name() + ".cl");
    std::ofstream(source) << program.text();
    bool right = true;
    for (const std::size_t which : {2 * seed % 12, 2 * seed % 12 + 1}) {
      const Build& build = builds[which];
      const std::optional<KernelCode> code =
          compiled_file(build.target, source, "program", std::string("-w 2>/dev/null ") + build.options);
      ++built;
      if (!code) {
        WARN(source.string() << " for " << build.target << " with " << build.options << " does not compile");
        ++refused;
        right = false;
        continue;
      }
      const std::string what = verdict(program, *code, seed);
      if (what.empty()) continue;
      right = false;
      FAIL_CHECK(source.string() << " for " << build.target << " with " << build.options << ": " << what);
    }
    if (right) std::filesystem::remove(source);
    if (!right && ++wrong == 20) break;
  }
  if (wrong == 0) std::filesystem::remove(folder);
  CHECK(refused <= std::max(1U, built / 20));  // clang-19 itself ends by a signal at a few programs
}

}  // namespace kiln::simulator::test
