#include "codec/spirv_types.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>
#include <vector>

namespace kiln::vulkan {
namespace {

using Instruction = SpirvModule::Instruction;

std::uint32_t operand(Instruction instruction, std::size_t i) { return SpirvModule::operand(instruction, i); }
spv::Op op(Instruction instruction) { return SpirvModule::op(instruction); }

// Sizes, of which one that 64 bits do not hold is the greatest.
constexpr std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max();
std::uint64_t sum(std::uint64_t a, std::uint64_t b) noexcept { return a > most_bytes - b ? most_bytes : a + b; }
std::uint64_t product(std::uint64_t a, std::uint64_t b) noexcept {
  return b != 0 && a > most_bytes / b ? most_bytes : a * b;
}

// int, uint and bool may stand for each other: their bits lie alike.
ElementType common(ElementType a, ElementType b) noexcept {
  const auto alike = [a, b](ElementType x, ElementType y) { return (a == x || a == y) && (b == x || b == y); };
  const bool same = a == b || alike(ElementType::i32, ElementType::u32) || alike(ElementType::i64, ElementType::u64) ||
                    alike(ElementType::i16, ElementType::u16) || alike(ElementType::i8, ElementType::u8);
  return same ? a : ElementType::unknown;
}

// In the order of spv::ImageFormat.
constexpr ImageFormat image_formats_of_spirv[] = {
    ImageFormat::declared,       ImageFormat::rgba32f,     ImageFormat::rgba16f,    ImageFormat::r32f,
    ImageFormat::rgba8,          ImageFormat::rgba8_snorm, ImageFormat::rg32f,      ImageFormat::rg16f,
    ImageFormat::r11f_g11f_b10f, ImageFormat::r16f,        ImageFormat::rgba16,     ImageFormat::rgb10_a2,
    ImageFormat::rg16,           ImageFormat::rg8,         ImageFormat::r16,        ImageFormat::r8,
    ImageFormat::rgba16_snorm,   ImageFormat::rg16_snorm,  ImageFormat::rg8_snorm,  ImageFormat::r16_snorm,
    ImageFormat::r8_snorm,       ImageFormat::rgba32i,     ImageFormat::rgba16i,    ImageFormat::rgba8i,
    ImageFormat::r32i,           ImageFormat::rg32i,       ImageFormat::rg16i,      ImageFormat::rg8i,
    ImageFormat::r16i,           ImageFormat::r8i,         ImageFormat::rgba32ui,   ImageFormat::rgba16ui,
    ImageFormat::rgba8ui,        ImageFormat::r32ui,       ImageFormat::rgb10_a2ui, ImageFormat::rg32ui,
    ImageFormat::rg16ui,         ImageFormat::rg8ui,       ImageFormat::r16ui,      ImageFormat::r8ui};

}  // namespace

std::uint64_t SpirvModule::natural_bytes(std::uint32_t type, int depth) const {
  const Instruction declared = definition(type);
  if (depth > deepest_type) return 0;
  std::uint64_t bytes = 0;
  switch (op(declared)) {
    case spv::OpTypeBool:
      return 4;
    case spv::OpTypeInt:
    case spv::OpTypeFloat:
      return operand(declared, 2) / 8;
    case spv::OpTypeVector:
    case spv::OpTypeMatrix:
      return product(natural_bytes(operand(declared, 2), depth + 1), operand(declared, 3));
    case spv::OpTypeArray:
      return product(natural_bytes(operand(declared, 2), depth + 1), constant(operand(declared, 3)).value_or(0));
    case spv::OpTypeStruct:
      for (std::size_t i = 2; i < declared.size(); ++i) bytes = sum(bytes, natural_bytes(declared[i], depth + 1));
      return bytes;
    default:
      return 0;
  }
}

std::uint64_t SpirvModule::bytes_of_shared() const {
  std::uint64_t bytes = 0;
  for (const SpirvVariable& variable : variables_) {
    if (variable.storage == spv::StorageClassWorkgroup && variable.used) {
      bytes = sum(bytes, natural_bytes(variable.type, 0));
    }
  }
  return bytes;
}

ImageFormat image_format_of(std::uint32_t spirv) noexcept {
  return spirv < std::size(image_formats_of_spirv) ? image_formats_of_spirv[spirv] : ImageFormat::declared;
}

std::string type_name(const Numeric& type, std::uint32_t length) {
  constexpr std::string_view scalars[] = {"",     "bool",    "int8_t",   "uint8_t",   "int16_t", "uint16_t", "int",
                                          "uint", "int64_t", "uint64_t", "float16_t", "float",   "double"};
  constexpr std::string_view prefixes[] = {"", "b", "i8", "u8", "i16", "u16", "i", "u", "i64", "u64", "f16", "", "d"};
  const auto at = static_cast<std::size_t>(type.element);
  std::string name(scalars[at]);
  if (type.columns > 1) {
    name = std::string(prefixes[at]) + "mat" + std::to_string(type.columns);
    if (type.rows != type.columns) name += "x" + std::to_string(type.rows);
  } else if (type.rows > 1) {
    name = std::string(prefixes[at]) + "vec" + std::to_string(type.rows);
  }
  return length == 0 ? name : name + "[" + std::to_string(length) + "]";
}

std::optional<Numeric> SpirvTypes::numeric(std::uint32_t type) const {
  const Instruction declared = module_.definition(type);
  Numeric found;
  switch (op(declared)) {
    case spv::OpTypeInt: {
      const bool is_signed = operand(declared, 3) != 0;
      const std::uint32_t bits = operand(declared, 2);
      found.bytes = bits / 8;
      found.element = bits == 8    ? (is_signed ? ElementType::i8 : ElementType::u8)
                      : bits == 16 ? (is_signed ? ElementType::i16 : ElementType::u16)
                      : bits == 32 ? (is_signed ? ElementType::i32 : ElementType::u32)
                                   : (is_signed ? ElementType::i64 : ElementType::u64);
      return found;
    }
    case spv::OpTypeFloat: {
      const std::uint32_t bits = operand(declared, 2);
      found.bytes = bits / 8;
      found.element = bits == 16 ? ElementType::f16 : bits == 32 ? ElementType::f32 : ElementType::f64;
      return found;
    }
    case spv::OpTypeVector: {
      auto component = numeric(operand(declared, 2));
      if (component) component->rows = operand(declared, 3);
      return component;
    }
    case spv::OpTypeMatrix: {
      auto column = numeric(operand(declared, 2));
      if (column) column->columns = operand(declared, 3);
      return column;
    }
    default:
      return std::nullopt;
  }
}

UniformPlace SpirvTypes::place_of(std::uint32_t type, std::uint32_t member) const {
  UniformPlace place;
  place.offset = module_.decoration(type, member, spv::DecorationOffset).value_or(0);
  place.matrix_stride = module_.decoration(type, member, spv::DecorationMatrixStride).value_or(0);
  place.row_major = module_.decoration(type, member, spv::DecorationRowMajor).has_value();
  return place;
}

BlockFacts SpirvTypes::facts_of(std::uint32_t block) const {
  BlockFacts facts;
  facts.end = end_of(block, 0, {}, facts, 0);
  return facts;
}

std::uint64_t SpirvTypes::end_of(std::uint32_t type, std::uint64_t offset, const UniformPlace& matrix,
                                 BlockFacts& facts, int depth) const {
  const Instruction declared = module_.definition(type);
  if (depth > deepest) return offset;
  if (const auto leaf = numeric(type)) {
    facts.element = facts.any ? common(facts.element, leaf->element) : leaf->element;
    facts.any = true;
    const std::uint64_t vectors = matrix.row_major ? leaf->rows : leaf->columns;
    const std::uint64_t vector = leaf->components() / vectors * leaf->bytes;
    return sum(offset, (leaf->columns > 1 ? (vectors - 1) * matrix.matrix_stride : 0) + vector);
  }
  if (op(declared) == spv::OpTypeArray || op(declared) == spv::OpTypeRuntimeArray) {
    const std::uint32_t count =
        op(declared) == spv::OpTypeArray ? module_.constant(operand(declared, 3)).value_or(1) : 1;
    const std::uint64_t stride = module_.decoration(type, spv::DecorationArrayStride).value_or(0);
    const std::uint64_t last = sum(offset, (std::max(count, 1U) - 1) * stride);
    return end_of(operand(declared, 2), last, matrix, facts, depth + 1);
  }
  std::uint64_t end = offset;
  for (std::uint32_t i = 0; op(declared) == spv::OpTypeStruct && i + 2 < declared.size(); ++i) {
    const UniformPlace place = place_of(type, i);
    end = std::max(end, end_of(declared[i + 2], sum(offset, place.offset), place, facts, depth + 1));
  }
  return end;
}

std::string SpirvTypes::overlapping(std::uint32_t type, const UniformPlace& matrix, int depth) const {
  const Instruction declared = module_.definition(type);
  const auto end_at = [this](std::uint32_t part, std::uint64_t offset, const UniformPlace& place) {
    BlockFacts unused;
    return end_of(part, offset, place, unused, 0);
  };
  if (depth > deepest) return {};
  if (op(declared) == spv::OpTypeArray || op(declared) == spv::OpTypeRuntimeArray) {
    const std::uint32_t element = operand(declared, 2);
    const std::uint64_t stride = module_.decoration(type, spv::DecorationArrayStride).value_or(0);
    const std::string inner = overlapping(element, matrix, depth + 1);
    if (!inner.empty()) return "[]" + (inner.starts_with("[") ? inner : "." + inner);
    return stride != 0 && end_at(element, 0, matrix) > stride ? "[]" : "";
  }
  if (op(declared) != spv::OpTypeStruct) return {};
  struct Range {
    std::uint64_t begin = 0, end = 0;
    std::string name;
  };
  std::vector<Range> members;
  for (std::uint32_t i = 0; i + 2 < declared.size(); ++i) {
    const UniformPlace place = place_of(type, i);
    const std::string inner = overlapping(declared[i + 2], place, depth + 1), name = module_.member_name(type, i);
    if (!inner.empty()) return name + (inner.starts_with("[") ? inner : "." + inner);
    members.push_back({place.offset, end_at(declared[i + 2], place.offset, place), name});
  }
  std::ranges::sort(members, {}, &Range::begin);
  const auto first =
      std::ranges::adjacent_find(members, [](const Range& one, const Range& next) { return one.end > next.begin; });
  return first == members.end() ? "" : first->name;
}

std::uint64_t SpirvTypes::bytes_without_padding(std::uint32_t type, int depth) const {
  if (const auto facts = numeric(type)) return std::uint64_t{facts->components()} * facts->bytes;
  const Instruction declared = module_.definition(type);
  if (depth > deepest) return 0;
  if (op(declared) == spv::OpTypeArray) {
    const std::uint64_t count = module_.constant(operand(declared, 3)).value_or(0);
    return product(count, bytes_without_padding(operand(declared, 2), depth + 1));
  }
  if (op(declared) != spv::OpTypeStruct) return 0;
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i + 2 < declared.size(); ++i) {
    const std::uint64_t member = bytes_without_padding(declared[i + 2], depth + 1);
    if (member == 0) return 0;
    bytes = sum(bytes, member);
  }
  return bytes;
}

}  // namespace kiln::vulkan
