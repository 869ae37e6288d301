// A first call that is served by programs for any shape, where those are kept, while the spec's own are built.
#include "runtime/parts.hpp"
#include "runtime/warming/warming.hpp"

#include <algorithm>

namespace kiln {

bool Runtime::Parts::holds(const KeyedPlan& keyed, const Device& device) {
  const auto held = [&](const ProgramKey& key) { return cache->holds(key, device); };
  return std::ranges::all_of(keyed.prepare, held) && std::ranges::all_of(keyed.passes, held);
}

std::vector<std::shared_ptr<const KeyedPlan>> Runtime::Parts::stand_ins(const RunRequest& request, const Device& device,
                                                                        KernelGenerator& generator, Dialect dialect) {
  std::vector<std::shared_ptr<const KeyedPlan>> keyed;
  for (KernelPlan& plan : generator.stand_ins(request.spec, device.info(), dialect)) {
    if (auto with = with_keys(request, device, std::move(plan))) keyed.push_back(std::move(*with));
  }
  return keyed;
}

std::shared_ptr<const KeyedPlan> Runtime::Parts::stand_in_for(const RunRequest& request, const Device& device,
                                                              const KeyedPlan& own, KernelGenerator& generator,
                                                              Dialect dialect) {
  const std::string& id = device.info().id;
  if (!config.generator.serve_while_building || !request.variant.empty() || is_ready(request, id)) return nullptr;
  {
    const std::lock_guard lock(warm_mutex);
    if (built_in_vain.contains(work_name(request, id))) return nullptr;  // its error finds somebody to hear it
  }
  if (holds(own, device)) return nullptr;
  for (auto& stand_in : stand_ins(request, device, generator, dialect)) {
    if (!holds(*stand_in, device)) continue;
    build_ahead(request, id);
    return stand_in;
  }
  return nullptr;
}

void Runtime::Parts::build_stand_ins(const RunRequest& request, const std::string& id) {
  if (!config.generator.serve_while_building || !request.variant.empty()) return;
  builder.ask("for any shape: " + work_name(request, id), [this, id, job = WarmJob{request.name, request.spec}] {
    auto device = devices.open(id);
    if (!device) return;
    const auto [generator, dialect] = generator_for((*device)->info());
    RunRequest next;
    next.name = job.name;
    next.spec = job.spec;
    std::set<Digest> seen;
    std::vector<KeptProgram> programs;
    for (const auto& stand_in : stand_ins(next, **device, *generator, dialect)) add_programs(*stand_in, seen, programs);
    std::erase_if(programs, [&](const KeptProgram& program) { return cache->holds(program.key, **device); });
    if (programs.empty()) return;
    const auto use = resources.begin((*device)->info(), id + ", building");
    const WarmReport report = warm_programs(programs, **device, *cache, {}, 1, {}, most_for_first_dispatch, trace);
    if (report.failed == 0) return;
    log.write(LogLevel::info, "runtime", "building for any shape, " + id + ": " + report.first_failure.message);
  });
}

}  // namespace kiln
