// Jobs and pipelines in TOML through kiln.h: tensors by name, images, progress, reports, traces.
#include "c_interface/jobs.hpp"

#include <array>
#include <cstring>

namespace kiln::test {
namespace {

struct alignas(64) Block {
  std::array<float, 16> values{};
};

// y = relu(x · w1 + b) · w2, all of 2 x 2.
constexpr const char* two_products = R"([[pipeline]]
name = "net"
tensors.x = { input = "memory:x" }
tensors.y = { output = "memory:y" }
step = [
  { name = "one", op = "gemm", m = 2, n = 2, k = 2, input = "x", weights = "memory:w1", bias = "memory:b", activation = "relu", output = "t" },
  { name = "two", op = "gemm", m = 2, n = 2, k = 2, input = "t", weights = "memory:w2", output = "y" },
]
)";

void give(kiln_job* job, const char* name, float* data, std::initializer_list<std::int64_t> shape) {
  const kiln_tensor tensor = kiln_tensor_of(data, KILN_F32, static_cast<std::uint32_t>(shape.size()), std::data(shape));
  must(kiln_job_tensor(job, name, &tensor));
}

nlohmann::json parsed(char* text) {
  auto json = nlohmann::json::parse(text);
  kiln_text_free(text);
  return json;
}

nlohmann::json tensors_of(kiln_job* job) {
  char* text = nullptr;
  must(kiln_job_tensors(job, &text));
  return parsed(text)["tensors"];
}

nlohmann::json tensor_named(kiln_job* job, const std::string& name) {
  for (const auto& tensor : tensors_of(job)) {
    if (tensor["name"] == name) return tensor;
  }
  return {};
}

TEST_CASE("described: a pipeline runs on tensors of the application, again with others, and weights are read once") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "net");
  must(kiln_job_toml(job.get(), two_products, nullptr));
  must(kiln_job_device(job.get(), "cpu"));
  CHECK(tensors_of(job.get()).size() == 5);
  CHECK(tensor_named(job.get(), "x")["access"] == "read");
  CHECK(tensor_named(job.get(), "x")["shape"].is_null());
  CHECK(tensor_named(job.get(), "y")["access"] == "write");
  Block x, w1, w2, b, y;
  x.values = {1, 2, 3, 4};
  w1.values = {1, 0, 0, -1};
  b.values = {0, 3};
  w2.values = {1, 1, 1, 0};
  give(job.get(), "x", x.values.data(), {2, 2});
  give(job.get(), "w1", w1.values.data(), {2, 2});
  give(job.get(), "b", b.values.data(), {2});
  give(job.get(), "w2", w2.values.data(), {2, 2});
  CHECK(tensor_named(job.get(), "y")["shape"] == nlohmann::json({2, 2}));  // the step's
  CHECK(tensor_named(job.get(), "y")["dtype"] == "float32");
  CHECK(tensor_named(job.get(), "y")["given"] == false);
  refused(kiln_job_run(job.get()), KILN_INVALID_ARGUMENT, "job 'net': tensor 'y' is missing");
  give(job.get(), "y", y.values.data(), {2, 2});
  must(kiln_job_verify(job.get(), 1));
  must(kiln_job_run(job.get()));
  // x · w1 + b = {1, 1, 3, -1}, relu: {1, 1, 3, 0}; · w2 = {2, 1, 3, 3}
  CHECK(y.values == std::array<float, 16>{2, 1, 3, 3});
  CHECK(report_of(job.get()).verified == 1);
  CHECK(report_of(job.get()).copied_bytes == 0);

  w2.values = {100, 100, 100, 100};  // was copied
  x.values = {0, 0, 1, 1};           // is read in each run
  must(kiln_job_run(job.get()));
  CHECK(y.values == std::array<float, 16>{3, 0, 3, 1});

  Block other;  // not aligned: copied
  std::memcpy(other.values.data() + 1, std::array<float, 4>{1, 2, 3, 4}.data(), 16);
  give(job.get(), "x", other.values.data() + 1, {2, 2});
  x.values = {7, 7, 7, 7};
  give(job.get(), "w2", w2.values.data(), {2, 2});  // read again
  must(kiln_job_run(job.get()));
  CHECK(y.values == std::array<float, 16>{200, 200, 300, 300});
  CHECK(report_of(job.get()).copied_bytes == 16);

  char* text = nullptr;
  must(kiln_job_report_json(job.get(), &text));
  const auto report = parsed(text);
  CHECK(report["op"] == "pipeline");
  REQUIRE(report["steps"].size() == 2);
  CHECK(report["steps"][1]["name"] == "two");
  CHECK(report["device"]["id"] == "cpu");
}

