// Texts that describe jobs: which tensors they name, in which form, and what they may not say.
#include "c_interface/jobs.hpp"

#include <string>
#include <utility>

namespace kiln::test {
namespace {

std::string kernel_text(const std::string& bindings, const std::string& more = "") {
  return "[[job]]\nname = \"k\"\nop = \"kernel\"\nsource = \"k.comp\"\ntext = \"void main() {}\"\ngrid = [1, 1]\n" +
         more + "bindings = [" + bindings + "]\n";
}

// "name access dtype shape", one line each; "?" is what nobody knows yet.
std::string forms_of(kiln_job* job) {
  char* text = nullptr;
  must(kiln_job_tensors(job, &text));
  const auto json = nlohmann::json::parse(text);
  kiln_text_free(text);
  std::string all;
  for (const auto& tensor : json["tensors"]) {
    all += tensor["name"].get<std::string>() + " " + tensor["access"].get<std::string>() + " ";
    all += tensor["dtype"].is_null() ? "?" : tensor["dtype"].get<std::string>() + " " + tensor["shape"].dump();
    all += tensor["given"].get<bool>() ? " given\n" : "\n";
  }
  return all;
}

TEST_CASE("described texts: the tensors of a kernel, with what is known of their form") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "forms");
  must(kiln_job_toml(
      job.get(),
      kernel_text("{ input = \"memory:a\" }, { output = \"memory:b\", shape = [2, 3], dtype = \"int32\" }, "
                  "{ inout = \"memory:c\" }, { output = \"memory:d\", dtype = \"float32\", expect = "
                  "\"memory:e\" }, { input = \"memory:a\" }")
          .c_str(),
      nullptr));
  CHECK(forms_of(job.get()) == "a read ?\nb write int32 [2,3]\nc read_write ?\nd write ?\ne read ?\n");
  float data[8] = {};
  const std::int64_t four[] = {4}, pair[] = {1, 2};
  const kiln_tensor tensor = kiln_tensor_of(data, KILN_F32, 1, four), half = kiln_tensor_of(data, KILN_F16, 2, pair);
  must(kiln_job_tensor(job.get(), "a", &tensor));
  must(kiln_job_tensor(job.get(), "b", &half));
  CHECK(forms_of(job.get()) ==
        "a read float32 [4] given\nb write float16 [1,2] given\nc read_write ?\nd write ?\ne read ?\n");
  refused(kiln_job_run(job.get()), KILN_INVALID_ARGUMENT,
          "job 'forms': tensor 'c' is missing. Call kiln_job_tensor() first");
}

TEST_CASE("described texts: what a text may not say is refused with its place in the text") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "bad");
  const auto told = [&](const std::string& text) {
    const Answer answer(kiln_job_toml(job.get(), text.c_str(), nullptr));
    CHECK(answer.code == KILN_INVALID_ARGUMENT);
    return answer.message;
  };
  CHECK_THAT(told(kernel_text("{ output = \"y.npy\", shape = [1], dtype = \"float32\" }")),
             Catch::EndsWith("bindings[0]: found the file y.npy, expected \"memory:NAME\" for a result"));
  CHECK_THAT(told(kernel_text("{ input = \"zeros:\", shape = [1] }, { inout = \"memory:x\", output = \"memory:y\" }")),
             Catch::EndsWith("bindings[1]: found both inout and output, expected only one"));
  CHECK_THAT(told(kernel_text("{ input = \"memory:x\" }, { inout = \"memory:x\" }")),
             Catch::EndsWith("bindings[1]: memory:x is written and used a second time, expected a different tensor"));
  CHECK_THAT(told(kernel_text("{ inout = \"memory:x\" }, { input = \"memory:x\" }")),
             Catch::EndsWith("bindings[1]: memory:x is written and used a second time, expected a different tensor"));
  CHECK_THAT(told(kernel_text("{ inout = \"memory:x\", expect = \"memory:x\" }")),
             Catch::EndsWith("bindings[0]: memory:x is written and used a second time, expected a different tensor"));
  CHECK_THAT(told(kernel_text("{ input = \"memory:\" }")),
             Catch::Contains("found \"memory:\", expected \"memory:NAME\""));
  const std::string layer =
      "[[job]]\nname = \"a\"\nop = \"gemm\"\nm = 1\nn = 1\nk = 1\nweights = \"random:1\"\ninput = \"memory:x\"\n";
  CHECK_THAT(told(layer), Catch::EndsWith("output: found none, expected \"memory:NAME\""));
  const std::string good = layer + "output = \"memory:y\"\n";
  CHECK_THAT(told(good + good), Catch::Contains("name") || Catch::Contains("found 2 jobs and pipelines"));
  CHECK_THAT(told(good + "[plugin.opengl]\ntile = 1\n"),
             Catch::Contains("plugin.opengl") && Catch::Contains("found in the job's text, expected in a file"));
  const std::string two_wrong = told("[[job]]\nname = \"a\"\nop = \"gem\"\n\n[cach]\nx = 1\n");
  CHECK_THAT(two_wrong, Catch::Contains("3:6: ") && Catch::Contains("\n5:"));
}

