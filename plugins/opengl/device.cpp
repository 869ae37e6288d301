#include "device.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include <kiln/device_checks.hpp>
#include <kiln/driver_cache.hpp>
#include <kiln/host_processor.hpp>
#include <kiln/uniform_values.hpp>

#include "codec/source_text.hpp"
#include "egl.hpp"
#include "program.hpp"
#include "queue.hpp"

namespace kiln::opengl {
namespace {

// So long a load waits for the context that dispatches: as long as loading in another one may take at most. On one core
// the other one would take its time from it, and first has to be made.
std::chrono::milliseconds patience_for_execution() noexcept {
  static const bool alone = host_cores() < 2;
  return std::chrono::milliseconds(alone ? 100 : 20);
}

Status check_views(const KernelSource& source, const DeviceInfo& info) {
  for (std::size_t i = 0; i < source.views.size(); ++i) {
    if (source.views[i] != View::texels && source.views[i] != View::image) continue;
    const std::uint32_t most = source.views[i] == View::image ? info.max_image_bindings : info.max_texel_bindings;
    if (i < most) continue;
    return invalid_argument("binding " + std::to_string(i) + " is viewed as " +
                            std::string(to_string(source.views[i])) + ", expected a binding below " +
                            std::to_string(most));
  }
  return {};
}

std::size_t storage_bindings(const KernelSource& source) {
  std::size_t others = 0;
  for (const View view : source.views) others += view == View::uniforms || view == View::pixels ? 1 : 0;
  return source.bindings.size() - others;
}

std::string tell_driver_cache(const ContextGroup& group, bool keeps_programs, const DriverContext& context) {
  if (!group.display().mesa || !keeps_programs) return "none";  // without binary formats Mesa's cache is switched off
  Adoption adoption = mesa_cache_adoption();
  if (!adoption.reason.empty()) {
    context.log.write(LogLevel::info, "opengl", group.id() + ": driver cache not adopted: " + adoption.reason);
  }
  return adoption.word;
}

// What the sources of a launch make of its program's resources: each gets the buffer, texture or values that provide
// it.
class SourceBinder {
 public:
  SourceBinder(const GlProgram& program, const PassLaunch& launch, BoundPass& pass)
      : reflection_(program.reflection()), launch_(launch), pass_(pass) {}

  Status bind() {
    if (launch_.sources.size() != reflection_.interface.resources.size()) {
      return invalid_argument(std::to_string(launch_.sources.size()) + " resources are provided, expected " +
                              std::to_string(reflection_.interface.resources.size()));
    }
    for (std::size_t i = 0; i < launch_.sources.size(); ++i) {
      const ProgramResource& resource = reflection_.interface.resources[i];
      if (Status status = bind(resource, launch_.sources[i]); !status.ok()) return status;
    }
    return {};
  }

 private:
  Status bind(const ProgramResource& resource, const ResourceSource& source) {
    const bool provided = source.binding < launch_.bindings.size();
    switch (resource.kind) {
      case ResourceKind::storage_block:  // one that nothing provides is not used (provide())
        if (provided) pass_.blocks.emplace_back(static_cast<GLuint>(resource.handle), source.binding);
        return {};
      case ResourceKind::uniform:
        return bind_uniform(resource, source, provided);
      case ResourceKind::uniform_block:
        return bind_block(resource, source, provided);
      default:
        break;
    }
    if (!provided) {
      return invalid_argument(std::string(to_string(resource.kind)) + " " + resource.name + " is not provided");
    }
    BoundBuffer& buffer = pass_.buffers[source.binding];
    buffer.view = View::pixels;
    if (resource.kind == ResourceKind::atomic_counter) {
      pass_.counters.push_back({*resource.number, buffer.name, buffer.bytes});
      return {};
    }
    const bool image = resource.kind == ResourceKind::image;
    const TextureUniform& uniform = reflection_.textures[static_cast<std::size_t>(resource.handle)];
    auto& tensor = static_cast<GlBuffer&>(*launch_.bindings[source.binding]);
    BoundTexture bound{uniform, image, source.texture, buffer.bytes, &tensor, 0};
    for (const BoundTexture& other : pass_.textures) {
      if (other.source != &tensor) continue;
      if (other.has_form_of(bound)) {
        bound.form_number = other.form_number;
        break;
      }
      bound.form_number = std::max(bound.form_number, other.form_number + 1);
    }
    pass_.textures.push_back(bound);
    return {};
  }

