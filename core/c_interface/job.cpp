// A job's tensors, how it is completed and run, and the functions of kiln.h that hold for every job.
#include "c_interface/runtime.hpp"
#include "c_interface/status.hpp"

#include <kiln/clock.hpp>
#include <kiln/run_request.hpp>
#include <kiln/stop_scope.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

namespace kiln::c_interface {

Status check_job(const char* function, const kiln_job* job) {
  return job == nullptr ? null_argument(function, "job") : check_runtime(function, &job->owner);
}

kiln_status* changed(const char* function, kiln_job* job, const std::function<Status(kiln_job&)>& change) {
  return guarded([&]() -> Status {
    if (Status status = check_job(function, job); !status.ok()) return status;
    const std::lock_guard lock(job->mutex);
    if (job->state == kiln_job::State::running) {
      return unavailable(std::string(function) + ": job '" + job->request.name + "' is running. Wait for it first");
    }
    job->drop_recording();
    Status status = change(*job);
    job->is_whole = false;
    return status.ok() ? status : status.within("job '" + job->request.name + "'");
  });
}

void clear(kiln_job& job) {
  job.is_kernel = false;
  job.kernel = {};
  job.uniforms.clear();
  job.described.reset();
  job.pipeline.reset();
  job.tensors.clear();
  job.request.spec = {};
  job.request.tensors.clear();
  job.request.expected.clear();
  job.request.tolerance.reset();
}

void BorrowedTensors::add() {
  const std::lock_guard lock(mutex_);
  ++count_;
}

void BorrowedTensors::released() {
  const std::lock_guard lock(mutex_);
  --count_;
  fewer_.notify_all();
}

void BorrowedTensors::wait_until_at_most(std::size_t count) {
  std::unique_lock lock(mutex_);
  fewer_.wait(lock, [&] { return count_ <= count; });
}

std::span<const std::byte> JobTensor::memory() const noexcept {
  if (host == nullptr) return {};
  const std::span<const std::byte> bytes = std::as_const(*host).bytes();
  if (in_place) return bytes;
  return copied == nullptr ? std::span<const std::byte>()
                           : std::span(static_cast<const std::byte*>(copied), bytes.size());
}

void JobTensor::to_host() const {
  if (copied != nullptr && access != Access::write) {
    std::memcpy(host->bytes().data(), copied, host->bytes().size());
  }
}

void JobTensor::from_host() const {
  if (copied != nullptr && access != Access::read) {
    std::memcpy(copied, host->bytes().data(), host->bytes().size());
  }
}

Result<JobTensor> tensor_of(const std::string& what, const kiln_tensor* tensor, Access access, Use use,
                            const std::shared_ptr<BorrowedTensors>& borrowed) {
  kiln_tensor copy;
  if (Status status = copy_struct(what.c_str(), "tensor", tensor, &copy, sizeof copy); !status.ok()) return status;
  if (copy.rank > most_rank || (copy.rank != 0 && copy.shape == nullptr)) {
    return invalid_argument(
        what + ": rank is " + std::to_string(copy.rank) +
        (copy.shape == nullptr ? ", but shape is NULL" : ", expected at most " + std::to_string(most_rank)));
  }
  if (copy.type < KILN_F32 || copy.type > KILN_BOOL) {
    return invalid_argument(what + ": type " + std::to_string(static_cast<int>(copy.type)) + ", expected a kiln_type");
  }
  const auto type = static_cast<DType>(copy.type);
  Shape shape(copy.shape, copy.shape + copy.rank);
  const bool aligned = copy.data != nullptr && reinterpret_cast<std::uintptr_t>(copy.data) % 64 == 0;
  if (aligned && use == Use::each_run) {
    borrowed->add();
    auto host = HostTensor::borrow(type, std::move(shape), static_cast<std::byte*>(copy.data),
                                   [borrowed] { borrowed->released(); });
    if (host) return JobTensor{nullptr, access, std::move(*host), true, what};
    borrowed->released();
    return std::move(host).error().within(what);
  }
  auto host = HostTensor::create(type, std::move(shape));
  if (!host) return std::move(host).error().within(what);
  if (copy.data == nullptr && !(*host)->bytes().empty()) return invalid_argument(what + ": data is NULL");
  JobTensor made{copy.data, access, std::move(*host), false, what};
  made.to_host();
  if (use == Use::read_once) made.copied = nullptr;
  return made;
}

static_assert(static_cast<int>(DType::f32) == KILN_F32 && static_cast<int>(DType::boolean) == KILN_BOOL,
              "kiln_type has the values of DType");
static_assert(static_cast<int>(Access::read) == KILN_READ && static_cast<int>(Access::read_write) == KILN_READ_WRITE,
              "kiln_access has the values of Access");

}  // namespace kiln::c_interface

