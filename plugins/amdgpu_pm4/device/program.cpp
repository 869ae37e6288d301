#include "amdgpu_pm4/device/program.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/toolchain/pointee.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

std::uint64_t next_object_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

Digest quarantine_key_of(const Digest& object, std::string_view kernel) {
  return sha256(object.hex() + std::string(kernel));
}

std::string LoadedKernel::name() const {
  return "kernel '" + kernel.name + "' (program " + digest.hex().substr(0, 12) + ")";
}

// Its bytes for serialize(), and its image in device memory.
std::uint64_t Pm4Program::charge() const noexcept { return loaded_->object.size() + loaded_->code->bytes(); }

namespace {

constexpr std::size_t digest_bytes = sizeof(Digest::bytes);
constexpr std::uint32_t versions[] = {4, 5};

}  // namespace

std::string binary_format(Target target, std::uint32_t version) {
  return "amdgpu:" + std::string(to_string(target)) + ":v" + std::to_string(version);
}

ProgramBinary make_binary(Target target, std::uint32_t version, const Digest& digest,
                          std::span<const std::byte> object) {
  ProgramBinary binary;
  binary.format = binary_format(target, version);
  binary.bytes.resize(digest_bytes + object.size());
  std::memcpy(binary.bytes.data(), digest.bytes.data(), digest_bytes);
  std::ranges::copy(object, binary.bytes.begin() + digest_bytes);
  return binary;
}

Result<OpenedBinary> open_binary(const ProgramBinary& binary, Target target) {
  std::string known;
  bool ours = false;
  for (const std::uint32_t version : versions) {
    const std::string format = binary_format(target, version);
    ours |= binary.format == format;
    known += (known.empty() ? "" : ", ") + format;
  }
  if (!ours) return unsupported("program binary has format '" + binary.format + "', expected one of " + known);
  const std::string what = "program binary of " + std::to_string(binary.bytes.size()) + " bytes";
  if (binary.bytes.size() <= digest_bytes) return corrupt(what + ": expected at least a digest and a code object");
  OpenedBinary opened;
  std::memcpy(opened.digest.bytes.data(), binary.bytes.data(), digest_bytes);
  opened.object = std::span(binary.bytes).subspan(digest_bytes);
  const Digest found = sha256(opened.object);
  if (found != opened.digest) {
    return corrupt(what + ": digest is " + found.hex() + ", expected " + opened.digest.hex());
  }
  return opened;
}

namespace {

// Instructions are fetched ahead of where a wave ends: what lies behind the code must be mapped, and executable.
constexpr std::uint64_t fetched_ahead = 256;

using Sizes = std::array<std::uint32_t, 3>;
constexpr Sizes not_told{};

std::string text_of(const Sizes& sizes) {
  return std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]) + "x" + std::to_string(sizes[2]);
}

// A source that names no entry of its own ("main", which a kernel cannot be called) means the object's only kernel.
Result<const KernelCode*> choose_kernel(const CodeObject& object, const std::string& entry) {
  if (const KernelCode* found = find_kernel(object, entry); found != nullptr) return found;
  if (entry == "main" && object.kernels.size() == 1) return &object.kernels.front();
  std::string there;
  for (const KernelCode& each : object.kernels) there += (there.empty() ? "" : ", ") + each.name;
  return invalid_argument("the code object has no kernel '" + entry + "': expected one of " + there);
}

Result<Sizes> choose_workgroup(const KernelSource& source, const KernelCode& kernel) {
  if (source.workgroup == not_told && kernel.required_workgroup == not_told) {
    return invalid_argument("neither the source nor kernel '" + kernel.name +
                            "' declares a workgroup size. Set workgroup or reqd_work_group_size");
  }
  if (source.workgroup == not_told) return kernel.required_workgroup;
  if (kernel.required_workgroup != not_told && kernel.required_workgroup != source.workgroup) {
    return invalid_argument("workgroup: kernel '" + kernel.name + "' declares " + text_of(kernel.required_workgroup) +
                            " by reqd_work_group_size, expected " + text_of(source.workgroup) + " as in the job");
  }
  return source.workgroup;
}

