// ReadMostlyTable: a hash table whose readers take no lock and write nothing; one writer at a time changes it.
//
// Open addressing over cells of one word: the entry's address below, sixteen bits of its hash above, so that a reader
// touches one line of the table and then the entry. A reader that meets a change sees the entry or does not: either is
// an answer of a moment within its call. Thread-safety: find() from any thread, beside one writer; writers exclude each
// other. Ownership: borrows entries. REQUIRES: what was erased, and the cells that insert() hands back, stay alive
// until no reader can be looking at them (cache/memory/epoch_domain.hpp); Entry::hash() answers the hash it is looked
// up by; entries lie below 2^48, as all memory does that a process did not ask for by address.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace kiln {

template <class Entry>
class ReadMostlyTable {
 public:
  explicit ReadMostlyTable(std::size_t expected_entries = 64)
      : cells_(std::make_shared<Cells>(std::bit_ceil(expected_entries * room + 1))), current_(cells_.get()) {}

  // The entry with the hash that `matches` accepts; nullptr where there is none.
  template <class Matches>
  Entry* find(std::uint64_t hash, const Matches& matches) const noexcept {
    const Cells& cells = *current_.load(std::memory_order_acquire);
    const std::uint64_t tag = tag_of(hash);
    for (std::size_t at = hash & cells.mask;; at = (at + 1) & cells.mask) {
      const std::uint64_t cell = cells.at[at].load(std::memory_order_acquire);
      if ((cell & tag_bits) == tag) [[likely]] {
        Entry* entry = entry_in(cell);
        if (matches(*entry)) [[likely]]
          return entry;
      } else if (cell == empty) {
        return nullptr;
      }
    }
  }

  // Answers cells to keep alive for readers where the table had to move, else null.
  std::shared_ptr<const void> insert(Entry& entry) {
    std::shared_ptr<const void> old;
    if ((used_ + 1) * room / 2 > cells_->mask) old = move_to(std::bit_ceil((held_ + 1) * room));
    if (put(*cells_, entry) == empty) ++used_;
    ++held_;
    return old;
  }

  // REQUIRES: it was inserted.
  void erase(const Entry& entry) noexcept {
    const std::uint64_t cell = cell_of(entry);
    std::size_t at = entry.hash() & cells_->mask;
    while (cells_->at[at].load(std::memory_order_relaxed) != cell) at = (at + 1) & cells_->mask;
    cells_->at[at].store(erased, std::memory_order_release);
    --held_;
  }

 private:
  using Cell = std::atomic<std::uint64_t>;
  static_assert(sizeof(void*) == sizeof(std::uint64_t));

  // Cells for an entry where the table has just moved, at least half as many until it moves again: a second look for an
  // entry is rare, and a branch that a reader's processor foresees.
  static constexpr std::size_t room = 8;
  static constexpr std::uint64_t empty = 0;
  static constexpr std::uint64_t erased = 1;  // a reader goes on behind it
  static constexpr std::uint64_t tag_bits = std::uint64_t{0xffff} << 48;
  static constexpr std::uint64_t an_entry = std::uint64_t{1} << 63;  // so that no entry's tag is that of those two

  struct Cells {
    explicit Cells(std::size_t size) : mask(size - 1), at(new Cell[size]()) {}
    const std::size_t mask;
    const std::unique_ptr<Cell[]> at;
  };

  static std::uint64_t tag_of(std::uint64_t hash) noexcept { return (hash & tag_bits) | an_entry; }
  static std::uint64_t cell_of(const Entry& entry) noexcept {
    return tag_of(entry.hash()) | reinterpret_cast<std::uintptr_t>(&entry);
  }
  static Entry* entry_in(std::uint64_t cell) noexcept {
    return reinterpret_cast<Entry*>(static_cast<std::uintptr_t>(cell & ~tag_bits));
  }

  // Answers what the cell held before: empty or erased.
  static std::uint64_t put(Cells& cells, const Entry& entry) noexcept {
    for (std::size_t at = entry.hash() & cells.mask;; at = (at + 1) & cells.mask) {
      const std::uint64_t before = cells.at[at].load(std::memory_order_relaxed);
      if (before != empty && before != erased) continue;
      cells.at[at].store(cell_of(entry), std::memory_order_release);
      return before;
    }
  }

  std::shared_ptr<const void> move_to(std::size_t size) {
    auto next = std::make_shared<Cells>(size);
    for (std::size_t at = 0; at <= cells_->mask; ++at) {
      const std::uint64_t cell = cells_->at[at].load(std::memory_order_relaxed);
      if (cell != empty && cell != erased) put(*next, *entry_in(cell));
    }
    used_ = held_;
    current_.store(next.get(), std::memory_order_release);
    std::swap(cells_, next);
    return next;
  }

  std::shared_ptr<Cells> cells_;  // the writer's
  std::atomic<const Cells*> current_;
  std::size_t used_ = 0;  // cells that are not empty
  std::size_t held_ = 0;
};

}  // namespace kiln
