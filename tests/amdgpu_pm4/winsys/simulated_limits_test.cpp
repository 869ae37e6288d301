// Limits of buffers, of submissions and of what the GPU may do, on the simulated node.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"
#include "winsys/simulated_node.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr Placement in_system_memory{Heap::gtt, HostMapping::cached};

Deadline in_ten_seconds() { return Deadline::after(std::chrono::seconds(10)); }

// A context on the simulated node, and a buffer with a store of each number to a target's beginning, 64 bytes apart.
struct Stores {
  std::unique_ptr<Winsys> winsys = open_simulated_node();
  std::unique_ptr<Context> context;
  std::unique_ptr<Timeline> timeline;
  std::unique_ptr<BufferObject> commands = made(16384, GpuAccess::read);

  Stores() {
    auto new_context = winsys->create_context(Priority::normal);
    auto new_timeline = winsys->create_timeline();
    REQUIRE((new_context && new_timeline));
    context = std::move(*new_context);
    timeline = std::move(*new_timeline);
  }
  std::unique_ptr<BufferObject> made(std::uint64_t bytes, GpuAccess access) const {
    auto buffer = winsys->create_buffer({bytes, 0, in_system_memory, access});
    INFO((buffer ? std::string() : buffer.error().text()));
    REQUIRE(buffer);
    return std::move(*buffer);
  }
  // The ranges of `count` stores: of 1, 2, 3 and so on.
  std::vector<CommandRange> stores_to(const BufferObject& target, std::uint32_t count) const {
    std::vector<CommandRange> ranges;
    auto* const dwords = reinterpret_cast<std::uint32_t*>(commands->mapped().data());
    for (std::uint32_t i = 0; i < count; ++i) {
      PacketWriter out(std::span(dwords + 16 * i, 16));
      const std::uint32_t values[] = {i + 1};
      REQUIRE(emit_write_data(out, target.address(), values));
      REQUIRE(emit_fillers(out, 16 - out.size()));
      ranges.push_back({commands->address() + 64 * i, 64});
    }
    return ranges;
  }
  // How a submission of them ended.
  Status run(const BufferObject& target, std::span<const CommandRange> ranges) const {
    const std::uint32_t list[] = {commands->handle(), target.handle()};
    const SyncPoint done{timeline->handle(), 1};
    const auto number = context->submit({ranges, list, {}, {&done, 1}, 0});
    if (!number) return number.error();
    REQUIRE(timeline->wait(1, in_ten_seconds()).ok());
    return context->outcome(*number, 0, in_ten_seconds()).how;
  }
};

std::uint32_t first_dword_of(BufferObject& buffer) {
  std::uint32_t first = 0;
  std::memcpy(&first, buffer.mapped().data(), sizeof first);
  return first;
}

}  // namespace

TEST_CASE("drm winsys: one to 125 command buffers run in order") {
  if (simulated_node().empty()) return;
  for (const std::uint32_t count : {1u, 2u, 125u}) {
    const Stores s;
    const auto target = s.made(4096, GpuAccess::read_write);
    INFO(count << " command buffers");
    CHECK(s.run(*target, s.stores_to(*target, count)).text() == "ok");
    CHECK(first_dword_of(*target) == count);  // the last one's
  }
}

TEST_CASE("drm winsys: the GPU writes only to what it may write") {
  if (simulated_node().empty()) return;
  for (const GpuAccess access : {GpuAccess::read, GpuAccess::read_write, GpuAccess::read_execute}) {
    const Stores s;
    const auto target = s.made(4096, access);
    INFO(static_cast<int>(access));
    CHECK(s.run(*target, s.stores_to(*target, 1)).ok() == (access == GpuAccess::read_write));
    CHECK(first_dword_of(*target) == (access == GpuAccess::read_write ? 1 : 0));
    const auto state = s.context->reset_state();
    REQUIRE(state);
    CHECK(state->reset == (access != GpuAccess::read_write));
    CHECK(state->guilty == state->reset);
    CHECK(state->fault.empty() == !state->guilty);
  }
}

