#include "amdgpu_pm4/device/queue.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/device/submission.hpp"
#include "amdgpu_pm4/safety/validator.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

// Of a sleep in the kernel, after which a reset is looked for: a device that hangs may never pass the point.
constexpr std::chrono::milliseconds slice{250};
constexpr std::chrono::seconds patience_at_the_end{10};

constexpr std::size_t most_kept_submissions = 16, most_kept_passes = 1 << 14;
// After so many others a kept submission makes room. More than both kinds that are remembered, so that none comes back
// just when it has gone.
constexpr std::uint64_t submissions_unused = 128;
// Of the command buffers of a kept submission, which should be one.
constexpr std::uint64_t least_kept_chunk_bytes = 4 << 10, dispatch_bytes = 256, most_chunk_bytes = 1 << 20;

}  // namespace

Queue::Queue(Winsys& winsys, Quarantine& quarantine, QueueSettings settings)
    : winsys_(winsys),
      quarantine_(quarantine),
      settings_(std::move(settings)),
      clock_(winsys),
      stream_(settings_.shape, *this) {}

Result<std::unique_ptr<Queue>> Queue::create(Winsys& winsys, Quarantine& quarantine, QueueSettings settings) {
  std::unique_ptr<Queue> queue(new Queue(winsys, quarantine, std::move(settings)));
  if (Status status = queue->open(); !status.ok()) return status;
  return queue;
}

Status Queue::open() {
  ring_ = static_cast<std::uint32_t>(std::countr_zero(winsys_.facts().compute.rings));
  auto timeline = winsys_.create_timeline();
  if (!timeline) return timeline.error();
  timeline_ = std::move(timeline).value();
  if (Status status = replace_context(); !status.ok()) return status;
  auto commands = RingBuffer::create(winsys_, BufferUse::commands, settings_.commands_bytes);
  if (!commands) return commands.error();
  commands_ = std::move(commands).value();
  auto arguments = RingBuffer::create(winsys_, BufferUse::arguments, settings_.arguments_bytes);
  if (!arguments) return arguments.error();
  arguments_ = std::move(arguments).value();
  auto reports = RingBuffer::create(winsys_, BufferUse::reports, settings_.reports_bytes);
  if (!reports) return reports.error();
  reports_ = std::move(reports).value();
  return {};
}

Queue::~Queue() {
  const std::lock_guard lock(mutex_);
  const Deadline deadline = Deadline::after(patience_at_the_end);
  // What never ends keeps its memory until the kernel driver has given it up.
  if (!in_flight_.empty()) (void)timeline_->wait(in_flight_.back().value, deadline);
}

Status Queue::alive() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

Result<std::optional<std::uint64_t>> Queue::submit_again(const DispatchKey& key) {
  const std::lock_guard lock(mutex_);
  if (!lost_.ok()) return lost_;
  collect_passed();
  if (!lost_.ok()) return lost_;
  const auto equal = std::ranges::find_if(kept_, [&](const std::shared_ptr<KeptSubmission>& kept) {
    return kept->key.hash == key.hash && kept.use_count() == 1 && kept->key == key;
  });
  if (equal == kept_.end()) return std::optional<std::uint64_t>();
  KeptSubmission& kept = **equal;
  if (kept.suspicions != quarantine_.suspicions()) {
    kept_.erase(equal);  // its passes are grouped by what was suspected then
    return std::optional<std::uint64_t>();
  }
  InFlight work;
  work.value = results_.next();
  work.context = context_;
  work.passes = kept.passes;
  work.stamps = Stamps(kept.stamps.memory, kept.stamps.address);
  work.kept = *equal;
  for (const auto& kernel : kept.kernels) work.kernels.push_back(kernel.lock());
  for (const auto& kernel : work.kernels) {
    if (Status refused = check_quarantine(*kernel); !refused.ok()) return refused;
  }
  for (const auto& buffer : kept.buffers) work.buffers.push_back(buffer.lock());
  kept.last_use = ++keyed_;
  const std::uint64_t value = work.value;
  const Status status = hand_over(std::move(work), kept.commands, kept.handles);
  if (status.code == StatusCode::device_lost) lose(status.message);
  if (!lost_.ok()) return lost_;
  // submit() gives the device a new context, or waits until memory comes free.
  const bool may_pass = status.code == StatusCode::cancelled || status.code == StatusCode::unavailable;
  if (may_pass && !(status.code == StatusCode::unavailable && in_flight_.empty()))
    return std::optional<std::uint64_t>();
  if (!status.ok()) return status.within(settings_.device);
  results_.begin();
  return std::optional(value);
}

