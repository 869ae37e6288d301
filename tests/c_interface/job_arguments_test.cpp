// What a job and its tensors may be given: NULL, boundaries, and what is told of anything else.
#include "c_interface/jobs.hpp"

#include <cstring>
#include <fstream>
#include <utility>

namespace kiln::test {
namespace {

constexpr const char* nothing = "#version 430 core\nlayout(local_size_x = 1) in;\nvoid main() {}\n";

void null_refused(kiln_status* status, const std::string& words) {
  refused(status, KILN_INVALID_ARGUMENT, words + " is NULL");
}

TEST_CASE("job arguments: NULL is refused with the name of the function and of the argument") {
  Jobs jobs;
  const Job held = job_of(jobs.runtime, "nulls");
  kiln_job* const job = held.get();
  const char* const texts[] = {"1", nullptr};
  const double value = 1;
  kiln_job* made = nullptr;
  null_refused(kiln_job_create(jobs.runtime, nullptr, &made), "kiln_job_create: name");
  null_refused(kiln_job_kernel(job, nullptr, nothing), "job 'nulls': kiln_job_kernel: path");
  null_refused(kiln_job_toml(job, nullptr, nullptr), "job 'nulls': kiln_job_toml: text");
  null_refused(kiln_job_tensor(job, nullptr, nullptr), "kiln_job_tensor: name");
  must(kiln_job_kernel(job, "k.comp", nothing));
  null_refused(kiln_job_entry(job, nullptr), "kiln_job_entry: entry");
  null_refused(kiln_job_constant(job, nullptr, "1"), "kiln_job_constant: name");
  null_refused(kiln_job_constant(job, "A", nullptr), "kiln_job_constant: text");
  null_refused(kiln_job_uniform(job, nullptr, KILN_F64, 0, nullptr, &value), "kiln_job_uniform: name");
  null_refused(kiln_job_uniform(job, "u", KILN_F64, 0, nullptr, nullptr), "kiln_job_uniform: values");
  null_refused(kiln_job_grid_text(job, nullptr, "1", "1"), "kiln_job_grid_text: an axis");
  null_refused(kiln_job_grid_text(job, "1", nullptr, "1"), "kiln_job_grid_text: an axis");
  null_refused(kiln_job_grid_text(job, "1", "1", nullptr), "kiln_job_grid_text: an axis");
  null_refused(kiln_job_parameter(job, nullptr, texts, 1), "kiln_job_parameter: name");
  null_refused(kiln_job_parameter(job, "P", nullptr, 1), "kiln_job_parameter: texts");
  null_refused(kiln_job_parameter(job, "P", texts, 2), "kiln_job_parameter: a text");
  must(kiln_job_parameter(job, "P", texts, 1));

  char* text = nullptr;
  kiln_report report;
  kiln_cache_stats stats;
  report.size = sizeof report;
  stats.size = sizeof stats;
  null_refused(kiln_job_get_report(job, nullptr), "kiln_job_get_report: report");
  null_refused(kiln_job_get_report(nullptr, &report), "kiln_job_get_report: job");
  null_refused(kiln_job_report_json(job, nullptr), "kiln_job_report_json: json");
  null_refused(kiln_job_report_json(nullptr, &text), "kiln_job_report_json: job");
  null_refused(kiln_job_tensors(nullptr, &text), "kiln_job_tensors: job");
  null_refused(kiln_job_wait(nullptr, 0), "kiln_job_wait: job");
  null_refused(kiln_job_start(nullptr), "kiln_job_start: job");
  null_refused(kiln_job_tune(job, "cpu", 1, nullptr, nullptr, nullptr), "kiln_job_tune: json");
  null_refused(kiln_job_tune(job, nullptr, 1, nullptr, nullptr, &text), "kiln_job_tune: device");
  null_refused(kiln_job_tune(nullptr, "cpu", 1, nullptr, nullptr, &text), "kiln_job_tune: job");
  null_refused(kiln_runtime_devices(jobs.runtime, nullptr), "kiln_runtime_devices: json");
  null_refused(kiln_runtime_devices(nullptr, &text), "kiln_runtime_devices: runtime");
  null_refused(kiln_runtime_metrics(jobs.runtime, nullptr), "kiln_runtime_metrics: text");
  null_refused(kiln_runtime_metrics(nullptr, &text), "kiln_runtime_metrics: runtime");
  null_refused(kiln_runtime_trace(jobs.runtime, nullptr), "kiln_runtime_trace: json");
  null_refused(kiln_runtime_trace(nullptr, &text), "kiln_runtime_trace: runtime");
  null_refused(kiln_runtime_get_stats(jobs.runtime, nullptr), "kiln_runtime_get_stats: stats");
  null_refused(kiln_runtime_get_stats(nullptr, &stats), "kiln_runtime_get_stats: runtime");
  null_refused(kiln_runtime_explain(jobs.runtime, nullptr, &text), "kiln_runtime_explain: which");
  null_refused(kiln_runtime_explain(jobs.runtime, "x", nullptr), "kiln_runtime_explain: json");
  null_refused(kiln_runtime_explain(nullptr, "x", &text), "kiln_runtime_explain: runtime");
  std::size_t loaded = 7;
  null_refused(kiln_runtime_warm(jobs.runtime, nullptr, 1, &loaded), "kiln_runtime_warm: device");
  CHECK(loaded == 0);
  null_refused(kiln_runtime_warm(nullptr, "cpu", 1, nullptr), "kiln_runtime_warm: runtime");
  CHECK(kiln_job_ended(nullptr) == 0);
  CHECK(kiln_job_ended(job) == 0);
  refused(kiln_runtime_trace(jobs.runtime, &text), KILN_UNSUPPORTED, "the runtime was opened without `trace`");
  CHECK(text == nullptr);
}

TEST_CASE("job arguments: a status has the code and the message that it was made of") {
  CHECK(kiln_status_make(KILN_OK, "fine") == nullptr);
  for (int code = 1; code <= KILN_WRONG_RESULT; ++code) {
    const Answer answer(kiln_status_make(static_cast<kiln_code>(code), "mine"));
    CHECK(answer.code == static_cast<kiln_code>(code));
    CHECK(answer.message == "mine");
    CHECK(std::string(kiln_code_name(static_cast<kiln_code>(code))) != "invalid");
  }
  CHECK(Answer(kiln_status_make(KILN_TIMEOUT, nullptr)).message.empty());
  for (const int code : {-1, KILN_WRONG_RESULT + 1}) {
    refused(kiln_status_make(static_cast<kiln_code>(code), "mine"), KILN_INTERNAL,
            "kiln_status_make: code " + std::to_string(code) + ", expected a kiln_code, 0 to " +
                std::to_string(static_cast<int>(KILN_WRONG_RESULT)));
    CHECK(std::string(kiln_code_name(static_cast<kiln_code>(code))) == "invalid");
  }
  CHECK(std::string(kiln_code_name(KILN_OK)) == "ok");
  CHECK(std::string(kiln_code_name(KILN_WRONG_RESULT)) == "wrong_result");
  CHECK_THAT(kiln_version(), Catch::Contains("."));
}

TEST_CASE("job arguments: a tensor has at most 32 dimensions and a type of the interface") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "tensors");
  must(kiln_job_kernel(job.get(), "k.comp", nothing));
  double data[1] = {};
  const std::vector<std::int64_t> ones(33, 1);
  const std::int64_t none[] = {0};
  const std::int64_t* const shape = ones.data();
  const auto give = [&](const kiln_tensor& tensor) { return kiln_job_buffer(job.get(), nullptr, KILN_READ, &tensor); };
  for (int type = KILN_F32; type <= KILN_BOOL; ++type) {
    INFO("type " << type);
    must(give(kiln_tensor_of(data, static_cast<kiln_type>(type), 1, shape)));
  }
  for (const int type : {0, KILN_BOOL + 1, -1}) {
    refused(give(kiln_tensor_of(data, static_cast<kiln_type>(type), 1, shape)), KILN_INVALID_ARGUMENT,
            "buffer 12: type " + std::to_string(type) + ", expected a kiln_type");
  }
  must(give(kiln_tensor_of(data, KILN_F32, 32, shape)));
  must(give(kiln_tensor_of(data, KILN_F32, 0, nullptr)));
  must(give(kiln_tensor_of(nullptr, KILN_F32, 1, none)));
  refused(give(kiln_tensor_of(data, KILN_F32, 33, shape)), KILN_INVALID_ARGUMENT,
          "buffer 15: rank is 33, expected at most 32");
  refused(give(kiln_tensor_of(data, KILN_F32, 8, nullptr)), KILN_INVALID_ARGUMENT,
          "buffer 15: rank is 8, but shape is NULL");
  const kiln_tensor tensor = kiln_tensor_of(data, KILN_F32, 1, shape);
  for (const int access : {0, 4}) {
    refused(kiln_job_buffer(job.get(), "X", static_cast<kiln_access>(access), &tensor), KILN_INVALID_ARGUMENT,
            "access " + std::to_string(access) + ", expected KILN_READ, KILN_WRITE or KILN_READ_WRITE");
  }
  kiln_tensor shorter = tensor;
  shorter.size = 8;
  refused(give(shorter), KILN_INVALID_ARGUMENT, "buffer 15: tensor.size is 8");
}

