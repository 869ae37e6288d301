#include "contract/pipeline_schedule.hpp"

#include "contract/operations.hpp"
#include "contract/overlap.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

namespace kiln {
namespace {

constexpr std::size_t most_runs = 100'000;
constexpr std::size_t most_nesting = 8;

std::string text_of(const PipelineTensor& tensor) {
  return std::string(numpy_name(tensor.dtype)) + " " + to_string(tensor.shape);
}

std::uint64_t bytes_of(const PipelineTensor& tensor) {
  std::uint64_t bytes = size_of(tensor.dtype);
  for (const std::int64_t extent : tensor.shape) bytes *= static_cast<std::uint64_t>(extent);
  return bytes;
}

class Scheduler {
 public:
  explicit Scheduler(const Pipeline& pipeline) : pipeline_(pipeline) {}

  Result<Schedule> make() {
    if (Status status = check_tensors(); !status.ok()) return status;
    if (pipeline_.steps.empty()) return invalid_argument("has no steps, expected at least one");
    if (Status status = check_steps(pipeline_.steps, "", 1); !status.ok()) return status;
    for (const PipelineStep& step : pipeline_.steps) {
      if (Status status = add(step); !status.ok()) return status;
    }
    for (std::size_t i = 0; i < pipeline_.tensors.size(); ++i) {
      const PipelineTensor& tensor = pipeline_.tensors[i];
      const bool is_result = tensor.access == Access::write || tensor.access == Access::read_write;
      if (is_result && !filled_[made_.storage_of[i]]) {
        return invalid_argument("tensor '" + tensor.name + "': is a result, but no step writes it");
      }
      if (!used_[i]) return invalid_argument("tensor '" + tensor.name + "': no step uses it");
      const std::size_t storage = made_.storage_of[i];
      if (is_result && !touched_[storage]) {
        return invalid_argument("tensor '" + tensor.name +
                                "': is a result, but after all swaps has the initial contents of tensor '" +
                                pipeline_.tensors[storage].name + "', which no step uses");
      }
    }
    return std::move(made_);
  }

 private:
  Status check_tensors() {
    for (std::size_t i = 0; i < pipeline_.tensors.size(); ++i) {
      const PipelineTensor& tensor = pipeline_.tensors[i];
      const auto wrong = [&](const std::string& why) {
        return invalid_argument("tensor '" + tensor.name + "': " + why);
      };
      if (tensor.name.empty()) return invalid_argument("tensor " + std::to_string(i) + ": has no name");
      if (!tensor_at_.emplace(tensor.name, i).second) return wrong("its name is used twice");
      const bool sized =
          !tensor.shape.empty() && std::ranges::all_of(tensor.shape, [](std::int64_t extent) { return extent > 0; });
      if (!sized || size_of(tensor.dtype) == 0) {
        return wrong("found " + text_of(tensor) + ", expected a type and at least one element");
      }
      const HostTensor* const host = tensor.host.get();
      if (tensor.access == Access::invalid && host != nullptr) return wrong("has a host tensor, but access is not set");
      if (host != nullptr && (host->dtype() != tensor.dtype || host->shape() != tensor.shape)) {
        return wrong("its host tensor is " + std::string(numpy_name(host->dtype())) + " " + to_string(host->shape()) +
                     ", expected " + text_of(tensor));
      }
      made_.storage_of.push_back(i);
      filled_.push_back(tensor.access == Access::read || tensor.access == Access::read_write);
      made_.written.push_back(false);
      touched_.push_back(false);
      used_.push_back(false);
    }
    for (const PipelineTensor& tensor : pipeline_.tensors) {
      if (tensor.host == nullptr) continue;
      Status status = check_apart(&tensor, "'" + tensor.name + "'", tensor.host->bytes());
      if (!status.ok()) return status;
    }
    return {};
  }

