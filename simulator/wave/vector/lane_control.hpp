// How DPP and SDWA stand in the Ops that carry them out.
//
// DPP (lane_control_begin): `extra` DPP16's control; `offset` DPP8's eight selectors of three bits; `detail` row mask and,
// from bit 4, bank mask; `select` the bits below. SDWA: `detail` the selection (bytes 0-3, words 4-5, all 6); `extra` of a
// source: sign extension; of the result: what becomes of the rest.
// Thread-safety and ownership: constants.
#pragma once

#include <cstdint>

namespace kiln::simulator::lane_control {

inline constexpr std::uint8_t bound = 1;     // a lane without a source reads zero; else it is off
inline constexpr std::uint8_t inactive = 2;  // reads from lanes that are off, too
inline constexpr std::uint8_t eight = 4;     // DPP8

inline constexpr std::uint16_t pad = 0;
inline constexpr std::uint16_t extend = 1;
inline constexpr std::uint16_t preserve = 2;

}  // namespace kiln::simulator::lane_control
