#include "simulator/wave/check/races.hpp"

#include <algorithm>

#include "simulator/wave/wave.hpp"

namespace kiln::simulator {

void Races::start(std::uint64_t program, std::uint32_t waves_per_group, std::uint64_t waves, bool overlaps) {
  constexpr std::size_t most_pages = 2048;  // kept for later dispatches: 128 MiB
  constexpr std::uint64_t most_waves = 0xFFFF'FFFF;
  if (!overlaps || next_wave_ + waves > most_waves || pages_.size() > most_pages || now > most_waves / 2) {
    dispatches_.clear();
    next_wave_ = 1;
    now = 0;
    dispatch_ = new_stamp();
  }
  if (pages_.size() > most_pages) {
    pages_.clear();
    recent_ = {};
  }
  dispatches_.push_back({static_cast<std::uint32_t>(next_wave_), waves_per_group, program});
  next_wave_ += waves;
}

Races::ShadowPage& Races::page_of(std::uint64_t number) {
  std::unique_ptr<ShadowPage>& page = pages_[number];
  if (page == nullptr) page = std::make_unique<ShadowPage>();
  recent_[number % recent_pages] = {number, page.get()};
  return *page;
}

std::string Races::name(const ShadowWord::By& by) const {
  auto of = dispatches_.rbegin();
  while (by.wave < of->first_wave) ++of;
  const std::uint32_t number = by.wave - of->first_wave;
  return "wave " + std::to_string(number % of->waves_per_group) + " of group " +
         std::to_string(number / of->waves_per_group) + " at " + hex(of->program + by.code) +
         (of == dispatches_.rbegin() ? "" : " in an earlier dispatch");
}

std::string Races::conflict(const char* now_does, const AccessOf& access, std::uint64_t address, const char* then_did,
                            const ShadowWord::By& by) const {
  const char* const order = of_this_dispatch(by.wave)
                                ? "neither a barrier after its s_waitcnt nor an atomic orders them"
                                : "nothing waits for that dispatch before this one (expected CS_PARTIAL_FLUSH)";
  return std::string("race: ") + now_does + " " + (access.space == Space::local ? "LDS " : "memory ") + hex(address) +
         ", which " + name(by) + " " + then_did + ", and " + order;
}

std::optional<std::string> Races::check_read(WaveOrder& wave, const AccessOf& access, std::uint64_t address,
                                             std::uint32_t bytes, ShadowWord& word) {
  const auto which = static_cast<std::size_t>(access.space);
  const bool written_by_another = word.writer.wave != 0 && word.writer.wave != wave.wave;
  if (access.kind == AccessKind::coherent_read) {
    if (written_by_another) wave.seen[which] = std::max(wave.seen[which], word.published);
    return std::nullopt;
  }
  const bool meets = (word.writer.bytes & bytes) != 0 && !word.unchanged;
  const bool swap_loop = word.atomic && word.exchange;  // its first read need not be an atomic
  if (written_by_another && meets && !word.repeated && !swap_loop && !ordered(wave, access.space, word.writer)) {
    return conflict("reads", access, address, word.atomic ? "changed by an atomic" : "wrote", word.writer);
  }
  if (word.writer.wave != 0 && of_this_dispatch(word.writer.wave) && meets && access.kind == AccessKind::scalar_read &&
      word.writer.time > wave.scalar_cache_emptied) {
    return "stale: the scalar cache may hold memory " + hex(address) + " as it was before " + name(word.writer) +
           " wrote it in this dispatch (expected s_dcache_inv between them)";
  }
  for (const ShadowWord::By& each : word.reader) {
    if (each.wave != wave.wave) continue;
    if (written_by_another && meets && access.kind == AccessKind::read && access.space == Space::memory &&
        each.time < word.writer.time && wave.vector_cache_emptied < word.writer.time &&
        of_this_dispatch(word.writer.wave) && group_of(word.writer.wave) != group_of(wave.wave)) {
      return "stale: the vector cache may hold memory " + hex(address) + " as this wave read it before " +
             name(word.writer) + " wrote it (expected buffer_gl0_inv and buffer_gl1_inv, or a load with glc)";
    }
    break;
  }
  set_reader(wave, access, bytes, word);
  return std::nullopt;
}

std::optional<std::string> Races::check_write(WaveOrder& wave, const AccessOf& access, std::uint64_t address,
                                              std::uint32_t bytes, ShadowWord& word, bool same_value) {
  const auto which = static_cast<std::size_t>(access.space);
  const bool atomic = access.kind == AccessKind::atomic;
  const bool other = word.writer.wave != 0 && word.writer.wave != wave.wave;
  const char* const does = atomic ? "changes by an atomic" : "writes";
  bool repeated = false;
  if (other && (word.writer.bytes & bytes) != 0 && !(atomic && word.atomic)) {
    const bool plain = !atomic && !word.atomic;
    // What an atomic and a plain store do to one word of memory may be a lock and its release.
    const bool lock = !plain && (access.space == Space::memory || access.exchange || word.exchange);
    if (!lock && !ordered(wave, access.space, word.writer)) {
      repeated = plain && same_value;
      if (!repeated)
        return conflict(does, access, address, word.atomic ? "changed by an atomic" : "wrote", word.writer);
    }
  }
  for (const ShadowWord::By& reader : word.reader) {
    if (reader.wave == 0 || reader.wave == wave.wave || (reader.bytes & bytes) == 0) continue;
    if (repeated || (atomic && (access.exchange || same_value))) continue;
    if (!ordered(wave, access.space, reader)) return conflict(does, access, address, "read", reader);
  }
  if (atomic && access.returns && other) wave.seen[which] = std::max(wave.seen[which], word.published);
  const bool unchanged = atomic && same_value;
  if (unchanged && word.writer.wave != 0) {
    word.published = std::max(word.published, access.done);
    return std::nullopt;
  }
  set_writer(wave, access, bytes, repeated || (word.repeated && !atomic && same_value), word);
  word.unchanged = unchanged;
  return std::nullopt;
}

}  // namespace kiln::simulator
