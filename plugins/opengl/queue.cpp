#include "queue.hpp"

#include <algorithm>
#include <string>

#include <kiln/clock.hpp>
#include <kiln/device.hpp>
#include <kiln/device_checks.hpp>

#include "codec/program_codec.hpp"

namespace kiln::opengl {
namespace {

// How long the context's thread sleeps in the driver while work is in flight and nothing else waits: a bound on how
// long a new closure waits, short beside the work that it would queue behind.
constexpr GLuint64 queue_slice_ns = 500'000;

constexpr std::uint64_t realignment_ns = 1'000'000'000;  // of the device's clock with the host's
constexpr std::size_t grid_bytes = 3 * sizeof(std::uint32_t);

}  // namespace

GlQueue::GlQueue(ContextGroup& group) : group_(group), fences_(group.native_fences()) {
  group_.execution().call([this] { group_.execution().set_pump([this](bool patient) { return pump(patient); }); });
}

GlQueue::~GlQueue() {
  const auto clear = [this] {
    group_.execution().set_pump({});
    const Gl& gl = group_.gl();
    const auto drop = [&gl](const Stamps& stamps) {
      const GLuint names[] = {stamps.begin, stamps.end};
      gl.DeleteQueries(2, names);
    };
    for (const InFlight& work : in_flight_) {
      gl.DeleteSync(work.fence);
      if (work.stamps) drop(*work.stamps);
    }
    std::ranges::for_each(spare_stamps_, drop);
    gl.DeleteBuffers(static_cast<GLsizei>(blocks_.size()), blocks_.data());
  };
  group_.execution().call(clear);
}

std::uint64_t GlQueue::submit(std::vector<BoundPass> passes) {
  group_.note_dispatch();
  const std::lock_guard lock(submit_mutex_);
  const std::uint64_t value = timeline_.begin();
  group_.execution().post([this, value, work = std::move(passes)] {
    try {
      issue(value, work);
    } catch (...) {
      timeline_.complete(value, caught());
    }
  });
  return value;
}

Result<FenceResult> GlQueue::wait(std::uint64_t value, Deadline deadline) { return timeline_.wait(value, deadline); }

Result<UniqueFd> GlQueue::export_fence(std::uint64_t value) {
  if (!fences_.supported()) return unsupported(group_.id() + ": the driver has no EGL_ANDROID_native_fence_sync");
  if (const std::uint64_t last = timeline_.last(); value == 0 || value > last) {
    return not_found(group_.id() + ": submission " + std::to_string(value) +
                     " does not exist, the last submission is " + std::to_string(last));
  }
  // The context's thread has issued the submission when it comes to this.
  auto fence = group_.execution().call([this]() -> Result<UniqueFd> {
    if (Status lost = group_.alive(); !lost.ok()) return lost;
    return fences_.make(group_.gl());
  });
  if (!fence) return std::move(fence).error().within(group_.id());
  return fence;
}

Status GlQueue::wait_for_fence(int sync_file) {
  if (!fences_.supported()) return unsupported(group_.id() + ": the driver has no EGL_ANDROID_native_fence_sync");
  return group_.execution().call([this, sync_file] { return fences_.wait(sync_file); }).within(group_.id());
}

void GlQueue::issue(std::uint64_t value, const std::vector<BoundPass>& passes) {
  if (Status lost = group_.alive(); !lost.ok()) {
    timeline_.complete(value, std::move(lost));
    return;
  }
  const Gl& gl = group_.gl();
  for (const BoundPass& pass : passes) {
    for (const BoundBuffer& buffer : pass.buffers) {
      if (buffer.shadow != nullptr) copy_in(gl, *buffer.shadow, buffer.name, buffer.bytes);
    }
  }
  // A later pass may read what an earlier one writes, so its textures are filled when it begins.
  if (Status status = fill_textures(passes.front()); !status.ok()) {
    timeline_.complete(value, std::move(status));
    return;
  }
  std::optional<Stamps> stamps;
  if (synchrony_.wants_stamps()) stamps = take_stamps();
  if (stamps) gl.QueryCounter(stamps->begin, GL_TIMESTAMP);
  const std::uint64_t begun = now_ns();
  Status filled;
  ReadGrids grids = make_grids(passes);
  std::size_t read = 0;
  for (std::size_t i = 0; i < passes.size() && filled.ok(); ++i) {
    if (i != 0 && passes[i].waits) wait_for_writes();
    if (i != 0) filled = fill_textures(passes[i]);
    if (!filled.ok()) break;
    if (passes[i].indirect) copy_grid(*passes[i].indirect, grids, read++);
    run(passes[i]);
  }
  wait_for_writes();
  const std::uint64_t host_ns = now_ns() - begun;
  if (stamps) gl.QueryCounter(stamps->end, GL_TIMESTAMP);
  copy_all_back(passes);
  // Reads through a mapping and copies that follow see what the passes wrote once the fence is passed.
  gl.MemoryBarrier(GL_CLIENT_MAPPED_BUFFER_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT);
  const GLsync fence = gl.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
  gl.Flush();  // a wait's own flush bit is not honoured by every driver
  Status status = filled.ok() ? group_.check("submission " + std::to_string(value)) : std::move(filled);
  if (status.ok() && fence == nullptr) status = internal_error(group_.id() + ": glFenceSync returned no fence");
  if (!status.ok()) {
    if (fence != nullptr) gl.DeleteSync(fence);
    if (stamps) spare_stamps_.push_back(*stamps);
    if (grids.copies != 0) gl.DeleteBuffers(1, &grids.copies);
    timeline_.complete(value, std::move(status));
    return;
  }
  in_flight_.push_back({value, fence, stamps, begun, host_ns, std::move(grids)});
}

void GlQueue::wait_for_writes() {
  group_.gl().MemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT | GL_TEXTURE_FETCH_BARRIER_BIT |
                            GL_SHADER_IMAGE_ACCESS_BARRIER_BIT | GL_UNIFORM_BARRIER_BIT | GL_PIXEL_BUFFER_BARRIER_BIT |
                            GL_ATOMIC_COUNTER_BARRIER_BIT);
}

