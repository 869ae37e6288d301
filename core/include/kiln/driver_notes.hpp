// DriverNotes: stores small facts that a driver measured or queried, for use by later processes.
//
// Examples: the identity of the installed driver, or the fastest of several layouts. A note may be lost at any time;
// the driver then determines the fact again. This user's key authenticates the notes.
// Thread-safety: every method from any thread. Ownership: the methods copy the bytes.
//
//   if (auto stored = notes.find("layout v1")) return *stored;
//   notes.keep("layout v1", measured);
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

class DriverNotes {
 public:
  DriverNotes() = default;
  DriverNotes(const DriverNotes&) = delete;
  DriverNotes& operator=(const DriverNotes&) = delete;
  virtual ~DriverNotes();

  // Returns the note with exactly this name, or nullopt. Include everything that affects the fact in the name.
  virtual std::optional<std::vector<std::byte>> find(std::string_view name) noexcept = 0;
  // Stores or replaces a note of at most 64 KiB. Ignores a failure.
  virtual void keep(std::string_view name, std::span<const std::byte> bytes) noexcept = 0;
};

}  // namespace kiln
