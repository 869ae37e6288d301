#include "dynamic_shaders/tuner/nearest.hpp"

#include <charconv>
#include <cmath>
#include <string>

namespace kiln::dynamic_shaders {
namespace {

std::optional<std::string_view> value_of(std::string_view text, std::string_view name) {
  std::string needle(" ");
  needle += name;
  needle += '=';
  const std::size_t at = text.find(needle);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + needle.size());
  return text.substr(0, text.find(' '));
}

bool read(std::string_view text, std::string_view name, std::int64_t& to) {
  const auto value = value_of(text, name);
  if (!value) return false;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), to);
  return error == std::errc() && end == value->data() + value->size();
}

double doublings(std::int64_t a, std::int64_t b) {
  return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

enum class Grouping { one, depthwise, some };

Grouping grouping_of(const Conv2dSpec& spec) {
  if (spec.groups == 1) return Grouping::one;
  return spec.groups == spec.c && spec.k == spec.c ? Grouping::depthwise : Grouping::some;
}

Activation activation_of(std::string_view text) {
  for (const Activation each : {Activation::relu, Activation::relu6}) {
    if (value_of(text, "activation") == to_string(each)) return each;
  }
  return Activation::none;
}

}  // namespace

std::optional<Conv2dSpec> conv_of(std::string_view text) {
  if (!text.starts_with("conv2d ")) return std::nullopt;
  Conv2dSpec spec;
  std::int64_t bias = 0;
  const bool whole =
      read(text, "n", spec.n) && read(text, "c", spec.c) && read(text, "h", spec.h) && read(text, "w", spec.w) &&
      read(text, "k", spec.k) && read(text, "r", spec.r) && read(text, "s", spec.s) &&
      read(text, "stride_y", spec.stride_y) && read(text, "stride_x", spec.stride_x) &&
      read(text, "pad_y", spec.pad_y) && read(text, "pad_x", spec.pad_x) && read(text, "dilation_y", spec.dilation_y) &&
      read(text, "dilation_x", spec.dilation_x) && read(text, "groups", spec.groups) && read(text, "bias", bias);
  if (!whole) return std::nullopt;
  spec.bias = bias != 0 ? Bias::per_channel : Bias::none;
  spec.activation = activation_of(text);
  spec.accuracy = value_of(text, "accuracy") == "winograd" ? Accuracy::winograd : Accuracy::direct;
  if (!validate(spec).ok()) return std::nullopt;
  return spec;
}

std::optional<GemmSpec> gemm_of(std::string_view text) {
  if (!text.starts_with("gemm ")) return std::nullopt;
  GemmSpec spec;
  std::int64_t bias = 0;
  const bool whole =
      read(text, "m", spec.m) && read(text, "n", spec.n) && read(text, "k", spec.k) && read(text, "bias", bias);
  if (!whole) return std::nullopt;
  spec.bias = bias != 0 ? Bias::per_channel : Bias::none;
  spec.activation = activation_of(text);
  if (!validate(KernelSpec(spec)).ok()) return std::nullopt;
  return spec;
}

std::optional<double> distance(const Conv2dSpec& a, const Conv2dSpec& b) {
  const bool alike = a.r == b.r && a.s == b.s && a.stride_y == b.stride_y && a.stride_x == b.stride_x &&
                     a.dilation_y == b.dilation_y && a.dilation_x == b.dilation_x && grouping_of(a) == grouping_of(b) &&
                     a.accuracy == b.accuracy;
  if (!alike) return std::nullopt;
  return doublings(a.c / a.groups, b.c / b.groups) + doublings(a.k / a.groups, b.k / b.groups) +
         doublings(a.groups, b.groups) + doublings(a.out_h(), b.out_h()) + doublings(a.out_w(), b.out_w()) +
         doublings(a.n, b.n);
}

std::optional<double> distance(const GemmSpec& a, const GemmSpec& b) {
  return doublings(a.m, b.m) + doublings(a.n, b.n) + doublings(a.k, b.k);
}

}  // namespace kiln::dynamic_shaders
