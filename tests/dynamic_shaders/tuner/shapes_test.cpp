// How alike shapes are, which their text and the ids of variants say, and what stands in while nothing is built.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/families/depthwise.hpp"
#include "dynamic_shaders/families/gemm.hpp"
#include "dynamic_shaders/families/implicit.hpp"
#include "dynamic_shaders/sample_specs.hpp"
#include "dynamic_shaders/space/variant_space.hpp"
#include "dynamic_shaders/variants.hpp"

namespace kiln::dynamic_shaders {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Each text that is damaged in one word: without it, or its number without an end.
std::vector<std::string> damaged(const std::string& text, std::size_t needed) {
  std::vector<std::string> all;
  const std::vector<std::string> words = words_of(text);
  for (std::size_t i = 0; i <= needed; ++i) {
    std::vector<std::string> without = words;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    all.push_back(joined(without));
    std::vector<std::string> longer = words;
    longer[i] += "x";
    all.push_back(joined(longer));
  }
  return all;
}

}  // namespace

TEST_CASE("shapes: a convolution and a product come back from their texts, and from no damaged ones") {
  std::vector<Conv2dSpec> layers(4, depthwise_layer());
  layers[1] = resnet_layer();
  layers[1].activation = Activation::relu6;
  layers[2] = resnet_layer();
  layers[2].accuracy = Accuracy::winograd;
  layers[3].stride_x = 3, layers[3].pad_x = 2, layers[3].dilation_y = 2;
  for (const Conv2dSpec& layer : layers) {
    const std::string text = canonical_text(layer);
    INFO(text);
    REQUIRE(conv_of(text).has_value());
    CHECK(*conv_of(text) == layer);
    CHECK_FALSE(gemm_of(text).has_value());
  }
  std::size_t refused = 0;
  const std::string text = canonical_text(depthwise_layer());
  const std::vector<std::string> words = words_of(text);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    if (name == "activation" || name == "accuracy" || name == "dtype" || name == "layout") continue;
    INFO(words[i]);
    std::vector<std::string> without = words, longer = words;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    longer[i] += "x";
    CHECK_FALSE(conv_of(joined(without)).has_value());
    CHECK_FALSE(conv_of(joined(longer)).has_value());
    ++refused;
  }
  CHECK(refused == 16);  // the name, fourteen extents and the bias
  Conv2dSpec nothing = resnet_layer();
  nothing.c = 0;
  CHECK_FALSE(conv_of(canonical_text(nothing)).has_value());

  for (const GemmSpec& product :
       {small_gemm(), GemmSpec{1, 2, 3}, GemmSpec{.m = 4, .n = 5, .k = 6, .activation = Activation::relu}}) {
    REQUIRE(gemm_of(canonical_text(product)).has_value());
    CHECK(*gemm_of(canonical_text(product)) == product);
    CHECK_FALSE(conv_of(canonical_text(product)).has_value());
  }
  for (const std::string& each : damaged("gemm m=17 n=33 k=65 bias=1", 4)) {
    INFO(each);
    CHECK_FALSE(gemm_of(each).has_value());
  }
  CHECK(gemm_of("gemm m=17 n=33 k=65 bias=1")->bias == Bias::per_channel);
  CHECK(gemm_of("gemm m=17 n=33 k=65 bias=0")->bias == Bias::none);
  CHECK_FALSE(gemm_of("gemm m=0 n=33 k=65 bias=1").has_value());
}

