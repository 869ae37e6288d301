// A place for runs of small OpenGL kernels with known results: jobs, cache folder, key and runtime folder of their own.
// For tests of how programs are built and stored.
//
// Thread-safety: none. Ownership: a BuildPlace owns its folder.
#pragma once

#include "host/kiln_process.hpp"
#include "host/stored_programs.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace kiln::test {

namespace fs = std::filesystem;

inline const std::string shader_head =
    "#version 430\nlayout(local_size_x = 64) in;\n"
    "layout(std430, binding = 0) buffer Y { float y[]; };\n";

// y[i] = i * factor + 1
inline std::string good_kernel(int factor) {
  return shader_head + "void main() { uint i = gl_GlobalInvocationID.x; y[i] = float(i) * " + std::to_string(factor) +
         ".0 + 1.0; }\n";
}

// A statement or a term, eight to the power of `levels` times.
inline std::string grown(const std::string& name, const std::string& one, const std::string& between, int levels) {
  std::string text = "#define " + name + "0 " + one + "\n";
  for (int level = 1; level <= levels; ++level) {
    const std::string inner = name + std::to_string(level - 1);
    text += "#define " + name + std::to_string(level) + " " + inner;
    for (int i = 1; i < 8; ++i) text += between + inner;
    text += "\n";
  }
  return text;
}

// An expression of 65,536 terms: Mesa's compiler overflows its stack.
inline std::string crashing_kernel() {
  return "#version 430\n" + grown("A", "1.0+1.0", "+", 5) + shader_head.substr(shader_head.find('\n') + 1) +
         "void main() { y[0] = A5; }\n";
}

// Eight to the power of `levels` statements.
inline std::string grown_kernel(int levels) {
  return "#version 430\n" + grown("A", "a = sin(a) * 1.5 + y[int(a)];", " ", levels) +
         shader_head.substr(shader_head.find('\n') + 1) + "void main() { float a = y[0]; A" + std::to_string(levels) +
         " y[0] = a; }\n";
}

struct BuildPlace {
  TemporaryFolder folder;
  fs::path cache = folder / "cache", runtime = folder / "runtime", key = folder / "key";
  std::string jobs;

  BuildPlace() { fs::create_directory(runtime), fs::permissions(runtime, fs::perms::owner_all); }

  void add(const std::string& name, const std::string& text, int factor = 0) {
    folder.write(name + ".comp", text);
    jobs += "[[job]]\nname = \"" + name + "\"\nop = \"kernel\"\nsource = \"" + name +
            ".comp\"\ngrid = [1, 1, 1]\ndevice = \"opengl:0\"\nbindings = [{ output = \"" + name +
            ".npy\", shape = [64], dtype = \"float32\"" +
            (factor != 0 ? ", expect = \"" + expected(factor) + "\"" : std::string()) + " }]\n" +
            (factor != 0 ? "verify = true\n" : "");
  }

  std::string expected(int factor) {
    const std::string name = "expected-" + std::to_string(factor) + ".npy";
    std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (64,), }";
    head += std::string(64 - (11 + head.size()) % 64, ' ') + "\n";
    std::string text("\x93NUMPY\x01\x00", 8);
    text += static_cast<char>(head.size() & 0xff);
    text += static_cast<char>(head.size() >> 8);
    text += head;
    for (int i = 0; i < 64; ++i) {
      const float value = static_cast<float>(i * factor + 1);
      text.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    std::ofstream(folder / name, std::ios::binary) << text;
    return name;
  }

  Finished run(const std::vector<std::string>& more = {}, ProcessOptions options = {}) const {
    options.environment.emplace("KILN_KEY_FILE", key);
    options.environment.emplace("XDG_RUNTIME_DIR", runtime);
    std::vector<std::string> words = {"run", folder.write("jobs.toml", jobs), "--json", "--cache-dir", cache};
    words.insert(words.end(), more.begin(), more.end());
    return run_kiln(std::move(words), options);
  }
  Finished verb(std::vector<std::string> words) const {
    words.insert(words.end(), {"--cache-dir", cache});
    return run_kiln(std::move(words), {.environment = {{"KILN_KEY_FILE", key}}});
  }

  std::vector<fs::path> entries() const { return entry_files(cache); }
};

inline void check_verified(const Finished& finished, bool expected) {
  const auto json = finished.json();
  for (const auto& job : json["jobs"]) CHECK(job["verified"] == expected);
}

inline bool has_opengl(const Finished& finished) { return finished.json()["jobs"][0]["device"]["id"] == "opengl:0"; }

inline int rejected_in(const nlohmann::json& cache) {
  int sum = 0;
  for (const auto& count : cache["rejected"]) sum += count.get<int>();
  return sum;
}

}  // namespace kiln::test
