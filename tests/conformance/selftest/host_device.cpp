#include "conformance/selftest/host_device.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "conformance/checks.hpp"
#include "conformance/reference.hpp"
#include "support/fixture_memory.hpp"

namespace kiln::conformance {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 32;

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(support::FixtureMemory owned) : owned_(std::move(owned)), memory_(owned_->bytes()) {}
  explicit HostBuffer(std::span<std::byte> host) : memory_(host) {}

  std::uint64_t bytes() const noexcept override { return memory_.size(); }
  Status write(std::uint64_t offset, std::span<const std::byte> from) noexcept override {
    if (!holds(offset, from.size())) return outside(offset, from.size());
    if (!from.empty()) std::memcpy(memory_.data() + offset, from.data(), from.size());
    return {};
  }
  Status read(std::uint64_t offset, std::span<std::byte> to) noexcept override {
    if (!holds(offset, to.size())) return outside(offset, to.size());
    if (!to.empty()) std::memcpy(to.data(), memory_.data() + offset, to.size());
    return {};
  }
  std::span<std::byte> mapped() noexcept override { return memory_; }
  Result<UniqueFd> export_fd() noexcept override {
    if (!owned_) return unsupported("host buffer: the memory is the caller's, it has no descriptor");
    return owned_->export_fd();
  }

 private:
  bool holds(std::uint64_t offset, std::uint64_t size) const { return offset <= bytes() && size <= bytes() - offset; }
  Status outside(std::uint64_t offset, std::uint64_t size) const {
    return invalid_argument("buffer of " + std::to_string(bytes()) + " bytes: range " + std::to_string(offset) + " + " +
                            std::to_string(size) + " leaves it");
  }

  std::optional<support::FixtureMemory> owned_;
  std::span<std::byte> memory_;
};

struct HostProgram final : Program {
  explicit HostProgram(KernelSource from) : source(std::move(from)) {}
  std::uint64_t charge() const noexcept override { return sizeof(*this); }
  KernelSource source;
};

std::vector<float> floats(Buffer& buffer, std::uint64_t bytes) {
  std::vector<float> values(static_cast<std::size_t>(bytes / sizeof(float)));
  std::memcpy(values.data(), buffer.mapped().data(), static_cast<std::size_t>(bytes));
  return values;
}

Status run(const PassLaunch& launch, Fault fault) {
  const auto& source = static_cast<const HostProgram&>(*launch.program).source;
  const std::vector<TensorDecl> decls = tensors_of(*source.spec);
  if (launch.bindings.size() != decls.size()) {
    return invalid_argument("launch: " + std::to_string(launch.bindings.size()) + " bindings, expected " +
                            std::to_string(decls.size()));
  }
  std::vector<std::vector<float>> tensors;
  for (std::size_t i = 0; i < decls.size(); ++i) tensors.push_back(floats(*launch.bindings[i], decls[i].bytes));
  const Expected expected = expected_of(*source.spec, tensors);
  std::vector<float> values(expected.values.begin(), expected.values.end());
  if (fault == Fault::skips_last_element) values.pop_back();
  if (fault == Fault::writes_behind_output) values.push_back(0);
  if (fault == Fault::rounds_badly) values.back() += static_cast<float>(2 * expected.bounds.back() + 1e-6);
  if (fault == Fault::writes_input) std::memset(launch.bindings[0]->mapped().data(), 0, sizeof(float));
  // Not through write(): a faulty program respects no buffer's end.
  std::memcpy(launch.bindings.back()->mapped().data(), values.data(), values.size() * sizeof(float));
  return {};
}

}  // namespace

HostDevice::HostDevice(WorkCounters& counters, Fault fault) : counters_(counters), fault_(fault) {
  info_.id = "host";
  info_.kind = DeviceKind::cpu;
  info_.name = "host memory", info_.driver = "reference";
  info_.usable = true;
  info_.device_identity = {{"name", "host"}};
  info_.driver_identity = {{"version", "1"}};
  info_.dialects = {Dialect::library};
  info_.wraps_host_memory = true;
  info_.shares_memory = true;
}

Result<std::unique_ptr<Buffer>> HostDevice::create_buffer(const BufferDesc& desc) noexcept {
  if (desc.usage == BufferUsage::invalid) return invalid_argument("buffer: has no usage");
  if (desc.part_of != nullptr) return unsupported("device host: a buffer shares no other buffer's memory");
  if (!desc.host.empty()) return std::unique_ptr<Buffer>(std::make_unique<HostBuffer>(desc.host));
  if (desc.bytes > most_bytes) return unavailable("buffer: " + std::to_string(desc.bytes) + " bytes are too many");
  auto memory = desc.import_fd >= 0 ? support::FixtureMemory::import(desc.import_fd, desc.bytes)
                                    : support::FixtureMemory::create(desc.bytes);
  if (!memory) return std::move(memory).error();
  return std::unique_ptr<Buffer>(std::make_unique<HostBuffer>(std::move(memory).value()));
}

Result<std::unique_ptr<Program>> HostDevice::build(const KernelSource& source) noexcept {
  if (source.dialect != Dialect::library || !source.spec) {
    return unsupported("device host: dialect " + std::string(to_string(source.dialect)) + ", expected library");
  }
  counters_.prepared.fetch_add(1);
  return std::unique_ptr<Program>(std::make_unique<HostProgram>(source));
}

Result<std::unique_ptr<Program>> HostDevice::load(const KernelSource&, const ProgramBinary&) noexcept {
  return unsupported("device host: keeps no binaries");
}

Result<ProgramBinary> HostDevice::serialize(const Program&) noexcept {
  return unsupported("device host: keeps no binaries");
}

Result<std::uint64_t> HostDevice::submit(const Dispatch& dispatch) noexcept {
  const std::lock_guard lock(mutex_);
  Status status;
  for (const PassLaunch& launch : dispatch.passes) {
    if (launch.indirect) return unsupported("device host: a pass reads its grid from a buffer");
    if (status.ok() && launch.grid != PassLaunch::nothing) status = run(launch, fault_);
  }
  finished_[++last_] = status;
  return last_;
}

Result<FenceResult> HostDevice::wait(std::uint64_t value, Deadline) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = finished_.find(value);
  if (at == finished_.end()) return not_found("value " + std::to_string(value) + ": never submitted, or taken already");
  const Status status = at->second;
  finished_.erase(at);
  if (!status.ok()) return status;
  return FenceResult{};
}

std::span<const Dialect> HostGenerator::dialects() const noexcept {
  static constexpr Dialect written[] = {Dialect::library};
  return written;
}

Result<KernelPlan> HostGenerator::generate(const KernelSpec& spec, const DeviceInfo&, Dialect) noexcept {
  KernelPlan plan;
  plan.variant = "reference";
  plan.tensors = tensors_of(spec);
  Pass& pass = plan.passes.emplace_back();
  pass.source.dialect = Dialect::library;
  pass.source.spec = spec;
  pass.source.text = canonical_text(spec);
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorRole role = plan.tensors[i].role;
    pass.source.bindings.push_back(role == TensorRole::output ? Access::write : Access::read);
    pass.bindings.push_back({BindingSource::tensor, static_cast<std::uint32_t>(i)});
  }
  return plan;
}

}  // namespace kiln::conformance