// `two_products` with unit matrices on the cpu: y = relu(x).
struct Copy {
  Job job;
  Block x, w1, w2, b, y;

  explicit Copy(kiln_runtime* runtime) : job(job_of(runtime, "net")) {
    must(kiln_job_toml(job.get(), two_products, nullptr));
    w1.values = w2.values = {1, 0, 0, 1};
    give(job.get(), "x", x.values.data(), {2, 2});
    give(job.get(), "w1", w1.values.data(), {2, 2});
    give(job.get(), "b", b.values.data(), {2});
    give(job.get(), "w2", w2.values.data(), {2, 2});
    give(job.get(), "y", y.values.data(), {2, 2});
    must(kiln_job_device(job.get(), "cpu"));
  }
};

TEST_CASE("described: a pipeline that runs again is replayed, until something of the job is changed") {
  Jobs jobs(1);
  Copy copy(jobs.runtime);
  const Job& job = copy.job;
  Block &x = copy.x, &y = copy.y;
  float next = 0;
  const auto runs = [&](int count, std::uint64_t recordings) {
    char* text = nullptr;
    must(kiln_runtime_trace(jobs.runtime, &text));  // what came before
    kiln_text_free(text);
    for (int run = 0; run < count; ++run) {
      x.values = {++next, 2, 3, 4};
      must(kiln_job_run(job.get()));
      CHECK(y.values == x.values);
      CHECK(report_of(job.get()).wall_ns > 0);
    }
    must(kiln_runtime_trace(jobs.runtime, &text));
    std::uint64_t plans = 0, spans = 0;
    const auto trace = parsed(text);
    for (const auto& event : trace["traceEvents"]) {
      plans += event["name"] == "plan";
      spans += event["name"] == "net";
    }
    CHECK(plans == recordings);  // one chain is planned for each
    CHECK(spans >= static_cast<std::uint64_t>(count));
  };
  runs(4, 2);  // the first run, and the recording of the second
  runs(3, 0);
  must(kiln_job_timeout(job.get(), 10000));
  runs(1, 1);
  runs(3, 1);
  must(kiln_job_repeat(job.get(), 2));
  runs(2, 2);  // repeated runs are recorded anew
  must(kiln_job_repeat(job.get(), 1));
  must(kiln_job_device(job.get(), nullptr));
  // The selector looks at each device first. Four runs in a row on one are no looks.
  const auto plans_of_a_run = [&] {
    char* text = nullptr;
    must(kiln_runtime_trace(jobs.runtime, &text));
    kiln_text_free(text);
    x.values = {++next, 2, 3, 4};
    must(kiln_job_run(job.get()));
    CHECK(y.values == x.values);
    must(kiln_runtime_trace(jobs.runtime, &text));
    const auto trace = parsed(text);
    return std::ranges::count_if(trace["traceEvents"], [](const auto& event) { return event["name"] == "plan"; });
  };
  int run = 0;
  while (run < 100 && plans_of_a_run() != 0) ++run;
  CHECK(run >= 5);
  CHECK(run < 100);
  CHECK(plans_of_a_run() == 0);
}

TEST_CASE("described: a pipeline that is cancelled at any time runs again") {
  Jobs jobs;
  Copy copy(jobs.runtime);
  const Job& job = copy.job;
  Block &x = copy.x, &y = copy.y;
  x.values = {1, 2, 3, 4};
  for (int run = 0; run < 60; ++run) {
    must(kiln_job_start(job.get()));
    if (run % 3 == 0) kiln_job_cancel(job.get());
    const Answer answer(kiln_job_wait(job.get(), 60000));
    CHECK((answer.code == KILN_OK || (run % 3 == 0 && answer.code == KILN_CANCELLED)));
    if (answer.code == KILN_OK) CHECK(y.values == x.values);
    x.values[0] += 1;
  }
}