Status Queue::check_quarantine(const LoadedKernel& kernel) const {
  if (!quarantine_.holds(kernel.quarantine_key)) return {};
  return quarantine_.check(kernel.quarantine_key, kernel.name()).within(settings_.device);
}

Result<std::uint64_t> Queue::submit(const std::vector<BoundPass>& passes, DispatchKey key) {
  const std::lock_guard lock(mutex_);
  if (!lost_.ok()) return lost_;
  collect_passed();
  const LoadedKernel* checked = nullptr;
  for (const BoundPass& pass : passes) {
    if (pass.kernel.get() == checked) continue;
    checked = pass.kernel.get();
    if (Status refused = check_quarantine(*checked); !refused.ok()) return refused;
  }
  std::shared_ptr<KeptSubmission> kept;
  if (!key.words.empty()) ++keyed_;
  if (!key.words.empty() && passes.size() <= most_kept_passes && came_before(key.hash) && room_to_keep(key)) {
    kept = std::make_shared<KeptSubmission>();
    kept->key = std::move(key);
  }
  Status status;
  for (int attempt = kept != nullptr ? 0 : 1; attempt < 3; ++attempt) {
    if (!lost_.ok()) return lost_;
    const std::uint64_t value = results_.next();
    status = try_submit(passes, kept.get());
    if (status.ok()) {
      results_.begin();
      if (kept != nullptr) {
        kept->last_use = keyed_;
        in_flight_.back().kept = kept;
        kept_.push_back(std::move(kept));
      }
      return value;
    }
    for (RingBuffer* ring : {commands_.get(), arguments_.get(), reports_.get()}) ring->space().give_back(value);
    const bool lacks_memory = status.code == StatusCode::unavailable;
    if (lacks_memory && std::exchange(kept, nullptr) != nullptr) continue;  // perhaps that of its own alone
    if (status.code == StatusCode::device_lost) {
      lose(status.message);
    } else if (status.code == StatusCode::cancelled) {
      recover();
    } else if (status.code == StatusCode::unavailable && !in_flight_.empty()) {
      while (!in_flight_.empty() && wait_for_oldest().ok()) {  // memory may come free
      }
    } else {
      break;
    }
  }
  if (status.code == StatusCode::cancelled) status.code = StatusCode::unavailable;
  return lost_.ok() ? status.within(settings_.device) : lost_;
}

Result<FenceResult> Queue::wait(std::uint64_t value, Deadline deadline) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (auto result = results_.take(value, oldest())) return std::move(*result);
    }
    const Deadline until = deadline.left() < slice ? deadline : Deadline::after(slice);
    const Status waited = timeline_->wait(value, until);
    const std::lock_guard lock(mutex_);
    if (waited.code == StatusCode::device_lost) lose(waited.message);
    if (waited.ok()) {
      while (oldest() <= value && !in_flight_.empty()) resolve_oldest();
    } else {
      look_for_reset();
    }
    if (auto result = results_.take(value, oldest())) return std::move(*result);
    if (deadline.passed()) {
      return timed_out("submission " + std::to_string(value) +
                       ": not finished by its deadline; it may still be running");
    }
    if (!waited.ok() && waited.code != StatusCode::timeout) return waited.within(settings_.device);
  }
}

Result<UniqueFd> Queue::export_fence(std::uint64_t value) {
  const std::lock_guard lock(mutex_);
  if (!lost_.ok()) return lost_;
  if (value == 0 || value >= results_.next()) {
    return not_found(settings_.device + ": submission " + std::to_string(value) + ": never made; the last is " +
                     std::to_string(results_.next() - 1));
  }
  auto fence = timeline_->export_sync_file(value);
  if (!fence) return std::move(fence).error().within(settings_.device);
  return fence;
}

Status Queue::wait_for_fence(int sync_file) {
  const std::lock_guard lock(mutex_);
  if (!lost_.ok()) return lost_;
  if (others_ == nullptr) {
    auto made = winsys_.create_timeline();
    if (!made) return std::move(made).error().within(settings_.device);
    others_ = std::move(made).value();
  }
  Status status = others_->import_sync_file(last_other_ + 1, sync_file);
  if (!status.ok()) return std::move(status).within(settings_.device);
  awaited_ = {others_->handle(), ++last_other_};  // a point is passed after those before it
  return {};
}

