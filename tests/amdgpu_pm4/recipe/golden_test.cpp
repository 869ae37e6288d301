// Whole submissions of one dispatch against golden streams: any change of what is submitted shows here.
#include <catch2/catch.hpp>

#include "packets/dword_file.hpp"
#include "recipe/sample.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

std::vector<std::uint32_t> submission_of(const KernelCode& kernel, const DeviceShape& shape) {
  SampleChunks chunks(1024);
  CommandStream stream(shape, chunks);
  REQUIRE(stream.begin().ok());
  const auto dispatch = RecordedDispatch::record(kernel, shape, sample_place(kernel, shape));
  REQUIRE(dispatch.has_value());
  REQUIRE(stream.timestamp(0x8000104000).ok());
  REQUIRE(stream.dispatch(*dispatch, {sample_kernarg_va, {16, 1, 1}, {}}).ok());
  REQUIRE(stream.timestamp(0x8000104008).ok());
  REQUIRE(stream.signal(0x8000104010, 1).ok());
  const auto buffers = stream.finish();
  REQUIRE(buffers.has_value());
  REQUIRE(buffers->size() == 1);
  return {buffers->front().dwords.begin(), buffers->front().dwords.end()};
}

}  // namespace

TEST_CASE("pm4 recipe: submissions are the golden ones") {
  CHECK(submission_of(sample_kernel_gfx11(), navi31) ==
        read_dword_file(golden_pm4_folder() + "dispatch_gfx11.dwords").dwords);
  CHECK(submission_of(with_scratch(sample_kernel_gfx10_3(), 260), navi21) ==
        read_dword_file(golden_pm4_folder() + "dispatch_scratch_gfx10_3.dwords").dwords);
}

}  // namespace kiln::amdgpu_pm4
