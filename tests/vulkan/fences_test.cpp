// Fences that pass between devices as sync_files, on a device that is made to share them. Where they order work on a
// card: exchange_test.cpp.
#include <fcntl.h>

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

#include <kiln/fence_exchange.hpp>

#include "vulkan/kernel_under_test.hpp"
#include "vulkan/pretended_card.hpp"

namespace kiln::vulkan {
namespace {

using Words = std::vector<std::uint32_t>;

void share_fences(const Pretence& pretence) {
  become_card(pretence);
  pretence->sync_files = true;
  pretence->extensions = [](std::vector<std::string>& names) {
    names.emplace_back(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
  };
}

// A device that shares fences, and a kernel that adds one to a buffer.
struct Sharing {
  support::FaultyVulkan vulkan{{}, {{"validation", false}}};  // the layer knows of no such files
  std::shared_ptr<Device> device = vulkan.plugin().open("vulkan:0");
  FenceExchange* fences = dynamic_cast<FenceExchange*>(device.get());
  std::unique_ptr<Program> program;
  std::unique_ptr<Buffer> sums = buffer_on(*device, 256, BufferUsage::readback);

  Sharing() {
    REQUIRE(fences != nullptr);
    auto built = device->build(adding_one());
    REQUIRE(built.has_value());
    program = std::move(*built);
    write_words(*sums, Words(lanes, 0));
  }
  std::uint64_t submit() const {
    Buffer* const bindings[] = {sums.get()};
    const PassLaunch launch{program.get(), bindings, {1, 1, 1}};
    const auto value = device->submit({{&launch, 1}});
    INFO((value ? std::string() : value.error().text()));
    REQUIRE(value.has_value());
    return *value;
  }
  void wait(std::uint64_t value) const {
    REQUIRE(device->wait(value, Deadline::after(std::chrono::seconds(60))).has_value());
  }
};

}  // namespace

TEST_CASE("vulkan fences: they are shared where semaphores pass both ways as sync_files", "[vulkan][fences]") {
  if (!on_software()) return;
  constexpr VkExternalSemaphoreFeatureFlags out = VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT,
                                            in = VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT;
  const struct {
    VkExternalSemaphoreFeatureFlags features;
    bool listed, shares;
  } cases[] = {
      {out | in, true, true}, {out, true, false}, {in, true, false}, {0, true, false}, {out | in, false, false}};
  for (const auto& each : cases) {
    INFO(each.features << (each.listed ? "" : ", without the extension"));
    const Pretence pretence;
    share_fences(pretence);
    pretence->semaphore_features = each.features;
    if (!each.listed) pretence->extensions = nullptr;
    const Sharing sharing;
    const std::uint64_t value = sharing.submit();
    const auto exported = sharing.fences->export_fence(value);
    CHECK(exported.has_value() == each.shares);
    const std::string words = "unsupported: vulkan:0: Test Card (of a test) does not support sync_file descriptors";
    if (!exported) {
      CHECK(exported.error().text() == words);
      CHECK(sharing.fences->wait_for_fence(0).text() == words);
    }
    sharing.wait(value);
  }
}

TEST_CASE("vulkan fences: an exported fence takes a value of its own, and its semaphore serves again",
          "[vulkan][fences]") {
  if (!on_software()) return;
  const Pretence pretence;
  share_fences(pretence);
  const Sharing sharing;
  for (const std::uint64_t value : {0, 1}) {
    const auto none = sharing.fences->export_fence(value);
    REQUIRE_FALSE(none);
    CHECK(none.error().text() ==
          "not_found: vulkan:0: submission " + std::to_string(value) + " does not exist, the last submission is 0");
  }
  CHECK(pretence->shared_semaphores == 0);
  for (std::uint64_t round = 0; round < 4; ++round) {
    const std::uint64_t value = sharing.submit();
    CHECK(value == 3 * round + 1);
    const auto fd = sharing.fences->export_fence(value);
    REQUIRE(fd.has_value());
    CHECK(fcntl(fd->get(), F_GETFD) == FD_CLOEXEC);
    const std::uint64_t next = sharing.submit();
    CHECK(next == 3 * round + 3);
    sharing.wait(value);
    sharing.wait(next);
    CHECK(pretence->shared_semaphores == 1);
  }
  CHECK(read_words(*sharing.sums) == Words(lanes, 8));
  // Two that are in flight together have one each.
  const std::uint64_t last = sharing.submit();
  REQUIRE(sharing.fences->export_fence(last).has_value());
  REQUIRE(sharing.fences->export_fence(last).has_value());
  CHECK(pretence->shared_semaphores == 2);
  sharing.wait(last);
}

TEST_CASE("vulkan fences: a semaphore whose export failed stays signalled, and does not serve again",
          "[vulkan][fences]") {
  if (!on_software()) return;
  const Pretence pretence;
  share_fences(pretence);
  const Sharing sharing;
  const auto export_one = [&] {
    const std::uint64_t value = sharing.submit();
    const auto fd = sharing.fences->export_fence(value);
    sharing.wait(value);
    sharing.wait(sharing.submit());
    return fd ? ok_status() : fd.error();
  };
  CHECK(export_one().ok());
  CHECK(pretence->shared_semaphores == 1);
  pretence.fail("vkGetSemaphoreFdKHR", 0, VK_ERROR_TOO_MANY_OBJECTS);
  CHECK(export_one().text() == "unavailable: vulkan:0: exporting a fence: VK_ERROR_TOO_MANY_OBJECTS");
  CHECK(export_one().ok());
  CHECK(export_one().ok());
  CHECK(pretence->shared_semaphores == 2);
  pretence.fail("vkQueueSubmit", 1);  // the fence's own submission
  CHECK(export_one().text() == "unavailable: vulkan:0: a submission for a fence: VK_ERROR_OUT_OF_DEVICE_MEMORY");
  CHECK(export_one().ok());
}

TEST_CASE("vulkan fences: what is no sync_file is not waited for", "[vulkan][fences]") {
  if (!on_software()) return;
  const Pretence pretence;
  share_fences(pretence);
  const Sharing sharing;
  const UniqueFd other(open("/dev/null", O_RDONLY | O_CLOEXEC));
  CHECK(sharing.fences->wait_for_fence(other.get()).text() ==
        "invalid_argument: vulkan:0: descriptor " + std::to_string(other.get()) + " is not a sync_file");
  CHECK(pretence->shared_semaphores == 0);
  sharing.wait(sharing.submit());
}

}  // namespace kiln::vulkan
