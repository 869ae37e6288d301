// Jobs: a runtime in a temporary folder, and jobs on it, through kiln.h alone.
//
// Thread-safety: as kiln.h. Ownership: frees the runtime; a Job frees its job, before the runtime.
#pragma once

#include "c_interface/store.hpp"

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {

struct Jobs {
  StoreFolder folder;
  kiln_runtime* runtime = nullptr;

  explicit Jobs(std::uint32_t trace = 0) { open(trace); }
  ~Jobs() { kiln_close(runtime); }
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  void reopen() {
    kiln_close(std::exchange(runtime, nullptr));
    open(0);
  }

  bool has(const std::string& id) const {
    char* text = nullptr;
    must(kiln_runtime_devices(runtime, &text));
    const auto json = nlohmann::json::parse(text);
    kiln_text_free(text);
    for (const auto& device : json["devices"]) {
      if (device["id"] == id && device["usable"]) return true;
    }
    return false;
  }

 private:
  void open(std::uint32_t trace) {
    kiln_cache_options options = folder.options();
    options.trace = trace;
    must(kiln_open(&options, &runtime));
  }
};

struct JobDelete {
  void operator()(kiln_job* job) const noexcept { kiln_job_free(job); }
};
using Job = std::unique_ptr<kiln_job, JobDelete>;

inline Job job_of(kiln_runtime* runtime, const char* name) {
  kiln_job* job = nullptr;
  must(kiln_job_create(runtime, name, &job));
  return Job(job);
}

inline kiln_report report_of(kiln_job* job) {
  kiln_report report;
  report.size = sizeof report;
  must(kiln_job_get_report(job, &report));
  return report;
}

inline constexpr const char* saxpy = R"(#version 430 core
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
uniform float scale;
void main() {
  uint i = gl_GlobalInvocationID.x;
  y[i] = A * scale * x[i] + y[i];
}
)";

// A job of 1024 elements on opengl:0: y = 1.5 * scale * x + y, where scale is 2 and y is 1.
struct Saxpy {
  std::vector<float> x = std::vector<float>(1024), y = std::vector<float>(1024);
  Job job;

  explicit Saxpy(kiln_runtime* runtime) : job(job_of(runtime, "saxpy")) {
    for (std::size_t at = 0; at < x.size(); ++at) x[at] = static_cast<float>(at), y[at] = 1;
    const std::int64_t shape[] = {1024};
    const kiln_tensor on_x = kiln_tensor_of(x.data(), KILN_F32, 1, shape),
                      on_y = kiln_tensor_of(y.data(), KILN_F32, 1, shape);
    const double scale = 2;
    must(kiln_job_kernel(job.get(), "saxpy.comp", saxpy));
    must(kiln_job_constant(job.get(), "A", "1.5"));
    must(kiln_job_uniform(job.get(), "scale", KILN_F64, 0, nullptr, &scale));
    must(kiln_job_buffer(job.get(), "X", KILN_READ, &on_x));
    must(kiln_job_buffer(job.get(), "Y", KILN_READ_WRITE, &on_y));
    must(kiln_job_grid(job.get(), 16, 1, 1));
    must(kiln_job_device(job.get(), "opengl:0"));
  }
  // Wrong elements after so many runs with this factor of x.
  int wrong(float factor) const {
    int count = 0;
    for (std::size_t at = 0; at < x.size(); ++at) count += y[at] != factor * x[at] + 1;
    return count;
  }
};

// The refusal names what is wrong.
inline void refused(kiln_status* status, kiln_code code, const std::string& words) {
  const Answer answer(status);
  CHECK(answer.code == code);
  CHECK_THAT(answer.message, Catch::Contains(words));
}

}  // namespace kiln::test
