// Pipeline: oneDNN primitives in order, with the places of their operands: a way to compute a spec, or a part of it.
//
// Thread-safety: one thread at a time runs it; distinct pipelines are independent. Ownership: owns its primitives;
// addresses are given with each run. It knows the layout in which it wants its constant; packing it is the caller's.
#pragma once

#include <kiln/kernel.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

namespace kiln::cpu {

// Where an operand lives. All but the workspace are the tensors of a spec, the constant as packed.
enum class Place : std::uint8_t { input, addend, constant, bias, output, workspace };
using Addresses = std::array<std::byte*, 6>;  // by Place; null where the spec has no such tensor

class Pipeline {
 public:
  struct Operand {
    int argument = 0;  // DNNL_ARG_…
    Place place = Place::input;
    dnnl::memory::desc desc;
    std::uint64_t offset = 0;  // bytes from the place's address
  };

  // The constant as the pipeline wants it: `given` says how it lies, from `offset` bytes on. Equal: as it lies.
  struct Constant {
    dnnl::memory::desc given, wanted;
    std::uint64_t offset = 0;
    bool operator==(const Constant& other) const {
      return offset == other.offset && given == other.given && wanted == other.wanted;
    }
  };

  // Room for a tensor within the workspace: an operand without its argument.
  Operand reserve(const dnnl::memory::desc& desc);
  // Operands without a size (an absent bias) are left out; room for the scratchpad is reserved here.
  void add(const dnnl::primitive& primitive, const dnnl::engine& engine, const dnnl::memory::desc& scratchpad,
           std::vector<Operand> operands);
  void add_reorder(const dnnl::engine& engine, Operand from, Operand to);
  void set_constant(Constant constant) { constant_ = std::move(constant); }

  const Constant& constant() const noexcept { return constant_; }
  std::uint64_t workspace_bytes() const noexcept { return workspace_bytes_; }

  // Runs the primitives and returns when their results are in memory. Throws dnnl::error.
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

  std::vector<Step> steps_;
  Constant constant_;
  std::uint64_t workspace_bytes_ = 0;
};

}  // namespace kiln::cpu
