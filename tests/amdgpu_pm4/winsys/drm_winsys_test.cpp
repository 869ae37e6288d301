// The winsys over unmodified libdrm_amdgpu, on the simulated node.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/winsys/chip.hpp"
#include "amdgpu_pm4/winsys/drm_winsys.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"
#include "winsys/simulated_node.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

std::unique_ptr<BufferObject> make(Winsys& winsys, BufferUse use, std::uint64_t bytes = 4096) {
  auto made = winsys.create_buffer({bytes, 0, placement_of(use, winsys.facts().memory), access_of(use)});
  INFO((made ? std::string() : made.error().text()));
  REQUIRE(made.has_value());
  return std::move(made).value();
}

std::span<std::uint32_t> dwords_of(BufferObject& buffer) {
  const auto memory = buffer.mapped();
  return {reinterpret_cast<std::uint32_t*>(memory.data()), memory.size() / 4};
}

// A node with what a submission needs.
struct Fixture {
  std::unique_ptr<Winsys> winsys = open_simulated_node();
  std::unique_ptr<Context> context;
  std::unique_ptr<Timeline> timeline;
  std::unique_ptr<BufferObject> commands = make(*winsys, BufferUse::commands);
  std::unique_ptr<BufferObject> target = make(*winsys, BufferUse::storage);

  Fixture() {
    renew();
    auto made = winsys->create_timeline();
    REQUIRE(made.has_value());
    timeline = std::move(made).value();
  }
  void renew() {
    auto made = winsys->create_context(Priority::normal);
    REQUIRE(made.has_value());
    context = std::move(made).value();
  }
  // Stores the value at the target's start.
  Result<std::uint64_t> submit(std::uint32_t value, std::uint64_t point, std::vector<SyncPoint> waits = {}) {
    PacketWriter out(dwords_of(*commands));
    const std::uint32_t values[] = {value};
    REQUIRE(emit_write_data(out, target->address(), values));
    return submit(out, point, {commands->handle(), target->handle()}, std::move(waits));
  }
  Result<std::uint64_t> submit(PacketWriter& out, std::uint64_t point, std::vector<std::uint32_t> list,
                               std::vector<SyncPoint> waits = {}) {
    REQUIRE(emit_fillers(out, (8 - out.size() % 8) % 8));
    const CommandRange range{commands->address(), static_cast<std::uint32_t>(out.size() * 4)};
    const SyncPoint done{timeline->handle(), point};
    return context->submit({{&range, 1}, list, waits, {&done, 1}, 0});
  }
  Deadline soon() const { return Deadline::after(std::chrono::seconds(5)); }
};

}  // namespace

TEST_CASE("drm winsys: a simulated node tells its chip, its memory and its rings") {
  if (simulated_node().empty()) return;
  const auto winsys = open_simulated_node();
  const NodeFacts& facts = winsys->facts();
  const auto chip = identify_chip(facts.family, facts.external_revision);
  REQUIRE(chip.has_value());
  CHECK(facts.interface_major == 3);
  CHECK(facts.compute_units > 0);
  CHECK(facts.shader_engines > 0);
  CHECK(facts.counter_khz > 0);
  CHECK(facts.engine_khz > 0);
  CHECK(facts.memory.vram_bytes > 0);
  CHECK(facts.memory.gtt_bytes > 0);
  CHECK(facts.compute.rings != 0);
  CHECK(facts.compute.ib_start_alignment > 0);
  CHECK_THAT(facts.library, Catch::StartsWith("libdrm_amdgpu.so.1 build-id "));
  CHECK(winsys->vram_losses().has_value());
}

TEST_CASE("library identity: the build-id is found behind other notes, and is left out where there is none") {
  const auto identity = [](const char* path) {
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    INFO(path);
    REQUIRE(library != nullptr);
    const void* const function = dlsym(library, "kiln_noted_function");
    REQUIRE(function != nullptr);
    const std::string found = library_identity(function);
    dlclose(library);
    return found;
  };
  CHECK(identity(KILN_NOTED_LIBRARY) == "kiln_noted.so build-id 0123456789abcd");
  CHECK(identity(KILN_NOTED_LIBRARY_WITHOUT_BUILD_ID) == "kiln_noted_without_build_id.so");
  const auto of_no_library = std::make_unique<int>();
  CHECK(library_identity(of_no_library.get()) == "unknown");
}

TEST_CASE("drm winsys: what is no node is unavailable with the system's words") {
  const auto missing = DrmWinsys::open("/dev/dri/no such node");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code == StatusCode::unavailable);
  CHECK_THAT(missing.error().message, Catch::Contains("/dev/dri/no such node") && Catch::Contains("No such file"));
  const auto other = DrmWinsys::open("/dev/null");  // a device file that is no graphics card
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().code == StatusCode::unavailable);
  CHECK_THAT(other.error().message, Catch::StartsWith("/dev/null: "));
}

