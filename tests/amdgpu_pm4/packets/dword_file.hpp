// Golden streams: dwords as text, "#" starting a comment to the line's end; the first comments tell whence they come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "amdgpu_pm4/packets/capabilities.hpp"

namespace kiln::amdgpu_pm4 {

struct DwordFile {
  Generation generation = Generation::invalid;  // of the line "# generation: gfx11"
  std::string provenance;                       // of the line "# provenance: …"
  std::vector<std::uint32_t> dwords;
};

std::string golden_pm4_folder();
std::string text_of_file(const std::string& path);  // fails the test where there is none
DwordFile read_dword_file(const std::string& path);

}  // namespace kiln::amdgpu_pm4
