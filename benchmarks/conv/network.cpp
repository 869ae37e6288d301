#include "conv/network.hpp"

#include <algorithm>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <stdexcept>
#include <unordered_map>

namespace kiln::bench {

Network::Network(const Pipeline& pipeline) {
  for (const PipelineTensor& tensor : pipeline.tensors) {
    shapes[tensor.name] = tensor.shape;
    if (tensor.access == Access::read) {
      image = tensor.name;
      pixels = std::as_const(*tensor.host).as<float>();
    } else if (tensor.access == Access::write && result.empty()) {
      result = tensor.name;
    }
  }
  for (const PipelineStep& step : pipeline.steps) {
    if (!step.steps.empty() || !operation_of(step.spec).is_layer) {
      throw std::runtime_error(pipeline.name + ": step '" + step.name + "': expected a layer");
    }
    NetworkStep& made = steps.emplace_back();
    made.name = step.name;
    made.spec = step.spec;
    const std::vector<Operand> operands = operation_of(step.spec).operands(step.spec);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const PipelineArgument& argument = step.arguments[i];
      if (operands[i].role == TensorRole::output) {
        made.output = argument.tensor;
        shapes[made.output] = operands[i].shape;
      } else if (!argument.tensor.empty()) {
        made.inputs.push_back(argument.tensor);
      } else {
        (made.weights.empty() ? made.weights : made.bias) = argument.value.constant->tensor().as<float>();
      }
    }
  }
}

std::size_t Network::readers(const std::string& tensor) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(steps, [&](const NetworkStep& step) { return std::ranges::count(step.inputs, tensor) != 0; }));
}

std::size_t Network::last_reader(const std::string& tensor) const {
  std::size_t last = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (std::ranges::count(steps[i].inputs, tensor) != 0) last = i;
  }
  return last;
}

namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
constexpr auto f32 = dnnl::memory::data_type::f32;
constexpr auto inference = dnnl::prop_kind::forward_inference;

void append(dnnl::post_ops& after, Activation activation) {
  if (activation == Activation::relu) after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
  if (activation == Activation::relu6) after.append_eltwise(1, dnnl::algorithm::eltwise_clip, 0, 6);
}

dnnl::memory::dims dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }
Tag plain(std::size_t dimensions) { return dimensions == 4 ? Tag::nchw : Tag::ab; }

// oneDNN as its examples chain it: each primitive takes the layout that it likes, activations are post-ops, and the sum
// behind a block is the post-op of the block's last convolution, in place.
class OnednnNetwork final : public Contestant {
 public:
  explicit OnednnNetwork(const Network& network) : network_(network), stream_(engine_) {
    values_[network.image] = dnnl::memory({dims_of(network.shape(network.image)), f32, Tag::nchw}, engine_,
                                          const_cast<float*>(network.pixels.data()));
    for (std::size_t i = 0; i < network.steps.size(); ++i) {
      if (const auto sum = sum_of(i)) sums_[*sum] = i;
    }
    for (std::size_t i = 0; i < network.steps.size(); ++i) {
      const bool later = std::ranges::any_of(sums_, [i](const auto& sum) { return sum.second == i; });
      if (!later) std::visit([&](const auto& spec) { add(network.steps[i], spec, i); }, network.steps[i].spec);
    }
  }

  void run() override {
    for (Step& step : steps_) step.primitive.execute(stream_, step.arguments);
    stream_.wait();
  }
  void poison() override {
    auto* const values = static_cast<float*>(values_.at(network_.result).get_data_handle());
    std::fill_n(values, values_.at(network_.result).get_desc().get_size() / sizeof(float),
                std::numeric_limits<float>::quiet_NaN());
  }
  std::vector<float> output() override {
    const dnnl::memory::dims dims = dims_of(network_.shape(network_.result));
    std::vector<float> values(values_.at(network_.result).get_desc().get_size() / sizeof(float));
    dnnl::memory to({dims, f32, plain(dims.size())}, engine_, values.data());
    dnnl::reorder(values_.at(network_.result), to).execute(stream_, values_.at(network_.result), to);
    stream_.wait();
    return values;
  }

