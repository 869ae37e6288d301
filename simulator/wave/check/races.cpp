#include "simulator/wave/check/races.hpp"

#include <algorithm>

#include "simulator/wave/wave.hpp"

namespace kiln::simulator {

void Races::start(std::uint64_t program, std::uint32_t waves_per_group) {
  program_ = program;
  waves_per_group_ = waves_per_group;
  pages_.clear();
  last_number_ = ~std::uint64_t{0};
  last_page_ = nullptr;
  now = 0;
}

ShadowWord& Races::word_of(WaveOrder& wave, Space space, std::uint64_t address) {
  if (space == Space::local) return wave.group->local[address / 4];
  const std::uint64_t number = address / Page::bytes;
  if (number != last_number_) {
    std::unique_ptr<ShadowPage>& page = pages_[number];
    if (page == nullptr) page = std::make_unique<ShadowPage>();
    last_number_ = number;
    last_page_ = page.get();
  }
  return (*last_page_)[address % Page::bytes / 4];
}

bool Races::ordered(const WaveOrder& wave, Space space, const ShadowWord::By& before) const {
  const auto which = static_cast<std::size_t>(space);
  if (before.wave == wave.wave || before.time <= wave.seen[which]) return true;
  const std::uint32_t number = before.wave - wave.group->first_wave;  // wraps below the group's first
  return number < wave.group->ordered.size() && before.time <= wave.group->ordered[number][which];
}

std::string Races::name(const ShadowWord::By& by) const {
  return "wave " + std::to_string((by.wave - 1) % waves_per_group_) + " of group " +
         std::to_string((by.wave - 1) / waves_per_group_) + " at " + hex(program_ + by.code);
}

std::string Races::conflict(const char* now_does, const AccessOf& access, std::uint64_t address, const char* then_did,
                            const ShadowWord::By& by) const {
  return std::string("race: ") + now_does + " " + (access.space == Space::local ? "LDS " : "memory ") + hex(address) +
         ", which " + name(by) + " " + then_did +
         ", and neither a barrier after its s_waitcnt nor an atomic orders them";
}

std::optional<std::string> Races::check_read(WaveOrder& wave, const AccessOf& access, std::uint64_t address,
                                             std::uint32_t bytes, ShadowWord& word) {
  const auto which = static_cast<std::size_t>(access.space);
  const bool written_by_another = word.writer.wave != 0 && word.writer.wave != wave.wave;
  if (access.kind == AccessKind::coherent_read) {
    if (written_by_another) wave.seen[which] = std::max(wave.seen[which], word.published);
    return std::nullopt;
  }
  const bool meets = (word.writer.bytes & bytes) != 0;
  const bool swap_loop = word.atomic && word.exchange;  // its first read need not be an atomic
  if (written_by_another && meets && !word.repeated && !swap_loop && !ordered(wave, access.space, word.writer)) {
    return conflict("reads", access, address, word.atomic ? "changed by an atomic" : "wrote", word.writer);
  }
  if (word.writer.wave != 0 && meets && access.kind == AccessKind::scalar_read &&
      word.writer.time > wave.scalar_cache_emptied) {
    return "stale: the scalar cache may hold memory " + hex(address) + " as it was before " + name(word.writer) +
           " wrote it in this dispatch (expected s_dcache_inv between them)";
  }
  ShadowWord::By* slot = &word.reader[0];
  for (ShadowWord::By& each : word.reader) {
    if (each.wave == wave.wave) {
      if (written_by_another && meets && access.kind == AccessKind::read && access.space == Space::memory &&
          each.time < word.writer.time && wave.vector_cache_emptied < word.writer.time &&
          (word.writer.wave - 1) / waves_per_group_ != (wave.wave - 1) / waves_per_group_) {
        return "stale: the vector cache may hold memory " + hex(address) + " as this wave read it before " +
               name(word.writer) + " wrote it (expected buffer_gl0_inv and buffer_gl1_inv, or a load with glc)";
      }
      slot = &each;
      break;
    }
    if (each.time < slot->time) slot = &each;
  }
  const bool again = slot->wave == wave.wave;
  *slot = {wave.wave, access.time, access.code, again ? slot->bytes | bytes : bytes};
  return std::nullopt;
}

std::optional<std::string> Races::check_write(WaveOrder& wave, const AccessOf& access, std::uint64_t address,
                                              std::uint32_t bytes, ShadowWord& word) {
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
      repeated = plain && access.same_value;
      if (!repeated)
        return conflict(does, access, address, word.atomic ? "changed by an atomic" : "wrote", word.writer);
    }
  }
  for (const ShadowWord::By& reader : word.reader) {
    if (reader.wave == 0 || reader.wave == wave.wave || (reader.bytes & bytes) == 0) continue;
    if (repeated || (atomic && access.exchange)) continue;
    if (!ordered(wave, access.space, reader)) return conflict(does, access, address, "read", reader);
  }
  if (atomic && access.returns && other) wave.seen[which] = std::max(wave.seen[which], word.published);
  word.repeated = repeated || (word.repeated && !atomic && access.same_value);
  word.published = access.done;
  word.atomic = atomic;
  word.exchange = access.exchange;
  const bool again = word.writer.wave == wave.wave;
  word.writer = {wave.wave, access.time, access.code, again ? word.writer.bytes | bytes : bytes};
  return std::nullopt;
}

std::optional<std::string> Races::access(WaveOrder& wave, const AccessOf& access) {
  const std::uint64_t end = access.address + access.bytes;
  for (std::uint64_t at = access.address; at < end;) {
    const std::uint64_t next = std::min(end, (at & ~std::uint64_t{3}) + 4);
    const std::uint32_t bytes = ((1U << (next - at)) - 1U) << (at & 3U);
    ShadowWord& word = word_of(wave, access.space, at);
    const bool writes = access.kind == AccessKind::write || access.kind == AccessKind::atomic;
    if (auto reason = writes ? check_write(wave, access, at, bytes, word) : check_read(wave, access, at, bytes, word)) {
      return reason;
    }
    at = next;
  }
  return std::nullopt;
}

}  // namespace kiln::simulator
