#include "codec/specialization.hpp"

#include <kiln/tensor.hpp>

#include <glslang/SPIRV/spirv.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace kiln::vulkan {
namespace {

constexpr std::size_t header_words = 5;

std::optional<bool> boolean_of(std::string_view text) {
  if (text == "(1 == 1)" || text == "true" || text == "1") return true;
  if (text == "(1 == 0)" || text == "false" || text == "0") return false;
  return std::nullopt;
}

template <class T>
std::optional<T> number_of(std::string_view text, int base) {
  T value{};
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<T>) {
    read = std::from_chars(text.data(), text.data() + text.size(), value);
  } else {
    read = std::from_chars(text.data(), text.data() + text.size(), value, base);
  }
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// The bits of an integer of `bits` bits; nullopt: another text, or beyond it.
std::optional<std::uint64_t> integer_of(std::string_view text, std::uint32_t bits, bool is_signed) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) text.remove_prefix(2);
  if (text.ends_with('u') || text.ends_with('U')) text.remove_suffix(1);
  const auto size = number_of<std::uint64_t>(text, hex ? 16 : 10);
  if (!size || bits == 0 || bits > 64 || (negative && !is_signed)) return std::nullopt;
  const std::uint64_t all = std::numeric_limits<std::uint64_t>::max() >> (64 - bits);
  const std::uint64_t most = is_signed && !hex ? (all >> 1) + (negative ? 1 : 0) : all;
  if (*size > most) return std::nullopt;
  return negative ? 0 - *size : *size;
}

// What specialization needs of a module.
class Constants {
 public:
  Constants(std::vector<std::uint32_t> words, std::string_view entry) : words_(std::move(words)) {
    for (std::size_t at = header_words; at < words_.size();) {
      const std::size_t length = words_[at] >> spv::WordCountShift;
      if (length == 0 || length > words_.size() - at) break;
      read(at);
      at += length;
    }
    auto chosen = std::ranges::find(entries_, entry, &std::pair<std::string, std::uint32_t>::first);
    if (chosen == entries_.end() && entry == "main" && entries_.size() == 1) chosen = entries_.begin();
    constexpr std::array<std::uint32_t, 3> none{};
    if (size_ == none && chosen != entries_.end()) size_ = sizes_[chosen->second];
  }

