// Scalar memory: loads by address and by buffer descriptor, and the clocks of gfx10.3.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "simulator/wave/memory/buffer_descriptor.hpp"
#include "simulator/wave/memory_port.hpp"
#include "simulator/wave/scalar/lists.hpp"
#include "simulator/wave/scalar/operation.hpp"

namespace kiln::simulator::scalar_unit {
namespace {

// The low two bits of an address count for nothing.
constexpr Wide whole_words = ~Wide{3};

template <unsigned Count>
Next load(Wave& wave, const Op& op) {
  const Wide base = wave.scalar64(op.reg[0]) & whole_words;
  const Word moved = op.kind[1] == SourceKind::none ? 0 : scalar_source32(wave, op, 1);
  const Wide address = (base + moved + static_cast<Wide>(static_cast<std::int64_t>(op.offset))) & whole_words;
  Word words[Count];
  const std::byte* from = wave.port->read(address);
  if (from == nullptr) return refuse(wave, op, wave.port->take_fault());
  if (address % Page::bytes + sizeof(words) <= Page::bytes) {
    std::memcpy(words, from, sizeof(words));
  } else if (!wave.port->load(address, words, sizeof(words))) {
    return refuse(wave, op, wave.port->take_fault());
  }
  for (unsigned i = 0; i < Count; ++i) wave.scalar[op.sdst + i] = words[i];
  return Next::go;
}

// What lies outside of the buffer reads as zero, word by word.
template <unsigned Count>
Next buffer_load(Wave& wave, const Op& op) {
  const BufferDescriptor buffer(wave.scalar + op.reg[0], wave.generation);
  const Wide limit = buffer.stride == 0 ? buffer.records : static_cast<Wide>(buffer.stride) * buffer.records;
  const Word moved = op.kind[1] == SourceKind::none ? 0 : scalar_source32(wave, op, 1);
  const Wide offset =
      (static_cast<Wide>(moved) + static_cast<Wide>(static_cast<std::int64_t>(op.offset))) & whole_words;
  Word words[Count] = {};
  const Wide inside = offset < limit ? std::min<Wide>(Count, (limit - offset) / 4) : 0;
  if (inside != 0 && !wave.port->load((buffer.base & whole_words) + offset, words, inside * 4)) {
    return refuse(wave, op, wave.port->take_fault());
  }
  for (unsigned i = 0; i < Count; ++i) wave.scalar[op.sdst + i] = words[i];
  return Next::go;
}

Next cycles(Wave& wave, const Op& op) {
  wave.set_scalar64(op.sdst, wave.instructions);
  return Next::go;
}
Next device_clock(Wave& wave, const Op& op) {
  wave.set_scalar64(op.sdst, real_time());
  return Next::go;
}

constexpr Semantics entries[] = {
    {"s_load_b32", &load<1>, takes::nothing, 0},
    {"s_load_b64", &load<2>, takes::nothing, 0},
    {"s_load_b128", &load<4>, takes::nothing, 0},
    {"s_load_b256", &load<8>, takes::nothing, 0},
    {"s_load_b512", &load<16>, takes::nothing, 0},
    {"s_buffer_load_b32", &buffer_load<1>, takes::nothing, 0},
    {"s_buffer_load_b64", &buffer_load<2>, takes::nothing, 0},
    {"s_buffer_load_b128", &buffer_load<4>, takes::nothing, 0},
    {"s_buffer_load_b256", &buffer_load<8>, takes::nothing, 0},
    {"s_buffer_load_b512", &buffer_load<16>, takes::nothing, 0},
    {"s_memtime", &cycles, takes::nothing, 0},
    {"s_memrealtime", &device_clock, takes::nothing, 0},
};

}  // namespace

SemanticsList smem() noexcept { return {entries, std::size(entries)}; }

}  // namespace kiln::simulator::scalar_unit
