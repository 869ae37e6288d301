#include "executor/buffers.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace kiln::executor {
namespace {

// Buffers that a slot retains besides those of its last job: enough for the alternating layers of a network.
constexpr std::size_t most_idle = 16;
constexpr std::uint64_t most_idle_bytes = 64u << 20;

}  // namespace

Result<Buffer*> BufferPool::take(Device& device, BufferUsage usage, std::uint64_t bytes) {
  auto fit = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return !entry.taken && entry.usage == usage && entry.buffer->bytes() == bytes;
  });
  if (fit == entries_.end()) {
    BufferDesc desc;
    desc.bytes = bytes;
    desc.usage = usage;
    auto made = device.create_buffer(desc);
    if (!made) return std::move(made).error();
    entries_.push_back({std::move(made).value(), usage, job_, false});
    fit = entries_.end() - 1;
  }
  fit->taken = true;
  fit->last_job = job_;
  return fit->buffer.get();
}

void BufferPool::recycle() noexcept {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.last_job > b.last_job; });
  std::size_t idle = 0;
  std::uint64_t idle_bytes = 0;
  const auto too_much = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    if (entry.last_job == job_) return false;
    idle_bytes += entry.buffer->bytes();
    return ++idle > most_idle || idle_bytes > most_idle_bytes;
  });
  entries_.erase(too_much, entries_.end());
  for (Entry& entry : entries_) entry.taken = false;
  ++job_;
}

namespace {

// Returns whether both passes bind equal constants of their plans.
bool same_constants(const KernelPlan& a, const Pass& one, const KernelPlan& b, const Pass& other) noexcept {
  return std::ranges::equal(one.bindings, other.bindings, [&](const Binding& mine, const Binding& its) {
    if (mine.source != BindingSource::constant || its.source != BindingSource::constant) {
      return mine.source == its.source;
    }
    return a.constants[mine.index]->digest() == b.constants[its.index]->digest();
  });
}

bool same_packing(const KernelPlan& a, std::size_t i, const KernelPlan& b, std::size_t j) noexcept {
  if (&a == &b && i == j) return true;
  if (a.prepared[i].layout != b.prepared[j].layout || a.prepared[i].bytes != b.prepared[j].bytes) return false;
  const KernelSource& one = a.prepare[i].source;
  const KernelSource& other = b.prepare[j].source;
  return one.dialect == other.dialect && one.text == other.text && one.entry == other.entry &&
         one.constants == other.constants && one.workgroup == other.workgroup &&
         a.prepare[i].grid == b.prepare[j].grid && same_constants(a, a.prepare[i], b, b.prepare[j]);
}

bool same_owner(const std::weak_ptr<const Constant>& held, const std::shared_ptr<const Constant>& constant) noexcept {
  return !held.owner_before(constant) && !constant.owner_before(held);
}

}  // namespace

Result<ConstantStore::Entry> ConstantStore::upload(const Constant& constant) {
  const std::span<const std::byte> bytes = constant.tensor().bytes();
  Entry entry;
  BufferDesc desc;
  desc.bytes = bytes.size();
  desc.usage = BufferUsage::constant;
  if (device_.info().wraps_host_memory) {
    entry.wrapped = constant.shared_tensor();
    // A constant buffer is read only: no program is bound to it with another access, so the cast writes nothing.
    desc.host = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  }
  auto made = device_.create_buffer(desc);
  if (!made) return std::move(made).error();
  entry.buffer = std::move(made).value();
  if (desc.host.empty()) {
    if (const std::span<std::byte> mapped = entry.buffer->mapped(); mapped.size() >= bytes.size()) {
      std::memcpy(mapped.data(), bytes.data(), bytes.size());
    } else if (Status status = entry.buffer->write(0, bytes); !status.ok()) {
      return status;
    }
  }
  return entry;
}

Result<Buffer*> ConstantStore::resident(const std::shared_ptr<const Constant>& constant) {
  auto at = entries_.find(constant->digest());
  if (at == entries_.end()) {
    sweep();
    auto entry = upload(*constant);
    if (!entry) return std::move(entry).error();
    at = entries_.emplace(constant->digest(), std::move(entry).value()).first;
  }
  auto& holders = at->second.holders;
  const auto held = [&](const auto& holder) { return same_owner(holder, constant); };
  if (std::none_of(holders.begin(), holders.end(), held)) {
    std::erase_if(holders, [](const auto& holder) { return holder.expired(); });
    holders.push_back(constant);
  }
  return at->second.buffer.get();
}

Buffer* ConstantStore::packed(const Constant& constant, const KernelPlan& plan, std::size_t index) noexcept {
  const auto at = entries_.find(constant.digest());
  if (at == entries_.end()) return nullptr;
  for (const Packed& packed : at->second.packed) {
    if (same_packing(*packed.plan, packed.index, plan, index)) return packed.buffer.get();
  }
  return nullptr;
}

