// SpirvModule: a SPIR-V module with one of its compute entry points, indexed for reflection.
//
// Thread-safety: immutable after parse(). Ownership: owns its words; spans and names borrow from it. Every access is
// checked against the module's bounds, because a module may be a user's file.
//
//   auto module = SpirvModule::parse(words);
//   if (!module) return module.error();
//   for (const SpirvVariable& variable : module->variables()) …
#pragma once

#include <kiln/status.hpp>

#include <glslang/SPIRV/spirv.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::vulkan {

// A variable outside functions that a pipeline layout or a workgroup provides.
struct SpirvVariable {
  std::uint32_t id = 0;
  spv::StorageClass storage = spv::StorageClassMax;
  std::uint32_t type = 0;              // of its contents, without arrays of resources
  std::uint32_t count = 1;             // elements of an array of resources; 0: of unknown length
  bool is_array = false;               // an array of resources, which may have one element
  std::uint32_t set = 0, binding = 0;  // of a resource
  bool used = false;                   // the entry point reaches it
  bool whole = false;                  // used in another way than by members
  std::set<std::uint32_t> members;     // used members of its struct
};

inline constexpr int deepest_type = 64;  // structs and arrays in each other: deeper ones are not followed

class SpirvModule {
 public:
  using Instruction = std::span<const std::uint32_t>;  // with its first word; operands from [1]

  // entry: of the compute entry points; "main" also means the only one, whatever its name. invalid_argument: not a
  // module, or one without that entry point; the error names the reason.
  static Result<SpirvModule> parse(std::vector<std::uint32_t> words, std::string_view entry);
  // As far as parse() is needed before a driver gets a module that was parsed when it was stored: header and lengths.
  static Status check_form(std::span<const std::uint32_t> words);

  const std::vector<std::uint32_t>& words() const noexcept { return words_; }
  std::uint32_t version() const noexcept { return words_[1]; }  // 0x00010300: 1.3
  const std::string& entry() const noexcept { return entry_; }
  const std::array<std::uint32_t, 3>& workgroup() const noexcept { return workgroup_; }
  const std::set<std::uint32_t>& capabilities() const noexcept { return capabilities_; }
  const std::vector<SpirvVariable>& variables() const noexcept { return variables_; }

  static spv::Op op(Instruction instruction) noexcept {
    return instruction.empty() ? spv::OpNop : static_cast<spv::Op>(instruction[0] & spv::OpCodeMask);
  }
  Instruction definition(std::uint32_t id) const noexcept;                     // empty: none
  std::vector<Instruction> execution_modes() const;                            // of the entry point
  void for_each_reached(const std::function<void(Instruction)>& visit) const;  // of the functions that the entry calls
  // Operand i of an instruction, from 1; 0: it has fewer.
  static std::uint32_t operand(Instruction instruction, std::size_t i) noexcept {
    return i < instruction.size() ? instruction[i] : 0;
  }
  std::string name(std::uint32_t id) const;
  std::string member_name(std::uint32_t type, std::uint32_t member) const;
  std::optional<std::uint32_t> decoration(std::uint32_t id, spv::Decoration decoration) const;
  std::optional<std::uint32_t> decoration(std::uint32_t type, std::uint32_t member, spv::Decoration decoration) const;
  // The value of an integer constant, or the default of a specialization constant or of an operation on such, if it has
  // 32 bits or less.
  std::optional<std::uint32_t> constant(std::uint32_t id) const;
  std::uint64_t bytes_of_shared() const;  // workgroup memory, without padding

  // The words with binding numbers[i] in set 0 for variables()[i] where a number is given.
  std::vector<std::uint32_t> with_bindings(std::span<const std::optional<std::uint32_t>> numbers) const;
  // The words with constants in place of the conversions of unsigned specialization constants that only SPIR-V 1.4 has.
  std::vector<std::uint32_t> without_conversions() const;

 private:
  static constexpr std::uint32_t no_member = 0xffffffff;
  using Place = std::pair<std::uint32_t, std::uint32_t>;  // id and member, or no_member

  Status index();
  Status index(Instruction instruction, std::size_t at);
  Status find_entry(std::string_view name);
  Status find_workgroup();
  Status find_variables();
  void evaluate(Instruction operation);
  std::uint32_t bits_of(std::uint32_t type) const noexcept;     // of an integer, or 1 of a bool; 0: another type
  std::optional<std::uint64_t> number(std::uint32_t id) const;  // as constant(), also of a bool and of 64 bits
  std::string name_in_operation(std::uint32_t id) const;        // its own, or the first of a constant in it
  void find_functions();
  void mark_used();
  void mark_operands(Instruction instruction);
  std::string name_at(const Place& place) const;
  std::uint64_t natural_bytes(std::uint32_t type, int depth) const;

  std::vector<std::uint32_t> words_;
  std::vector<std::size_t> at_;                                          // by id: the place of its definition; 0: none
  std::vector<std::pair<Place, std::size_t>> names_;                     // in order; the word where the text begins
  std::map<Place, std::map<std::uint32_t, std::uint32_t>> decorations_;  // decoration to its first literal
  std::map<Place, std::size_t> literals_;                                // (id, decoration): the place of the literal
  std::map<std::uint32_t, std::uint64_t> evaluated_;                     // operations on constants to their values
  std::set<std::uint32_t> capabilities_;
  std::vector<std::size_t> entries_, modes_, functions_;
  std::vector<std::pair<std::uint32_t, std::size_t>> unknown_lengths_;  // of arrays: the id, and the array's place
  std::vector<std::uint32_t> reached_;                                  // functions, from the entry's on
  std::uint32_t entry_function_ = 0;
  std::string entry_;
  std::array<std::uint32_t, 3> workgroup_{0, 0, 0};
  std::vector<std::uint32_t> global_ids_;
  std::vector<SpirvVariable> variables_;
};

}  // namespace kiln::vulkan
