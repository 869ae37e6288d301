// Devices and jobs through kiln.h: kernels on llvmpipe, layers on any device, errors, cancelling, tuning.
// job_callbacks_test.cpp has calls from callbacks.
#include "c_interface/jobs.hpp"
#include "support/in_child.hpp"

#include <fstream>
#include <thread>

namespace kiln::test {
namespace {

TEST_CASE("jobs: a kernel runs on the tensors of the application, again with changed uniforms and contents") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) {
    WARN("skipped: no usable device opengl:0");
    return;
  }
  Saxpy saxpy_job(jobs.runtime);
  must(kiln_job_run(saxpy_job.job.get()));
  CHECK(saxpy_job.wrong(3) == 0);
  const kiln_report report = report_of(saxpy_job.job.get());
  CHECK(std::string(report.device) == "opengl:0");
  CHECK(report.tier == KILN_TIER_BUILT);
  CHECK(report.runs == 1);
  CHECK(report.wall_ns > 0);
  CHECK(report.verified == 0);
  must(kiln_job_run(saxpy_job.job.get()));
  CHECK(saxpy_job.wrong(6) == 0);
  CHECK(report_of(saxpy_job.job.get()).tier == KILN_TIER_MEMORY);
  const double scale = 4;
  must(kiln_job_uniform(saxpy_job.job.get(), "scale", KILN_F64, 0, nullptr, &scale));
  must(kiln_job_start(saxpy_job.job.get()));
  must(kiln_job_wait(saxpy_job.job.get(), 60000));
  CHECK(kiln_job_ended(saxpy_job.job.get()) == 1);
  CHECK(saxpy_job.wrong(12) == 0);
  kiln_cache_stats stats;
  stats.size = sizeof stats;
  must(kiln_runtime_get_stats(jobs.runtime, &stats));
  CHECK(stats.builds == 1);
  char* metrics = nullptr;
  must(kiln_runtime_metrics(jobs.runtime, &metrics));
  CHECK_THAT(metrics, Catch::Contains("kiln_"));
  kiln_text_free(metrics);
}

TEST_CASE("jobs: a kernel finds zeros in what it only writes, in each run") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) {
    WARN("skipped: no usable device opengl:0");
    return;
  }
  alignas(64) std::uint32_t memory[33];
  for (std::uint32_t* const counts : {memory, memory + 1}) {  // used in place, and copied
    std::fill(std::begin(memory), std::end(memory), 7u);
    const std::int64_t shape[] = {32};
    const kiln_tensor on_counts = kiln_tensor_of(counts, KILN_U32, 1, shape);
    const Job job = job_of(jobs.runtime, "count");
    must(kiln_job_kernel(job.get(), "count.comp", R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Counts { uint counts[]; };
void main() { atomicAdd(counts[gl_GlobalInvocationID.x % 4u], 1u); }
)"));
    must(kiln_job_buffer(job.get(), nullptr, KILN_WRITE, &on_counts));
    must(kiln_job_grid(job.get(), 1, 1, 1));
    must(kiln_job_device(job.get(), "opengl:0"));
    for (int run = 0; run < 3; ++run) {
      must(kiln_job_run(job.get()));
      CHECK(counts[0] == 16);
      CHECK(counts[3] == 16);
      CHECK(counts[4] == 0);
      CHECK(counts[31] == 0);
    }
  }
}

