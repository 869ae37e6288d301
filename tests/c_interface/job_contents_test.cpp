// What a job computes with what it is given: layers with all their terms, and kernels whose contents are replaced.
#include "c_interface/jobs.hpp"

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

namespace kiln::test {
namespace {

nlohmann::json json_of(char* text) {
  auto json = nlohmann::json::parse(text);
  kiln_text_free(text);
  return json;
}

TEST_CASE("job contents: gemm adds the bias of each column, and cuts below zero") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "product");
  const std::int64_t a_shape[] = {2, 3}, b_shape[] = {3, 2}, bias_shape[] = {2}, c_shape[] = {2, 2};
  float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 0, 1, 1, -1}, bias[] = {-5, 1}, c[4] = {};
  const kiln_tensor ta = kiln_tensor_of(a, KILN_F32, 2, a_shape), tb = kiln_tensor_of(b, KILN_F32, 2, b_shape),
                    tbias = kiln_tensor_of(bias, KILN_F32, 1, bias_shape), tc = kiln_tensor_of(c, KILN_F32, 2, c_shape);
  must(kiln_job_device(job.get(), "cpu"));
  must(kiln_job_gemm(job.get(), &ta, &tb, &tbias, 0, &tc));
  must(kiln_job_run(job.get()));
  // a · b is 4 -1 / 10 -1.
  CHECK(std::vector<float>(c, c + 4) == std::vector<float>{-1, 0, 5, 0});
  must(kiln_job_gemm(job.get(), &ta, &tb, &tbias, 1, &tc));
  must(kiln_job_run(job.get()));
  CHECK(std::vector<float>(c, c + 4) == std::vector<float>{0, 0, 5, 0});
  must(kiln_job_gemm(job.get(), &ta, &tb, nullptr, 1, &tc));
  must(kiln_job_run(job.get()));
  CHECK(std::vector<float>(c, c + 4) == std::vector<float>{4, 0, 10, 0});
  bias[0] = 100;  // weights and bias are read once
  must(kiln_job_gemm(job.get(), &ta, &tb, &tbias, 0, &tc));
  bias[0] = b[0] = 0;
  a[0] = 2;
  must(kiln_job_run(job.get()));
  CHECK(std::vector<float>(c, c + 4) == std::vector<float>{105, 0, 110, 0});
}

TEST_CASE("job contents: each term of a convolution is the one of its axis") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "convolution");
  must(kiln_job_device(job.get(), "cpu"));
  std::vector<float> x(4 * 5);
  for (std::size_t at = 0; at < x.size(); ++at) x[at] = static_cast<float>(at);
  // Row y of the picture is 5 y, 5 y + 1, … 5 y + 4; the kernel of 2 x 2 picks its upper left and lower right element.
  float w[] = {1, 0, 0, 100};
  const std::int64_t x_shape[] = {1, 1, 4, 5}, w_shape[] = {1, 1, 2, 2};
  const auto computed = [&](const kiln_conv2d* conv, std::int64_t height, std::int64_t width) {
    std::vector<float> y(static_cast<std::size_t>(height * width));
    const std::int64_t y_shape[] = {1, 1, height, width};
    const kiln_tensor tx = kiln_tensor_of(x.data(), KILN_F32, 4, x_shape), tw = kiln_tensor_of(w, KILN_F32, 4, w_shape),
                      ty = kiln_tensor_of(y.data(), KILN_F32, 4, y_shape);
    must(kiln_job_conv2d(job.get(), conv, &tx, &tw, nullptr, &ty));
    must(kiln_job_verify(job.get(), 1));
    must(kiln_job_run(job.get()));
    CHECK(report_of(job.get()).verified == 1);
    return y;
  };
  const auto terms = [](const auto& set) {
    kiln_conv2d conv{};
    conv.size = sizeof conv;
    set(conv);
    return conv;
  };
  const std::vector<float> plain = computed(nullptr, 3, 4);
  CHECK(plain[0] == 600);
  CHECK(plain[11] == 13 + 1900);
  kiln_conv2d conv = terms([](kiln_conv2d&) {});
  CHECK(computed(&conv, 3, 4) == plain);
  conv = terms([](kiln_conv2d& of) { of.stride_y = 2; });
  CHECK(computed(&conv, 2, 4) == std::vector<float>{600, 701, 802, 903, 1610, 1711, 1812, 1913});
  conv = terms([](kiln_conv2d& of) { of.stride_x = 3; });
  CHECK(computed(&conv, 3, 2) == std::vector<float>{600, 903, 1105, 1408, 1610, 1913});
  conv = terms([](kiln_conv2d& of) { of.dilation_y = 3; });
  CHECK(computed(&conv, 1, 4) == std::vector<float>{1600, 1701, 1802, 1903});
  conv = terms([](kiln_conv2d& of) { of.dilation_x = 4; });
  CHECK(computed(&conv, 3, 1) == std::vector<float>{900, 1405, 1910});
  conv = terms([](kiln_conv2d& of) { of.pad_y = 1, of.stride_y = 4, of.stride_x = 4; });
  CHECK(computed(&conv, 2, 1) == std::vector<float>{100, 15});
  conv = terms([](kiln_conv2d& of) { of.pad_x = 1, of.stride_y = 4, of.stride_x = 5; });
  CHECK(computed(&conv, 1, 2) == std::vector<float>{500, 4});
}

