// Calls of kiln.h from the callbacks of a job and from `log`.
#include "c_interface/jobs.hpp"

#include <kiln/host_processor.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kiln::test {
namespace {

TEST_CASE("jobs: a callback of a job cannot close what runs it") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) return;
  Saxpy saxpy_job(jobs.runtime);
  kiln_job* job = saxpy_job.job.get();
  struct Handles {
    kiln_job* job;
    kiln_runtime* runtime;
    int calls;
  } handles{job, jobs.runtime, 0};
  must(kiln_job_progress(
      job,
      [](void* user, std::uint32_t, std::uint32_t) {
        auto& of = *static_cast<Handles*>(user);
        ++of.calls;
        kiln_close(of.runtime);
        return 1;
      },
      &handles));
  must(kiln_job_repeat(job, 3));
  must(kiln_job_start(job));
  CHECK(Answer(kiln_job_wait(job, 60'000)).code == KILN_OK);
  CHECK(handles.calls == 3);
  must(kiln_job_progress(
      job,
      [](void* user, std::uint32_t, std::uint32_t) {
        kiln_job_free(static_cast<Handles*>(user)->job);
        return 1;
      },
      &handles));
  CHECK(Answer(kiln_job_run(job)).code == KILN_CANCELLED);
  // Nor can it wait for it; to look takes no time.
  std::pair<kiln_job*, std::vector<kiln_code>> waiting{job, {}};
  must(kiln_job_progress(
      job,
      [](void* user, std::uint32_t, std::uint32_t) {
        auto& [of, codes] = *static_cast<decltype(waiting)*>(user);
        if (codes.empty()) codes = {Answer(kiln_job_wait(of, 60'000)).code, Answer(kiln_job_wait(of, 0)).code};
        return 1;
      },
      &waiting));
  must(kiln_job_run(job));
  CHECK(waiting.second == std::vector<kiln_code>{KILN_UNAVAILABLE, KILN_TIMEOUT});
  must(kiln_job_progress(job, nullptr, nullptr));
  must(kiln_job_run(job));
}

TEST_CASE("jobs: callbacks on all threads of a runtime may wait for jobs that they start") {
  Jobs jobs;
  const int threads = std::clamp(static_cast<int>(host_cores()), 2, 16);  // as many as the runtime starts
  struct Nested {
    Job outer, inner;
    std::atomic<int>& inside;
    const int threads;
    kiln_code code = KILN_INTERNAL;
  };
  const std::int64_t shape[] = {2, 2};
  float a[] = {1, 2, 3, 4}, b[] = {1, 0, 0, 1};
  std::vector<std::array<float, 4>> results(2 * static_cast<std::size_t>(threads));
  const auto gemm = [&](const char* name, std::array<float, 4>& result) {
    Job job = job_of(jobs.runtime, name);
    const kiln_tensor on_a = kiln_tensor_of(a, KILN_F32, 2, shape), on_b = kiln_tensor_of(b, KILN_F32, 2, shape),
                      on_c = kiln_tensor_of(result.data(), KILN_F32, 2, shape);
    must(kiln_job_gemm(job.get(), &on_a, &on_b, nullptr, 0, &on_c));
    must(kiln_job_device(job.get(), "cpu"));
    return job;
  };
  std::atomic<int> inside{0};
  std::vector<std::unique_ptr<Nested>> all;
  for (std::size_t at = 0; at < results.size(); at += 2) {
    all.push_back(std::unique_ptr<Nested>(
        new Nested{gemm("outer", results[at]), gemm("inner", results[at + 1]), inside, threads}));
    must(kiln_job_progress(
        all.back()->outer.get(),
        [](void* user, std::uint32_t, std::uint32_t) {
          auto& of = *static_cast<Nested*>(user);
          ++of.inside;
          while (of.inside < of.threads) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          of.code = Answer(kiln_job_start(of.inner.get())).code;
          if (of.code == KILN_OK) of.code = Answer(kiln_job_wait(of.inner.get(), 10'000)).code;
          return 1;
        },
        all.back().get()));
  }
  for (const auto& one : all) must(kiln_job_start(one->outer.get()));
  for (const auto& one : all) {
    must(kiln_job_wait(one->outer.get(), 60'000));
    CHECK(one->code == KILN_OK);
  }
  const std::array<float, 4> wanted = {1, 2, 3, 4};
  for (const auto& result : results) CHECK(result == wanted);
}

TEST_CASE("jobs: a log function that frees the job only cancels it, and one that closes the runtime does nothing") {
  struct Closing {
    kiln_runtime* runtime = nullptr;
    kiln_job* job = nullptr;
    int calls = 0;
  } closing;
  const StoreFolder folder;
  kiln_cache_options options = folder.options();
  options.log_level = KILN_LOG_DEBUG;
  options.log_user = &closing;
  options.log = [](void* user, kiln_log_level, const char*, const char*) {
    auto& self = *static_cast<Closing*>(user);
    ++self.calls;
    kiln_close(self.runtime);
    kiln_job_free(self.job);
  };
  kiln_runtime* runtime = nullptr;
  must(kiln_open(&options, &runtime));
  {
    const Job job = job_of(runtime, "sum");
    std::vector<float> a(4, 1.0f), b(4, 2.0f), c(4);
    const std::int64_t shape[] = {2, 2};
    const kiln_tensor on_a = kiln_tensor_of(a.data(), KILN_F32, 2, shape),
                      on_b = kiln_tensor_of(b.data(), KILN_F32, 2, shape),
                      on_c = kiln_tensor_of(c.data(), KILN_F32, 2, shape);
    must(kiln_job_gemm(job.get(), &on_a, &on_b, nullptr, 0, &on_c));
    must(kiln_job_device(job.get(), "cpu"));
    closing.runtime = runtime;
    closing.job = job.get();
    closing.calls = 0;
    CHECK(Answer(kiln_job_run(job.get())).code == KILN_CANCELLED);
    CHECK(closing.calls > 0);
    CHECK(closing.calls < 1000);
    closing.job = nullptr;
    must(kiln_job_run(job.get()));
    CHECK(c[0] == 4.0f);
  }
  closing.runtime = nullptr;
  kiln_close(runtime);
}

TEST_CASE("jobs: a log function that runs jobs or asks its runtime is refused at once") {
  if (!Jobs().has("opengl:0")) return;
  struct Asking {
    kiln_runtime* runtime = nullptr;
    kiln_job *running = nullptr, *other = nullptr;
    std::vector<std::string> said;
    int ended = -1, lines = 0;

    void note(const Answer& answer) { said.push_back(std::string(kiln_code_name(answer.code)) + " " + answer.message); }
  } asking;
  const StoreFolder folder;
  kiln_cache_options options = folder.options();
  options.log_level = KILN_LOG_DEBUG;
  options.log_user = &asking;
  options.log = [](void* user, kiln_log_level, const char*, const char*) {
    auto& self = *static_cast<Asking*>(user);
    if (self.runtime == nullptr || self.lines++ != 0) return;
    char* text = nullptr;
    std::size_t loaded = 0;
    kiln_job* made = nullptr;
    kiln_report report;
    report.size = sizeof report;
    self.ended = kiln_job_ended(self.running);
    self.note(kiln_runtime_metrics(self.runtime, &text));
    self.note(kiln_job_create(self.runtime, "more", &made));
    self.note(kiln_job_get_report(self.running, &report));
    self.note(kiln_job_wait(self.running, 60000));
    self.note(kiln_runtime_devices(self.runtime, &text));
    self.note(kiln_runtime_warm(self.runtime, "cpu", 1, &loaded));
    self.note(kiln_job_run(self.other));
    self.note(kiln_job_start(self.other));
  };
  kiln_runtime* runtime = nullptr;
  must(kiln_open(&options, &runtime));
  {
    Saxpy running(runtime), other(runtime);
    asking.running = running.job.get(), asking.other = other.job.get();
    asking.runtime = runtime;
    must(kiln_job_run(running.job.get()));
    asking.runtime = nullptr;
    CHECK(running.wrong(3) == 0);
    CHECK(asking.ended == 0);
    REQUIRE(asking.said.size() == 8);
    for (const std::string& said : asking.said)
      CHECK_THAT(said, Catch::Contains("unavailable kiln_") && Catch::Contains("called by `log`"));
    must(kiln_job_run(other.job.get()));
    CHECK(other.wrong(3) == 0);
  }
  kiln_close(runtime);
}

}  // namespace
}  // namespace kiln::test
