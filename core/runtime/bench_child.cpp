#include "runtime/probe_main.hpp"

#include <kiln/data.hpp>
#include <kiln/kernel_parameters.hpp>
#include <kiln/operation.hpp>
#include <kiln/plugin_loader.hpp>
#include <kiln/runtime.hpp>

#include "runtime/child_protocols.hpp"
#include "runtime/job.hpp"
#include "runtime/resource_use.hpp"
#include "runtime/verification.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace kiln {
namespace {

using Say = std::function<bool(const std::string&)>;

// Random tensors for the operands of a layer.
Status add_tensors(RunRequest& request) {
  int constants = 0;
  for (const Operand& operand : operation_of(request.spec).operands(request.spec)) {
    const bool constant = operand.role == TensorRole::constant;
    const int seed = constant ? 2 + constants++ : operand.role == TensorRole::output ? 4 : 1;
    auto tensor = data::load_tensor("random:" + std::to_string(seed), {}, {DType::f32, operand.shape, operand.name});
    if (!tensor) return std::move(tensor).error();
    request.tensors.push_back(constant ? TensorArgument{nullptr, Constant::create(std::move(*tensor))}
                                       : TensorArgument{std::move(*tensor), nullptr});
  }
  return {};
}

// The results of a user's kernel that the job does not say what to expect of, and one output of each group of variants
// that computed the same. In a file that outlives this process, since a variant may end it.
class OutputGroups {
 public:
  // What an earlier process met is read from `file`, -1: there is none.
  Status open(const RunRequest& request, const UserKernelSpec& kernel, int file) {
    file_ = file;
    std::size_t tensor = 0, result = 0;
    for (const UserKernelSpec::Binding& binding : kernel.bindings) {
      if (!has_tensor(binding.kind)) continue;
      const std::size_t index = tensor++;
      if (binding.access == Access::read) continue;
      ExpectedOutput expected = result < request.expected.size() ? request.expected[result] : ExpectedOutput{};
      ++result;
      const bool judged = expected.tensor != nullptr;
      results_.push_back({index, judged, expected.tolerance});
      if (!judged) bytes_ += request.tensors[index].host->bytes().size();
    }
    return read_groups(request);
  }

  bool empty() const { return bytes_ == 0; }  // every result has its reference
  bool has_results() const { return !results_.empty(); }

  // The number of the group, from 1, whose output the tensors of the request hold. `first`: tried before the others.
  Result<std::uint32_t> group_of(const RunRequest& request, std::uint32_t first) {
    if (first > 0 && first <= groups_.size()) {
      auto same = agrees(request, groups_[first - 1]);
      if (!same) return std::move(same).error();
      if (*same) return first;
    }
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      auto same = agrees(request, groups_[i]);
      if (!same) return std::move(same).error();
      if (*same) return static_cast<std::uint32_t>(i + 1);
    }
    if (groups_.size() >= std::max<std::size_t>(2, most_bytes / bytes_)) return agrees_with_none;
    Group group;
    for (const Kept& kept : results_) {
      if (kept.judged) continue;
      const HostTensor& tensor = *request.tensors[kept.tensor].host;
      auto copy = HostTensor::create(tensor.dtype(), tensor.shape());
      if (!copy) return std::move(copy).error();
      std::ranges::copy(tensor.bytes(), (*copy)->bytes().begin());
      group.push_back(std::move(*copy));
    }
    if (Status status = append(group); !status.ok()) return status;
    groups_.push_back(std::move(group));
    return static_cast<std::uint32_t>(groups_.size());
  }

 private:
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;  // of all groups
  using Group = std::vector<std::shared_ptr<HostTensor>>;          // of the results without a reference, in order
  struct Kept {
    std::size_t tensor;
    bool judged;
    std::optional<Tolerance> tolerance;
  };

  // By the rule for `expect`.
  Result<bool> agrees(const RunRequest& request, const Group& group) const {
    RunRequest compared = request;
    compared.expected.clear();
    std::size_t next = 0;
    for (const Kept& kept : results_) {
      compared.expected.push_back({kept.judged ? nullptr : group[next++], kept.tolerance});
    }
    const auto verdict = verify_outputs(compared);
    if (!verdict) return verdict.error();
    return verdict->has_value() && (*verdict)->within;
  }

