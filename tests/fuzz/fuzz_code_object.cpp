// Any bytes as a code object: kernels that lie within an image, or a refusal with a word.
#include <algorithm>
#include <cstdlib>

#include "amdgpu_pm4/code_object/code_object.hpp"

namespace {

using namespace kiln::amdgpu_pm4;

void check(const CodeObject& object, const KernelCode& kernel) {
  if (kernel.entry % 256 != 0 || kernel.entry >= object.image.size() || object.image.size() - kernel.entry < 256) {
    std::abort();
  }
  if (find_kernel(object, kernel.name) != &kernel || kernel.kernarg_bytes > (64 << 10)) std::abort();
  std::uint32_t sgprs = 0;
  for (const UserSgprSlot& slot : kernel.user_sgpr_slots) {
    if (slot.first != sgprs) std::abort();
    sgprs += slot.count;
  }
  if (sgprs > kernel.user_sgprs || kernel.user_sgprs > 16) std::abort();
  // With a value for each argument the segment is written, within its bounds, unless something is not offered.
  std::vector<std::uint64_t> buffers;
  std::vector<std::vector<std::byte>> values;
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.kind == ArgumentKind::global_buffer) buffers.push_back(argument.offset);
    if (argument.kind == ArgumentKind::by_value) values.emplace_back(argument.size);
  }
  const std::vector<std::span<const std::byte>> by_value(values.begin(), values.end());
  std::vector<std::byte> segment(kernel.kernarg_bytes);
  const bool written = write_kernarg(kernel, {buffers, by_value, {3, 2, 1}, {64, 1, 1}}, segment).ok();
  if (check_dispatch(object, kernel).ok() && !written) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto object = read_code_object(std::as_bytes(std::span(data, size)));
  if (!object) {
    if (object.error().message.empty()) std::abort();
    return 0;
  }
  if (object->kernels.empty()) std::abort();
  for (const KernelCode& kernel : object->kernels) check(*object, kernel);
  for (const AddressWord& word : object->address_words) {
    if (object->image.size() < 8 || word.offset > object->image.size() - 8 || word.target > object->image.size()) {
      std::abort();
    }
  }
  if (describe(*object).empty()) std::abort();
  return 0;
}
