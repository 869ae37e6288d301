#include "cache/remote_endpoint.hpp"

#include "cache/remote_state.hpp"

#include <kiln/clock.hpp>
#include <kiln/regular_file.hpp>

#include <algorithm>
#include <ctime>
#include <utility>

#include <unistd.h>

namespace kiln {
namespace {

constexpr std::uint64_t index_life_ns = 60'000'000'000;
constexpr std::uint64_t no_history_ns = 20'000'000;
constexpr std::uint64_t least_patience_ns = 5'000'000;
constexpr unsigned most_bad_in_a_row = 4;

std::string scheme_of(std::string_view url) { return std::string(url.substr(0, url.find("://"))); }

std::uint64_t in_ns(std::chrono::nanoseconds time) { return static_cast<std::uint64_t>(time.count()); }

}  // namespace

RemoteEndpoint::RemoteEndpoint(Log log, RemoteConfig config, const CacheConfig& cache,
                               std::shared_ptr<CurrentKeys> trusted, const Stores& stores)
    : log_(log),
      config_(std::move(config)),
      trust_folders_(cache.trust_folders),
      totals_folder_(cache.read_only ? std::filesystem::path() : cache.directory),
      trusted_(std::move(trusted)),
      breaker_(cache.directory, !cache.read_only, config_.url) {
  const auto keys = trusted_->get();
  // Unlike for layers, no names mean no keys: a remote is read only if its writers are named.
  if (!config_.writers.empty()) reads_ = !chosen_keys(*keys, config_.writers, problems_).empty();
  if (config_.writes) {
    const auto signer = read_signing_key(trust_folders_, config_.sign_with);
    const Status usable = signer ? check_signer(*keys, *signer, config_.sign_with) : signer.error();
    if (usable.ok()) {
      signer_ = *signer;
    } else {
      problems_.push_back(usable.message);
    }
  }
  if (const auto at = stores.find(scheme_of(config_.url)); at != stores.end()) make_ = at->second;
}

std::vector<TrustedKey> RemoteEndpoint::accepted() const {
  std::vector<std::string> told_at_opening;
  return config_.writers.empty() ? std::vector<TrustedKey>()
                                 : chosen_keys(*trusted_->get(), config_.writers, told_at_opening);
}

Result<SecretKey> RemoteEndpoint::signer() const {
  if (Status status = check_signer(*trusted_->get(), *signer_, config_.sign_with); !status.ok()) return status;
  return *signer_;
}

Result<RemoteStore*> RemoteEndpoint::store() {
  const std::lock_guard lock(mutex_);
  if (store_ != nullptr) return store_.get();
  if (unusable_) return *unusable_;
  const auto open = [&]() -> Result<std::unique_ptr<RemoteStore>> {
    if (!make_) {
      return unsupported("remote " + config_.url + ": no loaded plugin has a store for " + scheme_of(config_.url) +
                         "://. Add the plugin to [plugins] load");
    }
    RemoteContext context{log_, config_.url, {}, config_.layout};
    if (config_.credentials.empty()) {
      context.credentials = environment_credentials(config_.url);
    } else {
      auto credentials = read_credentials(trust_folders_, config_.credentials, config_.url);
      if (!credentials) return std::move(credentials).error();
      context.credentials = std::move(*credentials);
    }
    return make_(context);
  };
  auto opened = open();
  if (!opened) {
    unusable_ = opened.error();
    log_.write(LogLevel::warning, "cache", "remote is not used: " + unusable_->message);
    return *unusable_;
  }
  store_ = std::move(*opened);
  return store_.get();
}

RemoteLeases* RemoteEndpoint::leases() {
  const auto opened = store();
  return opened ? dynamic_cast<RemoteLeases*>(*opened) : nullptr;
}

void RemoteEndpoint::count(std::uint64_t RemoteTotals::*what, std::uint64_t by) {
  const std::lock_guard lock(mutex_);
  unsaved_.*what += by;
}

void RemoteEndpoint::judge(const Status& status) {
  if (status.ok()) return breaker_.succeeded();
  if (status.code == StatusCode::cancelled) return;
  const auto opened = store();
  breaker_.failed(opened ? (*opened)->retry_after() : std::chrono::seconds());
  log_.write(LogLevel::info, "cache", "remote " + config_.url + ": " + status.message);
}

std::optional<SharedProgram> RemoteEndpoint::opened(std::span<const std::byte> bytes, const AskedProgram& asked,
                                                    SharedCounters& counters) {
  count(&RemoteTotals::bytes_read, bytes.size());
  OpenedObject object = open_object(bytes, accepted(), std::time(nullptr), asked.material, inflaters_);
  if (object.fault == ObjectFault::none && (object.program.key != asked.key || object.program.folder != asked.folder)) {
    object = {
        ObjectFault::other_program, "holds program " + object.program.key.hex() + " of " + object.program.folder, {}};
  }
  if (object.fault == ObjectFault::none) {
    bad_in_a_row_ = 0;
    count(&RemoteTotals::found);
    return std::move(object.program);
  }
  counters.change([&](SharedCounts& counts) { ++count_of(counts, object.fault); });
  count(&RemoteTotals::refused);
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = !std::exchange(warned_, true);
  }
  log_.write(first ? LogLevel::warning : LogLevel::info, "cache",
             "remote " + config_.url + ": object " + asked.name() +
                 " is not used: " + std::string(to_string(object.fault)) + ": the object " + object.why);
  // A server that only sends garbage is treated as one that fails.
  if (++bad_in_a_row_ == most_bad_in_a_row) breaker_.failed();
  return std::nullopt;
}