  // own: null: a value of a step.
  Status check_apart(const PipelineTensor* own, const std::string& name, std::span<const std::byte> memory) const {
    for (const PipelineTensor& tensor : pipeline_.tensors) {
      const bool is_result = tensor.access == Access::write || tensor.access == Access::read_write;
      if (!is_result || &tensor == own || tensor.host == nullptr) continue;
      if (overlap(tensor.host->bytes(), memory)) return shared_memory("'" + tensor.name + "'", name);
    }
    return {};
  }

  Result<std::size_t> tensor_named(const std::string& name) const {
    const auto found = tensor_at_.find(name);
    if (found != tensor_at_.end()) return found->second;
    std::string known;
    for (const PipelineTensor& tensor : pipeline_.tensors) known += (known.empty() ? "" : ", ") + tensor.name;
    return invalid_argument("tensor '" + name + "': the pipeline has no such tensor, expected one of " + known);
  }

  // Everything but the order of writes and reads.
  Status check_steps(const std::vector<PipelineStep>& steps, const std::string& outer, std::size_t depth) {
    if (depth > most_nesting) {
      return invalid_argument("loops are nested more than " + std::to_string(most_nesting) + " deep");
    }
    for (const PipelineStep& step : steps) {
      const std::string name = outer + step.name;
      Status status = check_step(step);
      if (status.ok()) status = check_swaps(step);
      if (!status.ok()) return status.within("step '" + name + "'");
      if (step.steps.empty()) {
        step_at_.emplace(&step, made_.steps.size());
        if (std::ranges::find(made_.names, name) != made_.names.end()) {
          return invalid_argument("step '" + name + "': its name is used twice");
        }
        made_.steps.push_back(&step);
        made_.names.push_back(name);
      } else if (Status inner = check_steps(step.steps, name + "/", depth + 1); !inner.ok()) {
        return inner;
      }
    }
    return {};
  }

  Status check_swaps(const PipelineStep& step) {
    if (step.repeat == 0) return invalid_argument("repeat is 0, expected at least 1");
    for (const auto& [first, second] : step.swap) {
      const auto a = tensor_named(first);
      if (!a) return a.error().within("swap");
      const auto b = tensor_named(second);
      if (!b) return b.error().within("swap");
      const PipelineTensor& one = pipeline_.tensors[*a];
      const PipelineTensor& other = pipeline_.tensors[*b];
      if (one.dtype == other.dtype && one.shape == other.shape && *a != *b) continue;
      return invalid_argument("swap: '" + first + "' is " + text_of(one) + " and '" + second + "' is " +
                              text_of(other) + ", expected two different tensors of the same type and shape");
    }
    return {};
  }

  Status check_step(const PipelineStep& step) {
    if (step.name.empty()) return invalid_argument("has no name");
    if (!step.steps.empty()) {
      if (step.arguments.empty()) return {};
      return invalid_argument("is a loop and has arguments, expected steps only");
    }
    if (Status status = kiln::validate(step.spec); !status.ok()) return status;
    const std::vector<Operand> declared = operation_of(step.spec).operands(step.spec);
    if (declared.size() != step.arguments.size()) {
      return invalid_argument(std::to_string(step.arguments.size()) + " arguments given, expected " +
                              std::to_string(declared.size()));
    }
    const std::vector<Access> accesses = accesses_of(step.spec);
    for (std::size_t i = 0; i < declared.size(); ++i) {
      Status status = check_argument(step, i, declared[i], accesses[i]);
      if (!status.ok()) return status.within(declared[i].name);
    }
    return {};
  }