TEST_CASE("job arguments: a uniform has 1 to 65536 values in at most 32 dimensions") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "uniforms");
  must(kiln_job_kernel(job.get(), "k.comp", nothing));
  const std::vector<double> values(65536);
  const auto give = [&](kiln_type type, std::uint32_t rank, const std::uint32_t* shape) {
    return kiln_job_uniform(job.get(), "u", type, rank, shape, values.data());
  };
  const std::vector<std::uint32_t> ones(33, 1);
  const std::uint32_t none[] = {0}, most[] = {65536}, more[] = {65537};
  must(give(KILN_F64, 32, ones.data()));
  must(give(KILN_I32, 1, most));
  must(give(KILN_I32, 0, nullptr));
  refused(give(KILN_F64, 33, ones.data()), KILN_INVALID_ARGUMENT, "uniform u: rank is 33, expected at most 32");
  refused(give(KILN_F64, 1, nullptr), KILN_INVALID_ARGUMENT, "uniform u: rank is 1, but shape is NULL");
  refused(give(KILN_F64, 1, none), KILN_INVALID_ARGUMENT, "uniform u: 0 values, expected 1 to 65536");
  refused(give(KILN_F64, 1, more), KILN_INVALID_ARGUMENT, "uniform u: 65537 values, expected 1 to 65536");
  for (const kiln_type type : {KILN_F32, KILN_I64}) {
    refused(give(type, 0, nullptr), KILN_INVALID_ARGUMENT,
            "uniform u: type " + std::to_string(static_cast<int>(type)) +
                ", expected KILN_F64 (double) or KILN_I32 (int64_t)");
  }
}

