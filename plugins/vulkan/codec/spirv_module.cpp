#include "codec/spirv_module.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>

#include "codec/spirv_instructions.hpp"

namespace kiln::vulkan {
namespace {

constexpr std::size_t header_words = 5;
constexpr std::uint32_t most_ids = 0x3fffff;  // the specification's limit

// A literal string: characters of each word from the lowest byte, ended by a zero byte.
std::string text_at(SpirvModule::Instruction instruction, std::size_t word) {
  std::string text;
  for (; word < instruction.size(); ++word) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      const char c = static_cast<char>(instruction[word] >> shift & 0xffU);
      if (c == 0) return text;
      text += c;
    }
  }
  return text;
}

}  // namespace

Result<SpirvModule> SpirvModule::parse(std::vector<std::uint32_t> words, std::string_view entry) {
  SpirvModule module;
  module.words_ = std::move(words);
  Status status = module.index();
  if (status.ok()) status = module.find_entry(entry);
  if (status.ok()) status = module.find_workgroup();
  if (status.ok()) status = module.find_variables();
  if (!status.ok()) return status.within("SPIR-V module");
  module.find_functions();
  module.mark_used();
  return module;
}

Status SpirvModule::check_form(std::span<const std::uint32_t> words) {
  if (words.size() < header_words) {
    return invalid_argument("has " + std::to_string(words.size()) + " words, expected at least 5 words");
  }
  if (words[0] != spv::MagicNumber) {
    return invalid_argument("has the magic number " + std::to_string(words[0]) + ", expected " +
                            std::to_string(spv::MagicNumber) + " in this machine's byte order");
  }
  if (words[3] == 0 || words[3] > most_ids) {
    return invalid_argument("has id bound " + std::to_string(words[3]) + ", expected 1 to " + std::to_string(most_ids));
  }
  for (std::size_t at = header_words; at < words.size();) {
    const std::size_t length = words[at] >> spv::WordCountShift;
    if (length == 0 || length > words.size() - at) {
      return invalid_argument("word " + std::to_string(at) + ": an instruction of " + std::to_string(length) +
                              " words, expected 1 to " + std::to_string(words.size() - at));
    }
    at += length;
  }
  return {};
}

Status SpirvModule::index() {
  if (Status status = check_form(words_); !status.ok()) return status;
  at_.resize(words_[3]);
  for (std::size_t at = header_words; at < words_.size();) {
    const std::size_t length = words_[at] >> spv::WordCountShift;
    if (Status status = index(Instruction(words_).subspan(at, length), at); !status.ok()) return status;
    at += length;
  }
  std::ranges::stable_sort(names_, {}, &std::pair<Place, std::size_t>::first);  // the first of a place counts
  if (unknown_lengths_.empty()) return {};
  const auto [length, at] = unknown_lengths_.front();
  const std::string from = name_in_operation(length);
  return invalid_argument((from.empty() ? "word " + std::to_string(at) + ": the length of an array"
                                        : "the length of an array, which depends on " + from + ",") +
                          " cannot be evaluated. Use a constant");
}

Status SpirvModule::find_entry(std::string_view name) {
  struct Found {
    Instruction entry;
    std::string name;
  };
  std::vector<Found> compute, others;  // a name may be that of one for each execution model
  std::string known;
  for (const std::size_t at : entries_) {
    const Instruction entry = Instruction(words_).subspan(at, words_[at] >> spv::WordCountShift);
    const bool is_compute = operand(entry, 1) == spv::ExecutionModelGLCompute;
    (is_compute ? compute : others).push_back({entry, text_at(entry, 3)});
    if (is_compute) known += (known.empty() ? "" : ", ") + compute.back().name;
  }
  const auto find = [name](const std::vector<Found>& all, bool may_be_another) {
    const auto found = std::ranges::find(all, name, &Found::name);
    return found == all.end() && may_be_another && all.size() == 1 ? all.begin() : found;
  };
  if (const auto found = find(compute, name == "main"); found != compute.end()) {
    entry_function_ = operand(found->entry, 2);
    entry_ = found->name;
    return {};
  }
  if (const auto found = find(others, name == "main" && compute.empty()); found != others.end()) {
    return invalid_argument("entry point " + found->name + " is " + spirv::words_of_model(operand(found->entry, 1)) +
                            ", expected a compute shader" + (known.empty() ? "" : " (it has " + known + ")"));
  }
  return invalid_argument("has no entry point '" + std::string(name) + "' (it has " +
                          (!known.empty()   ? known + "). Set entry of the job to one of these names"
                           : others.empty() ? "none)"
                                            : "none for compute)"));
}