TEST_CASE("described texts: the device of the text counts, and auto is any") {
  Jobs jobs;
  const std::string layer =
      "[[job]]\nname = \"a\"\nop = \"gemm\"\nm = 1\nn = 1\nk = 1\nweights = \"memory:w\"\ninput = \"memory:x\"\n"
      "output = \"memory:y\"\n";
  const std::int64_t shape[] = {1, 1};
  float x = 2, w = 3, y = 0;
  const Job job = job_of(jobs.runtime, "a");
  const auto run_with = [&](const std::string& device) {
    must(kiln_job_toml(job.get(), (layer + "device = \"" + device + "\"\n").c_str(), nullptr));
    for (const auto& [name, data] : {std::pair{"x", &x}, std::pair{"w", &w}, std::pair{"y", &y}}) {
      const kiln_tensor tensor = kiln_tensor_of(data, KILN_F32, 2, shape);
      must(kiln_job_tensor(job.get(), name, &tensor));
    }
    y = 0;
    return Answer(kiln_job_run(job.get()));
  };
  CHECK(run_with("cpu").ok());
  CHECK(y == 6);
  CHECK(std::string(report_of(job.get()).device) == "cpu");
  CHECK(run_with("auto").ok());
  CHECK(y == 6);
  CHECK_FALSE(run_with("none:0").ok());
}

TEST_CASE("described texts: a kernel is verified with what the text expects, and only then") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "compared");
  must(kiln_job_toml(job.get(), kernel_text("{ inout = \"memory:x\" }", "verify = true\n").c_str(), nullptr));
  float x = 2;
  const std::int64_t shape[] = {1};
  const kiln_tensor tensor = kiln_tensor_of(&x, KILN_F32, 1, shape);
  must(kiln_job_tensor(job.get(), "x", &tensor));
  refused(kiln_job_run(job.get()), KILN_INVALID_ARGUMENT,
          "job 'compared': verify: no result has `expect`, so there is nothing to compare with");
  refused(kiln_job_tensor(job.get(), "y", &tensor), KILN_NOT_FOUND, "the text has no \"memory:y\", expected one of x");
  must(kiln_job_toml(job.get(), kernel_text("{ input = \"zeros:\", shape = [1] }").c_str(), nullptr));
  refused(kiln_job_tensor(job.get(), "y", &tensor), KILN_NOT_FOUND,
          "tensor 'y': the text has no \"memory:y\" and no other \"memory:NAME\"");
}

TEST_CASE("described texts: a job that had a text has none once it is another kind of job") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "changed");
  must(kiln_job_toml(job.get(), kernel_text("{ inout = \"memory:x\" }").c_str(), nullptr));
  must(kiln_job_kernel(job.get(), "k.comp", "void main() {}"));
  char* text = nullptr;
  refused(kiln_job_tensors(job.get(), &text), KILN_INVALID_ARGUMENT, "the job has no text");
  float x = 2;
  const std::int64_t shape[] = {1};
  const kiln_tensor tensor = kiln_tensor_of(&x, KILN_F32, 1, shape);
  refused(kiln_job_tensor(job.get(), "x", &tensor), KILN_INVALID_ARGUMENT, "the job has no text");
  must(kiln_job_toml(job.get(), kernel_text("{ inout = \"memory:x\" }").c_str(), nullptr));
  refused(kiln_job_constant(job.get(), "A", "1"), KILN_INVALID_ARGUMENT, "the job has no kernel");
}

}  // namespace
}  // namespace kiln::test
