// Races: which wave last wrote and read each word of LDS and memory, and whether something orders it before an access.
//
// What a wave did is ordered before what another wave does later
//   - if both belong to one group, a barrier stands between them, and the first wave had waited for it at the barrier;
//   - if the second wave read what the first one published: the result of an atomic, or a load that bypasses its caches
//     (glc), of a word that was written after the first wave had waited.
// Accesses that nothing orders are a race where one of them writes and neither is an atomic, except that equal values
// may be written by several waves, and that an atomic which leaves the value as it was is no write. In memory a load
// with glc counts as an atomic, and so does a store that only such loads and atomics meet: compilers make atomic stores
// of plain ones. LDS has no such loads. In both, what is changed by a compare-and-swap may be read at any time: loops
// of them begin with a plain load.
//
// Dispatches that nothing separates are checked as one: their waves are not ordered.
//
// Scratch, images, and buffers that are swizzled or formatted are not watched.
//
// Thread-safety: one thread for all groups of a dispatch. Ownership: values; a WaveOrder borrows its group's.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/memory/device_memory.hpp"

namespace kiln::simulator {

enum class Space : std::uint8_t { local = 0, memory = 1 };

struct alignas(64) ShadowWord {
  static constexpr unsigned readers = 2;  // the last two waves that read it
  struct By {
    std::uint32_t wave = 0;
    std::uint32_t time = 0;
    std::uint32_t code = 0;   // the instruction, in bytes from the program's first
    std::uint32_t bytes = 0;  // a mask
  };
  By writer;
  std::uint32_t published = 0;  // all that the writer did until then had ended when it wrote
  bool atomic = false;          // the write
  bool exchange = false;        // a compare-and-swap, as locks use
  bool repeated = false;        // several waves wrote this value
  bool unchanged = false;       // the only writes are atomics that left the value as it was
  By reader[readers];
  std::uint64_t stamp = 0;  // of the dispatches, or of the group if it is a word of LDS: others do not count
};

struct GroupOrder {
  std::uint32_t first_wave = 0;                       // its number
  std::vector<std::array<std::uint32_t, 2>> ordered;  // by wave and Space: until when a barrier has ordered it
  std::uint64_t stamp = 0;                            // of the words that are valid in `local`
  std::vector<ShadowWord> local;
};

struct WaveOrder {
  std::uint32_t wave = 0;  // from 1, within the dispatches that may overlap
  GroupOrder* group = nullptr;
  std::array<std::uint32_t, 2> seen{};     // by Space: what any wave did until then is ordered before this wave
  std::uint32_t scalar_cache_emptied = 0;  // when
  std::uint32_t vector_cache_emptied = 0;
};

enum class AccessKind : std::uint8_t { invalid = 0, read, coherent_read, scalar_read, write, atomic };

struct AccessOf {  // one lane's
  AccessKind kind = AccessKind::invalid;
  bool returns = false;   // an atomic that gives its old value
  bool exchange = false;  // compare-and-swap
  Space space = Space::memory;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::uint32_t code = 0;  // of the instruction
  std::uint32_t time = 0;
  std::uint32_t done = 0;  // until when the wave's own operations have ended
};

class Races {
 public:
  // Of a dispatch. `overlaps`: what the dispatch before did is not ordered before it.
  void start(std::uint64_t program, std::uint32_t waves_per_group, std::uint64_t waves, bool overlaps);
  std::uint32_t first_wave() const { return dispatches_.back().first_wave; }  // number of its first wave

  // False: this access is a race or reads a stale copy, and take_reason() says why. same_value() answers whether a
  // write or an atomic leaves memory as it is.
  template <class SameValue>
  [[gnu::always_inline]] bool access(WaveOrder& wave, const AccessOf& access, const SameValue& same_value) {
    const std::uint64_t end = access.address + access.bytes;
    for (std::uint64_t at = access.address; at < end;) {
      const std::uint64_t next = std::min(end, (at & ~std::uint64_t{3}) + 4);
      const std::uint32_t bytes = ((1U << (next - at)) - 1U) << (at & 3U);
      ShadowWord& word = word_of(wave, access.space, at);
      const std::uint64_t stamp = access.space == Space::local ? wave.group->stamp : dispatch_;
      if (word.stamp != stamp) {
        word = {};
        word.stamp = stamp;
      }
      const bool atomic = access.kind == AccessKind::atomic, writes = atomic || access.kind == AccessKind::write;
      if (writes ? !undisputed_write(wave, access, bytes, word) : !undisputed_read(wave, access, bytes, word)) {
        const bool same = writes && (atomic || settles_by_value(wave, access, word)) && same_value();
        reason_ = writes ? check_write(wave, access, at, bytes, word, same) : check_read(wave, access, at, bytes, word);
        if (reason_) return false;
      }
      at = next;
    }
    return true;
  }
  std::uint64_t new_stamp() { return ++stamps_; }
  std::string take_reason() { return *std::move(reason_); }

  std::uint32_t now = 0;  // number of the newest operation

