// How Queue makes a submission out of passes.
#include <algorithm>
#include <array>

#include "amdgpu_pm4/code_object/dispatch_needs.hpp"
#include "amdgpu_pm4/device/queue.hpp"
#include "amdgpu_pm4/device/submission.hpp"
#include "amdgpu_pm4/safety/validator.hpp"

namespace kiln::amdgpu_pm4 {
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
  auto part = take(*commands_, settings_.chunk_bytes, chunk_alignment);
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
                            std::span<const std::size_t> group_ends, InFlight& work) {
  if (Status status = stream_.begin(); !status.ok()) return status;
  // The kernel driver does not wait between the submissions of one context: what ran before may still be running.
  if (Status status = stream_.barrier(); !status.ok()) return status;
  if (Status status = stream_.timestamp(work.stamps.address_of(0)); !status.ok()) return status;
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
    if (work.stretch_ends[stretch] != end) continue;
    if (Status status = stream_.timestamp(work.stamps.address_of(++stretch)); !status.ok()) return status;
  }
  return {};
}

void Queue::list_buffers(const std::vector<BoundPass>& passes, InFlight& work) {
  list_.clear();
  programs_.clear();
  for (const RingBuffer* ring : {commands_.get(), arguments_.get(), reports_.get()}) list_.add(ring->object());
  for (const auto& own : work.buffers) list_.add(*own);
  for (const BoundPass& pass : passes) {
    for (const auto& buffer : pass.buffers) {
      list_.add(*buffer);
      work.buffers.push_back(buffer);
    }
    if (!work.kernels.empty() && work.kernels.back() == pass.kernel) {
      work.kernels.push_back(pass.kernel);
      continue;
    }
    work.kernels.push_back(pass.kernel);
    list_.add(*pass.kernel->code);
    if (pass.kernel->scratch != nullptr) list_.add(*pass.kernel->scratch);
    programs_.push_back(pass.kernel->facts);
  }
  list_.sort();
}

Status Queue::build(const std::vector<BoundPass>& passes, InFlight& work) {
  const std::vector<std::size_t> group_ends = groups_of(passes, quarantine_);
  work.stretch_ends = stretches_of(group_ends);
  std::vector<std::uint64_t> arguments;
  if (Status status = write_arguments(passes, arguments); !status.ok()) return status;
  auto report = take(*reports_, Stamps::bytes_of(work.stretch_ends.size()), segment_alignment);
  if (!report) return report.error();
  work.stamps = Stamps(report->memory, report->address);
  if (Status status = write_packets(passes, arguments, group_ends, work); !status.ok()) return status;
  return {};
}

Status Queue::try_submit(const std::vector<BoundPass>& passes) {
  InFlight work;
  work.value = results_.next();
  work.context = context_;
  making_ = &work;
  Status status = build(passes, work);
  making_ = nullptr;
  if (!status.ok()) return status;
  const auto commands = stream_.finish();
  if (!commands) return commands.error();
  if (last_chunk_in_ring_) commands_->space().keep_of_last(commands->back().dwords.size_bytes());
  list_buffers(passes, work);
  const SubmissionScope scope{settings_.shape, list_.ranges(), programs_, *commands};
  if (Status refused = validate(scope); !refused.ok()) {
    return internal_error("the check before the submission: " + refused.text());
  }
  const CommandBuffer& first = commands->front();
  const CommandRange range{first.va, static_cast<std::uint32_t>(first.dwords.size_bytes())};
  const SyncPoint done{timeline_->handle(), work.value};
  const std::span<const SyncPoint> waits(&awaited_, awaited_.timeline != 0 ? 1 : 0);
  const auto number = context_->submit({{&range, 1}, list_.handles(), waits, {&done, 1}, ring_});
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

}  // namespace kiln::amdgpu_pm4
