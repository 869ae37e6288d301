#include "dynamic_shaders/families/product/gemm_plain.hpp"

#include "dynamic_shaders/lane_map.hpp"
#include "dynamic_shaders/limits.hpp"
#include "dynamic_shaders/text.hpp"

namespace kiln::dynamic_shaders {
namespace {

struct Part {
  std::int64_t first = 0, last = 0;  // of k, half open
  bool begins = false;               // from nothing; else from what the pass before left in the output
  bool ends = false;                 // adds the bias, applies the activation
};

bool has_bias(const GemmSpec& spec) { return spec.bias == Bias::per_channel; }

std::string source_text(const GemmSpec& spec, const LaneMap& map, const Part& part) {
  Text text;
  text.line("#version 430");
  text.line("// gemm/plain: column and row are those of the product.");
  text.line("layout(local_size_x = ", map.workgroup[0], ", local_size_y = ", map.workgroup[1], ") in;");
  int binding = 0;
  text.line("layout(std430, binding = ", binding++, ") readonly restrict buffer A { float a[]; };");
  text.line("layout(std430, binding = ", binding++, ") readonly restrict buffer B { float b[]; };");
  if (has_bias(spec) && part.ends) {
    text.line("layout(std430, binding = ", binding++, ") readonly restrict buffer BiasValues { float bias[]; };");
  }
  text.line("layout(std430, binding = ", binding, ") ", part.begins ? "writeonly " : "",
            "restrict buffer C { float c[]; };");
  text.blank();
  text.open("void main()");
  text.lines(map.decoding());
  text.line("int at = row * ", spec.n, " + column;");
  text.line("float sum = ", part.begins ? "0.0" : "c[at]", ";");
  text.open("for (int k = ", part.first, "; k < ", part.last, "; ++k)");
  text.line("sum += a[row * ", spec.k, " + k] * b[k * ", spec.n, " + column];");
  text.close();
  if (part.ends && has_bias(spec)) text.line("sum += bias[column];");
  if (part.ends && spec.activation == Activation::relu) text.line("sum = max(sum, 0.0);");
  text.line("c[at] = sum;");
  text.close();
  return text.take();
}

}  // namespace

Result<KernelPlan> gemm_plain(const GemmSpec& spec, const DeviceInfo& device) {
  KernelPlan plan;
  plan.variant = "gemm/plain";
  plan.tensors = tensors_of(spec);
  if (Status status = check_limits(plan.tensors, device); !status.ok()) return status;
  const auto map = map_lanes({static_cast<std::uint32_t>(spec.n), static_cast<std::uint32_t>(spec.m), 1}, device);
  if (!map) return map.error();

  const std::int64_t passes = passes_for(spec.k, 1);
  const std::uint32_t product = has_bias(spec) ? 3 : 2;
  for (std::int64_t i = 0; i < passes; ++i) {
    const Part part{i * spec.k / passes, (i + 1) * spec.k / passes, i == 0, i + 1 == passes};
    Pass& pass = plan.passes.emplace_back();
    pass.source.dialect = Dialect::glsl;
    pass.source.text = source_text(spec, *map, part);
    pass.source.workgroup = map->workgroup;
    pass.source.bindings = {Access::read, Access::read};
    pass.bindings = {{BindingSource::tensor, 0}, {BindingSource::tensor, 1}};
    if (has_bias(spec) && part.ends) {
      pass.source.bindings.push_back(Access::read);
      pass.bindings.push_back({BindingSource::tensor, 2});
    }
    pass.source.bindings.push_back(part.begins ? Access::write : Access::read_write);
    pass.bindings.push_back({BindingSource::tensor, product});
    pass.grid = map->grid;
  }
  return plan;
}

}  // namespace kiln::dynamic_shaders
