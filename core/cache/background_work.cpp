#include "cache/background_work.hpp"

#include <kiln/process_limits.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/os/private_folder.hpp"
#include "cache/cache_root.hpp"

namespace kiln {

struct BackgroundWork::Shared {
  std::mutex mutex;
  std::condition_variable added, ended;
  std::deque<std::function<void()>> tasks;
  std::vector<std::thread> started;
  std::size_t most_threads = 0, threads = 0, idle = 0;  // threads: those that serve
  bool finished = false;

  void serve() {
    std::unique_lock lock(mutex);
    while (!finished) {
      if (tasks.empty()) {
        ++idle;
        ended.notify_all();
        added.wait(lock, [&] { return finished || !tasks.empty(); });
        --idle;
        continue;
      }
      {
        std::function<void()> task = std::move(tasks.front());
        tasks.pop_front();
        lock.unlock();
        try {
          task();
        } catch (...) {  // out of memory: the task is lost
        }
        task = nullptr;  // what it owns is destroyed without the lock
      }
      lock.lock();
    }
    --threads;
    ended.notify_all();
  }
};

BackgroundWork::BackgroundWork(std::size_t most_threads)
    : stop_(std::make_shared<std::atomic<bool>>(false)), shared_(std::make_shared<Shared>()) {
  shared_->most_threads = most_threads;
}

BackgroundWork::~BackgroundWork() { finish(Deadline::after(std::chrono::nanoseconds(0))); }

bool BackgroundWork::add(std::function<void()> task) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->finished) return false;
  if (shared_->idle <= shared_->tasks.size() && shared_->threads < shared_->most_threads) {
    shared_->started.reserve(shared_->most_threads);
    auto thread = start_thread([shared = shared_] { shared->serve(); });
    if (thread) {
      ++shared_->threads;
      shared_->started.push_back(std::move(*thread));
    }
  }
  if (shared_->threads == 0) return false;
  shared_->tasks.push_back(std::move(task));
  shared_->added.notify_one();
  return true;
}

void BackgroundWork::finish(Deadline deadline) noexcept {
  std::deque<std::function<void()>> dropped;
  std::vector<std::thread> started;
  std::unique_lock lock(shared_->mutex);
  if (shared_->finished) return;
  if (deadline.left().count() > 0) {
    shared_->ended.wait_until(lock, deadline.at,
                              [&] { return shared_->tasks.empty() && shared_->idle == shared_->threads; });
  }
  stop_->store(true);
  shared_->finished = true;
  dropped.swap(shared_->tasks);
  shared_->added.notify_all();
  const bool ended = shared_->ended.wait_for(lock, std::chrono::seconds(1), [&] { return shared_->threads == 0; });
  started.swap(shared_->started);
  lock.unlock();
  // Joined: none still ends while the caller forks or unloads this library.
  for (std::thread& thread : started) ended ? thread.join() : thread.detach();
}

bool HeldLeases::add(const Digest& program, Held lease) {
  const std::lock_guard lock(mutex_);
  held_[program] = std::move(lease);
  return !std::exchange(is_kept_, true);
}

void HeldLeases::end_at(const Digest& program, Clock::time_point ends) {
  const std::lock_guard lock(mutex_);
  const auto at = held_.find(program);
  if (at != held_.end()) at->second.ends = ends;
}

std::optional<HeldLeases::Held> HeldLeases::take(const Digest& program) {
  const std::lock_guard lock(mutex_);
  const auto at = held_.find(program);
  if (at == held_.end()) return std::nullopt;
  std::optional<Held> taken(std::move(at->second));
  held_.erase(at);
  return taken;
}

std::map<Digest, HeldLeases::Held> HeldLeases::take_all() {
  const std::lock_guard lock(mutex_);
  return std::exchange(held_, {});
}

Status HeldLeases::release(const Held& lease) {
  RemoteLeases* leases = lease.endpoint->leases();
  if (leases == nullptr) return {};
  return leases->release(lease.name, lease.token, {.deadline = Deadline::after(request_patience)});
}

void HeldLeases::release(const Digest& program) {
  if (const auto lease = take(program)) static_cast<void>(release(*lease));
}

void HeldLeases::keep(const std::atomic<bool>& stop) {
  while (!stop) {
    std::vector<std::pair<Digest, Held>> due;
    std::vector<Held> over;
    {
      const std::lock_guard lock(mutex_);
      const auto now = Clock::now();
      for (auto at = held_.begin(); at != held_.end();) {
        if (now >= at->second.ends) {
          over.push_back(std::move(at->second));
          at = held_.erase(at);
          continue;
        }
        if (now - at->second.renewed >= at->second.life / 3) due.emplace_back(*at);
        ++at;
      }
    }
    for (const Held& lease : over) static_cast<void>(release(lease));
    for (auto& [digest, lease] : due) {
      RemoteLeases* leases = lease.endpoint->leases();
      const auto renewed = leases == nullptr
                               ? Result<bool>(false)
                               : leases->renew(lease.name, lease.token, lease.life,
                                               {.deadline = Deadline::after(request_patience), .stop = &stop});
      const std::lock_guard lock(mutex_);
      const auto at = held_.find(digest);
      if (at == held_.end()) continue;
      at->second.renewed = Clock::now();
      if (renewed && !*renewed) held_.erase(at);  // another machine has it by now
    }
    {
      const std::lock_guard lock(mutex_);
      if (held_.empty()) {
        is_kept_ = false;
        return;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

namespace {

constexpr std::uint64_t most_queued_bytes = 8ull << 20;
constexpr std::chrono::milliseconds write_patience{2000};
constexpr std::chrono::nanoseconds least_listing_pause = std::chrono::milliseconds(50);

Status write_item(RemoteEndpoint& endpoint, const WriteBack::Item& item, const EntryKey& own,
                  const std::atomic<bool>& stop) {
  if (endpoint.breaker().has_failed()) return unavailable("an earlier request to the server failed");
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
  const auto is_idle = [&] { return !is_served_; };
  std::unique_lock lock(mutex_);
  served_.wait_for(lock, patience / 2, is_idle);
  const std::size_t dropped = items_.size();
  items_.clear();
  bytes_ = 0;
  served_.wait_for(lock, patience / 2, is_idle);  // what was written is listed, or nobody would find it
  return dropped;
}

void WriteBack::serve(const Endpoints& endpoints, const CacheConfig& config, HeldLeases& leases,
                      SharedCounters& counters, Log log, const std::atomic<bool>& stop) {
  const Result<SecretKey> own = read_secret_key(config.key_file, IfMissing::fail);
  std::map<std::pair<RemoteEndpoint*, std::string>, RemoteIndex> written;
  Deadline listing = Deadline::after(least_listing_pause);
  const auto publish_index = [&] {
    const auto start = Clock::now();
    for (const auto& [place, entries] : written) {
      const auto store = place.first->store();
      const RemoteLimits limits{.deadline = Deadline::after(write_patience), .stop = &stop};
      if (store) static_cast<void>((*store)->add_to_index(place.second, entries, limits));
    }
    written.clear();
    // A long index is moved as a whole: no more than half of the time goes into that.
    listing = Deadline::after(std::max<std::chrono::nanoseconds>(least_listing_pause, Clock::now() - start));
  };
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
      const Status status = write_item(*endpoint, *item, EntryKey(*own), stop);
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
    if (listing.passed()) publish_index();
  }
  const std::lock_guard lock(mutex_);
  is_served_ = false;
  served_.notify_all();
}

}  // namespace kiln