TEST_CASE("jobs: an OpenCL C kernel has arguments by value, local memory and a workgroup size", "[.card]") {
  constexpr const char* text = R"(
kernel void none(global float* y) { y[get_global_id(0)] = -1; }
kernel void reversed(global const float* x, global float* y, float scale, int plus, local float* group) {
  const size_t at = get_local_id(0);
  group[at] = scale * x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  y[get_global_id(0)] = group[get_local_size(0) - 1 - at] + plus;
}
)";
  Jobs jobs;
  REQUIRE(jobs.has("amdgpu:0"));
  std::vector<float> x(256), y(256);
  for (std::size_t at = 0; at < x.size(); ++at) x[at] = static_cast<float>(at);
  const std::int64_t shape[] = {256};
  const kiln_tensor on_x = kiln_tensor_of(x.data(), KILN_F32, 1, shape),
                    on_y = kiln_tensor_of(y.data(), KILN_F32, 1, shape);
  const Job job = job_of(jobs.runtime, "reversed");
  must(kiln_job_kernel(job.get(), "reversed.cl", text));
  must(kiln_job_entry(job.get(), "reversed"));
  must(kiln_job_buffer(job.get(), nullptr, KILN_READ, &on_x));
  must(kiln_job_buffer(job.get(), nullptr, KILN_WRITE, &on_y));
  must(kiln_job_float(job.get(), 0.5f));
  must(kiln_job_int(job.get(), -3));
  must(kiln_job_local(job.get(), 64 * sizeof(float)));
  must(kiln_job_workgroup(job.get(), 64, 1, 1));
  must(kiln_job_grid(job.get(), 4, 1, 1));
  must(kiln_job_timeout(job.get(), 60000));
  must(kiln_job_device(job.get(), "amdgpu:0"));
  must(kiln_job_run(job.get()));
  for (std::size_t at = 0; at < y.size(); ++at) {
    CHECK(y[at] == 0.5f * x[at / 64 * 64 + 63 - at % 64] - 3);
  }
  CHECK(std::string(report_of(job.get()).device) == "amdgpu:0");
  must(kiln_job_entry(job.get(), "missing"));
  const Answer missing = kiln_job_run(job.get());
  CHECK(missing.code == KILN_INVALID_ARGUMENT);
  CHECK_THAT(missing.message, Catch::Contains("missing") && Catch::Contains("reversed"));
}

TEST_CASE("jobs: stored programs are loaded before they are needed, and a miss is explained") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) {
    WARN("skipped: no usable device opengl:0");
    return;
  }
  {
    Saxpy saxpy_job(jobs.runtime);
    must(kiln_job_run(saxpy_job.job.get()));
  }
  jobs.reopen();
  size_t loaded = 0;
  must(kiln_runtime_warm(jobs.runtime, "opengl:0", 10, &loaded));
  CHECK(loaded == 1);
  Saxpy saxpy_job(jobs.runtime);
  must(kiln_job_run(saxpy_job.job.get()));
  CHECK(report_of(saxpy_job.job.get()).tier == KILN_TIER_MEMORY);
  char* json = nullptr;
  must(kiln_runtime_explain(jobs.runtime, "saxpy", &json));
  CHECK_THAT(json, Catch::Contains("saxpy/user"));
  kiln_text_free(json);
  CHECK(Answer(kiln_runtime_explain(jobs.runtime, "nothing of this name", &json)).code == KILN_NOT_FOUND);
  CHECK(json == nullptr);
  CHECK(Answer(kiln_runtime_warm(jobs.runtime, "opengl:99", 10, &loaded)).code == KILN_NOT_FOUND);
}

TEST_CASE("jobs: a kernel that does not compile is an error with its line, and the job can be corrected") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) return;
  Saxpy saxpy_job(jobs.runtime);
  must(kiln_job_constant(saxpy_job.job.get(), "A", "nothing"));
  const Answer answer = kiln_job_run(saxpy_job.job.get());
  CHECK(answer.code == KILN_INVALID_ARGUMENT);
  CHECK_THAT(answer.message, Catch::Contains("saxpy.comp:8"));
  CHECK(saxpy_job.wrong(0) == 0);  // nothing was written
  must(kiln_job_constant(saxpy_job.job.get(), "A", "0.5"));
  must(kiln_job_run(saxpy_job.job.get()));
  CHECK(saxpy_job.wrong(1) == 0);
}

