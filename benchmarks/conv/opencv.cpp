#include "conv/network.hpp"

#include <algorithm>
#include <limits>
#include <opencv2/core/version.hpp>
#include <opencv2/dnn.hpp>

namespace kiln::bench {
namespace {

template <class Integer>
int whole(Integer value) {
  return static_cast<int>(value);
}

// What a convolution and a pool have in common.
template <class Spec>
cv::dnn::LayerParams window(const Spec& spec) {
  cv::dnn::LayerParams layer;
  layer.set("kernel_h", whole(spec.r));
  layer.set("kernel_w", whole(spec.s));
  layer.set("stride_h", whole(spec.stride_y));
  layer.set("stride_w", whole(spec.stride_x));
  layer.set("pad_h", whole(spec.pad_y));
  layer.set("pad_w", whole(spec.pad_x));
  return layer;
}

cv::dnn::LayerParams convolution(const Conv2dSpec& spec) {
  cv::dnn::LayerParams layer = window(spec);
  layer.set("dilation_h", whole(spec.dilation_y));
  layer.set("dilation_w", whole(spec.dilation_x));
  layer.set("num_output", whole(spec.k));
  layer.set("group", whole(spec.groups));
  return layer;
}

class OpenCv final : public Contestant {
 public:
  explicit OpenCv(const Problem& problem) : spec_(std::get<Conv2dSpec>(problem.spec)) {
    cv::dnn::LayerParams layer = convolution(spec_);
    layer.name = layer.type = "Convolution";
    layer.set("bias_term", false);
    const int of_weights[] = {whole(spec_.k), whole(spec_.c / spec_.groups), whole(spec_.r), whole(spec_.s)};
    layer.blobs.push_back(cv::Mat(4, of_weights, CV_32F, problem.weights.values.data()).clone());
    network_.addLayerToPrev(layer.name, layer.type, layer);
    network_.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
    network_.setPreferableTarget(cv::dnn::DNN_TARGET_CPU);
    const int of_input[] = {whole(spec_.n), whole(spec_.c), whole(spec_.h), whole(spec_.w)};
    input_ = cv::Mat(4, of_input, CV_32F, problem.input.values.data());
  }

  void run() override {
    network_.setInput(input_);
    output_ = network_.forward();
  }
  void poison() override {
    if (!output_.empty()) output_.setTo(std::numeric_limits<float>::quiet_NaN());
  }
  std::vector<float> output() override {
    const auto* values = output_.ptr<float>();
    return {values, values + output_.total()};
  }

 private:
  Conv2dSpec spec_;
  cv::dnn::Net network_;
  cv::Mat input_, output_;
};

class OpenCvNetwork final : public Contestant {
 public:
  explicit OpenCvNetwork(const Network& network) : network_(network) {
    layers_[network.image] = {0, ""};
    for (const NetworkStep& step : network.steps) {
      std::visit([&](const auto& spec) { add(step, spec); }, step.spec);
    }
    net_.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
    net_.setPreferableTarget(cv::dnn::DNN_TARGET_CPU);
    std::vector<int> extents;
    for (const std::int64_t extent : network.shape(network.image)) extents.push_back(whole(extent));
    input_ = cv::Mat(extents, CV_32F, const_cast<float*>(network.pixels.data()));
    wanted_ = {layers_.at(network.result).name, layers_.at(network.steps.back().output).name};
  }

  void run() override {
    net_.setInput(input_);
    net_.forward(outputs_, wanted_);
  }
  void poison() override {
    for (cv::Mat& each : outputs_) each.setTo(std::numeric_limits<float>::quiet_NaN());
  }
  std::vector<float> output() override {
    const auto* values = outputs_.at(0).ptr<float>();
    return {values, values + outputs_[0].total()};
  }

 private:
  struct Layer {
    int id = 0;
    std::string name;
  };

  void place(const std::string& type, const std::string& name, cv::dnn::LayerParams& layer,
             const std::vector<std::string>& inputs, const std::string& output) {
    const int id = net_.addLayer(name, type, layer);
    for (std::size_t i = 0; i < inputs.size(); ++i) net_.connect(layers_.at(inputs[i]).id, 0, id, whole(i));
    layers_[output] = {id, name};
  }
  // The layer, and its activation as one of its own, which OpenCV makes one with it.
  void place(const std::string& type, const NetworkStep& step, cv::dnn::LayerParams& layer, Activation activation) {
    place(type, step.name, layer, step.inputs, step.output);
    if (activation == Activation::none) return;
    cv::dnn::LayerParams after;
    if (activation == Activation::relu6) {
      after.set("min_value", 0);
      after.set("max_value", 6);
    }
    place(activation == Activation::relu6 ? "ReLU6" : "ReLU", step.name + "/activation", after, {step.output},
          step.output);
  }
  static cv::Mat row(std::span<const float> values) {
    return cv::Mat(1, whole(values.size()), CV_32F, const_cast<float*>(values.data())).clone();
  }

  void add(const NetworkStep& step, const Conv2dSpec& spec) {
    cv::dnn::LayerParams layer = convolution(spec);
    layer.set("bias_term", true);
    const int of_weights[] = {whole(spec.k), whole(spec.c / spec.groups), whole(spec.r), whole(spec.s)};
    layer.blobs = {cv::Mat(4, of_weights, CV_32F, const_cast<float*>(step.weights.data())).clone(), row(step.bias)};
    place("Convolution", step, layer, spec.activation);
  }
  void add(const NetworkStep& step, const AddSpec& spec) {
    cv::dnn::LayerParams layer;
    layer.set("operation", "sum");
    place("Eltwise", step, layer, spec.activation);
  }
  void add(const NetworkStep& step, const Pool2dSpec& spec) {
    cv::dnn::LayerParams layer = window(spec);
    layer.set("pool", spec.kind == PoolKind::maximum ? "max" : "ave");
    layer.set("ceil_mode", false);
    layer.set("ave_pool_padded_area", false);
    place("Pooling", step, layer, Activation::none);
  }
  void add(const NetworkStep& step, const GemmSpec& spec) {
    cv::dnn::LayerParams layer;
    layer.set("num_output", whole(spec.n));
    const cv::Mat weights(whole(spec.k), whole(spec.n), CV_32F, const_cast<float*>(step.weights.data()));
    layer.blobs = {weights.t(), row(step.bias)};
    place("InnerProduct", step, layer, spec.activation);
  }
  void add(const NetworkStep& step, const SoftmaxSpec&) {
    cv::dnn::LayerParams layer;
    place("Softmax", step, layer, Activation::none);
  }
  template <class Spec>
  void add(const NetworkStep& step, const Spec&) {
    throw std::runtime_error(step.name + ": OpenCV's side has no " + std::string(operation(step.spec)));
  }

  const Network& network_;
  cv::dnn::Net net_;
  std::map<std::string, Layer> layers_;  // by the tensor that each writes last
  cv::Mat input_;
  std::vector<cv::Mat> outputs_;
  std::vector<cv::String> wanted_;
};

}  // namespace

std::unique_ptr<Contestant> make_opencv(const Problem& problem) { return std::make_unique<OpenCv>(problem); }
std::unique_ptr<Contestant> make_opencv_network(const Network& network) {
  return std::make_unique<OpenCvNetwork>(network);
}
std::optional<std::string> opencv_version() { return CV_VERSION; }

}  // namespace kiln::bench
