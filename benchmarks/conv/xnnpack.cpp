#include "conv/network.hpp"

#include <pthreadpool.h>
#include <xnnpack.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>

#include <oneapi/dnnl/dnnl.hpp>

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

struct Destroy {
  void operator()(pthreadpool* pool) const noexcept { pthreadpool_destroy(pool); }
};
using Threads = std::unique_ptr<pthreadpool, Destroy>;

// XNNPACK knows NHWC only. A tensor's reorder by oneDNN, on all cores.
class Reorder {
 public:
  Reorder(const Shape& shape, float* from, dnnl::memory::format_tag lies, float* to, dnnl::memory::format_tag wanted)
      : from_({shape, dnnl::memory::data_type::f32, lies}, engine_, from),
        to_({shape, dnnl::memory::data_type::f32, wanted}, engine_, to),
        reorder_(from_, to_) {}
  void run() {
    reorder_.execute(stream_, from_, to_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::memory from_, to_;
  dnnl::reorder reorder_;
};

class Xnnpack final : public Contestant {
 public:
  explicit Xnnpack(const Problem& problem)
      : spec_(std::get<Conv2dSpec>(problem.spec)), threads_(pthreadpool_create(0)) {
    using Tag = dnnl::memory::format_tag;
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
    const std::span<float> values = problem.input.values;
    input_.resize(values.size() + XNN_EXTRA_BYTES / sizeof(float));
    const Shape results{spec_.n, spec_.k, spec_.out_h(), spec_.out_w()};
    nhwc_output_.resize(size(spec_.n * spec_.k * spec_.out_h() * spec_.out_w()));
    output_.resize(nhwc_output_.size());
    to_nhwc_.emplace(Shape{spec_.n, spec_.c, spec_.h, spec_.w}, values.data(), Tag::nchw, input_.data(), Tag::nhwc);
    to_nchw_.emplace(results, nhwc_output_.data(), Tag::nhwc, output_.data(), Tag::nchw);
    constexpr float infinity = std::numeric_limits<float>::infinity();
    need(xnn_create_convolution2d_nhwc_f32(
             n(spec_.pad_y), n(spec_.pad_x), n(spec_.pad_y), n(spec_.pad_x), n(spec_.r), n(spec_.s), n(spec_.stride_y),
             n(spec_.stride_x), n(spec_.dilation_y), n(spec_.dilation_x), n(spec_.groups), size(spec_.c / spec_.groups),
             size(spec_.k / spec_.groups), size(spec_.c), size(spec_.k), weights.data(), nullptr, -infinity, infinity,
             depthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0, &operator_),
         "creating a convolution");
    need(xnn_setup_convolution2d_nhwc_f32(operator_, size(spec_.n), size(spec_.h), size(spec_.w), input_.data(),
                                          nhwc_output_.data(), threads_.get()),
         "setting it up");
  }
  ~Xnnpack() override { xnn_delete_operator(operator_); }

  void run() override {
    to_nhwc_->run();
    need(xnn_run_operator(operator_, threads_.get()), "running");
    to_nchw_->run();
  }
  void poison() override {
    std::ranges::fill(nhwc_output_, std::numeric_limits<float>::quiet_NaN());
    std::ranges::fill(output_, std::numeric_limits<float>::quiet_NaN());
  }
  std::vector<float> output() override { return output_; }

 private:
  Conv2dSpec spec_;
  Threads threads_;
  std::vector<float> input_, nhwc_output_, output_;
  std::optional<Reorder> to_nhwc_, to_nchw_;
  xnn_operator_t operator_ = nullptr;
};

class XnnpackNetwork final : public Contestant {
 public:
  explicit XnnpackNetwork(const Network& network) : network_(network), threads_(pthreadpool_create(0)) {
    need(xnn_initialize(nullptr), "starting");
    const Shape& image = network.shape(network.image);
    lay(network.image) = turned(network.pixels, image[0], image[1], image[2] * image[3]);
    values_.at(network.image).resize(network.pixels.size() + XNN_EXTRA_BYTES / sizeof(float));
    for (const NetworkStep& step : network.steps) {
      std::visit([&](const auto& spec) { add(step, spec); }, step.spec);
    }
  }
  ~XnnpackNetwork() override {
    for (xnn_operator_t each : operators_) xnn_delete_operator(each);
  }

  void run() override {
    for (xnn_operator_t each : operators_) need(xnn_run_operator(each, threads_.get()), "running");
  }
  void poison() override { std::ranges::fill(values_.at(network_.result), std::numeric_limits<float>::quiet_NaN()); }
  std::vector<float> output() override {
    std::vector<float> values = values_.at(network_.result);
    values.resize(values.size() - XNN_EXTRA_BYTES / sizeof(float));
    const Shape& shape = network_.shape(network_.result);
    return shape.size() == 4 ? turned(values, shape[0], shape[2] * shape[3], shape[1]) : values;
  }

 private:
  static constexpr float infinity = std::numeric_limits<float>::infinity();
  static std::uint32_t n(std::int64_t value) { return static_cast<std::uint32_t>(value); }
  static std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }
  static float least(Activation of) { return of == Activation::none ? -infinity : 0; }
  static float most(Activation of) { return of == Activation::relu6 ? 6 : infinity; }

  // NHWC; operators read some bytes behind the end.
  std::vector<float>& lay(const std::string& tensor) {
    std::vector<float>& values = values_[tensor];
    std::size_t elements = 1;
    for (const std::int64_t extent : network_.shape(tensor)) elements *= size(extent);
    values.resize(elements + XNN_EXTRA_BYTES / sizeof(float));
    return values;
  }
  const float* in(const NetworkStep& step, std::size_t at = 0) { return values_.at(step.inputs[at]).data(); }
  xnn_operator_t made(xnn_status status, xnn_operator_t made, const NetworkStep& step) {
    need(status, ("creating " + step.name).c_str());
    operators_.push_back(made);
    return made;
  }

  void add(const NetworkStep& step, const Conv2dSpec& spec) {
    const bool depthwise = spec.groups > 1 && spec.groups == spec.c;
    const std::vector<float> weights = depthwise ? turned(step.weights, 1, spec.k, spec.r * spec.s)
                                                 : turned(step.weights, spec.k, spec.c / spec.groups, spec.r * spec.s);
    xnn_operator_t convolution = nullptr;
    const xnn_status status = xnn_create_convolution2d_nhwc_f32(
        n(spec.pad_y), n(spec.pad_x), n(spec.pad_y), n(spec.pad_x), n(spec.r), n(spec.s), n(spec.stride_y),
        n(spec.stride_x), n(spec.dilation_y), n(spec.dilation_x), n(spec.groups), size(spec.c / spec.groups),
        size(spec.k / spec.groups), size(spec.c), size(spec.k), weights.data(), step.bias.data(),
        least(spec.activation), most(spec.activation), depthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0, &convolution);
    need(xnn_setup_convolution2d_nhwc_f32(made(status, convolution, step), size(spec.n), size(spec.h), size(spec.w),
                                          in(step), lay(step.output).data(), threads_.get()),
         "setting a convolution up");
  }
  void add(const NetworkStep& step, const AddSpec& spec) {
    const std::size_t shape = lay(step.output).size() - XNN_EXTRA_BYTES / sizeof(float);
    xnn_operator_t sum = nullptr;
    const xnn_status status = xnn_create_add_nd_f32(least(spec.activation), most(spec.activation), 0, &sum);
    need(xnn_setup_add_nd_f32(made(status, sum, step), 1, &shape, 1, &shape, in(step), in(step, 1),
                              lay(step.output).data(), threads_.get()),
         "setting a sum up");
  }
  void add(const NetworkStep& step, const Pool2dSpec& spec) {
    xnn_operator_t pool = nullptr;
    if (spec.kind == PoolKind::maximum) {
      const xnn_status status = xnn_create_max_pooling2d_nhwc_f32(
          n(spec.pad_y), n(spec.pad_x), n(spec.pad_y), n(spec.pad_x), n(spec.r), n(spec.s), n(spec.stride_y),
          n(spec.stride_x), 1, 1, size(spec.c), size(spec.c), size(spec.c), -infinity, infinity, 0, &pool);
      need(xnn_setup_max_pooling2d_nhwc_f32(made(status, pool, step), size(spec.n), size(spec.h), size(spec.w),
                                            in(step), lay(step.output).data(), threads_.get()),
           "setting a pool up");
      return;
    }
    if (spec.r != spec.h || spec.s != spec.w) throw std::runtime_error(step.name + ": expected a global average");
    const xnn_status status = xnn_create_global_average_pooling_nwc_f32(size(spec.c), size(spec.c), size(spec.c),
                                                                        -infinity, infinity, 0, &pool);
    need(xnn_setup_global_average_pooling_nwc_f32(made(status, pool, step), size(spec.n), size(spec.h * spec.w),
                                                  in(step), lay(step.output).data(), threads_.get()),
         "setting a pool up");
  }
  void add(const NetworkStep& step, const GemmSpec& spec) {
    // The rows of the weights in the order of the input, whose channels are innermost here.
    const Shape& from = network_.shape(step.inputs[0]);
    const std::int64_t pixels = from.size() == 4 ? from[2] * from[3] : 1, channels = spec.k / pixels;
    std::vector<float> weights(step.weights.size());
    for (std::int64_t row = 0; row < spec.k; ++row) {
      const std::int64_t lies = row % channels * pixels + row / channels;
      std::ranges::copy(step.weights.subspan(size(lies * spec.n), size(spec.n)), weights.begin() + row * spec.n);
    }
    xnn_operator_t product = nullptr;
    const xnn_status status = xnn_create_fully_connected_nc_f32(
        size(spec.k), size(spec.n), size(spec.k), size(spec.n), weights.data(), step.bias.data(),
        least(spec.activation), most(spec.activation), XNN_FLAG_TRANSPOSE_WEIGHTS, &product);
    need(xnn_setup_fully_connected_nc_f32(made(status, product, step), size(spec.m), in(step), lay(step.output).data(),
                                          threads_.get()),
         "setting a product up");
  }
  void add(const NetworkStep& step, const SoftmaxSpec& spec) {
    const Shape shape = shape_of(spec.shape);
    xnn_operator_t softmax = nullptr;
    const xnn_status status =
        xnn_create_softmax_nc_f32(size(shape.back()), size(shape.back()), size(shape.back()), 0, &softmax);
    const std::size_t elements = lay(step.output).size() - XNN_EXTRA_BYTES / sizeof(float);
    need(xnn_setup_softmax_nc_f32(made(status, softmax, step), elements / size(shape.back()), in(step),
                                  lay(step.output).data(), threads_.get()),
         "setting a softmax up");
  }
  template <class Spec>
  void add(const NetworkStep& step, const Spec&) {
    throw std::runtime_error(step.name + ": XNNPACK's side has no " + std::string(operation(step.spec)));
  }

  const Network& network_;
  Threads threads_;
  std::map<std::string, std::vector<float>> values_;
  std::vector<xnn_operator_t> operators_;
};

}  // namespace

std::unique_ptr<Contestant> make_xnnpack(const Problem& problem) { return std::make_unique<Xnnpack>(problem); }
std::unique_ptr<Contestant> make_xnnpack_network(const Network& network) {
  return std::make_unique<XnnpackNetwork>(network);
}
std::optional<std::string> xnnpack_version() { return KILN_XNNPACK_VERSION; }

}  // namespace kiln::bench
