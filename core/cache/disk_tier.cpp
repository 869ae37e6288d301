#include "cache/disk_tier.hpp"

#include "base/os/private_folder.hpp"
#include "base/os/process_limits.hpp"
#include "cache/cache_root.hpp"
#include "cache/disk_bound.hpp"
#include "cache/driver_scratch.hpp"
#include "cache/entry_format.hpp"
#include "cache/history.hpp"
#include "cache/key_material.hpp"
#include "cache/manifest.hpp"

#include <kiln/traced_work.hpp>

#include <algorithm>
#include <ctime>
#include <functional>
#include <numeric>
#include <utility>

namespace kiln {
namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;

std::int64_t seconds_now() { return std::time(nullptr); }

std::string date_of(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm utc{};
  char text[32] = "";
  if (gmtime_r(&time, &utc) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

bool is_there(const std::filesystem::path& folder) {
  std::error_code cannot_tell;
  return std::filesystem::exists(folder, cannot_tell);
}

std::string name_of(const ProgramKey& key) { return "program '" + key.label + "' (" + key.digest.hex() + ")"; }

}  // namespace

DiskTier::DeviceStore::DeviceStore(int root, const DeviceInfo& device, const ProcessSharing& sharing, Log log,
                                   bool has_trial)
    : folder(root, device), processes(folder, sharing, log, [this, log, has_trial](const ProcessMark& mark) {
        // One death proves nothing: whatever ended the process may have been no fault of the driver's.
        const auto before_ns = folder.last_written_ns(mark.digest, StoredFile::suspect);
        const bool second = before_ns && *before_ns / ns_per_s > seconds_now() - second_death_s;
        const bool condemned = !has_trial && second;
        const StoredFile as = condemned ? StoredFile::quarantined : StoredFile::suspect;
        const bool was_stored = folder.set_aside(mark.digest, as, mark.since_s);
        if (!was_stored) {  // of a layer, or removed since: nothing but an empty file can keep it out
          for (const StoredFile file : {StoredFile::suspect, StoredFile::program, StoredFile::quarantined}) {
            if (folder.holds(mark.digest, file)) return;
          }
          if (!folder.write(mark.digest, StoredFile::quarantined, {}).ok()) return;
        }
        if (condemned) folder.forget(mark.digest, StoredFile::suspect);
        const std::string what = !was_stored ? "the program is not taken from layers and remotes"
                                 : condemned ? "this was the second time, so the program is quarantined and built again"
                                 : has_trial ? "the next use loads the program in a child process first"
                                             : "the program is built again";
        log.write(condemned ? LogLevel::warning : LogLevel::info, "cache",
                  "program " + mark.digest.hex() + " in folder " + folder.name() +
                      ": a process died while a driver loaded the program: " + what);
      }) {}

DiskTier::DiskTier(Log log, const CacheConfig& config, CacheCounters& counters, ProcessSharing sharing,
                   TraceSink* trace, LoadTrial try_in_child)
    : log_(log),
      trace_(trace),
      config_(config),
      sharing_(std::move(sharing)),
      try_in_child_(std::move(try_in_child)),
      counters_(counters),
      publishes_(config.auto_save && !config.read_only) {}

DiskTier::~DiskTier() {
  if (config_.auto_save && !config_.read_only) ledger_.flush();
}

DiskTier::Root* DiskTier::open() {
  const std::lock_guard lock(mutex_);
  if (root_ == nullptr && !unusable_) {
    Result<std::unique_ptr<Root>> root = open_root();
    if (root) {
      root_ = std::move(*root);
    } else {
      unusable_ = root.error();
      // What is only read may be absent.
      if (config_.read_only && unusable_->code == StatusCode::not_found) {
        log_.write(LogLevel::info, "cache", "no program is read from disk: " + unusable_->message);
      } else {
        warn_once(unusable_->message);
      }
    }
  }
  return root_.get();
}

Result<std::unique_ptr<DiskTier::Root>> DiskTier::open_root() const {
  if (has_borrowed_rights()) {
    return unavailable("this process has more privileges than its user (setuid, setgid or capabilities)");
  }
  if (config_.directory.empty()) return no_cache_folder();
  if (config_.key_file.empty()) return no_key_file();
  if (Status status = check_key_file_place(config_); !status.ok()) return status;
  Result<UniqueFd> folder = open_folder(config_.directory, config_.read_only ? Create::no : Create::yes);
  if (!folder) return folder.error();
  if (!*folder) return not_found("folder " + config_.directory.string() + ": does not exist");
  const Result<SecretKey> secret =
      read_secret_key(config_.key_file, config_.read_only ? IfMissing::fail : IfMissing::create);
  // A folder without its key is more than absent: its programs cannot be used.
  if (!secret) return unavailable(secret.error().message);
  const int fd = folder->get();
  if (!config_.read_only) sweep_driver_folders(fd);
  return std::unique_ptr<Root>(
      new Root{std::move(*folder), EntryKey(*secret), {fd, config_.max_disk}, {fd, config_.max_disk}, {}});
}

DiskTier::DeviceStore& DiskTier::store_of(Root& root, const Device& device) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<DeviceStore>& device_store = root.stores[&device];
  if (device_store == nullptr)
    device_store = std::make_unique<DeviceStore>(root.folder.get(), device.info(), sharing_, log_,
                                                 static_cast<bool>(try_in_child_));
  return *device_store;
}

bool DiskTier::holds(const ProgramKey& key, const Device& device) {
  Root* root = open();
  return root != nullptr && store_of(*root, device).folder.holds(key.digest, StoredFile::program);
}

bool DiskTier::is_set_aside(const ProgramKey& key, const Device& device) {
  Root* root = open();
  if (root == nullptr) return false;
  DeviceFolder& folder = store_of(*root, device).folder;
  return folder.quarantine_lasts(key.digest) || folder.holds(key.digest, StoredFile::suspect);
}

void DiskTier::keep_out_shared(const ProgramKey& key, const Device& device) {
  Root* root = config_.read_only ? nullptr : open();
  if (root != nullptr) static_cast<void>(store_of(*root, device).folder.write(key.digest, StoredFile::quarantined, {}));
}

Lookup DiskTier::find(const ProgramKey& key, const Device& device) {
  Root* root = open();
  if (root == nullptr) return {};
  DeviceStore& device_store = store_of(*root, device);
  if (config_.read_only) return find_stored(*root, device_store, key);
  device_store.processes.attend();
  Lookup found = find_stored(*root, device_store, key);
  if (found.stored || found.rejected || !retry_suspect(*root, device_store, key, device)) return found;
  return find_stored(*root, device_store, key);
}

bool DiskTier::retry_suspect(Root& root, DeviceStore& device_store, const ProgramKey& key, const Device& device) {
  DeviceFolder& folder = device_store.folder;
  if (!try_in_child_ || !folder.holds(key.digest, StoredFile::suspect)) return false;
  // One process tries it; for the others it is one that is being built.
  const Lease lease = device_store.processes.try_lease(key.digest);
  if (lease.state() == Lease::State::busy) return false;
  if (!folder.holds(key.digest, StoredFile::suspect)) return folder.holds(key.digest, StoredFile::program);
  const std::optional<ProgramBinary> stored = read_suspect(root, folder, key);
  if (!stored) return folder.acquit(key.digest);  // find_stored() rejects it, and counts why
  const TrialOutcome outcome = try_in_child_(key, *stored, device.info());
  if (outcome.verdict == TrialVerdict::good) return folder.acquit(key.digest);
  const bool died = outcome.verdict == TrialVerdict::died;
  if (died && folder.condemn(key.digest)) {
    log_.write(LogLevel::warning, "cache",
               name_of(key) + ": a child process that loaded the program died (" + outcome.why +
                   "): the program is quarantined for a week and built again. `kiln cache release " +
                   key.digest.hex().substr(0, 12) + "` ends the quarantine");
  } else if (!died) {
    log_.write(LogLevel::info, "cache",
               name_of(key) + ": cannot be tried in a child process and is built again: " + outcome.why);
  }
  return false;
}

std::optional<ProgramBinary> DiskTier::read_suspect(Root& root, DeviceFolder& folder, const ProgramKey& key) {
  const FileContents file = folder.read(key.digest, StoredFile::suspect, EntryLimits{}.file());
  const DecodedEntry decoded = decode_entry(file.bytes, root.key);
  if (decoded.rejection != Rejection::none || decoded.entry.material != key.material) return std::nullopt;
  const Result<std::vector<std::byte>> payload = inflate_payload(decoded.entry, inflaters_);
  if (!payload) return std::nullopt;
  Result<ProgramBinary> program = decode_payload(std::string(decoded.entry.format), *payload);
  return program ? std::optional(std::move(*program)) : std::nullopt;
}

Lookup DiskTier::find_stored(Root& in, DeviceStore& device_store, const ProgramKey& key) {
  Root* const root = &in;
  DeviceFolder& folder = device_store.folder;
  TracedWork reading(trace_, TraceArea::cache, "disk read");
  const FileContents file = folder.read(key.digest, StoredFile::program, EntryLimits{}.file());
  reading.figure("bytes", file.bytes.size());
  reading.end();
  const auto rejected = [&](Rejection reason, const std::string& why) {
    reject(*root, folder, key, reason, why);
    return Lookup{std::nullopt, true, file.modified_ns};
  };
  switch (file.state) {
    case FileState::read:
      break;
    case FileState::absent:
      return {};
    case FileState::foreign:
      return rejected(Rejection::foreign, file.why);
    case FileState::misplaced:
      return rejected(Rejection::tampered, file.why);
    case FileState::too_large:
      return rejected(Rejection::corrupt, file.why);
    case FileState::unreadable:
    case FileState::invalid:
      warn_once(file.why);
      return {};
  }
  TracedWork authenticating(trace_, TraceArea::cache, "authenticate");
  const DecodedEntry decoded = decode_entry(file.bytes, root->key);
  authenticating.end();
  if (decoded.rejection != Rejection::none) return rejected(decoded.rejection, decoded.why);
  if (decoded.entry.material != key.material) {
    return rejected(Rejection::tampered, "the file holds the program of another key");
  }
  TracedWork inflating(trace_, TraceArea::cache, "inflate");
  Result<std::vector<std::byte>> payload = inflate_payload(decoded.entry, inflaters_);
  if (payload) inflating.figure("bytes", payload->size());
  inflating.end();
  if (!payload) return rejected(Rejection::corrupt, payload.error().message);
  Result<ProgramBinary> program = decode_payload(std::string(decoded.entry.format), *payload);
  if (!program) return rejected(Rejection::corrupt, program.error().message);
  ledger_.note(key, folder, decoded.entry.build_ns);
  return {StoredProgram{std::move(*program), decoded.entry.build_ns}, false, file.modified_ns};
}

LoadGuard DiskTier::loading(const ProgramKey& key, const Device& device) {
  Root* root = config_.read_only ? nullptr : open();
  return root == nullptr ? LoadGuard() : store_of(*root, device).processes.loading(key.digest);
}

BuildLease DiskTier::acquire_lease(const ProgramKey& key, const Device& device, const Lookup& found, IfBusy if_busy) {
  Root* root = open();
  if (root == nullptr) return {};
  DeviceStore& device_store = store_of(*root, device);
  if (!publishes_) return {};
  const std::function<bool()> published = [&] {
    const auto written_ns = device_store.folder.last_written_ns(key.digest, StoredFile::program);
    return written_ns && *written_ns != found.modified_ns;
  };
  TracedWork asking(trace_, TraceArea::cache, "acquire lease");
  return kiln::acquire_lease(device_store.processes, {key.digest, if_busy, sharing_.patience, published}, counters_);
}

bool DiskTier::count_known_miss(const ProgramKey& key, const Device& device) {
  const DeviceInfo& info = device.info();
  // What keeps nothing and takes no source, as a library does, has no other driver that could.
  if (!info.serializes && (info.dialects.empty() || !is_there(config_.directory))) return false;
  Root* root = open();
  if (root == nullptr) return false;
  DeviceFolder& folder = store_of(*root, device).folder;
  if (folder.holds(key.digest, StoredFile::quarantined)) {
    counters_.reject(Rejection::quarantined);
    const auto since_ns = folder.last_written_ns(key.digest, StoredFile::quarantined);
    const std::string until = since_ns ? " until " + date_of(*since_ns / ns_per_s + quarantine_s) : std::string();
    note_miss(key, Rejection::quarantined,
              "quarantined" + until + ": a process that loaded the program died or timed out");
    return true;
  }
  if (folder.held_under_another_driver(key)) {
    counters_.reject(Rejection::driver_changed);
    note_miss(key, Rejection::driver_changed, "stored for this device under another driver");
    return true;
  }
  if (info.serializes) note_miss(key, Rejection::none, {});
  return false;
}

void DiskTier::reject(Root& root, DeviceFolder& folder, const ProgramKey& key, Rejection reason,
                      const std::string& why) {
  counters_.reject(reason);
  if (trace_ != nullptr) {
    const TraceFigure figures[] = {{"program", key.label}, {"reason", to_string(reason)}, {"why", why}};
    trace_->add_event({TraceArea::cache, "rejected", now_ns(), std::nullopt, figures});
  }
  note_miss(key, reason, why);
  if (log_.wants(LogLevel::info)) {
    log_.write(LogLevel::info, "cache",
               name_of(key) + " in folder " + folder.name() + ": " + std::string(to_string(reason)) + ": " + why);
  }
  if (!config_.read_only) root.bound.removed(folder.remove(key.digest));
}

void DiskTier::note_miss(const ProgramKey& key, Rejection reason, const std::string& why) {
  if (config_.auto_save && !config_.read_only) missed_.note(key, reason, why);
}

void DiskTier::refuse(const ProgramKey& key, const Device& device, const Status& status) {
  if (Root* root = open()) reject(*root, store_of(*root, device).folder, key, Rejection::refused, status.message);
}

Status DiskTier::remove(const ProgramKey& key, const Device& device) {
  if (config_.read_only) return unavailable(name_of(key) + ": cannot be removed because the cache is read-only");
  Root* root = open();
  if (root == nullptr) return {};
  root->bound.removed(store_of(*root, device).folder.remove(key.digest));
  const std::lock_guard lock(mutex_);
  if (const auto pending = set_aside_.find(key.digest); pending != set_aside_.end()) {
    root->pending.remove(pending->second->name(), key.digest);
    set_aside_.erase(pending);
  }
  return {};
}

void DiskTier::store(const ProgramKey& key, const Device& device, const ProgramBinary& binary, std::uint64_t build_ns,
                     MetaTime meta) {
  Root* root = config_.read_only ? nullptr : open();
  if (root == nullptr) return;
  TracedWork storing(trace_, TraceArea::cache, "store");
  storing.figure("bytes", binary.bytes.size());
  EntryView entry;
  entry.format = binary.format;
  entry.material = key.material;
  const std::vector<std::byte> payload = encode_payload(binary);
  entry.stored = payload;
  entry.compression = config_.compression == "none" ? Compression::none : Compression::zstd;
  entry.build_ns = build_ns;
  Result<std::vector<std::byte>> bytes = encode_entry(entry, root->key);
  if (!bytes) return warn_once(name_of(key) + ": " + bytes.error().message);
  if (bytes->size() > config_.max_disk) {
    return warn_once(name_of(key) + ": has " + std::to_string(bytes->size()) + " bytes, expected at most " +
                     std::to_string(config_.max_disk) + " (max_disk)");
  }
  DeviceFolder& folder = store_of(*root, device).folder;
  if (is_quarantined(*root, folder, key.digest, binary)) return;
  const Encoded whole{build_ns, std::move(*bytes)};
  const Status status =
      config_.auto_save ? publish(*root, folder, key, whole, meta) : set_aside(*root, device, key, whole);
  if (status.ok()) return;
  publishes_ = false;
  warn_once(status.message);
}

bool DiskTier::is_quarantined(Root& root, DeviceFolder& folder, const Digest& digest, const ProgramBinary& binary) {
  if (!folder.quarantine_lasts(digest)) return false;
  const FileContents file = folder.read(digest, StoredFile::quarantined, EntryLimits{}.file());
  const DecodedEntry decoded = decode_entry(file.bytes, root.key);
  if (decoded.rejection != Rejection::none || decoded.entry.format != binary.format) return false;
  const Result<std::vector<std::byte>> payload = inflate_payload(decoded.entry, inflaters_);
  return payload && *payload == encode_payload(binary);
}

Status DiskTier::publish(Root& root, DeviceFolder& folder, const ProgramKey& key, const Encoded& entry, MetaTime meta) {
  if (Status status = folder.write(key.digest, StoredFile::program, entry.bytes); !status.ok()) return status;
  if (folder.holds(key.digest, StoredFile::quarantined)) folder.forget(key.digest, StoredFile::quarantined);
  if (try_in_child_ && folder.holds(key.digest, StoredFile::suspect)) folder.forget(key.digest, StoredFile::suspect);
  ledger_.note(key, folder, entry.build_ns);
  const std::uint64_t meta_bytes = meta == MetaTime::now ? ledger_.flush(key.digest) : 0;
  const std::size_t pruned = root.bound.published(entry.bytes.size() + meta_bytes);
  counters_.disk_evictions.fetch_add(pruned);
  if (pruned != 0 && trace_ != nullptr) {
    const TraceFigure figures[] = {{"programs", std::uint64_t{pruned}}, {"max_disk_bytes", config_.max_disk}};
    trace_->add_event({TraceArea::cache, "evicted from disk", now_ns(), std::nullopt, figures});
  }
  if (pruned != 0 && log_.wants(LogLevel::info)) {
    log_.write(LogLevel::info, "cache",
               std::to_string(pruned) + " programs were removed from disk because of max_disk");
  }
  return {};
}

Status DiskTier::set_aside(Root& root, const Device& device, const ProgramKey& key, const Encoded& entry) {
  const Result<DeviceFolder*> pending = root.pending.keep(device.info(), key.digest, entry.bytes);
  if (!pending) return pending.error();
  ledger_.note(key, **pending, entry.build_ns);
  ledger_.flush(key.digest);
  DeviceFolder& folder = store_of(root, device).folder;
  const std::lock_guard lock(mutex_);
  set_aside_[key.digest] = &folder;
  return {};
}

std::vector<KeptProgram> DiskTier::kept(const Device& device, std::size_t most) {
  Root* root = open();
  if (root == nullptr) return {};
  DeviceFolder& folder = store_of(*root, device).folder;
  const std::vector<Digest> digests = folder.digests();
  std::vector<EntryMeta> metas;
  metas.reserve(digests.size());
  for (const Digest& digest : digests) metas.push_back(stored_meta(folder, digest));
  const std::vector<double> expected_ms = expected_stalls(metas);
  std::vector<std::size_t> order(digests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, std::greater<>(),
                    [&](std::size_t one) { return std::pair(expected_ms[one], digests[one]); });
  std::vector<KeptProgram> programs;
  for (const std::size_t one : order) {
    if (programs.size() >= most) break;
    const Digest& digest = digests[one];
    const FileContents file = folder.read(digest, StoredFile::program, EntryLimits{}.file());
    const DecodedEntry decoded = decode_entry(file.bytes, root->key);
    if (decoded.rejection != Rejection::none) continue;
    auto source = source_of(decoded.entry.material);
    if (!source) continue;
    EntryMeta& meta = metas[one];
    ProgramKey key{digest,
                   std::string(decoded.entry.material),
                   std::move(meta.label),
                   {std::move(meta.operation), std::move(meta.shape), std::move(meta.variant)}};
    if (sha256(key.material) != digest) continue;
    programs.push_back({std::move(key), std::move(*source), expected_ms[one]});
  }
  return programs;
}

void DiskTier::record(const Digest& digest, const Measurement& measurement, double gflops) {
  if (measurement.first_run) {
    ledger_.dispatched_first(digest, dispatch_ns(measurement));
  } else if (gflops > 0) {
    ledger_.rate(digest, gflops);
  }
}

void DiskTier::used(const UseCounts& uses) {
  for (const auto& [digest, times] : uses) ledger_.used(digest, times);
}

Result<std::uint64_t> DiskTier::persist() {
  std::map<Digest, DeviceFolder*> waiting;
  Root* root = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (unusable_) return unusable_->within("nothing can be persisted");
    root = root_.get();
    waiting.swap(set_aside_);
  }
  if (root == nullptr || config_.read_only) return std::uint64_t{0};
  ledger_.flush();  // what is known of them goes with them
  if (waiting.empty()) return std::uint64_t{0};
  const Result<CacheRoot> folders = CacheRoot::open(config_);
  std::uint64_t stored = 0;
  Status failure = folders ? Status() : folders.error();
  for (const auto& [digest, folder] : waiting) {
    Result<Published> published =
        folders ? publish_pending(*folders, folder->name(), digest, root->key) : Result<Published>(folders.error());
    if (!published) {
      failure = published.error();
      const std::lock_guard lock(mutex_);
      set_aside_.emplace(digest, folder);
      continue;
    }
    if (published->outcome == Publication::rejected) {
      warn_once("program " + digest.hex() + " in " + pending_name + ": " + published->why);
      continue;
    }
    if (published->outcome == Publication::stored) {
      ++stored;
      counters_.disk_evictions.fetch_add(root->bound.published(published->bytes));
    }
    ledger_.moved(digest, *folder);
  }
  if (failure.ok()) return stored;
  return failure.within(std::to_string(stored) + " of " + std::to_string(waiting.size()) + " programs persisted");
}

std::uint64_t DiskTier::bytes() {
  Root* root = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (unusable_ || config_.directory.empty()) return 0;
    root = root_.get();
  }
  if (root != nullptr) return root->bound.bytes();
  // Not opened yet: asking must leave no trace, so nothing is made here.
  const UniqueFd folder = open_folder(config_.directory, Create::no).value_or(UniqueFd());
  return folder ? survey(folder.get(), Sweep::no).bytes : 0;
}

void DiskTier::leave_history(const CacheStats& counts) noexcept try {
  if (config_.read_only || config_.directory.empty()) return;
  const UniqueFd folder = open_folder(config_.directory, Create::no).value_or(UniqueFd());
  if (!folder) return;
  add_to_totals(folder.get(), counts);
  missed_.save(folder.get());
} catch (const std::exception&) {  // out of memory: history is what can be done without
}

void DiskTier::warn_once(const std::string& why) {
  if (said_.exchange(true)) return;
  log_.write(LogLevel::warning, "cache",
             (config_.read_only ? "no program is read from disk: " : "programs are kept in memory only: ") + why);
}

}  // namespace kiln
