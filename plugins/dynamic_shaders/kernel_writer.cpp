#include "dynamic_shaders/kernel_writer.hpp"

#include <cstdio>
#include <stdexcept>

namespace kiln::dynamic_shaders {
namespace {

constexpr std::string_view opencl_entry = "kiln_kernel";
constexpr std::string_view numbers = "numbers";
constexpr const char* number_prefix = "n_";

std::string block_name(std::string_view name) {  // of a storage block: unlike every variable
  std::string block = "Of_";
  block += name;
  return block;
}

}  // namespace

KernelWriter::KernelWriter(const Form& form, std::string title) : form_(form), title_(std::move(title)) {}

std::string KernelWriter::number(std::string_view name, std::int64_t value, std::int64_t factor, std::int64_t plus) {
  if (!any_shape()) return std::to_string(factor * value + plus);
  const std::string known = number_prefix + std::string(name);
  const auto number = static_cast<std::int32_t>(value);  // limits.hpp: an index of a kernel is an int
  if (numbers_.try_emplace(known, number).first->second != number) {
    // The text would be wrong for every shape.
    throw std::logic_error("kernel '" + title_ + "': its family gives the name " + known + " to two numbers");
  }
  if (factor == 0) return std::to_string(plus);
  if (factor == -1) return std::to_string(plus) + " - " + known;
  std::string text = factor == 1 ? known : std::to_string(factor) + " * " + known;
  if (plus != 0) text += (plus < 0 ? " - " : " + ") + std::to_string(plus < 0 ? -plus : plus);
  return text;
}

void KernelWriter::bind(std::string_view name, Element element, Access access, Binding to, View view) {
  if (form_.dialect != Dialect::glsl) view = View::storage;
  slots_.push_back({std::string(name), element, access, view});
  bindings_.push_back(to);
}

void KernelWriter::share(std::string_view name, Element element, std::int64_t count) {
  shared_.push_back({std::string(name), element, count});
}

std::string KernelWriter::barrier() const {
  return form_.dialect == Dialect::glsl ? "memoryBarrierShared(); barrier();" : "barrier(CLK_LOCAL_MEM_FENCE);";
}

const KernelWriter::Slot* KernelWriter::slot(std::string_view name) const {
  for (const Slot& each : slots_) {
    if (each.name == name) return &each;
  }
  for (const Shared& each : shared_) {
    if (each.name == name) return nullptr;
  }
  // The text would be wrong on every device.
  throw std::logic_error("kernel '" + title_ + "': its family names the binding " + std::string(name) +
                         ", which it did not declare");
}

std::string KernelWriter::load(std::string_view name, const std::string& index) const {
  std::string text;
  const Slot* const bound = slot(name);
  switch (bound == nullptr ? View::storage : bound->view) {
    case View::texels:
      text += "texelFetch(";
      break;
    case View::image:
      text += "imageLoad(";
      break;
    default:
      text += name;
      text += '[';
      text += index;
      text += ']';
      return text;
  }
  text += name;
  text += ", ";
  text += index;
  text += ')';
  return text;
}

std::string KernelWriter::store(std::string_view name, const std::string& index, const std::string& value) const {
  std::string text(name);
  text += '[';
  text += index;
  text += "] = ";
  text += value;
  text += ';';
  return text;
}

std::string KernelWriter::vector_type() const { return form_.dialect == Dialect::glsl ? "vec4" : "float4"; }

std::string KernelWriter::vector(const std::string& x, const std::string& y, const std::string& z,
                                 const std::string& w) const {
  std::string text = form_.dialect == Dialect::glsl ? "vec4(" : "(float4)(";
  for (const std::string* part : {&x, &y, &z, &w}) {
    if (part != &x) text += ", ";
    text += *part;
  }
  text += ')';
  return text;
}

std::string KernelWriter::splat(const std::string& value) const {
  return (form_.dialect == Dialect::glsl ? "vec4(" : "(float4)(") + value + ")";
}

std::string KernelWriter::maximum(const std::string& a, const std::string& b) const {
  return (form_.dialect == Dialect::glsl ? "max(" : "fmax(") + a + ", " + b + ")";
}

std::string KernelWriter::minimum(const std::string& a, const std::string& b) const {
  return (form_.dialect == Dialect::glsl ? "min(" : "fmin(") + a + ", " + b + ")";
}

std::string KernelWriter::activated(const std::string& value, Activation activation) const {
  if (activation != Activation::relu && activation != Activation::relu6) return value;
  const std::string positive = maximum(value, zero());
  return activation == Activation::relu ? positive : minimum(positive, literal(6));
}

std::string KernelWriter::zero() const { return form_.dialect == Dialect::glsl ? "0.0" : "0.0f"; }

std::string KernelWriter::literal(double value) const {
  char text[48];
  std::snprintf(text, sizeof text, "%.9g", value);
  for (char& c : text) {
    if (c == ',') c = '.';  // whatever the process's locale writes
  }
  std::string number = text;
  if (number.find_first_of(".e") == std::string::npos) number += ".0";
  return form_.dialect == Dialect::glsl ? number : number + "f";
}

std::string KernelWriter::builtin(const char* glsl, const char* opencl, int axis) const {
  if (form_.dialect == Dialect::glsl) return std::string(glsl) + "." + "xyz"[axis];
  return std::string(opencl) + "(" + std::to_string(axis) + ")";
}

std::string KernelWriter::int_of(const std::string& builtin) const {
  return form_.dialect == Dialect::glsl ? to_int(builtin) : "(int)" + builtin;
}

std::string KernelWriter::lane(int axis) const { return int_of(builtin("gl_LocalInvocationID", "get_local_id", axis)); }

std::string KernelWriter::group(int axis) const { return int_of(builtin("gl_WorkGroupID", "get_group_id", axis)); }

std::string KernelWriter::globally(int axis) const { return int_of(unsigned_globally(axis)); }

std::string KernelWriter::unsigned_lane(int axis) const {
  return builtin("gl_LocalInvocationID", "(uint)get_local_id", axis);
}

std::string KernelWriter::unsigned_group(int axis) const {
  return builtin("gl_WorkGroupID", "(uint)get_group_id", axis);
}

std::string KernelWriter::unsigned_globally(int axis) const {
  return builtin("gl_GlobalInvocationID", "get_global_id", axis);
}

std::string KernelWriter::to_int(const std::string& value) const {
  return (form_.dialect == Dialect::glsl ? "int(" : "(int)(") + value + ")";
}

std::string KernelWriter::to_unsigned(const std::string& value) const {
  return (form_.dialect == Dialect::glsl ? "uint(" : "(uint)(") + value + ")";
}

std::string KernelWriter::glsl_frame(const std::array<std::uint32_t, 3>& workgroup) const {
  Text text;
  text.line("#version 430");
  text.line("// ", title_);
  text.line("layout(local_size_x = ", workgroup[0], ", local_size_y = ", workgroup[1], ") in;");
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.view == View::texels) {
      text.line("layout(binding = ", i, ") uniform samplerBuffer ", slot.name, ";");
    } else if (slot.view == View::image) {
      text.line("layout(binding = ", i, ", rgba32f) readonly restrict uniform imageBuffer ", slot.name, ";");
    } else {
      text.line("layout(std430, binding = ", i, ") ", slot.access == Access::read ? "readonly " : "",
                slot.access == Access::write ? "writeonly " : "", "restrict buffer ", block_name(slot.name), " { ",
                slot.element == Element::vector ? "vec4 " : "float ", slot.name, "[]; };");
    }
  }
  if (!numbers_.empty()) {
    text.line("layout(std430, binding = ", slots_.size(), ") readonly restrict buffer ", block_name(numbers), " { int ",
              numbers, "[]; };");
  }
  for (const Shared& each : shared_) {
    text.line("shared ", each.element == Element::vector ? "vec4 " : "float ", each.name, "[", each.count, "];");
  }
  text.blank();
  text.line("void main() {");
  return text.take();
}