// What Queue does with submissions that ended, and with a device that was reset.

namespace {

// Between a point that is passed and the outcome that the kernel driver tells of the same work.
constexpr std::chrono::seconds outcome_patience{1};
constexpr std::chrono::seconds room_patience{60};    // the kernel driver gives up a compute job after as long
constexpr std::chrono::seconds cancel_patience{10};  // for what a reset cancels to be told so
constexpr std::uint64_t reset_interval_ns = 100'000'000;

}  // namespace

void Queue::collect_passed() {
  if (in_flight_.empty()) return;
  const auto passed = timeline_->passed();
  if (!passed) {
    if (passed.error().code == StatusCode::device_lost) lose(passed.error().message);
    return;
  }
  while (!in_flight_.empty() && in_flight_.front().value <= *passed) resolve_oldest();
}

void Queue::look_for_reset() {
  const std::uint64_t now = now_ns();
  if (in_flight_.empty() || now < reset_looked_for_ns_ + reset_interval_ns) return;
  reset_looked_for_ns_ = now;
  const auto state = context_->reset_state();
  if (!state || !state->reset || state->in_progress) return;
  while (!in_flight_.empty()) {
    const InFlight& work = in_flight_.front();
    if (work.context->outcome(work.number, ring_, {Clock::now()}).code == StatusCode::timeout) return;
    resolve_oldest();
  }
}

void Queue::resolve_oldest() {
  const InFlight work = std::move(in_flight_.front());
  in_flight_.pop_front();
  Status how = work.context->outcome(work.number, ring_, Deadline::after(outcome_patience));
  // The stamps are the device's own word for it: work that was thrown away may be told as done.
  if (how.ok() && work.stamps.last() == 0) how = internal_error("told as done, and its last pass has not ended");
  if (how.ok()) {
    const std::uint64_t begin = work.stamps.first();
    results_.finish(work.value, FenceResult{clock_.ns_between(begin, work.stamps.last()), clock_.on_host_clock(begin)});
  } else {
    fail(work, how);
  }
  for (RingBuffer* ring : {commands_.get(), arguments_.get(), reports_.get()}) ring->space().passed(work.value);
}

void Queue::fail(const InFlight& work, const Status& how) {
  const std::string what = settings_.device + ": submission " + std::to_string(work.value);
  if (!lost_.ok()) {
    results_.finish(work.value, lost_);
    return;
  }
  if (work.context != context_) {  // it was queued behind the one that hung
    results_.finish(work.value, unavailable(what + " was cancelled: " + last_reset_));
    return;
  }
  const auto state = context_->reset_state();
  if (how.code == StatusCode::device_lost || !state || state->vram_lost) {
    const std::string why = !state                                ? state.error().message
                            : how.code == StatusCode::device_lost ? how.message
                                                                  : "its memory was lost in a reset";
    lose(state ? blame(work, how, *state) + "; " + why : why);
    results_.finish(work.value, lost_);
    return;
  }
  last_reset_ = blame(work, how, *state);
  settings_.log.write(LogLevel::warning, "amdgpu_pm4", what + ": " + last_reset_);
  results_.finish(work.value, unavailable(what + ": " + last_reset_));
  if (Status status = replace_context(); !status.ok()) lose("no new context after a reset: " + status.message);
}

// Says what happened, and puts who did it into quarantine where that is certain.
std::string Queue::blame(const InFlight& work, const Status& how, const ResetState& state) {
  if (state.reset && !state.guilty) return "another program's work had the device reset (" + how.message + ")";
  InFlight::Passes passes = work.unfinished();
  // The kernel driver knows that this was it; what was written before the reset may be lost.
  if (passes.begin == passes.end && state.guilty) passes = {0, work.passes->kernel_of.size()};
  if (passes.begin == passes.end) return "it failed, and none of its passes was running (" + how.message + ")";
  std::set<Digest> kernels;
  for (std::size_t i = passes.begin; i < passes.end; ++i) kernels.insert(work.kernel_of(i).quarantine_key);
  std::string where = "pass " + std::to_string(passes.begin);
  if (passes.end - passes.begin > 1) where += " to " + std::to_string(passes.end - 1);
  const std::string name = work.kernel_of(passes.begin).name();
  // A device that names a fault has stopped at it; one that names none, or its watchdog, has hung.
  const bool stopped =
      !state.fault.empty() && !state.fault.starts_with("watchdog") && !state.fault.starts_with("planted");
  const std::string did = stopped ? " was stopped by a fault" : " hung the device";
  const std::string why = " (" + (state.fault.empty() ? how.message : state.fault) + ")";
  if (kernels.size() == 1) {
    quarantine_.add(*kernels.begin());
    return where + ": " + name + did + " and is in quarantine" + why;
  }
  for (const Digest& kernel : kernels) quarantine_.suspect(kernel);
  return where + ": " + name + " or one of " + std::to_string(kernels.size() - 1) + " others" + did +
         "; each runs alone from now on" + why;
}

