#include "device.hpp"

#include <cstring>
#include <utility>

namespace kiln_template {
namespace {

using namespace kiln;

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(const BufferDesc& desc) : own_(desc.host.empty() ? desc.bytes : 0), memory_(desc.host) {
    if (memory_.empty()) memory_ = own_;
  }

  std::uint64_t bytes() const noexcept override { return memory_.size(); }
  Status write(std::uint64_t offset, std::span<const std::byte> from) noexcept override try {
    if (!inside(offset, from.size())) return outside("write", offset, from.size());
    if (!from.empty()) std::memcpy(memory_.data() + offset, from.data(), from.size());
    return {};
  } catch (...) {
    return caught("template");
  }
  Status read(std::uint64_t offset, std::span<std::byte> to) noexcept override try {
    if (!inside(offset, to.size())) return outside("read", offset, to.size());
    if (!to.empty()) std::memcpy(to.data(), memory_.data() + offset, to.size());
    return {};
  } catch (...) {
    return caught("template");
  }
  std::span<std::byte> mapped() noexcept override { return memory_; }
  Result<UniqueFd> export_fd() noexcept override { return unsupported("template: host memory has no descriptor"); }

 private:
  bool inside(std::uint64_t offset, std::size_t count) const noexcept {
    return offset <= memory_.size() && count <= memory_.size() - offset;
  }
  Status outside(const char* what, std::uint64_t offset, std::size_t count) const {
    return invalid_argument(std::string("template: ") + what + " of " + std::to_string(count) + " bytes at " +
                            std::to_string(offset) + " leaves a buffer of " + std::to_string(memory_.size()) +
                            " bytes");
  }

  std::vector<std::byte> own_;
  std::span<std::byte> memory_;
};

class GemmProgram final : public Program {
 public:
  explicit GemmProgram(const GemmSpec& spec) : spec_(spec) {}
  std::uint64_t charge() const noexcept override { return sizeof *this; }

  // Bindings in the order of tensors_of(spec): a, b, [bias], c.
  Status run(std::span<Buffer* const> bindings) const {
    const std::vector<TensorDecl> tensors = tensors_of(spec_);
    if (bindings.size() != tensors.size()) {
      return invalid_argument("template: gemm with " + std::to_string(bindings.size()) + " bindings, expected " +
                              std::to_string(tensors.size()));
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (bindings[i]->bytes() < tensors[i].bytes) {
        return invalid_argument("template: gemm binding " + tensors[i].name + " has " +
                                std::to_string(bindings[i]->bytes()) + " bytes, expected " +
                                std::to_string(tensors[i].bytes));
      }
    }
    const auto* a = reinterpret_cast<const float*>(bindings[0]->mapped().data());
    const auto* b = reinterpret_cast<const float*>(bindings[1]->mapped().data());
    const auto* bias =
        spec_.bias == Bias::per_channel ? reinterpret_cast<const float*>(bindings[2]->mapped().data()) : nullptr;
    auto* c = reinterpret_cast<float*>(bindings.back()->mapped().data());
    for (std::int64_t m = 0; m < spec_.m; ++m) {
      for (std::int64_t n = 0; n < spec_.n; ++n) {
        float sum = bias != nullptr ? bias[n] : 0.F;
        for (std::int64_t k = 0; k < spec_.k; ++k) sum += a[m * spec_.k + k] * b[k * spec_.n + n];
        c[m * spec_.n + n] = spec_.activation == Activation::relu && sum < 0 ? 0.F : sum;
      }
    }
    return {};
  }

 private:
  GemmSpec spec_;
};

}  // namespace

DeviceInfo device_info() {
  DeviceInfo info;
  info.id = "template";
  info.kind = DeviceKind::cpu;
  info.name = "plain loops";
  info.driver = "template 1.0";
  info.usable = true;
  info.device_identity = {{"name", "template"}};
  info.driver_identity = {{"version", "1.0"}};
  info.dialects = {Dialect::library};   // it computes specs by itself; a device with a compiler names its language
  info.shared_resource = "host-cores";  // what else runs on the processor competes with it
  info.wraps_host_memory = true;
  return info;
}

TemplateDevice::TemplateDevice(DeviceInfo info, WorkCounters* counters) : info_(std::move(info)), counters_(counters) {}

Result<std::unique_ptr<Buffer>> TemplateDevice::create_buffer(const BufferDesc& desc) noexcept try {
  if (desc.import_fd >= 0) return unsupported("template: imports no memory");
  return std::unique_ptr<Buffer>(new HostBuffer(desc));
} catch (...) {
  return caught("template");
}

Result<std::unique_ptr<Program>> TemplateDevice::build(const KernelSource& source) noexcept try {
  const auto* gemm = source.spec ? std::get_if<GemmSpec>(&*source.spec) : nullptr;
  if (source.dialect != Dialect::library || gemm == nullptr) {
    return unsupported("template: it computes gemm of the dialect library only, asked for " +
                       std::string(source.spec ? operation(*source.spec) : to_string(source.dialect)));
  }
  if (gemm->activation != Activation::none && gemm->activation != Activation::relu) {
    return unsupported("template: gemm with activation " + std::string(to_string(gemm->activation)) +
                       ", it computes none and relu");
  }
  if (counters_ != nullptr) ++counters_->prepared;  // nothing was compiled, so this is no build
  return std::unique_ptr<Program>(new GemmProgram(*gemm));
} catch (...) {
  return caught("template");
}

Result<std::unique_ptr<Program>> TemplateDevice::load(const KernelSource&, const ProgramBinary&) noexcept try {
  return unsupported("template: keeps no binaries");
} catch (...) {
  return caught("template");
}

Result<ProgramBinary> TemplateDevice::serialize(const Program&) noexcept try {
  return unsupported("template: keeps no binaries");
} catch (...) {
  return caught("template");
}

Result<std::uint64_t> TemplateDevice::submit(const Dispatch& dispatch) noexcept try {
  const std::lock_guard lock(mutex_);
  Status status;
  for (const PassLaunch& pass : dispatch.passes) {
    if (pass.grid == kiln::PassLaunch::nothing) continue;  // nothing is left until a first dispatch
    if (status.ok()) status = static_cast<const GemmProgram*>(pass.program)->run(pass.bindings);
  }
  done_[++last_] = std::move(status);
  return last_;
} catch (...) {
  return caught("template");
}

Result<FenceResult> TemplateDevice::wait(std::uint64_t value, Deadline) noexcept try {
  const std::lock_guard lock(mutex_);
  const auto at = done_.find(value);
  if (at == done_.end()) {
    return not_found("template: timeline value " + std::to_string(value) + " was never submitted, or taken already");
  }
  const Status status = std::move(at->second);
  done_.erase(at);
  if (!status.ok()) return status;
  return FenceResult{};
} catch (...) {
  return caught("template");
}

}  // namespace kiln_template