 private:
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };

  // The sum that convolution `at` can be one with: nobody else reads what it writes, and nobody reads the other operand
  // behind the sum.
  std::optional<std::size_t> sum_of(std::size_t at) const {
    const NetworkStep& step = network_.steps[at];
    const auto* spec = std::get_if<Conv2dSpec>(&step.spec);
    if (spec == nullptr || spec->activation != Activation::none || network_.readers(step.output) != 1) return {};
    const std::size_t sum = network_.last_reader(step.output);
    const NetworkStep& next = network_.steps[sum];
    if (!std::holds_alternative<AddSpec>(next.spec) || sums_.contains(sum)) return {};
    const std::string& other = next.inputs[next.inputs[0] == step.output ? 1 : 0];
    const bool free = other != step.inputs[0] && network_.last_reader(other) == sum && other != network_.image;
    return free && !std::ranges::any_of(sums_, [&](const auto& each) { return each.first > at && each.first < sum; })
               ? std::optional(sum)
               : std::nullopt;
  }

  dnnl::memory in(const dnnl::memory& from, const Desc& wanted, bool once = false) {
    if (from.get_desc() == wanted) return from;
    dnnl::memory to(wanted, engine_);
    if (once) {
      dnnl::reorder(from, to).execute(stream_, const_cast<dnnl::memory&>(from), to);
      stream_.wait();
    } else {
      steps_.push_back({dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}});
    }
    return to;
  }
  dnnl::memory constant(std::span<const float> values, const Desc& lies, const Desc& wanted) {
    return in(dnnl::memory(lies, engine_, const_cast<float*>(values.data())), wanted, true);
  }

  void add(const NetworkStep& step, const Conv2dSpec& spec, std::size_t) {
    convolve(step, spec, step.output, spec.activation, Desc({dims_of(network_.shape(step.output)), f32, Tag::any}), {});
  }

  void convolve(const NetworkStep& step, const Conv2dSpec& spec, const std::string& output, Activation activation,
                const Desc& to, std::optional<dnnl::memory> addend) {
    const dnnl::memory given = values_.at(step.inputs[0]);
    const bool grouped = spec.groups != 1;
    const dnnl::memory::dims weights =
        grouped ? dnnl::memory::dims{spec.groups, spec.k / spec.groups, spec.c / spec.groups, spec.r, spec.s}
                : dnnl::memory::dims{spec.k, spec.c, spec.r, spec.s};
    dnnl::post_ops after;
    if (addend) after.append_sum(1);
    append(after, activation);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(after);
    const Desc bias({spec.k}, f32, Tag::a);
    const dnnl::convolution_forward::primitive_desc described(
        {inference, dnnl::algorithm::convolution_direct, Desc(given.get_desc().dims(), f32, Tag::any),
         Desc(weights, f32, Tag::any), bias, to, {spec.stride_y, spec.stride_x},
         {spec.dilation_y - 1, spec.dilation_x - 1}, {spec.pad_y, spec.pad_x}, {spec.pad_y, spec.pad_x}},
        attributes, engine_);
    const dnnl::memory source = in(given, described.src_desc());
    const dnnl::memory target = addend ? *addend : dnnl::memory(described.dst_desc(), engine_);
    steps_.push_back(
        {dnnl::convolution_forward(described),
         {{DNNL_ARG_SRC, source},
          {DNNL_ARG_WEIGHTS,
           constant(step.weights, Desc(weights, f32, grouped ? Tag::goihw : Tag::oihw), described.weights_desc())},
          {DNNL_ARG_BIAS, constant(step.bias, bias, described.bias_desc())},
          {DNNL_ARG_DST, target}}});
    values_[output] = target;
  }

  void add(const NetworkStep& step, const AddSpec& spec, std::size_t at) {
    if (const auto sum = sums_.find(at); sum != sums_.end()) {
      const NetworkStep& convolution = network_.steps[sum->second];
      const dnnl::memory addend = values_.at(step.inputs[step.inputs[0] == convolution.output ? 1 : 0]);
      convolve(convolution, std::get<Conv2dSpec>(convolution.spec), step.output, spec.activation, addend.get_desc(),
               addend);
      return;
    }
    const dnnl::memory a = values_.at(step.inputs[0]);
    const dnnl::memory b = in(values_.at(step.inputs[1]), a.get_desc());
    dnnl::post_ops after;
    append(after, spec.activation);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(after);
    const dnnl::binary::primitive_desc described({dnnl::algorithm::binary_add, a.get_desc(), b.get_desc(), a.get_desc()},
                                                 attributes, engine_);
    const dnnl::memory to(a.get_desc(), engine_);
    steps_.push_back(
        {dnnl::binary(described), {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}, {DNNL_ARG_DST, to}}});
    values_[step.output] = to;
  }

  void add(const NetworkStep& step, const Pool2dSpec& spec, std::size_t) {
    const dnnl::memory source = values_.at(step.inputs[0]);
    const dnnl::pooling_forward::primitive_desc described(
        {inference,
         spec.kind == PoolKind::maximum ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding,
         source.get_desc(),
         Desc(dims_of(network_.shape(step.output)), f32, Tag::any),
         {spec.stride_y, spec.stride_x},
         {spec.r, spec.s},
         {spec.pad_y, spec.pad_x},
         {spec.pad_y, spec.pad_x}},
        engine_);
    const dnnl::memory to(described.dst_desc(), engine_);
    steps_.push_back({dnnl::pooling_forward(described), {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, to}}});
    values_[step.output] = to;
  }

  void add(const NetworkStep& step, const GemmSpec& spec, std::size_t) {
    const dnnl::memory given = values_.at(step.inputs[0]);
    const dnnl::memory lies = in(given, Desc(given.get_desc().dims(), f32, plain(given.get_desc().dims().size())));
    const Desc rows({spec.m, spec.k}, f32, Tag::ab), bias({spec.n}, f32, Tag::a);
    const dnnl::memory source(rows, engine_, lies.get_data_handle());
    kept_.push_back(lies);
    dnnl::post_ops after;
    append(after, spec.activation);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(after);
    const dnnl::inner_product_forward::primitive_desc described(
        {inference, rows, Desc({spec.n, spec.k}, f32, Tag::any), bias, Desc({spec.m, spec.n}, f32, Tag::ab)}, attributes,
        engine_);
    const dnnl::memory to(described.dst_desc(), engine_);
    steps_.push_back(
        {dnnl::inner_product_forward(described),
         {{DNNL_ARG_SRC, source},
          {DNNL_ARG_WEIGHTS, constant(step.weights, Desc({spec.n, spec.k}, f32, Tag::ba), described.weights_desc())},
          {DNNL_ARG_BIAS, constant(step.bias, bias, described.bias_desc())},
          {DNNL_ARG_DST, to}}});
    values_[step.output] = to;
  }

  void add(const NetworkStep& step, const SoftmaxSpec&, std::size_t) {
    const dnnl::memory source = values_.at(step.inputs[0]);
    const dnnl::softmax_forward::primitive_desc described(
        {inference, source.get_desc(), static_cast<int>(source.get_desc().dims().size()) - 1}, engine_);
    const dnnl::memory to(source.get_desc(), engine_);
    steps_.push_back({dnnl::softmax_forward(described), {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, to}}});
    values_[step.output] = to;
  }

  template <class Spec>
  void add(const NetworkStep& step, const Spec&, std::size_t) {
    throw std::runtime_error(step.name + ": oneDNN's side has no " + std::string(operation(step.spec)));
  }

  const Network& network_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_;
  std::map<std::string, dnnl::memory> values_;
  std::map<std::size_t, std::size_t> sums_;  // of an add: the convolution that it is one with
  std::vector<dnnl::memory> kept_;           // seen by others through a handle
  std::vector<Step> steps_;
};

}  // namespace

std::unique_ptr<Contestant> make_onednn_network(const Network& network) {
  return std::make_unique<OnednnNetwork>(network);
}

}  // namespace kiln::bench