RemoteEndpoint::Fetched RemoteEndpoint::fetch(const AskedProgram& asked, const RemoteLimits& limits,
                                              SharedCounters& counters) {
  const auto opened_store = store();
  if (!opened_store) return {};
  counters.change([](SharedCounts& counts) { ++counts.asked; });
  const std::uint64_t start = now_ns();
  const auto object = (*opened_store)->get(asked.name(), limits);
  judge(object ? ok_status() : object.error());
  if (!object) {
    counters.change([](SharedCounts& counts) { ++counts.failed; });
    count(&RemoteTotals::failed);
    return {};
  }
  answered(now_ns() - start);
  if (!*object) {
    count(&RemoteTotals::absent);
    return {std::nullopt, true};
  }
  return {opened(**object, asked, counters)};
}

Status RemoteEndpoint::fetch_many(std::span<const AskedProgram> asked, const RemoteLimits& limits,
                                  SharedCounters& counters, const OnProgram& on_program) {
  const auto opened_store = store();
  if (!opened_store) return opened_store.error();
  std::vector<std::string> names;
  names.reserve(asked.size());
  for (const AskedProgram& one : asked) names.push_back(one.name());
  counters.change([&](SharedCounts& counts) { counts.asked += names.size(); });
  std::uint64_t arrived = 0;
  const Status status = (*opened_store)->get_many(names, limits, [&](std::size_t place, std::vector<std::byte> bytes) {
    if (place >= asked.size()) return;
    ++arrived;
    if (auto program = opened(bytes, asked[place], counters)) on_program(place, std::move(*program));
  });
  judge(status);
  if (status.ok()) {
    count(&RemoteTotals::absent, asked.size() - std::min<std::uint64_t>(arrived, asked.size()));
  } else {
    counters.change([](SharedCounts& counts) { ++counts.failed; });
    count(&RemoteTotals::failed);
  }
  return status;
}

Status RemoteEndpoint::put(const std::string& name, std::span<const std::byte> object, const RemoteLimits& limits) {
  const auto opened_store = store();
  if (!opened_store) return opened_store.error();
  {
    const std::lock_guard lock(mutex_);
    if (write_refused_) return *write_refused_;
  }
  const Status status = (*opened_store)->put(name, object, limits);
  if (status.code == StatusCode::unsupported) {  // the server answers, and takes no writes from here
    breaker_.succeeded();
    log_.write(LogLevel::warning, "cache",
               "remote " + config_.url + " does not accept programs from this process: " + status.message);
    const std::lock_guard lock(mutex_);
    write_refused_ = status;
  } else if (status.code == StatusCode::invalid_argument) {  // it refuses this object, and may take others
    log_.write(LogLevel::info, "cache", "remote " + config_.url + ": " + status.message);
  } else {
    judge(status);
  }
  count(status.ok() ? &RemoteTotals::written : &RemoteTotals::write_failed);
  if (status.ok()) count(&RemoteTotals::bytes_written, object.size());
  return status;
}

RemoteEndpoint::Known RemoteEndpoint::look_up(const std::string& folder, const Digest& key, std::uint64_t& build_ns) {
  const std::lock_guard lock(mutex_);
  const auto at = indexes_.find(folder);
  if (at == indexes_.end() || !at->second.index || at->second.fetched_ns == 0 ||
      now_ns() - at->second.fetched_ns > index_life_ns) {
    return Known::unknown;
  }
  const RemoteIndex& index = *at->second.index;
  const auto entry = std::ranges::lower_bound(index, key, {}, &RemoteIndexEntry::key);
  if (entry == index.end() || entry->key != key) return Known::absent;
  if (entry->build_ns != 0) build_ns = entry->build_ns;
  return Known::present;
}

bool RemoteEndpoint::wants_index(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  FolderIndex& index = indexes_[folder];
  const std::uint64_t now = now_ns();
  if (index.wanted_ns != 0 && now - index.wanted_ns < index_life_ns) return false;
  index.wanted_ns = now;
  return true;
}

Status RemoteEndpoint::refresh_index(const std::string& folder, const RemoteLimits& limits) {
  const auto opened_store = store();
  if (!opened_store) return opened_store.error();
  const std::uint64_t start = now_ns();
  auto index = (*opened_store)->index(folder, limits);
  // A damaged index says nothing about the server.
  const bool damaged = !index && index.error().code == StatusCode::corrupt;
  judge(index || damaged ? ok_status() : index.error());
  if (!index) return index.error();
  answered(now_ns() - start);
  const std::lock_guard lock(mutex_);
  FolderIndex& known = indexes_[folder];
  known.fetched_ns = known.wanted_ns = now_ns();
  known.index = std::move(*index);
  return {};
}

