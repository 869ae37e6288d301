// What an implementation answers that leaves an optional method out, and the small functions of the headers.
#include <kiln/device_selector.hpp>
#include <kiln/executor.hpp>
#include <kiln/kernel_generator.hpp>
#include <kiln/measurement.hpp>
#include <kiln/offline_tools.hpp>
#include <kiln/operation.hpp>
#include <kiln/run_request.hpp>
#include <kiln/traced_work.hpp>
#include <kiln/without_sigpipe.hpp>

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <cerrno>
#include <span>
#include <string>
#include <vector>

using namespace kiln;

namespace {

struct HeardTrace final : TraceSink {
  std::vector<std::string> events;
  void add_job(std::span<const StageSpan>) noexcept override {}
  void add_event(const TraceEvent& event) noexcept override {
    std::string text(event.name);
    for (const TraceFigure& figure : event.figures) text += " " + std::string(figure.name);
    text += event.begin_ns != 0 && event.end_ns >= event.begin_ns ? "" : " without times";
    events.push_back(text);
  }
};

struct OneVariant final : KernelGenerator {
  std::span<const Dialect> dialects() const noexcept override { return {}; }
  Result<KernelPlan> generate(const KernelSpec&, const DeviceInfo&, Dialect) noexcept override { return KernelPlan(); }
  void record(const KernelSpec&, const DeviceInfo&, std::string_view, const Measurement&) noexcept override {}
};

}  // namespace

TEST_CASE("contract defaults: a dispatch takes what is left of the wall time, or the device's", "[contract]") {
  Measurement m;
  m.queue_ns = 1, m.build_ns = 20, m.upload_ns = 300, m.readback_ns = 4000;
  m.device_ns = 7;
  m.wall_ns = 4322;
  CHECK(dispatch_ns(m) == 1);
  m.wall_ns = 5321;
  CHECK(dispatch_ns(m) == 1000);
  m.wall_ns = 4321;
  CHECK(dispatch_ns(m) == 7);
  m.wall_ns = 4320;
  CHECK(dispatch_ns(m) == 7);
}

TEST_CASE("contract defaults: a traced scope is one event, with its first eight figures", "[contract]") {
  HeardTrace trace;
  {
    TracedWork work(&trace, TraceArea::build, "build");
    CHECK(work.begin_ns() > 0);
    for (const char* const name : {"a", "b", "c", "d", "e", "f", "g", "h", "i"}) work.figure(name, std::uint64_t{1});
    CHECK(trace.events.empty());
    work.end();
    CHECK(trace.events == std::vector<std::string>{"build a b c d e f g h"});
    work.end();
  }
  CHECK(trace.events.size() == 1);
  { const TracedWork work(&trace, TraceArea::build, "short"); }
  CHECK(trace.events.size() == 2);
  CHECK(trace.events.back() == "short");
  TracedWork silent(nullptr, TraceArea::build, "none");
  silent.figure("a", std::uint64_t{1});
  CHECK(silent.begin_ns() == 0);
  silent.end();
  CHECK(trace.events.size() == 2);
}

TEST_CASE("contract defaults: a write to a closed pipe fails, and the mask of signals is as before", "[contract]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ::close(ends[0]);
  const auto is_blocked = [] {
    sigset_t now;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
    return ::sigismember(&now, SIGPIPE) == 1;
  };
  const auto is_pending = [] {
    sigset_t pending;
    ::sigpending(&pending);
    return ::sigismember(&pending, SIGPIPE) == 1;
  };
  REQUIRE_FALSE(is_blocked());
  for (int round = 0; round < 2; ++round) {
    {
      const WithoutSigpipe quiet;
      CHECK(is_blocked());
      CHECK(::write(ends[1], "x", 1) == -1);
      CHECK(errno == EPIPE);
    }
    CHECK_FALSE(is_blocked());
    CHECK_FALSE(is_pending());
  }
  {  // a signal that was pending before stays
    sigset_t pipe, before;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
    ::raise(SIGPIPE);
    { const WithoutSigpipe quiet; }
    CHECK(is_blocked());
    CHECK(is_pending());
    const timespec at_once{};
    CHECK(::sigtimedwait(&pipe, nullptr, &at_once) == SIGPIPE);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ::close(ends[1]);
}

TEST_CASE("contract defaults: a generator without variants names the one that was asked for", "[contract]") {
  OneVariant generator;
  const auto plan = generator.generate_variant(AddSpec{}, DeviceInfo{}, Dialect::glsl, "tile=8");
  REQUIRE_FALSE(plan);
  CHECK(plan.error().text() == "not_found: variant 'tile=8': this generator has no variants");
  CHECK(generator.generic_plans(AddSpec{}, DeviceInfo{}, Dialect::glsl).empty());
}

TEST_CASE("contract defaults: the sources of a report are the beginnings of all its keys", "[contract]") {
  RunReport report;
  CHECK(source_digest_of(report).empty());
  report.keys = {std::string(64, 'a'), "0123456789abcdefX"};
  report.prepare_keys = {std::string(64, 'p')};
  CHECK(source_digest_of(report) == std::string(16, 'p') + std::string(16, 'a') + "0123456789abcdef");
}

TEST_CASE("contract defaults: work of about the same size is one bucket", "[contract]") {
  GemmSpec gemm;
  gemm.m = 64, gemm.n = 64, gemm.k = 64;  // 2^19 FLOPs, 3 * 2^14 bytes
  const ShapeBucket bucket(gemm);
  CHECK(bucket.operation == "gemm");
  CHECK(bucket.flops == 524288);
  CHECK(bucket.bytes == 49152);
  CHECK(bucket.saving == 1);
  CHECK(bucket.family == operation_of(gemm).family(gemm));
  CHECK(bucket.shape == bucket.family + " @19.0/16");  // log2(49152) is 15.58
  gemm.k = 80;                                         // log2 of the FLOPs is 19.32
  CHECK(ShapeBucket(gemm).shape == bucket.family + " @19.5/16");
  gemm.k = 70;  // 19.13
  CHECK(ShapeBucket(gemm).shape == bucket.family + " @19.0/16");
  UserKernelSpec kernel;  // whose FLOPs nobody knows
  kernel.text = "x";
  const ShapeBucket unknown(kernel);
  CHECK(unknown.operation == "kernel");
  CHECK(unknown.flops == 0);
  CHECK(unknown.shape == unknown.family);
  Conv2dSpec conv;
  conv.n = 2, conv.c = 4, conv.h = 9, conv.w = 11, conv.k = 8, conv.r = 3, conv.s = 3, conv.pad_y = 1, conv.pad_x = 1;
  CHECK(ShapeBucket(conv).saving == Approx(27.0 / 25 * 33 / 31));  // of 27 row and 33 column taps two lie outside
}
