// How Queue makes a submission out of passes, and which ones it keeps to submit them again.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/device/queue.hpp"
#include "amdgpu_pm4/device/submission.hpp"
#include "amdgpu_pm4/safety/validator.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::size_t most_kept_submissions = 16, most_kept_passes = 1 << 14;
// After so many others a kept submission makes room. More than both kinds that are remembered, so that none comes back
// just when it has gone.
constexpr std::uint64_t submissions_unused = 128;
// Of the command buffers of a kept submission, which should be one.
constexpr std::uint64_t least_kept_chunk_bytes = 4 << 10, dispatch_bytes = 256, most_chunk_bytes = 1 << 20;

constexpr std::uint64_t segment_alignment = 64;  // a line of the scalar cache; the hardware asks for 16
constexpr std::uint64_t chunk_alignment = 256;
// Stretches, with a stamp each: of programs that have ended well, and of others. A suspect always has its own.
constexpr std::size_t most_proven_stretches = 64, most_stretches = 1024;

std::uint64_t alignment_of(const KernelCode& kernel) {
  return std::max<std::uint64_t>(segment_alignment, kernel.kernarg_alignment);
}

// The ends of stretches: groups that share a stamp, where there are many. What hung is then known less exactly, and
// the device stops less often.
std::vector<std::size_t> stretches_of(std::span<const PassGroup> groups) {
  const auto stride_for = [&](std::size_t most) { return (groups.size() + most - 1) / most; };
  const std::size_t proven = stride_for(most_proven_stretches), unproven = stride_for(most_stretches);
  std::vector<std::size_t> ends;
  std::size_t count = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const PassGroup& group = groups[i];
    const PassGroup* const next = i + 1 < groups.size() ? &groups[i + 1] : nullptr;
    const bool parted = next == nullptr || group.suspect || next->suspect || group.unproven != next->unproven;
    if (++count < (group.unproven ? unproven : proven) && !parted) continue;
    ends.push_back(group.end);
    count = 0;
  }
  return ends;
}

}  // namespace