TEST_CASE("shapes: shapes are as many doublings apart as their extents, and kinds are not compared") {
  using Change = std::function<void(Conv2dSpec&)>;
  Conv2dSpec base;
  base.c = 64, base.k = 128, base.h = 28, base.w = 28, base.r = 3, base.s = 3, base.pad_y = 1, base.pad_x = 1;
  const std::vector<std::pair<Change, double>> apart = {
      {[](Conv2dSpec&) {}, 0},
      {[](Conv2dSpec& s) { s.c = 128; }, 1},
      {[](Conv2dSpec& s) { s.k = 32; }, 2},
      {[](Conv2dSpec& s) { s.n = 8; }, 3},
      {[](Conv2dSpec& s) { s.h = 56; }, 1},
      {[](Conv2dSpec& s) { s.w = 7; }, 2},
      {[](Conv2dSpec& s) { s.c = 128, s.k = 32, s.n = 8, s.h = 56, s.w = 7; }, 9},
      {[](Conv2dSpec& s) { s.bias = Bias::per_channel, s.activation = Activation::relu; }, 0},
  };
  for (std::size_t i = 0; i < apart.size(); ++i) {
    CAPTURE(i);
    Conv2dSpec other = base;
    apart[i].first(other);
    REQUIRE(distance(base, other).has_value());
    CHECK(*distance(base, other) == Approx(apart[i].second));
    CHECK(*distance(other, base) == Approx(apart[i].second));
  }
  const std::vector<Change> kinds = {
      [](Conv2dSpec& s) { s.r = 1; },          [](Conv2dSpec& s) { s.s = 1; },
      [](Conv2dSpec& s) { s.stride_y = 2; },   [](Conv2dSpec& s) { s.stride_x = 2; },
      [](Conv2dSpec& s) { s.dilation_y = 2; }, [](Conv2dSpec& s) { s.dilation_x = 2; },
      [](Conv2dSpec& s) { s.groups = 2; },     [](Conv2dSpec& s) { s.accuracy = Accuracy::winograd; }};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    CAPTURE(i);
    Conv2dSpec other = base;
    kinds[i](other);
    CHECK_FALSE(distance(base, other).has_value());
    CHECK_FALSE(distance(other, base).has_value());
  }
  // Channels count by group. One a group, in and out, is a kind of its own.
  Conv2dSpec two = base, four = base, each = base, wide = base, double_out = base;
  two.groups = 2, four.groups = 4;
  each.groups = each.c = each.k = 64;
  wide.groups = wide.c = wide.k = 128;
  double_out.groups = 64;
  CHECK(*distance(two, four) == Approx(3));
  CHECK(*distance(each, wide) == Approx(1));
  CHECK_FALSE(distance(each, two).has_value());
  CHECK_FALSE(distance(each, double_out).has_value());
  CHECK(distance(two, double_out).has_value());
  CHECK(*distance(GemmSpec{64, 96, 128}, GemmSpec{128, 48, 16}) == Approx(5));
  CHECK(*distance(GemmSpec{64, 96, 128}, GemmSpec{64, 96, 128}) == Approx(0));
}

TEST_CASE("shapes: what the model says of one variant is what it says of it in the whole space") {
  Conv2dSpec separate;
  separate.c = separate.k = separate.groups = 32, separate.h = separate.w = 14;
  separate.r = separate.s = 3, separate.pad_y = separate.pad_x = 1;
  Conv2dSpec winograd = resnet_layer();
  winograd.h = winograd.w = 14, winograd.accuracy = Accuracy::winograd;
  for (const Conv2dSpec& spec : {separate, winograd}) {
    for (const DeviceInfo& device : {sample_device(), viewing_device()}) {
      const std::vector<Candidate> space = conv_space(spec, device);
      REQUIRE(space.size() > 5);
      for (const Candidate& one : space) {
        INFO(one.variant);
        const auto alone = predicted_run(spec, device, one.variant);
        REQUIRE(alone.has_value());
        CHECK(*alone == Approx(one.predicted));
      }
    }
  }
  const GemmSpec product{64, 96, 128};
  for (const Candidate& one : gemm_space(product, viewing_device())) {
    INFO(one.variant);
    const auto alone = predicted_run(product, viewing_device(), one.variant);
    REQUIRE(alone.has_value());
    CHECK(*alone == Approx(one.predicted));
  }
}

