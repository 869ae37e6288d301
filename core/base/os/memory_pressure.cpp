#include "base/os/memory_pressure.hpp"

#include "base/os/process_limits.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace kiln {

namespace {

// A group without a limit says so in version 1 with a number close to 2^63.
constexpr std::uint64_t least_no_limit = 1ull << 60;

// What follows the word, where the word begins a line or stands after a blank.
template <class Number>
std::optional<Number> number_after(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (at == 0 || text[at - 1] == '\n' || text[at - 1] == ' ') return number_in<Number>(text.substr(at + word.size()));
  }
  return std::nullopt;
}

// "some avg10=1.23 avg60=…"
std::optional<double> stalled_percent_in(const std::string& text) {
  const auto percent = number_after<double>(text, "some avg10=");
  return percent && *percent >= 0 && *percent <= 100 ? percent : std::nullopt;
}

std::optional<std::uint64_t> bytes_in(const std::filesystem::path& path) {
  return number_in<std::uint64_t>(text_of_kernel_file(path));
}

struct Version {
  const char* limit;
  const char* soft_limit;  // throttled above it; nullptr: there is none
  const char* used;
  std::array<std::string_view, 2> of_files;  // in memory.stat
};

constexpr Version version_1{
    "memory.limit_in_bytes", nullptr, "memory.usage_in_bytes", {"total_inactive_file ", "total_active_file "}};
constexpr Version version_2{"memory.max", "memory.high", "memory.current", {"inactive_file ", "active_file "}};

std::optional<GroupUse> use_of(const std::filesystem::path& group, const Version& version) {
  auto limit = bytes_in(group / version.limit);
  if (version.soft_limit != nullptr) {
    const auto soft = bytes_in(group / version.soft_limit);
    if (soft) limit = std::min(limit.value_or(*soft), *soft);
  }
  const auto used = bytes_in(group / version.used);
  if (!limit || *limit == 0 || *limit >= least_no_limit || !used) return std::nullopt;
  const std::string statistics = text_of_kernel_file(group / "memory.stat");
  std::uint64_t kept = *used;
  for (const std::string_view word : version.of_files) {
    kept -= std::min(kept, number_after<std::uint64_t>(statistics, word).value_or(0));
  }
  return GroupUse{*limit, kept};
}

bool fuller(const GroupUse& a, const GroupUse& b) {
  return static_cast<double>(a.used) / static_cast<double>(a.limit) >
         static_cast<double>(b.used) / static_cast<double>(b.limit);
}

void look_through(const std::filesystem::path& mount, const std::string& path, const Version& version,
                  std::optional<GroupUse>& fullest) {
  for_each_group(mount, path, [&](const std::filesystem::path& group) {
    const auto use = use_of(group, version);
    if (use && (!fullest || fuller(*use, *fullest))) fullest = use;
  });
}

}  // namespace

MemoryReading read_memory(const MemorySources& sources) {
  MemoryReading reading;
  reading.stalled_percent = stalled_percent_in(text_of_kernel_file(sources.stalls));
  const std::string membership = text_of_kernel_file(sources.membership);
  if (const auto path = group_path_in(membership, "")) {
    const std::string own =
        text_of_kernel_file(sources.groups / std::filesystem::path(*path).relative_path() / "memory.pressure");
    const auto stalled = stalled_percent_in(own);
    if (stalled) reading.stalled_percent = std::max(reading.stalled_percent.value_or(0), *stalled);
    look_through(sources.groups, *path, version_2, reading.group);
  }
  if (const auto path = group_path_in(membership, "memory")) {
    look_through(sources.groups / "memory", *path, version_1, reading.group);
  }
  return reading;
}

namespace {

// Below this part of what is configured, evicting more would cost more memory in builds than it frees.
constexpr std::uint64_t least_part = 16;

double used_share(const MemoryReading& reading) {
  if (!reading.group) return 0;
  return static_cast<double>(reading.group->used) / static_cast<double>(reading.group->limit);
}

bool is_high(const MemoryReading& reading, const PressureRules& rules) {
  return reading.stalled_percent.value_or(0) >= rules.stalled_high || used_share(reading) >= rules.used_high;
}

bool is_low(const MemoryReading& reading, const PressureRules& rules) {
  return reading.stalled_percent.value_or(0) < rules.stalled_low && used_share(reading) < rules.used_low;
}

}  // namespace

PressureState decide(const PressureState& before, const MemoryReading& reading, std::uint64_t configured,
                     std::uint64_t held, std::uint64_t now_ns, const PressureRules& rules) {
  const auto between = static_cast<std::uint64_t>(rules.between_steps.count());
  if (before.step_ns && now_ns < *before.step_ns + between) return before;
  const std::uint64_t least = configured / least_part;
  if (is_high(reading, rules)) {
    // The first step takes half of whatever there is; those after it stop at the least that is of use.
    const std::uint64_t half = before.cap ? std::max(std::min(held, *before.cap) / 2, least) : held / 2;
    if (before.cap && half >= *before.cap) return before;
    return {half, now_ns};
  }
  if (before.cap && is_low(reading, rules)) {
    const std::uint64_t doubled = std::max(*before.cap * 2, least);
    if (doubled >= configured) return {std::nullopt, now_ns};
    return {doubled, now_ns};
  }
  return before;
}

std::uint64_t bound_of(const PressureState& state, const MemoryReading& reading, std::uint64_t configured,
                       const PressureRules& rules) {
  std::uint64_t bound = std::min(configured, state.cap.value_or(configured));
  if (reading.group) bound = std::min(bound, reading.group->limit / rules.most_of_limit);
  return bound;
}

namespace {

constexpr std::uint64_t between_looks_ns = 250'000'000;

}  // namespace

MemoryPressure::MemoryPressure(MemorySources sources, PressureRules rules)
    : sources_(std::move(sources)), rules_(rules) {}

bool MemoryPressure::is_due(std::uint64_t now_ns) noexcept {
  std::uint64_t due = due_ns_.load(std::memory_order_relaxed);
  return now_ns >= due && due_ns_.compare_exchange_strong(due, now_ns + between_looks_ns, std::memory_order_relaxed);
}

std::uint64_t MemoryPressure::bound(std::uint64_t configured, std::uint64_t held, std::uint64_t now_ns) {
  const MemoryReading reading = read_memory(sources_);
  const std::lock_guard lock(mutex_);
  state_ = decide(state_, reading, configured, held, now_ns, rules_);
  return bound_of(state_, reading, configured, rules_);
}

}  // namespace kiln
