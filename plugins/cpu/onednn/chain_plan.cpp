#include "onednn/chain_plan.hpp"

#include "onednn/primitives.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace kiln::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
constexpr auto fp32 = dnnl::memory::data_type::f32;
constexpr std::uint64_t slot_alignment = 4096;  // tiles of two threads share no page
constexpr std::int64_t few_elements = 1 << 13;  // fewer are not worth a second thread
constexpr double few_operations = 1e5;

// A tensor in one layout.
struct FormOf {
  ChainPlace place = ChainPlace::invalid;
  std::uint32_t index = 0;
  Desc desc;
};

// The part of a [n, c, h, w] result that one tile computes.
struct Box {
  Range n, c, h;
};

// The input rows that output rows read, and the padding that is left.
struct Rows {
  Range in;
  std::int64_t above = 0, below = 0;
};
Rows rows_for(const Range& out, std::int64_t all, std::int64_t stride, std::int64_t pad, std::int64_t reach,
              std::int64_t in) {
  const std::int64_t first = out.begin * stride - pad;
  const std::int64_t end = (out.end - 1) * stride - pad + reach;
  // A tile of all rows also has the rows behind the last tap: its channels would not lie as they do without.
  const Range read = out.size() == all ? Range{0, in} : Range{std::max<std::int64_t>(first, 0), std::min(end, in)};
  return {read, std::max<std::int64_t>(-first, 0), std::max<std::int64_t>(end - in, 0)};
}

// Padding behind the last element that a window reads, along one axis.
std::int64_t pad_after(std::int64_t out, std::int64_t stride, std::int64_t pad, std::int64_t reach, std::int64_t in) {
  return std::max<std::int64_t>((out - 1) * stride - pad + reach - in, 0);
}

