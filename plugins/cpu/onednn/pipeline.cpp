#include "onednn/pipeline.hpp"

namespace kiln::cpu {
namespace {

constexpr std::uint64_t alignment = 64;

}  // namespace

Pipeline::Operand Pipeline::reserve(const dnnl::memory::desc& desc) {
  const std::uint64_t offset = workspace_bytes_;
  workspace_bytes_ += (desc.get_size() + alignment - 1) / alignment * alignment;
  return {0, Place::workspace, desc, offset};
}

void Pipeline::add(const dnnl::primitive& primitive, const dnnl::engine& engine, const dnnl::memory::desc& scratchpad,
                   std::vector<Operand> operands) {
  Step step;
  step.primitive = primitive;
  operands.push_back(reserve(scratchpad));
  operands.back().argument = DNNL_ARG_SCRATCHPAD;
  for (Operand& operand : operands) {
    if (operand.desc.get_size() == 0) continue;
    dnnl::memory memory(operand.desc, engine, DNNL_MEMORY_NONE);
    step.arguments.push_back({operand.argument, memory.get()});
    step.bound.push_back({std::move(operand), std::move(memory)});
  }
  steps_.push_back(std::move(step));
}

void Pipeline::add_reorder(const dnnl::engine& engine, Operand from, Operand to) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc described(engine, from.desc, engine, to.desc, attributes);
  from.argument = DNNL_ARG_FROM;
  to.argument = DNNL_ARG_TO;
  add(dnnl::reorder(described), engine, described.scratchpad_desc(), {std::move(from), std::move(to)});
}

void Pipeline::run(dnnl::stream& stream, const Addresses& addresses) {
  for (Step& step : steps_) {
    for (Bound& bound : step.bound) {
      std::byte* at = addresses[static_cast<std::size_t>(bound.operand.place)] + bound.operand.offset;
      if (at == bound.at) continue;
      bound.memory.set_data_handle(at);
      bound.at = at;
    }
    dnnl::error::wrap_c_api(dnnl_primitive_execute(step.primitive.get(), stream.get(),
                                                   static_cast<int>(step.arguments.size()), step.arguments.data()),
                            "a primitive failed while it ran");
  }
  stream.wait();
}

}  // namespace kiln::cpu
