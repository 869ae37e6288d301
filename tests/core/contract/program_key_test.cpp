#include <kiln/device.hpp>
#include <kiln/program.hpp>

#include <catch2/catch.hpp>

#include <functional>
#include <utility>
#include <vector>

using namespace kiln;

namespace {

KernelSource source() {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = "void main() {}";
  source.constants = {{"N", "4"}, {"M", "5"}};
  source.bindings = {Access::read, Access::write};
  source.workgroup = {8, 4, 1};
  return source;
}

DeviceInfo device() {
  DeviceInfo info;
  info.id = "gpu:0";
  info.device_identity = {{"vendor", "v"}, {"model", "m"}};
  info.driver_identity = {{"version", "1.2"}};
  return info;
}

}  // namespace

TEST_CASE("program key: everything that can change the program changes the key", "[contract]") {
  const Digest digest = key_of(source(), device(), "label").digest;
  const std::vector<std::pair<std::string, std::function<void(KernelSource&, DeviceInfo&)>>> changes = {
      {"dialect", [](KernelSource& s, DeviceInfo&) { s.dialect = Dialect::opencl_c; }},
      {"text", [](KernelSource& s, DeviceInfo&) { s.text += " "; }},
      {"entry", [](KernelSource& s, DeviceInfo&) { s.entry = "other"; }},
      {"a constant's value", [](KernelSource& s, DeviceInfo&) { s.constants[0].text = "6"; }},
      {"a constant's name", [](KernelSource& s, DeviceInfo&) { s.constants[0].name = "K"; }},
      {"the order of constants", [](KernelSource& s, DeviceInfo&) { std::swap(s.constants[0], s.constants[1]); }},
      {"a constant less", [](KernelSource& s, DeviceInfo&) { s.constants.pop_back(); }},
      {"an access", [](KernelSource& s, DeviceInfo&) { s.bindings[1] = Access::read_write; }},
      {"a binding more", [](KernelSource& s, DeviceInfo&) { s.bindings.push_back(Access::read); }},
      {"the workgroup",
       [](KernelSource& s, DeviceInfo&) {
         s.workgroup = {4, 8, 1};
       }},
      {"the device", [](KernelSource&, DeviceInfo& d) { d.device_identity[1].second = "n"; }},
      {"the driver", [](KernelSource&, DeviceInfo& d) { d.driver_identity[0].second = "1.3"; }},
      {"a fact of the driver", [](KernelSource&, DeviceInfo& d) { d.driver_identity.emplace_back("setting", "x"); }},
      {"device facts for driver facts",
       [](KernelSource&, DeviceInfo& d) { std::swap(d.device_identity, d.driver_identity); }}};
  for (const auto& [what, change] : changes) {
    CAPTURE(what);
    KernelSource changed_source = source();
    DeviceInfo changed_device = device();
    change(changed_source, changed_device);
    CHECK(key_of(changed_source, changed_device, "label").digest != digest);
  }
}

TEST_CASE("program key: labels, ids and names are not part of it", "[contract]") {
  const ProgramKey key = key_of(source(), device(), "label");
  DeviceInfo renamed = device();
  renamed.id = "gpu:1", renamed.name = "another card";
  const ProgramKey other = key_of(source(), renamed, "another label");
  CHECK(other.digest == key.digest);
  CHECK(other.material == key.material);
  CHECK(other.label == "another label");
  CHECK(key.digest == sha256(key.material));
}

TEST_CASE("program handle: pins, by copies too", "[contract]") {
  struct Nothing final : Program {
    std::uint64_t charge() const noexcept override { return 0; }
  };
  auto program = std::make_shared<const Nothing>();
  const std::weak_ptr<const Nothing> watched = program;
  ProgramHandle handle(std::move(program));
  ProgramHandle copy = handle;
  handle = {};
  CHECK_FALSE(handle);
  CHECK(copy);
  CHECK_FALSE(watched.expired());
  copy = {};
  CHECK(watched.expired());
}

TEST_CASE("guard: the last one of a thread to end takes back the epoch that its slot tells", "[contract]") {
  ReaderSlot slot;
  slot.epoch = 7;
  {
    slot.guards = 2;
    const Guard outer(slot);
    { const Guard inner(slot); }
    CHECK(slot.epoch == 7);
  }
  CHECK(slot.epoch == 0);
}
