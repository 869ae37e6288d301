#include "core/cache/powercut/recovery.hpp"

#include "cache/cache_root.hpp"
#include "cache/disk_bound.hpp"
#include "cache/manifest.hpp"
#include "cache/process_table.hpp"
#include "core/cache/workplace.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/clock.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <random>

namespace kiln::test {
namespace {

// Longer ago than is left alone because somebody may be writing it, not as long as a program stays set aside.
constexpr std::int64_t age_s = 3600;

std::string folder_name() { return device_folder_name(SyntheticDevice().info()); }

std::string path_in(const std::string& area, const Digest& digest, std::string_view suffix) {
  return area + "/" + folder_name() + "/" + subfolder_of(digest) + "/" + file_name_of(digest, suffix);
}

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_program(const std::string& name) { return name.ends_with(".bin"); }

std::string count(const char* what, std::uint64_t is, std::uint64_t expected) {
  if (is == expected) return {};
  return std::string(what) + ": " + std::to_string(is) + ", expected " + std::to_string(expected) + "; ";
}

std::unique_ptr<TieredCache> open_cache(const CacheConfig& config) {
  auto cache = TieredCache::create({{}, config});
  if (!cache) throw std::runtime_error(cache.error().text());
  return std::move(*cache);
}

}  // namespace

ProgramKey TestProgram::key(const SyntheticDevice& device) const {
  return key_of(source_of(text), device.info(), "the label of " + name);
}

TestProgram program_of(const std::string& name, std::size_t bytes) {
  std::mt19937 random(static_cast<unsigned>(bytes));
  std::string text = name + ": ";
  while (text.size() < bytes) text += static_cast<char>('!' + random() % 90);
  return {name, std::move(text)};
}

Result<Acquired> ask(ProgramCache& cache, const TestProgram& program, SyntheticDevice& device) {
  return cache.get_or_build(program.key(device), source_of(program.text), device);
}

CacheConfig config_below(const std::filesystem::path& folder) {
  CacheConfig config;
  config.directory = folder / cache_folder;
  config.key_file = folder / key_path;
  return config;
}

Recovery::Recovery(std::vector<TestProgram> programs, const FolderImage& before, std::span<const Operation> operations)
    : programs_(std::move(programs)) {
  FolderImage image = before;
  const auto note = [&](const std::string& name, std::string_view bytes) {
    if (is_program(name)) published_[name].emplace(bytes);
    if (name == name_in(key_path)) secret_ = bytes;
  };
  for (const std::string& path : image.paths()) note(name_in(path), *image.bytes_at(path));
  for (const Operation& operation : operations) {
    apply(image, operation, Fate::kept);
    if (!operation.to_name.empty()) note(operation.to_name, image.bytes_of(operation.node));
  }
}

Recovery::Stored Recovery::stored_at(const FolderImage& state, const std::string& path) const {
  const auto bytes = state.bytes_at(path);
  if (!bytes) return Stored::absent;
  const auto published = published_.find(name_in(path));
  const bool whole = published != published_.end() && published->second.contains(std::string(*bytes));
  return whole ? Stored::whole : Stored::damaged;
}

Recovery::Expected Recovery::expected_of(const FolderImage& state, const TestProgram& program) const {
  const Digest digest = program.key(SyntheticDevice()).digest;
  const std::string stored = cache_folder, pending = stored + "/" + pending_name;
  Expected expected;
  expected.stored = stored_at(state, path_in(stored, digest, ".bin"));
  expected.pending = stored_at(state, path_in(pending, digest, ".bin"));
  expected.quarantined = state.bytes_at(path_in(stored, digest, quarantined_suffix)).has_value();
  expected.suspect = state.bytes_at(path_in(stored, digest, suspect_suffix)).has_value();
  std::string_view slots = state.bytes_at(stored + "/" + folder_name() + "/" + processes_name).value_or("");
  for (; !slots.empty(); slots.remove_prefix(std::min(slots.size(), slot_bytes))) {
    for (const ProcessMark& mark : marks_of_slot(slots.substr(0, slot_bytes))) {
      expected.marked = expected.marked || (mark.doing == Doing::loading && mark.digest == digest);
    }
  }
  return expected;
}

std::string Recovery::check(const FolderImage& state, First first) {
  // In memory: what a disk takes to make files is not what is asked here.
  static const bool in_memory = access("/dev/shm", W_OK) == 0;
  const CacheTestFolder place(in_memory ? "/dev/shm" : std::filesystem::temp_directory_path());
  state.put(place.path(), std::time(nullptr) - age_s);
  const CacheConfig config = config_below(place.path());
  const auto secret = state.bytes_at(key_path);
  if (secret && *secret != secret_) return "the key is damaged";
  std::vector<Expected> expected;
  for (const TestProgram& program : programs_) expected.push_back(expected_of(state, program));
  std::string wrong;
  if (first == First::persisted) wrong = persist(config, expected, !secret);
  if (wrong.empty()) wrong = ask_for_all(config, expected, !secret);
  if (wrong.empty() && first == First::asked_for) {
    for (Expected& one : expected) one.stored = Stored::whole;
    wrong = persist(config, expected, !secret);
  }
  if (wrong.empty()) wrong = ask_again(config);
  if (wrong.empty()) wrong = look_around(config);
  return wrong;
}

std::string Recovery::ask_for_all(const CacheConfig& config, const std::vector<Expected>& expected, bool foreign) {
  SyntheticDevice device;
  device.build_number = 99;  // never the bytes that are set aside: what is built is stored
  RejectedCounts rejected;
  std::uint64_t disk_hits = 0;
  std::string wrong;
  const std::uint64_t start = now_ns();
  const auto cache = open_cache(config);
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    const Expected& one = expected[i];
    const bool marked = one.marked && one.stored != Stored::absent;
    const bool found = !marked && one.stored == Stored::whole && !foreign;
    if (found) {
      ++disk_hits;
    } else if (marked ? one.suspect || one.quarantined
                      : one.stored == Stored::absent && (one.quarantined || (one.marked && !one.suspect))) {
      ++rejected.quarantined;
    } else if (one.stored == Stored::damaged && !marked) {  // one that is marked is a suspect, and built anew
      ++rejected.corrupt;
    } else if (one.stored == Stored::whole && !marked) {
      ++rejected.foreign;
    }
    const auto got = ask(*cache, programs_[i], device);
    if (i == 0) longest_ms_ = std::max(longest_ms_, static_cast<double>(now_ns() - start) / 1e6);
    if (!got) return programs_[i].name + " was not served: " + got.error().text();
    if (text_of(*got) != programs_[i].text) return programs_[i].name + " was another program";
    if ((got->tier == Tier::disk) != found) wrong += programs_[i].name + (found ? " was lost; " : " was found; ");
  }
  if (!ask(*cache, added_, device)) return "a new program was not served";
  const CacheStats stats = cache->stats();
  wrong += count("on disk", stats.disk_hits, disk_hits);
  wrong += count("built", stats.builds, programs_.size() + 1 - disk_hits);
  wrong += count("corrupt", stats.rejected.corrupt, rejected.corrupt);
  wrong += count("foreign", stats.rejected.foreign, rejected.foreign);
  wrong += count("quarantined", stats.rejected.quarantined, rejected.quarantined);
  wrong += count("tampered", stats.rejected.tampered, 0);
  wrong += count("refused", stats.rejected.refused, 0);
  wrong += count("driver changed", stats.rejected.driver_changed, 0);
  wrong += count("false bytes", static_cast<std::uint64_t>(device.false_bytes), 0);
  hits_ += disk_hits;
  damaged_ += rejected.corrupt;
  set_aside_ += rejected.quarantined;
  foreign_ += rejected.foreign;
  return wrong;
}

