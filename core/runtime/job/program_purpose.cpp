#include "runtime/job/program_purpose.hpp"

#include <kiln/kernel_parameters.hpp>

#include <filesystem>
#include <initializer_list>
#include <utility>

namespace kiln {
namespace {

std::string product(std::initializer_list<std::int64_t> factors) {
  std::string text;
  for (const std::int64_t factor : factors) text += (text.empty() ? "" : "x") + std::to_string(factor);
  return text;
}

// Of two directions, said once where they agree.
std::string unless_usual(std::string_view name, std::int64_t y, std::int64_t x, std::int64_t usual) {
  if (y == usual && x == usual) return {};
  return " " + std::string(name) + " " + (y == x ? std::to_string(y) : product({y, x}));
}

std::string shape_of(const Conv2dSpec& conv) {
  std::string text = product({conv.n, conv.c, conv.h, conv.w});
  text += " k" + std::to_string(conv.k) + " " + product({conv.r, conv.s});
  text += unless_usual("stride", conv.stride_y, conv.stride_x, 1);
  text += unless_usual("pad", conv.pad_y, conv.pad_x, 0);
  text += unless_usual("dilation", conv.dilation_y, conv.dilation_x, 1);
  if (conv.groups != 1) text += " groups " + std::to_string(conv.groups);
  if (conv.activation != Activation::none) text += " " + std::string(to_string(conv.activation));
  return text;
}

std::string shape_of(const GemmSpec& gemm) {
  std::string text = "m" + std::to_string(gemm.m) + " n" + std::to_string(gemm.n) + " k" + std::to_string(gemm.k);
  if (gemm.activation != Activation::none) text += " " + std::string(to_string(gemm.activation));
  return text;
}

std::string shape_of(const UserKernelSpec& kernel) {
  const std::string file = std::filesystem::path(kernel.path).filename().string();
  return (file.empty() ? kernel.entry : file) + " grid " + product({kernel.grid[0], kernel.grid[1], kernel.grid[2]});
}

// Its grid may follow from what the variant chooses.
std::string shape_of(const UserKernelSpec& kernel, std::string_view variant) {
  const auto one = settled(kernel, variant);
  return shape_of(one ? *one : kernel);
}

}  // namespace

ProgramPurpose purpose_of(const KernelSpec& spec, std::string variant) {
  const auto* kernel = std::get_if<UserKernelSpec>(&spec);
  std::string shape = kernel != nullptr ? shape_of(*kernel, variant)
                                        : std::visit([](const auto& held) { return shape_of(held); }, spec);
  return {std::string(operation(spec)), std::move(shape), std::move(variant)};
}

}  // namespace kiln