  Status set_workgroup(const std::array<std::uint32_t, 3>& lanes) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto found = all_.find(size_[axis]);
      if (found == all_.end() || !found->second.number) continue;
      set_.insert(*found->second.number);
      if (Status status = write_all(*found->second.number, std::to_string(lanes[axis])); !status.ok()) return status;
    }
    return {};
  }

  Status set(const Define& value, UnknownConstants unknown) {
    std::map<std::string, std::set<std::uint32_t>> numbers;  // by name
    for (const auto& [id, constant] : all_) {
      if (constant.number) numbers[name_of(id, constant)].insert(*constant.number);
    }
    const auto named = numbers.find(value.name);
    if (named != numbers.end() && named->second.size() == 1) return set(*named->second.begin(), value);
    for (const auto& [id, constant] : all_) {
      if (constant.number && numbered(*constant.number) == value.name) return set(*constant.number, value);
    }
    if (named != numbers.end()) {
      return invalid_argument("constant " + value.name + ": " + std::to_string(named->second.size()) +
                              " specialization constants have this name. Use the names " + list(named->second));
    }
    if (unknown == UnknownConstants::ignored) return {};
    std::string known;
    for (const auto& [name, those] : numbers) {
      known += (known.empty() ? "" : ", ") + (those.size() == 1 ? name : list(those));
    }
    return invalid_argument("constant " + value.name + ": the module has no such specialization constant (it has " +
                            (known.empty() ? "none" : known) + ")");
  }

  // Constants of one number are one constant, and which of their values counts is not said.
  Status check_shared() const {
    std::map<std::uint32_t, std::uint32_t> first;  // by number: an id
    for (const auto& [id, constant] : all_) {
      if (!constant.number || constant.at == 0 || set_.contains(*constant.number)) continue;
      const auto [other, is_first] = first.emplace(*constant.number, id);
      const Constant& before = all_.at(other->second);
      if (is_first || same_value(before.at, constant.at)) continue;
      return invalid_argument("specialization constant " + std::to_string(*constant.number) + " is declared as " +
                              described(other->second, before) + " and as " + described(id, constant) +
                              ". Give constants = { " + name_of(other->second, before) + " = … }");
    }
    return {};
  }

  std::vector<std::uint32_t> take() { return std::move(words_); }

 private:
  struct Constant {
    std::size_t at = 0;
    std::optional<std::uint32_t> number;  // SpecId
  };

  std::uint32_t operand(std::size_t at, std::size_t i) const {
    return i < words_[at] >> spv::WordCountShift ? words_[at + i] : 0;
  }
  spv::Op op(std::size_t at) const { return static_cast<spv::Op>(words_[at] & spv::OpCodeMask); }

  void read(std::size_t at) {
    switch (op(at)) {
      case spv::OpName:
        names_.emplace(operand(at, 1), text_at(at, 2));
        break;
      case spv::OpEntryPoint:
        if (operand(at, 1) == spv::ExecutionModelGLCompute) entries_.emplace_back(text_at(at, 3), operand(at, 2));
        break;
      case spv::OpExecutionModeId:
        if (operand(at, 2) == spv::ExecutionModeLocalSizeId) take_size(at + 3, sizes_[operand(at, 1)]);
        break;
      case spv::OpDecorate:
        if (operand(at, 2) == spv::DecorationSpecId) all_[operand(at, 1)].number = operand(at, 3);
        if (operand(at, 2) == spv::DecorationBuiltIn && operand(at, 3) == spv::BuiltInWorkgroupSize) {
          whole_size_ = operand(at, 1);
        }
        break;
      case spv::OpTypeBool:
      case spv::OpTypeInt:
      case spv::OpTypeFloat:
        types_[operand(at, 1)] = at;
        break;
      case spv::OpSpecConstant:
      case spv::OpSpecConstantTrue:
      case spv::OpSpecConstantFalse:
        if (const auto found = all_.find(operand(at, 2)); found != all_.end()) found->second.at = at;
        break;
      case spv::OpSpecConstantComposite:
        if (operand(at, 2) == whole_size_ && whole_size_ != 0) take_size(at + 3, size_);
        break;
      default:
        break;
    }
  }

  void take_size(std::size_t first, std::array<std::uint32_t, 3>& size) const {
    for (std::size_t axis = 0; axis < 3 && first + axis < words_.size(); ++axis) size[axis] = words_[first + axis];
  }

  std::string text_at(std::size_t at, std::size_t first) const {
    std::string text;
    for (std::size_t word = at + first; word < at + (words_[at] >> spv::WordCountShift); ++word) {
      for (unsigned shift = 0; shift < 32; shift += 8) {
        const char c = static_cast<char>(words_[word] >> shift & 0xffU);
        if (c == 0) return text;
        text += c;
      }
    }
    return text;
  }

  std::string name_of(std::uint32_t id, const Constant& constant) const {
    const auto named = names_.find(id);
    if (named != names_.end() && !named->second.empty()) return named->second;
    return numbered(*constant.number);
  }

  // REQUIRES: two specialization constants.
  bool same_value(std::size_t a, std::size_t b) const {
    const std::size_t length = words_[a] >> spv::WordCountShift;
    if (words_[a] != words_[b]) return false;  // length and operation
    return std::equal(words_.begin() + static_cast<std::ptrdiff_t>(a + 3),
                      words_.begin() + static_cast<std::ptrdiff_t>(a + length),
                      words_.begin() + static_cast<std::ptrdiff_t>(b + 3));
  }

  // "BLOCK = 32"; "gl_WorkGroupSize[0] = 1"
  std::string described(std::uint32_t id, const Constant& constant) const {
    const auto axis = static_cast<std::size_t>(std::ranges::find(size_, id) - size_.begin());
    std::string text = axis < size_.size() && !names_.contains(id) ? "gl_WorkGroupSize[" + std::to_string(axis) + "]"
                                                                   : name_of(id, constant);
    if (op(constant.at) != spv::OpSpecConstant)
      return text + (op(constant.at) == spv::OpSpecConstantTrue ? " = true" : " = false");
    const auto type = types_.find(operand(constant.at, 1));
    const bool is_word = type != types_.end() && operand(type->second, 2) == 32;
    if (!is_word) return text;
    const std::uint32_t word = operand(constant.at, 3);
    if (op(type->second) == spv::OpTypeFloat) return text + " = " + std::to_string(std::bit_cast<float>(word));
    const bool is_signed = operand(type->second, 3) != 0;
    return text + " = " + (is_signed ? std::to_string(static_cast<std::int32_t>(word)) : std::to_string(word));
  }

  static std::string numbered(std::uint32_t number) { return "constant" + std::to_string(number); }

  static std::string list(const std::set<std::uint32_t>& numbers) {
    std::string all;
    for (const std::uint32_t number : numbers) all += (all.empty() ? "" : ", ") + numbered(number);
    return all;
  }

  Status set(std::uint32_t number, const Define& value) {
    const auto [earlier, is_first] = given_.emplace(number, value.name);
    if (!is_first) {
      return invalid_argument("constant " + value.name + " sets the same specialization constant as " +
                              earlier->second + ". Set only one of the two");
    }
    set_.insert(number);
    return write_all(number, value.text).within("constant " + value.name);
  }

  // In every constant of this number.
  Status write_all(std::uint32_t number, const std::string& text) {
    for (const auto& [id, constant] : all_) {
      if (constant.number != number || constant.at == 0) continue;
      if (Status status = write(constant.at, text); !status.ok()) return status;
    }
    return {};
  }

  Status write(std::size_t at, const std::string& text) {
    const auto refused = [&](const std::string& expected) {
      const std::string shown = text == "(1 == 1)" ? "true" : text == "(1 == 0)" ? "false" : text;
      return invalid_argument("found " + shown + ", expected " + expected);
    };
    if (op(at) != spv::OpSpecConstant) {
      const auto value = boolean_of(text);
      if (!value) return refused("true or false for a bool");
      const spv::Op made = *value ? spv::OpSpecConstantTrue : spv::OpSpecConstantFalse;
      words_[at] = (words_[at] & ~spv::OpCodeMask) | static_cast<std::uint32_t>(made);
      return {};
    }
    const auto type = types_.find(operand(at, 1));
    if (type == types_.end()) return refused("a number");
    const std::uint32_t bits = operand(type->second, 2);
    std::uint64_t value = 0;
    if (op(type->second) == spv::OpTypeInt) {
      const bool is_signed = operand(type->second, 3) != 0;
      const auto integer = integer_of(text, bits, is_signed);
      if (!integer) {
        return refused((is_signed ? "an" : "an unsigned") + (" integer of " + std::to_string(bits) + " bits"));
      }
      value = *integer;
      // Narrow numbers are extended to a word.
      if (!is_signed && bits < 32) value &= (std::uint64_t{1} << bits) - 1;
    } else {
      const auto number = number_of<double>(text, 10);
      const double most = bits == 16   ? 65504.0
                          : bits == 32 ? static_cast<double>(std::numeric_limits<float>::max())
                                       : std::numeric_limits<double>::max();
      const bool fits = number && std::abs(*number) <= most;
      if (!fits) return refused("a number for a float of " + std::to_string(bits) + " bits");
      value = bits == 16   ? to_half(*number)
              : bits == 32 ? std::bit_cast<std::uint32_t>(static_cast<float>(*number))
                           : std::bit_cast<std::uint64_t>(*number);
    }
    words_[at + 3] = static_cast<std::uint32_t>(value);
    if (bits == 64) words_[at + 4] = static_cast<std::uint32_t>(value >> 32);
    return {};
  }

  std::vector<std::uint32_t> words_;
  std::map<std::uint32_t, std::string> names_;  // by id
  std::map<std::uint32_t, Constant> all_;       // with a SpecId, by id
  std::map<std::uint32_t, std::string> given_;  // names that the job gave values by, by SpecId
  std::set<std::uint32_t> set_;                 // numbers that the job gave a value, by name or as its workgroup
  std::map<std::uint32_t, std::size_t> types_;  // of numbers, by id
  std::vector<std::pair<std::string, std::uint32_t>> entries_;   // of compute shaders: names and functions
  std::map<std::uint32_t, std::array<std::uint32_t, 3>> sizes_;  // by function: ids of its local size
  std::uint32_t whole_size_ = 0;                                 // the constant that overrides the local size
  std::array<std::uint32_t, 3> size_{};                          // of the entry point, or that constant's
};

}  // namespace

Result<std::vector<std::uint32_t>> specialized(std::vector<std::uint32_t> words, std::string_view entry,
                                               std::span<const Define> values,
                                               const std::array<std::uint32_t, 3>& workgroup,
                                               UnknownConstants unknown) {
  constexpr std::array<std::uint32_t, 3> as_declared{0, 0, 0};
  Constants constants(std::move(words), entry);
  Status status;
  if (workgroup != as_declared) status = constants.set_workgroup(workgroup);
  for (const Define& value : values) {
    if (status.ok()) status = constants.set(value, unknown);
  }
  if (status.ok()) status = constants.check_shared();
  if (!status.ok()) return status;
  return constants.take();
}

}  // namespace kiln::vulkan