TEST_CASE("jobs: conv2d and gemm are verified, and shapes that do not fit are named") {
  Jobs jobs;
  std::vector<float> input(2 * 3 * 8 * 8, 0.5f), weights(4 * 3 * 3 * 3, 0.25f), bias(4, -1.0f), output(2 * 4 * 8 * 8);
  const std::int64_t in[] = {2, 3, 8, 8}, by[] = {4, 3, 3, 3}, k[] = {4}, out[] = {2, 4, 8, 8}, wrong[] = {2, 4, 8, 7};
  const kiln_tensor x = kiln_tensor_of(input.data(), KILN_F32, 4, in),
                    w = kiln_tensor_of(weights.data(), KILN_F32, 4, by),
                    b = kiln_tensor_of(bias.data(), KILN_F32, 1, k),
                    y = kiln_tensor_of(output.data(), KILN_F32, 4, out),
                    z = kiln_tensor_of(output.data(), KILN_F32, 4, wrong);
  kiln_conv2d conv{};
  conv.size = sizeof conv;
  conv.pad_y = conv.pad_x = 1;
  conv.relu = 1;
  const Job job = job_of(jobs.runtime, "layer");
  const Answer misfit = kiln_job_conv2d(job.get(), &conv, &x, &w, &b, &z);
  CHECK(misfit.code == KILN_INVALID_ARGUMENT);
  CHECK_THAT(misfit.message, Catch::Contains("output: float32 [2, 4, 8, 7], expected float32 [2, 4, 8, 8]") ||
                                 Catch::Contains("output: f32 [2, 4, 8, 7], expected float32 [2, 4, 8, 8]"));
  must(kiln_job_conv2d(job.get(), &conv, &x, &w, &b, &y));
  must(kiln_job_verify(job.get(), 1));
  must(kiln_job_run(job.get()));
  CHECK(report_of(job.get()).verified == 1);
  CHECK(output[9] == 27 * 0.125f - 1);  // inside: all 27 taps
  CHECK(output[0] == 12 * 0.125f - 1);  // a corner
  const std::int64_t a_shape[] = {2, 3}, b_shape[] = {3, 2}, c_shape[] = {2, 2};
  float a[] = {1, 2, 3, 4, 5, 6}, m[] = {1, 0, 0, 1, 1, 1}, c[4] = {};
  const kiln_tensor ta = kiln_tensor_of(a, KILN_F32, 2, a_shape), tb = kiln_tensor_of(m, KILN_F32, 2, b_shape),
                    tc = kiln_tensor_of(c, KILN_F32, 2, c_shape);
  must(kiln_job_gemm(job.get(), &ta, &tb, nullptr, 0, &tc));
  must(kiln_job_device(job.get(), "cpu"));
  must(kiln_job_run(job.get()));
  CHECK(report_of(job.get()).tier == KILN_TIER_LIBRARY);
  CHECK((c[0] == 4 && c[1] == 5 && c[2] == 10 && c[3] == 11));
}

TEST_CASE("jobs: aligned tensors are used without a copy, others are copied, and weights are read once") {
  Jobs jobs;
  struct alignas(64) Line {
    float values[16];
  };
  Line a{}, b{}, out{};
  for (float& value : a.values) value = 2;
  for (float& value : b.values) value = 1;
  const std::int64_t shape[] = {2, 2};
  const Job job = job_of(jobs.runtime, "in place");
  const auto run = [&](float* first, float* second, float* result) {
    const kiln_tensor ta = kiln_tensor_of(first, KILN_F32, 2, shape), tb = kiln_tensor_of(second, KILN_F32, 2, shape),
                      tc = kiln_tensor_of(result, KILN_F32, 2, shape);
    must(kiln_job_gemm(job.get(), &ta, &tb, nullptr, 0, &tc));
    must(kiln_job_run(job.get()));
    CHECK(result[0] == 4);
    CHECK(result[3] == 4);
    CHECK(result[4] == 0);
    return report_of(job.get()).copied_bytes;
  };
  CHECK(run(a.values, b.values, out.values) == 0);
  CHECK(run(a.values + 1, b.values + 1, out.values + 5) == 32);
  CHECK(out.values[4] == 0);
  b.values[1] = 100;  // was read when the job was made
  a.values[1] = 3;    // is read in each run
  must(kiln_job_run(job.get()));
  CHECK(out.values[5] == 5);
}