 private:
  static constexpr std::size_t words_a_page = Page::bytes / 4, recent_pages = 64;
  using ShadowPage = std::array<ShadowWord, words_a_page>;
  struct Recent {
    std::uint64_t number = ~std::uint64_t{0};
    ShadowPage* page = nullptr;
  };

  [[gnu::always_inline]] ShadowWord& word_of(WaveOrder& wave, Space space, std::uint64_t address) {
    if (space == Space::local) return wave.group->local[address / 4];
    const std::uint64_t number = address / Page::bytes;
    const Recent& recent = recent_[number % recent_pages];
    ShadowPage& page = recent.number == number ? *recent.page : page_of(number);
    return page[address % Page::bytes / 4];
  }
  ShadowPage& page_of(std::uint64_t number);

  static void set_reader(const WaveOrder& wave, const AccessOf& access, std::uint32_t bytes, ShadowWord& word) {
    ShadowWord::By* slot = &word.reader[0];
    if (slot->wave != wave.wave && (word.reader[1].wave == wave.wave || word.reader[1].time < slot->time)) {
      slot = &word.reader[1];
    }
    const std::uint32_t before = slot->wave == wave.wave ? slot->bytes : 0;
    *slot = {wave.wave, access.time, access.code, before | bytes};
  }
  static void set_writer(const WaveOrder& wave, const AccessOf& access, std::uint32_t bytes, bool repeated,
                         ShadowWord& word) {
    word.repeated = repeated;
    word.unchanged = false;
    word.published = access.done;
    word.atomic = access.kind == AccessKind::atomic;
    word.exchange = access.exchange;
    const std::uint32_t before = word.writer.wave == wave.wave ? word.writer.bytes : 0;
    word.writer = {wave.wave, access.time, access.code, before | bytes};
  }
  static bool ordered(const WaveOrder& wave, Space space, const ShadowWord::By& before) {
    const auto which = static_cast<std::size_t>(space);
    if (before.wave == wave.wave || before.time <= wave.seen[which]) return true;
    const std::uint32_t number = before.wave - wave.group->first_wave;  // wraps below the group's first
    return number < wave.group->ordered.size() && before.time <= wave.group->ordered[number][which];
  }
  static bool settled(const WaveOrder& wave, Space space, const ShadowWord::By& before) {
    return before.wave == 0 || ordered(wave, space, before);
  }
  // Whether it matters what a plain write writes.
  static bool settles_by_value(const WaveOrder& wave, const AccessOf& access, const ShadowWord& word) {
    return word.repeated || !settled(wave, access.space, word.writer);
  }
  // True: nothing forbids the read, and it is noted. False: check_read() looks closer.
  static bool undisputed_read(const WaveOrder& wave, const AccessOf& access, std::uint32_t bytes, ShadowWord& word) {
    const bool written = word.writer.wave != 0, by_another = written && word.writer.wave != wave.wave;
    if (by_another) {  // what memory's caches hold is another question
      const bool simple = access.space == Space::local && access.kind == AccessKind::read;
      if (!simple || !ordered(wave, access.space, word.writer)) return false;
    } else if (written && access.kind == AccessKind::scalar_read) {
      return false;
    }
    if (access.kind != AccessKind::coherent_read) set_reader(wave, access, bytes, word);
    return true;
  }
  // Likewise of a write.
  static bool undisputed_write(const WaveOrder& wave, const AccessOf& access, std::uint32_t bytes, ShadowWord& word) {
    if (word.repeated || access.kind == AccessKind::atomic) return false;
    for (const ShadowWord::By& before : {word.writer, word.reader[0], word.reader[1]}) {
      if (!settled(wave, access.space, before)) return false;
    }
    set_writer(wave, access, bytes, false, word);
    return true;
  }

  std::string name(const ShadowWord::By& by) const;
  std::optional<std::string> check_read(WaveOrder& wave, const AccessOf& access, std::uint64_t address,
                                        std::uint32_t bytes, ShadowWord& word);
  std::optional<std::string> check_write(WaveOrder& wave, const AccessOf& access, std::uint64_t address,
                                         std::uint32_t bytes, ShadowWord& word, bool same_value);
  std::string conflict(const char* now_does, const AccessOf& access, std::uint64_t address, const char* then_did,
                       const ShadowWord::By& by) const;

  struct Dispatch {
    std::uint32_t first_wave = 1;
    std::uint32_t waves_per_group = 1;
    std::uint64_t program = 0;
  };
  bool of_this_dispatch(std::uint32_t wave) const { return wave >= dispatches_.back().first_wave; }
  std::uint32_t group_of(std::uint32_t wave) const {
    return (wave - dispatches_.back().first_wave) / dispatches_.back().waves_per_group;
  }

  std::vector<Dispatch> dispatches_;  // that may overlap; the last runs
  std::uint64_t next_wave_ = 1;
  std::uint64_t stamps_ = 0;
  std::uint64_t dispatch_ = 0;  // the stamp of them all
  std::unordered_map<std::uint64_t, std::unique_ptr<ShadowPage>> pages_;
  std::array<Recent, recent_pages> recent_{};
  std::optional<std::string> reason_;
};

}  // namespace kiln::simulator
