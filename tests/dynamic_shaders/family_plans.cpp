#include "dynamic_shaders/family_plans.hpp"

#include <catch2/catch.hpp>
#include <initializer_list>

#include "dynamic_shaders/generator.hpp"
#include "dynamic_shaders/sample_specs.hpp"

namespace kiln::dynamic_shaders {
namespace {

Conv2dSpec conv(std::int64_t n, std::int64_t c, std::int64_t k, std::int64_t groups = 1) {
  Conv2dSpec spec;
  spec.n = n, spec.c = c, spec.k = k, spec.groups = groups;
  spec.h = spec.w = 6, spec.r = spec.s = 3, spec.pad_y = spec.pad_x = 1;
  return spec;
}

Conv2dSpec finished(Conv2dSpec spec) {
  spec.bias = Bias::per_channel, spec.activation = Activation::relu;
  return spec;
}

Conv2dSpec strided(Conv2dSpec spec) {
  spec.stride_y = spec.stride_x = 2;
  return spec;
}

Conv2dSpec pointwise(Conv2dSpec spec) {
  spec.r = spec.s = 1, spec.pad_y = spec.pad_x = 0;
  return spec;
}

Conv2dSpec by_winograd(Conv2dSpec spec) {
  spec.accuracy = Accuracy::winograd;
  return spec;
}

Conv2dSpec depthwise_of_width(std::int64_t n, std::int64_t channels, std::int64_t w) {
  Conv2dSpec spec = conv(n, channels, channels, channels);
  spec.w = w;
  return spec;
}

GemmSpec bare_product(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmSpec spec;
  spec.m = m, spec.n = n, spec.k = k;
  return spec;
}

}  // namespace

std::vector<FamilySample> small_samples() {
  std::vector<FamilySample> samples;
  const auto add = [&samples](const std::string& variant, std::initializer_list<KernelSpec> specs) {
    REQUIRE(specs.size() == shapes_of_variant);
    for (const KernelSpec& spec : specs) samples.push_back({spec, variant});
  };
  const Conv2dSpec whole = finished(conv(1, 8, 8)), odd = conv(2, 5, 6), halved = strided(finished(conv(1, 8, 8, 2)));
  add("direct/plain", {whole, odd, halved});
  add("direct/plain@any", {whole, odd, halved});
  add("direct/blocked:lanes=channels,k=4,x=4,y=2,packing=pixels,view=storage,rows=unrolled,border=padded,workgroup=8",
      {whole, odd, halved});
  add("direct/blocked:lanes=places,k=8,x=3,y=2,packing=channels,view=storage,rows=looped,border=guarded,workgroup=16",
      {whole, odd, halved});
  add("direct/blocked:lanes=channels,k=4,x=4,y=1,packing=channels,view=storage,rows=looped,border=padded,"
      "workgroup=4@any",
      {whole, odd, halved});
  add("direct/blocked:lanes=groups,k=4,x=4,y=2,packing=channels,view=storage,rows=unrolled,border=padded,workgroup=16",
      {halved, conv(2, 8, 8, 4), finished(conv(1, 8, 8, 8))});
  add("direct/blocked:lanes=channels,k=4,x=4,y=1,packing=plane,view=storage,rows=looped,border=padded,workgroup=8",
      {pointwise(whole), pointwise(odd), pointwise(finished(conv(1, 8, 8, 2)))});
  const Conv2dSpec tiled = by_winograd(whole), tiled_odd = by_winograd(odd);
  Conv2dSpec flat = by_winograd(conv(1, 3, 4));
  flat.h = 5, flat.w = 8;
  const std::string products =
      "lanes=channels,k=4,x=4,y=1,packing=plane,view=storage,rows=looped,border=padded,workgroup=8";
  add("winograd/f2:" + products, {tiled, tiled_odd, flat});
  add("winograd/f4:" + products, {tiled, tiled_odd, flat});
  add("winograd/f2:" + products + "@any", {tiled, tiled_odd, flat});
  const Conv2dSpec apart = finished(depthwise_of_width(1, 8, 8)), apart_odd = depthwise_of_width(2, 5, 8);
  Conv2dSpec far = finished(depthwise_of_width(1, 4, 8));
  far.r = far.s = 5, far.pad_y = far.pad_x = 2;
  add("depthwise/planes:planes=1,view=storage", {apart, apart_odd, far});
  add("depthwise/bands:rows=2,view=storage", {apart, apart_odd, far});
  add("depthwise/blocked:x=4,y=2,view=storage", {apart, apart_odd, far});
  add("depthwise/blocked:x=4,y=2,view=storage@any", {apart, apart_odd, far});
  add("implicit/registers:k=4,pixels=2,lanes_k=2,lanes_p=8,depth=2", {whole, odd, halved});
  add("implicit/shared:k=4,pixels=2,lanes_k=2,lanes_p=8,depth=4", {whole, odd, halved});
  add("implicit/shared:k=4,pixels=2,lanes_k=2,lanes_p=8,depth=4@any", {whole, odd, halved});
  GemmSpec biased = bare_product(8, 8, 8);
  biased.bias = Bias::per_channel, biased.activation = Activation::relu;
  const GemmSpec uneven = bare_product(5, 7, 9), deep = bare_product(3, 12, 16);
  add("gemm/plain", {biased, uneven, deep});
  add("gemm/blocked:rows=2,quads=1,view=storage,workgroup=8", {biased, uneven, deep});
  add("gemm/blocked:rows=2,quads=1,view=storage,workgroup=8@any", {biased, uneven, deep});
  add("gemm/plain@any", {biased, uneven, deep});
  add("gemm/shared:rows=4,columns=2,lanes_r=2,lanes_c=4,depth=4", {biased, uneven, deep});
  return samples;
}

std::vector<FamilySample> layer_samples() {
  const Conv2dSpec layer = finished(resnet_layer());
  Conv2dSpec pair = strided(layer), depth = layer;
  pair.groups = 2;
  depth.groups = depth.c = depth.k = 32;
  Conv2dSpec small = depth;
  small.h = small.w = 7;
  GemmSpec whole = small_gemm();
  whole.activation = Activation::relu;
  GemmSpec uneven = whole;
  uneven.n = 30, uneven.k = 21;
  GemmSpec deep = bare_product(17, 30, 64);
  // No two extents of an axis are equal, nor those of both axes.
  Conv2dSpec skewed = finished(conv(2, 6, 10, 2));
  skewed.h = 9, skewed.w = 12, skewed.s = 2, skewed.stride_y = 2, skewed.stride_x = 3, skewed.dilation_y = 2;
  skewed.dilation_x = 3, skewed.pad_x = 2;
  Conv2dSpec picked = pointwise(finished(conv(2, 6, 10, 2)));
  picked.h = 9, picked.w = 12, picked.stride_y = 2, picked.stride_x = 3;
  Conv2dSpec skewed_depth = depthwise_of_width(2, 4, 16);
  skewed_depth.h = 12, skewed_depth.s = 2, skewed_depth.stride_y = 3, skewed_depth.stride_x = 2;
  skewed_depth.dilation_y = skewed_depth.dilation_x = 2;
  Conv2dSpec narrow = by_winograd(finished(conv(2, 4, 8))), narrow_odd = by_winograd(conv(1, 3, 5));
  narrow.h = 9, narrow.w = 8, narrow_odd.h = 6, narrow_odd.w = 7;
  return {
      {pair, "direct/plain"},
      {layer,
       "direct/blocked:lanes=channels,k=4,x=8,y=4,packing=pixels,view=texels,rows=unrolled,border=padded,workgroup=16"},
      {pair,
       "direct/blocked:lanes=places,k=8,x=7,y=2,packing=channels,view=image,rows=looped,border=guarded,workgroup=16"},
      {by_winograd(layer),
       "winograd/f4:lanes=channels,k=8,x=12,y=1,packing=plane,view=texels,rows=looped,border=padded,workgroup=8"},
      {by_winograd(layer),
       "winograd/f2:lanes=places,k=4,x=8,y=1,packing=plane,view=image,rows=unrolled,border=padded,workgroup=16"},
      {depth, "depthwise/blocked:x=8,y=4,view=texels"},
      {depth, "depthwise/bands:rows=2,view=texels"},
      {small, "depthwise/planes:planes=4,view=storage"},
      {pair, "implicit/registers:k=8,pixels=2,lanes_k=4,lanes_p=16,depth=4"},
      {layer, "implicit/shared:k=4,pixels=4,lanes_k=8,lanes_p=16,depth=8"},
      {whole, "gemm/plain"},
      {whole, "gemm/blocked:rows=8,quads=2,view=texels,workgroup=16"},
      {uneven, "gemm/blocked:rows=4,quads=1,view=storage,workgroup=8"},
      {whole, "gemm/shared:rows=4,columns=4,lanes_r=8,lanes_c=8,depth=8"},
      {uneven, "gemm/shared:rows=8,columns=2,lanes_r=4,lanes_c=4,depth=8"},
      {deep, "gemm/blocked:rows=4,quads=2,view=image,workgroup=8"},
      {skewed, "direct/plain"},
      {skewed,
       "direct/blocked:lanes=groups,k=8,x=4,y=3,packing=pixels,view=texels,rows=looped,border=padded,workgroup=4"},
      {skewed,
       "direct/"
       "blocked:lanes=places,k=4,x=3,y=2,packing=channels,view=storage,rows=unrolled,border=guarded,workgroup=2"},
      {picked,
       "direct/blocked:lanes=channels,k=4,x=4,y=1,packing=channels,view=texels,rows=looped,border=padded,workgroup=2"},
      {finished(conv(1, 8, 8)),
       "direct/"
       "blocked:lanes=channels,k=4,x=6,y=2,packing=channels,view=storage,rows=unrolled,border=padded,workgroup=8"},
      {skewed, "implicit/registers:k=8,pixels=3,lanes_k=2,lanes_p=4,depth=2"},
      {skewed, "implicit/shared:k=8,pixels=3,lanes_k=2,lanes_p=4,depth=8"},
      {skewed_depth, "depthwise/blocked:x=4,y=3,view=image"},
      {skewed_depth, "depthwise/bands:rows=2,view=storage"},
      {skewed_depth, "depthwise/planes:planes=2,view=texels"},
      {narrow,
       "winograd/f4:lanes=channels,k=4,x=4,y=1,packing=plane,view=texels,rows=looped,border=padded,workgroup=8"},
      {narrow, "winograd/f2:lanes=channels,k=4,x=4,y=1,packing=plane,view=image,rows=looped,border=padded,workgroup=8"},
      {narrow_odd,
       "winograd/f4:lanes=channels,k=4,x=4,y=1,packing=plane,view=texels,rows=looped,border=padded,workgroup=8"},
  };
}

KernelPlan plan_of_sample(const FamilySample& sample, const DeviceInfo& device, Dialect dialect) {
  INFO(canonical_text(sample.spec) << " by " << sample.variant);
  auto plan = Generator().generate_variant(sample.spec, device, dialect, sample.variant);
  INFO((plan ? std::string() : plan.error().text()));
  REQUIRE(plan.has_value());
  CHECK(plan->variant == sample.variant);
  return std::move(plan).value();
}

std::vector<KernelPlan> plans_of_families(Dialect dialect) {
  DeviceInfo device = sample_device();
  device.max_bindings = 16;
  device.max_texel_bindings = device.max_image_bindings = 8;
  device.max_view_texels = 1u << 27;
  device.max_shared_bytes = 32768;
  std::vector<KernelPlan> plans;
  for (const FamilySample& sample : small_samples()) plans.push_back(plan_of_sample(sample, device, dialect));
  for (const FamilySample& sample : layer_samples()) {
    plans.push_back(plan_of_sample(sample, device, dialect));
    for (KernelPlan& plan : Generator().generic_plans(sample.spec, device, dialect)) plans.push_back(std::move(plan));
  }
  return plans;
}

std::vector<Pass> passes_of(const std::vector<KernelPlan>& plans) {
  std::vector<Pass> passes;
  for (const KernelPlan& plan : plans) {
    passes.insert(passes.end(), plan.prepare.begin(), plan.prepare.end());
    passes.insert(passes.end(), plan.passes.begin(), plan.passes.end());
  }
  return passes;
}

}  // namespace kiln::dynamic_shaders