TEST_CASE("jobs: what is missing or wrong is named") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "broken");
  const auto refused = [](kiln_status* status, const std::string& words) {
    const Answer answer(status);
    CHECK(answer.code != KILN_OK);
    CHECK_THAT(answer.message, Catch::Contains(words));
  };
  refused(kiln_job_run(job.get()), "job 'broken': nothing to run");
  refused(kiln_job_grid(job.get(), 1, 1, 1), "the job has no kernel. Call kiln_job_kernel() first");
  refused(kiln_job_kernel(job.get(), "kernel.txt", "text"), "extension '.txt', expected .comp, .glsl");
  refused(kiln_job_kernel(job.get(), "/no/such.comp", nullptr), "no/such.comp");
  refused(kiln_job_wait(job.get(), 0), "was not started");
  must(kiln_job_kernel(job.get(), "k.comp", "#version 430 core\nlayout(local_size_x = 1) in;\nvoid main() {}\n"));
  refused(kiln_job_constant(job.get(), "1A", "x"), "constant '1A'");
  const std::int64_t shape[] = {4}, negative[] = {-4};
  float data[4] = {};
  kiln_tensor tensor = kiln_tensor_of(nullptr, KILN_F32, 1, shape);
  refused(kiln_job_buffer(job.get(), "X", KILN_READ, &tensor), "buffer X: data is NULL");
  tensor = kiln_tensor_of(data, static_cast<kiln_type>(13), 1, shape);
  refused(kiln_job_buffer(job.get(), "X", KILN_READ, &tensor), "type 13, expected a kiln_type");
  tensor = kiln_tensor_of(data, KILN_F32, 1, negative);
  refused(kiln_job_buffer(job.get(), "X", KILN_READ, &tensor), "a dimension is negative");
  tensor = kiln_tensor_of(data, KILN_F32, 1, nullptr);
  refused(kiln_job_buffer(job.get(), "X", KILN_READ, &tensor), "but shape is NULL");
  refused(kiln_job_buffer(job.get(), "X", KILN_READ, nullptr), "tensor is NULL");
  refused(kiln_job_buffer(job.get(), "X", static_cast<kiln_access>(7), &tensor), "access 7");
  refused(kiln_job_uniform(job.get(), "u", KILN_F32, 0, nullptr, data),
          "uniform u: type 1, expected KILN_F64 (double) or");
  refused(kiln_job_repeat(job.get(), 0), "0 runs");
  refused(kiln_job_verify(job.get(), 1), "has no reference");
  refused(kiln_job_device(job.get(), ""), "found an empty text, expected a device id");
  must(kiln_job_device(job.get(), "no:7"));
  refused(kiln_job_run(job.get()), "no:7");
  kiln_report report;
  report.size = sizeof report;
  const Job other = job_of(jobs.runtime, "other");
  refused(kiln_job_get_report(other.get(), &report), "job 'other' has not finished a run");
  refused(kiln_job_create(nullptr, "x", nullptr), "job is NULL");
  kiln_job* made = nullptr;
  refused(kiln_job_create(nullptr, "x", &made), "runtime is NULL");
  refused(kiln_job_run(nullptr), "job is NULL");
  refused(kiln_open(nullptr, nullptr), "runtime is NULL");
  kiln_job_free(nullptr);
  kiln_job_cancel(nullptr);
  kiln_close(nullptr);
}

