// `kiln cache push`, `pull`, `remote status` and `layer create`.
#include "cache_admin/sharing.hpp"
#include "base/os/private_folder.hpp"
#include "base/os/process_limits.hpp"
#include "cache/bundle_format.hpp"
#include "cache/cache_root.hpp"
#include "cache/entry_format.hpp"
#include "cache/manifest.hpp"
#include "cache/remote_state.hpp"
#include "cache_admin/bundles.hpp"
#include "cache_admin/selection.hpp"

#include <kiln/cache_sharing.hpp>
#include <kiln/clock.hpp>
#include <kiln/regular_file.hpp>

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <set>
#include <utility>

namespace kiln {

namespace {

// By hand a slow server is waited for: no job depends on it.
constexpr std::chrono::seconds patience{20}, patience_for_object{2};
constexpr std::chrono::seconds connect_patience{5};
constexpr std::size_t objects_together = 64;

}  // namespace

RemoteLimits limits_by_hand(std::size_t objects) {
  return {.deadline = Deadline::after(patience + static_cast<int>(objects) * patience_for_object),
          .connect = connect_patience};
}

Status check_rights() {
  if (!has_borrowed_rights()) return {};
  return unavailable("this process has more privileges than its user (setuid, setgid or capabilities)");
}

RemoteStores with_files(const RemoteStores& stores) {
  RemoteStores all = stores;
  all.emplace("file", open_file_store);
  return all;
}

Result<std::vector<std::unique_ptr<RemoteEndpoint>>> writing_endpoints(const CacheConfig& cache,
                                                                       const RemoteStores& stores) {
  const auto trusted = std::make_shared<CurrentKeys>(cache.trust_folders);
  std::vector<std::unique_ptr<RemoteEndpoint>> endpoints;
  for (const RemoteConfig& remote : cache.remotes) {
    if (!remote.writes) continue;
    auto endpoint = std::make_unique<RemoteEndpoint>(Log{}, remote, cache, trusted, with_files(stores));
    if (!endpoint->writes()) {
      return not_found("remote " + remote.url + ": " +
                       (endpoint->problems().empty() ? "has no signing key" : endpoint->problems().back()));
    }
    endpoints.push_back(std::move(endpoint));
  }
  if (endpoints.empty()) {
    return invalid_argument("push: no [[cache.remote]] has mode = \"read_write\" (expected at least one)");
  }
  return endpoints;
}

Status check_reads(const RemoteEndpoint& endpoint) {
  if (endpoint.reads()) return {};
  return not_found(
      "remote " + endpoint.config().url + ": " +
      (endpoint.problems().empty() ? "no writers are configured, expected at least one" : endpoint.problems().front()));
}

std::map<std::string, std::uint64_t> refusals(SharedCounts counts) {
  std::map<std::string, std::uint64_t> refused;
  for (const ObjectFault fault :
       {ObjectFault::length, ObjectFault::unknown_key, ObjectFault::revoked, ObjectFault::expired,
        ObjectFault::signature, ObjectFault::other_program, ObjectFault::payload, ObjectFault::driver_file}) {
    if (const std::uint64_t count = count_of(counts, fault); count != 0) refused.emplace(to_string(fault), count);
  }
  return refused;
}

namespace {

// Why make_object() refused.
std::string reason_of(const Status& status) {
  return status.code == StatusCode::invalid_argument ? "too_large" : "corrupt";
}

BadEntry bad_entry(const SelectedProgram& program, std::string reason, std::string why) {
  return {program.entry.digest, program.folder, program.description.label, std::move(reason), std::move(why), false};
}

// The object of a stored program, or why there is none. nullopt: another process removed it since it was listed.
std::optional<Result<std::vector<std::byte>>> object_of(const CacheRoot& root, const SelectedProgram& program,
                                                        const EntryKey& own, const SecretKey& signer) {
  const FileContents file = root.read_program(Area::stored, program.folder, program.entry.digest);
  if (file.state == FileState::absent) return std::nullopt;
  const EntryVerdict verdict = judge(file, program.entry.digest, own);
  if (verdict.reason != Rejection::none) {
    return corrupt(std::string(to_string(verdict.reason)) + ": " + verdict.why);
  }
  const std::string meta = root.read_meta(Area::stored, program.folder, program.entry.digest);
  return make_object(file.bytes, own, program.folder, meta, signer);
}

class Push {
 public:
  Push(RemoteEndpoint& endpoint, const CacheRoot& root, const EntryKey& own)
      : endpoint_(endpoint), root_(root), own_(own) {
    outcome_.url = endpoint.config().url;
  }

