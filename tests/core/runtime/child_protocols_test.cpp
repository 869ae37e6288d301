// What a child process and its parent send to each other: the frames of builds, and the lines of measurements.
#include "runtime/child_protocols.hpp"

#include <catch2/catch.hpp>

#include <kiln/digest.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace kiln;

namespace {

// What the other side takes: without the length.
template <class What>
std::string frame_of(const What& what) {
  return to_frame(what).substr(sizeof(std::uint32_t));
}

}  // namespace

TEST_CASE("runtime::build_frames: a setup is equal after sending, with settings of every type", "[runtime]") {
  BuildSetup setup;
  setup.plugin = "/plugins/opengl.so";
  setup.driver = "opengl";
  setup.device = "opengl:0";
  setup.cache_directory = "/cache";
  setup.driver_folder = "/cache/driver/name";
  setup.memory = 0x123456789abcdef0;
  setup.libraries = {"/lib/one.so", "/lib/two.so"};
  setup.hidden = {"/home/user", "/key"};
  setup.settings["yes"] = true;
  setup.settings["no"] = false;
  setup.settings["number"] = std::int64_t{-7};
  setup.settings["share"] = 0.25;
  setup.settings["text"] = std::string("two words");
  setup.settings["no text"] = std::string();
  setup.settings["list"] = std::vector<std::string>{"a", "", "b"};
  setup.settings["no list"] = std::vector<std::string>();
  const std::string frame = to_frame(setup);
  REQUIRE(frame.size() > 4);
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) length += std::size_t{static_cast<unsigned char>(frame[i])} << (8 * i);
  CHECK(length == frame.size() - 4);
  const auto arrived = build_setup_of(std::string_view(frame).substr(4));
  REQUIRE(arrived);
  CHECK(arrived->plugin == setup.plugin);
  CHECK(arrived->driver == "opengl");
  CHECK(arrived->device == "opengl:0");
  CHECK(arrived->cache_directory == setup.cache_directory);
  CHECK(arrived->driver_folder == setup.driver_folder);
  CHECK(arrived->memory == 0x123456789abcdef0);
  CHECK(arrived->libraries == setup.libraries);
  CHECK(arrived->hidden == setup.hidden);
  REQUIRE(arrived->settings.size() == setup.settings.size());
  for (const auto& [name, value] : setup.settings) {
    INFO(name);
    REQUIRE(arrived->settings.contains(name));
    CHECK((arrived->settings.at(name) == value));
  }
  CHECK(build_setup_of(std::string_view(frame).substr(4, length - 1)).error().code == StatusCode::internal);
}

TEST_CASE("runtime::build_frames: a setup with unreadable fields is rejected", "[runtime]") {
  const auto refused = [](std::string_view name, std::string_view value) {
    KeyEncoder fields;
    fields.field("plugin", "/plugins/opengl.so");
    fields.field("device", "opengl:0");
    fields.field(name, value);
    const auto setup = build_setup_of(fields.material());
    return !setup && setup.error().code == StatusCode::internal;
  };
  for (const char* good : {"b0", "b1", "i12345678", "n12345678", "t", "ttext", "l"}) {
    INFO(good);
    CHECK_FALSE(refused("setting.x", good));
  }
  for (const char* bad : {"", "i", "i1234567", "i123456789", "n", "n1234567", "n123456789", "+", "+a", "z", "L"}) {
    INFO(bad);
    CHECK(refused("setting.x", bad));
  }
  CHECK_FALSE(refused("memory", "12345678"));
  CHECK(refused("memory", "1234567"));
  CHECK(refused("memory", ""));
  CHECK(refused("plugin", ""));
  CHECK(refused("device", ""));
}

TEST_CASE("runtime::build_frames: requests, programs and gaps are equal after sending", "[runtime]") {
  BuildRequest request;
  request.material = "material";
  request.files = {"a.h", "b.h"};
  const auto plain = build_request_of(frame_of(request));
  REQUIRE(plain);
  CHECK(plain->material == "material");
  CHECK(plain->files == request.files);
  CHECK_FALSE(plain->stored.has_value());
  request.stored = ProgramBinary{"text", {std::byte{'p'}, std::byte{0}}};
  const auto stored = build_request_of(frame_of(request));
  REQUIRE(stored);
  CHECK(stored->files == request.files);
  REQUIRE(stored->stored.has_value());
  CHECK(stored->stored->format == "text");
  CHECK((stored->stored->bytes == request.stored->bytes));
  const auto program = built_program_of(frame_of(Result<ProgramBinary>(*request.stored)));
  REQUIRE(program);
  CHECK(program->format == "text");
  CHECK((program->bytes == request.stored->bytes));
  BuildOpened opened;
  opened.gaps = {"the network", "files"};
  const auto told = build_opened_of(frame_of(Result<BuildOpened>(opened)));
  REQUIRE(told);
  CHECK(told->gaps == opened.gaps);

  const std::string other = frame_of(Result<BuildOpened>(opened));
  CHECK(build_request_of(other).error().code == StatusCode::internal);
  CHECK(built_program_of(other).error().code == StatusCode::internal);
  CHECK(build_opened_of(frame_of(request)).error().code == StatusCode::internal);
}

