#include "cache/process_table.hpp"

#include "base/os/file_lock.hpp"
#include "base/os/private_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include <kiln/clock.hpp>

namespace kiln {

namespace {

constexpr std::size_t word_bytes = 9;  // "building " and "loading  "
constexpr std::size_t mark_digits = 64;
constexpr std::size_t seconds_at = word_bytes + mark_digits + 1;
constexpr std::string_view process_word = "process ";

std::string_view word_of(Doing doing) noexcept { return doing == Doing::loading ? "loading  " : "building "; }

Doing doing_of(std::string_view word) noexcept {
  if (word == word_of(Doing::loading)) return Doing::loading;
  return word == word_of(Doing::building) ? Doing::building : Doing::invalid;
}

void put_hex(char* to, const Digest& digest) noexcept {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const std::uint8_t byte : digest.bytes) {
    *to++ = digits[byte >> 4];
    *to++ = digits[byte & 15];
  }
}

template <class Number>
std::optional<Number> number_at(std::string_view text, std::size_t at) noexcept {
  Number number{};
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  return error == std::errc() && number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

MarkText no_mark() noexcept {
  MarkText text;
  text.fill(' ');
  text.back() = '\n';
  return text;
}

MarkText encode_mark(const ProcessMark& mark) noexcept {
  MarkText text = no_mark();
  std::memcpy(text.data(), word_of(mark.doing).data(), word_bytes);
  put_hex(text.data() + word_bytes, mark.digest);
  std::to_chars(text.data() + seconds_at, text.data() + text.size() - 1, mark.since_s);
  return text;
}

std::optional<ProcessMark> decode_mark(std::string_view text) noexcept {
  if (text.size() != mark_bytes) return std::nullopt;
  const Doing doing = doing_of(text.substr(0, word_bytes));
  const auto digest = Digest::from_hex(text.substr(word_bytes, mark_digits));
  const auto since = number_at<std::int64_t>(text, seconds_at);
  if (doing == Doing::invalid || !digest || !since) return std::nullopt;
  return ProcessMark{doing, *digest, *since};
}

std::string encode_slot(long pid, std::int64_t since_s) {
  std::string slot(slot_bytes, ' ');
  if (pid > 0) {
    const std::string header = std::string(process_word) + std::to_string(pid) + " since " + std::to_string(since_s);
    slot.replace(0, header.size(), header);
  }
  slot[slot_header_bytes - 1] = '\n';
  for (std::size_t mark = 1; mark <= marks_per_slot; ++mark) slot[slot_header_bytes + mark * mark_bytes - 1] = '\n';
  return slot;
}

std::optional<long> pid_of_slot(std::string_view slot) noexcept {
  if (slot.size() < slot_header_bytes || !slot.starts_with(process_word)) return std::nullopt;
  return number_at<long>(slot.substr(0, slot_header_bytes), process_word.size());
}

std::vector<ProcessMark> marks_of_slot(std::string_view slot) {
  std::vector<ProcessMark> marks;
  for (std::size_t at = slot_header_bytes; at + mark_bytes <= std::min(slot.size(), slot_bytes); at += mark_bytes) {
    if (const auto mark = decode_mark(slot.substr(at, mark_bytes))) marks.push_back(*mark);
  }
  return marks;
}

namespace {

constexpr std::uint64_t most_slots = 256;
constexpr std::uint64_t slot_locks = 1ull << 62;
constexpr std::uint32_t all_marks = (1u << marks_per_slot) - 1;

std::uint64_t byte_of(const Digest& digest) noexcept {
  std::uint64_t first = 0;
  std::memcpy(&first, digest.bytes.data(), sizeof first);
  return first >> 2;
}

// By the exact clock: time() follows it by up to a tick, and would put a mark before the file that it is about.
std::int64_t seconds_of_clock() noexcept {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch()).count();
}

bool write_at(int file, std::span<const char> text, std::uint64_t at) noexcept {
  ssize_t written = -1;
  do written = pwrite(file, text.data(), text.size(), static_cast<off_t>(at));
  while (written < 0 && errno == EINTR);
  return written == static_cast<ssize_t>(text.size());
}

}  // namespace

LoadGuard& LoadGuard::operator=(LoadGuard&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(place_, other.place_);
  return *this;
}

LoadGuard::~LoadGuard() {
  if (table_ != nullptr) table_->unmark(place_);
}

Lease::Lease(Lease&& other) noexcept
    : state_(std::exchange(other.state_, State::none)),
      table_(std::exchange(other.table_, nullptr)),
      byte_(other.byte_),
      mark_(std::move(other.mark_)) {}

Lease::~Lease() {
  if (table_ == nullptr) return;
  mark_ = LoadGuard();  // before somebody else can have the lease
  table_->release(byte_);
}

ProcessTable::ProcessTable(DeviceFolder& folder, const ProcessSharing& sharing, Log log, OnOrphan on_orphan)
    : folder_(folder), sharing_(sharing), log_(log), on_orphan_(std::move(on_orphan)) {}

ProcessTable::~ProcessTable() {
  // Closing lets all locks go; a name that is left in the slot would only mislead people.
  if (slot_) write_at(file_.get(), encode_slot(0, 0), *slot_ * slot_bytes);
}

ProcessTable::State ProcessTable::open(Create create) {
  const State before = state_.load(std::memory_order_acquire);
  if (before != State::unopened) return before;
  const std::lock_guard lock(mutex_);
  if (state_ != State::unopened) return state_;
  const Result<int> folder = folder_.open(create);
  if (!folder) return switch_off(folder.error().message);
  if (*folder < 0) return State::unopened;
  const Result<FilesystemMagic> filesystem = sharing_.filesystem(*folder);
  if (!filesystem) return switch_off(filesystem.error().message);
  if (!locks_hold_on(*filesystem)) {
    return switch_off("the folder is on " + name_of_filesystem(*filesystem) + ", whose locks are not reliable");
  }
  Result<UniqueFd> file =
      open_shared_file(*folder, processes_name, "file " + folder_.name() + "/" + processes_name, create);
  if (!file) return switch_off(file.error().message);
  if (!*file) return State::unopened;
  file_ = std::move(*file);
  claim_slot();
  state_.store(State::open, std::memory_order_release);
  return State::open;
}

ProcessTable::State ProcessTable::switch_off(const std::string& why) {
  log_.write(LogLevel::info, "cache",
             "folder " + folder_.name() + ": processes do not share their builds and records of crashes: " + why);
  state_.store(State::off, std::memory_order_release);
  return State::off;
}

void ProcessTable::claim_slot() {
  const std::uint64_t used_slots = slots_in_file();
  for (std::uint64_t slot = 0; slot < most_slots; ++slot) {
    if (slot_ && slot >= used_slots) return;
    const LockAnswer answer = try_lock_byte(file_.get(), slot_locks + slot);
    if (answer == LockAnswer::failed) return;
    if (answer == LockAnswer::busy) continue;  // its process lives
    const std::string left = read_slot(slot);  // after the lock: nobody writes it any more
    look_after(left);
    const bool wipe = pid_of_slot(left).has_value() || !marks_of_slot(left).empty();
    // Written whole: what is allocated now cannot fail later for want of room.
    if (!slot_ && write_at(file_.get(), encode_slot(getpid(), seconds_of_clock()), slot * slot_bytes)) {
      slot_ = slot;
      continue;
    }
    if (wipe) write_at(file_.get(), encode_slot(0, 0), slot * slot_bytes);
    unlock_byte(file_.get(), slot_locks + slot);
    if (!slot_) return;  // this file cannot be written
  }
}

void ProcessTable::look_after(std::string_view slot) {
  for (const ProcessMark& mark : marks_of_slot(slot)) {
    if (mark.doing == Doing::loading) on_orphan_(mark);
  }
}

std::uint64_t ProcessTable::slots_in_file() const noexcept {
  struct stat at {};
  if (fstat(file_.get(), &at) != 0) return 0;
  return std::min(most_slots, (static_cast<std::uint64_t>(at.st_size) + slot_bytes - 1) / slot_bytes);
}

std::string ProcessTable::read_slot(std::uint64_t slot) const {
  std::string text(slot_bytes, '\0');
  const ssize_t got = pread(file_.get(), text.data(), text.size(), static_cast<off_t>(slot * slot_bytes));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

Lease ProcessTable::try_lease(const Digest& digest) {
  if (open(Create::yes) != State::open) return Lease(Lease::State::none);
  const std::uint64_t byte = byte_of(digest);
  {
    const std::lock_guard lock(mutex_);
    if (!leased_.insert(byte).second) return Lease(Lease::State::busy);
    const LockAnswer answer = try_lock_byte(file_.get(), byte);
    if (answer != LockAnswer::taken) {
      leased_.erase(byte);
      return Lease(answer == LockAnswer::busy ? Lease::State::busy : Lease::State::none);
    }
  }
  return Lease(*this, byte, mark(Doing::building, digest));
}

void ProcessTable::release(std::uint64_t byte) noexcept {
  const std::lock_guard lock(mutex_);
  unlock_byte(file_.get(), byte);
  leased_.erase(byte);
}

LoadGuard ProcessTable::loading(const Digest& digest) {
  if (open(Create::yes) != State::open) return {};
  return mark(Doing::loading, digest);
}

LoadGuard ProcessTable::mark(Doing doing, const Digest& digest) {
  if (!slot_) return {};
  std::uint32_t used = marks_.load(std::memory_order_relaxed);
  std::size_t place = 0;
  do {
    if (used == all_marks) return {};
    place = static_cast<std::size_t>(std::countr_one(used));
  } while (!marks_.compare_exchange_weak(used, used | (1u << place), std::memory_order_acquire));
  LoadGuard made(*this, place);
  const std::uint64_t at = *slot_ * slot_bytes + slot_header_bytes + place * mark_bytes;
  if (!write_at(file_.get(), encode_mark({doing, digest, seconds_of_clock()}), at)) return {};
  return made;
}

void ProcessTable::unmark(std::size_t place) noexcept {
  write_at(file_.get(), no_mark(), *slot_ * slot_bytes + slot_header_bytes + place * mark_bytes);
  marks_.fetch_and(~(1u << place), std::memory_order_release);
}

namespace {

// The kernel has no lock wait with a timeout that leaves other threads alone. A try costs a microsecond.
constexpr std::chrono::microseconds first_pause{50};
constexpr std::chrono::microseconds longest_pause{2000};

// The lease, or nothing where patience ended before somebody else's did.
std::optional<Lease> wait_for(ProcessTable& table, const LeaseRequest& request) {
  const Deadline deadline = Deadline::after(request.patience);
  for (std::chrono::nanoseconds pause = first_pause; !deadline.passed();) {
    std::this_thread::sleep_for(std::min(pause, deadline.left()));
    if (Lease lease = table.try_lease(request.digest); lease.state() != Lease::State::busy) return lease;
    pause = std::min<std::chrono::nanoseconds>(pause * 2, longest_pause);
  }
  return std::nullopt;
}

}  // namespace

BuildLease acquire_lease(ProcessTable& table, const LeaseRequest& request, CacheCounters& counters) {
  Lease lease = table.try_lease(request.digest);
  if (lease.state() == Lease::State::none) return {};
  if (lease.state() == Lease::State::held) {
    if (request.published()) return {LeaseState::published};  // since it was looked for
    return {LeaseState::ours, std::move(lease)};
  }
  if (request.if_busy == IfBusy::leave) return {LeaseState::busy};
  counters.lease_waits.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t start = now_ns();
  std::optional<Lease> waited_for = wait_for(table, request);
  counters.lease_wait_ns.fetch_add(now_ns() - start, std::memory_order_relaxed);
  if (!waited_for) {
    counters.lease_timeouts.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  if (request.published()) return {LeaseState::published};
  // Its holder died, or could not build or store it.
  counters.lease_takeovers.fetch_add(1, std::memory_order_relaxed);
  return {LeaseState::ours, std::move(*waited_for)};
}

}  // namespace kiln