TEST_CASE("drm winsys: buffers have whole pages, at the alignment that is asked for") {
  if (simulated_node().empty()) return;
  const auto winsys = open_simulated_node();
  std::vector<std::unique_ptr<BufferObject>> kept;  // so that each lies elsewhere
  struct Row {
    std::uint64_t asked, alignment, bytes, multiple;
  };
  for (const Row& row : {Row{1, 0, 4096, 4096},
                         {4095, 1, 4096, 4096},
                         {4096, 4096, 4096, 4096},
                         {4097, 0, 8192, 4096},
                         {4096, 65536, 4096, 65536},
                         {1, 0, 4096, 4096},
                         {8193, 262144, 12288, 262144}}) {
    auto made = winsys->create_buffer({row.asked, row.alignment, in_system_memory, GpuAccess::read_write});
    REQUIRE(made);
    kept.push_back(std::move(*made));
    CHECK(kept.back()->bytes() == row.bytes);
    CHECK(kept.back()->address() % row.multiple == 0);
    CHECK(kept.back()->mapped().size() == row.bytes);
  }
  auto hidden = winsys->create_buffer({4096, 0, {Heap::vram, HostMapping::none}, GpuAccess::read_write});
  REQUIRE(hidden);
  CHECK((*hidden)->mapped().empty());
}

TEST_CASE("drm winsys: sizes that no whole page ends are refused before the kernel driver is asked") {
  if (simulated_node().empty()) return;
  const auto winsys = open_simulated_node();
  const auto said = [&](std::uint64_t bytes) {
    const auto made = winsys->create_buffer({bytes, 0, in_system_memory, GpuAccess::read_write});
    REQUIRE_FALSE(made);
    return made.error().text();
  };
  const std::string begin = "invalid_argument: " + winsys->facts().path + ": amdgpu_bo_alloc of ";
  CHECK(said(18446744073709551615u) == begin + "18446744073709551615 bytes");
  CHECK(said(18446744073709547520u) == begin + "18446744073709547520 bytes");
  CHECK_THAT(said(18446744073709547519u), Catch::Contains("amdgpu_bo_alloc of 18446744073709547519 bytes: "));
}

TEST_CASE("drm winsys: points and descriptors that are none are named in the error") {
  if (simulated_node().empty()) return;
  const Stores s;
  const std::string path = s.winsys->facts().path;
  REQUIRE(s.timeline->signal(3).ok());
  const Status early = s.timeline->wait(4, {Clock::now()});
  CHECK_FALSE(early.ok());
  CHECK_THAT(early.message, Catch::StartsWith(path + ": waiting for point 4: "));
  CHECK(s.timeline->wait(3, {Clock::now()}).ok());
  CHECK(*s.timeline->passed() == 3);
  const Status imported = s.timeline->import_sync_file(9, -1);
  CHECK_FALSE(imported.ok());
  CHECK_THAT(imported.message, Catch::StartsWith(path + ": importing descriptor -1 as point 9: "));
  CHECK(*s.timeline->passed() == 3);
}

TEST_CASE("drm winsys: the simulated node is listed with its vendor and its place, and tells its driver") {
  if (simulated_node().empty()) return;
  const NodeSource nodes = libdrm_nodes();
  const auto listed = nodes.list();
  REQUIRE(listed);
  const auto found = std::ranges::find(*listed, simulated_node(), &RenderNode::path);
  REQUIRE(found != listed->end());
  CHECK(found->vendor == 0x1002);
  REQUIRE(found->bus.size() == 12);
  for (const std::size_t colon : {4, 7}) CHECK(found->bus[colon] == ':');
  CHECK(found->bus[10] == '.');
  const auto version = nodes.version(*found);
  REQUIRE(version);
  CHECK(version->name == "amdgpu");
  CHECK_THAT(version->description, Catch::Contains("kiln-simulated"));
  CHECK(std::ranges::count(version->number, '.') == 2);
  CHECK(version->number.starts_with("3."));
  const auto opened = nodes.open(*found);
  REQUIRE(opened);
  CHECK((*opened)->facts().path == simulated_node());
}

}  // namespace kiln::amdgpu_pm4