  Status check_argument(const PipelineStep& step, std::size_t at, const Operand& declared, Access access) {
    const PipelineArgument& argument = step.arguments[at];
    if (argument.tensor.empty()) {
      if (argument.value.device != nullptr) return invalid_argument("found a DeviceTensor, expected a tensor's name");
      if (declared.role == TensorRole::constant) return {};
      if (access != Access::read)
        return invalid_argument("found a value, expected a tensor's name, because the step writes the tensor");
      if (argument.value.host == nullptr) return invalid_argument("found nothing, expected a tensor");
      const std::uint64_t bytes = argument.value.host->bytes().size();
      if (bytes != declared.bytes) {
        return invalid_argument("found " + std::to_string(bytes) + " bytes, expected " +
                                std::to_string(declared.bytes));
      }
      return check_apart(nullptr, declared.name, argument.value.host->bytes());
    }
    if (declared.role == TensorRole::constant) {
      return invalid_argument("found tensor '" + argument.tensor + "', expected a Constant");
    }
    const auto found = tensor_named(argument.tensor);
    if (!found) return found.error();
    used_[*found] = true;
    const PipelineTensor& tensor = pipeline_.tensors[*found];
    const auto wrong = [&](const std::string& expected) {
      return invalid_argument("tensor '" + tensor.name + "' is " + text_of(tensor) + ", expected " + expected);
    };
    const bool is_layer = operation_of(step.spec).is_layer;
    if (is_layer && (tensor.dtype != DType::f32 || !fits_operand(tensor.shape, declared.shape))) {
      return wrong("float32 " + to_string(declared.shape));
    }
    if (bytes_of(tensor) != declared.bytes) return wrong(std::to_string(declared.bytes) + " bytes");
    return {};
  }

  Status add(const PipelineStep& step) {
    for (std::uint32_t round = 0; round < step.repeat; ++round) {
      if (step.steps.empty()) {
        if (Status status = add_run(step); !status.ok()) return status;
      }
      for (const PipelineStep& inner : step.steps) {
        if (Status status = add(inner); !status.ok()) return status;
      }
      for (const auto& [first, second] : step.swap) {
        std::swap(made_.storage_of[tensor_at_.at(first)], made_.storage_of[tensor_at_.at(second)]);
      }
    }
    return {};
  }

  Status add_run(const PipelineStep& step) {
    if (made_.runs.size() == most_runs) {
      return invalid_argument("runs more than " + std::to_string(most_runs) + " steps, counting each repeat");
    }
    const std::vector<Access> accesses = accesses_of(step.spec);
    StepRun& run = made_.runs.emplace_back();
    run.step = step_at_.at(&step);
    const auto wrong = [&](std::size_t i, const std::string& why) {
      return invalid_argument("step '" + made_.names[run.step] + "': tensor '" + step.arguments[i].tensor + "' " + why);
    };
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const std::string& name = step.arguments[i].tensor;
      run.storages.push_back(name.empty() ? StepRun::own_value : made_.storage_of[tensor_at_.at(name)]);
      if (name.empty()) continue;
      touched_[run.storages[i]] = true;
      for (std::size_t before = 0; before < i; ++before) {
        if (run.storages[before] != run.storages[i]) continue;
        if (accesses[before] == Access::read && accesses[i] == Access::read) continue;
        return wrong(i, "is used twice and written, expected two different tensors");
      }
      if (accesses[i] != Access::write && !filled_[run.storages[i]])
        return wrong(i, "is read before any step writes it");
    }
    const auto* const kernel = std::get_if<UserKernelSpec>(&step.spec);
    const bool has_uniforms = kernel != nullptr && !kernel->uniforms.empty();
    if (has_uniforms && run.storages.back() != StepRun::own_value && made_.written[run.storages.back()]) {
      return wrong(run.storages.size() - 1,
                   "has values of uniforms, which are read before the first step runs, but a step writes the tensor");
    }
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      if (run.storages[i] == StepRun::own_value || accesses[i] == Access::read) continue;
      filled_[run.storages[i]] = true;
      made_.written[run.storages[i]] = true;
    }
    return {};
  }

  const Pipeline& pipeline_;
  Schedule made_;
  std::map<std::string, std::size_t, std::less<>> tensor_at_;
  std::map<const PipelineStep*, std::size_t> step_at_;
  std::vector<bool> filled_;   // by storage
  std::vector<bool> touched_;  // by storage: a run reads or writes it
  std::vector<bool> used_;     // by tensor
};

}  // namespace