Status SpirvModule::index(Instruction instruction, std::size_t at) {
  const spv::Op code = op(instruction);
  if (const std::size_t result = spirv::result_operand(code); result != 0) {
    const std::uint32_t id = operand(instruction, result);
    if (id == 0 || id >= at_.size() || at_[id] != 0) {
      return invalid_argument("word " + std::to_string(at) + ": result id " + std::to_string(id) +
                              ", expected a new id below " + std::to_string(at_.size()));
    }
    at_[id] = at;
  }
  switch (code) {
    case spv::OpCapability:
      capabilities_.insert(operand(instruction, 1));
      break;
    case spv::OpEntryPoint:
      entries_.push_back(at);
      break;
    case spv::OpExecutionMode:
    case spv::OpExecutionModeId:
      modes_.push_back(at);
      break;
    case spv::OpName:
      names_.emplace_back(Place(operand(instruction, 1), no_member), at + 2);
      break;
    case spv::OpMemberName:
      names_.emplace_back(Place(operand(instruction, 1), operand(instruction, 2)), at + 3);
      break;
    case spv::OpDecorate:
      decorations_[{operand(instruction, 1), no_member}].emplace(operand(instruction, 2), operand(instruction, 3));
      if (instruction.size() > 3) literals_[{operand(instruction, 1), operand(instruction, 2)}] = at + 3;
      break;
    case spv::OpMemberDecorate:
      decorations_[{operand(instruction, 1), operand(instruction, 2)}].emplace(operand(instruction, 3),
                                                                               operand(instruction, 4));
      break;
    case spv::OpGroupDecorate:
    case spv::OpGroupMemberDecorate:
      return invalid_argument("word " + std::to_string(at) + ": decoration groups are not supported");
    case spv::OpVariable:
      if (operand(instruction, 3) != spv::StorageClassFunction) global_ids_.push_back(operand(instruction, 2));
      break;
    case spv::OpFunction:
      functions_.push_back(at);
      break;
    case spv::OpSpecConstantOp:
      evaluate(instruction);
      break;
    case spv::OpTypeArray:
      if (!constant(operand(instruction, 3))) unknown_lengths_.emplace_back(operand(instruction, 3), at);
      break;
    default:
      break;
  }
  return {};
}

SpirvModule::Instruction SpirvModule::definition(std::uint32_t id) const noexcept {
  if (id >= at_.size() || at_[id] == 0) return {};
  return Instruction(words_).subspan(at_[id], words_[at_[id]] >> spv::WordCountShift);
}

std::string SpirvModule::name_at(const Place& place) const {
  const auto found = std::ranges::lower_bound(names_, place, {}, &std::pair<Place, std::size_t>::first);
  if (found == names_.end() || found->first != place) return {};
  const std::size_t begin = found->second - (place.second == no_member ? 2 : 3);
  const Instruction instruction = Instruction(words_).subspan(begin, words_[begin] >> spv::WordCountShift);
  return text_at(instruction, found->second - begin);
}

std::string SpirvModule::name(std::uint32_t id) const { return name_at({id, no_member}); }

std::string SpirvModule::member_name(std::uint32_t type, std::uint32_t member) const {
  std::string named = name_at({type, member});
  return named.empty() ? "member" + std::to_string(member) : named;
}

std::optional<std::uint32_t> SpirvModule::decoration(std::uint32_t id, spv::Decoration decoration) const {
  return this->decoration(id, no_member, decoration);
}

