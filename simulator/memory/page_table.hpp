// PageTable: the mappings of one GPU address space, as one open file of a render node has them.
//
// Thread-safety: any thread, also while jobs run: they hold snapshots. Ownership: shares every mapped buffer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "simulator/memory/address_space.hpp"

namespace kiln::simulator {

enum class MapProblem : std::uint8_t {
  invalid = 0,
  misaligned,  // address, size or offset is not of whole pages
  bad_range,   // no bytes, past the end of the buffer, or not inside one half of the 48-bit space
  overlap,     // something is mapped there
  not_mapped   // nothing of that buffer starts there
};

struct MapRefusal {
  MapProblem problem = MapProblem::invalid;
  std::string reason;
};

class PageTable {
 public:
  [[nodiscard]] std::optional<MapRefusal> map(const Mapping& mapping);
  // Over whatever was there, which is cut to what remains of it.
  [[nodiscard]] std::optional<MapRefusal> replace(const Mapping& mapping);
  // The mapping of that buffer that starts there, whole.
  [[nodiscard]] std::optional<MapRefusal> unmap(std::uint64_t start, std::uint64_t buffer);
  // Everything in the range; what crosses its ends is cut. An empty range is no error.
  [[nodiscard]] std::optional<MapRefusal> clear(std::uint64_t start, std::uint64_t bytes);
  void remove_buffer(std::uint64_t buffer);  // all its mappings: its handle was closed

  std::shared_ptr<const AddressSpace> snapshot();  // made anew only after a change

 private:
  void cut(std::uint64_t start, std::uint64_t bytes);

  std::mutex mutex_;
  std::map<std::uint64_t, Mapping> mappings_;     // by start
  std::shared_ptr<const AddressSpace> snapshot_;  // null: out of date
};

}  // namespace kiln::simulator