TEST_CASE("drm winsys: buffers of every use have an address of their own and the mapping that they asked for") {
  if (simulated_node().empty()) return;
  const auto winsys = open_simulated_node();
  std::vector<std::unique_ptr<BufferObject>> buffers;
  for (const BufferUse use :
       {BufferUse::upload, BufferUse::readback, BufferUse::storage, BufferUse::constant, BufferUse::code,
        BufferUse::commands, BufferUse::arguments, BufferUse::reports, BufferUse::scratch}) {
    INFO("use " << static_cast<int>(use));
    for (const std::uint64_t bytes : {1u, 4096u, 5000u, 5u << 20}) {
      buffers.push_back(make(*winsys, use, bytes));
      BufferObject& buffer = *buffers.back();
      CHECK(buffer.bytes() == (bytes + 4095) / 4096 * 4096);
      CHECK(buffer.address() % 4096 == 0);
      if (bytes >= winsys->facts().fragment_bytes) CHECK(buffer.address() % winsys->facts().fragment_bytes == 0);
      CHECK(buffer.access() == access_of(use));
      REQUIRE(buffer.mapped().size() == (use == BufferUse::scratch ? 0 : buffer.bytes()));
      for (const std::byte each : buffer.mapped().first(std::min<std::size_t>(buffer.mapped().size(), 64))) {
        CHECK(each == std::byte{0});  // nobody else's contents
      }
      if (!buffer.mapped().empty()) std::memset(buffer.mapped().data(), 0x5a, buffer.bytes());
    }
  }
  for (const auto& a : buffers) {
    for (const auto& b : buffers) {
      if (a == b) continue;
      CHECK(a->handle() != b->handle());
      CHECK((a->address() >= b->address() + b->bytes() || b->address() >= a->address() + a->bytes()));
    }
  }
}

