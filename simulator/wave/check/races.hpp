// Races: which wave last wrote and read each word of LDS and memory, and whether something orders it before an access.
//
// What a wave did is ordered before what another wave does later
//   - if both belong to one group, a barrier stands between them, and the first wave had waited for it at the barrier;
//   - if the second wave read what the first one published: the result of an atomic, or a load that bypasses its caches
//     (glc), of a word that was written after the first wave had waited.
// Accesses that nothing orders are a race where one of them writes and neither is an atomic, except that equal values
// may be written by several waves. In memory a load with glc counts as an atomic, and so does a store that only such
// loads and atomics meet: compilers make atomic stores of plain ones. LDS has no such loads. In both, what is changed
// by a compare-and-swap may be read at any time: loops of them begin with a plain load.
//
// Scratch, images, and buffers that are swizzled or formatted are not watched.
//
// Thread-safety: one thread for all groups of a dispatch. Ownership: values; a WaveOrder borrows its group's.
#pragma once

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

struct ShadowWord {
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
  By reader[readers];
};

struct GroupOrder {
  std::uint32_t first_wave = 0;                       // number within the dispatch, from 1
  std::vector<std::array<std::uint32_t, 2>> ordered;  // by wave and Space: until when a barrier has ordered it
  std::vector<ShadowWord> local;
};

struct WaveOrder {
  std::uint32_t wave = 0;  // number within the dispatch, from 1
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
  bool same_value = false;  // a write of what memory holds already
  std::uint32_t code = 0;   // of the instruction
  std::uint32_t time = 0;
  std::uint32_t done = 0;  // until when the wave's own operations have ended
};

class Races {
 public:
  // Of a dispatch whose groups have `waves` waves.
  void start(std::uint64_t program, std::uint32_t waves_per_group);

  // Why this access is a race or reads a stale copy; nothing where it is neither.
  std::optional<std::string> access(WaveOrder& wave, const AccessOf& access);

  std::uint32_t now = 0;  // number of the newest operation

 private:
  static constexpr std::size_t words_a_page = Page::bytes / 4;
  using ShadowPage = std::array<ShadowWord, words_a_page>;

  ShadowWord& word_of(WaveOrder& wave, Space space, std::uint64_t address);
  bool ordered(const WaveOrder& wave, Space space, const ShadowWord::By& before) const;
  std::string name(const ShadowWord::By& by) const;
  std::optional<std::string> check_read(WaveOrder& wave, const AccessOf& access, std::uint64_t address,
                                        std::uint32_t bytes, ShadowWord& word);
  std::optional<std::string> check_write(WaveOrder& wave, const AccessOf& access, std::uint64_t address,
                                         std::uint32_t bytes, ShadowWord& word);
  std::string conflict(const char* now_does, const AccessOf& access, std::uint64_t address, const char* then_did,
                       const ShadowWord::By& by) const;

  std::uint64_t program_ = 0;
  std::uint32_t waves_per_group_ = 1;
  std::unordered_map<std::uint64_t, std::unique_ptr<ShadowPage>> pages_;
  std::uint64_t last_number_ = ~std::uint64_t{0};
  ShadowPage* last_page_ = nullptr;
};

}  // namespace kiln::simulator
