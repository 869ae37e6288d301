#include "host_facts.hpp"

#include <kiln/host_processor.hpp>

#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

namespace kiln::cpu {
namespace {

constexpr std::array<std::string_view, 12> deciding{"sse4_1",      "avx",         "avx2",     "fma",
                                                    "avx512f",     "avx512bw",    "avx512vl", "avx512dq",
                                                    "avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8"};

// "model name\t: AMD EPYC" → "AMD EPYC".
std::string value_of(const std::string& line) {
  const auto colon = line.find(": ");
  return colon == std::string::npos ? std::string() : line.substr(colon + 2);
}

std::string deciding_among(const std::string& flags) {
  std::string kept;
  std::istringstream words(flags);
  for (std::string word; words >> word;) {
    for (const std::string_view name : deciding) {
      if (word == name) kept += (kept.empty() ? "" : " ") + word;
    }
  }
  return kept;
}

}  // namespace

HostFacts read_host_facts() {
  HostFacts facts;
  facts.cores = host_cores();
  facts.roof_gflops = host_roof_gflops();
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line) && !line.empty();) {  // the first processor's paragraph
    if (line.starts_with("model name")) facts.model = value_of(line);
    if (line.starts_with("flags") || line.starts_with("Features")) facts.instructions = deciding_among(value_of(line));
  }
  if (facts.model.empty()) facts.model = "unknown processor";
  return facts;
}

}  // namespace kiln::cpu