TEST_CASE("runtime::build_frames: a failure keeps its message, and its code if compilers can return it", "[runtime]") {
  const std::pair<StatusCode, StatusCode> codes[] = {
      {StatusCode::invalid_argument, StatusCode::invalid_argument},
      {StatusCode::not_found, StatusCode::not_found},
      {StatusCode::unsupported, StatusCode::unsupported},
      {StatusCode::unavailable, StatusCode::unavailable},
      {StatusCode::device_lost, StatusCode::device_lost},
      {StatusCode::internal, StatusCode::internal},
      {StatusCode::corrupt, StatusCode::unavailable},
      {StatusCode::io, StatusCode::unavailable},
      {StatusCode::timeout, StatusCode::unavailable},
      {StatusCode::cancelled, StatusCode::unavailable},
      {StatusCode::wrong_result, StatusCode::unavailable},
  };
  for (const auto& [sent, expected] : codes) {
    const Status failure{sent, "line 3"};
    INFO(failure.text());
    const auto program = built_program_of(frame_of(Result<ProgramBinary>(failure)));
    REQUIRE_FALSE(program);
    CHECK(program.error().code == expected);
    CHECK(program.error().message == "line 3");
    const auto opened = build_opened_of(frame_of(Result<BuildOpened>(failure)));
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == expected);
    CHECK(opened.error().message == "line 3");
  }
}

TEST_CASE("runtime::build_frames: a frame that is cut off, empty or of other fields is rejected", "[runtime]") {
  const auto material = [](const std::vector<std::pair<std::string_view, std::string_view>>& all) {
    KeyEncoder fields;
    for (const auto& [name, value] : all) fields.field(name, value);
    return fields.material();
  };
  const std::string code(8, '\0');
  const std::string requests[] = {"", "x", material({}), material({{"file", "a.h"}}),
                                  material({{"material", "m"}, {"format", "text"}, {"payload", "no"}})};
  for (const std::string& frame : requests) {
    const auto request = build_request_of(frame);
    REQUIRE_FALSE(request);
    CHECK(request.error().code == StatusCode::internal);
    CHECK(request.error().message == "a frame of another process is not a valid request");
  }
  const std::string openings[] = {"",
                                  "x",
                                  material({}),
                                  material({{"gap", "x"}}),
                                  material({{"code", code}}),
                                  material({{"code", "1234567"}, {"message", "m"}}),
                                  material({{"code", code}, {"massage", "m"}}),
                                  material({{"kode", code}, {"message", "m"}}),
                                  material({{"code", code}, {"message", "m"}, {"message", "n"}})};
  for (const std::string& frame : openings) {
    const auto opened = build_opened_of(frame);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().message == "a frame of another process is not a valid answer");
  }
  const std::string builds[] = {"",
                                "x",
                                material({}),
                                material({{"format", "text"}}),
                                material({{"format", "text"}, {"paylode", "p"}}),
                                material({{"formad", "text"}, {"payload", "p"}}),
                                material({{"format", "text"}, {"payload", "p"}, {"payload", "p"}})};
  for (const std::string& frame : builds) {
    const auto built = built_program_of(frame);
    REQUIRE_FALSE(built);
    CHECK(built.error().message == "a frame of another process is not a valid answer");
  }
  const auto unreadable = built_program_of(material({{"format", "text"}, {"payload", "no"}}));
  REQUIRE_FALSE(unreadable);
  CHECK(unreadable.error().code == StatusCode::internal);
  CHECK_THAT(unreadable.error().message, Catch::StartsWith("the answer of another process cannot be read: "));
}