  // Members come behind their block.
  Status bind_block(const ProgramResource& resource, const ResourceSource& source, bool provided) {
    BoundBlock& block = pass_.uniform_blocks.emplace_back();
    block.block = static_cast<GLuint>(resource.handle);
    if (!provided) {
      block.values.resize(std::max<std::size_t>(resource.bytes, 1));
      return {};
    }
    BoundBuffer& buffer = pass_.buffers[source.binding];
    buffer.view = View::pixels;
    block.buffer = buffer.name;
    block.bytes = buffer.bytes;
    return {};
  }

  Status bind_uniform(const ProgramResource& resource, const ResourceSource& source, bool provided) {
    const PlainUniform& uniform = reflection_.uniforms[static_cast<std::size_t>(resource.handle)];
    if (!provided && uniform.block >= 0) return {};
    if (!provided) {
      pass_.uniforms.push_back({uniform, uniform.initial});
      return {};
    }
    auto values = values_at(source, values_in(resource) * sizeof(double));
    if (!values) return values.error().within("uniforms." + resource.name);
    auto components = uniform_components(resource, values->data(), source.given);
    if (!components) return std::move(components).error();
    if (uniform.block < 0) {
      pass_.uniforms.push_back({uniform, std::move(*components)});
      return {};
    }
    const auto block = std::ranges::find(pass_.uniform_blocks, static_cast<GLuint>(uniform.block), &BoundBlock::block);
    if (block == pass_.uniform_blocks.end()) return internal_error("uniform " + resource.name + " precedes its block");
    place_in_block(resource, uniform.place, *components, block->values);
    return {};
  }

  // The values lie in host memory, unless the device keeps its buffers to itself.
  Result<std::span<const std::byte>> values_at(const ResourceSource& source, std::uint64_t bytes) {
    pass_.buffers[source.binding].view = View::uniforms;
    auto& buffer = static_cast<GlBuffer&>(*launch_.bindings[source.binding]);
    std::span<const std::byte> whole = buffer.written();
    if (whole.empty()) {
      if (values_.empty()) {
        values_.resize(static_cast<std::size_t>(buffer.bytes()));
        if (Status status = buffer.read(0, values_); !status.ok()) return status;
      }
      whole = values_;
    }
    if (whole.size() < source.offset + bytes) {
      return invalid_argument("the values end at byte " + std::to_string(source.offset + bytes) +
                              ", expected at most " + std::to_string(whole.size()));
    }
    return whole.subspan(static_cast<std::size_t>(source.offset), static_cast<std::size_t>(bytes));
  }

