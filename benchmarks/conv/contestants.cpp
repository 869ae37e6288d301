#include "conv/contestants.hpp"

#include "conv/gl_contender.hpp"
#include "places.hpp"
#include "reference/error_bounds.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::bench {

Judge::Judge(const Problem& problem)
    : problem_(problem),
      spec_(std::get<Conv2dSpec>(problem.spec)),
      reference_(reference::conv2d(spec_, problem.input.values, problem.weights.values, {})) {}

bool Judge::is_right(std::span<const float> output) {
  if (output.size() != reference_.value.size()) return false;
  if (within(output, {})) return true;
  Conv2dSpec allowing = spec_;
  allowing.accuracy = Accuracy::winograd;
  if (!reference::winograd_applies(allowing)) return false;
  if (winograd_.empty()) {
    winograd_ = reference::winograd_allowance(allowing, problem_.input.values, problem_.weights.values, {});
  }
  return within(output, winograd_);
}

bool Judge::within(std::span<const float> output, const std::vector<double>& allowance) const {
  const std::int64_t products = spec_.c / spec_.groups * spec_.r * spec_.s;
  const double bound = reference::direct_bound(products, false), underflow = reference::underflow_allowance(products);
  for (std::size_t i = 0; i < output.size(); ++i) {
    double allowed = bound * reference_.magnitude[i] + underflow;
    if (!allowance.empty()) allowed = std::max(allowed, allowance[i]);
    // NaN compares false.
    if (!(std::abs(static_cast<double>(output[i]) - reference_.value[i]) <= allowed)) return false;
  }
  return true;
}

namespace {

template <class T>
T need(Result<T> result, const std::string& what) {
  if (!result) throw std::runtime_error(what + ": " + result.error().text());
  return std::move(result).value();
}

class OnCpu final : public Contestant {
 public:
  OnCpu(Device& device, Problem& problem) : problem_(problem), call_(device, problem) {}
  void run() override { call_.run(); }
  void poison() override { problem_.kiln_output.poison(); }
  std::vector<float> output() override {
    return {problem_.kiln_output.values.begin(), problem_.kiln_output.values.end()};
  }

 private:
  Problem& problem_;
  KilnCall call_;
};

class OnOpenGl final : public Contestant {
 public:
  OnOpenGl(Device& device, const Problem& problem, const Conv2dSpec& spec, KernelPlan plan)
      : problem_(same(problem, spec)), contender_(device, problem_, std::move(plan)) {}
  void run() override { contender_.run(); }
  void poison() override { contender_.poison(); }
  std::vector<float> output() override { return contender_.output(); }

 private:
  static benchmarks::Problem same(const Problem& problem, const Conv2dSpec& spec) {
    benchmarks::Problem made(spec, 0);
    std::ranges::copy(problem.input.values, made.input->as<float>().begin());
    std::ranges::copy(problem.weights.values, made.weights->as<float>().begin());
    return made;
  }
  benchmarks::Problem problem_;
  benchmarks::Contender contender_;
};

}  // namespace

KilnDevices::KilnDevices(const std::string& cache_directory) {
  const std::vector<std::string> plugins{"opengl", "dynamic_shaders"};
  PluginLoaderOptions options;
  options.path = {plugins_folder()};
  for (const PluginReport& report : loader_.load(plugins, {}, registry_, options)) {
    if (!report.loaded) why_no_opengl_ = "plugin '" + report.name + "': " + report.why_not.text();
  }
  if (!why_no_opengl_.empty()) return;
  driver_ = need(registry_.drivers().at("opengl").make({{}, &counters_, {}, nullptr, {}}), "opengl");
  auto opened = driver_->open("opengl:0");
  if (!opened) {
    why_no_opengl_ = opened.error().text();
    return;
  }
  opengl_ = std::move(opened).value();
  const auto generators = need(registry_.generators("dynamic_shaders"), "dynamic_shaders");
  generator_ = need(generators.front()->make({{}, cache_directory, true, {}}), "dynamic_shaders");
}

std::unique_ptr<Contestant> KilnDevices::on_cpu(Problem& problem) {
  return std::make_unique<OnCpu>(cpu_.device(), problem);
}

std::unique_ptr<Contestant> KilnDevices::on_opengl(const Problem& problem, Accuracy accuracy) {
  if (opengl_ == nullptr) return nullptr;
  Conv2dSpec spec = std::get<Conv2dSpec>(problem.spec);
  spec.accuracy = accuracy;
  return std::make_unique<OnOpenGl>(*opengl_, problem, spec,
                                    need(generator_->generate(spec, opengl_->info(), Dialect::glsl), "generator"));
}

}  // namespace kiln::bench
