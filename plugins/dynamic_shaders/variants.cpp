#include "dynamic_shaders/variants.hpp"

#include <kiln/kernel_parameters.hpp>
#include <kiln/program.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <string>

#include "dynamic_shaders/families/depthwise.hpp"
#include "dynamic_shaders/families/direct.hpp"
#include "dynamic_shaders/families/gemm.hpp"
#include "dynamic_shaders/families/implicit.hpp"
#include "dynamic_shaders/families/simple_layers.hpp"
#include "dynamic_shaders/families/user_kernel.hpp"
#include "dynamic_shaders/families/winograd.hpp"
#include "dynamic_shaders/limits.hpp"
#include "dynamic_shaders/space/variant_space.hpp"
#include "dynamic_shaders/tuner/rounds.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr std::string_view blocked_family = "direct/blocked:";
constexpr std::string_view winograd_family = "winograd/f";

Status unknown_variant(std::string_view op, std::string_view variant) {
  return not_found(std::string(op) + ": unknown variant '" + std::string(variant) + "'");
}

Result<std::shared_ptr<const Constant>> constant_of(const NumberTable& table) {
  auto tensor = HostTensor::create(DType::i32, {static_cast<std::int64_t>(table.size())});
  if (!tensor) return std::move(tensor).error();
  std::ranges::copy(table, (*tensor)->as<std::int32_t>().begin());
  return Constant::create(std::move(*tensor));
}

using MakePlan = std::function<Result<KernelPlan>(std::string_view variant, const Form& form)>;

// The plan of a variant for one shape or, where its id ends so, the plan whose programs serve any.
Result<KernelPlan> in_its_form(std::string_view variant, const DeviceInfo& device, Dialect dialect,
                               const MakePlan& make) {
  if (!variant.ends_with(any_shape)) return make(variant, dialect);
  variant.remove_suffix(any_shape.size());
  std::vector<NumberTable> tables;
  auto plan = make(variant, Form(dialect, &tables));
  if (!plan) return plan;
  plan->variant += any_shape;
  for (const NumberTable& table : tables) {
    auto constant = constant_of(table);
    if (!constant) return std::move(constant).error();
    plan->constants.push_back(std::move(*constant));
  }
  if (Status status = check_bindings(*plan, device); !status.ok()) return status;
  return plan;
}

Result<KernelPlan> conv_in_form(const Conv2dSpec& spec, const DeviceInfo& device, std::string_view variant,
                                const Form& form) {
  if (variant == "direct/plain") return direct_plain(spec, device, form);
  if (variant.starts_with(blocked_family)) {
    const auto blocking = blocking_of(variant.substr(blocked_family.size()));
    if (blocking) return direct_blocked(spec, *blocking, device, form);
  }
  if (const auto tile = implicit_of(variant)) return implicit_product(spec, *tile, device, form);
  if (const auto choice = depthwise_of(variant)) return depthwise(spec, *choice, device, form);
  if (variant.starts_with(winograd_family) && variant.size() > winograd_family.size() + 2) {
    const char m = variant[winograd_family.size()];
    const auto blocking = blocking_of(variant.substr(winograd_family.size() + 2));
    const bool parted = variant[winograd_family.size() + 1] == ':';
    if (blocking && parted && (m == '2' || m == '4')) return winograd(spec, m - '0', *blocking, device, form);
  }
  return unknown_variant("conv2d", variant);
}

Result<KernelPlan> gemm_in_form(const GemmSpec& spec, const DeviceInfo& device, std::string_view variant,
                                const Form& form) {
  if (variant == "gemm/plain") return gemm_plain(spec, device, form);
  if (const auto blocking = gemm_blocking_of(variant)) return gemm_blocked(spec, *blocking, device, form);
  if (const auto tile = gemm_tile_of(variant)) return gemm_shared(spec, *tile, device, form);
  return unknown_variant("gemm", variant);
}

}  // namespace