TEST_CASE("job contents: groups of a convolution, and a bias of its own for each channel") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "groups");
  float x[] = {1, 2, 3, 4}, w[] = {10, 100}, bias[] = {-60, 5}, y[4] = {};
  const std::int64_t x_shape[] = {1, 2, 1, 2}, w_shape[] = {2, 1, 1, 1}, bias_shape[] = {2};
  const kiln_tensor tx = kiln_tensor_of(x, KILN_F32, 4, x_shape), tw = kiln_tensor_of(w, KILN_F32, 4, w_shape),
                    tbias = kiln_tensor_of(bias, KILN_F32, 1, bias_shape), ty = kiln_tensor_of(y, KILN_F32, 4, x_shape);
  kiln_conv2d conv{};
  conv.size = sizeof conv;
  conv.groups = 2;
  must(kiln_job_device(job.get(), "cpu"));
  must(kiln_job_conv2d(job.get(), &conv, &tx, &tw, &tbias, &ty));
  must(kiln_job_run(job.get()));
  CHECK(std::vector<float>(y, y + 4) == std::vector<float>{-50, -40, 305, 405});
  conv.relu = 1;
  must(kiln_job_conv2d(job.get(), &conv, &tx, &tw, &tbias, &ty));
  must(kiln_job_run(job.get()));
  CHECK(std::vector<float>(y, y + 4) == std::vector<float>{0, 0, 305, 405});
  CHECK(report_of(job.get()).verified == 0);
}

TEST_CASE("job contents: repeated runs are counted, and a shorter report gets what it has room for") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "product");
  const std::int64_t shape[] = {1, 1};
  alignas(64) float a[16] = {2}, b[16] = {3}, c[32] = {};
  const kiln_tensor ta = kiln_tensor_of(a, KILN_F32, 2, shape), tb = kiln_tensor_of(b, KILN_F32, 2, shape),
                    tc = kiln_tensor_of(c + 1, KILN_F32, 2, shape);
  must(kiln_job_gemm(job.get(), &ta, &tb, nullptr, 0, &tc));
  must(kiln_job_device(job.get(), "cpu"));
  must(kiln_job_repeat(job.get(), 3));
  must(kiln_job_start(job.get()));
  must(kiln_job_wait(job.get(), 60000));
  CHECK(kiln_job_ended(job.get()) == 1);
  CHECK(c[1] == 6);
  const kiln_report report = report_of(job.get());
  CHECK(report.size == sizeof report);
  CHECK(report.runs == 3);
  CHECK(report.tier == KILN_TIER_LIBRARY);
  CHECK(report.flops == 2);
  CHECK(report.copied_bytes == 4);  // of the result alone: it is not aligned, and weights are read once
  CHECK(std::string(report.device).starts_with("cpu"));
  kiln_report part;
  std::memset(&part, 0x5a, sizeof part);
  part.size = offsetof(kiln_report, wall_ns);
  must(kiln_job_get_report(job.get(), &part));
  CHECK(std::string(part.device) == report.device);
  CHECK(part.runs == 3);
  CHECK(part.wall_ns == 0x5a5a5a5a5a5a5a5a);
  part.size = 8;
  refused(kiln_job_get_report(job.get(), &part), KILN_INVALID_ARGUMENT, "report.size is 8");
  char* text = nullptr;
  must(kiln_job_report_json(job.get(), &text));
  CHECK(json_of(text)["runs"] == 3);
}