  const Reflection& reflection_;
  const PassLaunch& launch_;
  BoundPass& pass_;
  std::vector<std::byte> values_;  // of the tensor of uniforms, where it is not mapped
};

}  // namespace

GlDevice::GlDevice(std::shared_ptr<ContextGroup> group, Facts facts, Mapping mapping, const DriverContext& context)
    : group_(std::move(group)),
      info_(std::move(facts.info)),
      binary_formats_(std::move(facts.binary_formats)),
      mapping_(mapping),
      notes_(context.notes),
      counters_(*context.counters),
      staging_(std::make_shared<SharedStaging>()),
      queue_(*group_) {}

GlDevice::~GlDevice() {
  try {
    group_->execution().call([this] { staging_->staging.reset(); });
  } catch (...) {  // out of memory: the staging area stays until the context goes
  }
}

Result<std::unique_ptr<GlDevice>> GlDevice::open(std::shared_ptr<const EglApi> api, const EglDevice& device,
                                                 std::string id, const Settings& settings,
                                                 const DriverContext& context) {
  if (drm_is_gone(device.node)) return device_lost(device.node + ": the device was taken away");
  auto group = ContextGroup::open(std::move(api), device, std::move(id), settings.debug, context.log);
  if (!group) return group.error();
  ContextGroup& opened = **group;
  auto facts = opened.execution().call([&] { return read_facts(opened, context.notes); });
  if (!facts) return facts.error();
  if (settings.barrier_fix == BarrierFix::on) facts->info.glsl_barrier = mesa_barrier;
  if (settings.barrier_fix == BarrierFix::off) facts->info.glsl_barrier.clear();
  // A node that software serves says nothing of where the work is done.
  if (facts->info.kind != DeviceKind::software) {
    facts->info.physical_id = drm_physical_id(device.node);
    opened.watch(device.node);
  }
  // A software driver offers the extension too, and takes none but its own descriptors: a dma-buf needs a render node.
  facts->info.shares_memory =
      opened.gl().EXT_memory_object_fd && !device.node.empty() && facts->info.kind != DeviceKind::software;
  facts->info.shares_buffers = true;
  facts->info.indirect_grids = true;
  facts->info.builds_apart = facts->info.serializes;
  facts->info.driver_cache = tell_driver_cache(opened, facts->info.serializes, context);
  return std::unique_ptr<GlDevice>(
      new GlDevice(std::move(group).value(), std::move(facts).value(), settings.persistent_mapping, context));
}

Result<std::unique_ptr<Buffer>> GlDevice::create_buffer(const BufferDesc& desc) noexcept try {
  if (desc.import_fd >= 0 && !info_.shares_memory) {
    return unsupported(info_.id + ": memory cannot be imported by file descriptor: " + info_.name + " has no " +
                       (group_->gl().EXT_memory_object_fd ? "render node" : "GL_EXT_memory_object_fd"));
  }
  if (Status status = check_buffer(info_, desc); !status.ok()) return status;
  if (Status lost = group_->alive(); !lost.ok()) return lost;
  std::call_once(transfer_chosen_, [this] { transfer_ = choose_transfer(group_, mapping_, info_, notes_); });
  return GlBuffer::create(group_, staging_, transfer_, desc);
} catch (...) {
  return caught();
}

Result<std::unique_ptr<Program>> GlDevice::build(const KernelSource& source) noexcept try {
  if (Status lost = group_->alive(); !lost.ok()) return lost;
  auto text = assemble(source);
  if (!text) return text.error().within(info_.id);
  const std::size_t bindings = storage_bindings(source);
  if (bindings > info_.max_bindings) {
    return invalid_argument(info_.id + ": " + std::to_string(bindings) + " bindings, expected at most " +
                            std::to_string(info_.max_bindings));
  }
  if (Status status = check_views(source, info_); !status.ok()) return status.within(info_.id);
  auto builder = group_->building();
  if (!builder) return builder.error();
  auto& counter = info_.serializes ? counters_.builds : counters_.prepared;
  // In a context apart, the first dispatch is made here too: what the driver generates for it goes into its own cache,
  // and the context that dispatches finds it there instead of standing still for it.
  const bool generate = builder->apart() && info_.driver_cache == "adopted";
  return builder->thread().call([&] {
    auto program = build_program(group_, source, *text, counter);
    if (program && generate) dispatch_nothing(group_->gl(), static_cast<const GlProgram&>(**program).name());
    if (builder->apart()) group_->gl().Finish();  // another context uses it next, after everything here has been done
    return program;
  });
} catch (...) {
  return caught();
}

Result<std::unique_ptr<Program>> GlDevice::load(const KernelSource& source, const ProgramBinary& binary) noexcept try {
  if (Status lost = group_->alive(); !lost.ok()) return lost;
  // Where it is dispatched, unless that context is busy: Mesa prepares a program for the context that loads it, and
  // again for another one that dispatches it. A second context costs NVIDIA's driver 0.1 s.
  const auto load = [&] { return load_program(group_, source, binary, binary_formats_, counters_.loads); };
  if (auto loaded = group_->execution().call_within(patience_for_execution(), load)) return std::move(*loaded);
  auto builder = group_->building();
  if (!builder) return builder.error();
  return builder->thread().call([&] {
    auto program = load();
    if (builder->apart()) group_->gl().Finish();
    return program;
  });
} catch (...) {
  return caught();
}

Result<ProgramBinary> GlDevice::serialize(const Program& program) noexcept try {
  if (Status lost = group_->alive(); !lost.ok()) return lost;
  if (!info_.serializes) return unsupported(info_.id + ": the driver has no program binary format");
  const auto& ours = static_cast<const GlProgram&>(program);
  if (&ours.group() != group_.get()) return invalid_argument(info_.id + ": the program belongs to another device");
  auto builder = group_->building();
  if (!builder) return builder.error();
  return builder->thread().call([&] { return serialize_program(*group_, ours); });
} catch (...) {
  return caught();
}

Result<BoundPass> GlDevice::bind(std::size_t index, const PassLaunch& launch) const {
  const std::string where = info_.id + ": pass " + std::to_string(index);
  if (launch.program == nullptr) return invalid_argument(where + " has no program");
  const auto& program = static_cast<const GlProgram&>(*launch.program);
  if (&program.group() != group_.get()) return invalid_argument(where + ": the program belongs to another device");
  // With `sources` these say which binding serves what; a program may be another job's, with other bindings.
  const bool by_sources = !launch.sources.empty();
  if (launch.grid != PassLaunch::nothing && !by_sources && launch.bindings.size() != program.bindings()) {
    return invalid_argument(where + ": " + std::to_string(launch.bindings.size()) + " buffers, expected " +
                            std::to_string(program.bindings()));
  }
  if (launch.grid == PassLaunch::nothing) return BoundPass{program.name(), {}, launch.grid, launch.waits};
  if (Status status = check_grid(info_, index, launch); !status.ok()) return status;
  BoundPass pass{program.name(), {}, launch.grid, launch.waits};
  pass.buffers.reserve(launch.bindings.size());
  const auto wrong_binding = [&](const char* why) {
    return invalid_argument(where + ": binding " + std::to_string(pass.buffers.size()) + why);
  };
  for (Buffer* each : launch.bindings) {
    if (each == nullptr) return wrong_binding(" has no buffer");
    auto& buffer = static_cast<GlBuffer&>(*each);
    if (&buffer.group() != group_.get()) return wrong_binding(": the buffer belongs to another device");
    const View view = by_sources ? View::storage : program.view(pass.buffers.size());
    const auto bytes = static_cast<GLsizeiptr>(buffer.bytes());
    pass.buffers.push_back({buffer.name(), bytes, buffer.shadow(), view, &buffer.texels()});
  }
  if (launch.indirect) {
    pass.indirect = BoundGrid{pass.buffers[launch.indirect->binding].name,
                              static_cast<GLintptr>(launch.indirect->offset), info_.max_grid};
  }
  if (by_sources) {
    if (Status status = SourceBinder(program, launch, pass).bind(); !status.ok()) return status.within(where);
  }
  return pass;
}

Result<std::uint64_t> GlDevice::submit(const Dispatch& dispatch) noexcept try {
  if (Status lost = group_->alive(); !lost.ok()) return lost;
  if (dispatch.passes.empty()) return invalid_argument(info_.id + ": the dispatch has no passes");
  std::vector<BoundPass> passes;
  passes.reserve(dispatch.passes.size());
  for (const PassLaunch& launch : dispatch.passes) {
    auto pass = bind(passes.size(), launch);
    if (!pass) return pass.error();
    passes.push_back(std::move(pass).value());
  }
  return queue_.submit(std::move(passes));
} catch (...) {
  return caught();
}

Result<FenceResult> GlDevice::wait(std::uint64_t value, Deadline deadline) noexcept try {
  auto result = queue_.wait(value, deadline);
  if (!result && result.error().code != StatusCode::device_lost) {
    return Status(result.error()).within(info_.id);
  }
  return result;
} catch (...) {
  return caught();
}

Result<UniqueFd> GlDevice::export_fence(std::uint64_t value) noexcept try {
  return queue_.export_fence(value);
} catch (...) {
  return caught();
}

Status GlDevice::wait_for_fence(int sync_file) noexcept try { return queue_.wait_for_fence(sync_file); } catch (...) {
  return caught();
}

Adoption mesa_cache_adoption() {
  const char* value = std::getenv("MESA_SHADER_CACHE_DIR");
  if (value == nullptr) return {"not adopted", "MESA_SHADER_CACHE_DIR is not set"};
  if (driver_setting_of(value).empty()) {
    return {"not adopted", "MESA_SHADER_CACHE_DIR " + std::string(value) +
                               " is not a folder that Kiln fills with authenticated files (kiln::driver_environment)"};
  }
  if (const Status status = check_private_folder(value); !status.ok()) {
    return {"not adopted", "MESA_SHADER_CACHE_DIR: " + status.message};
  }
  return {"adopted", {}};
}

}  // namespace kiln::opengl