std::optional<std::uint32_t> SpirvModule::decoration(std::uint32_t type, std::uint32_t member,
                                                     spv::Decoration decoration) const {
  const auto place = decorations_.find({type, member});
  if (place == decorations_.end()) return std::nullopt;
  const auto found = place->second.find(decoration);
  return found == place->second.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t SpirvModule::bits_of(std::uint32_t type) const noexcept {
  const Instruction declared = definition(type);
  if (op(declared) == spv::OpTypeBool) return 1;
  const std::uint32_t bits = op(declared) == spv::OpTypeInt ? operand(declared, 2) : 0;
  return bits <= 64 ? bits : 0;
}

// Operands are defined before.
void SpirvModule::evaluate(Instruction operation) {
  const auto code = static_cast<spv::Op>(operand(operation, 3));
  const std::uint32_t bits = bits_of(operand(operation, 1));
  if (bits == 0) return;
  if (code == spv::OpCompositeExtract) {  // of gl_WorkGroupSize
    const Instruction whole = definition(operand(operation, 4));
    const bool is_list = op(whole) == spv::OpConstantComposite || op(whole) == spv::OpSpecConstantComposite;
    const auto value = number(operand(whole, std::size_t{3} + operand(operation, 5)));
    if (is_list && operation.size() == 6 && value) evaluated_[operand(operation, 2)] = *value;
    return;
  }
  std::array<std::uint64_t, 3> values{};
  for (std::size_t i = 4; i < operation.size(); ++i) {
    const auto value = number(operation[i]);
    if (!value || i - 4 >= values.size()) return;
    values[i - 4] = *value;
  }
  const std::uint32_t given = bits_of(operand(definition(operand(operation, 4)), 1));
  if (given == 0) return;
  const auto value = spirv::value_of(code, given, values[0], values[1], values[2]);
  if (value) evaluated_[operand(operation, 2)] = spirv::cut(*value, bits);
}

std::optional<std::uint64_t> SpirvModule::number(std::uint32_t id) const {
  if (const auto found = evaluated_.find(id); found != evaluated_.end()) return found->second;
  const Instruction constant = definition(id);
  const std::uint32_t bits = bits_of(operand(constant, 1));
  if (bits == 0) return std::nullopt;
  switch (op(constant)) {
    case spv::OpConstant:
    case spv::OpSpecConstant:
      return spirv::cut(operand(constant, 3) | std::uint64_t{operand(constant, 4)} << 32, bits);
    case spv::OpConstantTrue:
    case spv::OpSpecConstantTrue:
      return 1;
    case spv::OpConstantFalse:
    case spv::OpSpecConstantFalse:
    case spv::OpConstantNull:
      return 0;
    default:
      return std::nullopt;
  }
}

std::optional<std::uint32_t> SpirvModule::constant(std::uint32_t id) const {
  const Instruction type = definition(operand(definition(id), 1));
  const auto value = number(id);
  if (op(type) != spv::OpTypeInt || !value || *value > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  const bool narrow_signed = operand(type, 2) < 32 && operand(type, 3) != 0;
  return static_cast<std::uint32_t>(
      narrow_signed ? static_cast<std::uint64_t>(spirv::sign_extended(*value, operand(type, 2))) : *value);
}

std::string SpirvModule::name_in_operation(std::uint32_t id) const {
  std::set<std::uint32_t> known{id};
  std::vector<std::uint32_t> parts{id};
  for (std::size_t at = 0; at < parts.size(); ++at) {
    if (std::string found = name(parts[at]); !found.empty()) return found;
    const Instruction operation = definition(parts[at]);
    if (op(operation) != spv::OpSpecConstantOp) continue;
    for (std::size_t i = 4; i < operation.size(); ++i) {
      if (known.insert(operation[i]).second) parts.push_back(operation[i]);
    }
  }
  return {};
}

std::vector<SpirvModule::Instruction> SpirvModule::execution_modes() const {
  std::vector<Instruction> modes;
  for (const std::size_t at : modes_) {
    const Instruction mode = Instruction(words_).subspan(at, words_[at] >> spv::WordCountShift);
    if (operand(mode, 1) == entry_function_) modes.push_back(mode);
  }
  return modes;
}

Status SpirvModule::find_workgroup() {
  for (const Instruction mode : execution_modes()) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (operand(mode, 2) == spv::ExecutionModeLocalSize) workgroup_[axis] = operand(mode, 3 + axis);
      if (operand(mode, 2) == spv::ExecutionModeLocalSizeId) {
        workgroup_[axis] = constant(operand(mode, 3 + axis)).value_or(0);
      }
    }
  }
  // A constant decorated as the size of the workgroup overrides the mode.
  for (const auto& [place, decorations] : decorations_) {
    const auto builtin = decorations.find(spv::DecorationBuiltIn);
    if (builtin == decorations.end() || builtin->second != spv::BuiltInWorkgroupSize) continue;
    const Instruction size = definition(place.first);
    if (op(size) != spv::OpConstantComposite && op(size) != spv::OpSpecConstantComposite) continue;
    for (std::size_t axis = 0; axis < 3; ++axis) workgroup_[axis] = constant(operand(size, 3 + axis)).value_or(0);
  }
  if (workgroup_[0] != 0 && workgroup_[1] != 0 && workgroup_[2] != 0) return {};
  return invalid_argument("declares no workgroup size that is known before a launch");
}

Status SpirvModule::find_variables() {
  for (const std::uint32_t id : global_ids_) {
    const Instruction variable = definition(id);
    const auto storage = static_cast<spv::StorageClass>(operand(variable, 3));
    const bool resource = storage == spv::StorageClassStorageBuffer || storage == spv::StorageClassUniform ||
                          storage == spv::StorageClassUniformConstant;
    if (!resource && storage != spv::StorageClassPushConstant && storage != spv::StorageClassWorkgroup) continue;
    const Instruction pointer = definition(operand(variable, 1));
    if (op(pointer) != spv::OpTypePointer) return invalid_argument("variable " + name(id) + " is not a pointer");
    SpirvVariable& found = variables_.emplace_back();
    found.id = id;
    found.storage = storage;
    found.type = operand(pointer, 3);
    if (!resource) continue;
    for (int depth = 0; depth < deepest_type; ++depth) {
      const Instruction type = definition(found.type);
      if (op(type) == spv::OpTypeRuntimeArray) {
        found.count = 0;
      } else if (op(type) == spv::OpTypeArray) {
        found.count *= constant(operand(type, 3)).value_or(0);
      } else {
        break;
      }
      if (found.is_array) {
        return invalid_argument("variable " + (name(id).empty() ? name(found.type) : name(id)) +
                                ": an array of arrays of resources, which Vulkan does not support. Declare one array");
      }
      found.is_array = true;
      found.type = operand(type, 2);
    }
    const auto set = decoration(id, spv::DecorationDescriptorSet);
    const auto binding = decoration(id, spv::DecorationBinding);
    if (!set || !binding) {
      return invalid_argument("variable " + (name(id).empty() ? name(found.type) : name(id)) +
                              " has no descriptor set and binding");
    }
    found.set = *set;
    found.binding = *binding;
  }
  std::ranges::sort(variables_, {}, &SpirvVariable::id);
  return {};
}

