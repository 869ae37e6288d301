#include "simulator/isa/llvm.hpp"

#include <stdlib.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace kiln::test {
namespace {

using simulator::CodeTarget;
using simulator::Generation;
using simulator::WaveSize;

struct Answer {
  int status = 0;
  std::string text;
};

Answer run(const std::string& command) {
  Answer answer;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start: " + command);
  char buffer[65536];
  for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) answer.text.append(buffer, got);
  const int status = ::pclose(pipe);
  answer.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return answer;
}

std::string quoted(const std::filesystem::path& path) { return "'" + path.string() + "'"; }

std::string wave_attributes(WaveSize wave) {
  return wave == WaveSize::wave64 ? "-wavefrontsize32,+wavefrontsize64" : "+wavefrontsize32,-wavefrontsize64";
}

std::string squeezed(const std::string& text) {
  std::istringstream words(text);
  std::string result;
  for (std::string word; words >> word;) result += (result.empty() ? "" : " ") + word;
  return result;
}

}  // namespace

std::string missing_llvm_tool() {
  for (const char* tool : {"clang-19", "llvm-objdump-19", "llvm-mc-19"}) {
    if (run(std::string("command -v ") + tool + " >/dev/null 2>&1").status != 0) return tool;
  }
  return {};
}

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "kiln-isa-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + name);
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

const char* processor_of(Generation generation) { return generation == Generation::gfx11 ? "gfx1100" : "gfx1030"; }

std::optional<std::string> compile(const std::filesystem::path& source, const CodeTarget& target,
                                   const std::string& options, const std::filesystem::path& object) {
  const std::string wave = target.wave == WaveSize::wave64 ? " -mwavefrontsize64 " : " ";
  const Answer answer = run("clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -nogpulib -mcpu=" +
                            std::string(processor_of(target.generation)) + wave + options + " -c " + quoted(source) +
                            " -o " + quoted(object) + " 2>&1");
  if (answer.status == 0) return std::nullopt;
  return answer.text;
}

// "\ts_load_b64 s[0:1], s[2:3], null    // 000000001700: F4040100 F8000000 <label>"
std::vector<DisassembledLine> disassemble(const std::filesystem::path& object, const CodeTarget& target) {
  const Answer answer = run("llvm-objdump-19 -d --mattr=" + wave_attributes(target.wave) + " " + quoted(object));
  std::istringstream lines(answer.text);
  std::vector<DisassembledLine> result;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t comment = line.find("// ");
    if (comment == std::string::npos || line[0] != '\t') continue;
    DisassembledLine entry;
    entry.text = squeezed(line.substr(0, comment));
    std::istringstream tail(line.substr(comment + 3));
    std::string address;
    tail >> address;
    entry.address = std::stoull(address, nullptr, 16);
    for (std::string word; tail >> word && word[0] != '<';) {
      entry.words.push_back(static_cast<std::uint32_t>(std::stoul(word, nullptr, 16)));
    }
    result.push_back(std::move(entry));
  }
  return result;
}

namespace {

// Before each case stand three s_movk_i32 to one register, whose constants are ten bits of the case's number each.
constexpr std::uint32_t marker_word = 0xB02A0000;  // s_movk_i32 s42
constexpr const char* marker_text = "s_movk_i32 s42, ";

void write_bytes(std::ostream& out, const std::vector<std::uint32_t>& words) {
  out << '[';
  bool first = true;
  for (const std::uint32_t word : words) {
    for (unsigned byte = 0; byte < 4; ++byte) {
      out << (first ? "" : ",") << (word >> 8 * byte & 255u);
      first = false;
    }
  }
  out << "]\n";
}

// "[0x0a,0x00,…]" as words.
std::vector<std::uint32_t> words_of(const std::string& bytes) {
  std::vector<std::uint32_t> words;
  unsigned count = 0;
  std::istringstream text(bytes);
  for (std::string byte; std::getline(text, byte, ',');) {
    if (count % 4 == 0) words.push_back(0);
    words.back() |= static_cast<std::uint32_t>(std::stoul(byte, nullptr, 16)) << 8 * (count % 4);
    ++count;
  }
  return words;
}

}  // namespace

std::vector<std::optional<DisassembledLine>> disassemble_each(const std::vector<std::vector<std::uint32_t>>& cases,
                                                              const CodeTarget& target,
                                                              const std::filesystem::path& folder) {
  const std::filesystem::path input = folder / "words.txt";
  {
    std::ofstream out(input);
    for (std::size_t index = 0; index < cases.size(); ++index) {
      for (const unsigned shift : {20u, 10u, 0u}) {
        write_bytes(out, {marker_word | (static_cast<std::uint32_t>(index >> shift) & 1023u)});
      }
      write_bytes(out, cases[index]);
    }
  }
  const Answer answer = run(
      "llvm-mc-19 --disassemble --triple=amdgcn --show-encoding -mcpu=" + std::string(processor_of(target.generation)) +
      " -mattr=" + wave_attributes(target.wave) + " " + quoted(input) + " 2>/dev/null");
  std::vector<std::optional<DisassembledLine>> result(cases.size());
  std::istringstream lines(answer.text);
  std::size_t number = 0;
  unsigned markers = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t encoding = line.find("encoding: [");
    if (encoding == std::string::npos) continue;
    const std::string text = squeezed(line.substr(0, line.rfind(';', encoding)));
    if (text.rfind(marker_text, 0) == 0) {
      if (markers == 3) markers = 0;  // the case before was none
      number = (markers == 0 ? 0 : number << 10) | std::stoul(text.substr(std::string(marker_text).size()), nullptr, 0);
      ++markers;
      continue;
    }
    if (markers != 3) continue;  // a second instruction of the case before
    markers = 0;
    if (number >= cases.size() || text.find("/*") != std::string::npos || text == "v_illegal") continue;
    const std::size_t start = encoding + std::string("encoding: [").size();
    result[number] = DisassembledLine{0, words_of(line.substr(start, line.find(']', start) - start)), text};
  }
  return result;
}

}  // namespace kiln::test
