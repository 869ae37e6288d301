// RandomProgram: a program drawn from a seed, as text of OpenCL C or GLSL, and its results, which an interpreter of its
// own computes on the host. Every result is exactly defined: whole numbers wrap, shifts are masked, divisors are not
// zero, and the order in which threads run does not matter.
//
//   const RandomProgram program(RandomProgram::Language::opencl, 7);
//   write(program.text());                                    // kernel `program`, or one case of tests/witnesses
//   compare(results_of_the_card, program.expected(given, 32).words);
//
// Thread-safety: any thread once constructed. Ownership: values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kiln::simulator::test {

class RandomProgram {
 public:
  enum class Language : std::uint8_t {
    invalid = 0,
    opencl,  // kernel program(given, words, sums, wide)
    vulkan,  // GLSL with whole numbers of 8 to 64 bits and with subgroups
    opengl   // GLSL with whole numbers of 32 and 64 bits
  };
  static constexpr unsigned given_words = 256, sum_words = 16, wide_sums = 8;

  struct Results {
    std::vector<std::uint32_t> words;  // a thread: words_per_thread()
    std::vector<std::uint32_t> sums;
    std::vector<std::uint64_t> wide;  // not in Language::opengl
  };

  // 1 to `count`, or those that KILN_TEST_PROGRAMS=FIRST:COUNT names. Throws std::invalid_argument where that is wrong.
  static std::vector<std::uint64_t> chosen_seeds(std::uint64_t count);

  RandomProgram(Language language, std::uint64_t seed);
  RandomProgram(const RandomProgram&) = delete;
  RandomProgram& operator=(const RandomProgram&) = delete;
  ~RandomProgram();

  std::string name() const;  // random_7
  const std::string& text() const;
  unsigned threads_per_group() const;
  unsigned groups() const;
  unsigned words_per_thread() const;
  // What word `at` of Results::words is: "thread 3, low word of x4".
  std::string word_name(std::size_t at) const;

  // REQUIRES: given.size() == given_words; lanes is 32 or 64.
  Results expected(const std::vector<std::uint32_t>& given, unsigned lanes) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace kiln::simulator::test