TEST_CASE("described: a layer in TOML") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "layer");
  must(kiln_job_toml(
      job.get(),
      "[[job]]\nname = \"layer\"\nop = \"conv2d\"\nc = 1\nh = 2\nw = 2\nk = 1\nr = 1\ns = 1\nverify = true\n"
      "input = \"memory:x\"\nweights = \"memory:w\"\noutput = \"memory:y\"\n",
      nullptr));
  CHECK(tensor_named(job.get(), "y")["shape"] == nlohmann::json({1, 1, 2, 2}));
  float x[] = {1, 2, 3, 4}, w[] = {3}, y[4] = {};
  give(job.get(), "x", x, {1, 1, 2, 2});
  give(job.get(), "w", w, {1, 1, 1, 1});
  give(job.get(), "y", y, {1, 1, 2, 2});
  must(kiln_job_run(job.get()));
  CHECK((y[0] == 3 && y[1] == 6 && y[2] == 9 && y[3] == 12));
  CHECK(report_of(job.get()).verified == 1);
}

TEST_CASE("described: a kernel with an image, a sampler, a uniform block and its text in the description") {
  Jobs jobs;
  if (!jobs.has("opengl:0")) {
    WARN("skipped: no usable device opengl:0");
    return;
  }
  const Job job = job_of(jobs.runtime, "texels");
  must(kiln_job_toml(job.get(), R"([[job]]
name = "texels"
op = "kernel"
device = "opengl:0"
source = "texels.comp"
text = """
#version 430 core
layout(local_size_x = 4, local_size_y = 2) in;
layout(rgba8) writeonly uniform image2D result;
uniform sampler2D photo;
uniform Params { float gain; };
void main() {
  ivec2 at = ivec2(gl_GlobalInvocationID.xy);
  imageStore(result, at, gain * texelFetch(photo, at, 0));
}
"""
images.result = { output = "memory:result", format = "rgba8" }
samplers.photo = { input = "memory:photo", filter = "nearest" }
blocks.Params = { gain = 2.0 }
grid = [1, 1]
)",
                     nullptr));
  std::array<std::uint8_t, 32> photo{}, result{};
  for (std::size_t at = 0; at < photo.size(); ++at) photo[at] = static_cast<std::uint8_t>(3 * at);
  const std::int64_t shape[] = {2, 4, 4};
  const kiln_tensor in = kiln_tensor_of(photo.data(), KILN_U8, 3, shape),
                    out = kiln_tensor_of(result.data(), KILN_U8, 3, shape);
  must(kiln_job_tensor(job.get(), "photo", &in));
  must(kiln_job_tensor(job.get(), "result", &out));
  must(kiln_job_run(job.get()));
  for (std::size_t at = 0; at < result.size(); ++at) CHECK(result[at] == 6 * at);
}

TEST_CASE("described: what is missing or wrong is named") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "bad");
  const auto toml = [&](const std::string& text) { return kiln_job_toml(job.get(), text.c_str(), nullptr); };
  const std::string layer = "[[job]]\nname = \"a\"\nop = \"gemm\"\nm = 1\nn = 1\nk = 1\nweights = \"random:1\"\n";
  refused(toml("[[job]]\nname = \"a\"\nop = \"gem\"\n"), KILN_INVALID_ARGUMENT, "3:6: ");
  refused(toml(""), KILN_INVALID_ARGUMENT, "found 0 jobs and pipelines, expected one");
  refused(toml(layer + "input = \"memory:x\"\noutput = \"y.npy\"\n"), KILN_INVALID_ARGUMENT,
          "output: found the file y.npy, expected \"memory:NAME\"");
  refused(toml(layer + "input = \"memory:x\"\noutput = \"memory:x\"\n"), KILN_INVALID_ARGUMENT,
          "memory:x is written and used a second time");
  const std::string good = layer + "input = \"memory:x\"\noutput = \"memory:y\"\n";
  refused(toml(good + "[cache]\nmax_programs = 3\n"), KILN_INVALID_ARGUMENT,
          "cache.max_programs: found in the job's text");
  refused(kiln_job_tensors(job.get(), nullptr), KILN_INVALID_ARGUMENT, "json is NULL");
  char* text = nullptr;
  refused(kiln_job_tensors(job.get(), &text), KILN_INVALID_ARGUMENT, "the job has no text. Call kiln_job_toml() first");
  must(toml(good));
  float data[4] = {};
  const std::int64_t shape[] = {2, 2};
  const kiln_tensor tensor = kiln_tensor_of(data, KILN_F32, 2, shape);
  refused(kiln_job_tensor(job.get(), "z", &tensor), KILN_NOT_FOUND,
          "the text has no \"memory:z\", expected one of x, y");
  must(kiln_job_tensor(job.get(), "x", &tensor));
  must(kiln_job_tensor(job.get(), "y", &tensor));
  refused(kiln_job_run(job.get()), KILN_INVALID_ARGUMENT,
          "found \"memory:x\": float32 [2, 2], expected float32 [1, 1]");
  refused(kiln_job_grid(job.get(), 1, 1, 1), KILN_INVALID_ARGUMENT,
          "the job has no kernel. Call kiln_job_kernel() first");
  refused(kiln_job_toml(job.get(), nullptr, nullptr), KILN_INVALID_ARGUMENT, "text is NULL");
  refused(kiln_job_toml(job.get(), good.c_str(), ""), KILN_INVALID_ARGUMENT,
          "kiln_job_toml: folder: found an empty name, expected a folder, or NULL");
  refused(kiln_job_report_json(job.get(), &text), KILN_NOT_FOUND, "has not finished a run");
  kiln_cache_options options = jobs.folder.options();
  options.trace = 1;
  kiln_cache* cache = nullptr;
  refused(kiln_cache_open(&options, &cache), KILN_INVALID_ARGUMENT, "options.trace is set, expected 0");
}

