#include "codec/sampled_pairs.hpp"

#include <map>
#include <set>
#include <utility>

namespace kiln::vulkan {
namespace {

using Instruction = SpirvModule::Instruction;

constexpr int deepest = 64;  // a value behind more steps cannot be told
constexpr std::uint32_t unknown = 0;

class Tracer {
 public:
  explicit Tracer(const SpirvModule& module) : module_(module) {
    std::uint32_t function = 0, parameter = 0;
    module.for_each_reached([&](Instruction instruction) {
      switch (SpirvModule::op(instruction)) {
        case spv::OpFunction:
          function = SpirvModule::operand(instruction, 2);
          parameter = 0;
          break;
        case spv::OpFunctionParameter:
          parameters_[SpirvModule::operand(instruction, 2)] = {function, parameter++};
          break;
        case spv::OpFunctionCall:
          calls_[SpirvModule::operand(instruction, 3)].push_back(instruction);
          break;
        default:
          break;
      }
    });
  }

  // The variables that a value may come from.
  std::set<std::uint32_t> variables(std::uint32_t value) const {
    std::set<std::uint32_t> found;
    trace(value, 0, found);
    return found;
  }

 private:
  void trace(std::uint32_t value, int depth, std::set<std::uint32_t>& found) const {
    const Instruction made = module_.definition(value);
    const spv::Op op = SpirvModule::op(made);
    if (depth > deepest) {
      found.insert(unknown);
    } else if (op == spv::OpVariable && SpirvModule::operand(made, 3) == spv::StorageClassUniformConstant) {
      found.insert(value);
    } else if (op == spv::OpLoad || op == spv::OpCopyObject || op == spv::OpAccessChain ||
               op == spv::OpInBoundsAccessChain || op == spv::OpImage) {
      trace(SpirvModule::operand(made, 3), depth + 1, found);
    } else if (op == spv::OpSelect) {
      trace(SpirvModule::operand(made, 4), depth + 1, found);
      trace(SpirvModule::operand(made, 5), depth + 1, found);
    } else if (const auto parameter = parameters_.find(value); parameter != parameters_.end()) {
      const auto& [function, index] = parameter->second;
      const auto calls = calls_.find(function);
      if (calls == calls_.end()) return;
      for (const Instruction call : calls->second)
        trace(SpirvModule::operand(call, std::size_t{4} + index), depth + 1, found);
    } else {
      found.insert(unknown);
    }
  }

  const SpirvModule& module_;
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> parameters_;  // to its function and place
  std::map<std::uint32_t, std::vector<Instruction>> calls_;                      // by function
};

enum class Use : std::uint8_t { none, samples, compares };

Use use_of(spv::Op op) {
  switch (op) {
    case spv::OpImageSampleImplicitLod:
    case spv::OpImageSampleExplicitLod:
    case spv::OpImageSampleProjImplicitLod:
    case spv::OpImageSampleProjExplicitLod:
    case spv::OpImageGather:
    case spv::OpImageQueryLod:
      return Use::samples;
    case spv::OpImageSampleDrefImplicitLod:
    case spv::OpImageSampleDrefExplicitLod:
    case spv::OpImageSampleProjDrefImplicitLod:
    case spv::OpImageSampleProjDrefExplicitLod:
    case spv::OpImageDrefGather:
      return Use::compares;
    default:
      return Use::none;
  }
}

}  // namespace

std::vector<SampledPair> sampled_pairs(const SpirvModule& module) {
  const Tracer tracer(module);
  std::vector<SampledPair> pairs;
  module.for_each_reached([&](Instruction instruction) {
    const Use use = use_of(SpirvModule::op(instruction));
    if (use == Use::none) return;
    const std::uint32_t sampled = SpirvModule::operand(instruction, 3);
    const Instruction made = module.definition(sampled);
    const bool apart = SpirvModule::op(made) == spv::OpSampledImage;
    for (const std::uint32_t texture : tracer.variables(apart ? SpirvModule::operand(made, 3) : sampled)) {
      const auto samplers = apart ? tracer.variables(SpirvModule::operand(made, 4)) : std::set<std::uint32_t>{unknown};
      for (const std::uint32_t sampler : samplers) pairs.push_back({texture, sampler, apart, use == Use::compares});
    }
  });
  return pairs;
}

}  // namespace kiln::vulkan