Status RemoteEndpoint::probe(const RemoteLimits& limits) {
  const auto opened_store = store();
  if (!opened_store) return opened_store.error();
  const std::uint64_t start = now_ns();
  const auto object = (*opened_store)->get("probe/probe", limits);
  if (object) {
    answered(now_ns() - start);
    breaker_.succeeded();
    return {};
  }
  if (object.error().code != StatusCode::cancelled) breaker_.probe_failed((*opened_store)->retry_after());
  return object.error();
}

void RemoteEndpoint::answered(std::uint64_t took_ns) {
  const std::lock_guard lock(mutex_);
  answers_ns_[answers_++ % answers_ns_.size()] = std::max<std::uint64_t>(took_ns, 1);
}

bool RemoteEndpoint::has_answered() {
  const std::lock_guard lock(mutex_);
  return answers_ != 0;
}

std::uint64_t RemoteEndpoint::round_trip_ns() {
  {
    const std::lock_guard lock(mutex_);
    const std::size_t known = std::min(answers_, answers_ns_.size());
    // The fastest: the others had to connect, or waited for a busy machine.
    if (known != 0)
      return *std::min_element(answers_ns_.begin(), answers_ns_.begin() + static_cast<std::ptrdiff_t>(known));
  }
  return breaker_.state().round_trip_us * 1000;
}

std::uint64_t RemoteEndpoint::slow_answer_ns() {
  std::uint64_t slow_ns = 0;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t known = std::min(answers_, answers_ns_.size());
    if (known != 0) {
      auto sorted = answers_ns_;
      const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(known * 95 / 100);
      std::nth_element(sorted.begin(), at, sorted.begin() + static_cast<std::ptrdiff_t>(known));
      slow_ns = *at + *at / 4;  // an answer that is only a little later is worth waiting for
    }
  }
  if (slow_ns == 0) slow_ns = breaker_.state().slow_us * 1000;
  if (slow_ns == 0) slow_ns = no_history_ns;
  return std::clamp(slow_ns, least_patience_ns, in_ns(request_patience));
}

std::uint64_t RemoteEndpoint::patience_ns(std::uint64_t expected_build_ns) {
  // A busy machine is late with the answer of a good server. A tenth of the build is little to lose once.
  const std::uint64_t wanted = std::max(slow_answer_ns(), expected_build_ns / 10);
  return std::min({wanted, std::max(expected_build_ns / 2, least_patience_ns), in_ns(request_patience)});
}

void RemoteEndpoint::save() {
  RemoteTotals more;
  bool has_answers = false;
  {
    const std::lock_guard lock(mutex_);
    more = std::exchange(unsaved_, {});
    has_answers = answers_ != 0;
  }
  add_remote_totals(totals_folder_, config_.url, more);
  if (has_answers) breaker_.measured(round_trip_ns() / 1000, slow_answer_ns() / 1000);
}

Layers::Layers(Log log, const CacheConfig& cache, std::shared_ptr<CurrentKeys> trusted)
    : log_(log), folders_(cache.layers), writers_(cache.layer_writers), trusted_(std::move(trusted)) {
  if (folders_.empty()) return;
  std::vector<std::string> problems;
  if (chosen_keys(*trusted_->get(), writers_, problems).empty())
    problems.push_back("no key is trusted, so no program of a layer is used");
  for (const std::string& problem : problems) log_.write(LogLevel::warning, "cache", "layers: " + problem);
}

std::optional<SharedProgram> Layers::find(const AskedProgram& asked, SharedCounters& counters) {
  for (const std::filesystem::path& folder : folders_) {
    const std::filesystem::path path = folder / asked.name();
    const Result<RegularFile> file = RegularFile::open(path);
    if (!file) continue;
    const auto bytes = file->contents(most_object_bytes);
    if (!bytes) continue;
    std::vector<std::string> told_at_opening;
    const auto accepted = chosen_keys(*trusted_->get(), writers_, told_at_opening);
    OpenedObject object = open_object(*bytes, accepted, std::time(nullptr), asked.material, inflaters_);
    if (object.fault == ObjectFault::none) return std::move(object.program);
    counters.change([&](SharedCounts& counts) { ++count_of(counts, object.fault); });
    log_.write(warned_.exchange(true) ? LogLevel::info : LogLevel::warning, "cache",
               "layer object " + path.string() + " is not used: " + std::string(to_string(object.fault)) +
                   ": the object " + object.why);
  }
  return std::nullopt;
}

bool Layers::holds(const AskedProgram& asked) const {
  for (const std::filesystem::path& folder : folders_) {
    if (access((folder / asked.name()).c_str(), R_OK) == 0) return true;
  }
  return false;
}

}  // namespace kiln