  // Finds out which of the programs the remote has. An object that no reader would use, such as one that a revoked key
  // signed, is not there.
  void look_for(std::span<const SelectedProgram> programs) {
    std::vector<AskedProgram> listed;
    for (const SelectedProgram& program : programs) {
      if (!outcome_.failure.ok()) return;
      if (is_listed(program)) listed.push_back({program.folder, program.entry.digest});
    }
    if (!endpoint_.reads()) {  // it has no key to check them with
      for (const AskedProgram& one : listed) there_.insert(one.name());
      return;
    }
    for (const AskedProgram& one : listed) unusable_.insert(one.name());
    SharedCounters counters;
    while (!listed.empty() && outcome_.failure.ok()) {
      const auto some = std::span(listed).first(std::min(objects_together, listed.size()));
      const std::size_t before = there_.size();
      const Status status =
          endpoint_.fetch_many(some, limits_by_hand(some.size()), counters, [&](std::size_t place, SharedProgram) {
            there_.insert(some[place].name());
            unusable_.erase(some[place].name());
          });
      if (status.code == StatusCode::timeout && there_.size() != before) {  // a slow line: the others are asked again
        std::erase_if(listed, [&](const AskedProgram& one) { return there_.contains(one.name()); });
        continue;
      }
      if (!status.ok()) outcome_.failure = status.within("remote " + outcome_.url);
      listed.erase(listed.begin(), listed.begin() + static_cast<std::ptrdiff_t>(some.size()));
    }
  }

  // A failure ends it: the next program would fail likewise. A program that the remote refuses is skipped.
  void write(const SelectedProgram& program) {
    if (!outcome_.failure.ok()) return;
    if (there_.contains(object_name(program.folder, program.entry.digest))) {
      ++outcome_.already;
      return;
    }
    const auto signer = endpoint_.signer();
    if (!signer) {
      outcome_.failure = signer.error().within("remote " + outcome_.url);
      return;
    }
    const auto object = object_of(root_, program, own_, *signer);
    if (!object) return;
    if (!*object) {
      outcome_.bad.push_back(bad_entry(program, reason_of(object->error()), object->error().message));
      return;
    }
    const Status status = endpoint_.put(object_name(program.folder, program.entry.digest), **object, limits_by_hand());
    if (status.code == StatusCode::invalid_argument) {
      outcome_.bad.push_back(bad_entry(program, "refused", status.within("remote " + outcome_.url).message));
      return;
    }
    if (!status.ok()) {
      outcome_.failure = status.within("remote " + outcome_.url);
      return;
    }
    ++outcome_.written;
    outcome_.replaced += unusable_.count(object_name(program.folder, program.entry.digest));
    outcome_.bytes += (*object)->size();
    const auto build_ns = static_cast<std::uint64_t>(program.description.build_ms * 1e6);
    RemoteIndex& folder = written_[program.folder];
    folder.push_back({program.entry.digest, build_ns});
    if (folder.size() >= objects_together) publish_index();
  }

  PushOutcome finish() {
    publish_index();
    return std::move(outcome_);
  }

 private:
  bool is_listed(const SelectedProgram& program) {
    const auto [at, is_new] = indexes_.try_emplace(program.folder);
    if (is_new) {
      const auto store = endpoint_.store();
      auto index =
          store ? (*store)->index(program.folder, limits_by_hand()) : Result<std::optional<RemoteIndex>>(store.error());
      if (!index && index.error().code != StatusCode::corrupt) {
        outcome_.failure = index.error().within("remote " + outcome_.url);
        return false;
      }
      if (index && *index) at->second = std::move(**index);
    }
    const auto found = std::ranges::lower_bound(at->second, program.entry.digest, {}, &RemoteIndexEntry::key);
    return found != at->second.end() && found->key == program.entry.digest;
  }

