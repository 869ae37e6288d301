#include "amdgpu_pm4/device/build_device.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/device/device.hpp"
#include "amdgpu_pm4/device/program.hpp"
#include "amdgpu_pm4/toolchain/opencl_text.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

class BuiltProgram final : public Program {
 public:
  BuiltProgram(std::span<const std::byte> object, const Digest& digest, CheckedKernel checked)
      : object_(object.begin(), object.end()), digest_(digest), checked_(std::move(checked)) {}

  std::uint64_t charge() const noexcept override { return object_.size(); }
  const ProgramInterface* interface(const KernelSource&) const noexcept override { return &checked_.interface; }
  ProgramBinary binary(Target target) const { return make_binary(target, checked_.object.version, digest_, object_); }

 private:
  const std::vector<std::byte> object_;
  const Digest digest_;
  const CheckedKernel checked_;
};

}  // namespace

BuildDevice::BuildDevice(const Chip& chip, Compiler compiler, DeviceInfo info)
    : compiler_(std::move(compiler)), info_(std::move(info)), target_(chip.target) {}

Result<std::unique_ptr<Device>> BuildDevice::open(const Chip& chip, Compiler compiler) {
  if (compiler.identity == no_compiler) {
    auto why = compiler.compile({}, chip.target);
    return Status(why.error()).within("target " + std::string(chip.isa));
  }
  NodeFacts facts;
  facts.marketing_name = "AMD " + std::string(chip.name);
  DeviceInfo info = describe_device({"amdgpu", "", "no card: programs are built only"}, facts, chip, compiler.identity);
  info.id = "amdgpu:" + std::string(chip.isa);
  info.name = facts.marketing_name + " (" + std::string(chip.isa) + ")";
  info.speed_identity.clear();
  return std::unique_ptr<Device>(new BuildDevice(chip, std::move(compiler), std::move(info)));
}

Status BuildDevice::nothing_runs() const {
  return unsupported(info_.id + ": this device only builds programs and cannot run them");
}

Result<std::unique_ptr<Buffer>> BuildDevice::create_buffer(const BufferDesc&) noexcept { return nothing_runs(); }

Result<std::unique_ptr<Program>> BuildDevice::build(const KernelSource& source) noexcept try {
  if (source.dialect != Dialect::opencl_c) {
    return unsupported(info_.id + ": source in " + std::string(to_string(source.dialect)) + ", expected opencl_c");
  }
  const auto object = compiler_.compile(source, target_);
  if (!object) return Status(object.error()).within(info_.id);
  auto checked = check_kernel(source, *object, target_);
  if (!checked) return std::move(checked).error().within(info_.id);
  const Digest digest = sha256(std::span<const std::byte>(*object));
  return std::unique_ptr<Program>(std::make_unique<BuiltProgram>(*object, digest, std::move(*checked)));
} catch (...) {
  return caught();
}

Result<std::unique_ptr<Program>> BuildDevice::load(const KernelSource& source, const ProgramBinary& binary) noexcept
    try {
  const auto opened = open_binary(binary, target_);
  if (!opened) return Status(opened.error()).within(info_.id);
  auto checked = check_kernel(source, opened->object, target_);
  if (!checked) return std::move(checked).error().within(info_.id);
  return std::unique_ptr<Program>(std::make_unique<BuiltProgram>(opened->object, opened->digest, std::move(*checked)));
} catch (...) {
  return caught();
}

Result<ProgramBinary> BuildDevice::serialize(const Program& program) noexcept try {
  return static_cast<const BuiltProgram&>(program).binary(target_);
} catch (...) {
  return caught();
}

Result<std::uint64_t> BuildDevice::submit(const Dispatch& dispatch) noexcept {
  const bool is_empty =
      std::ranges::all_of(dispatch.passes, [](const PassLaunch& pass) { return pass.grid == PassLaunch::nothing; });
  if (!is_empty) return nothing_runs();
  return ++submitted_;
}

Result<FenceResult> BuildDevice::wait(std::uint64_t value, Deadline) noexcept {
  if (value == 0 || value > submitted_) {
    return invalid_argument(info_.id + ": submission " + std::to_string(value) + " does not exist");
  }
  return FenceResult{};
}

std::vector<std::string> ClangAheadCompiler::targets() const {
  std::vector<std::string> names;
  const std::string all = target_names();
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find(", ", at), all.size());
    names.push_back(all.substr(at, end - at));
    at = end + 2;
  }
  return names;
}

Result<std::unique_ptr<Device>> ClangAheadCompiler::open(const std::string& target) noexcept try {
  std::string known;
  for (const Chip& chip : dispatched_chips()) {
    if (chip.isa == target) return BuildDevice::open(chip, compiler_of(open_shared(), settings_.deadline, log_));
    known += (known.empty() ? "" : ", ") + std::string(chip.isa);
  }
  return unsupported("target '" + target + "' is not supported, expected one of " + known);
} catch (...) {
  return caught();
}

Result<std::shared_ptr<Toolchain>> ClangAheadCompiler::open_shared() const {
  auto toolchain = open_toolchain(settings_, nullptr, log_);
  if (!toolchain) return std::move(toolchain).error();
  return std::shared_ptr<Toolchain>(std::move(*toolchain));
}

Result<AheadProgram> ClangAheadCompiler::compile(const AheadSource& source) noexcept {
  const Target target = target_named(source.target);
  if (target == Target::invalid) {
    return invalid_argument("target '" + source.target + "': expected one of " + target_names());
  }
  if (toolchain_ == nullptr) {
    auto toolchain = open_toolchain(settings_, nullptr, log_);
    if (!toolchain) return toolchain.error();
    toolchain_ = std::move(*toolchain);
  }
  KernelSource kernel;
  kernel.dialect = Dialect::opencl_c;
  kernel.text = source.text;
  kernel.files = {source.file};
  kernel.files.insert(kernel.files.end(), source.includes.begin(), source.includes.end());
  const auto text = assemble(kernel, source.file);
  if (!text) return text.error();
  auto compiled = compile_text(*toolchain_, *text, target, Deadline::after(settings_.deadline));
  if (!compiled) return compiled.error();
  if (!compiled->said.empty()) log_.write(LogLevel::warning, "amdgpu_pm4", compiled->said);
  const auto code = read_code_object(compiled->object);
  if (!code) return code.error().within(source.file);
  AheadProgram program;
  program.binary = {"amdgpu:" + source.target + ":code-object", std::move(compiled->object)};
  program.extension = "co";
  for (const KernelCode& each : code->kernels) {
    program.kernels.push_back({each.name, facts_of(*code, each)});
    const Status calls = check_calls(kernel, each.name, source.file);
    if (!calls.ok()) program.kernels.back().facts.back().second = calls.message;  // of "dispatch"
  }
  return program;
}

Result<std::unique_ptr<AheadCompiler>> make_ahead_compiler(const OfflineContext& context) {
  auto settings = read_toolchain_settings(context.settings);
  if (!settings) return settings.error();
  return std::unique_ptr<AheadCompiler>(std::make_unique<ClangAheadCompiler>(std::move(*settings), context.log));
}

}  // namespace kiln::amdgpu_pm4
