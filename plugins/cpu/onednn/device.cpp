#include "onednn/device.hpp"

#include <utility>

#include <kiln/process_limits.hpp>

#include "onednn/host_buffer.hpp"
#include "onednn/worker_pool.hpp"

extern "C" __attribute__((visibility("default"))) kiln::Device* kiln_onednn_create_device(
    const kiln::cpu::OpenRequest& request, kiln::Status& failure) {
  try {
    return std::make_unique<kiln::cpu::CpuDevice>(request).release();
  } catch (...) {
    failure = kiln::cpu::current_failure("oneDNN's engine");
    return nullptr;
  }
}

namespace kiln::cpu {
namespace {

const LibraryProgram& library_program(const Program& program) { return static_cast<const LibraryProgram&>(program); }

std::string version_text() {
  const dnnl_version_t& version = *dnnl_version();
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.patch);
}

}  // namespace

CpuDevice::CpuDevice(const OpenRequest& request)
    : info_(request.info),
      threads_(request.threads),
      tuning_(request.tuning),
      layout_(request.layout),
      log_(request.log),
      counters_(request.counters),
      pool_(request.threads),
      engine_(dnnl::engine::kind::cpu, 0),
      stream_(engine_) {
  info_.driver = "oneDNN " + version_text();
  info_.driver_identity = {{"library", "oneDNN"},
                           {"version", version_text()},
                           {"revision", dnnl_version()->hash},
                           {"threads", std::to_string(threads_)}};
}

Result<std::unique_ptr<Buffer>> CpuDevice::create_buffer(const BufferDesc& desc) noexcept try {
  return HostBuffer::create(desc);
} catch (...) {
  return caught();
}

Result<std::unique_ptr<Program>> CpuDevice::build(const KernelSource& source) noexcept try {
  if (Status status = check_memory_left(memory_to_build); !status.ok()) return status.within(info_.id);
  const OmpAlone alone;
  auto program = LibraryProgram::create(source, engine_, threads_, layout_);
  if (program && counters_ != nullptr) counters_->prepared.fetch_add(1, std::memory_order_relaxed);
  return program;
} catch (...) {
  return current_failure(source.text);
}

Result<std::unique_ptr<Program>> CpuDevice::load(const KernelSource& source, const ProgramBinary& binary) noexcept try {
  return unsupported(source.text + ": cannot load a stored program of format '" + binary.format +
                     "': device 'cpu' does not store programs");
} catch (...) {
  return caught();
}

Result<ProgramBinary> CpuDevice::serialize(const Program& program) noexcept try {
  return unsupported(library_program(program).what() + ": cannot be stored: device 'cpu' does not store programs");
} catch (...) {
  return caught();
}

Result<std::uint64_t> CpuDevice::submit(const Dispatch& dispatch) noexcept try {
  if (dispatch.passes.empty()) return invalid_argument("dispatch has no passes");
  for (const PassLaunch& pass : dispatch.passes) {
    if (pass.program == nullptr) return invalid_argument("dispatch: a pass has no program");
    if (pass.grid == PassLaunch::nothing) continue;
    if (pass.indirect) return unsupported("dispatch: device 'cpu' does not support a grid from a buffer");
    if (Status status = library_program(*pass.program).check(pass.bindings); !status.ok()) return status;
  }
  const OmpAlone alone;
  const std::lock_guard running(queue_);
  Result<FenceResult> result = run(dispatch);
  const std::lock_guard lock(results_mutex_);
  results_.emplace(++last_value_, std::move(result));
  return last_value_;
} catch (...) {
  return caught();
}

// REQUIRES: queue_ is held.
Result<FenceResult> CpuDevice::run(const Dispatch& dispatch) {
  const Resources resources{pool_, stream_, workspace_, tuning_, counters_, log_};
  const std::uint64_t begun_ns = now_ns();
  std::chrono::nanoseconds ran{0};
  FenceResult result;
  for (const PassLaunch& pass : dispatch.passes) {
    if (pass.grid == PassLaunch::nothing) continue;  // the library leaves nothing until a first dispatch
    const LibraryProgram& program = library_program(*pass.program);
    try {
      ran += program.run(pass.bindings, resources, dispatch.passes.size() == 1 ? &result.chain : nullptr);
    } catch (...) {
      return current_failure(program.what());
    }
  }
  result.device_ns = static_cast<std::uint64_t>(ran.count());
  result.begun_ns = begun_ns;
  return result;
}

Result<FenceResult> CpuDevice::wait(std::uint64_t value, Deadline) noexcept try {
  const std::lock_guard lock(results_mutex_);
  auto taken = results_.extract(value);
  if (taken.empty()) {
    return not_found("device 'cpu': timeline value " + std::to_string(value) +
                     (value == 0 || value > last_value_ ? ": never submitted" : ": the result was already taken"));
  }
  return std::move(taken.mapped());
} catch (...) {
  return caught();
}

}  // namespace kiln::cpu