std::string Recovery::persist(const CacheConfig& config, std::vector<Expected>& expected, bool foreign) {
  std::uint64_t already = 0, stored = 0, bad = 0;
  for (Expected& one : expected) {
    if (one.pending == Stored::absent) continue;
    if (one.pending == Stored::damaged || foreign) {
      ++bad;
    } else if (one.stored == Stored::whole) {
      ++already;
    } else {
      ++stored;
      one.stored = Stored::whole;
      one.quarantined = false;
    }
  }
  const auto outcome = persist_cache(config, {});
  if (!outcome) return "persist: " + outcome.error().text();
  if (!outcome->failure.ok()) return "persist: " + outcome->failure.text();
  return count("persisted", outcome->stored, stored) + count("stored already", outcome->already, already) +
         count("bad and pending", outcome->bad.size(), bad) + count("left pending", outcome->left, 0);
}

std::string Recovery::ask_again(const CacheConfig& config) {
  SyntheticDevice device;
  const auto cache = open_cache(config);
  for (const TestProgram& program : programs_) {
    const auto got = ask(*cache, program, device);
    if (!got || text_of(*got) != program.text) return program.name + " was wrong the second time";
  }
  if (!ask(*cache, added_, device)) return "the new program was wrong the second time";
  const CacheStats stats = cache->stats();
  return count("built the second time", stats.builds, 0) +
         count("on disk the second time", stats.disk_hits, programs_.size() + 1) +
         count("false bytes the second time", static_cast<std::uint64_t>(device.false_bytes), 0);
}

std::string Recovery::look_around(const CacheConfig& config) const {
  const auto verdict = verify_cache(config, BadEntries::keep);
  if (!verdict) return "verify: " + verdict.error().text();
  std::string wrong = count("sound", verdict->ok, programs_.size() + 1) + count("bad", verdict->bad.size(), 0);
  const auto inventory = cache_inventory(config, Detail::programs);
  if (!inventory) return "inventory: " + inventory.error().text();
  for (const CachedProgram& program : inventory->programs) {
    if (!program.label.starts_with("the label of ")) wrong += "a program has no label; ";
  }
  for (const CacheDevice& device : inventory->devices) {
    if (device.device.empty()) wrong += "the folder of a device says no device; ";
  }
  const auto totals = cache_totals(config);
  if (!totals || totals->processes < 2) wrong += "nothing was counted; ";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(config.directory)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".tmp") || path.find(std::string("/") + pending_name + "/") != std::string::npos) continue;
    // A second name of what was set aside is as young as that.
    struct stat at {};
    if (lstat(path.c_str(), &at) != 0 || std::time(nullptr) - at.st_mtime < age_s) continue;
    wrong += "something half-written is left: " + path + "; ";
  }
  return wrong;
}

}  // namespace kiln::test