std::string KernelWriter::opencl_frame(const std::array<std::uint32_t, 3>& workgroup) const {
  Text text;
  text.line("// ", title_);
  std::string arguments;
  for (const Slot& slot : slots_) {
    if (!arguments.empty()) arguments += ", ";
    arguments += "__global ";
    if (slot.access == Access::read) arguments += "const ";
    arguments += slot.element == Element::vector ? "float4* restrict " : "float* restrict ";
    arguments += slot.name;
  }
  if (!numbers_.empty()) {
    arguments += ", __global const int* restrict ";
    arguments += numbers;
  }
  text.line("__kernel __attribute__((reqd_work_group_size(", workgroup[0], ", ", workgroup[1], ", ", workgroup[2],
            ")))");
  text.line("void ", opencl_entry, "(", arguments, ") {");
  for (const Shared& each : shared_) {
    text.line("  __local ", each.element == Element::vector ? "float4 " : "float ", each.name, "[", each.count, "];");
  }
  return text.take();
}

std::string KernelWriter::numbers_frame() const {
  Text text(1);
  std::size_t place = 0;
  for (const auto& [name, value] : numbers_) text.line("int ", name, " = ", numbers, "[", place++, "];");
  return text.take();
}

Pass KernelWriter::take(const std::array<std::uint32_t, 3>& workgroup, const std::array<std::uint32_t, 3>& grid) {
  Pass pass;
  pass.source.dialect = form_.dialect;
  pass.source.text = (form_.dialect == Dialect::glsl ? glsl_frame(workgroup) : opencl_frame(workgroup)) +
                     numbers_frame() + body_.take() + "}\n";
  pass.source.entry = form_.dialect == Dialect::glsl ? "main" : opencl_entry;
  bool viewed = false;
  for (const Slot& slot : slots_) {
    pass.source.bindings.push_back(slot.access);
    pass.source.views.push_back(slot.view);
    viewed = viewed || slot.view != View::storage;
  }
  pass.bindings = std::move(bindings_);
  if (!numbers_.empty()) {
    pass.source.bindings.push_back(Access::read);
    pass.source.views.push_back(View::storage);
    pass.bindings.push_back({BindingSource::constant, static_cast<std::uint32_t>(form_.tables->size())});
    NumberTable& table = form_.tables->emplace_back();
    for (const auto& [name, value] : numbers_) table.push_back(value);
  }
  if (!viewed) pass.source.views.clear();
  pass.source.workgroup = workgroup;
  pass.grid = grid;
  return pass;
}

void Text::close() {
  --depth_;
  line("}");
}

std::string BandLoads::at(std::int64_t place) {
  const std::int64_t in_last = (bands_ - 1) * step_ + place;
  if (in_last < 0 || place >= plane_) return {};
  const std::string name = place < 0 ? "xm" + std::to_string(-place) : "x" + std::to_string(place);
  if (!loaded_.insert(place).second) return name;
  std::string guard;
  if (place < 0) guard = "band >= " + std::to_string(-place);
  if (in_last >= plane_) {
    if (!guard.empty()) guard += " && ";
    guard += "band < " + std::to_string(plane_ - place);
  }
  const bool vector = element_ == Element::vector;
  const std::string value = writer_.load("x", "first_x + " + std::to_string(place));
  const std::string zero = vector ? writer_.splat(writer_.zero()) : writer_.zero();
  writer_.body().line(vector ? writer_.vector_type() : "float", " ", name, " = ",
                      guard.empty() ? value : guard + " ? " + value + " : " + zero, ";");
  return name;
}

}  // namespace kiln::dynamic_shaders
