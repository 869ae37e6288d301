#include "amdgpu_pm4/device/device.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/device/program.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

#include <kiln/device_checks.hpp>

namespace kiln::amdgpu_pm4 {
namespace {

BufferUse use_of(BufferUsage usage) {
  switch (usage) {
    case BufferUsage::upload:
      return BufferUse::upload;
    case BufferUsage::readback:
      return BufferUse::readback;
    case BufferUsage::constant:
      return BufferUse::constant;
    default:
      return BufferUse::storage;
  }
}

std::string words(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

Result<std::unique_ptr<Buffer>> Pm4Buffer::create(const std::string& device, Winsys& winsys, const BufferDesc& desc) {
  if (desc.import_fd >= 0) {
    // What others share is written by either side.
    auto object = winsys.import_buffer(desc.import_fd, GpuAccess::read_write);
    if (!object) return std::move(object).error().within(device);
    if ((*object)->bytes() < desc.bytes) {
      return invalid_argument(device + ": the imported memory has " + words((*object)->bytes()) +
                              ", expected at least " + words(desc.bytes));
    }
    return std::unique_ptr<Buffer>(std::make_unique<Pm4Buffer>(device, winsys, std::move(object).value(), desc.bytes));
  }
  if (desc.part_of != nullptr) {
    const auto& whole = static_cast<const Pm4Buffer&>(*desc.part_of);
    if (whole.owner_ != &winsys || desc.bytes > whole.bytes_) {
      return invalid_argument(device + ": part of a buffer has " + words(desc.bytes) + ", expected at most " +
                              words(whole.bytes_) + " of a buffer of this device");
    }
    return std::unique_ptr<Buffer>(std::make_unique<Pm4Buffer>(device, winsys, whole.object_, desc.bytes));
  }
  const BufferUse use = use_of(desc.usage);
  const MemoryFacts& memory = winsys.facts().memory;
  if (const std::uint64_t most = most_bytes(use, memory); desc.bytes > most) {
    return invalid_argument(device + ": buffer size is " + words(desc.bytes) + ", expected at most " + words(most));
  }
  auto object = winsys.create_buffer({desc.bytes, 0, placement_of(use, memory), access_of(use)});
  if (!object) return std::move(object).error().within(device);
  return std::unique_ptr<Buffer>(std::make_unique<Pm4Buffer>(device, winsys, std::move(object).value(), desc.bytes));
}

Status Pm4Buffer::check(std::string_view doing, std::uint64_t offset, std::size_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset) {
    return invalid_argument(device_ + ": " + std::string(doing) + " " + words(bytes) + " at offset " +
                            std::to_string(offset) + " reaches beyond the end of a buffer of " + words(bytes_));
  }
  if (bytes != 0 && object_->mapped().empty()) {
    return unsupported(device_ + ": " + std::string(doing) + " imported memory failed: the memory has no host mapping");
  }
  return {};
}

Status Pm4Buffer::write(std::uint64_t offset, std::span<const std::byte> from) noexcept try {
  if (Status status = check("writing", offset, from.size()); !status.ok() || from.empty()) return status;
  std::memcpy(object_->mapped().data() + offset, from.data(), from.size());
  return {};
} catch (...) {
  return caught();
}

Status Pm4Buffer::read(std::uint64_t offset, std::span<std::byte> to) noexcept try {
  if (Status status = check("reading", offset, to.size()); !status.ok() || to.empty()) return status;
  std::memcpy(to.data(), object_->mapped().data() + offset, to.size());
  return {};
} catch (...) {
  return caught();
}

std::span<std::byte> Pm4Buffer::mapped() noexcept {
  const std::span<std::byte> memory = object_->mapped();
  return memory.empty() ? memory : memory.first(static_cast<std::size_t>(bytes_));
}

Result<UniqueFd> Pm4Buffer::export_fd() noexcept {
  auto fd = object_->export_fd();
  if (!fd) return std::move(fd).error().within(device_);
  return fd;
}

namespace {

DeviceShape shape_of(const Chip& chip, const NodeFacts& facts) {
  const bool fewer_registers = chip.target == Target::gfx1102 || chip.target == Target::gfx1103;
  return {generation_of(chip.target), facts.shader_engines, facts.compute_units, fewer_registers};
}

DeviceInfo info_of(const DeviceParts& parts, const Chip& chip) {
  DeviceInfo info = describe_device(parts.version, parts.winsys->facts(), chip, parts.compiler.identity);
  info.id = parts.id;
  info.physical_id = parts.physical_id;
  return info;
}

// The bytes of an argument by value, as they are now. The words that follow "binding 2", where they cannot be.
std::optional<std::string> append_value(const Pm4Buffer& buffer, std::uint32_t bytes, std::vector<std::byte>& values) {
  if (buffer.object()->access() != GpuAccess::read) {  // what a kernel has yet to write is no value
    return " is passed by value, but bound to a buffer that kernels may write";
  }
  if (buffer.bytes() != bytes) {
    return " has " + std::to_string(buffer.bytes()) + " bytes, expected " + std::to_string(bytes) +
           " for the argument by value";
  }
  const std::span<const std::byte> memory = buffer.object()->mapped().first(bytes);
  values.insert(values.end(), memory.begin(), memory.end());
  return std::nullopt;
}

// What a verdict over a program depends on: the chip, and whether it is one.
std::string quarantine_name(const DeviceInfo& info) {
  std::string name;
  for (const auto* identity : {&info.device_identity, &info.speed_identity}) {
    for (const auto& [key, value] : *identity) {
      if (key != "kernel" && key != "libdrm") name += (name.empty() ? "" : " ") + key + "=" + value;
    }
  }
  return name;
}

}  // namespace

Pm4Device::Pm4Device(DeviceParts parts, const Chip& chip, DeviceInfo info)
    : winsys_(std::move(parts.winsys)),
      compiler_(std::move(parts.compiler)),
      counters_(*parts.counters),
      info_(std::move(info)),
      target_(chip.target),
      quarantine_(parts.notes, quarantine_name(info_)),
      loader_(*winsys_, target_, shape_of(chip, winsys_->facts())) {}

Result<std::unique_ptr<Device>> Pm4Device::open(DeviceParts parts) {
  const NodeFacts& facts = parts.winsys->facts();
  const auto chip = identify_chip(facts.family, facts.external_revision);
  if (!chip) return Status(chip.error()).within(facts.path);
  QueueSettings settings{parts.id, shape_of(*chip, facts), parts.log};
  DeviceInfo info = info_of(parts, *chip);
  std::unique_ptr<Pm4Device> device(new Pm4Device(std::move(parts), *chip, std::move(info)));
  auto queue = Queue::create(*device->winsys_, device->quarantine_, std::move(settings));
  if (!queue) return queue.error();
  device->queue_ = std::move(queue).value();
  return std::unique_ptr<Device>(std::move(device));
}

std::optional<std::string> Pm4Device::bind_local(const PassLaunch& launch, BoundPass& pass) const {
  const LoadedKernel& loaded = *pass.kernel;
  const std::vector<ProgramResource>& declared = loaded.interface.resources;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].kind != ResourceKind::local_argument) continue;
    if (i >= launch.sources.size()) return ": argument '" + declared[i].name + "' has no size of local memory";
    const std::uint64_t asked = launch.sources[i].offset;
    if (asked > info_.max_shared_bytes) {
      return ": argument '" + declared[i].name + "' has " + words(asked) + " of local memory, expected at most " +
             std::to_string(info_.max_shared_bytes);
    }
    pass.local_bytes.push_back(asked);
  }
  if (pass.local_bytes.empty()) return std::nullopt;
  const std::uint64_t bytes = dynamic_local_bytes(loaded.kernel, pass.local_bytes);
  if (bytes + loaded.kernel.lds_bytes > info_.max_shared_bytes) {
    return ": the kernel has " + std::to_string(loaded.kernel.lds_bytes) + " bytes of local memory, the job adds " +
           std::to_string(bytes) + ", expected at most " + std::to_string(info_.max_shared_bytes) + " together";
  }
  DispatchPlace place = loaded.place;
  place.dynamic_lds_bytes = static_cast<std::uint32_t>(bytes);
  auto recorded = loader_.record(loaded.kernel, place);
  if (!recorded) return ": " + recorded.error().message;
  pass.recorded.emplace(std::move(*recorded));
  return std::nullopt;
}