  // What was written is listed, also after a failure.
  void publish_index() {
    const auto store = endpoint_.store();
    for (const auto& [folder, entries] : written_) {
      if (!store) break;
      Status status = (*store)->add_to_index(folder, entries, limits_by_hand());
      if (status.code == StatusCode::corrupt) {  // all programs of this cache are written again
        const auto anew = encode_remote_index(merged_index({}, entries));
        status = (*store)->put(remote_index_name(folder), anew, limits_by_hand());
      }
      if (!status.ok() && outcome_.failure.ok()) outcome_.failure = status.within("remote " + outcome_.url + ": index");
    }
    written_.clear();
  }

  RemoteEndpoint& endpoint_;
  const CacheRoot& root_;
  const EntryKey& own_;
  PushOutcome outcome_;
  std::map<std::string, RemoteIndex> indexes_, written_;  // by device folder
  std::set<std::string> there_, unusable_;                // names of objects that are listed
};

// One remote's programs for one device.
void pull_device(RemoteEndpoint& endpoint, const DeviceInfo& device, Importer& importer, PullOutcome& outcome,
                 SharedCounters& counters, const CacheProgress& progress) {
  const std::string folder = device_folder_name(device);
  const auto store = endpoint.store();
  if (!store) {
    outcome.failure = store.error();
    return;
  }
  const auto index = (*store)->index(folder, limits_by_hand());
  if (!index) {
    outcome.failure = index.error().within("remote " + outcome.url + ": index");
    return;
  }
  if (!*index) return;
  std::vector<AskedProgram> asked;
  for (const RemoteIndexEntry& entry : **index) {
    if (importer.has(entry.key, device)) {
      ++importer.outcome().programs_already;
    } else {
      asked.push_back({folder, entry.key});
    }
  }
  const std::string identity = identity_of(device);
  for (std::size_t done = 0; done < asked.size(); done += objects_together) {
    const auto some = std::span(asked).subspan(done, std::min(objects_together, asked.size() - done));
    Status stored;
    const Status status =
        endpoint.fetch_many(some, limits_by_hand(some.size()), counters, [&](std::size_t, SharedProgram program) {
          if (program.binary.format == tuning_format) return;  // no program: listed by an index that was made anew
          // Signed, and still of no use here: its key names another device or driver.
          if (identity_in(program.material) != identity) {
            ++importer.outcome().programs_of_others;
            return;
          }
          const std::vector<std::byte> payload = encode_payload(program.binary);
          EntryView entry;
          entry.format = program.binary.format;
          entry.material = program.material;
          entry.stored = payload;
          entry.build_ns = program.build_ns;
          if (stored.ok()) stored = importer.place(program.key, entry, program.meta, device);
        });
    if (progress) progress(done + some.size(), asked.size());
    if (!stored.ok()) outcome.failure = stored;
    if (!status.ok()) outcome.failure = status.within("remote " + outcome.url);
    if (!outcome.failure.ok()) return;
  }
}

}  // namespace

Result<std::vector<PushOutcome>> push_cache(const CacheConfig& cache, const RemoteStores& stores,
                                            std::span<const std::string> which, const CacheProgress& progress) {
  if (Status status = check_rights(); !status.ok()) return status;
  const auto endpoints = writing_endpoints(cache, stores);
  if (!endpoints) return endpoints.error();
  const Result<CacheRoot> root = CacheRoot::open(cache);
  if (!root) return root.error();
  if (!root->exists()) return not_found("cache " + cache.directory.string() + ": does not exist yet");
  const auto chosen = select_stored(*root, which, cache);
  if (!chosen) return chosen.error();
  const Result<SecretKey> own = read_secret_key(cache.key_file, IfMissing::fail);
  if (!own) return own.error().within("programs cannot be authenticated");
  const EntryKey key(*own);
  std::vector<PushOutcome> outcomes;
  std::size_t done = 0;
  for (const auto& endpoint : *endpoints) {
    Push push(*endpoint, *root, key);
    push.look_for(*chosen);
    for (const SelectedProgram& program : *chosen) {
      push.write(program);
      if (progress) progress(++done, chosen->size() * endpoints->size());
    }
    outcomes.push_back(push.finish());
    endpoint->save();
  }
  return outcomes;
}

Result<std::vector<PullOutcome>> pull_cache(const CacheConfig& cache, const RemoteStores& stores,
                                            std::span<const DeviceInfo> devices, const CacheProgress& progress) {
  if (Status status = check_rights(); !status.ok()) return status;
  if (cache.remotes.empty()) return invalid_argument("pull: no [[cache.remote]] is configured (expected at least one)");
  if (Status status = check_key_file_place(cache); !status.ok()) return status;
  const Result<CacheRoot> root = CacheRoot::open_to_write(cache);
  if (!root) return root.error();
  const auto trusted = std::make_shared<CurrentKeys>(cache.trust_folders);
  std::vector<PullOutcome> outcomes;
  for (const RemoteConfig& remote : cache.remotes) {
    RemoteEndpoint endpoint({}, remote, cache, trusted, with_files(stores));
    PullOutcome outcome;
    outcome.url = remote.url;
    SharedCounters counters;
    Importer importer(cache);
    outcome.failure = importer.open();
    if (outcome.failure.ok()) outcome.failure = check_reads(endpoint);
    for (const DeviceInfo& device : devices) {
      if (outcome.failure.ok()) pull_device(endpoint, device, importer, outcome, counters, progress);
    }
    endpoint.save();
    outcome.stored = importer.outcome();
    outcome.refused = refusals(counters.counts());
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

namespace {

RemoteStatus known_of(RemoteEndpoint& endpoint, const SharingKeys& known, const CacheConfig& cache) {
  RemoteStatus status;
  status.url = endpoint.config().url;
  status.writes = endpoint.config().writes;
  status.problems = endpoint.problems();
  for (const TrustedKey& key : endpoint.accepted()) {
    for (const SharingKey& shown : known.keys) {
      if (shown.name == key.name) status.accepted.push_back(shown);
    }
  }
  if (!endpoint.reads()) status.problems.push_back("no writer is accepted, so nothing is read");
  const RemoteState before = endpoint.breaker().state();
  status.failures = before.failures;
  const auto now_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  if (before.failures != 0 && before.closed_until_ms > now_ms) {
    status.closed_for_ms = static_cast<double>(before.closed_until_ms - now_ms);
  }
  status.round_trip_ms = static_cast<double>(before.round_trip_us) / 1e3;
  status.totals = read_remote_totals(cache.directory, status.url);
  return status;
}

// What is known of each remote; with stores also the answer to a request that is sent now.
std::vector<RemoteStatus> statuses(const CacheConfig& cache, const RemoteStores* stores) {
  const auto trusted = std::make_shared<CurrentKeys>(cache.trust_folders);
  const SharingKeys known = sharing_keys(cache);
  CacheConfig reading = cache;
  if (stores == nullptr) reading.read_only = true;  // nothing is created
  std::vector<RemoteStatus> all;
  for (const RemoteConfig& remote : cache.remotes) {
    RemoteEndpoint endpoint({}, remote, reading, trusted, stores == nullptr ? RemoteStores() : with_files(*stores));
    RemoteStatus status = known_of(endpoint, known, cache);
    if (stores != nullptr) {
      const std::uint64_t start = now_ns();
      status.answer = endpoint.probe({.deadline = Deadline::after(connect_patience), .connect = connect_patience});
      status.answer_ms = static_cast<double>(now_ns() - start) / 1e6;
    }
    all.push_back(std::move(status));
  }
  return all;
}

}  // namespace

std::vector<RemoteStatus> known_remotes(const CacheConfig& cache) { return statuses(cache, nullptr); }

std::vector<RemoteStatus> remote_status(const CacheConfig& cache, const RemoteStores& stores) {
  return statuses(cache, &stores);
}

namespace {

Status write_object(RemoteStore& layer, const std::string& folder, const Digest& key,
                    const Result<std::vector<std::byte>>& object, LayerOutcome& outcome) {
  if (Status status = layer.put(object_name(folder, key), *object, {}); !status.ok()) return status;
  ++outcome.programs;
  outcome.bytes += object->size();
  return {};
}

Status fill_from_cache(RemoteStore& layer, const CacheConfig& cache, const LayerRequest& request,
                       const SecretKey& signer, LayerOutcome& outcome) {
  const Result<CacheRoot> root = CacheRoot::open(cache);
  if (!root) return root.error();
  if (!root->exists()) return not_found("cache " + cache.directory.string() + ": does not exist yet");
  const auto chosen = select_stored(*root, request.which, cache);
  if (!chosen) return chosen.error();
  const Result<SecretKey> own = read_secret_key(cache.key_file, IfMissing::fail);
  if (!own) return own.error().within("programs cannot be authenticated");
  const EntryKey key(*own);
  std::size_t done = 0;
  for (const SelectedProgram& program : *chosen) {
    if (request.progress) request.progress(++done, chosen->size());
    const auto object = object_of(*root, program, key, signer);
    if (!object) continue;
    if (!*object) {
      outcome.bad.push_back(bad_entry(program, reason_of(object->error()), object->error().message));
      continue;
    }
    if (Status status = write_object(layer, program.folder, program.entry.digest, *object, outcome); !status.ok()) {
      return status;
    }
  }
  return {};
}

// Every program of a bundle, signed again with the layer's key.
Status fill_from_bundle(RemoteStore& layer, const LayerRequest& request, const SecretKey& signer,
                        LayerOutcome& outcome) {
  if (!request.which.empty()) {
    return invalid_argument("found '" + request.which.front() +
                            "' together with a bundle, expected no label or key (a layer contains the whole bundle)");
  }
  const Result<BundlePublicKey> trusted = read_trusted_key(request.trust);
  if (!trusted) return trusted.error();
  const Result<RegularFile> file = RegularFile::open(request.bundle);
  if (!file) return file.error().within("bundle");
  const auto bytes = file->contents(BundleLimits{}.file);
  if (!bytes) return bytes.error().within("bundle");
  const Result<Bundle> bundle = decode_bundle(*bytes, *trusted);
  if (!bundle) return bundle.error().within("bundle " + request.bundle.string());
  std::size_t done = 0;
  for (const BundledProgram& program : bundle->programs) {
    if (request.progress) request.progress(++done, bundle->programs.size());
    const std::string folder(program.folder);
    const auto object = make_object(program, signer);
    if (!object) {
      const std::string label = decode_meta(program.meta).value_or(EntryMeta{}).label;
      outcome.bad.push_back({program.key, folder, label, reason_of(object.error()), object.error().message, false});
      continue;
    }
    if (Status status = write_object(layer, folder, program.key, object, outcome); !status.ok()) return status;
  }
  return {};
}

}  // namespace

Result<LayerOutcome> create_layer(const CacheConfig& cache, const LayerRequest& request) {
  if (Status status = check_rights(); !status.ok()) return status;
  const Result<SecretKey> signer = read_signing_key(cache.trust_folders, request.sign_with);
  if (!signer) return signer.error();
  if (Status status = check_signer(read_trusted_keys(cache.trust_folders), *signer, request.sign_with); !status.ok()) {
    return status;
  }
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(request.folder, error);
  if (!error) std::filesystem::create_directories(folder, error);
  if (error) return system_error("layer " + request.folder.string(), "cannot be created", error.value());
  const auto layer = open_file_store({.url = "file://" + folder.string()});
  if (!layer) return layer.error();
  LayerOutcome outcome;
  const Status status = request.bundle.empty() ? fill_from_cache(**layer, cache, request, *signer, outcome)
                                               : fill_from_bundle(**layer, request, *signer, outcome);
  if (!status.ok()) return status.within("layer " + request.folder.string());
  return outcome;
}

}  // namespace kiln