void GlQueue::run(const BoundPass& pass) {
  const Gl& gl = group_.gl();
  unbind_views(pass);
  if (pass.grid == PassLaunch::nothing) return dispatch_nothing(gl, pass.program);
  gl.UseProgram(pass.program);
  for (const auto& [block, point] : pass.blocks) gl.ShaderStorageBlockBinding(pass.program, block, point);
  for (const BoundUniform& bound : pass.uniforms) {
    set_uniform(gl, pass.program, bound.uniform, bound.components.data());
  }
  bind_resources(pass);
  GLuint index = 0;
  for (const BoundBuffer& buffer : pass.buffers) {
    if (buffer.view == View::uniforms || buffer.view == View::pixels) {
      ++index;
    } else if (buffer.view == View::storage) {
      gl.BindBufferRange(GL_SHADER_STORAGE_BUFFER, index++, buffer.name, 0, buffer.bytes);
    } else {
      buffer.texels->bind(gl, index++, buffer.view, buffer.name, buffer.bytes);
    }
  }
  // A kernel that reaches beyond its bindings must not find the buffers of the one before.
  for (; index < bound_; ++index) gl.BindBufferBase(GL_SHADER_STORAGE_BUFFER, index, 0);
  bound_ = pass.buffers.size();
  if (pass.indirect) {
    gl.BindBuffer(GL_DISPATCH_INDIRECT_BUFFER, pass.indirect->buffer);
    gl.DispatchComputeIndirect(pass.indirect->offset);
    gl.BindBuffer(GL_DISPATCH_INDIRECT_BUFFER, 0);
  } else {
    gl.DispatchCompute(pass.grid[0], pass.grid[1], pass.grid[2]);
  }
  release_textures(pass);
}

