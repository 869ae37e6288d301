// ProgramPlace: a program belongs to one device, also where another device has the same identity.
//
// Thread-safety: values. Ownership: borrows the device, by address.
#pragma once

#include <kiln/device.hpp>
#include <kiln/digest.hpp>

#include <cstddef>
#include <functional>

namespace kiln {

struct ProgramPlace {
  Digest digest;
  const Device* device = nullptr;
  bool operator==(const ProgramPlace&) const = default;
};

struct ProgramPlaceHash {
  std::size_t operator()(const ProgramPlace& place) const noexcept {
    return DigestHash{}(place.digest) ^ std::hash<const Device*>{}(place.device);
  }
};

}  // namespace kiln