Result<KernelPlan> plan_of(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                           std::string_view variant) {
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) {
    return in_its_form(variant, device, dialect,
                       [&](std::string_view id, const Form& form) { return conv_in_form(*conv, device, id, form); });
  }
  if (const auto* gemm = std::get_if<GemmSpec>(&spec)) {
    return in_its_form(variant, device, dialect,
                       [&](std::string_view id, const Form& form) { return gemm_in_form(*gemm, device, id, form); });
  }
  if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) return user_kernel(*kernel, variant, device);
  if (const std::string_view only = simple_variant(spec); !only.empty()) {
    return variant == only ? simple_layer(spec, device, dialect) : unknown_variant(operation(spec), variant);
  }
  return unsupported("dynamic_shaders: no kernel for the operation " + std::string(operation(spec)));
}

std::string_view only_variant(const KernelSpec& spec) noexcept {
  const auto* kernel = std::get_if<UserKernelSpec>(&spec);
  return kernel != nullptr && kernel->parameters.empty() ? "user" : simple_variant(spec);
}

std::string source_digest(const KernelPlan& plan, const DeviceInfo& device) {
  std::string digest;
  for (const auto* const passes : {&plan.prepare, &plan.passes}) {
    for (const Pass& pass : *passes) digest += key_of(pass.source, device, {}).digest.hex().substr(0, 16);
  }
  return digest;
}

namespace {

std::optional<std::string_view> value_of(std::string_view text, std::string_view name) {
  std::string needle(" ");
  needle += name;
  needle += '=';
  const std::size_t at = text.find(needle);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + needle.size());
  return text.substr(0, text.find(' '));
}

bool read(std::string_view text, std::string_view name, std::int64_t& to) {
  const auto value = value_of(text, name);
  if (!value) return false;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), to);
  return error == std::errc() && end == value->data() + value->size();
}

double doublings(std::int64_t a, std::int64_t b) {
  return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

enum class Grouping { one, depthwise, some };

Grouping grouping_of(const Conv2dSpec& spec) {
  if (spec.groups == 1) return Grouping::one;
  return spec.groups == spec.c && spec.k == spec.c ? Grouping::depthwise : Grouping::some;
}

Activation activation_of(std::string_view text) {
  for (const Activation each : {Activation::relu, Activation::relu6}) {
    if (value_of(text, "activation") == to_string(each)) return each;
  }
  return Activation::none;
}

}  // namespace

std::optional<Conv2dSpec> conv_of(std::string_view text) {
  if (!text.starts_with("conv2d ")) return std::nullopt;
  Conv2dSpec spec;
  std::int64_t bias = 0;
  const bool whole =
      read(text, "n", spec.n) && read(text, "c", spec.c) && read(text, "h", spec.h) && read(text, "w", spec.w) &&
      read(text, "k", spec.k) && read(text, "r", spec.r) && read(text, "s", spec.s) &&
      read(text, "stride_y", spec.stride_y) && read(text, "stride_x", spec.stride_x) &&
      read(text, "pad_y", spec.pad_y) && read(text, "pad_x", spec.pad_x) && read(text, "dilation_y", spec.dilation_y) &&
      read(text, "dilation_x", spec.dilation_x) && read(text, "groups", spec.groups) && read(text, "bias", bias);
  if (!whole) return std::nullopt;
  spec.bias = bias != 0 ? Bias::per_channel : Bias::none;
  spec.activation = activation_of(text);
  spec.accuracy = value_of(text, "accuracy") == "winograd" ? Accuracy::winograd : Accuracy::direct;
  if (!validate(spec).ok()) return std::nullopt;
  return spec;
}

std::optional<GemmSpec> gemm_of(std::string_view text) {
  if (!text.starts_with("gemm ")) return std::nullopt;
  GemmSpec spec;
  std::int64_t bias = 0;
  const bool whole =
      read(text, "m", spec.m) && read(text, "n", spec.n) && read(text, "k", spec.k) && read(text, "bias", bias);
  if (!whole) return std::nullopt;
  spec.bias = bias != 0 ? Bias::per_channel : Bias::none;
  spec.activation = activation_of(text);
  if (!validate(KernelSpec(spec)).ok()) return std::nullopt;
  return spec;
}

