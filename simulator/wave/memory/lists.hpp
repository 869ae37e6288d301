// The tables of memory instructions. Those of the flat family and of buffers stand without their prefixes
// (global_load_b32 is load_b32 of global()). Thread-safety and ownership: constants.
#pragma once

#include "simulator/wave/op.hpp"

namespace kiln::simulator::memory_unit {

SemanticsList flat() noexcept;
SemanticsList global() noexcept;
SemanticsList by_thread_id() noexcept;  // global ones, without an address in a VGPR
SemanticsList scratch() noexcept;
SemanticsList local() noexcept;        // DS
SemanticsList local_lanes() noexcept;  // DS: between lanes, without memory
SemanticsList buffer() noexcept;
SemanticsList formatted_buffer() noexcept;
SemanticsList typed_buffer() noexcept;  // MTBUF
SemanticsList image() noexcept;         // without a sampler
SemanticsList image_detail() noexcept;
const Semantics& image_sample() noexcept;  // of every sample and gather
SemanticsList nothing() noexcept;       // cache maintenance with full names

}  // namespace kiln::simulator::memory_unit
