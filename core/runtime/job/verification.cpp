#include "runtime/job/verification.hpp"

#include <algorithm>
#include <cstring>

namespace kiln {
namespace {

using reference::Comparison;

void add(Verdict& verdict, const Comparison& comparison) {
  verdict.within = verdict.within && comparison.within;
  verdict.max_rel_error = std::max(verdict.max_rel_error, comparison.max_rel_error);
  verdict.error_bound = std::max(verdict.error_bound, comparison.error_bound);
}

// The constant of a conv2d or gemm request that is its bias, or null.
const HostTensor* bias_of(const RunRequest& request, Bias bias) {
  return bias == Bias::per_channel ? &request.tensors[2].constant->tensor() : nullptr;
}

Result<reference::Expected> expect(const RunRequest& request) {
  const HostTensor& input = *request.tensors[0].host;
  const HostTensor& weights = request.tensors[1].constant->tensor();
  if (const auto* conv = std::get_if<Conv2dSpec>(&request.spec)) {
    return reference::expect_conv2d(*conv, input, weights, bias_of(request, conv->bias));
  }
  const auto& gemm = std::get<GemmSpec>(request.spec);
  return reference::expect_gemm(gemm, input, weights, bias_of(request, gemm.bias));
}

Result<Comparison> compare(const RunRequest& request) {
  const std::span<const float> output = std::as_const(*request.tensors.back().host).as<float>();
  if (request.reference != nullptr) return reference::compare_expected(request.reference->expected, output);
  const auto expected = expect(request);
  if (!expected) return expected.error();
  return reference::compare_expected(*expected, output);
}

Result<std::optional<Verdict>> verify_user_kernel(const RunRequest& request, const UserKernelSpec& spec) {
  Verdict verdict;
  bool compared = false;
  std::size_t tensor = 0;
  std::size_t result = 0;
  for (const UserKernelSpec::Binding& binding : spec.bindings) {
    if (binding.kind == BindingKind::local) continue;
    const HostTensor& actual = *request.tensors[tensor++].host;
    if (binding.access == Access::read || result == request.expected.size()) continue;
    const ExpectedOutput& expected = request.expected[result++];
    if (expected.tensor == nullptr) continue;
    const auto comparison = reference::compare_tensors(actual, *expected.tensor);
    if (!comparison) return comparison.error();
    add(verdict, *comparison);
    compared = true;
  }
  if (!compared) return std::optional<Verdict>();
  return std::optional<Verdict>(verdict);
}

}  // namespace

void poison_outputs(const RunRequest& request) {
  const std::vector<TensorDecl> declared = tensors_of(request.spec);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].role != TensorRole::output) continue;
    // All bits set is a NaN in every floating-point format.
    const std::span<std::byte> bytes = request.tensors[i].host->bytes();
    std::memset(bytes.data(), 0xff, bytes.size());
  }
}

Result<std::shared_ptr<const KeptReference>> keep_reference(const RunRequest& request) {
  auto expected = expect(request);
  if (!expected) return std::move(expected).error();
  return std::make_shared<const KeptReference>(KeptReference{std::move(*expected)});
}

Result<std::optional<Verdict>> verify_outputs(const RunRequest& request) {
  if (const auto* kernel = std::get_if<UserKernelSpec>(&request.spec)) return verify_user_kernel(request, *kernel);
  const auto comparison = compare(request);
  if (!comparison) return comparison.error();
  Verdict verdict;
  add(verdict, *comparison);
  return std::optional<Verdict>(verdict);
}

}  // namespace kiln
