#include "host/kiln_process.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;

TEST_CASE("the main job: every picture and layer verified on both devices, and nothing built the second time") {
  const TemporaryFolder folder;
  const std::string config = KILN_SOURCE_DIR "/configs/quickstart.toml";
  for (int process = 0; process < 2; ++process) {
    const Finished finished =
        run_kiln({"run", config, "--json", "--cache-dir", folder / "cache"}, {.folder = folder.path()});
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    const auto json = finished.json();
    int on_opengl = 0, on_cpu = 0, memory_on_opengl = 0, memory_on_cpu = 0;
    for (const auto& job : json["jobs"]) {
      INFO(job["name"]);
      CHECK(job["verified"] == true);
      const bool opengl = job["device"]["id"] == "opengl:0";
      (opengl ? on_opengl : on_cpu) += 1;
      // Filters of one size share one program: its first user says where it came from, the others found it in memory.
      const std::string tier = job["program"]["tier"];
      if (tier != "memory") CHECK(tier == (!opengl ? "library" : process == 0 ? "built" : "disk"));
      (opengl ? memory_on_opengl : memory_on_cpu) += tier == "memory" ? 1 : 0;
    }
    CHECK(on_opengl == on_cpu);
    CHECK(on_opengl >= 5);
    CHECK(memory_on_opengl == 2);
    CHECK(memory_on_cpu == 2);
    if (process == 1) CHECK(json["cache"]["builds"] == 0);
  }
  CHECK(std::filesystem::exists(folder / "quickstart-out"));
}