TEST_CASE("jobs: a tensor that is written shares no memory with another one, aligned or not") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) return;
  struct alignas(64) Values {
    float all[2048];
  };
  const auto values = std::make_unique<Values>();
  const std::int64_t shape[] = {1024}, square[] = {2, 2};
  const Job job = job_of(jobs.runtime, "shared");
  const double scale = 2;
  // Floats from the start of the first tensor to that of the second.
  const auto run = [&](std::size_t first, std::size_t second, kiln_access access) {
    const kiln_tensor x = kiln_tensor_of(values->all + first, KILN_F32, 1, shape),
                      y = kiln_tensor_of(values->all + second, KILN_F32, 1, shape);
    must(kiln_job_kernel(job.get(), "saxpy.comp", saxpy));
    must(kiln_job_constant(job.get(), "A", "1.5"));
    must(kiln_job_uniform(job.get(), "scale", KILN_F64, 0, nullptr, &scale));
    must(kiln_job_buffer(job.get(), "X", KILN_READ, &x));
    must(kiln_job_buffer(job.get(), "Y", access, &y));
    must(kiln_job_grid(job.get(), 16, 1, 1));
    must(kiln_job_device(job.get(), "opengl:0"));
    return Answer(kiln_job_run(job.get()));
  };
  for (const auto& [first, second] :
       std::vector<std::pair<std::size_t, std::size_t>>{{0, 0}, {1, 1}, {0, 1008}, {1023, 0}}) {
    const Answer refused = run(first, second, KILN_READ_WRITE);
    CHECK(refused.code == KILN_INVALID_ARGUMENT);
    CHECK_THAT(refused.message, Catch::Contains("job 'shared': buffer Y is written and shares memory with buffer X"));
  }
  CHECK(run(0, 1024, KILN_READ_WRITE).ok());
  CHECK(run(1024, 0, KILN_READ_WRITE).ok());

  const kiln_tensor a = kiln_tensor_of(values->all, KILN_F32, 2, square),
                    b = kiln_tensor_of(values->all + 4, KILN_F32, 2, square),
                    c = kiln_tensor_of(values->all + 64, KILN_F32, 2, square);
  must(kiln_job_device(job.get(), "cpu"));
  must(kiln_job_gemm(job.get(), &a, &b, nullptr, 0, &a));
  CHECK_THAT(Answer(kiln_job_run(job.get())).message, Catch::Contains("output is written and shares memory with a,"));
  must(kiln_job_gemm(job.get(), &a, &b, nullptr, 0, &b));  // weights were read already
  must(kiln_job_run(job.get()));
  must(kiln_job_gemm(job.get(), &a, &a, nullptr, 0, &c));
  must(kiln_job_run(job.get()));
}

TEST_CASE("jobs: an array whose type is refused is an error that says how to convert it") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) return;
  std::vector<std::uint16_t> halves(1024);
  const std::int64_t shape[] = {1024}, square[] = {2, 2};
  const kiln_tensor half = kiln_tensor_of(halves.data(), KILN_F16, 1, shape),
                    half_square = kiln_tensor_of(halves.data(), KILN_F16, 2, square);
  Saxpy given(jobs.runtime);
  const kiln_tensor y = kiln_tensor_of(given.y.data(), KILN_F32, 1, shape);
  must(kiln_job_kernel(given.job.get(), "saxpy.comp", saxpy));
  must(kiln_job_constant(given.job.get(), "A", "1.5"));
  must(kiln_job_buffer(given.job.get(), "X", KILN_READ, &half));
  must(kiln_job_buffer(given.job.get(), "Y", KILN_READ_WRITE, &y));
  const Answer kernel(kiln_job_run(given.job.get()));
  CHECK(kernel.code == KILN_INVALID_ARGUMENT);
  CHECK_THAT(kernel.message,
             Catch::Contains("holds float32, and the job provides float16, expected float32, or uint8") &&
                 Catch::Contains("Convert an array in memory to float32 before the call"));
  const Answer layer(kiln_job_gemm(given.job.get(), &half_square, &half_square, nullptr, 0, &half_square));
  CHECK(layer.code == KILN_INVALID_ARGUMENT);
  CHECK_THAT(layer.message,
             Catch::Contains("a: float16 [2, 2], expected float32 [2, 2]. Convert the elements before the call"));
}

TEST_CASE("jobs: the texts of a report stay until the job is freed: another thread may run it") {
  Jobs jobs;
  const std::int64_t shape[] = {2, 2};
  float a[] = {1, 2, 3, 4}, b[] = {1, 0, 0, 1}, c[4] = {};
  const kiln_tensor on_a = kiln_tensor_of(a, KILN_F32, 2, shape), on_b = kiln_tensor_of(b, KILN_F32, 2, shape),
                    on_c = kiln_tensor_of(c, KILN_F32, 2, shape);
  const Job job = job_of(jobs.runtime, "sum");
  must(kiln_job_gemm(job.get(), &on_a, &on_b, nullptr, 0, &on_c));
  must(kiln_job_device(job.get(), "cpu"));
  must(kiln_job_run(job.get()));
  const kiln_report report = report_of(job.get());
  const std::string device = report.device, variant = report.variant;
  CHECK(device == "cpu");
  char* json = nullptr;  // a gemm cannot be tuned, and has no report afterwards
  CHECK(Answer(kiln_job_tune(job.get(), "cpu", 1, nullptr, nullptr, &json)).code == KILN_UNSUPPORTED);
  CHECK(report.device == device);
  CHECK(report.variant == variant);
}

