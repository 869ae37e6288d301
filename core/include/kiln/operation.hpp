// Operation: the table of the properties and functions of each kind of KernelSpec.
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

// One tensor of a spec. `shape` is empty if a kernel's binding does not define it.
struct Operand {
  std::string name;
  TensorRole role = TensorRole::invalid;
  Shape shape;
  std::uint64_t bytes = 0;
};

// Each function REQUIRES a spec of this operation. All functions except `operands` and `flops` also REQUIRE a valid spec.
struct Operation {
  std::string_view name;  // `op` of a job
  // true: Kiln defines the computation on fp32 tensors with the shapes in `operands`, and has a reference in double
  // precision. false: a user kernel.
  bool is_layer = false;
  Status (*check)(const KernelSpec& spec) = nullptr;  // for validate()
  // Returns the tensors in the order of a request. The output of a layer is the last one.
  std::vector<Operand> (*operands)(const KernelSpec& spec) = nullptr;
  double (*flops)(const KernelSpec& spec) = nullptr;
  // Returns flops() divided by the smallest number of operations that can compute the result; at least 1.
  double (*saving)(const KernelSpec& spec) = nullptr;
  std::string (*fields)(const KernelSpec& spec) = nullptr;  // canonical_text() without the name
  std::string (*shape)(const KernelSpec& spec) = nullptr;   // for people: "1x3x224x224 k64 7x7 stride 2 pad 3"
  // Specs with the same family and similar size have similar FLOP/s on a device.
  std::string (*family)(const KernelSpec& spec) = nullptr;
};

// Returns all operations in the order of the alternatives of KernelSpec.
std::span<const Operation> operations() noexcept;
const Operation* operation_named(std::string_view name) noexcept;  // null: unknown name
// REQUIRES: the spec holds an alternative.
const Operation& operation_of(const KernelSpec& spec) noexcept;

}  // namespace kiln
