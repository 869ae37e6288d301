#include "packets/dword_file.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <sstream>

namespace kiln::amdgpu_pm4 {

std::string golden_pm4_folder() { return KILN_SOURCE_DIR "/tests/golden/pm4/"; }

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  INFO(path);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

DwordFile read_dword_file(const std::string& path) {
  DwordFile result;
  std::istringstream text(text_of_file(path));
  for (std::string line; std::getline(text, line);) {
    const std::size_t comment = line.find('#');
    const std::string words = line.substr(0, comment);
    const std::string remark = comment == std::string::npos ? "" : line.substr(comment);
    if (remark == "# generation: gfx11") result.generation = Generation::gfx11;
    if (remark == "# generation: gfx10.3") result.generation = Generation::gfx10_3;
    if (remark.rfind("# provenance: ", 0) == 0) result.provenance = remark.substr(14);
    std::istringstream fields(words);
    for (std::string word; fields >> word;) {
      result.dwords.push_back(static_cast<std::uint32_t>(std::stoul(word, nullptr, 16)));
    }
  }
  return result;
}

}  // namespace kiln::amdgpu_pm4