  Status read_groups(const RunRequest& request) {
    struct stat facts {};
    if (file_ < 0 || bytes_ == 0 || fstat(file_, &facts) != 0) return {};
    const auto whole = static_cast<std::size_t>(facts.st_size) / bytes_;
    off_t at = 0;
    for (std::size_t i = 0; i < whole; ++i) {
      Group& group = groups_.emplace_back();
      for (const Kept& kept : results_) {
        if (kept.judged) continue;
        const HostTensor& like = *request.tensors[kept.tensor].host;
        auto tensor = HostTensor::create(like.dtype(), like.shape());
        if (!tensor) return std::move(tensor).error();
        const std::span<std::byte> bytes = (*tensor)->bytes();
        for (std::size_t done = 0; done < bytes.size();) {
          const ssize_t count = pread(file_, bytes.data() + done, bytes.size() - done, at);
          if (count <= 0) {
            return io_error(std::string("bench: outputs cannot be read: ") +
                            (count == 0 ? "the file ends too early" : std::strerror(errno)));
          }
          done += static_cast<std::size_t>(count);
          at += count;
        }
        group.push_back(std::move(*tensor));
      }
    }
    return {};
  }

  // Behind the groups that are whole: a process that was killed may have left a part of one.
  Status append(const Group& group) const {
    if (file_ < 0) return {};
    auto at = static_cast<off_t>(groups_.size() * bytes_);
    for (const auto& tensor : group) {
      const std::span<const std::byte> bytes = std::as_const(*tensor).bytes();
      for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t count = pwrite(file_, bytes.data() + done, bytes.size() - done, at);
        if (count <= 0) return io_error(std::string("bench: an output cannot be written: ") + std::strerror(errno));
        done += static_cast<std::size_t>(count);
        at += count;
      }
    }
    return {};
  }

  int file_ = -1;
  std::vector<Kept> results_;
  std::size_t bytes_ = 0;  // of one group
  std::vector<Group> groups_;
};

// A process of its own with a runtime, and what it measures.
struct Bench {
  Config config;
  Registry registry;
  PluginLoader loader;
  std::unique_ptr<Runtime> runtime;
  RunRequest request;
  std::optional<InoutSnapshot> initial;  // every run of a kernel begins with what its files hold
  OutputGroups groups;
  std::map<std::string, std::uint32_t> group_of;  // the variants' groups
};

Status open_kernel(Bench& bench, const std::string& name, const BenchSetup& setup) {
  const auto job = std::ranges::find(bench.config.jobs, name, &JobConfig::name);
  if (job == bench.config.jobs.end()) return not_found("bench: job '" + name + "' does not exist");
  auto request = data::make_request(*job);
  if (!request) return std::move(request).error();
  bench.request = std::move(*request);
  const auto* kernel = std::get_if<UserKernelSpec>(&bench.request.spec);
  if (kernel == nullptr) return unsupported("bench: job '" + name + "' has no user kernel");
  if (Status status = check_parameters(*kernel); !status.ok()) return status;
  bench.request.device = setup.device;
  bench.request.verify = false;  // outputs are compared here: a wrong variant says nothing against the device
  bench.initial.emplace(bench.request);
  if (Status status = bench.groups.open(bench.request, *kernel, setup.outputs); !status.ok()) return status;
  if (bench.groups.has_results()) return {};
  return unavailable("job '" + name + "' has no output or inout, expected at least one to compare the variants");
}