using namespace kiln;
using namespace kiln::c_interface;

namespace {

// What a run reads of memory that it writes, or which of two results stays there, would depend on the device.
Status check_memory(const std::vector<JobTensor>& tensors) {
  for (const JobTensor& tensor : tensors) {
    const auto memory = tensor.memory();
    if (memory.empty() || tensor.access == Access::read) continue;
    for (const JobTensor& other : tensors) {
      const auto of_other = other.memory();
      if (&other == &tensor || of_other.empty()) continue;
      const std::less<const std::byte*> before;
      if (!before(memory.data(), of_other.data() + of_other.size()) ||
          !before(of_other.data(), memory.data() + memory.size())) {
        continue;
      }
      return invalid_argument(tensor.name + " is written and shares memory with " + other.name +
                              ", expected separate memory");
    }
  }
  return {};
}

}  // namespace

Status kiln_job::complete(std::vector<std::string>& notes) {
  if (is_whole) return {};
  Status status = described ? described->complete(*this, notes) : complete_kernel();
  if (status.ok()) status = check_memory(tensors);
  is_whole = status.ok();
  return status.ok() ? status : status.within("job '" + request.name + "'");
}

Status kiln_job::complete_kernel() {
  if (!is_kernel) {
    return tensors.empty()
               ? invalid_argument("nothing to run. Call kiln_job_kernel(), _conv2d(), _gemm() or _toml() first")
               : Status();
  }
  request.spec = kernel;
  request.tensors.clear();
  for (const JobTensor& tensor : tensors) request.tensors.push_back({tensor.host, nullptr});
  std::vector<std::byte> values;
  for (const auto& uniform : uniforms) values.insert(values.end(), uniform.begin(), uniform.end());
  if (!values.empty()) {
    auto tensor = HostTensor::create(DType::u8, {static_cast<std::int64_t>(values.size())});
    if (!tensor) return std::move(tensor).error();
    std::ranges::copy(values, (*tensor)->bytes().begin());
    request.tensors.push_back({std::move(*tensor), nullptr});
  }
  return {};
}

void kiln_job::fill_tensors() const {
  const bool has_kernel = pipeline || std::holds_alternative<UserKernelSpec>(request.spec);
  for (const JobTensor& tensor : tensors) {
    tensor.to_host();
    if (!has_kernel || tensor.access != Access::write) continue;
    const std::span<std::byte> bytes = tensor.host->bytes();
    std::fill(bytes.begin(), bytes.end(), std::byte{});
  }
}

RunReport kiln_job::run_once(RunRequest& with) {
  fill_tensors();
  RunReport ran = pipeline ? run_pipeline(with) : owner.runtime->run(with);
  if (ran.status.ok()) {
    for (const JobTensor& tensor : tensors) tensor.from_host();
  }
  return ran;
}

namespace {

// What the selector only looks at runs at most three times in a row.
constexpr std::uint32_t runs_before_recording = 4;
// Then the selector chooses anew: another device may be faster by now, or serve again.
constexpr std::chrono::seconds time_between_choices{10};
constexpr std::uint64_t most_recorded_bytes = std::uint64_t{256} << 20;  // of all jobs of a runtime

std::uint64_t bytes_on_device(const PipelineRequest& request, const RunReport& ran) {
  std::uint64_t bytes = ran.intermediate_bytes;
  for (const PipelineTensor& tensor : request.pipeline.tensors) {
    if (tensor.host != nullptr) bytes += tensor.host->bytes().size();
  }
  return bytes;
}

}  // namespace

void kiln_job::drop_recording() noexcept {
  recorded.reset();
  owner.recorded_bytes -= std::exchange(recorded_bytes, 0);
  runs_on_device = 0;
}

// On the device that ran it. What cannot be recorded is run as before.
void kiln_job::record_pipeline() {
  owner.recorded_bytes -= std::exchange(recorded_bytes, 0);
  const std::uint64_t bytes = bytes_on_device(*pipeline, last_run);
  if (owner.recorded_bytes.fetch_add(bytes) + bytes > most_recorded_bytes) {
    owner.recorded_bytes -= bytes;
    return;
  }
  recorded_bytes = bytes;
  const kiln::StopScope building(&stop);
  PipelineRequest request = *pipeline;
  request.device = last_run.device.id;
  request.repeat = 1;
  request.timeout.reset();
  request.stop = nullptr;
  request.progress = nullptr;
  auto made = owner.runtime->record(std::move(request));
  if (!made || (*made)->device().id != last_run.device.id) return drop_recording();
  recorded = std::move(*made);
  recorded_at = kiln::Clock::now();
}

