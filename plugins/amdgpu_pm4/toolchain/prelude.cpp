// The prelude of OpenCL C kernels, and what kernels may not use.

#include "amdgpu_pm4/toolchain/opencl_text.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::string_view functions[] = {"capture_event_profiling_info",
                                          "clock_read_device",
                                          "clock_read_hilo_device",
                                          "clock_read_hilo_sub_group",
                                          "clock_read_hilo_work_group",
                                          "clock_read_sub_group",
                                          "clock_read_work_group",
                                          "create_user_event",
                                          "enqueue_marker",
                                          "get_default_queue",
                                          "get_fence",
                                          "get_image_array_size",
                                          "get_image_channel_data_type",
                                          "get_image_channel_order",
                                          "get_image_depth",
                                          "get_image_dim",
                                          "get_image_height",
                                          "get_image_num_mip_levels",
                                          "get_image_num_samples",
                                          "get_image_width",
                                          "is_valid_event",
                                          "is_valid_reserve_id",
                                          "printf",
                                          "read_imagef",
                                          "read_imageh",
                                          "read_imagei",
                                          "read_imageui",
                                          "release_event",
                                          "retain_event",
                                          "set_user_event_status",
                                          "write_imagef",
                                          "write_imageh",
                                          "write_imagei",
                                          "write_imageui"};

// Known to the compiler already, which takes no other declaration of them, or none without a type that is refused.
constexpr std::string_view compilers_own[] = {"commit_read_pipe",
                                              "commit_write_pipe",
                                              "enqueue_kernel",
                                              "get_kernel_max_sub_group_size_for_ndrange",
                                              "get_kernel_preferred_work_group_size_multiple",
                                              "get_kernel_sub_group_count_for_ndrange",
                                              "get_kernel_work_group_size",
                                              "get_pipe_max_packets",
                                              "get_pipe_num_packets",
                                              "read_pipe",
                                              "reserve_read_pipe",
                                              "reserve_write_pipe",
                                              "sub_group_commit_read_pipe",
                                              "sub_group_commit_write_pipe",
                                              "sub_group_reserve_read_pipe",
                                              "sub_group_reserve_write_pipe",
                                              "to_global",
                                              "to_local",
                                              "to_private",
                                              "work_group_commit_read_pipe",
                                              "work_group_commit_write_pipe",
                                              "work_group_reserve_read_pipe",
                                              "work_group_reserve_write_pipe",
                                              "write_pipe"};

constexpr std::string_view types[] = {"clk_event_t",
                                      "image1d_array_t",
                                      "image1d_buffer_t",
                                      "image1d_t",
                                      "image2d_array_depth_t",
                                      "image2d_array_msaa_depth_t",
                                      "image2d_array_msaa_t",
                                      "image2d_array_t",
                                      "image2d_depth_t",
                                      "image2d_msaa_depth_t",
                                      "image2d_msaa_t",
                                      "image2d_t",
                                      "image3d_t",
                                      "ndrange_t",
                                      "queue_t",
                                      "reserve_id_t"};

// Of images. Beside a replacement they would be an error in front of the one that names the image.
constexpr std::string_view qualifiers[] = {"read_only",    "__read_only", "write_only",
                                           "__write_only", "read_write",  "__read_write"};

std::string unavailable_function(std::string_view function, std::string_view name) {
  return "__attribute__((overloadable, unavailable(\"" + std::string(name) + " is not offered\"))) int " +
         std::string(function) + "(...);\n";
}

std::string replacement_of(std::string_view name) { return std::string(replacement_prefix) + std::string(name); }

std::string replaced_by(std::string_view name, const std::string& replacement) {
  return "#define " + std::string(name) + " " + replacement + "\n";
}