TEST_CASE("jobs: a job that was cancelled ends with that, and runs again") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) return;
  Saxpy saxpy_job(jobs.runtime);
  kiln_job* job = saxpy_job.job.get();
  must(kiln_job_repeat(job, 100000000));
  must(kiln_job_start(job));
  CHECK(Answer(kiln_job_wait(job, 20)).code == KILN_TIMEOUT);
  CHECK(Answer(kiln_job_grid(job, 1, 1, 1)).code == KILN_UNAVAILABLE);
  CHECK(Answer(kiln_job_run(job)).code == KILN_UNAVAILABLE);
  kiln_job_cancel(job);
  CHECK(Answer(kiln_job_wait(job, 60000)).code == KILN_CANCELLED);
  must(kiln_job_repeat(job, 1));
  must(kiln_job_run(job));
}

TEST_CASE("jobs: a forked child is told to open its own runtime, and may close that of its parent") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) return;
  Saxpy saxpy_job(jobs.runtime);
  must(kiln_job_run(saxpy_job.job.get()));
  const ChildEnd end = in_child([&]() -> std::string {
    for (kiln_status* (*const each)(kiln_job*) : {kiln_job_run, kiln_job_start}) {
      const Answer answer = each(saxpy_job.job.get());
      if (answer.code != KILN_UNAVAILABLE) return answer.message;
      if (answer.message.find("opened before fork()") == std::string::npos) return answer.message;
    }
    kiln_job* job = saxpy_job.job.get();
    kiln_job* made = nullptr;
    char* text = nullptr;
    kiln_report report;
    report.size = sizeof report;
    kiln_cache_stats stats;
    stats.size = sizeof stats;
    const std::pair<const char*, Answer> all[] = {
        {"kiln_runtime_devices", kiln_runtime_devices(jobs.runtime, &text)},
        {"kiln_runtime_metrics", kiln_runtime_metrics(jobs.runtime, &text)},
        {"kiln_runtime_trace", kiln_runtime_trace(jobs.runtime, &text)},
        {"kiln_runtime_get_stats", kiln_runtime_get_stats(jobs.runtime, &stats)},
        {"kiln_runtime_explain", kiln_runtime_explain(jobs.runtime, "saxpy", &text)},
        {"kiln_job_create", kiln_job_create(jobs.runtime, "another", &made)},
        {"kiln_job_repeat", kiln_job_repeat(job, 2)},
        {"kiln_job_tensors", kiln_job_tensors(job, &text)},
        {"kiln_job_wait", kiln_job_wait(job, 1)},
        {"kiln_job_get_report", kiln_job_get_report(job, &report)},
        {"kiln_job_report_json", kiln_job_report_json(job, &text)},
        {"kiln_job_tune", kiln_job_tune(job, "opengl:0", 1, nullptr, nullptr, &text)},
        {"kiln_runtime_warm", kiln_runtime_warm(jobs.runtime, "opengl:0", 1, nullptr)}};
    for (const auto& [function, answer] : all) {
      if (answer.code != KILN_UNAVAILABLE || answer.message.find(function) == std::string::npos ||
          answer.message.find("opened before fork()") == std::string::npos) {
        return function + (": " + answer.message);
      }
    }
    if (kiln_job_ended(job) != 0) return "kiln_job_ended";
    kiln_job_cancel(job);
    saxpy_job.job.reset();
    kiln_close(jobs.runtime);
    return "";
  });
  CHECK(end.said == "");
  CHECK(end.signal == 0);
  must(kiln_job_run(saxpy_job.job.get()));
}

