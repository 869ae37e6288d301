// Operation: everything that Kiln knows of one kind of KernelSpec, as one table entry.
//
// Thread-safety: constant data and pure functions. Ownership: the table is static.
//
//   const kiln::Operation& operation = kiln::operation_of(spec);  // a KernelSpec
//   for (const kiln::Operand& operand : operation.operands(spec)) {
//     std::cout << operand.name << ' ' << kiln::to_string(operand.shape) << '\n';
//   }
#pragma once

#include <kiln/kernel.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

// One tensor of a spec. `shape` is empty if a kernel's binding does not give it.
struct Operand {
  std::string name;
  TensorRole role = TensorRole::invalid;
  Shape shape;
  std::uint64_t bytes = 0;
};

// Each function REQUIRES a spec of this operation; all but `operands` and `flops` also REQUIRE that it is valid.
struct Operation {
  std::string_view name;  // `op` of a job
  // Kiln defines what it computes: fp32 tensors of the shapes in `operands`, with a reference in double precision.
  // false: a user's kernel.
  bool is_layer = false;
  Status (*check)(const KernelSpec& spec) = nullptr;  // of validate()
  // In the order of a request, the output last (layers).
  std::vector<Operand> (*operands)(const KernelSpec& spec) = nullptr;
  double (*flops)(const KernelSpec& spec) = nullptr;
  // flops() divided by the fewest operations that can give the result: at least 1.
  double (*saving)(const KernelSpec& spec) = nullptr;
  std::string (*fields)(const KernelSpec& spec) = nullptr;  // canonical_text() without the name
  std::string (*shape)(const KernelSpec& spec) = nullptr;   // for people: "1x3x224x224 k64 7x7 stride 2 pad 3"
  // Specs of one family have similar FLOP/s on a device, as far as they are of similar size.
  std::string (*family)(const KernelSpec& spec) = nullptr;
};

// In the order of the alternatives of KernelSpec.
std::span<const Operation> operations() noexcept;
const Operation* operation_named(std::string_view name) noexcept;  // null: there is none
// REQUIRES: the spec holds an alternative.
const Operation& operation_of(const KernelSpec& spec) noexcept;

}  // namespace kiln
