// VectorChoice: which build of the vector instructions runs. Both give the same bits.
//
// Thread-safety and ownership: values.
#pragma once

#include <cstdint>

namespace kiln::simulator {

enum class VectorChoice : std::uint8_t { invalid = 0, best, portable };  // best: by what the processor has

}  // namespace kiln::simulator