std::vector<Access> accesses_of(const KernelSpec& spec) {
  std::vector<Access> accesses;
  if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) {
    for (const UserKernelSpec::Binding& binding : kernel->bindings) {
      if (has_tensor(binding.kind)) accesses.push_back(binding.access);
    }
    if (!kernel->uniforms.empty()) accesses.push_back(Access::read);
    return accesses;
  }
  for (const TensorDecl& tensor : tensors_of(spec)) {
    accesses.push_back(tensor.role == TensorRole::output ? Access::write : Access::read);
  }
  return accesses;
}

Result<Schedule> schedule(const Pipeline& pipeline) {
  auto made = Scheduler(pipeline).make();
  if (!made) return made.error().within("pipeline '" + pipeline.name + "'");
  return made;
}

Status validate(const Pipeline& pipeline) {
  const auto made = schedule(pipeline);
  return made ? Status{} : made.error();
}

namespace {

const KernelSpec& spec_of(const Schedule& schedule, std::size_t run) {
  return schedule.steps[schedule.runs[run].step]->spec;
}

bool is_layer_run(const Schedule& schedule, std::size_t run) { return operation_of(spec_of(schedule, run)).is_layer; }

LayerSpec layer_of(const KernelSpec& spec) {
  return std::visit(
      [](const auto& held) -> LayerSpec {
        if constexpr (is_layer<decltype(held)>) return held;
        return Conv2dSpec{};
      },
      spec);
}

// Whether each storage that is written is written once, before it is read: then a storage is one tensor.
bool writes_once(const Schedule& schedule) {
  std::vector<bool> used(schedule.written.size());
  for (const StepRun& run : schedule.runs) {
    const std::vector<Access> accesses = accesses_of(schedule.steps[run.step]->spec);
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      if (run.storages[i] == StepRun::own_value) continue;
      if (accesses[i] != Access::read && used[run.storages[i]]) return false;
      used[run.storages[i]] = true;
    }
  }
  return true;
}

class ChainMaker {
 public:
  ChainMaker(const Schedule& schedule, const std::vector<bool>& leaves, std::size_t first, std::size_t count)
      : schedule_(schedule), leaves_(leaves) {
    unit_.first = first;
    unit_.count = count;
  }

