#include "runtime/verification.hpp"

#include "reference/operation_reference.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace kiln {
namespace {

using reference::Comparison;

Shape index_in(const Shape& shape, std::int64_t element) {
  Shape index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = element % shape[axis];
    element /= shape[axis];
  }
  return index;
}

Result<reference::Expected> expect(const RunRequest& request) {
  std::vector<const HostTensor*> operands;
  for (const TensorArgument& tensor : request.tensors) {
    operands.push_back(tensor.host != nullptr ? tensor.host.get() : &tensor.constant->tensor());
  }
  operands.pop_back();  // the output
  return reference::expect(request.spec, operands);
}

Result<Comparison> compare(const RunRequest& request) {
  const std::span<const float> output = std::as_const(*request.tensors.back().host).as<float>();
  if (request.reference != nullptr)
    return reference::compare_expected(request.reference->expected, output, request.tolerance);
  const auto expected = expect(request);
  if (!expected) return expected.error();
  return reference::compare_expected(*expected, output, request.tolerance);
}

Result<std::optional<Verdict>> verify_user_kernel(const RunRequest& request, const UserKernelSpec& spec) {
  Verdict verdict;
  bool compared = false;
  std::size_t tensor = 0;
  std::size_t result = 0;
  for (std::size_t i = 0; i < spec.bindings.size(); ++i) {
    const UserKernelSpec::Binding& binding = spec.bindings[i];
    if (!has_tensor(binding.kind)) continue;
    const HostTensor& actual = *request.tensors[tensor++].host;
    if (binding.access == Access::read || result == request.expected.size()) continue;
    const ExpectedOutput& expected = request.expected[result++];
    if (expected.tensor == nullptr) continue;
    const std::string name = expected.name.empty() ? "bindings[" + std::to_string(i) + "]" : expected.name;
    const std::optional<Tolerance> tolerance = expected.tolerance ? expected.tolerance : request.tolerance;
    const auto comparison = reference::compare_tensors(actual, *expected.tensor, tolerance);
    if (!comparison) return comparison.error().within(name);
    add_comparison(verdict, *comparison, actual.shape(), name);
    compared = true;
  }
  if (!compared) return std::optional<Verdict>();
  return std::optional<Verdict>(verdict);
}

}  // namespace

void add_comparison(Verdict& verdict, const reference::Comparison& comparison, const Shape& shape,
                    const std::string& name) {
  const bool first_wrong = comparison.wrong != 0 && verdict.wrong == 0;
  if (comparison.elements != 0 && (verdict.elements == 0 || first_wrong)) {
    verdict.worst = {name, index_in(shape, comparison.worst_index), comparison.worst_found, comparison.worst_expected,
                     comparison.worst_allowed};
  }
  verdict.within = verdict.within && comparison.within;
  verdict.max_rel_error = std::max(verdict.max_rel_error, comparison.max_rel_error);
  verdict.error_bound = std::max(verdict.error_bound, comparison.error_bound);
  verdict.elements += static_cast<std::uint64_t>(comparison.elements);
  verdict.wrong += static_cast<std::uint64_t>(comparison.wrong);
}

std::string wrong_text(const Verdict& verdict) {
  char numbers[160];
  std::snprintf(numbers, sizeof numbers, ": found %.9g, expected %.9g, allowed error %.3g", verdict.worst.found,
                verdict.worst.expected, verdict.worst.allowed);
  return std::to_string(verdict.wrong) + " of " + std::to_string(verdict.elements) +
         (verdict.elements == 1 ? " element" : " elements") + (verdict.wrong == 1 ? " is" : " are") +
         " wrong; worst in " + verdict.worst.output + " at " + to_string(verdict.worst.index) + numbers;
}

Status check_verifiable(const RunRequest& request) {
  if (!request.verify || operation_of(request.spec).is_layer) return {};
  const auto has_reference = [](const ExpectedOutput& expected) { return expected.tensor != nullptr; };
  if (std::ranges::any_of(request.expected, has_reference)) return {};
  return invalid_argument("verify: the results of job '" + request.name +
                          "' have no reference to compare with. Give `expect` for a result, or leave verify out");
}

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
  add_comparison(verdict, *comparison, request.tensors.back().host->shape(), "output");
  return std::optional<Verdict>(verdict);
}

}  // namespace kiln