TEST_CASE("jobs: tuning measures each variant, reports progress and leaves the tensors as they were") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) return;
  const Job job = job_of(jobs.runtime, "doubled");
  std::vector<float> values(4096, 3.0f);
  const std::int64_t shape[] = {4096};
  const kiln_tensor tensor = kiln_tensor_of(values.data(), KILN_F32, 1, shape);
  const char* const lanes[] = {"32", "64", "128"};
  must(kiln_job_kernel(job.get(), "doubled.comp",
                       "#version 430 core\nlayout(local_size_x = LANES) in;\n"
                       "layout(std430, binding = 0) buffer V { float v[]; };\n"
                       "void main() { v[gl_GlobalInvocationID.x] *= 2.0; }\n"));
  must(kiln_job_buffer(job.get(), "V", KILN_READ_WRITE, &tensor));
  char* json = nullptr;
  CHECK(Answer(kiln_job_tune(job.get(), "opengl:0", 3000, nullptr, nullptr, &json)).code == KILN_UNSUPPORTED);
  must(kiln_job_parameter(job.get(), "LANES", lanes, 3));
  must(kiln_job_grid_text(job.get(), "4096 / LANES", "1", "1"));
  refused(
      kiln_job_tune(
          job.get(), "opengl:0", 3000, [](void*, std::size_t, std::size_t, const char*) { return 0; }, nullptr, &json),
      KILN_CANCELLED, "job 'doubled': tuning was stopped");
  CHECK(json == nullptr);
  std::size_t calls = 0;
  must(kiln_job_tune(
      job.get(), "opengl:0", 3000,
      [](void* user, std::size_t, std::size_t, const char*) {
        ++*static_cast<std::size_t*>(user);
        return 1;
      },
      &calls, &json));
  const auto outcome = nlohmann::json::parse(json);
  kiln_text_free(json);
  CHECK(calls > 0);
  CHECK_THAT(outcome["variant"].get<std::string>(), Catch::Contains("LANES="));
  CHECK(outcome["rejected"].empty());
  CHECK(values[0] == 3.0f);
  must(kiln_job_device(job.get(), "opengl:0"));
  must(kiln_job_run(job.get()));
  CHECK(values[0] == 6.0f);
  CHECK(values[4095] == 6.0f);
  CHECK(std::string(report_of(job.get()).variant) == outcome["variant"].get<std::string>());
}

TEST_CASE("jobs: a variant that writes infinities agrees with no other one") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) return;
  const Job job = job_of(jobs.runtime, "kinds");
  std::vector<float> values(64);
  const std::int64_t shape[] = {64};
  const kiln_tensor tensor = kiln_tensor_of(values.data(), KILN_F32, 1, shape);
  const char* const kinds[] = {"0", "1", "2"};
  must(kiln_job_kernel(job.get(), "kinds.comp",
                       "#version 430 core\nlayout(local_size_x = 64) in;\n"
                       "layout(std430, binding = 0) writeonly buffer V { float v[]; };\n"
                       "const float inf = uintBitsToFloat(0x7f800000u);\n"
                       "void main() { v[gl_GlobalInvocationID.x] = KIND == 0 ? inf : 1.0; }\n"));
  must(kiln_job_buffer(job.get(), "V", KILN_WRITE, &tensor));
  must(kiln_job_parameter(job.get(), "KIND", kinds, 3));
  must(kiln_job_grid(job.get(), 1, 1, 1));
  char* json = nullptr;
  must(kiln_job_tune(job.get(), "opengl:0", 3000, nullptr, nullptr, &json));
  const auto outcome = nlohmann::json::parse(json);
  kiln_text_free(json);
  REQUIRE(outcome["rejected"].size() == 1);
  CHECK_THAT(outcome["rejected"].dump(), Catch::Contains("KIND=0"));
}

TEST_CASE("jobs: opening a runtime changes no variable of the environment") {
  std::vector<std::string> before, after;
  for (char** each = environ; *each != nullptr; ++each) before.emplace_back(*each);
  { const Jobs jobs; }
  for (char** each = environ; *each != nullptr; ++each) after.emplace_back(*each);
  CHECK(before == after);
}

}  // namespace
}  // namespace kiln::test