std::string refusals(const std::set<std::string_view>& names) {
  const auto named = [&names](std::string_view name) { return names.empty() || names.contains(name); };
  std::string declared_functions, other;
  for (const std::string_view name : functions) {
    if (named(name)) declared_functions += unavailable_function(name, name);
  }
  for (const std::string_view name : compilers_own) {
    if (!named(name)) continue;
    declared_functions += unavailable_function(replacement_of(name), name);
    other += replaced_by(name, replacement_of(name));
  }
  for (const std::string_view name : types) {
    if (!named(name)) continue;
    other += "typedef struct { int none; } " + replacement_of(name) + " __attribute__((unavailable(\"" +
             std::string(name) + " is not offered\")));\n" + replaced_by(name, replacement_of(name));
  }
  for (const std::string_view name : qualifiers) {
    if (named(name)) other += replaced_by(name, "");
  }
  // Many a text has a sampler outside its kernels, for those of them with images. What reads an image is refused.
  for (const std::string_view name : names) {
    const bool is_of_sampler = name.starts_with("CLK_ADDRESS_") || name.starts_with("CLK_FILTER_") ||
                               name.starts_with("CLK_NORMALIZED_COORDS_");
    if (is_of_sampler) other += replaced_by(name, "0");
    if (name == "sampler_t") other += replaced_by(name, "uint");
  }
  if (declared_functions.empty()) return other;
  return "#pragma OPENCL EXTENSION __cl_clang_variadic_functions : enable\n" + declared_functions +
         "#pragma OPENCL EXTENSION __cl_clang_variadic_functions : disable\n" + other;
}

// One literal: the pieces join where they meet.
constexpr char pieces[] =
#include "amdgpu_pm4/toolchain/prelude_types.inc"

#include "amdgpu_pm4/toolchain/prelude_functions.inc"

#include "amdgpu_pm4/toolchain/prelude_groups.inc"
    ;

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
constexpr std::string_view digits = "0123456789";
constexpr std::string_view blanks = " \t\v\f\r\n";

template <class Visit>
void for_each_identifier(std::string_view text, Visit visit) {
  std::size_t at = 0;
  while ((at = text.find_first_of(letters, at)) != std::string_view::npos) {
    std::size_t end = at;
    while (end < text.size() && (letters.find(text[end]) != letters.npos || digits.find(text[end]) != digits.npos)) {
      ++end;
    }
    visit(text.substr(at, end - at));
    at = end;
  }
}

// Whether `text` stands between identifiers and is nothing but blanks.
bool is_blank(std::string_view text) { return text.find_first_not_of(blanks) == text.npos; }

// Whether the identifier names a function that is called: "(" follows it, and no type stands before it, as it does in a
// declaration. In a #define's text any identifier may, but a parameter.
class CallFinder {
 public:
  // text: of code_and_directives_of(); code: of code_of().
  CallFinder(std::string_view text, std::string_view code) : text_(text), code_(code) {}

  // In the order in which the identifiers stand in the text.
  bool is_call(std::string_view name) {
    const auto at = static_cast<std::size_t>(name.data() - text_.data());
    if (code_[at] == of_directive) return may_be_called_by_macro(name, at);
    const bool declared = !previous_.empty() && previous_ != "return" && previous_ != "else" && previous_ != "do" &&
                          previous_ != "case" && is_blank(code_.substr(previous_end_, at - previous_end_));
    previous_ = name;
    previous_end_ = at + name.size();
    return !declared && opens(at, previous_end_);
  }

 private:
  // Whether "(" follows, or stands around: "(sin)(x)".
  bool opens(std::size_t at, std::size_t behind) const {
    const std::size_t next = code_.find_first_not_of(blanks, behind);
    if (next == code_.npos || code_[next] != ')') return next != code_.npos && code_[next] == '(';
    const std::size_t before = at == 0 ? code_.npos : code_.find_last_not_of(blanks, at - 1);
    const std::size_t beyond = code_.find_first_not_of(blanks, next + 1);
    return before != code_.npos && code_[before] == '(' && beyond != code_.npos && code_[beyond] == '(';
  }

