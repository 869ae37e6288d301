// Every word of every kernel in kernels/, compiled by clang for both generations and wave sizes at four levels of
// optimisation (short form: two): the decoder finds the lengths and operands that LLVM's disassembler finds.
#include <catch2/catch.hpp>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "simulator/isa/llvm.hpp"
#include "simulator/isa/printer.hpp"
#include "support/test_length.hpp"

namespace {

using namespace kiln;
using simulator::CodeTarget;
using simulator::Generation;
using simulator::WaveSize;

std::vector<std::filesystem::path> kernel_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/tests/simulator/isa/kernels")) {
    if (entry.path().extension() == ".cl") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// LLVM spells the fields of two constants out where it can.
bool same_text(const std::string& ours, const std::string& theirs) {
  if (ours == theirs) return true;
  const auto both = [&](const std::string& our_start, const std::string& their_start) {
    return ours.rfind(our_start, 0) == 0 && theirs.rfind(their_start, 0) == 0;
  };
  const std::string swizzle = ours.substr(0, ours.find(" offset:")) + " offset:";
  return both("s_waitcnt_depctr", "s_waitcnt_depctr depctr_") || both("ds_swizzle_b32", swizzle + "swizzle(");
}

struct Tally {
  std::size_t instructions = 0;
  std::set<std::string> mnemonics;
};

void compare(const std::vector<test::DisassembledLine>& lines, const CodeTarget& target, Tally& tally) {
  for (const test::DisassembledLine& line : lines) {
    // As code is met at run time: the words from here on, with what follows behind them.
    std::vector<std::uint32_t> words = line.words;
    words.resize(simulator::longest_instruction, 0xFFFFFFFFu);
    simulator::Instruction instruction;
    const auto fault = simulator::decode(target, words, line.address, instruction);
    INFO("LLVM: " << line.text);
    INFO("fault: " << (fault ? fault->reason : std::string("none")));
    REQUIRE_FALSE(fault.has_value());
    REQUIRE(instruction.dwords == line.words.size());
    const std::string text = simulator::to_text(instruction, target);
    if (!same_text(text, line.text)) CHECK(text == line.text);
    ++tally.instructions;
    tally.mnemonics.insert(line.text.substr(0, line.text.find(' ')));
  }
}

}  // namespace

TEST_CASE("simulator::isa::decoder agrees with LLVM on every word of every kernel") {
  const std::string missing = test::missing_llvm_tool();
  if (!missing.empty()) {
    WARN("skipped: " << missing << " is not installed, and it is the oracle");
    return;
  }
  const auto files = kernel_files();
  REQUIRE(files.size() >= 12);
  const std::vector<std::string> levels =
      test::is_long() ? std::vector<std::string>{"-O0", "-O1", "-O2", "-O3"} : std::vector<std::string>{"-O0", "-O2"};
  test::ScratchFolder scratch;
  // One translation unit of all kernels: a compiler's start costs as much as a kernel.
  const std::filesystem::path all = scratch.path() / "all.cl";
  {
    std::ofstream out(all);
    for (const auto& file : files) out << "#undef ID\n#include \"" << file.string() << "\"\n";
  }
  for (const Generation generation : {Generation::gfx11, Generation::gfx10_3}) {
    Tally tally;
    for (const WaveSize wave : {WaveSize::wave32, WaveSize::wave64}) {
      const CodeTarget target{generation, wave};
      for (const std::string& level : levels) {
        INFO(level << " " << test::processor_of(generation) << " wave" << static_cast<int>(wave));
        const auto object = scratch.path() / "kernel.o";
        const auto diagnostics = test::compile(all, target, level, object);
        INFO(diagnostics.value_or(""));
        REQUIRE_FALSE(diagnostics.has_value());
        const auto lines = test::disassemble(object, target);
        REQUIRE(lines.size() > 20 * files.size());
        compare(lines, target, tally);
      }
    }
    std::cout << test::processor_of(generation) << ": " << tally.instructions << " instructions, "
              << tally.mnemonics.size() << " mnemonics agree\n";
    CHECK(tally.mnemonics.size() > 180);
  }
}