std::optional<double> distance(const Conv2dSpec& a, const Conv2dSpec& b) {
  const bool alike = a.r == b.r && a.s == b.s && a.stride_y == b.stride_y && a.stride_x == b.stride_x &&
                     a.dilation_y == b.dilation_y && a.dilation_x == b.dilation_x && grouping_of(a) == grouping_of(b) &&
                     a.accuracy == b.accuracy;
  if (!alike) return std::nullopt;
  return doublings(a.c / a.groups, b.c / b.groups) + doublings(a.k / a.groups, b.k / b.groups) +
         doublings(a.groups, b.groups) + doublings(a.out_h(), b.out_h()) + doublings(a.out_w(), b.out_w()) +
         doublings(a.n, b.n);
}

std::optional<double> distance(const GemmSpec& a, const GemmSpec& b) {
  return doublings(a.m, b.m) + doublings(a.n, b.n) + doublings(a.k, b.k);
}

namespace {

constexpr double farthest = 4;        // doublings to a shape whose winner may serve
constexpr double model_slack = 1.25;  // what the model may see against it

std::vector<Candidate> space_of(const Conv2dSpec& spec, const DeviceInfo& device) { return conv_space(spec, device); }
std::vector<Candidate> space_of(const GemmSpec& spec, const DeviceInfo& device) { return gemm_space(spec, device); }

std::optional<Conv2dSpec> shape_like(const Conv2dSpec&, std::string_view text) { return conv_of(text); }
std::optional<GemmSpec> shape_like(const GemmSpec&, std::string_view text) { return gemm_of(text); }

// One choice under way: the records of the shape, and what they keep from serving.
class Chooser {
 public:
  Chooser(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect, TuningDatabase& database)
      : spec_(spec),
        device_(device),
        dialect_(dialect),
        database_(database),
        machine_(device_digest(device)),
        records_(database.of(machine_, record_spec(spec))) {}

  std::optional<Choice> tuned() const {
    const auto winner = std::ranges::find(records_, Verdict::winner, &TuningRecord::verdict);
    if (winner == records_.end()) return std::nullopt;
    auto plan = plan_of(spec_, device_, dialect_, winner->variant);
    if (!plan || source_digest(*plan, device_) != winner->source) return std::nullopt;
    const double wall_ms = winner->wall_ns.empty() ? 0 : static_cast<double>(interval_of(winner->wall_ns).median) / 1e6;
    return Choice{std::move(*plan), by_tuning, {{"tuned_wall_ms", wall_ms}}};
  }

  // The model's choice; where that can not be made or was rejected, the first of the space that can be and was not.
  template <class Spec>
  Result<Choice> by_model(const Spec& shape) const {
    const std::string preferred = default_variant(shape, device_);
    auto plan = admitted(preferred);
    if (!plan) {
      const std::vector<Candidate> space = space_of(shape, device_);  // the plain variant is its last
      for (auto each = space.begin(); !plan && each != space.end(); ++each) plan = admitted(each->variant);
      // Where all were rejected the plainest serves, for want of a better one: it may have been too slow to be
      // measured.
      if (!plan) plan = plan_of(spec_, device_, dialect_, space.back().variant);
    }
    if (!plan) return std::move(plan).error();
    const double cost = predicted_run(shape, device_, plan->variant).value_or(0);
    return Choice{std::move(*plan), "cost model", {{"model_cost", cost}}};
  }

