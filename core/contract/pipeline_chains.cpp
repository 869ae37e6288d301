#include "contract/pipeline_chains.hpp"

#include "contract/operation_parts.hpp"

#include <algorithm>
#include <map>
#include <type_traits>

namespace kiln {
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

  // A result that has the place of an input: element by element, and nobody reads the input later.
  bool is_in_place(std::uint32_t tensor, std::size_t step) const {
    const ChainSpec::Step& writer = unit_.chain.steps[step];
    if (!std::holds_alternative<AddSpec>(writer.layer) && !std::holds_alternative<ActivationSpec>(writer.layer)) {
      return false;
    }
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
