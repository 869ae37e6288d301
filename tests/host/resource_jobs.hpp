// ResourceJobs: kernels and jobs in a folder of their own, run by the command on opengl:0.
//
// Thread-safety: one thread. Ownership: removes its folder.
#pragma once

#include "host/kiln_process.hpp"

#include "data/npy.hpp"
#include "data/png.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {

class ResourceJobs {
 public:
  // The text behind #version and the local size of 8 x 8, or its own whole text.
  void shader(const std::string& name, const std::string& text) const {
    const bool whole = text.starts_with("#version");
    folder.write(name, whole ? text : "#version 450\nlayout(local_size_x = 8, local_size_y = 8) in;\n" + text);
  }
  void add(const std::string& name, const std::string& source, const std::string& keys) {
    jobs_ += "[[job]]\nname = \"" + name + "\"\nop = \"kernel\"\nsource = \"" + source + "\"\n" + keys + "\n";
  }
  Finished run(std::vector<std::string> words = {}) {
    const auto file = folder.write("jobs.toml", jobs_);
    jobs_.clear();
    words.insert(words.begin(), {"run", file, "--json", "--device", "opengl:0", "--cache-dir", folder / "cache"});
    return run_kiln(words);
  }
  std::string error_of_run() {
    const Finished finished = run();
    INFO(finished.err << finished.out);
    CHECK(finished.status == 1);
    const auto json = finished.json();
    REQUIRE(json["jobs"][0]["error"].is_string());
    return json["jobs"][0]["error"];
  }
  std::shared_ptr<HostTensor> tensor(const std::string& name) const {
    auto read = kiln::data::read_npy(folder / name);
    REQUIRE(read);
    return *read;
  }
  template <class T>
  void write(const std::string& name, DType dtype, const Shape& shape, const std::vector<T>& values) const {
    auto made = HostTensor::create(dtype, shape).value();
    REQUIRE(made->as<T>().size() == values.size());
    std::ranges::copy(values, made->template as<T>().begin());
    REQUIRE((name.ends_with(".png") ? kiln::data::write_png(folder / name, *made)
                                    : kiln::data::write_npy(folder / name, *made))
                .ok());
  }

  const TemporaryFolder folder;

 private:
  std::string jobs_;
};

}  // namespace kiln::test