ProgramInterface interface_of(const KernelCode& kernel, const KernelSource& source) {
  ProgramInterface declared;
  for (const KernelArgument& argument : kernel.arguments) {
    ProgramResource resource;
    switch (argument.kind) {
      case ArgumentKind::global_buffer:
        resource.kind = ResourceKind::buffer_argument;
        break;
      case ArgumentKind::by_value:
        resource.kind = ResourceKind::value_argument;
        resource.bytes = argument.size;
        break;
      case ArgumentKind::local_pointer:
        resource.kind = ResourceKind::local_argument;
        break;
      default:
        continue;
    }
    resource.name = argument.name;
    resource.type = argument.type;
    resource.number = static_cast<std::uint32_t>(declared.resources.size());
    const Pointee pointee = pointee_of(argument.type, source);
    resource.element = pointee.element;
    if (argument.kind == ArgumentKind::global_buffer && pointee.components == 3) {  // lie as vectors of four
      resource.array_stride = std::uint64_t{4} * pointee.bytes;
      resource.element_bytes = std::uint64_t{3} * pointee.bytes;
      resource.open_ended = true;
    }
    if (argument.read_only) resource.access = Access::read;
    declared.resources.push_back(std::move(resource));
  }
  return declared;
}

std::string list_of(const ProgramInterface& declared) {
  std::string text;
  for (const ProgramResource& each : declared.resources) {
    text += (text.empty() ? "" : ", ") + (each.type.empty() ? "" : each.type + " ") + each.name;
  }
  return text;
}

// LoadedKernel::by_value: the bindings are the arguments in order, hidden ones and local pointers not counted.
Result<std::vector<std::uint32_t>> match_bindings(const KernelSource& source, const KernelCode& kernel) {
  std::vector<std::uint32_t> bytes;
  bool any = false;
  for (const KernelArgument& argument : kernel.arguments) {
    const bool by_value = argument.kind == ArgumentKind::by_value;
    if (!by_value && argument.kind != ArgumentKind::global_buffer) continue;
    if (by_value && bytes.size() < source.bindings.size() && source.bindings[bytes.size()] != Access::read) {
      return invalid_argument("kernel '" + kernel.name + "' takes '" + argument.name + "' by value: binding " +
                              std::to_string(bytes.size()) + " is written, expected a read-only binding");
    }
    bytes.push_back(by_value ? argument.size : 0);
    any |= by_value;
  }
  if (bytes.size() != source.bindings.size()) {
    return invalid_argument("kernel '" + kernel.name + "' takes " + std::to_string(bytes.size()) +
                            " arguments, found " + std::to_string(source.bindings.size()) +
                            " bindings, without local memory: (" + list_of(interface_of(kernel, source)) + ")");
  }
  if (!any) bytes.clear();
  return bytes;
}

}  // namespace

Result<std::unique_ptr<BufferObject>> ProgramLoader::upload(const CodeObject& object) {
  const Placement placement = placement_of(BufferUse::code, winsys_.facts().memory);
  auto memory = winsys_.create_buffer(
      {object.image.size() + fetched_ahead, image_alignment, placement, access_of(BufferUse::code)});
  if (!memory) return memory.error();
  // Write-combined: whole, in order, and not read.
  std::vector<std::byte> image = object.image;
  for (const AddressWord& word : object.address_words) {
    const std::uint64_t address = (*memory)->address() + word.target;
    if (word.offset > image.size() || image.size() - word.offset < sizeof address) {
      return corrupt("address at offset " + std::to_string(word.offset) + " is outside the image of " +
                     std::to_string(image.size()) + " bytes");
    }
    std::memcpy(image.data() + word.offset, &address, sizeof address);
  }
  std::memcpy((*memory)->mapped().data(), image.data(), image.size());
  return memory;
}