  bool may_be_called_by_macro(std::string_view name, std::size_t at) {
    if (begins_directive(at)) {
      is_define_ = name == "define";
      macro_end_ = 0;
      return false;
    }
    if (!is_define_) return false;
    const std::size_t behind = at + name.size();
    if (macro_end_ == 0) {  // the macro's own name
      macro_end_ = behind;
      if (behind < text_.size() && text_[behind] == '(') macro_end_ = std::min(text_.find(')', behind), text_.size());
      parameters_.clear();
      return false;
    }
    if (at < macro_end_) parameters_.insert(name);
    return at >= macro_end_ && !parameters_.contains(name);
  }

  // Whether a directive begins between the identifier before and this one. A backslash continues one.
  bool begins_directive(std::size_t at) {
    bool begins = false;
    for (; scanned_ <= at; ++scanned_) {
      if (code_[scanned_] != of_directive || (scanned_ != 0 && code_[scanned_ - 1] == of_directive)) continue;
      const bool continued = scanned_ >= 2 && text_[scanned_ - 1] == '\n' && code_[scanned_ - 2] == of_directive &&
                             text_[scanned_ - 2] == '\\';
      begins = begins || !continued;
    }
    return begins;
  }

  const std::string_view text_, code_;
  std::string_view previous_;
  std::size_t previous_end_ = 0, scanned_ = 0, macro_end_ = 0;
  bool is_define_ = false;
  std::set<std::string_view> parameters_;  // of the macro whose text this is
};

void add(std::string_view part, std::set<std::string_view>& names) {
  if (part.empty()) return;
  names.insert(part);
  if (part.ends_with("8") || part.ends_with("16")) names.insert("wide");
  const std::size_t last = part.find_last_not_of(digits);
  if (last != std::string_view::npos) names.insert(part.substr(0, last + 1));
}

// The identifier, each part of it that ends before an underscore, and each part between two: also without the digits
// at its end.
void add_parts(std::string_view identifier, std::set<std::string_view>& names) {
  add(identifier, names);
  std::size_t from = 0;
  for (std::size_t at = identifier.find('_'); at != std::string_view::npos; at = identifier.find('_', at + 1)) {
    add(identifier.substr(0, at), names);
    add(identifier.substr(from, at - from), names);
    from = at + 1;
  }
  add(identifier.substr(from), names);
}

// Whether the code has a real number without a suffix: 1.0, .5, 1e3 or 0x1p3.
bool has_double_literal(std::string_view code) {
  const auto is_of = [](char c, std::string_view set) { return set.find(c) != set.npos; };
  for (std::size_t at = 0; (at = code.find_first_of(digits, at)) != code.npos;) {
    const std::size_t first = at;
    const bool in_name = first != 0 && is_of(code[first - 1], letters);
    const bool is_hex = code.substr(first, 2) == "0x" || code.substr(first, 2) == "0X";
    const auto goes_on = [&](char c) {
      if (is_of(c, letters) || is_of(c, digits)) return true;
      return !in_name && (c == '.' || (is_of(c, "+-") && is_of(code[at - 1], is_hex ? "pP" : "eE")));
    };
    while (at < code.size() && goes_on(code[at])) ++at;
    if (in_name) continue;
    const std::string_view number = code.substr(first, at - first);
    const bool is_real =
        number.find_first_of(is_hex ? "pP" : ".eE") != number.npos || (first != 0 && code[first - 1] == '.');
    if (is_real && !is_of(number.back(), "fFhH")) return true;
  }
  return false;
}

// Whether the prelude may define the name as a number of double: M_PI, but not M_PI_F or M_PI_H.
bool is_double_constant(std::string_view name) {
  return (name.starts_with("M_") && !name.ends_with("_F") && !name.ends_with("_H")) || name.starts_with("DBL_") ||
         name == "HUGE_VAL";
}

bool pastes_identifiers(std::string_view text) { return text.find("##") != std::string_view::npos; }

// Words of its conditions and comments are left out: many are names of functions.
std::string prelude_code() {
  std::string code = code_and_directives_of(prelude());
  for (std::size_t at = 0; (at = code.find("\n#if", at)) != code.npos;) {
    const std::size_t end = std::min(code.find('\n', at + 1), code.size());
    code.erase(at, end - at);
  }
  return code;
}