Status Queue::replace_context() {
  auto context = winsys_.create_context(Priority::normal);
  if (!context) return context.error();
  context_ = std::move(context).value();
  return {};
}

// The kernel driver refuses the context: all that is in flight ends soon, one way or the other.
void Queue::recover() {
  const std::shared_ptr<Context> refused = context_;
  while (!in_flight_.empty()) {
    const Status waited = timeline_->wait(in_flight_.front().value, Deadline::after(cancel_patience));
    if (!waited.ok()) return lose("what a reset cancelled never ended: " + waited.message);
    resolve_oldest();
    if (!lost_.ok()) return;
  }
  if (context_ != refused) return;  // the one that hung was among them
  const auto state = context_->reset_state();
  if (!state) return lose(state.error().message);
  if (state->vram_lost) return lose("its memory was lost in a reset");
  last_reset_ = "the device was reset";
  settings_.log.write(LogLevel::warning, "amdgpu_pm4", settings_.device + ": " + last_reset_ + " between submissions");
  if (Status status = replace_context(); !status.ok()) lose("no new context after a reset: " + status.message);
}

void Queue::lose(std::string why) {
  if (!lost_.ok()) return;
  lost_ = device_lost(settings_.device + ": " + why);
  settings_.log.write(LogLevel::error, "amdgpu_pm4", lost_.message);
  for (const InFlight& work : in_flight_) results_.finish(work.value, lost_);
  in_flight_.clear();
}

Status Queue::wait_for_oldest() {
  const Status waited = timeline_->wait(in_flight_.front().value, Deadline::after(room_patience));
  if (waited.code == StatusCode::device_lost) return waited;
  if (!waited.ok()) return unavailable("there is no room for another submission: " + waited.message);
  resolve_oldest();
  return lost_;
}

// How Queue makes a submission out of passes.

namespace {

constexpr std::uint64_t segment_alignment = 64;  // a line of the scalar cache; the hardware asks for 16
constexpr std::uint64_t chunk_alignment = 256;
constexpr std::size_t most_stretches = 1024;  // with a stamp each

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + segment_alignment - 1) & ~(segment_alignment - 1); }

// Groups that share a stamp, where there are very many.
std::vector<std::size_t> stretches_of(std::span<const std::size_t> group_ends) {
  const std::size_t stride = (group_ends.size() + most_stretches - 1) / most_stretches;
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < group_ends.size(); ++i) {
    if (i + 1 == group_ends.size() || (i + 1) % stride == 0) ends.push_back(group_ends[i]);
  }
  return ends;
}

}  // namespace

Result<RingPart> Queue::take(RingBuffer& ring, std::uint64_t bytes, std::uint64_t alignment) {
  if (kept_chunk_bytes_ != 0) return ring.take_own(bytes, making_->buffers);
  for (;;) {
    auto part = ring.take(bytes, alignment, making_->value, making_->buffers);
    if (!part || !part->memory.empty()) return part;
    // Nothing is written to memory that the GPU may still read: the oldest submission must end first.
    if (in_flight_.empty()) return ring.take_own(bytes, making_->buffers);
    if (Status status = wait_for_oldest(); !status.ok()) return status;
  }
}

Result<StreamChunk> Queue::next_chunk() noexcept {
  const std::size_t own = making_->buffers.size();
  auto part = take(*commands_, kept_chunk_bytes_ != 0 ? kept_chunk_bytes_ : settings_.chunk_bytes, chunk_alignment);
  if (!part) return part.error();
  last_chunk_in_ring_ = making_->buffers.size() == own;
  auto* const dwords = reinterpret_cast<std::uint32_t*>(part->memory.data());
  return StreamChunk{{dwords, part->memory.size() / sizeof(std::uint32_t)}, part->address};
}