TEST_CASE("described: progress is reported after each run, and ends a job") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "net");
  Block x, w, b, y;
  must(kiln_job_toml(job.get(), two_products, nullptr));
  for (const char* name : {"x", "w1", "w2"})
    give(job.get(), name, name[0] == 'x' ? x.values.data() : w.values.data(), {2, 2});
  give(job.get(), "b", b.values.data(), {2});
  give(job.get(), "y", y.values.data(), {2, 2});
  must(kiln_job_device(job.get(), "cpu"));
  must(kiln_job_repeat(job.get(), 5));
  std::vector<std::uint32_t> seen;
  must(kiln_job_progress(
      job.get(),
      [](void* user, std::uint32_t done, std::uint32_t of) {
        CHECK(of == 5);
        static_cast<std::vector<std::uint32_t>*>(user)->push_back(done);
        return 1;
      },
      &seen));
  must(kiln_job_run(job.get()));
  CHECK(seen == std::vector<std::uint32_t>{1, 2, 3, 4, 5});
  const auto stop_at_two = [](void*, std::uint32_t done, std::uint32_t) { return done < 2 ? 1 : 0; };
  must(kiln_job_progress(job.get(), stop_at_two, nullptr));
  refused(kiln_job_run(job.get()), KILN_CANCELLED, "after 2 runs");
}

TEST_CASE("described: a runtime records a trace and hands it over once") {
  Jobs jobs(1);
  const Job job = job_of(jobs.runtime, "traced");
  float x[] = {2}, w[] = {3}, y[1] = {};
  must(kiln_job_toml(
      job.get(),
      "[[job]]\nname = \"traced\"\nop = \"gemm\"\nm = 1\nn = 1\nk = 1\ndevice = \"cpu\"\ninput = \"memory:x\"\n"
      "weights = \"memory:w\"\noutput = \"memory:y\"\n",
      nullptr));
  give(job.get(), "x", x, {1, 1});
  give(job.get(), "w", w, {1, 1});
  give(job.get(), "y", y, {1, 1});
  must(kiln_job_run(job.get()));
  CHECK(y[0] == 6);
  char* text = nullptr;
  const auto named = [&](const std::string& name) {
    must(kiln_runtime_trace(jobs.runtime, &text));
    std::size_t found = 0;
    const auto json = parsed(text);
    for (const auto& event : json["traceEvents"]) found += event["name"] == name ? 1 : 0;
    return found;
  };
  CHECK(named("traced") == 1);
  must(kiln_job_run(job.get()));
  CHECK(named("traced") == 1);
  CHECK(named("traced") == 0);
  Jobs untraced;
  refused(kiln_runtime_trace(untraced.runtime, &text), KILN_UNSUPPORTED, "opened without `trace`");
}

}  // namespace
}  // namespace kiln::test