Result<std::unique_ptr<Buffer>> Pm4Device::create_buffer(const BufferDesc& desc) noexcept try {
  if (!desc.host.empty()) return unsupported(info_.id + ": host memory cannot be wrapped as a buffer");
  if (desc.usage == BufferUsage::invalid) return invalid_argument(info_.id + ": no buffer usage is set");
  if (desc.bytes == 0) return invalid_argument(info_.id + ": buffer size is 0 bytes, expected at least 1 byte");
  if (Status lost = queue_->alive(); !lost.ok()) return lost;
  return Pm4Buffer::create(info_.id, *winsys_, desc);
} catch (...) {
  return caught();
}

Status Pm4Device::check_source(const KernelSource& source) const {
  if (Status lost = queue_->alive(); !lost.ok()) return lost;
  if (std::find(info_.dialects.begin(), info_.dialects.end(), source.dialect) == info_.dialects.end()) {
    return unsupported(info_.id + ": source in " + std::string(to_string(source.dialect)) +
                       ", expected opencl_c or code_object");
  }
  if (source.bindings.size() > info_.max_bindings) {
    return invalid_argument(info_.id + ": " + std::to_string(source.bindings.size()) + " bindings, expected at most " +
                            std::to_string(info_.max_bindings));
  }
  const auto view = std::find_if(source.views.begin(), source.views.end(), [](View v) { return v != View::storage; });
  if (view == source.views.end()) return {};
  return invalid_argument(info_.id + ": binding " + std::to_string(view - source.views.begin()) + " has view " +
                          std::string(to_string(*view)) + ", expected storage");
}