  ScheduleUnit make() {
    for (std::size_t run = unit_.first; run < unit_.first + unit_.count; ++run) add(run);
    // Tensors that only the chain's steps use stay inside.
    for (std::size_t run = 0; run < schedule_.runs.size(); ++run) {
      if (run >= unit_.first && run < unit_.first + unit_.count) continue;
      for (const std::size_t storage : schedule_.runs[run].storages) {
        const auto found = at_.find(storage);
        if (found != at_.end()) role(found->second, TensorRole::output);
      }
    }
    for (const auto& [storage, at] : at_) {
      if (leaves_[storage]) role(at, TensorRole::output);
    }
    count_live_bytes();
    std::vector<ScheduleUnit::Tensor> of_request;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (unit_.chain.tensors[i].role != TensorRole::invalid) of_request.push_back(places_[i]);
    }
    unit_.tensors = std::move(of_request);
    return std::move(unit_);
  }

 private:
  void add(std::size_t run) {
    const KernelSpec& spec = spec_of(schedule_, run);
    const std::vector<Operand> operands = operation_of(spec).operands(spec);
    ChainSpec::Step& step = unit_.chain.steps.emplace_back();
    step.layer = layer_of(spec);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const std::size_t storage = schedule_.runs[run].storages[i];
      std::uint32_t at = static_cast<std::uint32_t>(unit_.chain.tensors.size());
      if (storage == StepRun::own_value) {
        new_tensor(operands[i].shape, operands[i].role, {StepRun::own_value, run, i});
      } else if (const auto [found, is_new] = at_.try_emplace(storage, at); is_new) {
        const bool reads = operands[i].role != TensorRole::output;
        new_tensor(operands[i].shape, reads ? TensorRole::input : TensorRole::invalid, {storage, run, i});
      } else {
        at = found->second;
        // A product reads a tensor of more dimensions as a matrix.
        Shape& shape = unit_.chain.tensors[at].shape;
        if (shape.size() < operands[i].shape.size()) shape = operands[i].shape;
      }
      step.tensors.push_back(at);
    }
  }

  void new_tensor(const Shape& shape, TensorRole role, ScheduleUnit::Tensor place) {
    unit_.chain.tensors.push_back({shape, role});
    places_.push_back(place);
  }

  // Of what the chain writes.
  void role(std::uint32_t at, TensorRole role) {
    if (unit_.chain.tensors[at].role == TensorRole::invalid) unit_.chain.tensors[at].role = role;
  }

  // First and last step that use a tensor.
  std::pair<std::size_t, std::size_t> lifetime(std::uint32_t tensor) const {
    const auto& steps = unit_.chain.steps;
    std::pair<std::size_t, std::size_t> life{steps.size(), 0};
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (std::ranges::find(steps[s].tensors, tensor) == steps[s].tensors.end()) continue;
      life = {std::min(life.first, s), s};
    }
    return life;
  }

  // A result that has the place of an input, which nobody reads later.
  bool is_in_place(std::uint32_t tensor, std::size_t step) const {
    const ChainSpec::Step& writer = unit_.chain.steps[step];
    if (!std::visit([]<class Spec>(const Spec&) { return is_elementwise<Spec>; }, writer.layer)) return false;
    return tensor == writer.tensors.back() &&
           std::any_of(writer.tensors.begin(), writer.tensors.end() - 1, [&](std::uint32_t input) {
             return unit_.chain.tensors[input].role == TensorRole::invalid && lifetime(input).second == step;
           });
  }

  void count_live_bytes() {
    std::vector<std::int64_t> change(unit_.chain.steps.size() + 1);
    for (std::uint32_t i = 0; i < unit_.chain.tensors.size(); ++i) {
      const ChainSpec::Tensor& tensor = unit_.chain.tensors[i];
      if (tensor.role != TensorRole::invalid) continue;
      const auto [first, last] = lifetime(i);
      const auto bytes = static_cast<std::int64_t>(float_bytes_of(tensor.shape));
      change[is_in_place(i, first) ? first + 1 : first] += bytes;
      change[last + 1] -= bytes;
    }
    std::int64_t live = 0;
    for (const std::int64_t each : change) {
      live += each;
      unit_.live_bytes = std::max(unit_.live_bytes, static_cast<std::uint64_t>(live));
    }
  }

  const Schedule& schedule_;
  const std::vector<bool>& leaves_;
  ScheduleUnit unit_;
  std::map<std::size_t, std::uint32_t> at_;   // by storage
  std::vector<ScheduleUnit::Tensor> places_;  // of the chain's tensors
};

}  // namespace

std::vector<ScheduleUnit> single_units(const Schedule& schedule) {
  std::vector<ScheduleUnit> units(schedule.runs.size());
  for (std::size_t run = 0; run < units.size(); ++run) units[run].first = run;
  return units;
}

std::vector<ScheduleUnit> units_of(const Schedule& schedule, const std::vector<bool>& leaves) {
  if (!writes_once(schedule) || schedule.runs.size() != schedule.steps.size()) return single_units(schedule);
  std::vector<ScheduleUnit> units;
  for (std::size_t run = 0; run < schedule.runs.size();) {
    std::size_t end = run;
    while (end < schedule.runs.size() && is_layer_run(schedule, end)) ++end;
    if (end - run >= 2) {
      units.push_back(ChainMaker(schedule, leaves, run, end - run).make());
      run = end;
    } else {
      units.emplace_back().first = run++;
    }
  }
  return units;
}

}  // namespace kiln