class Builder {
 public:
  Builder(const ChainSpec& spec, const dnnl::engine& engine, ChainLayout layout, int tiles, References references)
      : spec_(spec),
        engine_(engine),
        layout_(layout),
        tiles_(tiles),
        references_(references),
        fused_(fused_adds_of(spec)),
        is_fused_(spec.steps.size()) {
    const bool wide = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
    tag_ = layout == ChainLayout::rows ? Tag::nhwc : wide ? Tag::nChw16c : Tag::nChw8c;
    block_ = layout == ChainLayout::rows ? 1 : wide ? 16 : 8;
    forms_.resize(spec.tensors.size());
    request_index_.resize(spec.tensors.size());
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < spec.tensors.size(); ++i) {
      if (spec.tensors[i].role == TensorRole::invalid) continue;
      request_index_[i] = next++;
      if (spec.tensors[i].role == TensorRole::input) {
        forms_[i].push_back({ChainPlace::tensor, request_index_[i], plain(spec.tensors[i].shape)});
      }
    }
    for (const auto& fused : fused_) {
      if (fused) is_fused_[fused->add_step] = true;
    }
    plan_.fused_adds = static_cast<std::uint32_t>(std::ranges::count(is_fused_, true));
  }

  ChainPlan build() {
    for (std::uint32_t step = 0; step < spec_.steps.size(); ++step) {
      step_ = step;
      std::visit([this](const auto& layer) { add(layer); }, spec_.steps[step].layer);
    }
    place_slots();
    plan_.name = layout_ == ChainLayout::rows ? "nhwc" : block_ == 16 ? "nChw16c" : "nChw8c";
    plan_.name += ", " + std::to_string(tiles_) + (tiles_ == 1 ? " tile" : " tiles");
    return std::move(plan_);
  }

 private:
  // --- tensors and their forms

  static Desc plain(const Shape& shape) {
    dnnl::memory::dims strides(shape.size(), 1);
    for (std::size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
    return Desc(shape, fp32, strides);
  }
  std::uint32_t tensor_of(std::size_t operand) const { return spec_.steps[step_].tensors[operand]; }
  std::uint32_t output_tensor() const { return spec_.steps[step_].tensors.back(); }
  const Shape& shape_of_tensor(std::uint32_t tensor) const { return spec_.tensors[tensor].shape; }
  bool is_output(std::uint32_t tensor) const { return spec_.tensors[tensor].role == TensorRole::output; }

  std::uint32_t new_slot(const Desc& desc) {
    ChainSlot slot;
    slot.bytes = (desc.get_size() + slot_alignment - 1) / slot_alignment * slot_alignment;
    slot.first_phase = slot.last_phase = plan_.phases.size();
    plan_.slots.push_back(slot);
    return static_cast<std::uint32_t>(plan_.slots.size() - 1);
  }

  // A new form of a tensor: the request's own memory where it is a result that lies as the request has it.
  FormOf new_form(std::uint32_t tensor, const Desc& desc) {
    FormOf form{ChainPlace::arena, 0, desc};
    if (is_output(tensor) && desc == plain(shape_of_tensor(tensor))) {
      form.place = ChainPlace::tensor;
      form.index = request_index_[tensor];
    } else {
      form.index = new_slot(desc);
    }
    return form;
  }

  // The tensor in this layout; reordered first where it is in none that fits.
  FormOf in_form(std::uint32_t tensor, const Desc& desc) {
    for (const FormOf& form : forms_[tensor]) {
      if (form.desc == desc) return form;
    }
    const FormOf from = forms_[tensor].front();
    const bool same_bytes = is_pixel(shape_of_tensor(tensor));
    if (same_bytes) return {from.place, from.index, desc};
    const FormOf to{ChainPlace::arena, new_slot(desc), desc};
    add_reorder(from, to);
    forms_[tensor].push_back(to);
    return to;
  }

  // [n, c, 1, 1] with whole blocks: every layout has the same bytes.
  bool is_pixel(const Shape& shape) const {
    return shape.size() == 4 && shape[2] == 1 && shape[3] == 1 && shape[1] % block_ == 0 && shape[0] == 1;
  }

  Desc in_layout(const Shape& shape) const { return Desc(shape, fp32, tag_); }

  // A new form in the chain's layout: the request's own memory where it is a result whose bytes are the same there.
  FormOf layout_form(std::uint32_t tensor, const Shape& shape) {
    if (is_output(tensor) && is_pixel(shape)) return {ChainPlace::tensor, request_index_[tensor], in_layout(shape)};
    return {ChainPlace::arena, new_slot(in_layout(shape)), in_layout(shape)};
  }

  // What a step has computed: with a copy as the request has it, where it is a result.
  void computed(std::uint32_t tensor, const FormOf& form) {
    forms_[tensor].push_back(form);
    if (!is_output(tensor) || form.place == ChainPlace::tensor) return;
    add_reorder(form, {ChainPlace::tensor, request_index_[tensor], plain(shape_of_tensor(tensor))});
  }

  ChainOperand operand(int argument, const FormOf& form, const Desc& desc, std::uint64_t offset) {
    if (form.place == ChainPlace::arena) {
      ChainSlot& slot = plan_.slots[form.index];
      slot.last_phase = std::max(slot.last_phase, plan_.phases.size() - 1);
    }
    return {argument, form.place, form.index, desc, offset};
  }
  ChainOperand operand(int argument, const FormOf& form) { return operand(argument, form, form.desc, 0); }

  // --- tiles

  void begin_phase() { plan_.phases.push_back({step_, {}}); }

  void add_tile(const dnnl::primitive& primitive, const Desc& scratchpad, std::vector<ChainOperand> operands) {
    if (scratchpad.get_size() != 0) {
      operands.push_back({DNNL_ARG_SCRATCHPAD, ChainPlace::scratch, 0, scratchpad, 0});
      plan_.scratch_bytes = std::max<std::uint64_t>(plan_.scratch_bytes, scratchpad.get_size());
    }
    std::erase_if(operands, [](const ChainOperand& each) { return each.desc.get_size() == 0; });
    plan_.phases.back().tiles.push_back({primitive, std::move(operands)});
  }

  void add_reorder(const FormOf& from, const FormOf& to) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::reorder::primitive_desc described(engine_, from.desc, engine_, to.desc, attributes);
    begin_phase();
    add_tile(dnnl::reorder(described), described.scratchpad_desc(),
             {operand(DNNL_ARG_FROM, from), operand(DNNL_ARG_TO, to)});
  }

  // Boxes of a result in the chain's layout, each of which lies in one piece.
  std::vector<Box> boxes_of(std::int64_t n, std::int64_t c, std::int64_t h, double operations) const {
    const Box whole{{0, n}, {0, c}, {0, h}};
    if (tiles_ == 1 || operations < few_operations) return {whole};
    std::vector<Box> boxes;
    const auto add_all = [&](const std::vector<Range>& ranges, Range Box::*axis) {
      for (const Range& range : ranges) {
        boxes.push_back(whole);
        boxes.back().*axis = range;
      }
    };
    if (n > 1) {
      add_all(split(n, tiles_, 1), &Box::n);
    } else if (layout_ == ChainLayout::rows) {
      add_all(split(h, tiles_, 1), &Box::h);
    } else {
      add_all(split(c, tiles_, block_), &Box::c);
    }
    return boxes;
  }

  // Bytes before the box [n, c, h] of a tensor in the chain's layout.
  std::uint64_t offset_in_layout(const Shape& shape, std::int64_t n, std::int64_t c, std::int64_t h) const {
    const std::int64_t channels = (shape[1] + block_ - 1) / block_ * block_;
    const std::int64_t inner = layout_ == ChainLayout::rows ? h * shape[3] * channels : c * shape[2] * shape[3];
    return static_cast<std::uint64_t>(n * channels * shape[2] * shape[3] + inner) * sizeof(float);
  }

  bool is_acceptable(const char* implementation) const {
    return references_ == References::allowed || !std::string_view(implementation).starts_with("ref");
  }

  std::uint32_t packed(std::uint32_t tensor, const Pipeline::Constant& form) {
    const std::uint32_t at = request_index_[tensor];
    const auto same = [&](const ChainConstant& each) { return each.tensor == at && each.form == form; };
    const auto found = std::ranges::find_if(plan_.constants, same);
    if (found != plan_.constants.end()) return static_cast<std::uint32_t>(found - plan_.constants.begin());
    plan_.constants.push_back({at, form});
    return static_cast<std::uint32_t>(plan_.constants.size() - 1);
  }

  // Weights in the layout `wanted`, packed only where they do not lie so.
  ChainOperand weights_operand(std::uint32_t tensor, const Desc& lies, const Desc& wanted, std::uint64_t offset) {
    if (lies == wanted) {
      return {DNNL_ARG_WEIGHTS, ChainPlace::tensor, request_index_[tensor], wanted, offset};
    }
    return {DNNL_ARG_WEIGHTS, ChainPlace::packed, packed(tensor, {lies, wanted, offset}), wanted, 0};
  }

  // --- convolutions, with a fused add

  struct ConvPart {
    Desc input, output, weights, bias;
    std::int64_t pad_above = 0, pad_below = 0;
  };

  dnnl::convolution_forward::primitive_desc describe(const Conv2dSpec& spec, const ConvPart& part,
                                                     const dnnl::primitive_attr& attributes) const {
    const std::int64_t right =
        pad_after(spec.out_w(), spec.stride_x, spec.pad_x, spec.dilation_x * (spec.s - 1) + 1, spec.w);
    const Desc any(part.weights.dims(), fp32, Tag::any);
    dnnl::convolution_forward::primitive_desc described({dnnl::prop_kind::forward_inference,
                                                         dnnl::algorithm::convolution_direct,
                                                         part.input,
                                                         any,
                                                         part.bias,
                                                         part.output,
                                                         {spec.stride_y, spec.stride_x},
                                                         {spec.dilation_y - 1, spec.dilation_x - 1},
                                                         {part.pad_above, spec.pad_x},
                                                         {part.pad_below, right}},
                                                        attributes, engine_, true);
    if (described && !is_acceptable(described.impl_info_str())) return {};
    return described;
  }

  Desc conv_weights(const Conv2dSpec& spec, std::int64_t filters) const {
    if (spec.groups == 1) return Desc({filters, spec.c, spec.r, spec.s}, fp32, Tag::oihw);
    const std::int64_t group_filters = spec.k / spec.groups;
    return Desc({filters / group_filters, group_filters, spec.c / spec.groups, spec.r, spec.s}, fp32, Tag::goihw);
  }

  // A convolution that reads the request's own NCHW, where oneDNN has one: for few channels.
  bool reads_plain(const Conv2dSpec& spec, std::uint32_t input, const dnnl::primitive_attr& attributes) const {
    if (layout_ == ChainLayout::rows || forms_[input].front().place != ChainPlace::tensor || spec.c >= block_) {
      return false;
    }
    ConvPart part;
    part.input = forms_[input].front().desc;
    part.output = in_layout({spec.n, spec.k, spec.out_h(), spec.out_w()});
    part.weights = conv_weights(spec, spec.k);
    if (spec.bias == Bias::per_channel) part.bias = Desc({spec.k}, fp32, Tag::a);
    part.pad_above = spec.pad_y;
    part.pad_below = pad_after(spec.out_h(), spec.stride_y, spec.pad_y, spec.dilation_y * (spec.r - 1) + 1, spec.h);
    const auto described = describe(spec, part, attributes);
    return static_cast<bool>(described) && !std::string_view(described.impl_info_str()).starts_with("ref");
  }

  void add(const Conv2dSpec& spec) {
    const std::optional<FusedAdd>& fused = fused_[step_];
    const std::uint32_t input = tensor_of(0);
    const std::uint32_t output = fused ? spec_.steps[fused->add_step].tensors.back() : output_tensor();
    const Shape in_shape{spec.n, spec.c, spec.h, spec.w}, out_shape{spec.n, spec.k, spec.out_h(), spec.out_w()};
    dnnl::post_ops operations;
    if (fused) operations.append_sum(1.0f);
    append_activation(operations,
                      fused ? std::get<AddSpec>(spec_.steps[fused->add_step].layer).activation : spec.activation);
    const dnnl::primitive_attr attributes = attributes_with(operations);

    const bool from_plain = reads_plain(spec, input, attributes);
    const FormOf source = from_plain ? forms_[input].front() : in_form(input, in_layout(in_shape));
    const FormOf result = fused ? in_form(fused->residual, in_layout(out_shape)) : layout_form(output, out_shape);
    const bool depthwise = spec.groups == spec.c && spec.k == spec.c;
    std::vector<Box> boxes = boxes_of(spec.n, spec.k, spec.out_h(), flops(spec));
    if (spec.groups > 1 && !depthwise && boxes.front().c.size() != spec.k) {
      boxes.assign(1, Box{{0, spec.n}, {0, spec.k}, {0, spec.out_h()}});
    }
    begin_phase();
    for (const Box& box : boxes) {
      const Rows rows =
          rows_for(box.h, spec.out_h(), spec.stride_y, spec.pad_y, spec.dilation_y * (spec.r - 1) + 1, spec.h);
      if (rows.in.size() <= 0) throw dnnl::error(dnnl_unimplemented, "a tile that reads only padding");
      const Range channels = depthwise ? box.c : Range{0, spec.c};
      ConvPart part;
      part.input = from_plain ? Desc({box.n.size(), spec.c, spec.h, spec.w}, fp32, Tag::nchw)
                              : in_layout({box.n.size(), channels.size(), rows.in.size(), spec.w});
      part.output = in_layout({box.n.size(), box.c.size(), box.h.size(), spec.out_w()});
      part.weights = conv_weights(spec, box.c.size());
      if (spec.bias == Bias::per_channel) part.bias = Desc({box.c.size()}, fp32, Tag::a);
      part.pad_above = rows.above, part.pad_below = rows.below;
      const auto described = describe(spec, part, attributes);
      if (!described) throw dnnl::error(dnnl_unimplemented, "no implementation of this convolution in this layout");
      const std::uint64_t source_offset =
          from_plain ? static_cast<std::uint64_t>(box.n.begin * spec.c * spec.h * spec.w) * sizeof(float)
                     : offset_in_layout(in_shape, box.n.begin, channels.begin, rows.in.begin);
      const auto filter_bytes = static_cast<std::uint64_t>(spec.c / spec.groups * spec.r * spec.s) * sizeof(float);
      std::vector<ChainOperand> operands{operand(DNNL_ARG_SRC, source, part.input, source_offset),
                                         weights_operand(tensor_of(1), part.weights, described.weights_desc(),
                                                         static_cast<std::uint64_t>(box.c.begin) * filter_bytes),
                                         operand(DNNL_ARG_DST, result, part.output,
                                                 offset_in_layout(out_shape, box.n.begin, box.c.begin, box.h.begin))};
      if (spec.bias == Bias::per_channel) {
        operands.push_back({DNNL_ARG_BIAS, ChainPlace::tensor, request_index_[tensor_of(2)], part.bias,
                            static_cast<std::uint64_t>(box.c.begin) * sizeof(float)});
      }
      add_tile(dnnl::convolution_forward(described), described.scratchpad_desc(), std::move(operands));
    }
    computed(output, result);
  }

  // --- the other layers

  void add(const Pool2dSpec& spec) {
    const Shape in_shape{spec.n, spec.c, spec.h, spec.w}, out_shape{spec.n, spec.c, spec.out_h(), spec.out_w()};
    const FormOf source = in_form(tensor_of(0), in_layout(in_shape));
    const FormOf result = layout_form(output_tensor(), out_shape);
    const std::int64_t right = pad_after(spec.out_w(), spec.stride_x, spec.pad_x, spec.s, spec.w);
    begin_phase();
    for (const Box& box : boxes_of(spec.n, spec.c, spec.out_h(), flops(spec))) {
      const Rows rows = rows_for(box.h, spec.out_h(), spec.stride_y, spec.pad_y, spec.r, spec.h);
      const Desc from = in_layout({box.n.size(), box.c.size(), rows.in.size(), spec.w});
      const Desc to = in_layout({box.n.size(), box.c.size(), box.h.size(), spec.out_w()});
      const auto described = pooling(spec, from, to, {rows.above, spec.pad_x}, {rows.below, right}, engine_);
      add_tile(
          dnnl::pooling_forward(described), described.scratchpad_desc(),
          {operand(DNNL_ARG_SRC, source, from, offset_in_layout(in_shape, box.n.begin, box.c.begin, rows.in.begin)),
           operand(DNNL_ARG_DST, result, to, offset_in_layout(out_shape, box.n.begin, box.c.begin, box.h.begin))});
    }
    computed(output_tensor(), result);
  }

  // Ranges of all elements of a form, padding too.
  std::vector<Range> element_ranges(const Desc& desc) const {
    const auto elements = static_cast<std::int64_t>(desc.get_size() / sizeof(float));
    if (elements < few_elements) return {{0, elements}};
    return split(elements, tiles_, 64);
  }

  // Operand 0 of a step that works on one number after the other: in any layout where all of its tensors have one
  // shape; else they are views of the same numbers, and lie as the request has them.
  FormOf elements_form() {
    return have_one_shape() ? forms_[tensor_of(0)].front() : in_form(tensor_of(0), plain(shape_of_tensor(tensor_of(0))));
  }
  // The layout of another tensor of the step.
  Desc elements_layout(std::uint32_t tensor, const FormOf& first) const {
    return have_one_shape() ? first.desc : plain(shape_of_tensor(tensor));
  }
  bool have_one_shape() const {
    return std::ranges::all_of(spec_.steps[step_].tensors, [this](std::uint32_t tensor) {
      return shape_of_tensor(tensor) == shape_of_tensor(output_tensor());
    });
  }

  void add(const AddSpec& spec) {
    if (is_fused_[step_]) return;
    const FormOf a = elements_form();
    const FormOf b = in_form(tensor_of(1), elements_layout(tensor_of(1), a));
    const FormOf result = new_form(output_tensor(), elements_layout(output_tensor(), a));
    begin_phase();
    for (const Range& range : element_ranges(a.desc)) {
      const Desc some({range.size()}, fp32, Tag::a);
      const auto offset = static_cast<std::uint64_t>(range.begin) * sizeof(float);
      const auto described = addition(range.size(), spec.activation, engine_);
      add_tile(dnnl::binary(described), described.scratchpad_desc(),
               {operand(DNNL_ARG_SRC_0, a, some, offset), operand(DNNL_ARG_SRC_1, b, some, offset),
                operand(DNNL_ARG_DST, result, some, offset)});
    }
    computed(output_tensor(), result);
  }

  void add(const ActivationSpec& spec) {
    const FormOf source = elements_form();
    const FormOf result = new_form(output_tensor(), elements_layout(output_tensor(), source));
    begin_phase();
    for (const Range& range : element_ranges(source.desc)) {
      const Desc some({range.size()}, fp32, Tag::a);
      const auto offset = static_cast<std::uint64_t>(range.begin) * sizeof(float);
      const auto described = element_function(range.size(), spec.activation, engine_);
      add_tile(dnnl::eltwise_forward(described), described.scratchpad_desc(),
               {operand(DNNL_ARG_SRC, source, some, offset), operand(DNNL_ARG_DST, result, some, offset)});
    }
    computed(output_tensor(), result);
  }

  void add(const SoftmaxSpec& spec) {
    const Shape shape = shape_of(spec.shape);
    const std::int64_t length = shape.back(), rows = elements_of(spec.shape) / length;
    const FormOf source = in_form(tensor_of(0), plain(shape_of_tensor(tensor_of(0))));
    const FormOf result = new_form(output_tensor(), plain(shape_of_tensor(output_tensor())));
    begin_phase();
    for (const Range& range : rows* length < few_elements ? std::vector<Range>{{0, rows}} : split(rows, tiles_, 1)) {
      const Desc some({range.size(), length}, fp32, Tag::ab);
      const auto offset = static_cast<std::uint64_t>(range.begin * length) * sizeof(float);
      const auto described = softmax_of_rows(range.size(), length, engine_);
      add_tile(dnnl::softmax_forward(described), described.scratchpad_desc(),
               {operand(DNNL_ARG_SRC, source, some, offset), operand(DNNL_ARG_DST, result, some, offset)});
    }
    computed(output_tensor(), result);
  }

  // Columns of the result: the weights lie as they are, and each thread reads its part of them once.
  void add(const GemmSpec& spec) {
    const FormOf source = in_form(tensor_of(0), plain(shape_of_tensor(tensor_of(0))));
    const FormOf result = new_form(output_tensor(), plain(shape_of_tensor(output_tensor())));
    const Desc from({spec.m, spec.k}, fp32, Tag::ab);
    begin_phase();
    for (const Range& range :
         spec.n* spec.k < few_elements ? std::vector<Range>{{0, spec.n}} : split(spec.n, tiles_, 64)) {
      const Desc weights({spec.k, range.size()}, fp32, dnnl::memory::dims{spec.n, 1});
      const Desc to({spec.m, range.size()}, fp32, dnnl::memory::dims{spec.m == 1 ? range.size() : spec.n, 1});
      const Desc bias = spec.bias == Bias::none ? Desc() : Desc({1, range.size()}, fp32, Tag::ab);
      const dnnl::matmul::primitive_desc described({from, weights, bias, to}, attributes_of(spec.activation), engine_);
      const auto offset = static_cast<std::uint64_t>(range.begin) * sizeof(float);
      std::vector<ChainOperand> operands{operand(DNNL_ARG_SRC, source, from, 0),
                                         weights_operand(tensor_of(1), weights, described.weights_desc(), offset),
                                         operand(DNNL_ARG_DST, result, to, offset)};
      if (spec.bias == Bias::per_channel) {
        operands.push_back({DNNL_ARG_BIAS, ChainPlace::tensor, request_index_[tensor_of(2)], bias, offset});
      }
      add_tile(dnnl::matmul(described), described.scratchpad_desc(), std::move(operands));
    }
    computed(output_tensor(), result);
  }

  // Of layers that are computed one by one only.
  template <class Spec>
  void add(const Spec&) {
    throw dnnl::error(dnnl_unimplemented, "no chain has this operation");
  }

  // Largest first, each slot at the lowest place that is free while it is needed.
  void place_slots() {
    std::vector<std::size_t> order(plan_.slots.size()), placed;
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return plan_.slots[a].bytes > plan_.slots[b].bytes; });
    for (const std::size_t i : order) {
      ChainSlot& slot = plan_.slots[i];
      std::ranges::sort(placed, {}, [&](std::size_t other) { return plan_.slots[other].offset; });
      for (const std::size_t other : placed) {
        const ChainSlot& taken = plan_.slots[other];
        const bool apart = taken.last_phase < slot.first_phase || slot.last_phase < taken.first_phase;
        if (!apart && taken.offset < slot.offset + slot.bytes && slot.offset < taken.offset + taken.bytes) {
          slot.offset = taken.offset + taken.bytes;
        }
      }
      placed.push_back(i);
      plan_.arena_bytes = std::max(plan_.arena_bytes, slot.offset + slot.bytes);
    }
  }

  const ChainSpec& spec_;
  const dnnl::engine& engine_;
  const ChainLayout layout_;
  const int tiles_;
  const References references_;
  const std::vector<std::optional<FusedAdd>> fused_;  // by step: of convolutions
  std::vector<bool> is_fused_;                        // by step: of adds
  Tag tag_ = Tag::undef;
  std::int64_t block_ = 1;
  std::uint32_t step_ = 0;
  std::vector<std::vector<FormOf>> forms_;    // of each tensor; the first is the one that it was computed in
  std::vector<std::uint32_t> request_index_;  // of each tensor of the request
  ChainPlan plan_;
};

}  // namespace

ChainPlan plan_chain(const ChainSpec& spec, const dnnl::engine& engine, ChainLayout layout, int tiles,
                     References references) {
  return Builder(spec, engine, layout, tiles, references).build();
}

}  // namespace kiln::cpu