GlQueue::ReadGrids GlQueue::make_grids(const std::vector<BoundPass>& passes) {
  ReadGrids grids;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (passes[i].indirect) grids.passes.emplace_back(i, *passes[i].indirect);
  }
  if (grids.passes.empty()) return grids;
  const Gl& gl = group_.gl();
  gl.GenBuffers(1, &grids.copies);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, grids.copies);
  gl.BufferData(GL_COPY_WRITE_BUFFER, static_cast<GLsizeiptr>(grids.passes.size() * grid_bytes), nullptr,
                GL_STREAM_READ);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, 0);
  return grids;
}

void GlQueue::copy_grid(const BoundGrid& grid, const ReadGrids& grids, std::size_t at) {
  const Gl& gl = group_.gl();
  gl.MemoryBarrier(GL_COMMAND_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT);
  gl.BindBuffer(GL_COPY_READ_BUFFER, grid.buffer);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, grids.copies);
  gl.CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, grid.offset, static_cast<GLintptr>(at * grid_bytes),
                       grid_bytes);
  gl.BindBuffer(GL_COPY_READ_BUFFER, 0);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, 0);
}

Status GlQueue::check_grids(const ReadGrids& grids) {
  if (grids.passes.empty()) return {};
  const Gl& gl = group_.gl();
  std::vector<std::array<std::uint32_t, 3>> counts(grids.passes.size());
  gl.BindBuffer(GL_COPY_READ_BUFFER, grids.copies);
  gl.GetBufferSubData(GL_COPY_READ_BUFFER, 0, static_cast<GLsizeiptr>(counts.size() * grid_bytes), counts.data());
  gl.BindBuffer(GL_COPY_READ_BUFFER, 0);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto& [pass, grid] = grids.passes[i];
    if (Status status = check_counts(pass, counts[i], grid.most); !status.ok()) return status;
  }
  return {};
}

Status GlQueue::fill_textures(const BoundPass& pass) {
  for (const BoundTexture& bound : pass.textures) {
    Status status = bound.texture().fill(group_.gl(), bound.uniform.target, bound.form, bound.source->name(), bound.bytes);
    if (!status.ok()) return status;
  }
  return {};
}

void GlQueue::bind_resources(const BoundPass& pass) {
  const Gl& gl = group_.gl();
  for (const BoundTexture& bound : pass.textures) {
    if (bound.image) {
      bound.texture().bind_image(gl, bound.uniform.unit);
    } else {
      bound.texture().bind_sampler(gl, bound.uniform.unit);
    }
  }
  GLuint point = 0;
  std::size_t filled = 0;  // of blocks_
  for (const BoundBlock& block : pass.uniform_blocks) {
    gl.UniformBlockBinding(pass.program, block.block, point);
    if (block.values.empty()) {
      gl.BindBufferRange(GL_UNIFORM_BUFFER, point++, block.buffer, 0, block.bytes);
      continue;
    }
    if (filled == blocks_.size()) gl.GenBuffers(1, &blocks_.emplace_back(0));
    // Bound to the context's own target too, where it is filled.
    gl.BindBufferBase(GL_UNIFORM_BUFFER, point++, blocks_[filled++]);
    gl.BufferData(GL_UNIFORM_BUFFER, static_cast<GLsizeiptr>(block.values.size()), block.values.data(), GL_STREAM_DRAW);
  }
  for (const BoundCounter& counter : pass.counters) {
    gl.BindBufferRange(GL_ATOMIC_COUNTER_BUFFER, counter.point, counter.buffer, 0, counter.bytes);
  }
}

