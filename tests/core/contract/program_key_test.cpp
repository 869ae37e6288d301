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

// One change for each member of KernelSource: a new member does not compile here until it has one.
TEST_CASE("program key: each member of a source changes the key, but the two that it does not hold", "[contract]") {
  KernelSource changed = source();
  changed.views = {View::storage, View::texels};
  const Digest before = key_of(changed, device(), "").digest;
  const KernelSource same = changed;
  auto& [dialect, text, entry, constants, bindings, views, workgroup, files, spec] = changed;
  bool in_key = true;
  SECTION("dialect") { dialect = Dialect::code_object; }
  SECTION("text") { text[0] = 'V'; }
  SECTION("entry") { entry += "2"; }
  SECTION("constants") { constants.push_back({"O", ""}); }
  SECTION("a constant's name and text, together the same letters") { constants[0] = {"N4", ""}; }
  SECTION("bindings") { bindings[0] = Access::write; }
  SECTION("one binding less") { bindings.pop_back(), views.pop_back(); }
  SECTION("views") { views[1] = View::image; }
  SECTION("the other view") { views = {View::texels, View::storage}; }
  SECTION("no view of texels") { views[1] = View::storage; }
  SECTION("lanes in x") { workgroup[0] = 9; }
  SECTION("lanes in y") { workgroup[1] = 9; }
  SECTION("lanes in z") { workgroup[2] = 9; }
  SECTION("names of files") {
    files = {"a.glsl"};
    in_key = false;
  }
  SECTION("the spec, whose text is the source's") {
    spec = GemmSpec{};
    in_key = false;
  }
  CHECK((key_of(changed, device(), "").digest != before) == in_key);
  CHECK(key_of(same, device(), "").digest == before);
}

// Likewise for DeviceInfo, of which only the identities count.
TEST_CASE("program key: of a device its identities alone change the key", "[contract]") {
  DeviceInfo changed = device();
  const Digest before = key_of(source(), changed, "").digest;
  auto& [id, kind, name, driver, usable, why_not, device_identity, driver_identity, speed_identity, dialects,
         shared_resource, physical_id, serializes, wraps_host_memory, shares_memory, shares_buffers, runs_chains,
         indirect_grids, max_grid, max_workgroup, max_workgroup_lanes, max_bindings, max_buffer_bytes,
         max_texel_bindings, max_image_bindings, max_view_texels, max_shared_bytes, simd_lanes, glsl_barrier,
         roof_gflops, builds_apart, driver_cache] = changed;
  bool in_key = false;
  SECTION("names and kinds") {
    id = "gpu:9", name = "n", driver = "d", why_not = "w", shared_resource = "s", physical_id = "p";
    kind = DeviceKind::gpu, usable = true, driver_cache = "adopted", glsl_barrier = "b";
  }
  SECTION("facts of speed alone") { speed_identity = {{"compute units", "60"}}; }
  SECTION("abilities and limits") {
    dialects = {Dialect::glsl};
    serializes = wraps_host_memory = shares_memory = shares_buffers = runs_chains = indirect_grids = builds_apart =
        true;
    max_grid = max_workgroup = {7, 7, 7};
    max_workgroup_lanes = max_bindings = max_texel_bindings = max_image_bindings = max_shared_bytes = simd_lanes = 7;
    max_buffer_bytes = max_view_texels = 7;
    roof_gflops = 7;
  }
  SECTION("a name in the device's identity") {
    device_identity[0].first = "maker";
    in_key = true;
  }
  SECTION("the order in the device's identity") {
    std::swap(device_identity[0], device_identity[1]);
    in_key = true;
  }
  SECTION("a name in the driver's identity") {
    driver_identity[0].first = "release";
    in_key = true;
  }
  SECTION("an empty fact more") {
    driver_identity.emplace_back("", "");
    in_key = true;
  }
  CHECK((key_of(source(), changed, "").digest != before) == in_key);
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
