// Pipeline: one way to compute a spec: oneDNN primitives in order, with the places of their operands.
//
// Thread-safety: none; a device runs one pipeline at a time. Ownership: owns its primitives; addresses are given with
// each run. A pipeline knows the layout in which it wants its constant; packing it is the caller's.
#pragma once

#include <kiln/kernel.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

namespace kiln::cpu {

// Where an operand lives. The first four are the tensors of a spec, the constant as packed.
enum class Place : std::uint8_t { input, constant, bias, output, workspace };
using Addresses = std::array<std::byte*, 5>;  // by Place; bias may be null where there is none

class Pipeline {
 public:
  struct Operand {
    int argument = 0;  // DNNL_ARG_…
    Place place = Place::input;
    dnnl::memory::desc desc;
    std::uint64_t offset = 0;  // bytes from the place's address
  };

  explicit Pipeline(std::string layout) : layout_(std::move(layout)) {}

  // Room for a tensor within the workspace: an operand without its argument.
  Operand reserve(const dnnl::memory::desc& desc);
  // Operands without a size (an absent bias) are left out; room for the scratchpad is reserved here.
  void add(const dnnl::primitive& primitive, const dnnl::engine& engine, const dnnl::memory::desc& scratchpad,
           std::vector<Operand> operands);
  void add_reorder(const dnnl::engine& engine, Operand from, Operand to);
  void set_constant(dnnl::memory::desc given, dnnl::memory::desc wanted);

  const std::string& layout() const noexcept { return layout_; }  // "blocked", "plain": for people
  const dnnl::memory::desc& constant_given() const noexcept { return given_; }
  const dnnl::memory::desc& constant_wanted() const noexcept { return wanted_; }
  std::uint64_t workspace_bytes() const noexcept { return workspace_bytes_; }

  // Runs the primitives on the calling thread and returns when their results are in memory. Throws dnnl::error.
  void run(dnnl::stream& stream, const Addresses& addresses);

 private:
  struct Bound {
    Operand operand;
    dnnl::memory memory;
    std::byte* at = nullptr;  // the address last bound: binding again costs more than comparing
  };
  struct Step {
    dnnl::primitive primitive;
    std::vector<Bound> bound;
    std::vector<dnnl_exec_arg_t> arguments;  // refers to the memories in `bound`
  };

  std::string layout_;
  std::vector<Step> steps_;
  dnnl::memory::desc given_, wanted_;
  std::uint64_t workspace_bytes_ = 0;
};

}  // namespace kiln::cpu