const std::set<std::string, std::less<>>& prelude_names() {
  static const std::set<std::string, std::less<>> names = [] {
    std::set<std::string, std::less<>> all = {"if",
                                              "for",
                                              "while",
                                              "switch",
                                              "return",
                                              "else",
                                              "do",
                                              "case",
                                              "sizeof",
                                              "defined",
                                              "define",
                                              "kernel",
                                              "__kernel",
                                              "__attribute__",
                                              "reqd_work_group_size",
                                              "work_group_size_hint",
                                              "vec_type_hint",
                                              "aligned"};
    const std::string code = prelude_code();
    for_each_identifier(code, [&all](std::string_view name) {
      all.emplace(name);
      if (name.starts_with("atomic_")) all.insert(std::string(name) + "_explicit");
    });
    for (const char* const operation : {"add", "min", "max"}) {
      for (const char* const kind : {"reduce_", "scan_inclusive_", "scan_exclusive_"}) {
        all.insert("sub_group_" + std::string(kind) + operation);
      }
    }
    for (const char* const operation : {"sub", "min", "max", "and", "or", "xor"}) {
      all.insert("atomic_" + std::string(operation));
    }
    all.erase("tgamma");  // made of a function of the library
    // Only declared, or made of a function of the library.
    std::erase_if(all, [](const std::string& name) {
      return name.starts_with("amd_") ||
             (name.starts_with("work_group_") && name != "work_group_barrier" && name != "work_group_size_hint");
    });
    return all;
  }();
  return names;
}

}  // namespace

std::string_view prelude() noexcept { return {pieces, sizeof pieces - 1}; }

std::string uses_of(std::string_view text) {
  const std::string code = code_and_directives_of(text);
  if (pastes_identifiers(code)) return "#define KILN_USES(name) 1\n";
  std::set<std::string_view> names;
  bool has_doubles = has_double_literal(code);
  for_each_identifier(code, [&](std::string_view identifier) {
    add_parts(identifier, names);
    has_doubles = has_doubles || is_double_constant(identifier);
  });
  if (has_doubles) names.insert("double_literal");
  std::string defines = "#define KILN_USES(name) KILN_USES_##name\n";
  for (const std::string_view name : names) {
    // "2x" of "scale_2x" makes no identifier that the prelude looks for.
    if (digits.find(name[0]) == digits.npos) defines += "#define KILN_USES_" + std::string(name) + " 1\n";
  }
  return defines;
}

std::string corrections_for(std::string_view text) {
  const bool all = pastes_identifiers(text);
  std::set<std::string_view> names;
  if (!all) for_each_identifier(text, [&names](std::string_view name) { names.insert(name); });
  std::string defines;
  // A compound literal as operand has commas.
  const auto correct = [&](const std::string& name, const std::string& function) {
    if (!all && !names.contains(name)) return;
    defines += "#define " + name + "(...) " + name + "(" + function + "(__VA_ARGS__))\n";
  };
  for (const char* const width : {"", "2", "3", "4", "8", "16"}) {
    for (const char* const mode : {"", "_rte", "_rtz", "_rtp", "_rtn"}) {
      for (const char* const type : {"char", "short", "int", "long"}) {
        correct(std::string("convert_") + type + width + "_sat" + mode, "kiln_number_");
      }
      correct(std::string("convert_half") + width + mode, "kiln_in_half_");
    }
  }
  return defines;
}

bool calls_library(std::string_view text) {
  if (pastes_identifiers(text)) return true;
  bool calls = false;
  const std::string code = code_of(text), with_directives = code_and_directives_of(text);
  CallFinder finder(with_directives, code);
  for_each_identifier(with_directives, [&](std::string_view name) {
    const bool called = finder.is_call(name);
    calls = calls || (called && !prelude_names().contains(name));
  });
  return calls;
}

std::string refusals_for(std::string_view text) {
  if (pastes_identifiers(text)) return refusals({});
  std::set<std::string_view> names;
  for_each_identifier(text, [&names](std::string_view name) { names.insert(name); });
  return names.empty() ? std::string() : refusals(names);
}

}  // namespace kiln::amdgpu_pm4