// Copies what the pass wrote into the buffers. No texture stays bound: a driver may compile the next program anew for
// what it finds.
void GlQueue::release_textures(const BoundPass& pass) {
  if (pass.textures.empty() && pass.counters.empty()) return;
  const Gl& gl = group_.gl();
  gl.MemoryBarrier(GL_TEXTURE_UPDATE_BARRIER_BIT | GL_ATOMIC_COUNTER_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT);
  for (const BoundTexture& bound : pass.textures) {
    const GLuint unit = bound.uniform.unit;
    bound.texture().unbind(gl, bound.image ? unit : GL_INVALID_INDEX, bound.image ? GL_INVALID_INDEX : unit);
  }
  for (const BoundTexture& bound : pass.textures) {
    if (bound.form.access != Access::read) bound.texture().read_back(gl, bound.source->name());
  }
  for (const BoundCounter& counter : pass.counters) gl.BindBufferBase(GL_ATOMIC_COUNTER_BUFFER, counter.point, 0);
}

// A driver may compile a program anew for the views that it finds bound, so none of the pass before may stay.
void GlQueue::unbind_views(const BoundPass& pass) {
  for (GLuint unit = 0; unit < viewed_.size(); ++unit) {
    const bool again = unit < pass.buffers.size() && pass.buffers[unit].view == viewed_[unit];
    if (!again) TexelView::unbind(group_.gl(), unit, viewed_[unit]);
  }
  viewed_.clear();
  for (const BoundBuffer& buffer : pass.buffers) viewed_.push_back(buffer.view);
}

// What the host will read is on its way before the next dispatch begins.
void GlQueue::copy_all_back(const std::vector<BoundPass>& passes) {
  const Gl& gl = group_.gl();
  bool barred = false;
  for (std::size_t pass = 0; pass < passes.size(); ++pass) {
    for (const BoundBuffer& buffer : passes[pass].buffers) {
      if (buffer.shadow == nullptr || !buffer.shadow->comes_back) continue;
      const auto later = std::any_of(passes.begin() + static_cast<std::ptrdiff_t>(pass) + 1, passes.end(),
                                     [&](const BoundPass& other) {
                                       return std::any_of(other.buffers.begin(), other.buffers.end(),
                                                          [&](const BoundBuffer& b) { return b.name == buffer.name; });
                                     });
      if (later) continue;  // once, for the last pass that binds it
      if (!barred) gl.MemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
      barred = true;
      copy_back(gl, *buffer.shadow, buffer.name, buffer.bytes);
    }
  }
}

ContextThread::Pump GlQueue::pump(bool patient) {
  const Gl& gl = group_.gl();
  while (!in_flight_.empty()) {
    switch (gl.ClientWaitSync(in_flight_.front().fence, GL_SYNC_FLUSH_COMMANDS_BIT, patient ? queue_slice_ns : 0)) {
      case GL_ALREADY_SIGNALED:
      case GL_CONDITION_SATISFIED: {
        Status status = group_.check("submission " + std::to_string(in_flight_.front().value));
        if (status.ok()) status = check_grids(in_flight_.front().grids);
        // Only then the stamps: Mesa may end the process by SIGSEGV where those of a lost device are read.
        retire(status.ok() ? Result<FenceResult>(time_of(in_flight_.front())) : Result<FenceResult>(std::move(status)));
        break;
      }
      case GL_TIMEOUT_EXPIRED: {
        // A device that hangs never signals: the reset status is what tells.
        Status status = patient ? group_.check("waiting for a fence") : ok_status();
        if (status.ok()) return ContextThread::Pump::busy;
        retire(std::move(status));
        break;
      }
      default: {  // GL_WAIT_FAILED
        Status status = group_.check("glClientWaitSync");
        retire(status.ok() ? internal_error(group_.id() + ": glClientWaitSync failed without an error")
                           : std::move(status));
        break;
      }
    }
  }
  return ContextThread::Pump::idle;
}

void GlQueue::retire(Result<FenceResult> result) {
  const InFlight work = std::move(in_flight_.front());
  in_flight_.pop_front();
  group_.gl().DeleteSync(work.fence);
  if (work.grids.copies != 0) group_.gl().DeleteBuffers(1, &work.grids.copies);
  timeline_.complete(work.value, std::move(result));
  if (work.stamps) spare_stamps_.push_back(*work.stamps);
}

