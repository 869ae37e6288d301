// Random programs and jobs: each pair is right by an evaluation on the CPU, or refused with the resource named. The
// short form runs 300 pairs of one seed, the long form 2,000 of each of three seeds. KILN_TEST_SEED=N runs 2,000 of
// that one.
#ifdef KILN_HAS_GENERATOR
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>

#include "opengl/support/interface_pairs.hpp"
#include "opengl/support/kernels.hpp"
#include "support/test_length.hpp"

namespace kiln::opengl {
namespace {

using support::InterfacePair;
using support::InterfacePairs;

void check_pairs(Runtime& runtime, std::uint64_t seed, int count) {
  InterfacePairs pairs(seed);
  int right = 0, faults = 0;
  for (int i = 0; i < count; ++i) {
    const InterfacePair pair = pairs.next();
    const RunReport report = runtime.run(pair.request);
    const std::string fault = pair.fault(report.status);
    if (pair.words.empty()) ++right;
    if (fault.empty()) continue;
    ++faults;
    FAIL_CHECK("seed " << seed << ", pair " << i << ": " << fault << "\n" << pair.text());
    REQUIRE(faults < 20);
  }
  CHECK(right > count / 4);
  CHECK(right < count * 3 / 4);
}

}  // namespace

TEST_CASE("opengl: random interfaces and jobs give the right result or name the resource",
          "[opengl][interface][unsanitized]") {
  // A device with memory of its own does not map its buffers, and uniforms are read by the host.
  const std::string mapping = GENERATE("auto", "staging", "never");
  support::OpenGl opengl;
  if (!opengl.usable()) return;
  Registry& registry = opengl.plugin().registry();
  REQUIRE(register_core(registry).ok());
  opengl.plugin().add("dynamic_shaders");  // a Runtime takes its plans of users' kernels from a generator's place
  std::string folder = (std::filesystem::temp_directory_path() / "kiln-pairs-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  {
    Config config;
    config.cache.directory = folder + "/cache";
    config.cache.key_file = folder + "/key";
    config.plugin["opengl"]["persistent_mapping"].value = mapping;
    auto runtime = Runtime::create(config, registry, {});
    INFO((runtime ? "" : runtime.error().text()));
    REQUIRE(runtime);
    const char* seed = std::getenv("KILN_TEST_SEED");
    if (seed != nullptr) {
      check_pairs(**runtime, std::strtoull(seed, nullptr, 10), 2000);
    } else if (test::is_long()) {
      for (const std::uint64_t each : {1, 2, 3}) check_pairs(**runtime, each, 2000);
    } else {
      check_pairs(**runtime, 1, test::is_sanitized || mapping != "auto" ? 60 : 300);
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace kiln::opengl
#endif
