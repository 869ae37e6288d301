// Pm4Printer: `kiln pm4 dump` for this plugin's targets.
//
// Thread-safety: as StreamPrinter. Ownership: owns nothing.
#pragma once

#include <kiln/offline_tools.hpp>

namespace kiln::amdgpu_pm4 {

class Pm4Printer final : public StreamPrinter {
 public:
  Result<std::string> print(std::span<const std::byte> stream, std::string_view target) noexcept override;
};

}  // namespace kiln::amdgpu_pm4
