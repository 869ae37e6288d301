#include "tune/bench_child.hpp"

#include <kiln/kernel_parameters.hpp>
#include <kiln/plugin_loader.hpp>
#include <kiln/runtime.hpp>

#include "data/tensor_source.hpp"
#include "plugin_path.hpp"
#include "runtime/job/request_tensors.hpp"
#include "runtime/job/verification.hpp"
#include "runtime/tuning/bench_protocol.hpp"
#include "verbs/job_request.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace kiln::host {
namespace {

using Say = std::function<bool(const std::string&)>;

// The parts of a kiln process, without its command line.
struct Bench {
  Config config;
  Registry registry;
  PluginLoader loader;
  std::unique_ptr<Runtime> runtime;
  RunRequest request;
  std::optional<InoutSnapshot> initial;            // every run of a kernel begins with what its files hold
  std::map<std::string, VariantSamples> compared;  // what is told of variants that were right, but for their times
};

Result<TensorArgument> tensor_of(std::string_view source, const Shape& shape, bool constant) {
  auto tensor = data::load_tensor(std::string(source), {}, {DType::f32, shape, "tensor"});
  if (!tensor) return std::move(tensor).error();
  if (constant) return TensorArgument{nullptr, Constant::create(std::move(tensor).value())};
  return TensorArgument{std::move(tensor).value(), nullptr};
}

Status add_tensors(const Shape& input, const Shape& weights, Bias bias, const Shape& output, RunRequest& request) {
  const auto add = [&](std::string_view source, const Shape& shape, bool constant) -> Status {
    auto tensor = tensor_of(source, shape, constant);
    if (!tensor) return std::move(tensor).error();
    request.tensors.push_back(std::move(*tensor));
    return {};
  };
  if (Status status = add("random:1", input, false); !status.ok()) return status;
  if (Status status = add("random:2", weights, true); !status.ok()) return status;
  if (bias == Bias::per_channel) {
    if (Status status = add("random:3", {output[1]}, true); !status.ok()) return status;
  }
  return add("random:4", output, false);
}

Status add_tensors(const Conv2dSpec& spec, RunRequest& request) {
  return add_tensors({spec.n, spec.c, spec.h, spec.w}, {spec.k, spec.c / spec.groups, spec.r, spec.s}, spec.bias,
                     {spec.n, spec.k, spec.out_h(), spec.out_w()}, request);
}

Status add_tensors(const GemmSpec& spec, RunRequest& request) {
  return add_tensors({spec.m, spec.k}, {spec.k, spec.n}, spec.bias, {spec.m, spec.n}, request);
}

// The variants of a kernel that Kiln cannot compute are right where they do what the first of them does.
Status keep_as_reference(const RunRequest& request, const UserKernelSpec& kernel,
                         std::vector<ExpectedOutput>& expected) {
  std::vector<std::optional<Tolerance>> tolerances;
  for (const ExpectedOutput& output : expected) tolerances.push_back(output.tolerance);
  expected.clear();
  std::size_t tensor = 0;
  for (const UserKernelSpec::Binding& binding : kernel.bindings) {
    if (binding.kind == BindingKind::local) continue;
    const HostTensor& result = *request.tensors[tensor++].host;
    if (binding.access == Access::read) continue;
    auto copy = HostTensor::create(result.dtype(), result.shape());
    if (!copy) return std::move(copy).error();
    std::ranges::copy(result.bytes(), (*copy)->bytes().begin());
    const std::size_t at = expected.size();
    expected.push_back({std::move(*copy), at < tolerances.size() ? tolerances[at] : std::nullopt});
  }
  return {};
}

Status open_kernel(Bench& bench, const std::string& name, const std::string& device) {
  const auto job = std::ranges::find(bench.config.jobs, name, &JobConfig::name);
  if (job == bench.config.jobs.end()) return not_found("bench: there is no job '" + name + "'");
  auto request = make_request(*job);
  if (!request) return std::move(request).error();
  bench.request = std::move(*request);
  const auto* kernel = std::get_if<UserKernelSpec>(&bench.request.spec);
  if (kernel == nullptr) return unsupported("bench: job '" + name + "' has no kernel of the user's own");
  if (Status status = check_parameters(*kernel); !status.ok()) return status;
  const auto writes = [](const UserKernelSpec::Binding& binding) {
    return binding.kind == BindingKind::buffer && binding.access != Access::read;
  };
  if (std::ranges::none_of(kernel->bindings, writes)) {
    return unavailable("job '" + name + "' has no output or inout: there is nothing to compare its variants by");
  }
  bench.request.device = device;
  bench.request.variant = variants_of(*kernel).front();
  bench.request.verify = true;  // against `expect`, where the job has it
  bench.initial.emplace(bench.request);
  const RunReport report = bench.runtime->run(bench.request);
  // No other can be judged then, which says nothing against them.
  if (!report.status.ok())
    return unavailable("its first variant, " + bench.request.variant + ": " + report.status.text());
  if (Status status = keep_as_reference(bench.request, *kernel, bench.request.expected); !status.ok()) return status;
  bench.initial->restore();
  return {};
}

Status open(Bench& bench, const BenchSetup& setup) {
  ConfigReading reading = read_config(setup.sources);
  if (!reading.problems.empty()) return invalid_argument(reading.problems.front().text());
  bench.config = std::move(reading.config);
  const bool keeps_verdicts = !bench.config.cache.read_only && !bench.config.cache.directory.empty();
  bench.config.cache.read_only = true;  // programs of variants that lose are not kept
  bench.config.cache.warm = "none";     // nothing runs beside a measurement
  bench.config.generator.background = false;
  bench.config.metrics.file.clear();  // its parent's
  bench.config.device.fallback = Fallback::never;
  if (Status status = register_core(bench.registry); !status.ok()) return status;
  PluginLoaderOptions options;
  options.path = plugin_path(bench.config.plugins);
  if (keeps_verdicts) options.verdict_file = bench.config.cache.directory / "probe_verdicts.json";
  bench.loader.load(bench.config.plugins.load, {}, bench.registry, options);
  auto runtime = Runtime::create(bench.config, bench.registry, {});
  if (!runtime) return std::move(runtime).error();
  bench.runtime = std::move(*runtime);
  if (const auto* job = std::get_if<std::string>(&setup.subject)) return open_kernel(bench, *job, setup.device);
  bench.request.name = "tune";
  bench.request.device = setup.device;
  const auto take = [&](const auto& spec) {
    bench.request.spec = spec;
    return add_tensors(spec, bench.request);
  };
  if (const auto* gemm = std::get_if<GemmSpec>(&setup.subject)) return take(*gemm);
  return take(std::get<Conv2dSpec>(setup.subject));
}

Status status_of(const RunReport& report) {
  if (report.verified && !*report.verified) return corrupt("wrong: " + report.status.message);
  return report.status;
}

// The inputs stay, and so does what their output is compared with. The parent is told, so that the time that this takes
// is not a hanging variant's.
Status make_reference(Bench& bench, const Say& say) {
  RunRequest& request = bench.request;
  if (request.reference != nullptr || std::holds_alternative<UserKernelSpec>(request.spec)) return {};
  (void)say(std::string(bench_preparing) + "\n");  // where nobody hears it nobody hears the answer, which tells
  auto reference = keep_reference(request);
  (void)say(std::string(bench_prepared) + "\n");
  if (!reference) return std::move(reference).error().within("the output could not be compared");
  request.reference = std::move(*reference);
  return {};
}

// A run before those that count. The first of a variant is compared: from then on its programs and its inputs stay.
Status run_ahead(Bench& bench, const std::string& variant) {
  RunRequest& request = bench.request;
  request.variant = variant;
  request.verify = !bench.compared.contains(variant);
  if (bench.initial) bench.initial->restore();
  const RunReport report = bench.runtime->run(request);
  if (Status status = status_of(report); !status.ok()) return status;
  if (!request.verify) return {};
  request.verify = false;
  if (report.verified != true) return corrupt("its output could not be compared with the reference");
  VariantSamples facts;
  facts.max_rel_error = report.max_rel_error;
  facts.error_bound = report.error_bound;
  for (const std::string& key : report.keys) facts.source_digest += key.substr(0, 16);
  bench.compared.emplace(variant, std::move(facts));
  return {};
}

Result<VariantSamples> measure(Bench& bench, const Say& say, const std::string& variant, std::uint32_t runs) {
  if (Status status = make_reference(bench, say); !status.ok()) return status;
  if (Status status = run_ahead(bench, variant); !status.ok()) return status;
  VariantSamples samples = bench.compared.at(variant);
  const RunRequest& request = bench.request;
  for (std::uint32_t run = 0; run < runs; ++run) {
    if (bench.initial) bench.initial->restore();
    const RunReport report = bench.runtime->run(request);
    if (Status status = status_of(report); !status.ok()) return status;
    samples.wall_ns.push_back(report.median.wall_ns);
    samples.device_ns.push_back(report.median.device_ns);
  }
  return samples;
}

// "VARIANT\tRUNS".
Result<VariantSamples> serve(Bench& bench, const Say& say, const std::string& line) {
  const std::size_t tab = line.find('\t');
  std::uint32_t runs = 0;
  if (tab == std::string::npos) return invalid_argument("bench: '" + line + "', expected VARIANT and RUNS");
  std::from_chars(line.data() + tab + 1, line.data() + line.size(), runs);
  const std::string variant = line.substr(0, tab);
  auto samples = measure(bench, say, variant, runs);
  if (!samples) bench.compared.erase(variant);  // what failed once is compared again
  return samples;
}

}  // namespace

int bench_child(std::istream& input, const std::function<bool(const std::string&)>& say) {
  std::string line;
  if (!std::getline(input, line)) return 2;
  const auto setup = setup_of(line);
  std::optional<Bench> bench(std::in_place);
  Status opened = setup ? open(*bench, *setup) : setup.error();
  // Whatever it was, no variant is to blame.
  if (!opened.ok()) opened = unavailable("bench: " + opened.message);
  while (std::getline(input, line)) {
    const auto result = opened.ok() ? serve(*bench, say, line) : Result<VariantSamples>(opened);
    if (!say(to_line(result))) return 4;
  }
  return opened.ok() ? 0 : 3;
}

}  // namespace kiln::host