Status Queue::write_arguments(const std::vector<BoundPass>& passes, std::vector<std::uint64_t>& addresses) {
  std::uint64_t bytes = 0;
  for (const BoundPass& pass : passes) bytes += aligned(pass.kernel->kernel.kernarg_bytes);
  addresses.assign(passes.size(), 0);
  if (bytes == 0) return {};
  auto part = take(*arguments_, bytes, segment_alignment);
  if (!part) return part.error();
  std::uint64_t at = 0;
  std::vector<std::uint64_t> buffers;
  std::vector<std::span<const std::byte>> by_value;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const KernelCode& kernel = passes[i].kernel->kernel;
    if (kernel.kernarg_bytes == 0) continue;
    buffers.clear();
    by_value.clear();
    std::span<const std::byte> left = passes[i].values;
    for (std::size_t b = 0; b < passes[i].buffers.size(); ++b) {
      const std::uint32_t value_bytes = passes[i].kernel->value_bytes(b);
      if (value_bytes == 0) {
        buffers.push_back(passes[i].buffers[b]->address());
      } else {
        by_value.push_back(left.first(value_bytes));
        left = left.subspan(value_bytes);
      }
    }
    const KernargValues values{buffers, by_value, passes[i].grid, passes[i].kernel->workgroup, passes[i].local_bytes};
    const Status status = write_kernarg(kernel, values, part->memory.subspan(at, kernel.kernarg_bytes));
    if (!status.ok()) return status;
    addresses[i] = part->address + at;
    at += aligned(kernel.kernarg_bytes);
  }
  return {};
}

Status Queue::write_packets(const std::vector<BoundPass>& passes, std::span<const std::uint64_t> arguments,
                            std::span<const std::size_t> group_ends, std::span<const std::size_t> stretch_ends,
                            const Stamps& stamps) {
  if (Status status = stream_.begin(); !status.ok()) return status;
  // The kernel driver does not wait between the submissions of one context: what ran before may still be running.
  if (Status status = stream_.barrier(); !status.ok()) return status;
  if (Status status = stream_.timestamp(stamps.address_of(0)); !status.ok()) return status;
  std::size_t pass = 0, stretch = 0;
  for (const std::size_t end : group_ends) {
    if (pass != 0) {
      if (Status status = stream_.barrier(); !status.ok()) return status;
    }
    for (; pass < end; ++pass) {
      DispatchArguments what;
      what.kernarg_va = arguments[pass];
      what.groups = passes[pass].grid;
      if (Status status =
              stream_.dispatch(passes[pass].recorded ? *passes[pass].recorded : passes[pass].kernel->recorded, what);
          !status.ok())
        return status;
    }
    if (stretch_ends[stretch] != end) continue;
    if (Status status = stream_.timestamp(stamps.address_of(++stretch)); !status.ok()) return status;
  }
  return {};
}

void Queue::list_buffers(const std::vector<BoundPass>& passes, InFlight& work, PassTable& table) {
  list_.clear();
  programs_.clear();
  for (const RingBuffer* ring : {commands_.get(), arguments_.get(), reports_.get()}) list_.add(ring->object());
  for (const auto& own : work.buffers) list_.add(*own);
  std::map<const LoadedKernel*, std::uint32_t> numbers;
  const LoadedKernel* last = nullptr;
  const std::vector<std::shared_ptr<BufferObject>>* listed = nullptr;
  for (const BoundPass& pass : passes) {
    if (listed == nullptr || *listed != pass.buffers) {
      for (const auto& buffer : pass.buffers) {
        list_.add(*buffer);
        work.buffers.push_back(buffer);
      }
      listed = &pass.buffers;
    }
    if (pass.kernel.get() == last) {
      table.kernel_of.push_back(table.kernel_of.back());
      continue;
    }
    last = pass.kernel.get();
    const auto [number, added] = numbers.try_emplace(last, static_cast<std::uint32_t>(work.kernels.size()));
    table.kernel_of.push_back(number->second);
    if (!added) continue;
    work.kernels.push_back(pass.kernel);
    list_.add(*last->code);
    if (last->scratch != nullptr) list_.add(*last->scratch);
    programs_.push_back(last->facts);
  }
  list_.sort();
}