void ConstantStore::keep_packed(const Constant& constant, std::shared_ptr<const KernelPlan> plan, std::size_t index,
                                std::unique_ptr<Buffer> buffer) {
  entries_.at(constant.digest()).packed.push_back({std::move(plan), index, std::move(buffer)});
}

void ConstantStore::sweep() noexcept {
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto& holders = at->second.holders;
    const bool held = std::any_of(holders.begin(), holders.end(), [](const auto& holder) { return !holder.expired(); });
    at = held ? std::next(at) : entries_.erase(at);
  }
}

namespace {

Status pack(const Submission& submission, std::size_t index, BoundPlan& bound, Device& device, ConstantStore& constants,
            const RunToEnd& run, std::uint64_t& packed) {
  const KernelPlan& plan = *submission.plan;
  const Constant& constant = *submission.tensors[plan.prepared[index].tensor].constant;
  bound.prepared[index] = constants.packed(constant, plan, index);
  if (bound.prepared[index] != nullptr) return {};

  BufferDesc desc;
  desc.bytes = plan.prepared[index].bytes;
  desc.usage = BufferUsage::storage;
  auto made = device.create_buffer(desc);
  if (!made) return std::move(made).error();
  bound.prepared[index] = made.value().get();

  std::vector<Buffer*> bindings;
  for (const Binding& binding : plan.prepare[index].bindings) bindings.push_back(bound.of(binding));
  const PassLaunch launch{submission.prepare_programs[index].get(), bindings, plan.prepare[index].grid};
  if (Status status = run({{&launch, 1}}); !status.ok()) return status;
  constants.keep_packed(constant, submission.plan, index, std::move(made).value());
  ++packed;
  return {};
}

}  // namespace

Status copy_in(Buffer& to, std::span<const std::byte> from) {
  if (from.empty()) return {};
  const std::span<std::byte> mapped = to.mapped();
  if (mapped.size() < from.size()) return to.write(0, from);
  std::memcpy(mapped.data(), from.data(), from.size());
  return {};
}

Status copy_out(Buffer& from, std::span<std::byte> to) {
  if (to.empty()) return {};
  const std::span<std::byte> mapped = from.mapped();
  if (mapped.size() < to.size()) return from.read(0, to);
  std::memcpy(to.data(), mapped.data(), to.size());
  return {};
}

Buffer* BoundPlan::of(const Binding& binding) const noexcept {
  switch (binding.source) {
    case BindingSource::tensor:
      return tensors[binding.index];
    case BindingSource::scratch:
      return scratch[binding.index];
    case BindingSource::prepared:
      return prepared[binding.index];
    case BindingSource::constant:
      return constants[binding.index];
    case BindingSource::invalid:
      break;
  }
  return nullptr;
}

void BoundPlan::clear() noexcept {
  tensors.clear();
  scratch.clear();
  prepared.clear();
  constants.clear();
}

Status bind_constants(const Submission& submission, BoundPlan& bound, Device& device, ConstantStore& constants,
                      const RunToEnd& run, std::uint64_t& packed) {
  const KernelPlan& plan = *submission.plan;
  bound.tensors.resize(plan.tensors.size());
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].role != TensorRole::constant) continue;
    const auto buffer = constants.resident(submission.tensors[i].constant);
    if (!buffer) return buffer.error().within("tensor " + plan.tensors[i].name);
    bound.tensors[i] = *buffer;
  }
  bound.constants.resize(plan.constants.size());
  for (std::size_t i = 0; i < plan.constants.size(); ++i) {
    const auto buffer = constants.resident(plan.constants[i]);
    if (!buffer) return buffer.error().within("constant " + std::to_string(i) + " of plan " + plan.variant);
    bound.constants[i] = *buffer;
  }
  bound.prepared.resize(plan.prepared.size());
  for (std::size_t i = 0; i < plan.prepared.size(); ++i) {
    if (Status status = pack(submission, i, bound, device, constants, run, packed); !status.ok()) {
      return status.within("packed constant " + plan.prepared[i].layout);
    }
  }
  return {};
}

void append_bindings(const std::vector<Pass>& passes, const BoundPlan& bound, std::vector<Buffer*>& to) {
  for (const Pass& pass : passes) {
    for (const Binding& binding : pass.bindings) to.push_back(bound.of(binding));
  }
}

void append_launches(const Submission& submission, std::span<Buffer* const>& bindings, std::vector<PassLaunch>& to) {
  const std::vector<Pass>& passes = submission.plan->passes;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const std::size_t count = passes[i].bindings.size();
    PassLaunch& launch =
        to.emplace_back(PassLaunch{submission.programs[i].get(), bindings.first(count), passes[i].grid});
    launch.indirect = passes[i].indirect;
    if (!submission.sources.empty()) launch.sources = submission.sources[i];
    bindings = bindings.subspan(count);
  }
}

}  // namespace kiln::executor