Status prepare(Bench& bench, const BenchSetup& setup) {
  ConfigReading reading = read_config(setup.sources);
  if (!reading.problems.empty()) return invalid_argument(reading.problems.front().text());
  bench.config = std::move(reading.config);
  const bool keeps_verdicts = !bench.config.cache.read_only;
  bench.config.cache.read_only = true;  // programs of variants that lose are not kept
  bench.config.cache.warm = "none";     // nothing runs beside a measurement
  bench.config.generator.background = false;
  bench.config.metrics.file.clear();  // its parent's
  bench.config.device.fallback = Fallback::never;
  if (Status status = register_core(bench.registry); !status.ok()) return status;
  PluginLoaderOptions options;
  options.path = PluginLoader::default_path(bench.config.plugins.path);
  const std::filesystem::path& folder = bench.config.cache.directory;
  if (!folder.empty()) options.verdict_file = folder / "probe_verdicts.json";
  options.verdicts_read_only = !keeps_verdicts;
  bench.loader.load(bench.config.plugins.load, {}, bench.registry, options);
  auto runtime = Runtime::create(bench.config, bench.registry, {});
  if (!runtime) return std::move(runtime).error();
  bench.runtime = std::move(*runtime);
  if (const auto* job = std::get_if<std::string>(&setup.subject)) return open_kernel(bench, *job, setup);
  bench.request.name = "tune";
  bench.request.device = setup.device;
  if (const auto* conv = std::get_if<Conv2dSpec>(&setup.subject)) bench.request.spec = *conv;
  if (const auto* gemm = std::get_if<GemmSpec>(&setup.subject)) bench.request.spec = *gemm;
  return add_tensors(bench.request);
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

// Whether the output of the last run is right, by the reference or by the group in which its variant was before.
Status judge(Bench& bench, const std::string& variant, VariantSamples& samples) {
  const auto verdict = verify_outputs(bench.request);
  if (!verdict) return verdict.error().within("the output could not be compared");
  if (verdict->has_value()) {
    samples.max_rel_error = std::max(samples.max_rel_error, (*verdict)->max_rel_error);
    samples.error_bound = (*verdict)->error_bound;
    if (!(*verdict)->within) return corrupt("wrong: " + wrong_text(**verdict));
  }
  if (bench.groups.empty()) return {};
  std::uint32_t& before = bench.group_of[variant];
  const auto group = bench.groups.group_of(bench.request, before);
  if (!group) return group.error().within("the output could not be compared");
  if (samples.agreement != 0 && *group != samples.agreement) {
    return corrupt("wrong: the output differs from run to run");
  }
  before = samples.agreement = *group;
  return {};
}

Result<RunReport> run_and_judge(Bench& bench, const std::string& variant, VariantSamples& samples) {
  if (bench.initial) bench.initial->restore();
  RunReport report = bench.runtime->run(bench.request);
  if (!report.status.ok()) return report.status;
  if (Status status = judge(bench, variant, samples); !status.ok()) return status;
  return report;
}

// The first run builds and does not count. Its outputs are poisoned, on the device too; those of the others, whose
// times count, are not, since that would disturb the times.
Result<VariantSamples> measure(Bench& bench, const Say& say, const std::string& variant, std::uint32_t runs) {
  if (Status status = make_reference(bench, say); !status.ok()) return status;
  VariantSamples samples;
  bench.request.variant = variant;
  bench.request.poison = true;
  const auto first = run_and_judge(bench, variant, samples);
  if (!first) return first.error();
  samples.source_digest = source_digest_of(*first);
  bench.request.poison = false;
  double contention = 0;
  for (std::uint32_t run = 0; run < runs; ++run) {
    const ThreadTimes before = ThreadTimes::now();
    const auto report = run_and_judge(bench, variant, samples);
    if (!report) return report.error();
    contention += ThreadTimes::now().contention_since(before);
    samples.wall_ns.push_back(report->median.wall_ns);
    samples.device_ns.push_back(report->median.device_ns);
  }
  samples.contention = runs == 0 ? 0 : contention / runs;
  return samples;
}

// "VARIANT\tRUNS".
Result<VariantSamples> serve(Bench& bench, const Say& say, const std::string& line) {
  const std::size_t tab = line.find('\t');
  std::uint32_t runs = 0;
  const char* const line_end = line.data() + line.size();
  const auto [end, error] =
      std::from_chars(tab == std::string::npos ? line_end : line.data() + tab + 1, line_end, runs);
  if (error != std::errc() || end != line_end) {
    return invalid_argument("bench: found '" + line + "', expected VARIANT and RUNS");
  }
  const std::string variant = line.substr(0, tab);
  return measure(bench, say, variant, runs);
}

}  // namespace

int bench_child(std::istream& input, const std::function<bool(const std::string&)>& say) {
  std::string line;
  if (!std::getline(input, line)) return 2;
  const auto setup = setup_of(line);
  std::optional<Bench> bench(std::in_place);
  Status opened = setup ? prepare(*bench, *setup) : setup.error();
  // Whatever it was, no variant is to blame.
  if (!opened.ok()) opened = unavailable("bench: " + opened.message);
  while (std::getline(input, line)) {
    const auto result = opened.ok() ? serve(*bench, say, line) : Result<VariantSamples>(opened);
    if (!say(to_line(result))) return 4;
  }
  return opened.ok() ? 0 : 3;
}

}  // namespace kiln
