#include "host/page/page_files.hpp"

#include <kiln/digest.hpp>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace kiln::test {
namespace {

using nlohmann::json;

json contender(double median, double spread = 0.05) {
  return {{"median", median}, {"low", median * (1 - spread)}, {"high", median * (1 + spread)}, {"samples", 15}};
}

json figure_of(const std::string& id, const std::string& unit, double kiln, double peer) {
  json beside = contender(peer);
  beside["name"] = "the peer of " + id;
  const double ratio = peer / kiln;
  return {{"id", id},
          {"name", "figure " + id},
          {"unit", unit},
          {"better", "less"},
          {"kiln", contender(kiln)},
          {"peer", beside},
          {"ratio", {{"median", ratio}, {"low", ratio * 0.9}, {"high", ratio * 1.1}}},
          {"target", nullptr},
          {"verified", true},
          {"stable", false},
          {"group", nullptr},
          {"device", nullptr}};
}

json job_of(const std::string& name, const std::string& tier, double scale) {
  return {{"name", name},
          {"op", "conv2d"},
          {"status", "ok"},
          {"error", nullptr},
          {"device", {{"id", "opengl:0"}, {"kind", "software"}, {"name", "a device"}, {"driver", "a driver 1.0"}}},
          {"variant", "direct/blocked:k=4"},
          {"selected_because", "requested"},
          {"program", {{"keys", json::array()}, {"tier", tier}, {"build_ms", tier == "built" ? 90.0 * scale : 0.5}}},
          {"runs", 3},
          {"ms",
           {{"queue", 0.1},
            {"upload", 0.2},
            {"device", 2.0 * scale},
            {"readback", 0.1},
            {"wall_median", 2.5 * scale},
            {"wall_min", 2.0 * scale},
            {"wall_max", 9.0 * scale},
            {"first_result", tier == "built" ? 150.0 * scale : 12.0 * scale}}},
          {"gflops", 50.0 / scale},
          {"gflops_device", 60.0 / scale},
          {"work", {{"flops", 1.25e8}, {"bytes", 5e6 * scale}, {"roof_gflops", 832.0}}},
          {"verified", true},
          {"max_rel_error", 1e-7},
          {"error_bound", 1e-5},
          {"output", nullptr},
          {"notes", json::array()}};
}

std::string tuning_line(const std::string& spec, const std::string& variant, const std::string& verdict,
                        const std::string& samples, const std::string& why = "") {
  std::string line = "17aa886120427058acc8f9ff0255f1bf\t" + spec + "\t" + variant + "\t" + verdict +
                     "\t1795435089\t05a9897c4b4fcc2a\t1e-07\t1e-05\t" + samples + "\t" + samples + "\t" + why + "\t";
  return line + sha256(line).hex().substr(0, 16) + "\n";
}

constexpr const char* tiny_job = R"(
[[job]]
name = "tiny <b>&</b>"
op = "conv2d"
c = 8
h = 40
w = 40
k = 16
r = 3
s = 3
pad = 1
input = "random:1"
weights = "random:2"
verify = true

[[job]]
name = "product"
op = "gemm"
m = 40
n = 50
k = 60
input = "random:1"
weights = "random:2"
)";

}  // namespace

json bench_document() {
  json hit = figure_of("cache.hit.guard/mutex_lru", "ns", 4.9, 62.0);
  hit["target"] = {{"text", "<= 7 ns"}, {"value", 7.0}, {"met", true}};
  json disk = figure_of("cache.disk", "ns", 5200.0, 4100.0);
  disk["target"] = {{"text", "<= 5000 ns"}, {"value", 5000.0}, {"met", false}};
  json alone = figure_of("cache.builds", "builds", 1.0, 1.0);
  alone["peer"] = nullptr;
  alone["ratio"] = nullptr;
  json areas = json::array();
  areas.push_back({{"name", "cache"},
                   {"title", "Program cache"},
                   {"seconds", 61.0},
                   {"skipped", nullptr},
                   {"figures", json::array({hit, disk, alone})}});
  json layers = json::array();
  double ms = 1.5;
  for (const char* layer : {"res2_3x3", "res3_3x3", "res4_3x3"}) {
    for (const char* device : {"cpu", "opengl:0"}) {
      json figure = figure_of(std::string("conv.") + layer + "." + device, "ms", ms, ms * 1.3);
      figure["group"] = layer;
      figure["device"] = device;
      figure["name"] = std::string("conv2d ") + layer;
      figure["peer"]["name"] = "oneDNN";
      layers.push_back(std::move(figure));
      ms *= 1.7;
    }
  }
  areas.push_back(
      {{"name", "conv"}, {"title", "Convolutions"}, {"seconds", 9.5}, {"skipped", nullptr}, {"figures", layers}});
  areas.push_back({{"name", "pm4"},
                   {"title", "PM4"},
                   {"seconds", 0.0},
                   {"skipped", "there is no simulator"},
                   {"figures", json::array()}});
  return {{"schema", 1},
          {"kind", "bench"},
          {"kiln", "0.1.0"},
          {"commit", nullptr},
          {"started", "2026-11-23T12:00:00Z"},
          {"seconds", 512.0},
          {"machine",
           {{"cpu", "A processor"},
            {"cores", 2},
            {"memory_bytes", 8589934592},
            {"kernel", "6.1"},
            {"os", "Debian 12"},
            {"quiet", false},
            {"load_before", 1.3},
            {"noise_percent", 2.1},
            {"versions", {{"mesa", "22.3.6"}, {"opencv", "4.6.0"}}}}},
          {"areas", areas}};
}

