#include "simulator/memory/device_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace kiln::simulator {

DeviceMemory::~DeviceMemory() = default;

std::optional<Fault> DeviceMemory::load(std::uint64_t address, std::span<std::byte> out) {
  while (!out.empty()) {
    Page at;
    if (auto fault = page(address, Access::read, at)) return fault;
    const std::uint64_t offset = address - at.address;
    const std::size_t bytes = std::min<std::size_t>(out.size(), Page::bytes - offset);
    std::memcpy(out.data(), at.data + offset, bytes);
    out = out.subspan(bytes);
    address += bytes;
  }
  return {};
}

std::optional<Fault> DeviceMemory::store(std::uint64_t address, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    Page at;
    if (auto fault = page(address, Access::write, at)) return fault;
    const std::uint64_t offset = address - at.address;
    const std::size_t count = std::min<std::size_t>(bytes.size(), Page::bytes - offset);
    std::memcpy(at.data + offset, bytes.data(), count);
    at.mark(address, count);
    bytes = bytes.subspan(count);
    address += count;
  }
  return {};
}

namespace {

template <typename Word>
bool fits(const std::byte* host, std::size_t bytes) {
  return bytes >= sizeof(Word) && reinterpret_cast<std::uintptr_t>(host) % sizeof(Word) == 0;
}

template <typename Word>
void read_word(const std::byte* host, std::byte* out) {
  const Word word = __atomic_load_n(static_cast<const Word*>(static_cast<const void*>(host)), __ATOMIC_ACQUIRE);
  std::memcpy(out, &word, sizeof word);
}

template <typename Word>
void write_word(std::byte* host, const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  __atomic_store_n(static_cast<Word*>(static_cast<void*>(host)), word, __ATOMIC_RELEASE);
}

}  // namespace

void read_host(const std::byte* host, std::span<std::byte> out) noexcept {
  std::size_t at = 0;
  while (at < out.size()) {
    const std::size_t left = out.size() - at;
    if (fits<std::uint64_t>(host + at, left)) {
      read_word<std::uint64_t>(host + at, out.data() + at);
      at += 8;
    } else if (fits<std::uint32_t>(host + at, left)) {
      read_word<std::uint32_t>(host + at, out.data() + at);
      at += 4;
    } else {
      read_word<std::uint8_t>(host + at, out.data() + at);
      at += 1;
    }
  }
}

void write_host(std::byte* host, std::span<const std::byte> bytes) noexcept {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t left = bytes.size() - at;
    if (fits<std::uint64_t>(host + at, left)) {
      write_word<std::uint64_t>(host + at, bytes.data() + at);
      at += 8;
    } else if (fits<std::uint32_t>(host + at, left)) {
      write_word<std::uint32_t>(host + at, bytes.data() + at);
      at += 4;
    } else {
      write_word<std::uint8_t>(host + at, bytes.data() + at);
      at += 1;
    }
  }
}

std::size_t write_marked(std::byte* host, std::span<const std::byte> bytes, std::span<const std::byte> marks) noexcept {
  std::size_t count = 0;
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t fresh, marked;
    std::memcpy(&fresh, bytes.data() + at, 8);
    std::memcpy(&marked, marks.data() + at, 8);
    if (marked == 0) continue;
    const std::uint64_t mask = marked * 0xFF;  // 1 becomes all ones
    count += static_cast<std::size_t>(__builtin_popcountll(marked));
    auto* const word = static_cast<std::uint64_t*>(static_cast<void*>(host + at));
    if (mask == ~std::uint64_t{0}) {
      __atomic_store_n(word, fresh, __ATOMIC_RELEASE);
      continue;
    }
    std::uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &seen, (seen & ~mask) | (fresh & mask), false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
  }
  return count;
}

}  // namespace kiln::simulator