Result<std::unique_ptr<Program>> Pm4Device::make(const KernelSource& source, std::span<const std::byte> object,
                                                 const Digest& digest) {
  auto loaded = loader_.load(source, object, digest);
  if (!loaded) return loaded.error();
  return std::unique_ptr<Program>(std::make_unique<Pm4Program>(*winsys_, std::move(loaded).value()));
}

Result<std::unique_ptr<Program>> Pm4Device::build(const KernelSource& source) noexcept try {
  if (Status status = check_source(source); !status.ok()) return status;
  std::vector<std::byte> object;
  if (source.dialect == Dialect::code_object) {
    const auto bytes = std::as_bytes(std::span(source.text));
    object.assign(bytes.begin(), bytes.end());
  } else {
    counters_.builds.fetch_add(1, std::memory_order_relaxed);
    auto compiled = compiler_.compile(source, target_);
    if (!compiled) return std::move(compiled).error().within(info_.id);
    object = std::move(compiled).value();
  }
  auto program = make(source, object, sha256(std::span<const std::byte>(object)));
  if (!program) return std::move(program).error().within(info_.id);
  return program;
} catch (...) {
  return caught();
}

Result<std::unique_ptr<Program>> Pm4Device::load(const KernelSource& source, const ProgramBinary& binary) noexcept try {
  if (Status status = check_source(source); !status.ok()) return status;
  const auto opened = open_binary(binary, target_);
  if (!opened) return Status(opened.error()).within(info_.id);
  counters_.loads.fetch_add(1, std::memory_order_relaxed);
  auto program = make(source, opened->object, opened->digest);
  if (program) return program;
  Status status = program.error().within(info_.id);
  if (status.code == StatusCode::invalid_argument) status.code = StatusCode::corrupt;  // of another source
  return status;
} catch (...) {
  return caught();
}

Result<ProgramBinary> Pm4Device::serialize(const Program& program) noexcept try {
  const auto& ours = static_cast<const Pm4Program&>(program);
  if (ours.owner() != winsys_.get()) return invalid_argument(info_.id + ": the program belongs to another device");
  const LoadedKernel& loaded = *ours.loaded();
  return make_binary(target_, loaded.version, loaded.digest, loaded.object);
} catch (...) {
  return caught();
}