void SpirvModule::for_each_reached(const std::function<void(Instruction)>& visit) const {
  for (std::size_t i = 0; i < reached_.size(); ++i) {  // visit() may add to them
    if (definition(reached_[i]).empty()) continue;
    for (std::size_t at = at_[reached_[i]]; at < words_.size(); at += words_[at] >> spv::WordCountShift) {
      const Instruction instruction = Instruction(words_).subspan(at, words_[at] >> spv::WordCountShift);
      if (op(instruction) == spv::OpFunctionEnd) break;
      visit(instruction);
    }
  }
}

// Follows the calls from the entry point.
void SpirvModule::find_functions() {
  std::set<std::uint32_t> known{entry_function_};
  reached_ = {entry_function_};
  for_each_reached([&](Instruction instruction) {
    if (op(instruction) != spv::OpFunctionCall || !known.insert(operand(instruction, 3)).second) return;
    reached_.push_back(operand(instruction, 3));
  });
}

void SpirvModule::mark_used() {
  for_each_reached([this](Instruction instruction) { mark_operands(instruction); });
}

// Where a literal of an instruction that first_literal() lacks has the number of a variable, it marks it too: a
// resource too many is asked for, none is missed.
void SpirvModule::mark_operands(Instruction instruction) {
  const bool chain = op(instruction) == spv::OpAccessChain || op(instruction) == spv::OpInBoundsAccessChain;
  const std::size_t end = std::min(instruction.size(), spirv::first_literal(op(instruction)));
  for (std::size_t i = 1; i < end; ++i) {
    if (spirv::is_literal(op(instruction), i)) continue;
    const auto variable = std::ranges::lower_bound(variables_, instruction[i], {}, &SpirvVariable::id);
    if (variable == variables_.end() || variable->id != instruction[i]) continue;
    variable->used = true;
    const std::size_t member = variable->is_array ? 5 : 4;
    const auto index = chain && i == 3 ? constant(operand(instruction, member)) : std::nullopt;
    if (index && member < instruction.size()) {
      variable->members.insert(*index);
    } else if (!(op(instruction) == spv::OpArrayLength && i == 3)) {
      variable->whole = true;
    } else {
      variable->members.insert(operand(instruction, 4));
    }
  }
}

std::vector<std::uint32_t> SpirvModule::with_bindings(std::span<const std::optional<std::uint32_t>> numbers) const {
  std::vector<std::uint32_t> words = words_;
  for (std::size_t i = 0; i < numbers.size() && i < variables_.size(); ++i) {
    if (!numbers[i]) continue;
    words[literals_.at({variables_[i].id, spv::DecorationDescriptorSet})] = 0;
    words[literals_.at({variables_[i].id, spv::DecorationBinding})] = *numbers[i];
  }
  return words;
}

std::vector<std::uint32_t> SpirvModule::without_conversions() const {
  std::vector<std::uint32_t> words(words_.begin(), words_.begin() + header_words);
  for (std::size_t at = header_words; at < words_.size(); at += words_[at] >> spv::WordCountShift) {
    const Instruction given = Instruction(words_).subspan(at, words_[at] >> spv::WordCountShift);
    const std::uint32_t type = operand(given, 1), id = operand(given, 2);
    const bool converts = op(given) == spv::OpSpecConstantOp && operand(given, 3) == spv::OpUConvert;
    const auto value = converts ? number(id) : std::nullopt;
    if (!value) {
      words.insert(words.end(), given.begin(), given.end());
      continue;
    }
    const std::uint32_t length = bits_of(type) > 32 ? 5 : 4;
    words.insert(words.end(),
                 {length << spv::WordCountShift | spv::OpConstant, type, id, static_cast<std::uint32_t>(*value)});
    if (length == 5) words.push_back(static_cast<std::uint32_t>(*value >> 32));
  }
  return words;
}

}  // namespace kiln::vulkan
