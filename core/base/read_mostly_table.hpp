// ReadMostlyTable: a hash table whose readers take no lock and write nothing; one writer at a time changes it.
//
// Open addressing over (hash, entry) cells. A reader that meets a change sees the entry or does not: either is an
// answer of a moment within its call. Thread-safety: find() from any thread, beside one writer; writers exclude each
// other. Ownership: borrows entries. REQUIRES: what was erased, and the cells that insert() hands back, stay alive
// until no reader can be looking at them (cache/memory/epoch_domain.hpp).
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
      : cells_(new Cells(std::bit_ceil(expected_entries * 2 + 2))), current_(cells_.get()) {}

  // The entry with the hash that `matches` accepts; nullptr where there is none.
  template <class Matches>
  Entry* find(std::uint64_t hash, const Matches& matches) const noexcept {
    const Cells& cells = *current_.load(std::memory_order_acquire);
    const std::uint64_t tag = tag_of(hash);
    for (std::size_t at = tag & cells.mask;; at = (at + 1) & cells.mask) {
      const std::uint64_t found = cells.at[at].tag.load(std::memory_order_acquire);
      if (found == tag) {
        Entry* entry = cells.at[at].entry.load(std::memory_order_acquire);
        if (entry != nullptr && matches(*entry)) return entry;
      } else if (found == empty) {
        return nullptr;
      }
    }
  }

  // Answers cells to keep alive for readers where the table had to move, else null.
  std::shared_ptr<const void> insert(std::uint64_t hash, Entry& entry) {
    std::shared_ptr<const void> old;
    if ((used_ + 1) * 2 > cells_->mask) old = move_to(std::bit_ceil((held_ + 1) * 4));
    put(*cells_, tag_of(hash), entry);
    ++used_;
    ++held_;
    return old;
  }

  // REQUIRES: it was inserted with this hash.
  void erase(std::uint64_t hash, const Entry& entry) noexcept {
    const std::uint64_t tag = tag_of(hash);
    for (std::size_t at = tag & cells_->mask;; at = (at + 1) & cells_->mask) {
      Cell& cell = cells_->at[at];
      if (cell.tag.load(std::memory_order_relaxed) != tag || cell.entry.load(std::memory_order_relaxed) != &entry)
        continue;
      cell.tag.store(erased, std::memory_order_release);
      cell.entry.store(nullptr, std::memory_order_release);
      --held_;
      return;
    }
  }

 private:
  static constexpr std::uint64_t empty = 0;
  static constexpr std::uint64_t erased = 1;  // a reader goes on behind it

  struct Cell {
    std::atomic<std::uint64_t> tag{empty};
    std::atomic<Entry*> entry{nullptr};
  };
  struct Cells {
    explicit Cells(std::size_t size) : mask(size - 1), at(new Cell[size]) {}
    const std::size_t mask;
    const std::unique_ptr<Cell[]> at;
  };

  static std::uint64_t tag_of(std::uint64_t hash) noexcept { return hash <= erased ? hash + 2 : hash; }

  // Into the first cell that was never used: a cell's tag changes at most twice, so a reader that has seen it is never
  // led to an entry of another hash.
  static void put(Cells& cells, std::uint64_t tag, Entry& entry) noexcept {
    std::size_t at = tag & cells.mask;
    while (cells.at[at].tag.load(std::memory_order_relaxed) != empty) at = (at + 1) & cells.mask;
    cells.at[at].entry.store(&entry, std::memory_order_release);
    cells.at[at].tag.store(tag, std::memory_order_release);
  }

  std::shared_ptr<const void> move_to(std::size_t size) {
    auto next = std::make_shared<Cells>(size);
    for (std::size_t at = 0; at <= cells_->mask; ++at) {
      const Cell& cell = cells_->at[at];
      const std::uint64_t tag = cell.tag.load(std::memory_order_relaxed);
      if (tag > erased) put(*next, tag, *cell.entry.load(std::memory_order_relaxed));
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