Result<BoundPass> Pm4Device::bind(std::size_t index, const PassLaunch& launch) const {
  // Put together only where something is wrong: this is on the way of every submission.
  const auto wrong = [&](const std::string& what) {
    return invalid_argument(info_.id + ": pass " + std::to_string(index) + what);
  };
  if (launch.program == nullptr) return wrong(" has no program");
  const auto& program = static_cast<const Pm4Program&>(*launch.program);
  if (program.owner() != winsys_.get()) return wrong(": its program belongs to another device");
  BoundPass pass{program.loaded(), {}, launch.grid};
  if (launch.grid == PassLaunch::nothing) {  // the queue never sees it
    Status refused = quarantine_.check(pass.kernel->quarantine_key, pass.kernel->name());
    if (!refused.ok()) return std::move(refused).within(info_.id);
    return pass;
  }
  const std::vector<Access>& bindings = pass.kernel->bindings;
  if (launch.bindings.size() != bindings.size()) {
    return wrong(": " + std::to_string(launch.bindings.size()) + " buffers, expected " +
                 std::to_string(bindings.size()));
  }
  if (Status status = check_grid(info_, index, launch); !status.ok()) return status;
  if (const auto what = bind_local(launch, pass)) return wrong(*what);
  pass.buffers.reserve(bindings.size());
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    const auto wrong_binding = [&](std::string_view what) {
      return wrong(": binding " + std::to_string(i) + std::string(what));
    };
    if (launch.bindings[i] == nullptr) return wrong_binding(" is empty");
    const auto& buffer = static_cast<const Pm4Buffer&>(*launch.bindings[i]);
    if (buffer.owner() != winsys_.get()) return wrong_binding(" belongs to another device");
    if (bindings[i] != Access::read && buffer.object()->access() != GpuAccess::read_write) {
      return wrong_binding(" is written, but bound to an upload or constant buffer");
    }
    if (const std::uint32_t bytes = pass.kernel->value_bytes(i); bytes != 0) {
      if (const auto what = append_value(buffer, bytes, pass.values)) return wrong_binding(*what);
    }
    pass.buffers.push_back(buffer.object());
  }
  return pass;
}

namespace {

// What key_of() adds for a launch, before its buffers and sources.
constexpr std::size_t own_words = 4;

// Finds launches that are equal to one before, by their words in the dispatch's key.
class EqualLaunches {
 public:
  explicit EqualLaunches(const DispatchKey& key) : left_(key.words) {}

  // Of the launch that follows the last one: the number that an equal one was given. nullopt: it is given `number`
  // now, or the key has no words. Of very many different launches some equal ones may be overlooked.
  std::optional<std::uint32_t> find(const PassLaunch& launch, std::size_t number) {
    if (left_.empty()) return std::nullopt;
    const auto words = left_.first(own_words + launch.bindings.size() + launch.sources.size());
    left_ = left_.subspan(words.size());
    std::uint64_t hash = 0;
    for (const std::uint64_t word : words) hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    Seen& seen = seen_[hash >> 58];
    if (std::ranges::equal(seen.words, words)) return seen.number;
    seen = {words, static_cast<std::uint32_t>(number)};
    return std::nullopt;
  }

 private:
  struct Seen {
    std::span<const std::uint64_t> words;
    std::uint32_t number = 0;
  };

  std::span<const std::uint64_t> left_;
  std::array<Seen, 64> seen_{};
};

}  // namespace

DispatchKey Pm4Device::key_of(const Dispatch& dispatch) const {
  DispatchKey key;
  key.words.reserve((own_words + 3) * dispatch.passes.size());
  for (const PassLaunch& launch : dispatch.passes) {
    const auto* program = static_cast<const Pm4Program*>(launch.program);
    if (program == nullptr || program->owner() != winsys_.get() || !program->loaded()->by_value.empty()) return {};
    if (launch.grid == PassLaunch::nothing || launch.indirect) return {};
    key.add(program->number());
    key.add(launch.grid[0] | std::uint64_t{launch.grid[1]} << 32);
    key.add(launch.grid[2] | std::uint64_t{launch.bindings.size()} << 32);
    for (const Buffer* each : launch.bindings) {
      const auto* buffer = static_cast<const Pm4Buffer*>(each);
      if (buffer == nullptr || buffer->owner() != winsys_.get()) return {};
      key.add(buffer->number());
    }
    key.add(launch.sources.size());
    for (const ResourceSource& source : launch.sources) key.add(source.offset);  // bytes of local memory
  }
  return key;
}