Status Queue::build(const std::vector<BoundPass>& passes, InFlight& work, PassTable& table) {
  const std::vector<std::size_t> group_ends = groups_of(passes, quarantine_);
  table.stretch_ends = stretches_of(group_ends);
  std::vector<std::uint64_t> arguments;
  if (Status status = write_arguments(passes, arguments); !status.ok()) return status;
  auto report = take(*reports_, Stamps::bytes_of(table.stretch_ends.size()), segment_alignment);
  if (!report) return report.error();
  work.stamps = Stamps(report->memory, report->address);
  return write_packets(passes, arguments, group_ends, table.stretch_ends, work.stamps);
}

Status Queue::try_submit(const std::vector<BoundPass>& passes, KeptSubmission* keep) {
  InFlight work;
  work.value = results_.next();
  work.context = context_;
  auto table = std::make_shared<PassTable>();
  work.passes = table;
  making_ = &work;
  if (keep != nullptr)
    kept_chunk_bytes_ = std::min(least_kept_chunk_bytes + passes.size() * dispatch_bytes, most_chunk_bytes);
  Status status = build(passes, work, *table);
  making_ = nullptr;
  kept_chunk_bytes_ = 0;
  if (!status.ok()) return status;
  const auto commands = stream_.finish();
  if (!commands) return commands.error();
  if (last_chunk_in_ring_) commands_->space().keep_of_last(commands->back().dwords.size_bytes());
  const std::size_t own = work.buffers.size();
  list_buffers(passes, work, *table);
  const SubmissionScope scope{settings_.shape, list_.ranges(), programs_, *commands};
  if (Status refused = validate(scope); !refused.ok()) {
    return internal_error("the check before the submission: " + refused.text());
  }
  const CommandBuffer& first = commands->front();
  const CommandRange range{first.va, static_cast<std::uint32_t>(first.dwords.size_bytes())};
  if (keep != nullptr) {
    keep->suspicions = quarantine_.suspicions();
    keep->memory.assign(work.buffers.begin(), work.buffers.begin() + static_cast<std::ptrdiff_t>(own));
    keep->commands = range;
    keep->handles.assign(list_.handles().begin(), list_.handles().end());
    keep->kernels.assign(work.kernels.begin(), work.kernels.end());
    std::set<std::shared_ptr<BufferObject>> used(work.buffers.begin() + static_cast<std::ptrdiff_t>(own),
                                                 work.buffers.end());
    keep->buffers.assign(used.begin(), used.end());
    keep->passes = table;
    keep->stamps = work.stamps.memory();
  }
  return hand_over(std::move(work), range, list_.handles());
}

Status Queue::hand_over(InFlight work, const CommandRange& commands, std::span<const std::uint32_t> handles) {
  const SyncPoint done{timeline_->handle(), work.value};
  const std::span<const SyncPoint> waits(&awaited_, awaited_.timeline != 0 ? 1 : 0);
  const auto number = context_->submit({{&commands, 1}, handles, waits, {&done, 1}, ring_});
  if (!number) {
    // The check before it has passed: what the kernel driver finds wrong is no caller's mistake.
    const bool ours = number.error().code == StatusCode::invalid_argument;
    return ours ? internal_error(number.error().message) : number.error();
  }
  awaited_ = {};  // later submissions run after this one
  work.number = *number;
  in_flight_.push_back(std::move(work));
  return {};
}

// Whether a key of this hash was submitted lately; else notes it.
bool Queue::came_before(std::uint64_t hash) {
  if (std::ranges::find(submitted_, hash) != submitted_.end()) return true;
  submitted_[submitted_next_++ % submitted_.size()] = hash;
  return false;
}

// Makes room for one more. false: an equal one is in flight, or all are in use: where more come in turns than have
// room, some stay.
bool Queue::room_to_keep(const DispatchKey& key) {
  const auto equal = [&](const std::shared_ptr<KeptSubmission>& kept) { return kept->key == key; };
  if (std::ranges::any_of(kept_, equal)) return false;
  std::erase_if(kept_, [](const std::shared_ptr<KeptSubmission>& kept) {
    const auto is_gone = [](const auto& object) { return object.expired(); };
    return std::ranges::any_of(kept->kernels, is_gone) || std::ranges::any_of(kept->buffers, is_gone);
  });
  if (kept_.size() < most_kept_submissions) return true;
  const auto oldest = std::ranges::min_element(kept_, {}, &KeptSubmission::last_use);
  if ((*oldest)->last_use + submissions_unused > keyed_) return false;
  kept_.erase(oldest);  // one in flight keeps its memory until it has ended
  return true;
}

}  // namespace kiln::amdgpu_pm4
