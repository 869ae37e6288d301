// LLVM 19's tools as the decoder's oracle: what they say that words mean. Where they are not installed, tests say so
// and pass over.
//
// Thread-safety: one test at a time. Ownership: values; scratch files live in the given folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "simulator/isa/decoder.hpp"

namespace kiln::test {

struct DisassembledLine {
  std::uint64_t address = 0;
  std::vector<std::uint32_t> words;
  std::string text;  // one space between words; comments removed
};

// Empty where every tool is there, else which one is missing.
std::string missing_llvm_tool();

// A folder for scratch files, removed at the end.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

const char* processor_of(simulator::Generation generation);

// Compiles OpenCL C with clang. Answers what clang said where it failed.
std::optional<std::string> compile(const std::filesystem::path& source, const simulator::CodeTarget& target,
                                   const std::string& options, const std::filesystem::path& object);

// Every instruction of an object's code, in order.
std::vector<DisassembledLine> disassemble(const std::filesystem::path& object, const simulator::CodeTarget& target);

// Each case by itself: what its first words are; nothing where LLVM knows no such instruction or marks an operand as
// wrong. `length` is words.size() of the answer's line.
std::vector<std::optional<DisassembledLine>> disassemble_each(const std::vector<std::vector<std::uint32_t>>& cases,
                                                              const simulator::CodeTarget& target,
                                                              const std::filesystem::path& folder);

}  // namespace kiln::test
