#include "conv/contestants.hpp"

#include <algorithm>
#include <limits>
#include <opencv2/core/version.hpp>
#include <opencv2/dnn.hpp>

namespace kiln::bench {
namespace {

int whole(std::int64_t value) { return static_cast<int>(value); }

class OpenCv final : public Contestant {
 public:
  explicit OpenCv(const Problem& problem) : spec_(std::get<Conv2dSpec>(problem.spec)) {
    cv::dnn::LayerParams layer;
    layer.name = layer.type = "Convolution";
    layer.set("kernel_h", whole(spec_.r));
    layer.set("kernel_w", whole(spec_.s));
    layer.set("stride_h", whole(spec_.stride_y));
    layer.set("stride_w", whole(spec_.stride_x));
    layer.set("pad_h", whole(spec_.pad_y));
    layer.set("pad_w", whole(spec_.pad_x));
    layer.set("dilation_h", whole(spec_.dilation_y));
    layer.set("dilation_w", whole(spec_.dilation_x));
    layer.set("num_output", whole(spec_.k));
    layer.set("group", whole(spec_.groups));
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

}  // namespace

std::unique_ptr<Contestant> make_opencv(const Problem& problem) { return std::make_unique<OpenCv>(problem); }
std::optional<std::string> opencv_version() { return CV_VERSION; }

}  // namespace kiln::bench