TEST_CASE("drm winsys: an allocation that cannot be is a typed error") {
  if (simulated_node().empty()) return;
  const auto winsys = open_simulated_node();
  for (const std::uint64_t bytes : {std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    const auto made = winsys->create_buffer(
        {bytes, 0, placement_of(BufferUse::storage, winsys->facts().memory), GpuAccess::read_write});
    REQUIRE_FALSE(made.has_value());
    INFO(made.error().text());
    CHECK((made.error().code == StatusCode::unavailable || made.error().code == StatusCode::invalid_argument));
    CHECK_THAT(made.error().message, Catch::Contains(std::to_string(bytes)));
  }
}

TEST_CASE("drm winsys: memory is shared by descriptor") {
  if (simulated_node().empty()) return;
  const auto winsys = open_simulated_node();
  const auto buffer = make(*winsys, BufferUse::storage, 10000);
  std::memcpy(buffer->mapped().data(), "shared", 7);
  auto fd = buffer->export_fd();
  REQUIRE(fd.has_value());
  auto imported = winsys->import_buffer(fd->get(), GpuAccess::read_write);
  INFO((imported ? std::string() : imported.error().text()));
  REQUIRE(imported.has_value());
  *fd = UniqueFd();
  CHECK((*imported)->bytes() == buffer->bytes());
  CHECK((*imported)->address() != buffer->address());
  CHECK(std::memcmp((*imported)->mapped().data(), "shared", 7) == 0);
  const auto nothing = winsys->import_buffer(-1, GpuAccess::read_write);
  REQUIRE_FALSE(nothing.has_value());
  CHECK_THAT(nothing.error().message, Catch::Contains("descriptor -1"));
}

TEST_CASE("drm winsys: a timeline's points are waited for with a deadline") {
  if (simulated_node().empty()) return;
  Fixture f;
  CHECK(*f.timeline->passed() == 0);
  REQUIRE(f.timeline->signal(3).ok());
  CHECK(*f.timeline->passed() == 3);
  CHECK(f.timeline->wait(2, {Clock::now() - std::chrono::seconds(1)}).ok());
  CHECK(f.timeline->wait(3, Deadline::never()).ok());
  const auto sync_file = f.timeline->export_sync_file(3);
  REQUIRE(sync_file.has_value());
  CHECK(sync_file->get() >= 0);
}

TEST_CASE("drm winsys: a submission runs, passes its point, and tells its outcome") {
  if (simulated_node().empty()) return;
  Fixture f;
  for (std::uint32_t i = 1; i <= 20; ++i) {
    const auto number = f.submit(0xabc0 + i, i);
    INFO((number ? std::string() : number.error().text()));
    REQUIRE(number.has_value());
    CHECK(*number == i);
    REQUIRE(f.timeline->wait(i, f.soon()).ok());
    CHECK(f.context->outcome(*number, 0, f.soon()).how.ok());
    CHECK(dwords_of(*f.target)[0] == 0xabc0 + i);
    CHECK(*f.timeline->passed() == i);
  }
  const auto state = f.context->reset_state();
  REQUIRE(state.has_value());
  CHECK_FALSE((state->reset || state->vram_lost || state->guilty));
}

TEST_CASE("drm winsys: a submission waits for points of other timelines, once something is to pass them") {
  if (simulated_node().empty()) return;
  Fixture f;
  auto gate = f.winsys->create_timeline();
  REQUIRE(gate.has_value());
  const SyncPoint point{(*gate)->handle(), 5};
  const auto early = f.submit(77, 1, {point});
  REQUIRE_FALSE(early.has_value());
  CHECK(early.error().code == StatusCode::invalid_argument);
  REQUIRE((*gate)->signal(5).ok());
  REQUIRE(f.submit(78, 1, {point}).has_value());
  REQUIRE(f.timeline->wait(1, f.soon()).ok());
  CHECK(dwords_of(*f.target)[0] == 78);
}

TEST_CASE("drm winsys: work that touches what is not listed fails, its context is lost, and a new one works") {
  if (simulated_node().empty()) return;
  Fixture f;
  PacketWriter out(dwords_of(*f.commands));
  const std::uint32_t values[] = {1};
  REQUIRE(emit_write_data(out, f.target->address(), values));
  const auto number = f.submit(out, 1, {f.commands->handle()});
  REQUIRE(number.has_value());
  REQUIRE(f.timeline->wait(1, f.soon()).ok());  // passed, by work that failed
  const Status outcome = f.context->outcome(*number, 0, f.soon()).how;
  INFO(outcome.text());
  CHECK_FALSE(outcome.ok());
  CHECK(outcome.code != StatusCode::timeout);
  const auto state = f.context->reset_state();
  REQUIRE(state.has_value());
  CHECK(state->reset);
  CHECK(state->guilty);
  CHECK(f.submit(2, 2).error().code == StatusCode::cancelled);
  f.renew();
  const auto again = f.submit(3, 2);
  REQUIRE(again.has_value());
  REQUIRE(f.timeline->wait(2, f.soon()).ok());
  CHECK(f.context->outcome(*again, 0, f.soon()).how.ok());
  CHECK(dwords_of(*f.target)[0] == 3);
}

TEST_CASE("drm winsys: a submission that the kernel driver refuses is a typed error") {
  if (simulated_node().empty()) return;
  Fixture f;
  for (const std::size_t count : {0, 126}) {
    const std::vector<CommandRange> ranges(count, CommandRange{f.commands->address(), 32});
    const auto refused = f.context->submit({ranges, {}, {}, {}, 0});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == StatusCode::invalid_argument);
    CHECK_THAT(refused.error().message,
               Catch::EndsWith("submission has " + std::to_string(count) + " command buffers, expected 1 to 125"));
  }
  PacketWriter out(dwords_of(*f.commands));
  REQUIRE(emit_fillers(out, 8));
  const auto no_such_buffer = f.submit(out, 1, {f.commands->handle(), 4711});
  REQUIRE_FALSE(no_such_buffer.has_value());
  CHECK(no_such_buffer.error().code == StatusCode::invalid_argument);
  CHECK(f.submit(5, 1).has_value());
  CHECK(f.timeline->wait(1, f.soon()).ok());
}

TEST_CASE("drm winsys: contexts of every priority, or a refusal in words") {
  if (simulated_node().empty()) return;
  const auto winsys = open_simulated_node();
  for (const Priority priority : {Priority::low, Priority::normal, Priority::high}) {
    const auto context = winsys->create_context(priority);
    if (!context) CHECK(context.error().code == StatusCode::unavailable);
    if (priority != Priority::high) CHECK(context.has_value());
  }
}

TEST_CASE("drm winsys: the device's clock runs at the pace that it tells") {
  if (simulated_node().empty()) return;
  const auto winsys = open_simulated_node();
  const std::uint64_t begun = now_ns();
  const auto first = winsys->counter();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto second = winsys->counter();
  const double host_ms = static_cast<double>(now_ns() - begun) / 1e6;
  REQUIRE((first && second));
  const double device_ms = static_cast<double>(*second - *first) / static_cast<double>(winsys->facts().counter_khz);
  CHECK(device_ms >= 45);
  CHECK(device_ms <= host_ms + 1);
}

}  // namespace kiln::amdgpu_pm4