Result<std::uint64_t> Pm4Device::submit(const Dispatch& dispatch) noexcept try {
  if (dispatch.passes.empty()) return invalid_argument(info_.id + ": the dispatch has no passes");
  DispatchKey key = key_of(dispatch);
  if (!key.words.empty()) {
    auto again = queue_->submit_again(key);
    if (!again) return again.error();
    if (*again) return **again;
  }
  BoundDispatch passes;
  passes.order.reserve(dispatch.passes.size());
  EqualLaunches equal(key);
  for (std::size_t i = 0; i < dispatch.passes.size(); ++i) {
    const PassLaunch& launch = dispatch.passes[i];
    if (const auto before = equal.find(launch, passes.bound.size())) {
      passes.order.push_back(*before);
      continue;
    }
    auto pass = bind(i, launch);
    if (!pass) return pass.error();
    // A program's code is in device memory since it was made: its first dispatch leaves nothing to be done.
    if (launch.grid != PassLaunch::nothing) passes.add(std::move(pass).value());
  }
  return queue_->submit(passes, std::move(key));
} catch (...) {
  return caught();
}

Result<FenceResult> Pm4Device::wait(std::uint64_t value, Deadline deadline) noexcept try {
  return queue_->wait(value, deadline);
} catch (...) {
  return caught();
}

Result<UniqueFd> Pm4Device::export_fence(std::uint64_t value) noexcept try {
  return queue_->export_fence(value);
} catch (...) {
  return caught();
}

Status Pm4Device::wait_for_fence(int sync_file) noexcept try { return queue_->wait_for_fence(sync_file); } catch (...) {
  return caught();
}

namespace {

constexpr std::uint32_t workgroup_lanes = 1024;
constexpr std::uint32_t workgroup_shared_bytes = 64 * 1024;
constexpr std::uint32_t wave_lanes = 32;
constexpr std::uint32_t bindings = 64;  // a bound of this plugin: they lie in memory

std::string name_of(const NodeFacts& facts, const Chip& chip) {
  std::string name = facts.marketing_name.empty() ? "AMD " + std::string(chip.name) : facts.marketing_name;
  return name + " (" + std::string(chip.isa) + ", " + std::to_string(facts.compute_units) + " compute units)";
}

}  // namespace

bool is_simulated(const NodeVersion& version) {
  return version.description.find("kiln-simulated") != std::string::npos;
}

std::string driver_words(const NodeVersion& version) {
  return version.name + " " + version.number + " (" + version.description + ")";
}

DeviceInfo describe_device(const NodeVersion& version, const NodeFacts& facts, const Chip& chip,
                           const std::string& toolchain) {
  DeviceInfo info;
  const bool simulated = is_simulated(version);
  info.kind = simulated ? DeviceKind::simulated : DeviceKind::gpu;
  info.name = name_of(facts, chip);
  info.driver = driver_words(version);
  info.shares_buffers = true;
  info.usable = true;
  // The compiler alone decides which code comes out: another card, kernel or libdrm runs the same programs.
  info.device_identity = {
      {"vendor", "AMD"}, {"isa", std::string(chip.isa)}, {"target", std::string(to_string(chip.target))}};
  info.driver_identity = {{"toolchain", toolchain}};
  info.speed_identity = {{"revision", std::to_string(facts.external_revision)},
                         {"compute_units", std::to_string(facts.compute_units)},
                         {"simulated", simulated ? "yes" : "no"},
                         {"kernel", version.name + " " + version.number},
                         {"libdrm", facts.library}};
  info.dialects = {Dialect::opencl_c, Dialect::code_object};
  if (simulated) info.shared_resource = "host-cores";
  info.serializes = true;
  info.shares_memory = true;
  info.max_grid = {0x7fffffff, 65535, 65535};
  info.max_workgroup = {workgroup_lanes, workgroup_lanes, workgroup_lanes};
  info.max_workgroup_lanes = workgroup_lanes;
  info.max_bindings = bindings;
  info.max_buffer_bytes = most_bytes(BufferUse::readback, facts.memory);
  for (const BufferUse use : {BufferUse::upload, BufferUse::storage, BufferUse::constant}) {
    info.max_buffer_bytes = std::min(info.max_buffer_bytes, most_bytes(use, facts.memory));
  }
  info.max_shared_bytes = workgroup_shared_bytes;
  info.simd_lanes = wave_lanes;
  // A simulation runs at the pace of the host's cores: what a chip could do is no bound for it, and no praise either.
  if (!simulated) {
    info.roof_gflops = 2.0 * facts.compute_units * chip.lanes_a_clock * static_cast<double>(facts.engine_khz) / 1e6;
  }
  info.driver_cache = "none";
  return info;
}

}  // namespace kiln::amdgpu_pm4
