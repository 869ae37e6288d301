#include "executor/constant_store.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace kiln::executor {
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

}  // namespace kiln::executor
