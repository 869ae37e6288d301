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

// The refusal names what is wrong.
inline void refused(kiln_status* status, kiln_code code, const std::string& words) {
  const Answer answer(status);
  CHECK(answer.code == code);
  CHECK_THAT(answer.message, Catch::Contains(words));
}

}  // namespace kiln::test
