#include "cpu/cpu_under_test.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "data/tensor_source.hpp"
#include "reference/compare.hpp"

namespace kiln::cpu_test {
namespace {

constexpr std::size_t guard_bytes = 256;
constexpr std::size_t alignment = 64;
constexpr std::byte guard_value{0xA5};

bool is_output(const TensorDecl& tensor) { return tensor.role == TensorRole::output; }

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(result).value();
}

}  // namespace

OpenedCpu::OpenedCpu(PluginSettings settings, Log log) : plugin("cpu", std::move(settings)) {
  plugin.listen(log);
  plugin.driver().enumerate();
  onednn_preceded_open();
  device = plugin.open("cpu");
  generator = value_of(value_of(plugin.registry().generators("library")).front()->make({}));
}

bool onednn_preceded_open() {
  static const bool preceded = is_mapped("libdnnl");  // libgomp is there before: the pool's own tests are linked to it
  return preceded;
}

OpenedCpu& shared_cpu() {
  static OpenedCpu opened;
  return opened;
}

bool is_mapped(const std::string& part) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(part) != std::string::npos) return true;
  }
  return false;
}

KernelSource source_of(const KernelSpec& spec) {
  KernelSource source;
  source.dialect = Dialect::library;
  source.text = canonical_text(spec);
  source.spec = spec;
  return source;
}

GuardedTensor::GuardedTensor(std::uint64_t bytes)
    : memory_(bytes + 2 * guard_bytes + alignment, guard_value), size_(bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(memory_.data()) + guard_bytes;
  begin_ = guard_bytes + (alignment - start % alignment) % alignment;
}

std::span<float> GuardedTensor::values() noexcept {
  return {reinterpret_cast<float*>(memory_.data() + begin_), size_ / sizeof(float)};
}

std::span<std::byte> GuardedTensor::bytes() noexcept { return {memory_.data() + begin_, size_}; }

bool GuardedTensor::guards_intact() const noexcept {
  const auto intact = [](std::byte value) { return value == guard_value; };
  const auto first = memory_.begin() + static_cast<std::ptrdiff_t>(begin_);
  return std::all_of(memory_.begin(), first, intact) &&
         std::all_of(first + static_cast<std::ptrdiff_t>(size_), memory_.end(), intact);
}

Job::Job(Device& device, const KernelSpec& spec, std::uint64_t seed) : device_(device), spec_(spec) {
  program_ = value_of(device.build(source_of(spec)));
  for (const TensorDecl& decl : tensors_of(spec)) {
    GuardedTensor& tensor = tensors_.emplace_back(decl.bytes);
    if (!is_output(decl)) {
      const auto elements = static_cast<std::int64_t>(decl.bytes / sizeof(float));
      inputs_.push_back(value_of(HostTensor::create(DType::f32, {elements})));
      data::fill_random(*inputs_.back(), seed + tensors_.size());
      std::ranges::copy(inputs_.back()->bytes(), tensor.bytes().begin());
    }
    BufferDesc desc;
    desc.bytes = decl.bytes;
    desc.host = tensor.bytes();
    desc.usage = is_output(decl)                     ? BufferUsage::readback
                 : decl.role == TensorRole::constant ? BufferUsage::constant
                                                     : BufferUsage::upload;
    buffers_.push_back(value_of(device.create_buffer(desc)));
    bindings_.push_back(buffers_.back().get());
  }
  poison();
}

Result<std::uint64_t> Job::submit() {
  const PassLaunch launch{program_.get(), bindings_, {1, 1, 1}};
  return device_.submit({{&launch, 1}});
}

Status Job::run() {
  const auto value = submit();
  if (!value) return value.error();
  const auto fence = device_.wait(*value, Deadline::never());
  return fence ? ok_status() : fence.error();
}

void Job::poison() { std::ranges::fill(tensors_.back().values(), std::numeric_limits<float>::quiet_NaN()); }

std::string Job::difference() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const std::string who = "tensor " + std::to_string(i);
    if (!tensors_[i].guards_intact()) return who + ": memory around it was written";
    if (i < inputs_.size() &&
        std::memcmp(inputs_[i]->bytes().data(), tensors_[i].bytes().data(), tensors_[i].bytes().size()) != 0) {
      return who + ": an input was written";
    }
  }
  const HostTensor* bias = inputs_.size() == 3 ? inputs_[2].get() : nullptr;
  const auto* conv = std::get_if<Conv2dSpec>(&spec_);
  const auto compared =
      conv != nullptr ? reference::compare_conv2d(*conv, *inputs_[0], *inputs_[1], bias, output())
                      : reference::compare_gemm(std::get<GemmSpec>(spec_), *inputs_[0], *inputs_[1], bias, output());
  if (!compared) return compared.error().text();
  if (compared->within) return {};
  return "element " + std::to_string(compared->worst_index) + ": relative error " +
         std::to_string(compared->max_rel_error) + ", allowed " + std::to_string(compared->error_bound) + ", " +
         std::to_string(compared->not_finite) + " not finite";
}

}  // namespace kiln::cpu_test