TEST_CASE("shapes: the model says nothing of what is no variant of the shape") {
  const DeviceInfo device = viewing_device();
  Conv2dSpec spec = resnet_layer();
  spec.h = spec.w = 14, spec.accuracy = Accuracy::winograd;
  std::string blocked, winograd, implicit;
  for (const Candidate& each : conv_space(spec, device)) {
    if (each.variant.starts_with("direct/blocked:")) blocked = each.variant;
    if (each.variant.starts_with("winograd/f4:")) winograd = each.variant;
    if (each.variant.starts_with("implicit/")) implicit = each.variant;
  }
  REQUIRE_FALSE(blocked.empty());
  REQUIRE_FALSE(winograd.empty());
  REQUIRE_FALSE(implicit.empty());
  const std::string blocking = blocked.substr(blocked.find(':')), of_winograd = winograd.substr(winograd.find(':'));
  for (const std::string& none :
       {std::string("direct/blocked"), std::string("direct/blocked:"), std::string("direct/blocked:k=4"),
        "other/blocked" + blocking, "winograd/f3" + of_winograd, "winograd" + of_winograd, blocked + ",",
        std::string("depthwise/planes:planes=4,view=storage")}) {
    INFO(none);
    CHECK_FALSE(predicted_run(spec, device, none).has_value());
  }
  Conv2dSpec other = spec;
  other.stride_y = 2;
  CHECK_FALSE(predicted_run(other, device, winograd).has_value());
  DeviceInfo few = device;
  few.max_workgroup_lanes = 1;
  CHECK_FALSE(predicted_run(spec, few, implicit).has_value());
  other = spec;
  other.n = 20000, other.h = other.w = 56;  // a tensor beyond the limits
  CHECK_FALSE(predicted_run(other, device, blocked).has_value());
  CHECK(predicted_run(other, device, "direct/plain").has_value());
  CHECK_FALSE(predicted_run(GemmSpec{8, 8, 8}, device, blocked).has_value());
  CHECK_FALSE(predicted_run(GemmSpec{8, 8, 8}, device, "gemm/blocked:rows=2").has_value());
}

TEST_CASE("shapes: what stands in is for any shape, by device and by language") {
  const auto first = [](const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) {
    const std::vector<std::string> all = stand_in_variants(spec, device, dialect);
    REQUIRE(all.size() == 2);
    CHECK((all[1] == "direct/plain" || all[1] == "gemm/plain"));
    return all[0];
  };
  DeviceInfo viewing = sample_device(), three = sample_device();
  viewing.max_texel_bindings = 4, three.max_texel_bindings = 3;
  Conv2dSpec separate;
  separate.c = separate.k = separate.groups = 32, separate.h = separate.w = 14, separate.r = separate.s = 3;
  struct Case {
    const DeviceInfo* device;
    Dialect dialect;
    View view;
  };
  for (const Case& each : {Case{&viewing, Dialect::glsl, View::texels},
                           {&viewing, Dialect::opencl_c, View::storage},
                           {&three, Dialect::glsl, View::storage}}) {
    CHECK(depthwise_of(first(separate, *each.device, each.dialect)) == Depthwise{0, 0, 4, 2, each.view});
    CHECK(gemm_blocking_of(first(small_gemm(), *each.device, each.dialect)) == GemmBlocking{4, 2, 16, each.view});
    const Blocking rows{Lanes::channels, 8, 4, 2, Packing::channels, each.view, Rows::looped, Border::padded, 16};
    CHECK(first(resnet_layer(), *each.device, each.dialect) == "direct/blocked:" + to_text(rows));
  }
  Conv2dSpec flat = resnet_layer();  // a point, whose rows may be taken as one
  flat.r = flat.s = 1, flat.pad_y = flat.pad_x = 0;
  const Blocking one_row{Lanes::channels, 8, 8, 1, Packing::channels, View::storage, Rows::looped, Border::padded, 16};
  CHECK(first(flat, three, Dialect::glsl) == "direct/blocked:" + to_text(one_row));
  DeviceInfo card = sample_device();
  card.kind = DeviceKind::gpu;
  CHECK(implicit_of(first(resnet_layer(), card, Dialect::glsl)) == ImplicitTile{Staging::shared, 4, 4, 8, 8, 8});
  CHECK_FALSE(depthwise_of(first(depthwise_layer(), card, Dialect::glsl)).has_value());  // two outputs a channel
  CHECK(stand_in_variants(UserKernelSpec{}, card, Dialect::glsl).empty());
}

}  // namespace kiln::dynamic_shaders
