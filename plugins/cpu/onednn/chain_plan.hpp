// Which additions of a chain become part of a convolution: residual connections.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "onednn/candidate.hpp"

namespace kiln::cpu {

// An `add` that a convolution computes: it adds its own result to the tensor `residual`, whose memory becomes that of
// the sum.
struct FusedAdd {
  std::uint32_t add_step = 0, residual = 0;
  bool operator==(const FusedAdd&) const = default;
};

// By step of the chain: what its convolution adds; nullopt: nothing. The convolution has no activation, and only the
// add reads its result. The residual is computed before the convolution runs, is not its input, and nobody else reads
// it from there on. Neither of the two is an input or a result of the chain.
std::vector<std::optional<FusedAdd>> fused_adds_of(const ChainSpec& spec);

// ChainPlan: a chain of layers as oneDNN primitives in tiles, with one memory layout for the tensors between them.
//
// Thread-safety: making a plan: any thread on which OpenMP is limited to one thread (OmpAlone). A plan's tiles are run
// by one thread each. Ownership: owns its primitives; addresses are given when it runs.
// A tensor inside the chain stays in the layout in which a convolution likes it. It is reordered only where it enters
// or leaves the chain, and before a product or a softmax. An `add` whose first or second operand is a convolution's
// result becomes part of that convolution.

// blocked: the processor's vector of channels lies together (nChw8c, nChw16c), and threads share channels. rows: all
// channels of a pixel lie together (nhwc), and threads share rows.
enum class ChainLayout : std::uint8_t { invalid = 0, blocked, rows };

// Where an operand lies: in the chain's own memory, in a tensor of the request, in a packed constant, or in the
// thread's own scratchpad.
enum class ChainPlace : std::uint8_t { invalid = 0, arena, tensor, packed, scratch };

struct ChainOperand {
  int argument = 0;  // DNNL_ARG_…
  ChainPlace place = ChainPlace::invalid;
  std::uint32_t index = 0;  // arena: its slot; tensor: in the request; packed: in ChainPlan::constants
  dnnl::memory::desc desc;
  std::uint64_t offset = 0;  // bytes
};

struct ChainTile {
  dnnl::primitive primitive;
  std::vector<ChainOperand> operands;
};

// Tiles that are independent of each other. All of them end before the next phase begins.
struct ChainPhase {
  std::uint32_t step = 0;  // of the spec
  std::vector<ChainTile> tiles;
};

struct ChainConstant {
  std::uint32_t tensor = 0;  // in the request
  Pipeline::Constant form;
};

struct ChainSlot {
  std::uint64_t bytes = 0, offset = 0;          // in the arena
  std::size_t first_phase = 0, last_phase = 0;  // between which it is needed
};

struct ChainPlan {
  std::string name;  // "nChw8c, 4 tiles": for people
  std::vector<ChainPhase> phases;
  std::vector<ChainConstant> constants;
  std::vector<ChainSlot> slots;
  std::uint64_t arena_bytes = 0, scratch_bytes = 0;  // scratch: of one thread
  std::uint32_t fused_adds = 0;
};

// tiles: about so many a phase. Throws dnnl::error where oneDNN has no code of its own for a layer in this layout,
// unless `references` allows its plain loops. REQUIRES: validate(spec).ok(); tiles is positive.
enum class References : std::uint8_t { invalid = 0, refused, allowed };
ChainPlan plan_chain(const ChainSpec& spec, const dnnl::engine& engine, ChainLayout layout, int tiles,
                     References references);

}  // namespace kiln::cpu
