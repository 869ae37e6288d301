// A submission that is in order, to be spoilt in one place at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "amdgpu_pm4/safety/validator.hpp"
#include "recipe/sample.hpp"

namespace kiln::amdgpu_pm4 {

// The halves of an address, as packets have them.
constexpr std::uint32_t lo(std::uint64_t va) { return static_cast<std::uint32_t>(va); }
constexpr std::uint32_t hi(std::uint64_t va) { return static_cast<std::uint32_t>(va >> 32); }

struct Submission {
  explicit Submission(const DeviceShape& shape, std::size_t chunk_dwords = 1024, std::uint32_t dispatches = 3);

  Status validate() const;

  // The first dword of the first packet whose header and first body dword are these; fails the test if there is none.
  std::size_t find(std::uint32_t header, std::uint32_t first) const;
  std::uint32_t& dword(std::size_t at) { return stream.front()[at]; }
  // Puts packets in place of the fillers that end the last buffer, and fillers after them.
  void append(const std::vector<std::uint32_t>& packets);
  BufferRange& buffer_at(std::uint64_t va);

  DeviceShape shape;
  std::vector<std::vector<std::uint32_t>> stream;  // each buffer's dwords
  std::vector<std::uint64_t> stream_va;
  std::vector<BufferRange> buffers;
  std::vector<ProgramFacts> programs;

  static constexpr std::uint64_t data_va = 0xFFFF800120000000;
  static constexpr std::uint64_t data_bytes = 1 << 20;
  static constexpr std::uint64_t foreign_va = 0xFFFF800130000000;  // where another submission signals
};

using Dwords = std::vector<std::uint32_t>;
using Change = std::function<void(Submission&)>;

// The message of the refusal that the change leads to.
std::string refused(const Change& change, StatusCode code = StatusCode::invalid_argument,
                    const DeviceShape& shape = navi31);
// The same of a packet at the end of a submission that is in order.
std::string refused_packet(const Dwords& packet, StatusCode code = StatusCode::invalid_argument,
                           const DeviceShape& shape = navi31);
bool passes_packet(const Dwords& packet, const DeviceShape& shape = navi31);

}  // namespace kiln::amdgpu_pm4
