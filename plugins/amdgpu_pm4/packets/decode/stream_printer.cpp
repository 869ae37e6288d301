#include "amdgpu_pm4/packets/decode/stream_printer.hpp"

#include "amdgpu_pm4/packets/decode/stream_text.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

Generation generation_named(std::string_view target) {
  if (target.empty() || target.starts_with("gfx11")) return Generation::gfx11;
  if (target.starts_with("gfx103")) return Generation::gfx10_3;
  return Generation::invalid;
}

}  // namespace

Result<std::string> Pm4Printer::print(std::span<const std::byte> stream, std::string_view target) noexcept {
  const Generation generation = generation_named(target);
  if (generation == Generation::invalid) {
    return invalid_argument("target " + std::string(target) +
                            ": expected one of gfx10.3 (gfx1030, …) or gfx11 (gfx1100, …)");
  }
  return stream_text(stream, generation);
}

}  // namespace kiln::amdgpu_pm4
