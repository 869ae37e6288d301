#include "cache/write_back.hpp"

#include "base/os/private_folder.hpp"
#include "cache/cache_root.hpp"

#include <map>
#include <utility>

namespace kiln {
namespace {

constexpr std::uint64_t most_queued_bytes = 8ull << 20;
constexpr std::chrono::milliseconds write_patience{2000};
constexpr std::size_t index_batch = 32;

Status write(RemoteEndpoint& endpoint, const WriteBack::Item& item, const EntryKey& own,
             const std::atomic<bool>& stop) {
  if (endpoint.breaker().has_failed()) return unavailable("the server failed before");
  const auto signer = endpoint.signer();
  if (!signer) return signer.error();
  const auto object = make_object(item.entry, own, item.folder, item.meta, *signer);
  if (!object) return object.error();
  return endpoint.put(object_name(item.folder, item.key), *object,
                      {.deadline = Deadline::after(write_patience), .stop = &stop});
}

}  // namespace

bool WriteBack::add(Item item) {
  const std::lock_guard lock(mutex_);
  if (bytes_ + item.entry.size() > most_queued_bytes) return false;
  bytes_ += item.entry.size();
  items_.push_back(std::move(item));
  return true;
}

bool WriteBack::begin() {
  const std::lock_guard lock(mutex_);
  return !std::exchange(is_served_, true);
}

void WriteBack::not_served() {
  const std::lock_guard lock(mutex_);
  is_served_ = false;
}

std::optional<WriteBack::Item> WriteBack::next() {
  const std::lock_guard lock(mutex_);
  if (items_.empty()) return std::nullopt;
  std::optional<Item> item(std::move(items_.front()));
  items_.pop_front();
  bytes_ -= item->entry.size();
  return item;
}

std::size_t WriteBack::finish(std::chrono::milliseconds patience) {
  {
    std::unique_lock lock(mutex_);
    served_.wait_for(lock, patience, [&] { return !is_served_; });
  }
  std::size_t dropped = 0;
  while (next()) ++dropped;
  return dropped;
}

void WriteBack::serve(const Endpoints& endpoints, const CacheConfig& config, HeldLeases& leases,
                      SharedCounters& counters, Log log, const std::atomic<bool>& stop) {
  const Result<SecretKey> own = read_secret_key(config.key_file, IfMissing::fail);
  std::map<std::pair<RemoteEndpoint*, std::string>, RemoteIndex> written;
  const auto publish_index = [&] {
    for (const auto& [place, entries] : written) {
      const auto store = place.first->store();
      const RemoteLimits limits{.deadline = Deadline::after(write_patience), .stop = &stop};
      if (store) static_cast<void>((*store)->add_to_index(place.second, entries, limits));
    }
    written.clear();
  };
  std::size_t since_index = 0;
  while (!stop && own) {
    auto item = next();
    if (!item) {
      publish_index();
      const std::lock_guard lock(mutex_);
      if (!items_.empty()) continue;
      is_served_ = false;
      served_.notify_all();
      return;
    }
    for (const auto& endpoint : endpoints) {
      if (!endpoint->writes()) continue;
      const Status status = write(*endpoint, *item, EntryKey(*own), stop);
      counters.change([&](SharedCounts& counts) { ++(status.ok() ? counts.written : counts.write_failed); });
      if (status.ok()) {
        written[{endpoint.get(), item->folder}].push_back({item->key, item->build_ns});
      } else {
        log.write(
            LogLevel::info, "cache",
            "remote " + endpoint->config().url + ": program " + item->key.hex() + " is not written: " + status.message);
      }
    }
    leases.release(item->key);
    if (++since_index % index_batch == 0) publish_index();
  }
  const std::lock_guard lock(mutex_);
  is_served_ = false;
  served_.notify_all();
}

}  // namespace kiln
