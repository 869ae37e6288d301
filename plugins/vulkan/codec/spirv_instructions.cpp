#include "codec/spirv_instructions.hpp"

#include <limits>

namespace kiln::vulkan::spirv {

std::size_t result_operand(spv::Op op) noexcept {
  bool has_result = false, has_type = false;
  spv::HasResultAndType(op, &has_result, &has_type);
  return has_result ? (has_type ? 2 : 1) : 0;
}

std::size_t first_literal(spv::Op op) noexcept {
  const bool group_operation = (op >= spv::OpGroupIAdd && op <= spv::OpGroupSMax) ||
                               (op >= spv::OpGroupNonUniformIAdd && op <= spv::OpGroupNonUniformLogicalXor) ||
                               (op >= spv::OpGroupIAddNonUniformAMD && op <= spv::OpGroupSMaxNonUniformAMD);
  if (group_operation) return 4;
  switch (op) {
    case spv::OpLine:
    case spv::OpSelectionMerge:
    case spv::OpLifetimeStart:
    case spv::OpLifetimeStop:
      return 2;
    case spv::OpFunction:
    case spv::OpStore:
    case spv::OpLoopMerge:
    case spv::OpSwitch:
    case spv::OpCopyMemory:
      return 3;
    case spv::OpLoad:
    case spv::OpArrayLength:
    case spv::OpCopyMemorySized:
    case spv::OpCompositeExtract:
    case spv::OpBranchConditional:
    case spv::OpGroupNonUniformBallotBitCount:
    case spv::OpImageWrite:
      return 4;
    case spv::OpCompositeInsert:
    case spv::OpVectorShuffle:
    case spv::OpSDot:
    case spv::OpUDot:
    case spv::OpSUDot:
    case spv::OpImageRead:
    case spv::OpImageFetch:
    case spv::OpImageSampleImplicitLod:
    case spv::OpImageSampleExplicitLod:
    case spv::OpImageSampleProjImplicitLod:
    case spv::OpImageSampleProjExplicitLod:
    case spv::OpImageSparseRead:
    case spv::OpImageSparseFetch:
    case spv::OpImageSparseSampleImplicitLod:
    case spv::OpImageSparseSampleExplicitLod:
    case spv::OpCooperativeMatrixStoreNV:
      return 5;
    case spv::OpSDotAccSat:
    case spv::OpUDotAccSat:
    case spv::OpSUDotAccSat:
    case spv::OpImageGather:
    case spv::OpImageDrefGather:
    case spv::OpImageSampleDrefImplicitLod:
    case spv::OpImageSampleDrefExplicitLod:
    case spv::OpImageSampleProjDrefImplicitLod:
    case spv::OpImageSampleProjDrefExplicitLod:
    case spv::OpImageSparseGather:
    case spv::OpImageSparseDrefGather:
    case spv::OpImageSparseSampleDrefImplicitLod:
    case spv::OpImageSparseSampleDrefExplicitLod:
    case spv::OpCooperativeMatrixLoadNV:
      return 6;
    case spv::OpImageSampleFootprintNV:
      return 7;
    default:
      return SIZE_MAX;
  }
}

bool is_literal(spv::Op op, std::size_t operand) noexcept {
  const bool storage_class = op == spv::OpVariable && operand == 3;
  const bool number_of_function = op == spv::OpExtInst && operand == 4;
  return storage_class || number_of_function;
}

std::string words_of_model(std::uint32_t model) {
  switch (model) {
    case spv::ExecutionModelVertex:
      return "a vertex shader";
    case spv::ExecutionModelTessellationControl:
      return "a tessellation control shader";
    case spv::ExecutionModelTessellationEvaluation:
      return "a tessellation evaluation shader";
    case spv::ExecutionModelGeometry:
      return "a geometry shader";
    case spv::ExecutionModelFragment:
      return "a fragment shader";
    case spv::ExecutionModelKernel:
      return "an OpenCL kernel";
    case spv::ExecutionModelTaskNV:
    case spv::ExecutionModelTaskEXT:
      return "a task shader";
    case spv::ExecutionModelMeshNV:
    case spv::ExecutionModelMeshEXT:
      return "a mesh shader";
    case spv::ExecutionModelRayGenerationKHR:
      return "a ray generation shader";
    case spv::ExecutionModelIntersectionKHR:
      return "an intersection shader";
    case spv::ExecutionModelAnyHitKHR:
      return "an any-hit shader";
    case spv::ExecutionModelClosestHitKHR:
      return "a closest-hit shader";
    case spv::ExecutionModelMissKHR:
      return "a miss shader";
    case spv::ExecutionModelCallableKHR:
      return "a callable shader";
    default:
      return "of execution model " + std::to_string(model);
  }
}

std::uint64_t cut(std::uint64_t value, std::uint32_t bits) noexcept {
  return value & std::numeric_limits<std::uint64_t>::max() >> (64 - bits);
}

std::int64_t sign_extended(std::uint64_t value, std::uint32_t bits) noexcept {
  return static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits);
}

