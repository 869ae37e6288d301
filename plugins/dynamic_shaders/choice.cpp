#include "dynamic_shaders/choice.hpp"

#include <kiln/kernel_parameters.hpp>

#include <algorithm>
#include <string>

#include "dynamic_shaders/families/simple_layers.hpp"
#include "dynamic_shaders/space/conv_space.hpp"
#include "dynamic_shaders/space/gemm_space.hpp"
#include "dynamic_shaders/tuner/nearest.hpp"
#include "dynamic_shaders/tuner/rounds.hpp"
#include "dynamic_shaders/variants.hpp"

namespace kiln::dynamic_shaders {
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
  return unsupported("dynamic_shaders: writes no kernel of " + std::string(operation(spec)));
}

bool is_of_today(const TuningRecord& record, const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) {
  const auto plan = plan_of(spec, device, dialect, record.variant);
  return plan && source_digest(*plan, device) == record.source;
}

}  // namespace kiln::dynamic_shaders
