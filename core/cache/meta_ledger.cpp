#include "cache/meta_ledger.hpp"

#include <kiln/clock.hpp>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {
namespace {

constexpr std::size_t most_lines = 65536;
constexpr std::uint64_t most_meta_bytes = 64 << 10;
constexpr std::size_t room_to_grow = 64;  // bytes
constexpr double newest_weight = 0.25;    // of a process' first use among those before

std::int64_t seconds_since_1970() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

// Who asks without saying what for takes nothing away from what is known.
void put(std::string& into, const std::string& news) {
  if (!news.empty()) into = news;
}

void merge(EntryMeta& into, const EntryMeta& news) {
  into.key = news.key;
  into.label = news.label;
  put(into.operation, news.operation);
  put(into.shape, news.shape);
  put(into.variant, news.variant);
  if (news.build_ms > 0) into.build_ms = news.build_ms;
  // Where the driver found its own product a first dispatch is a short one: the longest says what a new machine pays.
  into.first_dispatch_ms = std::max(into.first_dispatch_ms, news.first_dispatch_ms);
  if (news.warm_dispatch_ms > 0) {
    into.warm_dispatch_ms =
        into.warm_dispatch_ms > 0 ? std::min(into.warm_dispatch_ms, news.warm_dispatch_ms) : news.warm_dispatch_ms;
  }
  if (news.load_ms > 0) into.load_ms = news.load_ms;
  if (news.first_use_ms > 0) {
    into.first_use_ms = into.first_use_ms > 0
                            ? into.first_use_ms + newest_weight * (news.first_use_ms - into.first_use_ms)
                            : news.first_use_ms;
  }
  if (news.gflops > 0) into.gflops = news.gflops;
  into.times_used += news.times_used;
  into.runs += news.runs;
  if (news.last_used > 0) into.last_used = news.last_used;
}

EntryMeta meta_of(const FileContents& file) {
  if (file.state != FileState::read) return {};
  return decode_meta({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()}).value_or(EntryMeta{});
}

// So that counts can grow in their place: the file is rewritten in one call as long as its size stays.
void fill_up(std::string& text, std::size_t size_before) {
  const std::size_t size = text.size() <= size_before ? size_before : (text.size() / room_to_grow + 2) * room_to_grow;
  text.insert(text.size() - 1, size - text.size(), ' ');  // before the line's end
}

}  // namespace

EntryMeta stored_meta(DeviceFolder& folder, const Digest& digest) {
  return meta_of(folder.read(digest, StoredFile::meta, most_meta_bytes));
}

MetaLedger::MetaLedger() : opened_ns_(now_ns()) {}

MetaLedger::Line* MetaLedger::line(const Digest& digest) {
  const auto at = lines_.find(digest);
  return at == lines_.end() ? nullptr : &at->second;
}

void MetaLedger::note(const ProgramKey& key, DeviceFolder& folder, std::uint64_t build_ns) {
  const std::lock_guard lock(mutex_);
  if (lines_.size() >= most_lines && !lines_.contains(key.digest)) return;
  Line& noted = lines_[key.digest];
  noted.folder = &folder;
  noted.news.key = key.digest.hex();
  noted.news.label = key.label;
  put(noted.news.operation, key.purpose.operation);
  put(noted.news.shape, key.purpose.shape);
  put(noted.news.variant, key.purpose.variant);
  if (build_ns != 0) noted.news.build_ms = static_cast<double>(build_ns) / 1e6;
  noted.changed = true;
}

void MetaLedger::moved(const Digest& digest, DeviceFolder& to) {
  const std::lock_guard lock(mutex_);
  if (Line* noted = line(digest)) {
    noted->folder = &to;
    noted->changed = true;
  }
}

void MetaLedger::used(const Digest& digest, std::uint64_t times) {
  const std::lock_guard lock(mutex_);
  if (Line* noted = line(digest)) {
    noted->news.times_used += times;
    if (times != 0 && !std::exchange(noted->run_counted, true)) noted->news.runs = 1;
    noted->news.last_used = seconds_since_1970();
    noted->changed = true;
  }
}

void MetaLedger::asked_for(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  Line* noted = line(digest);
  if (noted == nullptr || std::exchange(noted->asked_for, true)) return;
  noted->news.first_use_ms = static_cast<double>(now_ns() - opened_ns_) / 1e6;
  noted->changed = true;
}

void MetaLedger::loaded(const Digest& digest, std::uint64_t took_ns) {
  const std::lock_guard lock(mutex_);
  if (Line* noted = line(digest)) {
    noted->news.load_ms = static_cast<double>(took_ns) / 1e6;
    noted->changed = true;
  }
}

void MetaLedger::dispatched_first(const Digest& digest, std::uint64_t took_ns) {
  const std::lock_guard lock(mutex_);
  if (Line* noted = line(digest)) {
    const double ms = static_cast<double>(took_ns) / 1e6;
    EntryMeta& news = noted->news;
    news.first_dispatch_ms = std::max(news.first_dispatch_ms, ms);
    news.warm_dispatch_ms = news.warm_dispatch_ms > 0 ? std::min(news.warm_dispatch_ms, ms) : ms;
    noted->changed = true;
  }
}

void MetaLedger::rate(const Digest& digest, double gflops) {
  const std::lock_guard lock(mutex_);
  if (Line* noted = line(digest)) {
    noted->news.gflops = gflops;
    noted->changed = true;
  }
}

std::optional<MetaLedger::Line> MetaLedger::take(Line& line) {
  if (!std::exchange(line.changed, false)) return std::nullopt;
  Line news = line;
  line.news.times_used = 0;
  line.news.runs = 0;
  line.news.first_use_ms = 0;  // a process counts once
  return news;
}

std::uint64_t MetaLedger::write(const Digest& digest, const Line& news) {
  if (!news.folder->holds(digest, StoredFile::program)) return 0;  // it was removed: nothing of it comes back
  const FileContents before = news.folder->read(digest, StoredFile::meta, most_meta_bytes);
  EntryMeta meta = meta_of(before);
  merge(meta, news.news);
  std::string text = encode_meta(meta);
  fill_up(text, before.bytes.size());
  return news.folder->update(digest, StoredFile::meta, std::as_bytes(std::span(text))).ok() ? text.size() : 0;
}

std::uint64_t MetaLedger::flush(const Digest& digest) {
  std::optional<Line> news;
  {
    const std::lock_guard lock(mutex_);
    if (Line* noted = line(digest)) news = take(*noted);
  }
  return news ? write(digest, *news) : 0;
}

std::uint64_t MetaLedger::flush() {
  std::vector<std::pair<Digest, Line>> changed;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [digest, noted] : lines_) {
      if (auto news = take(noted)) changed.emplace_back(digest, std::move(*news));
    }
  }
  std::uint64_t bytes = 0;
  for (const auto& [digest, news] : changed) bytes += write(digest, news);
  return bytes;
}

}  // namespace kiln
