// NoteStore: the notes of one driver, each a file below `notes` in the cache folder, authenticated like a program.
//
// Thread-safety: every method from any thread. Ownership: a value of the device table. The folder and the key are
// opened at first use; without them nothing is found and nothing is kept.
#pragma once

#include "cache/entry_format.hpp"

#include <kiln/buffer.hpp>
#include <kiln/config.hpp>
#include <kiln/driver_notes.hpp>

#include <mutex>
#include <optional>
#include <string>

namespace kiln {

class NoteStore final : public DriverNotes {
 public:
  NoteStore(const CacheConfig& config, std::string driver);

  std::optional<std::vector<std::byte>> find(std::string_view name) noexcept override;
  void keep(std::string_view name, std::span<const std::byte> bytes) noexcept override;

 private:
  struct Place {
    UniqueFd folder;
    EntryKey key;
  };

  Place* open();  // nullptr: there is no folder or no key
  std::string material_of(std::string_view name) const;

  const CacheConfig config_;
  const std::string driver_;
  std::mutex mutex_;
  bool tried_ = false;
  std::optional<Place> place_;
};

}  // namespace kiln
