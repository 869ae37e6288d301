#include "runtime/device_table.hpp"

#include "base/os/private_folder.hpp"
#include "base/os/process_limits.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/config_text.hpp>
#include <kiln/digest.hpp>

#include <algorithm>
#include <cstdio>
#include <new>

namespace kiln {
namespace {

constexpr std::uint64_t note_schema = 1;
constexpr EntryLimits limits{.payload = 64u << 10, .material = 64u << 10, .format = 16};
constexpr std::string_view format = "note";

std::string file_name_of(std::string_view material) { return sha256(material).hex() + ".note"; }

}  // namespace

NoteStore::NoteStore(const CacheConfig& config, std::string driver) : config_(config), driver_(std::move(driver)) {}

NoteStore::Place* NoteStore::open() {
  const std::lock_guard lock(mutex_);
  if (tried_) return place_ ? &*place_ : nullptr;
  tried_ = true;
  if (config_.directory.empty() || config_.key_file.empty() || has_borrowed_rights()) return nullptr;
  const Create create = config_.read_only ? Create::no : Create::yes;
  const Result<UniqueFd> root = open_folder(config_.directory, create);
  if (!root || !*root) return nullptr;
  Result<UniqueFd> folder = open_subfolder(root->get(), "notes", "folder notes", create);
  if (!folder || !*folder) return nullptr;
  const Result<SecretKey> secret =
      read_secret_key(config_.key_file, config_.read_only ? IfMissing::fail : IfMissing::create);
  if (!secret) return nullptr;
  place_.emplace(Place{std::move(*folder), EntryKey(*secret)});
  return &*place_;
}

std::string NoteStore::material_of(std::string_view name) const {
  KeyEncoder encoder;
  encoder.field("note_schema", note_schema);
  encoder.field("driver", driver_);
  encoder.field("name", name);
  return encoder.material();
}

std::optional<std::vector<std::byte>> NoteStore::find(std::string_view name) noexcept {
  try {
    const Place* place = open();
    if (place == nullptr) return std::nullopt;
    const std::string material = material_of(name);
    const FileContents file = read_file(place->folder.get(), file_name_of(material), limits.file());
    if (file.state != FileState::read) return std::nullopt;
    const DecodedEntry decoded = decode_entry(file.bytes, place->key, limits);
    if (decoded.rejection != Rejection::none || decoded.entry.material != material) return std::nullopt;
    auto payload = inflate_payload(decoded.entry);
    if (!payload) return std::nullopt;
    return std::move(*payload);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

void NoteStore::keep(std::string_view name, std::span<const std::byte> bytes) noexcept {
  try {
    const Place* place = config_.read_only ? nullptr : open();
    if (place == nullptr) return;
    const std::string material = material_of(name);
    EntryView entry;
    entry.format = format;
    entry.material = material;
    entry.stored = bytes;
    entry.compression = Compression::none;
    const auto encoded = encode_entry(entry, place->key, limits);
    // A note that cannot be kept is found out again: nobody needs to hear of it.
    if (encoded) (void)write_file(place->folder.get(), file_name_of(material), *encoded);
  } catch (const std::bad_alloc&) {
  }
}

namespace {

// "no such device (usable: cpu, opengl:0; unusable: amdgpu:0: no card)", and the nearest id where one is close.
Status unknown_device(std::string_view id, const std::vector<DeviceInfo>& all) {
  std::string usable, unusable;
  std::vector<std::string_view> ids;
  for (const DeviceInfo& device : all) {
    ids.push_back(device.id);
    if (device.usable) {
      usable += (usable.empty() ? "" : ", ") + device.id;
    } else {
      unusable += (unusable.empty() ? "" : "; ") + device.id + ": " + device.why_not;
    }
  }
  std::string message =
      "device '" + std::string(id) + "': no such device (usable: " + (usable.empty() ? "none" : usable);
  if (!unusable.empty()) message += "; unusable: " + unusable;
  message += ")";
  if (const auto nearest = config::close_word(id, ids)) message += "; nearest: " + std::string(*nearest);
  return not_found(std::move(message));
}

}  // namespace

DeviceTable::DeviceTable(const Config& config, const Registry& registry, Log log, WorkCounters& counters)
    : config_(config), registry_(registry), log_(log), counters_(counters) {
  for (const auto& [name, registered] : registry.drivers()) {
    OneDriver& driver = drivers_[name];
    driver.plugin = registered.plugin;
    driver.make = registered.make;
  }
}

DeviceTable::OneDriver* DeviceTable::driver_named(std::string_view id) {
  const auto at = drivers_.find(id.substr(0, id.find(':')));
  return at == drivers_.end() ? nullptr : &at->second;
}

std::optional<BuildSetup> DeviceTable::build_setup(const std::string& id) const {
  const auto at = drivers_.find(id.substr(0, id.find(':')));
  if (at == drivers_.end()) return std::nullopt;
  BuildSetup setup;
  setup.plugin = registry_.file_of(at->second.plugin);
  if (setup.plugin.empty()) return std::nullopt;
  setup.driver = at->first;
  setup.device = id;
  setup.cache_directory = config_.cache.directory;
  const auto keys = registry_.config_keys().find(at->second.plugin);
  if (keys != registry_.config_keys().end()) setup.settings = plugin_settings(config_, at->second.plugin, keys->second);
  return setup;
}

std::vector<DeviceInfo> DeviceTable::enumerate(const std::string& name, OneDriver& driver) {
  const std::lock_guard lock(driver.mutex);
  if (!driver.asked) {
    driver.devices.clear();
    const auto keys = registry_.config_keys().find(driver.plugin);
    PluginSettings settings;
    if (keys != registry_.config_keys().end()) settings = plugin_settings(config_, driver.plugin, keys->second);
    driver.notes = std::make_unique<NoteStore>(config_.cache, name);
    auto made = driver.make({log_, &counters_, config_.cache.directory, driver.notes.get(), std::move(settings)});
    if (made) {
      driver.driver = std::move(made).value();
      driver.devices = driver.driver->enumerate();
    } else {
      DeviceInfo absent;
      absent.id = name;
      absent.why_not = made.error().message;
      driver.devices.push_back(std::move(absent));
    }
    meet(driver);
    driver.asked = true;
  }
  std::vector<DeviceInfo> answer;
  const std::lock_guard known_lock(known_mutex_);
  for (const DeviceInfo& device : driver.devices) {
    const Known& known = known_.at(device.id);
    answer.push_back(known.driver == &driver ? as_it_is(known.info) : device);
  }
  return answer;
}

// An id names one device: who lists it first has it.
void DeviceTable::meet(OneDriver& driver) {
  const std::lock_guard known_lock(known_mutex_);
  for (DeviceInfo& device : driver.devices) {
    const OneDriver* first = known_.try_emplace(device.id, Known{device, &driver}).first->second.driver;
    if (first == &driver) {
      const auto lost = device.physical_id.empty() ? lost_hardware_.end() : lost_hardware_.find(device.physical_id);
      const Clock::time_point now = Clock::now();
      if (lost != lost_hardware_.end() && aside_.why_not(lost->second.id, now)) lose_with(lost->second, device.id, now);
      continue;
    }
    device.usable = false;
    device.why_not = "plugin '" + driver.plugin + "' lists the device " + device.id + ", which plugin '" +
                     first->plugin + "' has already";
    log_.write(LogLevel::warning, "runtime", device.why_not);
    refused_.push_back(device);
  }
}

void DeviceTable::lose_with(const LostHardware& lost, const std::string& id, Clock::time_point now) {
  aside_.put(id, "it is the hardware of " + lost.id + ", which was lost: " + lost.why, now);
  gone_with_another_.insert(id);
}

DeviceInfo DeviceTable::as_it_is(const DeviceInfo& known) const {
  DeviceInfo device = known;
  if (!device.usable) return device;
  if (auto why_not = aside_.why_not(device.id, Clock::now())) {
    device.usable = false;
    device.why_not = std::move(*why_not);
  }
  return device;
}

std::vector<DeviceInfo> DeviceTable::enumerate_for(std::string_view id) {
  OneDriver* driver = driver_named(id);
  if (driver == nullptr) return enumerate_all();
  return enumerate(std::string(id.substr(0, id.find(':'))), *driver);
}

std::vector<DeviceInfo> DeviceTable::enumerate_all() {
  std::vector<DeviceInfo> all;
  for (auto& [name, driver] : drivers_) {
    for (DeviceInfo& device : enumerate(name, driver)) all.push_back(std::move(device));
  }
  return all;
}

std::vector<DeviceInfo> DeviceTable::open_all() {
  for (const DeviceInfo& device : enumerate_all()) {
    if (device.usable) (void)open(device.id);  // the reason why it cannot be opened stands in the list
  }
  return enumerate_all();
}

std::vector<DeviceInfo> DeviceTable::known() const {
  const std::lock_guard lock(known_mutex_);
  std::vector<DeviceInfo> all;
  for (const auto& entry : known_) all.push_back(as_it_is(entry.second.info));
  all.insert(all.end(), refused_.begin(), refused_.end());
  return all;
}

Status DeviceTable::check_name(std::string_view id) {
  const auto is_known = [&] {
    const std::lock_guard lock(known_mutex_);
    return known_.contains(id);
  };
  if (is_known()) return {};
  if (OneDriver* driver = driver_named(id)) {
    (void)enumerate_for(id);
    if (is_known()) return {};
    const std::lock_guard lock(driver->mutex);
    if (driver->driver == nullptr) return {};
  }
  const std::vector<DeviceInfo> all = enumerate_all();
  return is_known() ? Status{} : unknown_device(id, all);
}

std::string DeviceTable::plugin_of(std::string_view id) const {
  const std::lock_guard lock(known_mutex_);
  const auto at = known_.find(id);
  return at == known_.end() ? std::string() : at->second.driver->plugin;
}

bool DeviceTable::is_open(std::string_view id) const {
  const auto at = drivers_.find(id.substr(0, id.find(':')));
  if (at == drivers_.end()) return false;
  const std::lock_guard lock(at->second.mutex);
  return at->second.open.contains(id);
}

Result<DeviceTable::OneDriver*> DeviceTable::owner_of(std::string_view id) {
  if (Status status = check_name(id); !status.ok()) return status;
  (void)enumerate_for(id);
  const std::lock_guard known_lock(known_mutex_);
  auto at = known_.find(id);
  if (at == known_.end()) at = known_.find(id.substr(0, id.find(':')));  // its driver could not start
  if (at == known_.end()) return internal_error("device " + std::string(id) + ": its driver lists no devices");
  const DeviceInfo device = as_it_is(at->second.info);
  if (!device.usable) return unavailable("device " + std::string(id) + ": " + device.why_not);
  return at->second.driver;
}

Result<std::shared_ptr<Device>> DeviceTable::open(std::string_view id) {
  const auto owner = owner_of(id);
  if (!owner) return owner.error();
  OneDriver& driver = **owner;
  const std::lock_guard lock(driver.mutex);
  if (const auto at = driver.open.find(id); at != driver.open.end()) return at->second;
  auto opened = driver.driver->open(id);
  if (!opened) {
    const std::lock_guard known_lock(known_mutex_);
    if (opened.error().code == StatusCode::device_lost || opened.error().code == StatusCode::timeout) {
      aside_.put(id, opened.error().message, Clock::now());
    } else {
      DeviceInfo& known = known_.find(id)->second.info;
      known.usable = false;
      known.why_not = opened.error().message;
    }
    return std::move(opened).error().within("device " + std::string(id));
  }
  std::shared_ptr<Device> device = std::move(opened).value();
  driver.open.emplace(std::string(id), device);
  const std::lock_guard known_lock(known_mutex_);
  known_.find(id)->second.info = device->info();
  return device;
}

std::string DeviceTable::set_aside(std::string_view id, const Status& why, const Device* used) {
  std::vector<std::pair<std::string, OneDriver*>> lost_with_it;
  std::chrono::nanoseconds pause{0};
  OneDriver* driver = nullptr;
  {
    const std::lock_guard known_lock(known_mutex_);
    const auto at = known_.find(id);
    if (at == known_.end()) return {};
    driver = at->second.driver;
  }
  {
    // One step for those who use the device: nobody opens it anew between the pause and the end of the old one.
    const std::lock_guard lock(driver->mutex);
    const auto is_used = [&](const auto& device) { return device.get() == used; };
    if (used != nullptr && std::ranges::any_of(driver->lost, is_used)) return {};
    const bool is_lost = why.code == StatusCode::device_lost;
    const std::lock_guard known_lock(known_mutex_);
    const Clock::time_point now = Clock::now();
    pause = aside_.put(id, why.message, now);
    gone_with_another_.erase(std::string(id));
    if (is_lost && used != nullptr) close(*driver, id);
    const auto at = known_.find(id);
    if (is_lost && at != known_.end() && !at->second.info.physical_id.empty()) {
      const LostHardware& lost = lost_hardware_[at->second.info.physical_id] = {std::string(id), why.message};
      for (const auto& [other, known] : known_) {
        if (other == id || known.info.physical_id != at->second.info.physical_id) continue;
        lose_with(lost, other, now);
        lost_with_it.emplace_back(other, known.driver);
      }
    }
  }
  for (const auto& [other, its_driver] : lost_with_it) {
    const std::lock_guard lock(its_driver->mutex);
    close(*its_driver, other);
  }
  log_.write(LogLevel::warning, "runtime",
             "device " + std::string(id) + " is set aside for " + pause_text(pause) + ": " + why.message);
  return pause_text(pause);
}

// It is opened anew the next time. Programs in the cache and jobs in flight belong to the one that was lost: it stays.
void DeviceTable::close(OneDriver& driver, std::string_view id) {
  const auto at = driver.open.find(id);
  if (at == driver.open.end()) return;
  driver.lost.push_back(std::move(at->second));
  driver.open.erase(at);
}

bool DeviceTable::is_set_aside(std::string_view id) const {
  const std::lock_guard known_lock(known_mutex_);
  return aside_.why_not(id, Clock::now()).has_value();
}

bool DeviceTable::try_again(std::string_view id) {
  const std::lock_guard known_lock(known_mutex_);
  const auto at = known_.find(id);
  if (at == known_.end() || !at->second.info.usable) return false;
  const Clock::time_point now = Clock::now();
  if (aside_.why_not(id, now) && gone_with_another_.contains(id)) return false;
  aside_.try_again(id, now);  // another job may have done so already
  return true;
}

void DeviceTable::failed(std::string_view id, const Status& why, const Device* used) {
  {
    const std::lock_guard known_lock(known_mutex_);
    if (!aside_.failed(id)) return;
  }
  std::string context = std::to_string(SetAside::most_failures);
  context += " jobs failed in a row, the last";
  (void)set_aside(id, why.within(context), used);
}

void DeviceTable::served(std::string_view id) {
  const std::lock_guard known_lock(known_mutex_);
  aside_.served(id, Clock::now());
}

std::string pause_text(std::chrono::nanoseconds pause) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(pause).count());
  return text;
}

std::chrono::nanoseconds SetAside::put(std::string_view id, std::string why, Clock::time_point now) {
  Entry& entry = entries_[std::string(id)];
  if (now < entry.until) return entry.until - now;  // told twice of one loss
  entry.pause = entry.pause.count() == 0 ? std::chrono::nanoseconds(first_pause)
                                         : std::min<std::chrono::nanoseconds>(2 * entry.pause, longest_pause);
  entry.until = now + entry.pause;
  entry.why = std::move(why);
  entry.failures = 0;
  return entry.pause;
}

std::optional<std::string> SetAside::why_not(std::string_view id, Clock::time_point now) const {
  const auto at = entries_.find(id);
  if (at == entries_.end() || now >= at->second.until) return std::nullopt;
  return "set aside for another " + pause_text(at->second.until - now) + ": " + at->second.why;
}

void SetAside::try_again(std::string_view id, Clock::time_point now) {
  const auto at = entries_.find(id);
  if (at != entries_.end()) at->second.until = std::min(at->second.until, now);
}

bool SetAside::failed(std::string_view id) { return ++entries_[std::string(id)].failures >= most_failures; }

void SetAside::served(std::string_view id, Clock::time_point now) {
  const auto at = entries_.find(id);
  if (at == entries_.end()) return;
  at->second.failures = 0;
  if (now > at->second.until + at->second.pause) at->second.pause = std::chrono::nanoseconds(0);
}

}  // namespace kiln