TEST_CASE("job arguments: the name of a constant is a word, its text one line") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "constants");
  must(kiln_job_kernel(job.get(), "k.comp", nothing));
  for (const char* const name : {"", "1A", "A-B", "A B"}) {
    refused(kiln_job_constant(job.get(), name, "1"), KILN_INVALID_ARGUMENT,
            std::string("constant '") + name + "' = '1': expected a name of letters, digits and '_'");
  }
  for (const char* const text : {"1\n2", "1\\"}) {
    refused(kiln_job_constant(job.get(), "A", text), KILN_INVALID_ARGUMENT,
            std::string("constant 'A' = '") + text + "': expected a name");
  }
  must(kiln_job_constant(job.get(), "_a1", ""));
  refused(kiln_job_kernel(job.get(), "k.spv", nothing), KILN_INVALID_ARGUMENT,
          "kernel source k.spv: text is set, expected NULL: Kiln reads SPIR-V from the file");
}

TEST_CASE("job arguments: the shapes of a layer have as many dimensions as it needs") {
  Jobs jobs;
  const Job job = job_of(jobs.runtime, "layer");
  alignas(64) float data[4] = {};
  const std::int64_t ones[] = {1, 1, 1, 1, 1}, twos[] = {2, 2};
  const auto of = [&](std::uint32_t rank) { return kiln_tensor_of(data, KILN_F32, rank, ones); };
  const kiln_tensor flat = of(1), matrix = of(2), cube = of(3), images = of(4), more = of(5),
                    square = kiln_tensor_of(data, KILN_F32, 2, twos);
  for (const auto& [wrong, rank] : {std::pair{&cube, "[1, 1, 1] has 3"}, std::pair{&more, "[1, 1, 1, 1, 1] has 5"}}) {
    refused(kiln_job_conv2d(job.get(), nullptr, wrong, &images, nullptr, &images), KILN_INVALID_ARGUMENT,
            std::string("input: shape ") + rank + " dimensions, expected 4");
    refused(kiln_job_conv2d(job.get(), nullptr, &images, wrong, nullptr, &images), KILN_INVALID_ARGUMENT,
            std::string("weights: shape ") + rank + " dimensions, expected 4");
  }
  for (const auto& [wrong, rank] : {std::pair{&flat, "[1] has 1"}, std::pair{&cube, "[1, 1, 1] has 3"}}) {
    refused(kiln_job_gemm(job.get(), wrong, &matrix, nullptr, 0, &matrix), KILN_INVALID_ARGUMENT,
            std::string("a: shape ") + rank + " dimensions, expected 2");
    refused(kiln_job_gemm(job.get(), &matrix, wrong, nullptr, 0, &matrix), KILN_INVALID_ARGUMENT,
            std::string("b: shape ") + rank + " dimensions, expected 2");
  }
  refused(kiln_job_gemm(job.get(), nullptr, &matrix, nullptr, 0, &matrix), KILN_INVALID_ARGUMENT, "a: tensor is NULL");
  refused(kiln_job_gemm(job.get(), &matrix, nullptr, nullptr, 0, &matrix), KILN_INVALID_ARGUMENT, "b: tensor is NULL");
  refused(kiln_job_gemm(job.get(), &matrix, &matrix, nullptr, 0, nullptr), KILN_INVALID_ARGUMENT,
          "output: tensor is NULL");
  refused(kiln_job_gemm(job.get(), &matrix, &matrix, &square, 0, &matrix), KILN_INVALID_ARGUMENT,
          "bias: float32 [2, 2], expected float32 [1]");
  refused(kiln_job_conv2d(job.get(), nullptr, &images, &images, &matrix, &images), KILN_INVALID_ARGUMENT,
          "bias: float32 [1, 1], expected float32 [1]");
  refused(kiln_job_gemm(job.get(), &square, &matrix, nullptr, 0, &matrix), KILN_INVALID_ARGUMENT,
          "b: float32 [1, 1], expected float32 [2, 1]");
  kiln_conv2d conv{};
  refused(kiln_job_conv2d(job.get(), &conv, &images, &images, nullptr, &images), KILN_INVALID_ARGUMENT,
          "kiln_job_conv2d: conv.size is 0");
  conv.size = sizeof conv;
  conv.groups = 3;
  CHECK(Answer(kiln_job_conv2d(job.get(), &conv, &images, &images, nullptr, &images)).code == KILN_INVALID_ARGUMENT);
}