Result<std::optional<std::uint64_t>> Queue::submit_again(const DispatchKey& key) {
  const std::lock_guard making(making_mutex_);
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
  work.passes = kept.passes;
  work.stamps = Stamps(kept.stamps.memory, kept.stamps.address);
  work.kept = *equal;
  for (const auto& kernel : kept.kernels) work.kernels.push_back(kernel.lock());
  for (const auto& kernel : work.kernels) {
    if (Status refused = check_quarantine(*kernel); !refused.ok()) return refused.within(settings_.device);
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
  return quarantine_.check(kernel.quarantine_key, kernel.name());
}

Status Queue::check_quarantine(const BoundDispatch& passes) const {
  const LoadedKernel* checked = nullptr;
  for (const BoundPass& pass : passes.bound) {
    if (pass.kernel.get() == checked) continue;
    checked = pass.kernel.get();
    if (Status refused = check_quarantine(*checked); !refused.ok()) return refused;
  }
  return {};
}

Result<std::uint64_t> Queue::submit(const BoundDispatch& passes, DispatchKey key) {
  const std::lock_guard making(making_mutex_);
  const std::lock_guard lock(mutex_);
  if (!lost_.ok()) return lost_;
  collect_passed();
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
    give_back(value);
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

void Queue::give_back(std::uint64_t value) {
  for (RingBuffer* ring : {commands_.get(), arguments_.get(), reports_.get()}) ring->space().give_back(value);
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
  std::uint64_t bytes = 0, alignment = segment_alignment;
  addresses.clear();
  for (const BoundPass& pass : passes) {
    const std::uint64_t own = alignment_of(pass.kernel->kernel);
    bytes = (bytes + own - 1) & ~(own - 1);
    addresses.push_back(bytes);  // from the start of their part
    bytes += pass.kernel->kernel.kernarg_bytes;
    alignment = std::max(alignment, own);
  }
  if (bytes == 0) return {};
  auto part = take(*arguments_, bytes, alignment);
  if (!part) return part.error();
  std::vector<std::uint64_t> buffers;
  std::vector<std::span<const std::byte>> by_value;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const KernelCode& kernel = passes[i].kernel->kernel;
    if (kernel.kernarg_bytes == 0) {
      addresses[i] = 0;
      continue;
    }
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
    const Status status = write_kernarg(kernel, values, part->memory.subspan(addresses[i], kernel.kernarg_bytes));
    if (!status.ok()) return status;
    addresses[i] += part->address;
  }
  return {};
}

Status Queue::write_packets(const BoundDispatch& passes, std::span<const std::uint64_t> arguments,
                            std::span<const PassGroup> groups, std::span<const std::size_t> stretch_ends,
                            const Stamps& stamps) {
  if (Status status = stream_.begin(); !status.ok()) return status;
  // The kernel driver does not wait between the submissions of one context: what ran before may still be running.
  if (Status status = stream_.barrier(); !status.ok()) return status;
  if (Status status = stream_.timestamp(stamps.address_of(0)); !status.ok()) return status;
  std::size_t pass = 0, stretch = 0;
  for (const PassGroup& group : groups) {
    if (pass != 0) {
      if (Status status = stream_.barrier(); !status.ok()) return status;
    }
    for (; pass < group.end; ++pass) {
      const BoundPass& bound = passes[pass];
      DispatchArguments what;
      what.kernarg_va = arguments[passes.order[pass]];
      what.groups = bound.grid;
      if (Status status = stream_.dispatch(bound.recorded ? *bound.recorded : bound.kernel->recorded, what);
          !status.ok())
        return status;
    }
    if (stretch_ends[stretch] != group.end) continue;
    if (Status status = stream_.timestamp(stamps.address_of(++stretch)); !status.ok()) return status;
  }
  return {};
}

void Queue::list_buffers(const BoundDispatch& passes, InFlight& work, PassTable& table) {
  list_.clear();
  programs_.clear();
  for (const RingBuffer* ring : {commands_.get(), arguments_.get(), reports_.get()}) list_.add(ring->object());
  for (const auto& own : work.buffers) list_.add(*own);
  std::map<const LoadedKernel*, std::uint32_t> numbers;
  std::vector<std::uint32_t> number_of;  // one a bound pass
  const std::vector<std::shared_ptr<BufferObject>>* listed = nullptr;
  for (const BoundPass& pass : passes.bound) {
    if (listed == nullptr || *listed != pass.buffers) {
      for (const auto& buffer : pass.buffers) {
        list_.add(*buffer);
        work.buffers.push_back(buffer);
      }
      listed = &pass.buffers;
    }
    const LoadedKernel& kernel = *pass.kernel;
    const auto [number, added] = numbers.try_emplace(&kernel, static_cast<std::uint32_t>(work.kernels.size()));
    number_of.push_back(number->second);
    if (!added) continue;
    work.kernels.push_back(pass.kernel);
    list_.add(*kernel.code);
    if (kernel.scratch != nullptr) list_.add(*kernel.scratch);
    programs_.push_back(kernel.facts);
  }
  table.kernel_of.reserve(passes.size());
  for (const std::uint32_t bound : passes.order) table.kernel_of.push_back(number_of[bound]);
  list_.sort();
}

Status Queue::build(const BoundDispatch& passes, InFlight& work, PassTable& table) {
  const std::uint64_t suspicions = quarantine_.suspicions();
  const std::vector<PassGroup> groups = groups_of(passes, quarantine_);
  table.stretch_ends = stretches_of(groups);
  std::vector<std::uint64_t> arguments;
  if (Status status = write_arguments(passes.bound, arguments); !status.ok()) return status;
  auto report = take(*reports_, Stamps::bytes_of(table.stretch_ends.size()), segment_alignment);
  if (!report) return report.error();
  work.stamps = Stamps(report->memory, report->address);
  Status status = write_packets(passes, arguments, groups, table.stretch_ends, work.stamps);
  if (!status.ok() || suspicions == quarantine_.suspicions()) return status;
  // Something hung while it waited for room: a new suspect must run alone here too.
  give_back(work.value);
  work.buffers.clear();
  return build(passes, work, table);
}

Status Queue::try_submit(const BoundDispatch& passes, KeptSubmission* keep) {
  InFlight work;
  work.value = results_.next();
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
    return internal_error("the validator rejected the submission: " + refused.text());
  }
  // At the last moment: while it waited for room or for a new context, one of its kernels may have been convicted.
  if (Status refused = check_quarantine(passes); !refused.ok()) return refused;
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
  work.context = context_;
  work.number = *number;
  work.handed_over_ns = now_ns();
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
