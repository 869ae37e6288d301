#include "conv/contestants.hpp"

#include <pthreadpool.h>
#include <xnnpack.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace kiln::bench {
namespace {

void need(xnn_status status, const char* doing) {
  if (status != xnn_status_success) {
    throw std::runtime_error(std::string("XNNPACK: ") + doing + ": status " + std::to_string(status));
  }
}

// [outer][middle][inner] to [outer][inner][middle].
std::vector<float> turned(std::span<const float> from, std::int64_t outer, std::int64_t middle, std::int64_t inner) {
  std::vector<float> to(from.size());
  std::size_t at = 0;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      for (std::int64_t m = 0; m < middle; ++m) to[at++] = from[static_cast<std::size_t>((o * middle + m) * inner + i)];
    }
  }
  return to;
}

class Xnnpack final : public Contestant {
 public:
  explicit Xnnpack(const Problem& problem)
      : spec_(std::get<Conv2dSpec>(problem.spec)), threads_(pthreadpool_create(0)) {
    need(xnn_initialize(nullptr), "starting");
    const auto n = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    const bool depthwise = spec_.groups > 1 && spec_.groups == spec_.c;
    const std::int64_t taps = spec_.r * spec_.s;
    // Weights [k][r][s][c/groups]; of a depthwise one [r][s][k].
    const std::vector<float> weights = depthwise
                                           ? turned(problem.weights.values, 1, spec_.k, taps)
                                           : turned(problem.weights.values, spec_.k, spec_.c / spec_.groups, taps);
    // It reads some bytes behind its input's end.
    input_ = turned(problem.input.values, spec_.n, spec_.c, spec_.h * spec_.w);
    input_.resize(input_.size() + XNN_EXTRA_BYTES / sizeof(float));
    output_.resize(size(spec_.n * spec_.k * spec_.out_h() * spec_.out_w()));
    constexpr float infinity = std::numeric_limits<float>::infinity();
    need(xnn_create_convolution2d_nhwc_f32(
             n(spec_.pad_y), n(spec_.pad_x), n(spec_.pad_y), n(spec_.pad_x), n(spec_.r), n(spec_.s), n(spec_.stride_y),
             n(spec_.stride_x), n(spec_.dilation_y), n(spec_.dilation_x), n(spec_.groups), size(spec_.c / spec_.groups),
             size(spec_.k / spec_.groups), size(spec_.c), size(spec_.k), weights.data(), nullptr, -infinity, infinity,
             depthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0, &operator_),
         "creating a convolution");
    need(xnn_setup_convolution2d_nhwc_f32(operator_, size(spec_.n), size(spec_.h), size(spec_.w), input_.data(),
                                          output_.data(), threads_.get()),
         "setting it up");
  }
  ~Xnnpack() override { xnn_delete_operator(operator_); }

  void run() override { need(xnn_run_operator(operator_, threads_.get()), "running"); }
  void poison() override { std::ranges::fill(output_, std::numeric_limits<float>::quiet_NaN()); }
  std::vector<float> output() override { return turned(output_, spec_.n, spec_.out_h() * spec_.out_w(), spec_.k); }

 private:
  struct Destroy {
    void operator()(pthreadpool* pool) const noexcept { pthreadpool_destroy(pool); }
  };
  Conv2dSpec spec_;
  std::unique_ptr<pthreadpool, Destroy> threads_;
  std::vector<float> input_, output_;
  xnn_operator_t operator_ = nullptr;
};

}  // namespace

std::unique_ptr<Contestant> make_xnnpack(const Problem& problem) { return std::make_unique<Xnnpack>(problem); }
std::optional<std::string> xnnpack_version() { return KILN_XNNPACK_VERSION; }

}  // namespace kiln::bench