std::optional<std::uint64_t> value_of(spv::Op op, std::uint32_t bits, std::uint64_t a, std::uint64_t b,
                                      std::uint64_t c) noexcept {
  const std::int64_t x = sign_extended(a, bits), y = sign_extended(b, bits);
  const bool divides = y != 0 && !(x == std::numeric_limits<std::int64_t>::min() >> (64 - bits) && y == -1);
  const auto as_bits = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  switch (op) {
    case spv::OpUConvert:
      return a;
    case spv::OpSConvert:
      return as_bits(x);
    case spv::OpSNegate:
      return 0U - a;
    case spv::OpNot:
      return ~a;
    case spv::OpLogicalNot:
      return a == 0 ? 1U : 0U;
    case spv::OpIAdd:
      return a + b;
    case spv::OpISub:
      return a - b;
    case spv::OpIMul:
      return a * b;
    case spv::OpUDiv:
      return b == 0 ? std::nullopt : std::optional(a / b);
    case spv::OpUMod:
      return b == 0 ? std::nullopt : std::optional(a % b);
    case spv::OpSDiv:
      return divides ? std::optional(as_bits(x / y)) : std::nullopt;
    case spv::OpSRem:
      return divides ? std::optional(as_bits(x % y)) : std::nullopt;
    case spv::OpSMod:  // with the sign of the second
      return divides ? std::optional(as_bits(x % y != 0 && (x < 0) != (y < 0) ? x % y + y : x % y)) : std::nullopt;
    case spv::OpShiftLeftLogical:
      return b < bits ? std::optional(a << b) : std::nullopt;
    case spv::OpShiftRightLogical:
      return b < bits ? std::optional(a >> b) : std::nullopt;
    case spv::OpShiftRightArithmetic:
      return b < bits ? std::optional(as_bits(x >> b)) : std::nullopt;
    case spv::OpBitwiseAnd:
    case spv::OpLogicalAnd:
      return a & b;
    case spv::OpBitwiseOr:
    case spv::OpLogicalOr:
      return a | b;
    case spv::OpBitwiseXor:
      return a ^ b;
    case spv::OpIEqual:
    case spv::OpLogicalEqual:
      return a == b ? 1U : 0U;
    case spv::OpINotEqual:
    case spv::OpLogicalNotEqual:
      return a != b ? 1U : 0U;
    case spv::OpULessThan:
      return a < b ? 1U : 0U;
    case spv::OpULessThanEqual:
      return a <= b ? 1U : 0U;
    case spv::OpUGreaterThan:
      return a > b ? 1U : 0U;
    case spv::OpUGreaterThanEqual:
      return a >= b ? 1U : 0U;
    case spv::OpSLessThan:
      return x < y ? 1U : 0U;
    case spv::OpSLessThanEqual:
      return x <= y ? 1U : 0U;
    case spv::OpSGreaterThan:
      return x > y ? 1U : 0U;
    case spv::OpSGreaterThanEqual:
      return x >= y ? 1U : 0U;
    case spv::OpSelect:
      return a != 0 ? b : c;
    default:
      return std::nullopt;
  }
}

}  // namespace kiln::vulkan::spirv
