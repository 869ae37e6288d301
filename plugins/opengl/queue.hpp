// The queue of a device, its timeline, and the dispatch over no workgroups.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <kiln/device.hpp>

#include "buffer.hpp"
#include "codec/context.hpp"
#include "codec/reflection.hpp"
#include "context_group.hpp"
#include "egl.hpp"
#include "synchrony.hpp"

namespace kiln::opengl {

// Timeline: the values of one device's queue and their results.
//
// Thread-safety: every method from any thread. Ownership: holds results by value until they are taken, once each; one
// that nobody takes stays until the timeline goes.
class Timeline {
 public:
  // The next value, from 1; its result is pending.
  std::uint64_t begin();
  void complete(std::uint64_t value, Result<FenceResult> result);
  // timeout: not complete by the deadline. not_found: never begun, or taken already.
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline);
  std::uint64_t last();

 private:
  std::condition_variable& completed(std::uint64_t value) { return completed_[value % completed_.size()]; }

  std::mutex mutex_;
  std::array<std::condition_variable, 16> completed_;  // several, so that few waiters wake for another's value
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::optional<Result<FenceResult>>> results_;  // nullopt: pending
};

// GlQueue: dispatches in order on the context that runs them, each with a fence and a pair of timestamps.
//
// Thread-safety: submit() and wait() from any thread. Ownership: borrows the group, which outlives it; it is destroyed
// on any thread but the group's. Fences are watched by the context's own thread, in short slices between other
// closures, so a waiting caller holds nothing up. On llvmpipe the dispatch call itself takes as long as the work: that,
// too, is the context's thread and never the caller's.

struct BoundBuffer {
  GLuint name = 0;
  GLsizeiptr bytes = 0;
  Shadow* shadow = nullptr;  // lives as long as the buffer, which outlives its dispatches
  View view = View::storage;
  TexelView* texels = nullptr;  // the buffer's, where the view is not storage
};

struct BoundUniform {
  PlainUniform uniform;
  std::vector<std::byte> components;
};

struct BoundTexture {
  TextureUniform uniform;
  bool image = false;  // else a sampler
  TextureSource form;
  GLsizeiptr bytes = 0;
  GlBuffer* source = nullptr;
  std::size_t form_number = 0;  // among the forms that the pass has the buffer in

  bool has_form_of(const BoundTexture& other) const {
    return source == other.source && uniform.target == other.uniform.target && form == other.form;
  }
  PixelTexture& texture() const { return source->pixels(form_number); }
};

struct BoundBlock {  // a uniform block
  GLuint block = 0;
  std::vector<std::byte> values;  // empty: those of the buffer
  GLuint buffer = 0;
  GLsizeiptr bytes = 0;
};

struct BoundCounter {  // a buffer of atomic counters
  GLuint point = 0, buffer = 0;
  GLsizeiptr bytes = 0;
};

struct BoundGrid {  // read from a buffer
  GLuint buffer = 0;
  GLintptr offset = 0;
  std::array<std::uint32_t, 3> most{};  // DeviceInfo::max_grid
};

struct BoundPass {
  GLuint program = 0;
  std::vector<BoundBuffer> buffers;  // by binding index
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  bool waits = true;                                // as PassLaunch::waits
  std::vector<std::pair<GLuint, GLuint>> blocks{};  // storage blocks and the binding points to give them
  std::vector<BoundUniform> uniforms{};
  std::vector<BoundTexture> textures{};
  std::vector<BoundBlock> uniform_blocks{};
  std::vector<BoundCounter> counters{};
  std::optional<BoundGrid> indirect{};  // instead of `grid`
};

class GlQueue {
 public:
  explicit GlQueue(ContextGroup& group);
  GlQueue(const GlQueue&) = delete;
  GlQueue& operator=(const GlQueue&) = delete;
  ~GlQueue();

  std::uint64_t submit(std::vector<BoundPass> passes);
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline);
  // As in FenceExchange.
  Result<UniqueFd> export_fence(std::uint64_t value);
  Status wait_for_fence(int sync_file);

 private:
  struct Stamps {
    GLuint begin = 0;
    GLuint end = 0;
  };
  // The counts that passes with a BoundGrid read, copied for the host: OpenGL does not check them.
  struct ReadGrids {
    GLuint copies = 0;  // a buffer of three uint32 for each
    std::vector<std::pair<std::size_t, BoundGrid>> passes;
  };
  struct InFlight {
    std::uint64_t value = 0;
    GLsync fence = nullptr;
    std::optional<Stamps> stamps;  // absent: host_ns stands for the device's time
    std::uint64_t begun_ns = 0;    // by the host's clock, as is host_ns
    std::uint64_t host_ns = 0;
    ReadGrids grids{};
  };

  // On the context's thread.
  void issue(std::uint64_t value, const std::vector<BoundPass>& passes);
  void unbind_views(const BoundPass& pass);
  void run(const BoundPass& pass);
  ReadGrids make_grids(const std::vector<BoundPass>& passes);
  void copy_grid(const BoundGrid& grid, const ReadGrids& grids, std::size_t at);
  Status check_grids(const ReadGrids& grids);
  void wait_for_writes();
  Status fill_textures(const BoundPass& pass);
  void bind_resources(const BoundPass& pass);
  void release_textures(const BoundPass& pass);
  void copy_all_back(const std::vector<BoundPass>& passes);
  ContextThread::Pump pump(bool patient);
  void retire(Result<FenceResult> result);
  Stamps take_stamps();
  FenceResult time_of(const InFlight& work);
  std::uint64_t on_host_clock(GLuint64 stamp);

  ContextGroup& group_;
  const NativeFences fences_;
  Timeline timeline_;
  std::mutex submit_mutex_;  // values are posted in the order in which they are given
  std::deque<InFlight> in_flight_;
  std::vector<Stamps> spare_stamps_;
  Synchrony synchrony_;
  std::vector<View> viewed_;          // how the pass before saw what it bound, by binding index
  std::vector<GLuint> blocks_;        // buffers for the values of uniform blocks, in the order of a pass
  std::size_t bound_ = 0;             // binding indices in use by the pass before
  std::uint64_t aligned_at_ns_ = 0;   // when the two clocks were last compared; 0: never
  std::int64_t device_ahead_ns_ = 0;  // of the device's clock
};

// dispatch_nothing: a program's dispatch over no workgroups, which makes a driver do what it leaves until the first
// one.
//
// Indirect, because a driver may return from a direct dispatch over nothing at once; it learns of an indirect one only
// after it has made its machine code. Thread-safety: on a context's thread; waits until the driver is done.
void dispatch_nothing(const Gl& gl, GLuint program);

}  // namespace kiln::opengl