GlQueue::Stamps GlQueue::take_stamps() {
  if (!spare_stamps_.empty()) {
    const Stamps stamps = spare_stamps_.back();
    spare_stamps_.pop_back();
    return stamps;
  }
  GLuint names[2] = {0, 0};
  group_.gl().GenQueries(2, names);
  return {names[0], names[1]};
}

FenceResult GlQueue::time_of(const InFlight& work) {
  if (!work.stamps) return {work.host_ns, work.begun_ns};
  GLuint64 begin = 0;
  GLuint64 end = 0;
  group_.gl().GetQueryObjectui64v(work.stamps->begin, GL_QUERY_RESULT, &begin);
  group_.gl().GetQueryObjectui64v(work.stamps->end, GL_QUERY_RESULT, &end);
  const std::uint64_t device_ns = end > begin ? end - begin : 0;
  synchrony_.compare(device_ns, work.host_ns);
  return {device_ns, begin != 0 ? on_host_clock(begin) : 0};
}

// The two clocks may drift apart: they are compared anew every second.
std::uint64_t GlQueue::on_host_clock(GLuint64 stamp) {
  const std::uint64_t now = now_ns();
  if (aligned_at_ns_ == 0 || now > aligned_at_ns_ + realignment_ns) {
    GLint64 device_now = 0;
    group_.gl().GetInteger64v(GL_TIMESTAMP, &device_now);
    const std::uint64_t after = now_ns();
    device_ahead_ns_ = device_now - static_cast<std::int64_t>(now + (after - now) / 2);
    aligned_at_ns_ = now;
  }
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(stamp) - device_ahead_ns_);
}

void dispatch_nothing(const Gl& gl, GLuint program) {
  constexpr GLuint no_workgroups[] = {0, 0, 0};
  GLuint buffer = 0;
  gl.GenBuffers(1, &buffer);
  gl.BindBuffer(GL_DISPATCH_INDIRECT_BUFFER, buffer);
  gl.BufferData(GL_DISPATCH_INDIRECT_BUFFER, sizeof no_workgroups, no_workgroups, GL_STATIC_DRAW);
  gl.UseProgram(program);
  gl.DispatchComputeIndirect(0);
  gl.Finish();
  gl.UseProgram(0);
  gl.BindBuffer(GL_DISPATCH_INDIRECT_BUFFER, 0);
  gl.DeleteBuffers(1, &buffer);
}

std::uint64_t Timeline::begin() {
  const std::lock_guard lock(mutex_);
  results_.emplace(++last_, std::nullopt);
  return last_;
}

std::uint64_t Timeline::last() {
  const std::lock_guard lock(mutex_);
  return last_;
}

void Timeline::complete(std::uint64_t value, Result<FenceResult> result) {
  {
    const std::lock_guard lock(mutex_);
    results_[value] = std::move(result);
  }
  completed(value).notify_all();
}

Result<FenceResult> Timeline::wait(std::uint64_t value, Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto at = results_.find(value);
    if (at == results_.end()) {
      return not_found("submission " + std::to_string(value) +
                       (value == 0 || value > last_ ? " does not exist, the last submission is " + std::to_string(last_)
                                                    : std::string(": the result was already taken")));
    }
    if (at->second) {
      Result<FenceResult> result = *std::move(at->second);
      results_.erase(at);
      return result;
    }
    if (deadline.passed()) {
      return timed_out("submission " + std::to_string(value) +
                       ": not finished by its deadline; it may still be running");
    }
    // An endless deadline is not handed to wait_until: its conversion to the condition's clock could overflow.
    if (deadline.at == Clock::time_point::max()) {
      completed(value).wait(lock);
    } else {
      completed(value).wait_until(lock, deadline.at);
    }
  }
}

}  // namespace kiln::opengl