TEST_CASE("runtime::bench_lines: a setup is equal after writing and reading", "[runtime][tuning]") {
  Conv2dSpec conv;
  std::int64_t next = 2;
  for (const auto number :
       {&Conv2dSpec::n, &Conv2dSpec::c, &Conv2dSpec::h, &Conv2dSpec::w, &Conv2dSpec::k, &Conv2dSpec::r, &Conv2dSpec::s,
        &Conv2dSpec::stride_y, &Conv2dSpec::stride_x, &Conv2dSpec::pad_y, &Conv2dSpec::pad_x, &Conv2dSpec::dilation_y,
        &Conv2dSpec::dilation_x, &Conv2dSpec::groups}) {
    conv.*number = next++;
  }
  conv.bias = Bias::per_channel;
  conv.activation = Activation::relu6;
  conv.accuracy = Accuracy::winograd;
  GemmSpec gemm{2, 3, 4};
  gemm.bias = Bias::per_channel;
  gemm.activation = Activation::relu;
  std::vector<decltype(BenchSetup::subject)> subjects;
  subjects.emplace_back(conv);
  subjects.emplace_back(gemm);
  subjects.emplace_back(std::string("a job"));
  const auto arrived = [](const BenchSetup& setup) {
    std::string line = to_line(setup);
    REQUIRE(line.ends_with('\n'));
    line.pop_back();
    REQUIRE(line.find('\n') == std::string::npos);
    return setup_of(line);
  };
  for (const auto& subject : subjects) {
    BenchSetup setup;
    setup.sources.file = "/jobs.toml";
    setup.sources.environment = {{"HOME", "/home/user"}, {"KILN_LOG", "info"}};
    setup.sources.set = {"a.b=1", "c.d=2"};
    setup.sources.cache_directory = "/cache";
    setup.sources.plugin_path = "/one:/two";
    setup.device = "opengl:0";
    setup.subject = subject;
    setup.outputs = 3;
    const auto whole = arrived(setup);
    REQUIRE(whole.has_value());
    CHECK(whole->sources.file.value_or("") == "/jobs.toml");
    CHECK((whole->sources.environment == setup.sources.environment));
    CHECK(whole->sources.set == setup.sources.set);
    CHECK(whole->sources.cache_directory.value_or("") == "/cache");
    CHECK(whole->sources.plugin_path.value_or("") == "/one:/two");
    CHECK(whole->device == "opengl:0");
    CHECK((whole->subject == subject));
    CHECK(whole->outputs == 3);
    BenchSetup least;
    least.subject = subject;
    const auto little = arrived(least);
    REQUIRE(little.has_value());
    CHECK_FALSE(little->sources.file.has_value());
    CHECK_FALSE(little->sources.cache_directory.has_value());
    CHECK_FALSE(little->sources.plugin_path.has_value());
    CHECK((little->subject == subject));
    CHECK(little->outputs == -1);
  }
  CHECK(setup_of("no JSON").error().code == StatusCode::invalid_argument);
  CHECK(setup_of("{}").error().code == StatusCode::invalid_argument);
}

TEST_CASE("runtime::bench_lines: answers and failures are equal after writing and reading", "[runtime][tuning]") {
  VariantSamples samples;
  samples.wall_ns = {7, 8, 9};
  samples.device_ns = {4, 5, 6};
  samples.source_digest = "digest";
  samples.max_rel_error = 0.25;
  samples.error_bound = 0.5;
  samples.agreement = 3;
  samples.contention = 0.125;
  const auto answer = answer_of(to_line(Result<VariantSamples>(samples)));
  REQUIRE(answer.has_value());
  CHECK(answer->wall_ns == samples.wall_ns);
  CHECK(answer->device_ns == samples.device_ns);
  CHECK(answer->source_digest == "digest");
  CHECK(answer->max_rel_error == 0.25);
  CHECK(answer->error_bound == 0.5);
  CHECK(answer->agreement == 3);
  CHECK(answer->contention == 0.125);
  for (const StatusCode code : {StatusCode::invalid_argument, StatusCode::not_found, StatusCode::unsupported,
                                StatusCode::unavailable, StatusCode::corrupt, StatusCode::io, StatusCode::timeout,
                                StatusCode::device_lost, StatusCode::cancelled, StatusCode::internal}) {
    const auto failed = answer_of(to_line(Result<VariantSamples>(Status{code, "the \"words\"\nof it"})));
    REQUIRE_FALSE(failed.has_value());
    CHECK(failed.error().code == code);
    CHECK(failed.error().message == "the \"words\"\nof it");
  }
  const auto unknown = answer_of("{\"code\":\"nonsense\",\"message\":\"words\"}");
  REQUIRE_FALSE(unknown.has_value());
  CHECK(unknown.error().code == StatusCode::internal);
  CHECK_THAT(unknown.error().message, Catch::Contains("'nonsense'"));
  CHECK(answer_of("no JSON").error().code == StatusCode::internal);
}