  template <class Spec>
  std::optional<Choice> of_the_nearest(const Spec& shape, const Choice& by_model) const {
    struct Near {
      double apart;
      Spec shape;
      TuningRecord winner;
    };
    std::vector<Near> near;
    for (TuningRecord& winner : database_.winners(machine_)) {
      const auto other = shape_like(shape, winner.spec);
      const auto apart = other ? distance(shape, *other) : std::nullopt;
      if (apart && *apart < farthest) near.push_back({*apart, *other, std::move(winner)});
    }
    std::ranges::stable_sort(near, {}, &Near::apart);
    const double predicted = by_model.figures.front().second;
    for (const Near& each : near) {
      const auto cost = predicted_run(shape, device_, each.winner.variant);
      if (!cost || *cost > model_slack * predicted) continue;
      if (!is_of_today(each.winner, each.shape, device_, dialect_)) continue;
      auto plan = admitted(each.winner.variant);
      if (!plan) continue;
      return Choice{
          std::move(*plan),
          "the nearest tuned shape",
          {{"doublings_apart", each.apart}, {"model_cost", *cost}, {"model_cost_of_its_own_choice", predicted}}};
    }
    return std::nullopt;
  }

  // Its plan, where nothing was found against it.
  Result<KernelPlan> admitted(const std::string& variant) const {
    auto plan = plan_of(spec_, device_, dialect_, variant);
    if (!plan) return plan;
    for (const TuningRecord& record : records_) {
      if (record.is_refused() && record.variant == variant && record.source == source_digest(*plan, device_)) {
        return unsupported("variant " + variant + " was rejected: " + record.why);
      }
    }
    return plan;
  }

 private:
  const KernelSpec& spec_;
  const DeviceInfo& device_;
  const Dialect dialect_;
  TuningDatabase& database_;
  const std::string machine_;
  const std::vector<TuningRecord> records_;
};

template <class Spec>
Result<Choice> choose_shape(const Spec& shape, const Chooser& chooser) {
  if (auto tuned = chooser.tuned()) return std::move(*tuned);
  auto by_model = chooser.by_model(shape);
  if (!by_model) return by_model;
  if (auto nearest = chooser.of_the_nearest(shape, *by_model)) return std::move(*nearest);
  return by_model;
}

// REQUIRES: it leaves parameters open.
Result<Choice> choose_of_kernel(const UserKernelSpec& kernel, const DeviceInfo& device, const Chooser& chooser) {
  const bool has_texts =
      std::ranges::none_of(kernel.parameters, [](const auto& parameter) { return parameter.texts.empty(); });
  if (has_texts) {
    if (auto tuned = chooser.tuned()) return std::move(*tuned);
  }
  std::vector<std::string> variants = {"user"};  // a parameter without a text is refused with its plan
  if (has_texts) variants = variants_of(kernel);
  for (const std::string& variant : variants) {
    if (auto plan = chooser.admitted(variant)) {
      return Choice{std::move(*plan), "the first of its parameters that was not rejected", {}};
    }
  }
  auto plan = plan_of(kernel, device, kernel.dialect, variants.front());
  if (!plan) return std::move(plan).error();
  return Choice{std::move(*plan), "the first of its parameters: all were rejected", {}};
}

}  // namespace

Result<Choice> choose(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect, TuningDatabase& database) {
  // On each run: nothing is looked up for what leaves no choice.
  if (const std::string_view only = only_variant(spec); !only.empty()) {
    auto plan = plan_of(spec, device, dialect, only);
    if (!plan) return std::move(plan).error();
    return Choice{std::move(*plan), "", {}};
  }
  const Chooser chooser(spec, device, dialect, database);
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) return choose_shape(*conv, chooser);
  if (const auto* gemm = std::get_if<GemmSpec>(&spec)) return choose_shape(*gemm, chooser);
  if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) return choose_of_kernel(*kernel, device, chooser);
  return unsupported("dynamic_shaders: no kernel for the operation " + std::string(operation(spec)));
}

bool is_of_today(const TuningRecord& record, const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) {
  const auto plan = plan_of(spec, device, dialect, record.variant);
  return plan && source_digest(*plan, device) == record.source;
}

}  // namespace kiln::dynamic_shaders
