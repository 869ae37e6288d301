// The ways of computing pool2d, add, softmax and activation: the tensors as they lie, in pieces for the threads.
#include "onednn/candidate.hpp"
#include "onednn/primitives.hpp"

#include <string>

namespace kiln::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
constexpr auto element_type = dnnl::memory::data_type::f32;

// Fewer elements are done before a second thread is awake.
constexpr std::int64_t worth_a_tile = 1 << 14;

Pipeline::Operand operand_at(int argument, Place place, const Desc& desc, std::int64_t elements_before) {
  return {argument, place, desc, static_cast<std::uint64_t>(elements_before) * sizeof(float)};
}

// One tile of the layer, of the items in the range: planes, elements or rows.
Made tile_of(const Pool2dSpec& spec, const Range& planes, const dnnl::engine& engine) {
  const Desc from({1, planes.size(), spec.h, spec.w}, element_type, Tag::nchw);
  const Desc to({1, planes.size(), spec.out_h(), spec.out_w()}, element_type, Tag::nchw);
  const auto described = pooling(spec, from, to, {spec.pad_y, spec.pad_x}, {spec.pad_y, spec.pad_x}, engine);
  Made made{described.impl_info_str(), {}};
  made.pipeline.add(dnnl::pooling_forward(described), engine, described.scratchpad_desc(),
                    {operand_at(DNNL_ARG_SRC, Place::input, from, planes.begin * spec.h * spec.w),
                     operand_at(DNNL_ARG_DST, Place::output, to, planes.begin * spec.out_h() * spec.out_w())});
  return made;
}

Made tile_of(const AddSpec& spec, const Range& elements, const dnnl::engine& engine) {
  const Desc all({elements.size()}, element_type, Tag::a);
  const auto described = addition(elements.size(), spec.activation, engine);
  Made made{described.impl_info_str(), {}};
  made.pipeline.add(dnnl::binary(described), engine, described.scratchpad_desc(),
                    {operand_at(DNNL_ARG_SRC_0, Place::input, all, elements.begin),
                     operand_at(DNNL_ARG_SRC_1, Place::addend, all, elements.begin),
                     operand_at(DNNL_ARG_DST, Place::output, all, elements.begin)});
  return made;
}

Made tile_of(const ActivationSpec& spec, const Range& elements, const dnnl::engine& engine) {
  const Desc all({elements.size()}, element_type, Tag::a);
  const auto described = element_function(elements.size(), spec.activation, engine);
  Made made{described.impl_info_str(), {}};
  made.pipeline.add(dnnl::eltwise_forward(described), engine, described.scratchpad_desc(),
                    {operand_at(DNNL_ARG_SRC, Place::input, all, elements.begin),
                     operand_at(DNNL_ARG_DST, Place::output, all, elements.begin)});
  return made;
}

Made tile_of(const SoftmaxSpec& spec, const Range& rows, const dnnl::engine& engine) {
  const std::int64_t length = shape_of(spec.shape).back();
  const Desc some({rows.size(), length}, element_type, Tag::ab);
  const auto described = softmax_of_rows(rows.size(), length, engine);
  Made made{described.impl_info_str(), {}};
  made.pipeline.add(dnnl::softmax_forward(described), engine, described.scratchpad_desc(),
                    {operand_at(DNNL_ARG_SRC, Place::input, some, rows.begin * length),
                     operand_at(DNNL_ARG_DST, Place::output, some, rows.begin * length)});
  return made;
}

struct Items {
  std::int64_t count = 0;  // that can be computed apart from each other
  std::int64_t size = 1;   // elements of one
  std::int64_t unit = 1;   // tiles begin at multiples of it
};

Items items_of(const Pool2dSpec& spec) { return {spec.n * spec.c, spec.h * spec.w, 1}; }
Items items_of(const AddSpec& spec) { return {elements_of(spec.shape), 1, 64}; }
Items items_of(const ActivationSpec& spec) { return {elements_of(spec.shape), 1, 64}; }
Items items_of(const SoftmaxSpec& spec) {
  const std::int64_t length = shape_of(spec.shape).back();
  return {elements_of(spec.shape) / length, length, 1};
}

template <class Spec>
std::vector<Candidate> candidates_of(const Spec& spec, const dnnl::engine& engine, int threads) {
  const Items items = items_of(spec);
  const std::int64_t worth = std::max<std::int64_t>(items.count * items.size / worth_a_tile, 1);
  const std::int64_t most = std::max<std::int64_t>(items.count / items.unit, 1);
  const std::int64_t wanted = threads == 1 ? 1 : std::min({std::int64_t{2} * threads, worth, most});
  std::vector<Pipeline> tiles;
  std::string name;
  for (const Range& range : split(items.count, wanted, items.unit)) {
    Made made = tile_of(spec, range, engine);
    if (tiles.empty()) name = made.implementation;
    tiles.push_back(std::move(made.pipeline));
  }
  if (tiles.size() > 1) name += ", " + std::to_string(tiles.size()) + " tiles";
  std::vector<Candidate> candidates;
  candidates.emplace_back(std::move(name), std::move(tiles));
  return candidates;
}

}  // namespace

std::vector<Candidate> simple_candidates(const KernelSpec& spec, const dnnl::engine& engine, int threads) {
  return std::visit(
      [&](const auto& held) -> std::vector<Candidate> {
        if constexpr (requires { items_of(held); }) return candidates_of(held, engine, threads);
        throw dnnl::error(dnnl_unimplemented, "no implementation of this operation");
      },
      spec);
}

}  // namespace kiln::cpu