TEST_CASE("job contents: a device is chosen again for auto and for NULL") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "product");
  const std::int64_t shape[] = {1, 1};
  float a = 2, b = 3, c = 0;
  const kiln_tensor ta = kiln_tensor_of(&a, KILN_F32, 2, shape), tb = kiln_tensor_of(&b, KILN_F32, 2, shape),
                    tc = kiln_tensor_of(&c, KILN_F32, 2, shape);
  must(kiln_job_gemm(job.get(), &ta, &tb, nullptr, 0, &tc));
  for (const char* const device : {"auto", static_cast<const char*>(nullptr)}) {
    must(kiln_job_device(job.get(), "none:0"));
    CHECK_FALSE(Answer(kiln_job_run(job.get())).ok());
    must(kiln_job_device(job.get(), device));
    must(kiln_job_timeout(job.get(), 60000));
    must(kiln_job_run(job.get()));
    CHECK(c == 6);
  }
}

constexpr const char* terms_of = R"(#version 430 core
layout(local_size_x = 16) in;
layout(std430, binding = 0) writeonly buffer Y { float y[]; };
uniform float factor;
uniform int added[2];
void main() { y[gl_GlobalInvocationID.x] = FIRST * 1000.0 + SECOND * 100.0 + factor * 10.0 + float(added[0] - added[1]); }
)";

TEST_CASE("job contents: the last text of a constant and the last values of a uniform hold") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) {
    WARN("skipped: no usable device opengl:0");
    return;
  }
  std::vector<float> y(32);
  const std::int64_t shape[] = {32};
  const std::uint32_t two[] = {2};
  const kiln_tensor on_y = kiln_tensor_of(y.data(), KILN_F32, 1, shape);
  const Job held = job_of(jobs.runtime, "terms");
  kiln_job* const job = held.get();
  const auto all_are = [&](float value) {
    y.assign(32, -1);
    must(kiln_job_run(job));
    return y == std::vector<float>(32, value);
  };
  double factor = 3;
  std::int64_t added[] = {5, 1};
  must(kiln_job_kernel(job, "terms.comp", terms_of));
  must(kiln_job_device(job, "opengl:0"));
  must(kiln_job_constant(job, "FIRST", "1"));
  must(kiln_job_constant(job, "SECOND", "2"));
  must(kiln_job_uniform(job, "factor", KILN_F64, 0, nullptr, &factor));
  must(kiln_job_uniform(job, "added", KILN_I32, 1, two, added));
  must(kiln_job_buffer(job, nullptr, KILN_WRITE, &on_y));
  must(kiln_job_grid(job, 2, 1, 1));
  factor = added[0] = 0;  // the values were copied
  CHECK(all_are(1234));
  must(kiln_job_constant(job, "SECOND", "7"));
  CHECK(all_are(1734));
  must(kiln_job_uniform(job, "added", KILN_I32, 1, two, added));
  CHECK(all_are(1729));
  factor = 5;
  must(kiln_job_uniform(job, "factor", KILN_F64, 0, nullptr, &factor));
  CHECK(all_are(1749));
  must(kiln_job_grid(job, 1, 1, 1));
  y.assign(32, -1);
  must(kiln_job_run(job));
  CHECK(y[15] == 1749);
  CHECK(y[16] == 0);
}

