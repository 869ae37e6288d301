// What SPIR-V says of single instructions, as its specification lists them.
#include <catch2/catch.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "codec/spirv_instructions.hpp"

namespace kiln::vulkan::spirv {
namespace {

constexpr std::uint64_t as_bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

}  // namespace

TEST_CASE("vulkan instructions: an instruction has its result in the word of the specification", "[vulkan][spirv]") {
  const struct {
    std::uint32_t op;
    std::size_t word;
  } cases[] = {
      {5, 0},  {71, 0}, {62, 0},  {17, 0},   // OpName, OpDecorate, OpStore, OpCapability
      {7, 1},  {11, 1}, {21, 1},  {248, 1},  // OpString, OpExtInstImport, OpTypeInt, OpLabel
      {43, 2}, {59, 2}, {128, 2}, {54, 2},   // OpConstant, OpVariable, OpIAdd, OpFunction
  };
  for (const auto& each : cases) {
    INFO("operation " << each.op);
    CHECK(result_operand(static_cast<spv::Op>(each.op)) == each.word);
  }
}

TEST_CASE("vulkan instructions: literals begin at the word of the specification", "[vulkan][spirv]") {
  constexpr std::size_t none = SIZE_MAX;
  const struct {
    std::uint32_t op;
    std::size_t word;
  } cases[] = {
      // Group operations, from OpGroupIAdd to OpGroupSMax, from OpGroupNonUniformIAdd to OpGroupNonUniformLogicalXor,
      // and from OpGroupIAddNonUniformAMD to OpGroupSMaxNonUniformAMD.
      {263, none}, {264, 4},    {268, 4},     {271, 4},  {272, none}, {348, none},  {349, 4}, {356, 4},
      {364, 4},    {365, none}, {4999, none}, {5000, 4}, {5007, 4},   {5008, none}, {8, 2},  // OpLine
      {247, 2},                                                                              // OpSelectionMerge
      {256, 2},                                                                              // OpLifetimeStart
      {257, 2},                                                                              // OpLifetimeStop
      {54, 3},                                                                               // OpFunction
      {62, 3},                                                                               // OpStore
      {246, 3},                                                                              // OpLoopMerge
      {251, 3},                                                                              // OpSwitch
      {63, 3},                                                                               // OpCopyMemory
      {61, 4},                                                                               // OpLoad
      {68, 4},                                                                               // OpArrayLength
      {64, 4},                                                                               // OpCopyMemorySized
      {81, 4},                                                                               // OpCompositeExtract
      {250, 4},                                                                              // OpBranchConditional
      {342, 4},     // OpGroupNonUniformBallotBitCount
      {99, 4},      // OpImageWrite
      {82, 5},      // OpCompositeInsert
      {79, 5},      // OpVectorShuffle
      {4450, 5},    // OpSDot
      {4451, 5},    // OpUDot
      {4452, 5},    // OpSUDot
      {98, 5},      // OpImageRead
      {95, 5},      // OpImageFetch
      {87, 5},      // OpImageSampleImplicitLod
      {88, 5},      // OpImageSampleExplicitLod
      {91, 5},      // OpImageSampleProjImplicitLod
      {92, 5},      // OpImageSampleProjExplicitLod
      {320, 5},     // OpImageSparseRead
      {313, 5},     // OpImageSparseFetch
      {305, 5},     // OpImageSparseSampleImplicitLod
      {306, 5},     // OpImageSparseSampleExplicitLod
      {5360, 5},    // OpCooperativeMatrixStoreNV
      {4453, 6},    // OpSDotAccSat
      {4454, 6},    // OpUDotAccSat
      {4455, 6},    // OpSUDotAccSat
      {96, 6},      // OpImageGather
      {97, 6},      // OpImageDrefGather
      {89, 6},      // OpImageSampleDrefImplicitLod
      {90, 6},      // OpImageSampleDrefExplicitLod
      {93, 6},      // OpImageSampleProjDrefImplicitLod
      {94, 6},      // OpImageSampleProjDrefExplicitLod
      {314, 6},     // OpImageSparseGather
      {315, 6},     // OpImageSparseDrefGather
      {307, 6},     // OpImageSparseSampleDrefImplicitLod
      {308, 6},     // OpImageSparseSampleDrefExplicitLod
      {5359, 6},    // OpCooperativeMatrixLoadNV
      {5283, 7},    // OpImageSampleFootprintNV
      {128, none},  // OpIAdd
      {65, none},   // OpAccessChain
  };
  for (const auto& each : cases) {
    INFO("operation " << each.op);
    CHECK(first_literal(static_cast<spv::Op>(each.op)) == each.word);
  }
  for (const std::size_t word : {1, 2, 3, 4, 5}) {
    INFO("word " << word);
    CHECK(is_literal(spv::OpVariable, word) == (word == 3));  // the storage class
    CHECK(is_literal(spv::OpExtInst, word) == (word == 4));   // the number in its set
    CHECK_FALSE(is_literal(spv::OpLoad, word));
  }
}

TEST_CASE("vulkan instructions: an execution model is named", "[vulkan][spirv]") {
  const struct {
    std::uint32_t model;
    const char* words;
  } models[] = {
      {0, "a vertex shader"},
      {1, "a tessellation control shader"},
      {2, "a tessellation evaluation shader"},
      {3, "a geometry shader"},
      {4, "a fragment shader"},
      {6, "an OpenCL kernel"},
      {5267, "a task shader"},
      {5268, "a mesh shader"},
      {5313, "a ray generation shader"},
      {5314, "an intersection shader"},
      {5315, "an any-hit shader"},
      {5316, "a closest-hit shader"},
      {5317, "a miss shader"},
      {5318, "a callable shader"},
      {5364, "a task shader"},
      {5365, "a mesh shader"},
      {7, "of execution model 7"},
  };
  for (const auto& each : models) CHECK(words_of_model(each.model) == each.words);
}

TEST_CASE("vulkan instructions: numbers are cut and extended to their bits", "[vulkan][spirv]") {
  CHECK(cut(0x123456789abcdef0, 64) == 0x123456789abcdef0);
  CHECK(cut(0x123456789abcdef0, 32) == 0x9abcdef0);
  CHECK(cut(0xff, 8) == 0xff);
  CHECK(cut(0x1ff, 8) == 0xff);
  CHECK(cut(3, 1) == 1);
  CHECK(sign_extended(0x80, 8) == -128);
  CHECK(sign_extended(0x7f, 8) == 127);
  CHECK(sign_extended(0xff, 8) == -1);
  CHECK(sign_extended(0xff, 16) == 255);
  CHECK(sign_extended(0x80000000, 32) == INT32_MIN);
  CHECK(sign_extended(0x80000000, 64) == 0x80000000);
  CHECK(sign_extended(UINT64_MAX, 64) == -1);
  CHECK(sign_extended(1, 1) == -1);
}

TEST_CASE("vulkan instructions: an operation has the value of the specification", "[vulkan][spirv]") {
  constexpr std::optional<std::uint64_t> none;
  constexpr std::uint64_t minus = 0xffffffff;  // times one, in 32 bits
  const struct {
    spv::Op op;
    std::uint64_t a, b;
    std::optional<std::uint64_t> value;  // its first 32 bits
  } cases[] = {
      {spv::OpUConvert, 7, 0, 7},
      {spv::OpUConvert, minus, 0, minus},
      {spv::OpSConvert, minus, 0, minus},
      {spv::OpSNegate, 5, 0, minus - 4},
      {spv::OpSNegate, 0, 0, 0},
      {spv::OpNot, 0, 0, minus},
      {spv::OpNot, 0xf0, 0, minus - 0xf0},
      {spv::OpLogicalNot, 0, 0, 1},
      {spv::OpLogicalNot, 1, 0, 0},
      {spv::OpIAdd, 7, 3, 10},
      {spv::OpISub, 7, 3, 4},
      {spv::OpISub, 3, 7, minus - 3},
      {spv::OpIMul, 7, 3, 21},
      {spv::OpUDiv, 7, 3, 2},
      {spv::OpUDiv, minus, 2, 0x7fffffff},
      {spv::OpUDiv, 7, 0, none},
      {spv::OpUMod, 7, 3, 1},
      {spv::OpUMod, minus, 2, 1},
      {spv::OpUMod, 7, 0, none},
      {spv::OpSDiv, minus - 6, 2, minus - 2},  // -7 / 2 = -3
      {spv::OpSDiv, 7, 2, 3},
      {spv::OpSDiv, 7, 0, none},
      {spv::OpSDiv, 0x80000000, minus, none},  // no result in 32 bits
      {spv::OpSDiv, 0x80000001, minus, 0x7fffffff},
      {spv::OpSDiv, 0x80000000, 1, 0x80000000},
      {spv::OpSRem, minus - 6, 3, minus},  // -7 rem 3 = -1
      {spv::OpSRem, 7, minus - 2, 1},      // 7 rem -3 = 1
      {spv::OpSRem, 7, 0, none},
      {spv::OpSMod, minus - 6, 3, 2},          // -7 mod 3 = 2
      {spv::OpSMod, 7, minus - 2, minus - 1},  // 7 mod -3 = -2
      {spv::OpSMod, minus - 6, minus - 2, minus},
      {spv::OpSMod, 7, 3, 1},
      {spv::OpSMod, minus - 5, 3, 0},
      {spv::OpSMod, 6, minus - 2, 0},
      {spv::OpSMod, 7, 0, none},
      {spv::OpShiftLeftLogical, 3, 4, 48},
      {spv::OpShiftLeftLogical, 1, 31, 0x80000000},
      {spv::OpShiftLeftLogical, 1, 32, none},
      {spv::OpShiftRightLogical, 0x80000000, 31, 1},
      {spv::OpShiftRightLogical, 48, 4, 3},
      {spv::OpShiftRightLogical, 48, 32, none},
      {spv::OpShiftRightArithmetic, 0x80000000, 31, minus},
      {spv::OpShiftRightArithmetic, 48, 4, 3},
      {spv::OpShiftRightArithmetic, 48, 32, none},
      {spv::OpBitwiseAnd, 12, 10, 8},
      {spv::OpBitwiseOr, 12, 10, 14},
      {spv::OpBitwiseXor, 12, 10, 6},
      {spv::OpLogicalAnd, 1, 1, 1},
      {spv::OpLogicalAnd, 1, 0, 0},
      {spv::OpLogicalOr, 1, 0, 1},
      {spv::OpLogicalOr, 0, 0, 0},
      {spv::OpFAdd, 1, 2, none},
  };
  for (const auto& each : cases) {
    INFO("operation " << each.op << " of " << each.a << " and " << each.b);
    const auto value = value_of(each.op, 32, each.a, each.b, 0);
    REQUIRE(value.has_value() == each.value.has_value());
    if (value) CHECK((*value & 0xffffffff) == *each.value);
  }
  CHECK(value_of(spv::OpSConvert, 16, 0x8000, 0, 0) == as_bits(-32768));
  CHECK(value_of(spv::OpSDiv, 64, as_bits(INT64_MIN), as_bits(-1), 0) == none);
  CHECK(value_of(spv::OpSDiv, 64, as_bits(INT64_MIN), 2, 0) == as_bits(INT64_MIN / 2));
  CHECK(value_of(spv::OpShiftLeftLogical, 64, 1, 63, 0) == as_bits(INT64_MIN));
  CHECK(value_of(spv::OpSelect, 32, 1, 20, 30) == 20U);
  CHECK(value_of(spv::OpSelect, 32, 0, 20, 30) == 30U);
}

TEST_CASE("vulkan instructions: comparisons tell less, equal and greater apart", "[vulkan][spirv]") {
  constexpr std::uint64_t minus_one = 0xffffffff;
  // What each is of 3 and 5, of 4 and 4, of 5 and 3, and of -1 and 1.
  const struct {
    spv::Op op;
    std::array<std::uint64_t, 4> values;
  } cases[] = {
      {spv::OpIEqual, {0, 1, 0, 0}},       {spv::OpLogicalEqual, {0, 1, 0, 0}},
      {spv::OpINotEqual, {1, 0, 1, 1}},    {spv::OpLogicalNotEqual, {1, 0, 1, 1}},
      {spv::OpULessThan, {1, 0, 0, 0}},    {spv::OpULessThanEqual, {1, 1, 0, 0}},
      {spv::OpUGreaterThan, {0, 0, 1, 1}}, {spv::OpUGreaterThanEqual, {0, 1, 1, 1}},
      {spv::OpSLessThan, {1, 0, 0, 1}},    {spv::OpSLessThanEqual, {1, 1, 0, 1}},
      {spv::OpSGreaterThan, {0, 0, 1, 0}}, {spv::OpSGreaterThanEqual, {0, 1, 1, 0}},
  };
  for (const auto& each : cases) {
    INFO("operation " << each.op);
    CHECK(value_of(each.op, 32, 3, 5, 0) == each.values[0]);
    CHECK(value_of(each.op, 32, 4, 4, 0) == each.values[1]);
    CHECK(value_of(each.op, 32, 5, 3, 0) == each.values[2]);
    CHECK(value_of(each.op, 32, minus_one, 1, 0) == each.values[3]);
  }
}

}  // namespace kiln::vulkan::spirv
