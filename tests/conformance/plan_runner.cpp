#include "conformance/plan_runner.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace kiln::conformance {
namespace {

constexpr std::size_t canary_words = 64;
const float canary = std::bit_cast<float>(0x7fc0cafeu);  // a NaN: who reads it sees it in the result

BufferUsage usage_of(TensorRole role) {
  switch (role) {
    case TensorRole::input:
      return BufferUsage::upload;
    case TensorRole::constant:
      return BufferUsage::constant;
    default:
      return BufferUsage::readback;
  }
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

struct Aligned {
  void operator()(std::byte* memory) const noexcept { ::operator delete (memory, std::align_val_t{64}); }
};

// A device buffer with its canaries; `count` floats are the tensor's.
class GuardedBuffer {
 public:
  static Result<GuardedBuffer> create(Device& device, BufferUsage usage, std::size_t count, Memory memory) {
    GuardedBuffer made;
    made.count_ = count;
    BufferDesc desc;
    desc.usage = usage;
    if (memory == Memory::hosts) {
      made.host_bytes_ = (count + 2 * canary_words) * sizeof(float);
      made.host_.reset(static_cast<std::byte*>(::operator new (made.host_bytes_, std::align_val_t{64})));
      made.fill_host_canaries();
      desc.bytes = count * sizeof(float);
      desc.host = {made.host_.get() + canary_words * sizeof(float), desc.bytes};
    } else {
      desc.bytes = (count + canary_words) * sizeof(float);
    }
    auto buffer = device.create_buffer(desc);
    if (!buffer) return std::move(buffer).error();
    made.buffer_ = std::move(buffer).value();
    return made;
  }

  Buffer* get() const noexcept { return buffer_.get(); }

  Status fill(std::span<const float> values) {
    std::vector<float> all(values.begin(), values.end());
    if (host_ == nullptr) all.resize(count_ + canary_words, canary);
    return buffer_->write(0, std::as_bytes(std::span(all)));
  }

  // The tensor's part; `damage` names the side on which a canary was overwritten.
  Result<std::vector<float>> take(const std::string& name, std::string& damage) {
    std::vector<float> all(static_cast<std::size_t>(buffer_->bytes() / sizeof(float)));
    if (Status status = buffer_->read(0, std::as_writable_bytes(std::span(all))); !status.ok()) return status;
    const std::vector<float> expected(canary_words, canary);
    std::vector<float> before = expected, after = expected;
    if (host_ != nullptr) {
      std::memcpy(before.data(), host_.get(), canary_words * sizeof(float));
      std::memcpy(after.data(), host_.get() + (canary_words + count_) * sizeof(float), canary_words * sizeof(float));
    } else {
      std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(count_), canary_words, after.begin());
    }
    if (!same_bits(before, expected)) damage += "the memory before " + name + " was overwritten; ";
    if (!same_bits(after, expected)) damage += "the memory behind " + name + " was overwritten; ";
    all.resize(count_);
    return all;
  }

 private:
  void fill_host_canaries() {
    const std::vector<float> words(host_bytes_ / sizeof(float), canary);
    std::memcpy(host_.get(), words.data(), host_bytes_);
  }

  std::size_t count_ = 0;
  std::size_t host_bytes_ = 0;
  std::unique_ptr<std::byte, Aligned> host_;
  std::unique_ptr<Buffer> buffer_;
};

struct Buffers {
  std::vector<GuardedBuffer> tensors, scratch, prepared, constants;

  Buffer* bound(const Binding& binding) const {
    switch (binding.source) {
      case BindingSource::tensor:
        return tensors[binding.index].get();
      case BindingSource::scratch:
        return scratch[binding.index].get();
      case BindingSource::prepared:
        return prepared[binding.index].get();
      case BindingSource::constant:
        return constants[binding.index].get();
      case BindingSource::invalid:
        break;
    }
    return nullptr;
  }
};

Status add(std::vector<GuardedBuffer>& to, Device& device, BufferUsage usage, std::span<const float> values,
           Memory memory) {
  auto buffer = GuardedBuffer::create(device, usage, values.size(), memory);
  if (!buffer) return std::move(buffer).error().within("create_buffer");
  if (Status status = buffer->fill(values); !status.ok()) return status.within("write");
  to.push_back(std::move(buffer).value());
  return {};
}

// Its bytes as the words that buffers are filled with and compared by.
std::vector<float> words_of(const Constant& constant) {
  const std::span<const std::byte> bytes = constant.tensor().bytes();
  std::vector<float> words(bytes.size() / sizeof(float));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(float));
  return words;
}

