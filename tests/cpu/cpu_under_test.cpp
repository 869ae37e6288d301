#include "cpu/cpu_under_test.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <stdexcept>

#include "cpu/naive.hpp"

namespace kiln::cpu_test {
namespace {

constexpr std::size_t guard_bytes = 256;
constexpr std::size_t alignment = 64;
constexpr std::byte guard_value{0xA5};

bool is_output(const TensorDecl& tensor) { return tensor.role == TensorRole::output; }

}  // namespace

OpenedCpu::OpenedCpu(PluginSettings settings) : plugin("cpu", std::move(settings)) {
  plugin.driver().enumerate();
  onednn_preceded_open();
  device = plugin.open("cpu");
  auto generators = plugin.registry().generators("library");
  if (!generators) throw std::runtime_error(generators.error().text());
  auto made = generators->front()->make({});
  if (!made) throw std::runtime_error(made.error().text());
  generator = std::move(made).value();
}

bool onednn_preceded_open() {
  static const bool preceded = is_mapped("libdnnl") || is_mapped("libgomp");
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
  auto program = device.build(source_of(spec));
  if (!program) throw std::runtime_error(program.error().text());
  program_ = std::move(program).value();
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const std::vector<TensorDecl> decls = tensors_of(spec);
  for (const TensorDecl& decl : decls) {
    GuardedTensor& tensor = tensors_.emplace_back(decl.bytes);
    for (float& value : tensor.values()) value = uniform(random);
  }
  for (std::size_t i = 0; i < decls.size(); ++i) {
    BufferDesc desc;
    desc.bytes = decls[i].bytes;
    desc.host = tensors_[i].bytes();
    desc.usage = is_output(decls[i])                     ? BufferUsage::readback
                 : decls[i].role == TensorRole::constant ? BufferUsage::constant
                                                         : BufferUsage::upload;
    auto buffer = device.create_buffer(desc);
    if (!buffer) throw std::runtime_error(buffer.error().text());
    buffers_.push_back(std::move(buffer).value());
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
    if (!tensors_[i].guards_intact()) return "memory around tensor " + std::to_string(i) + " was written";
  }
  std::vector<std::span<const float>> inputs;
  for (std::size_t i = 0; i + 1 < tensors_.size(); ++i) inputs.push_back(tensors_[i].values());
  return naive_difference(spec_, inputs, output());
}

}  // namespace kiln::cpu_test