TEST_CASE("job contents: a kernel without a text is read with what stands beside it") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) {
    WARN("skipped: no usable device opengl:0");
    return;
  }
  const std::filesystem::path file = jobs.folder.path() / "seven.comp";
  std::ofstream(jobs.folder.path() / "part.glsl") << "const float seven = 7.0;\n";
  std::ofstream(file) << "#version 430 core\n#include \"part.glsl\"\nlayout(local_size_x = 4) in;\n"
                         "layout(std430, binding = 0) writeonly buffer Y { float y[]; };\n"
                         "void main() { y[gl_GlobalInvocationID.x] = seven; }\n";
  std::vector<float> y(4);
  const std::int64_t shape[] = {4};
  const kiln_tensor on_y = kiln_tensor_of(y.data(), KILN_F32, 1, shape);
  const Job job = job_of(jobs.runtime, "seven");
  must(kiln_job_kernel(job.get(), file.c_str(), nullptr));
  must(kiln_job_buffer(job.get(), "Y", KILN_WRITE, &on_y));
  must(kiln_job_device(job.get(), "opengl:0"));
  must(kiln_job_run(job.get()));
  CHECK(y == std::vector<float>(4, 7));
}

// The variants whose results differ from the first one's. V is 0, 1, …; the kernel writes `expression`.
std::string rejected(kiln_runtime* runtime, kiln_type type, const std::string& of, const std::string& expression,
                     std::vector<const char*> variants) {
  const Job job = job_of(runtime, "variants");
  std::vector<double> memory(64);
  const std::int64_t shape[] = {64};
  const kiln_tensor tensor = kiln_tensor_of(memory.data(), type, 1, shape);
  must(kiln_job_kernel(job.get(), "variants.comp",
                       ("#version 430 core\nlayout(local_size_x = 64) in;\n"
                        "layout(std430, binding = 0) writeonly buffer Y { " +
                        of + " y[]; };\nvoid main() { y[gl_GlobalInvocationID.x] = " + expression + "; }\n")
                           .c_str()));
  must(kiln_job_buffer(job.get(), "Y", KILN_WRITE, &tensor));
  must(kiln_job_parameter(job.get(), "V", variants.data(), variants.size()));
  must(kiln_job_grid(job.get(), 1, 1, 1));
  char* json = nullptr;
  must(kiln_job_tune(job.get(), "opengl:0", 60000, nullptr, nullptr, &json));
  const nlohmann::json outcome = json_of(json);
  std::string all;
  for (const auto& each : outcome["rejected"]) all += each.dump();
  CHECK(outcome["rejected"].size() <= 1);
  return all;
}

TEST_CASE("job contents: variants agree up to rounding, and exactly in integers") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) {
    WARN("skipped: no usable device opengl:0");
    return;
  }
  // The bound is 1e-5 + 1e-4 * |value|.
  const std::string near = "V == 0 ? 10.0 : V == 1 ? 10.0 : ";
  CHECK(rejected(jobs.runtime, KILN_F32, "float", near + "10.0009", {"0", "1", "2"}).empty());
  CHECK_THAT(rejected(jobs.runtime, KILN_F32, "float", near + "10.002", {"0", "1", "2"}), Catch::Contains("V=2"));
  CHECK_THAT(rejected(jobs.runtime, KILN_F32, "float", near + "9.998", {"0", "1", "2"}), Catch::Contains("V=2"));
  CHECK(rejected(jobs.runtime, KILN_F32, "float", "V == 2 ? 0.000009 : 0.0", {"0", "1", "2"}).empty());
  CHECK_THAT(rejected(jobs.runtime, KILN_F32, "float", "V == 2 ? 0.00002 : 0.0", {"0", "1", "2"}),
             Catch::Contains("V=2"));
  CHECK(rejected(jobs.runtime, KILN_F32, "float", "uintBitsToFloat(0x7fc00000u)", {"0", "1", "2"}).empty());
  CHECK_THAT(rejected(jobs.runtime, KILN_I32, "int", "V == 2 ? 1000001 : 1000000", {"0", "1", "2"}),
             Catch::Contains("V=2"));
  CHECK(rejected(jobs.runtime, KILN_F64, "double", "V == 2 ? 10.0009LF : 10.0LF", {"0", "1", "2"}).empty());
  CHECK_THAT(rejected(jobs.runtime, KILN_F64, "double", "V == 2 ? 10.002LF : 10.0LF", {"0", "1", "2"}),
             Catch::Contains("V=2"));
}

}  // namespace
}  // namespace kiln::test