TEST_CASE("job arguments: names of fields, and requests that are NULL") {
  const StoreFolder store;
  const auto cache = store.open();
  const kiln_identity identity = identity_of();
  kiln_key_builder* builder = nullptr;
  must(kiln_key_builder_create(cache.get(), &identity, "label", &builder));
  for (const std::string& name :
       {std::string("azAZ09_.-"), std::string(128, 'a'), std::string("devices"), std::string("-")}) {
    INFO(name);
    must(kiln_key_builder_text(builder, name.c_str(), ""));
  }
  for (const char* const name : {"a/b", "a:b", "a@b", "a[b", "a`b", "a{b", "a,b", "a^b"}) {
    refused(kiln_key_builder_number(builder, name, 1), KILN_INVALID_ARGUMENT,
            "kiln_key_builder_number: field name '" + std::string(name) + "': expected 1 to 128 characters");
  }
  null_refused(kiln_key_builder_text(builder, nullptr, "x"), "kiln_key_builder_text: name");
  kiln_key_builder_free(builder);

  must(kiln_key_builder_create(cache.get(), &identity, "label", &builder));
  must(kiln_key_builder_bytes(builder, "none", nullptr, 0));
  for (int at = 1; at < 4096; ++at) must(kiln_key_builder_number(builder, ("n" + std::to_string(at)).c_str(), 1));
  refused(
      kiln_key_builder_number(builder, "more", 1), KILN_INVALID_ARGUMENT,
      "field 'more' of 8 bytes: a key has at most 4096 fields and 15728640 bytes; this key already has 4096 fields");
  kiln_key_builder_free(builder);
  must(kiln_key_builder_create(cache.get(), &identity, "label", &builder));
  const std::string large(8u << 20, 'x');
  must(kiln_key_builder_bytes(builder, "first", large.data(), large.size()));
  refused(kiln_key_builder_bytes(builder, "second", large.data(), large.size()), KILN_INVALID_ARGUMENT,
          "field 'second' of 8388608 bytes: a key has at most 4096 fields and 15728640 bytes; this key already has 1 "
          "fields and ");
  kiln_key_builder_free(builder);

  const void* bytes = nullptr;
  std::size_t count = 0;
  CHECK(std::string(kiln_request_label(nullptr)).empty());
  CHECK(kiln_request_field(nullptr, "a", &bytes, &count) == 0);
  CHECK(kiln_request_set_bytes(nullptr, "a", 1) == 0);
  kiln_request_set_object(nullptr, nullptr, 0);
  kiln_request_set_message(nullptr, "a");
  char hex[65];
  std::memset(hex, 'x', sizeof hex);
  kiln_key_hex(nullptr, hex);
  CHECK(hex[0] == '\0');
  CHECK(hex[1] == 'x');
  const Key key = key_of(cache.get(), "one");
  kiln_key_hex(key.get(), nullptr);
  kiln_key_hex(key.get(), hex);
  CHECK(std::string(hex).find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(std::string(hex).size() == 64);
}

TEST_CASE("job arguments: what a build callback may give and ask for") {
  const StoreFolder store;
  const auto cache = store.open();
  TextCompiler compiler;
  int checked = 0;
  compiler.on_build = [&](kiln_request* request) {
    const void* bytes = nullptr;
    std::size_t count = 7;
    checked += std::string(kiln_request_label(request)) == "label of one";
    checked += kiln_request_field(request, "absent", &bytes, &count) == 0;
    checked += kiln_request_field(request, nullptr, &bytes, &count) == 0;
    checked += kiln_request_field(request, "source", nullptr, &count) == 0;
    checked += kiln_request_field(request, "source", &bytes, nullptr) == 0;
    checked += kiln_request_set_bytes(request, nullptr, 1) == 0;
    checked += count == 7;
    kiln_request_set_message(request, nullptr);
    return TextCompiler::compile(request);
  };
  CHECK(compiler.get(cache.get(), key_of(cache.get(), "one").get()) == "compiled one/3");
  CHECK(checked == 7);
  compiler.on_build = [](kiln_request* request) {
    return kiln_request_set_bytes(request, request, (std::size_t{256} << 20) + 1) == 0 ? KILN_OK : KILN_UNAVAILABLE;
  };
  CHECK_THAT(compiler.get(cache.get(), key_of(cache.get(), "vast").get()),
             Catch::Contains("268435457") && Catch::Contains("program 'label of vast'"));
  compiler.on_build = [](kiln_request*) { return KILN_OK; };
  const std::string nothing_set = compiler.get(cache.get(), key_of(cache.get(), "nothing").get());
  CHECK_THAT(nothing_set, Catch::StartsWith("internal: ") && Catch::Contains("program 'label of nothing'"));
  CHECK_THAT(nothing_set, Catch::Contains("the build callback returned KILN_OK without bytes and without an object"));
  compiler.on_build = [](kiln_request* request) { return TextCompiler::give(request, "object"); };
  kiln_compiler without_load = compiler.compiler();
  without_load.load = nullptr;
  kiln_program* program = nullptr;
  refused(kiln_cache_get_or_build(cache.get(), key_of(cache.get(), "bare").get(), &without_load, &program),
          KILN_INTERNAL, "the build callback set no bytes, and the compiler has no load callback");
  CHECK(program == nullptr);
}

TEST_CASE("job arguments: a compiler of a later version of the interface serves, if its new members are zero") {
  const StoreFolder store;
  const auto cache = store.open();
  TextCompiler compiler;
  struct Later {
    kiln_compiler known;
    std::uint64_t added;
  } later{compiler.compiler(), 0};
  later.known.size = sizeof later;
  const Key key = key_of(cache.get(), "one");
  for (const kiln_tier tier : {KILN_TIER_BUILT, KILN_TIER_MEMORY}) {
    kiln_program* program = nullptr;
    must(kiln_cache_get_or_build(cache.get(), key.get(), &later.known, &program));
    const ProgramPointer held(program);
    CHECK(kiln_program_tier(program) == tier);
  }
  later.added = 1;
  kiln_program* program = nullptr;
  refused(kiln_cache_get_or_build(cache.get(), key.get(), &later.known, &program), KILN_UNSUPPORTED,
          "compiler sets a member at byte");
}

TEST_CASE("job arguments: warming uses as many threads as the machine has, if none is named") {
  const StoreFolder store;
  TextCompiler compiler;
  {
    const auto cache = store.open();
    for (const char* const source : {"one", "two"}) compiler.get(cache.get(), key_of(cache.get(), source).get());
  }
  const auto cache = store.open();
  const kiln_identity identity = identity_of();
  const kiln_compiler callbacks = compiler.compiler();
  std::size_t loaded = 0;
  must(kiln_cache_warm(cache.get(), &identity, &callbacks, 100, 0, &loaded));
  CHECK(loaded == 2);
  CHECK(compiler.builds == 2);
  CHECK(stats_of(cache.get()).programs_in_memory == 2);
  const auto another = store.open();
  must(kiln_cache_warm(another.get(), &identity, &callbacks, 1, 1, nullptr));
  CHECK(stats_of(another.get()).programs_in_memory == 1);
  CHECK(compiler.builds == 2);
}

TEST_CASE("job arguments: the charge of an object counts for the bound of the memory") {
  const StoreFolder store;
  TextCompiler compiler;
  const auto cache = store.open([](kiln_cache_options& options) {
    options.directory = "";
    options.max_memory = 1 << 20;
  });
  compiler.on_load = [](kiln_request* request, std::string text) {
    ++TextCompiler::objects;
    kiln_request_set_object(request, new std::string(std::move(text)), 700 << 10);
    return KILN_OK;
  };
  for (const char* const source : {"one", "two", "three"}) {
    compiler.get(cache.get(), key_of(cache.get(), source).get());
    CHECK(stats_of(cache.get()).programs_in_memory == 1);
  }
}

}  // namespace
}  // namespace kiln::test
