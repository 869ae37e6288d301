// The table that a memory hit looks into: colliding hashes, cells used again, growth, and readers beside a writer.
#include "base/read_mostly_table.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

using namespace kiln;

namespace {

struct Entry {
  std::uint64_t hashed = 0;
  int number = 0;
  std::uint64_t hash() const noexcept { return hashed; }
};

const Entry* find(const ReadMostlyTable<Entry>& table, std::uint64_t hash, int number) {
  return table.find(hash, [&](const Entry& entry) { return entry.number == number; });
}

}  // namespace

TEST_CASE("a table tells entries of one hash apart, and passes over those that were erased") {
  ReadMostlyTable<Entry> table(4);
  std::deque<Entry> entries;
  int number = 0;
  for (const std::uint64_t hash : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    for (int i = 0; i < 6; ++i) entries.push_back({hash, number++});
  }
  std::vector<std::shared_ptr<const void>> outgrown;
  for (Entry& entry : entries) outgrown.push_back(table.insert(entry));
  for (const Entry& entry : entries) CHECK(find(table, entry.hashed, entry.number) == &entry);
  CHECK(find(table, 0, number) == nullptr);
  CHECK(find(table, 2, 0) == nullptr);
  for (std::size_t at = 0; at < entries.size(); at += 2) table.erase(entries[at]);
  for (std::size_t at = 0; at < entries.size(); ++at) {
    CHECK(find(table, entries[at].hashed, entries[at].number) == (at % 2 == 0 ? nullptr : &entries[at]));
  }
}

TEST_CASE("a table of steady size whose entries come and go moves seldom") {
  constexpr int steady = 64, all = 20000;
  ReadMostlyTable<Entry> table(steady);
  std::mt19937_64 random(7);
  std::unordered_map<int, std::unique_ptr<Entry>> model;
  int moves = 0;
  for (int number = 0; number < all; ++number) {
    auto entry = std::make_unique<Entry>(Entry{random(), number});
    if (table.insert(*entry) != nullptr) ++moves;
    model[number] = std::move(entry);
    if (number < steady) continue;
    const auto gone = model.find(number - steady);
    table.erase(*gone->second);
    CHECK(find(table, gone->second->hashed, gone->first) == nullptr);
    model.erase(gone);
  }
  for (const auto& [number, entry] : model) CHECK(find(table, entry->hashed, number) == entry.get());
  CHECK(moves < all / steady);  // each move frees more cells than there are entries
}

TEST_CASE("readers beside a writer find what stays, whatever comes and goes") {
  ReadMostlyTable<Entry> table(8);
  std::deque<Entry> staying, passing;
  // All begin their search in one cell.
  for (int number = 0; number < 32; ++number) staying.push_back({std::uint64_t(number) << 40 | 3, number});
  for (int number = 0; number < 4000; ++number) passing.push_back({std::uint64_t(number) << 40 | 3, 1000 + number});
  std::vector<std::shared_ptr<const void>> outgrown;  // readers may be looking at them
  for (Entry& entry : staying) outgrown.push_back(table.insert(entry));
  std::atomic<bool> done{false};
  std::atomic<int> lost{0}, seen{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&] {
      do {
        for (const Entry& entry : staying) {
          (find(table, entry.hashed, entry.number) == &entry ? seen : lost).fetch_add(1, std::memory_order_relaxed);
        }
      } while (!done.load());
    });
  }
  for (std::size_t at = 0; at < passing.size(); ++at) {
    outgrown.push_back(table.insert(passing[at]));
    if (at >= 16) table.erase(passing[at - 16]);
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(lost == 0);
  CHECK(seen >= 32 * 3);
}