Status allocate(Buffers& buffers, Device& device, const KernelPlan& plan,
                const std::vector<std::vector<float>>& tensors, Memory memory) {
  const auto poison = [](std::uint64_t bytes) {
    return std::vector<float>(static_cast<std::size_t>(bytes / sizeof(float)), std::numeric_limits<float>::quiet_NaN());
  };
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorDecl& decl = plan.tensors[i];
    const bool output = decl.role == TensorRole::output;
    if (!output && tensors[i].size() * sizeof(float) != decl.bytes) {
      return invalid_argument("tensor " + decl.name + ": " + std::to_string(tensors[i].size() * sizeof(float)) +
                              " bytes, expected " + std::to_string(decl.bytes));
    }
    const auto status =
        add(buffers.tensors, device, usage_of(decl.role), output ? poison(decl.bytes) : tensors[i], memory);
    if (!status.ok()) return status.within("tensor " + decl.name);
  }
  for (const ScratchDecl& scratch : plan.scratch) {
    const auto status = add(buffers.scratch, device, BufferUsage::storage, poison(scratch.bytes), Memory::devices);
    if (!status.ok()) return status.within("scratch " + scratch.name);
  }
  for (const PreparedDecl& prepared : plan.prepared) {
    const auto status = add(buffers.prepared, device, BufferUsage::storage, poison(prepared.bytes), Memory::devices);
    if (!status.ok()) return status.within("packed constant " + prepared.layout);
  }
  for (const auto& constant : plan.constants) {
    const auto status = add(buffers.constants, device, BufferUsage::storage, words_of(*constant), Memory::devices);
    if (!status.ok()) return status.within("the plan's own constant");
  }
  return {};
}

Status run_passes(Device& device, const std::vector<Pass>& passes, const Buffers& buffers) {
  if (passes.empty()) return {};
  std::vector<std::unique_ptr<Program>> programs;
  std::vector<std::vector<Buffer*>> bound;
  std::vector<PassLaunch> launches;
  for (const Pass& pass : passes) {
    auto program = device.build(pass.source);
    if (!program) return std::move(program).error().within("build");
    programs.push_back(std::move(program).value());
    std::vector<Buffer*>& bindings = bound.emplace_back();
    for (const Binding& binding : pass.bindings) bindings.push_back(buffers.bound(binding));
  }
  for (std::size_t i = 0; i < passes.size(); ++i) launches.push_back({programs[i].get(), bound[i], passes[i].grid});
  const auto value = device.submit({launches});
  if (!value) return Status(value.error()).within("submit");
  const auto fence = device.wait(*value, Deadline::never());
  return fence ? ok_status() : Status(fence.error()).within("wait");
}

Status take_all(Buffers& buffers, const KernelPlan& plan, std::vector<std::vector<float>>& tensors,
                std::string& damage) {
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorDecl& decl = plan.tensors[i];
    auto values = buffers.tensors[i].take(decl.name, damage);
    if (!values) return std::move(values).error().within("read " + decl.name);
    if (decl.role == TensorRole::output || decl.role == TensorRole::inout) {
      tensors[i] = std::move(values).value();
    } else if (!same_bits(*values, tensors[i])) {
      damage += decl.name + ", which is read-only, was overwritten; ";
    }
  }
  for (std::size_t i = 0; i < plan.scratch.size(); ++i) {
    if (auto values = buffers.scratch[i].take(plan.scratch[i].name, damage); !values) return std::move(values).error();
  }
  for (std::size_t i = 0; i < plan.constants.size(); ++i) {
    auto values = buffers.constants[i].take("the plan's own constant", damage);
    if (!values) return std::move(values).error();
    if (!same_bits(*values, words_of(*plan.constants[i]))) damage += "the plan's own constant was overwritten; ";
  }
  for (std::size_t i = 0; i < plan.prepared.size(); ++i) {
    if (auto values = buffers.prepared[i].take(plan.prepared[i].layout, damage); !values)
      return std::move(values).error();
  }
  return {};
}

}  // namespace

PlanOutcome run_plan(Device& device, const KernelPlan& plan, std::vector<std::vector<float>>& tensors, Memory memory) {
  PlanOutcome outcome;
  Buffers buffers;
  outcome.status = allocate(buffers, device, plan, tensors, memory);
  if (outcome.status.ok()) outcome.status = run_passes(device, plan.prepare, buffers);
  if (outcome.status.ok()) outcome.status = run_passes(device, plan.passes, buffers);
  if (outcome.status.ok()) outcome.status = take_all(buffers, plan, tensors, outcome.damage);
  return outcome;
}

}  // namespace kiln::conformance
