// DriverNotes: small facts that a driver found out at a price and keeps for the processes after this one: which
// identity the installed driver has, which of several layouts was fastest.
//
// Thread-safety: every method from any thread. Ownership: bytes are copied. A note is advice: it may be gone at any
// time, and losing one costs the price again. What find() answers was written by keep() under this user's key, on this
// machine.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kiln {

class DriverNotes {
 public:
  DriverNotes() = default;
  DriverNotes(const DriverNotes&) = delete;
  DriverNotes& operator=(const DriverNotes&) = delete;
  virtual ~DriverNotes();

  // The name tells everything that the fact depends on, for it is compared whole; nullopt where nothing is known.
  virtual std::optional<std::vector<std::byte>> find(std::string_view name) noexcept = 0;
  // Replaces what the name had. At most 64 KiB; what cannot be kept is not an error.
  virtual void keep(std::string_view name, std::span<const std::byte> bytes) noexcept = 0;
};

}  // namespace kiln