RunReport kiln_job::run_pipeline(const RunRequest& with) {
  const PipelineCheck check = described->has_reference() ? PipelineCheck::final : PipelineCheck::steps;
  pipeline->device = with.device;
  pipeline->check = with.verify ? check : PipelineCheck::none;
  const bool is_single = with.repeat <= 1 && !with.progress;
  const bool is_wanted = with.device.empty() || with.device == last_run.device.id;
  if (recorded != nullptr && kiln::Clock::now() - recorded_at > time_between_choices) drop_recording();
  const std::uint32_t enough = with.device.empty() ? runs_before_recording : 1;
  if (is_single && recorded == nullptr && is_wanted && runs_on_device >= enough) record_pipeline();
  if (is_single && recorded != nullptr) {
    RunReport replayed = owner.runtime->replay(*recorded, {with.timeout, with.stop});
    replayed.selected_because = last_run.selected_because;
    const StatusCode code = replayed.status.code;
    if (!replayed.status.ok()) drop_recording();
    const bool another_may_serve =
        code == StatusCode::unavailable || code == StatusCode::device_lost || code == StatusCode::unsupported;
    if (!another_may_serve) return replayed;
    fill_tensors();  // some results may have come back before the error
  }
  PipelineRequest once = *pipeline;
  once.repeat = with.repeat;
  once.timeout = with.timeout;
  once.stop = with.stop;
  once.progress = with.progress;
  RunReport ran = owner.runtime->run(once);
  const bool again = ran.status.ok() && runs_on_device != 0 && ran.device.id == last_run.device.id;
  runs_on_device = !ran.status.ok() ? 0 : again ? runs_on_device + 1 : 1;
  last_run = ran;
  return ran;
}

kiln_status* kiln_job_create(kiln_runtime* runtime, const char* name, kiln_job** job) {
  constexpr const char* function = "kiln_job_create";
  return guarded([&]() -> Status {
    if (job == nullptr) return null_argument(function, "job");
    *job = nullptr;
    if (Status status = check_runtime(function, runtime); !status.ok()) return status;
    if (name == nullptr) return null_argument(function, "name");
    auto* made = new kiln_job(*runtime);
    made->request.name = name;
    made->request.stop = &made->stop;
    *job = made;
    return {};
  });
}

void kiln_job_free(kiln_job* job) {
  if (job == nullptr || !job->owner.process.is_this()) return;  // a forked child cannot wait for its run
  job->stop = true;
  if (job->owner.log.runs_here()) return;  // a run may wait for this line
  if (JobScope::runs_here(*job)) {
    job->owner.log.log().write(
        LogLevel::error, "runtime",
        "kiln_job_free was called in a callback of job '" + job->request.name + "': the job is not freed");
    return;
  }
  {
    std::unique_lock lock(job->mutex);
    job->done.wait(lock, [&] { return job->state != kiln_job::State::running; });
  }
  // After a timeout the device may still use the memory of the application.
  const std::shared_ptr<BorrowedTensors> borrowed = job->borrowed;
  delete job;
  borrowed->wait_for_all();
}

kiln_status* kiln_job_device(kiln_job* job, const char* device) {
  return changed("kiln_job_device", job, [&](kiln_job& of) -> Status {
    if (device != nullptr && *device == '\0') {
      return invalid_argument("kiln_job_device: device: found an empty text, expected a device id, \"auto\" or NULL");
    }
    of.request.device = device == nullptr || std::string_view(device) == "auto" ? "" : device;
    return {};
  });
}

kiln_status* kiln_job_repeat(kiln_job* job, uint32_t runs) {
  return changed("kiln_job_repeat", job, [&](kiln_job& of) -> Status {
    if (runs == 0) return invalid_argument("kiln_job_repeat: 0 runs, expected at least 1");
    of.request.repeat = runs;
    return {};
  });
}

kiln_status* kiln_job_timeout(kiln_job* job, uint32_t milliseconds) {
  return changed("kiln_job_timeout", job, [&](kiln_job& of) -> Status {
    of.request.timeout.reset();
    if (milliseconds != 0) of.request.timeout = std::chrono::milliseconds(milliseconds);
    return {};
  });
}

kiln_status* kiln_job_progress(kiln_job* job, int (*progress)(void* user, uint32_t done, uint32_t of), void* user) {
  return changed("kiln_job_progress", job, [&](kiln_job& of) -> Status {
    of.request.progress = nullptr;
    if (progress != nullptr) {
      of.request.progress = [progress, user, &of](std::uint32_t done) {
        return progress(user, done, of.request.repeat) != 0;
      };
    }
    return {};
  });
}

kiln_status* kiln_job_verify(kiln_job* job, uint32_t verify) {
  return changed("kiln_job_verify", job, [&](kiln_job& of) -> Status {
    if (verify != 0 && of.is_kernel) {
      return unsupported("kiln_job_verify: a kernel of the application has no reference. Compare its output yourself");
    }
    of.request.verify = verify != 0;
    return {};
  });
}
