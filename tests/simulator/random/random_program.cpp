#include "tests/simulator/random/random_program.hpp"

#include <cstdlib>
#include <numeric>
#include <stdexcept>

#include "tests/simulator/random/tree.hpp"

namespace kiln::simulator::test {

struct RandomProgram::Parts {
  std::uint64_t seed;
  drawn::Program program;
  std::string text;
};

std::vector<std::uint64_t> RandomProgram::chosen_seeds(std::uint64_t count) {
  std::uint64_t first = 1;
  if (const char* chosen = std::getenv("KILN_TEST_PROGRAMS")) {
    char* end = nullptr;
    first = std::strtoull(chosen, &end, 10);
    const bool both = *end == ':' && end[1] != '\0';
    if (both) count = std::strtoull(end + 1, &end, 10);
    if (!both || *end != '\0') {
      throw std::invalid_argument(std::string("KILN_TEST_PROGRAMS: expected FIRST:COUNT, found ") + chosen);
    }
  }
  std::vector<std::uint64_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), first);
  return seeds;
}

RandomProgram::RandomProgram(Language language, std::uint64_t seed)
    : parts_(std::make_unique<Parts>(Parts{seed, drawn::program_of(language, seed), {}})) {
  const drawn::Program& g = parts_->program;
  std::string& text = parts_->text;
  if (language == Language::opencl) {
    text = g.text;
    return;
  }
  text = "@shader " + name() + "\n";
  if (language == Language::vulkan) {
    text += "@needs vulkan int64 int16 int8 atomic_int64\n";
    for (const char* each : {"GL_EXT_shader_explicit_arithmetic_types", "GL_EXT_shader_atomic_int64"}) {
      text += std::string("@extension ") + each + "\n";
    }
    for (const char* each : {"basic", "ballot", "shuffle", "arithmetic", "clustered", "quad"}) {
      text += std::string("@extension GL_KHR_shader_subgroup_") + each + "\n";
    }
  } else {
    text += "@needs int64\n";
  }
  text += "@local " + std::to_string(g.threads) + "\n@groups " + std::to_string(g.groups) + "\n@in uint given " +
          std::to_string(given_words) + (seed % 2 == 0 ? " any\n" : " edges\n");
  text += "@out uint words " + std::to_string(std::size_t{g.threads} * g.groups * g.word_slots) + " exact\n";
  text += "@out uint sums " + std::to_string(sum_words) + " exact\n";
  if (language == Language::vulkan) text += "@out uint64_t wide " + std::to_string(wide_sums) + " exact\n";
  text += g.text;
}

RandomProgram::~RandomProgram() = default;

std::string RandomProgram::name() const { return "random_" + std::to_string(parts_->seed); }
const std::string& RandomProgram::text() const { return parts_->text; }
unsigned RandomProgram::threads_per_group() const { return parts_->program.threads; }
unsigned RandomProgram::groups() const { return parts_->program.groups; }
unsigned RandomProgram::words_per_thread() const { return parts_->program.word_slots; }

std::string RandomProgram::word_name(std::size_t at) const {
  const unsigned count = words_per_thread(), word = static_cast<unsigned>(at % count);
  const std::string thread = "thread " + std::to_string(at / count) + ", ";
  if (word < drawn::first_result) return thread + "words[" + std::to_string(word) + "]";
  const drawn::Result& result = parts_->program.results[word - drawn::first_result];
  return thread + (result.high ? "high word of " : "") + result.name;
}

RandomProgram::Results RandomProgram::expected(const std::vector<std::uint32_t>& given, unsigned lanes) const {
  return drawn::interpreted(parts_->program, given, lanes);
}

}  // namespace kiln::simulator::test