Result<std::shared_ptr<BufferObject>> ProgramLoader::scratch_of(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (scratch_ != nullptr && scratch_->bytes() >= bytes) return scratch_;
  const Placement placement = placement_of(BufferUse::scratch, winsys_.facts().memory);
  auto made = winsys_.create_buffer({bytes, scratch_alignment, placement, access_of(BufferUse::scratch)});
  if (!made) return std::move(made).error().within("scratch memory");
  scratch_ = std::move(made).value();
  return scratch_;
}

Result<CheckedKernel> check_kernel(const KernelSource& source, std::span<const std::byte> object, Target target) {
  auto read = read_code_object(object);
  if (!read) return read.error();
  if (read->target != target) {
    return unsupported("the code object is for " + std::string(to_string(read->target)) + ", expected " +
                       std::string(to_string(target)));
  }
  const auto chosen = choose_kernel(*read, source.entry);
  if (!chosen) return chosen.error();
  if (Status status = check_dispatch(*read, **chosen); !status.ok()) return status;
  auto by_value = match_bindings(source, **chosen);
  if (!by_value) return by_value.error();
  const auto workgroup = choose_workgroup(source, **chosen);
  if (!workgroup) return workgroup.error();
  KernelCode kernel = **chosen;
  ProgramInterface declared = interface_of(kernel, source);
  return CheckedKernel{std::move(*read), std::move(kernel), *workgroup, std::move(*by_value), std::move(declared)};
}

Result<std::shared_ptr<const LoadedKernel>> ProgramLoader::load(const KernelSource& source,
                                                                std::span<const std::byte> object,
                                                                const Digest& digest) {
  auto checked = check_kernel(source, object, target_);
  if (!checked) return checked.error();
  const KernelCode& kernel = checked->kernel;

  DispatchPlace place;
  place.workgroup = checked->workgroup;
  std::shared_ptr<BufferObject> scratch;
  if (kernel.scratch_bytes != 0) {
    const auto ring = scratch_ring(shape_, kernel.scratch_bytes, kernel.wave_lanes);
    if (!ring) return ring.error();
    auto memory = scratch_of(ring->bytes);
    if (!memory) return memory.error();
    scratch = std::move(memory).value();
    place.scratch = *ring;
    place.scratch_va = scratch->address();
  }
  auto code = upload(checked->object);
  if (!code) return code.error();
  place.image_va = (*code)->address();
  auto recorded = RecordedDispatch::record(kernel, shape_, place);
  if (!recorded) return recorded.error();
  const ProgramFacts facts = program_facts(kernel, place.image_va, checked->object.image.size());
  const Digest quarantine_key = quarantine_key_of(digest, kernel.name);
  return std::shared_ptr<const LoadedKernel>(std::make_shared<LoadedKernel>(LoadedKernel{{object.begin(), object.end()},
                                                                                         digest,
                                                                                         quarantine_key,
                                                                                         checked->object.version,
                                                                                         kernel,
                                                                                         checked->workgroup,
                                                                                         source.bindings,
                                                                                         std::move(code).value(),
                                                                                         std::move(scratch),
                                                                                         std::move(recorded).value(),
                                                                                         facts,
                                                                                         std::move(checked->by_value),
                                                                                         std::move(checked->interface),
                                                                                         place}));
}

Compiler compiler_of(Result<std::shared_ptr<Toolchain>> toolchain, std::chrono::seconds patience, Log log) {
  if (!toolchain) {
    return {std::string(no_compiler),
            [why = toolchain.error()](const KernelSource&, Target) -> Result<std::vector<std::byte>> {
              return unavailable("no compiler: " + why.message);
            }};
  }
  const std::string identity = identity_of(**toolchain);
  return {identity,
          [shared = std::move(toolchain).value(), patience, log](const KernelSource& source,
                                                                 Target target) -> Result<std::vector<std::byte>> {
            auto compiled = compile_kernel(*shared, source, source.entry, target, Deadline::after(patience));
            if (!compiled) return compiled.error();
            if (!compiled->said.empty()) log.write(LogLevel::warning, "amdgpu_pm4", compiled->said);
            return std::move(compiled->object);
          }};
}

}  // namespace kiln::amdgpu_pm4