json run_document(const std::string& tier) {
  return {{"schema", 1},
          {"kiln", "0.1.0"},
          {"jobs", json::array({job_of("first", tier, 1.0), job_of("second", tier, 2.0)})},
          {"total_ms", 500.0},
          {"setup_ms", 5.0},
          {"cache",
           {{"memory_hits", 1},
            {"disk_hits", tier == "disk" ? 2 : 0},
            {"misses", tier == "disk" ? 0 : 2},
            {"builds", tier == "disk" ? 0 : 2},
            {"prepared", 0},
            {"driver_cache", "adopted"},
            {"rejected", {{"corrupt", 0}, {"tampered", 1}}},
            {"bytes_on_disk", 4096},
            {"saved_ms", tier == "disk" ? 269.0 : 0.0}}},
          {"devices", json::array()},
          {"plugins", json::array()}};
}

std::string tuning_text() {
  const std::string conv =
      "conv2d n=1 c=128 h=56 w=56 k=128 r=3 s=3 stride_y=2 stride_x=2 pad_y=1 pad_x=1 dilation_y=1 dilation_x=1 "
      "groups=1 dtype=f32 layout=nchw bias=0 activation=none accuracy=direct";
  const std::string gemm = "gemm m=64 n=128 k=256 dtype=f32 bias=0 activation=none";
  return "kiln-tuning 1\n" + tuning_line(conv, "direct/blocked:k=4,x=8", "winner", "2000000,2100000,1900000") +
         tuning_line(conv, "direct/blocked:k=8,x=8", "measured", "3000000,3100000") +
         tuning_line(conv, "direct/plain", "measured", "60000000") +
         tuning_line(conv, "direct/blocked:k=2,x=1", "rejected", "", "wrong: 3 of 401408 outputs") +
         tuning_line(gemm, "gemm/tiled:k=4,x=8", "winner", "500000") +
         tuning_line(gemm, "gemm/plain", "measured", "900000");
}

RealFiles real_files(const TemporaryFolder& folder) {
  const auto config = folder.write("tiny.toml", tiny_job);
  const RealFiles files{folder / "cold.json", folder / "warm.json", folder / "trace.json", folder / "cache",
                        folder / "stats.json"};
  const auto kiln = [](std::vector<std::string> words) {
    const Finished finished = run_kiln(std::move(words));
    if (finished.status != 0) throw std::runtime_error(finished.err);
  };
  kiln({"run", config, "--device", "cpu", "--json", "--output", files.cold, "--cache-dir", files.cache});
  kiln({"run", config, "--device", "cpu", "--repeat", "3", "--json", "--output", files.warm, "--trace", files.trace,
        "--cache-dir", files.cache});
  kiln({"cache", "stats", "--json", "--output", files.stats, "--cache-dir", files.cache});
  return files;
}

Finished report(const std::vector<std::filesystem::path>& files, const std::filesystem::path& page,
                std::vector<std::string> more) {
  std::vector<std::string> words{"report", "--output", page};
  words.insert(words.end(), files.begin(), files.end());
  words.insert(words.end(), more.begin(), more.end());
  return run_kiln(std::move(words));
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

json data_of(const std::filesystem::path& page) {
  const std::string html = text_of(page);
  const std::string opening = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = html.find(opening);
  if (begin == std::string::npos) throw std::runtime_error(page.string() + ": holds no data");
  const std::size_t from = begin + opening.size();
  return json::parse(html.substr(from, html.find("</script>", from) - from));
}

}  // namespace kiln::test
